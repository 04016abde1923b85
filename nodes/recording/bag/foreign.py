"""Messages of others' recordings as documents: JSON, ROS 1 and 2 by `rosbags`, protobuf by MCAP's own support."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from nodes.mcap.record import BagMessage
from nodes.mcap.schema import Document
from runtime.errors import CodecError, RecordingError

KNOWN_TYPES = 1000


def document_of(message: BagMessage) -> Document:
    """The message as plain values. Raises RecordingError where nobody here can read it."""
    if message.is_ours:
        return message.document
    try:
        decode = _decoder(message.encoding, message.schema_encoding, message.schema, message.schema_data)
        found = decode(message.data)
        return found if isinstance(found, dict) else {"value": found}
    except (CodecError, RecursionError, ValueError, TypeError, KeyError) as problem:
        raise RecordingError(f"topic {message.topic!r}: {problem}") from problem


@lru_cache(KNOWN_TYPES)
def _decoder(encoding: str, schema_encoding: str, name: str, definition: bytes) -> Callable[[bytes], Any]:
    if encoding == "json":
        return json.loads  # which takes NaN, as many write it
    if (encoding, schema_encoding) == ("protobuf", "protobuf"):
        return _of_protobuf(name, definition)
    if encoding in ("cdr", "ros1") and schema_encoding in ("ros1msg", "ros2msg", "ros2idl"):
        from nodes.recording.ros2_messages import described_type, to_document

        read = described_type(name, definition.decode(), schema_encoding)
        return lambda data: to_document(read(data))
    raise RecordingError(f"messages in {encoding or 'no encoding'!r} ({schema_encoding or 'no schema'}) are not read")


def _of_protobuf(name: str, definition: bytes) -> Callable[[bytes], Any]:
    from google.protobuf.json_format import MessageToDict
    from google.protobuf.message import DecodeError
    from mcap_protobuf.decoder import DecoderFactory

    try:
        schema: Any = SimpleNamespace(id=1, name=name, encoding="protobuf", data=definition)
        decode: Any = DecoderFactory().decoder_for("protobuf", schema)
    except Exception as problem:
        raise RecordingError(f"its schema {name!r} cannot be read ({problem})") from problem

    def read(data: bytes) -> Any:
        try:
            return MessageToDict(
                decode(data), preserving_proto_field_name=True, always_print_fields_with_no_presence=True
            )
        except DecodeError as problem:
            raise CodecError(f"no {name} ({problem})") from problem

    return read
