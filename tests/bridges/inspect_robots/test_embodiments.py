"""Inspect Robots finds our robot conformant, and what does not fit it moves nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

pytest.importorskip("inspect_robots", reason="needs the extra inspect")

from inspect_robots import Action, ActionSemantics, Box, Observation, PolicyInfo, Scene
from inspect_robots.compat import check_compatibility
from inspect_robots.conformance import check_embodiment

from bridges.inspect_robots.embodiments import SimulatedRobot
from bridges.inspect_robots.policies import ModelPolicy, SeatPolicy
from bridges.inspect_robots.tasks import clear
from nodes.stretch.limits import STRETCH_3
from runtime.errors import PolyrhythmError, UserError
from tests.support.models.model_files import linear_model, write_model
from tests.support.sentences import pattern

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


def test_a_model_s_file_is_a_policy_in_its_own_units_and_what_no_joint_can_follow_is_refused(tmp_path: Path) -> None:
    place = write_model(tmp_path, linear_model({"joints": (1, 8)}, bias=50.0))
    seen = Observation(state={"joint_pos": np.zeros(8), "joint_vel": np.zeros((8, 1))}, instruction="Hold still.")
    with pytest.raises(PolyrhythmError, match=pattern("bridges.inspect_out_of_range")):
        ModelPolicy(place).act(seen)
    model = onnx.load(place)
    onnx.helper.set_model_props(model, {"units": "all=percent", "step_s": "0.1"})
    onnx.save(model, place)
    chunk = ModelPolicy(place).act(seen)
    middle = [(joint.lowest + joint.highest) / 2 for joint in STRETCH_3.joints]
    assert chunk.actions[0].data == pytest.approx(middle, abs=1e-5)
    assert chunk.control_hz == 10.0
    asks = write_model(tmp_path, linear_model({"joints": (1, 8), "skill": (1, 7)}))
    with pytest.raises(UserError, match="wants skill"):
        ModelPolicy(asks)


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
