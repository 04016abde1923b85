"""`[hosts]`: what is understood, what is refused and how, and who waits for whom at which port."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import zmq

from nodes.msgs import Utterance
from runtime import Node, Publisher, Subscription
from runtime.cli import main
from runtime.commands import run
from runtime.commands.check import check_main
from runtime.errors import UserError
from runtime.hosts.hosts_table import DEFAULT_PORT, Host, HostPair, check_pair, pair, parse_hosts
from runtime.launch.file import Launch, check, load, resolve
from runtime.launch.process_plan import gateway_name, plan
from runtime.qos import HOLD_S, SOON, URGENT
from runtime.transport.reliable.tag import Terms
from tests.support.guard.driving import driver_and_guard
from tests.support.sentences import pattern, sentence

KEY, OTHER_KEY = (zmq.curve_keypair()[0].decode() for _ in range(2))
LAUNCH = f"""
[nodes.talker]
use  = "nodes.hello:Talker"

[nodes.listener]
use  = "nodes.hello:Listener"
host = "desktop"

[hosts.robot]
address = "127.0.0.1"
key     = "{KEY}"

[hosts.desktop]
key = "{OTHER_KEY}"
"""


class Mouth(Node):
    """Says what has to arrive within a second."""

    order = Publisher(Utterance, "order", qos=SOON)
    aside = Publisher(Utterance, "aside", qos=URGENT)


class Ear(Node):
    """Hears one of the two."""

    order = Subscription(Utterance, "order")


def launch(tmp_path: Path, text: str = LAUNCH, host: str = "") -> Launch:
    path = tmp_path / "two.toml"
    path.write_text(text)
    return load(path, host=host)


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({"robot": {}}, "is the only host"),
        ({"Robot": {}, "b": {}}, "[hosts] has the name 'Robot'; expected a-z"),
        ({"robot": 3, "b": {}}, "expected a table [hosts.robot] with address"),
        (
            {"robot": {"adress": "x"}, "b": {}},
            "unknown key 'adress'; did you mean 'address'? known: address, ",
        ),
        ({"robot": {"port": 80}, "b": {}}, "from 1024 to 65000"),
        ({"robot": {"key": "short"}, "b": {}}, sentence("runtime.key_expected")),
        ({"robot": {"budget_mbit": -1}, "b": {}}, "megabits per second"),
        ({"robot": {"may_publish": "utterance"}, "b": {}}, "expected a list of topics"),
        ({"robot": {"key": KEY}, "desktop": {"key": KEY}}, sentence("runtime.same_key", host="desktop", other="robot")),
        (
            {"robot": {"address": "10.0.0.7:7447", "port": 7410}, "b": {}},
            sentence("runtime.two_ports", port=7410, other=7447),
        ),
        ({"robot": {"address": "10.0.0.7:80"}, "b": {}}, f"port is 80; {sentence('runtime.whole_number')} from 1024"),
        ({"robot": {"address": "[::1"}, "b": {}}, "[hosts.robot] address '[::1' is no address; expected one like"),
        ({"robot": {"address": "::1:7447"}, "b": {}}, sentence("runtime.port_behind_brackets")),
        ({"robot": {"address": "*"}, "b": {}}, sentence("runtime.write_zeros")),
        ({"robot": {"address": 7}, "b": {}}, "expected a name or a number like"),
        (5, "expected tables like [hosts.NAME]"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(tables: Any, words: str) -> None:
    with pytest.raises(UserError) as refusal:
        parse_hosts(tables)
    assert words in str(refusal.value)


def test_each_pair_has_two_ports_of_its_own_at_the_first_host_with_an_address() -> None:
    hosts = parse_hosts({"cloud": {}, "robot": {"address": "127.0.0.1"}, "desktop": {"address": "127.0.0.1"}})
    assert pair(hosts, "cloud", "robot") == pair(hosts, "robot", "cloud")
    assert pair(hosts, "cloud", "robot").server.name == "robot"
    assert pair(hosts, "desktop", "robot").server.name == "robot"
    assert pair(hosts, "cloud", "robot").port == DEFAULT_PORT
    assert pair(hosts, "desktop", "robot").port == DEFAULT_PORT + 2
    assert pair(hosts, "desktop", "cloud").server.name == "desktop"


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("[::1]:7447", "::1", 7447),
        ("[::1]", "::1", DEFAULT_PORT),
        ("::1", "::1", DEFAULT_PORT),
        ("robot.local:7447", "robot.local", 7447),
        ("fe80::1%eth0", "fe80::1%eth0", DEFAULT_PORT),
    ],
)
def test_an_address_may_have_brackets_and_a_port(address: str, host: str, port: int) -> None:
    found = parse_hosts({"robot": {"address": address}, "desktop": {}})["robot"]
    assert (found.address, found.port) == (host, port)


def test_two_hosts_without_an_address_cannot_meet() -> None:
    with pytest.raises(UserError, match="neither a nor b has an address"):
        pair(parse_hosts({"a": {}, "b": {}}), "a", "b")


def test_outside_loopback_a_key_is_demanded() -> None:
    open_pair = HostPair(Host("robot", "192.0.2.7"), Host("desktop"), DEFAULT_PORT)
    with pytest.raises(UserError, match="polyrhythm keys new robot"):
        check_pair(open_pair, moves=False)
    for address in ("0.0.0.0", "::", "0", "::ffff:0.0.0.0", "::ffff:192.0.2.7", "fd00::7", "fe80::7"):
        with pytest.raises(UserError, match=r"would wait at .* for anyone, because desktop, robot have no key"):
            check_pair(HostPair(Host("robot", address), Host("desktop"), DEFAULT_PORT), moves=False)
    for address in ("127.0.0.1", "127.0.0.2", "::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1", "localhost"):
        here = HostPair(Host("robot", address), Host("desktop"), DEFAULT_PORT)
        check_pair(here, moves=False)
        with pytest.raises(UserError, match=pattern("runtime.open_to_accounts")):
            check_pair(here, moves=True)
    check_pair(HostPair(Host("robot", "192.0.2.7", key=KEY), Host("desktop", key=KEY), DEFAULT_PORT), moves=True)


def test_on_one_machine_a_graph_with_a_guard_needs_keys_unless_it_has_one_user(tmp_path: Path) -> None:
    robot = f"""
{driver_and_guard(guard="")}
[nodes.policy]
use = "tests.support.graph_nodes:Still"
host = "desktop"
[hosts.robot]
address = "127.0.0.1"
[hosts.desktop]
"""
    file = tmp_path / "two.toml"
    file.write_text(robot)
    assert load(file).moves
    with pytest.raises(UserError, match=pattern("runtime.open_to_accounts")):
        check_main([str(file)])
    file.write_text("[run]\none_user = true\n" + robot)
    assert not load(file).moves
    assert check_main([str(file)]) == 0


def test_a_node_without_a_host_is_on_the_first_one(tmp_path: Path) -> None:
    both = launch(tmp_path)
    assert [spec.name for spec in both.on("robot")] == ["talker"]
    assert [spec.name for spec in both.on("desktop")] == ["listener"]
    assert set(both.processes) == {"talker", "listener"}
    assert set(launch(tmp_path, host="desktop").processes) == {"listener"}


def test_an_unknown_host_is_named_with_those_that_are_known(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="known hosts: desktop, robot"):
        launch(tmp_path, LAUNCH.replace('host = "desktop"', 'host = "laptop"'))
    with pytest.raises(UserError, match=pattern("runtime.no_such_host", host="moon", known="desktop, robot")):
        launch(tmp_path, host="moon")
    with pytest.raises(UserError, match="one host"):
        check(launch(tmp_path, LAUNCH.replace("use  =", 'process = "one"\nuse =')))


def test_check_tells_who_waits_where_for_whom(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "two.toml"
    path.write_text(LAUNCH.replace('"127.0.0.1"', '"[::1]:7447"'))
    assert main(["check", str(path)]) == 0
    told = "host robot (1 node) waits at ::1, ports 7447 and 7448, for host desktop (1 node); encrypted"
    assert told in capsys.readouterr().out
    path.write_text(re.sub(r"key += .*", "", LAUNCH).replace('"127.0.0.1"', '"[::]"'))
    assert main(["check", str(path)]) == 2
    assert "[hosts.robot] would wait at :: for anyone, because desktop, robot have no key" in capsys.readouterr().err


def test_a_gateway_sends_what_the_other_host_hears_and_takes_what_its_nodes_publish(tmp_path: Path) -> None:
    robot = plan(launch(tmp_path, host="robot"))
    desktop = plan(launch(tmp_path, host="desktop"))
    sends, receives = robot[gateway_name("desktop")], desktop[gateway_name("robot")]
    assert sends.gateway is not None
    assert receives.gateway is not None
    assert "beat" in sends.hears
    assert "beat" not in receives.hears
    assert receives.gateway.sources["beat"] == ("talker",)
    assert "beat" not in sends.gateway.receives  # nothing on the desktop may say it
    assert "health/listener" in sends.gateway.receives
    assert "health/talker" in sends.hears
    assert robot["talker"].listeners["beat"] == 1
    assert desktop["listener"].peers == (gateway_name("robot"),)
    assert sends.gateway.graph == receives.gateway.graph


def test_what_is_reliable_and_crosses_is_reliable_on_the_link(tmp_path: Path) -> None:
    text = LAUNCH.replace("nodes.hello:Talker", "tests.runtime.hosts.test_hosts_table:Mouth")
    text = text.replace("nodes.hello:Listener", "tests.runtime.hosts.test_hosts_table:Ear")
    sends = plan(launch(tmp_path, text, host="robot"))[gateway_name("desktop")].gateway
    receives = plan(launch(tmp_path, text, host="desktop"))[gateway_name("robot")].gateway
    assert sends is not None
    assert receives is not None
    assert sends.reliable == {"order": Terms(("desktop",), 1.0, HOLD_S)}
    assert receives.reliable == {}


def test_what_the_tools_of_a_host_may_publish_is_listed(tmp_path: Path) -> None:
    text = LAUNCH.replace("[hosts.desktop]", '[hosts.desktop]\nmay_publish = ["beat"]')
    gateway = plan(launch(tmp_path, text, host="robot"))[gateway_name("desktop")].gateway
    assert gateway is not None
    assert "beat" not in gateway.receives


def test_the_environment_of_another_host_is_not_needed_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("START_AT", raising=False)
    text = LAUNCH.replace(
        'use  = "nodes.hello:Talker"', 'use = "nodes.hello:Talker"\nparams = { start = "${START_AT}" }'
    )
    with pytest.raises(UserError, match="START_AT"):
        check(launch(tmp_path, text, host="robot"))
    check(launch(tmp_path, text, host="desktop"))


def test_each_host_may_record_for_itself(tmp_path: Path) -> None:
    path = tmp_path / "two.toml"
    path.write_text(LAUNCH)
    recorders = [{}, {"recorder_robot": "robot"}, {"recorder_robot": "robot", "recorder_desktop": "desktop"}]
    graphs = set()
    for own in recorders:
        tables = tomllib.loads(LAUNCH)
        for name, host in own.items():
            tables["nodes"][name] = {"use": "nodes.recording.recorder:Recorder", "host": host}
        found = resolve(tables, path=path, host="robot")
        check(found)
        gateway = plan(found)[gateway_name("desktop")].gateway
        assert gateway is not None
        graphs.add(gateway.graph)
    assert len(graphs) == 1


@pytest.mark.parametrize(
    ("host", "recorded_at", "warnings"), [("robot", "", 1), ("desktop", "", 1), ("robot", "robot", 0), ("", "", 0)]
)
def test_who_records_on_one_host_is_told_once_what_the_recording_lacks(
    host: str, recorded_at: str, warnings: int,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    def enough(_: Launch) -> None:
        raise UserError("that is enough")

    path = tmp_path / "two.toml"
    own = f'\n[nodes.box]\nuse = "nodes.recording.recorder:Recorder"\nhost = "{recorded_at}"\n'
    path.write_text(LAUNCH + (own if recorded_at else ""))
    monkeypatch.setattr(run, "check", enough)
    asked = ["run", str(path), "--record", str(tmp_path / "one.mcap"), *(["--host", host] if host else [])]
    assert main(asked) == 2
    other = "desktop" if host == "robot" else "robot"
    told = sentence("runtime.recorded_apart", host=host, other=other)
    assert capsys.readouterr().err.count(told) == warnings
