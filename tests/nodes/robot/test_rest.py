from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest

from nodes.msgs import JOINTS, RobotState
from nodes.robot.rest import is_at_rest, is_still


def measured(velocity: tuple[float, ...] = (0.0,) * 8) -> RobotState:
    still = (0.0,) * len(velocity)
    return RobotState(
        read_ns=0, position=still, velocity=velocity, effort=still, base_x_m=0.0, base_y_m=0.0,
        base_heading_rad=0.0, base_v_mps=0.0, base_w_radps=0.0,
    )  # fmt: skip


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(("key", "still"), [("base_v_mps", 0.005), ("base_vy_mps", 0.005), ("base_w_radps", 0.02)])
def test_a_base_is_at_rest_up_to_its_own_speed_and_no_further(key: str, still: float, sign: float) -> None:
    assert is_at_rest(msgspec.structs.replace(cast(Any, measured()), **{key: sign * still}))
    assert not is_at_rest(msgspec.structs.replace(cast(Any, measured()), **{key: sign * (still + 1e-4)}))


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("place", range(len(JOINTS)))
def test_joints_that_slide_are_measured_in_metres_and_others_in_radians(place: int, sign: float) -> None:
    still = 0.005 if JOINTS[place] in ("lift", "arm", "gripper") else 0.02
    for speed, rests in ((still, True), (still + 1e-4, False)):
        velocity = tuple(sign * speed if place == at else 0.0 for at in range(len(JOINTS)))
        assert is_at_rest(measured(velocity)) is rests
        assert is_still(JOINTS[place], sign * speed) is rests


def test_joints_without_names_turn() -> None:
    state = measured((0.02, 0.0))
    assert is_at_rest(state)
    assert is_at_rest(state, ("waist", "elbow"))
    assert not is_at_rest(state, ("lift", "elbow"))
