"""A robot of ROS behind our protocol: what the guard lets through goes out, a stop cancels, silence is noticed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest
from msgspec import structs

from tests.support.sentences import pattern, sentence

pytest.importorskip("rosbags", reason="needs the extra ros2")
pytest.importorskip("zenoh", reason="needs the extra ros2")
pytest.importorskip("roslibpy", reason="needs roslibpy, a client of rosbridge that others wrote")

from bridges.ros2.link import TWISTS, open_link
from bridges.ros2.robot import Ros2Robot
from nodes.msgs import JointCommand
from nodes.recording.ros2_messages import (
    BaseValues,
    JointValues,
    joint_state,
    odometry,
    robot_state,
    ros,
    stamp_ns_of,
    to_cdr,
    twist,
)
from nodes.robot.protocol import RobotError
from nodes.stretch.limits import STRETCH_4
from runtime.clock import SystemClock
from runtime.errors import CodecError, ParameterError
from tests.bridges.ros2.ros_side import ACTION, DOMAIN, HOME, RUNSTOP, STOW, RosbridgeSide, RosSide, ZenohSide
from tests.support.ports import free_ports
from tests.support.running import eventually
from tests.support.standing import standing

pytestmark = pytest.mark.processes

TARGET = (0.5, 0.1, 0.2, 0.3, 0.4, 0.05, 0.6, 0.0)


@pytest.fixture(params=["ros2dds", "rmw_zenoh", "rmw_zenoh_humble", "rosbridge"])
def side(request: pytest.FixtureRequest) -> Iterator[RosSide]:
    made: RosSide = RosbridgeSide() if request.param == "rosbridge" else ZenohSide(request.param)
    try:
        yield made
    finally:
        made.close()


def robot_at(side: RosSide) -> Ros2Robot:
    speaks = getattr(side, "speaks", "rosbridge")
    return Ros2Robot(
        side.at, speaks=speaks, domain=DOMAIN, trajectory=ACTION, names="lift=joint_lift", odom="", home=HOME,
        stow=STOW, runstop=RUNSTOP,
    )  # fmt: skip


def test_commands_go_out_a_stop_cancels_and_silence_is_a_lost_robot(side: RosSide) -> None:
    clock = SystemClock()
    robot = robot_at(side)
    robot.start(clock.now_ns())
    try:
        state = robot.read(clock.now_ns())
        assert state.position == pytest.approx([n / 10 for n in range(8)])
        assert not [what for what, _ in side.seen if what in ("velocity", "goal", "cancel")], "a start moves nothing"

        def drive() -> None:
            robot.advance(clock.now_ns())
            robot.command(JointCommand(position=TARGET, base_v_mps=0.1, base_w_radps=-0.05))

        def came(what: str, value: Any) -> bool:
            drive()
            return any(kind == what and found == pytest.approx(value, abs=1e-6) for kind, found in side.seen)

        eventually(lambda: came("velocity", (0.1, -0.05)), "the base's velocity")
        eventually(lambda: came("goal", TARGET), "the joints' goal")
        assert robot.status(clock.now_ns()).alerts == ()
        with pytest.raises(ValueError, match="finite"):
            robot.command(JointCommand(position=(float("nan"), *TARGET[1:])))
        robot.stop()
        eventually(lambda: ("cancel", 0) in side.seen, "the goal is cancelled")
        eventually(lambda: ("velocity", (0.0, 0.0)) in side.seen, "the base is told to stand")

        side.is_silent = True

        def is_lost() -> bool:
            robot.advance(clock.now_ns())
            return robot.status(clock.now_ns()).mode == "lost"

        eventually(is_lost, "silence is noticed")
        before = len(side.seen)
        drive()
        assert [what for what, _ in side.seen[before:] if what == "goal"] == [], "a lost robot is sent nowhere"
    finally:
        robot.close()


def test_a_pressed_runstop_lets_nothing_through(side: RosSide) -> None:
    clock = SystemClock()
    robot = robot_at(side)
    robot.start(clock.now_ns())
    try:
        robot.runstop(True)
        robot.advance(clock.now_ns())
        robot.command(JointCommand(position=TARGET, base_v_mps=0.1))
        assert robot.status(clock.now_ns()).mode == "runstopped"
        eventually(lambda: ("velocity", (0.0, 0.0)) in side.seen, "the base is told to stand")
        assert not [value for what, value in side.seen if what == "goal" or (what == "velocity" and value[0])]
        eventually(lambda: ("service", (RUNSTOP, True)) in side.seen, "the robot's own runstop is pressed")
        with pytest.raises(RobotError, match="release it first"):
            robot.home()
        robot.runstop(False)
        robot.home()
        eventually(lambda: ("service", (HOME, None)) in side.seen, "it was told to home")
        with pytest.raises(RobotError, match="refuses: not now"):
            robot.stow()
    finally:
        robot.close()


def test_a_robot_with_other_joints_is_refused_by_their_names() -> None:
    side = ZenohSide()
    try:
        robot = Ros2Robot(side.at, odom="")  # which would call it lift
        with pytest.raises(RobotError, match="lift"):
            robot.start(SystemClock().now_ns())
    finally:
        side.close()


@pytest.mark.parametrize("at", ["tcp/127.0.0.1", "ws://127.0.0.1"])
def test_nobody_at_the_address_is_a_sentence(at: str) -> None:
    robot = Ros2Robot(f"{at}:{free_ports(1)}", speaks="rosbridge" if at.startswith("ws") else "rmw_zenoh")
    with pytest.raises(RobotError, match="start "):
        robot.start(SystemClock().now_ns())


@pytest.mark.parametrize(
    "parameters",
    [
        {"at": "robot.local"},
        {"at": "tcp/a:1", "speaks": "dds"},
        {"at": "tcp/a:1", "domain": 400},
        {"at": "tcp/a:1", "names": "knee=joint_knee"},
    ],
)
def test_parameters_that_cannot_be_are_refused_before_a_start(parameters: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        Ros2Robot(**parameters)


def test_rmw_zenoh_carries_both_ways_and_a_type_that_changed_is_told() -> None:
    side = ZenohSide()
    told: list[str] = []
    links = [open_link(side.at, "rmw_zenoh", 3, lambda _, words: told.append(words)) for _ in range(2)]
    try:
        heard: list[Any] = []
        links[0].subscribe("/chatter", "std_msgs/msg/String", heard.append)
        links[1].advertise("/chatter", "std_msgs/msg/String", reliable=True)

        def said() -> bool:
            links[1].publish("/chatter", ros.std_msgs__msg__String("hello"))
            return bool(heard)

        eventually(said, "a word over rmw_zenoh's keys")
        assert heard[0].data == "hello"
        tokens = [str(reply.ok.key_expr) for reply in side.session.liveliness().get("@ros2_lv/3/**") if reply.ok]
        assert sorted(token.split("/")[5] for token in tokens) == ["MP", "MS", "NN", "NN"]

        def is_told() -> bool:
            side.session.put("3/chatter/geometry_msgs::msg::dds_::Twist_/RIHS01_0", to_cdr(twist(0.0, 0.0)))
            return any("Twist" in words for words in told)

        eventually(is_told, "another type is told")
        before = len(heard)
        eventually(lambda: said() and len(heard) > before, "the right type goes on")
    finally:
        for link in links:
            link.close()
        side.close()


@pytest.mark.parametrize("speaks", ["ros2dds", "rmw_zenoh"])
def test_who_comes_later_hears_what_was_latched(speaks: str) -> None:
    side = ZenohSide()
    links = [open_link(side.at, speaks, 3, lambda *_: None) for _ in range(2)]
    try:
        links[0].advertise("/robot_description", "std_msgs/msg/String", reliable=True, latched=True)
        links[0].publish("/robot_description", ros.std_msgs__msg__String("<robot/>"))
        heard: list[Any] = []
        links[1].subscribe("/robot_description", "std_msgs/msg/String", heard.append, latched=True)
        eventually(lambda: [one.data for one in heard] == ["<robot/>"], "what was said before")
    finally:
        for link in links:
            link.close()
        side.close()


def test_a_service_that_nobody_offers_is_a_sentence() -> None:
    side = ZenohSide()
    try:
        robot = Ros2Robot(side.at, names="lift=joint_lift", odom="", home="/nowhere")
        robot.start(SystemClock().now_ns())
        with pytest.raises(RobotError, match="names no service"):
            robot.stow()
        with pytest.raises(RobotError, match=pattern("bridges.nobody_answers", service="/nowhere")):
            robot.home()
        robot.close()
    finally:
        side.close()


def test_a_type_that_nobody_knows_is_refused() -> None:
    side = ZenohSide()
    link = open_link(side.at, "rmw_zenoh", 0, lambda *_: None)
    try:
        with pytest.raises(CodecError):
            link.advertise("/x", "my_msgs/msg/Strange", reliable=False)
    finally:
        link.close()
        side.close()


class Wire:
    """A link that keeps what is published, and hears one joint state and one pose."""

    def __init__(self) -> None:
        self.twists: list[Any] = []

    def subscribe(self, topic: str, ros_type: str, heard: Any) -> None:
        if "joint" in topic:
            names = tuple(joint.name for joint in STRETCH_4.joints)
            heard(joint_state(1_000, names, (0.1,) * 6, (0.0,) * 6, (0.0,) * 6))
        else:
            state = standing(0, (0.1,) * 6)
            heard(odometry(1_000, structs.replace(cast(Any, state), base_vy_mps=0.25)))

    def advertise(self, *_: Any, **__: Any) -> None:
        """Nothing to tell."""

    def graph_types(self) -> dict[str, set[str]]:
        return {}

    def publish(self, topic: str, message: Any) -> None:
        self.twists.append(message)

    def close(self) -> None:
        """Nothing to let go of."""


@pytest.mark.parametrize(("limits", "heard", "sent"), [("STRETCH_4", 0.25, (0.1, 0.2)), ("STRETCH_3", 0.0, (0.1, 0.0))])
def test_a_way_sideways_goes_both_ways_where_the_base_has_one(
    limits: str, heard: float, sent: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    wire, clock = Wire(), SystemClock()
    monkeypatch.setattr("bridges.ros2.robot.open_link", lambda *_: wire)
    names = "" if limits == "STRETCH_4" else "head_pan=arm, head_tilt=lift"
    robot = Ros2Robot("tcp/127.0.0.1:1", limits=f"nodes.stretch.limits:{limits}", names=names)
    robot.start(clock.now_ns())
    try:
        state = robot.read(clock.now_ns())
        assert state.base_vy_mps == heard
        robot.command(JointCommand(position=state.position, base_v_mps=0.1, base_vy_mps=0.4))
        assert (wire.twists[-1].linear.x, wire.twists[-1].linear.y) == pytest.approx(sent)
    finally:
        robot.close()


def test_a_base_gets_the_twist_that_ros_hears_and_one_that_stands_is_told() -> None:
    side = ZenohSide("rmw_zenoh")
    clock, heard = SystemClock(), list[Any]()
    link = open_link(side.at, "rmw_zenoh", DOMAIN, lambda *_: None)
    try:
        link.subscribe("/base/cmd_vel", TWISTS[1], heard.append)
        link.subscribe("/odd/cmd_vel", "std_msgs/msg/String", heard.append)
        eventually(lambda: len(link.graph_types()) > 1, "the graph tells of who listens")
        parameters: dict[str, Any] = {"speaks": "rmw_zenoh", "domain": DOMAIN, "names": "lift=joint_lift"}
        with pytest.raises(RobotError, match="std_msgs/msg/String"):
            Ros2Robot(side.at, cmd_vel="/odd/cmd_vel", **parameters).start(clock.now_ns())
        robot = Ros2Robot(side.at, cmd_vel="/base/cmd_vel", **parameters)
        robot.start(clock.now_ns())

        def drives() -> tuple[str, ...]:
            robot.advance(clock.now_ns())
            robot.command(JointCommand(position=TARGET, base_v_mps=0.1))
            return robot.status(clock.now_ns()).alerts

        def is_heard() -> bool:
            assert drives() == ()
            return bool(heard)

        eventually(is_heard, "a stamped twist")
        assert heard[0].twist.linear.x == pytest.approx(0.1)
        assert stamp_ns_of(heard[0].header) > 0
        odom = side.key("/odom", "nav_msgs/msg/Odometry")
        there = robot_state(0, JointValues((), (), ()), BaseValues(x_m=1.0))
        side.session.put(odom, to_cdr(odometry(0, there)))
        eventually(lambda: drives() != () or robot.read(clock.now_ns()).base_x_m == 1.0, "it has moved")
        moved_ns = clock.now_ns()
        eventually(lambda: sentence("bridges.base_stands") in "".join(drives()), "a base that stands is told")
        assert clock.since_s(moved_ns) > 0.9, "it moved meanwhile"
        robot.close()
    finally:
        link.close()
        side.close()
