"""Messages to frames and back: MessagePack for the structure, numpy arrays as raw buffers beside it. Never pickle.

A message on the wire is a list of frames: the topic, one MessagePack document `[fingerprint, envelope, payload]`, and
then one frame for each array. Arrays come back read-only, without a copy.
"""

from __future__ import annotations

import hashlib
import re
import sys
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any, Generic, cast, get_args

import msgspec

from runtime.errors import CodecError
from runtime.message import Envelope, M, Message, Stamped
from runtime.typed import learning

Frame = bytes | bytearray | memoryview

MAX_DOCUMENT_BYTES = 4 << 20
MAX_ARRAY_BYTES = 64 << 20
MAX_ARRAYS = 64

_DTYPE = re.compile(r"[<>|][biufc][0-9]{1,2}")
"""Numbers only; other names make numpy parse, warn and evaluate."""


class _Document(msgspec.Struct, array_like=True):
    fingerprint: str
    envelope: Envelope
    payload: msgspec.Raw


class _Whole(msgspec.Struct, Generic[M], array_like=True):
    """The document of a message of known type, read in one go."""

    fingerprint: str
    envelope: Envelope
    payload: M


class _Buffers(threading.local):
    """The arrays of the message that this thread decodes or encodes now."""

    read: Sequence[Frame] = ()

    def __init__(self) -> None:
        self.written: list[Frame] = []


_buffers = _Buffers()


def _write_array(value: object) -> object:
    """An array in a message: remember its buffer and leave its place, type and shape in the document."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.ndarray):
        raise CodecError(f"a message holds a {type(value).__name__}; expected plain values, messages or numpy arrays")
    array = cast(Any, value)
    dtype_name = array.dtype.str
    try:
        _dtype(dtype_name)
    except ValueError as problem:
        raise CodecError(f"a message holds an array of {array.dtype}; expected numbers") from problem
    buffers = _buffers.written
    buffers.append(memoryview(numpy.ascontiguousarray(array)).cast("B") if array.size else b"")
    return (len(buffers) - 1, dtype_name, array.shape)


@cache
def _dtype(name: str) -> Any:
    """The numbers of that name. Raises ValueError or TypeError where it names none."""
    import numpy as np

    if not _DTYPE.fullmatch(name):
        raise ValueError(f"{name!r} is no type of numbers")
    return np.dtype(name)


def _read_array(declared: Any, value: object) -> object:
    """The array of a place in the document, checked against the type that the message declares."""
    import numpy as np

    buffers = _buffers.read
    try:
        index, dtype_name, shape = cast(Any, value)
        if not 0 <= index < len(buffers):
            raise ValueError("no such buffer")
        buffer = buffers[index]
        array = np.ndarray(shape, _dtype(dtype_name), buffer)  # raises where the buffer is too short
        if array.nbytes != len(buffer) or array.shape != tuple(shape):
            raise ValueError(f"{len(buffer)} bytes for {shape}")
    except (TypeError, ValueError, IndexError, KeyError, OverflowError) as problem:
        raise CodecError(f"an array does not fit its buffer: {problem}") from problem
    wanted = _declared_dtype(declared)
    if wanted is not None and array.dtype != wanted:
        raise CodecError(f"an array holds {array.dtype}; expected {wanted}")
    array.setflags(write=False)
    return array


@cache
def _declared_dtype(declared: Any) -> Any:
    import numpy as np

    for argument in get_args(declared):
        for scalar in get_args(argument):
            if isinstance(scalar, type) and issubclass(scalar, np.generic):
                return np.dtype(scalar)
    return None


_encode = msgspec.msgpack.Encoder(enc_hook=_write_array).encode
_document_decoder = msgspec.msgpack.Decoder(_Document)


@cache
def fingerprint(message: type[Message]) -> str:
    """Eight characters that change when a message type's name, fields or their types do, or those of its parts."""
    return hashlib.sha256(repr(_shape(message)).encode()).hexdigest()[:8]


def _shape(message: type[Message]) -> tuple[object, ...]:
    fields = msgspec.structs.fields(cast(Any, message))
    parts = sorted({part for field in fields for part in _parts(field.type)}, key=lambda part: part.__name__)
    own = ((field.name, str(field.type), field.required) for field in fields)
    return (message.__name__, *own, *(_shape(part) for part in parts if part is not message))


def _parts(declared: Any) -> list[type[Message]]:
    """The message types inside a field's type."""
    if isinstance(declared, type) and issubclass(declared, Message):
        return [declared]
    return [part for argument in get_args(declared) for part in _parts(argument)]


def encode(envelope: Envelope, message: Message) -> list[Frame]:
    """The frames of one message. Raises CodecError where a field holds something that has no wire form."""
    document, arrays = encode_parts(envelope, message)
    return [envelope.topic.encode(), document, *arrays]


def encode_parts(envelope: Envelope, message: Message) -> tuple[bytes, Sequence[Frame]]:
    """The document and the arrays of one message; raises as `encode` does."""
    try:
        document = _encode((fingerprint(type(message)), envelope, message))
    except BaseException as problem:
        _buffers.written = []  # or what it wrote before it failed would go with the next message
        if isinstance(problem, (msgspec.MsgspecError, OverflowError, TypeError, UnicodeError, RecursionError)):
            raise CodecError(f"{type(message).__name__} cannot be encoded: {problem}") from problem
        raise
    arrays = _buffers.written
    if not arrays:
        return document, ()
    _buffers.written = []  # or this thread would keep them until its next message
    return document, arrays


def decode_envelope(document: Frame) -> Envelope:
    """The envelope alone, whatever the message. Raises CodecError where the frame is no document."""
    try:
        return _document_decoder.decode(document).envelope
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as problem:
        raise CodecError(f"not a message: {problem}") from problem


class TypeDecoder(Generic[M]):
    """Decodes the messages of one type."""

    def __init__(self, message: type[M]) -> None:
        self._message = message
        self._fingerprint = fingerprint(message)
        self._read = msgspec.msgpack.Decoder(_Whole[message], dec_hook=_read_array).decode  # type: ignore[valid-type]

    def decode(self, topic: str, document: Frame, arrays: Sequence[Frame] = ()) -> Stamped[M]:
        """The message of a topic. Raises CodecError, and nothing else, where these are not one of this type."""
        if len(document) > MAX_DOCUMENT_BYTES:
            raise CodecError("a frame is larger than a message may be")
        if arrays:
            return self._decode_with(arrays, topic, document)
        try:
            whole = self._read(document)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as problem:
            raise self._reason(document, problem) from problem
        envelope = whole.envelope
        if whole.fingerprint != self._fingerprint:
            raise self._other_version(envelope)
        if envelope.topic != topic:
            raise CodecError("the envelope names another topic than the frame")
        return Stamped(whole.payload, envelope)

    def _decode_with(self, arrays: Sequence[Frame], topic: str, document: Frame) -> Stamped[M]:
        if len(arrays) > MAX_ARRAYS:
            raise CodecError(f"a message of {len(arrays)} arrays; expected at most {MAX_ARRAYS}")
        if max(map(len, arrays)) > MAX_ARRAY_BYTES:
            raise CodecError("a frame is larger than a message may be")
        _buffers.read = arrays
        try:
            return self.decode(topic, document)
        finally:
            _buffers.read = ()

    def _reason(self, document: Frame, problem: Exception) -> CodecError:
        """Why this cannot be read; another version of the type is the better reason, where it is the reason."""
        if isinstance(problem, msgspec.ValidationError):
            try:
                other = _document_decoder.decode(document)
            except (msgspec.MsgspecError, UnicodeError, RecursionError):
                pass  # no document at all
            else:
                if other.fingerprint != self._fingerprint:
                    return self._other_version(other.envelope)
        return CodecError(f"not a {self._message.__name__}: {problem}")

    def _other_version(self, envelope: Envelope) -> CodecError:
        return CodecError(
            f"{envelope.topic} from {envelope.source} was sent as another version of "
            f"{self._message.__name__}; run both ends from the same release"
        )


@cache
def decoder_of(message: type[M]) -> TypeDecoder[M]:
    """The decoder of a type; made once."""
    with learning:
        return TypeDecoder(message)


def decode(frames: Sequence[Frame], message: type[M]) -> Stamped[M]:
    """The message of some frames. Raises CodecError, and nothing else, where they are not one of this type."""
    if not 2 <= len(frames) <= 2 + MAX_ARRAYS:
        raise CodecError(f"{len(frames)} frames; expected a topic, a document and at most {MAX_ARRAYS} arrays")
    topic, document, *arrays = frames
    return decoder_of(message).decode(bytes(topic).decode(errors="replace"), document, arrays)
