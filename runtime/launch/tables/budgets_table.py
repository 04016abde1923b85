"""`[budgets]` of a launch file: how old the origins of a message may be, and what model calls may cost."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, field

from runtime.clock import to_ns
from runtime.coordination.health import PathHealth
from runtime.errors import UserError, choices
from runtime.histogram import Histogram
from runtime.launch.graph import Graph
from runtime.message import UNKNOWN_NS, Envelope
from runtime.serialization.toml_errors import Seconds, Table, convert

MISSES = 0.01
"""The share of messages that may be older than a path's `p99_s`."""
JUDGED_FROM = 100
"""A 99th percentile of fewer messages says nothing."""


def is_met(count: int, over: int, unknown: int = 0) -> bool | None:
    """Whether a path of so many messages kept its budget; None where they are too few to judge it by.

    `over` were too old, and the age of `unknown` more cannot be known.
    """
    return None if count + unknown < JUDGED_FROM else is_within(count, over, unknown)


def is_within(count: int, over: int, unknown: int = 0) -> bool:
    """Whether at most one message in a hundred was too old by now; False where nothing was measured."""
    return count > 0 and over + unknown <= MISSES * (count + unknown)


Limit = Annotated[int, Meta(ge=0, description="0 (no limit) or more")]
Money = Annotated[float, Meta(ge=0, le=sys.float_info.max, description="0 (no limit) or more")]


class WrittenPath(Table, frozen=True):
    """One [budgets.paths.NAME], as written."""

    topics: Annotated[tuple[str, ...], Meta(min_length=2, description="at least two, first to last")]
    p99_s: Seconds


class PathBudget(WrittenPath, frozen=True):
    """How old the oldest image, utterance or plan behind the last topic's messages may be."""

    origin: str = "image"  # what the first topic's messages are


class RunBudget(Table, frozen=True):
    """[budgets.run]: what all nodes that call models may spend together, each at its own prices; 0 means no limit."""

    calls: Limit = 0
    tokens: Limit = 0
    money: Money = 0.0


class ModelBudget(RunBudget, frozen=True):
    """[budgets.models.NODE]: what one node that calls a model may spend in a run; 0 means no limit."""

    input_price: Money = 0.0  # money for a million tokens
    output_price: Money = 0.0


class WrittenBudgets(Table, frozen=True):
    """[budgets], as written."""

    paths: dict[str, WrittenPath] = field(default_factory=dict)
    models: dict[str, ModelBudget] = field(default_factory=dict)
    run: RunBudget | None = None


class Budgets(msgspec.Struct, frozen=True):
    """All budgets of a launch file."""

    paths: dict[str, PathBudget] = {}
    models: dict[str, ModelBudget] = {}
    run: RunBudget = RunBudget()

    @classmethod
    def of(cls, run_info: Mapping[str, Any]) -> Budgets:
        """The budgets that the run was given."""
        return msgspec.convert(run_info.get("budgets", {}), cls)

    def as_data(self) -> dict[str, Any]:
        """The budgets as plain data, for `run_info`."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return data


def parse_budgets(tables: object, graph: Graph) -> Budgets:
    """The budgets of a launch file. Raises UserError with the first thing that is wrong."""
    written = convert(tables, WrittenBudgets, table="budgets")
    for name, budget in written.models.items():
        where = f"[budgets.models.{name}]"
        if name not in graph.nodes:
            raise UserError(f"{where} there is no node {name!r}; nodes: {choices(graph.nodes)}")
        _check_limits(where, budget)
        if budget.money and not (budget.input_price or budget.output_price):
            raise UserError(
                f"{where} money is limited, but nothing has a price; "
                "give input_price and output_price per million tokens"
            )
    if written.run is not None:
        _check_limits("[budgets.run]", written.run)
        if written.run.money and not any(one.input_price or one.output_price for one in written.models.values()):
            raise UserError(
                "[budgets.run] money is limited, but no [budgets.models.NODE] gives an input_price or output_price"
            )
    paths = {name: _path(f"[budgets.paths.{name}]", path, graph) for name, path in written.paths.items()}
    return Budgets(paths, written.models, written.run or RunBudget())


def _check_limits(where: str, budget: RunBudget) -> None:
    if not (budget.calls or budget.tokens or budget.money):
        raise UserError(f"{where} limits nothing; give calls, tokens or money")


def _path(where: str, path: WrittenPath, graph: Graph) -> PathBudget:
    for topic in path.topics:
        if topic not in graph.topics:
            raise UserError(f"{where} there is no topic {topic!r}; topics: {choices(graph.topics)}")
    first = graph.types[path.topics[0]]
    if first.message_origin is None:
        begins = [name for name in graph.topics if graph.types[name].message_origin is not None]
        raise UserError(
            f"{where} {path.topics[0]} begins no path: a {first.__name__} has no age that others inherit; "
            f"a path begins at an image, an utterance or a plan, here: {choices(begins)}"
        )
    return PathBudget(path.topics, path.p99_s, first.message_origin)


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
