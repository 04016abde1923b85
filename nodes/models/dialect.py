"""`Dialect`: how much of OpenAI's chat completions a server knows; a refusal says what to ask it for next.

Servers refuse what they do not know with 400 or 422. Two things are asked for otherwise: the limit of the answer's
length, which older servers know as `max_tokens` only, and structured output, down to none at all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Format = Literal["json_schema", "json_object", "text"]
Limit = Literal["max_completion_tokens", "max_tokens"]

_WEAKER: dict[Format, Format] = {"json_schema": "json_object", "json_object": "text"}
_OTHER: dict[Limit, Limit] = {"max_completion_tokens": "max_tokens", "max_tokens": "max_completion_tokens"}


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a server is asked; the one that was answered is worth remembering."""

    format: Format = "json_schema"
    limit: Limit = "max_completion_tokens"
    first_limit: Limit | None = None
    """The name under which this very question was refused, once the other one is tried."""

    def after(self, refusal: str) -> Dialect | None:
        """How to ask after these words of the server; None where nothing is left to try.

        Only a refusal that names the limit is about its name. Refused under both, it is about the number, and the
        first name is taken again.
        """
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
