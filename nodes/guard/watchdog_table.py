"""The [watchdog] table of a launch file: a program beside the guard's process that presses the robot's runstop."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from shutil import which
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from nodes.guard import watchdog
from runtime.errors import UserError
from runtime.launch.graph import Graph
from runtime.launch.tables.more_tables import Program
from runtime.serialization.toml_errors import Table, convert

Command = Annotated[str, Meta(description="a command, as in a shell and without one")]


class WatchdogTable(Table, frozen=True):
    """[watchdog], as written; docs/watchdog.md.

    `runstop` presses the robot's own runstop; without it, the watchdog ends the guard's process. `state` prints what
    the robot does, by a way of its own. In both {python} stands for this Python, {run} for the pid by which tools know
    the run.
    """

    runstop: Command = ""
    state: Command = ""

    def __post_init__(self) -> None:
        for key, command in (("runstop", self.runstop), ("state", self.state)):
            try:
                shlex.split(command)
            except ValueError as problem:
                raise ValueError(f"{key} is {command!r}: {problem}; close its quotes") from problem

    def notes(self) -> list[str]:
        """A sentence for each command that is not found on this machine."""
        commands = ("runstop", self.runstop), ("state", self.state)
        return [
            f"{key}: {name!r} is not found on this machine, and the watchdog goes on without it; name its path"
            for key, command in commands
            for name in shlex.split(command)[:1]
            if name != "{python}" and which(name) is None
        ]


class Watched(msgspec.Struct, frozen=True):
    """A guard with a watchdog."""

    guard: str
    written: WatchdogTable

    def programs(self, run: int, folder: Path) -> tuple[Program, ...]:
        """Return the watchdog; it is started as a file, since it imports nothing of ours."""
        commands = ("--runstop", self.written.runstop), ("--state", self.written.state)
        stands_for = {"{python}": shlex.quote(sys.executable), "{run}": str(run)}
        options: list[str] = []
        for option, command in commands:
            for mark, value in stands_for.items():
                command = command.replace(mark, value)
            options += [f"{option}={command}"]
        return (Program(Path(watchdog.__file__), (str(folder), *options), self.guard),)


def read(table: Any, graph: Graph) -> Watched:
    """The `[watchdog]` of this graph. Raises UserError where it is wrong, or has nobody to watch."""
    found = convert(table, WatchdogTable, table="watchdog")
    if graph.keeper is None or not graph.is_obeyed(graph.authority):
        raise UserError("[watchdog] watches a guard, and no node here is one; leave it out, or add a guard")
    return Watched(graph.authority, found)
