"""The control pipes between a supervisor and each process it started: JSON, one object a line.

Down: `{"do": "go"}`, `{"do": "stop"}` and, before that, the outcome as `{"do": "ended", "ok": ..., "reason": ...}`; its
end means that the supervisor is gone. Up: `ready`, `finish`, `log`, `failed`, and
`alive` as a heartbeat. `refused` goes both ways: from a process that cannot read some message to the one that sent it.
`Control` starts a thread that reads and writes: a supervisor that is stopped or slow makes no handler wait. What it
does not take in time is dropped, and how much is said.
"""

from __future__ import annotations

import json
import logging
import os
import select
import threading
import traceback
from collections import deque
from collections.abc import Callable
from typing import Any

from runtime.clock import SystemClock
from runtime.operating_system.real_time import name_thread
from runtime.operating_system.telling import level_of, text_of
from runtime.operating_system.wake_pipe import WakePipe
from runtime.supervision.orphan import GRACE_S, end_orphan

_LAST_WORDS_S = 0.5
_QUEUED_LINES = 2000
HEARTBEAT_S = 0.5
"""How often a process says that its threads run, s, whatever its handlers do."""
_HEARTBEAT = b'{"event": "alive"}\n'


class Control:
    """The process's end of the control pipes."""

    def __init__(self, read_fd: int, write_fd: int, on_order: Callable[[dict[str, Any]], None]) -> None:
        self.on_beat: Callable[[], None] | None = None
        """What its thread does about every half second."""
        self._clock = SystemClock()
        self._beat_s = 0.0
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._on_order = on_order
        self._lines: deque[bytes] = deque()
        self._dropped = 0
        self._woken = WakePipe()
        os.set_blocking(write_fd, False)
        self._is_closing = False
        self.is_orphan = False
        """Whether the supervisor is gone."""
        self._all_told = threading.Event()
        # A daemon: it waits for a supervisor that may outlive this process.
        self._thread = threading.Thread(target=self._run, name="control", daemon=True)

    def start(self) -> None:
        """Start to listen and to talk to the supervisor."""
        self._thread.start()

    def tell(self, event: str, **fields: Any) -> None:
        """Tell the supervisor something without waiting; does nothing where the supervisor is gone."""
        line = json.dumps({"event": event, **fields}).encode() + b"\n"
        if len(self._lines) < _QUEUED_LINES:
            self._lines.append(line)
            self._woken.wake()
        else:
            self._dropped += 1

    def close(self) -> None:
        """Wait, for a moment at most, until everything is told."""
        self._is_closing = True
        self._woken.wake()
        self._all_told.wait(_LAST_WORDS_S)

    def forget(self) -> None:
        """In a process that was forked from this one: let go of the pipes, and tell nobody anything."""
        self._dropped, self._lines = 0, deque(maxlen=0)
        for fd in (self._read_fd, self._write_fd):
            os.close(fd)
        self._woken.close()

    def _run(self) -> None:
        name_thread("control")
        line = orders = b""  # what is not written yet, and what is not read to its end
        is_heard = True
        while True:
            if not line and self._lines:
                line = self._next_line()
            if self._is_closing and not line:
                is_heard = False  # the pipe may be closed now
                self._all_told.set()
            writes = [self._write_fd] if line and is_heard else []
            reads = (self._read_fd, self._woken.fd)
            readable, writable, _ = select.select(reads, writes, (), HEARTBEAT_S)
            self._beat()
            if is_heard and not readable and not writable and not line:
                line = _HEARTBEAT
            if writable or (is_heard and line is _HEARTBEAT):
                try:
                    line = line[os.write(self._write_fd, line) :]
                except BlockingIOError:
                    pass  # less room than a line of that length needs
                except OSError:
                    is_heard, self.is_orphan = False, True
                    self._all_told.set()
                    self._on_order({"do": "stop"})
            if self._woken.fd in readable:
                self._woken.clear()
            if self._read_fd in readable:
                more = os.read(self._read_fd, 1 << 16)
                if not more:
                    self.is_orphan = True
                    end_orphan(lambda: self._on_order({"do": "stop"}), GRACE_S)
                *whole, orders = (orders + more).split(b"\n")
                for order in whole:
                    self._on_order(json.loads(order))

    def _beat(self) -> None:
        if self.on_beat is None or (now_s := self._clock.now_s()) - self._beat_s < HEARTBEAT_S:
            return
        self._beat_s = now_s
        try:
            self.on_beat()
        except Exception:  # this thread obeys the supervisor, whatever else fails
            self.on_beat = None
            logging.getLogger("control").exception("what is done at each heartbeat failed, and is not done any more")

    def _next_line(self) -> bytes:
        line = self._lines.popleft()
        if not self._dropped:
            return line
        text = f"{self._dropped} lines were not told, because the supervisor did not listen"
        self._dropped = 0
        return _log_line("warning", "control", text) + line


def _log_line(level: str, source: str, text: str) -> bytes:
    return json.dumps({"event": "log", "level": level, "source": source, "text": text}).encode() + b"\n"


class ControlLog(logging.Handler):
    """Sends log records to the supervisor."""

    def __init__(self, control: Control) -> None:
        super().__init__()
        self._control = control

    def emit(self, record: logging.LogRecord) -> None:
        """Send one log record."""
        text = text_of(record)
        if record.exc_info and record.exc_info[0] is not None:
            text += "\n" + "".join(traceback.format_exception(*record.exc_info)).rstrip()
        source = record.name.removeprefix("node.")
        self._control.tell("log", level=level_of(record), source=source, text=text[:8000])
