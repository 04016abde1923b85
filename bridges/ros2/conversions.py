"""Which of our messages becomes which ROS message, and the other way: what the bridge's tables may name."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import numpy as np

from bridges.ros2.link import TWISTS
from nodes.mcap.schema import array_forms, encode_message
from nodes.msgs import Image, JointCommand, RobotState, Utterance
from nodes.recording.foxglove.typed_topics import TypedTopics
from nodes.recording.ros2_messages import (
    BaseValues,
    camera_info,
    header,
    joint_state,
    joint_values,
    odometry,
    pixels_of,
    robot_state,
    ros,
    stamp_ns_of,
    transform,
)
from runtime.message import Message, Stamped

JPEG_QUALITY = 90
FARTHEST_NS = 1_000_000_000
"""A stamp of ROS that is further from now than this is of another clock; when it came is taken instead."""

ToRos = Callable[[Stamped[Any], TypedTopics], Any]
"""Takes our message, and what is known of the robot: its joints, its links, the offset of our clock to wall time."""


class Arrived(NamedTuple):
    """A ROS message, when it came by our clock, and what is known of the robot by then."""

    message: Any
    came_ns: int
    offset_ns: int
    joints: tuple[str, ...]
    state: RobotState | None = None

    @property
    def stamp_ns(self) -> int:
        """The message's own stamp on our clock, in ns."""
        return our_stamp(stamp_ns_of(self.message.header), self.came_ns, self.offset_ns)


FromRos = Callable[[Arrived], Message | None]
"""None: of a kind that nobody here knows."""


def _compressed_image(stamped: Stamped[Image], typed: TypedTopics) -> Any:
    import cv2

    image = stamped.message
    bgr = np.asarray(cv2.cvtColor(image.rgb, cv2.COLOR_RGB2BGR), np.uint8)
    _, data = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    head = header(image.captured_ns + typed.wall_offset_ns, image.camera)
    return ros.sensor_msgs__msg__CompressedImage(head, "jpeg", np.asarray(data, np.uint8).reshape(-1))


def _image(stamped: Stamped[Image], typed: TypedTopics) -> Any:
    image = stamped.message
    height, width = image.rgb.shape[:2]
    head = header(image.captured_ns + typed.wall_offset_ns, image.camera)
    pixels = np.ascontiguousarray(image.rgb).reshape(-1)
    return ros.sensor_msgs__msg__Image(head, height, width, "rgb8", 0, width * 3, pixels)


def _camera_info(stamped: Stamped[Image], typed: TypedTopics) -> Any:
    image = stamped.message
    height, width = image.rgb.shape[:2]
    return camera_info(header(image.captured_ns + typed.wall_offset_ns, image.camera), image.focal_px, width, height)


def _joint_state(stamped: Stamped[RobotState], typed: TypedTopics) -> Any:
    state = stamped.message
    return joint_state(state.read_ns + typed.wall_offset_ns, typed.joints, state.position, state.velocity, state.effort)


def _odometry(stamped: Stamped[RobotState], typed: TypedTopics) -> Any:
    return odometry(stamped.message.read_ns + typed.wall_offset_ns, stamped.message)


def _transforms(stamped: Stamped[RobotState], typed: TypedTopics) -> Any:
    rows = typed.transforms(stamped.message)["transforms"]
    return ros.tf2_msgs__msg__TFMessage([transform(one) for one in rows])


def _string(stamped: Stamped[Message], typed: TypedTopics) -> Any:
    message = stamped.message
    if isinstance(message, Utterance):
        return ros.std_msgs__msg__String(message.text)
    return ros.std_msgs__msg__String(encode_message(message, stamped.envelope, array_forms(message)).decode())


STRING = "std_msgs/msg/String"
TO_ROS: dict[str, tuple[type[Message], ToRos]] = {
    "sensor_msgs/msg/CompressedImage": (Image, _compressed_image),
    "sensor_msgs/msg/Image": (Image, _image),
    "sensor_msgs/msg/CameraInfo": (Image, _camera_info),
    "sensor_msgs/msg/JointState": (RobotState, _joint_state),
    "nav_msgs/msg/Odometry": (RobotState, _odometry),
    "tf2_msgs/msg/TFMessage": (RobotState, _transforms),
    STRING: (Utterance, _string),  # any other message as its JSON, where the row names its type
}


def _from_image(arrived: Arrived) -> Message | None:
    message = arrived.message
    rgb = pixels_of(message, is_compressed=not hasattr(message, "encoding"))
    if rgb is None:
        return None
    return Image(camera=message.header.frame_id, captured_ns=arrived.stamp_ns, rgb=rgb)


def _from_string(arrived: Arrived) -> Message | None:
    text = arrived.message.data.strip()
    return Utterance(speaker="ros", text=text) if text else None


def _from_joint_state(arrived: Arrived) -> Message | None:
    """The robot's state; its base stands, as a JointState knows nothing of it."""
    found = joint_values(arrived.message, arrived.joints)
    if isinstance(found, str):
        return None
    return robot_state(arrived.stamp_ns, found.or_zero(), BaseValues())


def _from_twist(arrived: Arrived) -> Message | None:
    """What somebody in ROS asks of the base, the joints where they are; it goes to the guard as any command does."""
    twist = getattr(arrived.message, "twist", arrived.message)
    v_mps, vy_mps, w_radps = float(twist.linear.x), float(twist.linear.y), float(twist.angular.z)
    if arrived.state is None or not all(map(math.isfinite, (v_mps, vy_mps, w_radps))):
        return None
    return JointCommand(position=arrived.state.position, base_v_mps=v_mps, base_w_radps=w_radps, base_vy_mps=vy_mps)


FROM_ROS: dict[str, tuple[type[Message], FromRos]] = {
    "sensor_msgs/msg/CompressedImage": (Image, _from_image),
    "sensor_msgs/msg/Image": (Image, _from_image),
    STRING: (Utterance, _from_string),
    "sensor_msgs/msg/JointState": (RobotState, _from_joint_state),
    **dict.fromkeys(TWISTS, (JointCommand, _from_twist)),
}
COMMANDS = (
    *TWISTS,
    "trajectory_msgs/msg/JointTrajectory",
    "control_msgs/action/FollowJointTrajectory",
)
"""What moves a robot: it goes out of bridges.ros2.robot:Ros2Robot behind a guard, and no other way."""


def our_stamp(wall_ns: int, came_ns: int, offset_ns: int) -> int:
    """Return a stamp of ROS on our clock, at most `came_ns`; that itself where its clock is not ours."""
    ours = wall_ns - offset_ns
    return min(ours, came_ns) if abs(ours - came_ns) <= FARTHEST_NS else came_ns


class ToRosRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of `to_ros`: our topic, theirs and its type; `message` is ours where a String holds another's JSON."""

    topic: str
    ros: str
    type: str
    message: str = ""
    latched: bool = False  # who comes later hears the newest one (transient local)


class FromRosRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of `from_ros`: their topic and its type, and ours."""

    ros: str
    type: str
    topic: str
    latched: bool = False  # what was published before is asked for, too
