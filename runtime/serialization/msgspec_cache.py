"""Decoders of typed JSON and MessagePack that several threads may ask for.

msgspec (0.22) learns what a Struct type holds when it is first used, and the process dies where two threads do that
with the same type at once. Here one thread does it at a time, and all of it before anything is decoded.
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

learning = threading.Lock()
"""Held by whoever makes a decoder of a type that may not have been used before."""


_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def from_json(data: bytes | str, kind: type[T]) -> T:
    """What this JSON says, as that type. Raises msgspec.MsgspecError where it does not fit."""
    decoder = _decoders.get(kind)
    if decoder is None:
        with learning:
            decoder = _decoders[kind] = msgspec.json.Decoder(kind)
    found: T = decoder.decode(data)
    return found
