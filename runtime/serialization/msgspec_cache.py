"""Decoders of typed JSON and MessagePack that several threads may ask for.

msgspec (0.22) learns what a Struct type holds when it is first used, and the process dies where two threads do that
with the same type at once. Here one thread does it at a time, and all of it before anything is decoded.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

learning = threading.Lock()
"""Held by whoever makes a decoder of a type that may not have been used before."""


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    with learning:
        return msgspec.json.Decoder(kind)


def from_json(data: bytes | str, kind: type[T]) -> T:
    """What this JSON says, as that type. Raises msgspec.MsgspecError where it does not fit."""
    try:
        found: T = _decoder(kind).decode(data)  # type: ignore[arg-type]  # classes are hashable
    except UnicodeDecodeError as problem:
        raise msgspec.DecodeError(f"JSON is malformed: text that is no UTF-8 (byte {problem.start})") from problem
    except RecursionError as problem:
        raise msgspec.DecodeError("JSON is malformed: nested too deeply") from problem
    return found
