"""`polyrhythm seat`: who sits where; take a seat in mid-run and give it back."""

from __future__ import annotations

import argparse
import getpass
import json
import sys
from pathlib import Path

import msgspec

from nodes.seats.sitting import Sitting
from runtime.attach import Interruption, Sender, add_run_argument, attach, hear
from runtime.clock import SystemClock
from runtime.codec import decode
from runtime.errors import PolyrhythmError, UserError
from runtime.fence import SEATS, Seat
from runtime.lease import Lease
from runtime.msgs import Comparison
from runtime.proof import request, token_of
from runtime.registry import FoundRun

LIST_S = 0.8


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
