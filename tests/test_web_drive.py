"""From what a person holds to a joint command: no jump, within limits, speeds as asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridges.web import drive
from bridges.web.wire import Drive
from nodes.stretch import STRETCH_3
from runtime.msgs import JOINTS

HERE = (0.5, 0.1, 0.0, -0.5, 0.0, 0.05, 0.0, -0.4)
STILL = (0.0,) * 8
LIFT = JOINTS.index("lift")


def test_nothing_held_asks_for_where_the_robot_is() -> None:
    command = drive.command(Drive(), STRETCH_3, HERE, STILL)
    assert command.position == HERE
    assert (command.base_v_mps, command.base_w_radps) == (0.0, 0.0)


def test_taking_over_a_moving_joint_lets_it_come_to_rest_ahead_and_never_pulls_it_back() -> None:
    velocity = (0.12, *STILL[1:])
    lift = drive.command(Drive(), STRETCH_3, HERE, velocity).position[LIFT]
    assert HERE[LIFT] < lift < HERE[LIFT] + 0.03


def test_driving_is_scaled_by_the_preset() -> None:
    assert drive.command(Drive(ahead=1.0, scale=0.5), STRETCH_3, HERE, STILL).base_v_mps == pytest.approx(0.15)
    assert drive.command(Drive(left=-1.0, scale=1.0), STRETCH_3, HERE, STILL).base_w_radps == pytest.approx(-0.8)


def test_a_slider_goes_to_its_goal_and_not_beyond() -> None:
    near = drive.command(Drive(goals={"lift": 0.501}), STRETCH_3, HERE, STILL)
    far = drive.command(Drive(goals={"lift": 1.0}), STRETCH_3, HERE, STILL)
    assert near.position[LIFT] == pytest.approx(0.501)
    assert HERE[LIFT] < far.position[LIFT] < 0.55


@given(
    jog=st.dictionaries(st.sampled_from(JOINTS), st.floats(-1, 1)),
    goals=st.dictionaries(st.sampled_from(JOINTS), st.floats(allow_nan=False, allow_infinity=False)),
    scale=st.floats(0, 1),
)
def test_a_command_is_always_within_the_ranges(jog: dict[str, float], goals: dict[str, float], scale: float) -> None:
    command = drive.command(Drive(jog=jog, goals=goals, scale=scale), STRETCH_3, HERE, STILL)
    for value, joint in zip(command.position, STRETCH_3.joints, strict=True):
        assert joint.lowest <= value <= joint.highest


def test_names_that_are_no_joints_are_found() -> None:
    assert drive.unknown_joints(Drive(jog={"tail": 1.0, "lift": 1.0}), STRETCH_3.joints) == ["tail"]
