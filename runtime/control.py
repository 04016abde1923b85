"""The control pipes between a supervisor and each process it started: JSON, one object a line.

Down: `{"do": "go"}`, `{"do": "stop"}` and, before that, the outcome as `{"do": "ended", "ok": ..., "reason": ...}`; its
end means that the supervisor is gone. Up: `ready`, `finish`, `log` and `failed`.
Starts one thread, which reads the pipe from the supervisor.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import traceback
from collections.abc import Callable
from typing import Any

_GRACE_S = 1.5  # after the supervisor's death a process has this long to stop by itself


class Control:
    """A process's end of the pipes."""

    def __init__(self, read_fd: int, write_fd: int, on_order: Callable[[dict[str, Any]], None]) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._on_order = on_order
        self._lock = threading.Lock()
        # Daemon: it waits in read() for a supervisor that may outlive this process.
        self._thread = threading.Thread(target=self._read, name="control", daemon=True)

    def start(self) -> None:
        """Start listening to the supervisor."""
        self._thread.start()

    def tell(self, event: str, **fields: Any) -> None:
        """Tell the supervisor something; nothing happens where it is gone."""
        line = json.dumps({"event": event, **fields}).encode() + b"\n"
        try:
            with self._lock:
                os.write(self._write_fd, line)
        except OSError:
            self._on_order({"do": "stop"})

    def _read(self) -> None:
        with os.fdopen(self._read_fd, "rb") as pipe:
            for line in pipe:
                self._on_order(json.loads(line))
        # The supervisor is gone. Stop politely; whatever blocks the loop does not keep this process alive.
        self._on_order({"do": "stop"})
        threading.Event().wait(_GRACE_S)
        os._exit(3)


class ControlLog(logging.Handler):
    """Sends log records up the pipe."""

    def __init__(self, control: Control) -> None:
        super().__init__()
        self._control = control

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = record.getMessage()
        except (TypeError, ValueError):  # the arguments do not fit the text
            text = f"{record.msg} {record.args}"
        if record.exc_info and record.exc_info[0] is not None:
            text += "\n" + "".join(traceback.format_exception(*record.exc_info)).rstrip()
        source = record.name.removeprefix("node.")
        self._control.tell("log", level=record.levelname.lower(), source=source, text=text[:8000])
