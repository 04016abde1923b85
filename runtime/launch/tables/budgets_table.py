"""`[budgets]` of a launch file: how old the origins of a message may be, and what model calls may cost."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, field

from runtime.errors import UserError, choices
from runtime.launch.graph import Graph
from runtime.serialization.toml_errors import Seconds, Table, convert

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
