"""Tables of a launch file that other rooms read: entry points of the group `polyrhythm.tables`, one a table.

Each names a function of what is written and the `Graph`. What it returns stands in `Launch.more`, and is None where
the table asks for nothing. It raises UserError. A table with programs starts them beside the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import msgspec

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

    from runtime.launch.graph import Graph

GROUP = "polyrhythm.tables"


class Program(msgspec.Struct, frozen=True):
    """A file of Python that stands alone, run beside a node while the run goes on; started again where it ends."""

    file: Path
    arguments: tuple[str, ...]
    node: str  # where another host has this node, that host runs the program


@runtime_checkable
class HasPrograms(Protocol):
    def programs(self, run: int, folder: Path) -> Sequence[Program]:
        """Return what runs beside a run in real time: its supervisor's pid, and the folder of its sockets."""


def entries() -> EntryPoints:
    """The tables that other rooms read."""
    from importlib.metadata import entry_points  # not at the top: most launch files have no such table

    return entry_points(group=GROUP)


def read_more(tables: Mapping[str, Any], graph: Graph) -> dict[str, Any]:
    """What the rooms make of these tables. Raises UserError where one is wrong."""
    readers = entries() if tables else ()  # to look through all that is installed takes a tenth of a small start
    found = {name: entry.load()(tables[name], graph) for entry in readers if (name := entry.name) in tables}
    return {name: one for name, one in found.items() if one is not None}
