"""`NodePlayer`: gives a node the calls of a recording again, each with exactly the inputs that it read then.

The recorded journal says for each handler call what started it, what each look at a port found, what the clock said
what the world outside answered, and what was published. The player feeds the first four and compares the last, bit for
bit. It keeps the recorded order of the moments at which calls saw and changed what the node keeps: worker threads
replay as they went, and async calls go on after each wait when they went on then.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Iterator
from contextvars import copy_context
from dataclasses import dataclass, field
from heapq import heapify, heappop
from typing import Any, TypeVar

from nodes.mcap.schema import Document
from nodes.msgs import Image
from nodes.recording.bag.diff import Difference, first_difference
from nodes.recording.replay.inputs import Inputs, body, picture
from runtime.clock import TimeSource, to_s
from runtime.context import AgeRules, HandlerContext, current_call
from runtime.coordination.fence import Fence, PreemptionEpochs
from runtime.errors import RecordingError
from runtime.execution.bound_node import BoundNode, NodeOutput
from runtime.execution.worker_view import WorkerView
from runtime.external_call import close_call
from runtime.journal import answers
from runtime.journal.answers import CANCELLED, SLEPT, WOKEN
from runtime.journal.calls import CallRecord, Calls
from runtime.launch.graph import NodeSpec
from runtime.message import Envelope, Message, Stamped
from runtime.node import Node, handlers_of
from runtime.ports import Subscription
from runtime.run_facts import RunFacts

T = TypeVar("T")

TURNS = 16
"""So many turns of the loop bring every async call to its next wait: one for each task that it made and awaits."""
_COMPARED = ("origins", "epochs", "cause", "provenance")
"""Of the envelope: what a call hands on of what it read."""


class NotReplayableError(RecordingError):
    """What the recording holds is not enough to run a call again."""


@dataclass
class PlayedCall:
    """One call that is run again: what is left of what it read then, and what it has published so far."""

    record: CallRecord
    found: dict[str, deque[Stamped[Any] | None]]
    said: deque[int]
    sent: list[tuple[Envelope, Message]] = field(default_factory=list)
    task: asyncio.Task[None] | None = None
    gate: asyncio.Future[str] | None = None
    """What an async call waits at until the moment at which it went on then."""
    early: deque[str] = field(default_factory=deque)
    problem: NotReplayableError | None = None

    def go_on(self, answer: str) -> None:
        """Let an async call go on with this answer."""
        if self.gate is None or self.gate.done():
            self.early.append(answer)
        elif answer in (CANCELLED, WOKEN):
            self.gate.cancel()
        else:
            self.gate.set_result(answer)


class PlayedCalls:
    """The calls that are being run again, by their contexts."""

    def __init__(self) -> None:
        self._by_context: dict[int, tuple[HandlerContext, PlayedCall]] = {}

    def begin(self, context: HandlerContext, playing: PlayedCall) -> None:
        """From now on, the call of this context is that one."""
        self._by_context[id(context)] = (context, playing)

    def end(self, playing: PlayedCall) -> None:
        """Forget a call."""
        self._by_context = {key: pair for key, pair in self._by_context.items() if pair[1] is not playing}

    @property
    def now(self) -> PlayedCall | None:
        """The call that runs now."""
        known = self._by_context.get(id(current_call.get()))
        return None if known is None else known[1]


class KeptMessages(NodeOutput):
    """Keeps what a node publishes, for the comparison."""

    def __init__(self, calls: PlayedCalls) -> None:
        self._calls = calls

    def send(self, envelope: Envelope, message: Message) -> None:
        if (playing := self._calls.now) is not None:
            playing.sent.append((envelope, message))


class CallClock(TimeSource):
    """Stands at the beginning of the call: what the runtime looks at, which no journal notes."""

    def __init__(self, *, is_virtual: bool) -> None:
        self.is_virtual = is_virtual
        self.call_ns = 0

    def now_ns(self) -> int:
        return self.call_ns

    async def sleep(self, seconds: float) -> None:
        """Returns at once."""

    async def answered(self, call: Awaitable[T], latency_s: float, timeout_s: float) -> T:
        """Raises NotReplayableError: the runtime asks nothing of the world."""
        close_call(call)
        raise NotReplayableError("it asks the world outside, whose answers are not recorded")


class ReplayClock(CallClock):
    """Says to the node what the recorded clock said, and what the world outside answered; nothing is asked again."""

    def __init__(self, calls: PlayedCalls, *, is_virtual: bool) -> None:
        super().__init__(is_virtual=is_virtual)
        self._calls = calls

    def now_ns(self) -> int:
        playing = self._calls.now
        if playing is None:
            return self.call_ns
        return playing.record.started_ns + (playing.said.popleft() if playing.said else 0)

    async def sleep(self, seconds: float) -> None:
        """Returns when it was over then, in the order of all that happened."""
        await self._wait(SLEPT)

    async def answered(self, call: Awaitable[T], latency_s: float, timeout_s: float) -> T:
        """The recorded answer. Raises what the call raised, and NotReplayableError where no answer was kept."""
        close_call(call)
        text = await self._wait(None)
        try:
            answer: T = answers.read(text)
        except RecordingError as problem:
            raise self._refused(str(problem)) from problem
        return answer

    async def _wait(self, without: str | None) -> str:
        playing = self._calls.now
        if playing is None or not (playing.record.waits or playing.record.begun):
            if without is None:
                raise self._refused("it asks the world outside, whose answers are not recorded")
            return without
        if playing.early:
            text = playing.early.popleft()
            if text in (CANCELLED, WOKEN):
                raise asyncio.CancelledError
            return text
        playing.gate = asyncio.get_running_loop().create_future()
        return await playing.gate

    def _refused(self, why: str) -> NotReplayableError:
        problem = NotReplayableError(why)
        if (playing := self._calls.now) is not None:
            playing.problem = problem  # a handler may swallow it
        return problem


class FedPort(Subscription[Any]):
    """A subscription that knows what the recorded call found there."""

    def __init__(self, port: Subscription[Any], calls: PlayedCalls) -> None:
        super().__init__(port.message, port.topic, qos=port.qos)
        self.attribute = port.attribute
        self._calls = calls

    def stamped(self) -> Stamped[Any] | None:
        newest = self.peek()
        call = current_call.get()
        if newest is not None and call is not None:
            call.read(newest)
        return newest

    def peek(self) -> Stamped[Any] | None:
        playing = self._calls.now
        found = None if playing is None else playing.found.get(self.attribute)
        if not found:
            raise NotReplayableError(f"it looks at port {self.attribute!r} more often than it did then")
        return found.popleft()


@dataclass
class NodeResult:
    """How the replay of one node went. `doubts` says why it is not bit-exact."""

    node: str
    calls: int = 0
    compared: int = 0
    not_compared: dict[str, int] = field(default_factory=dict)  # by topic: not recorded, or as a picture
    difference: Difference | None = None
    doubts: list[str] = field(default_factory=list)

    @property
    def is_exact(self) -> bool:
        return self.difference is None and not self.doubts


class NodePlayer:
    """One node, run again from a recording."""

    def __init__(
        self,
        spec: NodeSpec,
        *,
        seed: int,
        is_virtual: bool,
        start_ns: int,
        run_info: dict[str, Any] | None = None,
    ) -> None:
        # Without "registry", the folder of the run that was: its token is gone, and what a guard latches stands there.
        self._run_info = {key: value for key, value in (run_info or {}).items() if key != "registry"} | {"seed": seed}
        self._had_registry = "registry" in (run_info or {})
        self.result = NodeResult(spec.name)
        self.inputs = Inputs()
        self._spec = spec
        self._seed = seed
        self._is_virtual = is_virtual
        self._start_ns = start_ns
        self._styles: dict[str, str] = {handler.name: handler.style for handler in handlers_of(spec.cls)}
        self._styles["on_start"] = "async" if inspect.iscoroutinefunction(spec.cls.on_start) else "plain"
        self._loop = asyncio.new_event_loop()
        self._doubts: dict[str, None] = {}
        self._calls = PlayedCalls()
        self._begun: dict[int, PlayedCall] = {}  # async calls that wait, by where they began
        self._events: list[tuple[int, int, str | None, CallRecord]] = []  # order, which, answer, call
        self._waiting: deque[tuple[Calls, int]] = deque()  # batches with calls that end in a later one
        self._ended: set[int] = set()
        self._ports: dict[str, FedPort] = {}
        self._bound: BoundNode | None = None
        self._views: dict[int, WorkerView] = {}  # by where the call began
        self._batch = 0
        self._awaited = ""  # an input that is still to come
        self._is_broken = False

    def has_inputs_of(self, batch: Calls) -> bool:
        """Whether all that these calls read and sent is known, or known not to come any more."""
        if self._is_broken:
            return True
        if self._awaited and self.inputs.may_come(self._awaited):
            return False  # asked at each message: without going through all of the calls again
        for record in batch.calls:
            for name in (record.trigger, *(read.partition("=")[2] for read in record.reads), *record.sent):
                if name and self.inputs.may_come(name):
                    self._awaited = name
                    return False
        self._awaited = ""
        return True

    def play(self, batch: Calls, seq: int) -> None:
        """Run the calls of one batch of the journal. `seq` starts again at 1 where the node was started again.

        A batch waits here until the calls have ended that began in it: what those read is told at their ends.
        """
        if seq == 1:
            self._play_waiting(is_last=True)
            self._events, self._ended = [], set()
        for record in batch.calls:
            self._ended.add(record.begun)
            self._events += _events_of(record)
        heapify(self._events)
        self._waiting.append((batch, seq))
        self._play_waiting()

    def _play_waiting(self, *, is_last: bool = False) -> None:
        while self._waiting and (is_last or self._ended.issuperset(self._waiting[0][0].running)):
            self._play(*self._waiting.popleft())

    def _play(self, batch: Calls, seq: int) -> None:
        if self._is_broken:
            return
        if seq == 1 or self._bound is None:
            if seq != 1:
                self._doubts[f"the journal of {self._spec.name} begins with batch {seq}"] = None
            self._bound = self._bind(batch.calls[0].handler if batch.calls else "")
        elif seq != self._batch + 1:
            self._doubts[f"{seq - self._batch - 1} batches of the journal of {self._spec.name} are missing"] = None
        self._batch = seq
        if batch.lost:
            self._doubts[f"{batch.lost} calls were not journalled"] = None
        last = max((record.order for record in batch.calls), default=0)
        while self._events and self._events[0][0] <= last:
            _, which, answer, record = heappop(self._events)
            try:
                self._step(self._bound, which, answer, record)
            except NotReplayableError as problem:
                self._doubts[f"from {self._at_s(record):.3f} s on: {record.handler}: {problem}"] = None
                self._is_broken = True
                return
            if self.result.difference is not None:
                self._doubt_unrecorded(self._bound)
                self._is_broken = True  # what follows follows from it
                return

    def finish(self) -> NodeResult:
        """The result; nothing is played after it."""
        self._play_waiting(is_last=True)
        if not self.result.calls and not self._doubts:
            self._doubts["the recording holds no journal of its calls"] = None
        self.result.doubts = [*self._doubts, *self.inputs.doubts]
        for playing in self._begun.values():
            if playing.task is not None:
                playing.task.cancel()
        self._settle()
        self._loop.close()
        return self.result

    def _bind(self, first: str) -> BoundNode:
        self._call_clock = CallClock(is_virtual=self._is_virtual)
        self._clock = ReplayClock(self._calls, is_virtual=self._is_virtual)
        node: Node = self._spec.build()
        bound = BoundNode(
            node, name=self._spec.name, clock=self._call_clock, seed=self._seed,
            output=KeptMessages(self._calls), fence=PreemptionEpochs(), hz=self._spec.hz, after=self._spec.after,
            remap=self._spec.remap, rules=AgeRules.of(self._run_info),
        )  # fmt: skip
        self._views.clear()
        self._ports = {attribute: FedPort(port, self._calls) for attribute, port in bound.subscriptions.items()}
        vars(node).update(self._ports)
        vars(node).update(run_info=RunFacts.of(self._run_info), clock=self._clock)
        if first != "on_start":
            self._doubts["what its on_start read of the clock is not in the recording"] = None
            self._call_clock.call_ns = self._clock.call_ns = self._start_ns
            if inspect.isawaitable(begun := node.on_start()):
                self._loop.run_until_complete(begun)
        return bound

    def _doubt_unrecorded(self, bound: BoundNode) -> None:
        """Say what may have made the difference and is in no recording."""
        styles = self._styles.values()
        if self._had_registry and any(port.message is Fence for port in bound.publishers):
            self._doubts["the run's token, and what was latched before it, are not recorded"] = None
        if "async" in styles and len(styles) > 1:
            self._doubts["it has async handlers, and where they wait for more than the clock is not recorded"] = None

    def _step(self, bound: BoundNode, which: int, answer: str | None, record: CallRecord) -> None:
        """Do what happened at one moment: a call began, went on, or ended."""
        is_async = self._style_of(record) == "async"
        if which == _BEGINS and not is_async:
            self._views[record.begun] = bound.snapshot()
        elif which == _BEGINS:
            self._begun[record.begun] = self._begin(bound, record)
        elif which == _GOES_ON:
            self._begun[record.begun].go_on(answer or SLEPT)
            self._settle()
        elif is_async:
            self._end(self._begun.pop(record.begun) if record.begun in self._begun else self._begin(bound, record))
        else:
            self._run(bound, record)

    def _style_of(self, record: CallRecord) -> str:
        if record.is_cut:
            raise NotReplayableError("it read more than a journal keeps")
        style = self._styles.get(record.handler)
        if style is None:
            raise NotReplayableError(f"{self._spec.cls.__name__} has no such handler")
        return style

    def _call(self, bound: BoundNode, record: CallRecord) -> tuple[HandlerContext, PlayedCall, tuple[Any, ...]]:
        """The context of a call with all that it read, and its arguments."""
        found: dict[str, deque[Stamped[Any] | None]] = {attribute: deque() for attribute in self._ports}
        for name in record.reads:
            attribute, _, ident = name.partition("=")
            if attribute not in self._ports:
                raise NotReplayableError(f"{self._spec.cls.__name__} has no port {attribute!r}")
            found[attribute].append(self._input(ident, self._ports[attribute]) if ident else None)
        trigger = None
        if record.trigger:
            topic = record.trigger.rsplit(":", 2)[0]
            heard = next((port for port in self._ports.values() if port.topic == topic), None)
            if heard is None:
                raise NotReplayableError(f"{self._spec.cls.__name__} does not hear {topic}")
            trigger = self._input(record.trigger, heard)
        context = HandlerContext.of(record.started_ns, record.epochs, trigger, bound.ages, self._clock)
        self._call_clock.call_ns = self._clock.call_ns = record.started_ns
        playing = PlayedCall(record, found, deque(record.nows_ns))
        self._calls.begin(context, playing)
        if trigger is None:
            return context, playing, ()
        return context, playing, (trigger if bound.takes_stamped(record.handler) else trigger.message,)

    def _begin(self, bound: BoundNode, record: CallRecord) -> PlayedCall:
        """Begin an async call; it comes as far as its first wait."""
        context, playing, arguments = self._call(bound, record)
        about = copy_context()
        about.run(current_call.set, context)
        coroutine = about.run(getattr(bound.node, record.handler), *arguments)
        playing.task = self._loop.create_task(coroutine, context=about)
        self._settle()
        return playing

    def _settle(self) -> None:
        """Let the async calls run until each of them waits."""

        async def turns() -> None:
            for _ in range(TURNS):
                await asyncio.sleep(0)

        self._loop.run_until_complete(turns())

    def _end(self, playing: PlayedCall) -> None:
        """The moment at which an async call ended then."""
        task = playing.task
        assert task is not None, "it has begun"
        if not task.done():
            task.cancel()  # it was cancelled where it waited for something else than the clock
            self._settle()
        if playing.problem is not None:
            raise playing.problem
        if not task.done():
            raise NotReplayableError("it does not end where it ended then")
        problem = None if task.cancelled() else task.exception()
        if isinstance(problem, NotReplayableError):
            raise problem
        self._ended_with(playing, problem)

    def _run(self, bound: BoundNode, record: CallRecord) -> None:
        context, playing, arguments = self._call(bound, record)
        token = current_call.set(context)
        view = self._views.pop(record.begun, None)
        failure: Exception | None = None
        try:
            getattr(bound.node if view is None else view.node, record.handler)(*arguments)
        except NotReplayableError:
            raise
        except Exception as problem:  # noqa: BLE001  # the node's own; the run it is compared with logged it, too
            failure = problem
        finally:
            current_call.reset(token)
        if view is not None:
            view.commit(bound.node)
        self._ended_with(playing, failure)

    def _ended_with(self, playing: PlayedCall, problem: BaseException | None) -> None:
        record = playing.record
        if problem is not None:
            self._doubts[
                f"{record.handler} failed at {self._at_s(record):.3f} s: {type(problem).__name__}: {problem}"
            ] = None
        self.result.calls += 1
        self._compare(record, playing.sent)
        self._calls.end(playing)

    def _input(self, ident: str, port: FedPort) -> Stamped[Any]:
        try:
            return self.inputs.stamped(ident, port.message)
        except RecordingError as problem:
            raise NotReplayableError(str(problem)) from problem

    def _compare(self, record: CallRecord, sent: list[tuple[Envelope, Message]]) -> None:
        for index in range(max(len(record.sent), len(sent))):
            then = record.sent[index] if index < len(record.sent) else None
            now = sent[index] if index < len(sent) else None
            if then == "" and now is not None:
                continue  # voided by a fence then; the replay has none
            if then is None or now is None:
                there = then or f"{now[0].topic} (new)" if now is not None else str(then)
                self._differ(there, record, "what is published", then or "nothing", now[0].topic if now else "nothing")
                return
            recorded = self.inputs.recorded(then)
            envelope, message = now
            was = self._recorded_body(then, message)
            if recorded is None or was is None:
                self.result.not_compared[envelope.topic] = self.result.not_compared.get(envelope.topic, 0) + 1
                continue
            self.result.compared += 1
            again = picture(message) if isinstance(message, Image) else body(message, was)
            found = first_difference(was, again) or first_difference(
                _handed_on(recorded.envelope, message), _handed_on(envelope, message), "_envelope"
            )
            if found is not None:
                self._differ(then, record, *found)
                return

    def _recorded_body(self, ident: str, message: Message) -> Document | None:
        """What was recorded under that name, as plain values; None where nothing was that can be compared."""
        recorded = self.inputs.recorded(ident)
        if recorded is None:
            return None
        if isinstance(message, Image):
            return self.inputs.picture(ident)
        return recorded.document if recorded.schema == type(message).__name__ else None

    def _differ(self, ident: str, record: CallRecord, where: str, then: Any, now: Any) -> None:
        self.result.difference = Difference(self.result.compared, ident, self._at_s(record), where, then, now)

    def _at_s(self, record: CallRecord) -> float:
        return to_s(record.started_ns - self._start_ns)


_BEGINS, _GOES_ON, _ENDS = range(3)


def _events_of(record: CallRecord) -> Iterator[tuple[int, int, str | None, CallRecord]]:
    """The moments of a call: where it began, where it went on after a wait, where it ended."""
    if record.begun:
        yield record.begun, _BEGINS, None, record
    for order, answer in record.waits:
        yield order, _GOES_ON, answer, record
    yield record.order, _ENDS, None, record


def _handed_on(envelope: Envelope, message: Message) -> dict[str, Any]:
    """What an envelope has of what its call read; a stamp that this type of message renews is its own."""
    values: dict[str, Any] = {name: getattr(envelope, name) for name in _COMPARED}
    values["origins"] = {name: at for name, at in envelope.origins.items() if name != message.message_origin}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
