"""Finds what escapes virtual time, with file and line: the wall clock, unseeded randomness, threads, sockets.

It watches what handlers call from the user's own code. What a third-party library does inside a call is not watched;
but a socket is found wherever it is opened. Functions of the standard library are wrapped only while a handler runs,
and pass calls of other threads through. Methods of classes are wrapped while the simulation runs. Both are restored
however that ends.
"""

from __future__ import annotations

import asyncio
import datetime
import functools
import importlib
import os
import random
import secrets
import select
import selectors
import signal
import subprocess
import sys
import sysconfig
import threading
import time
import types
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from runtime.context import current_call
from runtime.errors import EscapeError

TIME_ADVICE = "use self.clock.now_ns()"
RANDOM_ADVICE = "use self.random"
SLEEP_ADVICE = "use await self.clock.sleep(), or a timer"
LATENCY_ADVICE = "say how long it takes with `latency` in the launch file: virtual time does not wait"
WAIT_ADVICE = "use a Subscription, or asyncio's own inside an async handler"
OUTSIDE_ADVICE = "await it inside self.clock.external()"
SEED_ADVICE = "give it a seed from self.random"
_WATCHED: tuple[tuple[Any, str, str, str], ...] = (
    *(
        (time, name, "read the wall clock", TIME_ADVICE)
        for name in ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time",
                     "process_time_ns", "thread_time", "thread_time_ns", "clock_gettime", "clock_gettime_ns")
    ),
    (time, "sleep", "slept in real time", SLEEP_ADVICE),
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
    *((os, name, "asked for its process", "each run has another: use self.name") for name in ("getpid", "getppid")),
    (os, "times", "read the clock of its process", TIME_ADVICE),
    *((signal, name, "set a timer of real time", "use a timer of the node") for name in ("alarm", "setitimer")),
)  # fmt: skip
_OF_NOW = {"localtime": 0, "gmtime": 0, "ctime": 0, "asctime": 0, "strftime": 1}
"""Functions of `time` that read the clock where they get no more arguments than this."""
_NUMPY_STATE = ("get_state", "set_state")
"""Functions of numpy's global generator that draw nothing."""
_SOCKETS = ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto")
_ON_SOCKETS = ("accept", "recv", "recv_into", "recvfrom", "send", "sendall")
"""Operations on a socket that was opened before; no audit event reports them."""
_USED_SOCKETS = tuple(f"socket.{name}" for name in _ON_SOCKETS)
_THREADS = ("_thread.start_new_thread", "_thread.start_joinable_thread")
_PROCESSES = ("subprocess.Popen", "os.posix_spawn", "os.fork", "os.system")
_ZEROMQ = "zmq.Socket."

_WAITS = (SLEEP_ADVICE, WAIT_ADVICE, OUTSIDE_ADVICE)
_WAITING_FUNCTIONS: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (select, ("select", "poll", "epoll", "kqueue")),
    (os, ("wait", "wait3", "wait4", "waitid", "waitpid")),
    (signal, ("pause", "sigwait", "sigwaitinfo", "sigtimedwait")),
)
"""Functions that wait for the world: for a file, a process or a signal."""
_WAITING_METHODS: tuple[tuple[type, tuple[str, ...]], ...] = (
    (subprocess.Popen, ("wait", "communicate", "poll")),
    *(
        (cls, ("select",))
        for cls in dict.fromkeys(one for one in vars(selectors).values() if isinstance(one, type))
        if issubclass(cls, selectors.BaseSelector) and "select" in vars(cls)
    ),
)
_RANDOM = random.__file__
_HERE = str(Path(__file__).resolve().parents[1]) + os.sep
_MESSENGERS = (__file__, str(Path(__file__).with_name("scheduler.py")))
_LIBRARY = tuple(
    str(Path(path)) + os.sep for path in {sysconfig.get_paths()["stdlib"], sysconfig.get_paths()["platstdlib"]}
)


class DeterminismGuard:
    """Watches one simulation; `handler` runs now, and `is_outside` is set during a call to the outside."""

    def __init__(self, own_files: Iterable[str]) -> None:
        self.handler = ""
        self.is_blocking = False
        self.is_outside = False
        self.found: EscapeError | None = None
        """The first escape, also where the node's own `except` has swallowed it."""
        self._kind = {str(Path(file)): "own" for file in own_files if file}

    def __enter__(self) -> None:
        self._before = _active.watch
        _active.watch = self
        _patches.enter(self)

    def __exit__(self, *_: object) -> None:
        _active.watch = self._before
        _patches.leave(self)

    def begin(self, handler: str, *, is_blocking: bool = False) -> None:
        """Watch a handler from now on until `end`; "" for a step of an async one, which its task identifies."""
        self.handler, self.is_blocking = handler, is_blocking
        _patches.begin()

    def end(self) -> None:
        """The handler, or the step of it, is over."""
        _patches.end()
        self.handler = ""

    def look_around(self) -> None:
        """Wrap libraries that were imported since the last call."""
        _patches.refresh(self)

    @contextmanager
    def outside(self) -> Iterator[None]:
        """A block during which the world answers, with clocks of its own."""
        self.is_outside = True
        _patches.end()
        try:
            yield
        finally:
            _patches.begin()
            self.is_outside = False

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
        """Whose code a file is: "own" (watched), "runtime", "library" (Python's) or "other" (third-party)."""
        found = self._kind.get(file)
        if found is None:
            found = self._kind[file] = _kind(file)
        return found

    def fail(self, frame: types.FrameType, what: str, advice: str) -> None:
        """Raise EscapeError: the handler did this, in this frame."""
        sentence = f"{self.place} {what} at {_relative(frame.f_code.co_filename)}:{frame.f_lineno}; {advice}"
        problem = EscapeError(sentence)
        self.found = self.found or problem
        raise problem

    def called(self, frame: types.FrameType | None, what: str, advice: str) -> None:
        """Handle a call of a watched function from this frame."""
        if frame is not None and not self.is_outside and self.kind(frame.f_code.co_filename) == "own" and self.place:
            self.fail(frame, what, LATENCY_ADVICE if self.is_blocking and advice in _WAITS else advice)

    def waits(self, frame: types.FrameType | None, what: str, advice: str = WAIT_ADVICE) -> None:
        """Handle a wait of unknown length for another thread, a process or the world, asked for in this frame."""
        if self.is_outside or not self.place:
            return
        while frame is not None and self.kind(frame.f_code.co_filename) == "library":
            module = str(frame.f_globals["__name__"]).removesuffix("._base")
            owner = type(frame.f_locals["self"]).__name__ if "self" in frame.f_locals else module
            what = f"{owner}.{frame.f_code.co_name}"
            frame = frame.f_back
        self.called(frame, f"waited in real time ({what})", advice)

    def event(self, event: str) -> None:
        """Handle the start of a thread, a socket or a process below the calling frame."""
        if self.is_outside or not self.place:
            return
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename in _MESSENGERS:
            frame = frame.f_back
        while frame is not None:
            kind = self.kind(frame.f_code.co_filename)
            if kind == "library" and frame.f_code.co_name == "_on_sigint":
                return  # Ctrl-C came just now, and asyncio wakes its loop
            if kind == "own":
                if event in _THREADS:
                    self.fail(frame, "started a thread", "mark it blocking=True instead")
                if event in _PROCESSES:
                    self.fail(frame, "started a process", OUTSIDE_ADVICE)
                if event.startswith(_ZEROMQ):
                    self.fail(frame, f"used a ZeroMQ socket ({event})", "use a Publisher or a Subscription")
                verb = "used" if event in _USED_SOCKETS else "opened"
                self.fail(frame, f"{verb} a socket ({event})", "await the call inside self.clock.external()")
            is_socket = event in _SOCKETS or event in _USED_SOCKETS
            if kind == "runtime" or (kind == "other" and not is_socket and not event.startswith(_ZEROMQ)):
                return  # what a library keeps a thread or a process for is its own affair
            frame = frame.f_back


class _Active(threading.local):
    """The watch of the simulation that this thread runs now."""

    watch: DeterminismGuard | None = None


_active = _Active()

Names = dict[str, Any]
_Look = Callable[..., None]
"""Is given the watch, the frame of the caller and what the caller gives; raises EscapeError."""


class _Patches:
    """What is wrapped: functions while a handler runs, methods of classes while a simulation does.

    Everything is put back, also a stand-in that a test has put there itself: only what is the original is wrapped.
    """

    def __init__(self) -> None:
        self._wrapped: dict[int, tuple[Any, Any]] = {}  # id of the original -> the original and its wrapper
        self._functions: list[tuple[Names, Names, Names]] = []  # a namespace, its wrappers, its originals
        self._methods: list[tuple[type, str, Any, bool]] = []  # class, name, wrapper, whether the class has it itself
        self._set: list[tuple[Names, Names, Names]] = []  # the functions that are wrapped while a handler runs
        self._in_place: list[tuple[Names, str, Any]] = []  # all originals, where `_set` has every one of them
        self._merged = 0  # how many of `_functions` are in that list
        self._before: list[tuple[type, str, Any, bool]] = []  # the methods that are wrapped now
        self._seen: set[str] = set()
        self._runs = self._handlers = 0
        self._lock = threading.RLock()  # two threads may each run a simulation

    def enter(self, watch: DeterminismGuard) -> None:
        """A simulation begins to run."""
        with self._lock:
            self._runs += 1
            self.refresh(watch)
            if self._runs == 1:
                for cls, name, wrapper, is_own in self._methods:
                    self._before.append((cls, name, getattr(cls, name), is_own))
                    setattr(cls, name, wrapper)

    def leave(self, watch: DeterminismGuard) -> None:
        """It stops: all is as it was before."""
        with self._lock:
            self._runs -= 1
            if self._runs == 0:
                try:
                    self._put_back(watch)
                except KeyboardInterrupt:
                    self._put_back(watch)
                    raise

    def begin(self) -> None:
        """A handler begins."""
        with self._lock:
            self._handlers += 1
            if self._handlers == 1:
                for names, wrappers, _ in self._set:
                    names.update(wrappers)

    def end(self) -> None:
        """A handler ends."""
        with self._lock:
            self._handlers -= 1
            if self._handlers == 0:
                for names, _, originals in self._set:
                    names.update(originals)

    def refresh(self, watch: DeterminismGuard) -> None:
        """See what is there to be wrapped, in what has been imported since, too."""
        if self._handlers:
            return
        if not self._wrapped:
            _make_wrappers(self)
            sys.addaudithook(_audit)
        for library, make in _LIBRARIES.items():
            if library in sys.modules and library not in self._seen:
                self._seen.add(library)
                make(self)
        self._see_new_modules(watch)
        if self._merged == len(self._functions) > 0 and self._is_in_place():
            return  # as it was: this is done at each turn of thousands of episodes
        merged: dict[int, tuple[Names, Names, Names]] = {}  # one update per namespace: this is done at each handler
        for names, wrappers, originals in self._functions:
            mine = {name: wrapper for name, wrapper in wrappers.items() if names.get(name) is originals[name]}
            if mine:
                _, all_wrappers, all_originals = merged.setdefault(id(names), (names, {}, {}))
                all_wrappers.update(mine)
                all_originals.update({name: originals[name] for name in mine})
        self._set = list(merged.values())
        self._in_place = [
            (names, name, one) for names, _, originals in self._functions for name, one in originals.items()
        ]
        self._merged = len(self._functions) if self._is_in_place() else 0

    def _is_in_place(self) -> bool:
        """Whether nobody has put a stand-in where an original was."""
        return all(names.get(name) is original for names, name, original in self._in_place)

    def function(self, module: types.ModuleType, name: str, wrapper: Any) -> None:
        """Wrap a function of a module; own modules that have imported it by its name see the wrapper, too."""
        self.known(getattr(module, name), wrapper)
        self.names(vars(module), name, wrapper)

    def names(self, names: Names, name: str, wrapper: Any) -> None:
        """Wrap what a module has under that name, and nothing else."""
        self._functions.append((names, {name: wrapper}, {name: names[name]}))

    def known(self, original: Any, wrapper: Any) -> None:
        """Wrap it only where an own module has imported it."""
        self._wrapped[id(original)] = (original, wrapper)

    def method(self, cls: type, name: str, look: _Look) -> None:
        """Look at each call of a method while a simulation runs: to change a class for each handler costs too much."""
        self._methods.append((cls, name, _looking(getattr(cls, name), look), name in vars(cls)))

    def _see_new_modules(self, watch: DeterminismGuard) -> None:
        """`from time import time` and `import datetime` have put the originals under names of the module's own."""
        if sys.modules.keys() <= self._seen:  # not by their number: modules may be gone again
            return
        originals_of = {id(wrapper): original for original, wrapper in self._wrapped.values()}
        for module_name, module in tuple(sys.modules.items()):
            if module_name in self._seen or module is None:
                continue
            self._seen.add(module_name)
            if module_name == __name__:
                continue
            names = vars(module)
            for name, value in tuple(names.items()):
                if id(value) in originals_of:  # imported while a handler ran
                    names[name] = originals_of[id(value)]
            if watch.kind(getattr(module, "__file__", None) or "") == "own":
                wrappers = {
                    name: self._wrapped[id(value)][1]
                    for name, value in tuple(names.items())
                    if id(value) in self._wrapped
                }
                if wrappers:
                    self._functions.append((names, wrappers, {name: names[name] for name in wrappers}))

    def _put_back(self, watch: DeterminismGuard) -> None:
        if self._handlers:  # an exception came between a handler's begin and its end
            self._handlers = 1
            self.end()
        while self._before:
            cls, name, original, is_own = self._before[-1]
            if is_own:
                setattr(cls, name, original)
            elif name in vars(cls):
                delattr(cls, name)
            self._before.pop()
        self._see_new_modules(watch)


_patches = _Patches()


def _make_wrappers(patches: _Patches) -> None:
    for module, name, what, advice in _WATCHED:
        patches.function(module, name, _Watched(getattr(module, name), f"{what} ({module.__name__}.{name})", advice))
    for name, most in _OF_NOW.items():
        patches.function(
            time, name, _Watched(getattr(time, name), f"read the wall clock (time.{name})", TIME_ADVICE, most)
        )
    _wrap_system_random(patches)
    patches.known(datetime.datetime, _Datetime)
    patches.known(datetime.date, _Date)
    patches.known(datetime, _DatetimeModule("datetime"))
    if sys.version_info < (3, 12):  # before it no audit event tells of a thread
        patches.method(threading.Thread, "start", _starts_thread)
    patches.method(random.Random, "seed", _seeds)
    # `Event.wait`, `Queue.get` and the like wait in here, where they have to wait at all
    patches.method(threading.Condition, "wait", lambda watch, frame, *_, **__: watch.waits(frame, "Condition.wait"))
    patches.method(threading.Thread, "join", _joins)
    _wrap_outside(patches)


class _Watched:
    """A watched function; with more arguments than `most` it is harmless.

    Like those of the standard library, and unlike our own, it is no method where a class keeps it.
    """

    is_watched = True

    def __init__(self, original: Callable[..., Any], what: str, advice: str, most: int | None = None) -> None:
        functools.update_wrapper(self, original, assigned=("__name__", "__qualname__", "__doc__"), updated=())
        self._original, self._what, self._advice, self._most = original, what, advice, most

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        watch = _active.watch
        if watch is not None and (self._most is None or len(args) + len(kwargs) <= self._most):
            watch.called(sys._getframe(1), self._what, self._advice)
        return self._original(*args, **kwargs)


def _wrap_system_random(patches: _Patches) -> None:
    """Whatever a SystemRandom draws is made of this one function, under the name by which `random` has it."""
    draw: Callable[[int], bytes] = vars(random)["_urandom"]

    def urandom(size: int) -> bytes:
        watch = _active.watch
        if watch is not None:
            frame: types.FrameType | None = sys._getframe(1)
            while frame is not None and frame.f_code.co_filename == _RANDOM:
                frame = frame.f_back  # its own choice() and the like
            watch.called(frame, "drew unseeded randomness (random.SystemRandom)", RANDOM_ADVICE)
        return draw(size)

    patches.function(random, "_urandom", urandom)


def _looking(original: Callable[..., Any], look: _Look) -> Callable[..., Any]:
    """The same function, at whose calls a watch looks before."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        watch = _active.watch
        if watch is not None:
            look(watch, sys._getframe(1), *args, **kwargs)
        return original(*args, **kwargs)

    return call


def _starts_thread(watch: DeterminismGuard, *_: Any, **__: Any) -> None:
    watch.event(_THREADS[0])


def _seeds(
    watch: DeterminismGuard, frame: types.FrameType | None, of: random.Random, a: Any = None, version: int = 2
) -> None:
    """A `random.Random()` seeds itself; the class stays what it is, for others inherit from it."""
    if a is None:
        if frame is not None and frame.f_code is random.Random.__init__.__code__:
            frame = frame.f_back
        watch.called(frame, "drew unseeded randomness (random.Random without a seed)", SEED_ADVICE)


def _joins(
    watch: DeterminismGuard, frame: types.FrameType | None, thread: threading.Thread, timeout: float | None = None
) -> None:
    """A thread that has ended is not waited for."""
    if thread.is_alive():
        watch.waits(frame, "Thread.join")


def _wrap_outside(patches: _Patches) -> None:
    """Waits for files, processes and signals, whichever function of Python's library waits in here."""
    for module, names in _WAITING_FUNCTIONS:
        for name in names:
            if hasattr(module, name):  # not on every machine
                look = _waits(f"{module.__name__}.{name}")
                patches.function(module, name, _looking(getattr(module, name), look))
    for cls, names in _WAITING_METHODS:
        for name in names:
            patches.method(cls, name, _waits(f"{cls.__name__}.{name}"))


def _waits(what: str) -> _Look:
    return lambda watch, frame, *_, **__: watch.waits(frame, what, OUTSIDE_ADVICE)


def _wrap_pool(patches: _Patches) -> None:
    """Where a thread of the pool is idle, none is started, and no event tells of it."""
    patches.method(sys.modules["concurrent.futures.thread"].ThreadPoolExecutor, "submit", _starts_thread)


def _wrap_socket(patches: _Patches) -> None:
    _wrap_methods(patches, sys.modules["socket"].socket, "socket.", _ON_SOCKETS)


def _wrap_zeromq(patches: _Patches) -> None:
    """Its sockets are opened far from Python, so that no audit event tells of them."""
    _wrap_methods(patches, sys.modules["zmq"].Socket, _ZEROMQ, ("bind", "connect", "send", "recv", "poll"))


def _wrap_methods(patches: _Patches, cls: Any, owner: str, names: Iterable[str]) -> None:
    """Let each call of these methods be an event."""
    for name in names:
        patches.method(cls, name, lambda watch, *_, event=owner + name, **__: watch.event(event))


def _wrap_timeit(patches: _Patches) -> None:
    """It has `time.perf_counter` under a name of its own."""
    names = vars(sys.modules["timeit"])
    wrapper = _Watched(names["default_timer"], "read the wall clock (timeit.default_timer)", TIME_ADVICE)
    patches.names(names, "default_timer", wrapper)


def _wrap_numpy(patches: _Patches) -> None:
    """The functions of numpy's global generator, and the one by which every unseeded generator gets its seed."""
    numpy_random: Any = importlib.import_module("numpy.random")
    state_class: Any = numpy_random.RandomState
    for name in dir(numpy_random):
        original = getattr(numpy_random, name)
        is_global = isinstance(getattr(original, "__self__", None), state_class)
        if (is_global and name not in _NUMPY_STATE) or name in ("ranf", "sample"):
            what = f"drew unseeded randomness (numpy.random.{name})"
            patches.function(numpy_random, name, _Watched(original, what, RANDOM_ADVICE))
    for name in ("default_rng", "seed"):
        original = getattr(numpy_random, name)
        patches.function(numpy_random, name, _Watched(original, f"drew unseeded randomness ({name})", SEED_ADVICE, 0))

    # No name of numpy's public ones: a release that seeds itself otherwise is watched by the functions above alone.
    seeds: Any = sys.modules.get("numpy.random.bit_generator")
    draw: Callable[[int], int] | None = getattr(seeds, "randbits", None)

    def randbits(bits: int) -> int:
        _numpy_unseeded("a numpy generator without a seed")
        assert draw is not None
        return draw(bits)

    if draw is not None:
        patches.function(seeds, "randbits", randbits)

    class RandomState(state_class, metaclass=_Seems):  # type: ignore[misc]  # known at run time only
        def __init__(self, seed: Any = None) -> None:
            if seed is None:
                _numpy_unseeded("RandomState without a seed")
            watch, _active.watch = _active.watch, None  # with a seed too, it makes an unseeded generator first
            try:
                super().__init__(seed)
            finally:
                _active.watch = watch

    for module in (numpy_random, getattr(numpy_random, "mtrand", None)):
        if module is not None:
            patches.function(module, "RandomState", RandomState)


_LIBRARIES: dict[str, Callable[[_Patches], None]] = {
    "concurrent.futures.thread": _wrap_pool,
    "numpy": _wrap_numpy,
    "zmq": _wrap_zeromq,
    "socket": _wrap_socket,
    "timeit": _wrap_timeit,
}
"""Libraries that are watched where somebody has imported them."""


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
