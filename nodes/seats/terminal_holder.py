"""`TerminalHolder`: a person at a terminal who holds a seat of a running graph."""

from __future__ import annotations

import json
import os
import select
import sys
from typing import TYPE_CHECKING, ClassVar

from nodes.msgs import JOINTS, GuardState
from nodes.msgs.signature import request, token_of
from runtime.clock import SystemClock, to_ns, to_s
from runtime.command_line.attach import Arrival, Sender, StopSignal, hear, topic_of
from runtime.commands.pub import prepare
from runtime.coordination.lease import Kind, Lease
from runtime.errors import UserError, choices
from runtime.serialization.codec import decode
from runtime.supervision.registry import FoundRun
from runtime.supervision.view import plain, terminal_width

if TYPE_CHECKING:
    from nodes.seats.keys import Keys

ANSWER_S = 2.0
RENEW_S = 0.1
TURN_S = 0.02
"""How long a line on standard input may wait, s; short enough that commands at 20 Hz do not arrive in pairs."""
STATUS_S = 0.2
SAVE = "recorder/save"
CLEAR = "\r\x1b[K"
"""Clears the status line before it is written again."""


class TerminalHolder:
    """Holds a seat for a person from taking it to giving it back; if the process dies, the guard ends the lease.

    `by` names the person. With `keys` the keyboard drives the robot; otherwise lines `TOPIC JSON` on standard input are
    published. `for_s` ends it after that many seconds.
    """

    kind: ClassVar[Kind] = "person"
    turn_s = TURN_S  # how often it is looked what there is to say

    def __init__(self, run: FoundRun, seat: str, by: str, *, keys: bool, for_s: float | None) -> None:
        self.run = run
        self.seat: str = seat
        self.by = by
        self.keys = keys
        self.for_s = for_s
        self.source = f"{'me' if self.kind == 'person' else self.kind}-{os.getpid()}"
        self.provenance = f"person:{by}"
        self.clock = SystemClock()
        self.token = token_of(run.folder)
        self.requests = Sender(run, "seat/request", provenance="person", source=self.source)
        self.senders: dict[str, Sender] = {}
        self.own = {
            topic for plan in run.info.processes.values() for topic, owner in plan.seat_topics.items() if owner == seat
        }
        self.renewed_ns = 0
        self.is_seated = self.was_seated = False
        self.unread = b""  # of standard input: the beginning of a line
        self.is_at_end = sys.stdin.closed
        self.driver: Keys | None = None
        self.guard, self.shown, self.shown_ns = "unknown", "", 0

    def hold(self) -> int:
        """Take the seat, keep it until the end, and give it back; 1 where the guard did not give it."""
        give_up_ns = 0
        topics = ["lease"]
        with StopSignal() as stop_signal:
            if self.keys:
                from nodes.seats.keys import Keys

                self.driver = Keys(
                    self._sender("command"), tuple(self.run.info.shared.get("joints", JOINTS)), self._keep_last
                )
                topics += [topic for topic in ("robot/command", "guard/state") if topic in self.run.info.topics]
            try:
                for arrival in hear(self.run, topics, stop_signal, self.for_s, self.turn_s):
                    give_up_ns = give_up_ns or self._take()  # now that the answer will be heard
                    if arrival is not None and arrival.topic == "lease" and not self._heard(arrival):
                        return 0
                    self._renew()
                    if not self.is_seated:
                        if self.clock.now_ns() > give_up_ns:
                            break
                        continue
                    if self.driver is not None:
                        if not self.driver.drive(arrival):
                            break
                        self._show(arrival)
                    elif not self._speak():
                        break
            finally:
                if self.driver is not None:
                    self.driver.restore()
                self._leave()
        if not self.was_seated:
            print(f"{self.seat}: not handed over; the guard's lines in the run's log say why", file=sys.stderr)
        return 0 if self.was_seated else 1

    def _take(self) -> int:
        """Ask for the seat; returns until when to wait for the answer, in ns."""
        now_ns = self.clock.now_ns()
        self.requests.publish(request(self.token, "take", self.seat, self.source, self.by, now_ns, kind=self.kind))
        return now_ns + to_ns(ANSWER_S)

    def _heard(self, arrival: Arrival) -> bool:
        """Take in a lease; False once somebody else holds the seat."""
        lease = decode(arrival.frames, Lease).message
        if lease.seat != self.seat:
            return True
        if lease.holder == self.source:
            if not self.is_seated:
                how = f"keys:\n{self.driver.told}" if self.driver is not None else "Ctrl-C gives it back"
                print(f"{self.seat}: you ({self.source}), lease {lease.number}; {how}", flush=True)
            self.is_seated = self.was_seated = True
            return True
        if self.is_seated:
            self.is_seated = False
            self._tell(f"{self.seat}: now {lease.holder}, {lease.why} by {lease.by}")
            return False
        return True

    def _renew(self) -> None:
        now_ns = self.clock.now_ns()
        if self.is_seated and to_s(now_ns - self.renewed_ns) > RENEW_S:
            self.renewed_ns = now_ns
            self.requests.publish(request(self.token, "renew", self.seat, self.source, self.by, now_ns))

    def _show(self, arrival: Arrival | None) -> None:
        """Keep one status line on the terminal: the commanded joints and the guard's mode."""
        if arrival is not None and arrival.topic == "guard/state":
            self.guard = decode(arrival.frames, GuardState).message.sentence
        width, now_ns = terminal_width(), self.clock.now_ns()
        if width is None or not (self.driver and self.driver.posture) or to_s(now_ns - self.shown_ns) < STATUS_S:
            return
        text = plain(f"{self.driver.status}; guard: {self.guard}")[: width - 1]
        if text != self.shown:
            self.shown, self.shown_ns = text, now_ns
            print(f"{CLEAR}{text}", end="", flush=True)

    def _tell(self, text: str) -> None:
        print(f"{CLEAR if self.shown else ''}{text}", flush=True)
        self.shown = ""

    def _speak(self) -> bool:
        """Publish each line `TOPIC JSON` of standard input; False at its end."""
        while not self.is_at_end and not sys.stdin.isatty() and select.select([sys.stdin], [], [], 0)[0]:
            # Not by sys.stdin.readline: what it reads ahead is not seen by select.
            data = os.read(sys.stdin.fileno(), 1 << 16)
            self.is_at_end = not data
            *lines, self.unread = (self.unread + data).split(b"\n")
            if self.is_at_end and self.unread:
                lines, self.unread = [self.unread], b""
            for line in lines:
                self._publish(line.decode(errors="replace"))
        return not self.is_at_end or self.for_s is not None  # with --for the seat is kept in silence

    def _publish(self, line: str) -> None:
        topic, _, text = line.strip().partition(" ")
        is_own = topic in self.own
        try:
            if not is_own and topic_of(self.run, topic).kind == "state":
                raise UserError(f"{topic} does not belong to the seat {self.seat}; its topics: {choices(self.own)}")
            message = prepare(self.run, topic, text, force=f"{self.by} holds {self.seat}" if is_own else None)
            self._sender(topic).publish(message)
        except UserError as problem:
            print(f"polyrhythm: {problem}", file=sys.stderr)

    def _keep_last(self) -> None:
        """Have the recorder save what it holds in memory (its `ring_s`)."""
        try:
            reason = json.dumps({"reason": f"{self.by} pressed r"})
            self._sender(SAVE).publish(prepare(self.run, SAVE, reason, force=None))
            self._tell("the last seconds are asked for")
        except UserError as problem:
            self._tell(f"nothing keeps the last seconds: {problem}")

    def _sender(self, topic: str) -> Sender:
        if topic not in self.senders:
            self.senders[topic] = Sender(self.run, topic, provenance=self.provenance, source=self.source)
        return self.senders[topic]

    def _leave(self) -> None:
        if self.is_seated and self.run.is_alive:
            now_ns = self.clock.now_ns()
            self.requests.publish(request(self.token, "give", self.seat, "", self.by, now_ns))
            heard = hear(self.run, ["lease"], StopSignal(), ANSWER_S)  # Ctrl-C, which brought us here, ends no waiting
            leases = (decode(arrival.frames, Lease).message for arrival in heard if arrival is not None)
            is_back = any(lease.seat == self.seat and lease.holder != self.source for lease in leases)
            unanswered = (
                f"nobody answers within {ANSWER_S:g} s that it is given back; it falls back once its lease ends"
            )
            self._tell(f"{self.seat}: {'given back' if is_back else unanswered}")
        for sender in (self.requests, *self.senders.values()):
            sender.close()
