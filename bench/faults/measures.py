"""What is measured of the rig after a fault; figures by name."""

from __future__ import annotations

import itertools
import time

from bench.faults.nodes import SPEED_MPS
from bench.faults.rig import ESTOPPED, HOLDING, MOVING, STOPPED, Rig
from nodes.stretch.limits import STRETCH_3

Figures = dict[str, float]

MS = 1e-6  # of a nanosecond
LIFESPAN_MS = 150.0
PERIOD_MS = 50.0
ACCELERATION = STRETCH_3.base.acceleration_mps2

HELD = "last valid command to held, ms"
OUCH = "Ouch! to held, ms"
ESTOP = "e-stop to held, ms"
LIFTED = "lifted by a word"
AT_REST = "to at rest, ms"
DRIFT = "drift, mm"
STALE = "stale commands applied"
STANDS = "motors told to stand, ms"
GONE = "children gone, ms"
ENDED = "asked to end to braking, ms"
WHOLE = "recordings closed"
LIMITS = "outputs beyond limits"
FALSE_HOLDS = "holds without need"
NUMB = "robot's last word to held, ms"
TOUCH = "contact to held, ms"
RUNSTOP = "runstop to held, ms"
KILLED = "frozen to killed, ms"
UNASKED = "moved without a word, mm"
PILED = "MB grown in the camera's process"
LOST = "recording lost, ms"
GAPS = "events missing before that"
STRANGE = "garbled commands applied"
GROWN = "MB grown"
REFUSED = "garbled frames refused"


def ouch(rig: Rig) -> Figures:
    """Somebody is hurt; from the word to the braking profile."""
    rig.wait_moving()
    start_ns = rig.say("Ouch!")
    return {OUCH: stop_ms(rig, start_ns), AT_REST: at_rest_ms(rig, start_ns)}


def at_rest_ms(rig: Rig, start_ns: int) -> float:
    """From then until the motors stand; braking from 0.3 m/s takes them a second."""

    def rest() -> tuple[float, ...] | None:
        return next((step for step in rig.motors.since(start_ns) if step[1] == 0.0 and abs(step[2]) < 1e-6), None)

    rig.wait("at rest", rest, 5.0)
    step = rest()
    assert step is not None
    return (step[0] - start_ns) * MS


def stop_ms(rig: Rig, start_ns: int) -> float:
    """From the stamp of what is said or felt after `start_ns` to the braking profile."""

    def is_held() -> bool:
        record = rig.guard.last()
        return record is not None and record[5] >= start_ns and record[6] >= record[5]

    rig.wait("held", is_held, 5.0)
    record = rig.guard.last()
    assert record is not None
    return (record[6] - record[5]) * MS


def pressed(rig: Rig) -> Figures:
    """An emergency stop; from the press to the braking profile, and that "go on" does not lift it."""
    rig.wait_moving()
    start_ns = rig.press()
    record = rig.wait_mode(ESTOPPED, start_ns, "held after the emergency stop")
    rest_ms = at_rest_ms(rig, start_ns)
    rig.resume()
    time.sleep(0.3)
    last = rig.guard.last()
    is_lifted = last is None or last[1] != ESTOPPED
    return {ESTOP: (record[0] - start_ns) * MS, AT_REST: rest_ms, LIFTED: float(is_lifted)}


def held(rig: Rig, start_ns: int) -> Figures:
    """The policy fell silent: from its last valid command to the braking profile, and how far the robot went."""

    def hold() -> tuple[float, ...] | None:
        return next((record for record in rig.guard.since(start_ns) if record[1] == HOLDING), None)

    rig.wait("held", hold, 5.0)
    record = hold()
    assert record is not None
    held_ns, last_ns = record[0], int(record[2])

    def rest() -> tuple[float, ...] | None:
        return next((step for step in rig.motors.since(int(held_ns)) if step[2] < 1e-6), None)

    rig.wait("standing", rest, 5.0)
    end = rest()
    assert end is not None
    return {
        HELD: (held_ns - last_ns) * MS,
        AT_REST: (end[0] - last_ns) * MS,
        DRIFT: (end[3] - rig.motors.since(last_ns)[0][3]) * 1e3,
        STALE: stale(rig, start_ns),
    }


def stale(rig: Rig, start_ns: int) -> float:
    """How many times a command was older than its lifespan when the guard took it."""
    return sum(record[3] * MS > LIFESPAN_MS for record in rig.guard.since(start_ns))


def false_holds(rig: Rig, start_ns: int) -> float:
    """How often the robot was held although the policy had the machine's time to command it: a 20 Hz loop that is so
    late that a lifespan passes between two commands is held rightly.
    """
    if rig.lateness_ms(start_ns) > LIFESPAN_MS - PERIOD_MS:
        return 0.0
    modes = [record[1] for record in rig.guard.since(start_ns)]
    return sum(old == MOVING != new for old, new in itertools.pairwise(modes))


def stands(rig: Rig) -> bool:
    last = rig.motors.last()
    return last is not None and last[1] == 0.0 and last[2] == 0.0


def place_m(rig: Rig) -> float:
    """How far the robot has gone, by its motors."""
    last = rig.motors.last()
    assert last is not None
    return last[3]


def unasked_mm(rig: Rig, from_m: float | None = None) -> float:
    """How far the robot goes, from that place or where it first stands stopped for what comes back, with nobody having
    said go on."""

    def is_stopped() -> bool:
        last = rig.guard.last()
        return last is not None and last[1] == STOPPED and stands(rig)

    rig.wait("stopped for what comes back", is_stopped)
    before_m = place_m(rig) if from_m is None else from_m
    time.sleep(0.4)
    return abs(place_m(rig) - before_m) * 1e3


def brakes(rig: Rig, start_ns: int) -> Figures:
    """From the fault to the motors' first target below full speed."""

    def less() -> tuple[float, ...] | None:
        return next((step for step in rig.motors.since(start_ns) if step[1] < SPEED_MPS - 0.01), None)

    rig.wait("braking", less, 5.0)
    step = less()
    assert step is not None
    return {ENDED: (step[0] - start_ns) * MS}


def motors_stand(rig: Rig, start_ns: int) -> Figures:
    """From the fault to the motors' target of zero."""

    def zero() -> tuple[float, ...] | None:
        return next((step for step in rig.motors.since(start_ns) if step[1] == 0.0), None)

    rig.wait("motors told to stand", zero, 5.0)
    step = zero()
    assert step is not None
    return {STANDS: (step[0] - start_ns) * MS}


def accepted(rig: Rig) -> float:
    record = rig.guard.last()
    return 0.0 if record is None else record[4]


def beyond_limits(rig: Rig, start_ns: int) -> float:
    """Ticks at which a wheel was asked for more speed or change of speed than it may have, or for no number."""
    wrong, before = 0, None
    base = STRETCH_3.base
    for record in rig.guard.since(start_ns):
        if not record[12]:
            before = None  # the guard has let go of the robot: nothing is asked of it
            continue
        v, w = record[7], record[8]
        wheels = (v - w * base.track_m / 2, v + w * base.track_m / 2)
        if not all(abs(wheel) <= base.wheel_speed_mps + 1e-9 for wheel in wheels):  # false for NaN too
            wrong += 1
        if before is not None:
            allowed = base.acceleration_mps2 * min((record[0] - before[0]) * 1e-9, 0.04) + 1e-6
            wrong += any(abs(new - old) > allowed for new, old in zip(wheels, before[1:], strict=True))
        before = (record[0], *wheels)
    return wrong


def backwards(rig: Rig, start_ns: int) -> float:
    """How many times an older command was accepted after a newer one."""
    stamps = [record[2] for record in rig.guard.since(start_ns)]
    return sum(new < old for old, new in itertools.pairwise(stamps))


def speed_bound_mm(held_s: float) -> float:
    """v t + v^2 / 2a at the test's speed."""
    return (SPEED_MPS * held_s + SPEED_MPS**2 / (2 * ACCELERATION)) * 1e3
