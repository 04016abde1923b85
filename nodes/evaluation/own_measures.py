"""Measures of the user's own: a function that makes one number of a run's recording, and who ends the runs at all."""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import CodeType, FunctionType

from nodes.recording.bag.recording import Recording
from runtime.errors import UserError
from runtime.launch.graph import Graph
from runtime.launch.tables.nodes_table import load_name
from runtime.node import Node

Measure = Callable[[Recording], float]


def measures_of(texts: Sequence[str]) -> dict[str, Measure]:
    """Of NAME=MODULE:FUNCTION, by name. Raises UserError where one leads to no function."""
    found: dict[str, Measure] = {}
    for text in texts:
        name, equals, place = text.partition("=")
        if not equals or not name.replace("_", "").isalnum() or name in found:
            raise UserError(
                f"--measure {text}: expected NAME=MODULE:FUNCTION with a name of its own, like "
                "spilled_ml=my_robot.measures:spilled_ml"
            )
        function = load_name(place)
        if not callable(function):
            raise UserError(f"--measure {text}: is no function; expected one that makes a number of a Recording")
        found[name] = function
    return found


def tell_measure(complaint: str) -> None:
    """Say on standard error that a measure failed."""
    print(complaint, file=sys.stderr)


def measured(
    measures: Mapping[str, Measure], file: Path, run: str, complain: Callable[[str], None]
) -> dict[str, float | None]:
    """What each measure says of a recording; None where it fails, which is told with the name of the run."""
    found: dict[str, float | None] = {}
    for name, measure in measures.items():
        try:
            value: object = measure(Recording(file))
            is_number = isinstance(value, numbers.Real) and math.isfinite(value)
            found[name] = float(value) if isinstance(value, numbers.Real) and is_number else None
            why = "" if is_number or value is None else f"is {value!r:.60}; expected a finite number, or None"
        except Exception as problem:  # noqa: BLE001  # whatever a user's function may raise
            found[name], why = None, f"{type(problem).__name__}: {problem}"
        if why:
            complain(f"! measure {name}: {run}: {why}")
    return found


def has_end(graph: Graph) -> bool:
    """Whether any node's code, or a module that it is in, says `finish`: else nobody ends a run."""
    for spec in graph.nodes.values():
        for base in spec.cls.__mro__:
            if base in (Node, object):
                continue
            module = sys.modules.get(base.__module__)
            owners = [vars(base), vars(module)] if module is not None else [vars(base)]
            functions = [one for owner in owners for one in list(owner.values()) if isinstance(one, FunctionType)]
            if any("finish" in code.co_names for one in functions for code in _codes(one.__code__)):
                return True
    return False


def _codes(code: CodeType) -> list[CodeType]:
    """It, and what is defined inside."""
    return [code, *(one for part in code.co_consts if isinstance(part, CodeType) for one in _codes(part))]
