"""`polyrhythm learn`: what of a recording becomes a lesson, and what becomes of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np
import pytest

from nodes.mcap.file import BagWriter
from nodes.msgs import Action, Feedback, GuardState, JointCommand, SeenObject, aimed_at
from nodes.policy.learn.command import main
from nodes.policy.learn.recordings import rows_of
from nodes.policy.learn.rows import FELT, INTERVENES, WANTED, Rows
from nodes.policy.onnx.policy import shipped
from runtime.coordination.lease import Lease
from runtime.errors import UserError
from runtime.message import Envelope, Message, Stamped
from tests.support.sentences import pattern, sentence
from tests.support.standing import HOME, standing

CUP = SeenObject(
    label="cup", colour="red", x_m=0.3, y_m=-0.6, z_m=0.5, width_m=0.08, height_m=0.1, u_px=1.0, v_px=1.0
)  # fmt: skip
PUPILS, TEACHERS = JointCommand(position=(0.1, *HOME[1:])), JointCommand(position=(0.9, *HOME[1:]), base_v_mps=0.2)
LIFT, V, DONE = 0, 8, 10


@dataclass
class Told:
    """What is recorded, in the order of its time."""

    path: Path
    said: list[Stamped[Message]] = field(default_factory=list)

    def say(self, at_s: float, topic: str, message: Message, source: str, seat: str = "") -> None:
        envelope = Envelope(topic, source, len(self.said), round(at_s * 1e9), seat=seat)
        self.said.append(Stamped(message, envelope))

    def command(self, from_s: float, to_s: float, message: JointCommand, source: str) -> None:
        for step in range(round(from_s * 20), round(to_s * 20)):
            self.say(step / 20 + 0.001, "command", message, source, "policy")

    def holds(self, at_s: float, name: str) -> None:
        self.say(at_s, "lease", Lease(seat="policy", holder=name, number=len(self.said) + 1), "guard")

    def written(self, for_s: float = 4.0) -> Path:
        for step in range(round(for_s * 50)):
            moves = msgspec.structs.replace(standing(step * 20_000_000), base_x_m=0.1 * step / 50)  # type: ignore[type-var]
            self.say(step / 50, "robot/state", moves, "driver")
        bag = BagWriter(self.path, {})
        for stamped in sorted(self.said, key=lambda one: one.envelope.published_ns):
            bag.write(stamped)
        bag.close()
        return self.path


@pytest.fixture
def told(tmp_path: Path) -> Told:
    told = Told(tmp_path / "run.mcap")
    told.holds(0.0, "policy")
    told.say(1.0, "action", Action(id="a", skill="pick", arguments=aimed_at(CUP)), "vlm", "vlm")
    return told


def test_what_a_shadow_commands_is_the_label_and_not_what_the_pupil_does(told: Told) -> None:
    told.command(1.0, 3.0, PUPILS, "policy")
    told.command(1.5, 2.5, TEACHERS, "teacher")
    rows, taken = rows_of(told.written())
    assert 20 <= len(rows.felt) <= 24, "a second, and as long as a command lasts"
    assert (rows.felt.shape[1:], rows.wanted.shape[1:]) == ((FELT,), (WANTED,))
    assert np.allclose(rows.wanted[:, LIFT], 0.9)
    assert np.allclose(rows.wanted[:, V], 0.2)
    assert taken == 0
    assert rows.felt[0, -1] == pytest.approx(0.5, abs=0.06), "how long the action took by then"


def test_who_takes_the_seat_teaches_with_what_they_do_there_and_it_counts_more(told: Told) -> None:
    told.command(1.0, 3.0, PUPILS, "policy")
    told.command(1.0, 3.0, TEACHERS, "teacher")
    other = JointCommand(position=(0.5, *HOME[1:]))
    told.holds(2.0, "wizard")
    told.command(2.0, 3.0, other, "wizard")
    rows, taken = rows_of(told.written())
    mine = np.isclose(rows.wanted[:, LIFT], 0.5)
    assert np.allclose(rows.wanted[~mine, LIFT], 0.9), "the pupil's own is no label while it is in shadow"
    assert taken == mine.sum() >= 18
    assert set(rows.counts[mine]) == {INTERVENES}
    assert len(set(rows.runs[mine]) & set(rows.runs[~mine])) == 0, "no chunk reaches from one teacher to the other"


def test_while_the_guard_holds_the_robot_and_without_an_action_nothing_is_learned(told: Told) -> None:
    told.command(0.0, 4.0, TEACHERS, "teacher")
    told.say(2.0, "guard/state", GuardState(mode="stopped", reason="Ouch!"), "guard")
    told.say(2.25, "guard/state", GuardState(mode="retreating", reason=""), "guard")
    told.say(2.5, "guard/state", GuardState(mode="moving", reason=""), "guard")
    told.say(3.0, "action", Action(id="b", skill="nod"), "vlm", "vlm")
    rows, _ = rows_of(told.written())
    assert len(rows.felt) == pytest.approx(30, abs=2)


def test_the_moments_before_a_success_are_done_and_after_a_failure_a_teacher_is_not_followed(told: Told) -> None:
    told.command(1.0, 4.0, TEACHERS, "teacher")
    told.say(2.0, "feedback", Feedback(action_id="a", status="success"), "policy", "policy")
    told.say(2.5, "action", Action(id="b", skill="pick", arguments=aimed_at(CUP)), "vlm", "vlm")
    told.say(3.0, "feedback", Feedback(action_id="b", status="failure", why="gone"), "teacher", "policy")
    rows, _ = rows_of(told.written())
    first = rows.runs == rows.runs[0]
    assert rows.wanted[first, DONE].sum() == pytest.approx(5, abs=1)
    assert rows.wanted[first, DONE][:10].sum() == 0.0
    assert rows.wanted[~first, DONE].sum() == 0.0
    assert len(rows.felt) == pytest.approx(30, abs=2)


def test_where_nobody_held_the_seat_a_policy_is_not_its_own_teacher(tmp_path: Path) -> None:
    told = Told(tmp_path / "run.mcap")
    told.say(1.0, "action", Action(id="a", skill="pick", arguments=aimed_at(CUP)), "vlm", "vlm")
    told.command(1.0, 3.0, PUPILS, "policy")
    recording = told.written()
    assert len(rows_of(recording)[0].felt) == 0
    assert len(rows_of(recording, "another")[0].felt) > 30, "a demonstration, for a pupil that was not there"


def test_rows_are_kept_in_a_file_and_joined_without_mixing_runs(told: Told, tmp_path: Path) -> None:
    told.command(1.0, 3.0, TEACHERS, "teacher")
    rows, _ = rows_of(told.written())
    rows.write(tmp_path / "rows.npz")
    read = Rows.read(tmp_path / "rows.npz")
    assert np.array_equal(read.felt, rows.felt)
    both = Rows.joined([read, rows])
    assert len(both.felt) == 2 * len(rows.felt)
    assert len(set(both.runs)) == 2 * len(set(rows.runs))


def test_a_file_without_rows_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.npz").write_text("no rows")
    with pytest.raises(UserError, match=pattern("policy.holds_no_rows", file="rows.npz")):
        Rows.read(tmp_path / "rows.npz")


def test_rows_that_are_not_finite_are_neither_made_nor_read(told: Told, tmp_path: Path) -> None:
    told.command(1.0, 2.0, TEACHERS, "teacher")
    told.command(2.0, 3.0, msgspec.structs.replace(TEACHERS, base_v_mps=math.nan), "teacher")  # type: ignore[type-var]
    rows, _ = rows_of(told.written())
    assert 18 <= len(rows.felt) <= 24
    assert np.isfinite(rows.wanted).all()
    rows.counts[0] = math.inf
    rows.write(tmp_path / "rows.npz")
    with pytest.raises(UserError, match=pattern("policy.rows_not_finite", file="rows.npz")):
        Rows.read(tmp_path / "rows.npz")


def test_rows_that_are_known_are_left_out(told: Told) -> None:
    told.command(1.0, 3.0, TEACHERS, "teacher")
    rows, _ = rows_of(told.written())
    half = Rows(rows.felt[:10], rows.wanted[:10], rows.runs[:10], rows.counts[:10])
    assert np.array_equal(rows.besides([half]).felt, rows.felt[10:])
    assert len(rows.besides([half, rows]).felt) == 0


@pytest.mark.parametrize(
    ("changed", "told_is"),
    [
        (("--out", "missing/mine.onnx"), sentence("policy.no_folder")),
        (("--rows", "missing/rows.npz"), sentence("policy.no_folder")),
        (("--out", "."), sentence("policy.out_is_folder")),
        (("--model", "missing.onnx"), sentence("policy.no_model")),
    ],
)
def test_what_cannot_be_read_or_written_is_told_before_anything_is_learned(
    changed: tuple[str, str], told_is: str, told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    told.command(1.0, 3.0, TEACHERS, "teacher")
    recording = told.written()
    assert main([str(recording), "--out", "mine.onnx", *changed]) == 2
    answer = capsys.readouterr()
    assert told_is in answer.err
    assert str(recording) not in answer.out
    assert not Path("mine.onnx").exists()


def test_a_model_that_is_no_onnx_file_is_refused() -> None:
    pytest.importorskip("torch", reason="needs the extra train")
    from nodes.policy.learn.network import restored

    with pytest.raises(UserError, match=pattern("policy.no_file_of_ours")):
        restored(b"junk\n")


def test_a_recording_in_which_nobody_taught_is_told_with_the_remedy(
    told: Told, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told.command(1.0, 3.0, PUPILS, "policy")
    assert main([str(told.written()), "--out", str(tmp_path / "mine.onnx")]) == 2
    assert sentence("policy.nobody_taught") in capsys.readouterr().err


def test_it_learns_what_it_was_taught_and_the_file_can_learn_on(told: Told, tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs the extra train")
    from nodes.policy.learn.network import as_onnx, restored

    told.command(1.0, 4.0, TEACHERS, "teacher")
    recording, model, kept = told.written(), tmp_path / "mine.onnx", tmp_path / "rows.npz"
    more = ["--out", str(model), "--rows", str(kept), "--epochs", "300"]
    assert main([str(recording), *more]) == 0
    taught, before = restored(model.read_bytes()), restored(shipped()["clear-table"].read_bytes())
    rows = Rows.read(kept)
    off_m = [abs(float(one(_tensor(rows.felt[20:21]))[0][0, LIFT].detach()) - 0.9) for one in (before, taught)]
    assert off_m[1] < 0.02 < off_m[0]
    assert as_onnx(taught, {}) == as_onnx(restored(as_onnx(taught, {})), {})
    again = ["--out", str(tmp_path / "again.onnx"), "--rows", str(kept), "--epochs", "1", "--model", str(model)]
    assert main([str(recording), *again]) == 0
    assert len(Rows.read(kept).felt) == len(rows.felt), "a recording that is named again teaches nothing twice"


def _tensor(felt: object) -> object:
    import torch

    return torch.tensor(felt)
