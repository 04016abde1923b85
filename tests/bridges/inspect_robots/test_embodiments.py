"""Inspect Robots finds our robot conformant, and what does not fit it moves nothing."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("inspect_robots", reason="needs the extra inspect")

from inspect_robots import Action, ActionSemantics, Box, PolicyInfo, Scene
from inspect_robots.compat import check_compatibility
from inspect_robots.conformance import check_embodiment

from bridges.inspect_robots.embodiments import SimulatedRobot
from bridges.inspect_robots.policies import SeatPolicy
from bridges.inspect_robots.tasks import clear
from runtime.errors import UserError

ALONE = (
    "planner,vlm,policy,reflex,interrupt_records,ladder,shadow_compare,collaborator,recorder,wrist_camera,room_camera"
)


@pytest.fixture(scope="module")
def robot() -> SimulatedRobot:
    return SimulatedRobot(without=ALONE)


def test_its_declarations_are_conformant_and_it_goes_with_our_tasks(robot: SimulatedRobot) -> None:
    assert check_embodiment(robot.info).issues == ()
    seat = SeatPolicy()
    seat.bind(robot.info)
    assert check_compatibility(seat, robot, clear()).ok
    assert set(robot.reset(Scene("a", "Stand."), seed=1).images) == {"head"}
    robot.close()


def test_a_policy_for_two_arms_is_told_before_anything_moves(robot: SimulatedRobot) -> None:
    two = SeatPolicy()
    two.info = PolicyInfo("two_arms", Box((14,), semantics=ActionSemantics("joint_pos")))
    assert [issue.code for issue in check_compatibility(two, robot).errors] == ["action_dim"]


@pytest.mark.parametrize("data", [np.full(8, np.nan), np.zeros(14)])
def test_an_action_that_is_none_moves_nothing(
    robot: SimulatedRobot, data: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> None:
    before = robot.reset(Scene("a", "Stand."), seed=1)
    with pytest.raises(UserError):
        robot.step(Action(data))
    after = robot.step(Action(before.state["joint_pos"], {"idle": True}))
    assert np.allclose(after.observation.state["joint_pos"], before.state["joint_pos"], atol=1e-6)
    robot.close()
