"""Runs the nodes of one process in real time: their lanes, and the messages to and from other processes."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import resource
import sys
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from runtime.abilities import HearsTheRest
from runtime.clock import TELLS_CPU_OF_THREADS, SystemClock, to_ns
from runtime.context import AgeRules
from runtime.coordination.fence import Fence, PreemptionEpochs
from runtime.coordination.lease import Lease, SeatHolders
from runtime.errors import PolyrhythmError
from runtime.execution.bound_node import BoundNode, NodeOutput
from runtime.execution.direct_call import direct_call
from runtime.execution.failures import tell_of_callbacks
from runtime.execution.health_report import HEALTH_PERIOD_S, health_of
from runtime.execution.held_up import HeldUp
from runtime.execution.lane import Lane
from runtime.execution.long_calls import LongCalls
from runtime.execution.recorder_queue import DeepPort
from runtime.execution.runners import LaneRunner, LoopRunner, MessageSource, ThreadRunner, run_guarded
from runtime.journal.calls import calls_topic
from runtime.launch.graph import NodeSpec, health_topic
from runtime.launch.tables.budgets_table import Budgets
from runtime.message import Envelope, Message, Stamped
from runtime.operating_system.real_time import CONTROL_PRIORITY
from runtime.ports import Subscription
from runtime.run_facts import RunFacts

_JOIN_S = 1.0
LAST_WRITES_S = 6.0  # for what waits for a recorder at the end; within the supervisor's patience with it
_MOST_TOLD = 32
_FOR_ALL = frozenset((Fence, Lease))  # they concern the whole process
_SWITCH_INTERVAL_S = 0.001  # a realtime thread waits at most this long for another thread of its process

Publish = Callable[[Envelope, Message], None]
Deliver = Callable[[Stamped[Any]], None]
Lost = Callable[[str, str, int, str], None]


class Transport(Protocol):
    """Connects the nodes of a process with the rest of the run; a subclass overrides what it supports."""

    def publish(self, envelope: Envelope, message: Message) -> None:
        """Send a message to the other processes (any thread); the default does nothing."""
        return

    def publish_all(self, envelope: Envelope, messages: Sequence[Message]) -> None:
        """Send messages that were published together; `envelope` is that of the first."""
        for number, message in enumerate(messages):
            self.publish(envelope.later(number), message)

    direct: Collection[str] = ()
    """States that come directly from their publisher to the thread that handles them."""

    acknowledged: Collection[str] = ()
    """Events of other processes that this one acknowledges."""

    def writer(self, topic: str, message: type[Message]) -> Publish:
        """A faster `publish` for the messages of one publisher; None where there is none."""
        return self.publish

    def open_source(self, types: Mapping[str, type[Message]], deliver: Deliver, lost: Lost) -> MessageSource | None:
        """A control loop's own source of the topics that nobody else in the process hears; None where there is none."""
        return None

    def unacknowledged(self) -> Mapping[str, Mapping[str, int]]:
        """How many reliable events were not acknowledged, by topic and "process: reason"."""
        return {}

    def each_second(self) -> None:
        """Do regular work; called once a second."""
        return

    def finish(self, node: str, ok: bool, reason: str) -> None:
        """Pass on that a node asks for the end of the run (any thread); the default does nothing."""
        return


class Executor(NodeOutput):
    """Runs the nodes of one process.

    `types` are the message types of the topics heard; `shared_types` those that no control loop reads by itself.
    """

    def __init__(
        self,
        specs: Iterable[NodeSpec],
        types: Mapping[str, type[Message]],
        *,
        transport: Transport,
        seed: int,
        run_info: Mapping[str, Any],
        keeps_journal: bool = False,
        leases: SeatHolders | None = None,
        authority: str = "",
        control_priority: int = CONTROL_PRIORITY,
    ) -> None:
        """`authority` names the node whose fences and leases count; "" accepts anybody's."""
        self._transport = transport
        self._control_priority = control_priority
        self.clock = SystemClock()
        self.shared_types = dict(types)
        self._sources: dict[int, MessageSource] = {}  # by id of the lane
        self._publish, self._publish_all = transport.publish, transport.publish_all
        self._routes: dict[str, list[tuple[Subscription[Any], Callable[[], None]]]] = {}
        self._runners: list[LaneRunner] = []
        self._end: asyncio.Event | None = None
        self._health_seq = 0
        self._told: set[tuple[str, str]] = set()
        self._calls_seq: dict[str, int] = {}
        self._fence = PreemptionEpochs()
        self._leases = leases or SeatHolders()
        self._authority = authority
        self._by_seat: dict[str, list[LaneRunner]] = {}
        self._early: list[tuple[Envelope, Message]] | None = []  # published in on_start, before anybody listens
        self._early_lock = threading.Lock()
        self.bound_nodes: list[BoundNode] = []
        self._started: list[BoundNode] = []
        facts = RunFacts.of(run_info)
        paths, rules = Budgets.of(run_info).paths, AgeRules.of(run_info)
        process: dict[type, Any] = {}
        for spec in specs:
            bound = BoundNode(
                spec.build(),
                name=spec.name,
                clock=self.clock,
                seed=seed,
                output=self,
                fence=self._fence,
                leases=self._leases,
                hz=spec.hz,
                after=spec.after,
                remap=spec.remap,
                everything=types,
                paths=paths,
                rules=rules,
                process=process,
            )
            bound.node.run_info = facts
            if keeps_journal and not spec.cls.subscribes_all:
                bound.keep_journal()
            self.bound_nodes.append(bound)
        self.long_calls = LongCalls(self.bound_nodes)
        if TELLS_CPU_OF_THREADS and any(bound.has_worker for bound in self.bound_nodes):
            held_up = HeldUp()
            for bound in self.bound_nodes:
                bound.held_up = held_up
        self._open_sources()

    def _open_sources(self) -> None:
        hearers = Counter(port.topic for bound in self.bound_nodes for port in bound.subscriptions.values())
        for bound, lane in _plain_lanes(self.bound_nodes):
            is_realtime = type(bound.node).realtime
            ports = {port.topic: port for _, port in lane.listeners if hearers[port.topic] == 1}
            own = {
                topic: message
                for topic, message in self.shared_types.items()
                if topic in ports
                and (is_realtime or topic in self._transport.direct or self._may_take_events(bound, topic, message))
                and not issubclass(message, Fence | Lease)  # those concern the whole process
            }
            if own:
                deliver = ports[next(iter(own))].push if len(own) == 1 else partial(_push, ports)
                source = self._transport.open_source(own, deliver, self.lost)
                if source is None:
                    continue
                self._sources[id(lane)] = source
                for topic in own:
                    del self.shared_types[topic]

    def _may_take_events(self, bound: BoundNode, topic: str, message: type[Message]) -> bool:
        """Whether the loop takes these events in by itself; a recorder has a thread that does, and so have receipts."""
        return (
            message.message_kind == "event"
            and topic not in self._transport.acknowledged
            and not type(bound.node).subscribes_all
        )

    @property
    def topics_kept(self) -> list[str]:
        """The topics whose newest message is kept for late readers."""
        return [port.topic for bound in self.bound_nodes for port in bound.publishers if port.qos.late_join]

    async def prepare(self) -> None:
        """Start the nodes, which load their models here, and route their topics; no timer ticks yet."""
        self._loop = loop = asyncio.get_running_loop()
        tell_of_callbacks(loop, self.clock)
        for bound in self.bound_nodes:
            with self.long_calls.starting():
                await self._start(bound)
            followed: set[Subscription[Any]] = set()
            for lane in bound.lanes:
                runner = self._runner(bound, lane, loop)
                self._runners.append(runner)
                self._by_seat.setdefault(type(bound.node).seat, []).append(runner)
                for _, port in lane.listeners:
                    self._routes.setdefault(port.topic, []).append((port, runner.wake))
                for follower in lane.followers:
                    self._routes.setdefault(follower.port.topic, []).append((follower.port, runner.wake))
                followed |= {follower.port for follower in lane.followers}
            for port in bound.subscriptions.values():
                if not port.has_handler and port not in followed:
                    self._routes.setdefault(port.topic, []).append((port, _nothing))

    async def _start(self, bound: BoundNode) -> None:
        try:
            if (waits := bound.start(self.clock.now_ns())) is not None:
                await waits
            self._started.append(bound)
        except PolyrhythmError:
            raise
        except Exception as problem:
            raise bound.start_failed(problem) from problem

    def _runner(self, bound: BoundNode, lane: Lane, loop: asyncio.AbstractEventLoop) -> LaneRunner:
        is_realtime = lane.style == "plain" and type(bound.node).realtime
        source = self._sources.get(id(lane))
        if source is not None:
            source.use(
                {port.topic: direct_call(bound, lane, handler, port, self.clock) for handler, port in lane.listeners}
            )
        if lane.style == "blocking" or is_realtime:
            priority = self._control_priority if is_realtime else None
            return ThreadRunner(bound, lane, self.clock, leave=self._leave, priority=priority, source=source)
        return LoopRunner(bound, lane, self.clock, loop, self._is_ending, source)

    def _leave(self, wish: BaseException) -> None:
        """A handler in a thread wants the process to end: the loop ends, as where one on the loop does."""

        def leave() -> None:
            raise wish

        self._loop.call_soon_threadsafe(leave)

    def forget(self) -> None:
        """In a process that a handler has forked: no handler runs there any more, and it ends with that one."""
        for runner in self._runners:
            runner.forget()
        self._loop.call_soon(os._exit, 0)

    def _is_ending(self) -> bool:
        return self._end is not None and self._end.is_set()

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set; then stop the nodes, each with a last health report."""
        self._end = stop
        sys.setswitchinterval(_SWITCH_INTERVAL_S)
        gc.collect()
        gc.freeze()
        start_ns = self.clock.now_ns()
        for bound in self.bound_nodes:
            for lane in bound.lanes:
                lane.start(start_ns)
        with self._early_lock:  # a device's thread may publish meanwhile: after these
            for envelope, message in self._early or ():
                self._send_now(envelope, message)
            self._early = None
        for bound in self.bound_nodes:
            for publisher in bound.publishers:
                if publisher.topic not in self._routes and publisher.message not in _FOR_ALL:
                    publisher.transmit = self._transport.writer(publisher.topic, publisher.message)
        self.long_calls.watch_loop(self._loop.call_soon_threadsafe)
        for runner in self._runners:
            try:
                runner.start()
            except SystemExit as wish:  # of the first tick
                self._leave(wish)
            if isinstance(runner, ThreadRunner):
                runner.be_watched(self.long_calls)
        end = self._loop.create_task(stop.wait())
        try:
            while not end.done():
                await asyncio.wait((end,), timeout=HEALTH_PERIOD_S)
                if not stop.is_set():
                    self._publish_health()
                    self._transport.each_second()
        except BaseException:  # Ctrl-C in a handler that does not return: no thread goes on without the loop
            for runner in self._runners:
                runner.stop()
            end.cancel()
            raise
        await self._stop()

    async def _stop(self) -> None:
        for bound in self.bound_nodes:
            bound.held_up = None
        for runner in self._runners:
            runner.stop()
        tasks = [runner.task for runner in self._runners if isinstance(runner, LoopRunner) and runner.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=_JOIN_S)
        for runner in self._runners:
            if isinstance(runner, ThreadRunner):
                runner.join(_JOIN_S)
        recorders = [bound for bound in self.bound_nodes if type(bound.node).subscribes_all]
        end_ns = self.clock.now_ns() + to_ns(LAST_WRITES_S)
        for bound in recorders:
            await self._hear_out(bound, end_ns)
        self._publish_health()
        for bound in recorders:
            await self._hear_out(bound, end_ns + to_ns(_JOIN_S))
        await self.stop_nodes()

    async def stop_nodes(self) -> None:
        """Stop what was started and is not stopped yet: also where the run ends before it has begun."""
        started, self._started = self._started, []
        has_failed = False
        for bound in started:
            bound.slow.sum_up()
            try:
                if (waits := bound.node.on_stop()) is not None:
                    await asyncio.wait_for(waits, LAST_WRITES_S)
            except Exception as problem:  # noqa: BLE001  # the node's own; the others stop, too
                bound.failures.tell("on_stop", problem)
                has_failed = True
        if has_failed:
            self._publish_health()  # for the run's last lines; recorders have closed their files

    async def _hear_out(self, bound: BoundNode, end_ns: int) -> None:
        """Let a recorder have what waits for it; what it has not got by then is lost, and it is told so."""
        ports = [port for port in bound.subscriptions.values() if isinstance(port, DeepPort)]
        for lane in bound.lanes:
            if not any(port in ports for _, port in lane.listeners) or f"{bound.name}-{lane.key}" in self.stuck:
                continue
            while (now_ns := self.clock.now_ns()) < end_ns and (work := lane.take(now_ns)) is not None:
                run_guarded(bound, work)
                await asyncio.sleep(0)  # more of it may be on its way here
        for port in ports:
            for stamped in port.give_up():
                if isinstance(bound.node, HearsTheRest):
                    bound.node.on_missed(stamped)

    @property
    def stuck(self) -> list[str]:
        """The threads whose handler did not return when the process stopped."""
        return [
            runner._thread.name for runner in self._runners if isinstance(runner, ThreadRunner) and not runner.join(0)
        ]

    def send(self, envelope: Envelope, message: Message) -> None:
        """Pass a message to the nodes of this process and to the transport (any thread)."""
        if self._early is None or not self._keep_early(envelope, (message,)):
            self._send_now(envelope, message)

    def send_all(self, envelope: Envelope, messages: Sequence[Message]) -> None:
        """Pass on messages that were published together; `envelope` is that of the first."""
        if self._early is not None and self._keep_early(envelope, messages):
            return
        if envelope.topic in self._routes or type(messages[0]) in _FOR_ALL:
            for number, message in enumerate(messages):
                self.deliver(Stamped(message, envelope.later(number)))
        self._publish_all(envelope, messages)

    def finish(self, node: str, ok: bool, reason: str) -> None:
        """Pass on that a node asks for the end of the run (any thread)."""
        self._transport.finish(node, ok, reason)

    def _keep_early(self, envelope: Envelope, messages: Sequence[Message]) -> bool:
        """Keep what is published until all nodes listen; False where they do by now."""
        with self._early_lock:
            if self._early is None:
                return False
            self._early.extend((envelope.later(number), message) for number, message in enumerate(messages))
            return True

    def _send_now(self, envelope: Envelope, message: Message) -> None:
        if envelope.topic in self._routes or type(message) in _FOR_ALL:
            self.deliver(Stamped(message, envelope))
        self._publish(envelope, message)

    def deliver(self, stamped: Stamped[Any]) -> None:
        """Pass a message to the nodes of this process that subscribe to its topic (any thread)."""
        if type(stamped.message) in _FOR_ALL and not self._obeys(stamped):
            return
        for port, wake in self._routes.get(stamped.envelope.topic, ()):
            port.push(stamped)
            wake()

    def _obeys(self, stamped: Stamped[Any]) -> bool:
        """Take in a fence or a lease; False where it is not from the one who may issue them."""
        if self._authority not in ("", stamped.envelope.source):
            return False
        if isinstance(stamped.message, Lease):
            self._leases.take(stamped.message)
        else:
            self._void(self._fence.raise_to(stamped.message.epochs, stamped.envelope.cause))
        return True

    def _void(self, seats: Iterable[str]) -> None:
        for seat in seats:
            for runner in self._by_seat.get(seat, ()):
                self._loop.call_soon_threadsafe(runner.void)

    def lost(self, topic: str, code: str, number: int, why: str) -> None:
        """Count messages that the transport lost, at every subscription that they were for."""
        self._tell_once(topic, code, why)
        for port, _ in self._routes.get(topic, ()):
            port.lose(code, number)

    def hear_refusal(self, source: str, topic: str, receiver: str, why: str, number: int) -> None:
        """Report to a node of this process that another one cannot decode what it sends; other names are ignored."""
        for bound in self.bound_nodes:
            if bound.name == source and any(port.topic == topic for port in bound.publishers):
                bound.hear_refusal(topic, receiver, why, number)

    def note(self, **facts: object) -> None:
        """Add facts of the run for the nodes, such as its outcome."""
        for bound in self.bound_nodes:
            bound.node.run_info = bound.node.run_info.noting(**facts)

    def _tell_once(self, topic: str, code: str, why: str) -> None:
        """Log the first message that could not be read for some reason; a flood of them fills no log."""
        key = (topic, why[:80])
        if why and key not in self._told and len(self._told) < _MOST_TOLD:
            self._told.add(key)
            logging.getLogger("bus").warning("%s on %s: %s", code, topic, why)

    def _publish_health(self) -> None:
        self._health_seq += 1
        usage = resource.getrusage(resource.RUSAGE_SELF)
        unacknowledged = self._transport.unacknowledged()
        for bound in self.bound_nodes:
            health = health_of(
                bound,
                pid=os.getpid(),
                cpu_s=round(usage.ru_utime + usage.ru_stime, 3),
                rss_mb=round(usage.ru_maxrss / 1024, 1),
                unacknowledged=unacknowledged,
            )
            topic = health_topic(bound.name)
            self.send(Envelope(topic, bound.name, self._health_seq, self.clock.now_ns()), health)
            calls = bound.journal.take(bound.name) if bound.journal is not None else None
            if calls is not None:
                topic = calls_topic(bound.name)
                self._calls_seq[topic] = self._calls_seq.get(topic, 0) + 1
                self.send(Envelope(topic, bound.name, self._calls_seq[topic], self.clock.now_ns()), calls)


def _plain_lanes(nodes: Iterable[BoundNode]) -> Iterator[tuple[BoundNode, Lane]]:
    """The lanes of plain handlers."""
    for bound in nodes:
        yield from ((bound, lane) for lane in bound.lanes if lane.style == "plain")


def _push(ports: Mapping[str, Subscription[Any]], stamped: Stamped[Any]) -> None:
    ports[stamped.envelope.topic].push(stamped)


def _nothing() -> None:
    """Nobody waits for this port: it is read when somebody looks."""
