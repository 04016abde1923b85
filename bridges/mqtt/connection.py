"""`BrokerConnection`: one robot's connection to a broker: birth, will and farewell, what is told and when, and
coming back."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Callable, Mapping

import msgspec

from bridges.mqtt.allowed_commands import CommandReply, fields_of
from bridges.mqtt.client import Broker, BrokerConnection, Incoming, connect, lets_anyone_in
from bridges.mqtt.payloads import Document, Topics, state_document, telemetry_document
from nodes.msgs import JOINTS, GuardState, RobotState, RobotStatus
from runtime import Message
from runtime.clock import Clock, to_s, wall_time_ns
from runtime.errors import TransportError

PERIOD_S = 0.2
"""Telemetry goes out at most this often, and so do changes of the state."""
STATE_PERIOD_S = 1.0
BACKOFF_S = (0.5, 30.0)
GOODBYE_S = 0.5
ASKS_AGAIN_S = 0.05
MOST_REPLIES = 200
"""Answers that wait for the broker; further ones are not given."""


PROBE_S = 2.0
"""How long the bridge's own word below `cmd/` may take to come back."""
DEAF = (
    "a word of the bridge's own on %s did not come back within %g s: no command is heard, a stop neither. The broker's "
    "access list has to let this login read and write %s"
)
NAMESAKE = "another bridge calls its robot %s, too; give each robot a name of its own, or end the other run"
MOST_EVENTS = 200
"""Events that wait for a broker; the oldest make room."""


class MqttOutbox:
    """The newest of all that stays true until it changes, and what happened, in order."""

    def __init__(self, joints: tuple[str, ...] = JOINTS) -> None:
        self.joints = joints
        self.state: RobotState | None = None
        self.status: RobotStatus | None = None
        self.guard: GuardState | None = None
        self.subtask = self.said = ""
        self.answer: CommandReply | None = None
        self.instance = f"{wall_time_ns():x}"
        """Tells this bridge from another that bears the robot's name."""
        self.events: deque[bytes] = deque(maxlen=MOST_EVENTS)
        self.lost_events = 0
        self._header_id = 0

    def happened(self, topic: str, message: Message) -> None:
        """Add an event; where too many wait, the oldest is lost."""
        self.lost_events += len(self.events) == MOST_EVENTS
        self.events.append(self.encoded({"topic": topic, "data": message}))

    def not_told(self, event: bytes) -> None:
        """The broker did not take it: it is the next one again, unless its place was needed meanwhile."""
        if len(self.events) < MOST_EVENTS:
            self.events.appendleft(event)
        else:
            self.lost_events += 1

    def document(self) -> Document:
        """Return what is retained as the robot's state."""
        return state_document(self.guard, self.status, self.subtask, self.said, self.answer)

    def connection(self, state: str) -> bytes:
        """Return what is retained of the connection."""
        return self.encoded({"state": state, "instance": self.instance})

    def encoded(self, document: Document) -> bytes:
        """Return the document with its number and time, as it goes out."""
        self._header_id += 1
        header = {"header_id": self._header_id, "timestamp_ms": wall_time_ns() // 1_000_000}
        return msgspec.json.encode(header | document)


class Connection:
    """Tells the news; `take` judges commands, or is None where none are listened to.

    `asks_login` is told at each connection whether the broker asks everybody for a login. `discovery` is told at birth
    and whenever somebody says "online" on the topic `reborn` (Home Assistant's own birth).
    """

    def __init__(
        self,
        broker: Broker,
        topics: Topics,
        news: MqttOutbox,
        take: Callable[[Incoming], tuple[CommandReply, str]] | None,
        *,
        asks_login: Callable[[bool], None] | None = None,
        discovery: Mapping[str, bytes],
        reborn: str,
        clock: Clock,
        log: logging.Logger,
    ) -> None:
        self._broker, self._topics, self._news, self._take = broker, topics, news, take
        self._discovery, self._reborn, self._asks_login = discovery, reborn, asks_login
        self._clock, self._log = clock, log
        self._wants_discovery = False
        self._wants_online = False
        self._probe, self._came_back = b"", asyncio.Event()
        self._namesake = ""
        self._was_online = False
        self._replies: asyncio.Queue[tuple[str, CommandReply]] = asyncio.Queue(MOST_REPLIES)
        self._fault: str | None = None

    async def hold(self, chance: random.Random) -> None:
        """Stay connected until cancelled; where the connection breaks, try again after a pause that grows."""
        pause_s = BACKOFF_S[0]
        while True:
            start_ns = self._clock.now_ns()
            try:
                await self._connected()
            except TransportError as problem:
                self._tell(str(problem))
            if self._clock.since_s(start_ns) > BACKOFF_S[1]:
                pause_s = BACKOFF_S[0]
            await self._clock.sleep(pause_s * (0.5 + chance.random()))
            pause_s = min(2 * pause_s, BACKOFF_S[1])

    async def _connected(self) -> None:
        will = self._topics.connection, self._news.connection("CONNECTION_BROKEN")
        async with connect(self._broker, identifier=self._topics.identifier, will=will) as wire:
            tasks: list[asyncio.Task[None]] = []
            try:
                await self._be_born(wire)
                self._tell("")
                self._was_online = True
                self._replies = asyncio.Queue(MOST_REPLIES)
                tasks += [asyncio.create_task(one(wire)) for one in (self._write, self._read, self._answer)]
                watched = list(tasks)
                if self._take is not None:
                    tasks.append(asyncio.create_task(self._hear_oneself(wire)))
                done, _ = await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            except asyncio.CancelledError:
                await _cancel(tasks)
                await self._say_goodbye(wire)
                raise
            finally:
                await _cancel(tasks)

    async def _be_born(self, wire: BrokerConnection) -> None:
        if self._asks_login is not None:
            self._asks_login(not await lets_anyone_in(self._broker))
        await self._subscribe(wire, self._topics.connection)  # first: what was retained there tells of a namesake
        await self._say(wire, "ONLINE")
        if self._take is not None:
            await self._subscribe(wire, self._topics.commands)
        if self._reborn:
            await self._subscribe(wire, self._reborn)
        self._wants_discovery = True

    async def _subscribe(self, wire: BrokerConnection, topic: str) -> None:
        if not await wire.subscribe(topic):
            deaf = ": no command is heard, a stop neither" if topic == self._topics.commands else ""
            self._log.warning("the broker refuses the subscription to %s%s; allow it in its access list", topic, deaf)

    async def _hear_oneself(self, wire: BrokerConnection) -> None:
        """Tell where commands do not come through, although the broker has granted the subscription."""
        self._probe = f"{self._news.instance}-{self._clock.now_ns()}".encode()
        self._came_back.clear()
        await wire.publish(self._topics.probe, self._probe, qos=1)
        back = asyncio.create_task(self._came_back.wait())
        try:
            await asyncio.wait([back], timeout=PROBE_S)
        finally:
            back.cancel()
        if not self._came_back.is_set():
            self._log.warning(DEAF, self._topics.probe, PROBE_S, self._topics.commands)

    async def _say_goodbye(self, wire: BrokerConnection) -> None:
        try:
            await asyncio.wait_for(self._say(wire, "OFFLINE"), GOODBYE_S)
        except (TransportError, TimeoutError):
            pass  # the broker is gone already, and nobody is left to be told

    async def _say(self, wire: BrokerConnection, state: str) -> None:
        await wire.publish(self._topics.connection, self._news.connection(state), qos=1, retain=True)

    async def _write(self, wire: BrokerConnection) -> None:
        """State once a second and on change, telemetry, and events in order."""
        news, topics = self._news, self._topics
        shown: Document | None = None
        shown_ns = told_ns = 0
        while True:
            if self._wants_discovery:
                self._wants_discovery = False
                for topic, payload in self._discovery.items():
                    await wire.publish(topic, payload, qos=1, retain=True)
            if self._wants_online:
                self._wants_online = False
                await self._say(wire, "ONLINE")
            now_ns = self._clock.now_ns()
            document = news.document()
            if document != shown or to_s(now_ns - shown_ns) >= STATE_PERIOD_S:
                shown, shown_ns = document, now_ns
                await wire.publish(topics.state, news.encoded(document), qos=1, retain=True)
            state = news.state
            if state is not None and state.read_ns != told_ns:
                told_ns = state.read_ns
                await wire.publish(topics.telemetry, news.encoded(telemetry_document(state, news.joints)), qos=0)
            await self._tell_events(wire)
            await self._clock.sleep(PERIOD_S)

    async def _tell_events(self, wire: BrokerConnection) -> None:
        while self._news.events:
            event = self._news.events.popleft()
            try:
                await wire.publish(self._topics.event, event, qos=1)
            except TransportError:
                self._news.not_told(event)
                raise

    async def _read(self, wire: BrokerConnection) -> None:
        async for incoming in wire.incoming():
            if incoming.topic == self._topics.connection:
                self._hear_of_oneself(incoming)
            elif incoming.topic == self._reborn:
                self._wants_discovery = self._wants_discovery or incoming.payload == b"online"
            elif incoming.topic == self._topics.probe:
                if incoming.payload == self._probe:
                    self._came_back.set()
            elif self._take is not None:
                reply, topic = self._take(incoming)
                if topic and not self._replies.full():
                    self._replies.put_nowait((topic, reply))

    def _hear_of_oneself(self, incoming: Incoming) -> None:
        """What somebody else says of this robot's connection: an old will is put right, a namesake is told."""
        said = fields_of(incoming.payload)  # none, where the topic was cleared
        instance, is_online = str(said.get("instance", "")), said.get("state") == "ONLINE"
        self._wants_online = self._wants_online or not (is_online or incoming.is_retained)
        # What an earlier run left is no namesake. Two of one name drive each other out, and find the other's word.
        is_of_now = self._was_online if incoming.is_retained else is_online
        if is_of_now and instance not in ("", self._news.instance, self._namesake):
            self._namesake = instance
            self._log.warning(NAMESAKE, self._topics.root)

    async def _answer(self, wire: BrokerConnection) -> None:
        """In a task of its own: no command, least of all a stop, waits until the broker has the answer to another."""
        while True:
            topic, reply = await self._replies.get()
            await wire.publish(topic, msgspec.json.encode(reply), qos=1)

    def _tell(self, fault: str) -> None:
        """In the log, once for each change."""
        if fault == self._fault:
            return
        self._fault = fault
        if fault:
            self._log.warning("%s; it is tried again", fault)
            return
        self._log.info("connected; topics below %s/", self._topics.root)
        if self._news.lost_events:
            self._log.warning("%d events were lost while there was no broker", self._news.lost_events)
            self._news.lost_events = 0


async def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    """End them, asking again: Python 3.11's `wait_for` forgets a cancel that comes as its answer does."""
    while left := [task for task in tasks if not task.done()]:
        for task in left:
            task.cancel()
        await asyncio.wait(left, timeout=ASKS_AGAIN_S)
    await asyncio.gather(*tasks, return_exceptions=True)
