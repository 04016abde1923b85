"""What is done to a guard with a watchdog beside it, and to the watchdog: neither alone may leave the robot moving."""

from __future__ import annotations

import os
import random
import signal
import socket
import time
from contextlib import suppress
from pathlib import Path

from bench.faults.black_box import FLAGS
from bench.faults.measures import (
    AT_REST,
    FALSE_HOLDS,
    MS,
    UNASKED,
    Figures,
    at_rest_ms,
    false_holds,
    ouch,
    place_m,
    unasked_mm,
)
from bench.faults.nodes import FLOOD
from bench.faults.rig import STOPPED, FaultError, Rig
from bench.faults.trials import Trial
from nodes.guard.watchdog import ECHO, FEED

PRESSED = "fault to the watchdog's runstop, ms"
WAY = "way until the motors stand, mm"
SILENT = "watchdog frozen to held, ms"
BACK = "watchdog killed to watching again, ms"
TRIPS = "runstops without need"
COST = "CPU of the watchdog, %"
WATCHED_S = 3.0

BUTTON = Path(__file__).with_name("button.py")
WATCHDOG = {
    "watchdog": f'runstop = "{{python}} -I -S {BUTTON} FOLDER {8 * FLAGS.index("button")}"\n'
    'state = "{python} -m bench.faults.motors FOLDER state"'
}


def watchdog_pid(rig: Rig) -> int:
    """The watchdog of this rig. Raises FaultError where there is none."""
    supervisor = rig.process.pid
    for pid in Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split():
        try:
            if b"watchdog.py" in Path(f"/proc/{pid}/cmdline").read_bytes():
                return int(pid)
        except OSError:
            continue  # it has just ended
    raise FaultError(f"no watchdog runs:\n{rig.tail()}")


def guard_lost(number: signal.Signals) -> Trial:
    """The process of guard and driver gets that signal at full speed: the motors' own button is pressed."""

    def trial(rig: Rig) -> Figures:
        rig.wait_moving()
        start_ns = rig.send_signal("robot", number)
        try:
            return _pressed(rig, start_ns, place_m(rig))
        finally:
            if number == signal.SIGSTOP:
                with suppress(ProcessLookupError):  # whoever is frozen for 2 s is ended
                    rig.send_signal("robot", signal.SIGCONT)
            rig.switches.clear()

    return trial


def _pressed(rig: Rig, start_ns: int, from_m: float) -> Figures:
    rig.wait("the watchdog's runstop", lambda: rig.switches["button"], 5.0)
    pressed_ms = (time.monotonic_ns() - start_ns) * MS
    at_rest_ms(rig, start_ns)
    return {PRESSED: pressed_ms, WAY: abs(place_m(rig) - from_m) * 1e3}


def creeps(rig: Rig) -> Figures:
    """A stopped robot sets off by itself, and its driver tells that it stands: only its other encoder sees it."""
    rig.wait_moving()
    try:
        rig.switches["blind"] = 1
        start_ns = rig.say("Stop!")
        rig.wait_mode(STOPPED, start_ns, "stopped")
        at_rest_ms(rig, start_ns)
        from_m, start_ns = place_m(rig), time.monotonic_ns()
        rig.switches["creep"] = 1
        return _pressed(rig, start_ns, from_m)
    finally:
        rig.switches.clear()


def goes_otherwise(rig: Rig) -> Figures:
    """The motors turn twice as fast as they are asked to, and the driver tells what was asked."""
    rig.wait_moving()
    try:
        rig.switches["blind"] = 1
        from_m, start_ns = place_m(rig), time.monotonic_ns()
        rig.switches["creep"] = 3
        return _pressed(rig, start_ns, from_m)
    finally:
        rig.switches.clear()


def garbled(rig: Rig) -> Figures:
    """Both sockets get noise by the thousand: nothing is pressed, nothing held, and a word stops as ever."""
    rig.wait_moving()
    chance, start_ns = random.Random(7), time.monotonic_ns()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as noise:
        noise.setblocking(False)
        for _ in range(2000):
            for name in (FEED, ECHO):
                try:
                    noise.sendto(chance.randbytes(chance.randrange(1, 400)), str(rig.run.folder / name))
                except OSError:
                    pass  # refused, or its room is full of noise
            time.sleep(0.0005)
    holds = false_holds(rig, start_ns)
    return {FALSE_HOLDS: holds, TRIPS: float(rig.switches["button"]), **ouch(rig)}


def watchdog_killed(rig: Rig) -> Figures:
    """SIGKILL of the watchdog: another one watches soon, which a frozen guard shows, and nothing is pressed before."""
    rig.wait_moving()
    pid, start_ns = watchdog_pid(rig), time.monotonic_ns()
    os.kill(pid, signal.SIGKILL)

    def is_back() -> bool:
        try:
            return watchdog_pid(rig) != pid
        except FaultError:
            return False

    rig.wait("another watchdog", is_back, 5.0)
    back_ms = (time.monotonic_ns() - start_ns) * MS
    time.sleep(0.5)
    trips = float(rig.switches["button"])
    return {BACK: back_ms, TRIPS: trips, **guard_lost(signal.SIGSTOP)(rig)}


def watchdog_frozen(rig: Rig) -> Figures:
    """SIGSTOP of the watchdog: the guard stops the robot, and nothing moves before a person says so."""
    rig.wait_moving()
    start_ns = time.monotonic_ns()
    os.kill(watchdog_pid(rig), signal.SIGSTOP)
    record = rig.wait_mode(STOPPED, start_ns, "stopped, for nobody watches")
    return {SILENT: (record[0] - start_ns) * MS, AT_REST: at_rest_ms(rig, start_ns), UNASKED: unasked_mm(rig)}


def left_alone(rig: Rig) -> Figures:
    """A busy machine and a flood of commands: no reason to press."""
    rig.wait_moving()
    try:
        rig.switches["mode"] = FLOOD
        time.sleep(WATCHED_S)
        return {TRIPS: float(rig.switches["button"]), **ouch(rig)}
    finally:
        rig.switches.clear()


def costs(rig: Rig) -> Figures:
    """What the watchdog of a robot that drives takes of a core."""
    rig.wait_moving()
    used = Path(f"/proc/{watchdog_pid(rig)}/schedstat")
    start, before_ns = time.monotonic(), int(used.read_text().split()[0])
    time.sleep(WATCHED_S)
    share = (int(used.read_text().split()[0]) - before_ns) * 1e-9 / (time.monotonic() - start)
    return {COST: share * 100.0, TRIPS: float(rig.switches["button"])}
