"""What a language model's server is asked for and how its text becomes a typed answer, without any HTTP.

Model output is data: an answer is a struct with bounded fields or it is refused. The JSON in it is read as generously
as `json_reading.py` reads.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec

from nodes.models.json_reading import UnreadableError, read_json
from runtime.errors import MissingVariable, PolyrhythmError
from runtime.serialization.msgspec_cache import from_json

A = TypeVar("A")

OPENAI_URL = "https://api.openai.com/v1"
MOST_TOKENS = 2000
"""Of an answer, where nobody says otherwise."""


class ModelError(PolyrhythmError):
    """A model's server did not answer, or not with what was asked; the text never holds a key."""

    def __init__(
        self,
        text: str,
        *,
        may_retry: bool = False,
        retry_after_s: float = 0.0,
        is_about_images: bool = False,
        is_unusable: bool = False,
    ) -> None:
        super().__init__(text)
        self.is_unusable = is_unusable  # the server is well; its model may answer otherwise when told why
        self.is_about_images = is_about_images  # the server takes none
        self.may_retry = may_retry
        self.retry_after_s = retry_after_s


class BudgetError(ModelError):
    """All calls that this run may make are made; `spent` says which budget that is, without the server's name."""

    def __init__(self, text: str, *, spent: str = "") -> None:
        super().__init__(text)
        self.spent = spent


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """Where the model is and how long, how often and how it may be asked."""

    base_url: str
    model: str
    api_key: str = field(default="", repr=False)
    deadline_s: float = 5.0
    max_calls: int = 200
    max_tokens: int = MOST_TOKENS
    stream: bool = False
    prefix: str = "OPENAI"  # of the environment variables that name server, model and key

    @property
    def where(self) -> str:
        """The server's host and port, which is all that messages show of its address."""
        parts = urlsplit(self.base_url)
        return f"{parts.hostname or self.base_url}" + (f":{parts.port}" if parts.port else "")

    def problems(self) -> list[str]:
        """What is wrong with these settings, in sentences; empty where nothing is."""
        found = []
        if urlsplit(self.base_url).scheme not in ("http", "https"):
            found.append(f"base_url is {self.base_url!r}; expected http://... or https://...")
        if not self.model:
            found.append(
                MissingVariable(
                    f"no model is named; set the parameter model or the environment variable {self.prefix}_MODEL"
                )
            )
        if not self.api_key and self.base_url.rstrip("/") == OPENAI_URL:
            found.append(
                MissingVariable(
                    f"{self.prefix}_API_KEY is not set; set it, or {self.prefix}_BASE_URL to a server that needs no key"
                )
            )
        if not 0.0 < self.deadline_s <= 60.0:
            found.append(f"deadline_s is {self.deadline_s}; expected more than 0 and at most 60")
        if self.max_calls < 1:
            found.append(f"max_calls is {self.max_calls}; expected at least 1")
        if self.max_tokens < 1:
            found.append(f"max_tokens is {self.max_tokens}; expected at least 1")
        return found


def settings_from(
    prefix: str,
    environment: Mapping[str, str] = os.environ,
    *,
    base_url: str,
    model: str,
    default_url: str = OPENAI_URL,
    default_model: str,
    deadline_s: float,
    max_calls: int,
    max_tokens: int = MOST_TOKENS,
    stream: bool = False,
) -> ChatSettings:
    """Parameters, else e.g. OPENAI_BASE_URL and OPENAI_MODEL, else the defaults; the key only from OPENAI_API_KEY.

    OPENAI_API_KEY goes to OpenAI's own host and to OPENAI_BASE_URL, and to no other server that a parameter names.
    `max_tokens` and `stream` are for those that answer with text. The prefix differs per seat, so that the key of a
    cloud planner is never sent to a VLM's server.
    """
    url = base_url or environment.get(f"{prefix}_BASE_URL", "") or default_url
    return ChatSettings(
        base_url=url,
        model=model or environment.get(f"{prefix}_MODEL", "") or default_model,
        api_key=environment.get(f"{prefix}_API_KEY", "")
        if prefix != "OPENAI" or has_openai_key(url, environment)
        else "",
        deadline_s=deadline_s,
        max_calls=max_calls,
        max_tokens=max_tokens,
        stream=stream,
        prefix=prefix,
    )


def has_openai_key(base_url: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether OPENAI_API_KEY is for that address: OpenAI's own host, or the user's OPENAI_BASE_URL."""
    parts, own = urlsplit(base_url), urlsplit(OPENAI_URL)
    if (parts.scheme, parts.netloc) == (own.scheme, own.netloc):
        return True
    return base_url.rstrip("/") == environment.get("OPENAI_BASE_URL", "").rstrip("/")


def read_answer(text: str, kind: type[A]) -> A:
    """The answer that the text holds. Raises ModelError where it holds none, or not all of one."""
    try:
        return from_json(text.encode("utf-8", errors="replace"), kind)
    except msgspec.MsgspecError:
        pass
    try:
        found = read_json(text)
        if found.is_cut:
            raise UnreadableError("it was cut off before its end")
        return msgspec.convert(found.fields, kind)
    except (UnreadableError, msgspec.ValidationError) as problem:
        raise ModelError(f"the model's answer is not what was asked for: {problem}") from problem


def quoted(text: str) -> str:
    """Somebody's words as one JSON string on one line, so that they cannot pass for the prompt's own."""
    return msgspec.json.encode(text[:500]).decode()
