"""`ServerLink`: the way to the server of a Stretch 4, in its own words; and the keeper that brakes for a dead driver.

The server speaks pickle. A pickle can run code where it is read, so only sockets of this machine are read, and of what
comes only numbers, text and containers are made (`docs/decisions/stretch4-pickle.md`).

As a program it is the keeper: `python -m bridges.stretch4.link ENDPOINT CLIENT`. It hears on its standard input
that the driver lives, and answers on its standard output. Where the input ends, or nothing is heard for `SILENT_S`
while the robot is commanded, it asks for a base that stands, and tells the driver so once that is back.
"""

from __future__ import annotations

import io
import ipaddress
import os
import pickle
import select
import stat
import struct
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import RLock
from typing import Any, Protocol

import zmq

from nodes.robot.protocol import RobotError
from runtime.clock import NS_PER_S, SystemClock

FOLDER = "/tmp/stretch_zmq"
"""Where the server has its sockets."""
NAMES = {"admin": 23114, "command": 23115, "status": 23116}
"""Its sockets, and their TCP ports."""
PING_S = 1.0
START_S = 10.0
"""The keeper imports what it needs by then."""
SILENT_S = 0.15
"""A driver that says nothing for so long while it commands the robot is dead, or hangs."""
ANSWER_S = 0.5
"""A keeper that does not answer for so long is dead, or hangs."""
BRAKE_S, BRAKE_PERIOD_S = 0.4, 0.02
"""So long, and so often, the keeper asks for a base that stands."""
BRAKE = (0.0, 0.0, 0.0, 0.5, 2.8)
"""vx, vy, w, and the accelerations to get there: the most that the maker's profiles have in m/s2, as rad/s2."""
COMMANDS, RESTS, QUITS = b"c", b"r", b"q"
"""What the driver tells the keeper."""
HEARD, BRAKED = b"h", b"b"
"""What the keeper answers."""
ORDER = "order"
"""The id of a command; only those of routines are ever asked for again."""
LARGEST = 1 << 22
"""Bytes of a status; a real one has some ten thousand."""

Command = list[object]
Status = dict[str, Any]
SCALARS = {"b1": "?", "i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q", "u8": "Q",
           "f2": "e", "f4": "f", "f8": "d"}  # fmt: skip


class Unreadable(Exception):
    """A status that is not made of numbers, text and containers; the text names what it holds."""


class Stretch4Link(Protocol):
    """The way to the robot's server; tests have one without sockets."""

    client: str
    """By which the server knows us."""

    def open(self) -> None:
        """Connect. Raises RobotError where the server cannot be had, or is not to be trusted."""
        ...

    def send(self, commands: dict[str, Command], priority: int = 0) -> None:
        """One message; the server looks at the newest one only."""
        ...

    def newest(self) -> Status | None:
        """The newest status that was not handed out yet. Raises Unreadable."""
        ...

    def beat(self, *, moves: bool) -> bool:
        """Say that the driver lives, and whether it commands. Whether the robot's side has braked since the last one,
        because none came."""
        ...

    def ended(self) -> str:
        """Why the way is gone; nothing while it is there."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


class _Inert:
    """Stands for an array: it is taken in, and nothing is made of it."""

    def __new__(cls, *args: object) -> _Inert:
        return super().__new__(cls)

    def __setstate__(self, state: object) -> None:
        """Forget it."""


class _Kind(_Inert):
    """Stands for numpy's dtype: the code of a number, and its byte order."""

    code, order = "", "<"

    def __new__(cls, *args: object) -> _Kind:
        kind = object.__new__(cls)
        kind.code = args[0] if args and isinstance(args[0], str) else ""
        return kind

    def __setstate__(self, state: object) -> None:
        if isinstance(state, tuple) and len(state) > 1 and state[1] == ">":
            self.order = ">"


class _Scalar:
    """A number of numpy's as one of Python's. A class, because a pickle may write to what it is given, if it can."""

    def __new__(cls, kind: object, data: object) -> Any:
        if not isinstance(kind, _Kind) or kind.code not in SCALARS or not isinstance(data, bytes):
            raise Unreadable(
                f"a numpy scalar of type {kind.code if isinstance(kind, _Kind) else type(kind).__name__!r}"
            )
        try:
            return struct.unpack(kind.order + SCALARS[kind.code], data)[0]
        except struct.error as problem:
            raise Unreadable(f"a numpy scalar that is none: {problem}") from problem


_MADE: dict[tuple[str, str], object] = {
    ("numpy", "dtype"): _Kind,
    ("numpy", "ndarray"): _Inert,
    ("uuid", "UUID"): uuid.UUID,
    **{(f"{core}.multiarray", "scalar"): _Scalar for core in ("numpy.core", "numpy._core")},
    **{(f"{core}.multiarray", "_reconstruct"): _Inert for core in ("numpy.core", "numpy._core")},
    **{(f"{core}.numeric", "_frombuffer"): _Inert for core in ("numpy.core", "numpy._core")},
}


class _Reader(pickle.Unpickler):
    """Makes nothing but numbers, text, containers and ids; whatever else a pickle asks for is refused."""

    def find_class(self, module: str, name: str) -> Any:
        found = _MADE.get((module, name))
        if found is None:
            raise Unreadable(f"{module}.{name}"[:100])
        return found


def read_pickle(data: bytes) -> Status:
    """A status, without running anything that it asks for. Raises Unreadable, which names what it holds."""
    try:
        found = _Reader(io.BytesIO(data)).load()
    except Unreadable:
        raise
    except Exception as problem:
        raise Unreadable(f"bytes that are no pickle ({type(problem).__name__})") from problem
    if not isinstance(found, dict):
        raise Unreadable(f"a {type(found).__name__} in place of a dict")
    return found


def endpoints(address: str = "", folder: str = FOLDER) -> dict[str, str]:
    """Where the server's sockets are. Raises RobotError for another host, and for sockets of another account."""
    if address:
        host = "127.0.0.1" if address == "localhost" else address
        try:
            is_here = ipaddress.ip_address(host).is_loopback
        except ValueError:
            is_here = False
        if not is_here:
            raise RobotError(
                f"the server at {address} is not read: it speaks pickle, which runs code where it is read; expected a "
                "loopback address, or none for the sockets of this machine. Let the driver run on the robot"
            )
        return {
            name: f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}" for name, port in NAMES.items()
        }
    for name in NAMES:
        path = Path(folder, f"port_{name}")
        try:
            found = path.lstat()
        except OSError as problem:
            raise RobotError(
                f"{path} is not there ({problem.strerror}): start the robot's server (stretch_body_server --launch)"
            ) from problem
        if not stat.S_ISSOCK(found.st_mode) or found.st_uid not in (os.getuid(), 0):
            what = f"belongs to account {found.st_uid}" if stat.S_ISSOCK(found.st_mode) else "is no socket"
            raise RobotError(
                f"{path} {what}, and is not read: expected a socket of this account or of root; run the server and "
                "this driver as the same account"
            )
    return {name: f"ipc://{folder}/port_{name}" for name in NAMES}


class ServerLink:
    """The server's three sockets, and the keeper."""

    def __init__(self, address: str = "", folder: str = FOLDER) -> None:
        self._address, self._folder = address, folder
        self.client = f"polyrhythm_{os.getpid()}_{SystemClock().now_ns():x}"
        self._lock = RLock()  # the driver homes in a thread of its own
        self._context: zmq.Context[zmq.Socket[bytes]] | None = None
        self._command: zmq.Socket[bytes] | None = None
        self._status: zmq.Socket[bytes] | None = None
        self._keeper: subprocess.Popen[bytes] | None = None
        self._seq = 0
        self._unanswered_ns: int | None = None  # since when the keeper owes an answer
        self._has_braked = False  # and the driver was not told yet

    @property
    def keeper_pid(self) -> int:
        """Of the keeper; 0 before it is started."""
        return self._keeper.pid if self._keeper is not None else 0

    def open(self) -> None:
        """Connect, and start the keeper. Raises RobotError where the server cannot be had, or is not to be trusted."""
        ends = endpoints(self._address, self._folder)
        context = self._context = zmq.Context()
        try:
            _ping(context, ends["admin"])
        except RobotError:
            self.close()
            raise
        self._command = _connected(context, zmq.PUB, ends["command"], zmq.CONFLATE)
        self._status = _connected(context, zmq.SUB, ends["status"], zmq.CONFLATE)
        self._status.setsockopt(zmq.SUBSCRIBE, b"")
        self._keeper = subprocess.Popen(
            [sys.executable, "-m", "bridges.stretch4.link", ends["command"], self.client],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            start_new_session=True,  # Ctrl-C is the run's
        )  # fmt: skip
        assert self._keeper.stdin is not None
        assert self._keeper.stdout is not None
        for pipe in (self._keeper.stdin, self._keeper.stdout):
            os.set_blocking(pipe.fileno(), False)
        self.beat(moves=False)
        if not select.select([self._keeper.stdout], [], [], START_S)[0]:
            self.close()
            raise RobotError(
                f"the keeper, which brakes the base for a dead driver, does not answer within {START_S:g} s: is this "
                "machine overloaded?"
            )

    def send(self, commands: dict[str, Command], priority: int = 0) -> None:
        """One message; the server looks at the newest one only."""
        with self._lock:
            if self._command is not None:
                self._seq += 1
                with suppress(zmq.Again):
                    self._command.send(_message(self.client, commands, priority, self._seq), zmq.NOBLOCK)

    def newest(self) -> Status | None:
        """The newest status that was not handed out yet. Raises Unreadable."""
        with self._lock:
            if self._status is None:
                return None
            try:
                return read_pickle(self._status.recv(zmq.NOBLOCK))
            except zmq.Again:
                return None

    def beat(self, *, moves: bool) -> bool:
        """Say that the driver lives, and whether it commands. Whether the keeper has braked since the last one."""
        keeper = self._keeper
        if keeper is None or keeper.stdin is None:
            return False
        self._listen(keeper)
        if self._unanswered_ns is None:
            self._unanswered_ns = SystemClock().now_ns()
        with suppress(OSError):  # it ended, or hangs and its pipe is full
            os.write(keeper.stdin.fileno(), COMMANDS if moves else RESTS)
        has_braked, self._has_braked = self._has_braked, False
        return has_braked

    def _listen(self, keeper: subprocess.Popen[bytes]) -> None:
        told = b""
        if keeper.stdout is not None:
            with suppress(OSError):
                told = os.read(keeper.stdout.fileno(), 4096)
        self._has_braked |= BRAKED in told
        if told:
            self._unanswered_ns = None

    def ended(self) -> str:
        """Why nothing would brake for a dead driver; nothing while the keeper lives."""
        keeper, what = self._keeper, "the keeper, which brakes the base for a dead driver,"
        if keeper is None:
            return ""
        self._listen(keeper)  # who has not looked for a while has answers waiting
        code = keeper.poll()
        if code is not None:
            return f"{what} ended ({code})"
        if self._unanswered_ns is not None and SystemClock().since_s(self._unanswered_ns) > ANSWER_S:
            return f"{what} has not answered for {ANSWER_S:g} s"
        return ""

    def close(self) -> None:
        """Let go of the server; the keeper ends."""
        with self._lock:
            keeper, self._keeper = self._keeper, None
            if keeper is not None and keeper.stdin is not None:
                with suppress(OSError):
                    os.write(keeper.stdin.fileno(), QUITS)
                keeper.stdin.close()
                with suppress(subprocess.TimeoutExpired):
                    keeper.wait(2.0)
                if keeper.poll() is None:
                    keeper.kill()
                    keeper.wait()
                if keeper.stdout is not None:
                    keeper.stdout.close()
            sockets, self._command, self._status = (self._command, self._status), None, None
            for each in sockets:
                if each is not None:
                    each.close(linger=200)  # ms: the last order, that the base stand
            context, self._context = self._context, None
            if context is not None:
                context.term()


def _message(client: str, commands: dict[str, Command], priority: int, seq: int | None) -> bytes:
    return pickle.dumps({"client_id": client, "cmd_dict": commands, "priority": priority, "seq": seq})


def _connected(context: Any, kind: int, endpoint: str, *options: int) -> Any:
    made = context.socket(kind)
    made.setsockopt(zmq.LINGER, 0)
    made.setsockopt(zmq.MAXMSGSIZE, LARGEST)
    made.setsockopt(zmq.IPV6, int("[" in endpoint))
    made.setsockopt(zmq.IMMEDIATE, 1)  # an order for a server that ended does not wait for the next one
    for option in options:
        made.setsockopt(option, 1)
    made.connect(endpoint)
    return made


def _ping(context: Any, endpoint: str) -> None:
    asked = _connected(context, zmq.REQ, endpoint)
    try:
        asked.send(b"ping")
        if not asked.poll(round(PING_S * 1000)):
            raise RobotError(
                f"the server at {endpoint} does not answer within {PING_S:g} s: stretch_body_server --status says what "
                "it does, --launch starts it"
            )
        asked.recv()
    finally:
        asked.close(linger=0)


def brake_command() -> dict[str, Command]:
    """A base that stands."""
    return {"omnibase": ["omnibase", "set_velocity", ORDER, BRAKE, {}]}


def _beats(source: int) -> Iterator[bytes]:
    """What was heard last, again and again: nothing after `SILENT_S` without a word; ends with the driver."""
    while True:
        # Once more without waiting: what came while this process itself was not run is no silence.
        is_ready = any(select.select([source], [], [], wait_s)[0] for wait_s in (SILENT_S, 0.0))
        heard = os.read(source, 4096) if is_ready else b""
        if is_ready and not heard:
            return
        yield heard[-1:]


def keep(endpoint: str, client: str, source: int, answers: int) -> None:
    """Wait beside the driver, and brake the base once it is silent or gone while it commands."""
    context = zmq.Context()
    command = _connected(context, zmq.PUB, endpoint, zmq.CONFLATE)
    clock, last = SystemClock(), RESTS
    os.set_blocking(answers, False)

    def answer(what: bytes) -> None:
        with suppress(OSError):  # a driver that is gone, or does not read
            os.write(answers, what)

    def brake(*listens_to: int) -> None:
        """Until the driver is heard again, so that the two do not take turns."""
        answer(BRAKED)
        end_ns = clock.now_ns() + round(BRAKE_S * NS_PER_S)
        while clock.now_ns() < end_ns and not select.select(listens_to, [], [], 0.0)[0]:
            command.send(_message(client, brake_command(), 0, None))
            clock.block(BRAKE_PERIOD_S)

    for heard in _beats(source):
        if heard:
            last = heard
            answer(HEARD)
        elif last == COMMANDS:
            brake(source)
            last = RESTS
        if last == QUITS:
            break
    if last == COMMANDS:
        brake()
    context.destroy(linger=0)


if __name__ == "__main__":
    keep(sys.argv[1], sys.argv[2], sys.stdin.fileno(), sys.stdout.fileno())
