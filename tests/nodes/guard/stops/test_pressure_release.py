"""Exact edges of what a target does after a touch, and of the way back: `Release`, `Trail` and `WayBack` by values."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import msgspec
import pytest

from nodes.guard.lasting_faults import RANGE_SHARE
from nodes.guard.motion_profile import Motion
from nodes.guard.pressure_release import STANDS_NS, STANDS_SHARE, Release, furthest
from nodes.guard.retreat import SHARE, Trail, WayBack
from nodes.msgs import JOINTS, JointCommand, RobotState
from nodes.robot.rest import REST_MPS, REST_RADPS
from nodes.stretch.limits import STRETCH_3
from runtime.clock import to_ns
from tests.support.guard.guard_driven import MS, TICK, Story, interrupt
from tests.support.sentences import sentence
from tests.support.standing import HOME, ZEROS, moving, standing

TICK_S = 0.02
EDGE = 1e-6
LIFT, GRIPPER, ROLL, PAN = (JOINTS.index(name) for name in ("lift", "gripper", "wrist_roll", "head_pan"))
START_NS = to_ns(1.0)


def reach(joint: int) -> float:
    """How long its range is."""
    limit = STRETCH_3.joints[joint]
    return limit.highest - limit.lowest


class Touched:
    """The targets of a robot that was stopped by a touch, and what is measured of one of its joints."""

    def __init__(self, joint: int = LIFT) -> None:
        self.joint = joint
        self.release = Release(STRETCH_3)
        self.motions = tuple(Motion(place) for place in HOME)

    def see(self, off: float, after_ns: int, speed: float = 0.0) -> float:
        """How far the joint's target is from where it was at the stop, so long after it."""
        position, velocity = list(HOME), list(ZEROS)
        position[self.joint] += off
        velocity[self.joint] = speed
        state = moving(START_NS + after_ns, tuple(position), tuple(velocity))
        self.motions = self.release.step(self.motions, state, TICK_S, START_NS + after_ns)
        return self.motions[self.joint].position - HOME[self.joint]


@pytest.mark.parametrize(("after_ns", "goes"), [(STANDS_NS - 1, False), (STANDS_NS, True)])
def test_a_target_goes_back_once_its_joint_has_stood_for_exactly_its_time(after_ns: int, goes: bool) -> None:
    touched = Touched()
    assert touched.see(-0.05, 0) == 0.0
    assert (touched.see(-0.05, after_ns) < 0.0) is goes


@pytest.mark.parametrize(("beyond", "goes"), [(-EDGE, True), (EDGE, False)])
@pytest.mark.parametrize("sign", [1, -1])
def test_what_is_measured_within_its_share_of_the_range_is_one_place(beyond: float, goes: bool, sign: int) -> None:
    touched = Touched()
    touched.see(-0.05, 0)
    touched.see(-0.05 + sign * (STANDS_SHARE * reach(LIFT) + beyond), STANDS_NS // 2)
    assert (touched.see(-0.05, STANDS_NS) < 0.0) is goes


@pytest.mark.parametrize(("joint", "still"), [(LIFT, REST_MPS), (PAN, REST_RADPS)])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_joint_that_is_measured_to_move_does_not_stand(joint: int, still: float, sign: int) -> None:
    for speed, goes in ((still, True), (still + EDGE, False)):
        touched = Touched(joint)
        touched.see(-0.05, 0)
        touched.see(-0.05, STANDS_NS // 2, sign * speed)
        assert (touched.see(-0.05, STANDS_NS) < 0.0) is goes


@pytest.mark.parametrize(("beyond", "goes"), [(-EDGE, True), (EDGE, False)])
def test_a_target_goes_back_no_further_than_a_blocked_joint_can_be_behind(beyond: float, goes: bool) -> None:
    touched = Touched()
    off = -furthest(STRETCH_3.joints[LIFT]) - beyond
    touched.see(off, 0)
    assert (touched.see(off, STANDS_NS) < 0.0) is goes
    assert touched.see(-0.05, 2 * STANDS_NS) <= 0.0
    assert (touched.see(-0.05, 4 * STANDS_NS) == 0.0) is not goes, "it is not believed any more"


def test_a_blocked_joint_is_behind_by_its_lag_its_share_and_what_it_goes_until_it_has_braked() -> None:
    # 0.3 s and 0.5 s at 0.13 m/s, 3 % of 1.1 m, and 0.13^2 / (2 * 0.3) m
    assert furthest(STRETCH_3.joints[LIFT]) == pytest.approx(0.039 + 0.065 + 0.033 + 0.02816667)


@pytest.mark.parametrize(("beyond", "goes"), [(-EDGE, True), (EDGE, False)])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_target_stops_going_back_once_its_joint_is_measured_elsewhere(beyond: float, goes: bool, sign: int) -> None:
    touched = Touched()
    touched.see(-0.05, 0)
    touched.see(-0.05, STANDS_NS)
    touched.see(-0.05 + sign * (RANGE_SHARE * reach(LIFT) + beyond), STANDS_NS + MS)
    for tick in range(1, 60):
        after = touched.see(-0.05, STANDS_NS + tick * TICK)
    assert (after == pytest.approx(-0.05)) is goes


@pytest.mark.parametrize(("share", "at_ns"), [(STANDS_SHARE, STANDS_NS // 2), (RANGE_SHARE, STANDS_NS + MS)])
def test_exactly_that_share_of_its_range_is_still_the_same_place(share: float, at_ns: int) -> None:
    touched = Touched(ROLL)
    touched.motions = tuple(Motion(place + 0.05) for place in HOME)
    seen = {0: 0.0, STANDS_NS: 0.0, at_ns: share * reach(ROLL)}
    targets = {after_ns: touched.see(seen[after_ns], after_ns) for after_ns in sorted(seen)}
    assert targets[STANDS_NS] < 0.05, "it has stood there since the stop"
    ends = [touched.see(0.0, 2 * STANDS_NS + tick * TICK) for tick in range(20)]
    assert ends[-1] == pytest.approx(0.0, abs=1e-6)


def test_the_gripper_keeps_its_grip_however_long_it_stands_elsewhere() -> None:
    touched = Touched(GRIPPER)
    assert {touched.see(0.02, tick * TICK) for tick in range(100)} == {0.0}


@pytest.mark.parametrize("state", [None, msgspec.structs.replace(standing(START_NS), velocity=())])  # type: ignore[type-var]  # a Struct
def test_of_what_is_not_known_every_target_brakes(state: RobotState | None) -> None:
    release, motions = Release(STRETCH_3), tuple(Motion(place, 0.1) for place in HOME)
    for tick in range(20):
        motions = release.step(motions, state, TICK_S, START_NS + tick * TICK)
    assert [motion.velocity for motion in motions] == [0.0] * len(motions)
    assert motions[LIFT].position > HOME[LIFT]
    assert all(0.0 <= motion.position - place < 0.05 for motion, place in zip(motions, HOME, strict=True))


def test_the_next_stop_begins_anew() -> None:
    touched = Touched()
    touched.see(0.5, 0)
    touched.see(0.5, STANDS_NS)  # too far away to be believed
    touched.release.forget()
    touched.see(-0.05, 2 * STANDS_NS)
    assert touched.see(-0.05, 3 * STANDS_NS) < 0.0


# --- the way back

QUARTER_S = 0.25  # a binary fraction: sums of it are exact


def went(v_mps: float = 0.2) -> RobotState:
    """The state of a robot that drives."""
    return moving(START_NS, HOME, ZEROS, v_mps)


def steps(trail: Trail, dt_s: float = QUARTER_S) -> int:
    """In how many steps the way is gone back."""
    number = 0
    while trail.back(dt_s) is not None:
        number += 1
        assert number < 1000
    return number


@pytest.mark.parametrize(("noted", "kept"), [(1, 1), (3, 3), (4, 4), (5, 4), (9, 4)])
def test_a_way_of_exactly_a_second_is_kept_and_of_a_longer_one_its_end(noted: int, kept: int) -> None:
    trail = Trail()
    for number in range(noted):
        trail.note(went(0.1 + 0.01 * number), QUARTER_S)
    first = trail.back(QUARTER_S)
    assert first is not None
    assert first.base_v_mps == pytest.approx(-SHARE * (0.1 + 0.01 * (noted - 1)))
    assert 1 + steps(trail) == kept / SHARE


def test_one_step_that_is_longer_than_a_second_is_a_way_and_of_two_the_last_is_kept() -> None:
    trail = Trail()
    for _ in range(2):
        trail.note(went(), 2.0)
        assert trail
        assert steps(Trail()) == 0
    assert steps(trail, 1.0) == 2.0 / SHARE


def test_no_time_is_no_way() -> None:
    trail = Trail()
    trail.note(went(), 0.0)
    assert not trail


def test_what_was_forgotten_in_the_middle_of_a_step_leaves_nothing_of_it() -> None:
    trail = Trail()
    for _ in range(4):
        trail.note(went(), QUARTER_S)
    trail.back(QUARTER_S)
    trail.forget()
    assert steps(trail) == 0
    for _ in range(4):
        trail.note(went(), QUARTER_S)
    assert steps(trail) == 4 / SHARE


def test_a_way_back_is_owed_after_a_touch_where_there_is_a_way_and_it_was_no_false_alarm() -> None:
    way = WayBack(STRETCH_3)
    assert not way.begin(0, is_false_alarm=False), "nobody was touched"
    way.touch()
    assert not way.begin(0, is_false_alarm=False), "it has not moved"
    assert not way.is_touch
    way.note(went(), QUARTER_S)
    way.touch()
    assert not way.begin(0, is_false_alarm=True)
    way.touch()
    assert not way.begin(0, is_false_alarm=False), "with the false alarm its way is forgotten"
    way.note(went(), QUARTER_S)
    way.touch()
    assert way.begin(0, is_false_alarm=False)


def test_a_false_alarm_on_the_way_back_leaves_the_rest_of_it_owed() -> None:
    way = WayBack(STRETCH_3)
    way.note(went(), QUARTER_S)
    way.touch()
    assert way.begin(0, is_false_alarm=False)
    assert way.step(QUARTER_S) is not None
    assert way.begin(0, is_false_alarm=True)
    assert [way.step(QUARTER_S) is None for _ in range(4)] == [False, False, False, True]
    assert not way.begin(0, is_false_alarm=False), "it is at its end"


class Follower(Story):
    """A guard whose robot goes exactly as it is told, and measures so while it is seen."""

    def __init__(self) -> None:
        super().__init__()
        self.position: tuple[float, ...] = HOME
        self.x_m, self.is_seen, self.seems_faster = 0.0, True, 1.0

    def go(self, ticks: int, position: tuple[float, ...] | None = None, v: float = 0.0) -> list[JointCommand]:
        outs = []
        for _ in range(ticks):
            if position is not None:
                self.send(position=position, v=v)
            self.now_ns += TICK
            self.machine.check_monitors(self.now_ns)
            out = self.machine.tick(self.now_ns)
            assert out is not None
            velocity = tuple((b - a) / TICK_S for a, b in zip(self.position, out.position, strict=True))
            self.position, self.x_m = out.position, self.x_m + out.base_v_mps * TICK_S
            if self.is_seen:
                v_mps = out.base_v_mps * self.seems_faster
                state = moving(self.now_ns, out.position, velocity, v_mps, 0.0, (self.x_m, 0.0, 0.0))
                self.machine.update_state(state)
            outs.append(out)
        return outs

    def say(self, depth: str, **more: Any) -> None:
        words = msgspec.structs.replace(interrupt(depth), **more)  # type: ignore[type-var]  # a Struct
        self.now_ns += MS
        assert self.machine.interrupt(words, self.now_ns, self.now_ns) is None

    def after_pain(self) -> list[JointCommand]:
        """What the motors are asked for from the go-on after a pain until the way back is at its end."""
        self.say("stop", is_pain=True)
        self.go(100)
        self.say("resume")
        outs: list[JointCommand] = []
        while self.machine.mode == "retreating":
            outs += self.go(1)
            is_held = self.machine.report().held_ns != 0
            assert is_held is (self.machine.mode != "retreating"), "on its way back it moves"
            assert len(outs) < 1000
        return outs


def test_on_the_way_back_each_joint_goes_at_a_quarter_of_its_speed_and_the_gripper_not_at_all() -> None:
    follower = Follower()
    there = list(HOME)
    there[LIFT], there[GRIPPER] = HOME[LIFT] + 0.5, HOME[GRIPPER] - 0.03
    follower.go(100, tuple(there))
    outs = follower.after_pain()
    heights = [out.position[LIFT] for out in outs]
    speeds = [(before - after) / TICK_S for before, after in pairwise(heights)]
    assert max(speeds) == pytest.approx(SHARE * STRETCH_3.joints[LIFT].speed)
    assert min(speeds) >= 0.0
    assert 0.08 < heights[0] - heights[-1] < 0.13
    assert {out.position[GRIPPER] for out in outs} == {there[GRIPPER]}


def test_on_the_way_back_the_wheels_go_at_a_quarter_of_their_limit_at_most() -> None:
    follower = Follower()
    follower.seems_faster = 2.0  # as a robot that was pushed
    follower.go(100, HOME, 0.3)
    speeds = [out.base_v_mps for out in follower.after_pain()]
    assert min(speeds) == pytest.approx(-SHARE * STRETCH_3.base.wheel_speed_mps)
    assert follower.machine.reason == sentence("guard.moved_back")


def test_time_in_which_the_robot_is_not_seen_is_no_part_of_its_way() -> None:
    def back_s(unseen_ticks: int) -> float:
        follower = Follower()
        follower.go(10, HOME, 0.2)
        follower.is_seen = False
        follower.go(unseen_ticks)
        follower.is_seen = True
        return len(follower.after_pain()) * TICK_S

    assert back_s(35) == pytest.approx(back_s(20), abs=0.2), "only what is seen counts"
