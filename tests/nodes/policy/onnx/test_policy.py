"""The ONNX policy with a real model and a real ONNX Runtime session."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from nodes.models.onnx_file import Tensor
from nodes.msgs import Action, Feedback, Image, Interrupt, JointCommand, RobotState, SeenObject, Utterance, aimed_at
from nodes.policy.onnx.convention import convention_of
from nodes.policy.onnx.inputs import Felt, PolicyAnswer, PolicyModel, Wants
from nodes.policy.onnx.policy import OnnxPolicy
from nodes.policy.onnx.tensors import problems as tensor_problems
from nodes.robot.robot_from_launch import DEFAULT, load_limits
from runtime import Node, Publisher, Simulation, every
from runtime.errors import ParameterError
from runtime.launch.graph import NodeSpec
from runtime.launch.tables.seats_table import kind_of
from runtime.message import Stamped
from tests.support.models.model_files import linear_model, write_model
from tests.support.models.policy_model import STEPS, policy_model
from tests.support.sentences import sentence
from tests.support.standing import HOME, standing


@pytest.fixture
def model(tmp_path: Path) -> str:
    return write_model(tmp_path, policy_model())


class Robot(Node):
    """Stands still, and sees red in so many images."""

    state = Publisher(RobotState, "robot/state")
    image = Publisher(Image, "head/image")

    def __init__(self, images: int = 10_000) -> None:
        self.images = images

    @every(hz=50)
    def feel(self) -> None:
        self.state.publish(standing(self.clock.now_ns()))

    @every(hz=10)
    def see(self) -> None:
        if self.images > 0:
            self.images -= 1
            rgb = np.zeros((240, 320, 3), np.uint8)
            rgb[..., 0] = 255
            self.image.publish(Image(camera="head", captured_ns=self.clock.now_ns(), rgb=rgb))


def thing(label: str = "cup", x_m: float = 0.1) -> SeenObject:
    height_m = {"person": 1.7, "bottle": 0.17}.get(label, 0.1)
    return SeenObject(
        label=label, colour="red", x_m=x_m, y_m=-0.6, z_m=0.5, width_m=0.08, height_m=height_m, u_px=1.0, v_px=1.0
    )


def pick(ident: str = "a1", label: str = "cup") -> Action:
    return Action(id=ident, skill="pick", arguments=aimed_at(thing(label)))


class Story:
    def __init__(self, model: str, images: int = 10_000, **parameters: Any) -> None:
        self.policy = OnnxPolicy(model, **parameters)
        self.sim = Simulation(Robot(images), self.policy)
        self.commands: list[JointCommand] = self.sim.record(OnnxPolicy.command)
        self.feedback: list[Feedback] = self.sim.record(OnnxPolicy.feedback)
        self.published: list[Stamped[Any]] = []
        self.sim.observe(self.published.append)
        self.sim.publish("robot/state", standing(0))  # known before the first action comes


def test_both_inputs_reach_the_model_and_its_chunk_becomes_commands(model: str) -> None:
    story = Story(model)
    story.sim.publish("action", pick())
    story.sim.run(seconds=1.0)
    assert len(story.commands) >= 18
    last = story.commands[-1]
    assert last.base_v_mps == pytest.approx(0.1, abs=1e-3)
    assert last.base_w_radps == pytest.approx(0.0, abs=1e-3)
    assert 0.31 <= last.position[0] <= 0.46, "between the first and the last step"
    assert last.position[1:] == pytest.approx(HOME[1:], abs=1e-6)
    assert story.feedback == [Feedback(action_id="a1", status="running")]


def test_commands_carry_the_age_of_the_image_behind_them(model: str) -> None:
    story = Story(model)
    story.sim.publish("action", pick())
    story.sim.run(seconds=1.0)
    command = [stamped for stamped in story.published if stamped.envelope.topic == "command"][-1]
    assert 0 < command.envelope.published_ns - command.envelope.begun_ns("image") <= 200_000_000
    assert command.envelope.provenance == f"model:{model}"


def test_a_learned_policy_is_a_model_on_its_seat_and_no_script(model: str) -> None:
    spec = NodeSpec("policy", OnnxPolicy, {"model": model})
    assert kind_of(spec) == "model"
    story = Story(model)
    story.sim.publish("action", pick())
    story.sim.run(seconds=0.2)
    feedback = next(stamped for stamped in story.published if stamped.envelope.topic == "feedback")
    assert feedback.envelope.provenance.startswith("model:")


def test_nothing_moves_before_the_first_action(model: str) -> None:
    story = Story(model)
    story.sim.run(seconds=1.0)
    assert story.commands == []


def test_without_need_of_an_action_it_acts_on_images_alone(model: str) -> None:
    story = Story(model, needs_action=False)
    story.sim.run(seconds=1.0)
    assert story.commands


def test_a_chunk_is_played_to_its_end_and_then_there_is_silence(model: str) -> None:
    story = Story(model, images=1)
    story.sim.publish("action", pick())
    story.sim.run(seconds=3.0)
    assert STEPS - 2 <= len(story.commands) <= STEPS
    lifts = [command.position[0] for command in story.commands]
    assert np.diff(lifts) == pytest.approx(np.full(len(lifts) - 1, 0.01), abs=1e-6)


def test_a_chunk_older_than_its_age_limit_is_not_played(model: str) -> None:
    story = Story(model, images=1, max_chunk_age_s=0.2)
    story.sim.publish("action", pick())
    story.sim.run(seconds=3.0)
    assert len(story.commands) <= 5


def test_a_stop_flushes_the_chunk_until_a_newer_image(model: str) -> None:
    story = Story(model, images=3)
    story.sim.publish("action", pick())
    story.sim.run(seconds=0.31)
    before = len(story.commands)
    story.sim.publish("interrupt", Interrupt(id="i", depth="stop", text="Ouch!", by="Ana"))
    story.sim.run(seconds=2.0)
    assert before > 0
    assert len(story.commands) == before


def recurrent(steps: int = 4) -> bytes:
    """Each answer's lift, in cm, is how many answers it remembers."""
    counts = np.zeros((6, 10), np.float32)
    counts[0, 0] = 0.01
    inputs = {"joints": (1, 8), "image": (1, 3, 12, 16), "memory": (1, 2, 3)}
    return linear_model(inputs, {"memory": counts}, steps=steps)


def test_a_recurrent_model_remembers_its_last_answer_until_a_stop_or_another_action(tmp_path: Path) -> None:
    story = Story(write_model(tmp_path, recurrent()), image_width_px=16, image_height_px=12)
    chunks = story.sim.record(OnnxPolicy.chunk)
    story.sim.publish("action", pick())
    story.sim.run(seconds=0.42)
    first = [chunk.position[0][0] for chunk in chunks]
    assert first == pytest.approx([0.01 * number for number in range(len(first))])
    assert len(first) >= 3
    story.sim.publish("interrupt", Interrupt(id="i", depth="stop", text="Ouch!", by="Ana"))
    story.sim.run(seconds=0.2)
    assert [chunk.position[0][0] for chunk in chunks[len(first) :]][:2] == pytest.approx([0.0, 0.01])
    before = len(chunks)
    story.sim.publish("action", Action(id="a2", skill="nod"))
    story.sim.run(seconds=0.2)
    assert [chunk.position[0][0] for chunk in chunks[before:]][:2] == pytest.approx([0.0, 0.01])


def test_memory_that_leads_nowhere_is_told_at_check() -> None:
    inputs = (Tensor("joints", "float", (1, 8)), Tensor("memory", "float", (1, 4)))
    chunk = Tensor("chunk", "float", (1, 4, 10))
    (one,) = tensor_problems(inputs, [chunk], width_px=16, height_px=12)
    assert one.endswith(sentence("policy.half_a_memory"))
    wide = (inputs[0], Tensor("memory", "float", (1, 1 << 17)))
    kept = Tensor("next_memory", "float", (1, 1 << 17))
    (two,) = tensor_problems(wide, [chunk, kept], width_px=16, height_px=12)
    assert two.endswith("expected 1 to 65536 numbers")
    open_ended = (inputs[0], Tensor("memory", "float", (1, None)))
    (three,) = tensor_problems(open_ended, [chunk, kept], width_px=16, height_px=12)
    assert three.endswith(sentence("policy.sizes_are_fixed"))


def test_a_replan_waits_for_the_next_action(model: str) -> None:
    story = Story(model)
    story.sim.publish("action", pick())
    story.sim.run(seconds=0.5)
    story.sim.publish("interrupt", Interrupt(id="i", depth="replan", text="Coffee", by="Ana"))
    story.sim.run(seconds=0.01)
    before = len(story.commands)
    story.sim.run(seconds=1.0)
    assert len(story.commands) == before
    story.sim.publish("action", pick("a2"))
    story.sim.run(seconds=1.0)
    assert len(story.commands) > before


@pytest.mark.parametrize(
    ("action", "why"),
    [
        (Action(id="x", skill="pick"), sentence("policy.needs", skill="pick", what="thing")),
        (
            Action(id="x", skill="place", arguments=aimed_at(None, "place")),
            sentence("policy.needs", skill="place", what="place"),
        ),
        (Action(id="x", skill="throw"), "'throw' is no skill"),
        (Action(id="x", skill="look", text="y" * 201), "201 characters"),
        (Action(id="x", skill="pick", arguments=aimed_at(thing("person"))), "m large"),
        (Action(id="x", skill="pick", arguments=aimed_at(thing(x_m=9.0))), "m away"),
    ],
)
def test_an_action_outside_the_allow_list_is_refused_with_a_target_or_without(
    model: str, action: Action, why: str
) -> None:
    story = Story(model)
    story.sim.publish("action", action)
    story.sim.run(seconds=0.5)
    assert story.commands == []
    (told,) = story.feedback
    assert (told.action_id, told.status) == ("x", "failure")
    assert why in told.why


def test_without_the_robot_s_state_nothing_that_has_a_place_is_taken_on(model: str) -> None:
    sim = Simulation(OnnxPolicy(model))
    feedback = sim.record(OnnxPolicy.feedback)
    sim.publish("action", pick())
    sim.run(seconds=0.1)
    assert [told.why for told in feedback] == [sentence("policy.state_is_unknown")]


def test_a_risky_action_waits_for_a_person_s_yes(model: str) -> None:
    story = Story(model)
    said = story.sim.record(OnnxPolicy.said)
    story.sim.publish("action", pick("b1", "bottle"))
    story.sim.run(seconds=0.3)
    assert [utterance.text for utterance in said] == ["Shall I pick the red bottle? Please answer."]
    assert [told.code for told in story.feedback] == ["consent"]
    assert story.commands == []
    story.sim.publish("said", Utterance(speaker="robot", text="yes"), source="vlm")
    story.sim.publish("action", pick("b2", "bottle"))
    story.sim.run(seconds=0.3)
    assert story.commands == [], "no model says yes to itself"
    story.sim.publish("heard", Utterance(speaker="Ana", text="Yes, please."))
    story.sim.publish("action", pick("b3", "bottle"))
    story.sim.run(seconds=0.5)
    assert story.commands != []


def test_a_hold_ends_the_playing(model: str) -> None:
    story = Story(model)
    story.sim.publish("action", pick())
    story.sim.run(seconds=0.5)
    story.sim.publish("action", Action(id="a2", skill="hold"))
    story.sim.run(seconds=0.01)
    before = len(story.commands)
    story.sim.run(seconds=1.0)
    assert len(story.commands) == before
    assert story.feedback[-1] == Feedback(action_id="a2", status="success", why="holding still")


@pytest.mark.parametrize("bias", [float("nan"), float("inf")])
def test_output_that_is_not_finite_is_dropped_and_ends_the_action_once_nothing_was_played_for_long(
    tmp_path: Path, bias: float, caplog: pytest.LogCaptureFixture
) -> None:
    story = Story(write_model(tmp_path, policy_model(bias=bias)))
    story.sim.publish("action", pick())
    story.sim.run(seconds=2.5)
    assert story.feedback[1:] == []  # a drop is a count and a line
    story.sim.run(seconds=2.5)
    why = f"{sentence('policy.no_answer_of_model', seconds='3')}: {sentence('policy.not_finite')}"
    assert story.feedback[1:] == [Feedback(action_id="a1", status="failure", why=why)]
    assert story.commands == []
    assert caplog.text.count(f"dropped: {sentence('policy.not_finite')}") == 1


def test_a_model_in_other_units_moves_nothing_until_its_units_are_said(tmp_path: Path) -> None:
    model = write_model(tmp_path, linear_model({"joints": (1, 8)}, bias=50.0))
    story = Story(model)
    story.sim.publish("action", pick())
    story.sim.run(seconds=2.0)
    assert story.commands == []
    assert [one.status for one in story.feedback] == ["running", "failure"]
    assert sentence("policy.asks_out_of_range", what="lift to 50 (range 0 to 1.1)") in story.feedback[-1].why
    story = Story(model, units={"all": "percent"})
    story.sim.publish("action", pick())
    story.sim.run(seconds=2.0)
    middle = [(joint.lowest + joint.highest) / 2 for joint in load_limits(DEFAULT).joints]
    assert story.commands[-1].position[:8] == pytest.approx(middle, abs=1e-5)


def test_what_a_model_feels_and_says_is_in_its_units_and_comes_back_as_it_was() -> None:
    joints = load_limits(DEFAULT).joints
    units = {"all": "degrees", "lift": "percent", "gripper": "signed percent"}
    convention = convention_of(units, joints)
    assert convention is not None
    told = convention.told(Felt(HOME, previous=((*HOME, 0.1, 0.2),)))
    assert told.joints[0] == pytest.approx(100 * HOME[0] / 1.10)
    assert told.joints[5] == pytest.approx(200 * HOME[5] / 0.12 - 100)
    assert told.previous[0][8:] == (0.1, 0.2)
    back = convention.ours(PolicyAnswer(np.array(told.previous)), is_relative=False)
    assert back.chunk[0] == pytest.approx((*HOME, 0.1, 0.2))
    assert convention_of({"all": "rad"}, joints) is None


def test_a_file_that_says_its_rate_is_played_at_it_and_nonsense_is_told(tmp_path: Path) -> None:
    place = Path(write_model(tmp_path, policy_model()))
    for step_s, is_fine in (("0.1", True), ("fast", False), ("0", False)):
        model = onnx.load(place)
        onnx.helper.set_model_props(model, {"step_s": step_s})
        onnx.save(model, place)
        assert bool(OnnxPolicy(str(place)).problems()) is not is_fine
        if is_fine:
            story = Story(str(place))
            chunks = story.sim.record(OnnxPolicy.chunk)
            story.sim.publish("action", pick())
            story.sim.run(seconds=1.0)
            assert {chunk.step_s for chunk in chunks} == {0.1}


class Unsteady:
    """A model whose answers are not finite where `is_bad` says so of their number."""

    def __init__(self, model: PolicyModel, is_bad: Callable[[int], bool]) -> None:
        self.model, self.is_bad, self.asked = model, is_bad, 0

    def wants(self) -> Wants:
        return self.model.wants()

    def run(self, images: Mapping[str, NDArray[np.uint8]], felt: Felt) -> PolicyAnswer:
        self.asked += 1
        answer = self.model.run(images, felt)
        return replace(answer, chunk=answer.chunk * np.nan) if self.is_bad(self.asked) else answer


class UnsteadyPolicy(OnnxPolicy):
    """Says with `bad` which answers are not finite: every so-manieth, or (below 0) all but the first ones."""

    def __init__(self, model: str, bad: int) -> None:
        super().__init__(model)
        self.bad = bad

    def on_start(self) -> None:
        super().on_start()
        assert self.session is not None
        every = self.bad
        self.session = Unsteady(self.session, lambda n: n % every == 0 if every > 0 else 10 < n < -every)


def test_an_answer_lost_now_and_then_fails_no_action(tmp_path: Path) -> None:
    policy = UnsteadyPolicy(write_model(tmp_path, policy_model()), bad=5)
    sim = Simulation(Robot(), policy)
    feedback, commands = sim.record(OnnxPolicy.feedback), sim.record(OnnxPolicy.command)
    sim.publish("robot/state", standing(0))
    sim.publish("action", pick())
    sim.run(seconds=10.0)
    assert [one.status for one in feedback] == ["running"]
    assert policy.refused > 10
    assert len(commands) > 150


def test_an_action_that_has_failed_for_want_of_answers_moves_nothing_when_they_come_again(tmp_path: Path) -> None:
    policy = UnsteadyPolicy(write_model(tmp_path, policy_model()), bad=-60)
    sim = Simulation(Robot(), policy)
    feedback, commands = sim.record(OnnxPolicy.feedback), sim.record(OnnxPolicy.command)
    sim.publish("robot/state", standing(0))
    sim.publish("action", pick())
    sim.run(seconds=9.0)
    assert [one.status for one in feedback] == ["running", "failure"]
    moved = len(commands)
    sim.run(seconds=10.0)
    assert len(commands) == moved


def test_parameters_out_of_range_are_refused() -> None:
    with pytest.raises(ParameterError, match="image_width_px is 0"):
        OnnxPolicy("x.onnx", image_width_px=0)
    with pytest.raises(ParameterError, match="step_s is -1"):
        OnnxPolicy("x.onnx", step_s=-1.0)
    with pytest.raises(ParameterError, match="blend_s is -1"):
        OnnxPolicy("x.onnx", blend_s=-1.0)
    with pytest.raises(ParameterError, match="providers is empty"):
        OnnxPolicy("x.onnx", providers=())


def test_importing_the_policy_loads_neither_onnxruntime_nor_opencv() -> None:
    code = "import sys, nodes.policy.onnx.policy; sys.exit(bool({'onnxruntime', 'cv2'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_test_model_can_be_written_from_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "made.onnx"
    subprocess.run([sys.executable, "-m", "tests.support.models.policy_model", str(path)], check=True)
    assert OnnxPolicy(str(path)).problems() == []
