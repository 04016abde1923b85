"""`Ros2Bridge`: topics of a graph to ROS 2 and back, by two tables of the launch file. docs/ros2.md has an example.

What it sends and hears is checked before a run: each row's type of ROS says which message of ours its topic has. It
moves nothing: commands go to ROS by `bridges.ros2.robot:Ros2Robot`, behind the guard.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Self

import msgspec

from bridges.ros2.conversions import (
    COMMANDS,
    FROM_ROS,
    STRING,
    TO_ROS,
    Arrived,
    FromRosRow,
    ToRosRow,
    our_stamp,
)
from bridges.ros2.link import TWISTS, Link, link_problem, open_link, type_problem
from nodes.msgs import JOINTS, RobotState
from nodes.recording.foxglove.typed_topics import TypedTopics
from nodes.robot.robot_from_launch import ForRobot, joint_names, load_limits
from runtime import (
    Message,
    Node,
    ParameterError,
    Publisher,
    QoS,
    Stamped,
    Subscription,
    UserError,
    every,
    needs_real_time,
    on,
    wall_time_ns,
)
from runtime.launch.tables.nodes_table import load_name

MOST_WAITING = 50
_ROS_NAME = re.compile(r"/[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*")


class Ros2Bridge(ForRobot, Node):
    """Connects to ROS 2 at `at`, which `speaks` one of ros2dds, rmw_zenoh, rosbridge; `domain` is for rmw_zenoh.

    Events are sent reliably, states by best effort. `limits` names the robot's, from `[run] robot`: joints are called
    as they do.
    """

    robot_parameter = "limits"
    robot: ClassVar[Subscription[RobotState]]  # where a row takes in a twist: the joints stay where they are

    def __init__(
        self,
        at: str,
        speaks: str = "ros2dds",
        domain: int = 0,
        to_ros: list[ToRosRow] | None = None,
        from_ros: list[FromRosRow] | None = None,
        limits: str = "",
    ) -> None:
        self.at, self.speaks, self.domain = at, speaks, domain
        self.to_ros, self.from_ros = tuple(to_ros or ()), tuple(from_ros or ())
        self._joints = joint_names(load_limits(limits)) if limits else JOINTS
        self._link: Link | None = None
        self._arrived: deque[tuple[FromRosRow, Any, int]] = deque(maxlen=MOST_WAITING)
        self._told: set[str] = set()
        self._typed = TypedTopics(limits, self._joints, {}, wall_offset_ns=0, tell=lambda said: self._tell(said, said))

    @classmethod
    def with_ports(cls, params: Mapping[str, Any]) -> type[Self]:
        """The class with a subscription for each of our topics in `to_ros`, a publisher for each of `from_ros`."""
        ports: dict[str, Any] = {}
        for row in _rows(params, "to_ros", list[ToRosRow]):
            attribute = f"to_ros_{row.topic.replace('/', '_')}"
            message = _message_of(row)
            if attribute in ports and ports[attribute].message is not message:
                raise ParameterError(
                    f"to_ros: {row.topic!r} is {ports[attribute].message.__name__} in one row and {message.__name__} "
                    f"in that of {row.type}; a topic has one type"
                )
            ports.setdefault(attribute, Subscription(message, row.topic, qos=QoS(required=False)))
        handlers = {f"send_{name}": _sender(port) for name, port in ports.items()}
        for back in _rows(params, "from_ros", list[FromRosRow]):
            if back.type not in FROM_ROS:
                raise ParameterError(
                    f"from_ros: {back.type!r} cannot be taken in; known: {', '.join(sorted(FROM_ROS))}"
                )
            attribute = f"from_ros_{back.topic.replace('/', '_')}"
            if attribute in ports:
                raise ParameterError(f"from_ros: {back.topic!r} has two rows; merge them in ROS, or name another topic")
            ports[attribute] = Publisher(FROM_ROS[back.type][0], back.topic)
            if back.type in TWISTS:
                ports["robot"] = Subscription(RobotState, "robot/state", qos=QoS(lifespan_s=0.5, required=False))
                ports["seat"] = "policy"
        return type(cls.__name__, (cls,), {**ports, **handlers, "__module__": cls.__module__, "__doc__": cls.__doc__})

    def problems(self) -> list[str]:
        """Return in sentences what is wrong with the address or with names of ROS."""
        found = [problem] if (problem := link_problem(self.at, self.speaks, self.domain)) else []
        if not self.to_ros and not self.from_ros:
            found.append("neither to_ros nor from_ros has a row, so it would do nothing; docs/ros2.md has an example")
        for name in (*(row.ros for row in self.to_ros), *(row.ros for row in self.from_ros)):
            if not _ROS_NAME.fullmatch(name):
                found.append(f"{name!r} is no name of a ROS topic; expected one such as '/camera/image'")
        echoed = {row.ros for row in self.to_ros} & {row.ros for row in self.from_ros}
        found.extend(f"{name} is sent to ROS and taken from it, which would go round for ever" for name in echoed)
        return found

    def on_start(self) -> None:
        """Connect. Raises ParameterError in virtual time."""
        needs_real_time(self, "ROS", "without this node")
        self._typed.wall_offset_ns = wall_time_ns() - self.clock.now_ns()
        link = self._link = open_link(self.at, self.speaks, self.domain, self._tell)
        graph = link.graph_types() if self.to_ros else {}
        for row in self.to_ros:
            reliable = row.latched or _message_of(row).message_kind == "event"
            link.advertise(row.ros, row.type, reliable=reliable, latched=row.latched)
            if problem := type_problem(row.ros, row.type, graph):
                self._tell(f"type {row.ros}", problem)
        for back in self.from_ros:
            link.subscribe(back.ros, back.type, partial(self._take, back), latched=back.latched)

    def on_stop(self) -> None:
        """Leave ROS."""
        if self._link is not None:
            self._link.close()

    def send(self, stamped: Stamped[Message], declared: str) -> None:
        """Send a message of ours as each row of the table says; `declared` is its topic in the table."""
        if self._link is None:
            return
        for row in self.to_ros:
            if row.topic == declared:
                self._link.publish(row.ros, TO_ROS[row.type][1](stamped, self._typed))

    @every(hz=100)
    def hand_on(self) -> None:
        """Publish what came from ROS."""
        while self._arrived:
            row, value, came_ns = self._arrived.popleft()
            offset_ns = self._typed.wall_offset_ns
            state = self.robot.latest() if row.type in TWISTS else None
            message = FROM_ROS[row.type][1](Arrived(value, came_ns, offset_ns, self._joints, state))
            if message is None:
                self._tell(f"kind {row.ros}", f"{row.ros} holds what cannot be taken in as {row.type}; it is left out")
                continue
            head = getattr(value, "header", None)
            if head is not None and our_stamp(_wall_ns(head), came_ns, offset_ns) == came_ns:
                self._tell(
                    f"clock {row.ros}",
                    f"{row.ros}: its stamps are more than a second from this machine's clock; when a message came is "
                    "taken instead (chrony or ptp brings clocks together)",
                )
            port: Publisher[Any] = getattr(self, f"from_ros_{row.topic.replace('/', '_')}")
            port.publish(message, stems_from=())

    def _take(self, row: FromRosRow, value: Any) -> None:
        """In a thread of the link."""
        self._arrived.append((row, value, self.clock.now_ns()))

    def _tell(self, key: str, sentence: str) -> None:
        if key not in self._told and len(self._told) < 1000:
            self._told.add(key)
            self.log.warning("%s", sentence)


def _wall_ns(head: Any) -> int:
    from nodes.recording.ros2_messages import stamp_ns_of

    return stamp_ns_of(head)


def _sender(port: Subscription[Any]) -> Any:
    """A handler that sends what one port hears; in a thread, as packing pictures and a full network take time."""
    declared = port.topic

    def send(self: Ros2Bridge, stamped: Stamped[Message]) -> None:
        self.send(stamped, declared)

    return on(port, blocking=True)(send)


def _rows(params: Mapping[str, Any], key: str, kind: Any) -> Any:
    try:
        return msgspec.convert(params.get(key, []), kind)
    except msgspec.ValidationError as problem:
        raise ParameterError(f"parameter {key!r}: {problem}") from problem


def _message_of(row: ToRosRow) -> type[Message]:
    """Our message of a row. Raises ParameterError where its ROS type is none that we make."""
    if row.type in COMMANDS:
        raise ParameterError(
            f"to_ros: {row.type} moves a robot and goes to ROS only behind the guard: give [nodes.driver] the robot "
            "bridges.ros2.robot:Ros2Robot"
        )
    if row.type not in TO_ROS:
        raise ParameterError(f"to_ros: {row.type!r} is not made here; known: {', '.join(sorted(TO_ROS))}")
    if not row.message:
        return TO_ROS[row.type][0]
    if row.type != STRING:
        raise ParameterError(f"to_ros: {row.topic!r} has a `message`, which only {STRING} takes (as JSON)")
    found = load_name(row.message)
    if not (isinstance(found, type) and issubclass(found, Message)):
        raise UserError(f"to_ros: message {row.message!r} is no message; expected one such as 'nodes.msgs:GuardState'")
    return found
