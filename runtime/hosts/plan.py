"""What a gateway is told at its start, as data."""

from __future__ import annotations

import msgspec

from runtime.hosts.hosts_table import Host, HostPair
from runtime.transport.reliable.tag import Terms


class GatewayPlan(msgspec.Struct, frozen=True):
    """What crosses between this host and another one, and where they meet."""

    own: Host
    meeting: HostPair
    receives: dict[str, str]  # topic -> "module:Message"
    sources: dict[str, tuple[str, ...]]  # topic -> the nodes that may publish it there; (): any tool
    own_nodes: tuple[str, ...]
    reliable: dict[str, Terms]  # of what is sent
    graph: str  # fingerprint: the same at both ends
