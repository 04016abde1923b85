"""Recordings in MCAP: `BagWriter` stores every message with its envelope, `BagReader` returns them.

A chunk is closed and given to the operating system at least every `FLUSH_S`, by time and not by size. At a robot's
rates a chunk takes minutes to fill, and a killed process would lose all of it. The reader returns what is intact in a
file that was cut off or damaged, and says what it left out.
"""

from __future__ import annotations

import os
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, cast

import msgspec
import zstandard
from mcap.exceptions import EndOfFile, McapError
from mcap.opcode import Opcode
from mcap.records import (
    Attachment,
    AttachmentIndex,
    Channel,
    Chunk,
    Footer,
    MessageIndex,
    Metadata,
    MetadataIndex,
    Schema,
    Statistics,
)
from mcap.records import Message as Record
from mcap.stream_reader import StreamReader, breakup_chunk
from mcap.writer import MCAP0_MAGIC, CompressionType, Writer

from runtime.bag.record import BagMessage
from runtime.bag.schema import Document, Form, array_forms, encode_message, message_schema
from runtime.clock import to_ns
from runtime.errors import RecordingError
from runtime.message import Envelope, Stamped

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
_CHUNK_MARK = b"\x04\x00\x00\x00zstd"  # what follows it
_DAMAGE = (McapError, struct.error, ValueError, OverflowError, KeyError, zstandard.ZstdError)


class BagWriter:
    """Writes one recording; `wall_offset_ns` plus a monotonic stamp is the log time.

    Raises RecordingError where the file cannot be created; writing raises OSError (a full disk).
    """

    def __init__(self, path: Path, metadata: Mapping[str, str], *, wall_offset_ns: int = 0) -> None:
        self.path = path
        self.wall_offset_ns = wall_offset_ns
        self.messages = 0
        self._channels: dict[tuple[str, str], int] = {}
        self._forms: dict[tuple[str, str], dict[str, Form]] = {}
        self._flushed_ns = 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Cameras and words of people: nobody else's to read.
            self._file: IO[bytes] = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")
            os.fchmod(self._file.fileno(), 0o600)
        except OSError as error:
            raise RecordingError(f"{path}: cannot be written ({error.strerror}); choose another path") from error
        self._mcap = Writer(self._file, chunk_size=CHUNK_BYTES, compression=CompressionType.ZSTD)
        self._mcap.start(profile="", library="polyrhythm")
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
        key = (message.topic, message.schema)
        if key not in self._channels:
            self._open_channel(
                key, message.schema_data or b"{}", {"type": message.type_name} if message.type_name else {}
            )
        self._put(key, message.log_time_ns, message.sequence, message.data)

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

    def _open_channel(self, key: tuple[str, str], schema: bytes, metadata: dict[str, str]) -> None:
        topic, name = key
        schema_id = self._mcap.register_schema(name=name, encoding="jsonschema", data=schema)
        self._channels[key] = self._mcap.register_channel(topic, "json", schema_id, metadata)

    def _add(self, key: tuple[str, str], envelope: Envelope, data: bytes) -> None:
        self._put(key, max(0, envelope.published_ns + self.wall_offset_ns), envelope.seq & 0xFFFFFFFF, data)

    def _put(self, key: tuple[str, str], stamp_ns: int, sequence: int, data: bytes) -> None:
        self._mcap.add_message(
            channel_id=self._channels[key], log_time=stamp_ns, publish_time=stamp_ns, sequence=sequence, data=data
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
            whole = cast(IO[bytes], _Bounded(file, path.stat().st_size))
            for record in StreamReader(whole, emit_chunks=True, record_size_limit=RECORD_LIMIT_BYTES).records:
                if isinstance(record, Metadata) and record.name == "run":
                    return dict(record.metadata)
                if isinstance(record, Chunk):
                    return {}
    except (*_DAMAGE, OSError):
        pass
    return None


class BagReader:
    """Reads one recording, in the order in which it was recorded.

    `metadata` and `attachments` are by name. `damage` says in sentences what could not be read; `is_complete` is False
    where the end is missing. Raises RecordingError where the file is no recording of this runtime.
    """

    def __init__(self, path: Path) -> None:
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
        self.promised: int | None = None
        """How many messages its index says it has."""
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
        for name in places.keys() - self.metadata.keys() - self.attachments.keys():
            self._look_up(places[name])
        about = self.metadata.get("polyrhythm")
        if about is None:
            or_not = ", or one whose head is damaged" if self.damage else ""
            raise RecordingError(f"{path}: is an MCAP file, but not one that Polyrhythm recorded{or_not}")
        if about.get("schema_version") != SCHEMA_VERSION:
            raise RecordingError(
                f"{path}: has recording version {about.get('schema_version')!r}; "
                f"this Polyrhythm reads {SCHEMA_VERSION!r}"
            )
        try:
            self.wall_offset_ns = int(about.get("wall_offset_ns", "0"))
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
                whole = cast(IO[bytes], _Bounded(file, file.seek(0, os.SEEK_END)))
                file.seek(offset)
                self._keep(next(StreamReader(whole, skip_magic=True, record_size_limit=RECORD_LIMIT_BYTES).records))
        except (*_DAMAGE, OSError, StopIteration):
            pass  # the refusal, or the missing launch file, says it

    def __iter__(self) -> Iterator[BagMessage]:
        schemas, channels = dict(self._schemas), dict(self._channels)
        count = 0
        for record in self._records():
            if not isinstance(record, Chunk):
                continue
            for part in self._unpack(record):
                if isinstance(part, Schema):
                    schemas[part.id] = part
                elif isinstance(part, Channel):
                    channels[part.id] = part
                elif isinstance(part, Record):
                    count += 1
                    yield _bag_message(part, channels.get(part.channel_id), schemas)
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
                file.seek(place)
                stream = StreamReader(file, skip_magic=True, emit_chunks=True, record_size_limit=RECORD_LIMIT_BYTES)
                for part in reversed(self._unpack(cast(Chunk, next(stream.records)))):
                    if isinstance(part, Record):
                        yield _bag_message(part, self._channels.get(part.channel_id), self._schemas)

    def _unpack(self, chunk: Chunk) -> list[Any]:
        """What is in a chunk; nothing, and a word about it, where the chunk is damaged."""
        try:
            claimed = chunk.uncompressed_size
            if chunk.compression == "zstd":  # the frame's own word on its size decides what is set aside
                claimed = max(claimed, zstandard.frame_content_size(chunk.data))
            if claimed > RECORD_LIMIT_BYTES:
                raise ValueError(f"it claims {claimed} bytes")
            return breakup_chunk(chunk, validate_crc=True)
        except _DAMAGE as error:
            self.damage.append(f"{self.path}: a chunk is damaged and left out ({type(error).__name__}: {error})")
            self.has_left_out = True
            return []

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
            whole = cast(IO[bytes], _Bounded(file, size))
            limit = min(size, RECORD_LIMIT_BYTES)
            is_damaged = False
            good_until: int | None = file.tell()
            while good_until is not None:
                file.seek(good_until)
                try:
                    for record in StreamReader(
                        whole, skip_magic=True, emit_chunks=True, record_size_limit=limit
                    ).records:
                        self.is_complete = isinstance(record, Footer)
                        self._at = good_until
                        yield record
                        good_until = file.tell()
                    break
                except _DAMAGE as error:
                    damaged_at, good_until = good_until, next_chunk(file, good_until + 1, size)
                    is_damaged = True
                    ends_early = good_until is None and isinstance(error, EndOfFile | struct.error)
                    is_chunk = ends_early and _opcode_at(file, damaged_at) == Opcode.CHUNK
                    self.damage.append(_lost(self.path, error, damaged_at, good_until, is_chunk=is_chunk))
                    self.has_left_out = self.has_left_out or not ends_early or is_chunk
            self.is_complete = self.is_complete and not is_damaged


class _Bounded:
    """A file that never sets aside more memory for a read than it has bytes: lengths in a damaged file lie."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self._size = size

    def read(self, length: int) -> bytes:
        return self._file.read(min(length, self._size))


def _opcode_at(file: IO[bytes], position: int) -> int:
    """The kind of the record that begins there; 0 at the end."""
    file.seek(position)
    return int.from_bytes(file.read(1))


def next_chunk(file: IO[bytes], start: int, size: int) -> int | None:
    """Where the next record that looks like a chunk begins, at or after `start`; None where there is none."""
    position = start
    while position < size:
        file.seek(position)
        block = file.read(_SEARCH_BYTES)
        found = block.find(_CHUNK_MARK)
        while found >= 0:
            begins = position + found - _CHUNK_HEAD.size
            if begins >= start:
                file.seek(begins)
                opcode, length, first_ns, last_ns, unpacked, _crc = _CHUNK_HEAD.unpack(file.read(_CHUNK_HEAD.size))
                fits = length <= size - begins - 9 and first_ns <= last_ns and unpacked <= RECORD_LIMIT_BYTES
                if opcode == Opcode.CHUNK and fits:
                    return begins
            found = block.find(_CHUNK_MARK, found + 1)
        if len(block) < _SEARCH_BYTES:
            return None
        position += _SEARCH_BYTES - len(_CHUNK_MARK)
    return None


def _bag_message(record: Record, channel: Channel | None, schemas: Mapping[int, Schema]) -> BagMessage:
    """The message with what is known of its channel; where that was lost, its envelope says the topic."""
    schema = schemas.get(channel.schema_id) if channel is not None else None
    message = BagMessage(
        topic=channel.topic if channel is not None else "",
        schema=schema.name if schema is not None else "",
        log_time_ns=record.log_time,
        data=record.data,
        type_name=channel.metadata.get("type", "") if channel is not None else "",
        schema_data=schema.data if schema is not None else b"",
        sequence=record.sequence,
    )
    if channel is None:
        try:
            return replace(message, topic=message.envelope.topic)
        except RecordingError:
            return replace(message, topic=LOST_TOPIC)
    return message


def _lost(path: Path, error: Exception, damaged_at: int, goes_on_at: int | None, *, is_chunk: bool) -> str:
    why = "it ends early" if isinstance(error, EndOfFile | struct.error) else f"{type(error).__name__}: {error}"
    if goes_on_at is not None:
        return f"{path}: bytes {damaged_at} to {goes_on_at} are damaged and left out ({why})"
    what = "breaks off inside a chunk, which is left out" if is_chunk else f"was not closed or is damaged ({why})"
    return f"{path}: {what}; everything before that is read"
