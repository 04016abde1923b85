"""What goes to ROS is what decoders that others wrote read; what comes from it is refused where it is none."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from mcap.records import Schema

pytest.importorskip("rosbags", reason="needs the extra ros2")
pytest.importorskip("mcap_ros2", reason="needs mcap-ros2-support")
pytest.importorskip("zenoh", reason="needs the extra ros2")

from mcap_ros2 import decoder as decoders
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from zenoh import ext as zenoh_ext

from bridges.ros2.conversions import FROM_ROS, STRING, TO_ROS, Arrived, our_stamp
from bridges.ros2.link import TWISTS
from bridges.ros2.zenoh_link import attachment_of, topic_key
from nodes.msgs import JOINTS, GuardState, Image, JointCommand, RobotState, Utterance
from nodes.recording.foxglove.typed_topics import TypedTopics
from nodes.recording.ros2_messages import (
    CANCEL,
    EVENT_INFO,
    SEND_GOAL,
    SET_BOOL,
    STORE,
    TRIGGER,
    cancel_all_request,
    from_cdr,
    from_document,
    set_bool_request,
    to_cdr,
    to_document,
    trajectory_goal,
    trajectory_goal_request,
    trigger_request,
    twist,
    twist_stamped,
    type_hash,
)
from runtime.errors import CodecError
from runtime.message import Envelope, Message, Stamped

WALL_NS = 1_700_000_000_000_000_000
TYPED = TypedTopics("", JOINTS, {}, wall_offset_ns=WALL_NS, tell=lambda said: None)
ENVELOPE = Envelope(topic="x", source="node", seq=1, published_ns=5_000_000_000)
OURS: dict[type[Message], Message] = {
    Image: Image(camera="head", captured_ns=4_000_000_000, rgb=np.full((12, 16, 3), 90, np.uint8), focal_px=20.0),
    RobotState: RobotState(
        read_ns=4_000_000_000, position=tuple(n / 10 for n in range(8)), velocity=(0.5,) * 8, effort=(1.0,) * 8,
        base_x_m=1.0, base_y_m=-2.0, base_heading_rad=1.2, base_v_mps=0.3, base_w_radps=-0.1,
    ),
    Utterance: Utterance(speaker="robot", text="gerne, bitte schön"),
}  # fmt: skip


def made(ros_type: str) -> Any:
    kind, convert = TO_ROS[ros_type]
    return convert(Stamped(OURS[kind], ENVELOPE), TYPED)


ADD_TWO_INTS = "RIHS01_e118de6bf5eeb66a2491b5bda11202e7b68f198d6f67922cf30364858239c81a"
"""As the design page of rmw_zenoh has it."""
SENT = {
    **{ros_type: made(ros_type) for ros_type in TO_ROS},
    "geometry_msgs/msg/Twist": twist(0.1, -0.4),
    f"{SEND_GOAL}_Request": trajectory_goal_request(bytes(range(16)), trajectory_goal(JOINTS, (0.25,) * 8, 0.2)),
    f"{CANCEL}_Request": cancel_all_request(),
    f"{TRIGGER}_Request": trigger_request(),
    f"{SET_BOOL}_Request": set_bool_request(True),
}


def as_message(name: str) -> str:
    """A part of a service or an action under the name of a message: others' parsers of texts know those only."""
    called = re.sub("/(srv|action)/", "/msg/", name)
    called = called if called == name else called.replace("_", "").replace("msgs/", "_msgs/").replace("srvs/", "_srvs/")
    if called != name and called not in STORE.types:
        fields: Any = [
            (field, (kind, as_message(what)) if isinstance(what, str) else (kind, what))
            for field, (kind, what) in STORE.fielddefs[name][1]
        ]
        STORE.register({called: ([], fields)})
    return called


def as_others_read(ros_type: str, data: bytes) -> Any:
    ros_type = as_message(ros_type)
    text, _ = STORE.generate_msgdef(ros_type, ros_version=2)
    schema = Schema(id=1, name=ros_type, encoding="ros2msg", data=text.encode())
    decoder = decoders.DecoderFactory().decoder_for("cdr", schema)
    assert decoder is not None
    return decoder(data)


def plain(value: Any) -> Any:
    """Fields of either library's message, without its own names."""
    if isinstance(value, np.ndarray | list | tuple | bytes):
        return [plain(part) for part in value]
    names = getattr(value, "__slots__", None) or getattr(value, "__dataclass_fields__", None)
    if names is not None and not isinstance(value, str | int | float):
        return {name: plain(getattr(value, name)) for name in names if not name.startswith("_")}
    return value.item() if isinstance(value, np.generic) else value


@pytest.mark.parametrize("ros_type", sorted(SENT.keys() - {f"{TRIGGER}_Request"}))  # of one byte that nobody reads
def test_a_foreign_decoder_reads_every_field_of_what_is_sent(ros_type: str) -> None:
    value = SENT[ros_type]
    assert plain(as_others_read(ros_type, to_cdr(value))) == plain(value)


@pytest.mark.parametrize("ros_type", SENT)
def test_a_message_comes_back_from_cdr_and_from_json_as_it_was(ros_type: str) -> None:
    data = to_cdr(SENT[ros_type])
    assert to_cdr(from_cdr(data, ros_type)) == data
    assert to_cdr(from_document(to_document(SENT[ros_type]), ros_type)) == data


def test_a_request_without_fields_has_none_in_json() -> None:
    """rosbridge refuses a field that the type does not have."""
    assert to_document(SENT[f"{TRIGGER}_Request"]) == {}
    with pytest.raises(CodecError, match="it has more"):
        from_document({"more": 1}, f"{TRIGGER}_Request")


@pytest.mark.parametrize(
    ("ros_type", "known"),
    [  # as they stand in others' programs that speak to rmw_zenoh
        (STRING, "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18"),
        ("geometry_msgs/msg/Twist", "RIHS01_9c45bf16fe0983d80e3cfe750d6835843d265a9a6c46bd2e609fcddde6fb8d2a"),
        (EVENT_INFO, "RIHS01_41bcbbe07a75c9b52bc96bfd5c24d7f0fc0a08c0cb7921b3373c5732345a6f45"),
        ("example_interfaces/srv/AddTwoInts", ADD_TWO_INTS),
        ("sensor_msgs/msg/Image", "RIHS01_d31d41a9a4c4bc8eae9be757b0beed306564f7526c88ea6a4588fb9582527d47"),
    ],
)
def test_the_hash_of_a_type_is_the_one_that_ros_publishes(ros_type: str, known: str) -> None:
    for end, text in (("Request", "int64 a\nint64 b"), ("Response", "int64 sum")):
        (described,) = get_types_from_msg(text, "x").values()
        STORE.register({f"example_interfaces/srv/AddTwoInts_{end}": described})
    assert type_hash(ros_type) == known


def test_keys_are_those_of_both_ways_over_zenoh() -> None:
    assert topic_key("/add_two_ints", "example_interfaces/srv/AddTwoInts", 2).endswith(ADD_TWO_INTS)
    humble = topic_key("/chatter", STRING, 0, has_hash=False)
    assert humble == "0/chatter/std_msgs::msg::dds_::String_/TypeHashNotSupported"
    assert topic_key("/robot/said", STRING, None) == "robot/said"
    assert topic_key("/chatter", STRING, 7) == f"7/chatter/std_msgs::msg::dds_::String_/{type_hash(STRING)}"


def test_what_stands_beside_a_sample_is_as_zenohs_own_serialiser_writes_it() -> None:
    sender = bytes(range(16))
    theirs = zenoh_ext.z_serialize((zenoh_ext.Int64(3), zenoh_ext.Int64(WALL_NS), sender))
    assert attachment_of(3, WALL_NS, sender) == theirs.to_bytes()


def test_a_message_of_another_version_is_told_and_not_taken() -> None:
    data = to_cdr(SENT["sensor_msgs/msg/JointState"])
    for wrong in (b"", b"\0\1\0\0", data[: len(data) // 2], data + b"\0" * 64, b"\0\7" + data[2:]):
        with pytest.raises(CodecError):
            from_cdr(wrong, "sensor_msgs/msg/JointState")
    document = to_document(SENT["sensor_msgs/msg/JointState"])
    for change in ({"name": 5}, {"position": ["x"]}, {"header": None}, {"more": 1}):
        with pytest.raises(CodecError):
            from_document({**document, **change}, "sensor_msgs/msg/JointState")
    with pytest.raises(CodecError):
        from_document([], STRING)


def test_null_in_rosbridges_json_is_a_number_that_is_none() -> None:
    document = to_document(twist(math.nan, 0.0))
    assert document["linear"]["x"] is None
    assert math.isnan(from_document(document, "geometry_msgs/msg/Twist").linear.x)


def test_any_other_message_goes_as_its_json() -> None:
    guard = GuardState(mode="holding", holder="", reason="")
    text = TO_ROS[STRING][1](Stamped(guard, ENVELOPE), TYPED).data
    assert '"mode":"holding"' in text


def arrived(message: Any, came_ns: int = 0, state: RobotState | None = None) -> Arrived:
    return Arrived(message, came_ns, WALL_NS, JOINTS, state)


def test_joints_come_in_by_name_and_whole() -> None:
    sent = made("sensor_msgs/msg/JointState")
    state = FROM_ROS["sensor_msgs/msg/JointState"][1](arrived(sent, 4_100_000_000))
    assert isinstance(state, RobotState)
    assert (state.position, state.read_ns) == (tuple(n / 10 for n in range(8)), 4_000_000_000)
    sent.name[0] = "somebody_elses"
    assert FROM_ROS["sensor_msgs/msg/JointState"][1](arrived(sent)) is None


@pytest.mark.parametrize("kind", TWISTS)
def test_a_twist_asks_for_base_speed_and_leaves_the_joints_where_they_are(kind: str) -> None:
    def asks(*speeds: float) -> Any:
        return twist(*speeds) if kind == TWISTS[0] else twist_stamped(WALL_NS, twist(*speeds))

    state = OURS[RobotState]
    assert isinstance(state, RobotState)
    assert FROM_ROS[kind][1](arrived(asks(0.1, -0.4))) is None, "where the joints are, nobody knows yet"
    asked = FROM_ROS[kind][1](arrived(asks(0.1, -0.4), state=state))
    assert asked == JointCommand(position=state.position, base_v_mps=0.1, base_w_radps=-0.4)
    aside = FROM_ROS[kind][1](arrived(asks(0.1, 0.0, 0.2), state=state))
    assert aside == JointCommand(position=state.position, base_v_mps=0.1, base_vy_mps=0.2)
    assert FROM_ROS[kind][1](arrived(asks(math.nan, 0.0), state=state)) is None
    assert FROM_ROS[kind][1](arrived(asks(0.0, 0.0, math.inf), state=state)) is None


def test_pictures_and_words_come_back() -> None:
    image = FROM_ROS["sensor_msgs/msg/Image"][1](arrived(made("sensor_msgs/msg/Image"), 4_100_000_000))
    assert isinstance(image, Image)
    assert np.array_equal(image.rgb, np.full((12, 16, 3), 90, np.uint8))
    assert (image.camera, image.captured_ns) == ("head", 4_000_000_000)
    packed = FROM_ROS["sensor_msgs/msg/CompressedImage"][1](arrived(made("sensor_msgs/msg/CompressedImage")))
    assert isinstance(packed, Image)
    assert abs(int(packed.rgb[0, 0, 0]) - 90) < 3
    said = FROM_ROS[STRING][1](arrived(made(STRING)))
    assert isinstance(said, Utterance)
    assert said.text == "gerne, bitte schön"


@pytest.mark.parametrize(("ahead_ns", "taken_ns"), [(-10_000_000, -10_000_000), (500_000_000, 0), (-(10**12), 0)])
def test_a_stamp_of_another_clock_is_not_believed(ahead_ns: int, taken_ns: int) -> None:
    came_ns = 9_000_000_000
    assert our_stamp(WALL_NS + came_ns + ahead_ns, came_ns, WALL_NS) == came_ns + taken_ns


@pytest.mark.parametrize("store", [Stores.ROS2_HUMBLE, Stores.ROS2_JAZZY, Stores.ROS2_KILTED])
def test_what_goes_either_way_is_the_same_type_in_each_release(store: Stores) -> None:
    theirs = get_typestore(store)
    for ros_type in (*TO_ROS, *FROM_ROS, "trajectory_msgs/msg/JointTrajectory"):
        assert theirs.hash_rihs01(ros_type) == type_hash(ros_type), ros_type
