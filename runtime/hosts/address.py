"""`HostAddress`: the address of a host in numbers, from a name, IPv4 or IPv6, with or without a port."""

from __future__ import annotations

import ipaddress
import re
import socket

import msgspec

from runtime.errors import UserError

LOOPBACK = ("127.0.0.1", "::1", "localhost")
"""What people write for this machine alone."""
_BRACKETED = re.compile(r"\[([^\[\]]*)\](?::(\d{1,5}))?")
_LIKE_IPV4 = ipaddress.IPv6Network("::/96")
"""The network of ::1:7447, which was meant as an address and a port."""
_WITH_PORT = re.compile(r"([^:]+):(\d{1,5})")


class HostAddress(msgspec.Struct, frozen=True):
    """A numeric address, with the zone of a link-local one ("fe80::1%eth0"), and a port."""

    ip: str
    port: int

    @property
    def is_ipv6(self) -> bool:
        """Whether it is an IPv6 address."""
        return ":" in self.ip

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return ipaddress.ip_address(self.ip).is_loopback

    @property
    def is_any(self) -> bool:
        """Whether it stands for all addresses of a machine: a server may bind it, and no client can connect to it."""
        return ipaddress.ip_address(self.ip).is_unspecified

    @property
    def endpoint(self) -> str:
        """The address as ZeroMQ writes it; its sockets need `is_ipv6` set to use IPv6."""
        return f"tcp://{written(self.ip, self.port)}"


def written(address: str, port: int) -> str:
    """Address and port as people write them: "10.0.0.7:7410", "[::1]:7410"."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def split(text: str) -> tuple[str, int | None]:
    """The address without brackets, and the port where one is written behind it. Raises UserError for neither.

    "::1", "[::1]" and "[::1]:7447" are IPv6; of "robot.local:7447" the port is what follows the one colon.
    """
    match = _BRACKETED.fullmatch(text) or _WITH_PORT.fullmatch(text)
    address, port = (match[1], match[2]) if match is not None else (text, None)
    if port is not None and int(port) > 65535:
        raise UserError(f"{text!r}: {port} is no port; expected one up to 65535")
    if match is not None and text.startswith("[") and ":" not in address:
        raise UserError(f"{text!r}: only IPv6 addresses stand in brackets, like [::1]")
    if address == "*":
        raise UserError(f"{text!r}: write 0.0.0.0 for any address, or [::] for any IPv6 one as well")
    if not address or any(sign in address for sign in "[]/ ") or (":" in address and not _is_ipv6(address)):
        raise UserError(f"{text!r} is no address; expected one like robot.local, 192.168.1.20 or [fe80::1%eth0]")
    if ":" in address and ipaddress.IPv6Address(address) in _LIKE_IPV4 and address not in ("::", "::1"):
        raise UserError(f"{text!r} is an IPv6 address that nobody has; a port goes behind brackets, like [::1]:7447")
    return address, None if port is None else int(port)


def numeric(address: str) -> str:
    """The numeric address; of a name the IPv4 one where it has one. Raises UserError where the name is not known.

    An IPv4 address written as IPv6 (::ffff:10.0.0.7) is returned as IPv4. So a question whether it is this machine's
    own, or any, gets one answer for both spellings.
    """
    try:
        found = socket.getaddrinfo(address, None, type=socket.SOCK_STREAM)
    except UnicodeError as problem:  # a label of more than 63 letters
        raise UserError(f"{address!r} is no name") from problem
    except OSError as problem:
        raise UserError(f"{address!r} is not known: {problem.strerror}") from problem
    found.sort(key=lambda entry: entry[0] != socket.AF_INET)
    family, _, _, _, where = found[0]
    ip = str(where[0]).partition("%")[0]
    if family == socket.AF_INET:
        return ip
    of_ipv4 = ipaddress.IPv6Address(ip).ipv4_mapped
    if of_ipv4 is not None:
        return str(of_ipv4)
    zone = where[3] if len(where) == 4 else 0
    return f"{ip}%{socket.if_indextoname(int(zone))}" if zone and ipaddress.IPv6Address(ip).is_link_local else ip


def find(address: str, port: int) -> HostAddress:
    """The numeric address and port. Raises UserError where the address is not known."""
    return HostAddress(numeric(address), port)


def _is_ipv6(address: str) -> bool:
    try:
        ipaddress.IPv6Address(address)
    except ValueError:
        return False
    return True
