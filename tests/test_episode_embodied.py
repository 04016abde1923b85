"""A recording of the robot becomes an episode of the same log, judged by the same rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodes.episodes.command import main
from nodes.episodes.results.store import Store
from tests.synthetic_run import write_run


def test_a_recording_becomes_an_episode_with_a_link_to_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording = write_run(tmp_path)
    run = tmp_path / "episode.sqlite"
    assert main(["embody", str(recording), "--task", "clear-table-by-four", "--out", str(run)]) == 0
    with Store.read(run) as store:
        row = store.episodes()[0]
        turns = store.turns(row.id)
        assert (row.state, row.recording) == ("done", str(recording))
        assert len(store.scores(row.id)[0].scores) == 7 * len(row.names)
    spoken = [turn for turn in turns if turn.kind == "speak"]
    assert spoken[0].argument == "Please clear the table: put the cups in the bin"
    assert [turn.speaker for turn in spoken] == [row.names[1], row.names[0]] * 4
    done = [turn.argument for turn in turns if turn.kind == "action"]
    assert len(done) == 8
    assert sum(text.endswith("(failed)") for text in done) == 1
    broken_off = [turn for turn in turns if turn.argument.endswith("(broken off)")]
    assert [turn.note for turn in broken_off] == ["interrupted by collaborator: No, not the blue one"]
    assert "Sorry. I stopped." in capsys.readouterr().out


def test_a_scenario_without_a_robot_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["embody", str(tmp_path / "none.mcap"), "--task", "quiet-hours"]) == 2
    assert "has no robot in it" in capsys.readouterr().err
