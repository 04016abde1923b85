"""Decoders of typed JSON and MessagePack that several threads may request.

msgspec (0.22) examines a Struct type at its first use, and the process dies where two threads do that with one type at
once. Here one thread does it at a time, and all of it before anything is decoded.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

learning = threading.Lock()
"""Held while a decoder is made for a type that may not have been used before."""


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    with learning:
        return msgspec.json.Decoder(kind)


def from_json(data: bytes | str, kind: type[T]) -> T:
    """The value of this JSON as this type. Raises msgspec.MsgspecError where it does not fit."""
    try:
        found: T = _decoder(kind).decode(data)  # type: ignore[arg-type]  # classes are hashable
    except UnicodeDecodeError as problem:
        raise msgspec.DecodeError(f"JSON is malformed: text that is no UTF-8 (byte {problem.start})") from problem
    except RecursionError as problem:
        raise msgspec.DecodeError("JSON is malformed: nested too deeply") from problem
    return found
