"""`Row`: what was measured of one figure of one fault, and the table of them in the docs."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.faults.matrix import Bound
from bench.result import percentile

BEGIN, END = "<!-- faults: begin, written by make faults -->", "<!-- faults: end -->"


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
        return self.lateness_ms if self.bound is not None and self.bound.is_time else 0.0

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
            text = f"{bound.least:g} to {bound.most:g}"
        late = f"{self.lateness_ms:.1f}" if bound.is_time else ""
        worst, p99 = max(self.values), percentile(self.values, 99)
        passed = "yes" if self.is_passed else "**NO**"
        cells = (self.fault, bound.figure, len(self.values), f"{worst:.4g}", f"{p99:.4g}", text, late, passed)
        return f"| {' | '.join(map(str, cells))} |"


def as_markdown(rows: Sequence[Row], *, took_s: float, load: Sequence[float]) -> str:
    """The table with what it was measured on."""
    passed = sum(row.is_passed for row in rows)
    lines = [
        f"Measured on {platform.system()} {platform.release()}, Python {platform.python_version()}, "
        f"{os.cpu_count()} cores, in {took_s / 60:.0f} minutes; "
        f"load average {load[0]:.1f} at the start and {load[1]:.1f} at the end, "
        f"{passed} of {len(rows)} figures within their bounds. "
        "*Late* is the worst lateness of a bare 50 Hz timer loop during the same trials, in ms; "
        "it widens bounds in ms.",
        "",
        "| fault | figure | trials | worst | p99 | bound | late | passed |",
        "|---|---|---|---|---|---|---|---|",
        *(row.as_markdown() for row in rows),
    ]
    return "\n".join(lines)


def write(path: Path, text: str) -> None:
    """Put the table between its markers. Raises ValueError where a file has none."""
    page = path.read_text()
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{path} has no markers for the table")
    path.write_text(f"{before}{begin}\n{text}\n{end}{after}")
