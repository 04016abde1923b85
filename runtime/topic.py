"""Topic names: lower-case words of letters, digits and underscores, joined by slashes."""

import re
from functools import cache

from runtime.errors import GraphError

_WORD = re.compile(r"[a-z][a-z0-9_]*")
MAX_LENGTH = 120


@cache
def check_topic(name: str) -> str:
    """Return the name. Raises GraphError where it is no topic name."""
    if len(name) > MAX_LENGTH or not all(_WORD.fullmatch(word) for word in name.split("/")):
        raise GraphError(
            f"topic {name[:MAX_LENGTH]!r} is no topic name; "
            "expected words of a-z, 0-9 and _ joined by '/', like 'head/image'"
        )
    return name
