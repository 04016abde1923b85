"""The chat-completions format: a question as the body of a request, and an answer read from JSON or an event stream."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from nodes.models.answers import MOST_TOKENS, ModelError
from nodes.models.budget import estimated_tokens
from nodes.models.dialect import Dialect
from nodes.models.http_client import HttpAnswer
from nodes.models.json_reading import LONGEST_ANSWER, as_thought, read_number, whole_characters, without_thoughts

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
    context: int = 0  # tokens that the model reads, question and answer together; 0: not known
    extra_body: Mapping[str, object] = field(default_factory=dict)

    @property
    def given(self) -> dict[str, object]:
        """What somebody asked for by name, and a server may refuse."""
        named = {"top_p": self.top_p, "seed": self.seed, "reasoning_effort": self.reasoning_effort or None}
        return {name: value for name, value in named.items() if value is not None} | dict(self.extra_body)


Ending = Literal["whole", "cut", "declined", "full"]
"""How an answer ended: by itself, at the limit of its length, with the model (or a filter before it) declining, or not
at all, since the question is longer than the model reads."""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What the model said and what it cost."""

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    ending: Ending = "whole"
    took_s: float | None = None  # from the request that was answered to its answer, without waiting for one's turn
    by: str = ""  # the model that stood in for the one that was asked
    left_out: tuple[str, ...] = ()  # what the server was not asked for, since it refuses it: "temperature 0"


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
    limits = ("max_completion_tokens", "max_tokens") if dialect.limit == "both" else (dialect.limit,)
    body |= dict.fromkeys(limits, options.max_tokens)
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
    return body | options.given


_CUT = ("length", "max_tokens", "max_output_tokens", "model_length")
_DECLINED = ("content_filter", "safety", "prohibited_content", "blocklist", "recitation", "refusal", "sensitive")


TOLD = ("error", "errors", "fault", "detail", "message", "msg", "error_msg")
"""Keys under which servers say what is wrong."""
SAYS_NOTHING = "it sent no answer, and does not say why"


class ServerFailedError(ModelError):
    """What came in place of an answer under the status of a good one: an error of the API; `body` is that."""

    def __init__(self, where: str, body: dict[str, Any]) -> None:
        super().__init__(f"{where} sent no chat completion", may_retry=True)
        self.body = body

    def as_answer(self) -> HttpAnswer:
        """The same as a server sends it that has the right status; 502 where the error names none."""
        error = self.body.get("error")
        code = read_number(error.get("code") or error.get("status")) if isinstance(error, dict) else None
        status = int(code) if code is not None and 400 <= code < 600 else 502
        says = any(self.body.get(key) for key in TOLD)
        return HttpAnswer(status, {}, json.dumps(self.body if says else {"message": SAYS_NOTHING}).encode())


def read_body(data: bytes | str) -> Any:
    """JSON of a server, as leniently as a decoder can: with its mark of bytes, NaN, halves of characters, any bytes.

    Raises ValueError.
    """
    text = data if isinstance(data, str) else data.decode(json.detect_encoding(data), errors="replace")
    try:
        return json.loads(text.removeprefix("\ufeff"), strict=False)
    except RecursionError as problem:
        raise ValueError("it is nested too deep") from problem


class AnswerReader:
    """Reads the pieces of a body as they come, so that what was said is known when it breaks off.

    It takes what an answer is made of, and is lenient about all else that a server sends.
    """

    def __init__(self, where: str, *, stream: bool) -> None:
        self.usage: tuple[int, int] | None = None  # prompt and completion tokens, as the server tells
        self._where = where
        self._stream = stream
        self._rest = b""
        self._parts: list[str] = []
        self._thoughts: list[str] = []  # what it says apart from the answer
        self._called: list[str] = []  # the arguments of the first tool call, which are the answer where there is one
        self._tool = ANSWER
        self._refusal = ""
        self._why_ended = ""
        self._is_over = False
        self._size = 0

    @property
    def characters(self) -> int:
        """So long is the answer so far, with its thoughts."""
        return self._size + sum(map(len, self._thoughts))

    def take(self, piece: bytes) -> None:
        """The next bytes. Raises ModelError for what is no stream, or one without end."""
        if not self._stream:
            return
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            self._event(line)

    def answer(self, body: bytes, content_type: str) -> ModelAnswer:
        """The whole answer. Raises ModelError where there is none."""
        is_stream = content_type.startswith("text/event-stream") or body.lstrip().startswith(b"data:")
        if is_stream:
            for line in [self._rest] if self._stream else body.split(b"\n"):
                self._event(line)
            if not (self._why_ended or self._is_over):
                raise ModelError(f"{self._where} hung up in the middle of its answer", may_retry=True)
        else:
            self._take_choice(self._read(body))
        prompt, completion = self.usage or (0, 0)
        if self._refusal or self._why_ended in _DECLINED:
            return ModelAnswer(self._refusal or "(content filter)", prompt, completion, "declined")
        ending: Ending = "cut" if self._why_ended in _CUT else "whole"
        return ModelAnswer(whole_characters(self._said(ending)), prompt, completion, ending)

    def _said(self, ending: Ending) -> str:
        said, called = "".join(self._parts), "".join(self._called)
        if called.lstrip().startswith("{") and (self._tool == ANSWER or not said.strip()):
            return called
        if said.strip() or not (thought := "".join(self._thoughts).strip()):
            return said
        is_answer = ending == "whole" and without_thoughts(thought).rstrip("`\n ").endswith("}")
        return thought if is_answer else as_thought(thought)

    def _event(self, line: bytes) -> None:
        data = line.removeprefix(b"data:").strip()
        if not line.startswith(b"data:") or not data:
            return
        if data.upper() == b"[DONE]":
            self._is_over = True
            return
        self._take_choice(self._read(data), is_piece=True)

    def _read(self, data: bytes) -> dict[str, Any]:
        """A completion, or a piece of one; its tokens are counted."""
        try:
            found = read_body(data)
        except ValueError as problem:
            why = "it is a web page; check the address" if data.lstrip().startswith(b"<") else problem
            why = why if data.strip() else "nothing came"
            raise ModelError(f"{self._where} sent no chat completion: {why}", may_retry=True) from problem
        found = found[0] if isinstance(found, list) and len(found) == 1 else found
        if not isinstance(found, dict):
            raise ModelError(f"{self._where} sent no chat completion: it is no object", may_retry=True)
        usage = found.get("usage")
        if isinstance(usage, dict):
            tokens = [token_count(usage.get(name)) for name in ("prompt_tokens", "completion_tokens")]
            self.usage = (tokens[0], tokens[1]) if min(tokens) >= 0 and max(tokens) > 0 else self.usage
        return found

    def _take_choice(self, found: dict[str, Any], *, is_piece: bool = False) -> None:
        choices = found.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            if not is_piece or any(found.get(key) for key in TOLD):
                raise ServerFailedError(self._where, found)
            return
        if choice.get("error") or choice.get("finish_reason") == "error":
            raise ServerFailedError(self._where, {"error": choice.get("error") or found.get("error")})
        self._why_ended = str(choice.get("finish_reason") or self._why_ended).casefold()
        said = next((choice[key] for key in ("message", "delta") if isinstance(choice.get(key), dict)), None)
        if said is None and not is_piece and not isinstance(choice.get("text"), str):
            raise ModelError(f"{self._where} sent no chat completion: it holds no message", may_retry=True)
        self._say(said or {"content": choice.get("text")})

    def _say(self, said: dict[str, Any]) -> None:
        self._parts.append(_text_of(said.get("content")))
        self._thoughts.append(_text_of(said.get("reasoning_content") or said.get("reasoning")))
        self._refusal += said["refusal"] if isinstance(said.get("refusal"), str) else ""
        self._size += len(self._parts[-1])
        calls = said.get("tool_calls") or [{"function": said.get("function_call")}]  # the latter is the older form
        for number, call in enumerate(calls if isinstance(calls, list) else ()):
            function = call.get("function") if isinstance(call, dict) else None
            index = call.get("index") if isinstance(call, dict) else None
            if isinstance(function, dict) and (number if index is None else index) == 0:
                given = function.get("arguments") or ""
                self._tool = function.get("name") or self._tool
                self._called.append(given if isinstance(given, str) else json.dumps(given, ensure_ascii=False))
                self._size += len(self._called[-1])
        if self._size > LONGEST_ANSWER:
            raise ModelError(f"{self._where} does not stop talking; at most {LONGEST_ANSWER} characters are read")


def _text_of(content: object) -> str:
    """Of a text, or of parts as a request may have them: thoughts and other kinds of parts have none."""
    if isinstance(content, list):
        return "".join(_text_of(part.get("text") if isinstance(part, dict) else part) for part in content)
    if isinstance(content, dict):
        return _text_of(content["value"]) if "value" in content else json.dumps(content, ensure_ascii=False)
    return content if isinstance(content, str) else ""


def token_count(tokens: object) -> int:
    """Of tokens, however a server writes a number; -1 for what is none."""
    number = read_number(tokens)
    return -1 if number is None or not 0 <= number < 1e9 else int(number)
