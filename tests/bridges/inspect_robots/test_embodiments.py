"""Inspect Robots finds our robot conformant, and what does not fit it moves nothing."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import numpy as np
import onnx
import pytest

pytest.importorskip("inspect_robots", reason="needs the extra inspect")

from inspect_robots import Action, ActionSemantics, Box, Observation, PolicyInfo, Scene
from inspect_robots.compat import check_compatibility
from inspect_robots.conformance import check_embodiment

from bridges.inspect_robots.embodiments import RunningRobot, SimulatedRobot
from bridges.inspect_robots.policies import ModelPolicy, SeatPolicy
from bridges.inspect_robots.tasks import clear
from nodes.msgs import JointCommand
from nodes.seats.attached_env import AttachedEnv
from nodes.seats.command import main
from nodes.stretch.limits import STRETCH_3
from runtime.errors import PolyrhythmError, UserError
from tests.support.guard.driving import driver_and_guard
from tests.support.models.model_files import linear_model, write_model
from tests.support.running import Runs
from tests.support.sentences import pattern, sentence

ALONE = (
    "planner,vlm,policy,reflex,interrupt_records,ladder,shadow_compare,collaborator,recorder,wrist_camera,room_camera"
)

GRAPH = (
    driver_and_guard()
    + """
[nodes.policy]
use     = "tests.support.guard.guarded_nodes:StillPolicy"
process = "robot"

[nodes.witness]
use     = "tests.support.guard.guarded_nodes:Witness"
process = "robot"

[seats.policy]
holder = "policy"
"""
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


@pytest.mark.processes
def test_a_graph_that_runs_is_commanded_through_its_guard_until_somebody_else_takes_the_seat(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    launch = tmp_path / "standing.toml"
    launch.write_text(GRAPH)
    with pytest.raises(PolyrhythmError, match=pattern("runtime.no_graph_runs")), Runs(monkeypatch):
        RunningRobot()
    with Runs(monkeypatch) as runs:
        run = runs.start(launch)
        held = RunningRobot(by="Ann")
        assert check_embodiment(held.info).issues == ()
        assert not held.info.is_simulated
        first = held.reset(Scene("a", "Lift it."))
        up = np.array([1.0, *first.state["joint_pos"][1:]])
        for _ in range(6):
            done = held.step(Action(up))
        assert not done.terminated, "people judge"
        assert done.info["guard"] in ("armed", "moving")
        assert first.state["joint_pos"][0] < done.observation.state["joint_pos"][0] < 1.0
        assert done.info["let_through"][0] < 1.0
        with pytest.raises(UserError, match=pattern("sim.wrong_joints", number=14)):
            held.step(Action(np.zeros(14)))

        other = AttachedEnv(by="Ben")
        with pytest.raises(UserError, match=pattern("bridges.seat_not_taken")):
            other.step()
        now = other.reset()

        def go_on() -> None:
            for _ in range(20):  # it hears of it within one of them
                held.step(Action(up))

        with pytest.raises(PolyrhythmError, match=pattern("bridges.seat_is_lost", holder="loop-Ben")):
            go_on()
        held.close()  # gives back nothing that it does not hold
        still = JointCommand(position=now.state.position)
        assert other.step(still).let_through is not None
        other.close()
        assert main(["list", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["policy"]["holder"] == "policy", "it was answered before the end"

        other.reset()
        os.kill(robot := run.states()["robot"].pid, signal.SIGSTOP)
        try:
            monkeypatch.setattr("nodes.seats.attached_env.ANSWER_S", 0.3)
            other.close()
        finally:
            os.kill(robot, signal.SIGCONT)
        assert sentence("bridges.seat_not_answered", s="0.3", who="loop-Ben") in caplog.text
