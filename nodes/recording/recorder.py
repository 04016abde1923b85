"""`Recorder`: writes every message of the graph into one MCAP file, with what the run was and what was lost."""

from __future__ import annotations

import errno
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from nodes.msgs import Image, RecorderState
from nodes.recording.ring_buffer import (
    MissedMessages,
    RingBuffer,
    free_space,
    is_unfinished,
    last_written,
    model_files,
    next_part,
)
from nodes.robot.robot_from_launch import ForRobot
from runtime import (
    Health,
    Message,
    Node,
    ParameterError,
    Publisher,
    QoS,
    RecordingError,
    Stamped,
    Subscription,
    every,
    on,
    to_s,
    wall_time_ns,
)

if TYPE_CHECKING:
    from nodes.mcap.file import BagWriter
    from nodes.recording.foxglove.typed_topics import TypedTopics

FILE_NAME = "run.mcap"
LAUNCH_FILE_NAME = "launch.toml"
VIRTUAL_DAY_NS = 1_577_836_800_000_000_000
"""Virtual time begins on 1 January 2020 for viewers, which show nothing of 1970 well."""
LOW_SHARE = 0.1
"""Of the disk: below this a warning is given, once."""
DEPTHS = ("exact", "millimetres", "none")


class SaveRecording(Message):
    """Asks a recorder in ring mode for a file of the last seconds."""

    reason: str = ""


MOST_TOLD = 8


class Recorder(ForRobot, Node):
    """Records every topic but those excluded; `path` empty means `run.mcap` in the run's folder.

    In `exclude`, "calls/*" names all topics that begin with "calls/".

    `jpeg_quality` 0 keeps images losslessly (PNG), 1 to 100 as JPEG. `depth` says how depth images are kept, on
    `TOPIC/depth`: "exact", in "millimetres" (16-bit PNG, which viewers show), or "none". Of `run_info`, the text of
    the launch file is attached, "outcome", "stats", "trace" and "blas" are noted at the end and everything else at the
    start. A disk that fills up ends the recording, which is closed while there is room for that, and not the run.

    `split_s` and `split_mb` begin another file after so much (0: never), and with it another index in memory. With
    `ring_s` above 0 nothing is written until
    a message on `recorder/save` asks for it: then the last `ring_s` seconds become a file.

    What becomes of the recording is told on `recorder/state`, which is not part of it.
    """

    save = Subscription(SaveRecording, "recorder/save", qos=QoS(required=False))
    told = Publisher(RecorderState, "recorder/state")

    subscribes_all: ClassVar[bool] = True

    def __init__(
        self,
        path: str = "",
        jpeg_quality: int = 0,
        depth: str = "exact",
        exclude: list[str] | None = None,
        split_s: float = 3600.0,
        split_mb: float = 0.0,
        ring_s: float = 0.0,
        reserve_mb: float = 32.0,
    ) -> None:
        for name, value in (
            ("split_s", split_s),
            ("split_mb", split_mb),
            ("ring_s", ring_s),
            ("reserve_mb", reserve_mb),
        ):
            if not 0 <= value < float("inf"):
                raise ParameterError(f"{name} is {value}; expected 0 or a positive number")
        if not 0 <= jpeg_quality <= 100:
            raise ParameterError(f"jpeg_quality is {jpeg_quality}; expected 0 (lossless) to 100")
        if depth not in DEPTHS:
            raise ParameterError(f"depth is {depth!r}; expected one of {', '.join(DEPTHS)}")
        self.path = path
        self.jpeg_quality = jpeg_quality
        self.depth = depth
        self.exclude = frozenset(exclude or ())
        self._excluded_rooms = tuple(topic[:-1] for topic in self.exclude if topic.endswith("/*"))
        self.missed = MissedMessages()
        self.bag: BagWriter | None = None
        self._unwritten = 0
        self._most_behind_ns = self._slowest_write_ns = 0
        self.split_s, self.split_mb, self.ring_s, self.reserve_mb = split_s, split_mb, ring_s, reserve_mb
        self._ring = RingBuffer(ring_s) if ring_s else None
        self._ledger: dict[str, dict[str, dict[str, int]]] = {}  # node -> topic -> reason -> messages not delivered
        self._opened_ns = 0
        self._typed: TypedTopics | None = None
        self._wall_offset_ns: int | None = None
        self._zero_ns: int | None = None  # when the first message of the recording was published: run time zero
        self._warned = False
        self._stopped: list[str] = []  # since when nothing is recorded, and why
        self._before = ""  # where the recording began that is gone on with
        self._state = RecorderState(mode="waiting", why=_kept(ring_s))

    @classmethod
    def preload(cls) -> None:
        """Load what writes a file, before the processes of the run are forked."""
        import nodes.mcap.file
        import nodes.recording.foxglove.typed_topics  # noqa: F401

    def on_start(self) -> None:
        # Loaded here, so that checking a graph needs neither mcap nor OpenCV; a graph without images never does.
        if find_spec("cv2") is not None:
            import cv2

            cv2.setNumThreads(1)
        if self._ring is None:
            self.bag = self._first()

    @property
    def is_recording(self) -> bool:
        """Whether a file is being written."""
        return self.bag is not None

    def _tell(self, state: RecorderState | None = None) -> None:
        """Say what becomes of the recording; where nothing is given, what is so."""
        if self.bag is not None:
            self._state = RecorderState(mode="recording", file=self.bag.path.name, why=self._before)
        elif state is not None:
            self._state = state
            if state.mode == "stopped" and len(self._stopped) < MOST_TOLD:
                since_s = to_s(self.clock.now_ns() - (self._zero_ns or 0))
                self._stopped.append(f"recording: none since {since_s:.1f} s: {state.why}")
        self.told.publish(self._state)

    def losses(self) -> list[str]:
        """Since when nothing is recorded, and why."""
        return self._stopped

    def _first(self) -> BagWriter | None:
        """What is written to from the start; None: nothing yet."""
        return self.open_next()

    def _metadata(self) -> dict[str, str]:
        """All that is known of the run, for the head of a file."""
        info = self.run_info.known
        metadata = _as_text({key: value for key, value in info.items() if key != "launch_text"})
        metadata["clock"] = "virtual" if self.clock.is_virtual else "real"
        metadata.setdefault("started_ns", str(self.clock.now_ns()))
        metadata["excluded_topics"] = ", ".join(sorted(self.exclude))
        metadata["models"] = _as_text({"models": model_files(info.get("parameters", {}))})["models"]
        return metadata

    def open_next(self, *, continues: bool = False) -> BagWriter:
        """The next file of this run."""
        from nodes.mcap.file import BagWriter
        from nodes.mcap.parts import BEGIN, ZERO

        info = self.run_info.known
        path = Path(self.path) if self.path else Path(str(info.get("folder", "."))) / FILE_NAME
        metadata = self._metadata()
        if not continues:
            self._zero_ns = None
        if not continues or self._wall_offset_ns is None:
            # In virtual time always the same day, so that the same seed gives the same file.
            self._wall_offset_ns = VIRTUAL_DAY_NS if self.clock.is_virtual else wall_time_ns() - self.clock.now_ns()
        part = next_part(path) if continues else self._part(path, metadata)
        if self._zero_ns is not None:  # a piece of the run, which can be read alone
            begin_ns = self.clock.now_ns() if self._ring is None else self._ring.begin_ns
            metadata |= {ZERO: str(self._zero_ns), BEGIN: str(begin_ns)}
        bag = BagWriter(part, metadata, wall_offset_ns=self._wall_offset_ns)
        if self._typed is None:
            from nodes.recording.foxglove.typed_topics import TypedTopics

            self._typed = TypedTopics(
                str(info.get("robot", "")), info.get("joints", ()), info.get("parameters", {}),
                wall_offset_ns=self._wall_offset_ns, tell=lambda sentence: self.log.warning("%s", sentence),
            )  # fmt: skip
        self._typed.wall_offset_ns = self._wall_offset_ns
        self._typed.begin_again()
        launch_text = info.get("launch_text")
        if launch_text:
            bag.attach(LAUNCH_FILE_NAME, "application/toml", str(launch_text).encode())
        self._opened_ns = self.clock.now_ns()
        return bag

    def _part(self, path: Path, metadata: dict[str, str]) -> Path:
        """Where to write: beside what this run has recorded already, where this recorder died and was started again."""
        from nodes.mcap.file import BagReader, head_of
        from nodes.mcap.parts import parts_of, zero_ns_of

        self._before = ""
        if is_unfinished(path, metadata):
            before = BagReader(path)
            self._zero_ns, self._wall_offset_ns = zero_ns_of(before.metadata), before.wall_offset_ns
            self.missed.goes_on(last_written(parts_of(path), self.clock))
            part = next_part(path)
            self._before = f"the recorder was started again; what came before is in {path.name}"
            self.log.warning("%s holds the first part of this recording; going on in %s", path, part.name)
            return part
        if path.exists() and head_of(path) is not None:
            part = next_part(path)
            self._before = f"{path.name} holds another recording"
            self.log.warning(
                "%s holds another recording, which is left as it is; this one goes into %s", path, part.name
            )
            return part
        return path

    def on_any(self, stamped: Stamped[Any]) -> None:
        """Record one message of any topic of the graph."""
        envelope = stamped.envelope
        if self._leaves_out(envelope.topic) or envelope.topic == self.told.topic:
            return
        self.missed.heard(envelope)
        is_first = self._zero_ns is None
        if is_first:
            self._zero_ns = 0 if self.clock.is_virtual else envelope.published_ns
        if isinstance(stamped.message, Health):
            self._note_losses(stamped.message)
        if self._ring is not None:
            self._ring.add(stamped, self.clock.now_ns())
            return
        if self.bag is None:
            self._unwritten += 1
            return
        began_ns = self.clock.now_ns()
        self._most_behind_ns = max(self._most_behind_ns, began_ns - envelope.published_ns)
        try:
            if is_first and not self.clock.is_virtual:
                self.bag.note("start", {"zero_ns": str(self._zero_ns)})
            self._write(self.bag, stamped)
        except OSError as error:
            self._give_up(error)
        self._slowest_write_ns = max(self._slowest_write_ns, self.clock.now_ns() - began_ns)

    def _leaves_out(self, topic: str) -> bool:
        return topic in self.exclude or topic.startswith(self._excluded_rooms)

    def on_missed(self, stamped: Stamped[Any]) -> None:
        """Count a message that there was no time to write at the end."""
        topic = stamped.envelope.topic
        if not self._leaves_out(topic):
            self.missed.heard(stamped.envelope)
            self.missed.lost(topic)

    @on(save)
    def save_ring(self, wanted: SaveRecording) -> None:
        """Write the last seconds into a file of their own."""
        if self._ring is None:
            self.log.warning("recorder/save: everything is being recorded already; ring_s is 0")
            return
        bag: BagWriter | None = None
        try:
            bag = self.open_next(continues=True)
            for stamped in self._ring.messages:
                self._write(bag, stamped)
            bag.close({**self._end(bag.messages), "reason": wanted.reason})
        except (OSError, RecordingError) as error:
            self.log.error(
                "the last %g s could not be saved (%s); they are kept, to be asked for again", self.ring_s, error
            )
            self._tell(RecorderState(mode="stopped", why=f"the last {self.ring_s:g} s could not be saved ({error})"))
            if bag is not None:
                bag.abandon()
                with suppress(OSError):
                    bag.path.unlink()
            return
        self._tell(RecorderState(mode="waiting", file=bag.path.name, why=_kept(self.ring_s)))
        cut = f" (there was no room for all of {self.ring_s:g} s)" if self._ring.is_cut else ""
        self.log.info("saved %d messages of the last %.1f s%s in %s", bag.messages, self._ring.seconds, cut, bag.path)
        self._ring.clear()

    def _write(self, bag: BagWriter, stamped: Stamped[Any]) -> None:
        if isinstance(stamped.message, Image):
            self._write_image(bag, stamped)
        else:
            bag.write(stamped)
        if self._typed is not None:
            from nodes.recording.foxglove.schemas import SCHEMAS

            for made in self._typed.of(stamped):
                if not self._leaves_out(made.topic):
                    bag.write_document(made.topic, made.schema, SCHEMAS[made.schema], made.document, stamped.envelope)

    def _note_losses(self, health: Health) -> None:
        self._ledger[health.node] = {port.topic: dict(port.dropped) for port in health.ports if port.dropped}

    @every(hz=2)
    def flush(self) -> None:
        """Hand over what was recorded, also when nothing more comes."""
        bag = self.bag
        if bag is None:
            self._tell()
            return
        try:
            bag.flush()
            free_mb, share = free_space(bag.path)
            if free_mb < self.reserve_mb:
                bag.close({**self._end(bag.messages), "ended_by": "disk full"})
                self.bag = None
                self.log.error(
                    "%s: closed after %d messages, %.0f MB are free; the run goes on without a recording",
                    bag.path, bag.messages, free_mb,
                )  # fmt: skip
                self._tell(RecorderState(mode="stopped", file=bag.path.name, why="the disk is full"))
                return
            if share < LOW_SHARE and not self._warned:
                self._warned = True
                self.log.warning("%s: only %.1f %% of the disk is free", bag.path, share * 100)
            is_long = self.split_s and self.clock.since_s(self._opened_ns) >= self.split_s
            if is_long or (self.split_mb and bag.path.stat().st_size >= self.split_mb * 1e6):
                self._split(bag)
        except OSError as error:
            self._give_up(error)
        else:
            self._tell()

    def _split(self, bag: BagWriter) -> None:
        try:
            following = self.open_next(continues=True)
        except (OSError, RecordingError) as error:
            self.split_s = self.split_mb = 0.0
            self.log.error("%s: %s; goes on in one file", bag.path, error)
            return
        bag.close({"continues": following.path.name})
        self.bag = following

    def on_stop(self) -> None:
        bag, self.bag = self.bag, None
        if bag is None:
            return
        try:
            bag.close(self._end(bag.messages))
        except OSError as error:
            self.log.error("%s: could not be closed (%s); what was flushed can be read", bag.path, error.strerror)
            bag.abandon()

    def _end(self, messages: int) -> dict[str, str]:
        """What is noted at the end: outcome, and what nodes and recorder lost."""
        info = self.run_info.known
        return _as_text(
            {key: info[key] for key in ("outcome", "stats", "trace", "blas") if key in info}
            | {
                "ended_ns": self.clock.now_ns(),
                "messages": messages,
                "missed": dict(sorted(self.missed.number.items())),
            }
            | ({"missed_away": dict(sorted(self.missed.away.items()))} if self.missed.away else {})
            | {"recorder": self._health()}
            | {"ledger": {node: losses for node, losses in sorted(self._ledger.items()) if losses}}
        )

    def _health(self) -> dict[str, float | int]:
        """How the recorder itself fared, in the file that nobody else outlives."""
        return {
            "most_behind_s": round(to_s(self._most_behind_ns), 6),
            "slowest_write_s": round(to_s(self._slowest_write_ns), 6),
            "missed": sum(self.missed.number.values()),
            "unwritten": self._unwritten,
        }

    def _write_image(self, bag: BagWriter, stamped: Stamped[Image]) -> None:
        from nodes.recording import images as recorded_image

        image, envelope = stamped.message, stamped.envelope
        try:
            document = recorded_image.image_document(
                image, envelope, wall_offset_ns=bag.wall_offset_ns, jpeg_quality=self.jpeg_quality
            )
            bag.write_document(
                envelope.topic, recorded_image.SCHEMA_NAME, recorded_image.SCHEMA, document, envelope,
                type_name="nodes.msgs:Image",
            )  # fmt: skip
            if image.depth_m is None or self.depth == "none":
                return
            if self.depth == "exact":
                document = recorded_image.exact_depth_document(image, envelope, wall_offset_ns=bag.wall_offset_ns)
                name, schema = recorded_image.DEPTH_SCHEMA_NAME, recorded_image.DEPTH_SCHEMA
            else:
                document = recorded_image.depth_document(image, envelope, wall_offset_ns=bag.wall_offset_ns)
                name, schema = recorded_image.SCHEMA_NAME, recorded_image.SCHEMA
            bag.write_document(f"{envelope.topic}/depth", name, schema, document, envelope)
        except RecordingError as error:
            self.missed.lost(envelope.topic)
            self.log.warning("topic %r: %s", envelope.topic, error)

    def _give_up(self, error: OSError) -> None:
        assert self.bag is not None
        self.log.error(
            "%s: recording stopped after %d messages (%s); the run goes on without it",
            self.bag.path, self.bag.messages, error.strerror,
        )  # fmt: skip
        self.bag.abandon()
        name, self.bag = self.bag.path.name, None
        why = "the disk is full" if error.errno == errno.ENOSPC else error.strerror or str(error)
        self._tell(RecorderState(mode="stopped", file=name, why=why))


def _kept(ring_s: float) -> str:
    return f"the last {ring_s:g} s are kept in memory" if ring_s else ""


def _as_text(values: dict[str, Any]) -> dict[str, str]:
    """Values for a metadata record: text as it is, the rest as JSON."""
    import msgspec

    return {
        key: value if isinstance(value, str) else msgspec.json.encode(value, order="sorted").decode()
        for key, value in values.items()
    }
