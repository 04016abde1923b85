"""A guard with a robot that answers, a hand on the clock, and a ledger of what may be applied; for random stories."""

from __future__ import annotations

import os
from math import cos, hypot, inf, sin
from typing import Any, Literal, get_args

import numpy as np

from nodes.guard.immediate_faults import GuardSettings
from nodes.guard.lasting_faults import LASTS_S
from nodes.guard.pressure_release import furthest
from nodes.guard.retreat import SHARE
from nodes.guard.space import Space
from nodes.guard.state_machine import GuardMachine
from nodes.msgs import Interrupt, JointCommand, RobotState, RobotStatus
from nodes.msgs.interrupt import Cause
from nodes.robot.protocol import JointLimit
from nodes.stretch.kinematics import ARM, ARM_Z_M, LIFT, WRIST_DROP_M, WRIST_OUT_M, grasp_point, to_odometry
from nodes.stretch.limits import STRETCH_3
from runtime.clock import to_ns
from runtime.message import Envelope, Stamped
from tests.support.standing import HOME, moving, standing

MS = 1_000_000
LIFESPAN_NS = to_ns(GuardSettings().lifespan_s)
STEP_S = GuardSettings().longest_step_s
EPSILON = 1e-6
SPEED_NOISE = 0.01
BRAKING_SHARE = 1.1
"""Where every part brakes as it can, one that moved against the others may stop first; the tip is faster then."""
KEEP_IN = (-1.0, 1.0, -1.2, 1.2, -0.1, 2.0)
TABLE = (0.2, 0.9, -0.9, -0.4, 0.0, 0.35)
NOISE = 0.006
"""Of a joint's range: what is measured within it is one place."""
PEOPLE = ("Ana", "console")
STEPS = int(os.environ.get("GUARD_STEPS", "3000"))
"""How many steps random stories take in all."""

Command = Stamped[JointCommand]
Shows = Literal["home", "follows", "blocked", "elsewhere", "jumps", "runs", "repeats", "future"]
"""What the robot measures: truly, the first three; or a sensor's nonsense."""
ELSEWHERE = (0.4, 0.2, 0.9, -0.2, 0.2, 0.05, 0.3, 0.1)


def command(
    source: str, seq: int, published_ns: int, position: tuple[float, ...] = HOME, v: float = 0.0, w: float = 0.0
) -> Command:
    """A command as the bus hands it over."""
    message = JointCommand(position=position, base_v_mps=v, base_w_radps=w)
    return Stamped(message, Envelope("command", source, seq, published_ns))


def interrupt(depth: str, by: str, ident: str = "i") -> Interrupt:
    """By a person, a cause, or else a machine, whose name says nothing."""
    is_person = by in PEOPLE
    cause = "person" if is_person else by if by in get_args(Cause) and by else "ladder"
    return Interrupt(
        id=ident,
        depth=depth,  # type: ignore[arg-type]  # from a strategy
        text="words",
        by=by,
        cause=cause,  # type: ignore[arg-type]  # from a strategy
        person=by if is_person else "",
    )


def wheels(out: JointCommand) -> tuple[float, float]:
    """Speeds of the left and the right wheel, m/s."""
    half = out.base_w_radps * STRETCH_3.base.track_m / 2
    return out.base_v_mps - half, out.base_v_mps + half


class GuardStory:
    """The machine under test and what is known of it from outside; `check` after every step."""

    def __init__(self, now_ns: int = 10_000_000_000, *, is_boxed: bool = False) -> None:
        self.now_ns = now_ns
        self.is_boxed = is_boxed
        self.pose = (0.0, 0.0, 0.0)  # where the base is in truth
        self.depth_m = 0.0  # how deep the robot is where it must not be
        self.sources: dict[str, int] = {}
        self.history: list[Command] = []  # accepted lately
        self.is_runstopped = False  # at the robot; the guard learns of it when it sees the robot
        self.shows: Shows = "home"
        self.posture: tuple[float, ...] = HOME  # as it was measured last
        self.armed_at: tuple[float, ...] = HOME
        self.watches = False  # whether the guard is asked what the robot does against its commands
        self.restart()

    def restart(self) -> None:
        """The guard's process was started again: it knows nothing of its life before, and must not move."""
        space = Space(STRETCH_3, KEEP_IN, {"table": TABLE})
        self.machine: Any = GuardMachine(STRETCH_3, space=space if self.is_boxed else None)
        self.newest: Command | None = None  # accepted last
        self.applied: dict[str, int] = {}
        self.fence_ns = -1
        self.must_be_stopped = ""
        self.stoppers: set[str] = set()
        self.is_armed = False
        self.is_known_runstopped = False
        self.seen_ns = self.looked_ns = self.now_ns
        self.state = standing(self.now_ns)
        self.stood: tuple[tuple[float, int], ...] = ()  # of each joint: where it was measured to stand, since when
        self.touched: tuple[list[float], ...] = ()  # in a stop for a touch: where each target was, and may come back to
        self.goes_back = False  # the last tick was one of those in which a target may move by itself
        self.out: JointCommand | None = None
        self.speeds: tuple[float, ...] = (0.0,) * 10
        self.braked_s = 0.0
        self.fastest_at_quiet: tuple[float, ...] = (0.0,) * 10

    # what happens

    def arm(self) -> None:
        was = self.machine.mode
        if self.machine.arm(self.now_ns):
            assert was == "disarmed"
            assert not self.is_known_runstopped, "armed while the robot's runstop is pressed"
            self.is_armed = True
            self.armed_at = self.posture
            self.depth_m = max(0.0, depth_of(self.posture, self.pose))
            self.fence_ns = self.now_ns
            self.out = None

    def accept_command(self, stamped: Command) -> str:
        """Hand a command to the guard and check that it had to be refused, or might be accepted."""
        refusal: str = self.machine.accept_command(stamped, self.now_ns)
        if not refusal:
            self.history = [*self.history[-8:], stamped]
            age_ns = self.now_ns - stamped.envelope.published_ns
            assert -5 * MS <= age_ns <= LIFESPAN_NS, "older than its lifespan, or from the future"
            assert stamped.envelope.published_ns > self.fence_ns, "from before the last interrupt, or an old session"
            assert not self.must_be_stopped, "accepted in a stop"
            assert self.is_armed, "accepted without arming"
            holder = self.newest
            if holder is not None and holder.envelope.source != stamped.envelope.source:
                assert self.now_ns - holder.envelope.published_ns > LIFESPAN_NS, "two sources in command"
            self.newest = stamped
        return refusal

    def interrupt(self, depth: str, by: str, heard_ns: int) -> None:
        before = self.machine.mode
        self.machine.interrupt(interrupt(depth, by), heard_ns, self.now_ns)
        after = self.machine.mode
        if depth == "stop":
            self.must_be_stopped = self.must_be_stopped or "stop"
            self.stop_heard_ns = max(getattr(self, "stop_heard_ns", 0), min(heard_ns, self.now_ns))
            self.stoppers |= {by} & {*PEOPLE}
        elif depth == "resume":
            self.stoppers -= {by}
        if before in ("stopped", "estopped") and after != before:
            assert depth == "resume", f"{depth} left {before}"
            assert self.must_be_stopped == "stop", "an emergency stop is left by re-arming only"
            assert by in PEOPLE, f"{by} lifted a stop"
            assert not self.stoppers, f"{by} lifted what others stopped"
            assert heard_ns > self.stop_heard_ns, "lifted by words from before the stop"
            assert -5 * MS <= self.now_ns - heard_ns <= 5_000 * MS, "lifted by old words, or words from the future"
            assert not self.is_known_runstopped, "lifted while the robot's runstop is pressed"
            self.must_be_stopped = ""
        if depth in ("stop", "replan") or after != before:
            self._fence()

    def estop(self) -> None:
        if hasattr(self.machine, "estop"):
            self.machine.estop("button", self.now_ns)
            self.must_be_stopped = "estop"
            self.stop_heard_ns = max(getattr(self, "stop_heard_ns", 0), self.now_ns)
            self._fence()

    def rearm(self) -> None:
        if hasattr(self.machine, "rearm") and self.machine.rearm("Ana", self.now_ns):
            assert self.must_be_stopped == "estop"
            self.must_be_stopped = "stop"
            self.stop_heard_ns = max(getattr(self, "stop_heard_ns", 0), self.now_ns)
            self._fence()

    def _fence(self) -> None:
        self.fence_ns = self.now_ns
        self.newest = None

    # what comes out

    def tick(self, dt_ms: int, *, sees: bool) -> JointCommand | None:
        """Let time pass and check what the guard lets through."""
        self.now_ns += dt_ms * MS
        if sees:
            self.state = self._measured()
            self.machine.update_state(self.state)
            self.machine.update_status(RobotStatus(read_ns=self.now_ns, mode="ready", is_runstopped=self.is_runstopped))
            self.seen_ns, self.posture = self.state.read_ns, self.state.position
            self._note_stood()
        was_pressed = self.is_known_runstopped
        self.is_known_runstopped = self.is_runstopped if sees else was_pressed
        self._feel(was_pressed=was_pressed)
        before = self.out
        out: JointCommand | None = self.machine.tick(self.now_ns)
        self.out = out
        if not self.is_armed:
            assert out is None, "moved without being armed"
            return None
        assert out is not None
        dt_s = min(dt_ms * 1e-3, STEP_S)
        start = before.position if before is not None else self.armed_at
        if dt_s:
            joints = tuple((b - a) / dt_s for a, b in zip(start, out.position, strict=True))
        else:
            assert out.position == start, "moved in no time"
            joints = self.speeds[:8]
        speeds = (*joints, *wheels(out))
        self._check_limits(out, speeds, dt_s)
        self._check_silence(out, before, speeds, dt_s)
        self._check_space(start, out, speeds, dt_s)
        self._note_applied()
        self.speeds = speeds
        return out

    def _measured(self) -> RobotState:
        """What the robot, or what is wrong with its sensors, says now."""
        out, now_ns = self.out, self.now_ns
        if self.shows in ("follows", "runs") and out is not None:
            v_mps, w_radps = (1e3, -1e3) if self.shows == "runs" else (out.base_v_mps, out.base_w_radps)
            return moving(now_ns, out.position, self.speeds[:8], v_mps, w_radps, self.pose)
        if self.shows in ("follows", "blocked", "runs"):
            return standing(now_ns, self.posture, pose=self.pose)
        if self.shows in ("elsewhere", "jumps"):
            return standing(
                now_ns, HOME if self.shows == "jumps" and self.posture != HOME else ELSEWHERE, pose=self.pose
            )
        if self.shows == "repeats":
            return self.state
        return standing(now_ns + 1_000 * MS if self.shows == "future" else now_ns, pose=self.pose)

    def _feel(self, *, was_pressed: bool) -> None:
        """What the robot shows, and who was away, stops the robot; whose robot cannot be seen lets go of it."""
        is_pressed_now = self.is_known_runstopped and not was_pressed
        is_silent = self.is_armed and not -5 * MS <= self.now_ns - self.seen_ns <= 1_000 * MS
        slept = self.is_armed and self.now_ns - self.looked_ns > 1_000 * MS
        self.looked_ns = self.now_ns
        felt = self.machine.check_monitors(self.now_ns)
        assert felt in ("", "runstop", "driver", "guard")
        if self.watches and not felt:
            felt = self.machine.check_conduct(self.now_ns)
            assert felt in ("", *LASTS_S)
        if is_pressed_now or is_silent or slept:
            assert self.machine.mode in ("stopped", "estopped"), "not stopped by what it sees"
        if felt or is_pressed_now:
            self.must_be_stopped = self.must_be_stopped or "stop"
            self.stop_heard_ns = max(getattr(self, "stop_heard_ns", 0), self.now_ns)
            self._fence()
        if slept:  # no speed is left that it could brake from
            self.speeds, self.braked_s, self.fastest_at_quiet = (0.0,) * 10, 0.0, (0.0,) * 10
        if self.is_known_runstopped or is_silent:
            self.is_armed, self.out, self.speeds, self.braked_s = False, None, (0.0,) * 10, 0.0
            self.fastest_at_quiet = (0.0,) * 10

    def _check_limits(self, out: JointCommand, speeds: tuple[float, ...], dt_s: float) -> None:
        base = STRETCH_3.base
        fastest = (*(joint.speed for joint in STRETCH_3.joints), base.wheel_speed_mps, base.wheel_speed_mps)
        for speed, most, old, change in zip(speeds, fastest, self.speeds, accelerations(), strict=True):
            assert abs(speed) <= most + EPSILON, "too fast"  # and false for NaN
            assert abs(speed - old) <= change * dt_s + EPSILON, "too sudden"
        for limit, position in zip(STRETCH_3.joints, out.position, strict=True):
            assert limit.lowest - 1e-9 <= position <= limit.highest + 1e-9, "out of range"

    def _check_space(self, start: tuple[float, ...], out: JointCommand, speeds: tuple[float, ...], dt_s: float) -> None:
        """The base goes as it is told; no part of the robot is too fast, or goes deeper to where it must not be."""
        body, base = STRETCH_3.cartesian, out.base_w_radps
        assert body is not None
        here, there = grasp_point(start), grasp_point(out.position)
        if dt_s:
            around = hypot(out.base_v_mps - base * there[1], base * there[0])
            speed = float(np.linalg.norm(there - here)) / dt_s + around
            brakes = all(abs(new) <= abs(old) + EPSILON for old, new in zip(self.speeds, speeds, strict=True))
            most_mps = body.tip_speed_mps * (BRAKING_SHARE if brakes else 1.0)
            assert speed <= most_mps + SPEED_NOISE, "the fingertips are too fast"
        if hypot(there[0], there[1]) > body.out_m + 0.02:
            assert max(map(abs, wheels(out))) <= body.base_speed_out_mps + EPSILON, "fast with the arm out"
        x, y, heading = self.pose
        ahead_m, middle = out.base_v_mps * dt_s, heading + base * dt_s / 2
        self.pose = (x + ahead_m * cos(middle), y + ahead_m * sin(middle), heading + base * dt_s)
        depth_m = depth_of(out.position, self.pose, is_boxed=self.is_boxed)
        assert depth_m <= max(self.depth_m, 0.005) + 1e-6, f"goes {depth_m:.3f} m to where it must not be"
        self.depth_m = max(0.0, depth_m)

    def _check_silence(
        self, out: JointCommand, before: JointCommand | None, speeds: tuple[float, ...], dt_s: float
    ) -> None:
        newest = self.newest
        is_quiet = newest is None or self.now_ns - newest.envelope.published_ns > LIFESPAN_NS
        if not is_quiet:
            assert newest is not None
            self.braked_s, self.fastest_at_quiet = 0.0, speeds
            self.touched, self.goes_back = (), False
            return
        assert self.machine.mode != "moving", "moving in silence"
        is_touch = self.machine.mode == "stopped" and self.machine.way_back.is_touch
        if not is_touch:
            self.touched = ()
        else:
            self._check_release(out, before)
        is_back = self.machine.mode == "retreating"
        if self.goes_back:
            self.braked_s, self.fastest_at_quiet = 0.0, self.speeds
        self.goes_back = is_touch or is_back
        if is_back:
            self._check_retreat(speeds)
            return
        self.braked_s += dt_s
        starts = self.fastest_at_quiet
        wheel = max(abs(starts[8]), abs(starts[9]))  # both wheels stop together, so that the curve is kept
        strongest = (*(abs(start) for start in starts[:8]), wheel, wheel)
        for place, (old, new, start, first, change) in enumerate(
            zip(self.speeds, speeds, starts, strongest, accelerations(), strict=True)
        ):
            if is_touch and place < 8:
                continue
            assert abs(new) <= abs(old) + EPSILON, "faster in silence"
            left = max(0.0, first - change * self.braked_s)
            assert abs(new) <= (abs(start) * left / first if first else 0.0) + EPSILON * 10, "brakes too weakly"

    def _note_stood(self) -> None:
        """Where each joint was measured to stand lately."""
        old = self.stood or ((inf, 0),) * 8
        self.stood = tuple(
            (place, since_ns) if abs(now - place) <= NOISE * reach(limit) else (now, self.now_ns)
            for (place, since_ns), now, limit in zip(old, self.state.position, STRETCH_3.joints, strict=True)
        )

    def _check_release(self, out: JointCommand, before: JointCommand | None) -> None:
        """After a touch a target goes nowhere but to where its joint was measured to stand, and not far."""
        start = (before or out).position
        if not self.touched:
            self.touched = tuple([place] for place in start)
        for places, (stood, since_ns), now, limit in zip(
            self.touched, self.stood, out.position, STRETCH_3.joints, strict=True
        ):
            if self.now_ns - since_ns >= 100 * MS and limit.name != "gripper":
                places.append(stood)
            brakes = limit.speed**2 / (2 * limit.acceleration) + limit.speed * STEP_S
            room = brakes + NOISE * reach(limit)
            assert min(places) - room <= now <= max(places) + room, f"{limit.name} goes elsewhere"
            assert abs(now - places[0]) <= furthest(limit) + room, f"{limit.name} goes too far"

    def _check_retreat(self, speeds: tuple[float, ...]) -> None:
        base = STRETCH_3.base.wheel_speed_mps
        fastest = (*(joint.speed for joint in STRETCH_3.joints), base, base)
        for old, new, most in zip(self.speeds, speeds, fastest, strict=True):
            assert abs(new) <= max(abs(old), SHARE * most) + EPSILON, "fast on the way back"

    def _note_applied(self) -> None:
        if self.machine.mode != "moving":
            self.newest = None  # let go of, so that another source may take over
            return
        newest = self.newest
        assert newest is not None
        envelope = newest.envelope
        assert self.now_ns - envelope.published_ns <= LIFESPAN_NS, "applied after its lifespan"
        assert self.machine.report().holder == envelope.source
        last = self.applied.get(envelope.source)
        if last is not None and envelope.published_ns != last:
            assert envelope.published_ns > last, "an older command applied after a newer one"
        self.applied[envelope.source] = envelope.published_ns

    def check(self) -> None:
        """What holds between any two steps."""
        if self.must_be_stopped:
            assert self.machine.mode in ("stopped", "estopped"), "left a stop"
        if self.machine.mode == "estopped":
            assert self.must_be_stopped == "estop"


def depth_of(position: tuple[float, ...], pose: tuple[float, float, float], *, is_boxed: bool = True) -> float:
    """How deep the robot is in the floor, in `TABLE` or out of `KEEP_IN`, by some points of its body; m.

    The tip itself lies between the fingers, where things may be.
    """
    tip = grasp_point(position)
    elbow = np.array([0.0, -WRIST_OUT_M - position[ARM], ARM_Z_M + position[LIFT] - WRIST_DROP_M])
    corners = [np.array([x, y, 0.1]) for x in (-0.25, 0.05) for y in (-0.14, 0.14)]
    points = to_odometry(*pose, np.array([0.8 * tip + 0.2 * elbow, (tip + elbow) / 2, elbow, *corners])).tolist()
    floor_m = float(-min(z for _, _, z in points))
    if not is_boxed:
        return floor_m
    (xl, xh, yl, yh, _, _), (a, b, c, d, e, f) = KEEP_IN, TABLE
    outside_m = max(max(xl - x, x - xh, yl - y, y - yh) for x, y, _ in points)
    inside_m = max(min(x - a, b - x, y - c, d - y, z - e, f - z) for x, y, z in points)
    return float(max(floor_m, outside_m, inside_m))


def reach(limit: JointLimit) -> float:
    """How long a joint's range is."""
    return limit.highest - limit.lowest


def accelerations() -> tuple[float, ...]:
    """What each joint and each wheel may change its speed by, per s."""
    base = STRETCH_3.base.acceleration_mps2
    return (*(joint.acceleration for joint in STRETCH_3.joints), base, base)
