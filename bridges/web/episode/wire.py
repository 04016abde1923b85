"""What the page of an episode says: who is there, and one act for one question."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from bridges.web.http.wire import FrameSeen, FromBrowser, PageHello, Short, WatchCameras

ActKind = Literal["speak", "non-verbal communication", "action", "none", "leave"]
Words = Annotated[str, msgspec.Meta(max_length=2000)]


class Play(FromBrowser, frozen=True, tag="act"):
    """What the person does, as the answer to question number `ask`; with `to`, only they perceive it."""

    ask: int
    kind: ActKind
    text: Words = ""
    to: Annotated[tuple[Short, ...], msgspec.Meta(max_length=16)] = ()


Incoming = PageHello | FrameSeen | WatchCameras | Play

_decoder: msgspec.json.Decoder[Incoming] = msgspec.json.Decoder(Incoming)


def decode(text: str | bytes) -> Incoming:
    """The message in this text. Raises ValueError (msgspec's) in words where it is none."""
    return _decoder.decode(text)
