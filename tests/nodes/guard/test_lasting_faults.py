"""The guard watches the robot and not only the commands: what lasts stops it, and what goes on presses its runstop."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import cos, nan, sin
from typing import Any

import msgspec
import pytest

from nodes.guard.lasting_faults import LASTS_S, RUNSTOP_S, CommandedMotion, Conduct, Fault
from nodes.guard.motion_profile import Motion
from nodes.guard.node import Guard
from nodes.msgs import JOINTS, GuardState, Interrupt, JointCommand, RobotState, RobotStatus
from nodes.robot.driver import Driver
from nodes.sim.kinematic import KinematicRobot
from nodes.stretch.limits import STRETCH_3
from runtime import Node, Publisher, Simulation, every
from runtime.clock import to_ns
from runtime.launch.graph import NodeSpec
from tests.support.guard.guard_driven import FAR, Story, interrupt
from tests.support.sentences import sentence
from tests.support.standing import HOME, ZEROS, moving, standing

TICK_S = 0.02


class Lab(Story):
    """A guard whose robot shows what a test says, tick by tick."""

    def __init__(self) -> None:
        super().__init__()
        self.shows: dict[str, Any] = {}
        self.follows = True
        self.pose = (0.0, 0.0, 0.0)

    def look(self, seconds: float, **sent: Any) -> str:
        """Who stopped the robot within that time, or ""."""
        for _ in range(round(seconds / TICK_S)):
            if sent:
                self.send(**sent)
            self.now_ns += to_ns(TICK_S)
            out = self.machine.tick(self.now_ns)
            position = out.position if out is not None and self.follows else HOME
            v_mps, w_radps = (out.base_v_mps, out.base_w_radps) if out is not None else (0.0, 0.0)
            x_m, y_m, heading = self.pose
            self.pose = (
                x_m + v_mps * TICK_S * cos(heading),
                y_m + v_mps * TICK_S * sin(heading),
                heading + w_radps * TICK_S,
            )
            felt = moving(self.now_ns, position, ZEROS, v_mps, w_radps, self.pose)
            state = msgspec.structs.replace(felt, **self.shows)  # type: ignore[type-var]
            self.machine.update_state(state)
            if by := self.machine.check_monitors(self.now_ns) or self.machine.check_conduct(self.now_ns):
                return by
        return ""


def shown_at(conduct: Conduct, second: float, x_m: float, y_m: float) -> dict[Fault, tuple[float, str]]:
    """What is found wrong with a robot that stands there at that time."""
    at_ns = to_ns(second)
    return conduct.check(standing(at_ns, pose=(x_m, y_m, 0.0)), CommandedMotion((), 0.0, 0.0), at_ns)


@pytest.mark.parametrize(("x_m", "y_m"), [(3.0, 0.0), (0.0, 3.0), (-3.0, -3.0)])
def test_a_base_that_stands_far_away_has_not_jumped_and_one_that_is_mirrored_has(x_m: float, y_m: float) -> None:
    conduct = Conduct(STRETCH_3, 95.0)
    assert [shown_at(conduct, 1 + tick * TICK_S, x_m, y_m) for tick in range(3)] == [{}, {}, {}]
    _, why = shown_at(conduct, 1.1, -x_m, -y_m)["unknown"]
    assert why == sentence("guard.jumps", what="base")


LIFT = STRETCH_3.joints[0]
SHARE = 0.03 * (LIFT.highest - LIFT.lowest)
EDGE = 1e-6


def shows(*states: RobotState, asked: CommandedMotion | None = None) -> dict[Fault, str]:
    """What is found wrong with the last of these, of which each is 20 ms later than the one before."""
    conduct, found = Conduct(STRETCH_3, 95.0), {}
    for state in states:
        found = conduct.check(state, asked or CommandedMotion((), 0.0, 0.0), state.read_ns)
    return {fault: why for fault, (_, why) in found.items()}


@pytest.mark.parametrize(("beyond", "jumps"), [(-EDGE, False), (EDGE, True)])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_joint_has_jumped_that_is_further_away_than_twice_its_speed_and_its_share_allow(
    beyond: float, jumps: bool, sign: int
) -> None:
    away_m = 2.0 * LIFT.speed * TICK_S + SHARE + beyond
    there = (HOME[0] + sign * away_m, *HOME[1:])
    found = shows(standing(to_ns(1.0)), standing(to_ns(1.0 + TICK_S), there))
    assert found == ({"unknown": sentence("guard.jumps", what="lift")} if jumps else {})


@pytest.mark.parametrize(("beyond", "jumps"), [(-EDGE, False), (EDGE, True)])
def test_a_base_has_jumped_that_is_further_away_than_twice_its_speed_and_10_cm(beyond: float, jumps: bool) -> None:
    away_m = 2.0 * STRETCH_3.base.wheel_speed_mps * TICK_S + 0.1 + beyond
    found = shows(standing(to_ns(1.0)), standing(to_ns(1.0 + TICK_S), pose=(0.0, -away_m, 0.0)))
    assert found == ({"unknown": sentence("guard.jumps", what="base")} if jumps else {})


def test_a_robot_that_is_seen_for_the_first_time_when_the_clock_begins_has_not_jumped() -> None:
    assert shows(standing(0)) == {}
    assert shows(standing(0), standing(0)) == {}


@pytest.mark.parametrize(("beyond", "is_behind"), [(-EDGE, False), (EDGE, True)])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_joint_is_behind_that_is_further_from_its_target_than_its_lag_and_its_share(
    beyond: float, is_behind: bool, sign: int
) -> None:
    ahead_m = 0.3 * LIFT.speed + SHARE + beyond
    joints = (Motion(HOME[0] + sign * ahead_m), *(Motion(place) for place in HOME[1:]))
    found = shows(standing(to_ns(1.0)), asked=CommandedMotion(joints, 0.0, 0.0))
    assert found == ({"following": sentence("guard.does_not_follow", what="lift")} if is_behind else {})


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"velocity": (0.5 * LIFT.speed + 0.05 + 0.1 - EDGE, *ZEROS[1:])}, ""),
        ({"velocity": (-0.5 * LIFT.speed - 0.05 - 0.1 - EDGE, *ZEROS[1:])}, "lift"),
        ({"base_v_mps": -0.3 + EDGE}, ""), ({"base_v_mps": -0.3 - EDGE}, "base"),
        ({"base_vy_mps": 0.1}, ""), ({"base_vy_mps": 0.1 + EDGE}, "base"),
        ({"base_w_radps": 0.4 - EDGE}, ""), ({"base_w_radps": 0.4 + EDGE}, "base"),
    ],
)  # fmt: skip
def test_motion_is_a_fault_beyond_what_was_asked_for_and_a_bit(changes: dict[str, Any], names: str) -> None:
    joints = (Motion(HOME[0], 0.1), *(Motion(place) for place in HOME[1:]))
    state = msgspec.structs.replace(standing(to_ns(1.0)), **changes)  # type: ignore[type-var]  # a Struct
    found = shows(state, asked=CommandedMotion(joints, 0.2, -0.1))
    assert found == ({"motion": sentence("guard.moves_beyond", what=names)} if names else {})


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"effort": ()}, sentence("guard.joints_are_unknown", what="effort")),
        ({"velocity": (nan, *ZEROS[1:])}, sentence("guard.joints_are_unknown", what="velocity")),
        ({"base_w_radps": nan}, sentence("guard.base_speed_is_unknown")),
    ],
)
def test_what_is_not_known_is_named(changes: dict[str, Any], why: str) -> None:
    state = msgspec.structs.replace(standing(to_ns(1.0)), **changes)  # type: ignore[type-var]  # a Struct
    assert shows(state) == {"unknown": why}


def test_a_gripper_may_press_for_as_long_as_it_likes() -> None:
    for joint in JOINTS:
        effort = tuple(99.0 if name == joint else 0.0 for name in JOINTS)
        found = shows(msgspec.structs.replace(standing(to_ns(1.0)), effort=effort))  # type: ignore[type-var]  # a Struct
        assert found == (
            {} if joint == "gripper" else {"effort": sentence("guard.effort_lasts", percent=95, what=joint)}
        )


@pytest.mark.parametrize(
    ("percent", "pushes"), [(95.0, True), (-95.0, True), (94.999, False), (-94.999, False), (0.0, False)]
)
def test_an_effort_of_exactly_the_limit_is_one_too_much_whichever_way_it_pushes(percent: float, pushes: bool) -> None:
    state = msgspec.structs.replace(standing(to_ns(1.0)), effort=(percent, percent, *ZEROS[2:]))  # type: ignore[type-var]
    assert shows(state) == ({"effort": sentence("guard.effort_lasts", percent=95, what="lift, arm")} if pushes else {})


def test_all_that_lasts_is_named() -> None:
    velocity, position = (1.0, -1.0, *ZEROS[2:]), (HOME[0] - 0.3, HOME[1] + 0.3, *HOME[2:])
    state = msgspec.structs.replace(  # type: ignore[type-var]  # a Struct
        standing(to_ns(1.0), position, contact=("arm", "base")), velocity=velocity, base_v_mps=1.0
    )
    asked = CommandedMotion(tuple(map(Motion, HOME)), 0.0, 0.0)
    assert shows(state, asked=asked) == {
        "contact": sentence("guard.contact_lasts", what="arm, base"),
        "following": sentence("guard.does_not_follow", what="lift, arm"),
        "motion": sentence("guard.moves_beyond", what="lift, arm, base"),
    }


def test_a_gripper_that_is_held_open_or_pushed_is_neither_behind_nor_too_fast() -> None:
    place = JOINTS.index("gripper")
    position, velocity = list(HOME), list(ZEROS)
    position[place], velocity[place] = 0.5, 5.0
    state = msgspec.structs.replace(standing(to_ns(1.0), tuple(position)), velocity=tuple(velocity))  # type: ignore[type-var]
    assert shows(state, asked=CommandedMotion(tuple(map(Motion, HOME)), 0.0, 0.0)) == {}


def test_each_fault_is_as_old_as_its_beginning_and_a_gap_makes_it_new() -> None:
    conduct, ages = Conduct(STRETCH_3, 95.0), []
    for tick, touch in enumerate((True, True, True, False, True, True)):
        now_ns = to_ns(tick * TICK_S)
        state = standing(now_ns, contact=("base",) if touch else ())
        found = conduct.check(state, CommandedMotion((), 0.0, 0.0), now_ns)
        ages.append(found["contact"][0] if touch else -1.0)
    assert ages == pytest.approx([0.0, TICK_S, 2 * TICK_S, -1.0, 0.0, TICK_S])


def test_what_is_forgotten_is_neither_a_jump_nor_an_excuse_nor_old() -> None:
    conduct = Conduct(STRETCH_3, 95.0)
    still = CommandedMotion(tuple(map(Motion, HOME)), 0.0, 0.0)
    fast = CommandedMotion(tuple(map(Motion, HOME)), 0.3, 0.0)

    def check(second: float, x_m: float, asked: CommandedMotion) -> dict[Fault, tuple[float, str]]:
        at = standing(to_ns(second), pose=(x_m, 0.0, 0.0), contact=("base",))
        state = msgspec.structs.replace(at, base_v_mps=0.3)  # type: ignore[type-var]  # a Struct
        return conduct.check(state, asked, to_ns(second))

    contact = (0.0, sentence("guard.contact_lasts", what="base"))
    assert check(1.0, 0.0, fast) == {"contact": contact}
    assert "unknown" in check(1.02, 9.0, fast)
    conduct.forget()
    found = check(1.04, -9.0, still)
    assert found["contact"] == contact
    assert found == {"contact": contact, "motion": (0.0, sentence("guard.moves_beyond", what="base"))}


@pytest.mark.parametrize(("beyond", "jumps"), [(-EDGE, False), (EDGE, True)])
@pytest.mark.parametrize("newer_ms", [0, 10], ids=["an older part does not say more", "all parts say more"])
def test_a_joint_may_have_moved_for_all_the_time_since_the_oldest_part_of_the_last_state(
    beyond: float, jumps: bool, newer_ms: int
) -> None:
    conduct, asked = Conduct(STRETCH_3, 95.0), CommandedMotion((), 0.0, 0.0)
    away_m = 2.0 * LIFT.speed * 0.08 + SHARE + beyond
    old, new = standing(to_ns(0.94)), standing(to_ns(0.94 + 1e-3 * newer_ms), (HOME[0] + away_m, *HOME[1:]))
    assert conduct.check(old, asked, to_ns(1.0)) == {}
    assert ("unknown" in conduct.check(new, asked, to_ns(1.02))) is jumps


def test_one_jump_is_forgotten() -> None:
    after = [standing(to_ns(1.0 + tick * TICK_S), pose=(9.0, 0.0, 0.0)) for tick in range(1, 6)]
    assert shows(standing(to_ns(1.0)), *after[:4]) == {"unknown": sentence("guard.jumps", what="base")}, "for 60 ms"
    assert shows(standing(to_ns(1.0)), *after) == {}


def test_a_sensor_that_says_nothing_is_named_before_a_posture_that_jumps() -> None:
    state = msgspec.structs.replace(standing(to_ns(1.02), pose=(9.0, 0.0, 0.0)), effort=())  # type: ignore[type-var]
    assert shows(standing(to_ns(1.0)), state) == {"unknown": sentence("guard.joints_are_unknown", what="effort")}


def test_what_lasts_in_an_emergency_stop_presses_the_robots_own_button_and_is_no_stop_more() -> None:
    lab = Lab()
    assert lab.look(0.2, position=HOME) == ""
    lab.machine.estop("button", lab.now_ns)
    lab.shows = {"effort": (99.0, *ZEROS[1:])}
    assert lab.look(LASTS_S["effort"] + RUNSTOP_S["effort"] + 0.1) == ""
    assert lab.machine.needs_runstop(lab.now_ns)
    assert lab.machine.conduct.runstop_reason == sentence("guard.effort_lasts", percent=95, what="lift")


@pytest.mark.parametrize("fault", ["unknown", "motion", "effort"])
def test_what_lasts_stops_and_then_presses_the_button_after_more_than_exactly_its_time(fault: Fault) -> None:
    changes: dict[str, dict[str, Any]] = {
        "unknown": {"effort": ()},
        "motion": {"base_v_mps": 0.3},
        "effort": {"effort": (99.0, *ZEROS[1:])},
    }
    story = Story()
    start_ns = story.now_ns

    def after(age_ns: int) -> str:
        state = msgspec.structs.replace(standing(start_ns + age_ns), **changes[fault])  # type: ignore[type-var]
        story.machine.update_state(state)
        return story.machine.check_conduct(start_ns + age_ns)

    stops_ns, presses_ns = to_ns(LASTS_S[fault]), to_ns(LASTS_S[fault] + RUNSTOP_S[fault])
    assert (after(0), after(stops_ns), after(stops_ns + 1)) == ("", "", fault)
    for age_ns, is_pressed in ((presses_ns, False), (presses_ns + 1, True)):
        assert after(age_ns) == ""
        assert bool(story.machine.conduct.runstop_reason) is is_pressed


def test_what_was_asked_for_more_than_half_a_second_ago_excuses_no_motion() -> None:
    lab = Lab()
    assert lab.look(1.0, position=HOME, v=0.3) == ""
    assert lab.look(2.0, position=HOME) == ""
    lab.shows = {"base_v_mps": 0.3}
    assert lab.look(1.0, position=HOME) == "motion"


@pytest.mark.parametrize(("ticks", "is_excused"), [(24, True), (26, False)])
def test_what_was_asked_for_excuses_motion_for_half_a_second(ticks: int, is_excused: bool) -> None:
    conduct, goes_on = Conduct(STRETCH_3, 95.0), moving(0, HOME, ZEROS, 0.3)
    joints = tuple(map(Motion, HOME))
    conduct.check(goes_on, CommandedMotion(joints, 0.3, 0.0), 0)
    for tick in range(1, ticks + 1):
        found = conduct.check(goes_on, CommandedMotion(joints, 0.0, 0.0), tick * to_ns(TICK_S))
    assert ("motion" not in found) is is_excused


FAULTS: list[tuple[Fault, dict[str, Any]]] = [
    ("unknown", {"effort": (nan, *ZEROS[1:])}),
    ("unknown", {"effort": ()}),
    ("unknown", {"velocity": ZEROS[1:]}),
    ("unknown", {"base_v_mps": nan}),
    ("motion", {"base_v_mps": 0.2}),
    ("motion", {"base_w_radps": -0.5}),
    ("motion", {"velocity": (0.2, *ZEROS[1:])}),
]


@pytest.mark.parametrize(("fault", "shows"), FAULTS)
def test_what_lasts_stops_the_robot_and_what_goes_on_after_it_presses_the_runstop(
    fault: Fault, shows: dict[str, Any]
) -> None:
    lab = Lab()
    assert lab.look(1.0, position=HOME) == ""
    lab.shows = shows
    assert lab.look(LASTS_S[fault] - 0.04, position=HOME) == "", "a moment of it is none"
    assert lab.look(0.1, position=HOME) == fault
    assert (lab.machine.mode, lab.machine.latch.by) == ("stopped", fault)
    assert not lab.machine.needs_runstop(lab.now_ns)
    lab.look(RUNSTOP_S[fault] + 0.1)
    assert lab.machine.needs_runstop(lab.now_ns)
    assert lab.machine.conduct.runstop_reason
    lab.shows = {}
    lab.look(0.04)
    assert not lab.machine.needs_runstop(lab.now_ns), "it is over"


def test_a_robot_that_does_as_it_is_told_is_never_stopped() -> None:
    lab = Lab()
    assert lab.look(5.0, position=FAR, v=0.3, w=0.2) == ""


@pytest.mark.parametrize("shows", [{"base_v_mps": 0.5}, {"effort": ()}])
def test_a_robot_that_nobody_commands_may_be_pushed_by_hand_and_need_not_tell_all(shows: dict[str, Any]) -> None:
    lab = Lab()
    lab.machine = type(lab.machine)(lab.machine.limits)
    lab.shows = shows
    assert lab.look(2.0) == ""
    assert lab.machine.mode == "disarmed"


def test_a_blocked_joint_stops_the_robot_and_its_target_comes_back_to_where_it_is() -> None:
    lab = Lab()
    lab.follows = False
    assert lab.look(3.0, position=(1.1, *HOME[1:])) == "following"
    ahead_m = lab.machine.commanded().joints[0].position - HOME[0]
    assert 0.05 < ahead_m < 0.25
    lab.look(2.5)
    assert lab.machine.tick(lab.now_ns).position[0] == HOME[0]  # type: ignore[union-attr]
    assert not lab.machine.needs_runstop(lab.now_ns), "nothing is behind any more"


@pytest.mark.parametrize(
    ("shows", "by"),
    [({"contact": ("arm",)}, "contact"), ({"effort": (99.0, *ZEROS[1:])}, "effort"), ({"effort": ()}, "unknown")],
)
def test_on_the_way_back_what_it_touched_may_not_go_on_for_long(shows: dict[str, Any], by: str) -> None:
    lab = Lab()
    assert lab.look(1.0, position=HOME) == ""
    lab.machine.mode = "retreating"
    stopped_by = ""
    for _ in range(round(5.0 / TICK_S)):
        lab.now_ns += to_ns(TICK_S)
        state = msgspec.structs.replace(standing(lab.now_ns), **shows)  # type: ignore[type-var]
        lab.machine.update_state(state)
        stopped_by = stopped_by or lab.machine.check_conduct(lab.now_ns)
    assert stopped_by == by


def released(lab: Lab, measured: Callable[[float, int], float], seconds: float = 4.0) -> list[float]:
    """Where the lift's target is at each tick after a touch, when the lift is measured so, by target and tick."""
    lab.machine.interrupt(interrupt("stop", "contact"), lab.now_ns, lab.now_ns)
    targets = []
    for tick in range(round(seconds / TICK_S)):
        lab.now_ns += to_ns(TICK_S)
        out = lab.machine.tick(lab.now_ns)
        assert out is not None
        targets.append(out.position[0])
        lab.machine.update_state(standing(lab.now_ns, (measured(out.position[0], tick), *HOME[1:])))
    speeds = [(b - a) / TICK_S for a, b in pairwise([HOME[0], *targets])]
    assert max(map(abs, speeds)) <= LIFT.speed + 1e-9
    assert max(abs(b - a) for a, b in pairwise([0.0, *speeds])) <= LIFT.acceleration * TICK_S + 1e-9
    return targets


def test_the_target_of_a_joint_that_stands_comes_back_to_it_by_a_ramp() -> None:
    lab = Lab()
    assert lab.look(0.1, position=HOME) == ""
    assert released(lab, lambda target, tick: HOME[0] - 0.1)[-1] == pytest.approx(HOME[0] - 0.1)


@pytest.mark.parametrize(
    ("measured", "most_m"),
    [
        pytest.param(lambda target, tick: HOME[0] + (0.1 if tick % 2 else -0.1), 0.0, id="jumps"),
        pytest.param(lambda target, tick: HOME[0] + (0.1 if tick < 4 else -0.1 if tick < 8 else 0.0), 0.0, id="thrice"),
        pytest.param(lambda target, tick: target + 0.1, 0.07, id="is wrong, and follows"),
        pytest.param(lambda target, tick: HOME[0] + 0.5, 0.0, id="is too far to be blocked there"),
        pytest.param(lambda target, tick: HOME[0] - (0.1 if tick < 20 else 0.3), 0.07, id="jumps on the way"),
    ],
)
def test_a_false_measurement_after_a_touch_does_not_take_the_joint_along(
    measured: Callable[[float, int], float], most_m: float
) -> None:
    lab = Lab()
    assert lab.look(0.1, position=HOME) == ""
    assert max(abs(target - HOME[0]) for target in released(lab, measured)) <= most_m


def test_a_joint_that_was_measured_too_far_away_is_not_believed_afterwards() -> None:
    lab = Lab()
    assert lab.look(0.1, position=HOME) == ""
    targets = released(lab, lambda target, tick: HOME[0] + (0.5 if tick < 20 else -0.1))
    assert targets[-1] == pytest.approx(HOME[0])


def test_an_emergency_stop_ends_the_way_back_of_the_targets() -> None:
    lab = Lab()
    assert lab.look(0.1, position=HOME) == ""
    target_m = released(lab, lambda target, tick: HOME[0] - 0.1, seconds=0.5)[-1]
    assert target_m < HOME[0]
    lab.machine.estop("button", lab.now_ns)
    lab.look(2.0)
    out = lab.machine.tick(lab.now_ns)
    assert out is not None
    assert target_m - 0.03 <= out.position[0] <= target_m


def test_go_on_with_the_hand_still_jammed_stops_again_and_then_presses_the_runstop() -> None:
    lab = Lab()
    lab.shows = {"contact": ("lift",)}
    assert lab.look(0.2, position=HOME) == "contact"
    lab.look(1.0)
    lab.now_ns += 1
    lab.machine.interrupt(interrupt("resume", "Ana"), lab.now_ns, lab.now_ns)
    assert lab.machine.mode == "holding"
    assert lab.look(0.2, position=FAR) == "contact", "it is no news, and lasts"
    lab.look(RUNSTOP_S["contact"] + LASTS_S["contact"])
    assert lab.machine.needs_runstop(lab.now_ns)


class Policy(Node):
    """Wants to stay where it is."""

    command = Publisher(JointCommand, "command")

    @every(hz=20)
    def tick(self) -> None:
        self.command.publish(JointCommand(position=KinematicRobot.folded))


class Runaway(KinematicRobot):
    """Its base goes by itself from some moment on, whatever it is told."""

    runs_away = False

    def read(self, now_ns: int) -> RobotState:
        state = super().read(now_ns)
        if not self.runs_away or self.status(now_ns).is_runstopped:
            return state
        return msgspec.structs.replace(state, base_v_mps=0.3)  # type: ignore[type-var]


def test_the_driver_presses_the_runstop_of_a_robot_that_moves_by_itself_and_says_why() -> None:
    driver = Driver(robot="nodes.sim.kinematic:KinematicRobot")
    specs = (NodeSpec("guard", Guard, params={"arm": "auto"}), NodeSpec("policy", Policy))
    sim = Simulation(NodeSpec("driver", Driver, instance=driver), *specs)
    sim.run(seconds=1.0)
    driver.robot = robot = Runaway()
    robot.start(sim.clock.now_ns())
    states: list[GuardState] = sim.record_topic("guard/state", GuardState)
    statuses: list[RobotStatus] = sim.record_topic("robot/status", RobotStatus)
    interrupts: list[Interrupt] = sim.record_topic("interrupt", Interrupt)
    sim.run(seconds=0.5)
    assert states[-1].mode == "moving"
    robot.runs_away = True
    sim.run(seconds=0.5)
    assert (states[-1].mode, states[-1].stopped_by) == ("stopped", "motion")
    assert [one.text for one in interrupts] == [sentence("guard.moves_beyond", what="base")]
    sim.run(seconds=1.2)
    assert statuses[-1].is_runstopped


def test_motion_is_no_fault_where_nothing_was_ever_asked_for() -> None:
    conduct = Conduct(STRETCH_3, 95.0)
    for step in range(100):
        now_ns = 1_000_000_000 + step * 20_000_000
        pushed = msgspec.structs.replace(standing(now_ns), base_v_mps=0.5)  # type: ignore[type-var]  # a Struct
        assert "motion" not in conduct.check(pushed, CommandedMotion((), 0.0, 0.0), now_ns)
