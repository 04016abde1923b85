"""`MissedMessages`: what the numbers of the messages prove that a recorder never had, also while it was not running."""

from __future__ import annotations

from collections.abc import Mapping

from runtime.message import Envelope

Key = tuple[str, str]
"""A topic and who publishes it."""


class MissedMessages:
    """Counts by topic. `away`: how many of `number` were published while the recorder was dead or not yet connected."""

    def __init__(self) -> None:
        self.number: dict[str, int] = {}
        self.away: dict[str, int] = {}
        self._next: dict[Key, int] = {}
        self._before: dict[Key, tuple[int, int]] = {}  # number and stamp of the last one that the dead recorder wrote

    def goes_on(self, last: Mapping[Key, tuple[int, int]]) -> None:
        """A recorder that died had written up to these numbers and stamps; this one is in its place."""
        self._before = dict(last)

    def heard(self, envelope: Envelope) -> None:
        """A message came; those between it and the one before did not."""
        key = envelope.topic, envelope.source
        if key in self._before:
            self._first_again(key, envelope)
            return
        expected = self._next.get(key)
        if expected is not None and envelope.seq > expected:
            _add(self.number, envelope.topic, envelope.seq - expected)
        self._next[key] = envelope.seq + 1  # a smaller number is a node that started again

    def lost(self, topic: str) -> None:
        """One that came was not written."""
        _add(self.number, topic, 1)

    def told(self) -> dict[str, dict[str, int]]:
        """As it is noted at the end of a recording."""
        missed = {"missed": dict(sorted(self.number.items()))}
        return missed | ({"missed_away": dict(sorted(self.away.items()))} if self.away else {})

    def _first_again(self, key: Key, envelope: Envelope) -> None:
        seq, published_ns = self._before[key]
        if envelope.published_ns <= published_ns:
            return  # sent again, and in the file already
        del self._before[key]
        between = envelope.seq - (seq if envelope.seq > seq else 0) - 1  # or its node, too, has started again
        if between > 0:
            _add(self.number, envelope.topic, between)
            _add(self.away, envelope.topic, between)
        self._next[key] = envelope.seq + 1


def _add(counts: dict[str, int], topic: str, number: int) -> None:
    counts[topic] = counts.get(topic, 0) + number
