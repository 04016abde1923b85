"""The doctor tells what would train a policy on something that never happened, and calls a still scene no fault."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest

from nodes.mcap.file import BagReader, BagWriter
from nodes.recording.bag.command import main as bag
from nodes.recording.dataset.command import main
from nodes.recording.dataset.doctor import examine
from tests.nodes.recording.bag.export.ramp_recording import recording

DATA = "data/chunk-000/file-000.parquet"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of four seconds, which no test changes."""
    folder = tmp_path_factory.mktemp("doctor")
    path = recording(folder / "run.mcap", 2.5)
    assert bag(["export", str(path), "--to", "lerobot", "--out", str(folder / "set")]) == 0
    return folder / "set"


def changed(whole: Path, out: Path, name: str, change: Callable[[list[Any]], list[Any]]) -> Path:
    """The same dataset with another column of that name."""
    shutil.copytree(whole, out)
    table = parquet.read_table(out / DATA)
    place = table.column_names.index(name)
    parquet.write_table(table.set_column(place, name, arrow.array(change(table.column(name).to_pylist()))), out / DATA)
    return out


def kinds(dataset: Path) -> set[str]:
    return {one.kind for one in examine(dataset) if one.is_problem}


def test_a_whole_dataset_has_no_problem_and_its_constant_columns_are_named(
    whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", str(whole), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["is_fit"]
    (constant,) = (
        one for one in said["findings"] if one["kind"] == "constant" and one["column"] == "observation.state"
    )
    assert "arm" in constant["told"]
    assert "lift" not in constant["told"]


def test_a_camera_that_fell_silent_fails_the_export_unless_that_is_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It gives nothing after 0.4 s, up to the end."""
    writer = BagWriter(tmp_path / "run.mcap", {"clock": "virtual"})
    for message in BagReader(recording(tmp_path / "all.mcap", 2.5)):
        if message.topic != "head/image" or message.envelope.published_ns < 450_000_000:
            writer.copy(message)
    writer.close({})
    asked = ["export", str(tmp_path / "run.mcap"), "--to", "lerobot", "--out", str(tmp_path / "set")]
    assert main_info(tmp_path / "run.mcap", capsys)["head/image"] == pytest.approx(2.08)
    assert bag(asked) == 1
    assert "observation.images.head gave no picture for 2.0 s, until the end" in capsys.readouterr().err
    assert not (tmp_path / "set").exists()
    assert bag([*asked, "--accept-problems"]) == 0
    (found,) = (one for one in examine(tmp_path / "set") if one.is_problem)
    assert (found.kind, found.frames) == ("repeated frames", 21)


def main_info(path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, float]:
    """The longest gap of each topic, as `bag info` has it."""
    assert bag(["info", str(path), "--json"]) == 0
    return {one["topic"]: one["longest_gap_s"] for one in json.loads(capsys.readouterr().out)["topics"]}


def test_equal_pictures_of_anybodys_dataset_are_a_fault_where_the_robot_moves_and_a_still_scene_where_not(
    whole: Path, tmp_path: Path
) -> None:
    """Nothing tells how old their pictures are."""
    found = {}
    for name in ("moves", "stands"):
        out = shutil.copytree(whole, tmp_path / name)
        table = parquet.read_table(out / DATA).drop_columns(["image_age.head"])
        if name == "stands":
            row = table.column("observation.state").to_pylist()[0]
            place = table.column_names.index("observation.state")
            rows = arrow.array([row] * table.num_rows, arrow.list_(arrow.float32()))
            table = table.set_column(place, "observation.state", rows)
        parquet.write_table(table, out / DATA)
        said = json.loads((out / "meta/info.json").read_text())
        del said["features"]["image_age.head"]
        (out / "meta/info.json").write_text(json.dumps(said))
        freeze(out / "videos/observation.images.head/chunk-000/file-000.mp4", table.num_rows)
        stats = out / "meta/stats.json"
        stats.write_text("{}")
        found[name] = {(one.kind, one.is_problem) for one in examine(out) if one.column.endswith("head")}
    assert found == {"moves": {("repeated frames", True)}, "stands": {("still scene", False)}}


def freeze(video: Path, frames: int) -> None:
    from nodes.recording.bag.export.video import VideoFile

    video.unlink()
    with VideoFile(video, 20, 64, 48) as file:
        for _ in range(frames):
            file.add(np.full((48, 64, 3), 90, np.uint8))
        file.finish()


@pytest.mark.parametrize(
    ("column", "change", "kind"),
    [
        ("timestamp", lambda old: [at_s + 0.3 * (row > 20) for row, at_s in enumerate(old)], "dropped frames"),
        ("action", lambda old: [[float("nan"), *row[1:]] for row in old], "not finite"),
        ("action", lambda old: [["far"] * len(row) for row in old], "unreadable"),
        ("action", lambda old: [row[: 3 + at % 2] for at, row in enumerate(old)], "unreadable"),
        ("action", lambda old: [[one + 3.0 for one in row] for row in old], "statistics"),
        ("episode_index", lambda old: [at // 40 for at, _ in enumerate(old)], "unreadable"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_column_is_told(
    column: str, change: Callable[[list[Any]], list[Any]], kind: str, whole: Path, tmp_path: Path
) -> None:
    assert kind in kinds(changed(whole, tmp_path / "set", column, change))


def test_a_jump_of_an_action_is_noted_and_where_it_is(whole: Path, tmp_path: Path) -> None:
    out = changed(
        whole,
        tmp_path / "set",
        "action",
        lambda old: [[row[0] + 9 * (at == 30), *row[1:]] for at, row in enumerate(old)],
    )
    (jump,) = (one for one in examine(out) if one.kind == "jump")
    assert jump.at_s == pytest.approx(1.45)


def text_in_rows(dataset: Path) -> None:
    table = parquet.read_table(dataset / DATA)
    place, rows = table.column_names.index("action"), table.column("action").to_pylist()
    text = arrow.array([[str(number) for number in row] for row in rows])
    parquet.write_table(table.set_column(place, "action", text), dataset / DATA)


def action_of_six(dataset: Path) -> None:
    said = json.loads((dataset / "meta/info.json").read_text())
    said["features"]["action"] |= {"shape": [6], "names": None}
    (dataset / "meta/info.json").write_text(json.dumps(said))


def info_with(**values: object) -> Callable[[Path], None]:
    def change(dataset: Path) -> None:
        place = dataset / "meta/info.json"
        place.write_text(json.dumps(json.loads(place.read_text()) | values))

    return change


@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        (info_with(fps=0), "unreadable"),
        (info_with(codebase_version="v1.6"), "unreadable"),
        (info_with(total_episodes=2), "incomplete"),
        (lambda dataset: (dataset / "meta/info.json").write_text("{"), "unreadable"),
        (lambda dataset: shutil.rmtree(dataset / "meta/episodes"), "incomplete"),
        (text_in_rows, "unreadable"),
        (action_of_six, "unreadable"),
        (lambda dataset: shutil.rmtree(dataset / "meta"), "unreadable"),
        (lambda dataset: shutil.rmtree(dataset / "videos"), "no video"),
        (lambda dataset: (dataset / DATA).unlink(), "unreadable"),
        (lambda dataset: (dataset / DATA).write_bytes((dataset / DATA).read_bytes()[:900]), "unreadable"),
        (lambda dataset: shutil.copy(dataset / DATA, dataset / "data/chunk-000/file-007.parquet"), "incomplete"),
    ],
)
def test_a_dataset_that_is_damaged_is_told_in_a_sentence_and_no_other_command_takes_it(
    damage: Callable[[Path], None], kind: str, whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = shutil.copytree(whole, tmp_path / "set")
    damage(out)
    before = {place: place.stat().st_mtime_ns for place in out.rglob("*")}
    assert kind in kinds(out)
    assert main(["doctor", str(out)]) == 1
    assert main(["drop", str(out), "0"]) in (1, 2)
    if kind in ("unreadable", "no video"):
        assert bag(["import", str(out), "--out", str(tmp_path / "run.mcap")]) in (1, 2)
    assert "Traceback" not in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["set"]
    assert before == {place: place.stat().st_mtime_ns for place in out.rglob("*")}


@pytest.mark.parametrize(
    ("names", "is_problem", "is_imported"),
    [
        (lambda old: [old[1], old[0], *old[2:]], True, False),
        (lambda old: [old[0], *old[:-1]], True, False),
        (lambda old: ["left", *old[1:]], False, False),
        (lambda _: None, False, False),
        (lambda _: ["actions"], False, False),
        (lambda old: old, False, True),
    ],
)
def test_names_that_tell_two_stories_of_the_joints_are_told_and_are_no_recording(
    names: Callable[[list[str]], list[str] | None], whole: Path, tmp_path: Path, *, is_problem: bool, is_imported: bool
) -> None:
    out = shutil.copytree(whole, tmp_path / "set")
    place = out / "meta/info.json"
    said = json.loads(place.read_text())
    action = said["features"]["action"]
    action["names"] = names(action["names"])
    place.write_text(json.dumps(said))
    assert any(one.kind == "names" for one in examine(out))
    assert ("names" in kinds(out)) == is_problem
    asked = ["import", str(out), "--out", str(tmp_path / "run.mcap")]
    assert (bag(asked) == 0) == is_imported == (tmp_path / "run.mcap").exists()


@pytest.mark.parametrize(("times", "is_problem"), [(57.3, True), (1 / 57.3, True), (100.0, False), (1.0, None)])
def test_an_action_in_another_unit_than_its_state_is_told(
    times: float, is_problem: bool | None, whole: Path, tmp_path: Path
) -> None:
    table = parquet.read_table(whole / DATA)
    state = table.column("observation.state").to_pylist()
    out = changed(whole, tmp_path / "set", "action", lambda _: [[times * one for one in row[:10]] for row in state])
    assert {one.is_problem for one in examine(out) if one.kind == "units"} == {is_problem} - {None}
