"""What a path budget consists of before anything runs: which nodes link its topics, and the time of each part.

The parts are what an age can grow by in normal operation: the wait for the next message of a topic, and the work of a
handler. They are added as worst cases. So a sum within the budget is a promise, and one beyond it is a warning in time.
A wait for a topic that a timer samples is at most the period of its publisher. A node without timers acts at arrival
and waits for nothing.
"""

from __future__ import annotations

import inspect
import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from runtime.errors import UserError, choices
from runtime.launch.budgets_table import Budgets, PathBudget
from runtime.launch.class_check import parameters_of
from runtime.launch.graph import Graph, NodeSpec, age_limits
from runtime.launch.latency import Latency
from runtime.launch.links_table import LinkModel
from runtime.node import MessageHandler, Node, Timer, handlers_of, ports_of
from runtime.ports import Publisher, Subscription
from runtime.qos import QoS

EPSILON_S = 1e-9


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a path's age."""

    node: str
    seconds: float
    why: str  # "head/image comes each 0.067 s"


@dataclass(frozen=True, slots=True)
class PathAccount:
    """A path budget compared with what the launch file declares."""

    name: str
    budget: PathBudget
    parts: tuple[Part, ...]
    unknown: tuple[str, ...] = ()  # what takes a time that nobody declares, counted as nothing
    limits: tuple[Part, ...] = ()  # nodes that refuse what is older

    @property
    def total_s(self) -> float:
        """The sum of all parts, s."""
        return sum(part.seconds for part in self.parts)

    @property
    def problem(self) -> str:
        """Why the budget cannot be kept, or ""."""
        if self.total_s > self.budget.p99_s + EPSILON_S:
            first, *others = sorted(self.parts, key=lambda part: -part.seconds)
            rest = "".join(f"; {part.node}: {part.why}" for part in others)
            return (
                f"p99_s is {self.budget.p99_s:g}, but the path takes up to {self.total_s:.3g} s as declared; "
                f"most of it is {first.node}: {first.why}{rest}"
            )
        for limit in self.limits:
            if limit.seconds < self.total_s - EPSILON_S:
                return (
                    f"the path takes up to {self.total_s:.3g} s as declared, but {limit.node} refuses what is older "
                    f"than {limit.seconds:g} s (max_{self.budget.origin}_age_s)"
                )
        return ""

    def lines(self) -> list[str]:
        """The account as lines of text."""
        path = " -> ".join(self.budget.topics)
        found = [
            f"path {self.name}: {path}; p99 within {self.budget.p99_s:g} s, up to {self.total_s:.3g} s as declared"
        ]
        found += [f"    {part.seconds:.3f} s  {part.node}: {part.why}" for part in self.parts]
        found += [f"    not known  {text}" for text in self.unknown]
        found += [f"    at most {part.seconds:g} s  {part.node}: {part.why}" for part in self.limits]
        return found


def accounts(
    budgets: Budgets, graph: Graph, holders: Mapping[str, str], links: Sequence[LinkModel] = ()
) -> list[PathAccount]:
    """The accounts of all path budgets; `holders` maps seats to nodes. Raises UserError where topics are not linked."""
    found = []
    for name, budget in budgets.paths.items():
        try:
            found.append(_account(name, budget, graph, frozenset(holders.values()), links))
        except UserError as problem:
            raise UserError(f"[budgets.paths.{name}] {problem}") from problem
    return found


def kept_silently(graph: Graph) -> list[str]:
    """Nodes whose messages a limit will refuse because their age will not be known, as far as that can be seen now.

    Such a node keeps what a handler is given, publishes elsewhere, and neither reads the port again nor uses
    `stems_from=`.
    """
    found = []
    for topic, origins in graph.ages.limited.items():
        for end in graph.topics[topic].publishers:
            spec = graph.nodes[end.node]
            source = "".join(_source(cls) for cls in spec.cls.__mro__ if issubclass(cls, Node) and cls is not Node)
            handlers = handlers_of(spec.cls)
            for handler in handlers if source and "stems_from" not in source else ():
                port = ports_of(spec.cls, Subscription)[handler.port] if isinstance(handler, MessageHandler) else None
                if port is None or port.message.message_origin not in origins or port.message.message_kind == "event":
                    continue
                reads = any(f"self.{port.attribute}.{verb}()" in source for verb in ("latest", "stamped"))
                if not reads and f"self.{end.port.attribute}.publish" not in _source_of(spec.cls, handler.name):
                    found.append(
                        f"{end.node}: {spec.cls.__name__}.{handler.name} is given {port.topic}, and {topic} is "
                        f"published elsewhere, where nothing reads that port or says stems_from=: how old the "
                        f"{port.message.message_origin} behind it is will not be known, and it will be refused"
                    )
    return found


def _source(cls: type) -> str:
    try:
        return inspect.getsource(cls)
    except (OSError, TypeError):  # of no file, as in a console
        return ""


def _source_of(cls: type, name: str) -> str:
    try:
        return inspect.getsource(getattr(cls, name))
    except (OSError, TypeError):
        return ""


def _account(
    name: str, budget: PathBudget, graph: Graph, holders: frozenset[str], links: Sequence[LinkModel]
) -> PathAccount:
    topics = budget.topics
    _check_inheritance(budget, graph)
    chain = [_first_publisher(topics[0], graph, holders)]
    for topic, following in pairwise(topics):
        chain.append(_linking(topic, following, graph, holders))
    parts: list[Part] = []
    unknown: list[str] = []
    limits: list[Part] = []
    period_s: float | None = None
    for place, spec in enumerate(chain):
        topic_in = topics[place - 1] if place else ""
        topic_out = topics[place]
        timers = _rates(spec)
        if place:
            sender = chain[place - 1]
            parts += _on_the_way(topic_in, sender.name, spec.name, links)
            if timers:
                lifespan_s = _lifespan(spec, topic_in)
                if period_s is None and lifespan_s is None:
                    unknown.append(f"{sender.name}: how often {topic_in} comes")
                else:
                    parts.append(_wait(topic_in, sender.name, period_s, lifespan_s))
            limits += _limits(spec, budget.origin)
        parts += _works(spec, topic_in)
        period_s = _period(spec, topic_out) or (period_s if place and not timers else None)
    return PathAccount(name, budget, tuple(parts), tuple(unknown), tuple(limits))


def _check_inheritance(budget: PathBudget, graph: Graph) -> None:
    if budget.origin != "image":
        return
    for topic in budget.topics[1:-1]:
        if graph.types[topic].message_kind == "event":
            raise UserError(
                f"{topic} carries events, and what is made from an event does not inherit the age of its image; "
                f"a path of images goes over states and ends at the first event"
            )


def _first_publisher(topic: str, graph: Graph, holders: frozenset[str]) -> NodeSpec:
    names = [end.node for end in graph.topics[topic].publishers]
    if not names:
        raise UserError(f"nobody publishes {topic}, so nothing of it can be behind a message")
    return graph.nodes[_chosen(names, holders)]


def _linking(topic: str, following: str, graph: Graph, holders: frozenset[str]) -> NodeSpec:
    """The node that reads one topic and publishes the next."""
    readers = {end.node for end in graph.topics[topic].subscribers}
    writers = [end.node for end in graph.topics[following].publishers]
    names = [name for name in writers if name in readers]
    if names:
        return graph.nodes[_chosen(names, holders)]
    way = _way(topic, following, graph)
    hint = f"; between them lie: {', '.join(way)}" if way else "; no way of nodes and topics leads there"
    raise UserError(
        f"no node reads {topic} and publishes {following}: {topic} is read by {choices(readers)}, "
        f"{following} is published by {choices(writers)}{hint}; name the topics of a path, or take this budget out"
    )


def _chosen(names: Sequence[str], holders: frozenset[str]) -> str:
    """Of several, the one that holds its seat."""
    return next((name for name in names if name in holders), names[0])


def _way(start: str, end: str, graph: Graph) -> list[str]:
    """The topics of the shortest way between two, both included; empty where there is none."""
    before: dict[str, str] = {start: ""}
    waiting = deque([start])
    while waiting:
        topic = waiting.popleft()
        if topic == end:
            way = [topic]
            while before[way[-1]]:
                way.append(before[way[-1]])
            return way[::-1]
        for reader in graph.topics[topic].subscribers:
            spec = graph.nodes[reader.node]
            for port in ports_of(spec.cls, Publisher).values():
                if (name := spec.topic_of(port)) not in before:
                    before[name] = topic
                    waiting.append(name)
    return []


def _rates(spec: NodeSpec) -> dict[str, float]:
    """The node's plain and async timers with their rates; those of worker threads do other things than the loop."""
    timers = [handler for handler in handlers_of(spec.cls) if isinstance(handler, Timer)]
    own = [timer for timer in timers if timer.style != "blocking"] or timers
    return {timer.name: spec.hz.get(timer.name, timer.hz) for timer in own}


def _period(spec: NodeSpec, topic: str) -> float | None:
    """How long it takes until the node publishes there again; None where it does not say."""
    for attribute, port in ports_of(spec.cls, Publisher).items():
        if spec.topic_of(port) == topic and (deadline_s := _qos(spec, attribute).deadline_s) is not None:
            return deadline_s
    if fps := _parameter(spec, "fps"):
        return 1.0 / fps
    rates = _rates(spec)
    return 1.0 / min(rates.values()) if rates else None


def _wait(topic: str, sender: str, period_s: float | None, lifespan_s: float | None) -> Part:
    """Until the next message of a sampled topic; one past its lifespan is not read."""
    if period_s is None or (lifespan_s is not None and lifespan_s < period_s):
        assert lifespan_s is not None
        return Part(sender, lifespan_s, f"{topic} is read for {lifespan_s:.3g} s (lifespan)")
    return Part(sender, period_s, f"{topic} comes each {period_s:.3g} s")


def _on_the_way(topic: str, sender: str, receiver: str, links: Sequence[LinkModel]) -> list[Part]:
    """Declared delays of the network."""
    return [
        Part(sender, delay_s, f"{topic} is {delay_s:.3g} s on its way to {receiver} (link {link.name})")
        for link in links
        if link.carries(topic, sender, receiver, hears_all=False) and (delay_s := _longest(link.delay))
    ]


def _works(spec: NodeSpec, topic: str) -> list[Part]:
    """The longest declared latency of the handlers that may have a part in it."""
    names = set(_rates(spec))
    for handler in handlers_of(spec.cls):
        if (
            isinstance(handler, MessageHandler)
            and spec.topic_of(ports_of(spec.cls, Subscription)[handler.port]) == topic
        ):
            names.add(handler.name)
    longest = max(((_longest(spec.latency[name]), name) for name in names if name in spec.latency), default=(0.0, ""))
    return [Part(spec.name, longest[0], f"{longest[1]} takes up to {longest[0]:.3g} s (latency)")] if longest[0] else []


def _lifespan(spec: NodeSpec, topic: str) -> float | None:
    found = [
        _qos(spec, attribute).lifespan_s
        for attribute, port in ports_of(spec.cls, Subscription).items()
        if spec.topic_of(port) == topic
    ]
    return found[0] if found else None


def _limits(spec: NodeSpec, origin: str) -> list[Part]:
    limit_s = age_limits(spec).get(origin)
    return [] if limit_s is None else [Part(spec.name, limit_s, f"refuses an older {origin} (max_{origin}_age_s)")]


def _longest(latency: Latency) -> float:
    """The 99th percentile, or the upper bound, of a declared latency."""
    measured = sorted(latency.measured_s)
    if measured:
        return measured[max(0, math.ceil(len(measured) * 0.99) - 1)]
    return latency.p99_s or latency.highest_s


def _qos(spec: NodeSpec, attribute: str) -> QoS:
    """A port's QoS as the node's parameters have made it."""
    port: Publisher[Any] | Subscription[Any] = getattr(spec.build(), attribute)
    return port.qos


def _parameter(spec: NodeSpec, name: str) -> float | None:
    """A number that the node is given, or has by default; None without such a parameter."""
    known = parameters_of(spec.cls).get(name)
    value = spec.params.get(name, known.default) if known is not None else None
    return float(value) if isinstance(value, int | float) else None
