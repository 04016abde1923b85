"""The chat-completions format: a question as the body of a request, and an answer read from JSON or an event stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from nodes.models.answers import MOST_TOKENS, ModelError
from nodes.models.budget import estimated_tokens
from nodes.models.dialect import Dialect
from nodes.models.json_reading import LONGEST_ANSWER
from runtime.serialization.msgspec_cache import from_json

ANSWER = "answer"
"""The tool whose arguments are the answer, for servers that know tool calls and no structured output."""


@dataclass(frozen=True, slots=True)
class Question:
    """What the model is told, what it sees, and the JSON schema of the answer; {}: the answer is plain text."""

    system: str
    text: str
    schema: dict[str, object]
    image_urls: tuple[str, ...] = ()

    @property
    def prompt_tokens(self) -> int:
        """About how many tokens it is."""
        return estimated_tokens(len(self.system) + len(self.text), len(self.image_urls))


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """How a model is asked; None and "" are left out of the request."""

    temperature: float | None = None
    max_tokens: int = MOST_TOKENS
    stream: bool = False
    top_p: float | None = None
    seed: int | None = None
    reasoning_effort: str = ""
    extra_body: Mapping[str, object] = field(default_factory=dict)


Ending = Literal["whole", "cut", "declined"]
"""How an answer ended: by itself, at the limit of its length, or with the model (or a filter before it) declining."""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What the model said and what it cost."""

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    ending: Ending = "whole"
    took_s: float = 0.0  # from the request that was answered to its answer; waiting for one's turn is no part of it


def body_of(model: str, question: Question, options: ModelOptions, dialect: Dialect) -> dict[str, object]:
    """The request, in the words that the server knows. A prompt without an image is one text."""
    system = question.system if dialect.has_system else ""
    text = question.text if dialect.has_system or not question.system else f"{question.system}\n\n{question.text}"
    content: object = text
    if question.image_urls:
        images = [{"type": "image_url", "image_url": {"url": url}} for url in question.image_urls]
        content = [{"type": "text", "text": text}, *images]
    messages: list[dict[str, object]] = [{"role": "system", "content": system}] if system else []
    body: dict[str, object] = {"model": model, "messages": [*messages, {"role": "user", "content": content}]}
    if options.temperature is not None and dialect.has_temperature:
        body["temperature"] = options.temperature
    body[dialect.limit] = options.max_tokens
    given = {"top_p": options.top_p, "seed": options.seed, "reasoning_effort": options.reasoning_effort or None}
    body |= {name: value for name, value in given.items() if value is not None}
    if options.stream:
        body["stream"] = True
        if dialect.tells_usage:
            body["stream_options"] = {"include_usage": True}
    if question.schema and dialect.format == "json_schema":
        form = {"name": "answer", "strict": True, "schema": question.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": form}
    elif question.schema and dialect.format == "tools":
        function = {"name": ANSWER, "description": "Give the answer, in this form.", "parameters": question.schema}
        body["tools"] = [{"type": "function", "function": function}]
        body["tool_choice"] = {"type": "function", "function": {"name": ANSWER}}
    elif question.schema and dialect.format == "json_object":
        body["response_format"] = {"type": "json_object"}
    return body | dict(options.extra_body)


class _Function(msgspec.Struct):
    arguments: str | dict[str, Any] | None = None  # some servers send the object itself


class _ToolCall(msgspec.Struct):
    function: _Function | None = None
    index: int | None = None  # of a stream


class _Part(msgspec.Struct):
    text: str | None = None  # thoughts and other kinds of parts have none


class _Said(msgspec.Struct):
    content: str | list[_Part] | None = None  # some servers send parts, as a request may have them
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(msgspec.Struct):
    message: _Said | None = None
    delta: _Said | None = None
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Completion(msgspec.Struct):
    choices: list[_Choice] = []
    usage: _Usage | None = None


class AnswerReader:
    """Reads the pieces of a body as they come, so that what was said is known when it breaks off."""

    def __init__(self, where: str, *, stream: bool, told: Callable[[bytes], str] = lambda body: "") -> None:
        self.usage: tuple[int, int] | None = None  # prompt and completion tokens, as the server tells
        self._where = where
        self._stream = stream
        self._told = told  # the server's own words, out of a body that is no answer
        self._rest = b""
        self._parts: list[str] = []
        self._called: list[str] = []  # the arguments of the first tool call, which are the answer where there is one
        self._refusal = ""
        self._why_ended: str | None = None
        self._size = 0

    @property
    def characters(self) -> int:
        """So long is the answer so far."""
        return self._size

    def take(self, piece: bytes) -> None:
        """The next bytes. Raises ModelError for what is no stream, or one without end."""
        if not self._stream:
            return
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            self._event(line)

    def answer(self, body: bytes, content_type: str) -> ModelAnswer:
        """The whole answer. Raises ModelError where there is none."""
        if self._stream and content_type.startswith("text/event-stream"):
            self._event(self._rest)
            if self._why_ended is None:
                raise ModelError(f"{self._where} hung up in the middle of its answer", may_retry=True)
        else:
            self._whole(body)
        prompt, completion = self.usage or (0, 0)
        if self._refusal or self._why_ended == "content_filter":
            return ModelAnswer(self._refusal or "(content filter)", prompt, completion, "declined")
        ending: Ending = "cut" if self._why_ended == "length" else "whole"
        return ModelAnswer("".join(self._called) or "".join(self._parts), prompt, completion, ending)

    def _event(self, line: bytes) -> None:
        data = line.removeprefix(b"data:").strip()
        if not line.startswith(b"data:") or data == b"[DONE]":
            return
        try:
            chunk = from_json(data, _Completion)
        except msgspec.MsgspecError as problem:
            raise ModelError(f"{self._where} sent a broken stream: {problem}", may_retry=True) from problem
        self._count(chunk.usage)
        for choice in chunk.choices[:1]:
            if choice.delta is not None:
                self._say(choice.delta)
            self._why_ended = choice.finish_reason or self._why_ended

    def _whole(self, body: bytes) -> None:
        try:
            completion = from_json(body, _Completion)
        except msgspec.MsgspecError as problem:
            raise ModelError(f"{self._where} sent no chat completion: {problem}", may_retry=True) from problem
        self._count(completion.usage)
        if not completion.choices:
            told = self._told(body)  # some servers tell what went wrong under the status 200
            raise ModelError(f"{self._where} sent no chat completion: it holds no choices{told}", may_retry=True)
        choice = completion.choices[0]
        self._why_ended = choice.finish_reason
        if choice.message is None:
            raise ModelError(f"{self._where} sent no chat completion: it holds no message", may_retry=True)
        self._say(choice.message)

    def _say(self, said: _Said) -> None:
        content = said.content or ""
        self._parts.append(content if isinstance(content, str) else "".join(part.text or "" for part in content))
        self._refusal += said.refusal or ""
        self._size += len(self._parts[-1])
        for number, call in enumerate(said.tool_calls or ()):
            is_first = (number if call.index is None else call.index) == 0
            if is_first and call.function is not None:
                given = call.function.arguments or ""
                self._called.append(given if isinstance(given, str) else msgspec.json.encode(given).decode())
                self._size += len(self._called[-1])
        if self._size > LONGEST_ANSWER:
            raise ModelError(f"{self._where} does not stop talking; at most {LONGEST_ANSWER} characters are read")

    def _count(self, usage: _Usage | None) -> None:
        if usage is not None and min(usage.prompt_tokens, usage.completion_tokens) >= 0:
            self.usage = (usage.prompt_tokens, usage.completion_tokens)
