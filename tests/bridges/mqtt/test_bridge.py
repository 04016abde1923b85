"""The robot on MQTT: birth, state and will, foreign clients, and nothing stale, retained or replayed applied."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bridges.mqtt.allowed_commands import LONGEST_LIFE_MS, CommandReply, Gatekeeper
from bridges.mqtt.bridge import MqttBridge
from bridges.mqtt.client import Broker, Incoming, connect, lets_anyone_in
from bridges.mqtt.command import main as clear
from bridges.mqtt.payloads import Topics, discovery_documents, state_document
from nodes.msgs import EStop, Interrupt, RobotService, RobotStatus, Utterance
from runtime import Simulation
from runtime.clock import wall_time_ns
from runtime.errors import ParameterError, TransportError
from runtime.run_facts import RunFacts
from runtime.supervision.registry import FoundRun
from tests.bridges.mqtt.mosquitto import Listener, Mosquitto, free_port, needs_mosquitto
from tests.support.guard.driving import driver_and_guard
from tests.support.running import Runs, eventually
from tests.support.sentences import pattern, sentence

ROOT = "polyrhythm/v1/arm7"


def command(nonce: str, *, life_ms: int = 10_000, **more: object) -> dict[str, Any]:
    return {"id": nonce, "nonce": nonce, "expires_ms": wall_time_ns() // 1_000_000 + life_ms, **more}


def judge(
    gate: Gatekeeper, verb: str, document: dict[str, Any] | bytes, *, is_retained: bool = False, now_ms: int = 0
) -> str:
    payload = document if isinstance(document, bytes) else json.dumps(document).encode()
    taken, reply = gate.judge(verb, payload, is_retained=is_retained, now_ms=now_ms)
    assert (taken is not None) is reply.ok
    return reply.why


@pytest.fixture
def gate() -> Gatekeeper:
    return Gatekeeper("arm7", ("say", "stop", "resume"), f"{ROOT}/reply/")


FRESH: dict[str, Any] = {"id": "1", "nonce": "12345678", "expires_ms": 5000}


@pytest.mark.parametrize(
    ("verb", "change", "why"),
    [
        ("resume", {"expires_ms": 0}, "expired 0.0 s ago"),
        ("resume", {"expires_ms": -3_600_000}, sentence("bridges.has_expired", seconds="3600.0")),
        ("resume", {"expires_ms": LONGEST_LIFE_MS + 1}, "at most 30 s are accepted"),
        ("resume", {"robot": "arm8"}, "it is for 'arm8'; this is 'arm7'"),
        ("resume", {"nonce": "short"}, "not a command"),
        ("resume", {"speed": 3}, "not a command: Object contains unknown field"),
        ("resume", {"text": "now"}, "resume takes no text"),
        ("resume", {"reply_to": "home/lights/set"}, f"{sentence('bridges.topic_expected')} polyrhythm/v1/arm7/reply/"),
        ("resume", {"reply_to": f"{ROOT}/reply/#"}, sentence("bridges.topic_expected")),
        ("say", {}, "say needs a text"),
        ("home", {}, sentence("bridges.verb_not_allowed", verb="home", allowed="say, stop, resume")),
        ("fly", {}, "'fly' is not allowed here"),
    ],
)
def test_what_is_not_fresh_known_and_ours_is_refused(
    gate: Gatekeeper, verb: str, change: dict[str, Any], why: str
) -> None:
    assert why in judge(gate, verb, FRESH | change)
    assert judge(gate, "resume", FRESH) == ""  # a refused nonce is not used up


def test_a_command_counts_once(gate: Gatekeeper) -> None:
    assert judge(gate, "resume", FRESH) == ""
    assert judge(gate, "resume", FRESH) == sentence("bridges.nonce_was_used")
    assert "expired" in judge(gate, "resume", FRESH, now_ms=5000)


@pytest.mark.parametrize(
    "payload",
    [b"", b"PRESS", b"\xff\xfe", b"[]", b"{}", b"null", b"[" * 4000, b"x" * 5000, b'{"nonce": 7, "reply_to": []}']
    + [json.dumps(FRESH | change).encode() for change in (
        {"expires_ms": -3_600_000}, {"expires_ms": 10**15}, {"expires_ms": None}, {"robot": "arm8"}, {"text": "now"},
        {"speed": 3}, {"nonce": "short"}, {"reply_to": "home/lights/set"},
    )],
)  # fmt: skip
def test_a_stop_is_obeyed_whatever_its_clock_and_form(gate: Gatekeeper, payload: bytes) -> None:
    assert judge(gate, "stop", payload, now_ms=10**13) == ""
    assert "retained" in judge(gate, "stop", payload, is_retained=True)


def test_a_stop_counts_once_by_its_nonce_and_each_time_without(gate: Gatekeeper) -> None:
    assert judge(gate, "stop", FRESH) == ""
    assert judge(gate, "stop", FRESH, now_ms=10**13) == sentence("bridges.nonce_was_used")
    commands = [gate.judge("stop", b"PRESS", is_retained=False, now_ms=0)[0] for _ in range(2)]
    assert len({command.nonce for command in commands if command is not None}) == 2


def test_a_stop_is_taken_however_much_else_has_come(gate: Gatekeeper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridges.mqtt.allowed_commands.MOST_NONCES", 3)
    for number in range(3):
        assert judge(gate, "say", FRESH | {"nonce": f"of-a-flood-{number}", "text": "x"}) == ""
    assert "more than 3 commands" in judge(gate, "say", FRESH | {"nonce": "of-a-flood-3", "text": "x"})
    assert judge(gate, "stop", FRESH) == ""


def test_no_command_that_waits_is_dropped_for_a_newer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridges.mqtt.bridge.MOST_WAITING", 2)
    bridge = MqttBridge(commands=("say", "estop"))
    root = "polyrhythm/v1/robot"

    def take(verb: str, nonce: str, **more: Any) -> CommandReply:
        payload = json.dumps(command(nonce, reply_to=f"{root}/reply/me", **more)).encode()
        reply, topic = bridge.take(Incoming(f"{root}/cmd/{verb}", payload, False))
        assert topic == f"{root}/reply/me"
        return reply

    replies = [
        take("estop", "waits-nonce-1"),
        take("say", "waits-nonce-2", text="x"),
        take("say", "waits-nonce-3", text="x"),
        take("estop", "waits-nonce-4"),
    ]
    assert [reply.ok for reply in replies] == [True, True, False, True]
    assert replies[2].why == "more than 2 commands at once"
    assert [verb for verb, _ in bridge.accepted] == ["estop", "say", "estop"]


def test_a_retained_command_is_refused(gate: Gatekeeper) -> None:
    assert "retained" in judge(gate, "stop", FRESH, is_retained=True)


@pytest.mark.parametrize("payload", [b"", b"stop", b"\xff\xfe", b"[]", b"{}", b"[" * 4000, b"x" * 5000])
def test_what_is_no_command_is_refused_in_words(gate: Gatekeeper, payload: bytes) -> None:
    assert judge(gate, "resume", payload)


def test_read_only_is_the_default() -> None:
    bridge = MqttBridge()
    reply, _ = bridge.take(Incoming("polyrhythm/v1/robot/cmd/stop", json.dumps(command("n" * 8)).encode(), False))
    assert reply.why == sentence("bridges.verb_not_allowed", verb="stop", allowed=sentence("bridges.read_only"))
    assert not bridge.accepted


def test_accepted_commands_become_messages_of_the_graph() -> None:
    bridge = MqttBridge(commands=("say", "stop", "estop", "runstop", "home"))
    published: list[object] = []
    for port in (bridge.utterance, bridge.interrupt, bridge.estop, bridge.service, bridge.button):
        port.sink = lambda _, message, __: published.append(message)
    for verb in bridge.commands:
        more: dict[str, Any] = {"text": "hello"} if verb == "say" else {}
        payload = json.dumps(command(f"nonce-{verb}", **more)).encode()
        assert bridge.take(Incoming(f"polyrhythm/v1/robot/cmd/{verb}", payload, False))[0].ok
    bridge.apply()
    published = [
        RobotService(id=one.id, verb=one.verb, by=one.by) if isinstance(one, RobotService) else one for one in published
    ]
    assert published == [
        Utterance(speaker="mqtt", text="hello"),
        Interrupt(id="mqtt-nonce-stop-nonce-stop", depth="stop", text="stop by MQTT", by="mqtt"),
        EStop(source="mqtt", is_pressed=True, why="by MQTT (nonce-estop)"),
        EStop(source="mqtt", is_pressed=False, why="by MQTT (nonce-estop)"),
        RobotService(id="mqtt-nonce-runstop-nonce-runstop", verb="runstop", by="mqtt"),
        RobotService(id="mqtt-nonce-home-nonce-home", verb="home", by="mqtt"),
    ]


def test_discovery_has_an_emergency_stop_only_where_it_is_allowed() -> None:
    topics = Topics("polyrhythm", "arm7")
    assert [topic.split("/")[3] for topic in discovery_documents("homeassistant", topics, ())] == [
        "battery",
        "mode",
        "said",
    ]
    button = json.loads(
        discovery_documents("homeassistant", topics, ("estop",))["homeassistant/button/polyrhythm_arm7/estop/config"]
    )
    assert button["command_topic"] == f"{ROOT}/cmd/estop"
    assert button["availability_topic"] == f"{ROOT}/connection"
    assert button["unique_id"] == "polyrhythm_arm7_estop"
    assert button["payload_press"] == "PRESS"


def test_whatever_moves_or_lifts_needs_a_login_on_loopback_too_unless_the_machine_has_one_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("MQTT_USERNAME", raising=False)
    monkeypatch.delenv("MQTT_PASSWORD", raising=False)
    assert MqttBridge(commands=("stop", "estop", "runstop")).problems() == []
    for verb in ("say", "resume", "release", "home", "stow"):
        bridge = MqttBridge(commands=("stop", verb))
        (problem,) = bridge.problems()
        assert problem.startswith(sentence("bridges.login_on_loopback", verb=verb))
        bridge.run_info = RunFacts(one_user=True)
        assert bridge.problems() == []
    monkeypatch.setenv("MQTT_USERNAME", "robot")
    monkeypatch.setenv("MQTT_PASSWORD", "secret")
    assert MqttBridge(commands=("resume",)).problems() == []


def test_of_a_broker_that_lets_anybody_in_only_what_stops_is_taken() -> None:
    bridge = MqttBridge(commands=("stop", "resume"))
    bridge.note_login(False)
    for verb, is_taken in (("stop", True), ("resume", False)):
        payload = json.dumps(command(f"nonce-{verb}")).encode()
        assert bridge.take(Incoming(f"polyrhythm/v1/robot/cmd/{verb}", payload, False))[0].ok is is_taken
    bridge.note_login(True)
    payload = json.dumps(command("nonce-again")).encode()
    assert bridge.take(Incoming("polyrhythm/v1/robot/cmd/resume", payload, False))[0].ok


@needs_mosquitto
@pytest.mark.processes
@pytest.mark.parametrize("has_login", [True, False])
def test_whether_a_broker_lets_anybody_in_is_asked_of_it(tmp_path: Path, has_login: bool) -> None:
    login = {"robot": "secret"} if has_login else {}
    with Mosquitto(tmp_path, users=login) as broker:
        place = Broker("127.0.0.1", broker.port, *next(iter(login.items()), ("", "")))
        assert asyncio.run(lets_anyone_in(place)) is not has_login


def test_what_would_be_open_to_the_network_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MQTT_USERNAME", raising=False)
    monkeypatch.delenv("MQTT_PASSWORD", raising=False)
    assert MqttBridge(address="broker.local").problems() == []
    assert "need tls = true" in MqttBridge(address="broker.local", commands=("stop",)).problems()[0]
    monkeypatch.setenv("MQTT_PASSWORD", "secret")
    (problem,) = MqttBridge(address="broker.local").problems()
    assert "in the clear" in problem
    assert "secret" not in problem
    assert MqttBridge(address="broker.local", tls=True, commands=("stop",)).problems() == []
    texts = MqttBridge(site="a/b", robot="#", port=0, commands=("fly",), ca_file="none.pem").problems()
    assert len(texts) == 5


def test_virtual_time_has_no_broker() -> None:
    with pytest.raises(ParameterError, match=pattern("bridges.broker_is_real")):
        Simulation(MqttBridge()).run(seconds=1.0)


# with a real broker


async def fault_of(
    port: int, *, username: str = "", password: str = "", is_tls: bool = False, ca_file: str = ""
) -> str:
    """What the client says about a broker; empty where it lets us in."""
    broker = Broker("127.0.0.1", port, username, password, is_tls, ca_file)
    try:
        async with connect(broker, identifier="test") as connection:
            await connection.publish("a", b"b", qos=1)
    except TransportError as problem:
        return str(problem)
    return ""


@needs_mosquitto
@pytest.mark.processes
def test_a_broker_that_cannot_be_had_is_a_sentence_without_the_password(tmp_path: Path) -> None:
    assert "cannot be reached" in asyncio.run(fault_of(free_port()))
    with Mosquitto(tmp_path, users={"fleet": "right"}) as broker:
        fault = asyncio.run(fault_of(broker.port, username="fleet", password="hunter2"))
        assert "does not let us in" in fault
        assert "MQTT_PASSWORD" in fault
        assert "hunter2" not in fault
        assert asyncio.run(fault_of(broker.port, username="fleet", password="right")) == ""


@needs_mosquitto
@pytest.mark.processes
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # paho leaves a failed socket to the gc
def test_tls_trusts_the_named_authority_and_no_other(tmp_path: Path) -> None:
    with Mosquitto(tmp_path, is_tls=True) as broker:
        assert asyncio.run(fault_of(broker.port, is_tls=True, ca_file=str(broker.ca_file))) == ""
        assert "not trusted" in asyncio.run(fault_of(broker.port, is_tls=True))
    gc.collect()


GRAPH = """
[run]
one_user = true

[nodes.policy]
use = "tests.support.graph_nodes:Still"

[nodes.mqtt]
use     = "bridges.mqtt.bridge:MqttBridge"
params  = {{ port = {port}, robot = "arm7", commands = {commands}, discovery = "homeassistant" }}
"""


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runs]:
    monkeypatch.delenv("MQTT_USERNAME", raising=False)
    monkeypatch.delenv("MQTT_PASSWORD", raising=False)
    with Runs(monkeypatch) as runs:
        yield runs


def start(
    runs: Runs,
    folder: Path,
    port: int,
    commands: tuple[str, ...] = ("say", "stop", "estop", "resume"),
    log: Path = Path(os.devnull),
) -> FoundRun:
    file = folder / "mqtt.toml"
    file.write_text(driver_and_guard() + GRAPH.format(port=port, commands=list(commands)))
    return runs.start(file, log)


def is_online(payload: dict[str, Any]) -> bool:
    return payload.get("state") == "ONLINE"


def is_online_last(listener: Listener, least: int) -> bool:
    told = listener.on("/connection")
    return len(told) > least and isinstance(told[-1]["payload"], dict) and is_online(told[-1]["payload"])


@needs_mosquitto
@pytest.mark.processes
def test_birth_state_and_will_as_foreign_clients_see_them(runs: Runs, tmp_path: Path) -> None:
    with Mosquitto(tmp_path) as broker:
        early = broker.listen()
        run = start(runs, tmp_path, broker.port)
        early.wait_for("/connection", is_online)
        told = early.wait_for("/state", lambda payload: payload.get("robot_mode") == "ready" and "mode" in payload)
        state = told["payload"]
        assert state["mode"] in ("armed", "moving", "holding"), state["reason"]
        assert state["battery_v"] == 12.6
        telemetry = early.wait_for("/telemetry")
        assert telemetry["payload"]["joints"]["lift"] == 0.3
        assert telemetry["retain"] == 0
        early.wait_for("homeassistant/button/polyrhythm_arm7/estop/config")
        eventually(lambda: len(early.on("/telemetry")) > 12, "telemetry goes on")
        stamps = [message["payload"]["timestamp_ms"] for message in early.on("/telemetry")]
        assert (len(stamps) - 1) / (stamps[-1] - stamps[0]) * 1000 <= 5.2

        late = broker.listen()  # who comes later is told what is true
        assert late.wait_for("/connection", is_online)["retain"] == 1
        assert late.wait_for("/state")["retain"] == 1

        os.kill(run.states()["mqtt"].pid, signal.SIGKILL)
        early.wait_for("/connection", lambda payload: payload.get("state") == "CONNECTION_BROKEN")
        eventually(lambda: len([one for one in early.on("/connection") if is_online(one["payload"])]) == 2, "rebirth")


@needs_mosquitto
@pytest.mark.processes
def test_commands_of_foreign_clients_are_applied_once_and_answered(runs: Runs, tmp_path: Path) -> None:
    with Mosquitto(tmp_path) as broker:
        broker.publish(f"{ROOT}/cmd/say", command("retained-1", life_ms=25_000, text="I was retained"), "-r")
        listener = broker.listen()
        start(runs, tmp_path, broker.port)
        listener.wait_for("/connection", is_online)
        reply = f"{ROOT}/reply/tester"
        stop = command("nonce-stop-1", reply_to=reply)
        broker.publish(f"{ROOT}/cmd/stop", stop)
        broker.publish(f"{ROOT}/cmd/stop", stop)
        broker.publish(f"{ROOT}/cmd/say", command("nonce-old-1", life_ms=-1000, reply_to=reply, text="I am stale"))
        broker.publish(f"{ROOT}/cmd/home", command("nonce-home", reply_to=reply))
        broker.publish(f"{ROOT}/cmd/home", "{ not json")
        broker.publish(f"{ROOT}/cmd/say", command("nonce-say-1", reply_to=reply, text="Good morning"))
        listener.wait_for("/reply/tester", lambda payload: payload["id"] == "nonce-say-1")
        answers = [(one["payload"]["id"], one["payload"]["ok"]) for one in listener.on("/reply/tester")]
        assert answers == [
            ("nonce-stop-1", True),
            ("nonce-stop-1", False),
            ("nonce-old-1", False),
            ("nonce-home", False),
            ("nonce-say-1", True),
        ]
        listener.wait_for("/state", lambda payload: payload.get("mode") == "stopped")
        listener.wait_for("/event", lambda payload: payload["topic"] == "heard")
        events = [one["payload"]["data"] for one in listener.on("/event")]
        assert [event["text"] for event in events if "speaker" in event] == ["Good morning"]
        assert len([event for event in events if event.get("by") == "mqtt"]) == 1
        broker.publish(f"{ROOT}/cmd/estop", "PRESS")  # as Home Assistant's button does
        listener.wait_for("/state", lambda payload: "by MQTT (unnamed)" in payload.get("estop", ""))
        pressed = {"id": "unnamed", "verb": "estop", "ok": True, "why": ""}
        listener.wait_for("/state", lambda payload: payload.get("last_command") == pressed)


@needs_mosquitto
@pytest.mark.processes
def test_an_old_will_that_comes_late_does_not_overwrite_who_lives(runs: Runs, tmp_path: Path) -> None:
    with Mosquitto(tmp_path) as broker:
        listener = broker.listen()
        start(runs, tmp_path, broker.port)
        listener.wait_for("/connection", is_online)
        for broken in ('{"state": "CONNECTION_BROKEN"}', ""):
            told = len(listener.on("/connection"))
            broker.publish(f"{ROOT}/connection", broken or "x", "-r")
            eventually(partial(is_online_last, listener, told + 1), "it is online again")


@needs_mosquitto
@pytest.mark.processes
@pytest.mark.parametrize(
    ("access", "words"),
    [
        (f"topic readwrite {ROOT}/connection\ntopic write {ROOT}/#\n", "did not come back"),
        (f"topic readwrite {ROOT}/#\n", ""),
    ],
)
def test_a_broker_that_grants_and_never_delivers_is_told(access: str, words: str, runs: Runs, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with Mosquitto(tmp_path, access=access) as broker:
        start(runs, tmp_path, broker.port, log=log)
        eventually(lambda: "connected; topics below" in log.read_text(), "it is connected")
        if words:
            eventually(lambda: words in log.read_text(), "the log says that nothing is heard")
            return
        broker.publish(f"{ROOT}/cmd/stop", "PRESS")
        eventually(lambda: "stop by MQTT" in log.read_text(), "the stop is heard")
        assert "did not come back" not in log.read_text()


@needs_mosquitto
@pytest.mark.processes
def test_what_is_retained_of_a_robot_is_cleared_by_a_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Mosquitto(tmp_path) as broker:
        broker.publish(f"{ROOT}/state", "{}", "-r")
        broker.publish("homeassistant/button/polyrhythm_arm7/estop/config", "{}", "-r")
        broker.publish("polyrhythm/v1/arm8/state", "{}", "-r")
        assert clear(["clear", "arm7", "--port", str(broker.port), "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["cleared"] == ["homeassistant/button/polyrhythm_arm7/estop/config", f"{ROOT}/state"]
        late = broker.listen()
        late.wait_for("arm8/state")
        assert not late.on("arm7/state")
        port = str(broker.port)
    assert clear(["clear", "arm7", "--port", port]) == 1
    assert clear(["clear", "ar/m7"]) == 2


@needs_mosquitto
@pytest.mark.processes
def test_a_broker_that_comes_late_and_goes_away_is_found_again(runs: Runs, tmp_path: Path) -> None:
    broker = Mosquitto(tmp_path, free_port())
    run = start(runs, tmp_path, broker.port)
    with broker:
        first = broker.listen()
        first.wait_for("/connection", is_online)
        pid = run.states()["mqtt"].pid
        broker.stop()
        broker.start()
        broker.listen().wait_for("/connection", is_online)
        assert run.states()["mqtt"].pid == pid  # the bridge came back, not its process


@needs_mosquitto
@pytest.mark.processes
def test_a_frozen_bridge_is_told_in_the_log_and_to_the_broker_and_comes_back(runs: Runs, tmp_path: Path) -> None:
    with Mosquitto(tmp_path) as broker:
        listener = broker.listen()
        log = tmp_path / "log"
        run = start(runs, tmp_path, broker.port, log=log)
        listener.wait_for("/connection", is_online)
        pid = run.states()["mqtt"].pid
        os.kill(pid, signal.SIGSTOP)
        told = f"mqtt (pid {pid}) is killed: no thread of it ran for 2 s"
        eventually(lambda: told in log.read_text(), "the log says so")
        listener.wait_for("/connection", lambda payload: payload.get("state") == "CONNECTION_BROKEN")
        eventually(
            lambda: len([one for one in listener.on("/connection") if is_online(one["payload"])]) == 2, "rebirth"
        )
        assert log.read_text().count("is killed: no thread of it ran") == 1


@needs_mosquitto
@pytest.mark.processes
def test_a_clean_end_says_offline_and_a_wrong_password_gets_nowhere(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Mosquitto(tmp_path, users={"fleet": "right"}) as broker:
        listener = broker.listen()
        monkeypatch.setenv("MQTT_USERNAME", "fleet")
        monkeypatch.setenv("MQTT_PASSWORD", "wrong")
        start(runs, tmp_path, broker.port)
        monkeypatch.setenv("MQTT_PASSWORD", "right")
        run = start(runs, tmp_path, broker.port)
        listener.wait_for("/connection", is_online)
        os.kill(run.info.supervisor_pid, signal.SIGINT)
        listener.wait_for("/connection", lambda payload: payload.get("state") == "OFFLINE")
        states = [one["payload"]["state"] for one in listener.on("/connection")]
        assert states == ["ONLINE", "OFFLINE"]


def test_discovery_topics_of_two_sites_differ_and_what_is_not_known_is_left_out() -> None:
    one, other = (set(discovery_documents("ha", Topics(site, "arm7"), ("estop",))) for site in ("hall", "yard"))
    assert not one & other
    document = state_document(None, RobotStatus(read_ns=1, mode="ready"), "", "")
    assert None not in document.values()
    assert "battery_v" not in document
    assert document["robot_mode"] == "ready"
