"""`Simulation`: a graph in one process on virtual time. Tests, `run --virtual` and text episodes run this way.

Handlers run inline, one after the other, in the order (time, priority, sequence). What a handler publishes leaves it
after the handler's declared latency; until then its lane is busy, as it would be in real time.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from asyncio import events
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol

from runtime.clock import to_ns
from runtime.context import HandlerContext, NodeAges, captured_ns_of, inherit
from runtime.coordination.fence import PreemptionEpochs
from runtime.coordination.health import Health
from runtime.coordination.lease import SeatHolders
from runtime.errors import GraphError, PolyrhythmError
from runtime.execution.bound_node import BoundNode
from runtime.execution.health_report import health_of
from runtime.external_call import answer_of
from runtime.journal.calls import calls_topic
from runtime.launch.graph import Graph, NodeSpec, health_topic, specs_of
from runtime.launch.one_file import seats_of
from runtime.launch.provenance import blas_kernel
from runtime.launch.tables.budgets_table import Budgets
from runtime.launch.tables.links_table import LinkModel
from runtime.launch.tables.seats_table import SeatTable, as_data, holders_of, topics_of
from runtime.message import Envelope, M, Message, Stamped
from runtime.node import Node
from runtime.ports import Publisher, Subscription, checked
from runtime.run_facts import RunFacts
from runtime.virtual.delivery import OUTSIDE, Delivery, Observer
from runtime.virtual.lanes import VirtualLanes
from runtime.virtual.sandbox import DeterminismGuard
from runtime.virtual.scheduler import TIMER, OutsideCall, Scheduler, VirtualClock, VirtualLoop
from runtime.virtual.simulation_arguments import (
    check_function,
    check_message,
    check_port,
    check_span,
    check_start,
    check_topic_of,
    check_type,
)
from runtime.virtual.trace import MessageTrace


@contextmanager
def few_collections() -> Iterator[None]:
    """Run the garbage collector seldom: graphs and episodes keep many objects, and each run visits them all."""
    usual = gc.get_threshold()
    gc.set_threshold(100_000, 50, 100)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


class Simulation:
    """Nodes, given as instances, as specs or as a graph, on one virtual clock from one seed.

    Raises GraphError where the nodes do not fit together; a subscription without a publisher is allowed here, since
    `publish` may feed it. What its methods are asked wrongly raises UserError.
    """

    def __init__(
        self,
        *nodes: Node | NodeSpec | Graph,
        seed: int = 0,
        health_hz: float = 0.0,
        links: Sequence[LinkModel] = (),
        seats: Mapping[str, SeatTable] | None = None,
        budgets: Budgets | None = None,
        watched: bool = True,
        trace: MessageTrace | None = None,
        goes_on: bool = False,
    ) -> None:
        """`goes_on`: what a handler raises is logged and counted, and the node goes on, as in real time."""
        check_start(seed, health_hz, links, seats, budgets, trace)
        self.scheduler = Scheduler()
        self.clock = VirtualClock(self.scheduler)
        self.outcome: tuple[bool, str] | None = None
        self.run_info: dict[str, Any] = {"seed": seed, "clock": "virtual"}
        self._loop = VirtualLoop(self.scheduler)
        self._seq = 0
        seats = seats or seats_of(nodes)
        self.run_info["seats"] = as_data(seats)
        budgets = budgets or Budgets()
        self.run_info["budgets"] = budgets.as_data()
        self._is_started = False
        self._health_ns = to_ns(1 / health_hz) if health_hz else 0
        self._health_seq: dict[str, int] = {}
        self._calls_seq: dict[str, int] = {}
        specs = specs_of(nodes)
        self.graph = Graph(specs, {seat: table.candidates for seat, table in seats.items()})
        self.run_info.update(self.graph.facts)
        self.run_info["roles"] = {**self.graph.roles, "": [OUTSIDE]}
        for _, problem in self.graph.problems():
            if "nobody publishes it" not in problem:
                raise GraphError(problem)
        self.trace = trace
        self._watch: DeterminismGuard | None = None
        if watched:
            self._watch = DeterminismGuard(
                getattr(sys.modules.get(spec.cls.__module__), "__file__", None) or "" for spec in specs
            )
            self._loop.watch = self.clock.watch = self._watch
        rules = self.graph.ages
        fence = PreemptionEpochs()
        leases = SeatHolders(holders_of(seats), topics_of(seats, self.graph.nodes))
        self._lanes = VirtualLanes(self.scheduler, self._loop, specs, seed)
        self._lanes.watch = self._watch
        self._lanes.goes_on = self._goes_on = goes_on
        self._delivery = Delivery(
            self.scheduler,
            self._lanes,
            fence=fence,
            leases=leases,
            authority=self.graph.authority,
            links=links,
            seed=seed,
            trace=trace,
            finish=self._finish,
        )
        process: dict[type, Any] = {}
        self.bound_nodes = {
            spec.name: BoundNode(
                spec.build(),
                name=spec.name,
                clock=self.clock,
                seed=seed,
                output=self._delivery,
                fence=fence,
                leases=leases,
                hz=spec.hz,
                after=spec.after,
                remap=spec.remap,
                everything=self.graph.types,
                paths=budgets.paths,
                rules=rules,
                process=process,
            )
            for spec in specs
        }
        for bound in self.bound_nodes.values():
            if self._health_ns and self.graph.is_recorded and not type(bound.node).subscribes_all:
                bound.keep_journal()
            self._delivery.connect(bound)
            self._lanes.watch_ticks(bound)

    def record(self, port: Publisher[M] | Subscription[M]) -> list[M]:
        """A list that grows by each message published on this port's topic from now on."""
        check_port(port, self.graph)
        return self.record_topic(port.topic, port.message)

    def record_topic(self, topic: str, message: type[M]) -> list[M]:
        """A list that grows by each message published on the topic from now on."""
        check_topic_of(topic, "record_topic", self.graph, self._delivery.newest)
        check_type(message, "record_topic", self.graph.types.get(topic))
        found: list[M] = []

        def observe(stamped: Stamped[Any]) -> None:
            if stamped.envelope.topic == topic and isinstance(stamped.message, message):
                found.append(stamped.message)

        self.observe(observe)
        return found

    def observe(self, observer: Observer) -> None:
        """Call `observer` with every message, at its time of publication."""
        check_function(observer)
        self._delivery.observers.append(observer)

    def latest(self, topic: str) -> Message | None:
        """The newest message that was published on the topic; None before the first."""
        stamped = self.latest_stamped(topic)
        return None if stamped is None else stamped.message

    def latest_stamped(self, topic: str) -> Stamped[Any] | None:
        """The newest message on the topic with its envelope; None before the first."""
        return self._delivery.newest.get(check_topic_of(topic, "latest", self.graph, self._delivery.newest))

    @property
    def topics_seen(self) -> tuple[str, ...]:
        """Every topic on which something was published."""
        return tuple(self._delivery.newest)

    def publish(
        self,
        topic: str,
        message: Message,
        *,
        source: str = OUTSIDE,
        stems_from: Stamped[Any] | Iterable[Stamped[Any]] = (),
    ) -> None:
        """Publish a message on a topic of the graph now, from outside of it. Raises as a node's port does.

        It is as old as what it stems from: give what was looked at, as `latest_stamped` returns it.
        """
        check_message(topic, message, self.graph)
        message = checked(message, type(message), f"publishes on topic {topic!r}")
        self._seq += 1
        now_ns = self.scheduler.now_ns
        ages = NodeAges(self.graph.ages)
        call = HandlerContext(now_ns, ages=ages).stating(stems_from)
        origin, own_ns = message.message_origin, captured_ns_of(message, now_ns)
        self._delivery.send(inherit(call, ages, topic, source, self._seq, now_ns, origin, own_ns, ""), message)

    def run(self, seconds: float | None = None, *, until: Callable[[], bool] | None = None) -> None:
        """Run for that many seconds, until `until()` holds after a step, or until a node finishes the run.

        Without both it runs until nothing is due any more. An exception in a handler ends the run and is raised
        here, where the simulation does not go on.
        """
        check_span(seconds, until)
        end_ns = None if seconds is None else self.scheduler.now_ns + to_ns(seconds)
        outer = events._get_running_loop()
        events._set_running_loop(self._loop)
        with ExitStack() as stack:
            stack.callback(events._set_running_loop, outer)
            if self._watch is not None:
                stack.enter_context(self._watch)
            self._start()
            while self.outcome is None and not (until is not None and until()):
                next_ns = self.scheduler.next_ns
                if next_ns is None or (end_ns is not None and next_ns >= end_ns):
                    break
                self.scheduler.step()
                if self._lanes.failure is not None:
                    failure, self._lanes.failure = self._lanes.failure, None
                    if self._watch is not None:
                        self._watch.found = None
                    raise failure
                self._raise_escape()
            if end_ns is not None and self.outcome is None and not (until is not None and until()):
                self.scheduler.now_ns = max(self.scheduler.now_ns, end_ns)

    def step(self) -> bool:
        """Run the one callback that is due next; False where nothing is due any more or the run is over."""
        is_done = iter((False,))
        self.run(until=lambda: next(is_done, True))
        return self.outcome is None and self.scheduler.next_ns is not None

    def _raise_escape(self) -> None:
        """An escape that a node's own `except` has swallowed is one all the same."""
        if self._watch is not None and self._watch.found is not None:
            escape, self._watch.found = self._watch.found, None
            raise escape

    async def run_async(self, pace: Pace | None = None) -> None:
        """Run until a node finishes the run or to the end, while other coroutines of this loop go on.

        Calls to the outside that are made at one instant are awaited together, and answered in the order in which they
        were made. So many simulations in one process share one loop, and each stays reproducible.
        """
        calls = self.clock.outside_calls = []
        while True:
            self.run(until=lambda: (bool(calls) or pace is not None) and not self._is_due_now())
            if self.outcome is not None:
                break
            if not calls:
                if pace is None or not await pace.until(self.scheduler.next_ns):
                    break
                continue
            waiting = [call for call in calls if not call.future.cancelled()]
            _discard(calls)
            for call, answer in zip(waiting, await _answers(waiting), strict=True):
                if isinstance(answer, BaseException):
                    call.future.set_exception(answer)
                else:
                    call.future.set_result(answer)
        _discard(calls, all_of_them=True)

    def _is_due_now(self) -> bool:
        return self.scheduler.next_ns is not None and self.scheduler.next_ns <= self.scheduler.now_ns

    def close(self) -> None:
        """Publish the last health, stop the nodes and what `clock.external` used."""
        events_loop = events._get_running_loop()
        events._set_running_loop(self._loop)
        try:
            self._lanes.is_closing = True
            self._lanes.cancel()
            if self._is_started:
                self._publish_health(last=True)
                self._settle()
                self._hear_out()
                if self.outcome is not None:
                    self.run_info["outcome"] = {"ok": self.outcome[0], "reason": self.outcome[1]}
                if self.trace is not None:
                    self.run_info["trace"] = self.trace.hash
                if kernel := blas_kernel():  # known only now: nodes load numpy when they need it
                    self.run_info["blas"] = kernel
                self._tell_facts()
                self._stop_nodes()
                self._is_started = False
        finally:
            events._set_running_loop(events_loop)
        self.clock.close()

    def _stop_nodes(self) -> None:
        has_failed = False
        for bound in self.bound_nodes.values():
            try:
                self._await(bound.node.on_stop())
            except Exception as problem:
                if not self._goes_on:
                    raise
                bound.failures.tell("on_stop", problem)
                has_failed = True
        if has_failed:
            self._publish_health(last=True)
            self._settle()

    def _settle(self) -> None:
        """Run what is due at this very instant, so that the last messages arrive."""
        while self.scheduler.next_ns is not None and self.scheduler.next_ns <= self.scheduler.now_ns:
            self.scheduler.step()

    def _hear_out(self) -> None:
        """Let recorders have what waits for them, however busy their launch file says that they are."""
        for bound in self.bound_nodes.values():
            for lane in bound.lanes if type(bound.node).subscribes_all else ():
                while (work := lane.take(self.scheduler.now_ns)) is not None:
                    bound.run(work, bound.call(work))

    def _start(self) -> None:
        if self._is_started:
            return
        self._is_started = True
        self._tell_facts()
        watch = self._watch
        for bound in self.bound_nodes.values():
            if watch is not None:
                watch.begin(f"{bound.name}.on_start")
            try:
                self._await(bound.start(self.scheduler.now_ns))
            except Exception as problem:
                if not self._goes_on or isinstance(problem, PolyrhythmError):
                    raise
                raise bound.start_failed(problem) from problem
            finally:
                if watch is not None:
                    watch.end()
                    watch.look_around()  # at what the node has imported at its start
        self._raise_escape()
        for bound in self.bound_nodes.values():
            for lane in bound.lanes:
                self._lanes.arm(bound, lane)
        if self._health_ns:
            self.scheduler.at(self.scheduler.now_ns + self._health_ns, self._publish_health, priority=TIMER)

    def _await(self, waits: Awaitable[None] | None) -> None:
        """Step on until an async `on_start` or `on_stop` is over."""
        if waits is None:
            return
        task = self._loop.create_task(_all_of(waits))
        while not task.done():
            if self.scheduler.next_ns is None:
                task.cancel()
                raise PolyrhythmError("an on_start or on_stop waits for what never comes")
            self.scheduler.step()
        task.result()

    def _tell_facts(self) -> None:
        """Let the nodes know what is known of the run by now."""
        facts = RunFacts.of(self.run_info)
        for bound in self.bound_nodes.values():
            bound.node.run_info = facts

    def _finish(self, name: str, ok: bool, reason: str) -> None:
        if self.outcome is None:
            self.outcome = (ok, reason)
            self._lanes.is_over = True

    def _publish_health(self, *, last: bool = False) -> None:
        if not self._health_ns:
            return
        for name, bound in self.bound_nodes.items():
            seq = self._health_seq[name] = self._health_seq.get(name, 0) + 1
            health: Health = health_of(bound, pid=0, cpu_s=0.0, rss_mb=0.0)
            self._delivery.send(Envelope(health_topic(name), name, seq, self.scheduler.now_ns), health)
            calls = bound.journal.take(name) if bound.journal is not None else None
            if calls is not None:
                seq = self._calls_seq[name] = self._calls_seq.get(name, 0) + 1
                self._delivery.send(Envelope(calls_topic(name), name, seq, self.scheduler.now_ns), calls)
        if not last:
            self.scheduler.at(self.scheduler.now_ns + self._health_ns, self._publish_health, priority=TIMER)


async def _all_of(waits: Awaitable[None]) -> None:
    await waits


class Pace(Protocol):
    """Slows a virtual run to the pace of people, and brings in what they do."""

    async def until(self, next_ns: int | None) -> bool:
        """Set the scheduler's time to when the run goes on, and return: at the latest when the next event is due.

        `next_ns` is None where nothing is due any more. Returns False where nothing ever will be.
        """
        ...


async def _answers(calls: list[OutsideCall]) -> list[Any]:
    """What the world answers, or the exception it raises; a single call needs no task of its own."""
    if len(calls) != 1:
        return await asyncio.gather(*(answer_of(call.call, call.timeout_s) for call in calls), return_exceptions=True)
    try:
        return [await answer_of(calls[0].call, calls[0].timeout_s)]
    except Exception as problem:  # noqa: BLE001  # handed on to whoever called
        return [problem]


def _discard(calls: list[OutsideCall], *, all_of_them: bool = False) -> None:
    """Forget the calls; those that nobody waits for any more are never made."""
    for call in calls:
        if (all_of_them or call.future.cancelled()) and asyncio.iscoroutine(call.call):
            call.call.close()
    calls.clear()
