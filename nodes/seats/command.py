"""`polyrhythm seat`: who holds each seat of a running graph; take one, give it back."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Literal

import msgspec

from nodes.msgs import Comparison
from nodes.msgs.signature import request, token_of
from nodes.seats.recorded_track import SPOKEN, read_score
from nodes.seats.terminal_holder import TerminalHolder
from runtime.clock import NS_PER_S, SystemClock
from runtime.command_line.arguments import seconds
from runtime.command_line.attach import StopSignal, add_run_argument, attach, hear, send, user_name
from runtime.coordination.lease import LEASE_TOPIC, Lease
from runtime.errors import PolyrhythmError, UserError, choices
from runtime.launch.process_plan import load_type
from runtime.message import Message
from runtime.serialization.codec import decode
from runtime.supervision.registry import FoundRun


class ReplayHolder(TerminalHolder):
    """Publishes what is due once the guard has given it the seat; gives the seat back at the end."""

    kind = "replay"
    turn_s = 0.005

    def __init__(
        self, run: FoundRun, seat: str, by: str, *, recording: Path, from_s: float, for_s: float | None
    ) -> None:
        """Read the recording first. Raises RecordingError, and UserError where the seat's holder said nothing in it."""
        types = topics_of_seat(run, seat)
        self.score = read_score(recording, seat, types, from_s=from_s)
        super().__init__(run, seat, by, keys=False, for_s=for_s)
        self.provenance = f"replay:{self.score.name}"
        for topic in {note.topic for note in self.score.notes}:
            self._sender(topic)  # connecting takes a moment, which is not to be between two commands
        self.began_ns = 0
        print(f"{seat}: {self.score.length_s:.1f} s of {recording}", flush=True)

    def _speak(self) -> bool:
        now_ns = self.clock.now_ns()
        self.began_ns = self.began_ns or now_ns
        for note in self.score.due(now_ns - self.began_ns):
            self._sender(note.topic).publish(note.message)
        return not self.score.is_over


def topics_of_seat(run: FoundRun, seat: str) -> dict[str, type[Message]]:
    """The topics that a recording may publish on, with their types: those that belong to the seat alone.

    A tool's messages count there only under a lease. Raises UserError where the seat has no such topic.
    """
    found = {
        topic: load_type(run.info.topics[topic].type)
        for plan in run.info.processes.values()
        for topic, owner in plan.seat_topics.items()
        if owner == seat and topic in SPOKEN[seat] and topic in run.info.topics
    }
    if not found:
        raise UserError(
            f"nothing in this graph belongs to the seat {seat} alone; the launch file has no [seats.{seat}]"
        )
    return found


LIST_S = 0.8
COMPARISONS = "seat/comparison"
GOES_WITH = {
    "keys": "take SEAT --as me",
    "replay": "take SEAT --as me",
    "from_s": "take SEAT --replay RUN.mcap",
    "for_s": "take SEAT --as me, and with shadow SEAT",
    "holder": "take",
}
NAMES = {"keys": "--keys", "replay": "--replay", "from_s": "--from", "for_s": "--for", "holder": "--as"}


def main(argv: list[str]) -> int:
    """Run `polyrhythm seat` with these arguments; 0 where it is done, 1 where the guard refused.

    Raises UserError for options that do not fit together, and for an unknown seat or candidate.
    """
    asked = _parser().parse_args(argv)
    _check(asked)
    run = attach(asked.run, "laptop", acts=asked.do in ("take", "give"))
    if asked.seat is not None:
        _check_seat(run, asked.seat)
    if asked.do == "list":
        return _list(run, asked.seat, as_json=asked.json)
    if asked.do == "shadow":
        return _shadow(run, asked.seat, asked.for_s, as_json=asked.json)
    if asked.do == "give":
        return _ask(run, "give", asked.seat, "", asked.by, as_json=asked.json)
    if asked.holder not in (None, "me"):
        candidates = run.info.seats[asked.seat].candidates
        if asked.holder not in candidates:
            raise UserError(
                f"--as {asked.holder}: no candidate for the seat {asked.seat}; "
                f"expected me, or one of its candidates: {choices(candidates)}"
            )
        return _ask(run, "take", asked.seat, asked.holder, asked.by, as_json=asked.json)
    if asked.replay is not None:
        return ReplayHolder(
            run, asked.seat, asked.by, recording=asked.replay, from_s=asked.from_s or 0.0, for_s=asked.for_s
        ).hold()
    return TerminalHolder(run, asked.seat, asked.by, keys=asked.keys, for_s=asked.for_s).hold()


def _check(asked: argparse.Namespace) -> None:
    """Raises UserError for options that do not fit together, before it looks for a run."""
    if asked.seat is None and asked.do != "list":
        raise UserError(f"which seat? expected its name, like: polyrhythm seat {asked.do} policy")
    is_me = asked.do == "take" and asked.holder in (None, "me")
    fits = {
        "holder": asked.do == "take",
        "keys": is_me,
        "replay": is_me,
        "from_s": is_me and asked.replay is not None,
        "for_s": is_me or asked.do == "shadow",
    }
    for option, is_fit in fits.items():
        if not is_fit and getattr(asked, option) not in (None, False):
            raise UserError(f"{NAMES[option]} goes with polyrhythm seat {GOES_WITH[option]}")
    if asked.keys and asked.seat != "policy":
        raise UserError("--keys drives the robot: it goes with the seat policy")
    if asked.keys and asked.replay is not None:
        raise UserError("--keys and --replay: one of the two sits there")
    if asked.json and is_me:
        raise UserError("--json goes with list, shadow, give and take SEAT --as NODE")


def _check_seat(run: FoundRun, seat: str) -> None:
    """Raises UserError where the run has no such seat."""
    if seat not in run.info.seats:
        raise UserError(f"{run.title} has no seat {seat}: its launch file has {_tables(run)}")


def _tables(run: FoundRun) -> str:
    return ", ".join(f"[seats.{seat}]" for seat in run.info.seats) or "no [seats.*]"


def leases(run: FoundRun) -> dict[str, Lease]:
    """The present lease of each seat, as heard within `LIST_S` seconds. Raises PolyrhythmError where none is heard."""
    found: dict[str, Lease] = {}
    if not run.info.seats or LEASE_TOPIC not in run.info.topics:
        raise PolyrhythmError(f"nobody issues leases in {run.title}: it has {_tables(run)}, or no guard")
    with StopSignal() as stop_signal:
        for arrival in hear(run, [LEASE_TOPIC], stop_signal, for_s=LIST_S):
            if arrival is not None:
                lease = decode(arrival.frames, Lease).message
                found[lease.seat] = lease
    if not found:
        raise PolyrhythmError("the guard tells of no lease; polyrhythm nodes tells how it fares")
    return found


def _list(run: FoundRun, only: str | None, *, as_json: bool) -> int:
    found = {seat: lease for seat, lease in leases(run).items() if only in (None, seat)}
    if as_json:
        print(json.dumps({seat: _as_data(lease) for seat, lease in found.items()}))
        return 0
    for seat in run.info.seats:
        if seat in found:
            print(line(found[seat], run.info.nodes))
    return 0


def line(lease: Lease, nodes: Collection[str]) -> str:
    """Who holds a seat, as a line of text. `nodes` are the graph's: a displaced one of them goes on in shadow."""
    by = f", {lease.why} by {lease.by}" if lease.by else ""
    before = ""
    if lease.displaced:
        before = f"; {lease.displaced} in shadow" if lease.displaced in nodes else f"; before: {lease.displaced}"
    return f"{lease.seat:8} {lease.holder} ({lease.kind}), lease {lease.number}{by}{before}"


def _as_data(lease: Lease) -> dict[str, str | int]:
    return {"holder": lease.holder, "kind": lease.kind, "number": lease.number, "by": lease.by, "why": lease.why}


class ComparisonLimit:
    """Limits which comparisons are printed: each one of words, and of commands one per measure and second."""

    def __init__(self) -> None:
        self._shown_ns: dict[tuple[str, str], int] = {}

    def is_due(self, one: Comparison, now_ns: int) -> bool:
        """Whether to print this comparison now; where it is of commands, the next of its kind waits for a second."""
        kind = (one.shadow, one.measure)
        if not one.text and now_ns - self._shown_ns.get(kind, now_ns - NS_PER_S) < NS_PER_S:
            return False
        self._shown_ns[kind] = now_ns
        return True


def _shadow(run: FoundRun, seat: str, for_s: float | None, *, as_json: bool) -> int:
    """Print comparisons as they arrive; those of commands at one per second."""
    if COMPARISONS not in run.info.topics:
        raise UserError(
            f"nobody compares shadows in {run.title}; start it with --add compare=nodes.seats.compare:ShadowCompare"
        )
    count, pace = 0, ComparisonLimit()
    with StopSignal() as stop_signal:
        for arrival in hear(run, [COMPARISONS], stop_signal, for_s=for_s):
            if arrival is None:
                continue
            stamped = decode(arrival.frames, Comparison)
            one = stamped.message
            if one.seat != seat:
                continue
            count += 1
            if as_json:
                print(json.dumps(msgspec.to_builtins(one)), flush=True)
            elif pace.is_due(one, stamped.envelope.published_ns):
                said = f"{one.shadow} against {one.holder}: {one.measure} {one.distance:.3f} {one.text}"
                print(said.rstrip(), flush=True)
    if not count:
        print(f"{seat}: nothing was compared; nobody is in shadow there, or says anything", file=sys.stderr)
    return 0 if count else 1


def _ask(run: FoundRun, do: Literal["take", "give"], seat: str, holder: str, by: str, *, as_json: bool) -> int:
    """Send the request once and wait for the lease; nothing is sent where it is so already."""
    token, clock = token_of(run.folder), SystemClock()
    before = leases(run).get(seat)
    if before is None:
        raise PolyrhythmError(f"the guard tells of no lease for {seat}; polyrhythm nodes tells how it fares")
    after, note = before, " already"
    if before.holder != (holder or run.info.seats[seat].holder):
        send(run, "seat/request", request(token, do, seat, holder, by, clock.now_ns()))
        after, note = leases(run).get(seat, before), ""
        if after.number == before.number:
            print(f"{seat}: not handed over; {before.holder} keeps it; the run's log says why", file=sys.stderr)
            return 1
    if as_json:
        print(json.dumps({seat: _as_data(after)}))
    else:
        print(f"{seat}: {after.holder} ({after.kind}){note}, lease {after.number}")
    return 0


def _from(text: str) -> float:
    """A time in a recording, in s, from the command line."""
    return 0.0 if text.strip() in ("0", "0.0") else seconds(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polyrhythm seat",
        description="Who sits on the seats planner, vlm and policy of a running graph. Taking one hands over at once; "
        "the displaced model goes on in shadow: recorded and compared, never acting. While a person holds the policy "
        "seat and sends nothing, the robot holds. Lines `TOPIC JSON` on standard input are published from the seat.",
        epilog="examples: polyrhythm seat take policy --as me --keys; polyrhythm seat take policy --replay run.mcap",
    )
    parser.add_argument("do", choices=("list", "take", "give", "shadow"))
    parser.add_argument("seat", nargs="?", help="as the launch file names it: planner, vlm, policy")
    parser.add_argument(
        "--as", dest="holder", metavar="me|NODE", help="who takes it: yourself (the default), or a candidate"
    )
    parser.add_argument("--by", default=user_name(), help="who you are; default: %(default)s")
    parser.add_argument("--keys", action="store_true", help="drive the robot with the keyboard")
    parser.add_argument(
        "--replay", type=Path, metavar="RUN.mcap", help="what the seat's holder did in that recording is done again"
    )
    parser.add_argument("--from", dest="from_s", type=_from, metavar="S", help="with --replay: from that run time on")
    parser.add_argument("--for", dest="for_s", type=seconds, metavar="S", help="end after that many seconds")
    add_run_argument(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser
