"""The [run] table of a launch file: view, report and companions of a run, its seed, its length, its robot."""

from __future__ import annotations

import importlib.util
from typing import Annotated, Literal

from msgspec import Meta

from runtime.launch.nodes_table import hidden
from runtime.renamed import renamed
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
    robot: Annotated[str, Meta(description="a name like 'my_robot.limits:LIMITS', or a robot file")] = ""

    def __post_init__(self) -> None:
        """What draws or reports a run is loaded later, when it is needed; that its module exists is known now."""
        old = renamed("names") if self.view or self.report else {}
        for key, name in (("view", self.view), ("report", self.report)):
            if name in old:
                raise ValueError(f"{key} {name!r} is now {old[name]!r}")
            if name and not _is_installed(name):
                why = hidden(name)
                raise ValueError(f"{key} is {name!r}; expected {INSTALLED}{why and f' ({why})'}")


def _is_installed(name: str) -> bool:
    module, colon, attribute = name.partition(":")
    try:
        return bool(colon and module and attribute) and importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False
