"""A learned policy that is told which action: what its model is given, and when the action is done."""

from __future__ import annotations

import math
import re
from dataclasses import replace as replace_value
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from nodes.msgs import Action, Feedback, GuardState, Image, Interrupt, JointCommand, RobotState, SeenObject, aimed_at
from nodes.policy.onnx.inputs import Felt, feel, words
from nodes.policy.onnx.policy import OnnxPolicy, UnderWay
from nodes.policy.onnx.session import PolicySession
from nodes.policy.onnx.tensors import SKILLS, known_inputs
from runtime import Node, Publisher, Simulation, every
from runtime.errors import PolyrhythmError
from runtime.message import Stamped
from tests.support.models.model_files import linear_model, write_model
from tests.support.sentences import pattern, sentence
from tests.support.standing import HOME, standing

PAGE = Path(__file__).resolve().parents[3] / "docs" / "policy.md"
LIFT, PAN = 0, 6


def cup(x_m: float = 0.3, y_m: float = -0.6) -> SeenObject:
    return SeenObject(
        label="cup", colour="red", x_m=x_m, y_m=y_m, z_m=0.5, width_m=0.08, height_m=0.1, u_px=1.0, v_px=1.0
    )


def pick(ident: str = "a1", x_m: float = 0.3) -> Action:
    return Action(id=ident, skill="pick", arguments=aimed_at(cup(x_m)), text="pick up the red cup")


def at(column: int, *by: float) -> NDArray[np.float32]:
    """Weights that put the sum of an input, times these, into one column of the chunk."""
    weights = np.zeros((len(by), 10), np.float32)
    weights[:, column] = by
    return weights


class Robot(Node):
    """Drives ahead at 0.1 m/s with its joints where they are; its cameras see grey, the wrist's every 0.2 s."""

    state = Publisher(RobotState, "robot/state")
    image = Publisher(Image, "head/image")
    wrist = Publisher(Image, "wrist/image")
    camera_3 = Publisher(Image, "camera_3/image")
    camera_4 = Publisher(Image, "camera_4/image")

    def __init__(self, sees: bool = False) -> None:
        self.sees = sees
        self.joints = HOME
        self.speed_mps = 0.1

    @every(hz=50)
    def feel(self) -> None:
        now_ns = self.clock.now_ns()
        driven_m = self.speed_mps * now_ns * 1e-9
        state = msgspec.structs.replace(standing(now_ns), position=self.joints, base_x_m=driven_m)  # type: ignore[type-var]
        self.state.publish(state)

    @every(hz=10)
    def see(self) -> None:
        if self.sees:
            self.image.publish(self.grey("head"))

    @every(hz=5)
    def see_near(self) -> None:
        if self.sees:
            for port in (self.wrist, self.camera_3, self.camera_4):
                port.publish(self.grey("wrist"))

    def grey(self, camera: str) -> Image:
        return Image(camera=camera, captured_ns=self.clock.now_ns(), rgb=np.full((24, 32, 3), 128, np.uint8))


class Story:
    def __init__(self, tmp_path: Path, model: bytes, sees: bool = False, **parameters: Any) -> None:
        self.robot = Robot(sees)
        self.sim = Simulation(self.robot, OnnxPolicy(write_model(tmp_path, model), **parameters))
        self.commands: list[JointCommand] = self.sim.record(OnnxPolicy.command)
        self.feedback: list[Feedback] = self.sim.record(OnnxPolicy.feedback)
        self.published: list[Stamped[Any]] = []
        self.sim.observe(self.published.append)
        self.sim.publish("robot/state", standing(0))

    def newest(self, topic: str) -> Stamped[Any]:
        return [stamped for stamped in self.published if stamped.envelope.topic == topic][-1]

    @property
    def told(self) -> list[tuple[str, str, str]]:
        return [(one.action_id, one.status, one.why) for one in self.feedback]


def test_the_target_moves_in_the_base_s_frame_as_the_base_drives(tmp_path: Path) -> None:
    model = linear_model({"joints": (1, 8), "target": (1, 3)}, {"target": at(LIFT, 1.0, 0.0, 0.0)}, steps=1)
    story = Story(tmp_path, model)
    story.sim.publish("action", pick(x_m=0.5))
    story.sim.run(seconds=1.0)
    early = story.commands[-1].position[LIFT]
    story.sim.run(seconds=2.0)
    assert early == pytest.approx(0.4, abs=0.02)
    assert story.commands[-1].position[LIFT] == pytest.approx(0.2, abs=0.02)


def test_what_is_felt_is_the_robot_s_state_and_the_action_s_words() -> None:
    turned = msgspec.structs.replace(  # type: ignore[type-var]  # a Message is a Struct in all but name
        standing(0), base_x_m=1.0, base_y_m=0.2, base_heading_rad=math.pi / 2, is_grasping=True
    )
    older = tuple(tuple(float(number) for _ in range(8)) for number in range(5))
    felt = feel(turned, pick(x_m=0.4), (1.0, 0.0, 0.0), older, history=3)
    assert felt.target == pytest.approx((-0.8, 0.6, 0.5))
    assert felt.size == (0.08, 0.1)
    assert felt.base == pytest.approx((0.0, 0.2, math.pi / 2))
    assert [posture[0] for posture in felt.history] == [2.0, 3.0, 4.0], "oldest first"
    assert (felt.skill, felt.text, felt.grasp) == ("pick", "pick up the red cup", 1.0)
    assert feel(turned, history=2).history == (turned.position,) * 2
    assert feel(turned, None, None, older[:1], history=2).history == (older[0],) * 2
    nothing = feel(turned, Action(id="a", skill="nod"))
    assert (nothing.target, nothing.size) == ((0.0, 0.0, 0.0), (0.0, 0.0))


def test_words_are_bytes_cut_or_filled() -> None:
    assert words("né", 5).tolist() == [[110, 195, 169, 0, 0]]
    assert words("red cup", 3).tolist() == [[114, 101, 100]]
    assert words("ab", None).tolist() == [[97, 98]]
    assert words("", None).shape == (1, 1)


@pytest.mark.parametrize("skill", SKILLS)
def test_each_skill_has_a_place_of_its_own(skill: str) -> None:
    weights = {"skill": at(LIFT, *range(1, len(SKILLS) + 1))}
    session = told(linear_model({"joints": (1, 8), "skill": (1, len(SKILLS))}, weights))
    assert session.run({}, Felt(HOME, skill=skill)).chunk[0, LIFT] == [*map(str, SKILLS)].index(skill) + 1


def test_every_input_can_be_asked_for_at_once(tmp_path: Path) -> None:
    shapes = {"image": (1, 3, 24, 32), "wrist": (1, 3, 12, 16), "joints": (1, 8), "velocity": (1, 8)}
    shapes |= {"effort": (1, 8), "grasp": (1, 1), "history": (1, 4, 8), "base": (1, 3), "target": (1, 3)}
    shapes |= {"size": (1, 2), "skill": (1, 7), "text": (1, 32), "previous": (1, 2, 10), "frozen": (1, 1)}
    shapes |= {"noise": (1, 4, 3), "memory": (1, 3), "elapsed": (1, 1)}
    shapes |= {"camera_3": (1, 3, 12, 16), "camera_4": (1, 3, 12, 16)}
    share = 1 / 5000  # so that it is somewhere that the head can turn to
    assert set(shapes) == set(known_inputs(32, 24)), "this test names them all"
    left_out = ("previous", "frozen", "noise", "memory")  # fed back, and by chance
    seen = {name: shape for name, shape in shapes.items() if name not in left_out}
    sums = {name: at(PAN, *[share] * math.prod(shape)) for name, shape in seen.items()}
    story = Story(tmp_path, linear_model(shapes, sums), sees=True, image_width_px=32, image_height_px=24)
    story.sim.publish("action", pick())
    story.sim.run(seconds=1.0)
    assert story.told == [("a1", "running", "")]
    at_least = 128 / 255 * (3 * 24 * 32 + 3 * 3 * 12 * 16) + sum(b"pick up the red cup")
    assert at_least < story.commands[-1].position[PAN] / share < at_least + 10


def test_a_model_that_sees_nothing_needs_no_image_and_its_commands_have_none_behind_them(tmp_path: Path) -> None:
    story = Story(tmp_path, linear_model({"joints": (1, 8), "target": (1, 3)}))
    story.sim.run(seconds=0.5)
    assert story.commands == [], "nothing moves before the first action"
    story.sim.publish("action", pick())
    story.sim.run(seconds=1.0)
    assert len(story.commands) >= 18
    command, action = story.newest("command").envelope, story.newest("action").envelope
    assert command.born_ns("image") is None
    assert command.cause == action.ident


def test_commands_are_as_old_as_the_older_of_both_images(tmp_path: Path) -> None:
    shapes = {"image": (1, 3, 24, 32), "wrist": (1, 3, 24, 32), "joints": (1, 8)}
    story = Story(tmp_path, linear_model(shapes), sees=True, image_width_px=32, image_height_px=24)
    story.sim.publish("action", pick())
    story.sim.run(seconds=1.19)
    wrist_ns, head_ns = (story.newest(topic).envelope.begun_ns("image") for topic in ("wrist/image", "head/image"))
    assert wrist_ns < head_ns
    assert story.newest("command").envelope.begun_ns("image") == wrist_ns


def test_a_wrist_that_shows_nothing_is_waited_for_and_then_told(tmp_path: Path) -> None:
    shapes = {"image": (1, 3, 24, 32), "wrist": (1, 3, 24, 32), "joints": (1, 8)}
    path = write_model(tmp_path, linear_model(shapes))
    sim = Simulation(Robot(), OnnxPolicy(path, image_width_px=32, image_height_px=24))
    rgb = np.zeros((24, 32, 3), np.uint8)
    feedback = sim.record(OnnxPolicy.feedback)
    sim.publish("robot/state", standing(0))
    sim.publish("action", pick())
    for wait_s, answers in ((0.5, 1), (1.0, 2)):
        sim.run(seconds=wait_s)
        sim.publish("head/image", Image(camera="head", captured_ns=sim.clock.now_ns(), rgb=rgb))
        sim.run(seconds=0.1)
        assert len(feedback) == answers
    assert "was given no wrist" in feedback[1].why


def test_a_model_that_sees_by_the_wrist_alone_answers_its_images(tmp_path: Path) -> None:
    story = Story(tmp_path, linear_model({"wrist": (1, 3, 24, 32), "joints": (1, 8)}), sees=True)
    story.sim.publish("action", pick())
    story.sim.run(seconds=1.15)
    chunks = [stamped for stamped in story.published if stamped.envelope.topic == "chunk"]
    assert len(chunks) == 6
    assert story.newest("command").envelope.begun_ns("image") == story.newest("wrist/image").envelope.begun_ns("image")


DONE_AT_LIFT = np.array([1.0, *[0.0] * 7], np.float32)
"""`done` is the lift's height."""


def done_model(**more: Any) -> bytes:
    return linear_model({"joints": (1, 8), "target": (1, 3)}, {"target": at(8, 1, 0, 0)}, done=DONE_AT_LIFT, **more)


def raised(story: Story, lift_m: float) -> None:
    story.robot.joints = (lift_m, *HOME[1:])


def test_an_action_is_done_when_enough_answers_in_a_row_say_so_and_its_posture_is_kept(tmp_path: Path) -> None:
    story = Story(tmp_path, done_model(bias=0.05), done_at=0.8, done_chunks=3)
    story.sim.run(seconds=0.1)
    story.sim.publish("action", pick())
    story.sim.run(seconds=1.0)
    assert story.told == [("a1", "running", "")]
    assert story.commands[-1].base_v_mps != 0.0
    raised(story, 0.9)
    story.sim.run(seconds=0.06)
    assert len(story.told) == 1, "one answer is not enough"
    story.sim.run(seconds=1.0)
    assert story.told[1:] == [("a1", "success", "pick up the red cup")]
    before = len(story.commands)
    story.sim.run(seconds=1.0)
    assert len(story.commands) - before in (19, 20, 21)
    assert story.commands[-1].position == pytest.approx((0.05,) * 8)
    assert story.commands[-1].base_v_mps == 0.0
    answers = [stamped for stamped in story.published if stamped.envelope.topic == "feedback"]
    assert answers[-1].envelope.cause == story.newest("action").envelope.ident


def test_what_was_said_of_one_action_does_not_count_for_the_next(tmp_path: Path) -> None:
    story = Story(tmp_path, done_model(), done_at=0.8, done_chunks=1)
    raised(story, 0.9)
    story.sim.publish("action", pick("a1"))
    story.sim.run(seconds=0.5)
    raised(story, 0.1)
    story.sim.run(seconds=0.1)
    story.sim.publish("action", pick("a2"))
    story.sim.run(seconds=1.0)
    assert [told[:2] for told in story.told] == [("a1", "running"), ("a1", "success"), ("a2", "running")]
    assert story.commands[-1].base_v_mps != 0.0


def test_time_runs_out_with_a_reason_and_not_while_the_robot_is_stopped(tmp_path: Path) -> None:
    story = Story(tmp_path, done_model(), done_at=0.99, limit_s=2.0)
    story.sim.publish("action", pick())
    story.sim.run(seconds=1.0)
    story.sim.publish("guard/state", GuardState(mode="stopped", reason="Ouch!"))
    story.sim.run(seconds=5.0)
    assert len(story.told) == 1
    story.sim.publish("guard/state", GuardState(mode="moving", reason=""))
    story.sim.run(seconds=0.8)
    assert len(story.told) == 1
    story.sim.run(seconds=0.5)
    assert story.told[1:] == [("a1", "failure", "not done within 2 s")]
    assert story.commands[-1] == JointCommand(position=(*HOME[:5], 0.0, *HOME[6:])), "it rests; its fingers stay so"


def test_an_action_without_progress_for_so_long_has_failed_and_not_while_the_robot_is_stopped(tmp_path: Path) -> None:
    story = Story(tmp_path, done_model(), done_at=0.99, stall_s=3.0)
    story.robot.speed_mps = 0.0
    story.sim.publish("action", pick())
    story.sim.run(seconds=2.5)
    raised(story, HOME[LIFT] + 0.02)  # that is progress
    story.sim.run(seconds=2.5)
    story.sim.publish("guard/state", GuardState(mode="stopped", reason="Ouch!"))
    story.sim.run(seconds=5.0)
    story.sim.publish("guard/state", GuardState(mode="moving", reason=""))
    story.sim.run(seconds=0.3)
    assert len(story.told) == 1
    story.sim.run(seconds=0.5)
    assert story.told[1:] == [("a1", "failure", sentence("policy.no_progress", seconds="3"))]


@pytest.mark.parametrize("first_s", [0.0, 1.0])
def test_an_action_for_which_the_model_gives_no_answer_has_failed_and_not_while_the_robot_is_stopped(
    first_s: float, tmp_path: Path
) -> None:
    shapes = {"image": (1, 3, 24, 32), "joints": (1, 8), "target": (1, 3)}
    story = Story(
        tmp_path, linear_model(shapes, done=DONE_AT_LIFT), sees=first_s > 0, image_width_px=32, image_height_px=24,
        done_at=0.99,
    )  # fmt: skip
    story.sim.publish("action", pick("a1"))
    story.sim.run(seconds=first_s)
    story.robot.sees = False
    if first_s:
        story.sim.publish("action", pick("a2"))
    story.sim.run(seconds=1.0)
    story.sim.publish("guard/state", GuardState(mode="stopped", reason="Ouch!"))
    story.sim.run(seconds=5.0)
    story.sim.publish("guard/state", GuardState(mode="moving", reason=""))
    story.sim.run(seconds=1.7)
    assert story.told[-1][1] == "running"
    story.sim.run(seconds=0.6)
    assert story.told[-1] == (
        "a2" if first_s else "a1", "failure", sentence("policy.no_answer_of_model", seconds="3"),
    )  # fmt: skip
    story.sim.run(seconds=5.0)
    assert [one.status for one in story.feedback][-2:] == ["running", "failure"], "told once"


def test_a_model_that_knows_of_no_end_waits_for_its_camera(tmp_path: Path) -> None:
    shapes = {"image": (1, 3, 24, 32), "joints": (1, 8), "target": (1, 3)}
    story = Story(tmp_path, linear_model(shapes), image_width_px=32, image_height_px=24)
    story.sim.publish("action", pick())
    story.sim.run(seconds=5.0)
    assert [one.status for one in story.feedback] == ["running"]
    story.robot.sees = True
    story.sim.run(seconds=0.5)
    assert story.commands


def test_a_robot_that_creeps_makes_progress_as_long_as_it_gets_anywhere(tmp_path: Path) -> None:
    story = Story(tmp_path, done_model(), done_at=0.99, stall_s=3.0)
    story.robot.speed_mps = 0.005  # 1.5 cm in that time
    story.sim.publish("action", pick())
    story.sim.run(seconds=10.0)
    assert len(story.told) == 1


def test_an_action_that_is_replaced_or_set_aside_is_answered(tmp_path: Path) -> None:
    story = Story(tmp_path, done_model(), done_at=0.99)
    story.sim.publish("action", pick("a1"))
    story.sim.run(seconds=0.5)
    story.sim.publish("action", pick("a2"))
    story.sim.run(seconds=0.5)
    story.sim.publish("interrupt", Interrupt(id="i", depth="replan", text="Coffee", by="Ana"))
    story.sim.run(seconds=0.5)
    assert story.told == [
        ("a1", "running", ""),
        ("a1", "failure", "replaced by 'pick up the red cup'"),
        ("a2", "running", ""),
        ("a2", "failure", "set aside: Ana said 'Coffee'"),
    ]
    assert [one.code for one in story.feedback] == ["", "replaced", "", ""]
    assert story.commands[-1].base_v_mps == 0.0


def test_a_stop_flushes_what_was_felt_before_it(tmp_path: Path) -> None:
    story = Story(tmp_path, linear_model({"joints": (1, 8), "target": (1, 3)}))
    story.sim.publish("action", pick())
    story.sim.run(seconds=0.5)
    story.sim.publish("interrupt", Interrupt(id="i", depth="stop", text="Ouch!", by="Ana"))
    story.sim.run(seconds=0.001)
    before, fence_ns = len(story.published), story.sim.clock.now_ns() - 1_000_000
    story.sim.run(seconds=0.5)
    chunks = {one.envelope.seq: one.message.felt_ns for one in story.published if one.envelope.topic == "chunk"}
    commands = [one for one in story.published[before:] if one.envelope.topic == "command"]
    assert commands
    first = commands[0].envelope.published_ns
    assert min(felt_ns for felt_ns in chunks.values() if felt_ns > fence_ns) <= first


def test_an_answer_counts_once_however_often_it_is_looked_at() -> None:
    under_way = UnderWay(pick(), None, None)
    for _ in range(5):
        under_way = under_way.told(0.9, 7, 0.5)
    assert under_way.sure == 1
    assert under_way.told(0.9, 8, 0.5).sure == 2
    assert under_way.told(0.4, 8, 0.5).sure == 0
    assert replace_value(under_way, sure=2).told(None, 9, 0.5).sure == 2


def told(model: bytes) -> PolicySession:
    return PolicySession(model, name="it", width_px=160, height_px=120, providers=("CPUExecutionProvider",))


@pytest.mark.parametrize(
    ("shapes", "why"),
    [
        (
            {"joints": (1, 8), "goal": (1, 3)},
            pattern("models.other_inputs", inputs="goal, joints", known="base, .*, wrist$"),
        ),
        ({"target": (1, 3)}, pattern("models.other_inputs", inputs="target", known="")),
        (
            {"joints": (1, 8), "target": (1, 2)},
            pattern("models.another_size", name="target", shape=r"\[1, 2\]") + r" .* \[1, 3\]",
        ),
        (
            {"joints": (1, 8), "skill": (1, 5)},
            pattern("models.another_size", name="skill", shape=r"\[1, 5\]") + r" .* \[1, 7\]",
        ),
        ({"joints": (1, 8), "history": (1, 65, 8)}, sentence("policy.postures_expected", most=64)),
    ],
)
def test_other_inputs_are_refused_at_check_and_at_start_with_the_same_sentence(
    tmp_path: Path, shapes: dict[str, tuple[int, ...]], why: str
) -> None:
    path = write_model(tmp_path, linear_model(shapes))
    (problem,) = OnnxPolicy(path).problems()
    assert re.search(why, problem)
    with pytest.raises(PolyrhythmError) as refusal:
        OnnxPolicy(path).on_start()
    assert str(refusal.value) == problem


def test_sizes_that_a_model_must_fix_and_outputs_of_other_shapes_are_refused(tmp_path: Path) -> None:
    model = onnx.load_from_string(linear_model({"joints": (1, 8), "wrist": (1, 3, 24, 32)}))
    model.graph.input[1].type.tensor_type.shape.dim[2].dim_param = "height"
    path = write_model(tmp_path, model.SerializeToString())
    assert sentence("policy.sizes_are_fixed") in OnnxPolicy(path).problems()[0]
    model = onnx.load_from_string(done_model())
    model.graph.output[1].type.tensor_type.shape.dim.add().dim_value = 2
    path = write_model(tmp_path, model.SerializeToString())
    assert "output 'done' is tensor(float) of shape [1, 2]; expected" in OnnxPolicy(path).problems()[0]
    model = onnx.load_from_string(done_model())
    del model.graph.output[0]
    path = write_model(tmp_path, model.SerializeToString())
    known = "a policy knows chunk, done, next_memory, and needs chunk"
    assert f"its outputs are done; {known}" in OnnxPolicy(path).problems()[0]


def test_the_page_names_every_input_and_the_order_of_the_skills() -> None:
    page = PAGE.read_text()
    assert ", ".join(SKILLS) in page
    for name in known_inputs(160, 120):
        assert f"| input `{name}` |" in page


def test_half_precision_is_fed_and_read_as_such(tmp_path: Path) -> None:
    model = onnx.load_from_string(linear_model({"joints": (1, 8)}, {"joints": np.eye(8, 10, dtype=np.float32)}))
    model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT16  # it casts to float inside
    model.graph.output[0].name, model.graph.node[-1].output[0] = "half", "chunk as float"
    cast = onnx.helper.make_node("Cast", ["chunk as float"], ["chunk"], to=onnx.TensorProto.FLOAT16)
    model.graph.node.append(cast)
    output = model.graph.output[0]
    output.name, output.type.tensor_type.elem_type = "chunk", onnx.TensorProto.FLOAT16
    data = model.SerializeToString()
    assert OnnxPolicy(write_model(tmp_path, data)).problems() == []
    chunk = told(data).run({}, Felt(HOME)).chunk
    assert chunk.dtype == np.float64
    assert chunk[0, :8] == pytest.approx(HOME, abs=1e-3)


def test_noise_is_new_for_each_answer_and_the_same_for_the_same_seed(tmp_path: Path) -> None:
    shapes = {"joints": (1, 8), "noise": (1, 2, 3)}
    session = told(linear_model(shapes, {"noise": np.ones((6, 10), np.float32)}))
    first, again, other = (session.run({}, Felt(HOME, seed=seed)).chunk[0, 0] for seed in (1, 1, 2))
    assert first == again != other

    def commanded(folder: str) -> list[float]:
        place = tmp_path / folder
        place.mkdir()
        story = Story(place, linear_model(shapes, {"noise": np.full((6, 10), 0.005, np.float32)}))
        story.sim.publish("action", pick())
        story.sim.run(seconds=0.5)
        return [command.position[0] for command in story.commands]

    one = commanded("a")
    assert len(set(one)) > 3
    assert one == commanded("b")


def test_images_are_normalised_as_the_metadata_says(tmp_path: Path) -> None:
    by = {"image": at(PAN, *[1 / (3 * 8 * 8)] * (3 * 8 * 8))}
    model = onnx.load_from_string(linear_model({"joints": (1, 8), "image": (1, 3, 8, 8)}, by))
    onnx.helper.set_model_props(model, {"image_mean": "0.5,0.5,0.5", "image_std": "0.25,0.5,1"})

    def session() -> PolicySession:
        data = model.SerializeToString()
        return PolicySession(data, name="it", width_px=8, height_px=8, providers=("CPUExecutionProvider",))

    white = np.full((8, 8, 3), 255, np.uint8)
    assert session().run({"image": white}, Felt(HOME)).chunk[0, PAN] == pytest.approx((2 + 1 + 0.5) / 3, abs=1e-4)
    onnx.helper.set_model_props(model, {"image_mean": "half"})
    with pytest.raises(PolyrhythmError, match="metadata image_mean is 'half'; expected three numbers"):
        session()
    onnx.helper.set_model_props(model, {"image_std": "1,1,0"})
    with pytest.raises(PolyrhythmError, match=f"image_std is '1,1,0'; {pattern('policy.more_than_zero')}"):
        session()
