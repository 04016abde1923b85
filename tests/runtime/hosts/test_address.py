"""Addresses as people write them, in numbers: names, IPv4, IPv6, zones, and every spelling of loopback and of any."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from runtime.errors import UserError
from runtime.hosts.address import HostAddress, find, numeric, split, written
from tests.support.sentences import sentence


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("192.168.1.20", ("192.168.1.20", None)),
        ("192.168.1.20:7447", ("192.168.1.20", 7447)),
        ("robot.local", ("robot.local", None)),
        ("robot.local:7447", ("robot.local", 7447)),
        ("::1", ("::1", None)),
        ("[::1]", ("::1", None)),
        ("[::1]:7447", ("::1", 7447)),
        ("[fe80::1%eth0]:7447", ("fe80::1%eth0", 7447)),
        ("2001:db8::7", ("2001:db8::7", None)),
    ],
)
def test_an_address_may_have_brackets_and_a_port(text: str, parts: tuple[str, int | None]) -> None:
    assert split(text) == parts


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", sentence("runtime.no_address")),
        ("[::1", "is no address"),
        ("[::1]7447", "is no address"),
        ("a:b:c", "is no address"),
        ("tcp://10.0.0.1", "is no address"),
        ("10.0.0.1/24", "is no address"),
        ("my robot", "is no address"),
        ("[10.0.0.1]:7447", sentence("runtime.brackets_are_for_ipv6")),
        ("[]:7447", sentence("runtime.brackets_are_for_ipv6")),
        ("robot:99999", "99999 is no port"),
        ("::1:7447", sentence("runtime.port_behind_brackets")),
        ("*", sentence("runtime.write_zeros")),
        ("*:7447", sentence("runtime.write_zeros")),
    ],
)
def test_what_is_no_address_is_told_in_a_sentence(text: str, words: str) -> None:
    with pytest.raises(UserError) as refusal:
        split(text)
    assert words in str(refusal.value)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.2", "127.1", "::1", "::0001", "::ffff:127.0.0.1"])
def test_every_spelling_of_this_machine_is_loopback(address: str) -> None:
    place = find(address, 7447)
    assert place.is_loopback
    assert not place.is_any


@pytest.mark.parametrize("address", ["0.0.0.0", "0", "::", "0:0:0:0:0:0:0:0", "::ffff:0.0.0.0"])
def test_every_spelling_of_any_address_is_any_and_no_loopback(address: str) -> None:
    place = find(address, 7447)
    assert place.is_any
    assert not place.is_loopback


@pytest.mark.parametrize("address", ["192.0.2.7", "fd00::7", "2001:db8::7", "::ffff:192.0.2.7", "224.0.0.1", "ff02::1"])
def test_everything_else_is_neither(address: str) -> None:
    place = find(address, 7447)
    assert not place.is_any
    assert not place.is_loopback


def test_an_ipv4_address_that_is_written_as_ipv6_is_that_ipv4_address() -> None:
    assert numeric("::ffff:192.0.2.7") == "192.0.2.7"
    assert not find("::ffff:192.0.2.7", 1).is_ipv6


def test_endpoints_have_brackets_around_ipv6() -> None:
    assert HostAddress("::1", 7447).endpoint == "tcp://[::1]:7447"
    assert HostAddress("fe80::1%eth0", 7447).endpoint == "tcp://[fe80::1%eth0]:7447"
    assert HostAddress("10.0.0.7", 7447).endpoint == "tcp://10.0.0.7:7447"
    assert written("robot.local", 7447) == "robot.local:7447"


def answers(*entries: tuple[int, tuple[Any, ...]]) -> Any:
    """A name server that knows these."""
    return lambda *_, **__: [(family, socket.SOCK_STREAM, 6, "", where) for family, where in entries]


IPV4 = (socket.AF_INET, ("192.0.2.7", 0))
IPV6 = (socket.AF_INET6, ("2001:db8::7", 0, 0, 0))


def test_a_name_leads_to_its_ipv4_address_where_it_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", answers(IPV6, IPV4))
    assert numeric("robot.local") == "192.0.2.7"
    monkeypatch.setattr(socket, "getaddrinfo", answers(IPV6))
    assert numeric("robot.local") == "2001:db8::7"


def test_a_name_that_leads_to_an_outside_address_is_no_loopback_whatever_it_is_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", answers(IPV4))
    assert not find("localhost", 7447).is_loopback


def test_a_zone_stays_with_an_address_of_one_link_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "if_indextoname", lambda index: f"eth{index}")
    monkeypatch.setattr(socket, "getaddrinfo", answers((socket.AF_INET6, ("fe80::7", 0, 0, 2))))
    place = find("fe80::7%eth2", 7447)
    assert (place.ip, place.is_loopback, place.is_any) == ("fe80::7%eth2", False, False)
    for ip in ("::1", "::"):
        monkeypatch.setattr(socket, "getaddrinfo", answers((socket.AF_INET6, (f"{ip}%eth2", 0, 0, 2))))
        assert numeric(f"{ip}%eth2") == ip


@pytest.mark.parametrize("address", ["no-such-name.invalid", "fe80::1%no-such-card"])
def test_a_name_that_nobody_knows_is_a_sentence(address: str) -> None:
    with pytest.raises(UserError, match="is not known: "):
        numeric(address)


def test_a_name_that_cannot_be_one_is_a_sentence() -> None:
    with pytest.raises(UserError, match="is no name"):
        numeric("x" * 70)
