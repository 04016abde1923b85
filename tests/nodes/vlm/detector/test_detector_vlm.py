"""`DetectorVLM` with real ONNX files: what it tells, and what of its models and its looks is not taken."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto

from nodes.msgs import Action, Image, RobotState, Scene, SceneDescription
from nodes.vlm.detector.eyes import Eyes
from nodes.vlm.detector.folder import CONTENTS, DETECTOR, POSE
from nodes.vlm.detector.vlm import DetectorVLM
from runtime import Node, Publisher, Simulation, every
from runtime.errors import ParameterError, PolyrhythmError, UserError
from runtime.virtual.scheduler import VirtualClock
from tests.support.models.eyes import boxes, constant_model, pose, write_eyes
from tests.support.sentences import sentence
from tests.support.standing import standing


class Robot(Node):
    """Stands still before a camera without depth, which may vanish."""

    state = Publisher(RobotState, "robot/state")
    image = Publisher(Image, "head/image")

    def __init__(self) -> None:
        self.has_camera = True

    @every(hz=50)
    def feel(self) -> None:
        self.state.publish(standing(self.clock.now_ns()))

    @every(hz=10)
    def see(self) -> None:
        if self.has_camera:
            rgb = np.full((240, 320, 3), 90, np.uint8)
            self.image.publish(Image(camera="head", captured_ns=self.clock.now_ns(), rgb=rgb))


class Story:
    def __init__(self, folder: Path, budget_s: float = 0.5) -> None:
        self.vlm, self.robot = DetectorVLM(str(folder), budget_s=budget_s), Robot()
        self.sim = Simulation(self.robot, self.vlm)
        self.scenes: list[Scene] = self.sim.record(DetectorVLM.scene)
        self.told: list[SceneDescription] = self.sim.record(DetectorVLM.description)
        self.actions: list[Action] = self.sim.record(DetectorVLM.action)


def test_things_people_and_what_they_point_at_are_the_scene(tmp_path: Path) -> None:
    story = Story(write_eyes(tmp_path))
    story.sim.run(seconds=2.0)
    scene = story.scenes[-1]
    assert [(thing.id, thing.label) for thing in scene.things] == [("cup-2", "cup"), ("bowl-3", "bowl")]
    assert {"cup", "bowl", "bottle"} <= set(scene.kinds)
    cup = scene.things[0]
    assert (cup.u_px, cup.v_px) == pytest.approx((260.0, 105.0)), "of the camera's picture, and not of the network's"
    [person] = scene.people
    assert (person.id, person.points_at, person.hand) == ("person-1", "cup-2", "point")
    assert "It sees: a person, a cup, a bowl." in story.told[-1].text


def test_what_is_only_guessed_to_be_somewhere_is_never_grasped(tmp_path: Path) -> None:
    story = Story(write_eyes(tmp_path))
    story.sim.run(seconds=5.0)
    assert story.told[-1].objects == ()
    assert {action.skill for action in story.actions} <= {"look", "hold"}


def test_without_a_camera_the_scene_stays_and_gets_older(tmp_path: Path) -> None:
    story = Story(write_eyes(tmp_path))
    story.sim.run(seconds=1.0)
    story.robot.has_camera = False
    story.sim.run(seconds=3.0)
    assert 0 < story.vlm.work.eyes.shown_ns <= 1_000_000_000, "no old picture is looked at again"
    assert story.vlm.refused == 0


def not_finite() -> bytes:
    return constant_model(np.full((1, 1, 6), np.nan, np.float32))


def test_a_look_that_gives_no_numbers_is_dropped_counted_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    story = Story(write_eyes(tmp_path))
    story.sim.run(seconds=1.0)
    monkeypatch.setattr(Eyes, "look", lambda *_: (_ for _ in ()).throw(PolyrhythmError("it gave NaN")))
    story.sim.run(seconds=1.0)
    assert story.vlm.refused >= 9
    assert caplog.text.count("dropped: it gave NaN") == 1


def test_a_look_later_than_its_budget_is_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story(write_eyes(tmp_path), budget_s=0.1)
    story.sim.run(seconds=1.0)
    monkeypatch.setattr(VirtualClock, "since_s", lambda *_: 0.2)
    story.sim.run(seconds=1.0)
    assert story.vlm.refusal == sentence("vlm.over_its_budget", ms=100)
    assert story.vlm.refused >= 9


def test_eyes_that_are_never_within_their_budget_are_refused_at_the_start(tmp_path: Path) -> None:
    folder = str(write_eyes(tmp_path))
    with pytest.raises(ParameterError, match=r"looking takes .* ms for an answer on CPUExecutionProvider"):
        DetectorVLM(folder, budget_s=1e-9).on_start()
    assert [level for level, _ in DetectorVLM(folder).model_findings(is_timed=True)] == ["ok"]
    assert [level for level, _ in DetectorVLM(folder, budget_s=1e-9).model_findings(is_timed=True)] == ["problem"]


WRONG = [
    (not_finite(), None, sentence("vlm.not_finite")),
    (
        constant_model(np.zeros((1, 4, 5), np.float32)),
        None,
        sentence("vlm.another_shape", what="boxes", shape="(1, 4, 5); expected (1, boxes, 6)"),
    ),
    (
        None,
        constant_model(np.zeros((1, 17, 3), np.float32)),
        sentence("vlm.another_shape", what="a pose", shape="(1, 17, 3)"),
    ),
    (constant_model(boxes(()).reshape(1, 0, 6), TensorProto.INT64), None, ""),
    (constant_model(boxes(), TensorProto.STRING), None, sentence("vlm.another_type", name="image", type="string")),
]


@pytest.mark.parametrize(("detector", "body", "words"), WRONG, ids=["NaN", "boxes", "pose", "nothing", "type"])
def test_a_network_of_another_kind_is_a_sentence_at_the_start(
    detector: bytes | None, body: bytes | None, words: str, tmp_path: Path
) -> None:
    vlm = DetectorVLM(str(write_eyes(tmp_path, detector, body)))
    if not words:
        vlm.on_start()  # it sees nothing, and that is an answer
        return
    with pytest.raises(ParameterError, match=re.escape(words)):
        vlm.on_start()


def test_a_file_that_is_cut_off_swapped_or_gone_is_a_sentence(tmp_path: Path) -> None:
    folder = write_eyes(tmp_path)
    whole, other = (folder / DETECTOR).read_bytes(), (folder / POSE).read_bytes()
    for data in (whole[:-10], other):
        (folder / DETECTOR).write_bytes(data)
        [problem] = DetectorVLM(str(folder)).problems()
        assert "has sha256" in problem
        with pytest.raises(ParameterError, match=r"has sha256 .* expected"):
            DetectorVLM(str(folder)).on_start()
    (folder / DETECTOR).unlink()
    assert "does not exist" in DetectorVLM(str(folder)).problems()[0]
    (folder / CONTENTS).write_text('{"sha256": 3}')
    assert sentence("vlm.make_it_anew") in DetectorVLM(str(folder)).problems()[0]
    assert sentence("vlm.no_contents") in DetectorVLM(str(tmp_path / "nowhere")).problems()[0]


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"threads": 0}, "threads is 0"),
        ({"budget_s": 0.0}, "budget_s is 0.0"),
        ({"providers": ()}, "providers is empty"),
    ],
)
def test_parameters_out_of_range_are_sentences(parameters: dict[str, float], words: str) -> None:
    with pytest.raises(UserError, match=words):
        DetectorVLM(**parameters)  # type: ignore[arg-type]


def test_the_pose_is_looked_for_around_the_largest_person(tmp_path: Path) -> None:
    eyes = Eyes(str(write_eyes(tmp_path)), providers=("CPUExecutionProvider",))
    looked = eyes.look(np.zeros((240, 320, 3), np.uint8))
    assert looked.pose is not None
    wrist, expected = looked.pose[9], pose()[0, 0, 9]
    # The person is 120 x 240 pixels; with 15 % of 240 around it, cut at the image's edge, the square has 240.
    assert (wrist.u_px, wrist.v_px) == pytest.approx((240 * expected[1], 240 * expected[0]), abs=1.0)
