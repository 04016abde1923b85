"""The client against a real HTTP server that behaves well, badly, slowly or not at all."""

from __future__ import annotations

import asyncio
import gc
import json
import time

import pytest

from nodes.models.answers import BudgetError, ChatSettings, ModelError
from nodes.models.chat_format import Question
from nodes.models.chat_request import ChatClient, ChatRequest
from nodes.models.refusals import SlowDownError
from runtime.clock import SystemClock
from tests.support.sentences import pattern
from tests.support.servers.fake_openai_server import (
    Behaviour,
    FakeOpenAI,
    answers,
    half_a_stream,
    polite_half_a_stream,
    raw,
    refuses,
    silence,
    status,
    trickle,
)

pytestmark = pytest.mark.processes

KEY = "sk-very-secret"
QUESTION = Question(
    system="Be brief.",
    text="What now?",
    schema={"type": "object", "properties": {}, "required": [], "additionalProperties": False},
    image_urls=("data:image/jpeg;base64,AAAA",),
)


def settings(server: FakeOpenAI, *, stream: bool, deadline_s: float = 30.0, max_calls: int = 50) -> ChatSettings:
    return ChatSettings(server.url, "fake", KEY, deadline_s=deadline_s, max_calls=max_calls, stream=stream)


def ask(chat: ChatSettings, number: int = 1) -> tuple[str, ChatClient]:
    """Ask so often; the last answer and the client. Failures are raised after the client is closed."""

    async def talk() -> tuple[str, ChatClient]:
        client = ChatClient(chat, jitter=lambda: 0.0)
        try:
            for _ in range(number):
                text = await client.ask(QUESTION)
            return text, client
        finally:
            await client.close()

    return asyncio.run(talk())


both = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@both
def test_an_answer_arrives_whole(stream: bool) -> None:
    with FakeOpenAI(answers('{"verb": "wait", "say": "Grüezi"}')) as server:
        text, client = ask(settings(server, stream=stream), number=2)
        assert text == '{"verb": "wait", "say": "Grüezi"}'
        assert client.budget.calls == 2
        body = server.requests[0].body
        assert body["response_format"]["json_schema"]["strict"] is True
        assert body["response_format"]["json_schema"]["schema"] == QUESTION.schema
        assert body["messages"][0] == {"role": "system", "content": "Be brief."}
        assert server.requests[0].user_text == "What now?"
        assert server.requests[0].image_urls == ["data:image/jpeg;base64,AAAA"]
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_a_request_that_is_voided_before_it_begins_leaves_no_call_unawaited(recwarn: pytest.WarningsRecorder) -> None:
    request = ChatRequest(ChatSettings("http://127.0.0.1:9/v1", "fake", KEY), latency_s=0.0)
    request.start(SystemClock(), lambda: 0.0)

    async def ask_and_void() -> str | None:
        asking = asyncio.ensure_future(request.ask(system="", text="", schema={}, image=None))
        await asyncio.sleep(0)  # it has asked, and its call waits for the loop
        request.void()
        return await asking

    assert asyncio.run(ask_and_void()) is None
    gc.collect()
    assert [one for one in recwarn if "never awaited" in str(one.message)] == []


def test_tokens_are_counted() -> None:
    with FakeOpenAI(answers("x")) as server:
        _, client = ask(settings(server, stream=False), number=2)
        assert (client.budget.prompt_tokens, client.budget.completion_tokens) == (22, 14)


@both
def test_a_server_without_structured_output_is_asked_for_less_and_remembered(stream: bool) -> None:
    refuses = status(400, "response_format is not supported")
    with FakeOpenAI(refuses, refuses, refuses, answers("{}")) as server:
        text, _ = ask(settings(server, stream=stream), number=2)
        assert text == "{}"
        formats = [request.body.get("response_format", {}).get("type", "none") for request in server.requests]
        assert formats == ["json_schema", "none", "json_object", "none", "none"]
        assert ["tools" in request.body for request in server.requests] == [False, True, False, False, False]


def _called(arguments: object, **more: object) -> Behaviour:
    """A tool call as servers send it, beside a thought aloud."""
    calls = [{"id": "c1", "type": "function", "function": {"name": "answer", "arguments": arguments}, **more}]
    message = {"role": "assistant", "content": "Let me see.", "tool_calls": [*calls, *calls]}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    return raw(json.dumps(body).encode())


@pytest.mark.parametrize("arguments", ['{"a": 1}', {"a": 1}], ids=["text", "object"])
def test_a_server_that_knows_tool_calls_only_answers_by_one(arguments: object) -> None:
    with FakeOpenAI(refuses("response_format", _called(arguments))) as server:
        text, _ = ask(settings(server, stream=False), number=2)
        assert json.loads(text) == {"a": 1}
        tool = server.requests[-1].body["tools"][0]["function"]
        assert tool["parameters"] == QUESTION.schema
        assert server.requests[-1].body["tool_choice"]["function"]["name"] == tool["name"]
        assert len(server.requests) == 3, "remembered"


def test_a_streamed_tool_call_is_put_together() -> None:
    pieces = [
        {"tool_calls": [{"index": 0, "function": {"name": "answer", "arguments": part}}]} for part in ('{"a"', ": 1}")
    ]
    events: list[dict[str, object]] = [
        {"choices": [{"index": 0, "delta": piece, "finish_reason": None}]} for piece in pieces
    ]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    body = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + b"data: [DONE]\n\n"
    with FakeOpenAI(raw(body, "text/event-stream")) as server:
        assert json.loads(ask(settings(server, stream=True))[0]) == {"a": 1}


@both
def test_a_server_that_knows_only_max_tokens_is_asked_so_and_remembered(stream: bool) -> None:
    with FakeOpenAI(refuses("max_completion_tokens", answers("{}"))) as server:
        text, _ = ask(settings(server, stream=stream), number=2)
        assert text == "{}"
        bodies = [request.body for request in server.requests]
        assert [(body.get("max_completion_tokens"), body.get("max_tokens")) for body in bodies] == [
            (2000, 2000),
            (None, 2000),
            (None, 2000),
        ]
        assert {body["response_format"]["type"] for body in bodies} == {"json_schema"}


@both
def test_an_old_server_knows_neither_the_limits_new_name_nor_formats_nor_usage(stream: bool) -> None:
    old = refuses(
        "max_completion_tokens", refuses("response_format", refuses("tools", refuses("stream_options", answers("{}"))))
    )
    with FakeOpenAI(old) as server:
        assert ask(settings(server, stream=stream), number=2)[0] == "{}"
        assert [set(request.body) - {"stream"} for request in server.requests[-2:]] == [
            {"model", "messages", "max_tokens"}
        ] * 2


def test_a_limit_that_is_too_large_is_halved_once_or_said_in_the_servers_words() -> None:
    too_large = status(400, "max_completion_tokens is too large: at most 100")
    with FakeOpenAI(too_large) as server:
        with pytest.raises(ModelError, match="max_completion_tokens is too large: at most 100"):
            ask(settings(server, stream=False))
        assert {request.body["max_tokens"] for request in server.requests} == {2000}
    large = status(400, "max_tokens is too large: 2000. at most 1500")
    with FakeOpenAI(large, answers("{}")) as server:
        assert ask(settings(server, stream=False))[0] == "{}"
        assert [request.body["max_tokens"] for request in server.requests] == [2000, 1000]


def test_a_refused_request_is_a_sentence_without_the_key() -> None:
    with FakeOpenAI(status(400, f"bad key {KEY} in request")) as server:
        with pytest.raises(
            ModelError, match=rf"127\.0\.0\.1:\d+ {pattern('models.refused_request', status=400)}.*\*\*\*"
        ) as caught:
            ask(settings(server, stream=False))
        assert KEY not in str(caught.value)


def test_a_busy_server_is_asked_again_after_the_time_it_names() -> None:
    with FakeOpenAI(status(429, retry_after="1"), answers("fine")) as server:
        began = time.monotonic()
        assert ask(settings(server, stream=False))[0] == "fine"
        assert time.monotonic() - began >= 1.0


def test_a_busy_server_that_names_a_time_beyond_the_deadline_is_left_alone() -> None:
    with FakeOpenAI(status(429, retry_after="60"), answers("late")) as server:
        began = time.monotonic()
        with pytest.raises(SlowDownError) as caught:
            ask(settings(server, stream=False))
        assert caught.value.retry_after_s == 60.0
        assert time.monotonic() - began < 25.0
        assert len(server.requests) == 1


@both
@pytest.mark.parametrize("code", [500, 503])
def test_a_failing_server_is_asked_once_more_and_no_oftener(code: int, stream: bool) -> None:
    with FakeOpenAI(status(code)) as server:
        with pytest.raises(ModelError, match=rf"failed \({code}\)"):
            ask(settings(server, stream=stream))
        assert len(server.requests) == 2


@pytest.mark.parametrize("code", [401, 403])
def test_a_refused_key_is_not_tried_again(code: int) -> None:
    with FakeOpenAI(status(code, f"Incorrect API key provided: {KEY}")) as server:
        with pytest.raises(ModelError, match="refused the key") as caught:
            ask(settings(server, stream=False))
        assert KEY not in str(caught.value)
        assert len(server.requests) == 1


def test_an_unknown_model_is_named() -> None:
    with FakeOpenAI(status(404)) as server, pytest.raises(ModelError, match="knows no model 'fake'"):
        ask(settings(server, stream=False))


@both
def test_silence_ends_at_the_deadline_and_the_connection_with_it(stream: bool) -> None:
    with FakeOpenAI(silence) as server:
        began = time.monotonic()
        with pytest.raises(ModelError, match=pattern("models.did_not_answer", seconds=1)):
            ask(settings(server, stream=stream, deadline_s=1.0))
        assert time.monotonic() - began < 20.0
        assert server.requests[0].hung_up.wait(30)


def test_a_trickle_ends_at_the_deadline_although_it_never_pauses() -> None:
    with FakeOpenAI(trickle) as server:
        with pytest.raises(ModelError, match=pattern("models.did_not_answer", seconds=1)):
            ask(settings(server, stream=True, deadline_s=1.0))
        assert server.requests[0].hung_up.wait(30)


@pytest.mark.parametrize("behaviour", [half_a_stream, polite_half_a_stream])
def test_a_stream_that_ends_in_the_middle_is_no_answer(behaviour: Behaviour) -> None:
    with FakeOpenAI(behaviour) as server:
        with pytest.raises(ModelError, match=f"hung up|{pattern('models.no_completion')}"):
            ask(settings(server, stream=True))
        assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"<html>hello</html>", "text/html"),
        (b"{not json", "application/json"),
        (b"[]", "application/json"),
        (b'{"choices": []}', "application/json"),
        (b'{"choices": [{"message": null}]}', "application/json"),
        (b'{"choices": 7}', "application/json"),
        (b"\xff\xfe\x00", "application/json"),
        (b"", "application/json"),
    ],
)
def test_nonsense_with_status_200_is_a_model_error(body: bytes, content_type: str) -> None:
    with FakeOpenAI(raw(body, content_type)) as server, pytest.raises(ModelError):
        ask(settings(server, stream=False))


def test_an_error_with_status_200_is_told_in_the_servers_words_without_the_key() -> None:
    body = b'{"error": {"message": "overloaded, dear sk-very-secret", "code": 503}}'
    with FakeOpenAI(raw(body)) as server, pytest.raises(ModelError, match="it says: overloaded, dear") as caught:
        ask(settings(server, stream=False))
    assert KEY not in str(caught.value)


def test_an_answer_in_parts_is_their_text_without_the_thoughts() -> None:
    body = (
        b'{"choices": [{"message": {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},'
        b' {"type": "text", "text": "to "}, {"type": "text", "text": "you"}]}, "finish_reason": "stop"}]}'
    )
    with FakeOpenAI(raw(body)) as server:
        assert ask(settings(server, stream=False))[0] == "to you"


def test_an_answer_cut_off_by_its_length_is_said_so() -> None:
    with FakeOpenAI(answers("{", finish="length")) as server, pytest.raises(ModelError, match="max_tokens"):
        ask(settings(server, stream=False))


def test_an_unreachable_server_is_named() -> None:
    with FakeOpenAI(silence) as server:
        gone = settings(server, stream=False)
    with pytest.raises(ModelError, match=r"127\.0\.0\.1:\d+ cannot be reached"):
        ask(gone)


def test_no_call_is_made_beyond_the_budget() -> None:
    with FakeOpenAI(answers("x")) as server:
        with pytest.raises(BudgetError, match="the budget of 3 calls is spent"):
            ask(settings(server, stream=False, max_calls=3), number=4)
        assert len(server.requests) == 3


@both
def test_cancelling_closes_the_connection(stream: bool) -> None:
    async def cancel(chat: ChatSettings, server: FakeOpenAI) -> None:
        client = ChatClient(chat, jitter=lambda: 0.0)
        task = asyncio.create_task(client.ask(QUESTION))
        assert await asyncio.to_thread(server.wait_for, 1)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.requests[0].hung_up.wait, 5)
        await client.close()

    with FakeOpenAI(trickle if stream else silence) as server:
        asyncio.run(cancel(settings(server, stream=stream), server))
