"""`Telling`: what a program says to people on standard output and error: it cannot raise, and counts what failed.

A terminal that was closed, a reader that left, a full disk and a letter that a terminal has not end nothing. `use` puts
one in place of `sys.stdout` or `sys.stderr`, so that `print`, logs and views all come by here. `apart` is the same for
programs that steer something: a thread for each file writes, so that a terminal that was halted (Ctrl-S) or a slow
reader makes nobody wait. What does not fit into its queue is left out, and counted too.
"""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, BinaryIO, Literal, TextIO, cast

if TYPE_CHECKING:
    import logging
    import threading

MOST_BYTES = 1 << 20
"""What waits for a slow terminal at most."""
LAST_WORDS_S = 1.0
"""How long the end of a program waits for such a terminal, s."""
_WAIT_S = 0.5
_FORGIVING = ("replace", "backslashreplace", "ignore", "xmlcharrefreplace", "namereplace")
_LEFT = (errno.EPIPE, errno.EIO, errno.EBADF)
"""Nobody is there to be told any more; of all else somebody wants to know."""
Stream = Literal["stdout", "stderr"]


def keep_numbers() -> None:
    """Open nothing in place of a standard stream that was closed (`>&-`): the next pipe would have its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def writable(stream: TextIO | None, number: int = 1) -> TextIO:
    """The same, with ? for letters that a terminal has not; nowhere, where it was closed (`>&-`)."""
    if stream is None:
        keep_numbers()
        return open(number, "w", closefd=False)  # whoever writes there does so by its number, after this has gone
    if isinstance(stream, io.TextIOWrapper) and stream.errors not in _FORGIVING:
        stream.reconfigure(errors="replace")
    return stream


def level_of(record: logging.LogRecord) -> str:
    """The level of a log record, in small letters; "notice" where it is for the person at the terminal."""
    return "notice" if getattr(record, "is_notice", False) else record.levelname.lower()


def text_of(record: logging.LogRecord) -> str:
    """What a log record says, also where its arguments do not fit; a line of the log fails no handler."""
    try:
        return record.getMessage()
    except Exception as problem:  # noqa: BLE001  # whatever `__str__` of a user's value raises
        kinds = ", ".join(type(one).__name__ for one in record.args or ())
        text = record.msg if isinstance(record.msg, str) else type(record.msg).__name__
        return f"{text} (its arguments cannot be shown: {kinds}: {type(problem).__name__})"


class _Writer:
    """Writes into one file, at once or by a thread, and counts the lines that it could not write."""

    def __init__(self, descriptor: int, *, apart: bool = False) -> None:
        self.descriptor = descriptor
        self.untold: Counter[int] = Counter()  # lines, by error number; 0: no room in the queue
        self._is_apart = apart
        self._fresh()

    def _fresh(self) -> None:
        """Begin anew; also in a process that was forked, which has no thread but the one that forked it."""
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._bytes = self._left_out = 0
        self._thread: threading.Thread | None = None
        if self._is_apart:
            import threading  # at a terminal an emergency stop loads as little as it can

            self._news = threading.Condition()

    def forked(self) -> None:
        """This process was forked from the one that made it."""
        self._fresh()

    def write(self, descriptor: int, data: bytes) -> None:
        """Write, or have it written soon."""
        if not self._is_apart:
            self._write(descriptor, data)
            return
        with self._news:
            if self._bytes + len(data) > MOST_BYTES:
                self._left_out += _lines(data)
                return
            self._waiting.append((descriptor, data))
            self._bytes += len(data)
            self._news.notify_all()
            if self._thread is None:
                import threading

                thread = threading.Thread(target=self._write_all, name="telling", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # from Python 3.12 on none begins once the program ends: half a line is left
                    self._bytes -= len(self._waiting.pop()[1])
                    if select.select((), (descriptor,), (), LAST_WORDS_S)[1]:
                        self._write(descriptor, data)
                    else:
                        self._left_out += _lines(data)
                else:
                    self._thread = thread

    def finish(self, within_s: float) -> None:
        """Wait until all is written, so long at most; the rest counts as not said."""
        if not self._is_apart:
            return
        with self._news:
            self._news.wait_for(lambda: not self._bytes, within_s)
            self.untold[0] += self._left_out + sum(_lines(data) for _, data in self._waiting)
            self._left_out = 0
            self._waiting.clear()
            self._bytes = 0

    def _write_all(self) -> None:
        while True:
            with self._news:
                self._news.wait_for(lambda: self._waiting)
                descriptor, data = self._waiting[0]
                left_out, self._left_out = self._left_out, 0
            if left_out:
                self.untold[0] += left_out
                data = f"... {left_out} lines were left out: nobody read them in time\n".encode() + data
            self._write(descriptor, data)
            with self._news:
                if self._waiting:  # else `finish` has given it up
                    self._bytes -= len(self._waiting.popleft()[1])
                    self._news.notify_all()

    def _write(self, descriptor: int, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(descriptor, rest) :]
            except BlockingIOError:  # somebody who shares it has made it so
                select.select((), (descriptor,), (), _WAIT_S)
            except OSError as problem:
                self.untold[problem.errno or errno.EIO] += _lines(bytes(rest))
                return


class Telling(io.RawIOBase):
    """The bytes of one stream, on their way to a writer."""

    def __init__(self, writer: _Writer, descriptor: int) -> None:
        self.writer = writer
        self._descriptor = descriptor

    def write(self, data: object) -> int:
        """Take all of it."""
        taken = bytes(memoryview(data))  # type: ignore[arg-type]  # any buffer
        self.writer.write(self._descriptor, taken)
        return len(taken)

    def writable(self) -> bool:
        """Yes."""
        return True

    def fileno(self) -> int:
        """The file behind it."""
        return self._descriptor

    def isatty(self) -> bool:
        """Whether that is a terminal."""
        try:
            return os.isatty(self._descriptor)
        except OSError:
            return False


def use(*names: Stream) -> None:
    """From now on what goes to these streams cannot fail; one without a file, as in a test, stays as it is."""
    for name in names:
        _put(name, None)


@contextmanager
def apart(*names: Stream) -> Iterator[None]:
    """Meanwhile what goes to these streams neither fails nor waits; the end waits a moment for the last lines."""
    before = [(name, getattr(sys, name)) for name in names]
    writers: dict[tuple[int, int], _Writer] = {}
    for name in names:
        _put(name, writers)
    try:
        yield
    finally:
        finish()
        for name, stream in before:
            now = _writer_of(getattr(sys, name))
            setattr(sys, name, stream)
            if now is not None and (kept := _writer_of(stream)) is not None:
                kept.untold.update(now.untold)


def use_apart() -> None:
    """The same for both streams of a program, to its end."""
    writers: dict[tuple[int, int], _Writer] = {}
    _put("stdout", writers)
    _put("stderr", writers)

    def forked() -> None:
        for writer in writers.values():
            writer.forked()

    os.register_at_fork(after_in_child=forked)


def finish() -> None:
    """Wait a moment for what is on its way: before a program ends without Python's own steps."""
    for name in ("stdout", "stderr"):
        if (writer := _writer_of(stream := getattr(sys, name))) is not None:
            stream.flush()
            writer.finish(LAST_WORDS_S)


def untold() -> Counter[int]:
    """The lines that could not be said so far, by error number; 0 where nobody read them in time."""
    found: Counter[int] = Counter()
    for writer in {id(one): one for one in map(_writer_of, (sys.stdout, sys.stderr)) if one is not None}.values():
        found += writer.untold
    return found


def untold_in_words(counted: Counter[int]) -> str:
    """ "3 lines could not be said: No space left on device"; "" where all was said."""
    if not sum(counted.values()):
        return ""
    why = ", ".join(os.strerror(number) if number else "nobody read them in time" for number in sorted(counted))
    return f"{sum(counted.values())} lines could not be said: {why}"


def is_lost_to_somebody(counted: Counter[int]) -> bool:
    """Whether lines are missing somewhere that somebody may still look at, such as a file on a full disk."""
    return any(number not in (0, *_LEFT) for number in counted)


def _put(name: Stream, writers: dict[tuple[int, int], _Writer] | None) -> None:
    stream = writable(getattr(sys, name), 1 if name == "stdout" else 2)
    setattr(sys, name, stream)
    with suppress(OSError, ValueError):
        stream.flush()
    try:
        descriptor = stream.fileno()
        status = os.fstat(descriptor)
    except (OSError, ValueError, AttributeError):
        return  # no file is behind it
    if writers is None:
        writer = _Writer(descriptor)
    else:  # one writer for two names of one file keeps the order of what they say
        place = (status.st_dev, status.st_ino)
        writer = writers.setdefault(place, _Writer(descriptor, apart=True))
    told = io.TextIOWrapper(
        cast("BinaryIO", Telling(writer, descriptor)),  # without a buffer, as `python -u` has it
        encoding=stream.encoding,
        errors=getattr(stream, "errors", None) or "replace",
        line_buffering=True,  # a line is one write, so that nothing of another program stands in its midst
    )
    setattr(sys, name, told)


def _writer_of(stream: object) -> _Writer | None:
    raw = getattr(stream, "buffer", None)
    return raw.writer if isinstance(raw, Telling) else None


def _lines(data: bytes) -> int:
    return data.count(b"\n") or 1
