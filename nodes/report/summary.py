"""`Summary`: how a run went, computed from its recording alone. Points of time are seconds of run time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import msgspec

from nodes.msgs import MISTAKE, TAKEN_BACK, InterruptRecord
from nodes.report import node_figures as healths
from nodes.report.actions import action_spans
from nodes.report.interrupt_outcomes import followed, stop_times
from nodes.report.node_figures import NodeSummary, PathSummary, SpendingSummary, TimerSummary
from nodes.report.run import Run
from runtime.clock import to_s
from runtime.histogram import nearest_rank

EFFECTS = ("fenced", "held", "at_rest", "planner", "vlm", "policy", "resumed")

NOT_JUDGED = "by hand or by its time; no node said how it went"
CUT_OFF = "the recording was cut off before the end of the run"

_MACHINE_FACTS = ("recording", "pictures", "size_mb", "machine", "versions", "git")


@dataclass(frozen=True, slots=True)
class Percentiles:
    """How a quantity was distributed; nearest-rank percentiles."""

    count: int
    p50: float
    p99: float
    highest: float


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
class WizardSummary:
    """How quick a person at the console answered people, and what they said of themselves that it was wrong."""

    after_s: Percentiles | None  # from the last word of somebody to the first act
    acts: dict[str, int]  # by what that act was
    mistakes: tuple[SummaryLine, ...]
    taken_back: tuple[SummaryLine, ...]


@dataclass(frozen=True, slots=True)
class SummaryLine:
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
    conversation: tuple[SummaryLine, ...]
    wizard: WizardSummary | None  # None: nobody answered anybody or marked a mistake
    actions: dict[str, dict[str, int]]  # by skill: how many succeeded, failed, were replaced
    interrupts: tuple[InterruptSummary, ...]
    image_age_ms: Percentiles | None  # behind the robot's commands
    stop_to_held_ms: Percentiles | None  # to the beginning of braking
    stop_to_rest_ms: Percentiles | None
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
    not_kept: tuple[str, ...] = ()  # what the run promised and did not keep, as its last lines say
    beyond_ranges: tuple[str, ...] = ()  # who has asked for more than a joint's range, in sentences
    counts_from_before: bool = False  # a piece of a run, such as a trial: its nodes count from the run's start on

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


def summarise(run: Run, pictures: Sequence[str] = (), not_kept: Sequence[str] = ()) -> Summary:
    """The summary of a run; `not_kept` is what the command that ran it knows of."""
    is_success, reason = run.outcome
    seed = run.noted("seed")
    versions = run.noted("versions")
    interrupts = tuple(_interrupts(run))
    nodes = healths.nodes(run)
    missed = run.noted("missed")
    image_age_ms = spread((published - image) * 1e-6 for published, image in run.sent if image)
    return Summary(
        is_success=is_success,
        reason=reason or (NOT_JUDGED if run.end else CUT_OFF),
        clock=run.about.get("clock", "real"),
        seed=seed if isinstance(seed, int) else None,
        duration_s=run.duration_s,
        task=_task(run),
        conversation=conversation(run),
        wizard=_wizard(run),
        actions=_actions(run),
        interrupts=interrupts,
        beyond_ranges=run.guard.messages[-1].message.beyond_ranges if run.guard.messages else (),
        image_age_ms=image_age_ms,
        stop_to_held_ms=spread(one.held_ms for one in interrupts if one.is_cause and one.held_ms is not None),
        stop_to_rest_ms=spread(one.at_rest_ms for one in interrupts if one.is_cause and one.at_rest_ms is not None),
        paths=tuple(_exact(path, image_age_ms) for path in healths.paths(run)),
        spending=healths.spending(run),
        timers=healths.timers(run),
        nodes=nodes,
        topics=tuple(_topic(name, stamps) for name, stamps in sorted(run.stamps.items())),
        messages=sum(len(stamps) for stamps in run.stamps.values()),
        dropped=healths.total(node.dropped for node in nodes),
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
        not_kept=tuple(not_kept),
        counts_from_before=healths.count_from_before(run),
    )


def _exact(path: PathSummary, image_age_ms: Percentiles | None) -> PathSummary:
    """The same with the ages of the very commands that are recorded; a node that measures live counts in buckets."""
    first, last = path.topics[0], path.topics[-1]
    if image_age_ms is None or last != "robot/command" or not first.endswith("image"):
        return path
    return replace(path, p50_ms=image_age_ms.p50, p99_ms=image_age_ms.p99, max_ms=image_age_ms.highest)


def spread(values: Iterable[float]) -> Percentiles | None:
    """Count, median, 99th percentile and maximum; None of nothing."""
    ordered = sorted(values)
    if not ordered:
        return None

    p50, p99 = nearest_rank(ordered, 50), nearest_rank(ordered, 99)
    return Percentiles(count=len(ordered), p50=p50, p99=p99, highest=ordered[-1])


def conversation(run: Run) -> tuple[SummaryLine, ...]:
    """Who said what when, people and robot."""
    both = sorted(run.heard.messages + run.said.messages, key=lambda one: one.envelope.published_ns)
    return tuple(
        SummaryLine(run.at_s(one.envelope.published_ns), one.message.speaker, one.message.text) for one in both
    )


def _wizard(run: Run) -> WizardSummary | None:
    answers = [one.message for one in run.responses.messages]
    marked: dict[str, list[SummaryLine]] = {MISTAKE: [], TAKEN_BACK: []}
    for one in run.marks.messages:
        if one.message.label in marked:
            line = SummaryLine(run.at_s(one.envelope.published_ns), one.message.by, one.message.note)
            marked[one.message.label].append(line)
    if not answers and not any(marked.values()):
        return None
    return WizardSummary(
        after_s=spread(one.after_s for one in answers),
        acts=dict(Counter(one.act for one in answers)),
        mistakes=tuple(marked[MISTAKE]),
        taken_back=tuple(marked[TAKEN_BACK]),
    )


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
    labels = Counter(thing.label for thing in run.truth.objects).most_common(1)
    label = labels[0][0] if labels else ""  # what there is most of is what is put away
    things = [thing for thing in run.truth.objects if thing.label == label]
    return TaskSummary(
        label=label,
        in_bin=tuple(sorted(thing.name for thing in things if thing.is_in_bin)),
        left=tuple(sorted(thing.name for thing in things if not thing.is_in_bin)),
    )


def _topic(name: str, stamps: Sequence[int]) -> TopicSummary:
    length_s = to_s(stamps[-1] - stamps[0])
    return TopicSummary(name, len(stamps), (len(stamps) - 1) / length_s if length_s > 0 else 0.0)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(part) for part in value]
    return value
