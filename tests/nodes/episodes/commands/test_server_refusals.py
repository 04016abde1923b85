"""What a server refuses in a run of episodes: the oldest turns, a temperature, all of a day."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodes.episodes.command import main
from nodes.episodes.results.store import Store
from tests.support.sentences import sentence
from tests.support.servers.episode_model import plays_and_judges
from tests.support.servers.fake_openai_server import FakeOpenAI, Request, says, status, when

pytestmark = pytest.mark.processes


def run(path: Path, agents: str, *more: str) -> int:
    task = ["--task", "cello-with-a-crack", "--turns", "6"]
    return main(["run", *task, "--agents", agents, "--out", str(path), *more])


def test_a_history_longer_than_a_model_reads_is_shortened_and_counted(tmp_path: Path) -> None:
    full = status(400, "This model's maximum context length is 9 tokens", {"code": "context_length_exceeded"})
    with FakeOpenAI(
        when(
            lambda request: "Turn 3" in request.user_text and "Turn 1:" in request.user_text,
            full,
            says(plays_and_judges),
        )
    ) as server:
        assert run(tmp_path / "run.sqlite", f"m@{server.url}") == 0
        asked = [request.user_text for request in server.requests]
    with Store.read(tmp_path / "run.sqlite") as store:
        assert store.episodes()[0].state == "done"
        assert store.card["left out"] == [sentence("episodes.longer_than_it_reads", model="m", number=3)]
    assert any(sentence("episodes.turns_left_out", number=2) in text for text in asked)


def test_a_question_longer_than_a_model_reads_ends_the_episode_with_the_turn_and_the_limit(tmp_path: Path) -> None:
    full = status(400, "request (2345 tokens) exceeds the available context size (2048 tokens)")
    path = tmp_path / "run.sqlite"
    with FakeOpenAI(full) as server:
        assert run(path, f"m@{server.url}") == 1
        assert len(server.requests) == 1
    with Store.read(path) as store:
        reason = store.episodes()[0].reason
    assert sentence("episodes.at_turn", turn=1) in reason
    assert sentence("episodes.reads_at_most", limit=2048) in reason


def test_a_judge_that_is_not_at_temperature_0_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def is_warm(request: Request) -> bool:
        return "temperature" in request.body

    path = tmp_path / "run.sqlite"
    with FakeOpenAI(when(is_warm, status(400, "'temperature' is not supported"), says(plays_and_judges))) as server:
        judge = f"m@{server.url}"
        assert run(path, "rules", "--judges", judge) == 0
    told = sentence("episodes.asked_without", model="m", what="temperature 0")
    assert told in capsys.readouterr().out
    with Store.read(path) as store:
        assert store.card["left out"] == [told]
    assert main(["report", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["left_out"] == [told]


def test_a_limit_of_the_day_ends_the_batch_with_one_request(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    with FakeOpenAI(status(429, "Rate limit exceeded: free-models-per-day")) as server:
        assert run(path, f"m@{server.url}", "--seeds", "3", "--jobs", "1") == 1
        assert len(server.requests) == 1
    with Store.read(path) as store:
        states = [(row.state, sentence("episodes.limit_of_the_day") in row.reason) for row in store.episodes()]
    assert states == [("failed", True), ("waiting", False), ("waiting", False)]
