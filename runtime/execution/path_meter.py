"""`PathMeter`: how old what a path begins with was, each time where its last topic is published."""

from __future__ import annotations

from collections.abc import Mapping

from runtime.clock import to_ns
from runtime.coordination.health import PathHealth
from runtime.histogram import Histogram
from runtime.launch.tables.budgets_table import PathBudget
from runtime.message import UNKNOWN_NS, Envelope


class PathMeter:
    """Measures one path where its last topic is published."""

    def __init__(self, name: str, budget: PathBudget) -> None:
        self.name = name
        self.topic = budget.topics[-1]
        self._budget = budget
        self._limit_ns = to_ns(budget.p99_s)
        self._ages = Histogram()
        self._over = 0
        self._unknown = 0

    def add(self, envelope: Envelope) -> None:
        """Measure one message of the last topic; one without origins has no age."""
        born_ns = envelope.origins.get(self._budget.origin)
        if born_ns == UNKNOWN_NS:
            self._unknown += 1
        elif born_ns is not None:
            age_ns = envelope.published_ns - born_ns
            self._ages.add(age_ns)
            self._over += age_ns > self._limit_ns

    def health(self) -> PathHealth:
        """What was measured since the node's start."""
        return PathHealth(
            name=self.name,
            topics=self._budget.topics,
            p99_budget_ms=self._budget.p99_s * 1e3,
            count=self._ages.count,
            over=self._over,
            unknown=self._unknown,
            p50_ms=round(self._ages.percentile_ns(50) * 1e-6, 3),
            p99_ms=round(self._ages.percentile_ns(99) * 1e-6, 3),
            max_ms=round(self._ages.highest_ns * 1e-6, 3),
        )


def meters_for(paths: Mapping[str, PathBudget], topics: frozenset[str]) -> tuple[PathMeter, ...]:
    """The meters of a node that publishes these topics."""
    return tuple(PathMeter(name, budget) for name, budget in paths.items() if budget.topics[-1] in topics)
