"""Datasets: written whole or not at all, added to, cut, of both versions; their words, and the way back."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Literal

import cv2
import numpy as np
import pyarrow.parquet as parquet
import pytest

from nodes.mcap.file import BagReader, BagWriter
from nodes.msgs import Interrupt, InterruptRecord, JointCommand, RobotState, Subtask, Trial, Utterance
from nodes.recording.bag.command import main as bag
from nodes.recording.bag.recording import Recording
from nodes.recording.dataset.command import main
from nodes.recording.dataset.doctor import examine
from runtime.clock import to_ns
from runtime.coordination.lease import Lease
from runtime.message import Envelope, Message, Stamped
from tests.nodes.recording.bag.export.ramp_recording import recording
from tests.support.sentences import sentence


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recording(tmp_path_factory.mktemp("run") / "run.mcap")


@pytest.fixture(scope="module")
def whole(run: Path) -> Path:
    """A dataset of one episode, which no test changes."""
    out = run.with_name("whole")
    assert export(run, "--out", str(out)) == 0
    return out


def export(*asked: object) -> int:
    return bag(["export", *map(str, asked), "--to", "lerobot"])


def rows(dataset: Path, number: int = 0) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = parquet.read_table(dataset / f"data/chunk-000/file-{number:03d}.parquet").to_pydict()
    return found


def info(dataset: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((dataset / "meta/info.json").read_text())
    return found


def copied(run: Path, out: Path, *more: tuple[float, str, Message], without: str = "", end: str = "true") -> Path:
    """The same recording with more messages, maybe without a topic, and with another end."""
    writer = BagWriter(out, {"clock": "virtual"})
    for message in BagReader(run):
        if not without or not message.topic.startswith(without):
            writer.copy(message)
    for number, (at_s, topic, said) in enumerate(more, start=1):
        writer.write(Stamped(said, Envelope(topic, "node", number, to_ns(at_s))))
    writer.close({"outcome": f'{{"ok":{end}}}'})
    return out


def test_a_failed_export_leaves_nothing_behind_that_the_next_one_would_load(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second recording has no camera: that is known only once the first is written."""
    blind = copied(run, tmp_path / "blind.mcap", without="head/")
    out = tmp_path / "set"
    assert export(run, blind, "--out", out) == 1
    assert f"blind.mcap: {sentence('recording.lacks_a_feature')}" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["blind.mcap"]
    assert export(run, "--out", out) == 0
    assert len(list(out.glob("data/*/*.parquet"))) == info(out)["total_episodes"] == 1


def test_an_export_that_fails_into_an_empty_folder_leaves_it_empty(run: Path, tmp_path: Path) -> None:
    blind, out = copied(run, tmp_path / "blind.mcap", without="head/"), tmp_path / "set"
    out.mkdir()
    assert export(run, blind, "--out", out) == 1
    assert not list(out.iterdir())
    assert export(run, "--out", out) == 0
    assert sorted(path.name for path in out.iterdir()) == ["data", "meta", "videos"]


@pytest.mark.parametrize("version", ["v3.0", "v2.1"])
def test_episodes_are_added_and_dropped_and_all_numbers_follow(version: str, run: Path, tmp_path: Path) -> None:
    short, out = recording(tmp_path / "short.mcap", 1.0), tmp_path / "set"
    assert export(run, "--out", out, "--version", version) == 0
    assert export(short, "--add", out) == 0
    assert not examine(out) or not any(one.is_problem for one in examine(out))
    assert (info(out)["total_episodes"], info(out)["total_frames"]) == (2, 56)
    assert main(["drop", str(out), "0"]) == 0
    assert (info(out)["total_episodes"], info(out)["total_frames"]) == (1, 18)
    assert not any(one.is_problem for one in examine(out))
    (data,) = out.glob("data/*/*.parquet")
    table = parquet.read_table(data).to_pydict()
    assert table["episode_index"] == [0] * 18
    assert table["index"] == list(range(18))
    (video,) = out.glob("videos/**/*.mp4")
    assert frames_of(video) == 18
    assert sorted(path.name for path in tmp_path.iterdir()) == ["set", "short.mcap"]


def frames_of(video: Path) -> int:
    capture = cv2.VideoCapture(str(video))
    number = int(capture.get(cv2.CAP_PROP_FRAME_COUNT))
    capture.release()
    return number


def test_what_is_not_alike_is_not_added_and_the_dataset_stays_as_it_was(
    run: Path, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = shutil.copytree(whole, tmp_path / "set")
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert export(run, "--add", out, "--layout", "policy") == 1
    assert export(run, "--add", out, "--words") == 1
    assert export(run, "--add", out, "--version", "v2.1") == 2
    assert export(run, "--add", out, "--hz", "10") == 2
    assert main(["drop", str(out), "3"]) == 2
    assert main(["drop", str(out), "0"]) == 2
    assert before == {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert "has no episode 3; it has 1" in capsys.readouterr().err


def test_what_meta_does_not_tell_of_any_more_is_not_written_over(
    run: Path, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = shutil.copytree(whole, tmp_path / "set")
    shutil.rmtree(out / "meta/episodes")
    data = (out / "data/chunk-000/file-000.parquet").read_bytes()
    assert export(run, "--add", str(out)) == 1
    assert sentence("recording.dataset_is_not_whole") in capsys.readouterr().err
    assert (out / "data/chunk-000/file-000.parquet").read_bytes() == data


def test_recordings_of_a_folder_are_chosen_by_how_their_run_ended(run: Path, tmp_path: Path) -> None:
    study = tmp_path / "study"
    study.mkdir()
    for name, end in (("a", "true"), ("b", "false"), ("c", "true")):
        copied(run, study / f"{name}.mcap", end=end)
    assert export(study, "--only", "success", "--out", tmp_path / "good") == 0
    assert export(study, "--only", "failure", "--out", tmp_path / "bad") == 0
    assert (info(tmp_path / "good")["total_episodes"], info(tmp_path / "bad")["total_episodes"]) == (2, 1)


def test_v2_1_has_what_openpi_and_gr00t_read(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "set"
    assert export(run, "--version", "v2.1", "--out", out) == 0
    said = info(out)
    place = {"episode_chunk": 0, "episode_index": 0, "video_key": "observation.images.head"}
    assert said["codebase_version"] == "v2.1"
    assert parquet.read_table(out / said["data_path"].format(**place)).num_rows == said["total_frames"] == 38
    assert frames_of(out / said["video_path"].format(**place)) == 38
    lines = {
        name: [json.loads(line) for line in (out / f"meta/{name}.jsonl").read_text().splitlines()]
        for name in ("tasks", "episodes", "episodes_stats")
    }
    assert [one["task"] for one in lines["tasks"]] == ["clear the table", "wipe it"]
    assert lines["episodes"] == [{"episode_index": 0, "tasks": ["clear the table", "wipe it"], "length": 38}]
    assert np.shape(lines["episodes_stats"][0]["stats"]["observation.images.head"]["mean"]) == (3, 1, 1)
    modality = json.loads((out / "meta/modality.json").read_text())
    assert modality["state"] == {"joints": {"start": 0, "end": 8}, "base": {"start": 8, "end": 11}}
    assert modality["action"] == {"joints": {"start": 0, "end": 8}, "base": {"start": 8, "end": 10}}
    assert modality["video"] == {"head": {"original_key": "observation.images.head"}}
    assert modality["annotation"] == {"human.task_description": {"original_key": "task_index"}}


@pytest.mark.parametrize(("layout", "numbers"), [("default", 11), ("policy", 8), ("same", 10)])
def test_the_layout_says_what_a_state_holds(layout: str, numbers: int, run: Path, tmp_path: Path) -> None:
    out = tmp_path / "set"
    assert export(run, "--layout", layout, "--out", out) == 0
    features = info(out)["features"]
    assert features["observation.state"]["shape"] == [numbers]
    assert len(rows(out)["observation.state"][0]) == numbers
    assert (features["observation.state"]["names"] == features["action"]["names"]) is (layout == "same")


def test_a_graph_with_other_names_for_its_topics_is_exported_by_their_types(run: Path, tmp_path: Path) -> None:
    writer = BagWriter(tmp_path / "run.mcap", {"clock": "virtual"})
    for message in BagReader(run):
        about = message.envelope
        envelope = Envelope(f"left/{message.topic}", about.source, about.seq, about.published_ns)
        if message.topic == "robot/state":
            writer.write(Stamped(message.message(RobotState), envelope))
        elif message.topic == "robot/command":
            writer.write(Stamped(message.message(JointCommand), envelope))
        else:
            writer.copy(message)
    writer.close({})
    assert export(tmp_path / "run.mcap", "--out", tmp_path / "set") == 0
    assert rows(tmp_path / "set")["observation.state"] == rows_of(run, tmp_path)["observation.state"]


def rows_of(run: Path, tmp_path: Path) -> dict[str, list[Any]]:
    assert export(run, "--out", tmp_path / "usual") == 0
    return rows(tmp_path / "usual")


SPOKEN: tuple[tuple[float, str, Message], ...] = (
    (0.05, "heard", Utterance(speaker="Sam", text="Clear the table, please")),
    (0.06, "interrupt", Interrupt(id="i1", depth="replan", text="Clear the table, please", by="Sam", cause="person")),
    (0.5, "said", Utterance(speaker="robot", text="Yes, Sam.")),
    (1.0, "subtask", Subtask(id="s9", text="Give Sam the cup")),
    (1.52, "heard", Utterance(speaker="Sam", text="Stop!")),
    (1.53, "interrupt", Interrupt(id="i2", depth="stop", text="Stop!", by="Sam", cause="person")),
    (1.7, "interrupt/record", InterruptRecord(
        id="i2", depth="stop", by="Sam", text="Stop!", cause="heard:node:5", heard_ns=to_ns(1.52), at_rest_ms=150.0)),
)  # fmt: skip


def test_words_stop_and_effect_stand_at_the_first_frame_at_which_they_were_known(run: Path, tmp_path: Path) -> None:
    path, out = copied(run, tmp_path / "run.mcap", *SPOKEN), tmp_path / "set"
    assert export(path, "--words", "--out", out) == 0
    table, said = rows(out), info(out)
    events = {number: row for number, row in enumerate(table["language_events"]) if row}
    # The first frame is at 0.1 s, and a frame comes each 0.05 s.
    assert list(events) == [0, 8, 29, 32]
    assert events[0][0] | {"camera": None} == {
        "role": "user", "content": "Clear the table, please", "style": "interjection", "camera": None,
        "tool_calls": None,
    }  # fmt: skip
    calls = [json.loads(call)["function"] for row in events.values() for one in row for call in one["tool_calls"] or ()]
    assert [call["name"] for call in calls] == ["interrupt", "say", "interrupt", "interrupt_effect"]
    assert calls[1]["arguments"]["text"] == "Yes, person.", "and nobody's name"
    assert calls[2]["arguments"] == {"id": "i2", "depth": "stop", "by": "person", "cause": "person"}
    assert calls[3]["arguments"] == {"id": "i2", "at_rest_ms": 150.0}
    lasting = [(one["style"], one["content"]) for one in table["language_persistent"][0]]
    assert ("subtask", "Give person the cup") in lasting
    assert table["language_persistent"][0] == table["language_persistent"][-1]
    assert {name: said["features"][name]["dtype"] for name in ("language_persistent", "language_events")} == {
        "language_persistent": "language", "language_events": "language",
    }  # fmt: skip
    assert {one["function"]["name"] for one in said["tools"]} == {"say", "interrupt", "interrupt_effect"}
    files = [file for file in out.rglob("*") if file.is_file() and file.suffix != ".mp4"]
    assert not [file for file in files if b"Sam" in file.read_bytes()]
    assert "Sam" not in str(table)


def test_without_being_asked_for_no_word_is_exported_and_no_name_stands_in_a_task(run: Path, tmp_path: Path) -> None:
    path, out = copied(run, tmp_path / "run.mcap", *SPOKEN), tmp_path / "set"
    assert export(path, "--out", out) == 0
    assert "language_events" not in rows(out)
    tasks = parquet.read_table(out / "meta/tasks.parquet").to_pydict()["__index_level_0__"]
    assert "Give person the cup" in tasks


def test_the_task_may_be_what_a_person_said_and_a_stop_is_none(run: Path, tmp_path: Path) -> None:
    path, out = copied(run, tmp_path / "run.mcap", *SPOKEN), tmp_path / "set"
    assert export(path, "--task-from", "words", "--out", out) == 0
    tasks = parquet.read_table(out / "meta/tasks.parquet").to_pydict()["__index_level_0__"]
    assert tasks == ["Clear the table, please"]


def test_corrections_alone_are_episodes_of_their_own(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def held(kind: Literal["person", "model"]) -> Lease:
        return Lease(seat="policy", holder=kind, kind=kind, number=1)

    spans = [(0.5, held("person")), (1.0, held("model")), (1.3, held("person")), (1.6, held("model"))]
    path, out = copied(run, tmp_path / "run.mcap", *((at_s, "lease", one) for at_s, one in spans)), tmp_path / "set"
    assert export(path, "--corrections", "--accept-problems", "--out", out) == 0
    held_by_hand = [rows(out, number)["intervention"] for number in (0, 1)]
    assert all(map(all, held_by_hand))
    assert [len(one) for one in held_by_hand] == pytest.approx([10, 6], abs=1)
    assert "base_x" in str(info(out))
    capsys.readouterr()
    assert export(run, "--corrections", "--out", tmp_path / "none") == 1
    assert sentence("recording.no_corrections") in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_words_of_a_study_are_exported_only_where_its_protocol_asked_for_that(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for shares in (False, True):
        trial = Trial(
            participant="P1", number=1, attempt=1, task="t", condition="c", phase="started", shares_words=shares
        )
        path = copied(run, tmp_path / f"{shares}.mcap", (0.05, "study/trial", trial), *SPOKEN)
        for asked in ("--words", "--task-from=words"):
            assert export(path, asked, "--out", tmp_path / f"{shares}{asked}") == (0 if shares else 2)
        assert (sentence("recording.words_need_consent") in capsys.readouterr().err) is not shares
        assert export(path, "--out", tmp_path / f"{shares}-silent") == 0


@pytest.mark.parametrize("version", ["v3.0", "v2.1"])
def test_an_imported_dataset_is_a_recording_that_exports_to_the_same_numbers(
    version: str, run: Path, tmp_path: Path
) -> None:
    out, back = tmp_path / "set", tmp_path / "back.mcap"
    path = copied(run, tmp_path / "run.mcap", *SPOKEN)
    words = ["--words"] if version == "v3.0" else []
    assert export(path, "--version", version, *words, "--out", out) == 0
    assert bag(["import", str(out), "--out", str(back)]) == 0
    again = tmp_path / "again"
    assert export(back, *words, "--out", again) == 0
    (data,) = out.glob("data/*/*.parquet")
    first, second = parquet.read_table(data).to_pydict(), rows(again)
    for column in ("observation.state", "action", "intervention"):
        assert second[column][:36] == first[column][:36], column
    assert second["next.success"][-1] is first["next.success"][-1] is True
    if words:
        heard = [one.message(Utterance).text for one in Recording(back) if one.topic == "heard"]
        assert heard == ["Clear the table, please", "Stop!"]
        stops = [one.message(Interrupt).depth for one in Recording(back) if one.topic == "interrupt"]
        assert stops == ["replan", "stop"]
    assert frames_of(next(again.glob("videos/**/*.mp4"))) >= 37


def test_a_dataset_with_other_joints_in_its_action_is_refused_and_nothing_is_written(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = shutil.copytree(whole, tmp_path / "set")
    said = info(out)
    said["features"]["action"]["names"][0] = "elbow"
    (out / "meta/info.json").write_text(json.dumps(said))
    assert bag(["import", str(out), "--out", str(tmp_path / "run.mcap")]) == 1
    assert "and its action of elbow, " in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["set"]
    assert bag(["import", str(out), "--episode", "7"]) == 2
