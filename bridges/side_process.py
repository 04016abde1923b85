"""`SideProcess`: a child that is another Python, for a maker's library that ours does not have."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from runtime.operating_system.processes import foreign_environment


class SideProcess:
    """A child in a session of its own, which ends when its standard input ends. What it complains of goes to a log."""

    def __init__(self, command: Sequence[str], what: str, *, answers: bool = False) -> None:
        """`what` it is for people, like "the process that speaks to stretch_body"; `answers`: on its standard output.

        Raises OSError where it cannot be started.
        """
        self.what = what
        self.folder = Path(tempfile.mkdtemp(prefix="polyrhythm-side-"))
        try:
            with (self.folder / "log").open("wb") as log:
                # A group of its own: Ctrl-C is the run's, and it ends the run in order.
                self.child: subprocess.Popen[bytes] = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE if answers else log, stderr=log,
                    start_new_session=True, env=foreign_environment(),
                )  # fmt: skip
        except OSError:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def ended(self) -> str:
        """Why it is gone, with the last that it complained of; nothing while it runs."""
        code = self.child.poll()
        if code is None:
            return ""
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"code {code}"
        with suppress(OSError):
            lines = (self.folder / "log").read_text(errors="replace").strip().splitlines()
            if lines:
                return f"{self.what} ended by {how}: {lines[-1]}"
        return f"{self.what} ended by {how}"

    def close(self, within_s: float) -> None:
        """Let it end by itself; what is left of its group after that is killed."""
        for pipe in (self.child.stdin, self.child.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        with suppress(subprocess.TimeoutExpired):
            self.child.wait(within_s)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.child.pid, signal.SIGKILL)
        self.child.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
