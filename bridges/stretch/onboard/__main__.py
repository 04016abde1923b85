"""The process beside the driver that holds a Stretch: `python3.10 .../bridges/stretch/onboard`, started by the driver.

Reads its settings from the first line of its standard input, and ends, everything held, when that input ends. Starts a
thread for each lane, one for what blocks, and one that waits for the end of the input.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import threading
import time
import types
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

if __name__ == "__main__" and "bridges" not in sys.modules:
    # Run by its path, by a Python that has stretch_body and not us: only this package of ours is to be found.
    package = types.ModuleType("bridges")
    package.__path__ = [str(Path(__file__).resolve().parents[2])]
    sys.modules["bridges"] = package

import msgspec
import zmq

from bridges.stretch.onboard.body import BodyError, StretchHardware, calibration_file, grip_percent_of
from bridges.stretch.onboard.keeper import Keeper, Wanted, WireLane
from bridges.stretch.onboard.words import Hello, MotionOrder, Seal

LOOP_MS = 8
TELL_NS = 20_000_000
"""A reading is sent when a chain has measured, and no later than this after the last one."""
HELD_WITHIN_S = 1.5
CLOSED_WITHIN_S = 4.0


def main() -> int:
    """Hold the robot until the driver closes it or is gone; what to tell the shell."""
    settings = json.loads(sys.stdin.readline())
    with suppress(OSError):  # it should wait for no policy; a systemd unit may allow it (LimitNICE)
        os.nice(-10)
    os.register_at_fork(after_in_child=_die_with_parent)  # stretch_body forks a worker that would keep its lock
    ended = threading.Event()
    _start("end of input", lambda: _wait_for_end(ended))  # a driver may die while the library starts
    body = StretchHardware(settings["profile"], settings["avoid_collisions"], grip_percent_of(calibration_file()))
    try:
        hello = body.open()
    except BodyError as problem:
        hello = Hello(problem=str(problem))
    socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.PAIR)
    socket.setsockopt(zmq.LINGER, 500)
    socket.setsockopt(zmq.SNDHWM, 20)
    socket.bind(settings["endpoint"])
    seal: Seal[MotionOrder] = Seal(bytes.fromhex(settings["key"]), b"body", b"driver", MotionOrder)
    while not ended.is_set() and not _is_sent(socket, seal.close(hello)):
        time.sleep(0.02)
    if hello.problem:
        socket.close()
        zmq.Context.instance().term()  # it was heard by then
        return 1
    for number in (signal.SIGTERM, signal.SIGINT):  # the library has taken them over
        signal.signal(number, lambda *_: ended.set())
    try:
        _keep(body, socket, seal, ended)
    finally:
        _start("deadline", _end_anyway)
        body.close()
        socket.close()
    return 0


def _end_anyway() -> None:
    """A library that hangs on boards that left must not go on holding its lock, when nobody is there to end it."""
    time.sleep(CLOSED_WITHIN_S)
    os._exit(3)


def _keep(body: StretchHardware, socket: zmq.Socket[bytes], seal: Seal[MotionOrder], ended: threading.Event) -> None:
    now = time.monotonic_ns
    keeper = Keeper(body, lambda call: _start("call", call), now())
    for lane in keeper.lanes:
        _start(lane.name, partial(_drive, lane, keeper))
    counter, told_ns = 0, 0
    seen: dict[str, int] = {}
    while not ended.is_set() and not keeper.is_closing:
        if socket.poll(LOOP_MS):
            while (frame := _waiting(socket)) is not None:
                order = seal.open(frame)
                if order is not None:
                    keeper.hear(order, now())
        reading = keeper.told(body.read(now()), seal.refused)
        keeper.watch(now())
        if now() - told_ns >= TELL_NS or reading.read_ns != seen:
            counter += 1
            told_ns, seen = now(), reading.read_ns
            with suppress(zmq.Again):  # a driver that does not read is silent as well
                socket.send(seal.close(msgspec.structs.replace(reading, counter=counter)), zmq.NOBLOCK)
    # Its end: a robot that moves by itself is stopped by its runstop, everything else is held.
    if keeper.is_busy:
        _start("runstop", lambda: body.runstop(True))
        time.sleep(0.2)
    keeper.wanted = Wanted()
    until_ns = now() + round(HELD_WITHIN_S * 1e9)
    while not all(lane.is_held for lane in keeper.lanes) and now() < until_ns:
        time.sleep(0.005)


def _is_sent(socket: zmq.Socket[bytes], frame: bytes) -> bool:
    try:
        socket.send(frame, zmq.NOBLOCK)
    except zmq.Again:
        return False
    return True


def _waiting(socket: zmq.Socket[bytes]) -> bytes | None:
    try:
        return socket.recv(zmq.NOBLOCK)
    except zmq.Again:
        return None


def _drive(lane: WireLane, keeper: Keeper) -> None:
    while True:
        lane.turn(keeper.wanted, time.monotonic_ns)
        time.sleep(0.008)


def _wait_for_end(ended: threading.Event) -> None:
    while sys.stdin.buffer.read(1):
        pass
    ended.set()
    time.sleep(HELD_WITHIN_S + CLOSED_WITHIN_S)
    os._exit(3)  # the library was still starting, or hangs; it must not go on holding its lock


def _start(name: str, call: Callable[[], None]) -> None:
    threading.Thread(target=call, name=name, daemon=True).start()


def _die_with_parent() -> None:
    """Linux ends this process when the one that forked it ends, however that ended."""
    ctypes.CDLL(None).prctl(1, int(signal.SIGKILL))


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # threads of stretch_body that hang on a board must not hold up the end
