"""Who needs what from whom: for each process, the topics that it hears and how many processes hear its own.

A process gets this as data. So it imports its own nodes and the message types that it needs, and nothing else.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from runtime.abilities import believes, role_of
from runtime.coordination.fence import FENCE_TOPIC, Fence
from runtime.coordination.health import gateway_topic
from runtime.coordination.lease import LEASE_TOPIC, Lease
from runtime.errors import UserError
from runtime.hosts.hosts_table import GatewayPlan, check_pair, pair
from runtime.journal.calls import calls_topic
from runtime.launch.graph import NodeSpec, health_topic
from runtime.launch.tables.nodes_table import with_shared
from runtime.launch.tables.processes_table import RealTime
from runtime.launch.tables.seats_table import holders_of, topics_of
from runtime.message import Kind, Message
from runtime.node import MessageHandler, handlers_of, ports_of
from runtime.ports import Publisher, Subscription
from runtime.qos import LIFESPAN_S, QoS
from runtime.serialization.codec import fingerprint, holds_arrays
from runtime.transport.direct import is_available
from runtime.transport.reliable.tag import Terms

if TYPE_CHECKING:
    from runtime.launch.file import Launch  # each process reads its plan, and no launch file


class ProcessPlan(msgspec.Struct, frozen=True):
    """What one process runs and hears."""

    nodes: dict[str, dict[str, Any]]  # launch-file tables
    hears: dict[str, str]  # topic -> "module:Message"
    listeners: dict[str, int]  # own topic -> number of other processes that hear it
    peers: tuple[str, ...]  # the other processes
    stops: Literal[0, 1, 2]  # when the run ends: 0 first; 1 who shows what these said last; 2 recorders and gateways
    restart: str
    holders: dict[str, str]  # seat -> the node that sits on it at the start
    seat_topics: dict[str, str]  # topic -> the seat that it belongs to
    authority: str  # the node that issues fences and leases
    is_recorded: bool = False  # its nodes tell what their calls read
    reliable: dict[str, Terms] = {}  # own topics whose events are acknowledged
    acknowledges: tuple[str, ...] = ()  # topics of others
    realtime: RealTime | None = None
    direct_from: dict[str, tuple[str, ...]] = {}  # topics that come straight from these processes
    most_hz: dict[str, float] = {}  # of these, where its subscription wants at most so many a second
    direct_to: dict[str, tuple[str, ...]] = {}  # own topics that go straight to these processes
    direct_events: tuple[str, ...] = ()  # of these, the events
    owners: dict[str, str] = {}  # topic that one node alone may publish -> the process that it comes from
    vouched: dict[
        str, dict[str, tuple[str, ...]]
    ] = {}  # topics by which stops are lifted or seats speak -> process -> its nodes there
    gateway: GatewayPlan | None = None  # then it runs no nodes

    @property
    def hosts_authority(self) -> bool:
        """Whether the node that issues fences and leases runs in this process."""
        return self.authority in self.nodes


class TopicInfo(msgspec.Struct, frozen=True):
    """One topic of a run."""

    type: str  # "module:Class"
    kind: Kind
    publishers: tuple[str, ...]  # nodes
    subscribers: tuple[str, ...]
    only: str = ""  # the one node that may publish it; "": any


class NodeInfo(msgspec.Struct, frozen=True):
    """One node of a run."""

    use: str  # "module:Class"
    process: str


def plan(launch: Launch, watched: Collection[str] = ()) -> dict[str, ProcessPlan]:
    """The plan of every process of `host`; `watched` are topics that the run's view hears too.

    Raises UserError where two hosts cannot connect.
    """
    groups = launch.processes
    types = launch.graph.types
    gateways = {gateway_name(other): other for other in launch.hosts if launch.host and other != launch.host}
    hears = {name: _hears(launch, specs) for name, specs in groups.items()}
    hears.update({name: _crossing(launch, launch.host, other) for name, other in gateways.items()})
    publishes = {name: _publishes(launch, specs) for name, specs in groups.items()}
    publishes.update(
        {name: _crossing(launch, other, launch.host) | {gateway_topic(other)} for name, other in gateways.items()}
    )
    exclusive = launch.graph.exclusive
    for host in launch.hosts.values():
        for topic in exclusive.keys() & set(host.may_publish):
            raise UserError(f"may_publish names {topic}, which only {exclusive[topic]} may publish; leave it out")
    owners = {topic: name for name, own in publishes.items() for topic in own & exclusive.keys()}
    vouched = _vouched(launch, gateways)
    direct_from = {
        name: _direct_from(launch, name, specs, publishes, owners, vouched) for name, specs in groups.items()
    }
    plans = {}
    for name in hears:
        specs = groups.get(name, [])
        own = publishes[name]
        listeners: Counter[str] = Counter()
        for other, topics in hears.items():
            if other != name:
                listeners.update((own & topics) - direct_from.get(other, {}).keys())
        listeners.update(own.intersection(watched))
        others = {other: topics for other, topics in hears.items() if other != name}
        direct_to = {
            topic: receivers
            for topic in sorted(own)
            if (receivers := tuple(other for other, some in direct_from.items() if name in some.get(topic, ())))
        }
        plans[name] = ProcessPlan(
            nodes={
                spec.name: with_shared(launch.tables["nodes"][spec.name], spec.cls, launch.shared) for spec in specs
            },
            hears={topic: type_name(types[topic]) for topic in sorted(hears[name])},
            listeners=dict(listeners),
            peers=tuple(other for other in hears if other != name and publishes[other] & hears[name]),
            stops=_stops(specs) if name not in gateways else 2,
            restart=specs[0].restart if specs else "always",
            holders=holders_of(launch.seats),
            seat_topics=topics_of(launch.seats, launch.graph.nodes),
            authority=launch.graph.authority,
            is_recorded=launch.graph.is_recorded,
            reliable=_reliable(launch, specs or launch.on(gateways.get(name, "")), others),
            acknowledges=tuple(sorted(hears[name] & _reliably(launch.graph.nodes.values()).keys())),
            realtime=launch.realtime.get(name),
            direct_from=direct_from.get(name, {}),
            most_hz=_most_hz(specs, direct_from.get(name, {})),
            direct_to=direct_to,
            direct_events=tuple(topic for topic in direct_to if types[topic].message_kind == "event"),
            owners={topic: owner for topic, owner in owners.items() if topic in hears[name]},
            vouched={topic: of for topic, of in vouched.items() if topic in hears[name]},
            gateway=_gateway(launch, gateways[name]) if name in gateways else None,
        )
    return plans


def _direct_from(
    launch: Launch,
    process: str,
    specs: list[NodeSpec],
    publishes: Mapping[str, set[str]],
    owners: Mapping[str, str],
    checked: Collection[str],
) -> dict[str, tuple[str, ...]]:
    """The topics that one plain handler of this process alone wants, and the processes that they come straight from.

    None of the `checked`: only ZeroMQ's readers look whether a process speaks in the names of its own nodes. No fences
    and leases, which concern the whole process, and no events that are acknowledged or hold arrays.
    """
    if not is_available() or any(spec.cls.subscribes_all for spec in specs):
        return {}
    topics = Counter(spec.topic_of(port) for spec in specs for port in ports_of(spec.cls, Subscription).values())
    by_zeromq = {topic for topic, message in launch.graph.types.items() if _is_by_zeromq(message)}
    by_zeromq |= _reliably(launch.graph.nodes.values()).keys()
    found = {}
    for spec in specs:
        handled = Counter(one.port for one in handlers_of(spec.cls) if isinstance(one, MessageHandler))
        for handler in handlers_of(spec.cls):
            if not isinstance(handler, MessageHandler) or handler.style != "plain" or handled[handler.port] > 1:
                continue
            port = ports_of(spec.cls, Subscription)[handler.port]
            topic = spec.topic_of(port)
            known = launch.graph.topics.get(topic)
            if (
                topics[topic] > 1
                or topic in checked
                or known is None
                or (port.message.message_kind == "event" and topic in by_zeromq)
                or any(end.port.qos.late_join for end in known.publishers)
                or any(end.port.qos.late_join for end in known.subscribers)
            ):
                continue
            publishers = tuple(
                other
                for other, own in publishes.items()
                if other != process and topic in own and owners.get(topic, other) == other
            )
            if publishers:
                found[topic] = publishers
    return found


def _is_by_zeromq(message: Any) -> bool:
    """Whether an event of this type goes by ZeroMQ in any case."""
    return issubclass(message, Fence | Lease) or holds_arrays(message)


def _most_hz(specs: Iterable[NodeSpec], direct: Collection[str]) -> dict[str, float]:
    """Of those topics, which are not all wanted."""
    ports = (
        (spec.topic_of(port), port.qos.max_hz) for spec in specs for port in ports_of(spec.cls, Subscription).values()
    )
    return {topic: hz for topic, hz in ports if hz is not None and topic in direct}


def _vouched(launch: Launch, gateways: Mapping[str, str]) -> dict[str, dict[str, tuple[str, ...]]]:
    """Of the topics on which a node believes those of a role, and of those by which whoever sits on a seat speaks, such
    as commands: who may say it from where.

    A gateway vouches itself for what comes from its host.
    """
    nodes, topics = launch.graph.nodes, launch.graph.topics
    spoken = topics_of({spec.cls.seat for spec in nodes.values()} - {""}, nodes)
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for topic in topics.values():
        senders, hearers = ({end.node for end in ends} for ends in (topic.publishers, topic.subscribers))
        is_believed = {role_of(nodes[name].cls) for name in senders} & {believes(nodes[name].cls) for name in hearers}
        if topic.name in launch.graph.exclusive or not (is_believed - {""} or topic.name in spoken):
            continue
        of: dict[str, tuple[str, ...]] = dict.fromkeys(gateways, ())
        for process, specs in launch.processes.items():
            if own := tuple(spec.name for spec in specs if spec.name in senders):
                of[process] = own
        found[topic.name] = of
    return found


def _stops(specs: Iterable[NodeSpec]) -> Literal[0, 1, 2]:
    classes = [spec.cls for spec in specs]
    if any(cls.subscribes_all for cls in classes):
        return 2
    return 1 if any(cls.stops_late for cls in classes) else 0


def _reliably(specs: Iterable[NodeSpec]) -> dict[str, QoS]:
    """The topics whose events these nodes make sure of, as the first of them says how."""
    found: dict[str, QoS] = {}
    for spec in specs:
        for publisher in ports_of(spec.cls, Publisher).values():
            if publisher.qos.reliable:
                found.setdefault(spec.topic_of(publisher), publisher.qos)
    return found


def _reliable(launch: Launch, specs: Iterable[NodeSpec], others: Mapping[str, set[str]]) -> dict[str, Terms]:
    return {
        topic: Terms(
            receivers=tuple(name for name, topics in others.items() if topic in topics),
            lifespan_s=qos.lifespan_s or LIFESPAN_S,
            hold_s=qos.hold_s,
        )
        for topic, qos in sorted(_reliably(specs).items())
    }


def gateway_name(other: str) -> str:
    """The process that joins a run to this host; no other process has a dash in its name."""
    return f"gateway-{other}"


def _gateway(launch: Launch, other: str) -> GatewayPlan:
    meeting = pair(launch.hosts, launch.host, other)
    check_pair(meeting, moves=launch.moves)
    types = launch.graph.types
    there = {spec.name for spec in launch.on(other)}
    receives = _crossing(launch, other, launch.host)
    sources: dict[str, tuple[str, ...]] = {}
    for topic in receives:
        if topic in launch.hosts[other].may_publish:
            sources[topic] = ()
            continue
        known = launch.graph.topics.get(topic)
        publishers = {end.node for end in known.publishers} if known else {topic.partition("/")[2]}
        sources[topic] = tuple(sorted(publishers & there))
    sends = _crossing(launch, launch.host, other)
    reliable = _reliable(launch, launch.here, {other: sends})
    return GatewayPlan(
        own=launch.hosts[launch.host],
        meeting=meeting,
        receives={topic: type_name(types[topic]) for topic in sorted(receives)},
        sources=sources,
        others=tuple(name for name in launch.graph.nodes if name not in there),
        reliable={topic: terms for topic, terms in reliable.items() if topic in sends},
        graph=_graph_fingerprint(launch),
    )


def _crossing(launch: Launch, here: str, there: str) -> set[str]:
    """The topics that go from one host to another: what is published here and needed there, and all accounts of health.

    An account of a link stays where it is; journals go where they are recorded.
    """
    published = _publishes(launch, launch.on(here)) | (set(launch.hosts[here].may_publish) & launch.graph.types.keys())
    needed = _hears(launch, launch.on(there)) - launch.graph.gateways.keys()
    return published & (needed | {health_topic(spec.name) for spec in launch.on(here)})


def _graph_fingerprint(launch: Launch) -> str:
    """Eight characters that differ where two hosts would not understand each other."""
    nodes = [spec for spec in launch.graph.nodes.values() if not spec.cls.subscribes_all]  # each may record for itself
    places = sorted((spec.name, launch.tables["nodes"][spec.name]["use"], spec.host) for spec in nodes)
    named = {spec.name for spec in nodes}
    types = sorted(
        (name, fingerprint(launch.graph.types[name]))
        for name, topic in launch.graph.topics.items()
        if any(end.node in named for end in (*topic.publishers, *topic.subscribers))
    )
    return hashlib.sha256(repr((places, types)).encode()).hexdigest()[:8]


def _hears(launch: Launch, specs: list[NodeSpec]) -> set[str]:
    types = launch.graph.types
    if any(spec.cls.subscribes_all for spec in specs):
        return set(types)
    names = {spec.name for spec in specs}
    heard = {
        topic.name
        for topic in launch.graph.topics.values()
        if topic.name in types and any(end.node in names for end in topic.subscribers)
    }
    return heard | ({FENCE_TOPIC, LEASE_TOPIC} & types.keys())  # they concern every process


def _publishes(launch: Launch, specs: list[NodeSpec]) -> set[str]:
    names = {spec.name for spec in specs}
    topics = {
        topic.name for topic in launch.graph.topics.values() if any(end.node in names for end in topic.publishers)
    }
    return topics | {health_topic(name) for name in names} | {calls_topic(name) for name in names}


def describe(launch: Launch) -> tuple[dict[str, NodeInfo], dict[str, TopicInfo]]:
    """The nodes and topics of a launch, for tools that attach to its run."""
    graph = launch.graph
    places = {spec.name: process for process, specs in launch.processes.items() for spec in specs}
    nodes = {
        name: NodeInfo(launch.tables["nodes"][name]["use"], places.get(name) or gateway_name(spec.host))
        for name, spec in graph.nodes.items()
    }
    hear_all = [spec.name for spec in graph.nodes.values() if spec.cls.subscribes_all]
    own_accounts = {topic(name): name for topic in (health_topic, calls_topic) for name in nodes}
    own_accounts.update({gateway_topic(host): gateway_name(host) for host in launch.hosts})
    topics = {}
    for name, message in sorted(graph.types.items()):
        topic = graph.topics.get(name)
        publishers = [end.node for end in topic.publishers] if topic else [own_accounts[name]]
        subscribers = [end.node for end in topic.subscribers] if topic else []
        topics[name] = TopicInfo(
            type=type_name(message),
            kind=message.message_kind,
            publishers=tuple(dict.fromkeys(publishers)),
            subscribers=tuple(dict.fromkeys([*subscribers, *hear_all])),
            only=graph.exclusive.get(name, ""),
        )
    return nodes, topics


def type_name(message: type[Message]) -> str:
    """A message type as "module:Class"."""
    return f"{message.__module__}:{message.__qualname__}"


def load_type(name: str) -> type[Message]:
    """The message type of this name; "module:Class[module:Inner]" holds others, as a service's request does."""
    if name.endswith("]"):
        outer, _, inner = name[:-1].partition("[")
        held: type[Message] = load_type(outer).of(*map(load_type, inner.split(",")))  # type: ignore[attr-defined]
        return held
    module, _, path = name.partition(":")
    found: type[Message] = functools.reduce(getattr, path.split("."), importlib.import_module(module))  # type: ignore[assignment]  # attributes by name
    return found
