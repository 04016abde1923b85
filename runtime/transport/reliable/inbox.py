"""`Inbox`: received reliable events, each delivered once, and in order where they wait for each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import msgspec

from runtime.clock import to_ns
from runtime.transport.reliable.tag import MOST_KEPT, Receipt, Settled, Tag

T = TypeVar("T")

RECEIPT_PERIOD_NS = to_ns(0.05)
_MOST_STREAMS = 256
"""Most sessions of senders, over all topics; the one that was silent for longest is dropped."""
_MOST_GAPS = 64
"""Most gaps that are kept and named in one receipt; beyond it the oldest is given up."""


class _Gap(msgspec.Struct):
    begin: int
    end: int  # not included
    until_ns: int


@dataclass(slots=True)
class _Stream(Generic[T]):
    """One topic of one session of a sender."""

    top: int  # one more than the highest number seen
    gaps: list[_Gap] = field(default_factory=list)  # ascending
    held: dict[int, T | None] = field(default_factory=dict)  # what waits for the first gap


class Inbox(Generic[T]):
    """Orders the reliable events of one reader; for one thread.

    `deliver` gets each message once; `lost` gets the topic and how many messages will never come. Messages sent before
    `since_ns` are refused: they were meant for an earlier life of this process.
    """

    def __init__(
        self, receiver: str, since_ns: int, deliver: Callable[[T], None], lost: Callable[[str, int], None]
    ) -> None:
        self._receiver, self._since_ns = receiver, since_ns
        self._deliver, self._lost = deliver, lost
        self._streams: dict[tuple[str, str, int], _Stream[T]] = {}  # by topic, sender and session; newest use last
        self._owed: dict[tuple[str, int], set[str]] = {}  # by sender and session: topics to be acknowledged
        self._told_ns = -RECEIPT_PERIOD_NS
        self._until_ns: int | None = None  # when the next gap is given up

    @property
    def owes(self) -> bool:
        """Whether a receipt is due, or a gap waits for its time to run out."""
        return bool(self._owed) or self._until_ns is not None

    def offer(self, topic: str, tag: Tag, item: T | None, now_ns: int) -> bool:
        """Take in a message, or None for one that cannot be decoded; False where it was received before."""
        key = (topic, tag.sender, tag.session)
        stream = self._streams.pop(key, None) or _Stream(tag.first)
        self._streams[key] = stream
        if len(self._streams) > _MOST_STREAMS:
            self._forget_oldest()
        self._owed.setdefault((tag.sender, tag.session), set()).add(topic)
        lost = self._cut(stream, tag.first)
        if lost:
            self._lost(topic, lost)
        is_new = self._place(stream, tag, now_ns)
        if is_new:
            if tag.sent_ns < self._since_ns:
                item = None
            if tag.hold_ns and stream.gaps and stream.gaps[0].begin < tag.number:
                stream.held[tag.number] = item
            elif item is not None:
                if tag.hold_ns:
                    self._release(stream, tag.number)
                self._deliver(item)
        self._release(stream)
        while len(stream.gaps) > _MOST_GAPS or len(stream.held) > MOST_KEPT:
            self._give_up(topic, stream)
        self._look_ahead()
        return is_new

    def expire(self, now_ns: int) -> bool:
        """Give up what has been missing for too long; returns whether anything changed."""
        if self._until_ns is None or now_ns < self._until_ns:
            return False
        for (topic, sender, session), stream in self._streams.items():
            while (late := next((gap for gap in stream.gaps if gap.until_ns <= now_ns), None)) is not None:
                stream.gaps.remove(late)
                self._lost(topic, late.end - late.begin)
                self._release(stream)
                self._owed.setdefault((sender, session), set()).add(topic)
        self._look_ahead()
        return True

    def next_ns(self) -> int | None:
        """When `expire` or `receipts` has work next; None where not before another message."""
        tell_ns = self._told_ns + RECEIPT_PERIOD_NS if self._owed else None
        times_ns = [time_ns for time_ns in (tell_ns, self._until_ns) if time_ns is not None]
        return min(times_ns, default=None)

    def hurry(self) -> None:
        """Make the next receipts due at once."""
        self._told_ns = -RECEIPT_PERIOD_NS

    def receipts(self, now_ns: int) -> list[tuple[str, Receipt]]:
        """The receipts that are due now, by sender."""
        if not self._owed or now_ns < self._told_ns + RECEIPT_PERIOD_NS:
            return []
        self._told_ns = now_ns
        told = [
            (sender, Receipt(self._receiver, self._since_ns, session, tuple(self._settled(topics, sender, session))))
            for (sender, session), topics in self._owed.items()
        ]
        self._owed.clear()
        for sender, receipt in told:  # what is missing is asked for until it comes
            missing = {settled.topic for settled in receipt.topics if settled.missing}
            if missing:
                self._owed[sender, receipt.session] = missing
        return told

    def _settled(self, topics: set[str], sender: str, session: int) -> list[Settled]:
        settled = []
        for topic in sorted(topics):
            stream = self._streams.get((topic, sender, session))
            if stream is not None:
                missing = tuple((gap.begin, gap.end) for gap in stream.gaps)
                settled.append(Settled(topic, stream.top, missing))
        return settled

    @staticmethod
    def _place(stream: _Stream[T], tag: Tag, now_ns: int) -> bool:
        """Note that this number has come; False where it had."""
        number = tag.number
        if number >= stream.top:
            if number > stream.top:
                stream.gaps.append(_Gap(stream.top, number, now_ns + (tag.hold_ns or tag.lifespan_ns)))
            stream.top = number + 1
            return True
        for place, gap in enumerate(stream.gaps):
            if gap.begin <= number < gap.end:
                parts = [_Gap(gap.begin, number, gap.until_ns), _Gap(number + 1, gap.end, gap.until_ns)]
                stream.gaps[place : place + 1] = [part for part in parts if part.begin < part.end]
                return True
        return False

    @staticmethod
    def _cut(stream: _Stream[T], first: int) -> int:
        """Wait no more for what the sender has given up; how many that are."""
        lost = 0
        while stream.gaps and stream.gaps[0].begin < first:
            gap = stream.gaps[0]
            lost += min(gap.end, first) - gap.begin
            if gap.end <= first:
                del stream.gaps[0]
            else:
                gap.begin = first
        if stream.top < first:
            lost += first - stream.top
            stream.top = first
        return lost

    def _give_up(self, topic: str, stream: _Stream[T]) -> None:
        gap = stream.gaps.pop(0)
        self._lost(topic, gap.end - gap.begin)
        self._release(stream)

    def _release(self, stream: _Stream[T], below: int | None = None) -> None:
        """Hand over what has waited and need not wait any more, in order."""
        if not stream.held:
            return
        end = stream.gaps[0].begin if stream.gaps else stream.top
        if below is not None:
            end = min(end, below)
        for number in sorted(number for number in stream.held if number < end):
            item = stream.held.pop(number)
            if item is not None:
                self._deliver(item)

    def _forget_oldest(self) -> None:
        (topic, _, _), stream = next(iter(self._streams.items()))
        while stream.gaps:
            self._give_up(topic, stream)
        del self._streams[next(iter(self._streams))]

    def _look_ahead(self) -> None:
        self._until_ns = min((gap.until_ns for stream in self._streams.values() for gap in stream.gaps), default=None)
