"""A recording as a Rerun file, read back by Rerun's own reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.sentences import sentence

pytest.importorskip("rerun", reason="needs the extra rerun")

import rerun as rr
from rerun.chunk import RrdReader

from nodes.msgs import JOINTS, RobotState
from nodes.recording.bag.command import main
from nodes.recording.bag.recording import Recording
from tests.support.synthetic_run import write_run


def test_reruns_own_reader_finds_pictures_joints_words_and_both_timelines(tmp_path: Path) -> None:
    path = write_run(tmp_path, seconds=2.0)
    out = tmp_path / "run.rrd"
    assert main(["export", str(path), "--to", "rerun", "--out", str(out)]) == 0
    rows: dict[str, int] = {}
    timelines: set[str] = set()
    chunks = list(RrdReader(out).stream())
    for chunk in chunks:
        rows[chunk.entity_path.strip("/")] = rows.get(chunk.entity_path.strip("/"), 0) + chunk.num_rows
        timelines |= set(chunk.timeline_names)
    states = [one.message(RobotState) for one in Recording(path) if one.topic == "robot/state"]
    assert {"time", "run"} <= timelines
    assert {rows[f"joints/{name}"] for name in JOINTS} == {len(states)}
    assert rows["head/image"] >= sum(one.topic == "head/image" for one in Recording(path))
    assert rows["conversation"] == sum(one.topic in ("heard", "said") for one in Recording(path))
    lifts = [
        value[0]
        for chunk in chunks
        if chunk.entity_path.strip("/") == f"joints/{JOINTS[0]}"
        for value in chunk.to_record_batch().column("Scalars:scalars").to_pylist()
    ]
    assert sorted(lifts) == pytest.approx(sorted(state.position[0] for state in states))


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_run(tmp_path, seconds=1.0)
    assert main(["export", str(path), "--to", "rerun", "--out", str(path)]) != 0
    assert Recording(path).readers


def test_an_unwritable_folder_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_run(tmp_path, seconds=1.0)
    assert main(["export", str(path), "--to", "rerun", "--out", str(tmp_path)]) == 2
    assert sentence("recording.is_there_already") in capsys.readouterr().err
    out = path / "below_a_file.rrd"
    assert main(["export", str(path), "--to", "rerun", "--out", str(out)]) == 2
    assert f"{out}: {sentence('recording.cannot_be_written')}" in capsys.readouterr().err
    made = tmp_path / "no" / "folder.rrd"
    assert main(["export", str(path), "--to", "rerun", "--out", str(made)]) == 0
    assert made.stat().st_size > 0


def test_a_full_disk_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def flush(_: object) -> None:
        raise RuntimeError("File-writer thread shut down prematurely")  # as Rerun tells of it

    path = write_run(tmp_path, seconds=1.0)
    monkeypatch.setattr(rr.RecordingStream, "flush", flush)
    assert main(["export", str(path), "--to", "rerun"]) == 1
    assert sentence("recording.not_to_its_end") in capsys.readouterr().err
