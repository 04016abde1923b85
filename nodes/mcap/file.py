"""Recordings in MCAP: `BagWriter` stores every message with its envelope, `BagReader` returns them.

A chunk is closed and given to the operating system at least every `FLUSH_S`, by time and not by size. At a robot's
rates a chunk takes minutes to fill, and a killed process would lose all of it. The reader returns what is intact in a
file that was cut off or damaged, and says what it left out. Others' files are read too, where that is asked for.
"""

from __future__ import annotations

import errno
import os
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

import msgspec
import zstandard
from mcap.exceptions import EndOfFile, McapError, RecordLengthLimitExceeded
from mcap.opcode import Opcode
from mcap.records import (
    Attachment,
    AttachmentIndex,
    Channel,
    Chunk,
    Footer,
    Header,
    MessageIndex,
    Metadata,
    MetadataIndex,
    Schema,
    Statistics,
)
from mcap.records import Message as Record
from mcap.stream_reader import StreamReader, breakup_chunk
from mcap.writer import MCAP0_MAGIC, CompressionType, Writer

from nodes.mcap.record import BagMessage
from nodes.mcap.schema import ENVELOPE_KEY, Document, Form, array_forms, encode_message, message_schema
from runtime.clock import to_ns
from runtime.errors import RecordingError, writing
from runtime.message import Envelope, Stamped
from runtime.renamed import name_today

FLUSH_S = 0.5
CHUNK_BYTES = 256 * 1024
SCHEMA_VERSION = "1"
RECORD_LIMIT_BYTES = 256 * 1024 * 1024
"""A record or unpacked chunk that claims to be larger than this, bytes, counts as damage."""

LOST_TOPIC = "lost"
"""The topic of a message whose own topic went with a damaged chunk and is not in its envelope either."""

_SEARCH_BYTES = 1 << 20
_ENOUGH = 8  # chunks of a topic
_CHUNK_HEAD = struct.Struct("<BQQQQI")  # opcode, length, first and last log time, size unpacked, checksum
_CHUNK_MARKS = (b"\x04\0\0\0zstd", b"\x03\0\0\0lz4")  # what follows it
_RECORD_HEAD = struct.Struct("<BQ")  # opcode, length
_ZEROS = bytes(64)
_NOTHING = bytes(_SEARCH_BYTES)
_PIECE_BYTES = 4096
_PEEKED = 100
"""Messages that are looked at for one of ours where nothing else says whose a file is."""
_DAMAGE = (McapError, struct.error, ValueError, OverflowError, KeyError, zstandard.ZstdError)


class BagWriter:
    """Writes one recording; `wall_offset_ns` plus a monotonic stamp is the log time.

    `profile` is MCAP's of a file that is not ours, such as "ros2"; it then has no metadata but what is noted. Raises
    RecordingError where the file cannot be created; writing raises OSError (a full disk).
    """

    def __init__(
        self, path: Path, metadata: Mapping[str, str], *, wall_offset_ns: int = 0, profile: str | None = None
    ) -> None:
        self.path = path
        self.wall_offset_ns = wall_offset_ns
        self.messages = 0
        self._channels: dict[tuple[str, ...], int] = {}
        self._forms: dict[tuple[str, str], dict[str, Form]] = {}
        self._flushed_ns = 0
        with writing(path, "choose another path", RecordingError):
            path.parent.mkdir(parents=True, exist_ok=True)
            # Cameras and words of people: nobody else's to read.
            self._file: IO[bytes] = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")
            os.fchmod(self._file.fileno(), 0o600)
        self._mcap = Writer(self._file, chunk_size=CHUNK_BYTES, compression=CompressionType.ZSTD)
        self._is_ours = profile is None
        self._mcap.start(profile=profile or "", library="polyrhythm")
        if self._is_ours:
            self.note("polyrhythm", {"schema_version": SCHEMA_VERSION, "wall_offset_ns": str(wall_offset_ns)})
            self.note("run", metadata)
        self.flush()

    def write(self, stamped: Stamped[Any]) -> None:
        """Record a message under the topic of its envelope."""
        message, envelope = stamped.message, stamped.envelope
        cls = type(message)
        key = (envelope.topic, cls.__name__)
        if key not in self._channels:
            schema = message_schema(cls, message, envelope.origins)
            self._open_channel(key, schema, {"type": f"{cls.__module__}:{cls.__qualname__}"})
            self._forms[key] = array_forms(message)
        self._add(key, envelope, encode_message(message, envelope, self._forms.get(key)))

    def write_document(
        self,
        topic: str,
        schema_name: str,
        schema: bytes,
        document: Document,
        envelope: Envelope,
        *,
        type_name: str = "",
    ) -> None:
        """Record a document with a schema of its own, such as a compressed image; it contains its envelope."""
        key = (topic, schema_name)
        if key not in self._channels:
            self._open_channel(key, schema, {"type": type_name} if type_name else {})
        self._add(key, envelope, msgspec.json.encode(document))

    def copy(self, message: BagMessage) -> None:
        """Record a message of another recording unchanged."""
        key = (message.topic, message.schema, message.encoding, message.schema_encoding)
        if key not in self._channels:
            about = dict(message.channel_metadata) | ({"type": message.type_name} if message.type_name else {})
            schema = message.schema_data or (b"{}" if message.schema_encoding == "jsonschema" else b"")
            self._open_channel(key, schema, about, message.encoding, message.schema_encoding)
        self._put(key, message.log_time_ns, message.sequence, message.data, message.publish_time_ns)

    def note(self, name: str, values: Mapping[str, str]) -> None:
        """Add a metadata record."""
        self._mcap.add_metadata(name, {str(key): str(value) for key, value in values.items()})

    def attach(self, name: str, media_type: str, data: bytes) -> None:
        """Add a file, such as the launch file."""
        self._mcap.add_attachment(create_time=0, log_time=0, name=name, media_type=media_type, data=data)

    def flush(self) -> None:
        """Close the chunk and give everything to the operating system, so that killing this process loses nothing."""
        # mcap's Writer closes a chunk by size only; this is its own method for that, which it does not make public.
        self._mcap._Writer__finalize_chunk()  # type: ignore[attr-defined]  # private to the library
        self._file.flush()
        self._flushed_ns = 0  # from the next message on

    def close(self, metadata: Mapping[str, str] | None = None) -> None:
        """Write the end of the recording (`metadata` under the name "end") and the index, and close the file."""
        if self._file.closed:
            return
        if self._is_ours:
            self.note("end", metadata or {})
        self._mcap.finish()  # type: ignore[no-untyped-call]  # the library's hints lack it
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def abandon(self) -> None:
        """Close the file as it is, without an index; what was flushed can be read."""
        try:
            self._file.close()
        except OSError:
            pass  # the disk is full or gone: what was flushed is all there is

    def _open_channel(
        self,
        key: tuple[str, ...],
        schema: bytes,
        metadata: dict[str, str],
        encoding: str = "json",
        schema_encoding: str = "jsonschema",
    ) -> None:
        topic, name = key[:2]
        has_schema = bool(schema_encoding or name)
        schema_id = self._mcap.register_schema(name=name, encoding=schema_encoding, data=schema) if has_schema else 0
        self._channels[key] = self._mcap.register_channel(topic, encoding, schema_id, metadata)

    def _add(self, key: tuple[str, ...], envelope: Envelope, data: bytes) -> None:
        self._put(key, max(0, envelope.published_ns + self.wall_offset_ns), envelope.seq & 0xFFFFFFFF, data)

    def _put(
        self, key: tuple[str, ...], stamp_ns: int, sequence: int, data: bytes, published_ns: int | None = None
    ) -> None:
        self._mcap.add_message(
            channel_id=self._channels[key],
            log_time=stamp_ns,
            publish_time=stamp_ns if published_ns is None else published_ns,
            sequence=sequence,
            data=data,
        )
        self.messages += 1
        if not self._flushed_ns:
            self._flushed_ns = stamp_ns
        elif stamp_ns - self._flushed_ns >= to_ns(FLUSH_S):
            self.flush()
            self._flushed_ns = stamp_ns


def head_of(path: Path) -> dict[str, str] | None:
    """What the file's beginning says of its run, without reading the rest; None where it is damaged or no MCAP file."""
    try:
        with path.open("rb") as file:
            place, size = len(MCAP0_MAGIC), path.stat().st_size
            while True:
                record, place = _record_at(file, place, size)
                if isinstance(record, Metadata) and record.name == "run":
                    return dict(record.metadata)
                if isinstance(record, Chunk):
                    return {}
    except (*_DAMAGE, OSError):
        return None


class BagReader:
    """Reads one recording, in the order in which it was recorded.

    `metadata` and `attachments` are by name. `damage` says in sentences what could not be read; `is_complete` is False
    where the end is missing. A file whose metadata was lost is ours where its messages are. Raises RecordingError where
    the file is no recording of this runtime, unless `takes_any`: then any MCAP file is read, and `is_ours` says whose.
    """

    def __init__(self, path: Path, *, takes_any: bool = False) -> None:
        self.path = path
        self.metadata: dict[str, dict[str, str]] = {}
        self.attachments: dict[str, bytes] = {}
        self.is_complete = False
        self._at = 0  # where the record stands that was read last
        self.damage: list[str] = []
        self.has_left_out = False
        """Whether something in its midst could not be read; not where it merely ends early."""
        self._schemas: dict[int, Schema] = {}  # of the index at the end, for where a chunk that holds them is damaged
        self._channels: dict[int, Channel] = {}
        self._found: dict[tuple[int, int], int | None] = {}
        self.promised: int | None = None
        """How many messages its index says it has."""
        self.first_log_ns: int | None = None
        """The earliest log time in it."""
        self.profile, self.library = "", ""
        self.wall_offset_ns = 0
        places: dict[str, int] = {}  # of metadata and attachments, by the index
        for record in self._records():
            if isinstance(record, Metadata | Attachment):
                self._keep(record)
            elif isinstance(record, Schema):
                self._schemas[record.id] = record
            elif isinstance(record, Channel):
                self._channels[record.id] = record
            elif isinstance(record, Statistics):
                self.promised = record.message_count
            elif isinstance(record, MetadataIndex | AttachmentIndex):
                places[record.name] = record.offset
            elif isinstance(record, Header):
                self.profile, self.library = record.profile, record.library
            elif isinstance(record, Record | Chunk) and (stamp_ns := _first_of(record)) is not None:
                self.first_log_ns = min(stamp_ns, stamp_ns if self.first_log_ns is None else self.first_log_ns)
        for name in places.keys() - self.metadata.keys() - self.attachments.keys():
            self._look_up(places[name])
        about = self.metadata.get("polyrhythm")
        is_damaged = bool(self.damage)
        ours = next((one for one in islice(self, _PEEKED) if one.is_ours), None) if about is None else None
        self.is_ours = about is not None or ours is not None
        if not self.is_ours and not takes_any:
            or_not = ", or one whose head is damaged" if is_damaged else ""
            raise RecordingError(f"{path}: is an MCAP file, but not one that Polyrhythm recorded{or_not}")
        if about is not None and about.get("schema_version") != SCHEMA_VERSION:
            raise RecordingError(
                f"{path}: has recording version {about.get('schema_version')!r}; "
                f"this Polyrhythm reads {SCHEMA_VERSION!r}"
            )
        try:
            self.wall_offset_ns = int((about or {}).get("wall_offset_ns", "0"))
            if ours is not None:
                self.wall_offset_ns = ours.log_time_ns - ours.envelope.published_ns
        except ValueError as error:
            raise RecordingError(f"{path}: its head is damaged (wall_offset_ns is no number)") from error

    def _keep(self, record: Any) -> None:
        if isinstance(record, Metadata):
            self.metadata[record.name] = dict(record.metadata)
        elif isinstance(record, Attachment):
            self.attachments[record.name] = record.data

    def _look_up(self, offset: int) -> None:
        """Read what a damaged record before it has hidden, where the index says that it stands."""
        try:
            with self.path.open("rb") as file:
                self._keep(_record_at(file, offset, self.path.stat().st_size)[0])
        except (*_DAMAGE, OSError):
            pass  # the refusal, or the missing launch file, says it

    def __iter__(self) -> Iterator[BagMessage]:
        schemas, channels = dict(self._schemas), dict(self._channels)
        count = 0
        for record in self._records():
            for part in self._unpack(record) if isinstance(record, Chunk) else [record]:
                if isinstance(part, Schema):
                    schemas[part.id] = part
                elif isinstance(part, Channel):
                    channels[part.id] = part
                elif isinstance(part, Record):
                    count += 1
                    yield self._message(part, channels.get(part.channel_id), schemas)
        # A record whose type was damaged is, to MCAP, one of a kind unknown, and passed over in silence.
        if not self.damage and self.promised not in (None, count):
            self.damage.append(f"{self.path}: {count} messages can be read of the {self.promised} its index counts")
            self.has_left_out = True

    def newest_first(self, goes_on: Callable[[], bool]) -> Iterator[BagMessage]:
        """The messages from the end of the file backwards while `goes_on` says so; not all of a busy topic.

        In a file that was not closed the channels are unknown here: the envelope names the topic.
        """
        places: list[tuple[int, set[int]]] = []  # of each chunk, and the channels in it
        for record in self._records():
            if isinstance(record, Chunk):
                places.append((self._at, set()))
            elif isinstance(record, MessageIndex) and places and record.records:
                places[-1][1].add(record.channel_id)
        read: Counter[int] = Counter()
        with self.path.open("rb") as file:
            for place, held in reversed(places):
                if not goes_on():
                    return
                if held and all(read[channel] >= _ENOUGH for channel in held):
                    continue
                read.update(held)
                record, _ = _record_at(file, place, self.path.stat().st_size)
                for part in reversed(self._unpack(cast(Chunk, record))):
                    if isinstance(part, Record):
                        yield self._message(part, self._channels.get(part.channel_id), self._schemas)

    def _unpack(self, chunk: Chunk) -> list[Any]:
        """What is in a chunk; nothing, and a word about it, where the chunk is damaged.

        Where a disk was switched off, what it had promised to write is zeros: what stands before them is read.
        """
        ends_in_zeros = chunk.data.endswith(_ZEROS)
        try:
            claimed = chunk.uncompressed_size
            if chunk.compression == "zstd":  # the frame's own word on its size decides what is set aside
                claimed = max(claimed, zstandard.frame_content_size(chunk.data))
            if claimed > RECORD_LIMIT_BYTES:
                raise ValueError(f"it claims {claimed} bytes")
            is_unproven = ends_in_zeros and not chunk.uncompressed_crc and chunk.compression in ("zstd", "")
            if is_unproven and len(_unpacked_records(chunk.compression, chunk.data)) < chunk.uncompressed_size:
                raise EndOfFile
            return breakup_chunk(chunk, validate_crc=True)
        except _DAMAGE as error:
            begun = _unpacked_records(chunk.compression, chunk.data.rstrip(b"\0")) if ends_in_zeros else b""
            what = "of which the beginning is read" if begun else "and left out"
            self.damage.append(f"{self.path}: a chunk is damaged {what} ({_why(error)})")
            self.has_left_out = True
            return breakup_chunk(_plain_chunk(begun))

    def _records(self) -> Iterator[Any]:
        """Records as they stand in the file, chunks unopened, up to the end or the first damage."""
        self.damage = []
        self.is_complete = self.has_left_out = False
        try:
            size = self.path.stat().st_size
            file = self.path.open("rb")
        except OSError as error:
            raise RecordingError.unopened(self.path, error) from error
        with file:
            if file.read(len(MCAP0_MAGIC)) != MCAP0_MAGIC:
                raise RecordingError(f"{self.path}: is no MCAP recording")
            is_damaged = False
            at: int | None = file.tell()
            is_ended = False  # of this pass: others may go on at the same time
            while at is not None and not is_ended:
                try:
                    record, ends = _record_at(file, at, size)
                    if isinstance(record, Footer) and file.read(len(MCAP0_MAGIC)) != MCAP0_MAGIC:
                        raise EndOfFile
                except _DAMAGE as error:
                    damaged_at, at = at, self._next_chunk(file, at + 1, size)
                    is_damaged = True
                    ends_early = at is None and isinstance(error, EndOfFile | struct.error)
                    is_chunk = ends_early and _opcode_at(file, damaged_at) == Opcode.CHUNK
                    self.damage.append(_lost(self.path, error, damaged_at, at, is_chunk=is_chunk))
                    self.has_left_out = self.has_left_out or not ends_early or is_chunk
                    if is_chunk:
                        file.seek(damaged_at)
                        yield _begun_chunk(file.read(RECORD_LIMIT_BYTES))
                    continue
                self.is_complete = is_ended = isinstance(record, Footer)
                self._at = at
                if record is not None:
                    yield record
                at = ends
            self.is_complete = self.is_complete and not is_damaged

    def _next_chunk(self, file: IO[bytes], start: int, size: int) -> int | None:
        """As `next_chunk`; looked for once, since a file is gone through several times."""
        if (start, size) not in self._found:
            self._found[start, size] = next_chunk(file, start, size)
        return self._found[start, size]

    def _message(self, record: Record, channel: Channel | None, schemas: Mapping[int, Schema]) -> BagMessage:
        """The message with what is known of its channel; where that was lost, its envelope says the topic."""
        schema = schemas.get(channel.schema_id) if channel is not None else None
        message = BagMessage(
            topic=channel.topic if channel is not None else "",
            schema=schema.name if schema is not None else "",
            log_time_ns=record.log_time,
            data=record.data,
            type_name=name_today(channel.metadata.get("type", "")) if channel is not None else "",
            schema_data=schema.data if schema is not None else b"",
            sequence=record.sequence,
            encoding=channel.message_encoding if channel is not None else "json",
            schema_encoding=schema.encoding if schema is not None else "",
            channel_metadata=channel.metadata if channel is not None else {},
            publish_time_ns=record.publish_time,
            wall_offset_ns=self.wall_offset_ns,
        )
        if channel is not None:
            return message
        message = replace(message, schema_encoding="jsonschema", schema_data=_UNKNOWN_SCHEMA)
        try:
            return replace(message, topic=message.envelope.topic)
        except RecordingError:
            return replace(message, topic=LOST_TOPIC)


_UNKNOWN_SCHEMA = b'{"properties":{"' + ENVELOPE_KEY.encode() + b'":{}}}'
"""Of a message of ours whose channel was lost."""


def _first_of(record: Record | Chunk) -> int | None:
    """The earliest log time in it; None of a chunk without messages."""
    if isinstance(record, Record):
        return int(record.log_time)
    has_messages = record.message_start_time or record.message_end_time
    return int(record.message_start_time) if has_messages else None


def _record_at(file: IO[bytes], place: int, size: int) -> tuple[Any, int]:
    """The record that begins there, None of an unknown kind, and where it ends. Raises one of _DAMAGE.

    It sets aside no more memory than the file has bytes: lengths in a damaged file lie.
    """
    file.seek(place)
    head = file.read(_RECORD_HEAD.size)
    opcode, length = _RECORD_HEAD.unpack(head)
    if opcode == 0:
        raise McapError("no record begins there")
    if length > RECORD_LIMIT_BYTES:
        raise RecordLengthLimitExceeded(opcode, length, RECORD_LIMIT_BYTES)
    if length > size - place - len(head):
        raise EndOfFile
    body = file.read(length)
    ends = place + len(head) + length
    if opcode not in _KINDS:
        return None, ends
    return next(StreamReader(BytesIO(head + body), skip_magic=True, emit_chunks=True).records), ends


_KINDS = frozenset(map(int, Opcode))


def _begun_chunk(data: bytes) -> Chunk:
    """What can be read of a chunk, from its opcode on, whose end is missing."""
    try:
        (length,) = struct.unpack_from("<I", data, _CHUNK_HEAD.size)
        begins = _CHUNK_HEAD.size + 4 + length
        return _plain_chunk(_unpacked_records(data[begins - length : begins].decode(), data[begins + 8 :]))
    except _DAMAGE:
        return _plain_chunk(b"")


def _plain_chunk(records: bytes) -> Chunk:
    return Chunk("", records, 0, 0, 0, len(records))


def _unpacked_records(compression: str, data: bytes) -> bytes:
    """The whole records that stand before the first damage."""
    unpacked = bytearray()
    packed = zstandard.ZstdDecompressor().decompressobj()
    if compression not in ("zstd", ""):
        return b""
    with suppress(*_DAMAGE):
        for place in range(0, len(data), _PIECE_BYTES):
            piece = data[place : place + _PIECE_BYTES]
            unpacked += packed.decompress(piece) if compression else piece
            if len(unpacked) > RECORD_LIMIT_BYTES:
                break
    ends = 0
    while ends + _RECORD_HEAD.size <= len(unpacked):
        opcode, length = _RECORD_HEAD.unpack_from(unpacked, ends)
        if opcode == 0 or ends + _RECORD_HEAD.size + length > len(unpacked):
            break
        ends += _RECORD_HEAD.size + length
    return bytes(unpacked[:ends])


def _opcode_at(file: IO[bytes], position: int) -> int:
    """The kind of the record that begins there; 0 at the end."""
    file.seek(position)
    return int.from_bytes(file.read(1))


def next_chunk(file: IO[bytes], start: int, size: int) -> int | None:
    """Where the next record that looks like a chunk begins, at or after `start`; None where there is none."""
    position = start
    while position < size:
        position = _written_from(file, position, size)
        file.seek(position)
        block = file.read(_SEARCH_BYTES)
        if block == _NOTHING[: len(block)]:
            position += len(block)
            continue
        found = sorted(place for mark in _CHUNK_MARKS for place in _places(block, mark))
        for begins in (position + place - _CHUNK_HEAD.size for place in found):
            if begins >= start:
                file.seek(begins)
                opcode, length, first_ns, last_ns, unpacked, _crc = _CHUNK_HEAD.unpack(file.read(_CHUNK_HEAD.size))
                fits = length <= size - begins - 9 and first_ns <= last_ns and unpacked <= RECORD_LIMIT_BYTES
                if opcode == Opcode.CHUNK and fits:
                    return begins
        if len(block) < _SEARCH_BYTES:
            return None
        position += _SEARCH_BYTES - len(_CHUNK_MARKS[0])
    return None


def _written_from(file: IO[bytes], position: int, size: int) -> int:
    """The first place from there on that was ever written: gigabytes of zeros cost no time where a disk has a hole."""
    number = file.fileno()
    was = os.lseek(number, 0, os.SEEK_CUR)
    try:
        return os.lseek(number, position, os.SEEK_DATA)
    except OSError as problem:
        return size if problem.errno == errno.ENXIO else position
    finally:
        os.lseek(number, was, os.SEEK_SET)  # the file's own buffer goes by it


def _places(block: bytes, mark: bytes) -> Iterator[int]:
    place = block.find(mark)
    while place >= 0:
        yield place
        place = block.find(mark, place + 1)


def _why(error: Exception) -> str:
    return "it ends early" if isinstance(error, EndOfFile | struct.error) else f"{type(error).__name__}: {error}"


def _lost(path: Path, error: Exception, damaged_at: int, goes_on_at: int | None, *, is_chunk: bool) -> str:
    why = _why(error)
    if goes_on_at is not None:
        return f"{path}: bytes {damaged_at} to {goes_on_at} are damaged and left out ({why})"
    what = (
        "breaks off inside a chunk, of which the beginning is read"
        if is_chunk
        else f"was not closed or is damaged ({why})"
    )
    return f"{path}: {what}; everything before that is read"
