"""Runners drive a lane in real time, on the process's asyncio loop or on a thread of the lane's own.

One thread drives the plain handlers of a `realtime` node, whose ticks are as steady as the machine's timers. Another
drives the blocking handlers of any node, which may take as long as they like.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from contextvars import copy_context
from functools import partial
from typing import Protocol

from runtime.clock import NS_PER_S, Clock, to_ns
from runtime.context import HandlerContext, current_call
from runtime.errors import PolyrhythmError
from runtime.execution.bound_node import BoundNode
from runtime.execution.failures import OF_A_HANDLER, failure_of
from runtime.execution.lane import Lane, Work
from runtime.execution.long_calls import SLOW_S, LongCalls
from runtime.execution.straight_loop import StraightLoop
from runtime.operating_system.real_time import ask_for_fifo, be_ordinary, name_thread, take_short_turns
from runtime.transport.channel import Handle
from runtime.transport.direct import DirectLink, DirectReader

_WORKS_PER_TURN = 64  # then the loop looks after its other lanes
_LONGEST_TURN_NS = 5_000_000  # and so it does after the handler that ran longer: one alone may take far more
_STALE_NS = 1_000_000
_CALM_NS = 500_000  # between two events, after which there is only one to be taken in
SLOW_NS = to_ns(SLOW_S)
OVERLOADED_NS = 500_000_000
_ALL = 1 << 20


class MessageSource(Protocol):
    """Where a thread receives messages by itself (`zeromq.Reader`); by default there are none."""

    direct: DirectReader | None = None
    """The reader of states that come directly from their publishers."""
    direct_events: DirectReader | None = None
    """The same for events."""

    def use(self, handles: Mapping[str, Handle]) -> None:
        """Set what handles messages of these topics directly when nothing else comes first."""
        return

    def poll(self, limit: int, end_ns: int = 0) -> bool:
        """Handle until `end_ns` what can be handled in place, else deliver at most `limit` messages; returns whether
        there may be more.
        """
        return False

    def drain_states(self, limit: int) -> None:
        """Deliver the waiting states."""
        return

    def drain_events(self, limit: int) -> None:
        """Deliver at most `limit` waiting events."""
        return

    def wait(self, timeout_s: float | None) -> bool:
        """Return True once a message may have come or `wake` was called, False at the timeout; None has no limit."""
        ...

    def wake(self) -> None:
        """End the present wait, or the next one (any thread)."""
        ...

    @property
    def fds(self) -> list[int]:
        """Descriptors for a loop to wait on in place of `wait`; then call `poll` until it returns False."""
        return []


class LaneRunner(Protocol):
    """Runs a lane's handlers when a tick is due or a message has come."""

    def start(self) -> None:
        """Begin; ticks are due from now on."""
        ...

    def wake(self) -> None:
        """Tell it that a message waits (any thread)."""
        ...

    def void(self) -> None:
        """Cancel the running async handler, because an interrupt has fenced its seat."""
        ...

    def stop(self) -> None:
        """Run nothing more."""
        ...

    def forget(self) -> None:
        """In a process that a handler has forked: run nothing more, and touch nothing that the first process has."""
        ...


def run_guarded(bound: BoundNode, work: Work) -> None:
    """Run a plain or blocking handler; an exception is logged and counted, and the node goes on."""
    if not bound.has_worker and bound.journal is None:  # nearly always: in one function
        stamped, node = work.stamped, bound.node
        make = HandlerContext if stamped is None else HandlerContext.of
        call = make(bound.clock.now_ns(), bound.fence.epochs, stamped, bound.ages, node.clock)
        if work.style == "blocking":
            call.snapshot = bound.known_now()
        method, token = getattr(node, work.handler), current_call.set(call)
        try:
            if stamped is None:
                method()
            else:
                method(stamped if bound.takes_stamped(work.handler) else stamped.message)
        except OF_A_HANDLER as problem:  # the node's own; it goes on
            bound.failures.tell(work.handler, problem)
        finally:
            current_call.reset(token)
        return
    call = bound.call(work)
    try:
        bound.run(work, call)
    except OF_A_HANDLER as problem:  # the node's own; it goes on
        bound.failures.tell(work.handler, problem)
    if call.view is not None:
        try:
            bound.commit(work, call)
        except PolyrhythmError as problem:  # it told which value two handlers changed
            bound.failures.tell(work.handler, problem)


def tell_slow(bound: BoundNode, work: Work, took_ns: int) -> None:
    """Report a plain handler's call that took too long for it, or the worker that held it up meanwhile."""
    if bound.held_up is not None and bound.held_up.look(work.handler, took_ns, SLOW_NS):
        return
    bound.slow.tell(work.handler, took_ns / NS_PER_S, bound.period_s(work.handler))


class _Overtaking:
    """Takes in what may be more urgent than what waits in a lane: asked before each piece of work is handed out.

    Events go before the states of a long queue. Of a lane that hears both, their sockets are looked at each time.
    """

    def __init__(self, lane: Lane, source: MessageSource) -> None:
        ports = [port for _, port in lane.listeners]
        self._events = [port for port in ports if port.message.message_kind == "event"]
        self.most = min((port.qos.depth for port in self._events), default=_WORKS_PER_TURN)
        """How many events fit any of its queues while all are empty."""
        self._lane, self._source = lane, source
        self.is_mixed = 0 < len(self._events) < len(ports)
        self.looked_ns = 0
        self.has_news = True
        """Whether something may have come since the source was empty: a look at a ZeroMQ socket in vain is dear."""

    def look(self, now_ns: int) -> None:
        """Take in events, as many as fit; and newer states, where the last work took its time."""
        is_stale = now_ns - self.looked_ns > _STALE_NS
        if is_stale or (self.is_mixed and self._lane.has_messages):
            room = min((port.qos.depth - port.pending for port in self._events), default=0)
            if room > 0:
                self.drain_events(room)  # which may leave some
        if is_stale:
            self.has_news = True
            self._source.drain_states(_WORKS_PER_TURN)
            self.looked_ns = now_ns

    def drain_events(self, limit: int) -> None:
        """Take in at most so many events."""
        self.has_news = True
        self._source.drain_events(limit)

    def poll(self, end_ns: int) -> bool:
        """Of an empty lane with news: handle or take in what comes, until that time at most; return whether there may
        be more.
        """
        self.has_news = self._source.poll(self.most, end_ns)
        return self.has_news


def _is_overdue(work: Work, now_ns: int) -> bool:
    """Whether a message has waited for so long that its handler cannot keep up with what comes."""
    return work.stamped is not None and now_ns - work.stamped.envelope.published_ns > OVERLOADED_NS


class LoopRunner:
    """A lane on the asyncio loop: plain handlers run inline, an async one as a task."""

    def __init__(
        self,
        bound: BoundNode,
        lane: Lane,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        is_ending: Callable[[], bool] = lambda: False,
        source: MessageSource | None = None,
    ) -> None:
        """`is_ending` says that the process was asked to stop; no handler begins after a long one then. `source` is
        what the loop reads for this lane by itself.
        """
        self._is_ending = is_ending
        self._source = source
        self._overtaking = _Overtaking(lane, source) if source is not None else None
        self._fds: list[int] = []  # of these, those that the loop waits on
        self._retry: asyncio.TimerHandle | None = None
        self._calm_ns = 0  # an event that was handled before then comes close upon another
        self._bound = bound
        self._lane = lane
        self._clock = clock
        self._loop = loop
        self._is_woken = False
        self._is_running = False
        self._timer: asyncio.TimerHandle | None = None
        self._straight = loop.straight if isinstance(loop, StraightLoop) else None
        self.due_ns: int | None = None
        """When the loop calls `tick`, where it is one that does."""
        self._task: asyncio.Task[None] | None = None
        self._call: HandlerContext | None = None  # of the task

    def start(self) -> None:
        """Begin; ticks are due from now on."""
        self._is_running = True
        if self._straight is not None:
            self._straight.ticking.append(self)
        if self._source is not None:
            for direct in filter(None, (self._source.direct, self._source.direct_events)):
                direct.ended = self._forget
            self._listen(self._source)
        self._drive()

    def _listen(self, source: MessageSource) -> None:
        """Wait on what the source waits on, and look again after a while where a publisher is not there."""
        if not self._is_running:
            return
        waits_s = [way.retry() for way in (source.direct, source.direct_events) if way is not None]
        next_s = min((wait_s for wait_s in waits_s if wait_s is not None), default=None)
        direct = source.direct.by_fd if source.direct is not None else {}
        events = source.direct_events.by_fd if source.direct_events is not None else {}
        for fd in source.fds:
            if fd not in self._fds:
                if fd in direct:
                    self._loop.add_reader(fd, self._take, source, direct[fd])
                    if self._straight is not None:
                        self._straight.calls[fd] = partial(self._take_now, source, direct[fd])
                elif fd in events:
                    self._loop.add_reader(fd, self._hear)
                    if self._straight is not None:
                        self._straight.calls[fd] = partial(self._take_event_now, source, events[fd])
                else:
                    self._loop.add_reader(fd, self._hear)
                self._fds.append(fd)
        if next_s is not None:
            if self._retry is not None:
                self._retry.cancel()
            self._retry = self._loop.call_later(next_s, self._listen, source)

    def _forget(self, fd: int) -> None:
        """A publisher has gone: try again to reach it."""
        if fd in self._fds and self._source is not None:
            self._ignore(fd)
            self._fds.remove(fd)
            self._loop.call_soon(self._listen, self._source)

    def _ignore(self, fd: int) -> None:
        self._loop.remove_reader(fd)
        if self._straight is not None:
            self._straight.calls.pop(fd, None)

    def tick(self) -> None:
        """Run what is due."""
        if self._bound.held_up is not None and self.due_ns is not None:
            late_ns = self._clock.now_ns() - self.due_ns
            self._bound.held_up.look(f"a timer of {self._bound.name}", late_ns, SLOW_NS)
        self.due_ns = None
        self._drive()

    def _hear(self) -> None:
        """Something has come for the source."""
        if self._overtaking is not None:
            self._overtaking.has_news = True
        self._drive()

    def _take(self, source: MessageSource, link: DirectLink) -> None:
        """Handle a state that has come straight from its publisher."""
        if not self._is_ending():
            self._take_now(source, link)

    def _take_now(self, source: MessageSource, link: DirectLink) -> None:
        """The same where no order to stop can have come."""
        direct = source.direct
        if direct is not None and direct.take(link, is_free=True) and any(self._lane.queues):
            source.drain_states(_WORKS_PER_TURN)  # there may be a newer one
            self._hear()

    def _take_event_now(self, source: MessageSource, link: DirectLink) -> None:
        """Handle an event that has come straight, where no order to stop can have come."""
        events = source.direct_events
        if events is None or any(self._lane.queues) or not events.take_event(link):
            self._hear()
        elif (ended_ns := events.ended_ns) is None or ended_ns < self._calm_ns:
            self._hear()  # it was queued, or they come one upon the other
        else:
            self._calm_ns = ended_ns + _CALM_NS

    def wake(self) -> None:
        """Tell it that a message waits (any thread)."""
        if not self._is_woken:  # several messages, one wake-up
            self._is_woken = True
            try:
                self._loop.call_soon_threadsafe(self._drive)
            except RuntimeError:  # the loop was closed: the process is stopping
                self._is_running = False

    def void(self) -> None:
        """Cancel the running async handler, because an interrupt has fenced its seat."""
        task, call = self._task, self._call
        if task is not None and call is not None and self._bound.fence.voids(self._bound.seat, call.epochs, call.cause):
            task.cancel()

    def stop(self) -> None:
        """Run nothing more, and cancel what runs."""
        self._is_running = False
        for fd in self._fds:
            self._ignore(fd)
        self._fds = []
        self.due_ns = None
        if self._straight is not None and self in self._straight.ticking:
            self._straight.ticking.remove(self)
        if self._retry is not None:
            self._retry.cancel()
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def forget(self) -> None:
        """In a process that a handler has forked: run nothing more there; the descriptors are the first one's."""
        self._is_running = False

    @property
    def task(self) -> asyncio.Task[None] | None:
        """The task of the running async handler; None where none runs."""
        return self._task

    def _drive(self) -> None:
        self._is_woken = False
        now_ns = self._clock.now_ns()
        end_ns = now_ns + _LONGEST_TURN_NS
        overtaking = self._overtaking
        lane = self._lane
        for _ in range(_WORKS_PER_TURN):
            if not self._is_running or lane.is_busy:
                return
            if now_ns > end_ns:
                break
            if overtaking is not None and any(lane.queues):
                overtaking.look(now_ns)
            work = lane.take(now_ns)
            if work is None:
                if overtaking is not None and overtaking.has_news and overtaking.poll(end_ns):
                    now_ns = self._clock.now_ns()
                    continue
                self.due_ns = due_ns = lane.known_due_ns
                if due_ns is not None and (due_ns <= now_ns or self._straight is None):
                    self._sleep()
                return
            if lane.style == "async":
                self._run_task(work)
            else:
                if overtaking is not None and work.stamped is not None and _is_overdue(work, now_ns):
                    overtaking.drain_events(_ALL)  # from here on the port's depth says what is kept
                run_guarded(self._bound, work)
            before_ns, now_ns = now_ns, self._clock.now_ns()
            if now_ns - before_ns > SLOW_NS:
                tell_slow(self._bound, work, now_ns - before_ns)
        self._is_woken = True
        self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        """The next turn. An order to stop that came in the last one takes the loop some turns more to be obeyed."""
        if not self._is_ending():
            self._drive()

    def _sleep(self) -> None:
        due_ns = self.due_ns = self._lane.next_due_ns()
        if due_ns is None or self._straight is not None:
            return
        if self._timer is not None:
            self._timer.cancel()
        delay_s = max(0.0, (due_ns - self._clock.now_ns()) * 1e-9)
        self._timer = self._loop.call_later(delay_s, self.tick)

    def _run_task(self, work: Work) -> None:
        context = copy_context()
        call = self._call = self._bound.call(work)
        context.run(current_call.set, call)
        self._lane.is_busy = True
        self._task = self._loop.create_task(
            self._bound.run(work, call), name=f"{self._bound.name}.{work.handler}", context=context
        )
        self._task.add_done_callback(lambda task: self._done(task, work))

    def _done(self, task: asyncio.Task[None], work: Work) -> None:
        self._task = None
        self._lane.is_busy = False
        if (problem := failure_of(task)) is not None:
            self._bound.failures.tell(work.handler, problem)
        self._drive()


class WakeEvent(MessageSource):
    """A source without messages: what a thread waits on while others receive its messages."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._has_rung = False

    def wait(self, timeout_s: float | None) -> bool:
        """Return True once `wake` was called, False at the timeout."""
        with self._condition:
            if not self._has_rung:
                self._condition.wait(timeout_s)
            has_rung, self._has_rung = self._has_rung, False
        return has_rung

    def wake(self) -> None:
        """End the present wait, or the next one (any thread)."""
        with self._condition:
            self._has_rung = True
            self._condition.notify()


class ThreadRunner:
    """A lane on a thread of its own, which sleeps to absolute deadlines and wakes at a message.

    With a `source` the thread receives the lane's messages by itself, so that one thread less wakes for each.
    """

    def __init__(
        self,
        bound: BoundNode,
        lane: Lane,
        clock: Clock,
        *,
        leave: Callable[[BaseException], None],
        priority: int | None = None,
        source: MessageSource | None = None,
    ) -> None:
        """`priority` is that of a control loop, 0 for an ordinary one; None is the thread of blocking handlers.

        `leave` is told where a handler calls `sys.exit`, which alone would end this thread and no more.
        """
        self._leave = leave
        self._bound = bound
        self._lane = lane
        self._clock = clock
        self._priority = priority
        self._is_stopped = False
        self._source: MessageSource = source or WakeEvent()
        self._thread = threading.Thread(target=self._drive, name=f"{bound.name}-{lane.key}")

    def start(self) -> None:
        """Begin; ticks are due from now on."""
        self._thread.start()

    def wake(self) -> None:
        """Tell it that a message waits (any thread)."""
        self._source.wake()

    def be_watched(self, calls: LongCalls) -> None:
        """Have a plain handler of this thread reported while it does not return."""
        if self._lane.style == "plain":
            calls.watch_thread(self._thread, self._lane)

    def void(self) -> None:
        """Do nothing: a thread cannot be cancelled, and what it publishes too late is dropped."""

    def stop(self) -> None:
        """Run nothing more."""
        self._is_stopped = True
        self.wake()

    def forget(self) -> None:
        """In a process that a handler has forked: run nothing more there."""
        self._is_stopped = True

    def join(self, timeout_s: float) -> bool:
        """Wait for the running handler; False where it still runs after the timeout."""
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _drive(self) -> None:
        name_thread(self._thread.name)
        if not self._priority:
            be_ordinary()
            if self._priority is not None:
                take_short_turns()
        elif refusal := ask_for_fifo(self._priority):
            self._bound.node.log.debug("%s", refusal)  # the process has said so
        try:
            self._drive_on()
        except (SystemExit, KeyboardInterrupt) as wish:
            self._leave(wish)

    def _drive_on(self) -> None:
        bound, lane, source, now = self._bound, self._lane, self._source, self._clock.now_ns
        # All queues are empty when the thread takes more in; none may overflow while it alone could have emptied it.
        overtaking = _Overtaking(lane, source)
        held_up = bound.held_up
        worker = held_up.join(bound) if held_up is not None and lane.style == "blocking" else None
        while not self._is_stopped:
            now_ns = now()
            if overtaking.is_mixed or now_ns - overtaking.looked_ns > _STALE_NS:
                overtaking.look(now_ns)
            work = lane.take(now_ns)
            if work is not None:
                if worker is not None:
                    worker.handler = work.handler
                run_guarded(bound, work)
                if lane.style == "plain" and (took_ns := now() - now_ns) > SLOW_NS:
                    tell_slow(bound, work, took_ns)
            elif not overtaking.has_news or not overtaking.poll(now_ns + _STALE_NS):
                due_ns = lane.known_due_ns  # as `due_after_ns`: a further function costs ten microseconds after a rest
                if due_ns is not None and due_ns <= now_ns:
                    due_ns = lane.next_due_ns()
                timeout_s = None if due_ns is None else (due_ns - now()) * 1e-9
                if held_up is not None and worker is None and due_ns is not None:
                    held_up.look("", 0, SLOW_NS)
                if (timeout_s is None or timeout_s > 0) and source.wait(timeout_s) and not self._is_stopped:
                    overtaking.has_news = True
                    overtaking.poll(now() + _STALE_NS)  # the message that ended the wait goes before all else
                overtaking.looked_ns = now()
                if held_up is not None and worker is None and due_ns is not None:
                    held_up.look(f"a timer of {bound.name}", overtaking.looked_ns - due_ns, SLOW_NS)
