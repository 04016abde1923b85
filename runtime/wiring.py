"""Who needs what from whom: for each process of a launch, the topics it hears and how many processes hear its own.

A process gets this as data, so that it imports its own nodes and the message types it needs, and nothing else.
"""

from __future__ import annotations

import functools
import importlib
from collections import Counter
from typing import Any

import msgspec

from runtime.fence import FENCE_TOPIC
from runtime.graph import NodeSpec, health_topic
from runtime.journal import calls_topic
from runtime.launch_file import Launch
from runtime.lease import LEASE_TOPIC
from runtime.message import Kind, Message
from runtime.seat_tables import holders_of, topics_of


class ProcessPlan(msgspec.Struct, frozen=True):
    """What one process runs and hears."""

    nodes: dict[str, dict[str, Any]]  # launch-file tables
    hears: dict[str, str]  # topic -> "module:Message"
    listeners: dict[str, int]  # own topic -> number of other processes that hear it
    peers: tuple[str, ...]  # the other processes
    is_recorder: bool  # stops after all others, so that their last messages are recorded
    restart: str
    holders: dict[str, str]  # seat -> the node that sits on it at the start
    seat_topics: dict[str, str]  # topic -> the seat that it belongs to
    authority: str  # the node that issues fences and leases
    is_recorded: bool = False  # its nodes tell what their calls read


class TopicInfo(msgspec.Struct, frozen=True):
    """One topic of a run."""

    type: str  # "module:Class"
    kind: Kind
    publishers: tuple[str, ...]  # nodes
    subscribers: tuple[str, ...]


class NodeInfo(msgspec.Struct, frozen=True):
    """One node of a run."""

    use: str  # "module:Class"
    process: str


def plan(launch: Launch) -> dict[str, ProcessPlan]:
    """The plan of every process."""
    groups = launch.processes
    types = launch.graph.types
    hears = {name: _hears(launch, specs) for name, specs in groups.items()}
    plans = {}
    for name, specs in groups.items():
        own = _publishes(launch, specs)
        listeners: Counter[str] = Counter()
        for other, topics in hears.items():
            if other != name:
                listeners.update(own & topics)
        plans[name] = ProcessPlan(
            nodes={spec.name: launch.tables["nodes"][spec.name] for spec in specs},
            hears={topic: type_name(types[topic]) for topic in sorted(hears[name])},
            listeners=dict(listeners),
            peers=tuple(other for other in groups if other != name),
            is_recorder=any(spec.cls.subscribes_all for spec in specs),
            restart=specs[0].restart,
            holders=holders_of(launch.seats),
            seat_topics=topics_of(launch.seats, launch.graph.nodes),
            authority=launch.graph.authority,
            is_recorded=launch.graph.is_recorded,
        )
    return plans


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
    nodes = {
        spec.name: NodeInfo(launch.tables["nodes"][spec.name]["use"], process)
        for process, specs in launch.processes.items()
        for spec in specs
    }
    hear_all = [spec.name for spec in graph.nodes.values() if spec.cls.subscribes_all]
    own_accounts = {topic(name): name for topic in (health_topic, calls_topic) for name in nodes}
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
        )
    return nodes, topics


def type_name(message: type[Message]) -> str:
    """A message type as "module:Class"."""
    return f"{message.__module__}:{message.__qualname__}"


def load_type(name: str) -> type[Message]:
    """The message type of that name."""
    module, _, path = name.partition(":")
    found: type[Message] = functools.reduce(getattr, path.split("."), importlib.import_module(module))  # type: ignore[assignment]  # attributes by name
    return found
