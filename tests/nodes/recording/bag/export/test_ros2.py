"""A recording as a ROS 2 bag, read by decoders that we did not write; and a ROS 2 bag as a recording."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from pathlib import Path
from typing import Any, cast

import cv2
import numpy as np
import pytest
from msgspec import structs

from tests.support.sentences import sentence

pytest.importorskip("rosbags", reason="needs the extra ros2")

from rosbags.rosbag2 import Reader, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore
from rosbags.typesys.stores import ros2_humble as ros

from nodes.mcap.file import BagReader
from nodes.msgs import JOINTS, RobotState, Utterance
from nodes.recording.bag.command import main
from nodes.recording.bag.recording import Recording
from nodes.recording.images import depth_of, image_of
from nodes.recording.ros2_messages import BaseValues, JointValues, description, odometry, robot_state, transform
from tests.support.synthetic_run import write_run

STORE = get_typestore(Stores.ROS2_HUMBLE)


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("run")
    path = write_run(folder, seconds=4.0)
    assert main(["export", str(path), "--to", "ros2", "--out", str(folder / "bag")]) == 0
    return path, folder / "bag"


def read(folder: Path) -> dict[str, list[Any]]:
    """Every message by topic, as a decoder of Foxglove's reads it by the definitions that the bag itself holds."""
    reader = pytest.importorskip("mcap.reader")
    decoder = pytest.importorskip("mcap_ros2.decoder")
    found: dict[str, list[Any]] = defaultdict(list)
    (file,) = folder.glob("*.mcap")
    with file.open("rb") as data:
        for _, channel, _, message in reader.make_reader(
            data, decoder_factories=[decoder.DecoderFactory()]
        ).iter_decoded_messages():
            found[channel.topic].append(message)
    return found


def test_the_bag_holds_state_pictures_words_and_commands_as_ros_has_them(bag: tuple[Path, Path]) -> None:
    path, folder = bag
    states = [one.message(RobotState) for one in Recording(path) if one.topic == "robot/state"]
    found = read(folder)
    assert [tuple(one.position) for one in found["/joint_states"]] == [state.position for state in states]
    assert found["/joint_states"][0].name == list(JOINTS)
    last = found["/odom"][-1]
    assert (last.pose.pose.position.x, last.twist.twist.linear.x) == (states[-1].base_x_m, states[-1].base_v_mps)
    aside = odometry(0, cast(Any, structs.replace)(states[-1], base_vy_mps=0.25))
    assert aside.twist.twist.linear.y == 0.25
    assert 2 * math.atan2(last.pose.pose.orientation.z, last.pose.pose.orientation.w) == pytest.approx(
        states[-1].base_heading_rad
    )
    words = [one.message(Utterance).text for one in Recording(path) if one.topic == "heard"]
    assert [one.data for one in found["/heard"]] == words
    assert len(found["/cmd_vel"]) == len(found["/joint_commands"]) > 0
    assert found["/head/image/camera_info"][0].width == 160
    picture = cv2.imdecode(np.frombuffer(bytes(found["/head/image/compressed"][0].data), np.uint8), cv2.IMREAD_COLOR)
    assert picture is not None
    recorded = next(one for one in Recording(path) if one.topic == "head/image")
    assert np.array_equal(picture[..., ::-1], image_of(recorded.document | {"has_depth": False}, None)[0].rgb)


def test_transforms_make_one_tree_from_the_map_to_the_cameras(bag: tuple[Path, Path]) -> None:
    found = read(bag[1])
    (static,) = found["/tf_static"]
    pairs = {(one.header.frame_id, one.child_frame_id) for group in (*found["/tf"], static) for one in group.transforms}
    assert {("map", "odom"), ("odom", "base_link")} <= pairs
    children = [child for _, child in pairs]
    assert len(children) == len(set(children)), "each frame has one parent"
    assert {parent for parent, _ in pairs} - set(children) == {"map"}
    described = ElementTree.fromstring(found["/robot_description"][0].data)
    assert {link.get("name") for link in described.iter("link")} <= set(children), "a viewer finds each link"


def test_two_frames_of_one_name_become_none_in_ros() -> None:
    def row(parent: str, child: str) -> dict[str, Any]:
        still = {"translation": dict.fromkeys("xyz", 0.0), "rotation": {**dict.fromkeys("xyz", 0.0), "w": 1.0}}
        return {"timestamp": {"sec": 1, "nsec": 0}, "parent_frame_id": parent, "child_frame_id": child, **still}

    rows = [transform(row(*ends)) for ends in (("odometry", "base"), ("base", "base_link"), ("base_link", "odom"))]
    pairs = [(one.header.frame_id, one.child_frame_id) for one in rows]
    assert pairs == [("odom", "base_link"), ("base_link", "urdf_base_link"), ("urdf_base_link", "urdf_odom")]
    told = description('<robot name="a"><link name="base_link"/><link name="base"/></robot>').data
    assert 'name="urdf_base_link"' in told
    assert 'link name="base_link"' in told


def test_no_message_is_left_behind(bag: tuple[Path, Path]) -> None:
    path, folder = bag
    with Reader(folder) as reader:
        assert reader.message_count >= sum(1 for _ in Recording(path))
        assert {one.msgtype for one in reader.connections} >= {"std_msgs/msg/String", "tf2_msgs/msg/TFMessage"}


def test_a_folder_that_is_there_is_not_written_over(bag: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(bag[0]), "--to", "ros2", "--out", str(bag[1])]) == 2
    assert sentence("recording.is_there_already") in capsys.readouterr().err


def test_what_was_exported_comes_in_again(bag: tuple[Path, Path], tmp_path: Path) -> None:
    path, folder = bag
    again = tmp_path / "again.mcap"
    assert main(["import", str(folder), "--out", str(again)]) == 0
    before, after = Recording(path), Recording(again)
    assert after.joints == JOINTS
    for topic in ("robot/state", "heard", "head/image"):
        ours = [one for one in before if one.topic == topic]
        theirs = [one for one in after if one.topic == topic]
        assert len(theirs) == len(ours) > 0, topic
    words = [one.message(Utterance).text for one in after if one.topic == "heard"]
    assert words == [one.message(Utterance).text for one in before if one.topic == "heard"]
    states = [
        (one.message(RobotState).position, one.message(RobotState).base_x_m)
        for one in after
        if one.topic == "robot/state"
    ]
    assert states == [
        (one.message(RobotState).position, one.message(RobotState).base_x_m)
        for one in before
        if one.topic == "robot/state"
    ]


def a_foreign_bag(folder: Path, *messages: tuple[str, Any]) -> Path:
    with Writer(folder, version=9, storage_plugin=StoragePlugin.SQLITE3) as writer:
        known: dict[str, Any] = {}
        for number, (topic, message) in enumerate(messages):
            if topic not in known:
                known[topic] = writer.add_connection(topic, message.__msgtype__, typestore=STORE)
            writer.write(known[topic], 10**18 + number, STORE.serialize_cdr(message, message.__msgtype__))
    return folder


def header(frame: str = "") -> Any:
    return ros.std_msgs__msg__Header(ros.builtin_interfaces__msg__Time(5, 7), frame)


def test_raw_pictures_of_a_foreign_bag_keep_colours_and_padding(tmp_path: Path) -> None:
    pixels = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    padded = np.zeros((2, 16), np.uint8)
    padded[:, :9] = pixels[..., ::-1].reshape(2, 9)
    raw = ros.sensor_msgs__msg__Image(header("cam"), 2, 3, "bgr8", 0, 16, padded.reshape(-1))
    odd = ros.sensor_msgs__msg__Image(header("cam"), 2, 3, "bayer_rggb8", 0, 3, np.zeros(6, np.uint8))
    folder = a_foreign_bag(tmp_path / "bag", ("/front/image_raw", raw), ("/odd/image_raw", odd))
    assert main(["import", str(folder), "--out", str(tmp_path / "run.mcap")]) == 0
    (message,) = list(BagReader(tmp_path / "run.mcap"))
    image, _ = image_of(message.document, None)
    assert message.topic == "front/image"
    assert (image.camera, image.captured_ns) == ("cam", 5_000_000_007)
    assert np.array_equal(image.rgb, pixels)


def test_a_bag_with_nothing_for_us_is_told_what_was_expected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = a_foreign_bag(tmp_path / "bag", ("/rosout", ros.std_msgs__msg__String("hello")))
    assert main(["import", str(folder), "--out", str(tmp_path / "run.mcap")]) == 1
    assert sentence("recording.ros2_types") in capsys.readouterr().err
    assert not (tmp_path / "run.mcap").exists()


def test_what_is_no_bag_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(tmp_path), "--out", str(tmp_path / "run.mcap")]) == 2
    assert sentence("recording.no_rosbag") in capsys.readouterr().err


def joints(names: list[str], position: list[float]) -> Any:
    nothing = np.array([], np.float64)
    return ros.sensor_msgs__msg__JointState(header(), names, np.array(position, np.float64), nothing, nothing)


def at(x_m: float) -> Any:
    return odometry(0, robot_state(0, JointValues((), (), ()), BaseValues(x_m=x_m)))


def picture(shade: int) -> Any:
    return ros.sensor_msgs__msg__Image(header("cam"), 2, 2, "rgb8", 0, 6, np.full(12, shade, np.uint8))


def compressed(form: str, data: bytes) -> Any:
    return ros.sensor_msgs__msg__CompressedImage(header("cam"), form, np.frombuffer(data, np.uint8))


def taken_in(folder: Path, tmp_path: Path, *options: str, code: int = 0) -> dict[str, list[Any]]:
    """What an import writes, by topic."""
    out = tmp_path / "run.mcap"
    assert main(["import", str(folder), "--out", str(out), *options]) == code
    found: dict[str, list[Any]] = defaultdict(list)
    for message in BagReader(out):
        found[message.topic].append(message)
    return found


def test_each_topic_comes_from_one_source_and_the_others_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = (
        ("/odometry/filtered", at(7.0)), ("/odom", at(1.0)), ("/arm/joint_states", joints(["a"], [0.9])),
        ("/joint_states", joints(["a"], [0.1])), ("/cam/image", picture(200)), ("/cam/image_raw", picture(10)),
        ("/robot2/heard", ros.std_msgs__msg__String("two")), ("/robot1/heard", ros.std_msgs__msg__String("one")),
    )  # fmt: skip
    folder = a_foreign_bag(tmp_path / "bag", *rows, *rows)
    found = taken_in(folder, tmp_path)
    states = [one.message(RobotState) for one in found["robot/state"]]
    assert [(state.position, state.base_x_m) for state in states] == [((0.1,), 1.0)] * 2
    assert [one.message(Utterance).text for one in found["heard"]] == ["one", "one"]
    assert {int(image_of(one.document, None)[0].rgb.max()) for one in found["cam/image"]} == {10}
    told = capsys.readouterr().out
    for topic in ("/odometry/filtered", "/arm/joint_states", "/cam/image", "/robot2/heard"):
        assert sentence("recording.left_out_of_import", number=2, topic=topic) in told
    (tmp_path / "run.mcap").unlink()
    take = ("--take", "odometry=/odometry/filtered", "--take", "robot/state=/arm/joint_states")
    states = [one.message(RobotState) for one in taken_in(folder, tmp_path, *take)["robot/state"]]
    assert [(state.position, state.base_x_m) for state in states] == [((0.9,), 7.0)] * 2
    assert main(["import", str(folder), "--out", str(tmp_path / "b.mcap"), "--take", "heard=/odom"]) == 2
    assert "/robot1/heard" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("names", "position"),
    [(["a", "b"], [0.1]), (["a", "b"], [0.1, math.nan]), ([], [0.1, 0.2]), (["a"], [0.1])],
    ids=["short", "no number", "unnamed", "a part"],
)
def test_joints_that_are_not_told_are_missing(
    names: list[str], position: list[float], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    twice = joints(["a", "b", "a"], [0.3, 0.4, 0.9])  # the first of a name counts
    folder = a_foreign_bag(tmp_path / "bag", ("/joint_states", twice), ("/joint_states", joints(names, position)))
    (message,) = taken_in(folder, tmp_path)["robot/state"]
    state = message.message(RobotState)
    assert (state.position, state.velocity, state.effort) == ((0.3, 0.4), (), ())
    assert sentence("recording.left_out_of_import", number=1, topic="/joint_states") in capsys.readouterr().out


def test_sixteen_bits_of_a_depth_camera_are_depth(tmp_path: Path) -> None:
    millimetres = np.array([[0, 1500], [2000, 65535]], np.uint16)
    png = cv2.imencode(".png", millimetres)[1].tobytes()
    raw = ros.sensor_msgs__msg__Image(header("cam"), 2, 2, "16UC1", 0, 4, millimetres.view(np.uint8).reshape(-1))
    folder = a_foreign_bag(
        tmp_path / "bag",
        ("/a/image_raw", raw),
        ("/b/image_raw/compressed", compressed("16UC1; png compressed ", png)),
        ("/c/image_raw/compressedDepth", compressed("16UC1; compressedDepth png", b"\0" * 12 + png)),
        ("/d/image_raw/compressed", compressed("mono16; png compressed ", png)),
    )
    found = taken_in(folder, tmp_path)
    assert sorted(found) == ["a/image/depth", "b/image/depth", "c/image/depth"]
    for one in (message for messages in found.values() for message in messages):
        assert np.allclose(depth_of(one.document)[0], millimetres / 1000.0)


@pytest.mark.parametrize("order", ["<", ">"])
def test_metres_of_a_depth_camera_are_depth_and_what_is_unknown_is_0(order: str, tmp_path: Path) -> None:
    metres = np.array([[0.25, np.nan], [np.inf, 1.5]], f"{order}f4")
    rows = np.zeros((2, 12), np.uint8)  # each row is longer than its numbers, as some drivers have it
    rows[:, :8] = metres.view(np.uint8).reshape(2, 8)
    raw = ros.sensor_msgs__msg__Image(header("cam"), 2, 2, "32FC1", int(order == ">"), 12, rows.reshape(-1))
    found = taken_in(a_foreign_bag(tmp_path / "bag", ("/a/depth/image_raw", raw)), tmp_path)
    ((message,),) = found.values()
    assert depth_of(message.document)[0].tolist() == [[0.25, 0.0], [0.0, 1.5]]


def test_what_a_bag_says_it_has_and_has_not_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = a_foreign_bag(tmp_path / "bag", ("/heard", ros.std_msgs__msg__String("hello")))
    about = folder / "metadata.yaml"
    about.write_text(about.read_text().replace("message_count: 1", "message_count: 5"))
    assert len(taken_in(folder, tmp_path, code=1)["heard"]) == 1
    assert sentence("recording.lost_of_bag", number=4, topic="/heard") in capsys.readouterr().err
