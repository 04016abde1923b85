"""Every exception that Polyrhythm raises on purpose.

PolyrhythmError
├── UserError            asked wrongly: the command line exits with 2
│   ├── LaunchFileError  a launch file says something that cannot be
│   ├── GraphError       nodes and topics do not fit together
│   ├── ParameterError   a node was given a parameter it does not take
│   └── NoRecordingError no recording lies where one was named; a RecordingError as well
├── MissedTickError      a timer with overrun="error" missed ticks
├── NoAnswerError        the world outside did not answer in time
├── EscapeError          a handler did in virtual time what cannot be repeated
├── CodecError           bytes that are not the message they claim to be
│   └── MessageTypeError a node publishes what its topic's type does not allow
├── TransportError       an address cannot be bound or reached
└── RecordingError       a file is no recording, or a damaged one
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


class PolyrhythmError(Exception):
    """Any failure that Polyrhythm names itself; its text is one sentence for the user."""


class UserError(PolyrhythmError):
    """The user asked for something that cannot be; the text says what can."""

    def __init__(self, *words: object, code: str = "") -> None:
        super().__init__(*words)
        self.own_code = code

    @property
    def code(self) -> str:
        """The short code of its kind (`runtime.refusals`), its own or of the error that it tells on; "" without one."""
        cause = self.__cause__
        return self.own_code or (cause.code if isinstance(cause, UserError) else "")


class LaunchFileError(UserError):
    """A launch file has a key, value or name that is not understood."""


class GraphError(UserError):
    """The declared nodes and topics do not fit together."""


class ParameterError(UserError):
    """A node was given a parameter that it does not take."""


class MissingVariable(str):
    """Among a node's `problems`, an environment variable that is not set here, such as a key.

    `check` tells it and goes on, since a file is looked at elsewhere, too; `run` refuses to start.
    """

    __slots__ = ()


class MissedTickError(PolyrhythmError):
    """A timer with `overrun="error"` missed ticks; the text says how many, and how late it was."""


class NoAnswerError(PolyrhythmError, TimeoutError):
    """A call to the world outside was given up, `waited_s` after it was made."""

    def __init__(self, *words: object, waited_s: float = 0.0) -> None:
        super().__init__(*words)
        self.waited_s = waited_s


class EscapeError(PolyrhythmError):
    """A handler in virtual time read the wall clock, drew unseeded randomness, or opened a thread or a socket."""


class CodecError(PolyrhythmError):
    """Bytes on the wire are not a message of the expected type."""


class MessageTypeError(CodecError, TypeError):
    """A node publishes another message than its port declares, or one with a field of another type."""


class TransportError(PolyrhythmError):
    """An endpoint cannot be bound, reached or used."""


class RecordingError(PolyrhythmError):
    """A file is not a recording, or not a whole one."""

    @classmethod
    def unopened(cls, path: Path, problem: OSError) -> RecordingError:
        """Of what cannot be opened; of a folder, such as a run's, with the recordings that are in it."""
        if not path.is_dir():
            kind = NoRecordingError if isinstance(problem, FileNotFoundError) else cls
            return kind(f"{path}: cannot be read ({problem.strerror})")
        inside = sorted(path.glob("*.mcap")) or sorted(path.glob("*/run.mcap"))
        named = ", ".join(map(str, inside[:3])) + (f" and {len(inside) - 3} more" if inside[3:] else "")
        return NoRecordingError(f"{path}: is a folder; expected a recording, such as {named or 'its run.mcap'}")


class NoRecordingError(RecordingError, UserError):
    """No recording lies where the user named one."""


@contextmanager
def writing(where: object, remedy: str = "", error: type[PolyrhythmError] = UserError) -> Iterator[None]:
    """What somebody has named is written inside. Raises `error`: where, why it cannot be, and what to do."""
    try:
        yield
    except OSError as problem:
        to_do = f"; {remedy}" if remedy else ""
        raise error(f"{where}: cannot be written: {problem.strerror}{to_do}") from problem


@contextmanager
def naming(where: str, error: type[UserError] = UserError) -> Iterator[None]:
    """Raise a UserError of the block as `error`, with `where` in front of its sentence."""
    try:
        yield
    except UserError as problem:
        raise error(f"{where} {problem}") from problem


def os_sentence(problem: OSError) -> str:
    """What the operating system refused, with the file where it names one: a full disk is told without."""
    where = f"{problem.filename}: " if problem.filename else ""
    return f"{where}{problem.strerror or problem}"


_ROOM, _FILES = "make room and try again", "let a process open more files: ulimit -n 4096"
_REMEDIES = {
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EFBIG: "let a process write larger files: ulimit -f unlimited",
    errno.ENOMEM: "free memory and try again",
    errno.EMFILE: _FILES,
    errno.ENFILE: _FILES,
    errno.EROFS: "choose a folder that can be written",
    errno.EIO: "is the terminal still there?",
}


def fault_of_machine(problem: Exception) -> str | None:
    """A sentence with its remedy for what any program may meet on a machine, of Python or of ZeroMQ; else None."""
    number, text = getattr(problem, "errno", None), getattr(problem, "strerror", "")
    what_to_do = _REMEDIES.get(number or 0)
    if number == errno.ENOENT and "temporary directory" in str(text):
        what_to_do = "set TMPDIR to a folder that can be written"
    if what_to_do is None:
        return None
    where = f"{problem.filename}: " if isinstance(problem, OSError) and problem.filename else ""
    return f"{where}{text or problem}; {what_to_do}"


def with_remedy(fault: str) -> str:
    """What the system calls a fault, as a library of C prints it, and what to do where we know it."""
    to_do = next((remedy for number, remedy in _REMEDIES.items() if os.strerror(number) == fault), "")
    return f"{fault}; {to_do}" if to_do else fault


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The one that is most like a name, by difflib's ratio of at least `cutoff`; "" for none."""
    import difflib  # not at the top: most runs have nothing to guess

    return next(iter(difflib.get_close_matches(name, list(known), 1, cutoff)), "")


def choices(names: object) -> str:
    """Join names for the end of an error sentence: "a, b, c" or "(none)"."""
    listed = ", ".join(sorted(str(name) for name in names))  # type: ignore[attr-defined]  # any iterable
    return listed or "(none)"
