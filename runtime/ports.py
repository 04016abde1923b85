"""`Publisher` and `Subscription`: declared on the class, bound on the instance, one type in both places.

A port on a class is a declaration (`Talker.beat`). Reading it from an instance (`self.beat`) gives that instance's own
port, which an executor connects to a bus. An unconnected port works alone, so that a test may simply call a handler:
what it publishes goes nowhere.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Generic, Self

from runtime.clock import Clock, SystemClock, to_ns
from runtime.context import HandlerContext, NodeAges, current_call
from runtime.coordination.fence import PreemptionEpochs
from runtime.coordination.lease import SeatHolders
from runtime.errors import CodecError, GraphError, MessageTypeError, UserError
from runtime.message import Envelope, M, Message, Stamped
from runtime.qos import QoS
from runtime.serialization.field_types import as_received, fits_of
from runtime.transport.rate_limit import RateLimit

Sources = Stamped[Any] | Iterable[Stamped[Any]] | None
"""What a message is said to stem from, besides what its handler read: messages that were kept; () for nothing else."""
Sink = Callable[["Publisher[Any]", Message, Sources], None]
SinkAll = Callable[["Publisher[Any]", Sequence[Message], Sources], None]


_WORD = re.compile(r"[a-z][a-z0-9_]*")
MAX_LENGTH = 120


@cache
def check_topic(name: str) -> str:
    """Check a topic's name and return it. Raises GraphError where it is none."""
    if len(name) > MAX_LENGTH or not all(_WORD.fullmatch(word) for word in name.split("/")):
        raise GraphError(
            f"topic {name[:MAX_LENGTH]!r} is no topic name; "
            "expected words of a-z, 0-9 and _ joined by '/', like 'head/image'"
        )
    return name


class Port(Generic[M]):
    """What both kinds of port are: a message type, a topic and a QoS, under an attribute of a node class."""

    def __init__(self, message: type[M], topic: str, *, qos: QoS | None = None) -> None:
        if not _is_message(message):
            said = getattr(message, "__name__", repr(message))
            raise UserError(
                f"{type(self).__name__}({said}, {topic!r}): {said} is no message; declare one: "
                "`class Beat(Message): count: int`"
            )
        if qos is not None and not isinstance(qos, QoS):
            raise UserError(
                f"{type(self).__name__}({message.__name__}, {topic!r}, qos={qos!r}): write qos=QoS(depth=10)"
            )
        self.message = message
        self.topic = check_topic(topic)
        self.qos = (qos or QoS()).for_kind(message.message_kind)
        self.attribute = ""
        self.declared_by = ""  # the class that declares it; "" for a node's own

    def __set_name__(self, owner: type, attribute: str) -> None:
        self.attribute = attribute
        self.declared_by = owner.__name__

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.message.__name__}, {self.topic!r})"

    def __get__(self, instance: object | None, owner: type | None = None) -> Self:
        if instance is None:
            return self
        # Not a data descriptor: the instance's own port shadows the declaration from here on.
        return instance.__dict__.setdefault(self.attribute, self._bind())  # type: ignore[no-any-return]

    def _bind(self) -> Self:
        bound = type(self)(self.message, self.topic, qos=self.qos)
        bound.attribute = self.attribute
        return bound


def _is_message(message: object) -> bool:
    return isinstance(message, type) and issubclass(message, Message)


class Publisher(Port[M]):
    """A port that messages leave by: `beat = Publisher(Beat, "beat")` on the class, `self.beat.publish(...)`."""

    def __init__(self, message: type[M], topic: str, *, qos: QoS | None = None) -> None:
        super().__init__(message, topic, qos=qos)
        self.sink: Sink | None = None
        self.sink_all: SinkAll | None = None
        self.transmit: Callable[[Envelope, Message], None] | None = None
        """Brings a message to all that hear it, where that takes less than the common way."""
        self.sent = 0  # a worker thread may publish at the same time
        self.provenance = ""
        self._fits: Callable[[M], bool] = self._learn
        self.arrays: tuple[str, ...] = ()
        """The names of its messages' arrays, which are read-only once they are published; known where it is bound."""
        self._lock = threading.Lock()

    def publish(self, message: M, *, stems_from: Sources = None) -> None:
        """Send a message; never waits.

        It is as old as what the handler has read in this call, and as what `stems_from` names: one `Stamped` message or
        several. Raises MessageTypeError, a TypeError, for another message and for a field that does not hold what it
        declares, UserError on the class in place of an instance.
        """
        if not self._fits(message):  # of this very type, too
            message = self._received(message)
        sink = self.sink
        if sink is not None:
            sink(self, message, stems_from)  # which counts it under the lock that it needs anyhow
            return
        if self.declared_by:
            raise UserError(
                f"{self.declared_by}.{self.attribute} only declares the port; publish by self.{self.attribute}"
            )
        with self._lock:
            self.sent += 1

    def publish_all(self, messages: Iterable[M], *, stems_from: Sources = None) -> None:
        """Send messages that a device or a computation gave all at once, in their order; never waits.

        Each is a message of its own, with its own number. They share the moment at which they were published. Small
        ones travel together, which takes a fraction of the time. Raises as `publish` does, before any is sent.
        """
        fits = self._fits
        messages = tuple(message if fits(message) else self._received(message) for message in messages)
        sink_all = self.sink_all
        if sink_all is not None:
            if messages:
                sink_all(self, messages, stems_from)
            return
        for message in messages:
            self.publish(message, stems_from=stems_from)

    def _learn(self, message: M) -> bool:
        """Whether the fields fit, for the first message: for those after it the function stands here."""
        self._fits = fits_of(self.message)
        return self._fits(message)

    def _received(self, message: M) -> M:
        """The message as its receivers get it. Raises MessageTypeError with the line that publishes it."""
        return checked(message, self.message, f"publishes on topic {self.topic!r}")


def checked(message: M, declared: type[M], does: str) -> M:
    """The message as a receiver of that type gets it.

    Raises MessageTypeError where it is none; `does` says, behind the line that sends it, what that does.
    """
    if type(message) is not declared:
        raise MessageTypeError(f"{sending_line()} {does} a {type(message).__name__}; expected {declared.__name__}")
    try:
        return as_received(message)
    except CodecError as problem:
        raise MessageTypeError(f"{sending_line()} {does} a {declared.__name__} that does not fit: {problem}") from None


_OURS = str(Path(__file__).parent) + os.sep


def sending_line() -> str:
    """The line outside the runtime that publishes now, as "Policy.tick (policy.py:31)"."""
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    return f"{frame.f_code.co_qualname} ({Path(frame.f_code.co_filename).name}:{frame.f_lineno})"


class Subscription(Port[M]):
    """A port that messages arrive by: `@on(port)` is each message, `port.latest()` what is known now."""

    def __init__(self, message: type[M], topic: str, *, qos: QoS | None = None) -> None:
        super().__init__(message, topic, qos=qos)
        self.clock: Clock = SystemClock()
        self.has_handler = False
        self.fence: PreemptionEpochs | None = None
        self.leases: SeatHolders | None = None
        self.ages: NodeAges | None = None
        self.owner = ""  # the node's name; what it says itself it hears, also in shadow
        self.received = 0
        self.delivered = 0
        self.dropped: Counter[str] = Counter()
        self._queue: deque[Stamped[M]] = deque()
        self._newest: Stamped[M] | None = None
        self._newest_is_read = False
        self._newest_ns = 0  # of the newest one that has expired
        self.arrived_ns = 0  # when the newest one came in; kept where there is a deadline
        self.deadlines_missed = 0
        self.limit = RateLimit(self.qos.max_hz) if self.qos.max_hz is not None else None
        self.lock = threading.Lock()

    def latest(self) -> M | None:
        """Return the newest message; None before the first one, and once it is older than `lifespan_s`."""
        stamped = self.stamped()
        return None if stamped is None else stamped.message

    def stamped(self) -> Stamped[M] | None:
        """Return the newest message with its envelope; None as `latest` does."""
        call = current_call.get()
        newest = self._look(call)
        if newest is not None:
            if call is not None:
                call.read(newest)
            elif self.ages is not None and not self.clock.is_virtual:  # there it is a test that looks
                self.ages.handed_on(newest)
        return newest

    def peek(self) -> Stamped[M] | None:
        """Return the same, and hand on no age and no cause: for a look that has no part in what is published."""
        return self._look(current_call.get())

    def _look(self, call: HandlerContext | None) -> Stamped[M] | None:
        if call is None:
            return self._now()
        newest = self._from_snapshot(call) if call.snapshot is not None else self._now()
        if call.notes is not None:
            call.notes.read(self.attribute, newest)
        return newest

    def _now(self) -> Stamped[M] | None:
        with self.lock:
            newest = self._newest
            if newest is None:
                return None
            if self._is_expired(newest):
                if not self._newest_is_read and not self.has_handler:
                    self.dropped["expired"] += 1
                self._newest_ns = newest.envelope.published_ns
                self._newest = None
                return None
            if not self._newest_is_read and not self.has_handler:
                self.delivered += 1
            self._newest_is_read = True
            return newest

    def _from_snapshot(self, call: HandlerContext) -> Stamped[M] | None:
        """What the port knew when a blocking handler started: all its inputs are of one moment."""
        assert call.snapshot is not None
        newest: Stamped[M] | None = call.snapshot.get(self.attribute)
        return newest

    def push(self, stamped: Stamped[M]) -> None:
        """Take in a message from the bus (any thread)."""
        qos, envelope = self.qos, stamped.envelope
        with self.lock:
            self.received += 1
            if qos.deadline_s is not None:
                self.arrived_ns = self.clock.now_ns()
            if self.limit is not None and not self.limit.allows(envelope.published_ns):
                self.dropped["max_hz"] += 1
                return
            if envelope.seat and self.fence is not None and self.fence.is_behind(envelope):
                self.dropped["epoch"] += 1
                return
            leases = self.leases
            if (
                leases is not None
                and (envelope.seat or self.topic in leases.seat_topics)
                and self._is_shadow(envelope, leases)
            ):
                self.dropped["shadow"] += 1
                return
            newest = self._newest
            if newest is not None and not self._newest_is_read and not self.has_handler:
                self.dropped["overwritten"] += 1
            if (
                newest is not None
                and envelope.published_ns < newest.envelope.published_ns
                and self._is_late(envelope, newest.envelope)
            ):
                if not self.has_handler and self._newest_is_read:
                    self.dropped["overwritten"] += 1  # the late one itself; else it counts for the newest
            else:
                self._newest = stamped
                self._newest_is_read = False
            if not self.has_handler:
                return
            queue = self._queue
            if len(queue) >= qos.depth:
                if qos.drop == "newest" and not stamped.message.message_is_urgent:
                    self.dropped["queue full"] += 1
                    return
                del queue[next((at for at, one in enumerate(queue) if not one.message.message_is_urgent), 0)]
                self.dropped["overwritten" if self.message.message_kind == "state" else "queue full"] += 1
            queue.append(stamped)

    def lose(self, reason: str, number: int) -> None:
        """Count messages that were meant for this port and are known to be lost on their way (any thread)."""
        with self.lock:
            self.received += number
            self.dropped[reason] += number

    def pop(self) -> Stamped[M] | None:
        """Return the next message for the handler, oldest first, without those past their lifespan (executor only)."""
        with self.lock:
            while self._queue:
                stamped = self._queue.popleft()
                if stamped.envelope.seat and self.fence is not None and self.fence.is_behind(stamped.envelope):
                    self.dropped["epoch"] += 1
                    continue
                if self.qos.lifespan_s is None or not self._is_expired(stamped):
                    self.delivered += 1
                    return stamped
                self.dropped["expired"] += 1
        return None

    @property
    def waiting(self) -> Collection[Stamped[M]]:
        """The messages that wait for the handler: always the same object, whose emptiness is cheap to see."""
        return self._queue

    @property
    def pending(self) -> int:
        """How many messages wait for the handler."""
        return len(self._queue)

    @property
    def newest_ns(self) -> int:
        """When the newest message that arrived was published; 0 before the first one."""
        newest = self._newest
        return self._newest_ns if newest is None else newest.envelope.published_ns

    @property
    def unread(self) -> int:
        """How many messages are neither delivered nor dropped yet: waiting, or newest and not looked at."""
        if self.has_handler:
            return len(self._queue)
        return int(self._newest is not None and not self._newest_is_read)

    def _is_late(self, envelope: Envelope, newest: Envelope) -> bool:
        """Of an older message: whether it is an event of that sender, sent again where nothing is waited for."""
        return self.message.message_kind == "event" and envelope.source == newest.source

    def _is_shadow(self, envelope: Envelope, leases: SeatHolders) -> bool:
        """Of a message that speaks for a seat."""
        if self.qos.candidates or envelope.source == self.owner:
            return False
        return leases.is_shadow(envelope)

    def _is_expired(self, stamped: Stamped[M]) -> bool:
        lifespan_s = self.qos.lifespan_s
        return lifespan_s is not None and self.clock.now_ns() - stamped.envelope.published_ns > to_ns(lifespan_s)
