"""The gateway: a process that joins a run to that of one other host.

It hears, like any process, the topics that nodes of the other host need, sends them over, and publishes here what comes
back, with its stamps moved to this host's clock. What a host may publish is what its nodes
publish: all else is refused. Two threads, each with a socket: images never stand before what is small.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping

import msgspec

from runtime.clock import SystemClock, to_ns
from runtime.codec import Frame, decode, encode
from runtime.errors import CodecError
from runtime.health import GatewayHealth, gateway_topic
from runtime.hosts import wire
from runtime.hosts.bulk import Bulk
from runtime.hosts.offset import ClockOffset
from runtime.hosts.shrink import Shrinker, SmallImage
from runtime.hosts.sockets import Door, Doors
from runtime.hosts.stamps import shifted
from runtime.message import Envelope, Message, Stamped, array_fields
from runtime.msgs import Image

ASK_EVERY_NS = to_ns(0.1)
LOST_AFTER_NS = to_ns(1.0)
ANSWERS_NEEDED = 3  # before messages are let through
FUTURE_NS = to_ns(0.005)
FAREWELLS, FAREWELL_S = 20, 0.05
HEARD_BYE = 0  # no image has this number
_QUEUED = 1024
_SAY_AGAIN_NS = to_ns(5.0)


class Traffic(msgspec.Struct, frozen=True):
    """What may cross, by topic."""

    sends: Mapping[str, type[Message]]
    receives: Mapping[str, type[Message]]
    sources: Mapping[str, tuple[str, ...]]  # who may publish it there; nobody named: any tool


class Gateway:
    """One link. `from_here` takes in what is published here; `publish` puts out what came over."""

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
        shrinker: Shrinker | None = None,
        budget_mbit: float = 0.0,
        own_nodes: frozenset[str] = frozenset(),
        clock: SystemClock | None = None,
    ) -> None:
        self._doors = doors
        self._traffic = traffic
        self._own, self._other, self._graph = own, other, graph
        self._publish, self._finish = publish, finish
        self._shrinker = shrinker
        self._own_nodes = own_nodes
        self._clock = clock or SystemClock()
        self._log = logging.getLogger(f"gateway-{other}")
        self._session = secrets.token_hex(8)
        self._peer_session = ""
        self._offset = ClockOffset()
        self._answered_ns = 0
        self._round_trip_ns = 0
        self._next_ask_ns = 0
        self._was_up = False
        self._times_up = 0
        self._small: deque[list[Frame]] = deque()
        self._bulk = Bulk(budget_mbit)
        self._bulk_lock = threading.Lock()
        self._dropped: Counter[str] = Counter()
        self._count_lock = threading.Lock()
        self._bytes = Counter(sent=0, received=0)
        self._last: dict[tuple[str, str], tuple[int, int]] = {}
        self._said_ns: dict[str, int] = {}
        self._is_stopped = False
        self._accounts = 0

    # what comes from this host, in its inlet's thread

    def from_here(self, stamped: Stamped[Message]) -> None:
        """Send one message over, if the link is up; an image when its turn comes."""
        if not self._is_up():
            self._drop("link down")
        elif array_fields(type(stamped.message)):
            with self._bulk_lock:
                self._bulk.offer(stamped)
            self._doors.bulk.wake()
        elif len(self._small) >= _QUEUED:
            self._drop("queue full")
        else:
            self._small.append([wire.MESSAGE, *encode(stamped.envelope, stamped.message)])
            self._doors.small.wake()

    # life

    async def run(self, stop: asyncio.Event) -> None:
        """Join the two until told to stop, with an account of it each second."""
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
        """Tell the other host that the run ends here, and how, until it has heard it; after `run`."""
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
        """Since the start."""
        return self._bytes["sent"]

    @property
    def _place(self) -> str:
        return self._doors.small.address

    def _tell_health(self, sent_bytes: int, received_bytes: int) -> None:
        now_ns = self._clock.now_ns()
        self._accounts += 1
        health = GatewayHealth(
            host=self._other,
            is_up=self._is_up(),
            round_trip_ms=self._round_trip_ns / 1e6,
            clock_error_ms=self._offset.error_ns(now_ns) / 1e6 if self._offset.is_known else 0.0,
            sent_mbit=sent_bytes * 8 / 1e6,
            received_mbit=received_bytes * 8 / 1e6,
            image_quality=self._bulk.quality,
            dropped=dict(self._dropped + self._bulk.dropped),
        )
        source = f"gateway-{self._other}"
        self._publish(Envelope(gateway_topic(self._other), source, self._accounts, now_ns), health)

    def _is_up(self) -> bool:
        return (
            self._peer_session != ""
            and self._offset.answers >= ANSWERS_NEEDED
            and self._clock.now_ns() - self._answered_ns < LOST_AFTER_NS
        )

    # the small socket's thread

    def _run_small(self) -> None:
        door = self._doors.small
        while not self._is_stopped:
            door.wait(0.02)
            while (frames := door.receive()) is not None:
                self._count("received", frames)
                self._guarded(self._take_small, frames)
            while self._small:
                frames_out = self._small.popleft()
                if door.send(frames_out):
                    self._count("sent", frames_out)
                else:
                    self._drop("link full")
            self._keep_contact(door)

    def _keep_contact(self, door: Door) -> None:
        now_ns = self._clock.now_ns()
        for sentence in self._doors.small.refusals:
            self._log.warning("%s", sentence)
        self._doors.small.refusals.clear()
        if now_ns >= self._next_ask_ns:
            self._next_ask_ns = now_ns + ASK_EVERY_NS
            if self._peer_session:
                door.send(wire.word(wire.Ask(now_ns, self._session)))
            else:
                self._greet(door)
        is_up = self._is_up()
        if is_up and not self._was_up:
            again = " again" if self._times_up else ""  # after a loss people want to know, however little they read
            level = logging.WARNING if self._times_up else logging.INFO
            error_ms = self._offset.error_ns(now_ns) / 1e6
            self._log.log(level, "%s is connected%s; clocks compared to %.1f ms", self._other, again, error_ms)
            self._times_up += 1
        elif self._was_up and not is_up:
            self._log.warning("%s: link lost: no answer for %.0f s", self._other, LOST_AFTER_NS / 1e9)
            with self._bulk_lock:
                self._bulk.forget()
        elif not is_up and not self._peer_session:
            self._say(f"no word from {self._other} yet ({self._place})")
        self._was_up = is_up

    def _greet(self, door: Door, is_reply: bool = False) -> None:
        door.send(wire.word(wire.Hello(self._own, self._session, self._graph, is_reply)))

    def _take_small(self, frames: list[bytes]) -> None:
        if frames[0] == wire.MESSAGE:
            self._take_message(frames[1:])
            return
        word = wire.read_word(frames)
        door = self._doors.small
        match word:
            case wire.Hello():
                self._take_hello(word, door)
            case wire.Ask(sent_ns=sent_ns, session=session) if session == self._peer_session:
                door.send(wire.word(wire.Answer(sent_ns, self._clock.now_ns())))
            case wire.Ask():
                self._greet(door)  # it was restarted, or we were: who is there?
            case wire.Answer(sent_ns=sent_ns, there_ns=there_ns):
                self._take_answer(sent_ns, there_ns)
            case wire.Ack(number=number):
                with self._bulk_lock:
                    self._bulk.acknowledged(number)
                self._doors.bulk.wake()
            case wire.Bye(ok=ok, reason=reason):
                door.send(wire.word(wire.Ack(HEARD_BYE)))
                if not self._peer_session:
                    return  # it says so until it knows that we know
                self._peer_session = ""
                if ok is None:
                    self._log.warning("%s has left", self._other)
                else:
                    self._finish(ok, f"{self._other}: {reason}")

    def _take_hello(self, hello: wire.Hello, door: Door) -> None:
        if hello.host != self._other:
            self._say(f"a host that calls itself {hello.host[:32]!r} was refused; expected {self._other!r}")
            return
        if hello.graph != self._graph:
            self._say(f"{self._other} runs another launch file or release; start both ends from the same ones")
            return
        if hello.session != self._peer_session:
            self._peer_session, self._offset, self._answered_ns = hello.session, ClockOffset(), 0
            self._last.clear()
        if not hello.is_reply:
            self._greet(door, is_reply=True)

    def _take_answer(self, sent_ns: int, there_ns: int) -> None:
        now_ns = self._clock.now_ns()
        if not now_ns - to_ns(60) < sent_ns <= now_ns:
            return  # no question of ours
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
            while self._is_up():
                with self._bulk_lock:
                    stamped = self._bulk.next(self._clock.now_ns())
                    quality = self._bulk.quality
                if stamped is None:
                    break
                self._send_image(door, stamped, quality)

    def _send_image(self, door: Door, stamped: Stamped[Message], quality: int) -> None:
        message: Message = stamped.message
        if isinstance(message, Image) and self._shrinker is not None:
            try:
                message = self._shrinker.shrink(message, quality)
            except ValueError as problem:
                self._drop("not sent", f"{stamped.envelope.topic}: {problem}")
                return
        frames = encode(stamped.envelope, message)
        size = sum(len(frame) for frame in frames)
        with self._bulk_lock:
            number = self._bulk.sent(size, self._clock.now_ns())
        if door.send([wire.IMAGE, wire.number_frame(number), *frames]):
            self._count("sent", frames)
        else:
            self._drop("link full")

    def _take_image(self, frames: list[bytes]) -> None:
        if frames[0] != wire.IMAGE or len(frames) < 4:
            raise CodecError(f"{len(frames)} frames; expected an image")
        number = wire.read_number(frames[1])
        self._small.append(list(wire.word(wire.Ack(number))))
        self._doors.small.wake()
        self._take_message(frames[2:])

    # what comes from the other host

    def _take_message(self, frames: list[bytes]) -> None:
        topic = frames[0].decode(errors="replace") if frames else ""
        declared = self._traffic.receives.get(topic)
        if declared is None:
            self._drop("not allowed", f"{self._other} may not publish {topic[:80]!r}")
            return
        if not self._is_up():
            self._drop("clock unknown")
            return
        is_small_image = declared is Image and self._shrinker is not None
        stamped: Stamped[Message] = decode(frames, SmallImage if is_small_image else declared)
        if not self._may_publish(stamped.envelope):
            self._drop("not allowed", f"{stamped.envelope.source[:80]!r} may not publish {topic!r} from {self._other}")
            return
        if is_small_image and self._shrinker is not None:
            assert isinstance(stamped.message, SmallImage)
            try:
                stamped = Stamped(self._shrinker.grow(stamped.message), stamped.envelope)
            except ValueError as problem:
                raise CodecError(str(problem)) from problem
        key = (topic, stamped.envelope.source)
        mark = (stamped.envelope.seq, stamped.envelope.published_ns)
        if self._last.get(key) == mark:
            return  # repeated for somebody who came late there
        self._last[key] = mark
        now_ns = self._clock.now_ns()
        moved = shifted(stamped, self._offset.shift_ns(now_ns))
        if moved.envelope.published_ns > now_ns + FUTURE_NS:
            self._drop("from the future")
            return
        self._publish(moved.envelope, moved.message)

    def _may_publish(self, envelope: Envelope) -> bool:
        allowed = self._traffic.sources[envelope.topic]
        return envelope.source in allowed or (not allowed and envelope.source not in self._own_nodes)

    # helpers

    def _guarded(self, take: Callable[[list[bytes]], None], frames: list[bytes]) -> None:
        try:
            take(frames)
        except CodecError as problem:
            self._drop("garbled", f"{self._other}: {problem}")

    def _drop(self, reason: str, sentence: str = "") -> None:
        with self._count_lock:  # three threads count
            self._dropped[reason] += 1
        if sentence:
            self._say(sentence)

    def _say(self, sentence: str) -> None:
        now_ns = self._clock.now_ns()
        if len(self._said_ns) > 100:
            self._said_ns.clear()
        if now_ns - self._said_ns.get(sentence, -_SAY_AGAIN_NS) >= _SAY_AGAIN_NS:
            self._said_ns[sentence] = now_ns
            self._log.warning("%s", sentence)

    def _count(self, way: str, frames: list[bytes] | list[Frame]) -> None:
        self._bytes[way] += sum(len(frame) for frame in frames)
