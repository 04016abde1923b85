"""Recordings to and from ROS 2: rosbag2 folders (MCAP, CDR), without a ROS installation. Needs the extra `ros2`.

Written: each camera as CompressedImage, its depth as Image (32FC1, metres) and its CameraInfo; the robot's state as
JointState and Odometry; transforms as TFMessage on /tf, and map -> odom on /tf_static; commands as Twist and
JointState; what is heard and said as String. Every other message is a String that holds its JSON, so nothing is
left behind. ROS stamps are wall-clock times: the recording's own, moved by the offset that its head tells.
"""

from __future__ import annotations

import base64
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime
from rosbags.rosbag2 import Reader, ReaderError, StoragePlugin, Writer, WriterError
from rosbags.serde import SerdeError

from nodes.mcap.file import BagWriter
from nodes.mcap.record import BagMessage
from nodes.msgs import Image, JointCommand, RobotState, Utterance
from nodes.recording.bag.export.damage import Damaged
from nodes.recording.bag.recording import Recording, envelope_or_none, is_journal
from nodes.recording.foxglove.schemas import DESCRIPTION_NAME, SCHEMAS, TRANSFORMS_NAME
from nodes.recording.images import (
    DEPTH_SCHEMA,
    DEPTH_SCHEMA_NAME,
    SCHEMA,
    depth_of,
    exact_depth_document,
    image_document,
)
from nodes.recording.images import SCHEMA_NAME as IMAGE_NAME
from nodes.recording.ros2_messages import (
    STORE,
    BaseValues,
    base_values,
    camera_info,
    described_hash,
    description,
    header,
    joint_state,
    joint_values,
    map_to_odometry,
    odometry,
    pixels_of,
    robot_state,
    ros,
    size_of,
    stamp_ns_of,
    transform,
    twist,
)
from nodes.recording.ros2_messages import depth_of as depth_of_ros
from runtime.errors import CodecError, RecordingError, UserError, choices
from runtime.message import Envelope, Message, Stamped

BAG_VERSION: Literal[8, 9] = 8  # what Humble reads

LATCHED = ("/tf_static", "/robot_description")
_LATCHED = Qos(
    QosHistory.KEEP_LAST, 1, QosReliability.RELIABLE, QosDurability.TRANSIENT_LOCAL,
    QosTime(0, 0), QosTime(0, 0), QosLiveliness.SYSTEM_DEFAULT, QosTime(0, 0), False,
)  # fmt: skip


def export_ros2(
    recording: Recording, out: Path, *, skip_damaged: bool = False, tell: Callable[[str], None] = lambda _: None
) -> dict[str, int]:
    """Write the recording as a rosbag2 folder; the ROS topics with their numbers of messages.

    Raises UserError where the folder is there already, RecordingError of a message that cannot be read unless those are
    skipped; `tell` hears of what was skipped.
    """
    damaged = Damaged(recording, is_skipped=skip_damaged)
    counts: dict[str, int] = {}
    connections: dict[str, Any] = {}
    try:
        with Writer(out, version=BAG_VERSION, storage_plugin=StoragePlugin.MCAP) as writer:
            for message in recording.gone_through("writing"):
                try:
                    rows = list(_to_ros(message, recording))
                except RecordingError as problem:
                    damaged.met(message, problem)
                    continue
                for topic, value in rows:
                    connection = connections.get(topic)
                    if connection is None:
                        connection = connections[topic] = writer.add_connection(
                            topic,
                            value.__msgtype__,
                            typestore=STORE,
                            offered_qos_profiles=[_LATCHED] if topic in LATCHED else (),
                        )
                    writer.write(connection, message.log_time_ns, STORE.serialize_cdr(value, value.__msgtype__))
                    counts[topic] = counts.get(topic, 0) + 1
                if "/tf" in connections and "/tf_static" not in connections:
                    static = map_to_odometry(message.log_time_ns)
                    connections["/tf_static"] = writer.add_connection(
                        "/tf_static", static.__msgtype__, typestore=STORE, offered_qos_profiles=[_LATCHED]
                    )
                    writer.write(
                        connections["/tf_static"],
                        message.log_time_ns,
                        STORE.serialize_cdr(static, static.__msgtype__),
                    )
                    counts["/tf_static"] = 1
    except WriterError as problem:
        raise UserError(f"{out}: {problem}; choose a folder that is not there yet") from problem
    damaged.tell(tell)
    return dict(sorted(counts.items()))


def _to_ros(message: BagMessage, recording: Recording) -> Iterator[tuple[str, Any]]:
    """The ROS messages that one of ours becomes, each with its topic."""
    name = f"/{message.topic}"
    envelope = envelope_or_none(message)
    if envelope is None or is_journal(message):
        yield name, ros.std_msgs__msg__String(message.data.decode("utf-8", "replace"))
        return
    offset_ns = recording.readers[0].wall_offset_ns
    if message.schema == IMAGE_NAME and not message.topic.endswith("/depth"):
        document = message.document
        frame = str(document["frame_id"])
        head = header(int(document["captured_ns"]) + offset_ns, frame)
        data = np.frombuffer(base64.b64decode(document["data"]), np.uint8)
        yield f"{name}/compressed", ros.sensor_msgs__msg__CompressedImage(head, str(document["format"]), data)
        size = size_of(data)
        if size is not None:
            yield f"{name}/camera_info", camera_info(head, float(document.get("focal_px", 0.0)), *size)
    elif message.schema in (IMAGE_NAME, DEPTH_SCHEMA_NAME):
        document = message.document
        depth_m, _ = depth_of(document)
        head = header(int(document["captured_ns"]) + offset_ns, str(document["frame_id"]))
        height, width = depth_m.shape
        pixels = np.ascontiguousarray(depth_m, "<f4").view(np.uint8).reshape(-1)
        yield name, ros.sensor_msgs__msg__Image(head, height, width, "32FC1", 0, width * 4, pixels)
    elif message.schema == TRANSFORMS_NAME:
        yield "/tf", ros.tf2_msgs__msg__TFMessage([transform(one) for one in message.document["transforms"]])
    elif message.schema == DESCRIPTION_NAME:
        yield "/robot_description", description(str(message.document["data"]))
    elif message.schema in SCHEMAS and message.topic != "log":
        return  # made of what stands here already
    elif message.topic == "robot/state":
        state = message.message(RobotState)
        stamp_ns = state.read_ns + offset_ns
        yield "/joint_states", joint_state(stamp_ns, recording.joints, state.position, state.velocity, state.effort)
        yield "/odom", odometry(stamp_ns, state)
    elif message.topic == "robot/command":
        command = message.message(JointCommand)
        stamp_ns = envelope.published_ns + offset_ns
        yield "/cmd_vel", twist(command.base_v_mps, command.base_w_radps, command.base_vy_mps)
        yield "/joint_commands", joint_state(stamp_ns, recording.joints, command.position, (), ())
    elif message.topic in ("heard", "said"):
        utterance = message.message(Utterance)
        yield name, ros.std_msgs__msg__String(utterance.text)
    else:
        yield name, ros.std_msgs__msg__String(message.data.decode("utf-8", "replace"))


@dataclass
class Imported:
    """What became of a ROS 2 bag: numbers of messages, by topic of ROS and by our topic, or by why it is left out.

    `lost` are those that metadata.yaml counts and that are not there.
    """

    taken: Counter[tuple[str, str]] = field(default_factory=Counter)
    left_out: Counter[tuple[str, str]] = field(default_factory=Counter)
    lost: dict[str, int] = field(default_factory=dict)


def import_ros2(bag: Path, out: Path, chosen: Mapping[str, str] | None = None) -> Imported:
    """Read a rosbag2 into a recording, for replay: images into cameras, String on heard or said, and JointState with
    Odometry into robot/state. Each of our topics comes from one of ROS; `chosen` names it where it is not the usual.

    Joint order is that of the first JointState with names. Raises UserError where there is no rosbag2 or what was
    chosen is not there, RecordingError where nothing in it can be used.
    """
    found = Imported()
    try:
        with Reader(bag) as reader:
            sources = _sources(reader.connections, chosen or {})
            states = _read(reader, "robot/state", sources)
            joints = next((names for _, one in states if (names := tuple(dict.fromkeys(one.name)))), ())
            about = {"source": str(bag), "imported": "rosbag2", "joints": msgspec.json.encode(joints).decode()}
            writer = BagWriter(out, about)
            try:
                counts = _import(reader, sources, joints, writer, found)
                writer.close({})
            finally:
                writer.abandon()
            found.lost = {
                one.topic: one.msgcount - counts[one.id] for one in reader.connections if one.msgcount > counts[one.id]
            }
    except (ReaderError, SerdeError, FileNotFoundError) as problem:
        out.unlink(missing_ok=True)
        raise UserError(
            f"{bag}: cannot be read as a rosbag2 ({problem}); `polyrhythm bag recover` writes a sound one where its "
            "recorder was cut off"
        ) from problem
    if not found.taken:
        out.unlink()
        raise RecordingError(
            f"{bag}: holds nothing that a recording of ours can hold; expected CompressedImage or Image, "
            "JointState, or String on heard or said"
        )
    return found


def join_bag(files: Iterable[Path], out: Path) -> tuple[int, list[str]]:
    """Write the storage files of a bag as one bag with its metadata.yaml: how many messages, and what is not read.

    Topics keep their types, definitions, hashes and qualities of service.
    """
    unread: list[str] = []
    count = 0
    connections: dict[tuple[str, str], Any] = {}
    with Writer(out, version=BAG_VERSION, storage_plugin=StoragePlugin.MCAP) as writer:
        for file in files:
            try:
                with Reader(file) as reader:
                    for one in reader.connections:
                        if (key := (one.topic, one.msgtype)) in connections:
                            continue
                        try:
                            connections[key] = _as_it_was(writer, one)
                        except (RecordingError, CodecError) as problem:
                            unread.append(f"{file}: {problem}; left out")
                    for one, stamp_ns, data in reader.messages():
                        if (one.topic, one.msgtype) in connections:
                            writer.write(connections[one.topic, one.msgtype], stamp_ns, data)
                            count += 1
            except ReaderError as problem:
                unread.append(f"{file}: is not read to its end ({problem})")
    return count, unread


def _as_it_was(writer: Writer, one: Any) -> Any:
    """The same connection in another bag; a type that the bag does not describe is as Humble has it."""
    described = described_hash(one.msgtype, one.msgdef.data) if one.msgdef.data and not one.digest else one.digest
    about = {"msgdef": one.msgdef.data, "rihs01": described} if one.msgdef.data else {"typestore": STORE}
    try:
        return writer.add_connection(
            one.topic,
            one.msgtype,
            serialization_format=one.ext.serialization_format,
            offered_qos_profiles=one.ext.offered_qos_profiles,
            **about,
        )
    except KeyError as problem:
        raise RecordingError(f"{one.topic}: its type {one.msgtype} is not described in the bag") from problem


ODOMETRY = "odometry"
"""What is chosen beside our topics: where robot/state has the base from."""
_USUAL = ("/joint_states", "/odom", "/heard", "/said")
_TRANSPORTS = ("compressed", "compressedDepth")
_COMMANDS = "/joint_commands"
"""A JointState that asks for joints and does not say where they are."""


def _ours(connection: Any) -> str:
    """Which of our topics a topic of ROS could fill; "" none."""
    kind, last = connection.msgtype, connection.topic.rpartition("/")[2]
    if kind == "std_msgs/msg/String":
        return last if last in ("heard", "said") else ""
    if kind in ("sensor_msgs/msg/CompressedImage", "sensor_msgs/msg/Image"):
        return f"{_camera_of(connection.topic)}/image"
    if kind == "sensor_msgs/msg/JointState" and connection.topic != _COMMANDS:
        return "robot/state"
    return ODOMETRY if kind == "nav_msgs/msg/Odometry" else ""


def _camera_of(topic: str) -> str:
    """The camera is "head" of "/head/image_raw/compressed"."""
    parts = topic.strip("/").split("/")
    if parts[-1] in _TRANSPORTS:
        parts.pop()
    if len(parts) > 1 and parts[-1].startswith("image"):
        parts.pop()
    return "/".join(parts)


def _sources(connections: Iterable[Any], chosen: Mapping[str, str]) -> dict[str, str]:
    """Which topic of ROS each of ours comes from. Raises UserError where what was chosen is not there."""
    candidates: dict[str, list[Any]] = {}
    for connection in connections:
        if ours := _ours(connection):
            candidates.setdefault(ours, []).append(connection)
    for ours, topic in chosen.items():
        there = [one.topic for one in candidates.get(ours, ())]
        if topic not in there:
            raise UserError(f"{ours}={topic}: {choices(there if there else candidates)}")
    return {ours: chosen.get(ours, min(found, key=_rank).topic) for ours, found in candidates.items()}


def _rank(connection: Any) -> tuple[Any, ...]:
    """Topics with messages first, then usual names, then raw pictures, then by name."""
    *_, name = parts = connection.topic.split("/")
    transport = _TRANSPORTS.index(parts.pop()) + 1 if name in _TRANSPORTS else 0
    is_usual = connection.topic in _USUAL or parts[-1] == "image_raw"
    return (not connection.msgcount, not is_usual, transport, connection.topic)


class _Bases:
    """Where the base was, by all odometry of a bag; it stands at its origin where there is none."""

    def __init__(self, messages: Iterable[tuple[int, Any]]) -> None:
        rows = sorted(((stamp_ns, base_values(one)) for stamp_ns, one in messages), key=lambda row: row[0])
        self._stamps_ns = [stamp_ns for stamp_ns, _ in rows]
        self._rows = [row for _, row in rows]

    def at(self, stamp_ns: int) -> BaseValues | None:
        """As last told by then; None before the first."""
        place = bisect_right(self._stamps_ns, stamp_ns)
        return self._rows[place - 1] if place else None if self._rows else BaseValues()


def _read(reader: Reader, ours: str, sources: Mapping[str, str]) -> Iterator[tuple[int, Any]]:
    """Stamp and message of what becomes one of ours."""
    wanted = [one for one in reader.connections if _ours(one) == ours and one.topic == sources[ours]]
    for connection, stamp_ns, data in reader.messages(wanted) if wanted else ():
        yield stamp_ns, STORE.deserialize_cdr(data, connection.msgtype)


def _import(
    reader: Reader, sources: Mapping[str, str], joints: tuple[str, ...], writer: BagWriter, found: Imported
) -> Counter[int]:
    """Write what can be taken; how many messages each connection has."""
    counts: Counter[int] = Counter()
    numbers: Counter[str] = Counter()
    bases = _Bases(_read(reader, ODOMETRY, sources))
    for connection, stamp_ns, data in reader.messages():
        counts[connection.id] += 1
        ours = _ours(connection)
        if not ours or sources[ours] != connection.topic:
            why = f"{ours} comes from {sources[ours]}" if ours else connection.msgtype
            found.left_out[connection.topic, why] += 1
            continue
        if ours == ODOMETRY:
            found.taken[connection.topic, "robot/state"] += 1
            continue
        message: Any = STORE.deserialize_cdr(data, connection.msgtype)
        made = (
            _state(message, stamp_ns, joints, bases.at(stamp_ns))
            if ours == "robot/state"
            else _picture(message, ours, stamp_ns)
            if ours.endswith("/image")
            else Utterance(speaker="person" if ours == "heard" else "robot", text=message.data)
        )
        if isinstance(made, str):
            found.left_out[connection.topic, made] += 1
            continue
        numbers[ours] += 1
        topic = _write(made, Envelope(ours, "rosbag", numbers[ours], stamp_ns), writer)
        found.taken[connection.topic, topic] += 1
    return counts


def _write(message: Message, envelope: Envelope, writer: BagWriter) -> str:
    """Write it as a recorder does; on which topic."""
    if not isinstance(message, Image):
        writer.write(Stamped(message, envelope))
        return envelope.topic
    if message.depth_m is not None:
        topic, name, schema, kind = f"{envelope.topic}/depth", DEPTH_SCHEMA_NAME, DEPTH_SCHEMA, ""
        document = exact_depth_document(message, envelope, wall_offset_ns=0)
    else:
        topic, name, schema, kind = envelope.topic, IMAGE_NAME, SCHEMA, "nodes.msgs:Image"
        document = image_document(message, envelope, wall_offset_ns=0, jpeg_quality=0)
    document["data"] = base64.b64encode(document["data"]).decode()
    writer.write_document(topic, name, schema, document, envelope, type_name=kind)
    return topic


def _picture(message: Any, ours: str, stamp_ns: int) -> Image | str:
    """A picture, or one of depth, whose colours are black then; or in words why it is none."""
    is_compressed = not hasattr(message, "encoding")
    depth_m = depth_of_ros(message, is_compressed=is_compressed)
    rgb = (
        pixels_of(message, is_compressed=is_compressed) if depth_m is None else np.zeros((*depth_m.shape, 3), np.uint8)
    )
    if rgb is None:
        return f"no picture that can be read as {message.format if is_compressed else message.encoding!r}"
    camera = message.header.frame_id or ours.removesuffix("/image")
    return Image(camera=camera, captured_ns=stamp_ns_of(message.header) or stamp_ns, rgb=rgb, depth_m=depth_m)


def _state(message: Any, stamp_ns: int, joints: tuple[str, ...], base: BaseValues | None) -> RobotState | str:
    """A JointState with where the base was; or in words why it is none."""
    values = joint_values(message, joints)
    if isinstance(values, str):
        return values
    if base is None:
        return "it is before the first odometry"
    return robot_state(stamp_ns_of(message.header) or stamp_ns, values, base)
