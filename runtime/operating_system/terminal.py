"""The terminal that a command was started from: whoever closes it or loses it ends what they started there.

The kernel tells by SIGHUP, and where it does not, the terminal itself is found hung up. A program that was started
without one (nohup, setsid, a service) goes on.
"""

from __future__ import annotations

import os
import select
import signal

_PLACE = "/dev/tty"  # whichever controls this process


def end_as_by_interrupt() -> None:
    """Have a lost terminal and a polite request to end (SIGTERM) do what Ctrl-C does, where nothing else is said."""
    for number in (signal.SIGHUP, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


def ends_with_terminal() -> bool:
    """Whether the loss of the terminal ends this program; not so where `nohup` started it."""
    return signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN


def signals_of_end() -> tuple[signal.Signals, ...]:
    """The signals by which somebody asks a program to come to its end: Ctrl-C, SIGTERM, and a lost terminal's."""
    return (signal.SIGINT, signal.SIGTERM, *((signal.SIGHUP,) if ends_with_terminal() else ()))


class Terminal:
    """The one that controls this process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._look = select.poll()
        self._look.register(descriptor, 0)  # its end is told all the same
        self._watch: select.epoll | None = None
        if hasattr(select, "epoll"):
            self._watch = select.epoll()
            self._watch.register(descriptor, 0)

    @classmethod
    def own(cls) -> Terminal | None:
        """That of this process; None where there is none, or its loss is nothing to this program."""
        if not ends_with_terminal():
            return None
        try:
            return cls(os.open(_PLACE, os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC))
        except OSError:
            return None

    @property
    def watched(self) -> int:
        """What is readable once it is lost, for a loop to wait on; -1 where the system has no such thing."""
        return -1 if self._watch is None else self._watch.fileno()

    @property
    def is_lost(self) -> bool:
        """Whether nobody is at its other end any more."""
        return bool(self._look.poll(0))

    def close(self) -> None:
        """Look no more."""
        if self._watch is not None:
            self._watch.close()
        os.close(self._descriptor)
