"""A real-time signal that is held for one process of a run, and how that process is known.

The process that issues fences may be asked by it to stop everything, where the bus is in ruins. Every other thread of a
run blocks it. A process is known by a file in memory that it holds open: that has no place from which it could be
deleted, it is there however the process was started, and it goes with the process. Linux has such signals, macOS none.
"""

from __future__ import annotations

import os
import signal

MARK = "--fences-of="
"""The argument by which ps shows that process; the name of its run follows."""
HELD = "polyrhythm-fences:"
_HELD_BYTES = 240
SIGNAL = signal.SIGRTMIN + 6 if hasattr(signal, "SIGRTMIN") else None


def block() -> None:
    """Block the signal in this thread, and in the threads and processes that it starts."""
    if SIGNAL is not None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {SIGNAL})


def be_known(run: str, supervisor_pid: int) -> None:
    """Make this process known, until it ends, as one of a run with fences: the supervisor, or their issuer's."""
    if hasattr(os, "memfd_create"):
        name = f"{HELD}{os.getpid()}:{supervisor_pid}:{run}".encode()[:_HELD_BYTES]
        os.memfd_create(name.decode(errors="ignore"))  # never closed: its name is what it is for
