"""`polyrhythm seat`: who sits where in a running graph; take a seat, give it back, watch its shadow."""

from __future__ import annotations

import argparse
import getpass
import json
import os
import select
import sys
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import msgspec

from runtime.attach import Arrival, Interruption, Sender, add_run_argument, attach, hear
from runtime.clock import SystemClock, to_ns
from runtime.codec import decode
from runtime.commands.pub import prepare
from runtime.errors import PolyrhythmError, UserError
from runtime.fence import SEATS, Seat
from runtime.lease import Kind, Lease
from runtime.msgs import Comparison
from runtime.proof import request, token_of
from runtime.registry import FoundRun

LIST_S = 0.8
ANSWER_S = 2.0
RENEW_S = 0.1
TURN_S = 0.02
"""How long a line on standard input may wait: commands at 20 Hz are not to arrive in pairs."""
KEYS = "keys: w s a d drive, u j lift, i k arm, o p gripper, q gives back"


def main(argv: list[str]) -> int:
    """`polyrhythm seat`; 0 where it is done."""
    asked = _parser().parse_args(argv)
    run = attach(asked.run)
    if asked.do == "list":
        return _list(run, as_json=asked.json)
    if asked.seat is None:
        raise UserError(f"which seat? expected one of: {', '.join(SEATS)}")
    if asked.do == "shadow":
        return _shadow(run, asked.seat, asked.for_s, as_json=asked.json)
    if asked.do == "give":
        return _ask(run, "give", asked.seat, "", asked.by)
    if asked.holder != "me":
        if asked.holder not in run.info.nodes:
            raise UserError(f"--as {asked.holder}: no node of this run; expected me, or one of the seat's candidates")
        return _ask(run, "take", asked.seat, asked.holder, asked.by)
    if asked.keys and asked.seat != "policy":
        raise UserError("--keys drives the robot: it goes with the seat policy")
    if asked.replay is not None:
        from nodes.seats.playing import Playing

        if asked.keys:
            raise UserError("--keys and --replay: one of the two sits there")
        return Playing(run, asked.seat, asked.by, recording=asked.replay, from_s=asked.from_s, for_s=asked.for_s).hold()
    return Sitting(run, asked.seat, asked.by, keys=asked.keys, for_s=asked.for_s).hold()


def leases(run: FoundRun, for_s: float = LIST_S) -> dict[Seat, Lease]:
    """Who sits where now."""
    found: dict[Seat, Lease] = {}
    with Interruption() as interruption:
        for arrival in hear(run, ["lease"], interruption, for_s=for_s):
            if arrival is not None:
                lease = decode(arrival.frames, Lease).message
                found[lease.seat] = lease
    return found


def _list(run: FoundRun, *, as_json: bool) -> int:
    found = leases(run)
    if not found:
        raise PolyrhythmError("nobody issues leases here: the launch file has no [seats.*], or there is no guard")
    if as_json:
        print(json.dumps({seat: {"holder": x.holder, "kind": x.kind, "number": x.number} for seat, x in found.items()}))
        return 0
    for seat in SEATS:
        if seat in found:
            lease = found[seat]
            by = f", {lease.why} by {lease.by}" if lease.by else ""
            shadow = f"; {lease.displaced} in shadow" if lease.displaced else ""
            print(f"{seat:8} {lease.holder} ({lease.kind}), lease {lease.number}{by}{shadow}")
    return 0


def _shadow(run: FoundRun, seat: Seat, for_s: float | None, *, as_json: bool) -> int:
    """Print comparisons as they come."""
    with Interruption() as interruption:
        for arrival in hear(run, ["seat/comparison"], interruption, for_s=for_s):
            if arrival is None:
                continue
            one = decode(arrival.frames, Comparison).message
            if one.seat == seat and as_json:
                print(json.dumps(msgspec.to_builtins(one)), flush=True)
            elif one.seat == seat:
                print(f"{one.shadow} against {one.holder}: {one.measure} {one.distance:.3f} {one.text}", flush=True)
    return 0


def _ask(run: FoundRun, do: str, seat: Seat, holder: str, by: str) -> int:
    """Ask once and wait for the lease."""
    token, clock = token_of(run.folder), SystemClock()
    before = leases(run).get(seat)
    if before is None:
        raise PolyrhythmError(f"nobody issues a lease for {seat}: the launch file has no [seats.{seat}]")
    sender = Sender(run, "seat/request", provenance="person")
    sender.publish(request(token, "take" if do == "take" else "give", seat, holder, by, clock.now_ns()))
    sender.close()
    after = leases(run).get(seat)
    if after is None or after.number == before.number:
        print(f"{seat}: not handed over; {before.holder} keeps it", file=sys.stderr)
        return 1
    print(f"{seat}: {after.holder} ({after.kind}), lease {after.number}")
    return 0


class Sitting:
    """A person on a seat, from taking it to giving it back. Dies with its process: then the guard takes the lease."""

    kind: ClassVar[Kind] = "person"
    turn_s = TURN_S  # how often it is looked what there is to say

    def __init__(self, run: FoundRun, seat: Seat, by: str, *, keys: bool, for_s: float | None) -> None:
        self.run = run
        self.seat: Seat = seat
        self.by = by
        self.keys = keys
        self.for_s = for_s
        self.source = f"{'me' if self.kind == 'person' else self.kind}-{os.getpid()}"
        self.provenance = f"person:{by}"
        self.clock = SystemClock()
        self.token = token_of(run.folder)
        self.requests = Sender(run, "seat/request", provenance="person", source=self.source)
        self.senders: dict[str, Sender] = {}
        self.renewed_ns = 0
        self.is_seated = False
        self.unread = b""  # of standard input: the beginning of a line
        self.is_at_end = sys.stdin.closed

    def hold(self) -> int:
        """Take the seat, keep it until the end, give it back."""
        now_ns = self.clock.now_ns()
        self.requests.publish(request(self.token, "take", self.seat, self.source, self.by, now_ns, kind=self.kind))
        give_up_ns = now_ns + to_ns(ANSWER_S)
        drive: Callable[[Arrival | None], bool] | None = None
        topics = ["lease", "robot/command"] if self.keys else ["lease"]
        with Interruption() as interruption:
            if self.keys:
                from nodes.seats.keys import Keys

                drive = Keys(self._sender("command")).drive
            try:
                for arrival in hear(self.run, topics, interruption, self.for_s, self.turn_s):
                    if arrival is not None and arrival.topic == "lease" and not self._heard(arrival):
                        return 0
                    self._renew()
                    if not self.is_seated:
                        if self.clock.now_ns() > give_up_ns:
                            print(f"{self.seat}: not handed over; polyrhythm guard state tells why", file=sys.stderr)
                            return 1
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
        return 0

    def _heard(self, arrival: Arrival) -> bool:
        """False once somebody else sits here."""
        lease = decode(arrival.frames, Lease).message
        if lease.seat != self.seat:
            return True
        if lease.holder == self.source:
            if not self.is_seated:
                how = KEYS if self.keys else "Ctrl-C gives it back"
                print(f"{self.seat}: you ({self.source}), lease {lease.number}; {how}", flush=True)
            self.is_seated = True
            return True
        if self.is_seated:
            self.is_seated = False
            print(f"{self.seat}: now {lease.holder}, {lease.why} by {lease.by}", flush=True)
            return False
        return True

    def _renew(self) -> None:
        now_ns = self.clock.now_ns()
        if self.is_seated and now_ns - self.renewed_ns > to_ns(RENEW_S):
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
        try:
            self._sender(topic).publish(prepare(self.run, topic, text, force=f"{self.by} holds {self.seat}"))
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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polyrhythm seat",
        description="Who sits on the seats planner, vlm and policy of a running graph. Taking one hands over at once; "
        "the displaced model goes on in shadow: recorded and compared, never acting. While a person holds the policy "
        "seat and sends nothing, the robot holds. Lines `TOPIC JSON` on standard input are published from the seat.",
        epilog="examples: polyrhythm seat take policy --as me --keys; polyrhythm seat take policy --replay run.mcap",
    )
    parser.add_argument("do", choices=("list", "take", "give", "shadow"))
    parser.add_argument("seat", nargs="?", choices=SEATS)
    parser.add_argument(
        "--as", dest="holder", default="me", metavar="me|NODE", help="who takes it; default: %(default)s"
    )
    parser.add_argument("--by", default=getpass.getuser(), help="who you are; default: %(default)s")
    parser.add_argument("--keys", action="store_true", help="drive the robot with the keyboard")
    parser.add_argument(
        "--replay", type=Path, metavar="RUN.mcap", help="what the seat's holder did in that recording is done again"
    )
    parser.add_argument(
        "--from", dest="from_s", type=float, default=0.0, metavar="S", help="with --replay: from that run time on"
    )
    parser.add_argument("--for", dest="for_s", type=float, metavar="S", help="end after that many seconds")
    add_run_argument(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser
