"""`Dialect`: how much of OpenAI's chat completions a server knows; a refusal says what to ask it for next.

Asked for otherwise are: the limit of the answer's length, which older servers know as `max_tokens` only, and some do
not refuse but ignore under its newer name; structured output, else a tool call, down to none at all; a temperature,
which reasoning models refuse; a system message, which some templates refuse; and the tokens of a stream.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

Format = Literal["json_schema", "tools", "json_object", "text"]
Limit = Literal["both", "max_completion_tokens", "max_tokens"]

LEAST_PART = 8
"""An answer may be asked for that is so many times shorter than it is wanted; no shorter one is worth having."""

_WEAKER: dict[Format, Format] = {"json_schema": "tools", "tools": "json_object", "json_object": "text"}
_FORMAT_KEYS = ("response_format", "tools")
_SYSTEM = re.compile(
    r"system role|system (?:message|prompt|instruction)|got system|'system'|developer instruction|roles must alternate"
    r"|only user(?:,| and) assistant|\brole\b.{0,40}\bsystem\b"
)


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a server is asked; the one that was answered is worth remembering."""

    format: Format = "json_schema"
    limit: Limit = "both"
    refused_limits: tuple[Limit, ...] = ()
    """The names under which this very question was refused."""
    has_temperature: bool = True
    has_system: bool = True
    tells_usage: bool = True  # of a stream
    most_tokens: int = 0  # that this very answer may have; 0: as many as are wanted

    @classmethod
    def of(cls, where: str) -> Dialect:
        """With which a server there is asked first: OpenAI's own takes one name of the limit alone."""
        host = where.partition(":")[0]
        is_known = host.endswith((".openai.com", ".azure.com"))
        return cls(limit="max_completion_tokens" if is_known else "both")

    def after(self, refusal: str, sent: Collection[str]) -> Dialect | None:
        """How to ask after these words of the server about the fields that were sent; None where nothing is left.

        Only a refusal that names the limit is about its name. Refused under all of them, it is about the number, and
        the first name is taken again.
        """
        words = refusal.lower()
        if self.has_temperature and "temperature" in sent and "temperature" in words:
            return replace(self, has_temperature=False)
        if self.has_system and "system" in sent and _SYSTEM.search(words):
            return replace(self, has_system=False)
        if self.tells_usage and "stream_options" in sent and "stream_options" in words:
            return replace(self, tells_usage=False)
        refused = (*self.refused_limits, self.limit)
        names_limit = any(name in words for name in _names(self.limit))
        if names_limit and (other := _other(words, refused)):
            return replace(self, limit=other, refused_limits=refused)
        weaker = _WEAKER.get(self.format)
        if weaker is not None and any(key in sent for key in _FORMAT_KEYS):
            again = replace(self, limit=refused[0], refused_limits=refused) if names_limit else self
            return replace(again, format=weaker)
        if self.tells_usage and "stream_options" in sent:
            return replace(self, tells_usage=False)  # an older server; what it says costs is estimated
        return None

    def with_room(self, room: int, wanted: int) -> Dialect | None:
        """How to ask for a shorter answer, where so many tokens are left for it (0: unknown) of those wanted."""
        asked = self.most_tokens or wanted
        most = min(room or asked // 2, asked // 2)
        return replace(self, most_tokens=most) if most * LEAST_PART >= wanted else None

    @property
    def remembered(self) -> Dialect:
        """With which the next question begins."""
        return replace(self, refused_limits=(), most_tokens=0)

    def left_out(self, temperature: float | None, *, has_schema: bool) -> tuple[str, ...]:
        """What is not asked for although somebody wants it."""
        lacks = [f"temperature {temperature:g}"] if temperature is not None and not self.has_temperature else []
        return (*lacks, "the form of the answer (its schema)") if has_schema and self.format == "text" else (*lacks,)


def _names(limit: Limit) -> tuple[str, ...]:
    return ("max_completion_tokens", "max_tokens") if limit == "both" else (limit,)


def _other(words: str, refused: Collection[Limit]) -> Limit | None:
    """The name of the limit to try next: one that these words do not name, else the newer one."""
    alone: tuple[Limit, ...] = ("max_completion_tokens", "max_tokens")
    left = [name for name in alone if name not in refused]
    return next((name for name in left if name not in words), left[0] if left else None)
