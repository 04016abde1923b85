"""ROS 2 messages without a ROS: the types of Humble by `rosbags`, ours as theirs and theirs as ours, CDR and JSON.

The only file that knows `rosbags`' types, beside the bags' own. Stamps are wall-clock ns.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import math
import struct
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rosbags.interfaces import Nodetype
from rosbags.serde import SerdeError
from rosbags.typesys import Stores, TypesysError, get_types_from_idl, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore
from rosbags.typesys.stores import ros2_humble

from nodes.msgs import RobotState
from runtime.clock import NS_PER_S
from runtime.errors import CodecError

MAP = "map"
FRAMES = {
    "odometry": "odom", "base": "base_link",
    MAP: f"urdf_{MAP}", "odom": "urdf_odom", "base_link": "urdf_base_link",  # the robot's own links of these names
}  # fmt: skip
"""What frames are called where ROS has a usual name (REP 105), so that none is there twice."""
MOST_PIXELS = 16_000_000

_BASE, _NAME, _SEQUENCE = Nodetype.BASE, Nodetype.NAME, Nodetype.SEQUENCE

ros = ros2_humble
"""The classes of Humble's messages: `ros.std_msgs__msg__String`."""
STORE = get_typestore(Stores.ROS2_HUMBLE)

TRIGGER, SET_BOOL = "std_srvs/srv/Trigger", "std_srvs/srv/SetBool"
PADDING = "structure_needs_at_least_one_member"
"""Of a message without fields: a byte of its CDR that has no name for anybody who reads it."""
SEND_GOAL, CANCEL = "control_msgs/action/FollowJointTrajectory_SendGoal", "action_msgs/srv/CancelGoal"
EVENT_INFO = "service_msgs/msg/ServiceEventInfo"

_ACTION_TYPES = {
    "control_msgs/msg/JointTolerance": "string name\nfloat64 position\nfloat64 velocity\nfloat64 acceleration",
    "control_msgs/msg/JointComponentTolerance": "string joint_name\nuint16 component\nfloat64 position\n"
    "float64 velocity\nfloat64 acceleration",
    "control_msgs/action/FollowJointTrajectory_Goal": "trajectory_msgs/JointTrajectory trajectory\n"
    "trajectory_msgs/MultiDOFJointTrajectory multi_dof_trajectory\n"
    "control_msgs/JointTolerance[] path_tolerance\n"
    "control_msgs/JointComponentTolerance[] component_path_tolerance\n"
    "control_msgs/JointTolerance[] goal_tolerance\n"
    "control_msgs/JointComponentTolerance[] component_goal_tolerance\n"
    "builtin_interfaces/Duration goal_time_tolerance",
    f"{SEND_GOAL}_Request": "unique_identifier_msgs/UUID goal_id\ncontrol_msgs/action/FollowJointTrajectory_Goal goal",
    f"{SEND_GOAL}_Response": "bool accepted\nbuiltin_interfaces/Time stamp",
    f"{CANCEL}_Request": "action_msgs/GoalInfo goal_info",
    f"{CANCEL}_Response": "int8 return_code\naction_msgs/GoalInfo[] goals_canceling",
    EVENT_INFO: "uint8 event_type\nbuiltin_interfaces/Time stamp\nuint8[16] client_gid\nint64 sequence_number",
    f"{TRIGGER}_Request": f"uint8 {PADDING}",
    f"{TRIGGER}_Response": "bool success\nstring message",
    f"{SET_BOOL}_Request": "bool data",
    f"{SET_BOOL}_Response": "bool success\nstring message",
}
"""Parts of services, and of the action FollowJointTrajectory of control_msgs 4.x and later, which rosbags has not."""
for _name, _text in _ACTION_TYPES.items():
    STORE.register(
        {_name: next(iter(get_types_from_msg(_text, _name).values()))}
    )  # which would call it .../srv/msg/...


def trajectory_goal(joints: tuple[str, ...], position: tuple[float, ...], in_s: float) -> Any:
    """The goal of a FollowJointTrajectory with one point: be there so many seconds after it was taken."""
    sec, nanosec = divmod(round(in_s * NS_PER_S), NS_PER_S)
    nothing = np.array([], dtype=np.float64)
    point = ros.trajectory_msgs__msg__JointTrajectoryPoint(
        np.array(position, dtype=np.float64), nothing, nothing, nothing,
        ros.builtin_interfaces__msg__Duration(sec, nanosec),
    )  # fmt: skip
    return STORE.types["control_msgs/action/FollowJointTrajectory_Goal"](
        trajectory=ros.trajectory_msgs__msg__JointTrajectory(header(0, ""), list(joints), [point]),
        multi_dof_trajectory=ros.trajectory_msgs__msg__MultiDOFJointTrajectory(header(0, ""), [], []),
        path_tolerance=[],
        component_path_tolerance=[],
        goal_tolerance=[],
        component_goal_tolerance=[],
        goal_time_tolerance=ros.builtin_interfaces__msg__Duration(0, 0),
    )


def trajectory_goal_request(ident: bytes, goal: Any) -> Any:
    """What the action's send_goal takes; `ident` has 16 bytes."""
    uuid = ros.unique_identifier_msgs__msg__UUID(np.frombuffer(ident, np.uint8))
    return STORE.types[f"{SEND_GOAL}_Request"](uuid, goal)


def cancel_all_request() -> Any:
    """What the action's cancel_goal takes, for all goals: id and stamp of zero."""
    uuid = ros.unique_identifier_msgs__msg__UUID(np.zeros(16, np.uint8))
    nothing = ros.action_msgs__msg__GoalInfo(uuid, ros.builtin_interfaces__msg__Time(0, 0))
    return STORE.types[f"{CANCEL}_Request"](nothing)


def type_hash(ros_type: str) -> str:
    """The RIHS01 hash that rmw_zenoh writes into its keys. Raises CodecError where nobody here knows the type."""
    try:
        if f"{ros_type}_Request" in STORE.types:
            _learn_service(ros_type)
        return str(STORE.hash_rihs01(ros_type))
    except KeyError as problem:
        raise CodecError(f"{ros_type} is no type of ROS 2 that is known here") from problem


def _learn_service(name: str) -> None:
    """A service as ROS describes one to make its hash: request, response, and the event of a call."""
    if name in STORE.fielddefs:
        return
    event, request, response = f"{name}_Event", f"{name}_Request", f"{name}_Response"
    fields: Any = STORE.fielddefs  # whose types are too narrow for a list of pairs
    at_most_one = [
        (key, (_SEQUENCE, ((_NAME, part), 1))) for key, part in (("request", request), ("response", response))
    ]
    fields[event] = ([], [("info", (_NAME, EVENT_INFO)), *at_most_one])
    parts = {"request_message": request, "response_message": response, "event_message": event}
    fields[name] = ([], [(key, (_NAME, part)) for key, part in parts.items()])


def service_of(request: Any) -> str:
    """The service that a request is for."""
    return str(request.__msgtype__).removesuffix("_Request")


def trigger_request() -> Any:
    """What a service takes that is only to begin."""
    return STORE.types[f"{TRIGGER}_Request"](0)


def set_bool_request(data: bool) -> Any:  # as ROS has it
    """What a service takes that switches something."""
    return STORE.types[f"{SET_BOOL}_Request"](data)


_NO_MESSAGE = (SerdeError, TypesysError, IndexError, KeyError, AssertionError, MemoryError, ValueError, struct.error)


def to_cdr(value: Any) -> bytes:
    """A message as CDR, little-endian, with the four bytes of its encapsulation."""
    return bytes(STORE.serialize_cdr(value, value.__msgtype__))


def from_cdr(data: bytes, ros_type: str) -> Any:
    """The message in CDR. Raises CodecError where it is none of that type, or of another version of it."""
    try:
        return STORE.deserialize_cdr(data, ros_type)
    except _NO_MESSAGE as problem:
        raise CodecError(f"no {ros_type} as Humble has it ({problem})") from problem


def _described(name: str, definition: str, *, is_idl: bool) -> Typestore:
    """A store of what a file says of a type and of those in it. Raises CodecError where that cannot be read."""
    try:
        store = get_typestore(Stores.EMPTY)
        store.register(get_types_from_idl(definition) if is_idl else get_types_from_msg(definition, name))
    except (TypesysError, KeyError, ValueError, SyntaxError) as problem:
        raise CodecError(f"the definition of {name} cannot be read ({problem})") from problem
    return store


def described_hash(name: str, definition: str) -> str:
    """The RIHS01 hash of a type by its definition in a bag. Raises CodecError."""
    try:
        return _described(name, definition, is_idl=definition.startswith("=" * 80 + "\nIDL: ")).hash_rihs01(name)
    except KeyError as problem:
        raise CodecError(f"the definition of {name} lacks {problem}") from problem


def described_type(name: str, definition: str, schema_encoding: str) -> Callable[[bytes], Any]:
    """A reader of messages by the definition that stands in a file: ros1msg, ros2msg or ros2idl.

    Raises CodecError where the definition cannot be read; so does the reader of a message that is none of that type.
    """
    if "/msg/" not in name:
        name = name.replace("/", "/msg/")
    store = _described(name, definition, is_idl=schema_encoding == "ros2idl")
    decode = store.deserialize_ros1 if schema_encoding == "ros1msg" else store.deserialize_cdr

    def read(data: bytes) -> Any:
        try:
            return decode(data, name)
        except _NO_MESSAGE as problem:
            raise CodecError(f"no {name} as the file describes it ({problem})") from problem

    return read


def to_document(value: Any) -> Any:
    """A message as rosbridge's JSON: bytes as base64, numbers that are not finite as null."""
    if dataclasses.is_dataclass(value):
        names = (field.name for field in dataclasses.fields(value))
        return {
            name: to_document(getattr(value, name)) for name in names if not name.startswith("__") and name != PADDING
        }
    if isinstance(value, np.ndarray):
        if value.dtype == np.uint8:
            return base64.b64encode(value.tobytes()).decode()
        return [to_document(part) for part in value.tolist()]
    if isinstance(value, list | tuple):
        return [to_document(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def from_document(document: Any, ros_type: str) -> Any:
    """The message in rosbridge's JSON. Raises CodecError where it is none of that type."""
    try:
        names = dict(STORE.fielddefs[ros_type][1])
        if unknown := set(document) - set(names):
            raise CodecError(f"no {ros_type} as Humble has it: it has {', '.join(sorted(map(str, unknown)))}")
        document = {PADDING: 0, **document} if PADDING in names else document
        return STORE.types[ros_type](**{name: _field(document[name], part) for name, part in names.items()})
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError, binascii.Error) as problem:
        raise CodecError(f"no {ros_type} as Humble has it ({type(problem).__name__}: {problem})") from problem


_CASTS = {"bool": bool, "string": str, "wstring": str, "float32": float, "float64": float}


def _field(value: Any, description: Any) -> Any:
    kind, what = int(description[0]), description[1]
    if kind == _NAME:
        return from_document(value, what)
    if kind == _BASE:
        name = what[0]
        if value is None and name.startswith("float"):
            return math.nan
        if name in ("string", "wstring") and not isinstance(value, str):
            raise TypeError(f"{value!r} is no string")
        return _CASTS.get(name, int)(value)
    inner, size = what
    if int(inner[0]) == _BASE and inner[1][0] not in ("string", "wstring"):
        dtype = np.dtype(inner[1][0])
        if isinstance(value, str):
            array = np.frombuffer(base64.b64decode(value, validate=True), np.uint8).astype(dtype)
        else:
            array = np.array([_field(part, inner) for part in value], dtype)
        if kind == int(Nodetype.ARRAY) and len(array) != size:
            raise ValueError(f"{len(array)} elements instead of {size}")
        return array
    return [_field(part, inner) for part in value]


DEPTH_ENCODINGS = {"16UC1": (np.uint16, 0.001), "32FC1": (np.float32, 1.0)}
"""What REP 118 calls depth: how each number is stored, and what it has to be multiplied by for metres."""


def depth_of(message: Any, *, is_compressed: bool) -> NDArray[np.float32] | None:
    """Depth in m, (height, width), 0 where unknown; None where the picture is not depth, or cannot be read."""
    encoding = message.format.partition(";")[0].strip() if is_compressed else message.encoding
    if encoding not in DEPTH_ENCODINGS:
        return None
    dtype, metres = DEPTH_ENCODINGS[encoding]
    if not is_compressed:
        rows = _rows(message, np.dtype(dtype).itemsize)
        stored = None if rows is None else rows.view(np.dtype(dtype).newbyteorder(">" if message.is_bigendian else "<"))
    else:
        stored = _unpacked_depth(message, is_quantised=encoding == "32FC1")
    if stored is None:
        return None
    depth_m = np.asarray(stored, np.float32) * np.float32(metres)
    return np.where(np.isfinite(depth_m), depth_m, np.float32(0.0))  # too near, too far or not seen, says REP 118


def _unpacked_depth(message: Any, *, is_quantised: bool) -> Any:
    """The numbers in a PNG, whole or behind the head of compressed_depth_image_transport; None where there are none."""
    import cv2

    data = bytes(message.data)
    has_head = "compressedDepth" in message.format
    png = np.frombuffer(data[12:] if has_head else data, np.uint8)
    found = cv2.imdecode(png, cv2.IMREAD_UNCHANGED) if png.size else None
    if found is None or found.dtype != np.uint16 or found.ndim != 2 or (is_quantised and not has_head):
        return None
    if not is_quantised:
        return found
    scale, offset = np.frombuffer(data[4:12], "<f4")
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(found > 0, scale / (found.astype(np.float32) - offset), 0.0)


def pixels_of(message: Any, *, is_compressed: bool) -> Any:
    """RGB pixels, or None of an encoding that nobody here knows, such as depth."""
    import cv2

    if is_compressed:
        data = np.asarray(message.data, np.uint8)
        decoded = cv2.imdecode(data, cv2.IMREAD_ANYDEPTH | cv2.IMREAD_COLOR) if data.size else None
        if decoded is None or decoded.dtype != np.uint8:  # 16 bits are depth, or a camera's that is not for the eye
            return None
        return np.asarray(cv2.cvtColor(decoded, cv2.COLOR_BGR2RGB), np.uint8)
    known = {
        "rgb8": (3, None), "bgr8": (3, cv2.COLOR_BGR2RGB), "mono8": (1, cv2.COLOR_GRAY2RGB),
        "rgba8": (4, cv2.COLOR_RGBA2RGB), "bgra8": (4, cv2.COLOR_BGRA2RGB), "yuv422_yuy2": (2, cv2.COLOR_YUV2RGB_YUY2),
    }  # fmt: skip
    if message.encoding not in known:
        return None
    channels, conversion = known[message.encoding]
    rows = _rows(message, channels)
    if rows is None:
        return None
    pixels = rows.reshape(len(rows), -1, channels)
    return pixels if conversion is None else np.asarray(cv2.cvtColor(pixels, conversion), np.uint8)


def _rows(message: Any, pixel_bytes: int) -> NDArray[np.uint8] | None:
    """The bytes of an Image without padding, (height, width * pixel_bytes); None where it has not as many."""
    height, width = int(message.height), int(message.width)
    if not 0 < height * width <= MOST_PIXELS or message.step < width * pixel_bytes:
        return None
    if len(message.data) < height * message.step:
        return None
    rows = np.asarray(message.data, np.uint8)[: height * message.step].reshape(height, message.step)
    return np.ascontiguousarray(rows[:, : width * pixel_bytes])


class JointValues(NamedTuple):
    """Position, velocity and effort in the order that was asked for; the last two are empty where not every joint has
    them."""

    position: tuple[float, ...]
    velocity: tuple[float, ...]
    effort: tuple[float, ...]

    def or_zero(self) -> JointValues:
        """With zeros in place of what is not measured, as nodes expect of a robot that lives."""
        zeros = (0.0,) * len(self.position)
        return JointValues(self.position, self.velocity or zeros, self.effort or zeros)


def joint_values(message: Any, joints: tuple[str, ...]) -> JointValues | str:
    """What a JointState says of these joints, or in words what it lacks of them; the first of a name counts."""
    if not joints or (lacking := [name for name in joints if name not in message.name]):
        return f"it lacks {', '.join(lacking)}" if joints else "it names no joints"
    places = [message.name.index(name) for name in joints]
    position, velocity, effort = (
        tuple(float(values[place]) for place in places) if len(values) > max(places) else ()
        for values in (message.position, message.velocity, message.effort)
    )
    if not position:
        return "it has not a position for each of its joints"
    if not all(map(math.isfinite, position)):
        return "it holds a position that is no number"
    return JointValues(position, velocity, effort)


class BaseValues(NamedTuple):
    """Where a base is, in m and rad, and how fast, in m/s and rad/s; at its origin where nobody says."""

    x_m: float = 0.0
    y_m: float = 0.0
    heading_rad: float = 0.0
    v_mps: float = 0.0
    w_radps: float = 0.0
    vy_mps: float = 0.0


def base_values(odometry: Any) -> BaseValues:
    """What an Odometry says."""
    pose, twist = odometry.pose.pose, odometry.twist.twist
    heading_rad = 2.0 * math.atan2(pose.orientation.z, pose.orientation.w)
    moving = (twist.linear.x, twist.angular.z, twist.linear.y)
    return BaseValues(*map(float, (pose.position.x, pose.position.y, heading_rad, *moving)))


def robot_state(read_ns: int, joints: JointValues, base: BaseValues) -> RobotState:
    return RobotState(
        read_ns=read_ns,
        position=joints.position,
        velocity=joints.velocity,
        effort=joints.effort,
        base_x_m=base.x_m,
        base_y_m=base.y_m,
        base_heading_rad=base.heading_rad,
        base_v_mps=base.v_mps,
        base_w_radps=base.w_radps,
        base_vy_mps=base.vy_mps,
    )


def size_of(data: Any) -> tuple[int, int] | None:
    """Width and height of a PNG or JPEG; None where it cannot be decoded."""
    import cv2

    decoded = cv2.imdecode(data, cv2.IMREAD_UNCHANGED)
    return None if decoded is None else (decoded.shape[1], decoded.shape[0])


def camera_info(header: Any, focal_px: float, width: int, height: int) -> Any:
    """A pinhole without distortion, principal point in the middle; K is 0 where the focal length is not known."""
    cx, cy = (width / 2, height / 2) if focal_px else (0.0, 0.0)
    one = 1.0 if focal_px else 0.0
    return ros.sensor_msgs__msg__CameraInfo(
        header=header, height=height, width=width, distortion_model="plumb_bob", d=np.zeros(5),
        k=np.array([focal_px, 0, cx, 0, focal_px, cy, 0, 0, one]), r=np.eye(3).reshape(-1),
        p=np.array([focal_px, 0, cx, 0, 0, focal_px, cy, 0, 0, 0, one, 0]),
        binning_x=0, binning_y=0, roi=ros.sensor_msgs__msg__RegionOfInterest(0, 0, 0, 0, False),
    )  # fmt: skip


def joint_state(stamp_ns: int, names: tuple[str, ...], *values: tuple[float, ...]) -> Any:
    position, velocity, effort = (np.array(value, dtype=np.float64) for value in values)
    return ros.sensor_msgs__msg__JointState(
        header(stamp_ns, ""), list(names[: len(position)]), position, velocity, effort
    )


def odometry(stamp_ns: int, state: RobotState) -> Any:
    half = state.base_heading_rad / 2
    unknown = np.zeros(36)
    pose = ros.geometry_msgs__msg__Pose(
        ros.geometry_msgs__msg__Point(state.base_x_m, state.base_y_m, 0.0),
        ros.geometry_msgs__msg__Quaternion(0.0, 0.0, math.sin(half), math.cos(half)),
    )
    return ros.nav_msgs__msg__Odometry(
        header(stamp_ns, "odometry"),
        FRAMES["base"],
        ros.geometry_msgs__msg__PoseWithCovariance(pose, unknown),
        ros.geometry_msgs__msg__TwistWithCovariance(
            twist(state.base_v_mps, state.base_w_radps, state.base_vy_mps), unknown
        ),
    )


def twist(v_mps: float, w_radps: float, vy_mps: float = 0.0) -> Any:
    vector = ros.geometry_msgs__msg__Vector3
    return ros.geometry_msgs__msg__Twist(vector(v_mps, vy_mps, 0.0), vector(0.0, 0.0, w_radps))


def twist_stamped(stamp_ns: int, value: Any) -> Any:
    """What controllers of Jazzy and newer take in place of a Twist."""
    return ros.geometry_msgs__msg__TwistStamped(header(stamp_ns, "base"), value)


def transform(document: dict[str, Any]) -> Any:
    stamp = document["timestamp"]
    parent, child = (str(document[key]) for key in ("parent_frame_id", "child_frame_id"))
    return ros.geometry_msgs__msg__TransformStamped(
        header(stamp["sec"] * NS_PER_S + stamp["nsec"], parent),
        FRAMES.get(child, child),
        ros.geometry_msgs__msg__Transform(
            ros.geometry_msgs__msg__Vector3(*(float(document["translation"][axis]) for axis in "xyz")),
            ros.geometry_msgs__msg__Quaternion(*(float(document["rotation"][axis]) for axis in "xyzw")),
        ),
    )


def map_to_odometry(stamp_ns: int) -> Any:
    """map -> odom: nobody localises the robot, so the map is where it started."""
    still = ros.geometry_msgs__msg__Transform(
        ros.geometry_msgs__msg__Vector3(0.0, 0.0, 0.0), ros.geometry_msgs__msg__Quaternion(0.0, 0.0, 0.0, 1.0)
    )
    stamped = ros.geometry_msgs__msg__TransformStamped(_header(stamp_ns, MAP), FRAMES["odometry"], still)
    return ros.tf2_msgs__msg__TFMessage([stamped])


def description(urdf: str) -> Any:
    """The robot's URDF, its links called as their frames are."""
    root = ElementTree.fromstring(urdf)
    for tag, key in (("link", "name"), ("parent", "link"), ("child", "link")):
        for element in root.iter(tag):
            name = element.get(key, "")
            element.set(key, FRAMES.get(name, name))
    return ros.std_msgs__msg__String(ElementTree.tostring(root, encoding="unicode"))


def header(stamp_ns: int, frame: str) -> Any:
    """`frame` is one of ours."""
    return _header(stamp_ns, FRAMES.get(frame, frame))


def _header(stamp_ns: int, frame: str) -> Any:
    sec, nanosec = divmod(max(0, stamp_ns), NS_PER_S)
    return ros.std_msgs__msg__Header(ros.builtin_interfaces__msg__Time(sec, nanosec), frame)


def stamp_ns_of(header: Any) -> int:
    return int(header.stamp.sec) * NS_PER_S + int(header.stamp.nanosec)
