"""What servers do that people run, one behaviour a line: whether the answer is read, and else what is said of it."""

from __future__ import annotations

import asyncio
import json
import socket
from dataclasses import replace

import pytest

from nodes.models.answers import ChatSettings, ModelError, settings_from
from nodes.models.budget import Budget
from nodes.models.chat_format import ModelOptions, Question
from nodes.models.chat_request import ChatClient
from nodes.models.http_client import HttpClient
from nodes.models.model import Model, Patience, Server
from nodes.models.refusals import retry_after_s
from runtime.hosts.proxies import is_here
from tests.support.sentences import sentence
from tests.support.servers.behaviours import (
    BODIES,
    IMAGES,
    REFUSED_IN_PART,
    STREAMS,
    Row,
    has,
)
from tests.support.servers.fake_openai_server import Behaviour, FakeOpenAI, answers, raw, status, when

pytestmark = pytest.mark.processes

GOOD = '{"do": "wait", "say": "Fine."}'
SCHEMA: dict[str, object] = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
IMAGE = ("data:image/jpeg;base64,AAAA",)


def said(message: dict[str, object] | None = None, finish: object = "stop", **more: object) -> Behaviour:
    """A completion with that message, and more beside it."""
    choice = {"index": 0, "message": {"content": GOOD} if message is None else message, "finish_reason": finish}
    return raw(json.dumps({"choices": [choice], **more}).encode())


def events(*pieces: object, done: bool = True) -> Behaviour:
    """A stream of these, whole answers in place of None."""
    good = {"choices": [{"index": 0, "delta": {"content": GOOD}, "finish_reason": None}]}
    body = b"".join(b"data: " + json.dumps(good if one is None else one).encode() + b"\r\n\r\n" for one in pieces)
    return raw(body + (b"data: [DONE]\n\n" if done else b""), "text/event-stream")


def ask(server: FakeOpenAI, question: Question | None = None, *, stream: bool = False) -> str:
    """One answer."""
    chat = ChatSettings(server.url, "fake-vision-1", deadline_s=20.0, stream=stream)

    async def talk() -> str:
        client = ChatClient(chat, jitter=lambda: 0.0)
        try:
            return await client.ask(question or Question("Be brief.", "What now?", SCHEMA))
        finally:
            await client.close()

    return asyncio.run(talk())


def named(row: Row) -> str:
    return row.name


@pytest.mark.parametrize("row", [*BODIES, *STREAMS], ids=named)
def test_a_good_answer_is_read_whatever_stands_beside_it_and_however_it_comes(row: Row) -> None:
    with FakeOpenAI(row.serve(GOOD)) as server:
        assert GOOD in ask(server, stream=row.stream)
        assert len(server.requests) == 1, "no good answer is asked for again"


def test_halves_of_a_character_are_put_together() -> None:
    halves = [{"choices": [{"delta": {"content": half}}]} for half in ('{"say": "\ud83d', '\ude00"}')]
    with FakeOpenAI(events(*halves)) as server:
        assert ask(server, stream=True) == '{"say": "😀"}'


ERROR = {"error": {"message": "the engine burns", "code": 500}}


@pytest.mark.parametrize(
    ("behaviour", "stream"),
    [
        (raw(json.dumps({"choices": None, **ERROR}).encode()), False),
        (events(ERROR), True),
        (events({"choices": [{"delta": {"content": "{"}}]}, ERROR), True),
        (said({"content": ""}, "error", **ERROR), False),
        (raw(json.dumps({"object": "error", "message": "the engine burns"}).encode()), False),
        (raw(json.dumps({"detail": "the engine burns"}).encode()), False),
    ],
)
def test_an_error_under_a_good_status_is_told_in_the_servers_words(behaviour: Behaviour, stream: bool) -> None:
    with FakeOpenAI(behaviour) as server, pytest.raises(ModelError):
        ask(server, stream=stream)
    with FakeOpenAI(behaviour, answers(GOOD)) as server:
        assert ask(server, stream=stream) == GOOD, "it may pass"


@pytest.mark.parametrize(
    ("behaviour", "why"),
    [
        (said({"content": None, "reasoning_content": f"Shall I say {GOOD}? No."}), sentence("models.only_thought")),
        (said({"content": None, "reasoning": f"Shall I {GOOD}"}, "length"), sentence("models.only_thought")),
        (said({"content": "<think>I could"}, "length"), sentence("models.only_thought")),
        (said({"content": ""}), sentence("models.no_text")),
        (raw(b"<!doctype html><html>Sign in</html>", "text/html"), sentence("models.a_web_page")),
        (status(400, "the response was filtered", {"code": "content_filter"}), sentence("models.declines")),
        (
            status(400, "Input data may contain inappropriate content.", {"code": "data_inspection_failed"}),
            sentence("models.declines"),
        ),
        (status(429, "Rate limit reached: requests per day (RPD): Limit 50"), sentence("models.limit_of_the_day")),
        (status(429, "see your plan", {"code": "insufficient_quota"}), sentence("models.no_quota")),
        (
            status(400, "This model's maximum context length is 2048 tokens, and 2040 in the messages"),
            sentence("models.reads_at_most"),
        ),
    ],
)
def test_what_is_no_answer_is_said_at_once_and_as_what_it_is(behaviour: Behaviour, why: str) -> None:
    with FakeOpenAI(behaviour) as server:
        with pytest.raises(ModelError) as caught:
            ask(server)
        assert why in str(caught.value)
        assert len(server.requests) <= 2


@pytest.mark.parametrize("row", IMAGES, ids=named)
def test_a_server_that_takes_no_images_is_found_out(row: Row) -> None:
    with FakeOpenAI(row.serve(GOOD)) as server:
        with pytest.raises(ModelError) as caught:
            ask(server, Question("", "What?", SCHEMA, IMAGE))
        assert caught.value.is_about_images
        assert len(server.requests) <= 6


@pytest.mark.parametrize("row", REFUSED_IN_PART, ids=named)
def test_a_refusal_is_understood_and_the_question_asked_otherwise(row: Row) -> None:
    with FakeOpenAI(row.serve(GOOD)) as server:
        assert ask(server, Question("Be brief.", "What is the temperature of this?", SCHEMA, IMAGE)) == GOOD
        assert server.requests[-1].image_urls, "no image was given up for it"
        assert len(server.requests) <= 4


@pytest.mark.parametrize("option", ["top_p", "seed", "reasoning_effort", "chat_template_kwargs"])
def test_an_option_that_a_server_refuses_is_named_at_once_and_a_temperature_left_out_is_told(option: str) -> None:
    options = ModelOptions(0.0, top_p=0.5, seed=1, reasoning_effort="low", extra_body={"chat_template_kwargs": {}})

    async def talk(url: str, options: ModelOptions) -> tuple[str, ...]:
        http = HttpClient()
        try:
            model = Model("m", [Server(url)], http, options=options, patience=Patience(9.0), budget=Budget())
            return (await model.ask(Question("", "hi", SCHEMA))).left_out
        finally:
            await http.close()

    with FakeOpenAI(when(has(option), status(400, f"Unsupported parameter: '{option}'"), answers(GOOD))) as server:
        with pytest.raises(ModelError, match=sentence("models.take_away", option=option)):
            asyncio.run(talk(server.url, options))
        assert len(server.requests) == 1
    cold = when(lambda request: "temperature" in request.body, status(400, "no 'temperature'"), answers(GOOD))
    with FakeOpenAI(cold) as server:
        assert asyncio.run(talk(server.url, replace(options, temperature=0.0))) == ("temperature 0",)


@pytest.mark.parametrize(
    ("headers", "said", "seconds"),
    [
        ({"retry-after": "6"}, "", 6.0),
        ({"retry-after": "1.5s"}, "", 1.5),
        ({"retry-after-ms": "250"}, "", 0.25),
        ({"retry-after": "Sun, 06 Nov 1994 08:49:43 GMT", "date": "Sun, 06 Nov 1994 08:49:37 GMT"}, "", 6.0),
        ({}, "Please try again in 6s.", 6.0),
        ({}, "Please retry in 38.2s", 38.2),
        ({}, "Try again in 7m12.5s.", 432.5),
        ({}, "wait 20 seconds", 20.0),
        ({}, 'x "retryDelay": "38s"', 38.0),
        ({}, "try again in 1 minute and 5 seconds", 65.0),
        ({"x-ratelimit-reset-requests": "120ms", "x-ratelimit-remaining-requests": "0"}, "", 0.12),
        ({"x-ratelimit-reset-tokens": "6m0s", "x-ratelimit-remaining-tokens": "7"}, "", 0.0),
        ({"x-ratelimit-reset": "784111783000", "date": "Sun, 06 Nov 1994 08:49:37 GMT"}, "", 6.0),
        ({"retry-after": "soon"}, "slow down", 0.0),
        ({}, "", 0.0),
    ],
)
def test_when_to_come_back_is_read_in_every_form(headers: dict[str, str], said: str, seconds: float) -> None:
    assert retry_after_s(headers, said) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("url", "key", "why"),
    [
        ("http://h:1/v1/chat/completions", "", sentence("models.completions_left_out")),
        ("http://h:1", "", sentence("models.a_path_expected")),
        ("http://h:1/v1?api-version=1", "", sentence("models.only_azure_has_a_query")),
        ("http://h:1/v1", "sk-1\r", sentence("models.end_of_line")),
        ("http://h:1/v1", "schlüssel", sentence("models.no_key_has")),
    ],
)
def test_what_is_wrong_with_address_and_key_is_told_before_the_first_request(url: str, key: str, why: str) -> None:
    (problem,) = ChatSettings(url, "m", key).problems()
    assert why in problem
    assert not key or key not in problem


def test_azures_form_of_an_address_is_known() -> None:
    with FakeOpenAI(answers(GOOD)) as server:
        url = server.url.replace("/v1", "/openai/deployments/m/v1") + "?api-version=2024-10-21"
        assert ChatSettings(url, "m", "k").problems() == []

        async def talk() -> str:
            client = ChatClient(ChatSettings(url, "m", "k"), jitter=lambda: 0.0)
            try:
                return await client.ask(Question("", "hi", SCHEMA))
            finally:
                await client.close()

        assert asyncio.run(talk()) == GOOD
        (request,) = server.requests
        assert request.target == "/openai/deployments/m/v1/chat/completions?api-version=2024-10-21"
        assert request.headers["api-key"] == "k"
        assert "authorization" not in request.headers


def test_a_server_on_this_machine_is_never_asked_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeOpenAI(answers("{}")) as proxy, FakeOpenAI(answers(GOOD)) as server:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, proxy.url.removesuffix("/v1"))
        monkeypatch.delenv("no_proxy", raising=False)
        assert ask(server) == GOOD
        assert proxy.requests == []


@pytest.mark.parametrize(
    ("url", "is_this_machine"),
    [
        ("http://127.0.0.1:1/v1", True),
        ("http://127.8.9.1/v1", True),
        ("ws://[::1]:9090", True),
        ("http://localhost:8000", True),
        ("http://model.localhost", True),
        ("http://0.0.0.0:8000", True),
        (f"ws://{socket.gethostname()}:9090", True),
        ("http://192.168.1.7/v1", False),
        ("https://api.openai.com/v1", False),
        ("http://localhost.evil.test", False),
        ("", False),
    ],
)
def test_addresses_on_this_machine_are_known(url: str, is_this_machine: bool) -> None:
    assert is_here(url) is is_this_machine


def test_another_model_answers_where_the_first_cannot_and_each_is_asked_in_its_own_way() -> None:
    async def talk(chat: ChatSettings) -> list[str]:
        client = ChatClient(chat, jitter=lambda: 0.0)
        try:
            return [await client.ask(Question("", "hi", SCHEMA)) for _ in range(3)]
        finally:
            await client.close()

    with FakeOpenAI(status(500)) as broken, FakeOpenAI(answers(GOOD)) as second:
        chat = settings_from(
            "OPENAI",
            {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": broken.url, "OPENAI_FALLBACK_API_KEY": "other"},
            base_url="",
            model="first",
            default_model="",
            deadline_s=9.0,
            max_calls=50,
            extra_body={"chat_template_kwargs": {"enable_thinking": False}},
            fallback=f"second@{second.url}",
        )
        assert chat.problems() == []
        assert asyncio.run(talk(chat)) == [GOOD] * 3
        assert {one.body["model"] for one in second.requests} == {"second"}
        assert {one.headers["authorization"] for one in second.requests} == {"Bearer other"}
        assert "chat_template_kwargs" not in second.requests[0].body
        assert broken.requests[0].body["chat_template_kwargs"] == {"enable_thinking": False}
        assert broken.requests[0].headers["authorization"] == "Bearer k"
        assert len(broken.requests) < 6, "a server that is down is not waited for each time"


def test_a_question_longer_than_the_given_context_is_not_sent_and_an_answer_fits_in_it() -> None:
    with FakeOpenAI(answers(GOOD)) as server:
        chat = ChatSettings(server.url, "m", max_tokens=1000, context=2000)

        async def talk(text: str) -> str:
            client = ChatClient(chat, jitter=lambda: 0.0)
            try:
                return await client.ask(Question("", text, SCHEMA))
            finally:
                await client.close()

        assert asyncio.run(talk("x" * 6000)) == GOOD
        assert server.requests[0].body["max_tokens"] == 500
        with pytest.raises(ModelError, match="2000"):
            asyncio.run(talk("x" * 8000))
        assert len(server.requests) == 1
