"""Model agents against a real HTTP server that answers well, badly, or not at all."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from nodes.episodes.agents.agent import Agent
from nodes.episodes.agents.agent_spec import AgentSpec
from nodes.episodes.agents.model_brain import ModelBrain
from nodes.episodes.agents.seat_caller import NoStore, OutageError, SeatCaller
from nodes.episodes.command import main
from nodes.episodes.dialogue.messages import BeginEpisode
from nodes.episodes.dialogue.moderator import Moderator
from nodes.episodes.dialogue.rules import EpisodeRules
from nodes.models.budget import Budget
from nodes.models.model import Patience
from nodes.models.servers import Servers, read_servers
from runtime import Simulation, UserError
from runtime.launch.graph import NodeSpec
from tests.support.episode_cast import plan
from tests.support.sentences import pattern, sentence
from tests.support.servers.fake_openai_server import (
    Behaviour,
    FakeOpenAI,
    Request,
    answers,
    bytes_once,
    half_a_stream,
    half_closed,
    raw,
    refuses,
    sends_to,
    silence,
    status,
    trickle,
)

pytestmark = pytest.mark.processes

GOOD = json.dumps({"action_type": "speak", "argument": "Hello there", "to": []})


def caller(servers: Servers, url: str, *, stream: bool = False, options: str = "") -> SeatCaller:
    return SeatCaller(AgentSpec.parse(f"test-model@{url}{options}", stream=stream), servers, NoStore(), 0)


def ask(server: FakeOpenAI, *, patience: Patience | None = None, stream: bool = False, options: str = "") -> str:
    async def once() -> str:
        servers = Servers(patience=patience or Patience(30.0))
        try:
            asking = caller(servers, server.url, stream=stream, options=options)
            return (await asking.ask("hi", {"type": "object"}, "act")).text
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
    with FakeOpenAI(status(400), status(400), status(400), answers(GOOD)) as server:
        assert ask(server) == GOOD
        formats = [request.body.get("response_format", {}).get("type") for request in server.requests]
        assert formats == ["json_schema", None, "json_object", None]
        assert "tools" in server.requests[1].body


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://localhost:99999/v1", "localhost:8000", "http://h:x/v1"])
def test_an_address_that_is_none_is_refused_before_anything_is_played(url: str) -> None:
    with pytest.raises(UserError, match="agent 'm@.*': " + pattern("episodes.base_url_expected", value=".*")):
        AgentSpec.parse(f"m@{url}").check_model(Servers())


@pytest.mark.parametrize("stream", [False, True])
def test_a_server_that_knows_only_max_tokens_is_asked_so_from_then_on(stream: bool) -> None:
    async def thrice(url: str) -> None:
        servers = Servers()
        try:
            for _ in range(3):
                asking = caller(servers, url, stream=stream)
                assert (await asking.ask("hi", {"type": "object"}, "act")).text == GOOD
        finally:
            await servers.close()

    with FakeOpenAI(refuses("max_completion_tokens", answers(GOOD))) as server:
        asyncio.run(thrice(server.url))
        assert ["max_tokens" in request.body for request in server.requests] == [True, True, True, True]
        assert [len({"max_tokens", "max_completion_tokens"} & set(one.body)) for one in server.requests] == [2, 1, 1, 1]
        assert {request.body["response_format"]["type"] for request in server.requests} == {"json_schema"}


def test_a_refused_request_is_quoted_without_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-very-secret"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with FakeOpenAI(status(400, "x" * 150 + f" {key} is no key")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        with pytest.raises(OutageError, match=pattern("episodes.refused_the_request", status=400)) as caught:
            ask(server)
        assert key[:8] not in str(caught.value)
        assert server.requests[0].headers["authorization"] == f"Bearer {key}"


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (status(401), "wants a key"),
        (status(404), "knows no model"),
        (silence, sentence("episodes.did_not_answer", seconds=0.3)),
        (raw(b"x" * 9_000_000), sentence("episodes.sent_too_much", bytes=8 << 20)),
        (status(503), "failed"),
    ],
)
def test_what_does_not_pass_is_an_outage_in_a_sentence(bad: Behaviour, why: str) -> None:
    with FakeOpenAI(bad) as server, pytest.raises(OutageError, match=why):
        ask(server, patience=Patience(0.3 if bad is silence else 30.0, attempts=2))


def test_a_budget_ends_the_calls() -> None:
    async def spend(url: str) -> None:
        servers = Servers(budget=Budget(max_calls=2))
        try:
            for _ in range(3):
                await caller(servers, url).ask("hi", {}, "act")
        finally:
            await servers.close()

    with FakeOpenAI(answers(GOOD)) as server, pytest.raises(OutageError, match="budget of 2 calls"):
        asyncio.run(spend(server.url))


def test_a_model_without_a_key_is_refused_with_the_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(UserError, match="OPENAI_API_KEY is not set"):
        AgentSpec.parse("gpt-4o").check_model(Servers())


def play_model(server: FakeOpenAI, *, rules: EpisodeRules | None = None, options: str = "#t=0.3") -> Moderator:
    async def run() -> Moderator:
        servers = Servers(patience=Patience(30.0, attempts=2))
        moderator = Moderator(plan(rules=rules))
        seats = [
            NodeSpec(
                f"seat{seat}",
                Agent,
                instance=Agent.with_brain(ModelBrain(caller(servers, server.url, options=options))),
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
        assert notes[1].startswith(f"unreadable answer: the answer {sentence('episodes.holds_no_json')}")
        assert "could not be read" in server.requests[1].user_text
        assert moderator.conduct.failures == 1


def test_an_outage_fails_the_episode() -> None:
    with FakeOpenAI(answers(GOOD), status(500)) as server:
        moderator = play_model(server)
        assert moderator.conduct.outcome is not None
        assert moderator.conduct.outcome.state == "failed"
        assert "Ben Okafor did not answer" in moderator.conduct.outcome.reason
        assert [turn.kind for turn in moderator.conduct.turns] == ["speak"]


def test_one_broken_answer_after_the_other_fails_the_episode() -> None:
    with FakeOpenAI(answers('{"action_type": "speak", "argument": "..."}')) as server:
        moderator = play_model(server, rules=EpisodeRules(max_turns=6))
        assert moderator.conduct.outcome is not None
        assert (moderator.conduct.outcome.state, moderator.conduct.outcome.failures) == ("failed", 6)
        assert {turn.fault for turn in moderator.conduct.turns} == {"unreadable"}
        assert sentence("episodes.repeats_its_form") in moderator.conduct.turns[0].note


def test_an_answer_that_is_cut_off_is_said_as_far_as_it_is_whole() -> None:
    cut = '{"action_type": "speak", "argument": "I would like that. But the price is fa'
    with FakeOpenAI(answers(cut, finish="length")) as server:
        moderator = play_model(server, rules=EpisodeRules(max_turns=1))
        assert [turn.argument for turn in moderator.conduct.turns] == ["I would like that."]
    with FakeOpenAI(answers("", finish="length")) as server:
        moderator = play_model(server, rules=EpisodeRules(max_turns=1))
        assert sentence("episodes.cut_off") in moderator.conduct.turns[0].note
        assert len(server.requests) == 2


def test_a_model_that_declines_has_declined_and_was_asked_once() -> None:
    said = {"choices": [{"message": {"content": None, "refusal": "I cannot help with that."}, "finish_reason": "stop"}]}
    with FakeOpenAI(raw(json.dumps(said).encode())) as server:
        moderator = play_model(server, rules=EpisodeRules(max_turns=1))
        turn = moderator.conduct.turns[0]
        assert (turn.fault, turn.note) == ("declined", sentence("episodes.declines", words="I cannot help with that."))
        assert len(server.requests) == 1


def test_a_small_model_is_asked_for_a_line_and_the_act_is_inferred() -> None:
    script = ('"How are you?" she asks, smiling.', "Ben Okafor: *nods*", "*puts the cello down*", "*walks away*")
    with FakeOpenAI(*(answers(line) for line in script)) as server:
        moderator = play_model(server, rules=EpisodeRules(max_turns=4), options="#prompt=small")
        assert [(turn.kind, turn.argument) for turn in moderator.conduct.turns] == [
            ("speak", "How are you?"),
            ("non-verbal communication", "nods"),
            ("action", "puts the cello down"),
            ("leave", "walks away"),
        ]
        assert "response_format" not in server.requests[0].body
        assert server.requests[1].user_text.endswith("Ana Ruiz: How are you?\nBen Okafor:")


def test_a_reasoning_model_is_asked_with_its_options_and_without_what_it_refuses() -> None:
    with FakeOpenAI(refuses("temperature", refuses("top_k", answers(GOOD)))) as server:
        assert ask(server, options="#tokens=8000#effort=low#seed=7#top_p=0.9#system=yes") == GOOD
        body = server.requests[-1].body
        assert (body["max_completion_tokens"], body["reasoning_effort"], body["seed"]) == (8000, "low", 7)
        assert "temperature" not in body
        assert len(server.requests) == 2


@pytest.mark.parametrize(
    "bad",
    [bytes_once(b"\x00\xff\x13garbage " * 30), bytes_once(b""), bytes_once(b"HTTP/1.1 banana\r\n\r\n"), half_closed],
)
def test_garbage_on_the_wire_is_a_failed_call_in_a_sentence(bad: Behaviour) -> None:
    with FakeOpenAI(bad) as server, pytest.raises(OutageError, match=r"does not speak HTTP|hung up") as caught:
        ask(server, patience=Patience(30.0, attempts=2))
    assert "Traceback" not in str(caught.value)


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 200_000,
        b'{"choices": ' + b"[" * 200_000,
        b"null",
        b"<html>",
    ],
    ids=["deep", "deep within", "null", "a page"],
)
def test_a_body_that_is_no_answer_is_a_failed_call_in_a_sentence(body: bytes) -> None:
    for stream in (False, True):
        with FakeOpenAI(raw(body)) as server, pytest.raises(OutageError, match=pattern("episodes.no_completion")):
            ask(server, patience=Patience(30.0, attempts=2), stream=stream)


def test_an_answer_that_is_nested_without_end_is_unreadable() -> None:
    with FakeOpenAI(answers("[" * 50_000)) as server:
        moderator = play_model(server, rules=EpisodeRules(max_turns=1))
        assert moderator.conduct.turns[0].fault == "unreadable"


def test_a_trickle_that_never_ends_is_over_at_the_attempts_end() -> None:
    with (
        FakeOpenAI(trickle) as server,
        pytest.raises(OutageError, match=pattern("episodes.did_not_answer", seconds=0.3)),
    ):
        ask(server, patience=Patience(0.7, 0.3, attempts=1), stream=True)


@pytest.mark.parametrize("code", [429, 500, 503])
def test_a_server_that_fails_for_a_while_loses_no_call_and_is_left_alone_meanwhile(code: int) -> None:
    """40 calls at once, a server that is down for 1.5 s: all are answered, and few knocked while it was down."""
    state = {"asked": 0, "up_at_s": 0.0}

    async def behave(request: Request, writer: asyncio.StreamWriter) -> None:
        now_s = asyncio.get_running_loop().time()
        state["up_at_s"] = state["up_at_s"] or now_s + 1.5
        is_down = now_s < state["up_at_s"]
        state["asked"] += is_down
        await (status(code, retry_after="0.5") if is_down else answers(GOOD))(request, writer)

    async def many(url: str) -> list[str]:
        servers = Servers(patience=Patience(60.0))
        try:
            tasks = [caller(servers, url).ask(f"hi {n}", {}, "act") for n in range(40)]
            return [answer.text for answer in await asyncio.gather(*tasks)]
        finally:
            await servers.close()

    with FakeOpenAI(behave) as server:
        assert asyncio.run(many(server.url)) == [GOOD] * 40
        assert state["asked"] <= 40 + 12, "the 40 that were under way, then probes"


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (429, {"type": "insufficient_quota", "code": "insufficient_quota"}),
        (429, {"type": "insufficient_quota", "code": None}),
        (429, {"type": "x", "code": "billing_not_active"}),
        (402, {"code": 402}),
    ],
)
def test_a_quota_that_is_used_up_ends_a_run_at_once_in_a_sentence(
    code: int, error: dict[str, object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each episode asks once more at most, though the server names a time after which to ask again."""
    asked = 0

    async def behave(request: Request, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        used_up = status(code, "You exceeded your current quota", error, retry_after="1")
        await (answers(GOOD) if asked <= 5 else used_up)(request, writer)

    path = tmp_path / "run.sqlite"
    with FakeOpenAI(behave) as server:
        ran = ["run", "--task", "quiet-hours", "--seeds", "10", "--jobs", "2", "--agents", f"m@{server.url},rules"]
        assert main([*ran, "--out", str(path)]) == 1
    assert asked <= 5 + 10
    told = capsys.readouterr().err
    assert f"{sentence('episodes.no_quota', status=code)}; it says: You exceeded your current quota" in told
    assert f"{sentence('episodes.go_on_with')} {path}" in told


def test_a_proxy_of_the_environment_is_asked_for_the_server_and_not_for_hosts_beside_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def once(url: str) -> str:
        servers = Servers(patience=Patience(20.0))
        try:
            return (await caller(servers, url).ask("hi", {}, "act")).text
        finally:
            await servers.close()

    with FakeOpenAI(answers(GOOD)) as proxy, FakeOpenAI(answers(GOOD)) as near:
        monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/v1"))
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert asyncio.run(once("http://models.test/v1")) == GOOD
        assert asyncio.run(once(near.url)) == GOOD
        assert [request.target for request in proxy.requests] == ["http://models.test/v1/chat/completions"]
        assert len(near.requests) == 1


def test_a_server_that_sends_elsewhere_is_not_followed_and_no_key_goes_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with FakeOpenAI(answers(GOOD)) as elsewhere, FakeOpenAI(sends_to(elsewhere.url)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        with pytest.raises(OutageError, match=pattern("episodes.sends_elsewhere", status=307)):
            ask(server)
        assert len(server.requests) == 1, "asked once"
        assert elsewhere.requests == []


def test_a_key_goes_to_openai_and_to_whom_the_user_tied_it_and_to_nobody_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    monkeypatch.setenv("LAB_KEY", "sk-lab")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with FakeOpenAI(answers(GOOD)) as server, FakeOpenAI(answers(GOOD)) as other:
        (tmp_path / "s.toml").write_text(
            f'[servers.lab]\nurls = ["{other.url}", "{other.url}/"]\nkey = "LAB_KEY"\nmax_tokens = 77\n'
        )
        tables = read_servers(tmp_path / "s.toml")

        async def both() -> None:
            servers = Servers(tables=tables)
            await caller(servers, server.url).ask("hi", {}, "act")
            await caller(servers, "lab").ask("hi", {}, "act")
            await servers.close()

        asyncio.run(both())
        assert "authorization" not in server.requests[0].headers
        assert other.requests[0].headers["authorization"] == "Bearer sk-lab"
        assert other.requests[0].body["max_completion_tokens"] == 77
    with pytest.raises(UserError, match=pattern("episodes.no_server", name="lap", known="lab")):
        AgentSpec.parse("m@lap").check_model(Servers(tables=tables))
    (tmp_path / "s.toml").write_text("[servers.lab]\nrate = 3\n")
    with pytest.raises(UserError, match=r"s.toml: \[servers.lab\]: .* has no urls"):
        read_servers(tmp_path / "s.toml")


def test_money_is_reserved_before_a_call_is_made() -> None:
    """30 calls at once that may cost 0.0101 each and do cost 0.0018: no limit is passed by more than one."""

    async def many(url: str, budget: Budget) -> None:
        servers = Servers(budget=budget)
        asking = [caller(servers, url).ask(f"hi {number}", {}, "act") for number in range(30)]
        await asyncio.gather(*asking, return_exceptions=True)
        await servers.close()

    with FakeOpenAI(answers(GOOD)) as server:
        budget = Budget(max_money=0.05, prompt_price=100.0, completion_price=10.0)
        asyncio.run(many(server.url, budget))
        assert budget.money <= 0.05 + 0.0018
        assert budget.calls > 5
        assert budget.in_flight == []


@pytest.mark.parametrize("limit", [{"max_tokens": 20_000}, {"max_money": 0.02}])
def test_a_model_that_costs_more_than_was_asked_for_passes_a_limit_by_one_call_at_most(limit: dict[str, float]) -> None:
    """It thinks: 4,000 tokens an answer where 1,000 were allowed. 16 at once."""
    answer = {"choices": [{"message": {"content": GOOD}, "finish_reason": "stop"}]}
    thinking = raw(json.dumps(answer | {"usage": {"prompt_tokens": 100, "completion_tokens": 3900}}).encode())

    async def many(url: str, budget: Budget) -> None:
        servers = Servers(budget=budget)
        asking = [caller(servers, url).ask(f"hi {number}", {}, "act") for number in range(16)]
        await asyncio.gather(*asking, return_exceptions=True)
        await servers.close()

    with FakeOpenAI(thinking) as server:
        budget = Budget(prompt_price=1.0, completion_price=1.0, **limit)  # type: ignore[arg-type]  # numbers of both kinds
        asyncio.run(many(server.url, budget))
        assert 5 <= len(server.requests) == budget.calls <= 6
        assert budget.in_flight == []
