"""What a server means that answers with an error: its own sentence, when to come back, and what it does not take.

Servers tell it in their own words, under statuses of their own. Looked for is what the sentence says after the request
that it may repeat, and names of models, are taken out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from nodes.models.answers import BudgetError, ModelError
from nodes.models.chat_format import Question, read_body
from nodes.models.http_client import HttpAnswer

LONGEST_REFUSAL = 10_000
LONGEST_SAID = 200
"""Characters of a server's own words in a sentence of ours."""
OVER_S = 600.0
"""A server that has reached its limit of the day, or has no quota left, is not asked again for so long."""
LONGEST_WAIT_S = 86_400.0

_OUT_OF_MONEY = ("insufficient_quota", "billing_not_active", "billing_hard_limit_reached", "insufficient credits")
_DAY = re.compile(r"\b(?:per|each|this|a|for the)[ _-]?day\b|per-day|perday|\bdaily\b|\b[rt]pd\b", re.I)
_FILTER = re.compile(
    r"content_filter|content management policy|responsibleaipolicy|data_?inspection_?failed|inappropriate content"
    r"|content_policy|flagged (?:by|for) moderation|prohibited_content|input was flagged|safety system"
    r"|moderation_blocked",
    re.I,
)
_CONTEXT = re.compile(
    r"context_length_exceeded|(?:maximum|max|available|model'?s) context"
    r"|context (?:length|window|size) (?:of|is|exceed)"
    r"|exceeds? .{0,30}context|exceed_context|prompt is too long|input (?:is )?too long|too many (?:input )?tokens"
    r"|max_model_len|reduce the length of the (?:messages|prompt|input)|(?:input|prompt) token count .{0,30}exceeds",
    re.I,
)
_CONTEXT_LIMIT = re.compile(
    r"(?:context (?:length|size|window)(?: is| of|:)?|n_ctx\W+|max_model_len\W+"
    r"|maximum (?:number of tokens )?(?:allowed )?)\D{0,16}(\d{3,8})",
    re.I,
)
_PROMPT = re.compile(
    r"(\d+)\s+(?:input tokens|tokens? in the (?:messages|prompt)|in the messages|prompt tokens)"
    r"|n_prompt_tokens\W+(\d+)|request \((\d+) tokens\)|resulted in (\d+)|token count \((\d+)",
    re.I,
)
_TOO_LARGE = re.compile(r"max_(?:completion_)?tokens\S* (?:is |value is |are )?too (?:large|high|many|big)", re.I)
_MOST = re.compile(r"(?:at most|less than or equal to|maximum(?: allowed| value)?(?: is| of)?|<=)\s*(\d+)", re.I)
_IMAGES = re.compile(r"\bimages?\b|image_url|\bvision\b|\bmulti-?modal|mmproj", re.I)
_NOT_TAKEN = re.compile(
    r"n[o']t (?:currently )?(?:support|enabled|allowed|accept|a multi|available)|unsupported|only (?:text|supported)"
    r"|unknown variant|missing data|no endpoints|expected `?text|cannot (?:process|handle|take)"
    r"|unable to (?:process|handle)"
    r"|does(?: not|n't) (?:support|accept|take|have)|must be a string|valid string|invalid content type|without vision",
    re.I,
)
_NAMED = re.compile(
    r"system (?:role|message|prompt)|developer instruction|roles must alternate|jinja|chat template"
    r"|response[ _]?format|json[ _]?schema|json[ _]?object|grammar|guided|structured output|tool_choice|\btools\b"
    r"|requested parameters|stream_options",
    re.I,
)
_MODEL_NAME = re.compile(r"[\w./:]*\w[-/][\w./:-]*\w")
_ECHO = re.compile(r"['\"]input['\"]\s*:\s*.*?(?=,\s*['\"](?:url|ctx|type|loc|msg)['\"]\s*:|$)", re.S)
_DURATION = re.compile(
    r"(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)?(?![a-z])"
)
_UNITS = {"ms": 1e-3, "mi": 60.0, "m": 60.0, "s": 1.0, "h": 3600.0, "d": 86_400.0}
_IN_WORDS = re.compile(
    r"(?:again|retry|reset\w*|available|wait)\W+(?:in|after|for)?\W*((?:\d+(?:\.\d+)?\s*[a-z]+\W?(?:and )?)+)", re.I
)


class ContextFullError(ModelError):
    """The question is longer than the model reads; `limit` tokens are what it does, 0 where it does not say."""

    def __init__(self, text: str, limit: int) -> None:
        super().__init__(text)
        self.limit = limit


class RefusedError(ModelError):
    """The server does not take the request as it is; perhaps it does in another dialect."""

    def __init__(
        self,
        text: str,
        said: str,
        *,
        is_about_images: bool = False,
        room: int | None = None,
        full: ContextFullError | None = None,
    ) -> None:
        super().__init__(text, is_about_images=is_about_images)
        self.said = said  # by the server, for programs
        self.room = room  # None: it is not about the answer's length; tokens that are left for it, 0: it does not say
        self.full = full  # what is wrong where that is too little


class SlowDownError(ModelError):
    """The server asks for fewer calls (429)."""


class DeclinedError(ModelError):
    """A filter before the model declines the prompt; the text is the server's."""


class RefusalReader:
    """Reads the errors of one server for one model; `key_name` is the key's environment variable."""

    def __init__(self, where: str, model: str, key: str, key_name: str) -> None:
        self._where = where
        self._model = model
        self._key = key
        self._key_name = key_name

    def error(self, got: HttpAnswer, question: Question) -> ModelError:
        """The error to raise for an answer that is none."""
        where, status = self._where, got.status
        whole = self._hidden(got.body[:LONGEST_REFUSAL].decode("utf-8", errors="replace"))
        fields = _error_of(got.body)
        sentence = self._hidden(_sentence(fields)) or " ".join(whole.split())
        told = f"; it says: {sentence[:LONGEST_SAID]}" if sentence else ""
        codes = " ".join(str(value) for value in _codes(fields))
        said = f"{sentence} {codes}"
        bare = self._without_echoes(said, question)
        if _FILTER.search(said) and status not in (401, 429):
            return DeclinedError(sentence[:LONGEST_SAID])
        if status == 402 or any(word in said.lower() for word in _OUT_OF_MONEY):
            text = f"{where} has no quota left for this key ({status}){told}"  # waiting would not help
            return BudgetError(text, spent=text, is_servers=True)
        if status == 429:
            return self._slow_down(got, said, told)
        if status in (401, 403):
            if not self._key:
                how = "name its variable (--key, or key in [servers.NAME]), or set OPENAI_BASE_URL to this server"
                return ModelError(f"{where} wants a key ({status}), and was sent none; {how}{told}")
            return ModelError(f"{where} refused the key ({status}); check {self._key_name}{told}")
        if 300 <= status < 400:
            return ModelError(f"{where} sends elsewhere ({status}); name the address itself")
        if refused := self._refused(status, said, bare, sentence, whole, question):
            return refused
        if status == 404:
            return ModelError(f"{where} knows no model {self._model!r} or no chat completions (404){told}")
        may_retry = status >= 500 or status in (408, 409, 425)
        after_s = retry_after_s(got.headers, said)
        return ModelError(f"{where} failed ({status}){told}", may_retry=may_retry, retry_after_s=after_s)

    def _refused(
        self, status: int, said: str, bare: str, sentence: str, whole: str, question: Question
    ) -> ModelError | None:
        """Where the request itself is refused: for what it holds, or for its length."""
        text = f"{self._where} refused the request ({status}): {sentence[:LONGEST_SAID]}"
        if _CONTEXT.search(said) or _TOO_LARGE.search(said):
            limit, prompt = _number_in(_CONTEXT_LIMIT, whole), _number_in(_PROMPT, whole)
            most = f"at most {limit} tokens" if limit else "less"
            full = ContextFullError(
                f"{self._where} reads {most}, and the question with its answer is longer ({status}); shorten it, or "
                f"serve the model with a larger context; it says: {sentence[:LONGEST_SAID]}",
                limit,
            )
            room = limit - (prompt or question.prompt_tokens) if limit else 0
            if room < 0 or not (limit or _TOO_LARGE.search(said)):
                return full
            return RefusedError(text, bare, room=room or _number_in(_MOST, said), full=full if limit else None)
        if question.image_urls and _IMAGES.search(bare) and _NOT_TAKEN.search(bare):
            return RefusedError(text, bare, is_about_images=True)
        if status in (400, 405, 413, 415, 422) or (status in (404, 500, 501) and _NAMED.search(bare)):
            return RefusedError(text, bare)
        return None

    def _slow_down(self, got: HttpAnswer, said: str, told: str) -> ModelError:
        if _DAY.search(said) or b"PerDay" in got.body:
            text = f"{self._where} has reached its limit of the day (429){told}"
            return BudgetError(text, spent=text, is_servers=True)
        after_s = retry_after_s(got.headers, said + got.body[:LONGEST_REFUSAL].decode("utf-8", errors="replace"))
        return SlowDownError(
            f"{self._where} asks for fewer calls (429){told}", may_retry=True, retry_after_s=after_s or 1.0
        )

    def _hidden(self, text: str) -> str:
        return text.replace(self._key, "***") if self._key else text

    def _without_echoes(self, said: str, question: Question) -> str:
        """What is said, without what is only repeated of the request, and without names of models."""
        for own in (question.text, question.system):
            for form in (own, json.dumps(own)[1:-1], json.dumps(own, ensure_ascii=False)[1:-1]):
                said = said.replace(form, " ") if len(form) > 20 else said
        said = _ECHO.sub(" ", said)
        said = re.sub(re.escape(self._model), " ", said, flags=re.I) if len(self._model) > 1 else said
        said = re.sub("multi-modal", "multimodal", said, flags=re.I)
        return _MODEL_NAME.sub(lambda found: found[0] if "image" in found[0] else " ", said)


def retry_after_s(headers: Mapping[str, str], said: str) -> float:
    """When a server wants to be asked again, from its headers (names in lower case) or its words; 0: it does not say.

    A Retry-After is seconds, a duration or a date, which counts from the server's own.
    """
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        if given := headers.get(name, "").strip():
            after_s = _seconds_of(given) * (unit if given.replace(".", "", 1).isdecimal() else 1.0)
            if not after_s and (until := _since_1970(given)):
                after_s = max(0.0, until - (_since_1970(headers.get("date", "")) or until))
            if after_s:
                return min(after_s, LONGEST_WAIT_S)
    if found := _IN_WORDS.search(said) or re.search(r"retry_?delay\W+([\d.]+ ?m?s)", said, re.I):
        return min(_seconds_of(found[1]), LONGEST_WAIT_S)
    resets = {name: value for name, value in headers.items() if re.match(r"x-ratelimit-reset(-|$)", name)}
    waits = [
        _seconds_of(value, headers.get("date", ""))
        for name, value in resets.items()
        if headers.get(name.replace("reset", "remaining"), "0").strip() == "0"
    ]
    return min(max(waits, default=0.0), LONGEST_WAIT_S)


def _seconds_of(text: str, now: str = "") -> float:
    """Of "6", "1.5s", "200ms", "6m0s", "1 hour and 2 minutes", and seconds or ms since 1970; 0 for what is none."""
    parts = _DURATION.findall(text.lower())
    if not parts or not re.match(r"\s*\d", text) or re.search(r"\d[-:]\d|,", text):
        return 0.0
    seconds = sum(float(number) * _UNITS.get(unit[:2], _UNITS.get(unit[:1], 1.0)) for number, unit in parts)
    if seconds < 1e8:
        return seconds
    return max(0.0, seconds / (1e3 if seconds > 1e11 else 1.0) - _since_1970(now)) if _since_1970(now) else 0.0


def _since_1970(date: str) -> float:
    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, TypeError):
        return 0.0


def _number_in(pattern: re.Pattern[str], said: str) -> int:
    found = pattern.search(said)
    return int(next(part for part in found.groups() if part)) if found else 0


def _error_of(body: bytes) -> dict[str, Any]:
    """The error in a body of an API; {} where it is no such body."""
    try:
        found = read_body(body[: 10 * LONGEST_REFUSAL])
    except ValueError:
        return {}
    found = found[0] if isinstance(found, list) and found else found
    for key in ("error", "errors", "fault"):
        inner = found.get(key) if isinstance(found, dict) else None
        found = (inner[0] if isinstance(inner, list) else inner) or found
    return found if isinstance(found, dict) else {"message": str(found)}


def _sentence(fields: Mapping[str, Any]) -> str:
    """A server's own words on one line, with the places that it names; what it repeats of the request is left out."""
    said = next((fields[key] for key in ("message", "detail", "msg", "error_msg", "error") if fields.get(key)), "")
    if isinstance(said, dict):
        return _sentence(said)
    if isinstance(said, list):
        said = "; ".join(
            f"{'.'.join(map(str, one.get('loc', ())))}: {one.get('msg', '')}" if isinstance(one, dict) else str(one)
            for one in said
        )
    more = fields.get("metadata")
    raw = more.get("raw", "") if isinstance(more, dict) else ""
    return " ".join(f"{said} {raw if isinstance(raw, str) else ''}".split())


def _codes(fields: Mapping[str, Any]) -> list[object]:
    """What else an error says of itself for programs."""
    inner = fields.get("innererror")
    codes = [fields.get(key) for key in ("code", "type", "param", "status")]
    return [one for one in [*codes, inner.get("code") if isinstance(inner, dict) else None] if one]
