"""From what a person holds to a joint command: no jump, within limits, speeds as asked."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridges.web.console.driving import teleop as drive
from bridges.web.http.wire import Drive, PointedPlace
from nodes.msgs import JOINTS, RobotState
from nodes.policy.stretch_hand import STRETCH_HAND
from nodes.stretch.limits import STRETCH_3, STRETCH_4
from tests.support.sentences import sentence

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


def test_only_an_omni_base_is_driven_aside() -> None:
    omni = drive.command(Drive(aside=-1.0, scale=0.5), STRETCH_4, HERE[:6], STILL[:6])
    assert (omni.base_v_mps, omni.base_w_radps, omni.base_vy_mps) == pytest.approx((0.0, 0.0, -0.15))
    assert drive.command(Drive(aside=1.0), STRETCH_3, HERE, STILL).base_vy_mps == 0.0
    assert Drive(aside=0.1).is_held


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


def robot_at(x_m: float = 0.0, y_m: float = 0.0, heading_rad: float = 0.0) -> RobotState:
    return RobotState(
        read_ns=0, position=HERE, velocity=STILL, effort=STILL, base_x_m=x_m, base_y_m=y_m,
        base_heading_rad=heading_rad, base_v_mps=0.0, base_w_radps=0.0,
    )  # fmt: skip


def test_hand_arrows_move_base_arm_and_lift() -> None:
    wanted = Drive(hand={"ahead": 1.0, "left": -1.0, "up": 1.0}, scale=0.5)
    aim = drive.aim(wanted, STRETCH_3, STRETCH_HAND, robot_at(), None)
    command = drive.command(wanted, STRETCH_3, HERE, STILL, aim)
    assert command.base_v_mps == pytest.approx(0.5 * drive.HAND_MPS)
    assert command.position[LIFT] > HERE[LIFT]
    assert command.position[JOINTS.index("arm")] > HERE[JOINTS.index("arm")]


@given(
    x_m=st.floats(-2, 2),
    y_m=st.floats(-2, 2),
    heading_rad=st.floats(-3.1, 3.1),
    scale=st.sampled_from((0.15, 0.5, 1.0)),
)
def test_the_way_to_a_spot_on_the_floor_ends_there(x_m: float, y_m: float, heading_rad: float, scale: float) -> None:
    x, y, heading, dt_s = 0.0, 0.0, heading_rad, 0.05
    for _ in range(6000):
        wanted = Drive(to=PointedPlace(x_m=x_m, y_m=y_m), scale=scale)
        aim = drive.aim(wanted, STRETCH_3, STRETCH_HAND, robot_at(x, y, heading), None)
        if (aim.v_mps, aim.w_radps) == (0.0, 0.0):
            break
        assert abs(aim.v_mps) <= scale * STRETCH_3.base.wheel_speed_mps
        heading += aim.w_radps * dt_s
        x, y = x + aim.v_mps * math.cos(heading) * dt_s, y + aim.v_mps * math.sin(heading) * dt_s
    assert math.dist((x, y), (x_m, y_m)) < 0.05


def test_a_thing_out_of_reach_is_said_and_nothing_moves() -> None:
    wanted = Drive(to=PointedPlace(x_m=0.0, y_m=2.0, label="cup"))
    aim = drive.aim(wanted, STRETCH_3, STRETCH_HAND, robot_at(), (0.0, 2.0, 0.6))
    assert sentence("bridges.out_of_reach") in aim.why_not
    assert drive.command(wanted, STRETCH_3, HERE, STILL, aim).position == HERE
