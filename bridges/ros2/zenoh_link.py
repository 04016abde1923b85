"""`ZenohLink`: ROS 2 topics and actions over Zenoh, as zenoh-bridge-ros2dds or rmw_zenoh has them; the only file that
imports `zenoh`, whose own threads call what has subscribed.

zenoh-bridge-ros2dds: the key is the topic's name, a service is a queryable of its name, the payload is CDR.
rmw_zenoh: the key is domain/topic/type/hash; each sample carries number, stamp and sender (33 bytes), and a liveliness
token tells the graph of each publisher and subscription.
"""

from __future__ import annotations

import secrets
import struct
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

import zenoh

from bridges.ros2.link import Heard, Tell
from nodes.recording.ros2_messages import cancel_all_request, from_cdr, to_cdr, trajectory_goal_request, type_hash
from runtime.clock import wall_time_ns
from runtime.errors import CodecError, UserError

CONNECT_MS = 5000
ANSWER_S = 2.0
ADMIN = "@ros2_lv"
NODE_NAME = "polyrhythm"


@dataclass(frozen=True, slots=True)
class _Advertised:
    publisher: Any
    numbers: Any
    sender: bytes


class ZenohLink:
    """`domain`: the ROS_DOMAIN_ID where rmw_zenoh is spoken; None: zenoh-bridge-ros2dds."""

    def __init__(self, at: str, domain: int | None, tell: Tell) -> None:
        self._at, self._domain, self._tell = at, domain, tell
        self._session: Any = None
        self._advertised: dict[str, _Advertised] = {}
        self._kept: list[Any] = []  # what zenoh would undeclare when nobody holds it
        self._entities = count(1)

    def open(self) -> None:
        """Connect as a client. Raises UserError where nobody answers at the address."""
        config = zenoh.Config()
        config.insert_json5("mode", '"client"')
        config.insert_json5("connect/endpoints", f'["{self._at}"]')
        config.insert_json5("connect/timeout_ms", str(CONNECT_MS))
        config.insert_json5("scouting/multicast/enabled", "false")
        try:
            self._session = zenoh.open(config)
        except zenoh.ZError as problem:
            raise UserError(
                f"nobody speaks Zenoh at {self._at} ({problem}); start zenoh-bridge-ros2dds there, or rmw_zenohd"
            ) from problem
        if self._domain is not None:
            self._declare_token("NN", "")

    def advertise(self, topic: str, ros_type: str, *, reliable: bool) -> None:
        """Declare the publisher, and where rmw_zenoh is spoken its token."""
        publisher = self._session.declare_publisher(
            topic_key(topic, ros_type, self._domain),
            congestion_control=zenoh.CongestionControl.BLOCK if reliable else zenoh.CongestionControl.DROP,
            priority=zenoh.Priority.DATA_HIGH if reliable else zenoh.Priority.DATA,
            reliability=zenoh.Reliability.RELIABLE if reliable else zenoh.Reliability.BEST_EFFORT,
        )
        self._advertised[topic] = _Advertised(publisher, count(1), secrets.token_bytes(16))
        if self._domain is not None:
            self._declare_token("MP", _endpoint(topic, ros_type, reliable=reliable))

    def publish(self, topic: str, value: Any) -> None:
        """Send; what is not reliable is dropped where the network is full."""
        one = self._advertised[topic]
        attachment = None if self._domain is None else attachment_of(next(one.numbers), wall_time_ns(), one.sender)
        try:
            one.publisher.put(to_cdr(value), attachment=attachment)
        except zenoh.ZError as problem:
            self._tell(f"send {topic}", f"{topic} is not sent to ROS ({problem})")

    def subscribe(self, topic: str, ros_type: str, heard: Heard) -> None:
        """Hear the topic; where rmw_zenoh is spoken, in any type, so that another one can be told of."""
        expected = topic_key(topic, ros_type, self._domain)
        wanted = expected if self._domain is None else f"{self._domain}/{topic.strip('/')}/*/*"

        def arrived(sample: Any) -> None:
            key = str(sample.key_expr)
            if key != expected:
                its_type, its_hash = key.rsplit("/", 2)[1:]
                self._tell(
                    f"type {topic} {key}",
                    f"{topic} comes from ROS as {its_type.replace('::', '/')} ({its_hash[:15]}...) and not as "
                    f"{ros_type}, as Humble has it; it is left out",
                )
                return
            try:
                value = from_cdr(sample.payload.to_bytes(), ros_type)
            except CodecError as problem:
                self._tell(f"cdr {topic}", f"{topic} from ROS holds {problem}; it is left out")
                return
            heard(value)

        self._kept.append(self._session.declare_subscriber(wanted, arrived))
        if self._domain is not None:
            self._declare_token("MS", _endpoint(topic, ros_type, reliable=True))

    def send_goal(self, action: str, goal: Any, refused: Callable[[str], None]) -> None:
        """A query of the action's send_goal. Over rmw_zenoh it is not offered: see docs/ros2.md."""
        request = trajectory_goal_request(uuid.uuid4().bytes, goal)

        def answered(reply: Any) -> None:
            if reply.ok is None:
                refused(f"{action}: {reply.err.payload.to_string()}")
                return
            try:
                answer = from_cdr(reply.ok.payload.to_bytes(), "control_msgs/msg/FollowJointTrajectorySendGoalResponse")
            except CodecError as problem:
                refused(f"{action} answers with {problem}")
                return
            if not answer.accepted:
                refused(f"{action} does not take the goal")

        self._query(f"{action}/_action/send_goal", to_cdr(request), answered)

    def cancel_goals(self, action: str) -> None:
        """Cancel all goals: id and stamp of zero, as action_msgs has it."""
        self._query(f"{action}/_action/cancel_goal", to_cdr(cancel_all_request()), lambda _: None)

    def close(self) -> None:
        """Close the session, and with it all that it declared."""
        session, self._session = self._session, None
        self._kept.clear()
        self._advertised.clear()
        if session is not None:
            session.close()

    def _query(self, service: str, payload: bytes, answered: Callable[[Any], None]) -> None:
        try:
            self._session.get(service.strip("/"), answered, payload=payload, timeout=ANSWER_S)
        except zenoh.ZError as problem:
            self._tell(f"query {service}", f"{service} is not asked ({problem})")

    def _declare_token(self, kind: str, endpoint: str) -> None:
        zid = self._session.info.zid()
        number = 0 if kind == "NN" else next(self._entities)
        key = f"{ADMIN}/{self._domain}/{zid}/0/{number}/{kind}/%/%/{NODE_NAME}{endpoint}"
        self._kept.append(self._session.liveliness().declare_token(key))


def topic_key(topic: str, ros_type: str, domain: int | None) -> str:
    """The key expression of a topic. Raises CodecError for a type that nobody here knows."""
    name = topic.strip("/")
    return name if domain is None else f"{domain}/{name}/{dds_name(ros_type)}/{type_hash(ros_type)}"


def dds_name(ros_type: str) -> str:
    """`std_msgs/msg/String` as DDS calls it: `std_msgs::msg::dds_::String_`."""
    package, middle, name = ros_type.split("/")
    return f"{package}::{middle}::dds_::{name}_"


def attachment_of(number: int, stamp_ns: int, sender: bytes) -> bytes:
    """What rmw_zenoh expects beside each sample: number, source time and sender, as zenoh-ext serialises them."""
    return struct.pack("<qqB", number, stamp_ns, len(sender)) + sender


def _endpoint(topic: str, ros_type: str, *, reliable: bool) -> str:
    """The end of a token: what is not its default is written (reliability 2: best effort; history: keep last, 10)."""
    qos = f"{'' if reliable else 2}::,10:,:,:,,"
    return f"/{topic.replace('/', '%')}/{dds_name(ros_type)}/{type_hash(ros_type)}/{qos}"
