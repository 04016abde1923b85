"""`[hosts.NAME]` of a launch file: where each machine is reached, its public key, and who waits for whom."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import msgspec

from runtime.errors import UserError, choices
from runtime.hosts.address import HostAddress, find, split
from runtime.transport.reliable.tag import Terms

HOST_KEYS = ("address", "port", "key", "budget_mbit", "may_publish")
DEFAULT_PORT = 7410
PORTS_PER_PAIR = 2  # one for what is small and urgent, one for images

_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
_KEY = re.compile(r"[0-9a-zA-Z.\-:+=^!/*?&<>()\[\]{}@%$#]{40}")


@dataclass(frozen=True, slots=True)
class Host:
    """One machine of a launch."""

    name: str
    address: str = ""  # where the others reach it; "": it calls them
    port: int = DEFAULT_PORT  # the first of two for each other host
    key: str = ""  # its public key, Z85
    budget_mbit: float = 0.0  # megabits per second of images that it sends to each other host; 0: what the link takes
    may_publish: tuple[str, ...] = ()  # topics of its tools, besides those of its nodes

    def at(self, port: int) -> HostAddress:
        """That port of it, in numbers. Raises UserError where the name is not known."""
        try:
            return find(self.address, port)
        except UserError as problem:
            raise UserError(f"[hosts.{self.name}] address {problem}") from problem


@dataclass(frozen=True, slots=True)
class HostPair:
    """Two hosts, of which one waits at a port and the other one calls."""

    server: Host
    client: Host
    port: int

    def place(self, step: int = 0) -> HostAddress:
        """Where the server waits, at the first of the pair's ports or a later one. Raises UserError."""
        return self.server.at(self.port + step)

    @property
    def is_encrypted(self) -> bool:
        """Whether both have a key."""
        return bool(self.server.key and self.client.key)

    def other(self, name: str) -> Host:
        """The one that is not of that name."""
        return self.client if name == self.server.name else self.server


def is_public_key(text: str) -> bool:
    """Whether these are the 40 characters of a key, as `polyrhythm keys` prints it."""
    return _KEY.fullmatch(text) is not None


def parse_hosts(tables: Any) -> dict[str, Host]:
    """The hosts of a launch file. Raises UserError in a sentence that names table and key."""
    if not isinstance(tables, dict):
        raise UserError(f"hosts is {tables!r}; expected tables like [hosts.robot]")
    hosts = {name: _parse(name, table) for name, table in tables.items()}
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


def _parse(name: str, table: Any) -> Host:
    where = f"[hosts.{name}]"
    if not _NAME.fullmatch(name):
        raise UserError(f"{where} is no host name; expected a-z, 0-9 and _, starting with a letter")
    if not isinstance(table, dict):
        raise UserError(f"{where} is {table!r}; expected a table with the key 'address'")
    for key in table:
        if key not in HOST_KEYS:
            raise UserError(f"{where} unknown key {key!r}; known: {', '.join(HOST_KEYS)}")
    address, port, key = table.get("address", ""), table.get("port", DEFAULT_PORT), table.get("key", "")
    budget_mbit, may_publish = table.get("budget_mbit", 0.0), table.get("may_publish", [])
    if not isinstance(address, str):
        raise UserError(f"{where} address is {address!r}; expected a name or a number like '192.168.1.20' or '[::1]'")
    if address:
        address, written_port = _address(where, address)
        if written_port is not None and table.get("port", written_port) != written_port:
            raise UserError(f"{where} port is {port!r}, but its address ends in {written_port}; leave one of them out")
        port = port if written_port is None else written_port
    if not isinstance(port, int) or isinstance(port, bool) or not 1024 <= port <= 65000:
        raise UserError(f"{where} port is {port!r}; expected a whole number from 1024 to 65000")
    if not isinstance(key, str) or (key and not is_public_key(key)):
        raise UserError(f"{where} key is {key!r}; expected the 40 characters that `polyrhythm keys new {name}` prints")
    if not isinstance(budget_mbit, int | float) or isinstance(budget_mbit, bool) or not 0 <= budget_mbit < 1e6:
        raise UserError(f"{where} budget_mbit is {budget_mbit!r}; expected megabits per second, or 0 for no limit")
    if not isinstance(may_publish, list) or not all(isinstance(topic, str) for topic in may_publish):
        raise UserError(f"{where} may_publish is {may_publish!r}; expected a list of topics")
    return Host(name, address, port, key, float(budget_mbit), tuple(may_publish))


def _address(where: str, text: str) -> tuple[str, int | None]:
    try:
        return split(text)
    except UserError as problem:
        raise UserError(f"{where} address {problem}") from problem


def pair(hosts: Mapping[str, Host], one: str, other: str) -> HostPair:
    """Who of two hosts waits for whom: the first in the file that has an address. Raises UserError where none has."""
    for name in hosts:
        if name in (one, other) and hosts[name].address:
            client = hosts[other if name == one else one]
            place = [host for host in hosts if host != name].index(client.name)
            return HostPair(hosts[name], client, hosts[name].port + PORTS_PER_PAIR * place)
    raise UserError(
        f"[hosts] neither {one} nor {other} has an address; give one of them the address that it is reached at"
    )


def meetings(hosts: Mapping[str, Host]) -> list[HostPair]:
    """Every pair of these hosts. Raises UserError where two of them cannot meet."""
    return [pair(hosts, one, other) for one, other in combinations(hosts, 2)]


def check_pair(meeting: HostPair) -> None:
    """Raise UserError where others than this machine could connect without a key."""
    if meeting.is_encrypted or meeting.place().is_loopback:
        return
    lacking = [host.name for host in (meeting.server, meeting.client) if not host.key]
    have = "has" if len(lacking) == 1 else "have"
    raise UserError(
        f"[hosts.{meeting.server.name}] would wait at {meeting.server.address} for anyone, because {choices(lacking)} "
        f"{have} no key; make one with `polyrhythm keys new {lacking[0]}` and write it into [hosts.{lacking[0]}]"
    )


class GatewayPlan(msgspec.Struct, frozen=True):
    """What crosses between this host and another one, and where they meet."""

    own: Host
    meeting: HostPair
    receives: dict[str, str]  # topic -> "module:Message"
    sources: dict[str, tuple[str, ...]]  # topic -> the nodes that may publish it there; (): any tool
    own_nodes: tuple[str, ...]
    reliable: dict[str, Terms]  # of what is sent
    graph: str  # fingerprint: the same at both ends
