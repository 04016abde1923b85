"""`Summary`: how a run went, computed from its recording alone. Points of time are seconds of run time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, cast

import msgspec

from nodes.report.actions import action_spans
from nodes.report.followed import followed, stop_times
from nodes.report.run import Run
from runtime.budgets import MISSES
from runtime.health import Health, PathHealth, TimerHealth
from runtime.msgs import InterruptRecord

TASK_LABEL = "cup"
"""The kind of thing whose way into the bin is counted."""

EFFECTS = ("fenced", "held", "at_rest", "planner", "vlm", "policy", "resumed")

NOT_JUDGED = "stopped before any node said how it went"
CUT_OFF = "the recording was cut off before the end of the run"

_MACHINE_FACTS = ("recording", "pictures", "size_mb", "machine", "versions", "git")


@dataclass(frozen=True, slots=True)
class Spread:
    """How a quantity was distributed; nearest-rank percentiles."""

    count: int
    p50: float
    p99: float
    highest: float


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
class InterruptSummary:
    """One interrupt and what followed it."""

    at_s: float
    depth: str
    text: str
    by: str
    followed: str
    is_cause: bool = False  # stop: that it was this one that stopped the robot
    held_ms: float | None = None  # stop: from what was heard or felt to the output braking
    at_rest_ms: float | None = None  # stop: to the robot not moving any more
    resumed_s: float | None = None  # stop: to the guard no longer stopped
    effects_ms: dict[str, float] = field(default_factory=dict)  # from its record: when each effect came
    missing: tuple[str, ...] = ()  # effects that were due and did not come


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
    is_met: bool | None  # None: nothing was measured


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


@dataclass(frozen=True, slots=True)
class TopicSummary:
    topic: str
    messages: int
    hz: float


@dataclass(frozen=True, slots=True)
class TaskSummary:
    """Where the things of the task ended up, by name; None in the summary where nobody published the truth."""

    label: str
    in_bin: tuple[str, ...]
    left: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Line:
    at_s: float
    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Summary:
    """Everything the summary tables and `--json` show."""

    is_success: bool | None  # None: the recording does not say
    reason: str
    clock: str
    seed: int | None
    duration_s: float
    task: TaskSummary | None
    conversation: tuple[Line, ...]
    actions: dict[str, dict[str, int]]  # by skill: how many succeeded, failed, were replaced
    interrupts: tuple[InterruptSummary, ...]
    image_age_ms: Spread | None  # behind the robot's commands
    stop_to_held_ms: Spread | None
    paths: tuple[PathSummary, ...]  # budgets
    spending: tuple[SpendingSummary, ...]
    timers: tuple[TimerSummary, ...]
    nodes: tuple[NodeSummary, ...]
    topics: tuple[TopicSummary, ...]
    messages: int
    dropped: dict[str, int]  # by reason, over all nodes
    missed_by_recorder: dict[str, int]  # by topic
    is_complete: bool
    damage: tuple[str, ...]
    recording: str
    size_mb: float
    pictures: tuple[str, ...]
    machine: str
    versions: dict[str, str]
    git: str
    trace: str = ""  # hash over all messages of a virtual run

    def to_json(self) -> str:
        """Sorted, rounded JSON; from a virtual run without paths, machine facts and wall-clock figures."""
        whole = asdict(self)
        if self.clock == "virtual":
            for key in _MACHINE_FACTS:
                del whole[key]
            for node in whole["nodes"]:
                for key in ("pids", "cpu_s", "rss_mb"):
                    del node[key]
        text = msgspec.json.encode(_rounded(whole), order="sorted")
        return msgspec.json.format(text, indent=2).decode()


def summarise(run: Run, pictures: Sequence[str] = ()) -> Summary:
    """The summary of a run."""
    is_success, reason = run.outcome
    seed = run.noted("seed")
    versions = run.noted("versions")
    interrupts = tuple(_interrupts(run))
    nodes = _nodes(run)
    missed = run.noted("missed")
    return Summary(
        is_success=is_success,
        reason=reason or (NOT_JUDGED if run.end else CUT_OFF),
        clock=run.about.get("clock", "real"),
        seed=seed if isinstance(seed, int) else None,
        duration_s=run.duration_s,
        task=_task(run),
        conversation=conversation(run),
        actions=_actions(run),
        interrupts=interrupts,
        image_age_ms=spread((published - image) * 1e-6 for published, image in run.sent if image),
        stop_to_held_ms=spread(one.held_ms for one in interrupts if one.is_cause and one.held_ms is not None),
        paths=_paths(run),
        spending=_spending(run),
        timers=_timers(run),
        nodes=nodes,
        topics=tuple(_topic(name, stamps) for name, stamps in sorted(run.stamps.items())),
        messages=sum(len(stamps) for stamps in run.stamps.values()),
        dropped=_total(node.dropped for node in nodes),
        missed_by_recorder=missed if isinstance(missed, dict) else {},
        is_complete=run.is_complete,
        damage=tuple(run.damage),
        recording=str(run.path),
        size_mb=run.path.stat().st_size / 1e6,
        pictures=tuple(pictures),
        machine=run.about.get("machine", ""),
        versions=versions if isinstance(versions, dict) else {},
        git=run.about.get("git", ""),
        trace=run.end.get("trace", ""),
    )


def spread(values: Iterable[float]) -> Spread | None:
    """Count, median, 99th percentile and maximum; None of nothing."""
    ordered = sorted(values)
    if not ordered:
        return None

    def rank(percent: float) -> float:
        return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]

    return Spread(count=len(ordered), p50=rank(50), p99=rank(99), highest=ordered[-1])


def conversation(run: Run) -> tuple[Line, ...]:
    """Who said what when, people and robot."""
    both = sorted(run.heard.messages + run.said.messages, key=lambda one: one.envelope.published_ns)
    return tuple(Line(run.at_s(one.envelope.published_ns), one.message.speaker, one.message.text) for one in both)


def _interrupts(run: Run) -> Iterable[InterruptSummary]:
    records = {one.message.id: one.message for one in run.records.messages}
    for stamped in run.interrupts.messages:
        times = stop_times(run, stamped)
        record = records.get(stamped.message.id)
        yield InterruptSummary(
            at_s=run.at_s(stamped.envelope.published_ns),
            depth=stamped.message.depth,
            text=stamped.message.text,
            by=stamped.message.by,
            followed=followed(run, stamped) + (f"; {record.note}" if record is not None and record.note else ""),
            is_cause=times.is_cause,
            held_ms=times.held_ms,
            at_rest_ms=times.at_rest_ms,
            resumed_s=times.resumed_s,
            effects_ms={} if record is None else _effects(record),
            missing=() if record is None else record.missing,
        )


def _effects(record: InterruptRecord) -> dict[str, float]:
    times = {name: getattr(record, f"{name}_ms") for name in EFFECTS}
    return {name: time_ms for name, time_ms in times.items() if time_ms is not None}


def _actions(run: Run) -> dict[str, dict[str, int]]:
    words = {"success": "succeeded", "failure": "failed"}
    counted: dict[str, Counter[str]] = {}
    for one in action_spans(run):
        counted.setdefault(one.skill, Counter())[words.get(one.end, one.end)] += 1
    return {skill: dict(sorted(counted[skill].items(), reverse=True)) for skill in sorted(counted)}


def _task(run: Run) -> TaskSummary | None:
    if run.truth is None:
        return None
    things = [thing for thing in run.truth.objects if thing.label == TASK_LABEL]
    return TaskSummary(
        label=TASK_LABEL,
        in_bin=tuple(sorted(thing.name for thing in things if thing.is_in_bin)),
        left=tuple(sorted(thing.name for thing in things if not thing.is_in_bin)),
    )


def _topic(name: str, stamps: Sequence[int]) -> TopicSummary:
    length_s = (stamps[-1] - stamps[0]) * 1e-9
    return TopicSummary(name, len(stamps), (len(stamps) - 1) / length_s if length_s > 0 else 0.0)


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


def _nodes(run: Run) -> tuple[NodeSummary, ...]:
    return tuple(
        NodeSummary(
            node=name,
            starts=len(lives),
            pids=tuple(health.pid for health in lives),
            errors=sum(health.errors for health in lives),
            sent=sum(sum(health.sent.values()) for health in lives),
            received=sum(port.received for health in lives for port in health.ports),
            delivered=sum(port.delivered for health in lives for port in health.ports),
            dropped=_total(port.dropped for health in lives for port in health.ports),
            cpu_s=sum(health.cpu_s for health in lives),
            rss_mb=max(health.rss_mb for health in lives),
        )
        for name, lives in _lives(run).items()
    )


def _paths(run: Run) -> tuple[PathSummary, ...]:
    found = []
    for node, lives in _lives(run).items():
        by_name: dict[str, list[PathHealth]] = {}
        for health in lives:
            for path in health.paths:
                by_name.setdefault(path.name, []).append(path)
        for name, parts in by_name.items():
            longest = max(parts, key=lambda part: part.count)
            count, over = sum(part.count for part in parts), sum(part.over for part in parts)
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
                    is_met=over <= MISSES * count if count else None,
                )
            )
    return tuple(found)


def _spending(run: Run) -> tuple[SpendingSummary, ...]:
    """The last account of each node, which counts all of its lives."""
    last = {node: lives[-1].spending for node, lives in _lives(run).items()}
    return tuple(
        SpendingSummary(node=node, **msgspec.structs.asdict(cast(Any, spending)))
        for node, spending in last.items()
        if spending is not None
    )


def _timers(run: Run) -> tuple[TimerSummary, ...]:
    found = []
    for name, lives in _lives(run).items():
        by_timer: dict[str, list[TimerHealth]] = {}
        for health in lives:
            for timer in health.timers:
                by_timer.setdefault(timer.name, []).append(timer)
        for timer_name, parts in by_timer.items():
            longest = max(parts, key=lambda part: part.ticks)
            found.append(
                TimerSummary(
                    node=name,
                    timer=timer_name,
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


def _total(parts: Iterable[dict[str, int]]) -> dict[str, int]:
    counted: Counter[str] = Counter()
    for part in parts:
        counted.update(part)
    return {reason: number for reason, number in sorted(counted.items()) if number}


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(part) for part in value]
    return value
