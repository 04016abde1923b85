"""Topics of a running graph go to ROS and come from it; what is no message is left out; `check` knows the types."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rosbags", reason="needs the extra ros2")
pytest.importorskip("zenoh", reason="needs the extra ros2")

from nodes.recording.ros2_messages import from_cdr, ros, to_cdr
from nodes.seats.command import main as seat
from nodes.terminal.say import main as say
from runtime import Simulation
from runtime.errors import LaunchFileError, ParameterError
from runtime.launch.file import load
from tests.bridges.ros2.ros_side import ZenohSide
from tests.support.guard.guarded_nodes import GUARDED
from tests.support.running import Runs, eventually

STRING, COMPRESSED = "std_msgs/msg/String", "sensor_msgs/msg/CompressedImage"
BRIDGE = """
[nodes.painter]
use = "tests.bridges.foxglove.painter:Painter"

[nodes.ros]
use = "bridges.ros2.bridge:Ros2Bridge"

[nodes.ros.params]
at = "AT"
to_ros = [
  { topic = "head/image", ros = "/head/compressed", type = "sensor_msgs/msg/CompressedImage" },
  { topic = "heard", ros = "/echo", type = "std_msgs/msg/String" },
]
from_ros = [{ ros = "/speech", type = "std_msgs/msg/String", topic = "heard" }]
"""


@pytest.mark.processes
def test_a_graph_and_ros_hear_each_other_and_garbage_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    side = ZenohSide()
    heard: dict[str, list[Any]] = {"head/compressed": [], "echo": []}

    def hear(sample: Any) -> None:
        heard[str(sample.key_expr)].append(sample.payload.to_bytes())

    kept = [side.session.declare_subscriber(key, hear) for key in heard]
    (tmp_path / "bridged.toml").write_text(BRIDGE.replace("AT", side.at))
    try:
        with Runs(monkeypatch) as runs:
            runs.start(tmp_path / "bridged.toml")
            eventually(lambda: bool(heard["head/compressed"]), "a picture at ROS")
            image = from_cdr(heard["head/compressed"][0], COMPRESSED)
            assert (image.format, image.header.frame_id) == ("jpeg", "head")

            def is_echoed() -> bool:
                side.session.put("speech", b"\0\1\0\0no string")
                side.session.put("speech", to_cdr(ros.std_msgs__msg__String("bring me the cup")))
                return bool(heard["echo"])

            eventually(is_echoed, "words from ROS, and back")
            assert {from_cdr(data, STRING).data for data in heard["echo"]} == {"bring me the cup"}
    finally:
        del kept
        side.close()


@pytest.mark.processes
def test_a_twist_drives_once_a_person_hands_over_the_seat_and_typed_words_reach_ros(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The launch file of docs/ros2.md."""
    side = ZenohSide()
    heard: dict[str, list[Any]] = {"odom": [], "words": []}
    kept = [
        side.session.declare_subscriber(key, lambda sample: heard[str(sample.key_expr)].append(sample.payload))
        for key in heard
    ]
    page = (Path(__file__).parents[3] / "docs" / "ros2.md").read_text()
    (teleop,) = [block for block in re.findall(r"```toml\n(.*?)```", page, re.DOTALL) if "[nodes.ros_teleop]" in block]
    rows = """
[nodes.ros]
use = "bridges.ros2.bridge:Ros2Bridge"
[nodes.ros.params]
at = "tcp/robot.local:7447"
to_ros = [
  { topic = "robot/state", ros = "/odom", type = "nav_msgs/msg/Odometry" },
  { topic = "heard", ros = "/words", type = "std_msgs/msg/String" },
]
"""
    graph = GUARDED.partition("[nodes.other]")[0].replace('memory = "run"', 'memory = "run", arm = "auto"')
    (tmp_path / "drives.toml").write_text((graph + rows + teleop).replace("tcp/robot.local:7447", side.at))

    def x_m() -> float:
        eventually(lambda: bool(heard["odom"]), "where the base is")
        return float(from_cdr(heard["odom"][-1].to_bytes(), "nav_msgs/msg/Odometry").pose.pose.position.x)

    def push() -> bool:
        twist = ros.geometry_msgs__msg__Twist(
            ros.geometry_msgs__msg__Vector3(0.2, 0.0, 0.0), ros.geometry_msgs__msg__Vector3(0.0, 0.0, 0.0)
        )
        side.session.put("teleop/cmd_vel", to_cdr(twist))
        return True

    try:
        with Runs(monkeypatch) as runs:
            run = runs.start(tmp_path / "drives.toml")
            count = len(heard["odom"])
            eventually(lambda: push() and len(heard["odom"]) > count + 50, "a second of it")
            assert x_m() == 0.0, "a shadow moves nothing"
            assert seat(["take", "policy", "--as", "ros_teleop", "--run", str(run.info.supervisor_pid)]) == 0
            eventually(lambda: push() and x_m() > 0.1, "it drives")
            assert say(["Good", "morning", "--wait", "0.2"]) == 0
            eventually(lambda: bool(heard["words"]), "words at ROS")
            assert from_cdr(heard["words"][0].to_bytes(), STRING).data == "Good morning"
    finally:
        del kept
        side.close()


def problems_of(tmp_path: Path, rows: str) -> list[str]:
    text = f'[nodes.ros]\nuse = "bridges.ros2.bridge:Ros2Bridge"\n[nodes.ros.params]\nat = "tcp/a:7447"\n{rows}\n'
    text += '[nodes.painter]\nuse = "tests.bridges.foxglove.painter:Painter"\n'
    (tmp_path / "x.toml").write_text(text)
    return [problem for _, problem in load(tmp_path / "x.toml").graph.problems()]


@pytest.mark.parametrize(
    "row",
    [
        '{ topic = "cmd", ros = "/cmd_vel", type = "geometry_msgs/msg/Twist" }',
        '{ topic = "cmd", ros = "/go", type = "control_msgs/action/FollowJointTrajectory" }',
        '{ topic = "said", ros = "/said", type = "my_msgs/msg/Strange" }',
        '{ topic = "said", ros = "/said" }',
        '{ topic = "said", ros = "/said", type = "std_msgs/msg/String", message = "os:path" }',
        '{ topic = "head/image", ros = "/i", type = "sensor_msgs/msg/Image", message = "nodes.msgs:Image" }',
    ],
)
def test_a_row_that_cannot_be_is_refused_where_it_stands(tmp_path: Path, row: str) -> None:
    with pytest.raises(LaunchFileError, match=r"nodes\.ros"):
        problems_of(tmp_path, f"to_ros = [{row}]")


@pytest.mark.parametrize(
    "rows",
    [
        'to_ros = [{ topic = "head/image", ros = "/joints", type = "sensor_msgs/msg/JointState" }]',  # of another type
        'from_ros = [{ ros = "/words", type = "std_msgs/msg/String", topic = "head/image" }]',
        'from_ros = [{ ros = "/image", type = "sensor_msgs/msg/Image", topic = "head/image" }]',  # two publishers
        'to_ros = [{ topic = "said", ros = "no name", type = "std_msgs/msg/String" }]',
        "",
    ],
)
def test_check_compares_the_tables_with_the_graph(tmp_path: Path, rows: str) -> None:
    assert problems_of(tmp_path, rows)


def test_rows_that_fit_have_no_problem(tmp_path: Path) -> None:
    rows = 'to_ros = [{ topic = "head/image", ros = "/i", type = "sensor_msgs/msg/Image" }]'
    assert not problems_of(tmp_path, rows)


def test_ros_does_not_wait_for_virtual_time(tmp_path: Path) -> None:
    rows = '[[nodes.ros.params.to_ros]]\ntopic = "said"\nros = "/said"\ntype = "std_msgs/msg/String"'
    (tmp_path / "x.toml").write_text(
        f'[nodes.ros]\nuse = "bridges.ros2.bridge:Ros2Bridge"\nparams.at = "tcp/a:1"\n{rows}\n'
    )
    with pytest.raises(ParameterError, match="virtual"):
        Simulation(load(tmp_path / "x.toml").graph).run(seconds=0.1)
