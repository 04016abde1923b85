"""launch/sotopia.toml: the same episode in processes over ZeroMQ and in virtual time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nodes.episodes.runner.terminal import EpisodeView
from nodes.msgs.episode import Outcome, Scores, Turn
from runtime.message import Envelope, Stamped

ROOT = Path(__file__).parents[4]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "runtime", "run", "launch/sotopia.toml", *arguments]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=120, env={**os.environ, "TERM": ""}
    )


@pytest.mark.processes
def test_processes_and_virtual_time_play_the_same_episode() -> None:
    virtual, real = run("--virtual"), run()
    assert (real.returncode, virtual.returncode) == (0, 0), real.stderr + virtual.stderr
    assert real.stdout.replace("in real time", "in virtual time") == virtual.stdout
    for output in (real.stdout, virtual.stdout):
        assert "End after " in output
        assert "scores by rules" in output
        assert "GOAL" in output


def test_the_view_puts_in_order_what_moderator_and_judge_say_in_none(capsys: pytest.CaptureFixture[str]) -> None:
    view = EpisodeView("one")
    turns = [Turn(index=i, number=i + 1, speaker="Ana", kind="speak", argument=f"line {i}") for i in range(2)]
    outcome = Outcome(episode="e", state="done", reason="left: Ana", turns=2)
    scores = Scores(episode="e", judge="rules", state="failed", scores=(), why="no reason")
    for message in (scores, outcome, turns[1], turns[0]):
        view.message(Stamped(message, Envelope("t", "n", 1, 0)))
    printed = capsys.readouterr().out
    places = [printed.index(text) for text in ("line 0", "line 1", "End after 2 acts", "The evaluation failed")]
    assert places == sorted(places)


@pytest.mark.parametrize(("columns", "longest"), [(None, 100), (80, 80), (200, 100)])
def test_what_is_said_is_broken_at_the_terminals_width(
    columns: int | None, longest: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("nodes.episodes.runner.terminal.terminal_width", lambda: columns)
    turn = Turn(index=0, number=1, speaker="Ana", kind="speak", argument="x y " * 100)
    EpisodeView("one").message(Stamped(turn, Envelope("t", "n", 1, 0)))
    assert longest - 4 < max(len(line) for line in capsys.readouterr().out.splitlines()) <= longest


@pytest.mark.processes
def test_a_dead_agent_fails_the_episode_and_is_never_silence() -> None:
    done = run("--set", "buyer.brain=some-model@http://127.0.0.1:9/v1")
    assert done.returncode == 1
    assert "Lucia Petrov did not answer: 127.0.0.1:9 cannot be reached" in done.stdout


def test_the_episode_is_logged_where_the_moderator_is_told_to(tmp_path: Path) -> None:
    log = tmp_path / "episode.sqlite"
    assert run("--virtual", "--set", f"moderator.log={log}").returncode == 0
    from nodes.episodes.command import main
    from nodes.episodes.results.store import Store

    with Store.read(log) as store:
        row = store.episodes()[0]
        assert (row.state, len(store.turns(row.id)), len(store.scores(row.id)[0].scores)) == (
            "done",
            len(store.turns(row.id)),
            14,
        )
    assert main(["show", str(log), "0"]) == 0
