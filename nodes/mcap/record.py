"""`BagMessage`: one message of a recording; its parts are decoded on request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec

from nodes.mcap.schema import ENVELOPE_KEY, Document, decode_message, envelope_of
from runtime.errors import RecordingError
from runtime.message import Envelope, M
from runtime.serialization.msgspec_cache import from_json


class _Head(msgspec.Struct):
    """The part of a recorded message that is read without reading all of it."""

    envelope: dict[str, Any] = msgspec.field(name=ENVELOPE_KEY)


@dataclass(frozen=True)
class BagMessage:
    """One message of a recording; its parts are decoded on request."""

    topic: str
    schema: str  # name of the message type, or "foxglove.CompressedImage"
    log_time_ns: int
    data: bytes
    type_name: str = ""  # the message type as "module:Class"
    schema_data: bytes = b""
    sequence: int = 0
    encoding: str = "json"
    schema_encoding: str = "jsonschema"
    channel_metadata: Mapping[str, str] = field(default_factory=dict)
    publish_time_ns: int | None = None
    wall_offset_ns: int = 0  # of its recording

    @property
    def is_ours(self) -> bool:
        """Whether it is as a recorder of ours writes it: JSON with its envelope."""
        key = ENVELOPE_KEY.encode()
        return self.encoding == "json" and (bool(self.type_name) or key in self.schema_data or key in self.data)

    @cached_property
    def envelope(self) -> Envelope:
        """Where the message came from, and when; of others' messages, what MCAP says of them.

        Raises RecordingError where it has none and should.
        """
        if not self.is_ours:
            return Envelope(self.topic, "", self.sequence, self.log_time_ns - self.wall_offset_ns)
        try:
            return envelope_of(from_json(self.data, _Head).envelope)
        except (msgspec.MsgspecError, KeyError, RecursionError) as error:
            raise RecordingError(f"topic {self.topic!r}: a message has no readable envelope ({error})") from error

    @cached_property
    def document(self) -> Document:
        """The message as a dictionary, without its envelope. Raises RecordingError where it is no JSON object."""
        if self.encoding != "json":
            raise RecordingError(f"topic {self.topic!r}: a message is encoded as {self.encoding!r}, not as JSON")
        try:
            document: Document = msgspec.json.decode(self.data, type=dict[str, Any])
        except (msgspec.MsgspecError, RecursionError) as error:
            raise RecordingError(f"topic {self.topic!r}: a message is no JSON object ({error})") from error
        document.pop(ENVELOPE_KEY, None)
        return document

    def message(self, expected: type[M]) -> M:
        """The message as this type. Raises RecordingError where it does not fit."""
        try:
            return decode_message(self.document, expected)
        except (msgspec.MsgspecError, ValueError, KeyError, RecursionError) as error:
            raise RecordingError(
                f"topic {self.topic!r}: a {self.schema} is no {expected.__name__} ({error})"
            ) from error
