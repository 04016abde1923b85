"""Recordings to and from ROS 2: rosbag2 folders (MCAP, CDR), without a ROS installation. Needs the extra `ros2`.

Written: each camera as CompressedImage, its depth as Image (32FC1, metres) and its CameraInfo; the robot's state as
JointState and Odometry; transforms as TFMessage on /tf, and map -> odom on /tf_static; commands as Twist and
JointState; what is heard and said as String. Every other message is a String that holds its JSON, so nothing is
left behind. ROS stamps are wall-clock times: the recording's own, moved by the offset that its head tells.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime
from rosbags.rosbag2 import Reader, ReaderError, StoragePlugin, Writer, WriterError
from rosbags.serde import SerdeError

from nodes.recording.bag.export.damage import Damaged
from nodes.recording.bag.recording import Recording, envelope_or_none, is_journal
from nodes.recording.foxglove.schemas import DESCRIPTION_NAME, SCHEMAS, TRANSFORMS_NAME
from nodes.recording.images import DEPTH_SCHEMA_NAME, SCHEMA, depth_of, image_document
from nodes.recording.images import SCHEMA_NAME as IMAGE_NAME
from nodes.recording.ros2_messages import (
    STORE,
    camera_info,
    description,
    header,
    joint_state,
    map_to_odometry,
    odometry,
    pixels_of,
    ros,
    size_of,
    stamp_ns_of,
    transform,
    twist,
)
from runtime.bag.file import BagWriter
from runtime.bag.record import BagMessage
from runtime.errors import RecordingError, UserError
from runtime.message import Envelope, Message, Stamped
from runtime.msgs import Image, JointCommand, RobotState, Utterance

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
    for sentence in damaged.told:
        tell(sentence)
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


def import_ros2(folder: Path, out: Path) -> dict[str, int]:
    """Read a rosbag2 into a recording, for replay: images into cameras, String on heard or said, and JointState with
    Odometry into robot/state; our topics with their numbers of messages.

    Other topics are counted under "left out: TOPIC (TYPE)". Joint order is that of the first JointState. Raises
    UserError where there is no rosbag2, RecordingError where nothing in it can be used.
    """
    counts: dict[str, int] = {}
    try:
        with Reader(folder) as reader:
            first = next((message for connection, _, message in _read(reader) if _kind(connection) == "joints"), None)
            joints = tuple(first.name) if first is not None else ()
            about = {"source": str(folder), "imported": "rosbag2", "joints": msgspec.json.encode(joints).decode()}
            writer = BagWriter(out, about)
            pose: Any = None
            numbers: dict[str, int] = {}
            for connection, stamp_ns, message in _read(reader):
                kind = _kind(connection)
                if kind == "odometry":
                    pose = message
                    continue
                made = _from_ros(kind, connection.topic, message, stamp_ns, joints, pose)
                if made is None:
                    key = f"left out: {connection.topic} ({connection.msgtype})"
                    counts[key] = counts.get(key, 0) + 1
                    continue
                topic, value = made
                numbers[topic] = numbers.get(topic, 0) + 1
                envelope = Envelope(topic, "rosbag", numbers[topic], stamp_ns)
                if isinstance(value, Image):
                    document = image_document(value, envelope, wall_offset_ns=0, jpeg_quality=0)
                    document["data"] = base64.b64encode(document["data"]).decode()
                    writer.write_document(topic, IMAGE_NAME, SCHEMA, document, envelope, type_name="runtime.msgs:Image")
                else:
                    writer.write(Stamped(value, envelope))
                counts[topic] = counts.get(topic, 0) + 1
            writer.close({})
    except (ReaderError, SerdeError, FileNotFoundError) as problem:
        raise UserError(f"{folder}: cannot be read as a rosbag2 ({problem})") from problem
    if not numbers:
        out.unlink()
        raise RecordingError(
            f"{folder}: holds nothing that a recording of ours can hold; expected CompressedImage or Image, "
            "JointState, or String on heard or said"
        )
    return dict(sorted(counts.items()))


def _read(reader: Reader) -> Iterator[tuple[Any, int, Any]]:
    for connection, stamp_ns, data in reader.messages():
        if _kind(connection):
            yield connection, stamp_ns, STORE.deserialize_cdr(data, connection.msgtype)
        else:
            yield connection, stamp_ns, None


def _kind(connection: Any) -> str:
    """What a ROS topic is to us; "" nothing."""
    kinds = {
        "sensor_msgs/msg/CompressedImage": "compressed",
        "sensor_msgs/msg/Image": "image",
        "sensor_msgs/msg/JointState": "joints",
        "nav_msgs/msg/Odometry": "odometry",
    }
    if connection.msgtype == "std_msgs/msg/String":
        return "words" if connection.topic.rsplit("/", 1)[-1] in ("heard", "said") else ""
    if connection.topic == "/joint_commands":
        return ""
    return kinds.get(connection.msgtype, "")


def _from_ros(
    kind: str, topic: str, message: Any, stamp_ns: int, joints: tuple[str, ...], odometry: Any
) -> tuple[str, Message] | None:
    if kind == "words":
        name = topic.rsplit("/", 1)[-1]
        return name, Utterance(speaker="person" if name == "heard" else "robot", text=message.data)
    if kind in ("compressed", "image"):
        rgb = pixels_of(message, is_compressed=kind == "compressed")
        if rgb is None:
            return None
        ours = topic.strip("/").removesuffix("/compressed").removesuffix("/image_raw").removesuffix("/image")
        captured_ns = stamp_ns_of(message.header) or stamp_ns
        return f"{ours}/image", Image(camera=message.header.frame_id or ours, captured_ns=captured_ns, rgb=rgb)
    if kind == "joints":
        by_name = {name: index for index, name in enumerate(message.name)}
        if not set(joints) <= set(by_name):
            return None  # a part of the robot's joints only
        order = [by_name[name] for name in joints]
        pose, twist = (odometry.pose.pose, odometry.twist.twist) if odometry is not None else (None, None)
        return "robot/state", RobotState(
            read_ns=stamp_ns_of(message.header) or stamp_ns,
            position=_ordered(message.position, order),
            velocity=_ordered(message.velocity, order),
            effort=_ordered(message.effort, order),
            base_x_m=float(pose.position.x) if pose is not None else 0.0,
            base_y_m=float(pose.position.y) if pose is not None else 0.0,
            base_heading_rad=2.0 * math.atan2(pose.orientation.z, pose.orientation.w) if pose is not None else 0.0,
            base_v_mps=float(twist.linear.x) if twist is not None else 0.0,
            base_w_radps=float(twist.angular.z) if twist is not None else 0.0,
            base_vy_mps=float(twist.linear.y) if twist is not None else 0.0,
        )
    return None


def _ordered(values: Any, order: list[int]) -> tuple[float, ...]:
    return tuple(float(values[index]) if index < len(values) else 0.0 for index in order)
