"""Which of our messages becomes which ROS message, and the other way: what the bridge's tables may name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from nodes.recording.foxglove_schemas import transforms_document
from nodes.recording.ros2_messages import (
    camera_info,
    header,
    joint_state,
    odometry,
    pixels_of,
    ros,
    stamp_ns_of,
    transform,
)
from runtime.bag.schema import encode_message
from runtime.message import Message, Stamped
from runtime.msgs import JOINTS, Image, RobotState, Utterance

JPEG_QUALITY = 90
FARTHEST_NS = 1_000_000_000
"""A stamp of ROS that is further from now than this is of another clock; when it came is taken instead."""

ToRos = Callable[[Stamped[Any], int, tuple[str, ...]], Any]
"""Takes our message, the offset of our clock to wall time and the names of the joints."""
FromRos = Callable[[Any, int, int], Message | None]
"""Takes a ROS message, when it came by our clock and that offset; None: of a kind that nobody here knows."""


def _compressed_image(stamped: Stamped[Image], offset_ns: int, joints: tuple[str, ...]) -> Any:
    import cv2

    image = stamped.message
    bgr = np.asarray(cv2.cvtColor(image.rgb, cv2.COLOR_RGB2BGR), np.uint8)
    _, data = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    head = header(image.captured_ns + offset_ns, image.camera)
    return ros.sensor_msgs__msg__CompressedImage(head, "jpeg", np.asarray(data, np.uint8).reshape(-1))


def _image(stamped: Stamped[Image], offset_ns: int, joints: tuple[str, ...]) -> Any:
    image = stamped.message
    height, width = image.rgb.shape[:2]
    head = header(image.captured_ns + offset_ns, image.camera)
    pixels = np.ascontiguousarray(image.rgb).reshape(-1)
    return ros.sensor_msgs__msg__Image(head, height, width, "rgb8", 0, width * 3, pixels)


def _camera_info(stamped: Stamped[Image], offset_ns: int, joints: tuple[str, ...]) -> Any:
    image = stamped.message
    height, width = image.rgb.shape[:2]
    return camera_info(header(image.captured_ns + offset_ns, image.camera), image.focal_px, width, height)


def _joint_state(stamped: Stamped[RobotState], offset_ns: int, joints: tuple[str, ...]) -> Any:
    state = stamped.message
    return joint_state(state.read_ns + offset_ns, joints, state.position, state.velocity, state.effort)


def _odometry(stamped: Stamped[RobotState], offset_ns: int, joints: tuple[str, ...]) -> Any:
    return odometry(stamped.message.read_ns + offset_ns, stamped.message)


def _transforms(stamped: Stamped[RobotState], offset_ns: int, joints: tuple[str, ...]) -> Any:
    document = transforms_document(
        stamped.message, stamped.envelope, wall_offset_ns=offset_ns, is_stretch=joints == JOINTS
    )
    return ros.tf2_msgs__msg__TFMessage([transform(one) for one in document["transforms"]])


def _string(stamped: Stamped[Message], offset_ns: int, joints: tuple[str, ...]) -> Any:
    message = stamped.message
    if isinstance(message, Utterance):
        return ros.std_msgs__msg__String(message.text)
    return ros.std_msgs__msg__String(encode_message(message, stamped.envelope).decode())


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


def _from_image(message: Any, came_ns: int, offset_ns: int) -> Message | None:
    rgb = pixels_of(message, is_compressed=not hasattr(message, "encoding"))
    if rgb is None:
        return None
    return Image(
        camera=message.header.frame_id, captured_ns=our_stamp(stamp_ns_of(message.header), came_ns, offset_ns), rgb=rgb
    )


def _from_string(message: Any, came_ns: int, offset_ns: int) -> Message | None:
    text = message.data.strip()
    return Utterance(speaker="ros", text=text) if text else None


FROM_ROS: dict[str, tuple[type[Message], FromRos]] = {
    "sensor_msgs/msg/CompressedImage": (Image, _from_image),
    "sensor_msgs/msg/Image": (Image, _from_image),
    STRING: (Utterance, _from_string),
}
COMMANDS = (
    "geometry_msgs/msg/Twist",
    "geometry_msgs/msg/TwistStamped",
    "trajectory_msgs/msg/JointTrajectory",
    "control_msgs/action/FollowJointTrajectory",
)
"""What moves a robot: it goes out of bridges.ros2.robot:Ros2Robot behind a guard, and no other way."""


def our_stamp(wall_ns: int, came_ns: int, offset_ns: int) -> int:
    """A stamp of ROS on our clock, never later than it came; `came_ns` where its clock is not ours."""
    ours = wall_ns - offset_ns
    return min(ours, came_ns) if abs(ours - came_ns) <= FARTHEST_NS else came_ns


class ToRosRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of `to_ros`: our topic, theirs and its type; `message` is ours where a String holds another's JSON."""

    topic: str
    ros: str
    type: str
    message: str = ""


class FromRosRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of `from_ros`: their topic and its type, and ours."""

    ros: str
    type: str
    topic: str
