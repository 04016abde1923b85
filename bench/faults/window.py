"""A terminal window around a run: `python -m bench.faults.window COMMAND...`; the command keeps this process's id.

The window is a process of its own, which hands on what it shows. SIGUSR1 halts its output, as Ctrl-S does; killing it
closes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import signal
import sys
import termios
from pathlib import Path

from bench.faults.black_box import FOLDER_VARIABLE

WINDOW = "window"
"""The file in the rig's folder that has the window's process id."""
COMMAND = (sys.executable, "-m", "bench.faults.window")


def main(command: list[str]) -> None:
    """Open the window and become the command in it."""
    master, inner = pty.openpty()
    between = os.fork()
    if between == 0:
        if os.fork() == 0:
            os.close(inner)
            _show(master)
        os._exit(0)
    os.waitpid(between, 0)
    os.close(master)
    fcntl.ioctl(inner, termios.TIOCSCTTY, 0)
    for number in range(3):
        os.dup2(inner, number)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # also where `nohup` started the trials: a window's shell has it so
    os.execvp(command[0], command)


def _show(master: int) -> None:
    os.setsid()
    Path(os.environ[FOLDER_VARIABLE], WINDOW).write_text(str(os.getpid()))
    signal.signal(signal.SIGUSR1, lambda *_: os.write(master, b"\x13"))
    with contextlib.suppress(OSError):  # nobody writes there any more
        while said := os.read(master, 1 << 16):
            os.write(1, said)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
