"""`ReliableLink`: reliable events between two gateways, kept until the other has them, delivered once and in order."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

from nodes.hosts import wire
from nodes.hosts.admission import AdmissionRefused
from runtime.clock import to_ns
from runtime.errors import CodecError
from runtime.serialization.codec import Frame
from runtime.transport.reliable.inbox import Inbox
from runtime.transport.reliable.outbox import Again, Outbox
from runtime.transport.reliable.tag import Tag, Terms, read_receipt, read_tag, write_receipt, write_tag


class ReliableLink:
    """Sends and receives the reliable events of one link; for one thread, with the time passed in.

    `terms` are those of the topics that are sent reliably. `send` puts frames on the link, or fails to: they are sent
    again. `deliver` gets the frames of a message, and whether its lifespan is over; `drop` gets a reason and how many.
    """

    def __init__(
        self,
        own: str,
        other: str,
        terms: Mapping[str, Terms],
        *,
        send: Callable[[list[Frame]], object],
        deliver: Callable[[list[bytes], bool], None],
        drop: Callable[[str, int], None],
    ) -> None:
        self._own, self._other = own, other
        self._terms = {topic: Terms((other,), one.lifespan_s, one.hold_s) for topic, one in terms.items()}
        self._send, self._deliver, self._drop = send, deliver, drop
        self._outbox: Outbox | None = None
        self._inbox: Inbox[tuple[list[bytes], bool]] | None = None
        self._refused: Inbox[None] | None = None  # what may not come in is counted once, and acknowledged, too
        self._session_there = 0

    @property
    def topics(self) -> frozenset[str]:
        """The topics that are sent reliably."""
        return frozenset(self._terms)

    def begin(self, own_session: str, other_session: str) -> None:
        """Start anew with another life of the other gateway; what was meant for an earlier one will not reach it."""
        self.end("restarted")
        session = _number_of(own_session, other_session)
        self._session_there = _number_of(other_session, own_session)
        give_up: Callable[[str, str, str], None] = lambda topic, receiver, reason: self._drop(reason, 1)  # noqa: E731
        self._outbox = Outbox(self._own, session, self._terms, give_up)
        self._inbox = Inbox(self._own, 0, lambda item: self._deliver(*item), self._lose)
        self._refused = Inbox(self._own, 0, lambda item: None, self._lose)

    def end(self, reason: str = "closed") -> None:
        """Give up what is not acknowledged."""
        if self._outbox is not None:
            self._outbox.close(reason)

    def post(self, topic: str, frames: list[Frame], now_ns: int, *, is_up: bool, born_ns: int | None = None) -> None:
        """Send an event of a reliable topic, at once, or when the link is up again.

        Its lifespan runs from `born_ns`: waiting in a frozen gateway does not make it younger.
        """
        if self._outbox is None:
            self._drop("link down", 1)
            return
        terms = self._terms[topic]
        born_ns = now_ns if born_ns is None else born_ns
        if terms.hold_s and now_ns - born_ns > to_ns(terms.lifespan_s):
            self._drop("lifespan", 1)
            return
        send: Callable[[Tag], None] = lambda tag: self._put(tag, frames) if is_up else None  # noqa: E731
        self._outbox.add(topic, frames, now_ns, send, born_ns=born_ns)

    def take_event(
        self,
        frames: list[bytes],
        now_ns: int,
        there_ns: int = 0,
        check: Callable[[str], object] = lambda topic: None,
    ) -> None:
        """An event has come: its tag and the frames of the message. Raises CodecError.

        `there_ns`: what the other host's clock shows at least. One that is older than its lifespan is dropped. Those
        that wait for nothing are not: what stops a robot is better late than not, and `deliver` is told. `check` raises
        Refused for a topic that may not come in: once, however often the event comes.
        """
        if len(frames) < 2:
            raise CodecError(f"{len(frames)} frames; expected an event with its tag")
        tag = read_tag(frames[1], frames[0])
        if self._inbox is None or self._refused is None:
            return
        if tag.session != self._session_there or tag.sender != self._other:
            return  # meant for an earlier life of this gateway
        topic = frames[1].decode(errors="replace")
        try:
            check(topic)
        except AdmissionRefused:
            if self._refused.offer(topic, tag, None, now_ns):
                raise
            return
        is_late = there_ns - tag.sent_ns > tag.lifespan_ns
        is_dropped = is_late and tag.hold_ns > 0
        item = None if is_dropped else (frames[1:], is_late)
        if self._inbox.offer(topic, tag, item, now_ns) and is_dropped:
            self._drop("expired", 1)

    def take_receipt(self, frames: list[bytes], now_ns: int) -> None:
        """Take in what the other gateway has received. Raises CodecError."""
        if len(frames) != 1:
            raise CodecError(f"{len(frames)} frames; expected a receipt")
        receipt = read_receipt(frames[0])
        if self._outbox is not None:
            self._put_again(self._outbox.take(receipt, now_ns))

    def keep_up(self, now_ns: int, *, is_up: bool) -> None:
        """Do what is due: repetitions, receipts, ends of waiting; call it about 50 times a second."""
        if self._outbox is None or self._inbox is None or self._refused is None:
            return
        again = self._outbox.due(now_ns)
        self._inbox.expire(now_ns)
        self._refused.expire(now_ns)
        if is_up:
            self._put_again(again)
            for _, receipt in (*self._inbox.receipts(now_ns), *self._refused.receipts(now_ns)):
                self._send([wire.RECEIPT, write_receipt(receipt)])

    def hurry(self, now_ns: int) -> None:
        """Send what waits now, because the link is up again."""
        if self._outbox is not None:
            self._outbox.hurry(now_ns)

    def _lose(self, topic: str, number: int) -> None:
        self._drop("link", number)

    def _put_again(self, again: list[Again]) -> None:
        for one in again:
            self._put(one.tag, list(one.frames))

    def _put(self, tag: Tag, frames: list[Frame]) -> None:
        self._send([wire.EVENT, write_tag(bytes(frames[0]), tag), *frames])


def _number_of(sender_session: str, receiver_session: str) -> int:
    """Of the events from one life of a gateway to one life of the other; both compute the same."""
    return int.from_bytes(hashlib.blake2b(f"{sender_session} {receiver_session}".encode(), digest_size=6).digest())
