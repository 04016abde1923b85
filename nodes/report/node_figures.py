"""What the nodes report of their health, over all lives of a node: counts, rates, budgets and money of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import msgspec

from nodes.report.run import Run
from runtime.clock import to_s
from runtime.coordination.health import Health, PathHealth, TimerHealth
from runtime.coordination.path_budget import is_met

_Part = TypeVar("_Part", TimerHealth, PathHealth)

SLACK_S = 3.0
"""Between a node's first tick and the first message that its recorder hears."""


@dataclass(frozen=True, slots=True)
class TimerSummary:
    """How one timer kept its rate over all lives of its node."""

    node: str
    timer: str
    hz_target: float
    hz_achieved: float
    ticks: int
    overruns: int
    lateness_p50_ms: float
    lateness_p99_ms: float
    lateness_max_ms: float


@dataclass(frozen=True, slots=True)
class NodeSummary:
    """One node: how often it was started, what it took in and lost, what it cost."""

    node: str
    starts: int
    pids: tuple[int, ...]
    errors: int
    sent: int
    received: int
    delivered: int
    dropped: dict[str, int]  # by reason
    cpu_s: float
    rss_mb: float


@dataclass(frozen=True, slots=True)
class PathSummary:
    """How a path kept to its budget, over all lives of the node that measured it."""

    node: str
    path: str
    topics: tuple[str, ...]
    p99_budget_ms: float
    count: int
    over: int
    p50_ms: float
    p99_ms: float
    max_ms: float
    is_met: bool | None  # None: too few messages to judge it by


@dataclass(frozen=True, slots=True)
class SpendingSummary:
    """What a node spent on its model; a limit of 0 is none."""

    node: str
    model: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    estimated_tokens: int
    money: float
    max_calls: int
    max_tokens: int
    max_money: float
    spent: str  # why nothing more was asked, or ""


def _lives(run: Run) -> dict[str, list[Health]]:
    """The last health of each life of each node; a new pid, or a counter that fell, is a new life."""
    lives: dict[str, list[Health]] = {}
    for stamped in run.health.messages:
        health = stamped.message
        known = lives.setdefault(health.node, [])
        if known and known[-1].pid == health.pid and _age(health) >= _age(known[-1]):
            known[-1] = health
        else:
            known.append(health)
    return dict(sorted(lives.items()))


def _age(health: Health) -> int:
    return sum(health.sent.values()) + sum(timer.ticks for timer in health.timers)


def count_from_before(run: Run) -> bool:
    """Whether a node had ticked for longer than the recording when first heard of: then this is a piece of its run."""
    told: set[str] = set()
    for stamped in run.health.messages:
        if stamped.message.node not in told:
            told.add(stamped.message.node)
            recorded_s = to_s(stamped.envelope.published_ns - run.begin_ns)
            if any(timer.ticks > timer.hz_target * (recorded_s + SLACK_S) for timer in stamped.message.timers):
                return True
    return False


def nodes(run: Run) -> tuple[NodeSummary, ...]:
    return tuple(
        NodeSummary(
            node=name,
            starts=len(lives),
            pids=tuple(health.pid for health in lives),
            errors=sum(health.errors for health in lives),
            sent=sum(sum(health.sent.values()) for health in lives),
            received=sum(port.received for health in lives for port in health.ports),
            delivered=sum(port.delivered for health in lives for port in health.ports),
            dropped=total(port.dropped for health in lives for port in health.ports),
            cpu_s=sum(health.cpu_s for health in lives),
            rss_mb=max(health.rss_mb for health in lives),
        )
        for name, lives in _lives(run).items()
    )


def paths(run: Run) -> tuple[PathSummary, ...]:
    found = []
    for node, name, parts in _by_name(run, lambda health: health.paths):
        longest = max(parts, key=lambda part: part.count)
        count, over = sum(part.count for part in parts), sum(part.over for part in parts)
        unknown = sum(part.unknown for part in parts)
        found.append(
            PathSummary(
                node=node,
                path=name,
                topics=longest.topics,
                p99_budget_ms=longest.p99_budget_ms,
                count=count,
                over=over,
                p50_ms=longest.p50_ms,
                p99_ms=longest.p99_ms,
                max_ms=max(part.max_ms for part in parts),
                is_met=is_met(count, over, unknown),
            )
        )
    return tuple(found)


def _by_name(run: Run, told: Callable[[Health], Iterable[_Part]]) -> Iterator[tuple[str, str, list[_Part]]]:
    """Node, name, and what each of the node's lives told of its timer or path of that name."""
    for node, lives in _lives(run).items():
        by_name: dict[str, list[_Part]] = {}
        for health in lives:
            for part in told(health):
                by_name.setdefault(part.name, []).append(part)
        yield from ((node, name, parts) for name, parts in by_name.items())


def spending(run: Run) -> tuple[SpendingSummary, ...]:
    """The last account of each node, which counts all of its lives."""
    last = {node: lives[-1].spending for node, lives in _lives(run).items()}
    return tuple(
        SpendingSummary(node=node, **msgspec.structs.asdict(cast(Any, spending)))
        for node, spending in last.items()
        if spending is not None
    )


def timers(run: Run) -> tuple[TimerSummary, ...]:
    found = []
    for node, name, parts in _by_name(run, lambda health: health.timers):
        longest = max(parts, key=lambda part: part.ticks)
        found.append(
            TimerSummary(
                node=node,
                timer=name,
                hz_target=longest.hz_target,
                hz_achieved=longest.hz_achieved,
                ticks=sum(part.ticks for part in parts),
                overruns=sum(part.overruns for part in parts),
                lateness_p50_ms=longest.lateness_p50_ms,
                lateness_p99_ms=longest.lateness_p99_ms,
                lateness_max_ms=max(part.lateness_max_ms for part in parts),
            )
        )
    return tuple(sorted(found, key=lambda timer: (timer.node, -timer.hz_target, timer.timer)))


def total(parts: Iterable[dict[str, int]]) -> dict[str, int]:
    counted: Counter[str] = Counter()
    for part in parts:
        counted.update(part)
    return {reason: number for reason, number in sorted(counted.items()) if number}
