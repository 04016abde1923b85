"""What `polyrhythm top` shows: a row for each node, from two of its accounts of itself and its process's state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from runtime.command_line.columns import or_dash
from runtime.coordination.health import Health, PathHealth, Spending, TimerHealth
from runtime.coordination.path_budget import is_within
from runtime.message import Kind, Stamped
from runtime.supervision.registry import ProcessState

_FEWEST_TICKS = 5
"""Between two accounts; where fewer are due, the rate is that since the node's start."""
_SILENT_S = 3.0
"""Nodes tell of themselves once a second."""
ENDED = "ended"
"""The state of every process once the run is over."""
_EXPECTED = ("restarted", "closed")
"""Why events may stay unacknowledged without anything being wrong now."""


class TimerRow(msgspec.Struct, frozen=True):
    """One timer, over the time between the two accounts."""

    name: str
    hz: float
    hz_target: float
    ticks: int
    overruns: int  # since the node's start, like all that is not a rate
    lateness_p99_ms: float
    lateness_max_ms: float

    @property
    def is_slow(self) -> bool:
        """Whether it misses a tenth of its rate.

        A timer of at most once a second that is still at its first tick works for as long as the node lives, such as
        one that holds a connection.
        """
        if self.ticks <= 1 and self.hz_target <= 1:
            return False
        return self.hz < 0.9 * self.hz_target


class InputRow(msgspec.Struct, frozen=True):
    """One subscription."""

    topic: str
    kind: Kind
    age_ms: float | None  # of its newest message
    waiting: int
    dropped: dict[str, int]


class NodeRow(msgspec.Struct, frozen=True):
    """One node; CPU and memory are those of its whole process."""

    node: str
    process: str
    pid: int
    state: str
    restarts: int
    timers: tuple[TimerRow, ...] = ()
    inputs: tuple[InputRow, ...] = ()
    sent_per_s: float = 0.0
    errors: int = 0
    cpu_percent: float | None = None
    memory_mb: float | None = None
    silent_s: float | None = None  # since its last account, or since somebody listens; None where nobody has
    paths: tuple[PathHealth, ...] = ()  # budgets that it measures, since its start
    spending: Spending | None = None
    host: str = ""  # which runs it, where that is another one than this
    unacknowledged: dict[str, dict[str, int]] = {}  # reliable events: topic -> "receiver: reason" -> number
    refused: dict[str, dict[str, int]] = {}  # what could not be read: topic -> receiver -> number

    @property
    def is_silent(self) -> bool:
        """Whether its process runs, as far as the supervisor knows, and tells nothing: frozen, or its loop is held."""
        return self.silent_s is not None and self.silent_s > _SILENT_S and self.state == "running"

    @property
    def waiting(self) -> int:
        """Messages in its queues."""
        return sum(port.waiting for port in self.inputs)

    @property
    def dropped(self) -> dict[str, int]:
        """Messages that it never handled, by reason."""
        total: Counter[str] = Counter()
        for port in self.inputs:
            total.update(port.dropped)
        return dict(total)

    @property
    def given_up(self) -> dict[str, int]:
        """Reliable events of its own that some receiver has not acknowledged, by reason."""
        total: Counter[str] = Counter()
        for receivers in self.unacknowledged.values():
            for who, number in receivers.items():
                total[who.partition(": ")[2]] += number
        return dict(total)

    @property
    def oldest_ms(self) -> float | None:
        """The age of the newest message on its stalest input; of states only, as events come when they come."""
        ages = [port.age_ms for port in self.inputs if port.kind == "state" and port.age_ms is not None]
        return max(ages, default=None)


def node_row(
    node: str,
    process: str,
    state: ProcessState,
    before: Stamped[Health] | None,
    last: Stamped[Health] | None,
    now_ns: int,
    kinds: Mapping[str, Kind],
    since_ns: int | None = None,
) -> NodeRow:
    """The row of a node whose last two accounts these are; one of them may be missing, or both.

    `kinds` are those of the topics; `since_ns` is when somebody began to listen.
    """
    if last is None:
        silent_s = None if since_ns is None else round((now_ns - since_ns) * 1e-9, 2)
        return NodeRow(node, process, state.pid, state.state, state.restarts, silent_s=silent_s)
    health = last.message
    if before is not None and before.message.pid != health.pid:
        before = None  # it was restarted in between
    span_s = last.envelope.published_ns * 1e-9 - before.envelope.published_ns * 1e-9 if before is not None else 0.0
    ticks = {timer.name: timer.ticks for timer in before.message.timers} if before is not None else {}
    timers = tuple(
        TimerRow(
            name=timer.name,
            hz=_hz(timer, ticks.get(timer.name), span_s),
            hz_target=timer.hz_target,
            ticks=timer.ticks,
            overruns=timer.overruns,
            lateness_p99_ms=timer.lateness_p99_ms,
            lateness_max_ms=timer.lateness_max_ms,
        )
        for timer in health.timers
    )
    sent_per_s = 0.0
    cpu_percent = None
    if before is not None and span_s > 0:
        sent_per_s = round((sum(health.sent.values()) - sum(before.message.sent.values())) / span_s, 2)
        cpu_percent = round(100 * (health.cpu_s - before.message.cpu_s) / span_s, 1)
    return NodeRow(
        node=node,
        process=process,
        pid=health.pid,
        state=state.state,
        restarts=state.restarts,
        timers=timers,
        inputs=tuple(
            InputRow(port.topic, kinds.get(port.topic, "event"), port.age_ms, port.waiting, dict(port.dropped))
            for port in health.ports
        ),
        sent_per_s=sent_per_s,
        errors=health.errors,
        cpu_percent=cpu_percent,
        memory_mb=health.rss_mb,
        paths=health.paths,
        spending=health.spending,
        unacknowledged=health.unacknowledged,
        refused=health.refused,
        silent_s=round((now_ns - last.envelope.published_ns) * 1e-9, 2),
    )


def _hz(timer: TimerHealth, ticks_before: int | None, span_s: float) -> float:
    if ticks_before is None or timer.hz_target * span_s < _FEWEST_TICKS:
        return timer.hz_achieved
    return round((timer.ticks - ticks_before) / span_s, 2)


COLUMNS = (
    "node",
    "process",
    "pid",
    "state",
    "rate/target Hz",
    "late p99 ms",
    "overruns",
    "input age ms",
    "queue",
    "dropped",
    "unacknowledged",
    "errors",
    "CPU %",
    "MB",
)


WRAPPED = ("rate/target Hz", "dropped", "unacknowledged")
"""These may go on in a further line, from one item to the next."""
_SPARED = (
    "unacknowledged",
    "errors",
    "pid",
    "MB",
    "overruns",
    "process",
    "queue",
    "state",
    "input age ms",
    "late p99 ms",
)
"""Left out, in this order, where a terminal is too narrow; what is amiss stands below the table in any case."""
_GAP = 2


def fitting(rows: Sequence[Sequence[str]], width: int) -> tuple[str, ...]:
    """Of COLUMNS those that such rows have room for in a terminal of that width, without a word cut short."""
    shown = list(COLUMNS)
    needed = {
        column: _GAP + max([*map(len, column.split(" ")), *(_length(column, row[place]) for row in rows)])
        for place, column in enumerate(COLUMNS)
    }
    for column in _SPARED:
        if sum(needed[one] for one in shown) <= width:
            break
        shown.remove(column)
    return tuple(shown)


def _length(column: str, cell: str) -> int:
    return max(map(len, cell.split(", "))) + 1 if column in WRAPPED else len(cell)


def cells(row: NodeRow) -> tuple[str, ...]:
    """A row as text, one for each of COLUMNS."""
    state = row.state + (f" (restarts: {row.restarts})" if row.restarts else "")
    if row.is_silent:
        state = f"silent for {row.silent_s:.0f} s"
    return (
        row.node,
        row.process,
        str(row.pid or "-"),
        state,
        ", ".join(f"{timer.hz:.4g}/{timer.hz_target:g}" for timer in row.timers) or "-",
        or_dash(max((timer.lateness_p99_ms for timer in row.timers), default=None), ".2f"),
        str(sum(timer.overruns for timer in row.timers)) if row.timers else "-",
        or_dash(row.oldest_ms, ".1f"),
        str(row.waiting),
        _by_reason(row.dropped),
        _by_reason(row.given_up),
        str(row.errors),
        or_dash(row.cpu_percent, ".1f"),
        or_dash(row.memory_mb, ".0f"),
    )


def _by_reason(counted: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} {number}" for reason, number in sorted(counted.items())) or "-"


def budgets(rows: Iterable[NodeRow]) -> list[str]:
    """How the run keeps to its budgets, a line for each."""
    found = []
    for row in rows:
        found += [path_line(path) for path in row.paths]
        if row.spending is not None:
            found.append(spending_line(row.node, row.spending))
    return found


def trouble(rows: Iterable[NodeRow]) -> list[str]:
    """What a person should look at, in words."""
    found: list[str] = []
    far: dict[str, list[str]] = {}
    for row in rows:
        found += _troubles_of(row)
        if row.is_silent and row.host:
            far.setdefault(row.host, []).append(row.node)
    return found + [
        f"host {host}: not a word of {', '.join(silent)} for 3 s or more; see polyrhythm echo gateway/{host}"
        for host, silent in far.items()
    ]


def _troubles_of(row: NodeRow) -> Iterator[str]:
    """What is wrong with one node, but for the silence of a whole host."""
    for timer in row.timers:
        if timer.is_slow:
            yield f"{row.node}.{timer.name} runs at {timer.hz:g} Hz instead of {timer.hz_target:g}"
    for path in row.paths:
        if not is_kept(path):
            yield f"path {path.name} is over its budget of {path.p99_budget_ms:g} ms"
    if row.spending is not None and row.spending.spent:
        yield f"{row.node}: {row.spending.spent}; it asks no more"
    for topic, who, number in _by_topic(row.unacknowledged):
        receiver, _, reason = who.partition(": ")
        if reason not in _EXPECTED:
            yield f"{row.node}: {receiver} has not acknowledged {number} events on {topic}: {reason}"
    for topic, receiver, number in _by_topic(row.refused):
        yield f"{row.node}: {receiver} could not read {number} messages on {topic}"
    if row.errors:
        yield f"{row.node}: {row.errors} handler calls ended in an error"
    if row.is_silent and not row.host:
        yield f"{row.node}: not a word for {row.silent_s:.0f} s; its process {row.process} is frozen or busy"
    if row.state not in ("running", "started", ENDED):
        yield f"{row.node}: its process {row.process} is {row.state}"


def _by_topic(counted: Mapping[str, Mapping[str, int]]) -> Iterator[tuple[str, str, int]]:
    """Topic, receiver and number, in order."""
    for topic, receivers in sorted(counted.items()):
        for receiver, number in sorted(receivers.items()):
            yield topic, receiver, number


def is_kept(path: PathHealth) -> bool:
    """Whether at most one message in a hundred was older than the budget, or of an age that is not known."""
    return is_within(path.count, path.over, path.unknown)


def path_line(path: PathHealth) -> str:
    """One path budget."""
    unknown = f"; {path.unknown:,} of an age that cannot be known" if path.unknown else ""
    if not path.count:
        return f"path {path.name}: nothing measured of {path.p99_budget_ms:g} ms at p99{unknown}: NOT MET"
    verdict = "met" if is_kept(path) else "NOT MET"
    return (
        f"path {path.name}: p50 {path.p50_ms:.1f}, p99 {path.p99_ms:.1f}, max {path.max_ms:.1f} ms "
        f"of {path.p99_budget_ms:g} ms at p99; {path.over:,} of {path.count:,} over it{unknown}: {verdict}"
    )


def spending_line(node: str, spending: Spending) -> str:
    """One node's model budget."""
    tokens = spending.prompt_tokens + spending.completion_tokens
    about = f", {spending.estimated_tokens:,} of them estimated" if spending.estimated_tokens else ""
    parts = [
        f"{spending.calls:,}{_of(spending.max_calls)} calls",
        f"{tokens:,}{_of(spending.max_tokens)} tokens ({spending.prompt_tokens:,} in, "
        f"{spending.completion_tokens:,} out{about})",
    ]
    if spending.money or spending.max_money:
        most = f" of {spending.max_money:g}" if spending.max_money else ""
        parts.append(f"{spending.money:.4f}{most} of money")
    verdict = f"SPENT: {spending.spent}" if spending.spent else "within it"
    return f"model {node} ({spending.model}): {', '.join(parts)}; {verdict}"


def _of(limit: int) -> str:
    return f" of {limit:,}" if limit else ""
