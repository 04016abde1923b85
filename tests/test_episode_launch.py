"""launch/sotopia.toml: the same episode in processes over ZeroMQ and in virtual time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "runtime", "run", "launch/sotopia.toml", *arguments]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=120, env={**os.environ, "TERM": ""}
    )


def heard(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.startswith("    ") or line.endswith("leaves.")]


@pytest.mark.processes
def test_processes_and_virtual_time_play_the_same_episode() -> None:
    virtual = run("--virtual")
    for _ in range(3):  # the terminal only watches, uncounted: it may miss a line of a run in processes
        real = run()
        if heard(real.stdout)[-12:] == heard(virtual.stdout)[-12:] and "scores by rules" in real.stdout:
            break
    assert (real.returncode, virtual.returncode) == (0, 0), real.stderr + virtual.stderr
    # The goal of the second agent is printed when it is first asked, so only the turns are compared.
    assert heard(real.stdout)[-12:] == heard(virtual.stdout)[-12:]
    for output in (real.stdout, virtual.stdout):
        assert "End after 14 acts: left: Lucia Petrov" in output
        assert "scores by rules" in output
        assert "GOAL" in output


@pytest.mark.processes
def test_a_dead_agent_fails_the_episode_and_is_never_silence() -> None:
    done = run("--set", "buyer.brain=some-model@http://127.0.0.1:9/v1")
    assert done.returncode == 1
    assert "Lucia Petrov did not answer: 127.0.0.1:9 cannot be reached" in done.stdout


def test_the_episode_is_logged_where_the_judge_is_told_to(tmp_path: Path) -> None:
    log = tmp_path / "episode.sqlite"
    assert run("--virtual", "--set", f"judge.log={log}").returncode == 0
    from nodes.episodes.command import main
    from nodes.episodes.results.store import Store

    with Store.read(log) as store:
        row = store.episodes()[0]
        assert (row.state, len(store.turns(row.id)), len(store.scores(row.id)[0].scores)) == ("done", 14, 14)
    assert main(["show", str(log), "0"]) == 0
