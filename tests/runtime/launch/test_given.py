"""Whatever a call in Python is given, its answer is a sentence that names the argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nodes.hello import Beat, Talker
from runtime import Graph, Node, NodeSpec, PolyrhythmError, Publisher, Simulation, UserError, every, graph, run

ODD = ["x", 3, -1.5, True, [], ["x"], [None], (3,), {"a": 1}, {"talker": 3}, {3: 4}, object(), int, Talker, Beat]


class Tells(Node):
    beat = Publisher(Beat, "beat")

    def __init__(self, stems_from: Any = None) -> None:
        self._stems_from = stems_from

    @every(hz=10)
    def tell(self) -> None:
        self.beat.publish(Beat(count=1), stems_from=self._stems_from)


def simulated(*nodes: Any, **how: Any) -> None:
    simulation = Simulation(*nodes, **how)
    simulation.run(0.2)
    simulation.close()


CALLS: dict[str, Callable[[str, Any], object]] = {
    "Simulation": lambda name, value: simulated(Talker(), **{name: value}),
    "Graph": lambda name, value: simulated(Graph([Talker()], **{name: value})),
    "graph": lambda name, value: graph(Talker(), **{name: value}),
    "run": lambda name, value: run(Talker(), **{"seconds": 0.0, name: value}),
    "NodeSpec": lambda name, value: simulated(NodeSpec(**{"name": "talker", "cls": Talker, name: value})),
    "publish": lambda name, value: simulated(Tells(value)),
}
"""A run with one argument, which may be odd."""
ARGUMENTS = [
    *(("Simulation", name) for name in ("seed", "health_hz", "links", "seats", "budgets", "trace")),
    ("Graph", "candidates"),
    ("graph", "rates"),
    ("graph", "seats"),
    ("run", "seed"),
    ("publish", "stems_from"),
    *(("NodeSpec", name) for name in NodeSpec.__struct_fields__),
]


@pytest.mark.parametrize(("call", "name"), ARGUMENTS)
def test_an_odd_argument_is_refused_in_a_sentence_that_names_it_or_it_fits(call: str, name: str) -> None:
    refused = []
    for value in ODD:
        try:
            CALLS[call](name, value)
        except UserError as problem:
            refused.append(str(problem))
        except PolyrhythmError:
            pass
    named = [text for text in refused if text.startswith(f"{call}(..., {name}=") and ": expected " in text]
    assert len(named) >= len(ODD) // 3, refused


def test_what_fits_is_taken() -> None:
    simulated(NodeSpec("talker", Talker, {"start": 4}, hz={"tick": 5}, restart="never"), seed=3, trace=None, seats=None)
