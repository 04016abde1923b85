"""`BoundNode`: a node ready to run: ports bound, handlers sorted into lanes. No threads, no sockets."""

from __future__ import annotations

import inspect
import random
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from runtime.abilities import LosesThings, SpendsMoney
from runtime.clock import Clock
from runtime.context import (
    AgeRules,
    ContextLog,
    HandlerContext,
    NodeAges,
    captured_ns_of,
    current_call,
    inherit,
    unknown_age,
)
from runtime.coordination.fence import PreemptionEpochs
from runtime.coordination.lease import SeatHolders
from runtime.errors import PolyrhythmError
from runtime.execution.failures import Failures
from runtime.execution.held_up import HeldUp
from runtime.execution.lane import Lane, Work
from runtime.execution.long_calls import SlowCalls
from runtime.execution.path_meter import meters_for
from runtime.execution.recorder_queue import ARRAY_BYTES, OTHER_BYTES, ByteBudget, DeepPort
from runtime.execution.timers import Deadline, FollowingTimer, TimerState
from runtime.execution.worker_view import AssignedByOthers, SharedValues, WorkerView
from runtime.journal.answers import AnsweredClock
from runtime.journal.journal import Journal, JournalClock, JournalLog
from runtime.launch.tables.budgets_table import PathBudget
from runtime.message import UNKNOWN_NS, Envelope, Message, Stamped, array_fields
from runtime.node import DeadlineWatch, Node, Timer, handlers_of, ports_of
from runtime.ports import Publisher, Sink, Sources, Subscription, sending_line
from runtime.serialization.codec import holds_arrays


class NodeOutput(Protocol):
    """Receives what a node publishes, and its wish to end the run; any thread may call."""

    def send(self, envelope: Envelope, message: Message) -> None:
        """Send one message."""

    def send_all(self, envelope: Envelope, messages: Sequence[Message]) -> None:
        """Send messages that were published together; `envelope` is that of the first."""
        for number, message in enumerate(messages):
            self.send(envelope.later(number), message)

    def finish(self, node: str, ok: bool, reason: str) -> None:
        """Pass on that a node asks for the end of the run; the default does nothing."""
        return


class BoundNode:
    """A node bound to a clock, a seed and a way to send."""

    def __init__(
        self,
        node: Node,
        *,
        name: str,
        clock: Clock,
        seed: int,
        output: NodeOutput,
        fence: PreemptionEpochs,
        leases: SeatHolders | None = None,
        hz: Mapping[str, float] | None = None,
        after: Mapping[str, str] | None = None,
        remap: Mapping[str, str] | None = None,
        everything: Mapping[str, type[Message]] | None = None,
        paths: Mapping[str, PathBudget] | None = None,
        rules: AgeRules | None = None,
        process: dict[type, Any] | None = None,
    ) -> None:
        """`process` holds what the nodes of one process share (`Node.of_process`)."""
        self.node = node
        self.name = name
        self.clock = clock
        # Asked here, and not for each report: whether a node has the methods of a protocol takes fifty calls.
        self.spends = node if isinstance(node, SpendsMoney) else None
        self.loses = node if isinstance(node, LosesThings) else None
        self.send, self._send_all = output.send, output.send_all
        self.fence = fence
        self.seat = type(node).seat
        self.ages = NodeAges(rules)
        self._told_ages: set[tuple[str, str]] = set()  # topics and origins of unknown age
        self.voided = 0  # messages that a handler published after its seat had been fenced
        self.held_up: HeldUp | None = None
        """Where blocking handlers of its process may hold up what this node does."""
        self.refused: dict[str, Counter[str]] = {}  # by topic and receiving process
        self.journal: Journal | None = None
        self._seq: dict[str, int] = {}
        self._order: dict[str, threading.Lock] = {}  # by topic: numbered and sent in the same order, by any thread
        vars(node).update(
            _name=name,
            clock=clock,
            _random=random.Random(f"{seed}/{name}"),
            _process={} if process is None else process,
            _finish=lambda ok, reason: output.finish(name, ok, reason),
        )
        self.failures = Failures(node.log, clock)
        self.slow = SlowCalls(node.log)
        self.provenance = type(node).provenance or f"script:{type(node).__name__}"
        remap = remap or {}
        self.publishers: list[Publisher[Any]] = []
        for attribute in ports_of(type(node), Publisher):
            publisher: Publisher[Any] = getattr(node, attribute)
            publisher.topic = remap.get(publisher.topic, publisher.topic)
            publisher.arrays = array_fields(publisher.message)  # type: ignore[arg-type]  # classes are hashable
            self._order.setdefault(publisher.topic, threading.Lock())
            self.publishers.append(publisher)
        self.meters = meters_for(paths or {}, frozenset(publisher.topic for publisher in self.publishers))
        for publisher in self.publishers:
            publisher.sink, publisher.sink_all = self._sink_of(publisher), self._publish_all
        self.subscriptions: dict[str, Subscription[Any]] = {}
        for attribute in ports_of(type(node), Subscription):
            port: Subscription[Any] = getattr(node, attribute)
            port.topic = remap.get(port.topic, port.topic)
            port.clock = clock
            port.fence = fence
            port.leases = leases
            port.ages = self.ages
            port.owner = name
            self.subscriptions[attribute] = port
        self._takes_stamped = {"on_any"}
        self.lanes = self._build_lanes(hz or {}, after or {})
        self._turn = threading.Lock()  # whoever sees or changes what the node keeps, where a worker does so, too
        self.has_worker = len(self.lanes) > 1 and any(lane.style == "blocking" for lane in self.lanes)
        self._worker_random = random.Random(f"{seed}/{name}/worker")
        self._assigned_by_others = AssignedByOthers(type(node))
        self._shared_values: SharedValues | None = None
        if type(node).subscribes_all:
            self._subscribe_all(everything or {})

    def _build_lanes(self, hz: Mapping[str, float], after: Mapping[str, str]) -> list[Lane]:
        port_of = {port.topic: port for port in self.subscriptions.values()}
        lanes: dict[str, Lane] = {}
        for handler in handlers_of(type(self.node)):
            key = handler.name if handler.style == "async" else handler.style
            lane = lanes.setdefault(key, Lane(handler.style, key))
            if isinstance(handler, Timer):
                rate_hz, topic = hz.get(handler.name, handler.hz), after.get(handler.name)
                if topic is None:
                    lane.timers.append(TimerState(handler, rate_hz, self.failures.tell))
                else:
                    following = FollowingTimer(handler, rate_hz, port_of[topic])
                    lane.timers.append(following)
                    lane.followers.append(following)
            elif isinstance(handler, DeadlineWatch):
                lane.deadlines.append(Deadline(handler.name, self.subscriptions[handler.port]))
            else:
                if handler.takes_stamped:
                    self._takes_stamped.add(handler.name)
                port = self.subscriptions[handler.port]
                port.has_handler = True
                lane.listen(handler.name, port)
        return list(lanes.values())

    def _subscribe_all(self, everything: Mapping[str, type[Message]]) -> None:
        """Give a node that hears every topic a deep queue for each, which no newest message overwrites."""
        lane = next((lane for lane in self.lanes if lane.key == "plain"), None)
        if lane is None:
            lane = Lane("plain", "plain")
            self.lanes.append(lane)
        of_arrays, of_others = ByteBudget(ARRAY_BYTES), ByteBudget(OTHER_BYTES)
        for topic, message in sorted(everything.items()):
            port = DeepPort(message, topic, of_arrays if array_fields(message) else of_others)
            port.clock = self.clock
            self.subscriptions[f"any:{topic}"] = port
            lane.listen("on_any", port)

    def keep_journal(self) -> None:
        """From now on, note what each handler call reads and publishes."""
        self.journal = Journal()
        log = self.node.log
        for handler in [one for one in log.handlers if isinstance(one, JournalLog)]:
            log.removeHandler(handler)  # of an earlier node of that name in this process
        log.addHandler(JournalLog(self.journal, self.clock))
        self.node.clock = JournalClock(self.clock, self.journal)

    def answer_from(self, answers: Sequence[str]) -> None:
        """From now on, let a recording answer what the node asks of the world outside, in virtual time."""
        clock = AnsweredClock(self.clock, self.name, answers)
        self.node.clock = clock if self.journal is None else JournalClock(clock, self.journal)

    def start(self, now_ns: int) -> Awaitable[None] | None:
        """Call the node's `on_start` and set the phase of its timers; what is left to await, where it is async."""
        waits = self._begin()
        if waits is not None:
            return self._started(waits)
        for lane in self.lanes:
            lane.start(now_ns)
        return None

    def start_failed(self, problem: Exception) -> PolyrhythmError:
        """The sentence of what its `on_start` raised; the log has the traceback."""
        self.node.log.error("on_start failed", exc_info=problem)
        return PolyrhythmError(f"on_start of {self.name} failed: {type(problem).__name__}: {problem}")

    async def _started(self, waits: Awaitable[None]) -> None:
        await waits
        for lane in self.lanes:
            lane.start(self.clock.now_ns())

    def _begin(self) -> Awaitable[None] | None:
        if self.journal is None:
            return self.node.on_start()
        call = HandlerContext(self.clock.now_ns(), self.fence.epochs, None, self.ages, self.node.clock)
        call.notes = ContextLog(call.started_ns)
        if inspect.iscoroutinefunction(self.node.on_start):
            return self._begun(self.journal, call)
        token = current_call.set(call)
        try:
            self.node.on_start()
        finally:
            current_call.reset(token)
            self.journal.end("on_start", call, self.clock.now_ns())
        return None

    async def _begun(self, journal: Journal, call: HandlerContext) -> None:
        token = current_call.set(call)
        journal.begin(call)
        try:
            if (waits := self.node.on_start()) is not None:
                await waits
        finally:
            current_call.reset(token)
            journal.end("on_start", call, self.clock.now_ns())

    def period_s(self, handler: str) -> float:
        """The period of a timer, s; 0 for a handler that is none."""
        hz = next((one.hz for lane in self.lanes for one in lane.timers if one.timer.name == handler), 0.0)
        return 1 / hz if hz else 0.0

    def takes_stamped(self, handler: str) -> bool:
        """Whether the handler takes the message with its envelope (`Stamped`)."""
        return handler in self._takes_stamped

    def call(self, work: Work) -> HandlerContext:
        """The context of one handler call; for a blocking handler, with a snapshot of what its ports hold now."""
        call = HandlerContext.of(self.clock.now_ns(), self.fence.epochs, work.stamped, self.ages, self.node.clock)
        if self.journal is not None:
            call.notes = ContextLog(call.started_ns)
        if work.style == "blocking":
            call.snapshot = self.known_now()
        return call

    def known_now(self) -> dict[str, Stamped[Any] | None]:
        """What its ports hold now."""
        return {attribute: port.peek() for attribute, port in self.subscriptions.items()}

    def run(self, work: Work, call: HandlerContext) -> Any:
        """Call the handler; for an async one, return its coroutine unstarted. End a worker's call by `commit`."""
        if not self.has_worker and work.style != "async":
            method = getattr(self.node, work.handler)
            stamped = work.stamped
            token = current_call.set(call)
            try:
                if stamped is None:
                    return method()
                return method(stamped if work.handler in self._takes_stamped else stamped.message)
            finally:
                current_call.reset(token)
                if self.journal is not None:
                    self.journal.end(work.handler, call, self.clock.now_ns())
        if not self.has_worker or work.style == "async":
            return self._run(work, call, self.node)
        if work.style == "plain":
            with self._turn:
                return self._run(work, call, self.node)
        with self._turn:
            call.view = self.snapshot()
            if self.journal is not None:
                self.journal.begin(call)
        if self._shared_values is None:
            self._shared_values = SharedValues(self.node, self.clock)  # here: it reads the source
        shared, view = self._shared_values, call.view.node
        if not shared.is_due():
            return self._run(work, call, view)
        found = shared.look(view, "")
        self._run(work, call, view)
        if found := found or shared.look(view, work.handler):
            raise PolyrhythmError(found)
        return None

    def snapshot(self) -> WorkerView:
        """The node as a worker's call that begins now sees it."""
        return WorkerView(self.node, self._worker_random, self._assigned_by_others)

    def commit(self, work: Work, call: HandlerContext) -> None:
        """Give the node's other handlers what a worker's call has set; does nothing after any other call.

        Raises PolyrhythmError where it set what another handler sets, too.
        """
        if call.view is not None:
            with self._turn:
                refused = call.view.commit(self.node)
                if self.journal is not None:
                    self.journal.end(work.handler, call, self.clock.now_ns())
            if refused:
                names = ", ".join(f"self.{name}" for name in refused)
                raise PolyrhythmError(
                    f"{type(self.node).__name__}.{work.handler} assigned {names} in the worker thread, and another "
                    "handler assigns it, too, so what the worker assigned is refused; let one of them alone assign it"
                )

    def _run(self, work: Work, call: HandlerContext, node: Node) -> Any:
        method = getattr(node, work.handler)
        stamped = work.stamped
        arguments = () if stamped is None else (stamped if work.handler in self._takes_stamped else stamped.message,)
        if work.style == "async":
            return method(*arguments) if self.journal is None else self._journalled(method, arguments, work, call)
        token = current_call.set(call)
        try:
            return method(*arguments)
        finally:
            current_call.reset(token)
            if self.journal is not None and call.view is None:
                self.journal.end(work.handler, call, self.clock.now_ns())

    async def _journalled(
        self, method: Callable[..., Awaitable[None]], arguments: tuple[Any, ...], work: Work, call: HandlerContext
    ) -> None:
        """Called in here: a coroutine that is made before its task may be cancelled without ever having begun."""
        assert self.journal is not None
        self.journal.begin(call)
        try:
            await method(*arguments)
        finally:
            self.journal.end(work.handler, call, self.clock.now_ns())

    def hear_refusal(self, topic: str, receiver: str, why: str, number: int) -> None:
        """Count a message of this node that another process could not decode, and report the first (one thread)."""
        counts = self.refused.get(topic, Counter())
        if receiver not in counts:
            self.node.log.warning(
                "what this node sends on %s cannot be read by %s, which drops it: %s", topic, receiver, why
            )
        self.refused[topic] = Counter({**counts, receiver: counts[receiver] + number})  # health reads it meanwhile

    def _is_void(self, call: HandlerContext | None, publisher: Publisher[Any], number: int) -> bool:
        """Whether what a call publishes comes too late, after a fence; then it is counted here."""
        if call is None or not self.seat or not self.fence.voids(self.seat, call.epochs, call.cause):
            return False
        with self._order[publisher.topic]:
            publisher.sent += number
        self.voided += number
        if call.notes is not None:
            call.notes.sent.extend([""] * number)
        return True

    def _call_of(self, stems_from: Sources) -> HandlerContext | None:
        call = current_call.get()
        if stems_from is None:
            return call
        if call is None:  # a thread of the node's own
            call = HandlerContext(self.clock.now_ns(), ages=self.ages)
        return call.stating(stems_from)

    def _sink_of(self, port: Publisher[Any]) -> Sink:
        """What publishes a message of this port: in one function, because each message passes it."""
        seat, topic, name, send = self.seat, port.topic, self.name, self.send
        ages, sent, order = self.ages, self._seq, self._order[topic]
        now, acquire, release, call_now = self.clock.now_ns, order.acquire, order.release, current_call.get
        origin, meters = port.message.message_origin, [meter for meter in self.meters if meter.topic == topic]
        arrays = port.arrays
        sent.setdefault(topic, 0)

        def publish(publisher: Publisher[Any], message: Message, stems_from: Sources = None) -> None:
            call = call_now() if stems_from is None else self._call_of(stems_from)
            if seat and self._is_void(call, publisher, 1):
                return
            now_ns = now()
            if call is not None and call.not_before_ns > now_ns:
                now_ns = call.not_before_ns
            acquire()  # an event does not wait for a worker's image
            try:
                publisher.sent += 1
                sent[topic] = seq = sent[topic] + 1
                provenance = publisher.provenance or self.provenance
                own_ns = 0 if origin is None else captured_ns_of(message, now_ns)
                if call is not None and not ages.topics:  # what `inherit` would make
                    origins = call.origins if origin is None else {**call.origins, origin: own_ns}
                    cause = call._cause if call._cause_is_in is None else call.cause
                    envelope = Envelope(topic, name, seq, now_ns, origins, call.epochs, cause, provenance, seat)
                else:
                    envelope = inherit(call, ages, topic, name, seq, now_ns, origin, own_ns, provenance, seat)
                    origins = envelope.origins
                if origins and UNKNOWN_NS in origins.values():
                    self._tell_age(envelope)
                if call is not None and call.notes is not None:
                    call.notes.sent.append(envelope.ident)
                for meter in meters:
                    meter.add(envelope)
                for attribute in arrays:
                    array = getattr(message, attribute)
                    if array is not None:
                        array.flags.writeable = False  # shared from here on
                (publisher.transmit or send)(envelope, message)
            finally:
                release()

        return publish

    def _tell_age(self, envelope: Envelope) -> None:
        """Say once where a message came from whose age somebody limits and nobody knows."""
        topic = envelope.topic
        for origin in self.ages.rules.limited.get(topic, ()):
            if envelope.origins.get(origin) != UNKNOWN_NS or (topic, origin) in self._told_ages:
                continue
            self._told_ages.add((topic, origin))
            call = current_call.get()
            has_read = call is not None and call.origins.get(origin) == UNKNOWN_NS
            kept = () if has_read else self.ages.topics.get(origin, ())
            self.node.log.warning("%s", unknown_age(f"{self.name}: {sending_line()}", topic, origin, kept))

    def _publish_all(self, publisher: Publisher[Any], messages: Sequence[Message], stems_from: Sources = None) -> None:
        call = self._call_of(stems_from)
        topic, number = publisher.topic, len(messages)
        if number == 1 or publisher.message.message_origin is not None or holds_arrays(type(messages[0])):
            for message in messages:  # each has its own age, or is large
                publisher.publish(message, stems_from=stems_from)
            return
        if self._is_void(call, publisher, number):
            return
        now_ns = self.clock.now_ns()
        if call is not None and call.not_before_ns > now_ns:
            now_ns = call.not_before_ns
        with self._order[topic]:
            publisher.sent += number
            before = self._seq.get(topic, 0)
            self._seq[topic] = before + number
            provenance = publisher.provenance or self.provenance
            envelope = inherit(call, self.ages, topic, self.name, before + 1, now_ns, None, 0, provenance, self.seat)
            if UNKNOWN_NS in envelope.origins.values():
                self._tell_age(envelope)
            if call is not None and call.notes is not None:
                call.notes.sent.extend(envelope.later(later).ident for later in range(number))
            for meter in self.meters:
                if meter.topic == topic:
                    for _ in messages:
                        meter.add(envelope)
            self._send_all(envelope, messages)
