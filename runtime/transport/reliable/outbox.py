"""`Outbox`: what a process has sent and some receiver has not acknowledged yet."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import msgspec

from runtime.clock import to_ns
from runtime.serialization.codec import Frame
from runtime.transport.reliable.tag import MOST_KEPT, Receipt, Tag, Terms

MOST_BYTES = 16 << 20
"""Most bytes kept, over all topics; beyond it the oldest message is given up."""
FIRST_PERIOD_NS = to_ns(0.1)
"""Silence before a message is sent again, in ns; it doubles with each repetition."""
LONGEST_PERIOD_NS = to_ns(1.0)
GAP_PERIOD_NS = to_ns(0.03)
"""Least time between two repetitions where the receiver reports a gap, in ns."""
MOST_AT_ONCE = 64


class _Kept(msgspec.Struct):
    topic: str
    number: int
    frames: Sequence[Frame]
    size: int
    sent_ns: int
    ends_ns: int
    due_ns: int
    period_ns: int
    tried_ns: dict[str, int]  # by receiver who has not acknowledged it: when it was last sent there


class Again(msgspec.Struct, frozen=True):
    """A message to be sent again to one receiver."""

    receiver: str
    tag: Tag
    frames: Sequence[Frame]


class Outbox:
    """Keeps sent events until they are acknowledged. Not thread-safe: the owner locks. Times are passed in.

    `terms` are those of each topic. `give_up` gets (topic, receiver, reason) for each message that a receiver has not
    acknowledged. The reason is "lifespan" where its time ran out, "outbox full", "closed" where the sender ended first,
    or "restarted" where the message went to an earlier life of the receiver. The message may have arrived all the same.
    """

    def __init__(
        self,
        sender: str,
        session: int,
        terms: Mapping[str, Terms],
        give_up: Callable[[str, str, str], None] = lambda topic, receiver, reason: None,
    ) -> None:
        self.unacknowledged: Counter[tuple[str, str, str]] = Counter()
        """(topic, receiver, reason) -> messages."""
        self._sender, self._session = sender, session
        self._terms = dict(terms)
        self._spans_ns = {topic: (to_ns(one.lifespan_s), to_ns(one.hold_s)) for topic, one in terms.items()}
        self._give_up = give_up
        self._numbers = dict.fromkeys(terms, 0)
        self._kept: dict[str, dict[int, _Kept]] = {topic: {} for topic in terms}  # in the order of their numbers
        self._waiting: dict[tuple[str, str], dict[int, _Kept]] = {
            (topic, receiver): {} for topic, one in terms.items() for receiver in one.receivers
        }
        self._dues: list[tuple[int, str, int]] = []  # a heap; entries that are no longer true are passed over
        self._bytes = 0

    def add(
        self,
        topic: str,
        frames: Sequence[Frame],
        now_ns: int,
        send: Callable[[Tag], None] = lambda tag: None,
        *,
        born_ns: int | None = None,
    ) -> Tag:
        """Let `send` send a message with its tag to everybody, and keep it.

        `born_ns` is when its lifespan began, where that is not now. An event that waits for no other is tried for that
        long from now all the same.
        """
        number = self._numbers[topic] = self._numbers[topic] + 1
        kept = self._kept[topic]
        while kept and number - next(iter(kept)) >= MOST_KEPT:
            self._drop(next(iter(kept.values())), "outbox full")
        born_ns = now_ns if born_ns is None else min(born_ns, now_ns)
        tag = self._tag(topic, number, next(iter(kept), number), born_ns)
        send(tag)  # first: whoever hears it does not wait for the accounts
        receivers = self._terms[topic].receivers
        if receivers:
            self._keep(topic, number, frames, now_ns, born_ns, receivers)
        return tag

    def _keep(
        self, topic: str, number: int, frames: Sequence[Frame], now_ns: int, born_ns: int, receivers: Sequence[str]
    ) -> None:
        size = sum(map(len, frames))
        while self._bytes + size > MOST_BYTES and (oldest := self._oldest()) is not None:
            self._drop(oldest, "outbox full")
        lifespan_ns, hold_ns = self._spans_ns[topic]
        ends_ns = (born_ns if hold_ns else now_ns) + lifespan_ns
        due_ns = min(now_ns + FIRST_PERIOD_NS, ends_ns)
        tried_ns = dict.fromkeys(receivers, now_ns)
        one = _Kept(topic, number, frames, size, born_ns, ends_ns, due_ns, FIRST_PERIOD_NS, tried_ns)
        self._kept[topic][number] = one
        for receiver in receivers:
            self._waiting[topic, receiver][number] = one
        self._bytes += size
        heapq.heappush(self._dues, (due_ns, topic, number))

    def take(self, receipt: Receipt, now_ns: int) -> list[Again]:
        """Take in a receipt; what it names as missing is sent again at once."""
        again: list[Again] = []
        if receipt.session != self._session:
            return again  # meant for an earlier life of this process
        for settled in receipt.topics:
            waiting = self._waiting.get((settled.topic, receipt.receiver))
            if not waiting:
                continue
            missing = iter(settled.missing)
            low, high = next(missing, (settled.top, settled.top))
            for number in list(waiting):
                if number >= settled.top:
                    break
                while number >= high < settled.top:
                    low, high = next(missing, (settled.top, settled.top))
                kept = waiting[number]
                if number < low:
                    if kept.sent_ns < receipt.since_ns:
                        self._count(settled.topic, receipt.receiver, "restarted")
                    self._settle(kept, receipt.receiver)
                elif now_ns - kept.tried_ns[receipt.receiver] >= GAP_PERIOD_NS and len(again) < MOST_AT_ONCE:
                    again.append(self._again(kept, receipt.receiver, now_ns))
        return again

    def due(self, now_ns: int, most: int = MOST_AT_ONCE) -> list[Again]:
        """The messages to be sent again now because no receipt came; at most `most` at a time."""
        again: list[Again] = []
        while self._dues and self._dues[0][0] <= now_ns and len(again) < most:
            due_ns, topic, number = heapq.heappop(self._dues)
            kept = self._kept[topic].get(number)
            if kept is None or kept.due_ns != due_ns:
                continue
            if now_ns >= kept.ends_ns:
                self._drop(kept, "lifespan")
                continue
            again.extend(self._again(kept, receiver, now_ns) for receiver in kept.tried_ns)
            kept.period_ns = min(2 * kept.period_ns, LONGEST_PERIOD_NS)
            kept.due_ns = min(now_ns + kept.period_ns, kept.ends_ns)
            heapq.heappush(self._dues, (kept.due_ns, topic, number))
        return again

    def next_ns(self) -> int | None:
        """When `due` has work next; None where not before another message."""
        while self._dues:
            due_ns, topic, number = self._dues[0]
            kept = self._kept[topic].get(number)
            if kept is not None and kept.due_ns == due_ns:
                return due_ns
            heapq.heappop(self._dues)
        return None

    @property
    def is_empty(self) -> bool:
        """Whether every message is acknowledged or given up."""
        return not any(self._kept.values())

    def hurry(self, now_ns: int) -> None:
        """Make all kept messages due now, because a blocked connection is free again."""
        for kept in self._all():
            kept.due_ns, kept.period_ns = now_ns, FIRST_PERIOD_NS
            heapq.heappush(self._dues, (now_ns, kept.topic, kept.number))

    def close(self, reason: str = "closed") -> None:
        """Give up all that is left."""
        for kept in self._all():
            self._drop(kept, reason)

    def _all(self) -> list[_Kept]:
        return [one for topic in self._kept.values() for one in topic.values()]

    def _tag(self, topic: str, number: int, first: int, sent_ns: int) -> Tag:
        lifespan_ns, hold_ns = self._spans_ns[topic]
        return Tag(self._sender, self._session, number, first, sent_ns, hold_ns, lifespan_ns)

    def _again(self, kept: _Kept, receiver: str, now_ns: int) -> Again:
        kept.tried_ns[receiver] = now_ns
        first = next(iter(self._waiting[kept.topic, receiver]))
        return Again(receiver, self._tag(kept.topic, kept.number, first, kept.sent_ns), kept.frames)

    def _oldest(self) -> _Kept | None:
        firsts = [next(iter(kept.values())) for kept in self._kept.values() if kept]
        return min(firsts, key=lambda kept: kept.sent_ns, default=None)

    def _drop(self, kept: _Kept, reason: str) -> None:
        for receiver in list(kept.tried_ns):
            self._count(kept.topic, receiver, reason)
            self._settle(kept, receiver)

    def _count(self, topic: str, receiver: str, reason: str) -> None:
        self.unacknowledged[topic, receiver, reason] += 1
        self._give_up(topic, receiver, reason)

    def _settle(self, kept: _Kept, receiver: str) -> None:
        del kept.tried_ns[receiver]
        del self._waiting[kept.topic, receiver][kept.number]
        if not kept.tried_ns:
            del self._kept[kept.topic][kept.number]
            self._bytes -= kept.size
