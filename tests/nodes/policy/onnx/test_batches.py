"""Several questions in one run of a policy's model, and how long a model may take for one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from msgspec import structs
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from nodes.policy.onnx.inputs import Felt, PolicyAnswer
from nodes.policy.onnx.policy import OnnxPolicy
from nodes.policy.onnx.session import PolicySession, Question
from runtime.commands.doctor import examine_launch
from runtime.errors import ParameterError, PolyrhythmError, UserError
from runtime.virtual.scheduler import VirtualClock
from tests.nodes.policy.onnx.test_policy import Story, pick
from tests.support.models.model_files import linear_model, write_model
from tests.support.models.policy_model import policy_model
from tests.support.sentences import sentence

SHAPES = {"joints": (1, 8), "image": (1, 3, 12, 16), "history": (1, 2, 8), "text": (1, 6), "memory": (1, 3)}


def weights() -> dict[str, NDArray[np.float32]]:
    generator = np.random.default_rng(7)
    return {
        name: generator.normal(0, 0.02, (int(np.prod(shape)), 10)).astype(np.float32) for name, shape in SHAPES.items()
    }


def model(rows: int | str) -> bytes:
    return linear_model(SHAPES, weights(), done=np.full(8, 0.1, np.float32), rows=rows)


def mixing_model() -> bytes:
    """One whose every answer holds the mean of all rows, as batch normalisation that was left in training has."""
    found = onnx.load_from_string(model("rows"))
    plain = found.graph.node[-3]
    assert plain.op_type == "Sum"
    plain.output[0] = "plain"
    found.graph.node.append(helper.make_node("ReduceMean", ["plain", "axis"], ["mean"], keepdims=1))
    found.graph.node.append(helper.make_node("Add", ["plain", "mean"], ["chunk"]))
    found.graph.initializer.append(numpy_helper.from_array(np.array([0], np.int64), "axis"))
    return bytes(found.SerializeToString())


def session(data: bytes) -> PolicySession:
    return PolicySession(data, name="it", width_px=16, height_px=12, providers=("CPUExecutionProvider",))


def questions(count: int) -> list[Question]:
    generator = np.random.default_rng(3)
    found: list[Question] = []
    for number in range(count):
        joints = tuple(generator.uniform(-1, 1, 8).tolist())
        felt = Felt(
            joints,
            history=(joints, joints),
            text=f"cup {number}",
            memory=np.full(3, float(number), np.float32).tobytes(),
        )
        found.append(({"image": generator.integers(0, 255, (12, 16, 3), dtype=np.uint8)}, felt))
    return found


def test_each_of_several_questions_is_answered_as_it_is_alone() -> None:
    together, alone = session(model("rows")), session(model(1))
    assert together.is_batched
    asked = questions(5)
    for answer, question in zip(together.run_many(asked), asked, strict=True):
        expected = alone.run(*question)
        assert isinstance(answer, PolicyAnswer)
        assert answer.chunk == pytest.approx(expected.chunk, abs=1e-5)
        assert answer.done == pytest.approx(expected.done, abs=1e-5)
        assert answer.memory == expected.memory


def test_a_question_that_is_wrong_spoils_no_other() -> None:
    images, felt = questions(1)[0]
    ragged = structs.replace(felt, history=((0.0,) * 8, (0.0,) * 3))
    short = structs.replace(felt, memory=b"123")
    longer = structs.replace(felt, history=((0.0,) * 8,) * 5)
    asked = [*questions(2), ({}, felt), (images, ragged), (images, short), (images, longer)]
    first, second, *wrong = session(model("rows")).run_many(asked)
    assert isinstance(first, PolicyAnswer)
    assert isinstance(second, PolicyAnswer)
    assert str(wrong[0]) == "it was given no image"
    assert all(isinstance(one, PolyrhythmError) for one in wrong)


@pytest.mark.parametrize(
    ("data", "why"),
    [(model(1), sentence("policy.first_size_is_fixed")), (mixing_model(), sentence("policy.rows_depend"))],
    ids=["fixed", "mixing"],
)
def test_a_model_that_cannot_answer_several_answers_one_at_a_time_and_says_why(data: bytes, why: str) -> None:
    one = session(data)
    assert not one.is_batched
    assert one.why_single == why
    asked = questions(3)
    for answer, question in zip(one.run_many(asked), asked, strict=True):
        assert isinstance(answer, PolicyAnswer)
        assert np.array_equal(answer.chunk, one.run(*question).chunk)


def test_a_model_that_is_never_within_its_budget_is_refused_at_the_start(tmp_path: Path) -> None:
    file = write_model(tmp_path, policy_model())
    with pytest.raises(ParameterError, match=r"takes \d+\.\d ms for an answer on CPUExecutionProvider, and its budget"):
        OnnxPolicy(file, budget_s=1e-9).on_start()
    OnnxPolicy(file, budget_s=60.0).on_start()


def test_an_answer_later_than_the_budget_is_dropped_counted_and_told_and_the_robot_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = Story(write_model(tmp_path, policy_model()), budget_s=0.1)
    story.sim.publish("action", pick())
    story.sim.run(seconds=0.5)
    moved = len(story.commands)
    assert moved > 0
    monkeypatch.setattr(VirtualClock, "since_s", lambda *_: 0.2)
    story.sim.run(seconds=3.0)
    assert len(story.commands) < moved + 20, "the last chunk that came in time is played to its end"
    assert story.policy.refused >= 20
    assert not [feedback for feedback in story.feedback if feedback.status == "failure"], "a drop is no failure"


@pytest.mark.parametrize(
    ("parameters", "words"),
    [({"budget_s": -1.0}, "budget_s is -1.0"), ({"threads": 0}, "threads is 0"), ({"threads": 65}, "expected 1 to 64")],
)
def test_budgets_and_threads_out_of_range_are_sentences(parameters: dict[str, float], words: str) -> None:
    with pytest.raises(UserError, match=words):
        OnnxPolicy("it.onnx", **parameters)  # type: ignore[arg-type]


def launch(folder: Path, *parameters: str) -> Path:
    file = folder / "robot.toml"
    file.write_text(
        '[nodes.policy]\nuse = "nodes.policy.onnx.policy:OnnxPolicy"\n[nodes.policy.params]\n' + "\n".join(parameters)
    )
    return file


def test_the_doctor_says_why_a_provider_is_not_taken_and_how_long_the_model_takes_here(tmp_path: Path) -> None:
    model_file = write_model(tmp_path, policy_model())
    providers = 'providers = ["TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"]'
    file = launch(tmp_path, f"model = '{model_file}'", providers)
    notes = [one.text for one in examine_launch(file) if one.level == "note" and one.subject == "policy"]
    assert notes == [
        f"{name} {sentence('policy.not_in_this_build', remedy=sentence('policy.install_gpu'))}"
        for name in ("TensorrtExecutionProvider", "CUDAExecutionProvider")
    ]
    [timing] = [
        one.text for one in examine_launch(file, is_timed=True) if " ms of CPU each; budget 1000 ms" in one.text
    ]
    assert timing.startswith(f"model {model_file!r} on CPUExecutionProvider: first answer ")


def test_the_doctor_calls_a_model_beyond_its_budget_a_problem(tmp_path: Path) -> None:
    file = launch(tmp_path, f"model = '{write_model(tmp_path, policy_model())}'", "budget_s = 1e-9")
    assert [one.text for one in examine_launch(file) if one.level == "problem" and "budget" in one.text] == []
    [slow] = [one for one in examine_launch(file, is_timed=True) if "its budget is" in one.text]
    assert slow.level == "problem"


def test_a_model_that_is_cut_off_is_a_sentence_for_whoever_opens_it(tmp_path: Path) -> None:
    file = write_model(tmp_path, policy_model()[:200])
    with pytest.raises(PolyrhythmError, match="is no ONNX model: it is cut off"):
        OnnxPolicy(file).opened()
