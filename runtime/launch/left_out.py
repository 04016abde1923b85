"""Leaving nodes out of a launch file: `--without NAME`, and `load(..., without=...)`.

What the file says of a node that is gone goes with it: its place on a seat, its budget, its links, its process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from runtime.errors import LaunchFileError, UserError
from runtime.launch.graph import Graph, NodeSpec
from runtime.launch.tables.nodes_table import node_spec
from runtime.node import ports_of
from runtime.ports import Publisher, Subscription
from runtime.serialization.toml_errors import guess

Tables = dict[str, Any]


def leave_out(tables: Tables, names: Sequence[str], path: Path) -> None:
    """Take these nodes out of a launch file's tables.

    Raises LaunchFileError for a name that is no node's, and for what the node that issues fences needs.
    """
    nodes = tables.get("nodes")
    if not names or not isinstance(nodes, dict) or not all(isinstance(own, dict) for own in nodes.values()):
        return  # `resolve` says what is wrong with the file
    for name in names:
        if name not in nodes:
            raise LaunchFileError(f"--without {name}: there is no such node; {guess(name, nodes)}", code="P005")
    specs = {name: spec for name, table in nodes.items() if (spec := _spec(path, name, table)) is not None}
    _check(specs, frozenset(names))
    for name in dict.fromkeys(names):
        del nodes[name]
        specs.pop(name, None)
    with suppress(TypeError, AttributeError):  # a value of another type, which `resolve` refuses
        _tidy(tables, frozenset(names), specs)


def _spec(path: Path, name: str, table: Tables) -> NodeSpec | None:
    """The node, or None where its class is not to be had here: such a one runs nothing, and may go."""
    try:
        return node_spec(path, name, table)
    except UserError:
        return None


def _check(specs: Mapping[str, NodeSpec], names: frozenset[str]) -> None:
    """Raise LaunchFileError where the node that issues fences says that one of them is needed."""
    graph = Graph(specs.values())
    if graph.keeper is not None:
        for name, why in graph.keeper.needed(graph.authority, graph, names):
            raise LaunchFileError(f"--without {name}: {why}; leave out others", code="P005")


def _tidy(tables: Tables, names: frozenset[str], specs: Mapping[str, NodeSpec]) -> None:
    """Take away what the other tables say of nodes that are gone, and of topics that nobody publishes any more."""
    said = {spec.topic_of(port) for spec in specs.values() for port in ports_of(spec.cls, Publisher).values()}
    heard = {spec.topic_of(port) for spec in specs.values() for port in ports_of(spec.cls, Subscription).values()}
    processes = {spec.process or spec.name for spec in specs.values()}
    _keep(tables, "seats", lambda _, seat: _seated(seat, names))
    _keep(tables, "links", lambda _, link: _linked(link, names, said | heard))
    _keep(tables, "processes", lambda name, _: name in processes)
    _keep(tables, "instead", lambda _, other: other.get("node") not in names)
    budgets = tables.get("budgets")
    if isinstance(budgets, dict):
        _keep(budgets, "models", lambda name, _: name not in names)
        _keep(budgets, "paths", lambda _, written: said.issuperset(written.get("topics", ())))
    export = tables.get("export")
    if isinstance(export, dict) and isinstance(export.get("features"), dict):
        features = export["features"].items()
        export["features"] = {name: place for name, place in features if str(place).partition(":")[0] in said}


def _keep(tables: Tables, name: str, is_kept: Callable[[str, Tables], bool]) -> None:
    """Of a table of tables those that are to stay; anything else is left for `resolve` to refuse."""
    table = tables.get(name)
    if isinstance(table, dict):
        tables[name] = {key: own for key, own in table.items() if not isinstance(own, dict) or is_kept(key, own)}


def _seated(seat: Tables, names: frozenset[str]) -> bool:
    """Let the next candidate move up, and nobody hand over to who is gone; whether anybody is left on the seat."""
    left = [name for name in (seat.get("holder"), *seat.get("shadows", ())) if name not in names]
    seat["shadows"] = left[1:]
    seat["ladder"] = [rung for rung in seat.get("ladder", ()) if rung.get("to") not in names]
    if left:
        seat["holder"] = left[0]
        seat["ladder"] = [rung for rung in seat["ladder"] if rung.get("to") != left[0]]
    return bool(left)


def _linked(link: Tables, names: frozenset[str], topics: set[str]) -> bool:
    """Whether the link still has both its ends and a topic."""
    for key in ("from", "to", "topics"):
        if key in link:
            chosen = [link[key]] if isinstance(link[key], str) else list(link[key])
            link[key] = [one for one in chosen if (one in topics if key == "topics" else one not in names)]
            if chosen and not link[key]:
                return False
    return True
