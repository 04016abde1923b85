"""What the base does against what is asked of it and against its own second source; what it does while stopped; a touch
that stays on the way back; targets beyond a joint's range.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import msgspec
import pytest

from nodes.guard.base_watch import ASIDE_M, ASIDE_RAD, BaseWatch
from nodes.guard.lasting_faults import CommandedMotion
from nodes.guard.motion_profile import Motion
from nodes.guard.node import Guard
from nodes.guard.state_machine import GuardMachine
from nodes.msgs import Interrupt, JointCommand, RobotState
from nodes.robot.driver import Driver
from nodes.stretch.limits import STOW, STRETCH_3
from runtime import Node, Publisher, Simulation, every
from runtime.clock import to_ns
from runtime.message import Envelope, Stamped
from tests.support.guard.guard_driven import MS
from tests.support.sentences import sentence
from tests.support.standing import moving

ZEROS = (0.0,) * len(STOW)
Shown = Callable[[RobotState], RobotState]


class Base:
    """A base that does what it is commanded, or moves as a test wants, and is measured as a test wants."""

    def __init__(self) -> None:
        self.machine = GuardMachine(STRETCH_3)
        self.now_ns, self.seq = 10_000 * MS, 0
        self.x_m = self.y_m = self.heading_rad = self.v_mps = self.w_radps = 0.0
        self.moves: tuple[float, float] | None = None
        self.shows: Shown = lambda state: state
        self.effort, self.contact = list(ZEROS), tuple[str, ...]()
        self.faults: list[str] = []
        self.pressed_s: float | None = None
        self.step()
        assert self.machine.arm(self.now_ns)

    def step(self, v_mps: float | None = None, w_radps: float = 0.0) -> None:
        self.now_ns += 20 * MS
        v, w = (self.v_mps, self.w_radps) if self.moves is None else self.moves
        self.x_m += v * math.cos(self.heading_rad) * 0.02
        self.y_m += v * math.sin(self.heading_rad) * 0.02
        self.heading_rad += w * 0.02
        state = RobotState(
            read_ns=self.now_ns, position=STOW, velocity=ZEROS, effort=tuple(self.effort), base_x_m=self.x_m,
            base_y_m=self.y_m, base_heading_rad=self.heading_rad, base_v_mps=v, base_w_radps=w, contact=self.contact,
        )  # fmt: skip
        self.machine.update_state(self.shows(state))
        if fault := self.machine.check_monitors(self.now_ns) or self.machine.check_conduct(self.now_ns):
            self.faults.append(fault)
        if v_mps is not None:
            self.ask(JointCommand(position=STOW, base_v_mps=v_mps, base_w_radps=w_radps))
        out = self.machine.tick(self.now_ns)
        if out is not None:
            self.v_mps, self.w_radps = out.base_v_mps, out.base_w_radps

    def ask(self, wanted: JointCommand) -> str:
        self.seq += 1
        envelope = Envelope(topic="command", source="policy", seq=self.seq, published_ns=self.now_ns)
        return self.machine.accept_command(Stamped(wanted, envelope), self.now_ns)

    @property
    def mode(self) -> str:
        return self.machine.mode

    def run(self, seconds: float, v_mps: float | None = None, w_radps: float = 0.0) -> None:
        for _ in range(round(seconds * 50)):
            self.step(v_mps, w_radps)

    def say(self, depth: str, **more: bool) -> None:
        said = Interrupt(id=depth, depth=depth, text=depth, by="Ana", cause="person", person="Ana", **more)  # type: ignore[arg-type]
        self.machine.interrupt(said, self.now_ns, self.now_ns)

    def stand(self) -> None:
        self.run(1.0, 0.3)
        self.say("stop")
        self.run(2.0)
        assert self.machine.mode == "stopped"
        assert not self.machine.needs_runstop(self.now_ns)


@pytest.mark.parametrize(
    ("v_mps", "w_radps"), [(0.02, 0.0), (0.05, 0.0), (0.099, 0.0), (-0.09, 0.0), (0.2, 0.0), (0.0, 0.05), (0.0, -0.29)]
)
def test_a_stopped_base_that_moves_by_itself_presses_the_runstop_within_3_cm_or_3_degrees(
    v_mps: float, w_radps: float
) -> None:
    base = Base()
    base.stand()
    x_m, heading_rad = base.x_m, base.heading_rad
    base.moves = v_mps, w_radps
    while not base.machine.needs_runstop(base.now_ns):
        base.step()
    assert abs(base.x_m - x_m) <= ASIDE_M + abs(v_mps) * 0.05
    assert abs(base.heading_rad - heading_rad) <= ASIDE_RAD + abs(w_radps) * 0.05
    assert base.machine.conduct.runstop_reason in (
        sentence("guard.base_moves_in_a_stop"),
        sentence("guard.moves_beyond_long"),
    )


def test_a_base_that_never_comes_to_rest_and_one_whose_odometry_is_dead_press_it_too() -> None:
    base = Base()
    base.run(1.0, 0.3)
    base.say("stop")
    base.moves = 0.05, 0.0
    base.run(3.5)
    assert base.machine.needs_runstop(base.now_ns)
    base = Base()
    base.stand()
    base.moves, x_m = (0.05, 0.0), base.x_m
    base.shows = lambda state: msgspec.structs.replace(state, base_x_m=x_m)  # type: ignore[type-var]  # a Struct
    base.run(1.0)
    assert base.machine.needs_runstop(base.now_ns)


@pytest.mark.parametrize("place_m", [(0.0, 0.0), (2.0, -3.0), (-2.0, 3.0)])
def test_a_base_that_stands_still_in_a_stop_is_left_alone_wherever_it_is(place_m: tuple[float, float]) -> None:
    base = Base()
    base.x_m, base.y_m = place_m
    base.stand()
    base.shows = lambda state: msgspec.structs.replace(  # type: ignore[type-var]  # a Struct
        state, base_x_m=state.base_x_m + 0.002 * math.sin(base.seq), base_v_mps=0.004
    )
    base.run(60.0)
    assert not base.machine.needs_runstop(base.now_ns)


@pytest.mark.parametrize(
    ("asked", "moves", "fault"),
    [
        ((0.3, 0.0), (-0.3, 0.0), "motion"),
        ((-0.2, 0.0), (0.1, 0.0), "motion"),
        ((0.0, 1.0), (0.0, -1.0), "motion"),
        ((0.0, 0.0), (0.09, 0.0), "motion"),
        ((0.0, 0.0), (0.0, -0.2), "motion"),
        ((0.3, 0.0), (0.0, 0.0), "following"),
        ((0.08, 0.0), (0.0, 0.0), "following"),
        ((0.03, 0.0), (0.0, 0.0), "following"),
        ((0.0, 1.0), (0.0, 0.0), "following"),
        ((0.0, 0.3), (0.0, 0.0), "following"),
    ],
)
def test_a_base_that_does_not_do_what_is_asked_stops_before_it_is_20_cm_or_half_a_radian_off(
    asked: tuple[float, float], moves: tuple[float, float], fault: str
) -> None:
    base = Base()
    base.run(1.0, *asked)
    base.moves = moves
    off_m = off_rad = 0.0
    while not base.faults:
        off_m += abs(asked[0] - moves[0]) * 0.02
        off_rad += abs(asked[1] - moves[1]) * 0.02
        base.step(*asked)
        assert off_m < 0.21
        assert off_rad < 0.75
    assert (base.mode, base.faults) == ("stopped", [fault])


FALSE = pytest.mark.parametrize(
    "shown",
    [
        lambda state, there: {"base_v_mps": 0.0},
        lambda state, there: {"base_x_m": there},
        lambda state, there: {"base_x_m": 2 * there - state.base_x_m},
        lambda state, there: {"base_x_m": there, "base_v_mps": 0.0},
    ],
    ids=["no speed", "no odometry", "odometry backwards", "neither"],
)


@FALSE
def test_a_base_of_which_one_source_is_dead_or_both_begins_to_brake_within_20_cm(
    shown: Callable[[RobotState, float], dict[str, float]],
) -> None:
    base = Base()
    base.run(1.0, 0.3)
    x_m = base.x_m
    base.shows = lambda state: msgspec.structs.replace(state, **shown(state, x_m))  # type: ignore[type-var]  # a Struct
    while not base.faults:
        base.step(0.3)
        assert base.x_m - x_m < 0.2
    assert base.faults[0] in ("unknown", "following")


class Ahead(Node):
    """A policy that drives ahead."""

    seat = "policy"
    command = Publisher(JointCommand, "command")

    @every(hz=20)
    def tick(self) -> None:
        self.command.publish(JointCommand(position=STOW, base_v_mps=0.3))


@FALSE
def test_under_a_guard_it_stands_within_35_cm(
    shown: Callable[[RobotState, float], dict[str, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Driver(robot="nodes.sim.kinematic:KinematicRobot")
    sim = Simulation(driver, Guard(arm="auto", memory="run"), Ahead())
    sim.run(seconds=2.5)
    robot = driver.robot
    assert robot is not None
    read = robot.read
    x_m = read(sim.clock.now_ns()).base_x_m

    def shows(now_ns: int) -> RobotState:
        return msgspec.structs.replace(read(now_ns), **shown(read(now_ns), x_m))  # type: ignore[type-var]  # a Struct

    monkeypatch.setattr(robot, "read", shows)
    sim.run(seconds=2.5)
    there = read(sim.clock.now_ns())
    assert there.base_v_mps == 0.0
    assert 0.15 < there.base_x_m - x_m < 0.35


def test_a_base_that_stands_while_its_odometry_runs_stops() -> None:
    base = Base()
    base.shows = lambda state: msgspec.structs.replace(  # type: ignore[type-var]  # a Struct
        state, base_x_m=0.1e-9 * state.read_ns
    )
    base.run(1.5, 0.0)
    assert base.faults == ["unknown"]


def test_a_heading_that_is_not_known_is_a_fault_where_it_lasts() -> None:
    base = Base()
    for seconds, faults in ((0.08, []), (0.2, ["unknown"])):
        base.run(0.5, 0.1)
        base.shows = lambda state: msgspec.structs.replace(state, base_heading_rad=math.nan)  # type: ignore[type-var]
        base.run(seconds, 0.1)
        base.shows = lambda state: state
        assert base.faults == faults


@pytest.mark.parametrize("late", [0, 5, 12])
def test_a_base_that_lags_slips_and_is_measured_with_noise_drives_on(late: int) -> None:
    base, chance = Base(), random.Random(late)
    speeds = [(0.3, 0.0), (0.0, 1.9), (-0.2, 0.3), (0.1, -0.5), (0.0, 0.0)]
    coming = [(0.0, 0.0)] * late
    base.shows = lambda state: msgspec.structs.replace(  # type: ignore[type-var]  # a Struct
        state, base_x_m=state.base_x_m + chance.gauss(0, 0.003),
        base_v_mps=state.base_v_mps * 0.93 + chance.gauss(0, 0.01),
        base_heading_rad=state.base_heading_rad + chance.gauss(0, 0.005),
    )  # fmt: skip
    for number in range(3000):
        base.step(*speeds[number // 100 % 5])
        coming.append((base.v_mps * 1.07, base.w_radps * 0.93))
        base.moves = coming.pop(0)
    assert base.faults == []
    assert base.mode == "moving"


def test_states_that_come_late_say_nothing_of_the_way_between() -> None:
    base = Base()
    base.run(1.0, 0.3)
    for _ in range(20):  # the driver hung: commands were not applied, and nobody knows for how long
        base.now_ns += 300 * MS
        base.moves = (0.0, 0.0)
        base.step(0.3)
        base.moves = None
        base.run(0.1, 0.3)
    assert base.faults == []


def fault_after_m(asked_mps: float, speed_mps: float, odometry_mps: float, step_s: float = 0.02) -> float | None:
    """How far a base is asked to go until a fault is found of it, m; None where none is within 30 s."""
    watch, asked = BaseWatch(), CommandedMotion((Motion(0.0),), asked_mps, 0.0)
    state = moving(0, STOW, ZEROS, speed_mps)
    for step in range(round(30.0 / step_s)):
        at_s = step * step_s
        now = msgspec.structs.replace(state, read_ns=to_ns(at_s), base_x_m=odometry_mps * at_s)  # type: ignore[type-var]
        if watch.check(now, asked, step_s, is_stopped=False) is not None:
            return asked_mps * at_s
    return None


@pytest.mark.parametrize(
    ("asked_mps", "speed_mps", "odometry_mps", "step_s", "least_m", "most_m"),
    [
        (0.05, 0.0, 0.0, 0.02, 0.08, 0.10),  # held fast: behind by 5 cm, its lag, and what is forgotten meanwhile
        (0.05, 0.0245, 0.0245, 0.02, 0.20, 0.40),  # half as fast as asked
        (0.3, 0.3, 0.0, 0.02, 0.09, 0.13),  # dead odometry
        (0.3, 0.3, 0.2, 0.02, 0.50, 1.10),  # wheels that slip a third of the way
        (0.3, 0.0, 0.0, 0.2, 0.15, 0.25),  # held fast, of which five states a second tell
    ],
)
def test_how_far_a_base_is_asked_to_go_until_it_is_found_not_to(
    asked_mps: float, speed_mps: float, odometry_mps: float, step_s: float, least_m: float, most_m: float
) -> None:
    found_m = fault_after_m(asked_mps, speed_mps, odometry_mps, step_s)
    assert found_m is not None
    assert least_m < found_m < most_m


@pytest.mark.parametrize(
    ("asked_radps", "speed_radps", "odometry_radps", "least_rad", "most_rad"),
    [
        (0.2, 0.0, 0.0, 0.22, 0.40),  # held fast
        (0.5, 0.5, 0.0, 0.20, 0.35),  # dead odometry
    ],
)
def test_how_far_a_base_is_asked_to_turn_until_it_is_found_not_to(
    asked_radps: float, speed_radps: float, odometry_radps: float, least_rad: float, most_rad: float
) -> None:
    watch, asked, at_s = BaseWatch(), CommandedMotion((Motion(0.0),), 0.0, asked_radps), 0.0
    state = moving(0, STOW, ZEROS, 0.0, speed_radps)
    now = state
    while watch.check(now, asked, 0.02, is_stopped=False) is None:
        at_s += 0.02
        assert at_s < 5.0
        now = msgspec.structs.replace(state, read_ns=to_ns(at_s), base_heading_rad=odometry_radps * at_s)  # type: ignore[type-var]
    assert least_rad < asked_radps * at_s < most_rad


@pytest.mark.parametrize(("v_mps", "w_radps"), [(0.05, 0.0), (0.0, 0.09)])
def test_a_stopped_base_that_is_moved_by_less_than_3_cm_or_3_degrees_is_left_alone_and_by_more_is_not(
    v_mps: float, w_radps: float
) -> None:
    base = Base()
    base.stand()
    base.moves = v_mps, w_radps
    base.run(0.5)  # 2.5 cm, 2.6 degrees
    assert not base.machine.needs_runstop(base.now_ns)
    base.run(0.2)
    assert base.machine.needs_runstop(base.now_ns)


@pytest.mark.parametrize(
    ("asked_mps", "speed_mps", "odometry_mps", "step_s"),
    [
        (0.05, 0.0325, 0.0325, 0.02),  # a third too slow at a slow pace: forgotten faster than it adds up
        (0.3, 0.3, 0.225, 0.02),  # wheels that slip a quarter of the way
        (0.3, 0.0, 0.0, 0.3),  # states that are too far apart to tell
    ],
)
def test_how_far_a_base_may_be_off_for_ever(
    asked_mps: float, speed_mps: float, odometry_mps: float, step_s: float
) -> None:
    assert fault_after_m(asked_mps, speed_mps, odometry_mps, step_s) is None


@pytest.mark.parametrize("touch", ["contact", "effort"])
def test_it_has_half_a_second_to_leave_what_it_touched(touch: str) -> None:
    base = Base()
    base.run(2.0, 0.3)
    base.contact, base.effort = (("base",), base.effort) if touch == "contact" else ((), [100.0, *ZEROS[1:]])
    base.run(1.5)
    base.say("resume")
    base.run(0.56)
    assert (base.mode, base.faults) == ("retreating", [touch])
    base.run(0.4)
    assert (base.mode, base.faults) == ("stopped", [touch, touch])


@pytest.mark.parametrize("touch", ["contact", "effort"])
def test_the_way_back_feels_a_touch_that_stays(touch: str) -> None:
    base = Base()
    base.run(2.0, 0.3)
    base.contact, base.effort = (("base",), base.effort) if touch == "contact" else ((), [100.0, *ZEROS[1:]])
    base.run(1.5)
    assert base.faults == [touch]
    base.say("resume")
    x_m = base.x_m
    assert base.mode == "retreating"
    base.run(4.0)
    assert base.faults == [touch, touch]
    assert base.mode == "stopped"
    assert abs(base.x_m - x_m) <= 0.08


def test_a_target_in_other_units_is_refused_and_counted_and_one_a_little_beyond_is_followed_and_counted() -> None:
    base, lift = Base(), STRETCH_3.joints[0]
    asked = ((43.8, True), (-30.0, True), (1.27, True), (1.24, False), (lift.highest, False))  # its range is 1.1 m
    for position, is_refused in asked:
        base.run(0.1)
        refusal = base.ask(JointCommand(position=(position, *STOW[1:])))
        assert bool(refusal) is is_refused, position
    report = base.machine.report()
    assert (report.mistaken, report.clamped) == ({"policy": 3}, {"policy": 1})
    assert report.beyond_ranges == (
        sentence("guard.beyond_ranges", source="policy", count=1, became="followed to its end"),
        sentence("guard.beyond_ranges", source="policy", count=3, became=sentence("guard.refused_as_mistake")),
    )
