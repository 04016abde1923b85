"""`NodePlayer`: gives a node the calls of a recording again, each with exactly the inputs that it read then.

The recorded journal says for each handler call what started it, what each look at a port found, what the clock said
and what was published. The player feeds the first three and compares the last, bit for bit. It keeps the recorded order
of the moments at which calls saw and changed what the node keeps, so that worker threads replay as they went.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from nodes.recording.bag.diff import Difference, first_difference
from nodes.recording.replay.inputs import Inputs, body, picture
from runtime.bag.journal import CallRecord, Calls
from runtime.bag.schema import Document
from runtime.clock import to_s
from runtime.context import AgeRules, HandlerContext, current_call
from runtime.coordination.fence import Fence, PreemptionEpochs
from runtime.errors import RecordingError
from runtime.execution.bound_node import BoundNode, NodeOutput
from runtime.execution.worker_view import WorkerView
from runtime.launch.graph import NodeSpec
from runtime.message import Envelope, Message, Stamped
from runtime.msgs import Image
from runtime.node import Node, handlers_of
from runtime.ports import Subscription
from runtime.run_facts import RunFacts

T = TypeVar("T")

_COMPARED = ("origins", "epochs", "cause", "provenance")
"""Of the envelope: what a call hands on of what it read."""


class NotReplayableError(RecordingError):
    """What the recording holds is not enough to run a call again."""


class KeptMessages(NodeOutput):
    """Keeps what a node publishes, for the comparison."""

    def __init__(self, sent: list[tuple[Envelope, Message]]) -> None:
        self._sent = sent

    def send(self, envelope: Envelope, message: Message) -> None:
        self._sent.append((envelope, message))


class CallClock:
    """Stands at the beginning of the call: what the runtime looks at, which no journal notes."""

    def __init__(self, *, is_virtual: bool) -> None:
        self.is_virtual = is_virtual
        self.call_ns = 0

    def now_ns(self) -> int:
        return self.call_ns

    def now_s(self) -> float:
        return to_s(self.now_ns())

    def since_s(self, stamp_ns: int) -> float:
        return to_s(self.now_ns() - stamp_ns)

    async def sleep(self, seconds: float) -> None:
        """Returns at once: the clock's next word is a recorded one."""

    async def external(self, call: Awaitable[T], latency_s: float) -> T:
        """Raises NotReplayableError: what the world answered is not in the recording."""
        if inspect.iscoroutine(call):
            call.close()
        raise NotReplayableError("it asks the world outside, whose answers are not recorded")


class ReplayClock(CallClock):
    """Says to the node what the recorded clock said."""

    def __init__(self, *, is_virtual: bool) -> None:
        super().__init__(is_virtual=is_virtual)
        self.said: deque[int] = deque()

    def now_ns(self) -> int:
        return self.call_ns + (self.said.popleft() if self.said else 0)


class FedPort(Subscription[Any]):
    """A subscription that knows what the recorded call found there."""

    def __init__(self, port: Subscription[Any]) -> None:
        super().__init__(port.message, port.topic, qos=port.qos)
        self.attribute = port.attribute
        self.found: deque[Stamped[Any] | None] = deque()

    def stamped(self) -> Stamped[Any] | None:
        newest = self.peek()
        call = current_call.get()
        if newest is not None and call is not None:
            call.read(newest)
        return newest

    def peek(self) -> Stamped[Any] | None:
        if not self.found:
            raise NotReplayableError(f"it looks at port {self.attribute!r} more often than it did then")
        return self.found.popleft()


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
        self._styles = {handler.name: handler.style for handler in handlers_of(spec.cls)}
        self._loop = asyncio.new_event_loop()
        self._doubts: dict[str, None] = {}
        self._sent: list[tuple[Envelope, Message]] = []
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
        """Run the calls of one batch of the journal. `seq` starts again at 1 where the node was started again."""
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
        for record in self._in_order(self._bound, batch):
            try:
                self._run(self._bound, record)
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
        if not self.result.calls and not self._doubts:
            self._doubts["the recording holds no journal of its calls"] = None
        self.result.doubts = [*self._doubts, *self.inputs.doubts]
        self._loop.close()
        return self.result

    def _bind(self, first: str) -> BoundNode:
        self._call_clock = CallClock(is_virtual=self._is_virtual)
        self._clock = ReplayClock(is_virtual=self._is_virtual)
        node: Node = self._spec.build()
        bound = BoundNode(
            node, name=self._spec.name, clock=self._call_clock, seed=self._seed,
            output=KeptMessages(self._sent), fence=PreemptionEpochs(), hz=self._spec.hz, after=self._spec.after,
            remap=self._spec.remap, rules=AgeRules.of(self._run_info),
        )  # fmt: skip
        self._views.clear()
        self._ports = {attribute: FedPort(port) for attribute, port in bound.subscriptions.items()}
        vars(node).update(self._ports)
        vars(node).update(run_info=RunFacts.of(self._run_info), _clock=self._clock)
        if first != "on_start":
            self._doubts["what its on_start read of the clock is not in the recording"] = None
            self._call_clock.call_ns = self._clock.call_ns = self._start_ns
            node.on_start()
        self._sent.clear()
        return bound

    def _in_order(self, bound: BoundNode, batch: Calls) -> Iterator[CallRecord]:
        """The calls in the order in which their effects were seen; a worker's is shown the node where it began."""
        moments = [(record.order, record) for record in batch.calls]
        begun = [record.begun for record in batch.calls if record.begun] + list(batch.running)
        rows: list[tuple[int, CallRecord | None]] = [*moments, *((order, None) for order in begun)]
        for order, record in sorted(rows, key=lambda row: row[0]):
            if record is not None:
                yield record
            elif order not in self._views:
                self._views[order] = bound.snapshot()

    def _doubt_unrecorded(self, bound: BoundNode) -> None:
        """Say what may have made the difference and is in no recording."""
        styles = self._styles.values()
        if self._had_registry and any(port.message is Fence for port in bound.publishers):
            self._doubts["the run's token, and what was latched before it, are not recorded"] = None
        if "async" in styles and len(styles) > 1:
            self._doubts["it has async handlers, and which of its other calls ran while one waited is not recorded"] = (
                None
            )

    def _run(self, bound: BoundNode, record: CallRecord) -> None:
        if record.is_cut:
            raise NotReplayableError("it read more than a journal keeps")
        style = "plain" if record.handler == "on_start" else self._styles.get(record.handler)
        if style is None:
            raise NotReplayableError(f"{self._spec.cls.__name__} has no such handler")
        for port in self._ports.values():
            port.found.clear()
        for read in record.reads:
            attribute, _, ident = read.partition("=")
            if attribute not in self._ports:
                raise NotReplayableError(f"{self._spec.cls.__name__} has no port {attribute!r}")
            fed = self._ports[attribute]
            fed.found.append(self._input(ident, fed) if ident else None)
        trigger = None
        if record.trigger:
            topic = record.trigger.rsplit(":", 2)[0]
            heard = next((port for port in self._ports.values() if port.topic == topic), None)
            if heard is None:
                raise NotReplayableError(f"{self._spec.cls.__name__} does not hear {topic}")
            trigger = self._input(record.trigger, heard)
        call = HandlerContext.of(record.started_ns, record.epochs, trigger, bound.ages, self._clock)
        self._call_clock.call_ns = self._clock.call_ns = record.started_ns
        self._clock.said = deque(record.nows_ns)
        self._sent.clear()
        token = current_call.set(call)
        view = self._views.pop(record.begun, None)
        try:
            method = getattr(bound.node if view is None else view.node, record.handler)
            taken = trigger if trigger is None or bound.takes_stamped(record.handler) else trigger.message
            result = method(taken) if taken is not None else method()
            if style == "async":
                self._loop.run_until_complete(result)
        except NotReplayableError:
            raise
        except Exception as problem:  # noqa: BLE001  # the node's own; the run it is compared with logged it, too
            self._doubts[
                f"{record.handler} failed at {self._at_s(record):.3f} s: {type(problem).__name__}: {problem}"
            ] = None
        finally:
            current_call.reset(token)
        if view is not None:
            view.commit(bound.node)
        self.result.calls += 1
        self._compare(record)

    def _input(self, ident: str, port: FedPort) -> Stamped[Any]:
        try:
            return self.inputs.stamped(ident, port.message)
        except RecordingError as problem:
            raise NotReplayableError(str(problem)) from problem

    def _compare(self, record: CallRecord) -> None:
        for index in range(max(len(record.sent), len(self._sent))):
            then = record.sent[index] if index < len(record.sent) else None
            now = self._sent[index] if index < len(self._sent) else None
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


def _handed_on(envelope: Envelope, message: Message) -> dict[str, Any]:
    """What an envelope has of what its call read; a stamp that this type of message renews is its own."""
    own = f"{message.message_origin}_ns"
    values = {name: getattr(envelope, name) for name in _COMPARED if name != own}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
