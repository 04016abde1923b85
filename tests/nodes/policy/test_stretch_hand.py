"""The hand of a Stretch: what it is told to do in space is what the kinematics say of the joints that do it."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.msgs import JOINTS, JointVector, RobotState
from nodes.policy.stretch_hand import STRETCH_HAND
from nodes.robot.protocol import Twist
from nodes.stretch.limits import STOW, STRETCH_3
from tests.support.sentences import sentence

speeds = st.floats(-0.2, 0.2)
turns = st.floats(-0.8, 0.8)
positions = st.tuples(*(st.floats(joint.lowest, joint.highest) for joint in STRETCH_3.joints))
DT_S = 1e-3


def state_at(position: JointVector, x_m: float = 0.0) -> RobotState:
    """A robot at rest."""
    return RobotState(
        read_ns=0, position=position, velocity=(0.0,) * 8, effort=(0.0,) * 8, base_x_m=x_m, base_y_m=0.0,
        base_heading_rad=0.0, base_v_mps=0.0, base_w_radps=0.0,
    )  # fmt: skip


@given(positions, speeds, speeds, speeds, turns, turns)
def test_the_hand_moves_as_it_is_told_whatever_the_wrist_does(
    position: JointVector, ahead: float, left: float, up: float, pitch: float, yaw: float
) -> None:
    rates, base_mps = STRETCH_HAND.rates(position, Twist(ahead, left, up, pitch, yaw))
    later = tuple(value + rates.get(name, 0.0) * DT_S for name, value in zip(JOINTS, position, strict=True))
    before, after = STRETCH_HAND.point(position), STRETCH_HAND.point(later)
    moved = [(two - one) / DT_S for one, two in zip(before, after, strict=True)]
    assert moved[0] + base_mps == pytest.approx(ahead, abs=2e-3)
    assert moved[1:] == pytest.approx([left, up], abs=2e-3)


def test_the_way_to_a_thing_goes_up_first_and_then_over_it() -> None:
    thing = (0.3, -0.6, 0.6)
    low = STRETCH_HAND.above(state_at(STOW), thing)
    assert low.base_v_mps == 0.0
    assert set(low.goals) == {"lift", "head_pan", "head_tilt"}
    high = list(STOW)
    high[JOINTS.index("lift")] = low.goals["lift"]
    over = STRETCH_HAND.above(state_at(tuple(high)), thing)
    assert over.base_v_mps > 0.1
    arrived = tuple(over.goals.get(name, value) for name, value in zip(JOINTS, high, strict=True))
    x, y, z = STRETCH_HAND.point(arrived)
    assert (x, y) == pytest.approx((0.0, -0.6), abs=1e-6)
    assert z > 0.68
    assert STRETCH_HAND.above(state_at(arrived, x_m=0.3), thing).base_v_mps == 0.0


def test_what_no_arm_reaches_is_said() -> None:
    for thing in ((0.0, 0.6, 0.6), (0.0, -2.0, 0.6), (0.0, -0.6, 50.0)):
        assert sentence("policy.out_of_the_arms_reach") in STRETCH_HAND.above(state_at(STOW), thing).why_not


CUP, TALL_M = (0.0, -0.6, 0.62), 0.1


def follow(state: RobotState, goals: dict[str, float], **more: bool) -> RobotState:
    """The robot once it is where the goals say."""
    position = tuple(goals.get(name, value) for name, value in zip(JOINTS, state.position, strict=True))
    return msgspec.structs.replace(state, position=position, **more)  # type: ignore[type-var]  # a Struct, but not to type checkers


def test_a_thing_is_taken_from_above_down_closed_and_up_and_nothing_is_remembered() -> None:
    state, heights_m, openings_m = state_at(STOW), [], []
    for _ in range(6):
        step = STRETCH_HAND.grasp(state, CUP, TALL_M)
        assert (step.why_not, step.base_v_mps) == ("", 0.0)
        state = follow(state, step.goals)
        is_closed = step.goals.get("gripper") == 0.0
        state = follow(state, {"gripper": 0.05} if is_closed else {}, is_grasping=state.is_grasping or is_closed)
        heights_m.append(round(STRETCH_HAND.point(state.position)[2], 2))
        openings_m.append(round(state.position[JOINTS.index("gripper")], 2))
    over_m = heights_m[1]
    assert over_m > 0.7
    assert heights_m[2:] == [0.63, 0.63, pytest.approx(over_m, abs=0.12), pytest.approx(over_m, abs=0.12)]
    assert openings_m[1:] == [0.12, 0.12, 0.05, 0.05, 0.05]  # open above it, open going down, then closed for good


def test_fingers_that_closed_on_nothing_say_so_and_those_that_hold_something_are_not_opened() -> None:
    over = follow(state_at(STOW), {"lift": 1.0})
    down = follow(over, STRETCH_HAND.above(over, CUP).goals)
    low = follow(down, STRETCH_HAND.grasp(down, CUP, TALL_M).goals)
    empty = follow(low, {"gripper": 0.0})
    assert sentence("policy.nothing_between_fingers") in STRETCH_HAND.grasp(empty, CUP, TALL_M).why_not
    carrying = follow(over, {"gripper": 0.05}, is_grasping=True)
    assert "gripper" not in STRETCH_HAND.above(carrying, CUP).goals
    assert STRETCH_HAND.above(carrying, CUP).goals["lift"] > STRETCH_HAND.above(over, CUP).goals["lift"]


def test_what_is_held_is_let_go_of_over_the_place_and_not_on_the_way() -> None:
    bin_ = (0.3, -0.6, 0.25)
    over = follow(state_at(STOW), {"lift": 1.0, "gripper": 0.05}, is_grasping=True)
    way = STRETCH_HAND.place(over, bin_, 0.3)
    assert way.base_v_mps > 0.1
    assert "gripper" not in way.goals
    there = follow(state_at(STOW, x_m=0.3), {"lift": 1.0, "gripper": 0.05, **way.goals}, is_grasping=True)
    assert STRETCH_HAND.place(there, bin_, 0.3).goals == {"gripper": 0.115}
    driving = msgspec.structs.replace(there, base_v_mps=0.2)  # type: ignore[type-var]  # a Struct, but not to type checkers
    assert "gripper" not in STRETCH_HAND.place(driving, bin_, 0.3).goals
    empty = follow(there, {"gripper": 0.0}, is_grasping=False)
    assert "nothing in the hand" in STRETCH_HAND.place(empty, bin_, 0.3).why_not
