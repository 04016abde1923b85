"""What joins the hosts of a launch: it comes with the nodes, by entry points of the group `polyrhythm.hosts`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from runtime.errors import UserError
from runtime.extras import or_absent

GROUP = "polyrhythm.hosts"


def joining(part: Literal["gateway", "keys", "doctor"]) -> Callable[..., Any]:
    """Return the function for that: it makes a gateway, checks its keys, or finds what hosts lack on this machine.

    Raises UserError where no package brings it.
    """
    from importlib.metadata import entry_points  # not at the top: most launch files name no hosts

    for entry in entry_points(group=GROUP, name=part):
        found: Callable[..., Any] = entry.load()
        return found
    raise UserError(or_absent("[hosts] names several machines, and no package here joins them"))
