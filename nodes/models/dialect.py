"""`Dialect`: how much of OpenAI's chat completions a server knows; a refusal says what to ask it for next.

Servers refuse what they do not know with 400 or 422. Asked for otherwise are: the limit of the answer's length, which
older servers know as `max_tokens` only; structured output, else a tool call, down to none at all; a temperature, which
reasoning models refuse; a system message, which some templates refuse; and the tokens of a stream.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Format = Literal["json_schema", "tools", "json_object", "text"]
Limit = Literal["max_completion_tokens", "max_tokens"]

_WEAKER: dict[Format, Format] = {"json_schema": "tools", "tools": "json_object", "json_object": "text"}
_OTHER: dict[Limit, Limit] = {"max_completion_tokens": "max_tokens", "max_tokens": "max_completion_tokens"}


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a server is asked; the one that was answered is worth remembering."""

    format: Format = "json_schema"
    limit: Limit = "max_completion_tokens"
    first_limit: Limit | None = None
    """The name under which this very question was refused, once the other one is tried."""
    has_temperature: bool = True
    has_system: bool = True
    tells_usage: bool = True  # of a stream

    def after(self, refusal: str) -> Dialect | None:
        """How to ask after these words of the server; None where nothing is left to try.

        Only a refusal that names the limit is about its name. Refused under both, it is about the number, and the
        first name is taken again.
        """
        words = refusal.lower()
        if self.has_temperature and "temperature" in words:
            return replace(self, has_temperature=False)
        if self.has_system and "system role" in words:
            return replace(self, has_system=False)
        if self.tells_usage and "stream_options" in words:
            return replace(self, tells_usage=False)
        names_limit = self.limit in refusal
        if names_limit and self.first_limit is None:
            return replace(self, limit=_OTHER[self.limit], first_limit=self.limit)
        weaker = _WEAKER.get(self.format)
        if weaker is None:
            return None
        return replace(self, format=weaker, limit=self.first_limit if names_limit and self.first_limit else self.limit)

    @property
    def remembered(self) -> Dialect:
        """With which the next question begins."""
        return replace(self, first_limit=None)
