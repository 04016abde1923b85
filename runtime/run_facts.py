"""`RunFacts`: what a node may know of its run."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Self

import msgspec


class RunFacts(msgspec.Struct, frozen=True):
    """The facts of a run, set before `on_start`; outside of a run all of them are empty."""

    seed: int = 0
    folder: str = ""  # where the run's files go
    registry: str = ""  # the folder, of this user alone, by which tools find a run in real time
    launch_file: str = ""
    launch_text: str = ""
    parameters: dict[str, dict[str, Any]] = {}  # of each node
    seats: dict[str, dict[str, Any]] = {}  # the tables [seats.*]
    node_seats: tuple[str, ...] = ()  # that nodes of the graph sit on
    roles: dict[str, tuple[str, ...]] = {}  # the nodes of each role; those of "" have any
    one_user: bool = False  # of this machine: what comes by its loopback is theirs
    claims: tuple[str, ...] = ()  # what this run has to itself among those of this account
    devices: tuple[str, ...] = ()  # what it has of this machine
    needed_files: tuple[str, ...] = ()  # by which tools, and processes that are restarted, find this run
    has_signal: bool = False  # whether this process, which has the node that issues fences, answers a system's signal
    programs: tuple[str, ...] = ()  # tables of the launch file with programs beside this run
    known: Mapping[str, Any] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    """All facts as plain data, with versions, machine and robot, and at the end the outcome. Recordings keep them."""

    spent: dict[str, Any] = msgspec.field(default_factory=dict)
    """What nodes of this process that share a budget have spent on models; the only fact that changes."""

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Self:
        """The facts in this plain data; missing ones are empty."""
        own = {name: data[name] for name in cls.__struct_fields__ if name in data and name not in ("known", "spent")}
        return msgspec.structs.replace(msgspec.convert(own, cls), known=MappingProxyType(dict(data)))

    def in_role(self, role: str) -> frozenset[str]:
        """The nodes that have this role."""
        return frozenset((*self.roles.get(role, ()), *self.roles.get("", ())))

    def noting(self, **facts: object) -> Self:
        """The same facts with these added."""
        return msgspec.structs.replace(self.of({**self.known, **facts}), spent=self.spent)
