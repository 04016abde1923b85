"""The embedded broker: foreign clients talk through it, the bridge lives on it, and nobody comes in by accident."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bridges.mqtt.broker import broker_at, is_let_in
from bridges.mqtt.broker_node import MqttBroker
from bridges.mqtt.client import Broker, connect
from runtime import Simulation
from runtime.errors import ParameterError, TransportError
from tests.bridges.mqtt.mosquitto import Foreigners, free_port, make_certificate, needs_clients
from tests.bridges.mqtt.test_bridge import GRAPH, ROOT, command, is_online
from tests.support.guard.driving import driver_and_guard
from tests.support.running import Runs, eventually
from tests.support.sentences import pattern, sentence

NODE = """
[nodes.broker]
use    = "bridges.mqtt.broker_node:MqttBroker"
params = {{ port = {port} }}
"""


@pytest.fixture(autouse=True)
def no_login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MQTT_USERNAME", raising=False)
    monkeypatch.delenv("MQTT_PASSWORD", raising=False)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runs]:
    with Runs(monkeypatch) as runs:
        yield runs


def test_what_would_be_open_to_others_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (problem,) = MqttBroker(address="0.0.0.0", port=free_port()).problems()
    assert problem == sentence("bridges.others_reach_it", address="0.0.0.0")
    certificate = {"certificate": str(make_certificate(tmp_path)), "key": str(tmp_path / "key.pem")}
    assert MqttBroker(address="0.0.0.0", port=free_port(), **certificate).problems() == [problem]
    monkeypatch.setenv("MQTT_USERNAME", "fleet")
    monkeypatch.setenv("MQTT_PASSWORD", "right")
    assert MqttBroker(address="0.0.0.0", port=free_port(), **certificate).problems() == []


def test_mistakes_are_sentences() -> None:
    texts = MqttBroker(port=0, certificate="none.pem").problems()
    assert texts == [
        f"certificate is 'none.pem': {sentence('bridges.no_such_file')}",
        sentence("bridges.belong_together"),
        sentence("bridges.wrong_port", port=0),
    ]
    with pytest.raises(ParameterError, match=pattern("bridges.broker_is_real")):
        Simulation(MqttBroker()).run(seconds=1.0)


def test_a_port_that_is_taken_is_said_before_anything_starts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        (problem,) = MqttBroker(port=other.getsockname()[1]).problems()
    assert "Address already in use" in problem
    assert sentence("bridges.broker_is_there") in problem


def test_with_a_login_in_the_environment_nobody_comes_in_without(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_let_in(None, None)
    monkeypatch.setenv("MQTT_USERNAME", "fleet")
    monkeypatch.setenv("MQTT_PASSWORD", "right")
    assert is_let_in("fleet", "right")
    for login in (("fleet", "wrong"), ("fleet", None), (None, "right"), (None, None), ("fleetright", "")):
        assert not is_let_in(*login)


@pytest.mark.processes
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # paho leaves a failed socket to the gc
def test_the_client_is_told_why_it_is_not_let_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQTT_USERNAME", "fleet")
    monkeypatch.setenv("MQTT_PASSWORD", "right")
    certificate, port = str(make_certificate(tmp_path)), free_port()

    async def fault_of(password: str, ca_file: str) -> str:
        broker = Broker("127.0.0.1", port, "fleet", password, True, ca_file)
        try:
            async with connect(broker, identifier="test") as connection:
                await connection.publish("a", b"b", qos=1)
        except TransportError as problem:
            return str(problem)
        return ""

    async def faults() -> list[str]:
        async with broker_at("127.0.0.1", port, certificate, str(tmp_path / "key.pem")):
            return [await fault_of("right", certificate), await fault_of("wrong", certificate), await fault_of("", "")]

    right, wrong, unknown = asyncio.run(faults())
    assert right == ""
    assert "does not let us in" in wrong
    assert "not trusted" in unknown
    gc.collect()


@needs_clients
@pytest.mark.processes
def test_foreign_clients_talk_through_it(runs: Runs, tmp_path: Path) -> None:
    port = free_port()
    file = tmp_path / "broker.toml"
    file.write_text(NODE.format(port=port))
    runs.start(file)
    with Foreigners(port) as clients:
        eventually(clients.answers, "the broker answers")
        early = clients.listen()

        def is_heard() -> bool:
            clients.publish("lab/hello", "1")
            return bool(early.on("lab/hello"))

        eventually(is_heard, "somebody listens")
        clients.publish("lab/lamp", "on", "-r")
        assert early.wait_for("lab/lamp", lambda payload: payload == "on")["retain"] == 0
        late = clients.listen()
        assert late.wait_for("lab/lamp", lambda payload: payload == "on")["retain"] == 1
        clients.publish("lab/lamp", "", "-r")  # takes back what was retained
        clients.publish("lab/end", "1", "-r")
        last = clients.listen()
        last.wait_for("lab/end")
        assert not last.on("lab/lamp")


@needs_clients
@pytest.mark.processes
def test_the_bridge_is_born_dies_and_comes_back_on_it(runs: Runs, tmp_path: Path) -> None:
    port = free_port()
    file = tmp_path / "both.toml"
    file.write_text(driver_and_guard() + (NODE + GRAPH).format(port=port, commands=["say"]))
    run = runs.start(file)

    def states(payloads: list[dict[str, Any]]) -> list[str]:
        return [message["payload"]["state"] for message in payloads]

    with Foreigners(port) as clients:
        eventually(clients.answers, "the broker answers")
        early = clients.listen()
        early.wait_for("/connection", is_online)
        early.wait_for("/state", lambda payload: payload.get("robot_mode") == "ready")
        early.wait_for("/telemetry")
        early.wait_for("homeassistant/sensor/polyrhythm_arm7/battery/config")
        late = clients.listen()
        assert late.wait_for("/state")["retain"] == 1
        clients.publish(f"{ROOT}/cmd/say", command("nonce-say-1", text="Good morning", reply_to=f"{ROOT}/reply/me"))
        reply = early.wait_for("/reply/me")["payload"]
        assert reply["ok"], reply["why"]
        early.wait_for("/event", lambda payload: payload["data"].get("text") == "Good morning")

        os.kill(run.states()["mqtt"].pid, signal.SIGKILL)
        early.wait_for("/connection", lambda payload: payload.get("state") == "CONNECTION_BROKEN")
        eventually(lambda: states(early.on("/connection"))[-1] == "ONLINE", "rebirth")

        os.kill(run.states()["broker"].pid, signal.SIGKILL)
        eventually(lambda: run.states()["broker"].restarts == 1 and clients.answers(), "another broker")
        fresh = clients.listen()
        fresh.wait_for("/connection", is_online)  # a broker that forgot everything is told anew
        fresh.wait_for("/state")
