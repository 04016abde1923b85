"""`NodePlayer`: gives a node the calls of a recording again, each with exactly the inputs that it read then.

The recorded journal says for each handler call what started it, what each look at a port found, what the clock said
and what was published. The player feeds the first three and compares the last, bit for bit.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from nodes.bag_commands.diff import Difference, first_difference
from nodes.replay.inputs import Inputs, body
from runtime.call import Call, current_call
from runtime.errors import RecordingError
from runtime.fence import FenceLine
from runtime.graph import NodeSpec
from runtime.hosted import HostedNode
from runtime.journal import CallRecord, Calls
from runtime.message import Envelope, Message, Stamped
from runtime.node import Node, handlers_of
from runtime.ports import Subscription

T = TypeVar("T")

_COMPARED = ("image_ns", "utterance_ns", "plan_ns", "epochs", "cause", "provenance")
"""Of the envelope: what a call hands on of what it read."""


class NotReplayableError(RecordingError):
    """What the recording holds is not enough to run a call again."""


class ReplayClock:
    """Says what the recorded clock said."""

    def __init__(self, *, is_virtual: bool) -> None:
        self._is_virtual = is_virtual
        self.call_ns = 0
        self.said: deque[int] = deque()

    @property
    def is_virtual(self) -> bool:
        return self._is_virtual

    def now_ns(self) -> int:
        return self.call_ns + self.said.popleft() if self.said else self.call_ns

    async def sleep(self, seconds: float) -> None:
        """Returns at once: the clock's next word is a recorded one."""

    async def external(self, call: Awaitable[T], latency_s: float) -> T:
        """Raises NotReplayableError: what the world answered is not in the recording."""
        if inspect.iscoroutine(call):
            call.close()
        raise NotReplayableError("it asks the world outside, whose answers are not recorded")


class FedPort(Subscription[Any]):
    """A subscription that knows what the recorded call found there."""

    def __init__(self, port: Subscription[Any]) -> None:
        super().__init__(port.message, port.topic, qos=port.qos)
        self.attribute = port.attribute
        self.found: deque[Stamped[Any] | None] = deque()

    def stamped(self) -> Stamped[Any] | None:
        if not self.found:
            raise NotReplayableError(f"it looks at port {self.attribute!r} more often than it did then")
        newest = self.found.popleft()
        call = current_call.get()
        if newest is not None and call is not None:
            call.read(newest)
        return newest


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
        self._run_info = {"seed": seed, **(run_info or {})}
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
        self._hosted: HostedNode | None = None
        self._is_broken = False

    def play(self, batch: Calls, seq: int) -> None:
        """Run the calls of one batch of the journal. `seq` starts again at 1 where the node was started again."""
        if self._is_broken:
            return
        if seq == 1 or self._hosted is None:
            if seq != 1:
                self._doubts[f"the journal of {self._spec.name} begins with batch {seq}"] = None
            self._hosted = self._host(batch.calls[0].handler if batch.calls else "")
        if batch.lost:
            self._doubts[f"{batch.lost} calls were not journalled"] = None
        for record in batch.calls:
            try:
                self._run(self._hosted, record)
            except NotReplayableError as problem:
                self._doubts[f"from {self._at_s(record):.3f} s on: {record.handler}: {problem}"] = None
                self._is_broken = True
                return
            if self.result.difference is not None:
                if not self._is_virtual and "blocking" in self._styles.values():
                    self._doubts["it has a worker thread, and which of two threads went first is not recorded"] = None
                self._is_broken = True  # what follows follows from it
                return

    def finish(self) -> NodeResult:
        """The result; nothing is played after it."""
        if not self.result.calls and not self._doubts:
            self._doubts["the recording holds no journal of its calls"] = None
        self.result.doubts = [*self._doubts, *self.inputs.doubts]
        self._loop.close()
        return self.result

    def _host(self, first: str) -> HostedNode:
        self._clock = ReplayClock(is_virtual=self._is_virtual)
        node: Node = self._spec.build()
        hosted = HostedNode(
            node, name=self._spec.name, clock=self._clock, seed=self._seed,
            send=lambda envelope, message: self._sent.append((envelope, message)),
            fence=FenceLine(), finish=lambda name, ok, reason: None, hz=self._spec.hz, remap=self._spec.remap,
        )  # fmt: skip
        self._ports = {attribute: FedPort(port) for attribute, port in hosted.subscriptions.items()}
        vars(node).update(self._ports)
        vars(node)["run_info"] = dict(self._run_info)
        if first != "on_start":
            self._doubts["what its on_start read of the clock is not in the recording"] = None
            self._clock.call_ns = self._start_ns
            node.on_start()
        self._sent.clear()
        return hosted

    def _run(self, hosted: HostedNode, record: CallRecord) -> None:
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
        call = Call(record.started_ns, record.epochs, trigger=trigger)
        self._clock.call_ns, self._clock.said = record.started_ns, deque(record.nows_ns)
        self._sent.clear()
        token = current_call.set(call)
        try:
            method = getattr(hosted.node, record.handler)
            result = method(trigger.message) if trigger is not None else method()
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
            if recorded is None or recorded.schema != type(message).__name__:
                self.result.not_compared[envelope.topic] = self.result.not_compared.get(envelope.topic, 0) + 1
                continue
            self.result.compared += 1
            found = first_difference(recorded.document, body(message)) or first_difference(
                _handed_on(recorded.envelope, message), _handed_on(envelope, message), "_envelope"
            )
            if found is not None:
                self._differ(then, record, *found)
                return

    def _differ(self, ident: str, record: CallRecord, where: str, then: Any, now: Any) -> None:
        self.result.difference = Difference(self.result.compared, ident, self._at_s(record), where, then, now)

    def _at_s(self, record: CallRecord) -> float:
        return (record.started_ns - self._start_ns) * 1e-9


def _handed_on(envelope: Envelope, message: Message) -> dict[str, Any]:
    """What an envelope has of what its call read; a stamp that this type of message renews is its own."""
    own = f"{message.message_origin}_ns"
    values = {name: getattr(envelope, name) for name in _COMPARED if name != own}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
