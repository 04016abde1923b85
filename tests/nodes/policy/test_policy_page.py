"""docs/policy.md: its policy moves a robot past the guard; its trainings make models that the ONNX policy loads."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest

from examples.train_from_recordings import linear
from nodes.guard.node import Guard
from nodes.policy.onnx.inputs import Felt
from nodes.policy.onnx.session import PolicySession
from nodes.robot.driver import Driver
from runtime import Node, Publisher, Simulation, every
from runtime.msgs import JOINTS, Action, Feedback, Image, RobotState, SeenObject, aimed_at

PAGE = Path(__file__).resolve().parents[3] / "docs" / "policy.md"


def block(number: int) -> str:
    return str(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[number])


class Eye(Node):
    """A camera that sees nothing but grey."""

    image = Publisher(Image, "head/image")

    @every(hz=10)
    def see(self) -> None:
        self.image.publish(
            Image(camera="head", captured_ns=self.clock.now_ns(), rgb=np.full((12, 16, 3), 128, np.uint8))
        )


def test_the_policy_of_the_page_turns_the_head_to_what_it_is_asked_to_act_on() -> None:
    room: dict[str, Any] = {"__name__": "my_robot.gaze"}
    exec(compile(block(0), str(PAGE), "exec"), room)
    sim = Simulation(
        Driver(robot="nodes.sim.kinematic:KinematicRobot"), Guard(arm="auto", memory="run"), Eye(), room["Gaze"]()
    )
    states, answers = sim.record(Driver.state), sim.record(room["Gaze"].feedback)
    sim.run(seconds=1.0)
    assert answers == [], "it began before it was asked"
    cup = SeenObject(
        label="cup", colour="red", x_m=0.0, y_m=-0.6, z_m=0.7, width_m=0.1, height_m=0.1, u_px=0.0, v_px=0.0
    )
    sim.publish("action", Action(id="a", skill="look", arguments=aimed_at(cup)))
    sim.run(seconds=5.0)
    assert answers == [Feedback(action_id="a", status="success")]
    assert isinstance(states[-1], RobotState)
    assert states[-1].position[JOINTS.index("head_pan")] == pytest.approx(-np.pi / 2, abs=0.05)
    sim.close()


def test_the_linear_training_makes_a_model_that_the_onnx_policy_loads(tmp_path: Path) -> None:
    wave = np.sin(np.arange(200) / 30.0)
    feels, acts = np.zeros((200, 11), np.float32), np.zeros((200, 10), np.float32)
    feels[:, 0], acts[:, 0] = 0.5 + 0.1 * wave, 0.6 + 0.1 * wave
    (tmp_path / "data" / "chunk-000").mkdir(parents=True)
    rows = arrow.table({"observation.state": feels.tolist(), "action": acts.tolist()})
    parquet.write_table(rows, tmp_path / "data" / "chunk-000" / "file-000.parquet")
    model = tmp_path / "policy.onnx"
    linear.main(str(tmp_path), str(model))
    session = PolicySession(
        model.read_bytes(), name="cloned", width_px=160, height_px=120, providers=("CPUExecutionProvider",)
    )
    chunk = session.run({"image": np.zeros((120, 160, 3), np.uint8)}, Felt((0.55, *[0.0] * 7))).chunk
    assert chunk.shape == (16, 10)
    assert chunk[0, 0] == pytest.approx(0.65, abs=0.01), "it has not learned to go 10 cm higher than it is"


def test_the_recurrent_training_makes_one_too(tmp_path: Path) -> None:
    pytest.importorskip("torch")  # it is no part of `dev`; `make interop` runs it always
    pytest.importorskip("onnxscript")
    feels, acts = np.full((60, 11), 0.5, np.float32), np.full((60, 10), 0.5, np.float32)
    (tmp_path / "data" / "chunk-000").mkdir(parents=True)
    rows = arrow.table({"observation.state": feels.tolist(), "action": acts.tolist()})
    parquet.write_table(rows, tmp_path / "data" / "chunk-000" / "file-000.parquet")
    model = tmp_path / "recurrent.onnx"
    import_module("examples.train_from_recordings.recurrent").main(str(tmp_path), str(model))
    session = PolicySession(
        model.read_bytes(), name="recurrent", width_px=160, height_px=120, providers=("CPUExecutionProvider",)
    )
    answer = session.run({}, Felt((0.5,) * 8))
    assert answer.chunk.shape == (16, 10)
    assert len(answer.memory) == 4 * 32
