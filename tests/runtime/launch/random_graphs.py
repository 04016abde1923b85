"""Random graphs of all kinds of handlers and both kinds of topics, with constant latencies, for path budgets."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

from runtime import Message, Node, Publisher, QoS, Stamped, Subscription, every, on
from runtime.launch.graph import Graph, NodeSpec
from runtime.launch.tables.budgets_table import Budgets, PathBudget
from runtime.launch.tables.handler_latency import Latency
from runtime.launch.tables.links_table import LinkModel
from runtime.node import Overrun


class Picture(Message, kind="state", origin="picture"):
    number: int = 0


class Exposure(Message, kind="state", origin="picture"):
    """Says itself when it was taken."""

    captured_ns: int


class Word(Message, kind="event", origin="word"):
    number: int = 0


class Finding(Message, kind="state"):
    number: int = 0


class Notice(Message, kind="event"):
    number: int = 0


Kind = type[Message]
Parts = dict[str, Any]


def camera(out: Kind, hz: float, phase: float) -> type[Node]:
    class Camera(Node):
        out_port = Publisher(out, "out")

        @every(hz=hz, phase=phase)
        def take(self) -> None:
            captured = {"captured_ns": self.clock.now_ns()} if out is Exposure else {}
            self.out_port.publish(out(**captured))

    return Camera


def stage(inner: Kind, out: Kind, qos: QoS) -> type[Node]:
    """A node on the path, without its handlers."""

    class Stage(Node):
        in_port = Subscription(inner, "in", qos=qos)
        out_port = Publisher(out, "out")

        def look(self) -> None:
            if self.in_port.latest() is not None:
                self.out_port.publish(out())

        def hand_on(self) -> None:
            self.out_port.publish(out())

    return Stage


def sampler(base: type[Node], hz: float, phase: float, *, blocking: bool = False) -> Parts:
    @every(hz=hz, phase=phase, blocking=blocking)
    def work(self: Any) -> None:
        self.look()

    return {"work": work}


def async_sampler(base: type[Node], hz: float, phase: float) -> Parts:
    @every(hz=hz, phase=phase)
    async def work(self: Any) -> None:
        self.look()

    return {"work": work}


def reactor(base: Any, hz: float, phase: float, *, blocking: bool = False) -> Parts:
    @on(base.in_port, blocking=blocking)
    def work(self: Any, _: Message) -> None:
        self.hand_on()

    return {"work": work}


def async_reactor(base: Any, hz: float, phase: float) -> Parts:
    @on(base.in_port)
    async def work(self: Any, _: Message) -> None:
        self.hand_on()

    return {"work": work}


def beside(hz: float, phase: float = 0.0, overrun: Overrun = "skip") -> Parts:
    """A timer that has nothing to do with the path, on its loop."""

    @every(hz=hz, phase=phase, overrun=overrun)
    def other(self: Any) -> None: ...

    return {"other": other}


def side() -> Parts:
    """A message handler that has nothing to do with the path, on its loop."""
    port = Subscription(Finding, "side", qos=QoS(required=False))

    @on(port)
    def hear(self: Any, _: Message) -> None: ...

    return {"side_port": port, "hear": hear}


def shared_loop(base: type[Node], hz: float, phase: float) -> Parts:
    return {**sampler(base, hz, phase), **beside(hz / 2), **side()}


def busy_reactor(base: type[Node], hz: float, phase: float) -> Parts:
    return {**reactor(base, hz, phase), **beside(hz, phase)}


def two_ports(base: type[Node], hz: float, phase: float) -> Parts:
    return {**reactor(base, hz, phase), **side(), **beside(hz, phase, "catch-up")}


def keeper(base: Any, hz: float, phase: float) -> Parts:
    """Keeps what it is given, and says so when it publishes."""
    out = base.out_port.message

    @on(base.in_port, blocking=True)
    def work(self: Any, stamped: Stamped[Any]) -> None:
        self.kept = stamped

    @every(hz=hz, phase=phase)
    def other(self: Any) -> None:
        if self.kept is not None:
            self.out_port.publish(out(), stems_from=self.kept)

    return {"kept": None, "work": work, "other": other}


def joiner(base: type[Node], hz: float, phase: float) -> Parts:
    """Makes one thing of what the path brings and of what comes straight from its beginning."""

    @every(hz=hz, phase=phase)
    def work(self: Any) -> None:
        if self.in_port.latest() is not None:
            self.first_port.latest()
            self.hand_on()

    return {"first_port": Subscription(Picture, "first", qos=QoS(required=False)), "work": work}


MAKERS: tuple[Callable[[type[Node], float, float], Parts], ...] = (
    sampler, partial(sampler, blocking=True), async_sampler,
    reactor, partial(reactor, blocking=True), async_reactor,
    shared_loop, busy_reactor, keeper, joiner, two_ports,
)  # fmt: skip


class RandomGraph:
    """One graph: a chain of nodes with side ways. The same number gives the same graph, but for the phases."""

    def __init__(self, number: int) -> None:
        generator = random.Random(number)
        self._number = number
        self.is_of_words = generator.random() < 0.3
        first: Kind = Word if self.is_of_words else generator.choice((Picture, Picture, Exposure))
        self._is_harmonic = generator.random() < 0.3
        inner, self.periods_s = first, [self._period_s(generator)]
        self._stages: list[tuple[Any, Kind, Kind, float, QoS, dict[str, Latency], bool]] = []
        self.has_queue = False
        length = generator.randint(1, 4)
        for place in range(length):
            is_event = generator.random() < 0.3 and (self.is_of_words or place == length - 1)
            out: Kind = Notice if is_event else Finding
            period_s = self._period_s(generator)
            depth = generator.choice((0, 0, 0, 3)) if inner.message_kind == "state" else 0
            lifespan_s = generator.choice((None, None, None, generator.uniform(0.05, 0.5)))
            share = generator.choice((0.0, 0.1, 0.3, 0.7, 1.3))
            latency = {"work": Latency(highest_s=(one := share * period_s), lowest_s=one)}
            maker = generator.choice(MAKERS)
            if maker in (shared_loop, busy_reactor, keeper, two_ports):
                latency["other"] = Latency(highest_s=(one := generator.uniform(0, 0.4) * period_s), lowest_s=one)
            if maker in (shared_loop, two_ports):
                latency["hear"] = Latency(highest_s=(one := generator.uniform(0, 0.2) * period_s), lowest_s=one)
            self.has_queue |= inner.message_kind == "event" or depth > 1
            qos = QoS(depth=depth, lifespan_s=lifespan_s)
            self._stages.append((maker, inner, out, 1 / period_s, qos, latency, generator.random() < 0.2))
            self.periods_s.append(period_s)
            inner = out
        self._first = first
        self._delay_s = generator.choice((0.0, 0.0, generator.uniform(0.0, 0.05)))
        self.topics = tuple(f"t{place}" for place in range(length + 1))
        self._tick_latency = Latency(highest_s=(one := generator.uniform(0, 0.5) * self.periods_s[0]), lowest_s=one)

    def _period_s(self, generator: random.Random) -> float:
        return generator.choice((0.02, 0.04, 0.05, 0.1, 0.2)) if self._is_harmonic else generator.uniform(0.02, 0.2)

    @property
    def links(self) -> tuple[LinkModel, ...]:
        """A network on the path's last way, where it has one."""
        delay = Latency(lowest_s=self._delay_s, highest_s=self._delay_s)
        return (LinkModel("wifi", topics=(self.topics[-2],), delay=delay),) if self._delay_s else ()

    @property
    def budgets(self) -> Budgets:
        """Its path."""
        return Budgets({"path": PathBudget(self.topics, 1000.0, "word" if self.is_of_words else "picture")})

    def graph(self, seed: int) -> Graph:
        """The graph with the phases of that seed."""
        phases = random.Random(f"{self._number}/{seed}")
        if self._is_harmonic and seed % 4 == 0:  # all at the same instants
            phases.random = lambda: 0.0  # type: ignore[method-assign]
        cls = camera(self._first, 1 / self.periods_s[0], phases.random())
        specs = [NodeSpec("n0", cls, remap={"out": "t0"}, latency={"take": self._tick_latency})]
        for place, (maker, inner, out, hz, qos, latency, follows) in enumerate(self._stages, 1):
            base = stage(inner, out, qos)
            cls = type("Stage", (base,), maker(base, hz, phases.random()))
            remap = {"in": f"t{place - 1}", "out": f"t{place}"}
            if maker is joiner:
                remap["first"] = "t0" if self._first is Picture and place > 1 else f"first{place}"
            if maker in (shared_loop, two_ports):
                remap["side"] = f"side{place}"
                pulse = camera(Finding, 1.7 * hz, phases.random())
                specs.append(NodeSpec(f"pulse{place}", pulse, remap={"out": f"side{place}"}))
            after = {"work": f"t{place - 1}"} if follows and maker in (sampler, async_sampler) else {}
            specs.append(NodeSpec(f"n{place}", cls, remap=remap, latency=latency, after=after))
        return Graph(specs)
