"""`TypedLines`: what somebody types at the terminal of a run is said to its robot.

Keys are read without waiting. Words leave by a thread of its own, because finding the run's sockets takes time.
"""

from __future__ import annotations

import codecs
import os
import select
import sys
import termios
import tty
from concurrent.futures import Future, ThreadPoolExecutor

from nodes.terminal.say import LONGEST, Speaker
from runtime.command_line.attach import attach, user_name
from runtime.errors import PolyrhythmError

WAITING = 8
"""So many lines at most wait to be said; a person types no faster, and what is pasted is refused."""
BACKSPACES, ERASES_LINE = "\x7f\b", "\x15\x1b"


class TypedLines:
    """A line that grows key by key; it is said when it is ended."""

    def __init__(self, descriptor: int, run: str, by: str) -> None:
        """`run`: the pid of the run that hears it."""
        self.text = ""
        self._descriptor = descriptor
        self._run = run
        self.by = by
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._speaking = ThreadPoolExecutor(1, "typed-lines")
        self._said: list[tuple[str, Future[None]]] = []
        self._before = termios.tcgetattr(descriptor)
        tty.setcbreak(descriptor, termios.TCSANOW)  # each key at once and not echoed; Ctrl-C still interrupts

    @classmethod
    def open(cls) -> TypedLines | None:
        """Those of standard input, for the run of this process; None where nobody can type there."""
        try:
            descriptor = sys.stdin.fileno()
            if not os.isatty(descriptor) or os.tcgetpgrp(descriptor) != os.getpgrp():
                return None  # in the background, reading would halt the run
            return cls(descriptor, str(os.getpid()), user_name())
        except (OSError, ValueError, AttributeError, termios.error):  # no standard input, or a closed one
            return None

    def poll(self) -> list[str]:
        """Take in what was typed since; sentences about what could not be said."""
        problems = []
        while (keys := self._keys()) is not None:
            for key in self._decoder.decode(keys):
                if key in "\r\n":
                    problems += self._end_line()
                elif key in BACKSPACES:
                    self.text = self.text[:-1]
                elif key in ERASES_LINE:
                    self.text = ""
                elif key.isprintable() and len(self.text) < LONGEST:
                    self.text += key
        done = [one for one in self._said if one[1].done()]
        self._said = [one for one in self._said if not one[1].done()]
        return problems + [f"not said: {text}: {why}" for text, future in done if (why := future.exception())]

    def close(self) -> None:
        """Give the terminal back as it was."""
        self._speaking.shutdown(wait=False, cancel_futures=True)
        try:
            termios.tcsetattr(self._descriptor, termios.TCSANOW, self._before)
        except termios.error:  # the terminal has gone
            return

    def _keys(self) -> bytes | None:
        try:
            if os.tcgetpgrp(self._descriptor) != os.getpgrp():
                return None
            if not select.select([self._descriptor], [], [], 0)[0]:
                return None
            return os.read(self._descriptor, 4096) or None
        except OSError:  # the terminal has gone
            return None

    def _end_line(self) -> list[str]:
        text, self.text = self.text.strip(), ""
        if not text:
            return []
        if len(self._said) >= WAITING:
            return [f"not said: {text}: {WAITING} lines wait already"]
        self._said.append((text, self._speaking.submit(self.say, text)))
        return []

    def say(self, text: str) -> None:
        """Publish one line as said by who types (a thread of its own)."""
        run = attach(self._run)
        if "heard" not in run.info.topics:
            raise PolyrhythmError("nobody in this run listens to people")
        speaker = Speaker(run, self.by)
        try:
            speaker.say(text)
        finally:
            speaker.close()
