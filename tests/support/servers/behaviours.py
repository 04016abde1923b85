"""What servers and models do that people run, one behaviour a row, for every seat that a model holds.

Most are from reports of other people's users. A behaviour is made anew for each seat, around the answer that would be a
good one there. `text` is what is odd about the words alone, so that it is played over every protocol.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any

from tests.support.servers.fake_openai_server import (
    Behaviour,
    Request,
    answers,
    bytes_once,
    half_a_stream,
    half_closed,
    raw,
    sends_to,
    silence,
    status,
    when,
)

Serve = Callable[[str], Behaviour]
Text = Callable[[str], str]
ERROR = {"error": {"message": "the engine burns", "code": 500}}
THOUGHT = 'The other wants a price. I might answer {"action_type": "leave"}, but no. '
MARK = "and so"
"""Stands in each good answer, within a text."""
DIMENSIONS = {
    "BEL": "Believability", "REL": "Relationship", "KNO": "Knowledge", "SEC": "Secret", "SOC": "Social Rules",
    "FIN": "Financial and Material Benefits", "GOAL": "Goal",
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One behaviour; `text` where it is the model's words that are odd, `stream` where it is asked to stream."""

    name: str
    serve: Serve
    text: Text | None = None
    stream: bool = False
    judge: bool = False  # a judge alone meets it
    ends_batch: bool = False  # nobody else of a batch is asked any more


def words(name: str, text: Text) -> Row:
    """The model writes that."""
    return Row(name, lambda good: answers(text(good)), text)


def body(name: str, message: Callable[[str], object], finish: object = "stop", **more: object) -> Row:
    """A completion with that message, and more beside it."""
    return Row(name, lambda good: completion(message(good), finish, **more))


def completion(message: object, finish: object = "stop", **more: object) -> Behaviour:
    """A completion with that message."""
    return raw(json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": finish}], **more}).encode())


def beside(name: str, **more: object) -> Row:
    """A good answer, and that beside it."""
    return body(name, lambda good: {"content": good}, **more)


def events(name: str, *pieces: object, done: bool = True, end: str = "\n\n") -> Row:
    """A stream of these, the good answer in two halves in place of None."""

    def serve(good: str) -> Behaviour:
        half = len(good) // 2
        told: list[object] = []
        for one in pieces:
            told += [_delta(good[:half]), _delta(good[half:])] if one is None else [one]
        sent = "".join(f"data: {one if isinstance(one, str) else json.dumps(one)}{end}" for one in told)
        return raw((sent + (f"data: [DONE]{end}" if done else "")).encode(), "text/event-stream")

    return Row(name, serve, stream=True)


def _delta(text: str, finish: object = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}


def refuses(name: str, test: Callable[[Request], bool], refusal: Behaviour) -> Row:
    """A request that passes the test is refused, every other one is answered well."""
    return Row(name, lambda good: when(test, refusal, answers(good)))


def first(name: str, times: int, behaviour: Callable[[], Behaviour]) -> Row:
    """So many requests fare so, and every later one is answered well."""

    def serve(good: str) -> Behaviour:
        asked = 0

        async def behave(request: Request, writer: asyncio.StreamWriter) -> None:
            nonlocal asked
            asked += 1
            await (behaviour() if asked <= times else answers(good))(request, writer)

        return behave

    return Row(name, serve)


def always(name: str, behaviour: Behaviour, *, ends_batch: bool = False) -> Row:
    """Nothing else is ever sent."""
    return Row(name, lambda good: behaviour, ends_batch=ends_batch)


def has(key: str, kind: object = None) -> Callable[[Request], bool]:
    """Whether a request has that field (of that type)."""

    def told(request: Request) -> bool:
        found = request.body.get(key)
        return found is not None and (kind is None or found.get("type") == kind)

    return told


def has_system(request: Request) -> bool:
    """Whether a request has a message of the system."""
    return any(message["role"] == "system" for message in request.body["messages"])


def has_image(request: Request) -> bool:
    """Whether a request shows something."""
    return bool(request.image_urls)


def is_long(request: Request) -> bool:
    """Whether a longer answer is wanted than the server has room for."""
    return int(request.body.get("max_tokens") or request.body.get("max_completion_tokens") or 0) > 500


def reshaped(change: Callable[[dict[str, Any]], object]) -> Text:
    """The object of the good answer, changed."""
    return lambda good: json.dumps(change(json.loads(good)), ensure_ascii=False)


def scored(name: str, change: Callable[[dict[str, Any]], object]) -> Row:
    """A judge's answer, changed."""
    row = words(name, reshaped(lambda found: change(found) or found))
    return Row(name, row.serve, row.text, judge=True)


def _one(dimension: str, score: object) -> Callable[[dict[str, Any]], object]:
    """The first participant has that score on that dimension."""

    def change(found: dict[str, Any]) -> None:
        next(iter(found["evaluations"].values()))[dimension]["score"] = score

    return change


def _people(change: Callable[[str, Any], tuple[str, Any]]) -> Callable[[dict[str, Any]], object]:
    return lambda found: {"evaluations": dict(change(name, one) for name, one in found["evaluations"].items())}


def inside(good: str, more: str) -> str:
    """That in the middle of what it says."""
    return good.replace(MARK, MARK.replace(" ", more))


def fenced(good: str) -> str:
    """As chat models write it."""
    return f"Sure! Here you go:\n```json\n{good}\n```\nLet me know if you need more {{details}}."


WORDS = (
    words("good as it should be", lambda good: good),
    words("in a fence, with words and braces around it", fenced),
    words("in a fence that is not closed", lambda good: f"```json\n{good}"),
    words("in a fence of tildes", lambda good: f"~~~\n{good}\n~~~"),
    words("after `<think>`", lambda good: f"<think>\n{THOUGHT}\n</think>\n\n{good}"),
    words("after a `</think>` that nothing began", lambda good: f"{THOUGHT}\n</think>\n\n{good}"),
    words("after `<thinking>` with a draft of it", lambda good: f"<thinking>{good[:20]} no</thinking>{good}"),
    words("after `[THINK]`", lambda good: f"[THINK]{THOUGHT}[/THINK]{good}"),
    words("after `<seed:think>`", lambda good: f"<seed:think>{THOUGHT}</seed:think>{good}"),
    words("in `<|begin_of_box|>`", lambda good: f"<|begin_of_box|>{good}<|end_of_box|>"),
    words(
        "in the last channel of harmony",
        lambda good: (
            f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|start|>assistant<|channel|>final<|message|>{good}"
        ),
    ),
    words("in `<answer>`", lambda good: f"<answer>{good}</answer>"),
    words(
        "as a tool's call in the text",
        lambda good: f'<tool_call>\n{{"name": "answer", "arguments": {good}}}\n</tool_call>',
    ),
    words("as a call of a function in the text", lambda good: f"answer({good})"),
    words("twice", lambda good: f"{good}\n{good}"),
    words("after another object", lambda good: f'{{"plan": "think first"}}\n{good}'),
    words("with braces behind it", lambda good: f"{good}\n\nNote: {{this}} is what I would say."),
    words("with a brace too many", lambda good: f"{good}}}"),
    words("with doubled braces outside", lambda good: f"{{{good}}}"),
    words("with raw line ends inside", lambda good: inside(good, "\n")),
    words("with raw tabs inside", lambda good: inside(good, "\t")),
    words("with quotes inside", lambda good: inside(good, ' "so" ')),
    words("with an escaped apostrophe", lambda good: inside(good, " it\\'s ")),
    words("with comments", lambda good: "{ // the answer\n" + good[1:-1] + " /* that is all */ }"),
    words("with a comma at the end", lambda good: good[:-1] + ",}"),
    words("in single quotes", lambda good: good.replace('"', "'")),
    words("in curly quotes", lambda good: good.replace('"', "”")),
    words(
        "with Python's constants",
        lambda good: good[:-1].replace("false", "False").replace("null", "None") + ', "x": True}',
    ),
    words("with spaces that do not break", lambda good: good.replace(": ", ":\u00a0")),
    words("with a mark of bytes", lambda good: f"\ufeff{good}"),
    words("with half a character", lambda good: inside(good, " \ud83d ")),
    words("as a list of one", lambda good: f"[{good}]"),
    words("as a text in a text", lambda good: json.dumps(good)),
    words("in another object", lambda good: json.dumps({"answer": json.loads(good)})),
    words("in two other objects", lambda good: json.dumps({"result": {"output": json.loads(good)}})),
    words("with keys in capitals", reshaped(lambda found: {key.upper(): one for key, one in found.items()})),
    words("with keys that nobody asked for", reshaped(lambda found: {"thought": "Hm.", **found, "confidence": 0.9})),
    words(
        "with null for nothing",
        reshaped(lambda found: {key: None if one in ("", [], {}) else one for key, one in found.items()}),
    ),
    words("in another language's keys", lambda good: '{"行动类型": "说话", "内容": "你好", "对象": []}'),
    words("as XML", lambda good: "<answer><do>wait</do><action_type>speak</action_type></answer>"),
    words("as plain words", lambda good: "I think that is a very good idea."),
    words("as a refusal in words", lambda good: "I'm sorry, but I can't help with that request."),
    words("the schema itself", lambda good: '{"type": "object", "properties": {"do": {"type": "string"}}}'),
    words("an empty object", lambda good: "{}"),
    words("nothing", lambda good: ""),
    words("only a thought", lambda good: f"<think>\n{THOUGHT}"),
    Row(
        "cut in the middle",
        lambda good: answers(good[: len(good) // 2], finish="length"),
        lambda good: good[: len(good) // 2],
    ),
    Row(
        "cut behind the object",
        lambda good: answers(f"{good} And now I", finish="length"),
        lambda good: f"{good} And now I",
    ),
)
"""What a model writes; the object of the good answer stands in it somewhere, or not."""

BODIES = (
    beside("no tokens told (`usage: null`)", usage=None),
    beside("tokens that are null", usage={"prompt_tokens": 9, "completion_tokens": None}),
    beside("tokens as text", usage={"prompt_tokens": "9", "completion_tokens": "2"}),
    beside("tokens as floats", usage={"prompt_tokens": 9.0, "completion_tokens": 2.5}),
    beside("tokens as a list", usage=[]),
    beside("tokens as a word", usage="many"),
    body("`refusal: false`", lambda good: {"content": good, "refusal": False}),
    body("`finish_reason` is a number", lambda good: {"content": good}, finish=1),
    body("`finish_reason` is null", lambda good: {"content": good}, finish=None),
    Row(
        "a mark of bytes before the body",
        lambda good: raw(b"\xef\xbb\xbf" + json.dumps({"choices": [{"message": {"content": good}}]}).encode()),
    ),
    beside("NaN in logprobs", logprobs=[float("nan"), float("-inf")]),
    Row(
        "bytes that are no text",
        lambda good: raw(
            json.dumps({"choices": [{"message": {"content": good}}], "x": "\x01"}).encode().replace(b"\\u0001", b"\xff")
        ),
    ),
    beside("`error: null`", error=None),
    Row(
        "a list of one completion",
        lambda good: raw(json.dumps([{"choices": [{"message": {"content": good}}]}]).encode()),
    ),
    Row("an old completion (`text`)", lambda good: raw(json.dumps({"choices": [{"text": good}]}).encode())),
    body("the object in place of its text", lambda good: {"content": json.loads(good)}),
    body("parts, one of them a thought", lambda good: {"content": [{"type": "thinking", "thinking": "{}"}, good]}),
    body("`reasoning_content` alone", lambda good: {"content": None, "reasoning_content": good}),
    body("`reasoning` alone", lambda good: {"content": "", "reasoning": f"Hm.</think>{good}"}),
    body("a thought beside it", lambda good: {"content": good, "reasoning_content": '{"do": "go"}'}),
    body(
        "calls with arguments that are none",
        lambda good: {
            "content": good,
            "tool_calls": [{"id": None, "function": {"name": "answer", "arguments": ["x"]}}],
        },
    ),
    body(
        "a call of another tool beside it",
        lambda good: {"content": good, "tool_calls": [{"function": {"name": "web", "arguments": "{}"}}]},
    ),
    body(
        "a call without text",
        lambda good: {"content": None, "tool_calls": [{"function": {"name": "answer", "arguments": good}}]},
        finish="tool_calls",
    ),
    body(
        "a call whose arguments are an object",
        lambda good: {"content": None, "tool_calls": [{"function": {"name": "answer", "arguments": json.loads(good)}}]},
    ),
    body(
        "a call in the older form (`function_call`)",
        lambda good: {"content": None, "function_call": {"name": "answer", "arguments": good}},
        finish="function_call",
    ),
    Row(
        "a stream that nobody asked for",
        lambda good: raw(f"data: {json.dumps(_delta(good))}\n\ndata: [DONE]\n\n".encode(), "text/event-stream"),
    ),
)
"""What a server sends around a good answer."""

NO_ANSWERS = (
    body(
        "a call of a tool that nobody offered",
        lambda good: {
            "content": None,
            "tool_calls": [{"function": {"name": "web_search", "arguments": '{"query": "cellos"}'}}],
        },
    ),
    body(
        "only thought, `reasoning_content`",
        lambda good: {"content": None, "reasoning_content": THOUGHT * 9},
        finish="length",
    ),
    body("a refusal of the model's", lambda good: {"content": None, "refusal": "I can't help with deceiving people."}),
    body("a filter behind the model", lambda good: {"content": ""}, finish="content_filter"),
    body("`finish_reason: error`", lambda good: {"content": ""}, finish="error"),
    Row("an error beside `choices: null`", lambda good: raw(json.dumps({"choices": None, **ERROR}).encode())),
    Row("no choices", lambda good: raw(b'{"id": "x", "choices": []}')),
    Row(
        "an error with status 200",
        lambda good: raw(json.dumps({"object": "error", "message": "the engine burns"}).encode()),
    ),
    Row(
        "a rate limit with status 200",
        lambda good: raw(b'{"error": {"message": "Provider returned error", "code": 429}}'),
    ),
    Row("a web page with status 200", lambda good: raw(b"<!doctype html><html>Sign in</html>", "text/html")),
    Row("an empty body", lambda good: raw(b"")),
)
"""What a server sends in place of one."""

STREAMS = (
    events("as it should be", None, _delta("", "stop")),
    events("ends with [DONE] and no `finish_reason`", None),
    events("lines end with CR LF", None, _delta("", "stop"), end="\r\n\r\n"),
    events(
        "tokens at its end, some null",
        None,
        _delta("", "stop"),
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": None}},
    ),
    events("no [DONE]", None, _delta("", "stop"), done=False),
    events("empty pieces between", {}, None, {"choices": []}, {"choices": [{"delta": {}}]}, _delta("", "stop")),
    Row("a whole answer in place of a stream", lambda good: completion({"content": good}), stream=True),
    Row(
        "`data:` without a space, and pings",
        lambda good: raw(
            f": ping\n\ndata:\n\nevent: message\ndata:{json.dumps(_delta(good, 'stop'))}\n\n".encode(),
            "text/event-stream",
        ),
        stream=True,
    ),
)
"""How a good stream comes."""

BROKEN_STREAMS = (
    events("an error in the middle", _delta("{"), ERROR),
    events("a piece that is no JSON", _delta("{"), "{oops"),
    events("ends in the middle without a word", _delta('{"do": "wo'), done=False),
    Row("hangs up in the middle", lambda good: half_a_stream, stream=True),
)
"""How a stream breaks."""

SYSTEM = "a system message refused: "
FORM = "the form of the answer refused: "
REFUSED_IN_PART = (
    refuses(
        SYSTEM + "OpenAI",
        has_system,
        status(400, "Unsupported value: 'messages[0].role' does not support 'system' with this model."),
    ),
    refuses(
        SYSTEM + "Gemini", has_system, status(400, "Developer instruction is not enabled for models/gemma-3-27b-it")
    ),
    refuses(SYSTEM + "Gemma", has_system, status(400, "System role not supported")),
    refuses(
        SYSTEM + "Mistral", has_system, status(400, "Only user, assistant and tool roles are supported, got system.")
    ),
    refuses(
        SYSTEM + "vLLM", has_system, status(400, "Conversation roles must alternate user/assistant/user/assistant/...")
    ),
    refuses(SYSTEM + "llama.cpp, as 500", has_system, status(500, "Error: Jinja Exception: System role not supported")),
    refuses(
        FORM + "by a model with vision in its name",
        has("response_format", "json_schema"),
        status(400, "`llama-3.2-90b-vision-preview` does not support response format `json_schema`."),
    ),
    refuses(
        FORM + "OpenRouter, as 404",
        has("response_format"),
        status(404, "No endpoints found that can handle the requested parameters."),
    ),
    refuses(
        FORM + "llama.cpp, as 500",
        has("response_format", "json_schema"),
        status(500, "Failed to initialize samplers: failed to parse grammar"),
    ),
    refuses(
        FORM + "422 that echoes the request",
        has("response_format", "json_schema"),
        status(
            422,
            "",
            {
                "message": None,
                "detail": [
                    {
                        "loc": ["body", "response_format"],
                        "msg": "Input should be 'text'",
                        "input": {"temperature": 1, "image_url": 2},
                    }
                ],
            },
        ),
    ),
    refuses(
        FORM + "and tools, too",
        lambda request: "tools" in request.body or has("response_format", "json_schema")(request),
        status(422, "extra fields not permitted: response_format, tools"),
    ),
    refuses(
        "`max_completion_tokens` refused",
        has("max_completion_tokens"),
        status(400, "'max_completion_tokens' is not supported with phi-3.5-vision-instruct."),
    ),
    refuses(
        "`max_tokens` refused",
        has("max_tokens"),
        status(
            400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'."
        ),
    ),
    refuses(
        "`max_completion_tokens` ignored, 16 tokens by default",
        lambda request: "max_tokens" not in request.body,
        answers('{"do": ', finish="length"),
    ),
    refuses(
        "a temperature refused",
        has("temperature"),
        status(400, "Unsupported value: 'temperature' does not support 0.7 with this model."),
    ),
    refuses(
        "a long answer refused",
        is_long,
        status(
            400,
            (
                "'max_tokens' is too large: 2000. This model's maximum context length is 2048 tokens and your request "
                "has 1500 input tokens (2000 > 2048 - 1500)."
            ),
        ),
    ),
)
"""What a server refuses of a request that it takes otherwise."""

REFUSALS = (
    always(
        "the question is too long: OpenAI, vLLM",
        status(
            400,
            (
                "This model's maximum context length is 2048 tokens. However, you requested 9100 tokens "
                "(8100 in the messages)"
            ),
            {"code": "context_length_exceeded"},
        ),
    ),
    always(
        "the question is too long: llama.cpp",
        status(
            400,
            ("the request exceeds the available context size. try increasing it"),
            {"type": "exceed_context_size_error", "n_prompt_tokens": 9100, "n_ctx": 2048},
        ),
    ),
    always(
        "a filter before the model: Azure",
        status(
            400,
            ("The response was filtered due to the prompt triggering the content management policy."),
            {"code": "content_filter"},
        ),
    ),
    always(
        "a filter before the model: DashScope",
        status(400, "Input data may contain inappropriate content.", {"code": "data_inspection_failed"}),
    ),
    always("a refusal that says nothing", status(400, "something is wrong")),
)
"""What a server refuses whatever it is asked."""

IMAGE = "an image refused: "
IMAGES = (
    refuses(
        IMAGE + "OpenAI", has_image, status(400, "Invalid content type. image_url is only supported by certain models.")
    ),
    refuses(
        IMAGE + "DeepSeek",
        has_image,
        status(400, "Failed to deserialize: messages[1]: unknown variant `image_url`, expected `text` at line 1"),
    ),
    refuses(IMAGE + "vLLM", has_image, status(400, "m is not a multimodal model")),
    refuses(IMAGE + "Ollama, as 500", has_image, status(500, "this model is missing data required for image input")),
    refuses(
        IMAGE + "llama.cpp, as 500",
        has_image,
        status(500, "image input is not supported - hint: you may need to provide the mmproj"),
    ),
    refuses(IMAGE + "OpenRouter, as 404", has_image, status(404, "No endpoints found that support image input")),
    refuses(IMAGE + "pydantic, as 422", has_image, status(422, "messages.1.content: Input should be a valid string")),
    refuses(IMAGE + "for no reason", has_image, status(400, "something is wrong")),
)
"""How servers say that they take no images."""

LIMIT = "Rate limit reached"
OUTAGES = (
    first("429, Retry-After in seconds", 1, lambda: status(429, LIMIT, retry_after="1")),
    first(
        "429, Retry-After as a date",
        1,
        lambda: status(429, LIMIT, retry_after=formatdate(3601, usegmt=True), date=formatdate(3600, usegmt=True)),
    ),
    first("429, Retry-After in ms", 1, lambda: status(429, LIMIT, retry_after_ms="900")),
    first("429, in words", 1, lambda: status(429, f"{LIMIT}. Please try again in 1s.")),
    first(
        "429, x-ratelimit-reset",
        1,
        lambda: status(429, LIMIT, x_ratelimit_reset_requests="1s", x_ratelimit_remaining_requests="0"),
    ),
    always("429 and nothing else", status(429, "slow down")),
    always(
        "429, the limit of the day",
        status(429, "Rate limit reached: requests per day (RPD): Limit 50"),
        ends_batch=True,
    ),
    always("429, no money left", status(429, "see your plan", {"code": "insufficient_quota"}), ends_batch=True),
    always("402", status(402, "Insufficient Balance"), ends_batch=True),
    always("401", status(401, "Incorrect API key provided")),
    always("403", status(403, "Project does not have access to this model")),
    always("404, no such model", status(404, "The model does not exist", {"code": "model_not_found"})),
    always("307, elsewhere", sends_to("http://127.0.0.1:9")),
    first("503 while the model loads", 1, lambda: status(503, "Loading model")),
    first(
        "502 with a web page",
        1,
        lambda: bytes_once(
            b"HTTP/1.1 502 X\r\ncontent-type: text/html\r\ncontent-length: 31\r\n\r\n<html><h1>Bad Gateway</h1></html"
        ),
    ),
    first("529, overloaded", 1, lambda: status(529, "Overloaded", {"type": "overloaded_error"})),
    first("hangs up at first", 1, lambda: bytes_once(b"")),
    first("half a body at first", 1, lambda: half_closed),
    always("500, always", status(500, "the engine burns")),
    always("bytes that are no HTTP", bytes_once(b"SSH-2.0-OpenSSH_9.2\r\n")),
    always("never an answer", silence),
)
"""When a server does not answer, or not now."""

JUDGED = (
    scored('a score as "8"', _one("BEL", "8")),
    scored('a score as "+3"', _one("REL", "+3")),
    scored('a score as "−2"', _one("SEC", "\u22122")),
    scored('a score as "eight"', _one("BEL", "eight")),
    scored('a score as "8/10"', _one("BEL", "8/10")),
    scored('a score as "4/5"', _one("BEL", "4/5")),
    scored("a score of 11", _one("BEL", 11)),
    scored("a score of 7.5", _one("BEL", 7.5)),
    scored("a score of null", _one("BEL", None)),
    scored("a score of true", _one("BEL", True)),
    scored("a score of NaN", _one("BEL", float("nan"))),
    scored(
        "scores without reasons", _people(lambda name, one: (name, {key: had["score"] for key, had in one.items()}))
    ),
    scored(
        "dimensions in small letters", _people(lambda name, one: (name, {key.lower(): had for key, had in one.items()}))
    ),
    scored(
        "dimensions by their long names",
        _people(lambda name, one: (name, {DIMENSIONS[key]: had for key, had in one.items()})),
    ),
    scored(
        "lists of scores with names",
        lambda found: {
            "evaluations": [
                {"name": name, "scores": [{"dimension": key, **had} for key, had in one.items()]}
                for name, one in found["evaluations"].items()
            ]
        },
    ),
    scored("no `evaluations` around them", lambda found: found["evaluations"]),
    scored("people by their last names", _people(lambda name, one: (name.split()[-1], one))),
    scored(
        'people as "Agent 1"',
        lambda found: {
            "evaluations": {f"Agent {number}": one for number, one in enumerate(found["evaluations"].values(), start=1)}
        },
    ),
    scored("one person is missing", lambda found: {"evaluations": dict([*found["evaluations"].items()][:1])}),
    scored(
        "one person too many",
        lambda found: {"evaluations": {**found["evaluations"], "Overall": next(iter(found["evaluations"].values()))}},
    ),
    scored("one dimension is missing", lambda found: next(iter(found["evaluations"].values())).pop("FIN") and None),
)
"""What a judge writes."""

SECTIONS: dict[str, tuple[Row, ...]] = {
    "What the model writes": WORDS,
    "What stands around the answer": BODIES,
    "What comes in place of one": NO_ANSWERS,
    "How a stream comes": STREAMS,
    "How a stream breaks": BROKEN_STREAMS,
    "What is refused of a request": REFUSED_IN_PART,
    "What is refused altogether": REFUSALS,
    "Images": IMAGES,
    "Limits and outages": OUTAGES,
    "What a judge writes": JUDGED,
}
