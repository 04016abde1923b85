"""Claims about `nodes/perception/hands.py`, on pictures of the simulated table."""

from __future__ import annotations

import math

import pytest

from nodes.perception.hands import find_palm
from nodes.perception.point_cloud import Shot
from nodes.sim.camera import WorldView, model_of
from nodes.sim.messages import BodyPart
from nodes.sim.robot import SimRobot
from nodes.stretch.body import BODY

TABLE_Z_M = 0.50
PALM_HALF_M = 0.016
VIEW = WorldView(model_of(), "head", 160, 120)


def palm(seed: int, hand: BodyPart | None) -> tuple[float, float, float] | None:
    robot = SimRobot(seed, head_pan_rad=-math.pi / 2, head_tilt_rad=-0.6)
    robot.start(0)
    if hand is not None:
        robot.move_part(hand)
    robot.advance(20_000_000)
    rgb, depth_m = VIEW.see(robot.world())
    pose = BODY.head_camera(robot.read(20_000_000))
    return find_palm(rgb, Shot(depth_m, VIEW.focal_px, *pose), table_z_m=TABLE_Z_M)


def held_out(x_m: float, z_m: float = 0.66) -> BodyPart:
    return BodyPart(part="hand", x_m=x_m, y_m=-0.62, z_m=z_m, yaw_rad=math.pi / 2)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("x_m", [-0.4, -0.1, 0.2, 0.38])
def test_a_palm_over_the_table_is_found_where_it_is(seed: int, x_m: float) -> None:
    found = palm(seed, held_out(x_m))
    assert found is not None
    assert found[:2] == pytest.approx((x_m, -0.62), abs=0.05)
    assert found[2] == pytest.approx(0.66 + PALM_HALF_M, abs=0.01)


@pytest.mark.parametrize("seed", range(6))
def test_a_table_without_a_hand_shows_none_whatever_stands_there(seed: int) -> None:
    assert palm(seed, None) is None


def test_a_hand_that_rests_on_the_table_waits_for_nothing() -> None:
    assert palm(0, held_out(0.0, z_m=TABLE_Z_M + 0.02)) is None
