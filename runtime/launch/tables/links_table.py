"""`LinkModel`: what a network does to messages in virtual time, as a `[links.*]` table of a launch file says it."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from runtime.clock import to_ns
from runtime.errors import UserError
from runtime.launch.tables.handler_latency import Latency
from runtime.qos import LIFESPAN_S, QoS
from runtime.serialization.toml_errors import Table, convert, guess
from runtime.transport.reliable.outbox import FIRST_PERIOD_NS

LONGEST_OUTAGE_S = 1e9
"""Longest outage, about thirty years in s: until the end of any run."""

Share = Annotated[float, Meta(ge=0, le=1, description="a share of the messages, from 0 to 1")]
OutageEnd = Annotated[float, Meta(ge=0, le=LONGEST_OUTAGE_S)]
PAIRS = "pairs of seconds from the start, like [[10.0, 12.5]]"


class LinkTable(Table, frozen=True, rename={"senders": "from", "receivers": "to"}):
    """One [links.NAME]."""

    senders: Annotated[str | tuple[str, ...], Meta(description="the name of a node, or a list of names")] = ()
    receivers: Annotated[str | tuple[str, ...], Meta(description="the name of a node, or a list of names")] = ()
    topics: Annotated[str | tuple[str, ...], Meta(description="the name of a topic, or a list of names")] = ()
    delay: Any = 0.0  # as `Latency.parse` takes it
    loss: Share = 0.0
    duplicate: Share = 0.0
    outages: Annotated[tuple[tuple[OutageEnd, OutageEnd], ...], Meta(description=PAIRS)] = ()

    def __post_init__(self) -> None:
        if not (self.senders or self.receivers or self.topics):
            raise ValueError("selects nothing; say which messages pass it with from, to (nodes) or topics")
        if any(start >= end for start, end in self.outages):
            raise ValueError(f"outages is {[list(pair) for pair in self.outages]}; expected {PAIRS}")


class LinkModel(msgspec.Struct, frozen=True):
    """Which messages pass the link, and what happens to them; an empty selection means any.

    Messages of one sender on one topic reach one receiver in the order of sending, as over TCP. A reliable event that
    is lost comes later, after it was sent again.
    """

    name: str
    senders: tuple[str, ...] = ()
    receivers: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    delay: Latency = msgspec.field(default_factory=Latency)
    loss: float = 0.0
    duplicate: float = 0.0
    outages_s: tuple[tuple[float, float], ...] = ()  # from, to; what is sent meanwhile is lost

    def carries(self, topic: str, sender: str, receiver: str, *, hears_all: bool) -> bool:
        """Whether messages of this topic pass the link; those to a node that hears all, only where it is named."""
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
    """The links that one sender's messages on one topic pass to one receiver, with random numbers of its own."""

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
        """When a reliable event that is sent now arrives; each loss costs a period, and None means never in its
        lifespan.

        Where the events of its topic do not wait for each other, it may overtake an earlier one that was lost.
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


def parse_links(tables: Any, *, nodes: Collection[str], topics: Collection[str]) -> tuple[LinkModel, ...]:
    """The `[links.*]` tables. Raises UserError where one is wrong."""
    found = convert(tables, dict[str, LinkTable], table="links")
    return tuple(_link(name, table, nodes, topics) for name, table in found.items())


def _link(name: str, table: LinkTable, nodes: Collection[str], topics: Collection[str]) -> LinkModel:
    chosen = {}
    for key, names, known, kind in (
        ("from", table.senders, nodes, "node"),
        ("to", table.receivers, nodes, "node"),
        ("topics", table.topics, topics, "topic"),
    ):
        chosen[key] = (names,) if isinstance(names, str) else names
        for one in chosen[key]:
            if one not in known:
                raise UserError(f"[links.{name}] {key} names {one!r}, no {kind} of this file; {guess(one, known)}")
    delay = Latency.parse(table.delay, f"[links.{name}] delay")
    return LinkModel(
        name, chosen["from"], chosen["to"], chosen["topics"], delay, table.loss, table.duplicate, table.outages
    )
