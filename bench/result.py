"""`Result`: one figure of ours, the reference beside it, and the goal for their ratio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import pairwise
from typing import Any


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the table; `goal` is the largest ratio allowed (the smallest where `more_is_better`)."""

    name: str
    unit: str
    ours: float
    reference: float
    reference_name: str
    goal: float | None  # None: told, without a goal
    allowance: float = 0.0  # added to goal x reference, in the figure's unit
    more_is_better: bool = False
    peers: Mapping[str, float] = field(default_factory=dict)  # the same figure of others, where they are installed
    how: str = ""  # rate, warm-up and samples

    @property
    def ratio(self) -> float:
        """Ours over the reference."""
        return self.ours / self.reference if self.reference else float("inf")

    @property
    def is_met(self) -> bool:
        """Whether the goal is reached."""
        if self.goal is None:
            return True
        if self.more_is_better:
            return self.ours >= self.goal * self.reference
        return self.ours <= self.goal * self.reference + self.allowance

    @property
    def share(self) -> float:
        """How much of what is allowed was needed: up to 1 the goal is met. 0 without a goal."""
        if self.goal is None:
            return 0.0
        allowed = self.goal * self.reference + self.allowance
        if self.more_is_better:
            return allowed / self.ours if self.ours else float("inf")
        return self.ours / allowed if allowed else float(self.ours > 0) * 10

    @property
    def goal_text(self) -> str:
        """The goal for the ratio, in signs."""
        if self.goal is None:
            return "-"
        sign = ">=" if self.more_is_better else "<="
        return f"{sign} {self.goal:.3g}" + (f" + {self.allowance:g}" if self.allowance else "")

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Result:
        """What `as_data` wrote."""
        return cls(**{one.name: data[one.name] for one in fields(cls)})

    def as_data(self) -> dict[str, object]:
        """For `--json`."""
        return {**asdict(self), "ratio": round(self.ratio, 3), "is_met": self.is_met}


def lateness_ms(moments_ns: Sequence[int], period_ns: int) -> list[float]:
    """How late each tick came, against the schedule that the earliest of them keeps; the same for ours and others."""
    phases_ns, tick = [], 0
    for before_ns, moment_ns in pairwise((moments_ns[0] - period_ns, *moments_ns)):
        tick += max(1, int((moment_ns - before_ns) / period_ns + 0.02))  # more than one: those between were left out
        phases_ns.append(moment_ns - tick * period_ns)
    return [(phase_ns - min(phases_ns)) * 1e-6 for phase_ns in phases_ns]


def percentile(values: Sequence[float], percent: float) -> float:
    """The value that this share does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def table(results: Sequence[Result]) -> str:
    """The results as text, 100 columns wide."""
    lines = [f"{'what':44} {'ours':>10} {'reference':>10} {'ratio':>7} {'goal':>12}"]
    for result in results:
        mark = "" if result.is_met else "   MISSED"
        name = f"{result.name} [{result.unit}]"
        lines.append(
            f"{name:44} {result.ours:10.3f} {result.reference:10.3f} {result.ratio:7.2f} {result.goal_text:>12}{mark}"
        )
        others = "".join(f"; {peer} {figure:.3f}" for peer, figure in result.peers.items())
        lines.append(f"    against {result.reference_name}{others}{f'; {result.how}' if result.how else ''}")
    return "\n".join(lines)
