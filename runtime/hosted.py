"""`HostedNode`: a node instance made ready to run, and its lanes, which say what runs next. No threads, no sockets.

A lane is a row of handlers of which one runs at a time: the plain handlers of a node share one, its blocking handlers
share one (the worker thread), each async handler has its own. The executors in real and in virtual time differ only in
who drives the lanes.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Awaitable, Callable, Collection, Mapping
from itertools import compress
from typing import Any

import msgspec

from runtime.budgets import PathBudget, meters_for
from runtime.call import Call, current_call, inherit
from runtime.call_notes import CallNotes
from runtime.clock import NS_PER_S, Clock, to_ns
from runtime.deep_queue import ARRAY_BYTES, OTHER_BYTES, ByteBudget, DeepPort
from runtime.fence import FenceLine, seat_index
from runtime.journal import Journal, JournalClock, JournalLog
from runtime.lease import LeaseLine
from runtime.message import Envelope, Message, Stamped, array_fields
from runtime.node import DeadlineWatch, Node, Style, Timer, handlers_of, ports_of
from runtime.ports import Publisher, Subscription
from runtime.stats import TimerStats
from runtime.worker_view import WorkerView

Send = Callable[[Envelope, Message], None]


MOST_TO_CATCH_UP = 100  # ticks; what was missed before them is skipped


class TimerState:
    """One timer of one node: when its next tick is due, and how the past ones went."""

    def __init__(self, timer: Timer, hz: float) -> None:
        self.timer = timer
        self.hz = hz
        self.start_ns = 0
        self.next_tick = 0
        self.stats = TimerStats()
        self.due_ns = 0  # kept rather than computed: asked for at each message

    def start(self, now_ns: int) -> None:
        """Set the phase: the first tick is due now."""
        self.start_ns = self.due_ns = now_ns
        self.next_tick = 0

    def take(self, now_ns: int) -> bool:
        """True where a tick is due. Missed ones are skipped and counted, or run one by one; the phase is kept."""
        if now_ns < self.due_ns:
            return False
        newest = max(self.next_tick, int((now_ns - self.start_ns) * self.hz / NS_PER_S))
        while self._tick_ns(newest) > now_ns:
            newest -= 1  # the float above may be one tick ahead
        while self._tick_ns(newest + 1) <= now_ns:
            newest += 1  # or behind
        if self.timer.overrun == "catch-up":
            newest = max(self.next_tick, newest - MOST_TO_CATCH_UP + 1)
        skipped = newest - self.next_tick
        self.stats.tick(now_ns, now_ns - self._tick_ns(newest), skipped)
        self.next_tick = newest + 1
        self.due_ns = self._tick_ns(self.next_tick)
        return True

    def _tick_ns(self, tick: int) -> int:
        """Start + k x period, in whole nanoseconds without drift."""
        return self.start_ns + round(tick * NS_PER_S / self.hz)


class Deadline:
    """The watch over one port: when it will have been silent for too long."""

    def __init__(self, handler: str, port: Subscription[Any]) -> None:
        assert port.qos.deadline_s is not None
        self.handler = handler
        self.port = port
        self.period_ns = to_ns(port.qos.deadline_s)
        self.due_ns = 0
        self._missed_after_ns = -1  # the arrival after which it was silent, as told already

    def start(self, now_ns: int) -> None:
        """Nothing has come yet, and the time runs from now on."""
        self.port.arrived_ns = max(self.port.arrived_ns, now_ns)
        self.due_ns = self.port.arrived_ns + self.period_ns

    def take(self, now_ns: int) -> bool:
        """True once for each silence that is too long."""
        if now_ns < self.due_ns:
            return False
        arrived_ns = self.port.arrived_ns
        self.due_ns = arrived_ns + self.period_ns
        if now_ns < self.due_ns:
            return False  # something came since
        self.due_ns = now_ns + self.period_ns  # look again then; a message wakes nobody for this
        if arrived_ns == self._missed_after_ns:
            return False
        self._missed_after_ns = arrived_ns
        self.port.deadlines_missed += 1
        return True


class Work(msgspec.Struct):
    """One run of a handler that a lane hands out; made for every message."""

    handler: str
    style: Style
    stamped: Stamped[Any] | None


class Lane:
    """Handlers that never overlap. Due timers and deadlines go first, then waiting messages, port by port in turn."""

    def __init__(self, style: Style, key: str) -> None:
        self.style = style
        self.key = key
        self.timers: list[TimerState] = []
        self.deadlines: list[Deadline] = []
        self.listeners: list[tuple[str, Subscription[Any]]] = []
        self.is_busy = False
        self._turn = 0
        self._queues: list[Collection[Stamped[Any]]] = []
        self._due_ns: int | None = 0  # asked for at each message; 0: to be found out

    def take(self, now_ns: int) -> Work | None:
        """What to run now, or None."""
        due_ns = self._due_ns
        if due_ns is not None and now_ns >= due_ns:
            work = self._take_due(now_ns)
            if work is not None:
                return work
        listeners, queues = self.listeners, self._queues
        number = len(listeners)
        if len(queues) != number:
            queues = self._queues = [port.waiting for _, port in listeners]
        if number == 1:
            if not queues[0]:
                return None
            handler, port = listeners[0]
            stamped = port.pop()
            return None if stamped is None else Work(handler, self.style, stamped)
        # A recorder asks dozens of empty ports at each message: no loop of our own over them.
        if not any(queues):
            return None
        filled = list(compress(range(number), queues))
        for turn in filled if len(filled) < 2 else sorted(filled, key=self._steps_to):
            handler, port = listeners[turn]
            stamped = port.pop()
            if stamped is not None:
                self._turn = (turn + 1) % number
                return Work(handler, self.style, stamped)
        return None

    def _steps_to(self, turn: int) -> int:
        """How many ports have their turn before that one."""
        return (turn - self._turn) % len(self.listeners)

    def _take_due(self, now_ns: int) -> Work | None:
        """A tick or a deadline that is due. While there may be another, `_due_ns` stays in the past."""
        for state in self.timers:
            if state.take(now_ns):
                return Work(state.timer.name, self.style, None)
        for deadline in self.deadlines:
            if deadline.take(now_ns):
                return Work(deadline.handler, self.style, None)
        self._due_ns = self._first_due_ns()
        return None

    def _first_due_ns(self) -> int | None:
        dues_ns = [state.due_ns for state in self.timers] + [deadline.due_ns for deadline in self.deadlines]
        return min(dues_ns, default=None)

    def next_due_ns(self) -> int | None:
        """When the next tick or deadline is due; None without any."""
        due_ns = self._due_ns = self._first_due_ns()
        return due_ns

    def due_after_ns(self, now_ns: int) -> int | None:
        """The same, from what is known where that is still to come."""
        due_ns = self._due_ns
        return due_ns if due_ns is None or due_ns > now_ns else self.next_due_ns()

    def start(self, now_ns: int) -> None:
        """Set the phase of the timers, and let the deadlines run."""
        for state in self.timers:
            state.start(now_ns)
        for deadline in self.deadlines:
            deadline.start(now_ns)
        self._due_ns = 0

    @property
    def has_messages(self) -> bool:
        """Whether a message waits for a handler of this lane."""
        return any(port.pending for _, port in self.listeners)


class HostedNode:
    """A node bound to a clock, a seed and a way to send."""

    def __init__(
        self,
        node: Node,
        *,
        name: str,
        clock: Clock,
        seed: int,
        send: Send,
        fence: FenceLine,
        leases: LeaseLine | None = None,
        finish: Callable[[str, bool, str], None],
        hz: Mapping[str, float] | None = None,
        remap: Mapping[str, str] | None = None,
        everything: Mapping[str, type[Message]] | None = None,
        paths: Mapping[str, PathBudget] | None = None,
    ) -> None:
        self.node = node
        self.name = name
        self.clock = clock
        self.send = send
        self.errors = 0
        self.fence = fence
        self.seat = seat_index(type(node).seat)
        self.voided = 0  # messages that a handler published after its seat had been fenced
        self.journal: Journal | None = None
        self._seq: dict[str, int] = {}
        self._order: dict[str, threading.Lock] = {}  # by topic: numbered and sent in the same order, by any thread
        vars(node).update(
            _name=name,
            _clock=clock,
            _random=random.Random(f"{seed}/{name}"),
            _finish=lambda ok, reason: finish(name, ok, reason),
        )
        self.provenance = type(node).provenance or f"script:{type(node).__name__}"
        remap = remap or {}
        self.publishers: list[Publisher[Any]] = []
        for attribute in ports_of(type(node), Publisher):
            publisher: Publisher[Any] = getattr(node, attribute)
            publisher.topic = remap.get(publisher.topic, publisher.topic)
            publisher.sink = self._publish
            self._order.setdefault(publisher.topic, threading.Lock())
            self.publishers.append(publisher)
        self.meters = meters_for(paths or {}, frozenset(publisher.topic for publisher in self.publishers))
        self.subscriptions: dict[str, Subscription[Any]] = {}
        for attribute in ports_of(type(node), Subscription):
            port: Subscription[Any] = getattr(node, attribute)
            port.topic = remap.get(port.topic, port.topic)
            port.clock = clock
            port.fence = fence
            port.leases = leases
            port.owner = name
            self.subscriptions[attribute] = port
        self.lanes = self._build_lanes(hz or {})
        self._turn = threading.Lock()  # whoever sees or changes what the node keeps, where a worker does so, too
        self._has_worker = len(self.lanes) > 1 and any(lane.style == "blocking" for lane in self.lanes)
        self.worker_random = random.Random(f"{seed}/{name}/worker")
        if type(node).subscribes_all:
            self._subscribe_all(everything or {})

    def _build_lanes(self, hz: Mapping[str, float]) -> list[Lane]:
        lanes: dict[str, Lane] = {}
        for handler in handlers_of(type(self.node)):
            key = handler.name if handler.style == "async" else handler.style
            lane = lanes.setdefault(key, Lane(handler.style, key))
            if isinstance(handler, Timer):
                lane.timers.append(TimerState(handler, hz.get(handler.name, handler.hz)))
            elif isinstance(handler, DeadlineWatch):
                lane.deadlines.append(Deadline(handler.name, self.subscriptions[handler.port]))
            else:
                port = self.subscriptions[handler.port]
                port.has_handler = True
                lane.listeners.append((handler.name, port))
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
            lane.listeners.append(("on_any", port))

    def keep_journal(self) -> None:
        """Note from now on what each handler call reads and publishes."""
        self.journal = Journal()
        log = self.node.log
        for handler in [one for one in log.handlers if isinstance(one, JournalLog)]:
            log.removeHandler(handler)  # of an earlier node of that name in this process
        log.addHandler(JournalLog(self.journal, self.clock))
        vars(self.node)["_clock"] = JournalClock(self.clock)

    def start(self, now_ns: int) -> None:
        """Run the node's own start and set the phase of its timers."""
        self._begin()
        for lane in self.lanes:
            lane.start(now_ns)

    def _begin(self) -> None:
        if self.journal is None:
            self.node.on_start()
            return
        call = Call(self.clock.now_ns())
        call.notes = CallNotes(call.started_ns)
        token = current_call.set(call)
        try:
            self.node.on_start()
        finally:
            current_call.reset(token)
            self.journal.end("on_start", call, self.clock.now_ns())

    def call(self, work: Work) -> Call:
        """The call of one run; for a blocking handler with a snapshot of what its ports know now."""
        call = Call(self.clock.now_ns(), self.fence.epochs, work.stamped)
        if self.journal is not None:
            call.notes = CallNotes(call.started_ns)
        if work.style == "blocking":
            snapshot = {attribute: port.stamped() for attribute, port in self.subscriptions.items()}
            call.snapshot = snapshot
        return call

    def run_alone(self, work: Work) -> bool:
        """Call a plain handler of a node without a worker and a journal, the quick way; False: `run` has to do it."""
        if work.style != "plain" or self._has_worker or self.journal is not None:
            return False
        handler, stamped = work.handler, work.stamped
        token = current_call.set(Call(self.clock.now_ns(), self.fence.epochs, stamped))
        try:
            method = getattr(self.node, handler)
            if stamped is None:
                method()
            else:
                method(stamped if handler == "on_any" else stamped.message)
        finally:
            current_call.reset(token)
        return True

    def run(self, work: Work, call: Call) -> Any:
        """Call the handler; an async one gives back its coroutine, not yet started.

        A worker's call is to be ended by `commit`.
        """
        if not self._has_worker and self.journal is None and work.style != "async":
            method = getattr(self.node, work.handler)
            stamped = work.stamped
            token = current_call.set(call)
            try:
                if stamped is None:
                    return method()
                return method(stamped if work.handler == "on_any" else stamped.message)
            finally:
                current_call.reset(token)
        if not self._has_worker or work.style == "async":
            return self._run(work, call, self.node)
        if work.style == "plain":
            with self._turn:
                return self._run(work, call, self.node)
        with self._turn:
            call.view = WorkerView(self.node, self.worker_random)
            if self.journal is not None:
                self.journal.begin(call)
        return self._run(work, call, call.view.node)

    def commit(self, work: Work, call: Call) -> None:
        """Let the node's other handlers see what a worker's call has set; does nothing after any other call."""
        if call.view is not None:
            with self._turn:
                call.view.commit(self.node)
                if self.journal is not None:
                    self.journal.end(work.handler, call, self.clock.now_ns())

    def _run(self, work: Work, call: Call, node: Node) -> Any:
        method = getattr(node, work.handler)
        stamped = work.stamped
        arguments = () if stamped is None else (stamped if work.handler == "on_any" else stamped.message,)
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
        self, method: Callable[..., Awaitable[None]], arguments: tuple[Any, ...], work: Work, call: Call
    ) -> None:
        """Called in here: a coroutine that is made before its task may be cancelled without ever having begun."""
        assert self.journal is not None
        try:
            await method(*arguments)
        finally:
            self.journal.end(work.handler, call, self.clock.now_ns())

    def _publish(self, publisher: Publisher[Any], message: Message) -> None:
        call = current_call.get()
        seat, topic = self.seat, publisher.topic
        if call is not None and seat >= 0 and self.fence.voids(seat, call.epochs, call.cause):
            with self._order[topic]:
                publisher.sent += 1
            self.voided += 1
            if call.notes is not None:
                call.notes.sent.append("")
            return
        now_ns = self.clock.now_ns()
        if call is not None and call.not_before_ns > now_ns:
            now_ns = call.not_before_ns
        origin = message.message_origin
        own_ns = 0 if origin is None else getattr(message, "captured_ns", now_ns)
        with self._order[topic]:  # an event does not wait for a worker's image
            publisher.sent += 1
            seq = self._seq[topic] = self._seq.get(topic, 0) + 1
            provenance = publisher.provenance or self.provenance
            envelope = inherit(call, topic, self.name, seq, now_ns, origin, own_ns, provenance, seat)
            if call is not None and call.notes is not None:
                call.notes.sent.append(envelope.ident)
            for meter in self.meters:
                if meter.topic == envelope.topic:
                    meter.add(envelope)
            for name in array_fields(type(message)):
                array = getattr(message, name)
                if array is not None:
                    array.flags.writeable = False  # shared from here on
            self.send(envelope, message)
