"""What would escape virtual time, named with file and line: wall clock, randomness without a seed, threads, sockets.

Watched is what handlers call from code of their own; what a third-party library does inside a call is its own affair,
except that a socket is one wherever it is opened. Functions of the standard library are wrapped once per process and
pass everything through unless a handler runs in virtual time in this very thread.
"""

from __future__ import annotations

import asyncio
import datetime
import functools
import importlib
import os
import random
import secrets
import sys
import sysconfig
import threading
import time
import types
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from runtime.context import current_call
from runtime.errors import EscapeError

TIME_ADVICE = "use self.clock.now_ns()"
RANDOM_ADVICE = "use self.random"
SEED_ADVICE = "give it a seed from self.random"
_WATCHED: tuple[tuple[Any, str, str, str], ...] = (
    *(
        (time, name, "read the wall clock", TIME_ADVICE)
        for name in ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time",
                     "process_time_ns", "thread_time", "thread_time_ns", "clock_gettime", "clock_gettime_ns")
    ),
    (time, "sleep", "slept in real time", "use await self.clock.sleep(), or a timer"),
    *(
        (random, name, "drew unseeded randomness", RANDOM_ADVICE)
        for name in ("random", "randint", "randrange", "uniform", "choice", "choices", "sample", "shuffle", "gauss",
                     "normalvariate", "expovariate", "getrandbits", "randbytes", "betavariate", "triangular",
                     "lognormvariate", "gammavariate", "vonmisesvariate", "paretovariate", "weibullvariate")
    ),
    *(
        (secrets, name, "drew unseeded randomness", RANDOM_ADVICE)
        for name in ("token_hex", "token_bytes", "token_urlsafe", "randbelow", "randbits", "choice")
    ),
    *((uuid, name, "drew unseeded randomness", RANDOM_ADVICE) for name in ("uuid1", "uuid4")),
    *((os, name, "drew unseeded randomness", RANDOM_ADVICE) for name in ("urandom", "getrandom")),
)  # fmt: skip
_OF_NOW = {"localtime": 0, "gmtime": 0, "ctime": 0, "asctime": 0, "strftime": 1}
"""Of `time`: these read the clock where they are given no more arguments than that."""
_NUMPY_STATE = ("get_state", "set_state")
"""Of numpy's global generator, these draw nothing."""
_SOCKETS = ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto")
_THREADS = ("_thread.start_new_thread", "_thread.start_joinable_thread")
_PROCESSES = ("subprocess.Popen", "os.posix_spawn", "os.fork", "os.system")

_RANDOM = random.__file__
_HERE = str(Path(__file__).resolve().parents[1]) + os.sep
_MESSENGERS = (__file__, str(Path(__file__).with_name("scheduler.py")))
_LIBRARY = tuple(
    str(Path(path)) + os.sep for path in {sysconfig.get_paths()["stdlib"], sysconfig.get_paths()["platstdlib"]}
)


class DeterminismGuard:
    """Watches one simulation; `handler` is what runs now, and `is_outside` is set while the world answers."""

    def __init__(self, own_files: Iterable[str]) -> None:
        self.handler = ""
        self.is_outside = False
        self.found: EscapeError | None = None
        """The first escape, also where the node's own `except` has swallowed it."""
        self._kind = {str(Path(file)): "own" for file in own_files if file}

    def __enter__(self) -> None:
        self._before = _active.watch
        _active.watch = self

    def __exit__(self, *_: object) -> None:
        _active.watch = self._before

    @property
    def place(self) -> str:
        """The handler that runs now, or ""."""
        if self.handler:
            return self.handler
        if current_call.get() is None or asyncio._get_running_loop() is None:
            return ""
        task = asyncio.current_task()
        return task.get_name() if task is not None else ""

    def kind(self, file: str) -> str:
        """Whose code a file is: "own" (watched), "runtime", "library" (Python's) or "other" (somebody else's)."""
        found = self._kind.get(file)
        if found is None:
            found = self._kind[file] = _kind(file)
        return found

    def fail(self, frame: types.FrameType, what: str, advice: str) -> None:
        """Raise EscapeError: the handler did this, in that frame."""
        sentence = f"{self.place} {what} at {_relative(frame.f_code.co_filename)}:{frame.f_lineno}; {advice}"
        problem = EscapeError(sentence)
        self.found = self.found or problem
        raise problem

    def called(self, frame: types.FrameType | None, what: str, advice: str) -> None:
        """A watched function was called from that frame."""
        if frame is not None and not self.is_outside and self.kind(frame.f_code.co_filename) == "own" and self.place:
            self.fail(frame, what, advice)

    def event(self, event: str) -> None:
        """A thread, a socket or a process is being opened somewhere below the frame that calls this."""
        if self.is_outside or not self.place:
            return
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename in _MESSENGERS:
            frame = frame.f_back
        while frame is not None:
            kind = self.kind(frame.f_code.co_filename)
            if kind == "own":
                if event in _THREADS:
                    self.fail(frame, "started a thread", "mark it blocking=True instead")
                if event in _PROCESSES:
                    self.fail(frame, "started a process", "await it inside self.clock.external()")
                self.fail(frame, f"opened a socket ({event})", "await the call inside self.clock.external()")
            if kind == "runtime" or (kind == "other" and event not in _SOCKETS):
                return  # what a library keeps a thread or a process for is its own affair
            frame = frame.f_back


class _Active(threading.local):
    """The watch of the simulation that this thread runs now."""

    watch: DeterminismGuard | None = None


_active = _Active()
_wrapped: dict[int, Any] = {}  # id of what was wrapped -> its wrapper
_kept: list[Any] = []  # what was wrapped, so that an id never gets a second meaning
_seen_modules: set[str] = set()
_wrapped_libraries: set[str] = set()


def install(watch: DeterminismGuard) -> None:
    """Wrap what is watched, once per process, and the names under which watched modules have imported it."""
    if not _wrapped:
        for module, name, what, advice in _WATCHED:
            _wrap(module, name, f"{what} ({module.__name__}.{name})", advice)
        for name, most in _OF_NOW.items():
            _wrap(time, name, f"read the wall clock (time.{name})", TIME_ADVICE, most=most)
        for name in ("random", "getrandbits", "randbytes"):  # whatever else it draws is made of these
            _wrap_system_random(name)
        _keep(datetime.datetime, _Datetime)
        _keep(datetime.date, _Date)
        _keep(datetime, _DatetimeModule("datetime"))
        _wrap_thread_start()
        _wrap_seed()
        sys.addaudithook(_audit)
    if "numpy" in sys.modules and "numpy.random" not in _wrapped_libraries:
        _wrapped_libraries.add("numpy.random")
        _wrap_numpy(importlib.import_module("numpy.random"))
    for name, module in tuple(sys.modules.items()):
        if name not in _seen_modules:
            _seen_modules.add(name)
            if watch.kind(getattr(module, "__file__", None) or "") == "own":
                _rebind(vars(module))


def _rebind(names: dict[str, Any]) -> None:
    """`from time import time` and `import datetime` have put the originals under names of the module's own."""
    for name, value in tuple(names.items()):
        wrapper = _wrapped.get(id(value))
        if wrapper is not None:
            names[name] = wrapper


def _keep(original: Any, wrapper: Any) -> None:
    _wrapped[id(original)] = wrapper
    _kept.append(original)


class _Watched:
    """A watched function; with more arguments than `most` it is harmless.

    Like those of the standard library, and unlike our own, it is no method where a class keeps it.
    """

    is_watched = True

    def __init__(self, original: Callable[..., Any], what: str, advice: str, most: int | None) -> None:
        functools.update_wrapper(self, original, assigned=("__name__", "__qualname__", "__doc__"), updated=())
        self._original, self._what, self._advice, self._most = original, what, advice, most

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        watch = _active.watch
        if watch is not None and (self._most is None or len(args) + len(kwargs) <= self._most):
            watch.called(sys._getframe(1), self._what, self._advice)
        return self._original(*args, **kwargs)


def _wrap(module: Any, name: str, what: str, advice: str, *, most: int | None = None) -> None:
    original: Callable[..., Any] = getattr(module, name)
    watched = _Watched(original, what, advice, most)
    _keep(original, watched)
    setattr(module, name, watched)


def _wrap_system_random(name: str) -> None:
    original: Callable[..., Any] = getattr(random.SystemRandom, name)

    @functools.wraps(original)
    def draw(self: random.SystemRandom, *args: Any) -> Any:
        watch = _active.watch
        if watch is not None:
            frame: types.FrameType | None = sys._getframe(1)
            while frame is not None and frame.f_code.co_filename == _RANDOM:
                frame = frame.f_back  # its own choice() and the like
            watch.called(frame, "drew unseeded randomness (random.SystemRandom)", RANDOM_ADVICE)
        return original(self, *args)

    setattr(random.SystemRandom, name, draw)


def _wrap_thread_start() -> None:
    """Before Python 3.12 no audit event tells of a thread."""
    original = threading.Thread.start

    @functools.wraps(original)
    def start(self: threading.Thread) -> None:
        watch = _active.watch
        if watch is not None:
            watch.event(_THREADS[0])
        original(self)

    threading.Thread.start = start  # type: ignore[method-assign]


def _wrap_seed() -> None:
    """A `random.Random()` seeds itself; the class stays what it is, for others inherit from it."""
    original = random.Random.seed

    @functools.wraps(original)
    def seed(self: random.Random, a: Any = None, version: int = 2) -> None:
        watch = _active.watch
        if watch is not None and a is None:
            frame: types.FrameType | None = sys._getframe(1)
            if frame is not None and frame.f_code is random.Random.__init__.__code__:
                frame = frame.f_back
            watch.called(frame, "drew unseeded randomness (random.Random without a seed)", SEED_ADVICE)
        original(self, a, version)

    random.Random.seed = seed  # type: ignore[method-assign]


def _wrap_numpy(numpy_random: Any) -> None:
    """The functions of numpy's global generator, and the one by which every unseeded generator gets its seed."""
    state_class: Any = numpy_random.RandomState
    for name in dir(numpy_random):
        is_global = isinstance(getattr(getattr(numpy_random, name), "__self__", None), state_class)
        if (is_global and name not in _NUMPY_STATE) or name in ("ranf", "sample"):
            _wrap(numpy_random, name, f"drew unseeded randomness (numpy.random.{name})", RANDOM_ADVICE)
    for name in ("default_rng", "seed"):
        _wrap(numpy_random, name, f"drew unseeded randomness ({name})", SEED_ADVICE, most=0)

    # No name of numpy's public ones: a release that seeds itself otherwise is watched by the functions above alone.
    seeds: Any = sys.modules.get("numpy.random.bit_generator")
    draw: Callable[[int], int] | None = getattr(seeds, "randbits", None)

    def randbits(bits: int) -> int:
        _numpy_unseeded("a numpy generator without a seed")
        assert draw is not None
        return draw(bits)

    if draw is not None:
        seeds.randbits = randbits

    class RandomState(state_class, metaclass=_Seems):  # type: ignore[misc]  # known at run time only
        def __init__(self, seed: Any = None) -> None:
            if seed is None:
                _numpy_unseeded("RandomState without a seed")
            watch, _active.watch = _active.watch, None  # with a seed too, it makes an unseeded generator first
            try:
                super().__init__(seed)
            finally:
                _active.watch = watch

    _keep(state_class, RandomState)
    numpy_random.RandomState = RandomState
    if hasattr(numpy_random, "mtrand"):
        numpy_random.mtrand.RandomState = RandomState


def _numpy_unseeded(what: str) -> None:
    watch = _active.watch
    if watch is not None:
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename == __file__:
            frame = frame.f_back  # what is compiled has no frames: it is the one that asked for the generator
        watch.called(frame, f"drew unseeded randomness ({what})", SEED_ADVICE)


def _audit(event: str, _arguments: tuple[Any, ...]) -> None:
    watch = _active.watch
    if watch is not None and (event in _SOCKETS or event in _THREADS or event in _PROCESSES):
        watch.event(event)


def _read(what: str) -> None:
    watch = _active.watch
    if watch is not None:
        watch.called(sys._getframe(2), f"read the wall clock ({what})", TIME_ADVICE)


class _Seems(type):
    """A real date is an instance of its stand-in too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.__mro__[1])


class _Datetime(datetime.datetime, metaclass=_Seems):
    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Any:
        _read("datetime.now")
        return datetime.datetime.now(tz)

    @classmethod
    def utcnow(cls) -> Any:
        _read("datetime.utcnow")
        return datetime.datetime.now(datetime.UTC).replace(tzinfo=None)

    @classmethod
    def today(cls) -> Any:
        _read("datetime.today")
        return datetime.datetime.today()  # noqa: DTZ002  # what the caller asked for


class _Date(datetime.date, metaclass=_Seems):
    @classmethod
    def today(cls) -> Any:
        _read("date.today")
        return datetime.date.today()  # noqa: DTZ011  # what the caller asked for


class _DatetimeModule(types.ModuleType):
    """`datetime` for a watched module: the real one, but for the two classes that read the clock."""

    def __getattr__(self, name: str) -> Any:
        return {"datetime": _Datetime, "date": _Date}.get(name) or getattr(datetime, name)


def _kind(file: str) -> str:
    if not file or file.startswith("<"):
        return "library"
    path = os.path.abspath(file)
    if path.startswith(_HERE):
        return "runtime"
    if f"{os.sep}site-packages{os.sep}" in path or f"{os.sep}dist-packages{os.sep}" in path:
        return "other"
    return "library" if path.startswith(_LIBRARY) else "own"


def _relative(file: str) -> str:
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except ValueError:
        return file
