"""What a path budget consists of before anything runs: which nodes link its topics, and the time of each part.

The parts are what an age can grow by: the wait for a handler's turn, its work, the way over a link, and the time until
the next message of a topic that a handler looks at. They are added as worst cases (`response_times.py`). All ways count
by which such an origin reaches the last topic, not only the declared one, because the oldest of them is measured.
So a sum within the budget is a promise for constant latencies, and one beyond it is a warning in time. What it rests
on: a handler publishes in each of its calls, and takes as long as its `latency` says, or no time where nothing is said.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

import msgspec
from msgspec.structs import replace

from runtime.clock import NS_PER_S, to_ns
from runtime.errors import UserError, choices, naming
from runtime.launch.checks.handler_ports import port_uses
from runtime.launch.checks.response_times import Job, WorstCases
from runtime.launch.graph import Graph, NodeSpec, age_limits
from runtime.launch.tables.budgets_table import Budgets, PathBudget
from runtime.launch.tables.links_table import LinkModel
from runtime.message import Message
from runtime.node import MessageHandler, handlers_of, ports_of
from runtime.ports import Publisher, Subscription

EPSILON_S = 1e-9


class Part(msgspec.Struct, frozen=True):
    """One part of a path's age."""

    node: str
    seconds: float
    why: str  # "head/image comes each 0.067 s"


class PathAccount(msgspec.Struct, frozen=True):
    """A path budget compared with what the launch file declares."""

    name: str
    budget: PathBudget
    parts: tuple[Part, ...]
    unknown: tuple[str, ...] = ()  # what takes a time that nobody declares, counted as nothing
    limits: tuple[Part, ...] = ()  # nodes that refuse what is older
    way: tuple[str, ...] = ()  # the topics by which the oldest comes
    own_parts: tuple[Part, ...] = ()  # of the declared way alone

    @property
    def total_s(self) -> float:
        """The sum of all parts, s."""
        return sum(part.seconds for part in self.parts)

    @property
    def own_s(self) -> float:
        """The sum of the declared way alone, s. Beyond the budget it is refused, for by this way it will come."""
        return sum(part.seconds for part in self.own_parts)

    @property
    def is_bounded(self) -> bool:
        """Whether the sum is a promise: no part of it is unknown."""
        return not self.unknown

    @property
    def problem(self) -> str:
        """Why the budget cannot be kept, or ""."""
        if self.own_s > self.budget.p99_s + EPSILON_S:
            first, *others = sorted(self.own_parts, key=lambda part: -part.seconds)
            rest = "".join(f"; {part.node}: {part.why}" for part in others)
            return (
                f"p99_s is {self.budget.p99_s:g}, but the path takes up to {at_most(self.own_s)} s as declared; "
                f"most of it is {first.node}: {first.why}{rest}"
            )
        for limit in self.limits:
            if limit.seconds < self.own_s - EPSILON_S:
                return (
                    f"the path takes up to {at_most(self.own_s)} s as declared, but {limit.node} refuses what is "
                    f"older than {limit.seconds:g} s (max_{self.budget.origin}_age_s)"
                )
        return ""

    def lines(self) -> list[str]:
        """The account as lines of text."""
        path = " -> ".join(self.budget.topics)
        total = f"up to {at_most(self.total_s)} s" if self.is_bounded else f"{at_most(self.total_s)} s and more"
        found = [f"path {self.name}: {path}; p99 within {self.budget.p99_s:g} s, {total} as declared"]
        if self.way and self.way != self.budget.topics:
            found.append(f"    the oldest {self.budget.origin} comes by {' -> '.join(self.way)}")
        if self.total_s > self.budget.p99_s + EPSILON_S:
            found.append(f"    beyond the budget; by the declared way alone it is up to {at_most(self.own_s)} s")
        found += [f"    {part.seconds:.3f} s  {part.node}: {part.why}" for part in self.parts]
        found += [f"    not known  {text}" for text in self.unknown]
        found += [f"    at most {part.seconds:g} s  {part.node}: {part.why}" for part in self.limits]
        return found


def at_most(seconds: float) -> str:
    """Three digits of a duration, rounded up: what is promised is not more than what is said."""
    if seconds <= 0:
        return "0"
    step = 10.0 ** (math.floor(math.log10(seconds)) - 2)
    return f"{math.ceil(seconds / step - 1e-6) * step:.3g}"


def accounts(
    budgets: Budgets, graph: Graph, holders: Mapping[str, str], links: Sequence[LinkModel] = ()
) -> list[PathAccount]:
    """The accounts of all path budgets; `holders` maps seats to nodes. Raises UserError where topics are not linked."""
    found = []
    for name, budget in budgets.paths.items():
        with naming(f"[budgets.paths.{name}]"):
            found.append(_account(name, budget, graph, frozenset(holders.values()), links))
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
            uses = port_uses(spec.cls)
            if any(use.told for use in uses.values()):
                continue
            for handler in handlers_of(spec.cls):
                port = ports_of(spec.cls, Subscription)[handler.port] if isinstance(handler, MessageHandler) else None
                if port is None or port.message.message_origin not in origins or port.message.message_kind == "event":
                    continue
                reads = any(port.attribute in use.sure | use.possible | use.peeked for use in uses.values())
                own = uses[handler.name]
                if not reads and end.port.attribute not in own.sure | own.possible:
                    found.append(
                        f"{end.node}: {spec.cls.__name__}.{handler.name} is given {port.topic}, and {topic} is "
                        f"published elsewhere, where nothing reads that port or says stems_from=: how old the "
                        f"{port.message.message_origin} behind it is will not be known, and it will be refused"
                    )
    return found


def _account(
    name: str, budget: PathBudget, graph: Graph, holders: frozenset[str], links: Sequence[LinkModel]
) -> PathAccount:
    topics = budget.topics
    _check_inheritance(budget, graph)
    chain = [_first_publisher(topics[0], graph, holders)]
    for topic, following in pairwise(topics):
        chain.append(_linking(topic, following, graph, holders))
    edges = {
        (spec.name, following): topic for spec, (topic, following) in zip(chain[1:], pairwise(topics), strict=True)
    }
    times = WorstCases(graph, holders, links)
    oldest = _Ages(times, budget.origin, edges).behind(topics[-1])
    own = _Ages(times, budget.origin, edges, only=topics).behind(topics[-1])
    limits = [part for spec in chain[1:] for part in _limits(spec, budget.origin)]
    return PathAccount(name, budget, oldest.parts, oldest.unknown, tuple(limits), oldest.topics, own.parts)


class _Age(msgspec.Struct, frozen=True):
    """The worst age of an origin at some point, and how it comes about."""

    age_ns: int = 0
    parts: tuple[Part, ...] = ()
    topics: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    def and_then(self, node: str, ns: int, why: str) -> _Age:
        """It grows by so much."""
        if not ns:
            return self
        return replace(self, age_ns=self.age_ns + ns, parts=(*self.parts, Part(node, ns / NS_PER_S, why)))


class _Ages:
    """How old an origin may be behind what a graph publishes. `edges`: what nodes are said to make topics from.

    `only`: by the topics of the declared way alone.
    """

    def __init__(
        self,
        times: WorstCases,
        origin: str,
        edges: Mapping[tuple[str, str], str],
        only: Collection[str] = (),
    ) -> None:
        self._besides = frozenset(times.graph.topics) - frozenset(only) if only else frozenset[str]()
        self._times = times
        self._graph = times.graph
        self._types = times.graph.types
        self._origin = origin
        self._is_sampled = origin in times.graph.ages.sampled
        self._edges = edges
        self._starts: dict[tuple[Job, str], _Age | None] = {}
        self._open: list[tuple[Job, str]] = []

    def behind(self, topic: str) -> _Age:
        """The oldest behind its messages when they are published."""
        return self._oldest([self._published(job, topic) for job in self._publishing(topic)]) or _Age(topics=(topic,))

    def _oldest(self, ages: Sequence[_Age | None]) -> _Age | None:
        found = [age for age in ages if age is not None]
        if not found:
            return None
        unknown = tuple(dict.fromkeys(text for age in found for text in age.unknown))
        return replace(max(found, key=lambda age: age.age_ns), unknown=unknown)

    def _publishing(self, topic: str) -> list[Job]:
        return [job for node in self._times.publishers(topic) for job in self._times.publishing(node, topic)]

    def _published(self, job: Job, topic: str) -> _Age | None:
        """Behind what the job publishes there; None where there is none of it."""
        message = self._types[topic]
        if message.message_origin == self._origin:  # it begins here
            age = _Age(topics=(topic,))
            return self._worked(age, job) if "captured_ns" in message.__struct_fields__ else age
        start = self._at_start(job, topic)
        return None if start is None else self._worked(replace(start, topics=(*start.topics, topic)), job)

    def _worked(self, age: _Age, job: Job) -> _Age:
        return age.and_then(
            job.node, job.cost_ns, f"{job.name} takes up to {at_most(job.cost_ns / NS_PER_S)} s (latency)"
        )

    def _at_start(self, job: Job, topic: str) -> _Age | None:
        """Behind all that the job makes a message of this topic from, when it starts."""
        key = (job, topic)
        if key in self._open:
            ring = " -> ".join(one for _, one in (*self._open[self._open.index(key) :], key))
            return _Age(unknown=(f"{job.node}: how old the {self._origin} is that goes round in a ring: {ring}",))
        if key not in self._starts:
            self._open.append(key)
            self._starts[key] = self._oldest(self._sources(job, topic))
            self._open.pop()
        return self._starts[key]

    def _sources(self, job: Job, topic: str) -> list[_Age | None]:
        times = self._times
        others = [other for other in times.jobs[job.node] if other != job]
        is_told, declared = times.is_told(job, topic), self._edges.get((job.node, topic), "")
        if self._besides:
            return self._declared_sources(job, topic)
        own = times.reads(job, also="peeked")  # of what it looks at itself it need keep nothing
        found = [
            self._given(job, also_peeked=is_told),
            *([self._kept(other, own) for other in others] if is_told else []),
        ]
        if declared and not is_told and job.topic != declared and declared not in times.reads(job):
            given = [other for other in others if other.topic == declared]
            if given and times.is_seen_to_publish(job.node, topic):
                found += [self._kept(one, ()) for one in given]
            else:
                found.append(self._sampled(job, declared))
        return found

    def _declared_sources(self, job: Job, topic: str) -> list[_Age | None]:
        """The same for the declared way: what the node is said to make the topic from, by the shortest of its ways."""
        declared = self._edges.get((job.node, topic), "")
        besides = frozenset(self._times.graph.topics) - {declared}
        direct = self._given(job, also_peeked=True, besides=besides)
        if direct is not None or not declared:
            return [direct]
        if not self._times.is_seen_to_publish(job.node, topic):
            return [self._sampled(job, declared)]
        given = [other for other in self._times.jobs[job.node] if declared in (other.topic, *self._times.reads(other))]
        ages = [age for one in given if (age := self._kept(one, besides)) is not None]
        return [min(ages, key=lambda age: age.age_ns)] if ages else [self._sampled(job, declared)]

    def _given(
        self, job: Job, *, also_peeked: bool, besides: Collection[str] = (), is_triggered: bool = True
    ) -> _Age | None:
        """Behind what the job itself reads, when it starts; but for the topics `besides`."""
        topics = self._times.reads(job, also="kept" if also_peeked else "")
        found = [self._sampled(job, topic) for topic in topics if topic not in besides]
        if is_triggered and isinstance(job.handler, MessageHandler) and job.topic not in besides:
            found.append(self._triggered(job))
        return self._oldest(found)

    def _handed_on(self, topic: str, receiver: str) -> _Age | None:
        """Behind what comes on the topic to a node; None where there is none of it."""
        message: type[Message] = self._types[topic]
        if message.message_kind == "event" and self._is_sampled and message.message_origin != self._origin:
            return None
        jobs = self._publishing(topic)
        found: list[_Age | None] = []
        if (
            message.message_origin == self._origin and not jobs and self._times.publishers(topic)
        ):  # a thread of a device publishes it
            found.append(_Age(topics=(topic,)))
        for job in jobs:
            age = self._published(job, topic)
            for link, delay_ns in self._times.delays_ns(topic, job.node, receiver):
                why = f"{topic} is {at_most(delay_ns / NS_PER_S)} s on its way to {receiver} (link {link.name})"
                age = age and age.and_then(job.node, delay_ns, why)
                if age is not None and (link.loss or link.outages_s):
                    age = replace(age, unknown=(*age.unknown, f"{job.node}: what of {topic} link {link.name} loses"))
            found.append(age)
        return self._oldest(found)

    def _triggered(self, job: Job) -> _Age | None:
        age, delay_ns = self._handed_on(job.topic, job.node), self._times.delay_ns(job.topic, job.node)
        if age is None:
            return None
        wait_ns = self._times.wait_ns(job)
        lifespan_ns = self._times.lifespan_ns(job.node, job.topic)
        if lifespan_ns is not None:
            wait_ns = min(wait_ns, max(0, lifespan_ns - delay_ns))
        return age.and_then(
            job.node, wait_ns, f"{job.topic} waits up to {at_most(wait_ns / NS_PER_S)} s for {job.name}"
        )

    def _sampled(self, job: Job, topic: str) -> _Age | None:
        age, delay_ns = self._handed_on(topic, job.node), self._times.delay_ns(topic, job.node)
        if age is None:
            return None  # nobody publishes there, or nothing of it
        sender = self._times.publishers(topic)[0]
        lifespan_ns = self._times.lifespan_ns(job.node, topic)
        gap_ns = self._times.topic_gap_ns(topic, between_starts=True)
        most_hz = [qos.max_hz for qos in self._times.qos_of(job.node, topic, Subscription) if qos.max_hz is not None]
        if gap_ns is not None and most_hz:
            gap_ns += to_ns(1 / min(most_hz))
        if lifespan_ns is not None and (gap_ns is None or lifespan_ns < gap_ns + delay_ns):
            ns = max(0, lifespan_ns - delay_ns)
            return age.and_then(sender, ns, f"{topic} is read for {lifespan_ns / NS_PER_S:.3g} s (lifespan)")
        if gap_ns is None:
            return replace(age, unknown=(*age.unknown, f"{sender}: how often {topic} comes"))
        return age.and_then(sender, gap_ns, f"{topic} comes each {at_most(gap_ns / NS_PER_S)} s")

    def _kept(self, job: Job, besides: Collection[str]) -> _Age | None:
        """Behind what a handler read and kept, when another one of its node names it."""
        age = self._given(job, also_peeked=True, besides=besides, is_triggered=self._times.keeps_trigger(job))
        if age is None:
            return None
        gap_ns = self._times.gap_ns(job)
        age = self._worked(age, job)
        if gap_ns is None:
            return replace(age, unknown=(*age.unknown, f"{job.node}: how often {job.name} runs"))
        return age.and_then(job.node, gap_ns, f"{job.name} keeps it for up to {at_most(gap_ns / NS_PER_S)} s")


def _check_inheritance(budget: PathBudget, graph: Graph) -> None:
    if budget.origin not in graph.ages.sampled:
        return
    for topic in budget.topics[1:-1]:
        if graph.types[topic].message_kind == "event":
            raise UserError(
                f"{topic} carries events, and what is made from an event does not inherit the age of its "
                f"{budget.origin}; a path of {budget.origin}s goes over states and ends at the first event"
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


def _limits(spec: NodeSpec, origin: str) -> list[Part]:
    limit_s = age_limits(spec).get(origin)
    return [] if limit_s is None else [Part(spec.name, limit_s, f"refuses an older {origin} (max_{origin}_age_s)")]
