"""A recording of the robot becomes an episode of the same log, judged by the same rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodes.episodes.command import main
from nodes.episodes.judging.by_rules import judge_by_rules
from nodes.episodes.play import embodied
from nodes.episodes.results.store import Store
from runtime.episode_msgs import Turn
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


def test_text_and_body_stand_side_by_side_under_the_same_judges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = write_run(tmp_path)
    monkeypatch.setattr(embodied, "play_body", lambda plan, path, *, seed, overrides: recording)
    run = tmp_path / "both.sqlite"
    assert main(["embody", "--task", "clear-table-by-four", "--beside-text", "--out", str(run)]) == 0
    with Store.read(run) as store:
        body, text = store.episodes()
        assert (body.state, text.state) == ("done", "done")
        assert body.names == text.names
        shapes = [[(s.name, s.dimension) for s in store.scores(row.id)[0].scores] for row in (body, text)]
        assert shapes[0] == shapes[1]
        assert set(store.checks(body.id) or ()) == set(store.checks(text.id) or ())
    printed = capsys.readouterr().out
    assert "as text" in printed
    assert "with a body" in printed


def test_what_the_simulated_person_cannot_play_is_said_with_the_way_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["embody", "--task", "the-brown-bottle", "--out", str(tmp_path / "x.sqlite")]) == 2
    error = capsys.readouterr().err
    assert "the simulated person plays clear-table-by-four only; record a run with a person" in error


def test_the_robots_goal_is_judged_by_what_was_done_and_left() -> None:
    plan = embodied.embodied_plan("clear-table-by-four")
    done = [f"putting the {colour} cup in the bin" for colour in ("yellow", "green")]
    acts = [*done, "putting the red cup in the bin (failed)"]
    turns = [
        Turn(index=index, number=index + 1, speaker=plan.names[0], kind="action", argument=text)
        for index, text in enumerate(acts)
    ]
    scores = {score.name: score for score in judge_by_rules(plan, turns).scores if score.dimension == "GOAL"}
    assert "2 of the 5 things wanted were done" in scores[plan.names[0]].reasoning
    assert scores[plan.names[0]].score == 4
    assert scores[plan.names[1]].score == 8  # two of four in the bin, and the blue one left
