"""`Row`: what was measured of one figure of one fault, and the table of them in the docs."""

from __future__ import annotations

import dataclasses
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from bench.faults.matrix import Bound, Fault
from bench.faults.outcome import Outcome
from bench.result import percentile

TITLES = ("The fault matrix with real-time rights", "The fault matrix without real-time rights")


@dataclass(frozen=True, slots=True)
class Row:
    """One bound of one fault over its trials; `problem` says why there is none, `skipped` why there need be none."""

    fault: str
    bound: Bound | None
    values: tuple[float, ...] = ()
    lateness_ms: float = 0.0  # worst of a bare timer loop during these trials
    problem: str = ""
    skipped: str = ""

    @property
    def widening(self) -> float:
        """What the machine's own lateness adds to the bound."""
        return self.lateness_ms * self.bound.per_late_ms if self.bound is not None else 0.0

    @property
    def is_passed(self) -> bool:
        """Whether every value is within the bound."""
        if self.skipped:
            return True
        if self.problem or self.bound is None or not self.values:
            return False
        bound = self.bound
        is_in = min(self.values) >= bound.least and max(self.values) <= bound.most + self.widening
        return is_in and (bound.p99 is None or percentile(self.values, 99) <= bound.p99 + self.widening)

    @property
    def is_widened(self) -> bool:
        """Whether it passes only because the machine itself was late."""
        unwidened = dataclasses.replace(self, lateness_ms=0.0)
        return self.is_passed and not self.skipped and not unwidened.is_passed

    def as_data(self) -> dict[str, object]:
        """For `--json`."""
        bound = self.bound
        return {
            "fault": self.fault,
            "figure": "" if bound is None else bound.figure,
            "values": list(self.values),
            "bound": None if bound is None else {"most": bound.most, "p99": bound.p99, "least": bound.least},
            "lateness_ms": self.lateness_ms,
            "passed": self.is_passed,
            "widened": self.is_widened,
            "skipped": self.skipped,
            "problem": self.problem,
        }

    def as_markdown(self) -> str:
        """A line of the table."""
        if self.bound is None or self.problem or self.skipped:
            why = self.skipped or self.problem.splitlines()[0]
            return (
                f"| {self.fault} | {why} | {len(self.values)} | | | | | {'skipped' if self.skipped else '**FAILED**'} |"
            )
        bound = self.bound
        text = f"{bound.most:g}" if bound.p99 is None else f"{bound.most:g}, p99 {bound.p99:g}"
        if bound.least:
            text = f"at least {bound.least:g}" if bound.most == inf else f"{bound.least:g} to {bound.most:g}"
        late = f"{self.lateness_ms:.1f}" if bound.per_late_ms else ""
        worst, p99 = max(self.values), percentile(self.values, 99)
        passed = "yes, widened" if self.is_widened else "yes" if self.is_passed else "**NO**"
        cells = (self.fault, bound.figure, len(self.values), f"{worst:.4g}", f"{p99:.4g}", text, late, passed)
        return f"| {' | '.join(map(str, cells))} |"


def rows_of(fault: Fault, outcomes: Sequence[Outcome]) -> list[Row]:
    """One row per bound, and one that says what failed."""
    skipped = next((one.skipped for one in outcomes if one.skipped), "")
    if skipped:
        return [Row(fault.name, None, skipped=skipped)]
    whole = [one for one in outcomes if not one.problem]
    late_ms = max((one.late_ms for one in whole), default=0.0)
    rows = [
        Row(fault.name, bound, tuple(one.figures[bound.figure] for one in whole), late_ms)
        for bound in fault.bounds
        if whole
    ]
    return rows + [Row(fault.name, None, problem=one.problem) for one in outcomes if one.problem]


def as_markdown(rows: Sequence[Row], *, took_s: float, load: Sequence[float], lanes: int = 1, commit: str = "") -> str:
    """The table with what it was measured on."""
    passed, widened = sum(row.is_passed for row in rows), sum(row.is_widened for row in rows)
    beside = f" in up to {lanes} graphs side by side" if lanes > 1 else ""
    lines = [
        f"Measured{f' of commit {commit}' if commit else ''} "
        f"on {platform.system()} {platform.release()}, Python {platform.python_version()}, "
        f"{os.cpu_count()} cores, {took_s / 60:.0f} minutes of trials{beside}; "
        f"load average between {load[0]:.1f} and {load[1]:.1f}, "
        f"{passed} of {len(rows)} figures within their bounds. "
        "*Late* is the worst lateness of a bare 50 Hz timer loop in the same trials, in ms. It widens bounds in ms, "
        "and that of the drift by the way made in that time; "
        f"{widened or 'none'} of the figures needed that.",
        "",
        "| fault | figure | trials | worst | p99 | bound | late | passed |",
        "|---|---|---|---|---|---|---|---|",
        *(row.as_markdown() for row in rows),
    ]
    return "\n".join(lines)
