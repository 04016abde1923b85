"""`Delivery`: brings the messages of a virtual run to their ports, over the links between the nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runtime.coordination.fence import Fence, PreemptionEpochs
from runtime.coordination.lease import Lease, SeatHolders
from runtime.execution.bound_node import BoundNode, NodeOutput
from runtime.execution.lane import Lane
from runtime.launch.tables.links_table import LinkModel, LinkPath
from runtime.message import Envelope, Message, Stamped
from runtime.ports import Subscription
from runtime.qos import QoS
from runtime.virtual.lanes import VirtualLanes
from runtime.virtual.scheduler import Scheduler
from runtime.virtual.trace import MessageTrace

Observer = Callable[[Stamped[Any]], None]

OUTSIDE = "test"
"""The source of messages from outside the graph; its fences and leases count as the authority's."""


class Delivery(NodeOutput):
    """Delivers each message at its time of publication, in the order of sending."""

    def __init__(
        self,
        scheduler: Scheduler,
        lanes: VirtualLanes,
        *,
        fence: PreemptionEpochs,
        leases: SeatHolders,
        authority: str,
        links: Sequence[LinkModel],
        seed: int,
        trace: MessageTrace | None,
        finish: Callable[[str, bool, str], None],
    ) -> None:
        self.newest: dict[str, Stamped[Any]] = {}
        """By topic, what was published last."""
        self.observers: list[Observer] = []
        self._scheduler = scheduler
        self._lanes = lanes
        self._fence = fence
        self._leases = leases
        self._authority = authority
        self._links = tuple(links)
        self._ways: dict[tuple[str, str, str], LinkPath] = {}
        self._seed = seed
        self._trace = trace
        self._finish = finish
        self._reliable: dict[tuple[str, str], QoS] = {}  # by sender and topic
        self._routes: dict[str, list[tuple[BoundNode, Subscription[Any], Lane | None]]] = {}

    def connect(self, bound: BoundNode) -> None:
        """From now on, deliver to the node what its ports subscribe to."""
        for publisher in bound.publishers:
            if publisher.qos.reliable:
                self._reliable[bound.name, publisher.topic] = publisher.qos
        lane_of = {port: lane for lane in bound.lanes for _, port in lane.listeners}
        lane_of |= {follower.port: lane for lane in bound.lanes for follower in lane.followers}
        for port in bound.subscriptions.values():
            self._routes.setdefault(port.topic, []).append((bound, port, lane_of.get(port)))

    def send(self, envelope: Envelope, message: Message) -> None:
        """Publish the message at the time of its envelope."""
        stamped = Stamped(message, envelope)
        self._scheduler.at(envelope.published_ns, lambda: self._deliver(stamped))

    def finish(self, node: str, ok: bool, reason: str) -> None:
        """Pass on that a node asks for the end of the run."""
        self._finish(node, ok, reason)

    def _deliver(self, stamped: Stamped[Any]) -> None:
        if self._trace is not None:
            self._trace.add(stamped)
        self.newest[stamped.envelope.topic] = stamped
        for observer in self.observers:
            observer(stamped)
        is_from_issuer = stamped.envelope.source == OUTSIDE or self._authority in ("", stamped.envelope.source)
        if isinstance(stamped.message, Lease) and is_from_issuer:
            self._leases.take(stamped.message)
        if isinstance(stamped.message, Fence) and is_from_issuer:
            self._fence.raise_to(stamped.message.epochs, stamped.envelope.cause)
            self._lanes.void(self._fence)
        for receiver, port, lane in self._routes.get(stamped.envelope.topic, ()):
            if self._links:
                self._pass_links(stamped, receiver, port, lane)
            else:
                self._arrive(stamped, receiver, port, lane)

    def _pass_links(
        self, stamped: Stamped[Any], receiver: BoundNode, port: Subscription[Any], lane: Lane | None
    ) -> None:
        topic, sender = stamped.envelope.topic, stamped.envelope.source
        way = self._ways.get((topic, sender, receiver.name))
        if way is None:
            hears_all = type(receiver.node).subscribes_all
            links = [link for link in self._links if link.carries(topic, sender, receiver.name, hears_all=hears_all)]
            way = self._ways[topic, sender, receiver.name] = LinkPath(links, self._seed, topic, sender, receiver.name)
        if way.is_direct:
            self._arrive(stamped, receiver, port, lane)
            return
        now_ns = self._scheduler.now_ns
        qos = self._reliable.get((sender, topic))
        if qos is None:
            times_ns = way.arrivals(now_ns)
        else:
            time_ns = way.arrival(now_ns, qos)
            times_ns = [] if time_ns is None else [time_ns]
        if not times_ns:
            port.lose("link", 1)
        for time_ns in times_ns:
            self._scheduler.at(time_ns, lambda: self._arrive(stamped, receiver, port, lane))

    def _arrive(self, stamped: Stamped[Any], receiver: BoundNode, port: Subscription[Any], lane: Lane | None) -> None:
        port.push(stamped)
        if lane is not None:
            self._lanes.drive(receiver, lane)
