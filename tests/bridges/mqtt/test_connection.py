"""The link to a broker: whenever it ends by itself, the broker is told that the robot is offline."""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bridges.mqtt import client
from bridges.mqtt import connection as mqtt_link
from bridges.mqtt.allowed_commands import CommandReply
from bridges.mqtt.client import Broker, Incoming
from bridges.mqtt.connection import Connection, MqttOutbox
from bridges.mqtt.payloads import Topics
from runtime.clock import SystemClock
from tests.bridges.mqtt.mosquitto import Mosquitto, needs_mosquitto
from tests.support.running import becomes

PATIENCE_S = 60.0


class SlowBroker:
    """Takes what is published, and answers one kind of call never."""

    def __init__(self, silent_at: str, commands: tuple[str, ...] = (), *, forgets_cancel: bool = False) -> None:
        self.silent_at = silent_at
        self.forgets_cancel = forgets_cancel  # as `wait_for` of Python 3.11 where it comes with the answer
        self.commands = commands
        self.states: list[str] = []
        self.is_asked = asyncio.Event()

    async def _answer(self, call: str) -> None:
        if call == self.silent_at:
            is_first = not self.is_asked.is_set()
            self.is_asked.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if not (self.forgets_cancel and is_first):
                    raise

    async def publish(self, topic: str, payload: bytes, *, qos: int, retain: bool = False) -> None:
        kind = topic.rpartition("/")[2]
        if kind == "connection":
            self.states.append(json.loads(payload)["state"])
        await self._answer(kind)

    async def subscribe(self, topic: str) -> bool:
        await self._answer("subscribe")
        return True

    async def incoming(self) -> AsyncIterator[Incoming]:
        for verb in self.commands:
            yield Incoming(f"polyrhythm/v1/arm7/cmd/{verb}", b"", False)
        await asyncio.Event().wait()


def refuse(_: Incoming) -> tuple[CommandReply, str]:
    raise AssertionError("nothing comes")


async def held_until_asked(
    broker: SlowBroker, take: Callable[[Incoming], tuple[CommandReply, str]], monkeypatch: pytest.MonkeyPatch
) -> asyncio.Task[None]:
    """A link to that broker, ended once the broker owes it an answer."""

    @asynccontextmanager
    async def connected(*_: Any, **__: Any) -> AsyncIterator[SlowBroker]:
        yield broker

    monkeypatch.setattr(mqtt_link, "connect", connected)
    link = Connection(
        Broker("127.0.0.1", 1), Topics("polyrhythm", "arm7"), MqttOutbox(), take, discovery={}, reborn="",
        clock=SystemClock(), log=logging.getLogger("link"),
    )  # fmt: skip
    held = asyncio.create_task(link.hold(random.Random(0)))
    await asyncio.wait_for(broker.is_asked.wait(), PATIENCE_S)
    held.cancel()
    await asyncio.wait([held], timeout=PATIENCE_S)
    return held


@pytest.mark.parametrize(("silent_at", "forgets_cancel"), [("subscribe", False), ("state", False), ("state", True)])
def test_a_link_that_ends_says_goodbye_also_while_it_is_being_born(
    silent_at: str, forgets_cancel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> list[str]:
        broker = SlowBroker(silent_at, forgets_cancel=forgets_cancel)
        held = await held_until_asked(broker, refuse, monkeypatch)
        assert held.cancelled()
        return broker.states

    assert asyncio.run(story())[-1] == "OFFLINE"


def test_a_stop_does_not_wait_for_the_answer_to_what_came_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []

    def take(incoming: Incoming) -> tuple[CommandReply, str]:
        verb = incoming.topic.rpartition("/")[2]
        taken.append(verb)
        return CommandReply("1", verb, True), "polyrhythm/v1/arm7/reply/tester"

    async def story() -> None:
        broker = SlowBroker("tester", ("say", "say", "estop"))
        await held_until_asked(broker, take, monkeypatch)  # and it never answered

    asyncio.run(story())
    assert taken == ["say", "say", "estop"]


@needs_mosquitto
@pytest.mark.processes
def test_a_frozen_broker_is_told_in_the_log_once_and_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(client, "CONNECT_S", 0.5)
    caplog.set_level(logging.INFO, "link")

    async def told(words: str, times: int) -> None:
        await becomes(lambda: sum(words in record.message for record in caplog.records) >= times)

    async def story(broker: Mosquitto) -> None:
        link = Connection(
            Broker("127.0.0.1", broker.port), Topics("polyrhythm", "arm7"), MqttOutbox(), None, discovery={}, reborn="",
            clock=SystemClock(), log=logging.getLogger("link"),
        )  # fmt: skip
        held = asyncio.create_task(link.hold(random.Random(0)))
        try:
            await asyncio.wait_for(told("connected; topics below", 1), PATIENCE_S)
            broker.freeze()
            await asyncio.wait_for(told("it is tried again", 1), PATIENCE_S)
            broker.thaw()
            await asyncio.wait_for(told("connected; topics below", 2), PATIENCE_S)
        finally:
            broker.thaw()
            held.cancel()
            await asyncio.wait([held], timeout=PATIENCE_S)

    with Mosquitto(tmp_path) as broker:
        asyncio.run(story(broker))
    warned = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert all(sentence.startswith("the MQTT broker") for sentence in warned)
    assert len(warned) == len(set(warned)), "each sentence once"


class SilentRelay:
    """Stands between; once it is silent, what is open is lost without a word, and what is new works."""

    def __init__(self, port: int) -> None:
        self.to_port = port
        self.taken = 0
        """Links that there have been."""
        self._open: list[asyncio.StreamWriter] = []
        self._lost: set[asyncio.StreamWriter] = set()
        self._tasks: list[asyncio.Future[None]] = []

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    def lose(self) -> None:
        self._lost.update(self._open)

    async def stop(self) -> None:
        self._server.close()
        for writer in self._open:
            writer.transport.abort()
        await self._server.wait_closed()
        await asyncio.gather(*self._tasks)

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.to_port)
        self._open += [writer, far_writer]
        self.taken += 1
        self._tasks += [asyncio.ensure_future(self._pass(*way)) for way in ((reader, far_writer), (far_reader, writer))]

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                if writer not in self._lost:
                    writer.write(data)
            if writer not in self._lost:
                writer.close()


@needs_mosquitto
@pytest.mark.processes
def test_the_will_of_a_connection_that_was_silently_lost_does_not_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "KEEPALIVE_S", 3)
    monkeypatch.setattr(client, "CONNECT_S", 1.0)

    async def story(broker: Mosquitto) -> list[str]:
        relay = SilentRelay(broker.port)
        port = await relay.start()
        listener = broker.listen()
        link = Connection(
            Broker("127.0.0.1", port), Topics("polyrhythm", "arm7"), MqttOutbox(), None, discovery={}, reborn="",
            clock=SystemClock(), log=logging.getLogger("link"),
        )  # fmt: skip
        held = asyncio.create_task(link.hold(random.Random(0)))

        def states() -> list[str]:
            return [message["payload"]["state"] for message in listener.on("/connection")]

        try:
            await becomes(lambda: states()[-1:] == ["ONLINE"])
            relay.lose()
            await becomes(lambda: states()[-2:] == ["CONNECTION_BROKEN", "ONLINE"])
            return states()
        finally:
            held.cancel()
            await asyncio.wait([held], timeout=PATIENCE_S)
            await relay.stop()

    with Mosquitto(tmp_path) as broker:
        assert asyncio.run(story(broker)).count("CONNECTION_BROKEN") == 1  # the old one is driven out, not waited for


@needs_mosquitto
@pytest.mark.processes
def test_two_robots_of_one_name_are_told_in_both_logs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def story(broker: Mosquitto) -> None:
        links = [
            Connection(
                Broker("127.0.0.1", broker.port), Topics("polyrhythm", "arm7"), MqttOutbox(), None, discovery={},
                reborn="", clock=SystemClock(), log=logging.getLogger(f"link{number}"),
            )
            for number in range(2)
        ]  # fmt: skip
        held = [asyncio.create_task(link.hold(random.Random(number))) for number, link in enumerate(links)]

        def told() -> set[str]:
            return {record.name for record in caplog.records if "another bridge calls" in record.message}

        try:
            await becomes(lambda: told() == {"link0", "link1"})
        finally:
            for one in held:
                one.cancel()
            await asyncio.wait(held, timeout=PATIENCE_S)

    with Mosquitto(tmp_path) as broker:
        asyncio.run(story(broker))


@pytest.mark.parametrize(("code", "is_granted"), [(0x80, False), (0x87, False), (0, True), (1, True)])
def test_a_suback_is_read(code: int, is_granted: bool) -> None:
    async def answer(code: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while header := await reader.read(1):
            body = await reader.readexactly((await reader.readexactly(1))[0])
            if header[0] >> 4 == 1:
                writer.write(b"\x20\x02\0\0")
            elif header[0] >> 4 == 8:
                writer.write(b"\x90\x03" + body[:2] + bytes([code]))
        writer.close()

    async def story() -> bool:
        server = await asyncio.start_server(partial(answer, code), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, client.connect(Broker("127.0.0.1", port), identifier="x") as wire:
            return await wire.subscribe("a/b")

    assert asyncio.run(story()) is is_granted
