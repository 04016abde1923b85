"""How long handlers wait for their turn, and how often a topic comes: worst cases of what a launch file declares.

A *job* is one handler with what starts it. The plain handlers of a process share one thread, the blocking handlers of a
node another, and each async handler has a lane of its own. Of one lane only one job runs at a time, to its end. Timers
that are due go first, then messages, one port after the other (`runtime/execution/lane.py`). From that and from the
declared latencies follow

- `wait_ns`: from a tick or the arrival of a message to the start of its handler;
- `gap_ns`: from one start of a job to the next;
- `topic_gap_ns`: from one message of a topic to the next, where its handlers publish in each of their calls.

All are whole nanoseconds, as in the clocks. None says that nothing declares how often.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from runtime.clock import NS_PER_S, to_ns
from runtime.histogram import nearest_rank
from runtime.launch.checks.class_check import parameters_of
from runtime.launch.checks.handler_ports import PortUse, port_uses
from runtime.launch.graph import Graph, NodeSpec
from runtime.launch.tables.handler_latency import Latency
from runtime.launch.tables.links_table import LinkModel
from runtime.node import MOST_TO_CATCH_UP, DeadlineWatch, Handler, MessageHandler, Node, Timer, handlers_of, ports_of
from runtime.ports import Publisher, Subscription
from runtime.qos import QoS

_EVEN = 1e-7  # two rates that differ by so little are one


class Job(msgspec.Struct, frozen=True):
    """One handler of one node with what starts it."""

    node: str
    handler: Handler
    lane: tuple[str, ...]
    cost_ns: int  # its declared latency, at most
    least_ns: int  # at least
    period_ns: int = 0  # of a timer and of a deadline
    topic: str = ""  # whose messages start it
    depth: int = 1  # how many of them wait at most
    drops_new: bool = False  # whether a full queue keeps what waits
    most_hz: float = 0.0  # how many of them are taken at most; 0: all
    follows: str = ""  # the topic with which a timer is in step

    @property
    def name(self) -> str:
        """The method's name."""
        return self.handler.name


class WorstCases:
    """The worst cases of one graph; `holders` are the nodes that hold a seat."""

    def __init__(self, graph: Graph, holders: frozenset[str] = frozenset(), links: Sequence[LinkModel] = ()) -> None:
        self.graph = graph
        self._nodes = {spec.name: spec.build() for spec in graph.nodes.values()}  # an `__init__` is cheap
        self.jobs = {spec.name: _jobs(spec, self._nodes[spec.name]) for spec in graph.nodes.values()}
        self._holders = holders
        self._links = links
        self._lanes: dict[tuple[str, ...], list[Job]] = {}
        for job in (job for jobs in self.jobs.values() for job in jobs):
            self._lanes.setdefault(job.lane, []).append(job)
        self._by: dict[tuple[str, str], tuple[list[Job], bool]] = {}
        self._reads: dict[tuple[Job, str], list[str]] = {}
        self._waits: dict[Job, int] = {}
        self._starts: dict[Job, int | None] = {}
        self._gaps: dict[tuple[str, str, bool], int | None] = {}
        self._asked: set[Job] = set()  # whose jitter is being asked for

    def publishers(self, topic: str) -> list[str]:
        """The nodes whose messages on the topic count: of the candidates for a seat, the one that holds it."""
        names = list(dict.fromkeys(end.node for end in self.graph.topics[topic].publishers))
        return [name for name in names if name in self._holders] or names

    def publishing(self, node: str, topic: str) -> list[Job]:
        """The jobs of a node that publish on the topic; where the code shows none, those that may."""
        return self._publishing(node, topic)[0]

    def is_seen_to_publish(self, node: str, topic: str) -> bool:
        """Whether the code of the node shows which of its handlers publish there, or may."""
        spec = self.graph.nodes[node]
        ports = {name for name, port in ports_of(spec.cls, Publisher).items() if spec.topic_of(port) == topic}
        return any(ports & (use.sure | use.possible) for use in port_uses(spec.cls).values())

    def _publishing(self, node: str, topic: str) -> tuple[list[Job], bool]:
        """The jobs that publish there, and whether all of them do."""
        if (node, topic) not in self._by:
            self._by[node, topic] = self._find_publishing(node, topic)
        return self._by[node, topic]

    def _find_publishing(self, node: str, topic: str) -> tuple[list[Job], bool]:
        spec = self.graph.nodes[node]
        ports = {name for name, port in ports_of(spec.cls, Publisher).items() if spec.topic_of(port) == topic}
        jobs = self.jobs[node]
        if sure := [job for job in jobs if self._use(job).sure & ports]:
            return sure, True
        possible = [job for job in jobs if self._use(job).possible & ports]
        timers = [job for job in jobs if isinstance(job.handler, Timer)]
        beside = [job for job in timers if job.handler.style != "blocking"]
        return possible or beside or timers or jobs, False

    def reads(self, job: Job, *, also: Literal["", "kept", "peeked"] = "") -> list[str]:
        """The topics whose ages the job hands on because it looks at them.

        What it peeks at and keeps counts where it says that a message stems from that. Where the code shows no
        handler that looks at a topic or is started by it, those count that may.
        """
        if (job, also) not in self._reads:
            spec, use = self.graph.nodes[job.node], self._use(job)
            shown = frozenset[str]().union(*(one.sure | one.peeked for one in port_uses(spec.cls).values()))
            if shown:
                shown |= {one.port for one in handlers_of(spec.cls) if isinstance(one, MessageHandler)}
            names = (
                use.sure | (use.possible - shown) | {"": frozenset[str](), "kept": use.kept, "peeked": use.peeked}[also]
            )
            ports = ports_of(spec.cls, Subscription)
            topics = dict.fromkeys(spec.topic_of(ports[name]) for name in sorted(names) if name in ports)
            self._reads[job, also] = list(topics)
        return self._reads[job, also]

    def is_told(self, job: Job, topic: str) -> bool:
        """Whether the job says of what it publishes there what that stems from; then it may have kept that."""
        spec = self.graph.nodes[job.node]
        ports = ports_of(spec.cls, Publisher)
        return any(name in ports and spec.topic_of(ports[name]) == topic for name in self._use(job).told)

    def keeps_trigger(self, job: Job) -> bool:
        """Whether what the job is called for may outlive the call, for another handler to say what stems from it."""
        is_stamped = isinstance(job.handler, MessageHandler) and job.handler.takes_stamped
        return self._use(job).keeps_trigger and (is_stamped or self._use(job).asks_context)

    def _use(self, job: Job) -> PortUse:
        return port_uses(self.graph.nodes[job.node].cls)[job.name]

    def qos_of(self, node: str, topic: str, kind: Any) -> list[QoS]:
        """The QoS of a node's ports of a topic, as its parameters have made them."""
        spec = self.graph.nodes[node]
        built = self._nodes[node]
        return [
            getattr(built, name).qos for name, port in ports_of(spec.cls, kind).items() if spec.topic_of(port) == topic
        ]

    def delays_ns(self, topic: str, sender: str, receiver: str) -> list[tuple[LinkModel, int]]:
        """The links between two nodes, with their longest delays."""
        return [
            (link, to_ns(longest_s(link.delay)))
            for link in self._links
            if link.carries(topic, sender, receiver, hears_all=False)
        ]

    def _jitter_ns(self, topic: str, receiver: str) -> int:
        """By how much the delays of its messages to that node differ."""
        found = [0]
        for sender in self.publishers(topic):
            links = [link for link, _ in self.delays_ns(topic, sender, receiver)]
            found.append(sum(to_ns(longest_s(link.delay)) - to_ns(shortest_s(link.delay)) for link in links))
        return max(found)

    def topic_gap_ns(self, topic: str, *, between_starts: bool = False) -> int | None:
        """The longest time from one message of the topic to the next, or between the starts of what publishes them.

        Who looks at a topic finds the age at the start, and waits for the next start and its work: what one message
        comes late by its work, it is older by already.
        """
        gaps = [self._gap_of(node, topic, between_starts) for node in self.publishers(topic)]
        return min((gap_ns for gap_ns in gaps if gap_ns is not None), default=None)

    def _gap_of(self, node: str, topic: str, between_starts: bool) -> int | None:
        key = (node, topic, between_starts)
        if key not in self._gaps:
            self._gaps[key] = None  # for whoever asks meanwhile: it is made from itself
            self._gaps[key] = self._compute_gap(node, topic, between_starts)
        return self._gaps[key]

    def _compute_gap(self, node: str, topic: str, between_starts: bool) -> int | None:
        spec = self.graph.nodes[node]
        jobs, are_sure = self._publishing(node, topic)
        known = []
        for job in jobs:
            if (gap_ns := self.gap_ns(job)) is not None:
                known.append(gap_ns + (0 if between_starts else job.cost_ns - job.least_ns))
        if are_sure:
            found = min(known, default=None)
        else:  # which of them publishes is not to be seen
            found = max(known) if known and len(known) == len(jobs) else None
        promised_s = [qos.deadline_s for qos in self.qos_of(node, topic, Publisher) if qos.deadline_s is not None]
        if promised_s:
            return max(math.ceil(min(promised_s) * NS_PER_S), found or 0)
        if fps := _parameter(spec, "fps"):
            return max(math.ceil(NS_PER_S / fps), found or 0)
        return found

    def gap_ns(self, job: Job) -> int | None:
        """The longest time from one start of the job to the next at which it has all that it reads.

        None where nothing says how often it starts, or where it may miss every message within its lifespan.
        """
        if job not in self._starts:
            self._starts[job] = self._find_gap(job)
        return self._starts[job]

    def _find_gap(self, job: Job) -> int | None:
        if isinstance(job.handler, DeadlineWatch):
            return None
        if isinstance(job.handler, Timer):
            gap_ns = max(self._longest_step_ns(job), job.cost_ns) + self.wait_ns(job)
        else:
            comes_ns = self.arrival_gap_ns(job)
            if comes_ns is None:
                return None
            lifespan_ns = self.lifespan_ns(job.node, job.topic)
            delay_ns = self.delay_ns(job.topic, job.node)
            if lifespan_ns is not None and lifespan_ns < delay_ns + min(comes_ns, self.wait_ns(job)):
                return None  # one after the other may be too old when it has its turn
            gap_ns = max(comes_ns, job.cost_ns) + self._turn_ns(job, 1) - job.cost_ns
        expiring = [topic for topic in self.reads(job, also="peeked") if self._may_expire(topic, job.node)]
        if not expiring:
            return gap_ns
        comes_ns, lifespan_ns = self._comes_ns(expiring[0], job.node), self.lifespan_ns(job.node, expiring[0])
        if len(expiring) > 1 or comes_ns is None or lifespan_ns is None:
            return None
        return gap_ns + comes_ns if gap_ns <= lifespan_ns - self.delay_ns(expiring[0], job.node) else None

    def _may_expire(self, topic: str, node: str) -> bool:
        """Whether the newest message may be too old to be read before the next one comes."""
        lifespan_ns, comes_ns = self.lifespan_ns(node, topic), self._comes_ns(topic, node)
        return lifespan_ns is not None and (comes_ns is None or lifespan_ns < comes_ns + self.delay_ns(topic, node))

    def lifespan_ns(self, node: str, topic: str) -> int | None:
        """For how long after its publication a node reads a message of the topic; None for ever."""
        found = [qos.lifespan_s for qos in self.qos_of(node, topic, Subscription)]
        return None if None in found or not found else to_ns(max(one for one in found if one is not None))

    def delay_ns(self, topic: str, receiver: str) -> int:
        """The longest that one of its messages is on its way to that node."""
        ways = [self.delays_ns(topic, sender, receiver) for sender in self.publishers(topic)]
        return max((sum(delay_ns for _, delay_ns in way) for way in ways), default=0)

    def _longest_step_ns(self, job: Job) -> int:
        """Between two ticks; of a timer in step with a topic see `FollowingTimer`."""
        if not job.follows:
            return job.period_ns
        rhythm = self._followed_rhythm(job)
        if rhythm is not None:
            return rhythm[0] + 1 + rhythm[1]
        comes_ns = self._comes_ns(job.follows, job.node)
        if comes_ns is None or comes_ns > job.period_ns:
            return job.period_ns * 9 // 4
        return min(job.period_ns + comes_ns, job.period_ns * 3 // 2)

    def _followed_rhythm(self, job: Job) -> tuple[int, int] | None:
        """The period of the messages that a timer follows one by one, and by how much they are late.

        None where it leaves some out, ticks between them, or may be busy when one comes.
        """
        rhythm = self._rhythm_of_topic(job.follows, job.node)
        if rhythm is None:
            return None
        period_ns, late_ns = rhythm[0], rhythm[1] + self.wait_ns(job) + job.cost_ns
        is_slower = period_ns >= job.period_ns * (1 - _EVEN) - 1
        return rhythm if is_slower and late_ns * 4 <= job.period_ns and period_ns * 4 < job.period_ns * 5 else None

    def _comes_ns(self, topic: str, receiver: str) -> int | None:
        gap_ns = self.topic_gap_ns(topic)
        return None if gap_ns is None else gap_ns + self._jitter_ns(topic, receiver)

    def arrival_gap_ns(self, job: Job) -> int | None:
        """The longest time from one message that starts the job to the next."""
        comes_ns = self._comes_ns(job.topic, job.node)
        return None if comes_ns is None else comes_ns + (math.ceil(NS_PER_S / job.most_hz) if job.most_hz else 0)

    def wait_ns(self, job: Job) -> int:
        """The longest time from a tick, or from the arrival of a message, to the start of the job."""
        if job not in self._waits:
            self._waits[job] = self._compute_wait(job)
        return self._waits[job]

    def _compute_wait(self, job: Job) -> int:
        if isinstance(job.handler, MessageHandler):
            return self._wait_of_message_ns(job)
        others = [other for other in self._lanes[job.lane] if other != job]
        timed = [other.cost_ns for other in others if not isinstance(other.handler, MessageHandler)]
        heard = [
            other.cost_ns and other.cost_ns * self._most_waiting(other)
            for other in others
            if isinstance(other.handler, MessageHandler)
        ]
        once_ns = sum(timed) + sum(heard)
        periods_ns = [one.period_ns for one in self._lanes[job.lane] if one.period_ns]
        if once_ns + job.cost_ns <= min(periods_ns):
            return once_ns  # none of them is due again before all have had their turn
        most = max((other.cost_ns for other in others if isinstance(other.handler, MessageHandler)), default=0)
        times = MOST_TO_CATCH_UP if any(_catches_up(other) for other in others) else 1
        return max(most + times * sum(timed), max(timed, default=0) + times * sum(timed) + sum(heard))

    def _wait_of_message_ns(self, job: Job) -> int:
        if job.depth == 1:  # the newest one takes the place of an older one
            wait_ns, comes_ns = self._turn_ns(job, 1), self.arrival_gap_ns(job)
            return wait_ns if comes_ns is None else min(wait_ns, comes_ns)
        if not any(other.cost_ns for other in self._lanes[job.lane]):
            return 0
        waiting = self._most_waiting(job)
        waits_ns = [self._turn_ns(job, one) - (self._earliest_ns(job, one) or 0) for one in range(1, waiting + 1)]
        if waiting < job.depth:
            return max(waits_ns)
        full_ns, comes_ns = self._turn_ns(job, waiting), self.arrival_gap_ns(job)  # an older one makes room
        return full_ns if comes_ns is None or job.drops_new else min(full_ns, waiting * comes_ns)

    def _turn_ns(self, job: Job, number: int) -> int:
        """From when a lane is busy until a message has its turn that so many of its own, itself included, wait for."""
        lane = self._lanes[job.lane]
        heard = [other for other in lane if isinstance(other.handler, MessageHandler)]
        timed = [other for other in lane if not isinstance(other.handler, MessageHandler)]
        messages_ns = number * sum(other.cost_ns for other in heard)
        most = number * len(heard)  # between two messages each timer runs once at most
        wait_ns = messages_ns + most * sum(other.cost_ns for other in timed)
        while True:
            less_ns = messages_ns + sum(
                min(most, -(-wait_ns // other.period_ns) + 1) * other.cost_ns for other in timed
            )
            if less_ns >= wait_ns:
                return wait_ns
            wait_ns = less_ns

    def _most_waiting(self, job: Job) -> int:
        """How many of its messages wait at most."""
        for number in range(1, job.depth):
            earliest_ns = self._earliest_ns(job, number + 1)
            if earliest_ns is not None and earliest_ns >= self._turn_ns(job, number):
                return number
        return job.depth

    def _earliest_ns(self, job: Job, number: int) -> int | None:
        """How soon after the first of some messages that one can come; None where nothing says how often they come."""
        sources: list[tuple[int, int]] = []
        for node in self.publishers(job.topic):
            for publisher in self.publishing(node, job.topic):
                source = self._rhythm_of(publisher)
                if source is None:
                    return None
                sources.append(source)
        if not sources:
            return None
        jitter_ns = self._jitter_ns(job.topic, job.node)
        low, high = 0, max(period_ns for period_ns, _ in sources) * number
        while low < high:  # the shortest window that so many fit into
            middle = (low + high) // 2
            if sum((middle + spread_ns + jitter_ns) // period_ns + 1 for period_ns, spread_ns in sources) >= number:
                high = middle
            else:
                low = middle + 1
        return low

    def _rhythm_of_topic(self, topic: str, receiver: str) -> tuple[int, int] | None:
        """As `_rhythm_of`, of the messages that reach a node on a topic; None where there are several publishers."""
        jobs = [job for node in self.publishers(topic) for job in self.publishing(node, topic)]
        rhythm = self._rhythm_of(jobs[0]) if len(jobs) == 1 else None
        return None if rhythm is None else (rhythm[0], rhythm[1] + self._jitter_ns(topic, receiver))

    def _rhythm_of(self, job: Job) -> tuple[int, int] | None:
        """The shortest period of its messages, and by how much one of them may come late, ns."""
        if job in self._asked:
            return None
        self._asked.add(job)
        try:
            return self._find_rhythm(job)
        finally:
            self._asked.discard(job)

    def _find_rhythm(self, job: Job) -> tuple[int, int] | None:
        late_ns = self.wait_ns(job) + job.cost_ns - job.least_ns
        if isinstance(job.handler, DeadlineWatch):
            return job.period_ns, late_ns
        if job.topic or (job.follows and self._followed_rhythm(job) is not None):
            rhythm = self._rhythm_of_topic(job.topic or job.follows, job.node)
            return None if rhythm is None else (rhythm[0], rhythm[1] + late_ns)
        return job.period_ns - 1, late_ns + (job.period_ns if job.follows else 0)


def _jobs(spec: NodeSpec, built: Node) -> list[Job]:
    """The jobs of a node, in order of declaration."""
    found = []
    ports = ports_of(spec.cls, Subscription)
    for handler in handlers_of(spec.cls):
        latency = spec.latency.get(handler.name, Latency())
        lane = {
            "plain": ("plain", spec.name if spec.cls.realtime else spec.process or spec.name, str(spec.cls.realtime)),
            "blocking": ("blocking", spec.name),
            "async": ("async", spec.name, handler.name),
        }[handler.style]
        most_ns, least_ns = to_ns(longest_s(latency)), to_ns(shortest_s(latency))
        if isinstance(handler, Timer):
            period_ns = math.ceil(NS_PER_S / spec.hz.get(handler.name, handler.hz))
            follows = spec.after.get(handler.name, "")
            found.append(Job(spec.name, handler, lane, most_ns, least_ns, period_ns=period_ns, follows=follows))
            continue
        qos: QoS = getattr(built, handler.port).qos
        topic = spec.topic_of(ports[handler.port])
        if isinstance(handler, DeadlineWatch):
            period_ns = to_ns(qos.deadline_s or 1.0)
            found.append(Job(spec.name, handler, lane, most_ns, least_ns, period_ns=period_ns))
        else:
            found.append(
                Job(
                    spec.name,
                    handler,
                    lane,
                    most_ns,
                    least_ns,
                    topic=topic,
                    depth=qos.depth,
                    drops_new=qos.drop == "newest",
                    most_hz=qos.max_hz or 0.0,
                )
            )
    return found


def longest_s(latency: Latency) -> float:
    """The 99th percentile, or the upper bound, of a declared latency."""
    if latency.measured_s:
        return nearest_rank(latency.measured_s, 99)
    return latency.p99_s or latency.highest_s


def shortest_s(latency: Latency) -> float:
    """The lower bound of a declared latency."""
    if latency.measured_s:
        return min(latency.measured_s)
    return 0.0 if latency.p50_s else latency.lowest_s


def _catches_up(job: Job) -> bool:
    return isinstance(job.handler, Timer) and job.handler.overrun == "catch-up"


def _parameter(spec: NodeSpec, name: str) -> float | None:
    """A number that the node is given, or has by default; None without such a parameter."""
    known = parameters_of(spec.cls).get(name)
    value = spec.params.get(name, known.default) if known is not None else None
    return float(value) if isinstance(value, int | float) else None
