"""What would break the promise of virtual time is named with handler, file and line; what would not is let through."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import copy
import datetime
import functools
import importlib
import json
import logging
import os
import pickle
import queue
import random
import re
import secrets
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
import timeit
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import date
from datetime import datetime as a_datetime
from pathlib import Path
from time import perf_counter

import numpy as np
import pytest
import zmq

from runtime import Node, Simulation, every
from runtime.clock import SystemClock
from runtime.errors import EscapeError
from tests.support.sentences import pattern, sentence


class Culprit(Node):
    def __init__(self, deed: Callable[[Node], object]) -> None:
        self.deed = deed

    @every(hz=1)
    def tick(self) -> None:
        self.deed(self)


class AsyncCulprit(Node):
    def __init__(self, deed: Callable[[Node], object]) -> None:
        self.deed = deed

    @every(hz=1)
    async def tick(self) -> None:
        await asyncio.sleep(0.1)
        result = self.deed(self)
        if asyncio.iscoroutine(result):
            await result


def run(*nodes: Node) -> None:
    simulation = Simulation(*nodes)
    try:
        simulation.run(0.5)
    finally:
        simulation.close()


def local_import() -> float:
    import time as again

    return again.time()


def pool() -> None:
    with ThreadPoolExecutor(1) as executor:
        executor.submit(print)


SOCKET = socket.socket()
SELECTOR = selectors.SelectSelector()


class Others:
    """What handlers wait for here; opened and closed for the tests of this module."""

    pool: ThreadPoolExecutor
    sleeper: threading.Thread
    child: subprocess.Popen[bytes]
    sockets: tuple[socket.socket, socket.socket]


ZEROMQ = zmq.Context()
ZEROMQ_SOCKET = ZEROMQ.socket(zmq.PAIR)


@pytest.fixture(scope="module", autouse=True)
def _closed_socket() -> Iterator[None]:
    is_over = threading.Event()
    Others.pool, Others.sleeper = ThreadPoolExecutor(1), threading.Thread(target=is_over.wait)
    Others.sleeper.start()
    Others.pool.submit(int).result()  # one of its threads is idle
    Others.child, Others.sockets = subprocess.Popen(["true"]), socket.socketpair()
    yield
    is_over.set()
    Others.sleeper.join()
    Others.pool.shutdown()
    Others.child.wait()
    for end in (SOCKET, *Others.sockets):
        end.close()
    ZEROMQ_SOCKET.close(0)
    ZEROMQ.term()


Deeds = dict[str, Callable[[Node], object]]

CLOCKS: Deeds = {
    "time.time": lambda _: time.time(),
    "time.monotonic": lambda _: time.monotonic(),
    "time.monotonic_ns": lambda _: time.monotonic_ns(),
    "time.perf_counter": lambda _: perf_counter(),
    "datetime.now": lambda _: datetime.datetime.now(),  # noqa: DTZ005  # the deed
    "datetime.today": lambda _: a_datetime.today(),  # noqa: DTZ002  # the deed
    "date.today": lambda _: date.today(),  # noqa: DTZ011  # the deed
    "time.process_time": lambda _: time.process_time(),
    "time.clock_gettime": lambda _: time.clock_gettime(time.CLOCK_BOOTTIME),
    "time.localtime": lambda _: time.localtime(),
    "time.strftime": lambda _: time.strftime("%H:%M"),
    "timeit.default_timer": lambda _: timeit.default_timer(),
}
DRAWS: Deeds = {
    "random.random": lambda _: random.random(),
    "random.choice": lambda _: random.choice([1, 2]),
    "numpy.random.rand": lambda _: np.random.rand(),
    "default_rng": lambda _: np.random.default_rng(),
    "numpy.random.beta": lambda _: np.random.beta(1, 1),
    "numpy.random.bytes": lambda _: np.random.bytes(1),
    "numpy.random.sample": lambda _: np.random.sample(),
    "seed": lambda _: np.random.seed(),
    sentence("runtime.numpy_generator"): lambda _: np.random.Generator(np.random.PCG64()),
    sentence("runtime.random_state"): lambda _: np.random.RandomState(),
    "uuid.uuid4": lambda _: uuid.uuid4(),
    "os.urandom": lambda _: os.urandom(4),
    "secrets.randbits": lambda _: secrets.randbits(8),
    sentence("runtime.random_object"): lambda _: random.Random().random(),
    "random.SystemRandom": lambda _: random.SystemRandom().choice([1, 2]),
    "os.getrandom": lambda _: os.getrandom(4),
}
SOCKETS: Deeds = {
    "socket.connect": lambda _: SOCKET.connect(("127.0.0.1", 9)),
    "socket.getaddrinfo": lambda _: socket.getaddrinfo("127.0.0.1", 9),
    "socket.bind": lambda _: SOCKET.bind(("127.0.0.1", 0)),
}
ZEROMQ_CALLS: Deeds = {
    "zmq.Socket.bind": lambda _: ZEROMQ_SOCKET.bind("tcp://127.0.0.1:*"),
    "zmq.Socket.connect": lambda _: ZEROMQ_SOCKET.connect("tcp://127.0.0.1:9"),
    "zmq.Socket.recv": lambda _: ZEROMQ_SOCKET.recv(zmq.NOBLOCK),
    "zmq.Socket.send": lambda _: ZEROMQ_SOCKET.send(b"", zmq.NOBLOCK),
}
WAITS: Deeds = {
    "Event.wait": lambda _: threading.Event().wait(0.01),
    "Queue.get": lambda _: queue.Queue[int]().get(timeout=0.01),
    "Semaphore.acquire": lambda _: threading.Semaphore(0).acquire(timeout=0.01),
    "Thread.join": lambda _: Others.sleeper.join(0.01),
    "Future.result": lambda _: Future[int]().result(0.01),
    "concurrent.futures.wait": lambda _: concurrent.futures.wait([Future[int]()], 0.01),
    "select.select": lambda _: select.select([Others.sockets[0]], [], [], 0.01),
    "select.poll": lambda _: select.poll(),
    "SelectSelector.select": lambda _: SELECTOR.select(0.01),
    "Popen.poll": lambda _: Others.child.poll(),
    "Popen.wait": lambda _: Others.child.wait(0.01),
    "os.waitpid": lambda _: os.waitpid(-1, os.WNOHANG),
    "signal.sigtimedwait": lambda _: signal.sigtimedwait([signal.SIGUSR1], 0.01),
}
DEEDS: Deeds = {
    **{sentence("runtime.reads_the_wall_clock", call=call): deed for call, deed in CLOCKS.items()},
    **{sentence("runtime.drew_randomness", what=what): deed for what, deed in DRAWS.items()},
    **{sentence("runtime.opens_a_socket", call=call): deed for call, deed in SOCKETS.items()},
    **{sentence("runtime.uses_zeromq", call=call): deed for call, deed in ZEROMQ_CALLS.items()},
    **{sentence("runtime.waits_in_real_time", call=call): deed for call, deed in WAITS.items()},
    sentence("runtime.sleeps_in_real_time", call="time.sleep"): lambda _: time.sleep(1),
    sentence("runtime.starts_a_thread"): lambda _: threading.Thread(target=print).start(),
    sentence("runtime.sets_a_real_timer", call="signal.setitimer"): lambda _: signal.setitimer(signal.ITIMER_REAL, 0),
    sentence("runtime.reads_its_clock", call="os.times"): lambda _: os.times(),
    sentence("runtime.uses_a_socket", call="socket.recv"): lambda _: Others.sockets[0].recv(1),
    sentence("runtime.asks_for_its_process", call="os.getpid"): lambda _: os.getpid(),
    sentence("runtime.starts_a_process"): lambda _: subprocess.run([sys.executable, "-c", ""], check=True),
}


@pytest.mark.parametrize("kind", [Culprit, AsyncCulprit])
@pytest.mark.parametrize("what", DEEDS)
def test_an_escape_is_named_with_handler_file_and_line(what: str, kind: type[Culprit] | type[AsyncCulprit]) -> None:
    deed = DEEDS[what]
    line = deed.__code__.co_firstlineno
    with pytest.raises(
        EscapeError, match=rf"^\w+\.tick {re.escape(what)} at tests/runtime/virtual/test_sandbox.py:{line}; .*\w"
    ):
        run(kind(deed))


SYSTEM_RANDOM = random.SystemRandom()


@pytest.mark.parametrize(
    "deed",
    [
        lambda _: local_import(),
        lambda _: pool(),
        lambda _: Others.pool.submit(int),
        *(
            lambda _, draw=draw: draw(SYSTEM_RANDOM)
            for draw in (
                lambda source: source.random(),
                lambda source: source.uniform(0, 1),
                lambda source: source.randbytes(3),
                lambda source: source.shuffle([1, 2, 3]),
                lambda source: source.sample([1, 2, 3], 2),
                lambda source: source.gauss(0, 1),
            )
        ),
        lambda _: secrets.SystemRandom().randint(1, 6),
        lambda _: np.random.default_rng(None),
        lambda _: np.random.SeedSequence(),
        lambda _: np.random.MT19937(),
        lambda _: np.random.RandomState(None),
    ],
)
def test_hidden_escapes_are_found_too(deed: Callable[[Node], object]) -> None:
    with pytest.raises(EscapeError, match=r"culprit.tick .* at tests/runtime/virtual/test_sandbox.py:"):
        run(Culprit(deed))


def test_a_thread_pool_of_the_loop_is_refused_with_the_place() -> None:
    with pytest.raises(
        EscapeError, match=r"asyncculprit.tick started a thread at tests/runtime/virtual/test_sandbox.py:\d+; mark"
    ):
        run(AsyncCulprit(lambda _: asyncio.get_running_loop().run_in_executor(None, print)))


def test_a_socket_of_asyncio_outside_of_the_clock_is_refused() -> None:
    with pytest.raises(EscapeError, match=r"asyncculprit.tick .* at tests/runtime/virtual/test_sandbox.py:\d+; "):
        run(AsyncCulprit(lambda _: asyncio.open_connection("127.0.0.1", 9)))


class Swallows(Node):
    @every(hz=1)
    def tick(self) -> None:
        try:
            time.time()
        except Exception:  # noqa: BLE001  # what such a node does
            self.log.debug("never mind")


def test_an_escape_that_the_node_swallows_ends_the_run_all_the_same() -> None:
    with pytest.raises(
        EscapeError, match=rf"swallows\.tick {pattern('runtime.reads_the_wall_clock', call='time.time')}"
    ):
        run(Swallows())


class Interrupted(Node):
    @every(hz=10)
    def tick(self) -> None:
        if self.clock.now_s() > 0.5:
            signal.raise_signal(signal.SIGINT)


def test_ctrl_c_in_a_handler_is_no_escape_of_its_node() -> None:
    async def simulated() -> None:  # in a loop, which Ctrl-C wakes by a socket
        simulation = Simulation(Interrupted())
        simulation.run(seconds=0.65)
        simulation.close()
        await asyncio.sleep(0)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(simulated())


class Early(Node):
    def on_start(self) -> None:
        self.started = time.time()


def test_a_start_is_watched_too() -> None:
    with pytest.raises(
        EscapeError, match=rf"early\.on_start {pattern('runtime.reads_the_wall_clock', call='time.time')}"
    ):
        run(Early())


@pytest.mark.parametrize(
    "deed",
    [
        lambda node: node.random.random(),
        lambda node: node.clock.now_ns(),
        lambda _: random.Random(3).random(),
        lambda node: copy.deepcopy(node.random).random(),
        lambda _: np.random.default_rng(3).random(),
        lambda _: np.random.default_rng(3).spawn(2),
        lambda _: np.random.SeedSequence(3).spawn(2),
        lambda _: np.random.Generator(np.random.PCG64(3)).random(),
        lambda _: copy.deepcopy(np.random.Generator(np.random.PCG64(3))).random(),
        lambda _: np.random.RandomState(3).rand(),
        lambda _: np.random.mtrand.RandomState(3).rand(),
        lambda _: copy.deepcopy(np.random.RandomState(3)).rand(),
        lambda _: isinstance(datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), a_datetime),
        lambda _: datetime.timedelta(seconds=1) + datetime.datetime.fromtimestamp(0, datetime.UTC),
        lambda _: json.dumps({"a": 1}),
        lambda _: time.strftime("%H", time.gmtime(0)),
        lambda _: time.ctime(0.0),
        lambda _: random.SystemRandom(),
        lambda _: queue.Queue[int]().put(1, timeout=1),  # does not have to wait
        lambda _: queue.SimpleQueue[int]().put(1),
        lambda node: node.random.choice([1, 2]),
        lambda _: SystemClock().now_ns(),  # runtime's own
    ],
)
def test_what_is_repeatable_or_not_the_nodes_own_is_let_through(deed: Callable[[Node], object]) -> None:
    run(Culprit(deed))


def test_what_numpy_does_with_the_state_of_its_generators_goes_on_working() -> None:
    """Hypothesis, for one, takes and sets the state of the global one."""
    run(Culprit(lambda _: None))
    state = np.random.get_state()
    np.random.seed(3)
    first = np.random.rand()
    own = np.random.RandomState(3)
    assert own.get_state(legacy=False)["bit_generator"] == "MT19937"
    assert pickle.loads(pickle.dumps(own)).rand() == own.rand() == first
    np.random.set_state(state)


def test_another_numpy_without_the_names_that_are_not_public_runs_in_virtual_time_all_the_same(tmp_path: Path) -> None:
    program = """
import numpy as np, sys
import numpy.random
module = sys.modules["numpy.random.bit_generator"]
del module.randbits
del sys.modules["numpy.random.bit_generator"], np.random.bit_generator
del np.random.mtrand._MT19937
import tests.runtime.virtual.test_sandbox as escapes
escapes.run(escapes.Culprit(lambda _: np.random.default_rng(3).random()))
for name in ("default_rng", "rand", "RandomState"):
    try:
        escapes.run(escapes.Culprit(lambda _, name=name: getattr(np.random, name)()))
    except escapes.EscapeError as problem:
        print(str(problem).partition(" at ")[0])
"""
    (tmp_path / "program.py").write_text(program)
    code = "import runpy, sys; runpy.run_path(sys.argv[1])"  # which leaves this folder the first to import from
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "program.py")], capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == [
        f"culprit.tick {sentence('runtime.drew_randomness', what='default_rng')}",
        f"culprit.tick {sentence('runtime.drew_randomness', what='numpy.random.rand')}",
        f"culprit.tick {sentence('runtime.drew_randomness', what=sentence('runtime.random_state'))}",
    ], done.stderr


def test_a_watched_random_state_is_the_one_that_numpy_has() -> None:
    before = np.random.RandomState(3)  # of numpy's own class
    run(Culprit(lambda _: None))
    assert isinstance(before, np.random.RandomState)
    assert np.random.RandomState(3).rand() == before.rand()
    assert np.random.RandomState().rand() < 1  # outside of a run nobody minds
    state = np.random.get_state()
    drawn = np.random.rand()
    np.random.set_state(state)
    assert np.random.rand() == drawn
    assert pickle.loads(pickle.dumps(np.random.RandomState(5))).rand() == np.random.RandomState(5).rand()


class Outside(Node):
    @every(hz=1)
    async def tick(self) -> None:
        self.taken = await self.clock.external(self.measure(), 0.1)

    async def measure(self) -> float:
        """Belongs to the world, where time passes."""
        start = time.monotonic()
        await asyncio.sleep(0.001)
        return time.monotonic() - start


def test_the_world_outside_may_read_its_own_clock() -> None:
    node = Outside()
    run(node)
    assert node.taken > 0


def test_nothing_is_watched_outside_of_a_run_or_where_it_is_not_wanted() -> None:
    run(Culprit(lambda _: None))
    assert time.time() > 0
    assert random.random() < 1
    assert isinstance(a_datetime.now(datetime.UTC), a_datetime)
    simulation = Simulation(Culprit(lambda _: time.time()), watched=False)
    simulation.run(0.5)
    simulation.close()


class Sleeps(Node):
    @every(hz=1, blocking=True)
    def think(self) -> None:
        time.sleep(0.1)


def test_a_blocking_handler_that_sleeps_is_told_of_latency() -> None:
    with pytest.raises(EscapeError, match=r"sleeps.think slept in real time .*; say how long it takes with `latency`"):
        run(Sleeps())


ORIGINALS: dict[str, object] = {
    "time.time": time.time,
    "time.monotonic": time.monotonic,
    "time.sleep": time.sleep,
    "random.random": random.random,
    "random.Random.seed": random.Random.seed,
    "secrets.token_hex": secrets.token_hex,
    "uuid.uuid4": uuid.uuid4,
    "os.urandom": os.urandom,
    "os.getpid": os.getpid,
    "threading.Thread.start": threading.Thread.start,
    "threading.Condition.wait": threading.Condition.wait,
    "threading.Thread.join": threading.Thread.join,
    "subprocess.Popen.wait": subprocess.Popen.wait,
    "select.select": select.select,
    "selectors.SelectSelector.select": selectors.SelectSelector.select,
    "os.waitpid": os.waitpid,
    "signal.setitimer": signal.setitimer,
    "socket.socket.recv": socket.socket.recv,
    "timeit.default_timer": timeit.default_timer,
    "np.random.rand": np.random.rand,
    "np.random.RandomState": np.random.RandomState,
    "perf_counter": perf_counter,
    "datetime": datetime,
    "a_datetime": a_datetime,
    "zmq.Socket.recv": zmq.Socket.recv,
    "zmq.Socket.bind": zmq.Socket.bind,
}


def changed() -> list[str]:
    """What is not now what it was when this module was imported."""
    return [name for name, original in ORIGINALS.items() if eval(name) is not original]


def interrupt(_: Node) -> None:
    os.kill(os_getpid(), signal.SIGINT)


def fail(_: Node) -> None:
    raise ZeroDivisionError


os_getpid = functools.partial(os.getpid)  # kept elsewhere than under a module's name, so that it is not watched


@pytest.mark.parametrize("kind", [Culprit, AsyncCulprit])
@pytest.mark.parametrize(
    ("deed", "raised"),
    [(lambda _: None, None), (fail, ZeroDivisionError), (time.ctime, EscapeError), (interrupt, KeyboardInterrupt)],
)
def test_what_is_wrapped_is_put_back_however_the_run_ends(
    deed: Callable[[Node], object], raised: type[BaseException] | None, kind: type[Culprit] | type[AsyncCulprit]
) -> None:
    if raised is EscapeError:
        deed = CLOCKS["time.time"]
    with pytest.raises(raised) if raised is not None else contextlib.nullcontext():
        run(kind(deed))
    assert changed() == []


def test_wrapped_are_functions_while_a_handler_runs_and_not_between_handlers() -> None:
    seen: list[list[str]] = []
    simulation = Simulation(Culprit(lambda _: seen.append(changed())))

    def look() -> bool:
        seen.append(changed())
        return False

    simulation.run(0.5, until=look)
    simulation.close()
    during = max(seen, key=len)
    between = [names for names in seen if names is not during]
    assert {"time.time", "random.random", "os.getpid", "a_datetime"} <= set(during)
    assert between
    assert all(name.count(".") == 2 for names in between for name in names), "methods of classes alone"
    assert changed() == []


def test_a_stand_in_that_a_test_has_put_there_itself_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 7.0)
    stand_in = time.time
    read: list[float] = []
    run(Culprit(lambda _: read.append(time.time())))
    assert read == [7.0]
    assert time.time is stand_in


def test_a_module_that_a_handler_imports_keeps_no_wrapper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "imported_late.py").write_text("from time import time\n")
    monkeypatch.syspath_prepend(tmp_path)
    run(Culprit(lambda _: importlib.import_module("imported_late")))
    assert sys.modules.pop("imported_late").time is time.time


def test_a_watched_function_is_no_method_where_a_class_keeps_it() -> None:
    run(Culprit(lambda _: None))

    utc = type("Utc", (logging.Formatter,), {"converter": time.gmtime, "clock": time.time})()
    assert utc.formatTime(logging.makeLogRecord({"created": 0.0})).startswith("1970-01-01 00:00:00")
    assert utc.clock() > 0


def test_other_threads_are_left_alone() -> None:
    read: list[float] = []
    thread = threading.Thread(target=lambda: read.extend(time.time() for _ in range(20_000)))
    thread.start()
    run(Culprit(lambda _: None))
    thread.join()
    assert len(read) == 20_000
