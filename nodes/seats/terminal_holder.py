"""`TerminalHolder`: a person on a seat of a running graph, at a terminal."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable
from typing import ClassVar

from runtime.clock import SystemClock, to_ns, to_s
from runtime.command_line.attach import Arrival, Interruption, Sender, hear, topic_of
from runtime.commands.pub import prepare
from runtime.coordination.lease import Kind, Lease
from runtime.errors import UserError, choices
from runtime.msgs.signature import request, token_of
from runtime.serialization.codec import decode
from runtime.supervision.registry import FoundRun

ANSWER_S = 2.0
RENEW_S = 0.1
TURN_S = 0.02
"""How long a line on standard input may wait: commands at 20 Hz are not to arrive in pairs."""
KEYS = "keys: w s a d drive, u j lift, i k arm, o p gripper, q gives back"


class TerminalHolder:
    """A person on a seat, from taking it to giving it back. Dies with its process: then the guard takes the lease."""

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

    def hold(self) -> int:
        """Take the seat, keep it until the end, give it back; 1 where the guard did not give it."""
        give_up_ns = 0
        drive: Callable[[Arrival | None], bool] | None = None
        topics = ["lease", "robot/command"] if self.keys else ["lease"]
        with Interruption() as interruption:
            if self.keys:
                from nodes.seats.keys import Keys

                drive = Keys(self._sender("command")).drive
            try:
                for arrival in hear(self.run, topics, interruption, self.for_s, self.turn_s):
                    give_up_ns = give_up_ns or self._take()  # now that the answer will be heard
                    if arrival is not None and arrival.topic == "lease" and not self._heard(arrival):
                        return 0
                    self._renew()
                    if not self.is_seated:
                        if self.clock.now_ns() > give_up_ns:
                            break
                        continue
                    if drive is not None:
                        if not drive(arrival):
                            break
                    elif not self._speak():
                        break
            finally:
                if drive is not None:
                    Keys.restore()
                self._leave()
        if not self.was_seated:
            print(f"{self.seat}: not handed over; the guard's lines in the run's log say why", file=sys.stderr)
        return 0 if self.was_seated else 1

    def _take(self) -> int:
        """Ask for the seat; until when an answer is waited for."""
        now_ns = self.clock.now_ns()
        self.requests.publish(request(self.token, "take", self.seat, self.source, self.by, now_ns, kind=self.kind))
        return now_ns + to_ns(ANSWER_S)

    def _heard(self, arrival: Arrival) -> bool:
        """False once somebody else sits here."""
        lease = decode(arrival.frames, Lease).message
        if lease.seat != self.seat:
            return True
        if lease.holder == self.source:
            if not self.is_seated:
                how = KEYS if self.keys else "Ctrl-C gives it back"
                print(f"{self.seat}: you ({self.source}), lease {lease.number}; {how}", flush=True)
            self.is_seated = self.was_seated = True
            return True
        if self.is_seated:
            self.is_seated = False
            print(f"{self.seat}: now {lease.holder}, {lease.why} by {lease.by}", flush=True)
            return False
        return True

    def _renew(self) -> None:
        now_ns = self.clock.now_ns()
        if self.is_seated and to_s(now_ns - self.renewed_ns) > RENEW_S:
            self.renewed_ns = now_ns
            self.requests.publish(request(self.token, "renew", self.seat, self.source, self.by, now_ns))

    def _speak(self) -> bool:
        """Publish what stands on standard input as `TOPIC JSON`, line by line; False at its end."""
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

    def _sender(self, topic: str) -> Sender:
        if topic not in self.senders:
            self.senders[topic] = Sender(self.run, topic, provenance=self.provenance, source=self.source)
        return self.senders[topic]

    def _leave(self) -> None:
        if self.is_seated and self.run.is_alive:
            now_ns = self.clock.now_ns()
            self.requests.publish(request(self.token, "give", self.seat, "", self.by, now_ns))
            print(f"{self.seat}: given back", flush=True)
        for sender in (self.requests, *self.senders.values()):
            sender.close()
