"""An episode of a launch file with a results file: killed at any moment and started again, it goes on from there."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodes.episodes.agents.agent import Agent
from nodes.episodes.command import main
from nodes.episodes.dialogue.planning import plan_of_task
from nodes.episodes.dialogue.rules import Order
from nodes.episodes.results.store import LiveLog, Store
from nodes.episodes.runner.judge import Judge
from nodes.episodes.runner.live_moderator import LiveModerator
from nodes.msgs.episode import Turn
from runtime import Simulation, UserError
from runtime.launch.graph import NodeSpec
from tests.support.running import PATIENCE_S, Runs, eventually
from tests.support.sentences import pattern
from tests.support.servers.fake_openai_server import FakeOpenAI, Request, answers, silence

TASK = "cello-with-a-crack"
LAUNCH = """
[nodes.moderator]
use    = "nodes.episodes.runner.live_moderator:LiveModerator"
params = {{ task = "{task}", max_turns = 9, log = "{log}" }}

[nodes.seller]
use    = "nodes.episodes.agents.agent:Agent"
params = {{ brain = "fake@{url}" }}
remap  = {{ "episode/seat" = "episode/seat0" }}

[nodes.buyer]
use    = "nodes.episodes.agents.agent:Agent"
remap  = {{ "episode/seat" = "episode/seat1" }}

[nodes.judge]
use    = "nodes.episodes.runner.judge:Judge"
params = {{ task = "{task}", max_turns = 9 }}
"""


class Seller:
    """A model that answers by what it is asked, and no more after so many answers."""

    def __init__(self, answers_given: int) -> None:
        self.left = answers_given

    async def __call__(self, request: Request, writer: asyncio.StreamWriter) -> None:
        if self.left <= 0:
            await silence(request, writer)
        self.left -= 1
        line = f"Line {zlib.crc32(request.user_text.encode())}"
        await answers(json.dumps({"action_type": "speak", "argument": line, "to": []}))(request, writer)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Runs]:
    with Runs(monkeypatch) as started:
        yield started


def launch_file(folder: Path, name: str, url: str) -> tuple[Path, Path]:
    """The launch file and the results file it names."""
    log = folder / f"{name}.sqlite"
    launch = folder / f"{name}.toml"
    launch.write_text(LAUNCH.format(task=TASK, log=log, url=url))
    return launch, log


def is_free(log: Path) -> bool:
    """Whether no process writes it any more."""
    with open(log.with_name(log.name + ".lock"), "a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
    return True


def run_to_the_end(launch: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "runtime", "run", str(launch)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr


def what_was_said(log: Path) -> list[tuple[int, int, str, str, str]]:
    with Store.read(log) as store:
        [row] = store.episodes()
        assert row.state == "done"
        assert [scores.state for scores in store.scores(row.id)] == ["done"]
        return [(one.index, one.number, one.speaker, one.kind, one.argument) for one in store.turns(row.id)]


@pytest.mark.processes
@pytest.mark.long
def test_a_run_that_was_killed_goes_on_and_ends_like_an_uninterrupted_one(tmp_path: Path, runs: Runs) -> None:
    with FakeOpenAI(Seller(10**6)) as server:
        launch, log = launch_file(tmp_path, "whole", server.url)
        run_to_the_end(launch)
        whole, calls = what_was_said(log), len(server.requests)
    assert calls == 5
    assert len(whole) == 9
    seller = Seller(0)
    with FakeOpenAI(seller) as server:
        launch, log = launch_file(tmp_path, "broken", server.url)
        for kill, more in enumerate((0, 3)):  # before the first answer, and in the middle
            seller.left = more
            before = len(server.requests)
            run = runs.start(launch)
            assert server.wait_for(before + more + 1, PATIENCE_S)
            runs.kill_supervisor(run)
            for process in run.states().values():
                if process.pid:
                    os.kill(process.pid, signal.SIGKILL)
            eventually(lambda: is_free(log), "the killed moderator is gone")
            with Store.read(log) as store:
                assert len(store.turns(store.episodes()[0].id)) == (0, 6)[kill]
        assert main(["resume", str(log)]) == 2  # it names the way to go on
        seller.left = 10**6
        run_to_the_end(launch)
        assert len(server.requests) == calls + 2  # the two calls that were under way are made again, and no other
    assert what_was_said(log) == whole


@pytest.mark.processes
@pytest.mark.long
def test_the_log_names_who_really_played(tmp_path: Path, runs: Runs) -> None:
    with FakeOpenAI(Seller(10**6)) as server:
        launch, log = launch_file(tmp_path, "players", server.url)
        run_to_the_end(launch)
        with Store.read(log) as store:
            [row] = store.episodes()
            model = f"fake@{server.url}"
            assert row.agents == store.plan(row.id).agents == (model, "rules")
            assert store.card["agents"] == sorted([model, "rules"])


def play(log: Path, seconds: float, order: Order, max_turns: int = 20) -> list[Turn]:
    """So much of the episode in virtual time, left as it is then; the turns that were published."""
    names = {"task": TASK, "order": order, "max_turns": max_turns}
    seats = [NodeSpec(f"seat{seat}", Agent, remap={"episode/seat": f"episode/seat{seat}"}) for seat in range(2)]
    sim = Simulation(
        NodeSpec("moderator", LiveModerator, {**names, "log": str(log)}), *seats, NodeSpec("judge", Judge, names)
    )
    turns: list[Turn] = sim.record(LiveModerator.turn)
    sim.run(seconds=seconds)
    sim.close()
    return turns


@pytest.mark.parametrize("moment_s", [0.6, 5.0, 20.0, 40.0])
def test_asynchronous_talk_goes_on_from_any_moment(tmp_path: Path, moment_s: float) -> None:
    log = tmp_path / "one.sqlite"
    before = play(log, moment_s, "asynchronous")
    after = play(log, 600.0, "asynchronous")
    assert after[: len(before)] == before
    assert [turn.index for turn in after] == list(range(len(after)))
    with Store.read(log) as store:
        [row] = store.episodes()
        assert (row.state, store.turns(row.id)) == ("done", after)


def test_a_file_of_something_else_is_refused_in_a_sentence(tmp_path: Path) -> None:
    log = tmp_path / "one.sqlite"
    play(log, 600.0, "round-robin")
    plan = plan_of_task(TASK, order="round-robin", mode="AGENTS", max_turns=20)
    with pytest.raises(UserError, match=pattern("episodes.episode_is_over", reason=r"left: \w+ \w+")):
        LiveLog(log, plan)
    other = plan_of_task("quiet-hours", order="round-robin", mode="AGENTS", max_turns=20)
    with pytest.raises(UserError, match=pattern("episodes.holds_an_episode", episode=plan.id, other=other.id)):
        LiveLog(log, other)
    many = tmp_path / "many.sqlite"
    Store.create(many, {}).close()
    with pytest.raises(UserError, match=pattern("episodes.go_on_with")):
        LiveLog(many, plan)
