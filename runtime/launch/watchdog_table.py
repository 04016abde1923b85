"""The [watchdog] table of a launch file: a program beside the guard's process that presses the robot's runstop."""

from __future__ import annotations

import shlex
import sys
from typing import Annotated, Any

from msgspec import Meta

from runtime.errors import UserError
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

    def arguments(self, run: int) -> tuple[str, ...]:
        """Of the watchdog's program, for the run of the supervisor with this pid."""
        commands = ("--runstop", self.runstop), ("--state", self.state)
        stands_for = {"{python}": shlex.quote(sys.executable), "{run}": str(run)}
        found: list[str] = []
        for option, command in commands:
            for mark, value in stands_for.items():
                command = command.replace(mark, value)
            found += [f"{option}={command}"]
        return tuple(found)


def parse_watchdog(table: Any, *, has_guard: bool) -> WatchdogTable | None:
    """The `[watchdog]` table, None where there is none. Raises UserError where it is wrong, or has nobody to watch."""
    if table is None:
        return None
    found = convert(table, WatchdogTable, table="watchdog")
    if not has_guard:
        raise UserError("[watchdog] watches a guard, and no node here is one; leave it out, or add a guard")
    return found
