"""`ZenohLink`: ROS 2 topics and actions over Zenoh, as zenoh-bridge-ros2dds or rmw_zenoh has them; the only file that
imports `zenoh`, whose own threads call what has subscribed.

zenoh-bridge-ros2dds: the key is the topic's name, a service is a queryable of its name, the payload is CDR.
rmw_zenoh: the key is domain/topic/type/hash, of services too; each sample and request carries number, stamp and sender
(33 bytes), and a liveliness token tells the graph of each publisher, subscription and client.
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
from zenoh import ext as zenoh_ext

from bridges.ros2.link import GRAPH_S, Answered, Heard, Tell
from nodes.recording.ros2_messages import (
    CANCEL,
    SEND_GOAL,
    cancel_all_request,
    from_cdr,
    service_of,
    to_cdr,
    trajectory_goal_request,
    type_hash,
)
from runtime.clock import wall_time_ns
from runtime.errors import CodecError, UserError

CONNECT_MS = 5000
GOAL_S, SERVICE_S = 2.0, 120.0
"""How long an answer may take: a goal is taken or refused at once, homing is a service that answers when it is done."""
ADMIN = "@ros2_lv"
_KIND_PART, _TYPE_PART = 5, 10
"""Where in a token's key these stand, in parts between slashes."""
NODE_NAME = "polyrhythm"
NO_HASH = "TypeHashNotSupported"
"""What Humble's rmw_zenoh writes for a hash: its types have none."""


@dataclass(frozen=True, slots=True)
class _Advertised:
    publisher: Any
    numbers: Any
    sender: bytes


class ZenohLink:
    """`domain`: the ROS_DOMAIN_ID where rmw_zenoh is spoken; None: zenoh-bridge-ros2dds."""

    def __init__(self, at: str, domain: int | None, tell: Tell, *, has_hashes: bool = True) -> None:
        self._at, self._domain, self._tell, self._has_hashes = at, domain, tell, has_hashes
        self._asked = count(1)
        self._sender = secrets.token_bytes(16)
        self._clients: set[str] = set()
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
        config.insert_json5("timestamping/enabled", "true")  # what is latched is kept in its order
        try:
            self._session = zenoh.open(config)
        except zenoh.ZError as problem:
            raise UserError(
                f"nobody speaks Zenoh at {self._at} ({str(problem).partition(' at /')[0]}); start zenoh-bridge-ros2dds "
                "there, or rmw_zenohd"
            ) from problem
        if self._domain is not None:
            self._declare_token("NN", "")

    def advertise(self, topic: str, ros_type: str, *, reliable: bool, latched: bool = False) -> None:
        """Declare the publisher, and where rmw_zenoh is spoken its token; what is latched keeps its newest sample."""
        key = self._key(topic, ros_type)
        publisher = (
            zenoh_ext.declare_advanced_publisher(
                self._session, key, cache=zenoh_ext.CacheConfig(max_samples=1), publisher_detection=True
            )
            if latched
            else self._plain_publisher(key, reliable=reliable)
        )
        self._advertised[topic] = _Advertised(publisher, count(1), secrets.token_bytes(16))
        if self._domain is not None:
            self._declare_token("MP", self._endpoint(topic, ros_type, reliable=reliable, latched=latched))

    def _plain_publisher(self, key: str, *, reliable: bool) -> Any:
        return self._session.declare_publisher(
            key,
            congestion_control=zenoh.CongestionControl.BLOCK if reliable else zenoh.CongestionControl.DROP,
            priority=zenoh.Priority.DATA_HIGH if reliable else zenoh.Priority.DATA,
            reliability=zenoh.Reliability.RELIABLE if reliable else zenoh.Reliability.BEST_EFFORT,
        )

    def publish(self, topic: str, value: Any) -> None:
        """Send; what is not reliable is dropped where the network is full."""
        one = self._advertised[topic]
        attachment = None if self._domain is None else attachment_of(next(one.numbers), wall_time_ns(), one.sender)
        try:
            one.publisher.put(to_cdr(value), attachment=attachment)
        except zenoh.ZError as problem:
            self._tell(f"send {topic}", f"{topic} is not sent to ROS ({problem})")

    def subscribe(self, topic: str, ros_type: str, heard: Heard, *, latched: bool = False) -> None:
        """Hear the topic; where rmw_zenoh is spoken, in any type, so that another one can be told of."""
        expected = self._key(topic, ros_type)
        wanted = expected if self._domain is None else f"{self._domain}/{topic.strip('/')}/*/*"

        def arrived(sample: Any) -> None:
            key = str(sample.key_expr)
            if key != expected:
                its_type, its_hash = key.rsplit("/", 2)[1:]
                self._tell(
                    f"type {topic} {key}",
                    f"{topic} comes from ROS as {its_type.replace('::', '/')} ({its_hash[:15]}...) and not as "
                    f"{ros_type}, as this end expects it; it is left out (of Humble speaks rmw_zenoh_humble)",
                )
                return
            try:
                value = from_cdr(sample.payload.to_bytes(), ros_type)
            except CodecError as problem:
                self._tell(f"cdr {topic}", f"{topic} from ROS holds {problem}; it is left out")
                return
            heard(value)

        if latched:
            history = zenoh_ext.HistoryConfig(detect_late_publishers=True, max_samples=1)
            self._kept.append(zenoh_ext.declare_advanced_subscriber(self._session, wanted, arrived, history=history))
        else:
            self._kept.append(self._session.declare_subscriber(wanted, arrived))
        if self._domain is not None:
            self._declare_token("MS", self._endpoint(topic, ros_type, reliable=True, latched=latched))

    def send_goal(self, action: str, goal: Any, refused: Callable[[str], None]) -> None:
        """Call the action's send_goal."""

        def answered(answer: Any, why: str) -> None:
            if answer is None or not answer.accepted:
                refused(why or f"{action} does not take the goal")

        request = trajectory_goal_request(uuid.uuid4().bytes, goal)
        self._call(f"{action}/_action/send_goal", SEND_GOAL, request, answered)

    def cancel_goals(self, action: str) -> None:
        """Cancel all goals: id and stamp of zero, as action_msgs has it."""
        self._call(f"{action}/_action/cancel_goal", CANCEL, cancel_all_request(), lambda answer, why: None)

    def call(self, service: str, request: Any, answered: Answered) -> None:
        """A query of the service."""
        self._call(service, service_of(request), request, answered, SERVICE_S)

    def graph_types(self) -> dict[str, set[str]]:
        """By the tokens of rmw_zenoh's subscriptions; zenoh-bridge-ros2dds tells nothing of types."""
        found: dict[str, set[str]] = {}
        if self._domain is None:
            return found
        for reply in self._session.liveliness().get(f"{ADMIN}/{self._domain}/**", timeout=GRAPH_S):
            parts = str(reply.ok.key_expr).split("/") if reply.ok is not None else []
            if len(parts) > _TYPE_PART and parts[_KIND_PART] == "MS":
                found.setdefault(parts[_TYPE_PART - 1].replace("%", "/"), set()).add(ros_name(parts[_TYPE_PART]))
        return found

    def close(self) -> None:
        """Close the session, and with it all that it declared."""
        session, self._session = self._session, None
        self._kept.clear()
        self._advertised.clear()
        if session is not None:
            session.close()

    def _call(
        self, service: str, service_type: str, request: Any, answered: Answered, within_s: float = GOAL_S
    ) -> None:
        """Query the service; rmw_zenoh wants to know who asks, and asks of servers that are complete."""
        key, more = self._key(service, service_type), {}
        if self._domain is not None:
            if service not in self._clients:
                self._clients.add(service)
                self._declare_token("SC", self._endpoint(service, service_type, reliable=True, latched=False))
            more = {
                "target": zenoh.QueryTarget.ALL_COMPLETE,
                "consolidation": zenoh.ConsolidationMode.NONE,
                "attachment": attachment_of(next(self._asked), wall_time_ns(), self._sender),
            }
        is_answered = False

        def replied(reply: Any) -> None:
            nonlocal is_answered
            is_answered = True
            if reply.ok is None:
                answered(None, f"{service}: {reply.err.payload.to_string()}")
                return
            try:
                answered(from_cdr(reply.ok.payload.to_bytes(), f"{service_type}_Response"), "")
            except CodecError as problem:
                answered(None, f"{service} answers with {problem}")

        def ended() -> None:
            if not is_answered:
                answered(None, f"nobody in ROS answers {service} within {within_s:g} s; is it running, and named so?")

        try:
            handler = zenoh.handlers.Callback(replied, ended)
            self._session.get(key, handler, payload=to_cdr(request), timeout=within_s, **more)
        except zenoh.ZError as problem:
            self._tell(f"query {service}", f"{service} is not asked ({problem})")

    def _key(self, name: str, ros_type: str) -> str:
        return topic_key(name, ros_type, self._domain, has_hash=self._has_hashes)

    def _endpoint(self, name: str, ros_type: str, *, reliable: bool, latched: bool) -> str:
        """The end of a token: what is not its default is written (2: best effort, 1: latched)."""
        qos = f"{'' if reliable else 2}:{1 if latched else ''}:,10:,:,:,,"
        known = type_hash(ros_type) if self._has_hashes else NO_HASH
        return f"/{name.replace('/', '%')}/{dds_name(ros_type)}/{known}/{qos}"

    def _declare_token(self, kind: str, endpoint: str) -> None:
        zid = self._session.info.zid()
        number = 0 if kind == "NN" else next(self._entities)
        key = f"{ADMIN}/{self._domain}/{zid}/0/{number}/{kind}/%/%/{NODE_NAME}{endpoint}"
        self._kept.append(self._session.liveliness().declare_token(key))


def topic_key(topic: str, ros_type: str, domain: int | None, *, has_hash: bool = True) -> str:
    """The key expression of a topic or a service. Raises CodecError for a type that nobody here knows."""
    name = topic.strip("/")
    if domain is None:
        return name
    return f"{domain}/{name}/{dds_name(ros_type)}/{type_hash(ros_type) if has_hash else NO_HASH}"


def dds_name(ros_type: str) -> str:
    """`std_msgs/msg/String` as DDS calls it: `std_msgs::msg::dds_::String_`."""
    package, middle, name = ros_type.split("/")
    return f"{package}::{middle}::dds_::{name}_"


def ros_name(dds_type: str) -> str:
    """The other way."""
    return dds_type.replace("::dds_::", "/").replace("::", "/").removesuffix("_")


def attachment_of(number: int, stamp_ns: int, sender: bytes) -> bytes:
    """What rmw_zenoh expects beside each sample: number, source time and sender, as zenoh-ext serialises them."""
    return struct.pack("<qqB", number, stamp_ns, len(sender)) + sender
