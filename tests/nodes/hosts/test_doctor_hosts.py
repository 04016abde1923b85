"""The doctor says what a launch file's hosts lack here: keys, addresses, and whether the other end lets this one in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nodes.hosts import doctor as doctor_hosts
from nodes.hosts import keys
from nodes.hosts.doctor import examine_hosts
from nodes.hosts.probe import Answer
from nodes.hosts.sockets import Doors
from runtime.cli import main
from runtime.commands.doctor import examine_launch
from runtime.hosts.hosts_table import Host, pair
from runtime.supervision.diagnostics import Finding
from tests.support.ports import free_ports, needs_ipv6
from tests.support.sentences import sentence


@pytest.fixture(autouse=True)
def key_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(keys.FOLDER_VARIABLE, str(tmp_path / "keys"))
    monkeypatch.setattr(doctor_hosts, "REACH_S", 60.0)  # on a busy machine a handshake may take its time
    return tmp_path / "keys"


def hosts(port: int, **more: str) -> dict[str, Host]:
    """Both with keys, which are here."""
    public = {name: more.get(name) or keys.make(name) for name in ("robot", "desktop")}
    return {
        "robot": Host("robot", more.get("address", "127.0.0.1"), port, public["robot"]),
        "desktop": Host("desktop", key=public["desktop"]),
    }


def of(findings: list[Finding], level: str) -> str:
    return "\n".join(f"{one.subject}: {one.text}" for one in findings if one.level == level)


def test_where_everything_is_there_it_says_so() -> None:
    port = free_ports(2)
    two = hosts(port)
    before = examine_hosts(two)
    assert of(before, "problem") == ""
    assert sentence("runtime.free_to_wait", host="robot", address="127.0.0.1", port=port, other="desktop") in of(
        before, "ok"
    )
    assert "host desktop: robot at 127.0.0.1" in of(before, "note")
    assert sentence("runtime.waits_not_there") in of(before, "note")
    assert examine_hosts({}) == []


@needs_ipv6
@pytest.mark.processes
def test_an_ipv6_address_is_looked_at_alike() -> None:
    port = free_ports(2, "::1")
    two = hosts(port, address="::1")
    assert f"host robot: ::1, ports {port} and the next: free to wait there" in of(examine_hosts(two), "ok")
    with waiting(two):
        assert f"robot at [::1]:{port} lets it in" in of(examine_hosts(two, "desktop"), "ok")
        assert sentence("runtime.in_use_now") in of(examine_hosts(two, "robot"), "note")


def test_an_address_that_stands_for_any_is_no_place_to_call() -> None:
    two = hosts(free_ports(2), address="0.0.0.0")
    assert sentence("runtime.any_address") in of(examine_hosts(two, "desktop"), "problem")
    assert "free to wait there for desktop" in of(examine_hosts(two, "robot"), "ok")


@contextmanager
def waiting(two: dict[str, Host]) -> Iterator[None]:
    doors = Doors(pair(two, "robot", "desktop"), "robot", keys.secret_of("robot"))
    try:
        yield
    finally:
        doors.close()


@pytest.mark.processes
def test_a_host_that_waits_is_asked_whether_it_lets_this_one_in() -> None:
    two = hosts(free_ports(2))
    with waiting(two):
        assert "lets it in" in of(examine_hosts(two, "desktop"), "ok")
        assert sentence("runtime.in_use_now") in of(examine_hosts(two, "robot"), "note")
    other = {**two, "desktop": Host("desktop", key=keys.make("another"))}
    with waiting(other):  # its launch file has another key of the desktop
        assert sentence("runtime.not_let_in", host="desktop") in of(examine_hosts(two, "desktop"), "problem")


def test_keys_that_are_missing_open_to_others_or_of_another_host_are_told(key_folder: Path) -> None:
    two = hosts(free_ports(2))
    (key_folder / "robot.secret").chmod(0o644)
    assert "host robot:" in of(examine_hosts(two), "problem")
    assert f"{sentence('runtime.others_can_read')}{sentence('runtime.chmod')}" in of(examine_hosts(two), "problem")
    (key_folder / "robot.secret").chmod(0o600)
    (key_folder / "desktop.secret").write_text((key_folder / "robot.secret").read_text())
    assert sentence("runtime.another_key") in of(examine_hosts(two), "problem")
    (key_folder / "desktop.secret").unlink()
    assert of(examine_hosts(two), "problem") == ""
    assert sentence("runtime.no_secret_key", host="desktop") in of(examine_hosts(two), "note")
    assert "run `polyrhythm keys new desktop` here" in of(examine_hosts(two, "desktop"), "problem")
    (key_folder / "robot.secret").unlink()
    assert sentence("runtime.key_of_none") in of(examine_hosts(two), "problem")


def test_an_address_that_leads_nowhere_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[Answer] = ["silent", "closed"]
    monkeypatch.setattr(doctor_hosts, "knock", lambda address, key, caller, within_s: answers.pop(0))
    monkeypatch.setattr(doctor_hosts, "why_closed", lambda meeting: "No route to host")
    two = hosts(free_ports(2), address="192.0.2.1")  # nobody has that one
    assert "host robot: 192.0.2.1" in of(examine_hosts(two, "robot"), "problem")
    assert sentence("runtime.cannot_wait_there") in of(examine_hosts(two, "robot"), "problem")
    for why in ("no answer", "No route to host"):
        assert f"robot at 192.0.2.1:{two['robot'].port} cannot be reached: {why}" in of(
            examine_hosts(two, "desktop"), "problem"
        )
    unknown = {**two, "robot": Host("robot", "no-such-name.invalid", key=two["robot"].key)}
    assert "address 'no-such-name.invalid' is not known" in of(examine_hosts(unknown), "problem")


def test_the_command_looks_at_hosts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two = hosts(free_ports(2))
    file = tmp_path / "two.toml"
    text = f"""
        [nodes.talker]
        use = "nodes.hello:Talker"

        [nodes.listener]
        use = "nodes.hello:Listener"
        host = "desktop"

        [hosts.robot]
        address = "127.0.0.1"
        port = {two["robot"].port}
        key = '{two["robot"].key}'

        [hosts.desktop]
        key = '{two["desktop"].key}'
        """
    file.write_text(text)
    assert sentence("runtime.key_is_here", host="desktop") in of(examine_launch(file), "ok")
    assert main(["doctor", str(file), "--host", "kitchen"]) == 1
    assert sentence("runtime.no_such_host", host="kitchen", known="desktop, robot") in capsys.readouterr().out
    file.write_text(text.replace(two["desktop"].key, two["robot"].key))
    assert main(["check", str(file)]) == 2
    assert (
        f"{sentence('runtime.same_key', host='desktop', other='robot')}{sentence('runtime.each_its_own')}"
        in capsys.readouterr().err
    )
    assert main(["doctor", "--host", "robot"]) == 2
