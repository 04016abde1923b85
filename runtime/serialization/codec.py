"""Messages to frames and back: MessagePack for the structure, numpy arrays as raw buffers beside it. Never pickle.

A message on the wire is a list of frames: the topic, one MessagePack document `[fingerprint, envelope, payload]`, and
then one frame for each array. Arrays come back read-only, without a copy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property
from typing import Annotated, Any, Generic, get_args

import msgspec

from runtime.errors import CodecError
from runtime.message import Envelope, M, Message, Stamped, fields_of
from runtime.serialization.arrays import Frame as Frame
from runtime.serialization.arrays import buffers, read_array, write_array
from runtime.serialization.msgspec_cache import learning

MAX_DOCUMENT_BYTES = 4 << 20
MAX_ARRAY_BYTES = 64 << 20
MAX_ARRAYS = 64
MAX_BUNDLE = 32
"""Most messages in one document."""
BUNDLE_BYTES = 8 << 10
"""A longer bundle is sent in parts, bytes: a full queue must stay small, and an interrupt waits behind one bundle."""


class _Document(msgspec.Struct, array_like=True):
    fingerprint: str
    envelope: Envelope
    payload: msgspec.Raw


class _Whole(msgspec.Struct, Generic[M], array_like=True):
    """The document of a message of known type, read in one go."""

    fingerprint: str
    envelope: Envelope
    payload: M


class _Bundle(msgspec.Struct, Generic[M], array_like=True):
    """The document of several messages of one type, without arrays; the envelope is that of the first."""

    fingerprint: str
    envelope: Envelope
    payloads: Annotated[list[M], msgspec.Meta(min_length=1, max_length=MAX_BUNDLE)]


class _AnyBundle(msgspec.Struct, array_like=True):
    fingerprint: str
    envelope: Envelope
    payloads: Annotated[list[msgspec.Raw], msgspec.Meta(min_length=1, max_length=MAX_BUNDLE)]


def document_encoder(hook: Callable[[Any], object]) -> Callable[[object], bytes]:
    """Encodes (fingerprint, envelope, message) as a document; `hook` writes arrays."""
    return msgspec.msgpack.Encoder(enc_hook=hook).encode


def document_writer(hook: Callable[[Any], object]) -> Callable[[object, bytearray, int], None]:
    """Writes the same from a place of a buffer on, which ends with it then; a third faster."""
    return msgspec.msgpack.Encoder(enc_hook=hook).encode_into


_encode = msgspec.msgpack.Encoder(enc_hook=write_array).encode
_document_decoder = msgspec.msgpack.Decoder(_Document)
_any_bundle_decoder = msgspec.msgpack.Decoder(_AnyBundle)


@cache
def fingerprint(message: type[Message]) -> str:
    """Eight characters that change with a message type's name, its fields, or their types, and those of its parts."""
    return hashlib.sha256(repr(_shape(message)).encode()).hexdigest()[:8]


def _shape(message: type[Message]) -> tuple[object, ...]:
    fields = fields_of(message)
    parts = sorted({part for field in fields for part in _parts(field.type)}, key=lambda part: part.__name__)
    own = ((field.name, str(field.type), field.required) for field in fields)
    return (message.__name__, *own, *(_shape(part) for part in parts if part is not message))


def _parts(declared: Any) -> list[type[Message]]:
    """The message types inside a field's type."""
    if isinstance(declared, type) and issubclass(declared, Message):
        return [declared]
    return [part for argument in get_args(declared) for part in _parts(argument)]


@cache
def holds_arrays(message: type[Message]) -> bool:
    """Whether the message, or a message inside it, has arrays."""
    return "numpy.ndarray" in repr(_shape(message))


def encode(envelope: Envelope, message: Message) -> list[Frame]:
    """The frames of one message. Raises CodecError where a field has no form on the wire."""
    document, arrays = encode_parts(envelope, message)
    return [envelope.topic.encode(), document, *arrays]


def encode_parts(envelope: Envelope, message: Message) -> tuple[bytes, Sequence[Frame]]:
    """The document and the arrays of one message. Raises CodecError as `encode` does."""
    document = _write(envelope, type(message), message)
    arrays = buffers.written
    if not arrays:
        return document, ()
    buffers.written = []  # or this thread would keep them until its next message
    return document, arrays


def encode_bundles(envelope: Envelope, messages: Sequence[Message]) -> Iterator[bytes]:
    """Documents of messages of one type without arrays; `envelope` is that of the first.

    Each holds at most MAX_BUNDLE messages, and a single one where two are longer than BUNDLE_BYTES. Raises CodecError
    as `encode` does, and where a message has an array after all.
    """
    begin, most = 0, MAX_BUNDLE
    while begin < len(messages):
        part = messages[begin : begin + most]
        document = _write(envelope.later(begin), type(part[0]), part)
        if buffers.written:
            buffers.written = []
            raise CodecError(f"{type(part[0]).__name__} holds arrays; it cannot travel together with others")
        if len(document) > BUNDLE_BYTES and len(part) > 1:
            most = max(1, len(part) * BUNDLE_BYTES // len(document))
            continue
        yield document
        begin += len(part)
        most = min(2 * most, MAX_BUNDLE)


def split_bundle(document: Frame) -> list[bytes]:
    """One document for each message of a bundle, whatever its type. Raises CodecError where it is no bundle."""
    try:
        bundle = _any_bundle_decoder.decode(document)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as problem:
        raise CodecError(f"not a bundle: {problem}") from problem
    return [
        _encode((bundle.fingerprint, bundle.envelope.later(number), payload))
        for number, payload in enumerate(bundle.payloads)
    ]


def _write(envelope: Envelope, message: type[Message], payload: object) -> bytes:
    try:
        return _encode((fingerprint(message), envelope, payload))
    except BaseException as problem:
        buffers.written = []  # or what it wrote before it failed would go with the next message
        if isinstance(problem, (msgspec.MsgspecError, OverflowError, TypeError, UnicodeError, RecursionError)):
            raise CodecError(f"{message.__name__} cannot be encoded: {problem}") from problem
        raise


def as_read(value: object, read: Callable[[bytes], M]) -> M:
    """A value as a receiver with this decoder reads it; its arrays are not copied.

    Raises CodecError, and what msgspec raises, where it has no form on the wire or another type than is read.
    """
    try:
        document = _encode(value)
        buffers.read = buffers.written
        return read(document)
    finally:
        buffers.written, buffers.read = [], ()


def decode_envelope(document: Frame) -> Envelope:
    """The envelope alone, for any message type. Raises CodecError where the frame is no document."""
    try:
        return _document_decoder.decode(document).envelope
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as problem:
        raise CodecError(f"not a message: {problem}") from problem


class TypeDecoder(Generic[M]):
    """Decodes the messages of one type."""

    def __init__(self, message: type[M]) -> None:
        self._message = message
        self.fingerprint = fingerprint(message)
        self.read = msgspec.msgpack.Decoder(_Whole[message], dec_hook=read_array).decode  # type: ignore[valid-type]
        self.read_payload = msgspec.msgpack.Decoder(message, dec_hook=read_array).decode

    def decode(self, topic: str, document: Frame, arrays: Sequence[Frame] = ()) -> Stamped[M]:
        """The message on a topic. Raises CodecError, and nothing else, where the frames are none of this type."""
        if len(document) > MAX_DOCUMENT_BYTES:
            raise CodecError("a frame is larger than a message may be")
        if arrays:
            return self._decode_with(arrays, topic, document)
        try:
            whole = self.read(document)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as problem:
            raise self._reason(document, problem) from problem
        envelope = whole.envelope
        if whole.fingerprint != self.fingerprint or envelope.topic != topic:
            raise self._mismatch(whole.fingerprint, envelope)
        return Stamped(whole.payload, envelope)

    def decode_bundle(self, topic: str, document: Frame) -> list[Stamped[M]]:
        """The messages of a bundle, in order. Raises CodecError as `decode` does; then none of them counts."""
        if len(document) > MAX_DOCUMENT_BYTES:
            raise CodecError("a frame is larger than a message may be")
        try:
            bundle = self._read_bundle(document)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as problem:
            raise self._reason(document, problem) from problem
        envelope = bundle.envelope
        if bundle.fingerprint != self.fingerprint or envelope.topic != topic:
            raise self._mismatch(bundle.fingerprint, envelope)
        return [Stamped(message, envelope.later(number)) for number, message in enumerate(bundle.payloads)]

    def _decode_with(self, arrays: Sequence[Frame], topic: str, document: Frame) -> Stamped[M]:
        if len(arrays) > MAX_ARRAYS:
            raise CodecError(f"a message of {len(arrays)} arrays; expected at most {MAX_ARRAYS}")
        if max(map(len, arrays)) > MAX_ARRAY_BYTES:
            raise CodecError("a frame is larger than a message may be")
        buffers.read = arrays
        try:
            return self.decode(topic, document)
        finally:
            buffers.read = ()

    @cached_property
    def _read_bundle(self) -> Callable[[Frame], _Bundle[M]]:
        """Made with the first bundle: few topics ever have one, and it takes a millisecond."""
        with learning:
            return msgspec.msgpack.Decoder(_Bundle[self._message], dec_hook=read_array).decode  # type: ignore[name-defined]

    def _mismatch(self, fingerprint: str, envelope: Envelope) -> CodecError:
        if fingerprint != self.fingerprint:
            return self._other_version(envelope)
        return CodecError("the envelope names another topic than the frame")

    def _reason(self, document: Frame, problem: Exception) -> CodecError:
        """Why this cannot be read; another version of the type is the better reason, where it is the reason."""
        if isinstance(problem, msgspec.ValidationError):
            try:
                other = _document_decoder.decode(document)
            except (msgspec.MsgspecError, UnicodeError, RecursionError):
                pass  # no document at all
            else:
                if other.fingerprint != self.fingerprint:
                    return self._other_version(other.envelope)
                field = str(problem).partition(" - at `$[2].")[2].rstrip("`") or str(problem).partition(" - at `")[2]
                what = str(problem).partition(" - at `")[0]
                return CodecError(
                    f"{other.envelope.source} sent a {self._message.__name__} whose field {field!r} is wrong: {what}"
                )
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


def one_array_reader(message: type[M]) -> tuple[list[Any], Callable[[Frame], _Whole[M]], Callable[[Frame], M]]:
    """Reads the document of a message with one array, whose buffer is put into the list first; and its payload alone.

    For one thread. An array with the same field, shape and type as the last one is made in two steps. Raises what
    msgspec raises.
    """
    held: list[Any] = [None]
    known: list[Any] = [None, None, None, -1]  # of the array before: field, description, type, bytes

    def hook(declared: Any, value: Any) -> object:
        buffer, held[0] = held[0], None
        if buffer is None:
            raise CodecError("an array does not fit its buffer: there is one only")
        if declared is known[0] and value == known[1] and len(buffer) == known[3]:
            return known[4](value[2], known[2], buffer)
        buffers.read = (buffer,)
        try:
            array: Any = read_array(declared, value)
        finally:
            buffers.read = ()
        known[:] = declared, value, array.dtype, array.nbytes, type(array)
        return array

    if not holds_arrays(message):
        return held, decoder_of(message).read, decoder_of(message).read_payload
    with learning:
        read: Callable[[Frame], _Whole[M]] = msgspec.msgpack.Decoder(_Whole[message], dec_hook=hook).decode  # type: ignore[valid-type]
        return held, read, msgspec.msgpack.Decoder(message, dec_hook=hook).decode


def decode(frames: Sequence[Frame], message: type[M]) -> Stamped[M]:
    """The message in these frames. Raises CodecError, and nothing else, where they hold no message of this type."""
    if not 2 <= len(frames) <= 2 + MAX_ARRAYS:
        raise CodecError(f"{len(frames)} frames; expected a topic, a document and at most {MAX_ARRAYS} arrays")
    topic, document, *arrays = frames
    return decoder_of(message).decode(bytes(topic).decode(errors="replace"), document, arrays)
