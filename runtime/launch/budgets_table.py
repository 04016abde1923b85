"""`[budgets]` of a launch file: how old what stands behind a message may be, and what asking models may cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from runtime.clock import to_ns
from runtime.control_messages.health import PathHealth
from runtime.errors import UserError, check_keys, choices
from runtime.histogram import Histogram
from runtime.launch.graph import Graph
from runtime.message import Envelope, Origin

BUDGETS = ("paths", "models", "run")
MISSES = 0.01
"""The share of messages that may be older than a path's `p99_s`."""


class PathBudget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One [budgets.paths.NAME]: how old the oldest image, utterance or plan behind the last topic's messages may be."""

    topics: tuple[str, ...]  # first to last
    p99_s: float
    origin: Origin = "image"  # what the first topic's messages are; not to be given


class ModelBudget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One [budgets.models.NODE]: what a node that asks a model may spend in a run; 0: no limit."""

    calls: int = 0
    tokens: int = 0
    money: float = 0.0
    input_price: float = 0.0  # money for a million tokens
    output_price: float = 0.0


class RunBudget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """[budgets.run]: what all nodes that ask models may spend together, each at its own prices; 0: no limit."""

    calls: int = 0
    tokens: int = 0
    money: float = 0.0


class Budgets(msgspec.Struct, frozen=True):
    """All of a launch file's."""

    paths: dict[str, PathBudget] = {}
    models: dict[str, ModelBudget] = {}
    run: RunBudget = RunBudget()

    @classmethod
    def of(cls, run_info: Mapping[str, Any]) -> Budgets:
        """Those that a run knows of."""
        return msgspec.convert(run_info.get("budgets", {}), cls)

    def as_data(self) -> dict[str, Any]:
        """As plain data, for `run_info`."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return data


def parse_budgets(tables: object, graph: Graph) -> Budgets:
    """The budgets of a launch file. Raises UserError with the first thing that is not understood."""
    if not isinstance(tables, dict):
        raise UserError(f"budgets is {tables!r}; expected tables like [budgets.paths.NAME] and [budgets.models.NODE]")
    for kind, named in tables.items():
        if kind not in BUDGETS:
            raise UserError(f"[budgets.{kind}] is no budget; known: {', '.join(BUDGETS)}")
        if not isinstance(named, dict):
            raise UserError(f"[budgets] {kind} is {named!r}; expected tables like [budgets.{kind}.NAME]")
    paths, models = {}, {}
    for name, table in tables.get("paths", {}).items():
        try:
            paths[name] = _path(table, graph)
        except (msgspec.ValidationError, UserError) as problem:
            raise UserError(f"[budgets.paths.{name}] {problem}") from problem
    for name, table in tables.get("models", {}).items():
        try:
            models[name] = _model(name, table, graph)
        except (msgspec.ValidationError, UserError) as problem:
            raise UserError(f"[budgets.models.{name}] {problem}") from problem
    try:
        run = _run(tables["run"], models) if "run" in tables else RunBudget()
    except (msgspec.ValidationError, UserError) as problem:
        raise UserError(f"[budgets.run] {problem}") from problem
    return Budgets(paths, models, run)


def _run(table: Any, models: Mapping[str, ModelBudget]) -> RunBudget:
    check_keys(table, RunBudget.__struct_fields__)
    budget = msgspec.convert(table, RunBudget)
    _check_limits(budget)
    if budget.money and not any(one.input_price or one.output_price for one in models.values()):
        raise UserError("money is limited, but no [budgets.models.NODE] gives an input_price or output_price")
    return budget


def _check_limits(budget: ModelBudget | RunBudget) -> None:
    for key in budget.__struct_fields__:
        if not 0 <= getattr(budget, key) < float("inf"):
            raise UserError(f"{key} is {getattr(budget, key)}; expected 0 (no limit) or more")
    if not (budget.calls or budget.tokens or budget.money):
        raise UserError("limits nothing; give calls, tokens or money")


def _path(table: Any, graph: Graph) -> PathBudget:
    check_keys(table, ("topics", "p99_s"))
    budget = msgspec.convert(table, PathBudget)
    if len(budget.topics) < 2:
        raise UserError(f"topics is {list(budget.topics)}; expected at least two, first to last")
    if not 0.0 < budget.p99_s < float("inf"):
        raise UserError(f"p99_s is {budget.p99_s}; expected a positive number of seconds")
    for topic in budget.topics:
        if topic not in graph.topics:
            raise UserError(f"there is no topic {topic!r}; topics: {choices(graph.topics)}")
    first = graph.types[budget.topics[0]]
    if first.message_origin is None:
        begins = [name for name in graph.topics if graph.types[name].message_origin is not None]
        raise UserError(
            f"{budget.topics[0]} begins no path: a {first.__name__} has no age that others inherit; "
            f"a path begins at an image, an utterance or a plan, here: {choices(begins)}"
        )
    return msgspec.structs.replace(budget, origin=first.message_origin)


def _model(name: str, table: Any, graph: Graph) -> ModelBudget:
    if name not in graph.nodes:
        raise UserError(f"there is no node {name!r}; nodes: {choices(graph.nodes)}")
    check_keys(table, ModelBudget.__struct_fields__)
    budget = msgspec.convert(table, ModelBudget)
    _check_limits(budget)
    if budget.money and not (budget.input_price or budget.output_price):
        raise UserError(
            "money is limited, but nothing has a price; give input_price and output_price per million tokens"
        )
    return budget


class PathMeter:
    """Measures one path where its last topic is published."""

    def __init__(self, name: str, budget: PathBudget) -> None:
        self.name = name
        self.topic = budget.topics[-1]
        self._budget = budget
        self._limit_ns = to_ns(budget.p99_s)
        self._ages = Histogram()
        self._over = 0

    def add(self, envelope: Envelope) -> None:
        """One message of the last topic; one with nothing behind it is of no age."""
        origin = self._budget.origin
        born_ns = envelope.image_ns if origin == "image" else 0
        if origin != "image":
            born_ns = envelope.utterance_ns if origin == "utterance" else envelope.plan_ns
        if born_ns:
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
            p50_ms=round(self._ages.percentile_ns(50) * 1e-6, 3),
            p99_ms=round(self._ages.percentile_ns(99) * 1e-6, 3),
            max_ms=round(self._ages.highest_ns * 1e-6, 3),
        )


def meters_for(paths: Mapping[str, PathBudget], topics: frozenset[str]) -> tuple[PathMeter, ...]:
    """The meters of a node that publishes these topics."""
    return tuple(PathMeter(name, budget) for name, budget in paths.items() if budget.topics[-1] in topics)
