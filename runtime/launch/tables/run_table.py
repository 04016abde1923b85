"""The [run] table of a launch file: view, report and companions of a run, its seed, its length.

Its other keys are parameters that the nodes which take them share."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from runtime.serialization.toml_errors import Seconds, Table

INSTALLED = "'module:name' of a module that is installed"


class RunTable(Table, frozen=True):
    """[run], as written."""

    view: Annotated[str, Meta(description=INSTALLED)] = ""
    report: Annotated[str, Meta(description=INSTALLED)] = ""
    beside: Annotated[str, Meta(description="a subcommand that looks on, like 'view'")] = ""
    seed: int = 0
    for_s: Seconds | None = None
    frozen_s: Annotated[float, Meta(gt=0, le=60.0, description="more than 0 and at most 60 s")] = 2.0
    start: Literal["fork", "spawn"] = "fork"
    one_user: bool = False  # of this machine: what comes by its loopback is theirs
