"""`Recorder`: writes every message of the graph into one MCAP file, with what the run was and what was lost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from runtime.clock import wall_time_ns
from runtime.errors import ParameterError, RecordingError
from runtime.message import Stamped
from runtime.msgs import Image
from runtime.node import Node, every

if TYPE_CHECKING:
    from runtime.bag import BagWriter

FILE_NAME = "run.mcap"
LAUNCH_FILE_NAME = "launch.toml"
DEPTHS = ("exact", "millimetres", "none")


class Recorder(Node):
    """Records every topic but those excluded; `path` empty means `run.mcap` in the run's folder.

    `jpeg_quality` 0 keeps images losslessly (PNG), 1 to 100 as JPEG. `depth` says how depth images are kept, on
    `TOPIC/depth`: "exact", in "millimetres" (16-bit PNG, which viewers show), or "none". Of `run_info`, the text of
    the launch file is attached, "outcome", "stats" and "trace" are noted at the end and everything else at the start.
    A disk that fills up ends the recording and not the run.
    """

    subscribes_all: ClassVar[bool] = True

    def __init__(
        self,
        path: str = "",
        jpeg_quality: int = 0,
        depth: str = "exact",
        exclude: list[str] | None = None,
    ) -> None:
        if not 0 <= jpeg_quality <= 100:
            raise ParameterError(f"jpeg_quality is {jpeg_quality}; expected 0 (lossless) to 100")
        if depth not in DEPTHS:
            raise ParameterError(f"depth is {depth!r}; expected one of {', '.join(DEPTHS)}")
        self.path = path
        self.jpeg_quality = jpeg_quality
        self.depth = depth
        self.exclude = frozenset(["sim/world"] if exclude is None else exclude)
        self.missed: dict[str, int] = {}
        self._next_seq: dict[tuple[str, str], int] = {}
        self._bag: BagWriter | None = None
        self._unwritten = 0

    def on_start(self) -> None:
        # Loaded here, so that checking a graph needs neither mcap nor OpenCV.
        import cv2

        from runtime.bag import BagWriter

        cv2.setNumThreads(1)
        info: dict[str, Any] = getattr(self, "run_info", {})
        folder = Path(str(info.get("folder", ".")))
        path = Path(self.path) if self.path else folder / FILE_NAME
        # In virtual time the log starts at 0, so that the same seed gives the same file.
        wall_offset_ns = 0 if self.clock.is_virtual else wall_time_ns() - self.clock.now_ns()
        metadata = _as_text({key: value for key, value in info.items() if key != "launch_text"})
        metadata["clock"] = "virtual" if self.clock.is_virtual else "real"
        metadata.setdefault("started_ns", str(self.clock.now_ns()))
        metadata["excluded_topics"] = ", ".join(sorted(self.exclude))
        self._bag = BagWriter(self._part(path, metadata.get("folder", "")), metadata, wall_offset_ns=wall_offset_ns)
        launch_text = info.get("launch_text")
        if launch_text:
            self._bag.attach(LAUNCH_FILE_NAME, "application/toml", str(launch_text).encode())

    def _part(self, path: Path, folder: str) -> Path:
        """Where to write: beside what this run has recorded already, where this recorder died and was started again."""
        from runtime.bag import BagReader, part_of, parts_of

        parts = parts_of(path)
        try:
            before = BagReader(path)
            is_same_run = not before.is_complete and before.metadata.get("run", {}).get("folder", "") == folder
        except RecordingError:
            is_same_run = False
        if is_same_run:
            self.log.warning("%s holds the first part of this run; going on in another file", path)
            return part_of(path, len(parts) + 1)
        for part in parts:
            part.unlink(missing_ok=True)  # of an earlier run
        return path

    def on_any(self, stamped: Stamped[Any]) -> None:
        """Record one message of any topic of the graph."""
        envelope = stamped.envelope
        if envelope.topic in self.exclude:
            return
        self._count_gap(envelope.topic, envelope.source, envelope.seq)
        if self._bag is None:
            self._unwritten += 1
            return
        try:
            if isinstance(stamped.message, Image):
                self._write_image(self._bag, stamped)
            else:
                self._bag.write(stamped)
        except OSError as error:
            self._give_up(error)

    @every(hz=2)
    def flush(self) -> None:
        """Hand over what was recorded, also when nothing more comes."""
        if self._bag is not None:
            try:
                self._bag.flush()
            except OSError as error:
                self._give_up(error)

    def on_stop(self) -> None:
        bag, self._bag = self._bag, None
        if bag is None:
            return
        info: dict[str, Any] = getattr(self, "run_info", {})
        end = _as_text(
            {key: info[key] for key in ("outcome", "stats", "trace") if key in info}
            | {"ended_ns": self.clock.now_ns(), "messages": bag.messages, "missed": dict(sorted(self.missed.items()))}
        )
        try:
            bag.close(end)
        except OSError as error:
            self.log.error("%s: could not be closed (%s); what was flushed can be read", bag.path, error.strerror)
            bag.abandon()

    def _write_image(self, bag: BagWriter, stamped: Stamped[Image]) -> None:
        from nodes import recorded_image

        image, envelope = stamped.message, stamped.envelope
        try:
            document = recorded_image.image_document(
                image, envelope, wall_offset_ns=bag.wall_offset_ns, jpeg_quality=self.jpeg_quality
            )
            bag.write_document(
                envelope.topic, recorded_image.SCHEMA_NAME, recorded_image.SCHEMA, document, envelope,
                type_name="runtime.msgs:Image",
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
            self.missed[envelope.topic] = self.missed.get(envelope.topic, 0) + 1
            self.log.warning("topic %r: %s", envelope.topic, error)

    def _count_gap(self, topic: str, source: str, seq: int) -> None:
        key = (topic, source)
        expected = self._next_seq.get(key)
        if expected is not None and seq > expected:
            self.missed[topic] = self.missed.get(topic, 0) + seq - expected
        self._next_seq[key] = seq + 1  # a smaller number is a node that started again

    def _give_up(self, error: OSError) -> None:
        assert self._bag is not None
        self.log.error(
            "%s: recording stopped after %d messages (%s); the run goes on without it",
            self._bag.path, self._bag.messages, error.strerror,
        )  # fmt: skip
        self._bag.abandon()
        self._bag = None


def _as_text(values: dict[str, Any]) -> dict[str, str]:
    """Values for a metadata record: text as it is, the rest as JSON."""
    import msgspec

    return {
        key: value if isinstance(value, str) else msgspec.json.encode(value, order="sorted").decode()
        for key, value in values.items()
    }
