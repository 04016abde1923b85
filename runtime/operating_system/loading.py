"""`WholeImports`: Ctrl-C while modules are loaded takes effect after them; where it comes twice, at once.

A signal's exception comes between any two steps of Python, and compiled modules do not all expect one at their start.
msgspec does not look whether it got `datetime`: interrupted there it loads all the same, and Python ends in a
segmentation fault at the first decoder. `ssl` fails with a TypeError.
"""

from __future__ import annotations

import signal

_ENDS = tuple(number for name in ("SIGINT", "SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)) is not None)


class WholeImports:
    """A context in which an end by Ctrl-C, SIGTERM or a lost terminal is held. Raises KeyboardInterrupt at its end."""

    def __init__(self) -> None:
        self._held: list[int] = []  # signals whose handler is ours meanwhile
        self._is_asked = False

    def __enter__(self) -> None:
        for number in _ENDS:
            if signal.getsignal(number) is signal.default_int_handler:
                try:
                    signal.signal(number, self._hold)
                except ValueError:  # signals come to another thread
                    return
                self._held.append(number)

    def _hold(self, *_: object) -> None:
        if self._is_asked:
            raise KeyboardInterrupt
        self._is_asked = True

    def __exit__(self, *_: object) -> None:
        for number in self._held:
            signal.signal(number, signal.default_int_handler)
        if self._is_asked:
            raise KeyboardInterrupt
