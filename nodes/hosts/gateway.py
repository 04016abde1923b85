"""The gateway: a process that joins a run to that of one other host.

Like any process it hears the topics that nodes of the other host need, and sends them over. It publishes here what
comes back, with its stamps moved to this host's clock. What a host may publish is what its nodes publish: all else is
refused. Two threads, each with a socket: images never stand before what is small.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import secrets
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from nodes.hosts import keys, wire
from nodes.hosts.admission import Admission, AdmissionRefused, LinkCodec, LinkCodecs, Traffic
from nodes.hosts.clock_offset import ClockOffset
from nodes.hosts.image_throttle import Bulk
from nodes.hosts.reliable_link import ReliableLink
from nodes.hosts.sockets import WAYS, Doors, HostSocket
from runtime.clock import Clock, SystemClock, to_ns
from runtime.coordination.health import GatewayHealth, gateway_topic
from runtime.errors import CodecError
from runtime.hosts.hosts_table import GatewayPlan
from runtime.hosts.service import number_frame, read_number
from runtime.message import Envelope, Message, Stamped, array_fields
from runtime.serialization.codec import Frame, encode
from runtime.transport.reliable.tag import Terms

ASK_EVERY_NS = to_ns(0.1)
LOST_AFTER_NS = to_ns(1.0)
ONE_WAY_NS = to_ns(0.3)
"""States of a host that has not answered for this long are not passed on: it may not hear what they are about."""
ANSWERS_NEEDED = 3  # before messages are let through
FAREWELLS, FAREWELL_S = 20, 0.05
HEARD_BYE = 0  # no image has this number
_QUEUED = 1024
_SAY_AGAIN_NS = to_ns(5.0)
_LONGEST_SILENCE_NS = to_ns(300.0)
_MOST_KEPT = 100  # sentences


class LogLimiter:
    """Limits the log of one gateway; for the thread of its small socket and, one sentence at a time, another."""

    def __init__(self, log: logging.Logger, clock: Clock) -> None:
        self._log = log
        self.clock = clock
        self.said_ns: dict[str, int] = {}
        self._silences = 0  # told since the other host was there last
        self._next_silence_ns = 0

    def say(self, sentence: str) -> None:
        """Log what is wrong; the same again no sooner than after 5 s."""
        now_ns = self.clock.now_ns()
        if len(self.said_ns) > _MOST_KEPT:
            self.said_ns.clear()
        if now_ns - self.said_ns.get(sentence, -_SAY_AGAIN_NS) >= _SAY_AGAIN_NS:
            self.said_ns[sentence] = now_ns
            self._log.warning("%s", sentence)

    def silence(self, sentence: str) -> None:
        """Log that the other host is silent: at once, then less and less often, at last every 5 minutes."""
        now_ns = self.clock.now_ns()
        if self._silences and now_ns < self._next_silence_ns:
            return
        self._next_silence_ns = now_ns + min(_SAY_AGAIN_NS << self._silences, _LONGEST_SILENCE_NS)
        self._silences += 1
        self._log.warning("%s", sentence)

    def heard(self) -> None:
        """Note that the other host is there, so that its next silence is logged."""
        self._silences = 0


class Gateway:
    """One link to another host: `from_here` takes what is published here, `publish` publishes what comes over."""

    def __init__(
        self,
        doors: Doors,
        traffic: Traffic,
        *,
        own: str,
        other: str,
        graph: str,
        publish: Callable[[Envelope, Message], None],
        finish: Callable[[bool, str], None],
        codecs: LinkCodecs | None = None,
        budget_mbit: float = 0.0,
        others: frozenset[str] = frozenset(),
        reliable: Mapping[str, Terms] | None = None,
        clock: SystemClock | None = None,
    ) -> None:
        self._doors = doors
        self._own, self._other, self._graph = own, other, graph
        self._publish, self._finish = publish, finish
        self._codecs = codecs or {}
        self._entry = Admission(traffic, other, others, self._codecs)
        self._mail = ReliableLink(
            own, other, reliable or {}, send=self._put, deliver=self._deliver, drop=self._drop_some
        )
        self._reliable = self._mail.topics
        self.clock = clock or SystemClock()
        self._log = logging.getLogger(f"gateway-{other}")
        self._words = LogLimiter(self._log, self.clock)
        self.session = secrets.token_hex(8)
        self.peer_session = ""
        self._offset = ClockOffset()
        self._answered_ns = 0
        self._round_trip_ns = 0
        self._next_ask_ns = 0
        self._was_up = False
        self._times_up = 0
        self.small: deque[tuple[str, list[Frame], int]] = deque()  # a reliable event with its topic, else ""; its time
        self._bulk = Bulk(budget_mbit, ways=WAYS, number=self.clock.now_ns())
        self._bulk_lock = threading.Lock()
        self._dropped: Counter[str] = Counter()
        self._count_lock = threading.Lock()
        self._bytes = Counter(sent=0, received=0)
        self._is_stopped = False
        self._states_heard = self._asked_ns = self._replied_ns = 0
        self._images_heard: dict[str, int] = {}  # the number of the newest, by topic
        self._states_sent = self.clock.now_ns()
        """The number of the last state: they go over several connections, and that of a later start is higher."""
        self._accounts = 0

    # what comes from this host, in its inlet's thread

    def from_here(self, stamped: Stamped[Message]) -> None:
        """Send one message over: a reliable event once the link is up, an image in its turn."""
        topic = stamped.envelope.topic
        is_reliable = topic in self._reliable and self.peer_session != ""
        if not (self.is_up() or is_reliable):
            self._drop("link down")
        elif array_fields(type(stamped.message)) and not is_reliable:
            with self._bulk_lock:
                self._bulk.offer(stamped)
            self._doors.bulk.wake()
        elif len(self.small) >= _QUEUED:
            self._drop("queue full")
        else:
            frames = encode(stamped.envelope, stamped.message)
            born_ns = stamped.envelope.published_ns
            if is_reliable:
                self.small.append((topic, list(frames), born_ns))
            elif stamped.message.message_kind == "state":
                self._states_sent += 1
                self.small.append(("", [wire.STATE, number_frame(self._states_sent), *frames], 0))
            else:
                self.small.append(("", [wire.MESSAGE, *frames], 0))
            self._doors.small.wake()

    # life

    async def run(self, stop: asyncio.Event) -> None:
        """Join the two runs until told to stop, with a report each second."""
        threads = [
            threading.Thread(target=self._run_small, name="gateway-small"),
            threading.Thread(target=self._run_bulk, name="gateway-bulk"),
        ]
        self._log.info("%s %s at %s", "waits for" if self._doors.small.is_server else "calls", self._other, self._place)
        for thread in threads:
            thread.start()
        try:
            before = Counter(self._bytes)
            while not stop.is_set():
                try:
                    await asyncio.wait_for(stop.wait(), 1.0)
                except TimeoutError:
                    now = Counter(self._bytes)
                    self._tell_health(now["sent"] - before["sent"], now["received"] - before["received"])
                    before = now
        finally:
            self._is_stopped = True
            for door, thread in zip((self._doors.small, self._doors.bulk), threads, strict=True):
                door.wake()
                thread.join()

    def leave(self, outcome: tuple[bool, str] | None) -> None:
        """Tell the other host that the run ends here, and how, until it has heard; call it after `run`."""
        ok, reason = outcome if outcome is not None else (None, "")
        door = self._doors.small
        for _ in range(FAREWELLS):
            if not door.send(wire.word(wire.Bye(ok, reason))):
                return  # nobody is there
            door.wait(FAREWELL_S)
            while (frames := door.receive()) is not None:
                if frames == wire.word(wire.Ack(HEARD_BYE)):
                    return

    @property
    def bytes_sent(self) -> int:
        """Bytes sent since the start."""
        return self._bytes["sent"]

    @property
    def _place(self) -> str:
        return self._doors.small.address

    def _tell_health(self, sent_bytes: int, received_bytes: int) -> None:
        now_ns = self.clock.now_ns()
        self._accounts += 1
        health = GatewayHealth(
            host=self._other,
            is_up=self.is_up(),
            round_trip_ms=self._round_trip_ns / 1e6,
            clock_error_ms=self._offset.error_ns(now_ns) / 1e6 if self._offset.is_known else 0.0,
            sent_mbit=sent_bytes * 8 / 1e6,
            received_mbit=received_bytes * 8 / 1e6,
            image_quality=self._bulk.quality,
            dropped=dict(self._dropped + self._bulk.dropped),
        )
        source = f"gateway-{self._other}"
        self._publish(Envelope(gateway_topic(self._other), source, self._accounts, now_ns), health)

    def is_up(self) -> bool:
        """Whether the other host answers."""
        return (
            self.peer_session != ""
            and self._offset.answers >= ANSWERS_NEEDED
            and self.clock.now_ns() - self._answered_ns < LOST_AFTER_NS
        )

    # the small socket's thread

    def _run_small(self) -> None:
        door = self._doors.small
        while not self._is_stopped:
            door.wait(0.02)
            while (frames := door.receive()) is not None:
                self._count("received", frames)
                self._guarded(self._take_small, frames)
            self._send_small()
            self._keep_contact(door)
        self._send_small()
        self._mail.end()

    def _send_small(self) -> None:
        while self.small:
            topic, frames, born_ns = self.small.popleft()
            if topic:
                self._mail.post(topic, frames, self.clock.now_ns(), is_up=self.is_up(), born_ns=born_ns)
            elif not self._put(frames):
                self._drop("link full")

    def _put(self, frames: list[Frame]) -> bool:
        is_sent = self._doors.small.send(frames, all_ways=frames[0] in (wire.STATE, wire.WORD))
        if is_sent:
            self._count("sent", frames)
        return is_sent

    def _keep_contact(self, door: HostSocket) -> None:
        now_ns = self.clock.now_ns()
        for sentence in self._doors.small.refusals:
            self._log.warning("%s", sentence)
        self._doors.small.refusals.clear()
        if now_ns >= self._next_ask_ns:
            self._next_ask_ns = now_ns + ASK_EVERY_NS
            if self.peer_session:
                door.send(wire.word(wire.ClockQuestion(now_ns, self.session)), all_ways=True)
            else:
                self._greet(door)
        is_up = self.is_up()
        if is_up and not self._was_up:
            again = " again" if self._times_up else ""  # after a loss people want to know, however little they read
            level = logging.WARNING if self._times_up else logging.INFO
            error_ms = self._offset.error_ns(now_ns) / 1e6
            self._log.log(level, "%s is connected%s; clocks compared to %.1f ms", self._other, again, error_ms)
            self._times_up += 1
            self._words.heard()
            self._mail.hurry(now_ns)
        elif self._was_up and not is_up:
            if self.peer_session:  # else it has said that it leaves
                self._log.warning("%s: link lost: no answer for %.0f s", self._other, LOST_AFTER_NS / 1e9)
            with self._bulk_lock:
                self._bulk.forget()
        elif not is_up and not self.peer_session:
            since = "since it left" if self._times_up else "yet"
            self._words.silence(f"no word from {self._other} {since} ({self._place})")
        self._was_up = is_up
        self._mail.keep_up(now_ns, is_up=is_up)

    def _greet(self, door: HostSocket, is_reply: bool = False) -> None:
        door.send(wire.word(wire.HostHello(self._own, self.session, self._graph, is_reply)))

    def _take_small(self, frames: list[bytes]) -> None:
        match frames[0]:
            case wire.MESSAGE:
                self._take_message(frames[1:])
            case wire.STATE:
                self._take_state(frames)
            case wire.RECEIPT:
                self._mail.take_receipt(frames[1:], self.clock.now_ns())
            case wire.EVENT:
                if self.is_up():  # else it comes again: without the clock nobody knows its age
                    now_ns = self.clock.now_ns()
                    self._mail.take_event(frames[1:], now_ns, self._offset.there_ns(now_ns), self._entry.check)
            case _:
                self._take_word(wire.read_word(frames))

    def _take_state(self, frames: list[bytes]) -> None:
        if len(frames) < 3:
            raise CodecError(f"{len(frames)} frames; expected a state")
        number = read_number(frames[1])
        if number <= self._states_heard:
            return  # it came over another connection, or a newer one did
        self._states_heard = number
        if self.clock.now_ns() - self._answered_ns > ONE_WAY_NS:
            self._drop("unanswered")
        else:
            self._take_message(frames[2:])

    def _take_word(self, word: wire.Word) -> None:
        door = self._doors.small
        match word:
            case wire.HostHello():
                self._take_hello(word, door)
            case wire.ClockQuestion(sent_ns=sent_ns, session=session) if session == self.peer_session:
                if sent_ns > self._asked_ns:  # else it came over the other connection
                    self._asked_ns = sent_ns
                    door.send(wire.word(wire.ClockAnswer(sent_ns, self.clock.now_ns())), all_ways=True)
            case wire.ClockQuestion():
                self._greet(door)  # it was restarted, or we were: who is there?
            case wire.ClockAnswer(sent_ns=sent_ns, there_ns=there_ns):
                self._take_answer(sent_ns, there_ns)
            case wire.Ack(number=number):
                with self._bulk_lock:
                    self._bulk.acknowledged(number, self.clock.now_ns())
                self._doors.bulk.wake()
            case wire.Busy():
                self._words.say(
                    f"{self._other} is connected to another gateway that has the key of {self._own}; "
                    "end one of them, or give each host a key of its own"
                )
            case wire.Bye(ok=ok, reason=reason):
                door.send(wire.word(wire.Ack(HEARD_BYE)))
                if not self.peer_session:
                    return  # it says so until it knows that we know
                self.peer_session = ""
                self._doors.forget_peer()
                if ok is None:
                    self._log.warning("%s has left", self._other)
                else:
                    self._finish(ok, f"{self._other}: {reason}")

    def _take_hello(self, hello: wire.HostHello, door: HostSocket) -> None:
        if hello.host != self._other:
            self._words.say(f"a host that calls itself {hello.host[:32]!r} was refused; expected {self._other!r}")
            return
        if hello.graph != self._graph:
            self._words.say(f"{self._other} runs another launch file or release; start both ends from the same ones")
            return
        if hello.session != self.peer_session:
            self.peer_session, self._offset, self._answered_ns = hello.session, ClockOffset(), 0
            self._states_heard = self._asked_ns = 0
            self._images_heard = {}
            self._entry.forget()
            self._mail.begin(self.session, hello.session)
        if not hello.is_reply:
            self._greet(door, is_reply=True)

    def _take_answer(self, sent_ns: int, there_ns: int) -> None:
        now_ns = self.clock.now_ns()
        if not max(now_ns - to_ns(60), self._replied_ns) < sent_ns <= now_ns:
            return  # no question of ours, or one that was answered
        self._replied_ns = sent_ns
        jumps = self._offset.jumps
        self._offset.answered(sent_ns, there_ns, now_ns)
        if self._offset.jumps > jumps:
            self._log.warning("%s: its clock jumped; ages are counted from its new one", self._other)
        self._answered_ns, self._round_trip_ns = now_ns, now_ns - sent_ns

    # the bulk socket's thread

    def _run_bulk(self) -> None:
        door = self._doors.bulk
        while not self._is_stopped:
            door.wait(0.02)
            while (frames := door.receive()) is not None:
                self._count("received", frames)
                self._guarded(self._take_image, frames)
            while self.is_up():
                with self._bulk_lock:
                    stamped = self._bulk.next(self.clock.now_ns())
                    quality = self._bulk.quality
                if stamped is None:
                    break
                self._send_image(door, stamped, quality)

    def _send_image(self, door: HostSocket, stamped: Stamped[Message], quality: int) -> None:
        message, codec = stamped.message, self._codecs.get(type(stamped.message))
        if codec is not None:
            try:
                message = codec.shrink(message, quality)
            except ValueError as problem:
                self._drop("not sent", f"{stamped.envelope.topic}: {problem}")
                return
        frames = encode(stamped.envelope, message)
        size = sum(len(frame) for frame in frames)
        with self._bulk_lock:
            number, way = self._bulk.sent(size, self.clock.now_ns())
        if door.send_by(way, [wire.IMAGE, number_frame(number), *frames]):
            self._count("sent", frames)
        else:
            self._drop("link full")
            with self._bulk_lock:
                self._bulk.refused(number)

    def _take_image(self, frames: list[bytes]) -> None:
        if frames[0] != wire.IMAGE or len(frames) < 4:
            raise CodecError(f"{len(frames)} frames; expected an image")
        number = read_number(frames[1])
        self.small.append(("", list(wire.word(wire.Ack(number))), 0))
        self._doors.small.wake()
        topic = frames[2].decode(errors="replace")
        self._entry.check(topic)
        if number < self._images_heard.get(topic, 0):
            self._drop("overtaken")  # a newer one came by another connection
            return
        self._images_heard[topic] = number
        self._take_message(frames[2:])

    # what comes from the other host

    def _take_message(self, frames: list[bytes], *, is_late: bool = False) -> None:
        if not self.is_up():
            self._drop("clock unknown")
            return
        stamped = self._entry.admitted(frames, self._offset, self.clock.now_ns())
        if stamped is None:
            return
        if is_late and not stamped.message.message_is_urgent:
            self._drop("expired")
        else:
            self._publish(stamped.envelope, stamped.message)

    def _deliver(self, frames: list[bytes], is_late: bool) -> None:
        """A reliable event, in its turn; what is wrong with it is no reason to send it again."""
        self._guarded(partial(self._take_message, is_late=is_late), frames)

    # helpers

    def _guarded(self, take: Callable[[list[bytes]], None], frames: list[bytes]) -> None:
        try:
            take(frames)
        except AdmissionRefused as refused:
            self._drop(refused.reason, refused.sentence)
        except CodecError as problem:
            self._drop("garbled", f"{self._other}: {problem}")

    def _drop(self, reason: str, sentence: str = "") -> None:
        self._drop_some(reason, 1)
        if sentence:
            self._words.say(sentence)

    def _drop_some(self, reason: str, number: int) -> None:
        with self._count_lock:  # three threads count
            self._dropped[reason] += number

    def _count(self, way: str, frames: list[bytes] | list[Frame]) -> None:
        self._bytes[way] += sum(len(frame) for frame in frames)


def make_gateway(
    plan: GatewayPlan,
    sends: Mapping[str, type[Message]],
    load_type: Callable[[str], type[Message]],
    *,
    publish: Callable[[Envelope, Message], None],
    finish: Callable[[bool, str], None],
) -> tuple[Gateway, Doors]:
    """The gateway, and the sockets to close after it. Raises UserError for a wrong key, TransportError for a port."""
    own, other = plan.own, plan.meeting.other(plan.own.name)
    secret = keys.secret_for(own.name, own.key) if plan.meeting.is_encrypted else ""
    receives = {topic: load_type(name) for topic, name in plan.receives.items()}
    doors = Doors(plan.meeting, own.name, secret)
    gateway = Gateway(
        doors,
        Traffic(sends, receives, plan.sources),
        own=own.name,
        other=other.name,
        graph=plan.graph,
        publish=publish,
        finish=finish,
        codecs=_codecs({*sends.values(), *receives.values()}),
        budget_mbit=own.budget_mbit,
        others=frozenset(plan.others),
        reliable=plan.reliable,
    )
    return gateway, doors


def _codecs(types: Iterable[type[Message]]) -> LinkCodecs:
    """What these types name to be made small by; without it they cross as they are."""
    codecs: dict[type[Message], LinkCodec] = {}
    for message in types:
        if message.message_link_codec:
            module, _, name = message.message_link_codec.partition(":")
            try:
                codecs[message] = getattr(importlib.import_module(module), name)()
            except ImportError as problem:
                log = logging.getLogger("gateway")
                log.warning("each %s crosses the link as it is: %s", message.__name__, problem)
    return codecs


def check_keys(plan: GatewayPlan) -> None:
    """Raise UserError where this host's secret key is missing, or differs from that of the launch file."""
    if plan.meeting.is_encrypted:
        keys.secret_for(plan.own.name, plan.own.key)
