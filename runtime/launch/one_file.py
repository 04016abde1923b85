"""`graph`: nodes, rates and seats in one Python file or notebook, without a launch file; with the same checks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from runtime.errors import GraphError, UserError, naming
from runtime.launch.given import expect, is_by_name, is_names, shown
from runtime.launch.graph import CANDIDATES, Graph, NodeSpec, specs_of
from runtime.launch.tables.nodes_table import rates_of
from runtime.launch.tables.seats_table import SeatTable, parse_seats
from runtime.node import Node
from runtime.qos import is_number
from runtime.refusals import code_of, refusing
from runtime.serialization.toml_errors import guess


def graph(
    *nodes: Node | NodeSpec | Graph,
    rates: Mapping[str, float | dict[str, float]] | None = None,
    seats: Mapping[str, Sequence[str]] | None = None,
) -> Graph:
    """The graph of these nodes, which `run` and `Simulation` take, checked as `polyrhythm check` checks a launch file.

    `rates` are in Hz by node, as `hz` in a launch file: {"camera": 5} for a node with one timer, {"robot": {"look": 5}}
    for any. `seats` are by name the nodes that may hold it, the holder first. Raises GraphError with the first thing
    that does not fit.
    """
    if rates is not None:
        expect("graph(..., rates", rates, is_by_name, "rates in Hz by node, as in rates={'camera': 5}")
    if seats is not None:
        expect("graph(..., seats", seats, lambda value: is_by_name(value, is_names), CANDIDATES)
    specs = {spec.name: spec for spec in specs_of(nodes)}
    for name, hz in (rates or {}).items():
        if name not in specs:
            raise GraphError(f"rates names {name!r}, which is no node; {guess(name, specs)}", code="P023")
        with naming(f"[nodes.{name}]", GraphError), refusing("P023"):
            specs[name] = replace(specs[name], hz={**specs[name].hz, **rates_of(specs[name].cls, hz)})
    candidates = {
        seat: tuple(names) for one in nodes if isinstance(one, Graph) for seat, names in one.candidates.items()
    }
    candidates |= {seat: tuple(names) for seat, names in (seats or {}).items()}
    made = Graph(specs.values(), candidates)
    seats_of([made])
    made.check()
    for _, why in made.unfenced():
        raise GraphError(why, code=code_of(why))
    return made


def seats_of(nodes: Iterable[object]) -> dict[str, SeatTable]:
    """The seats of the graphs among these nodes. Raises GraphError where they do not fit the nodes."""
    found: dict[str, SeatTable] = {}
    for one in nodes:
        if isinstance(one, Graph) and one.candidates:
            written = {
                seat: {**({"holder": names[0]} if names else {}), "shadows": list(names[1:])}
                for seat, names in one.candidates.items()
            }
            try:
                with refusing("P040"):
                    found |= parse_seats(written, one.nodes)
            except UserError as problem:
                raise GraphError(str(problem)) from problem
    return found


def check_seed(call: str, seed: object) -> None:
    """Of whatever runs from a seed: a whole number. Raises UserError."""
    expect(
        f"{call}(..., seed",
        seed,
        lambda value: isinstance(value, int) and not isinstance(value, bool),
        f"a whole number, as in {call}(Dice(), seed=7)",
    )


def check_seconds(seconds: object) -> None:
    """Of `run`, in both clocks: a length of time, or None. Raises UserError."""
    if seconds is not None and not (is_number(seconds) and 0 <= seconds < math.inf):  # type: ignore[operator]
        how = f"; run(until={seconds.__name__})" if callable(seconds) and hasattr(seconds, "__name__") else ""
        raise UserError(f"run({shown(seconds)}): expected a number of seconds from 0 on, as in run(seconds=5){how}")
