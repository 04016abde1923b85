"""Frames that are no commands, on the very socket on which the policy's process publishes its commands."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from nodes.msgs import JointCommand
from nodes.stretch.limits import STOW
from runtime.message import Envelope
from runtime.serialization.codec import Frame, encode
from runtime.supervision.registry import FoundRun
from runtime.transport.taps import Injector
from runtime.transport.zeromq import MAX_MESSAGE_BYTES, PASSING, PublisherSockets, pack, send

TOPIC = "command"
HEAD = TOPIC.encode() + PASSING
STRANGER = "stranger"
"""Who the unharmed frame is from: nobody who holds a seat, so that a frame which survives its harm must not act."""


def garble(now_ns: int, random: Random) -> None:
    """Send a frame that was harmed in one of several ways."""
    envelope = Envelope(TOPIC, STRANGER, now_ns, now_ns)
    whole = bytes(pack(encode(envelope, JointCommand(position=STOW, base_v_mps=-0.3)))[0])
    _send([random.choice(HARMS)(whole, random)])


def send_bombs() -> None:
    """Documents that cost a careless reader much."""
    for document in BOMBS:
        _send([HEAD + b"\0" + document])


def send_oversized(run: FoundRun, process: str) -> None:
    """A frame that is larger than any may be, by a tool of its own, whose connection that ends for good."""
    injector = Injector(run.folder, "state", [process])
    try:
        injector.await_ready(5.0)
        send(injector._socket, [HEAD + b"\0" + bytes(MAX_MESSAGE_BYTES + 1)])
    finally:
        injector.close()


def flipped(frame: bytes, random: Random) -> bytes:
    """Some of its bits are wrong."""
    harmed = bytearray(frame)
    for _ in range(random.randint(1, 8)):
        harmed[random.randrange(len(HEAD), len(frame))] ^= 1 << random.randrange(8)
    return bytes(harmed)


def truncated(frame: bytes, random: Random) -> bytes:
    """Its end is missing."""
    return frame[: random.randrange(len(HEAD), len(frame))]


def noise(frame: bytes, random: Random) -> bytes:
    """Random bytes behind the topic."""
    return HEAD + random.randbytes(random.randrange(400))


def misnumbered(frame: bytes, random: Random) -> bytes:
    """It promises arrays that do not come."""
    return HEAD + bytes((random.randrange(1, 256),)) + frame[len(HEAD) + 1 :]


HARMS: Sequence[Callable[[bytes, Random], bytes]] = (flipped, truncated, noise, misnumbered)
BOMBS = (
    b"\x91" * 100_000,  # as deep as this
    b"\xdd\xff\xff\xff\xff",  # an array of four thousand million
    b"\xdd" + struct.pack(">I", 3_000_000) + b"\x90" * 3_000_000,  # so many empty arrays
    b"\x93\xa0\xc7\x08\x01" + bytes(16),  # an extension type
)


outlets: list[PublisherSockets] = []
"""Those of this process; this module is imported with its node, before the process opens any."""
_open = PublisherSockets.__init__


def _open_and_note(outlet: PublisherSockets, *arguments: Any, **named: Any) -> None:
    _open(outlet, *arguments, **named)
    outlets.append(outlet)


PublisherSockets.__init__ = _open_and_note  # type: ignore[assignment, method-assign]  # watched, not changed


def _send(frames: Sequence[Frame]) -> None:
    outlet = outlets[0]
    way = outlet.ways["state"]
    with way.lock:  # nobody but a saboteur sends past the codec
        send(way.socket, frames)
