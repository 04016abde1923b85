"""`Inputs`: recorded messages by name, as the typed values that the nodes saw. Bounded in memory."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from nodes.mcap.record import BagMessage
from nodes.mcap.schema import Document
from nodes.msgs import Image
from nodes.recording import images as recorded_image
from runtime.errors import RecordingError
from runtime.message import Message, Stamped

KEPT_BYTES = 256 * 1024 * 1024
"""Of recorded messages; what was not read for longest goes first."""
_KEPT_DECODED = 512

DEPTH = "/depth"


class Inputs:
    """Messages of a recording that calls may have read. `doubts` says what makes them differ from what was seen."""

    def __init__(self) -> None:
        self.doubts: dict[str, None] = {}
        self._messages: OrderedDict[str, BagMessage] = OrderedDict()
        self._newest: dict[str, int] = {}  # "topic:source" -> sequence
        self._depths: dict[str, BagMessage] = {}
        self._decoded: OrderedDict[str, Stamped[Any]] = OrderedDict()
        self._bytes = 0

    def add(self, message: BagMessage) -> None:
        """Remember a message. One without a readable envelope is passed over."""
        try:
            ident = message.envelope.ident
        except RecordingError:
            return
        if message.topic == message.envelope.topic + DEPTH:
            self._depths[ident] = message
        elif message.topic == message.envelope.topic:
            self._messages[ident] = message
            self._newest[ident.rpartition(":")[0]] = message.envelope.seq
        else:
            return  # the recorder's own view of a message: a transform, a log line
        self._bytes += len(message.data)
        while self._bytes > KEPT_BYTES and len(self._messages) > 1:
            oldest, gone = self._messages.popitem(last=False)
            depth = self._depths.pop(oldest, None)
            self._bytes -= len(gone.data) + (len(depth.data) if depth is not None else 0)

    def may_come(self, ident: str) -> bool:
        """Whether the message is still to be expected, after all that was added so far."""
        stream, _, seq = ident.rpartition(":")
        newest = self._newest.get(stream, 0)
        message = self._messages.get(ident)
        if message is not None:  # an image's depth comes behind it
            is_image = message.schema == recorded_image.SCHEMA_NAME
            return is_image and ident not in self._depths and message.envelope.seq == newest
        return seq.isdecimal() and int(seq) > newest

    def recorded(self, ident: str) -> BagMessage | None:
        """The message as it was recorded."""
        return self._messages.get(ident)

    def stamped(self, ident: str, expected: type[Message]) -> Stamped[Any]:
        """The message as a node saw it. Raises RecordingError where the recording does not hold it."""
        if ident in self._decoded:
            self._decoded.move_to_end(ident)
            return self._decoded[ident]
        message = self._messages.get(ident)
        if message is None:
            raise RecordingError(f"{ident} was read, but is not in the recording")
        self._messages.move_to_end(ident)
        if expected is Image:
            value: Message = self._image(ident, message)
        else:
            value = message.message(expected)
        stamped = self._decoded[ident] = Stamped(value, message.envelope)
        if len(self._decoded) > _KEPT_DECODED or (expected is Image and len(self._decoded) > 32):
            self._decoded.popitem(last=False)
        return stamped

    def picture(self, ident: str) -> Document | None:
        """What a recorded image shows, as a document of plain values; None where it was not kept losslessly."""
        message, depth = self._messages[ident], self._depths.get(ident)
        if message.document.get("format") != "png":
            return None
        image, is_exact = recorded_image.image_of(message.document, depth.document if depth is not None else None)
        return picture(image) if is_exact else None

    def _image(self, ident: str, message: BagMessage) -> Image:
        if message.document.get("format") != "png":
            self.doubts[f"{message.topic} was recorded as {message.document.get('format')}, not losslessly"] = None
        depth = self._depths.get(ident)
        image, is_exact = recorded_image.image_of(message.document, depth.document if depth is not None else None)
        if not is_exact:
            self.doubts[f"{message.topic} had depth, which was not recorded exactly"] = None
        return image


def picture(image: Image) -> Document:
    """An image as plain values; its pixels as a fingerprint, which says whether they differ and not where."""
    depth_m = image.depth_m
    return {
        "camera": image.camera,
        "captured_ns": image.captured_ns,
        "focal_px": image.focal_px,
        "rgb": _fingerprint(image.rgb),
        "depth_m": None if depth_m is None else _fingerprint(np.asarray(depth_m, np.float32)),
    }


def _fingerprint(array: NDArray[Any]) -> str:
    digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]
    return f"{' x '.join(map(str, array.shape))}, sha256 {digest}..."


def body(message: Message, recorded: Document) -> Document:
    """A message as its recorded document, without an envelope; its arrays are written as in that one."""
    from nodes.mcap.schema import ENVELOPE_KEY, encode_message, forms_in
    from runtime.message import Envelope

    forms = forms_in(recorded, type(message))
    document: Document = msgspec.json.decode(encode_message(message, Envelope("x", "x", 1, 0), forms))
    document.pop(ENVELOPE_KEY)
    return document
