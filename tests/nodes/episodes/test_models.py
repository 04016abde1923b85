"""Model agents against a real HTTP server that answers well, badly, or not at all."""

from __future__ import annotations

import asyncio
import json

import pytest

from nodes.episodes.agents.agent import Agent
from nodes.episodes.agents.caller import ModelSpec, NoStore, OutageError, SeatCaller, Servers
from nodes.episodes.agents.model_brain import ModelBrain
from nodes.episodes.dialogue.messages import BeginEpisode
from nodes.episodes.dialogue.moderator import Moderator
from nodes.episodes.dialogue.rules import EpisodeRules
from nodes.models.budget import Budget
from runtime import Simulation, UserError
from runtime.launch.graph import NodeSpec
from tests.support.episode_cast import plan
from tests.support.fake_openai_server import (
    Behaviour,
    FakeOpenAI,
    answers,
    half_a_stream,
    raw,
    refuses,
    silence,
    status,
)

pytestmark = pytest.mark.processes

GOOD = json.dumps({"action_type": "speak", "argument": "Hello there", "to": []})


def brain(url: str, servers: Servers, *, stream: bool = False) -> ModelBrain:
    spec = ModelSpec.parse(f"test-model@{url}#t=0.3", stream=stream)
    return ModelBrain(SeatCaller(spec, servers, NoStore(), 0))


def ask(server: FakeOpenAI, *, deadline_s: float = 30.0, stream: bool = False, **options: int) -> str:
    async def once() -> str:
        servers = Servers(deadline_s=deadline_s, **options)  # type: ignore[arg-type]  # whole numbers
        try:
            spec = ModelSpec.parse(f"test-model@{server.url}", stream=stream)
            return (await servers.ask(spec, "hi", {"type": "object"})).text
        finally:
            await servers.close()

    return asyncio.run(once())


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_is_read_whole_and_streamed(stream: bool) -> None:
    with FakeOpenAI(answers(GOOD)) as server:
        assert ask(server, stream=stream) == GOOD
        assert server.requests[0].body["model"] == "test-model"


@pytest.mark.parametrize(
    "bad",
    [status(500), status(429, retry_after="0"), half_a_stream, raw(b"<html>"), raw(b'{"choices": []}')],
)
def test_what_passes_is_tried_again(bad: Behaviour) -> None:
    with FakeOpenAI(bad, answers(GOOD)) as server:
        assert ask(server) == GOOD
        assert len(server.requests) == 2


def test_a_refused_format_is_asked_for_less() -> None:
    with FakeOpenAI(status(400), status(400), answers(GOOD)) as server:
        assert ask(server) == GOOD
        formats = [request.body.get("response_format", {}).get("type") for request in server.requests]
        assert formats == ["json_schema", "json_object", None]


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://localhost:99999/v1", "localhost:8000", "http://h:x/v1"])
def test_an_address_that_is_none_is_refused_before_anything_is_played(url: str) -> None:
    with pytest.raises(UserError, match=r"agent 'm@.*': base URL is .*; expected http"):
        ModelSpec.parse(f"m@{url}")


@pytest.mark.parametrize("stream", [False, True])
def test_a_server_that_knows_only_max_tokens_is_asked_so_from_then_on(stream: bool) -> None:
    async def thrice(url: str) -> None:
        servers = Servers(deadline_s=30.0)
        try:
            for _ in range(3):
                spec = ModelSpec.parse(f"test-model@{url}", stream=stream)
                assert (await servers.ask(spec, "hi", {"type": "object"})).text == GOOD
        finally:
            await servers.close()

    with FakeOpenAI(refuses("max_completion_tokens", answers(GOOD))) as server:
        asyncio.run(thrice(server.url))
        assert ["max_tokens" in request.body for request in server.requests] == [False, True, True, True]
        assert {request.body["response_format"]["type"] for request in server.requests} == {"json_schema"}


def test_a_refused_request_is_quoted_without_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-very-secret"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with FakeOpenAI(status(400, "x" * 150 + f" {key} is no key")) as server:
        with pytest.raises(OutageError, match=r"refused the request \(400\)") as caught:
            ask(server)
        assert key[:8] not in str(caught.value)


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (status(401), "refused the key"),
        (status(404), "no such model"),
        (silence, "did not answer within 0.3 s"),
        (raw(b"x" * 2_000_000), "sent 2000000 bytes; at most 1048576 are read"),
        (status(503), "failed"),
    ],
)
def test_what_does_not_pass_is_an_outage_in_a_sentence(bad: Behaviour, why: str) -> None:
    with FakeOpenAI(bad) as server, pytest.raises(OutageError, match=why):
        ask(server, deadline_s=0.3 if bad is silence else 30.0, attempts=2)


def test_a_budget_ends_the_calls() -> None:
    async def spend(url: str) -> None:
        servers = Servers(budget=Budget(max_calls=2))
        spec = ModelSpec.parse(f"m@{url}")
        try:
            for _ in range(3):
                await servers.ask(spec, "hi", {})
        finally:
            await servers.close()

    with FakeOpenAI(answers(GOOD)) as server, pytest.raises(OutageError, match="budget of 2 calls"):
        asyncio.run(spend(server.url))


def test_a_model_without_a_key_is_refused_with_the_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(UserError, match="OPENAI_API_KEY is not set"):
        ModelSpec.parse("gpt-4o")


def play_model(server: FakeOpenAI, *, rules: EpisodeRules | None = None) -> Moderator:
    async def run() -> Moderator:
        servers = Servers(deadline_s=30.0, attempts=2)
        moderator = Moderator(plan(rules=rules))
        seats = [
            NodeSpec(
                f"seat{seat}",
                Agent,
                instance=Agent.with_brain(brain(server.url, servers)),
                remap={"episode/seat": f"episode/seat{seat}"},
            )
            for seat in range(2)
        ]
        simulation = Simulation(NodeSpec("moderator", Moderator, instance=moderator), *seats)
        simulation.publish("episode/begin", BeginEpisode())
        await simulation.run_async()
        simulation.close()
        await servers.close()
        return moderator

    return asyncio.run(run())


def test_two_models_talk_to_the_limit() -> None:
    with FakeOpenAI(answers(GOOD)) as server:
        moderator = play_model(server, rules=EpisodeRules(max_turns=4))
        assert [turn.argument for turn in moderator.conduct.turns] == ["Hello there"] * 4
        assert len(server.requests) == 4
        assert "You play Ana Ruiz" in server.requests[0].user_text
        assert 'Ana Ruiz said: "Hello there"' in server.requests[1].user_text
        assert server.requests[0].body["temperature"] == 0.3


def test_asynchronous_models_bid_at_the_same_time() -> None:
    bid = json.dumps({"action_type": "speak", "argument": "Hello", "to": [], "urgency": 0.6})
    with FakeOpenAI(answers(bid)) as server:
        moderator = play_model(server, rules=EpisodeRules(order="asynchronous", max_turns=3))
        assert moderator.conduct.outcome is not None
        assert moderator.conduct.outcome.reason == "turn limit: 3 turns"


def test_an_unreadable_answer_is_asked_again_once_and_then_counted() -> None:
    with FakeOpenAI(answers("no idea"), answers(GOOD), answers("no"), answers("still no"), answers(GOOD)) as server:
        moderator = play_model(server, rules=EpisodeRules(max_turns=3))
        notes = [turn.note for turn in moderator.conduct.turns]
        assert notes[0] == ""
        assert notes[1].startswith("unreadable answer: the answer holds no JSON object")
        assert "could not be read" in server.requests[1].user_text
        assert moderator.conduct.failures == 1


def test_an_outage_fails_the_episode() -> None:
    with FakeOpenAI(answers(GOOD), status(500)) as server:
        moderator = play_model(server)
        assert moderator.conduct.outcome is not None
        assert moderator.conduct.outcome.state == "failed"
        assert "Ben Okafor did not answer" in moderator.conduct.outcome.reason
        assert [turn.kind for turn in moderator.conduct.turns] == ["speak"]
