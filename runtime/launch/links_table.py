"""`LinkModel`: what a network does to messages in virtual time, as a `[links.*]` table of a launch file says it."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runtime.clock import to_ns
from runtime.errors import UserError, choices
from runtime.launch.latency import Latency
from runtime.qos import QoS
from runtime.transport.reliable.outbox import FIRST_PERIOD_NS
from runtime.transport.reliable.tag import LIFESPAN_S

LONGEST_OUTAGE_S = 1e9
"""Thirty years: until the end of any run."""

LINK_KEYS = ("from", "to", "topics", "delay", "loss", "duplicate", "outages")


@dataclass(frozen=True, slots=True)
class LinkModel:
    """Which messages pass it, and what becomes of them; an empty selection means any.

    Messages of one sender on one topic arrive at one receiver in the order in which they were sent, as over TCP. A
    reliable event that is lost comes later, after it was sent again.
    """

    name: str
    senders: tuple[str, ...] = ()
    receivers: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    delay: Latency = field(default_factory=Latency)
    loss: float = 0.0
    duplicate: float = 0.0
    outages_s: tuple[tuple[float, float], ...] = ()  # from, to; what is sent meanwhile is lost

    @classmethod
    def parse(cls, name: str, table: Any, *, nodes: Collection[str], topics: Collection[str]) -> LinkModel:
        """From a table of a launch file. Raises UserError in words where it is not understood."""
        if not isinstance(table, Mapping):
            raise UserError(f"is {table!r}; expected a table with some of: {', '.join(LINK_KEYS)}")
        for key in table:
            if key not in LINK_KEYS:
                raise UserError(f"unknown key {key!r}; known: {', '.join(LINK_KEYS)}")
        if not any(table.get(key) for key in ("from", "to", "topics")):
            raise UserError("selects nothing; say which messages pass it with from, to (nodes) or topics")
        return cls(
            name=name,
            senders=_names(table, "from", nodes, "node"),
            receivers=_names(table, "to", nodes, "node"),
            topics=_names(table, "topics", topics, "topic"),
            delay=Latency.parse(table.get("delay", 0.0), "delay"),
            loss=_share(table, "loss"),
            duplicate=_share(table, "duplicate"),
            outages_s=_outages(table.get("outages", [])),
        )

    def carries(self, topic: str, sender: str, receiver: str, *, hears_all: bool) -> bool:
        """Whether messages of this topic pass the link; to a node that hears everything only where it is named."""
        if hears_all and receiver not in self.receivers:
            return False
        return (
            (not self.senders or sender in self.senders)
            and (not self.receivers or receiver in self.receivers)
            and (not self.topics or topic in self.topics)
            and sender != receiver
        )

    def is_out(self, now_ns: int) -> bool:
        """Whether the link is in an outage."""
        return any(to_ns(start) <= now_ns < to_ns(end) for start, end in self.outages_s)


class LinkPath:
    """What one sender's messages on one topic pass on their way to one receiver, with random numbers of its own."""

    def __init__(self, links: Sequence[LinkModel], seed: int, topic: str, sender: str, receiver: str) -> None:
        self._links = [(link, random.Random(f"{seed}/{link.name}/{topic}/{sender}/{receiver}/link")) for link in links]
        self._newest_ns = 0

    @property
    def is_direct(self) -> bool:
        """Whether no link is passed."""
        return not self._links

    def arrivals(self, now_ns: int) -> list[int]:
        """When a message that is sent now arrives: never where it is lost, twice where it is duplicated."""
        delay_ns, number = self._pass(now_ns)
        if not number:
            return []
        self._newest_ns = max(self._newest_ns, now_ns + delay_ns)
        return [self._newest_ns] * number

    def arrival(self, now_ns: int, qos: QoS) -> int | None:
        """When a reliable event that is sent now arrives, once: each loss costs a period; None: never in its lifespan.

        Where its topic waits for nothing, it may overtake an earlier one that was lost.
        """
        for try_ns in range(now_ns, now_ns + to_ns(qos.lifespan_s or LIFESPAN_S), FIRST_PERIOD_NS):
            delay_ns, number = self._pass(try_ns)
            if number:
                arrival_ns = try_ns + delay_ns
                if qos.hold_s:
                    arrival_ns = self._newest_ns = max(self._newest_ns, arrival_ns)
                return arrival_ns
        return None

    def _pass(self, now_ns: int) -> tuple[int, int]:
        """How long one try takes, and how many copies arrive."""
        number, delay_ns, is_lost = 1, 0, False
        for link, generator in self._links:
            # Every number is drawn for every message, so that one setting does not shift the others' luck.
            lost, doubled = generator.random() < link.loss, generator.random() < link.duplicate
            delay_ns += to_ns(link.delay.draw_s(generator))
            is_lost = is_lost or lost or link.is_out(now_ns)
            number += doubled
        return delay_ns, 0 if is_lost else number


def _names(table: Mapping[str, Any], key: str, known: Collection[str], kind: str) -> tuple[str, ...]:
    value = table.get(key, [])
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UserError(f"{key} is {value!r}; expected the name of a {kind}, or a list of names")
    for name in names:
        if name not in known:
            raise UserError(f"{key} names {name!r}, no {kind} of this file; known: {choices(known)}")
    return tuple(names)


def _share(table: Mapping[str, Any], key: str) -> float:
    value = table.get(key, 0.0)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise UserError(f"{key} is {value!r}; expected a share of the messages, from 0 to 1")
    return float(value)


def _outages(value: Any) -> tuple[tuple[float, float], ...]:
    is_fine = isinstance(value, list) and all(
        isinstance(pair, list)
        and len(pair) == 2
        and all(isinstance(part, int | float) and not isinstance(part, bool) for part in pair)
        and 0 <= pair[0] < pair[1] <= LONGEST_OUTAGE_S
        for pair in value
    )
    if not is_fine:
        raise UserError(f"outages is {value!r}; expected pairs of seconds from the start, like [[10.0, 12.5]]")
    return tuple((float(start), float(end)) for start, end in value)
