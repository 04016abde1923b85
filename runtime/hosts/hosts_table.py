"""`[hosts.NAME]` of a launch file: where each machine is reached, its public key, and which of two hosts listens."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import combinations
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from runtime.errors import UserError, choices, naming
from runtime.hosts.address import HostAddress, find, split
from runtime.serialization.toml_errors import Table, convert
from runtime.transport.reliable.tag import Terms

DEFAULT_PORT = 7410
PORTS_PER_PAIR = 2  # one for what is small and urgent, one for images

LOWEST_PORT, HIGHEST_PORT = 1024, 65000
PORTS = f"a whole number from {LOWEST_PORT} to {HIGHEST_PORT}"

_KEY = r"[0-9a-zA-Z.\-:+=^!/*?&<>()\[\]{}@%$#]{40}"

HostName = Annotated[
    str, Meta(pattern=r"^[a-z][a-z0-9_]{0,31}\Z", description="a-z, 0-9 and _, starting with a letter, at most 32")
]


class HostTable(Table, frozen=True):
    """One [hosts.NAME], as written."""

    address: Annotated[str, Meta(description="a name or a number like '192.168.1.20' or '[::1]'")] = ""
    port: Annotated[int, Meta(ge=LOWEST_PORT, le=HIGHEST_PORT, description=PORTS)] | None = None
    key: Annotated[
        str, Meta(pattern=rf"^({_KEY})?\Z", description="the 40 characters that `polyrhythm keys new NAME` prints")
    ] = ""
    budget_mbit: Annotated[float, Meta(ge=0, lt=1e6, description="megabits per second, or 0 for no limit")] = 0.0
    may_publish: Annotated[tuple[str, ...], Meta(description="a list of topics")] = ()

    def __post_init__(self) -> None:
        try:
            _, port = self.place()
        except UserError as problem:
            raise ValueError(str(problem)) from problem
        if not LOWEST_PORT <= port <= HIGHEST_PORT:
            raise ValueError(f"port is {port}; expected {PORTS}")

    def place(self) -> tuple[str, int]:
        """Address and port, both of which the address may contain. Raises UserError where it is none."""
        if not self.address:
            return "", self.port or DEFAULT_PORT
        with naming("address"):
            address, written = split(self.address)
        if written is not None and self.port not in (None, written):
            raise UserError(f"port is {self.port}, but its address ends in {written}; leave one of them out")
        return address, written if written is not None else self.port or DEFAULT_PORT


class Host(msgspec.Struct, frozen=True):
    """One machine of a launch."""

    name: str
    address: str = ""  # where the others reach it; "": it calls them
    port: int = DEFAULT_PORT  # the first of two for each other host
    key: str = ""  # its public key, Z85
    budget_mbit: float = 0.0  # megabits per second of images that it sends to each other host; 0: what the link takes
    may_publish: tuple[str, ...] = ()  # topics of its tools, besides those of its nodes

    def at(self, port: int) -> HostAddress:
        """This port of the host, as a numeric address. Raises UserError where the name is not known."""
        with naming(f"[hosts.{self.name}] address"):
            return find(self.address, port)


class HostPair(msgspec.Struct, frozen=True):
    """Two hosts of which one listens at a port and the other connects."""

    server: Host
    client: Host
    port: int

    def place(self, step: int = 0) -> HostAddress:
        """Where the server listens: the first of the pair's ports, or a later one. Raises UserError."""
        return self.server.at(self.port + step)

    @property
    def is_encrypted(self) -> bool:
        """Whether both hosts have a key."""
        return bool(self.server.key and self.client.key)

    def other(self, name: str) -> Host:
        """The host of the pair that has not this name."""
        return self.client if name == self.server.name else self.server


def is_public_key(text: str) -> bool:
    """Whether these are the 40 characters of a key, as `polyrhythm keys` prints it."""
    return re.fullmatch(_KEY, text) is not None


def parse_hosts(tables: Any) -> dict[str, Host]:
    """The hosts of a launch file. Raises UserError that names table and key."""
    found = convert(tables, dict[HostName, HostTable], table="hosts")
    hosts = {name: _host(name, table) for name, table in found.items()}
    named: dict[str, str] = {}
    for host in hosts.values():
        other = named.setdefault(host.key, host.name) if host.key else host.name
        if other != host.name:
            raise UserError(
                f"[hosts.{host.name}] key is that of [hosts.{other}]; each host has its own: "
                f"write what `polyrhythm keys new {host.name}` prints there"
            )
    if len(hosts) == 1:
        raise UserError(f"[hosts.{next(iter(hosts))}] is the only host; expected two or more, or none")
    return hosts


def _host(name: str, table: HostTable) -> Host:
    address, port = table.place()
    return Host(name, address, port, table.key, table.budget_mbit, table.may_publish)


def pair(hosts: Mapping[str, Host], one: str, other: str) -> HostPair:
    """Which of two hosts listens: the first in the file that has an address. Raises UserError where none has."""
    for name in hosts:
        if name in (one, other) and hosts[name].address:
            client = hosts[other if name == one else one]
            place = [host for host in hosts if host != name].index(client.name)
            return HostPair(hosts[name], client, hosts[name].port + PORTS_PER_PAIR * place)
    raise UserError(
        f"[hosts] neither {one} nor {other} has an address; give one of them the address that it is reached at"
    )


def meetings(hosts: Mapping[str, Host]) -> list[HostPair]:
    """All pairs of these hosts. Raises UserError where two of them cannot connect."""
    return [pair(hosts, one, other) for one, other in combinations(hosts, 2)]


def check_pair(meeting: HostPair, *, moves: bool) -> None:
    """Raise UserError where somebody else could connect without a key: another machine, and where the graph `moves` a
    robot another account of this one.
    """
    is_here = meeting.place().is_loopback
    if meeting.is_encrypted or (is_here and not moves):
        return
    lacking = [host.name for host in (meeting.server, meeting.client) if not host.key]
    have = "has" if len(lacking) == 1 else "have"
    anyone = "any account of this machine" if is_here else "anyone"
    alone = "; where it has one user, say one_user = true in [run]" if is_here else ""
    server = meeting.server
    raise UserError(
        f"[hosts.{server.name}] would wait at {server.address} for {anyone}, because {choices(lacking)} "
        f"{have} no key; make one with `polyrhythm keys new {lacking[0]}` and write it into [hosts.{lacking[0]}]{alone}"
    )


class GatewayPlan(msgspec.Struct, frozen=True):
    """What crosses between this host and another one, and where they connect."""

    own: Host
    meeting: HostPair
    receives: dict[str, str]  # topic -> "module:Message"
    sources: dict[str, tuple[str, ...]]  # topic -> the nodes that may publish it there; (): any tool
    others: tuple[str, ...]  # the nodes of this host and of third ones, in whose names it says nothing
    reliable: dict[str, Terms]  # of what is sent
    graph: str  # fingerprint: the same at both ends
