"""`Link`: a way into a running ROS 2, by Zenoh or by rosbridge; and which of them an address asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol, get_args

from runtime.errors import UserError

Speaks = Literal["ros2dds", "rmw_zenoh", "rmw_zenoh_humble", "rosbridge"]
"""zenoh-bridge-ros2dds, rmw_zenoh (0.2.4 and later; Humble's writes no hashes), or rosbridge's JSON on a websocket."""
GRAPH_S = 1.0
"""How long is waited for what the graph of ROS tells of itself."""

Tell = Callable[[str, str], None]
"""Takes a key and a sentence; a node says the sentence of a key once."""
Heard = Callable[[Any], None]
"""Takes a ROS message, in a thread of the link."""

Answered = Callable[[Any, str], None]
"""Takes the answer, or None and why there is none; in a thread of the link."""

TWISTS = ("geometry_msgs/msg/Twist", "geometry_msgs/msg/TwistStamped")
TRAJECTORY = "control_msgs/action/FollowJointTrajectory"


class Link(Protocol):
    """A connection that comes back by itself. What arrives is told in a thread of the link; nothing here blocks."""

    def open(self) -> None:
        """Connect. Raises UserError in words where that cannot be."""
        ...

    def advertise(self, topic: str, ros_type: str, *, reliable: bool, latched: bool = False) -> None:
        """Say that this will be published; what is not reliable may be dropped on the way.

        Of what is latched (transient local) a subscriber that comes later hears the newest.
        """
        ...

    def publish(self, topic: str, value: Any) -> None:
        """Send a message of an advertised topic; the oldest that waits is dropped where ROS does not keep up."""
        ...

    def subscribe(self, topic: str, ros_type: str, heard: Heard, *, latched: bool = False) -> None:
        """Call for each message; one that is not of that type is told, once, and left out.

        `latched`: also for the newest that was published before.
        """
        ...

    def call(self, service: str, request: Any, answered: Answered) -> None:
        """Ask a service of ROS; `request` is one of nodes.recording.ros2_messages.SERVICES."""
        ...

    def send_goal(self, action: str, goal: Any, refused: Callable[[str], None]) -> None:
        """A goal of FollowJointTrajectory, which takes the place of the one before."""
        ...

    def cancel_goals(self, action: str) -> None:
        """End what the action is doing."""
        ...

    def graph_types(self) -> dict[str, set[str]]:
        """By topic, the types that ROS hears or has it in, where the graph tells; within GRAPH_S."""
        ...

    def close(self) -> None:
        """Let go; may be called again."""
        ...


def type_problem(topic: str, ros_type: str, graph: Mapping[str, set[str]]) -> str:
    """Return in a sentence that ROS has the topic in another type; "" where it does not say so."""
    others = graph.get(topic, set()) - {ros_type}
    if not others or ros_type in graph.get(topic, set()):
        return ""
    return f"{topic} is {', '.join(sorted(others))} in ROS and {ros_type} here, so nobody there hears it"


def link_problem(at: str, speaks: str, domain: int) -> str:
    """Return in a sentence what is wrong with an address; "" where nothing is."""
    if speaks not in get_args(Speaks):
        return f"speaks is {speaks!r}; known: {', '.join(get_args(Speaks))}"
    if not 0 <= domain <= 232:
        return f"domain is {domain}; expected a ROS_DOMAIN_ID, 0 to 232"
    starts = ("ws://", "wss://") if speaks == "rosbridge" else ("tcp/", "tls/", "udp/", "quic/")
    example = "ws://robot.local:9090" if speaks == "rosbridge" else "tcp/robot.local:7447"
    if not at.startswith(starts) or ":" not in at.rpartition("/")[2]:
        return f"at is {at!r}; {speaks} expects an address such as {example!r}"
    return ""


def open_link(at: str, speaks: str, domain: int, tell: Tell) -> Link:
    """Open a connection. Raises UserError where there is none, or its library is not installed."""
    if problem := link_problem(at, speaks, domain):
        raise UserError(problem)
    link: Link
    if speaks == "rosbridge":
        from bridges.ros2.rosbridge import RosbridgeLink

        link = RosbridgeLink(at, tell)
    else:
        from bridges.ros2.zenoh_link import ZenohLink

        link = ZenohLink(at, None if speaks == "ros2dds" else domain, tell, has_hashes=speaks != "rmw_zenoh_humble")
    link.open()
    return link
