"""A guard that hands out seats, people who ask for them well or badly, and what must be true of leases; for stories.

The guard is the real node with its real file; only its clock is in the story's hand.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import msgspec

from nodes.guard.node import Guard
from nodes.msgs import JointCommand, SeatRequest
from nodes.msgs.interrupt import PREEMPTS
from nodes.msgs.signature import GOOD_FOR_NS, make_token, request
from runtime.clock import to_ns
from runtime.context import HandlerContext, current_call
from runtime.coordination.lease import RENEWED_WITHIN_S, Lease, SeatHolders
from runtime.message import Envelope, Message, Stamped
from runtime.run_facts import RunFacts
from tests.support.guard.guard_story import MS
from tests.support.standing import HOME, standing

SEATS = PREEMPTS["stop"]

SHADOWS = {"planner": ("fallback",), "vlm": (), "policy": ("second", "replayed")}
HOLDERS: dict[str, str] = {"planner": "planner", "vlm": "vlm", "policy": "first"}
INFO = {
    seat: {
        "holder": HOLDERS[seat],
        "shadows": SHADOWS[seat],
        "ladder": [{"silent_s": 1.0, "do": "hand_over", "to": SHADOWS[seat][0]}] if SHADOWS[seat] else [],
    }
    for seat in SEATS
}
PEOPLE = ("me-1", "me-2")
TICK_NS = 20 * MS


def is_candidate(name: str, seat: str) -> bool:
    """Whether the launch file names it for that seat; all others have to renew their lease."""
    return name in (HOLDERS[seat], *SHADOWS[seat])


class Hand:
    """A clock that stands until it is moved."""

    is_virtual = False

    def __init__(self, now_ns: int) -> None:
        self.ns = now_ns

    def now_ns(self) -> int:
        return self.ns


class LeaseStory:
    """Everything that is known of the leases from outside."""

    def __init__(self, folder: Path, now_ns: int = 50_000_000_000) -> None:
        self.folder = folder
        self.clock = Hand(now_ns)
        self.sent: list[tuple[str, SeatRequest]] = []  # with who sent it
        self.used: set[str] = set()  # proofs that were good already
        self.news: list[Lease] = []
        self.number: dict[str, int] = dict.fromkeys(SEATS, 0)
        self.holder: dict[str, str] = dict(HOLDERS)
        self.renewed_ns: dict[str, int] = dict.fromkeys(SEATS, 0)
        self.line = SeatHolders(cast(Any, HOLDERS), {"command": "policy"})
        self.seqs: dict[str, int] = {}
        self.restart()
        self.token = make_token(folder)  # the guard's; one that was there before it would say that a guard has gone

    def restart(self) -> None:
        """The guard's process dies and is started again."""
        self.guard = guard = Guard(arm="auto", memory="run")
        self.since_ns = self.clock.ns
        guard.clock = self.clock  # type: ignore[assignment]  # a hand turns it
        guard.run_info = RunFacts.of({"registry": str(self.folder), "launch_file": "x/story.toml", "seats": INFO})
        for port in (guard.command, guard.state):
            vars(port)["clock"] = self.clock
        guard.lease.sink = lambda _, message, __: self._issued(message)
        guard.on_start()
        for seat, lease in guard.arbitration.leases.items():
            assert lease.number == self.number[seat], "a restart forgot a lease, or made one"
            assert lease.holder == self.holder[seat]
            self.renewed_ns[seat] = max(self.renewed_ns[seat], self.clock.ns)  # the successor waits for a renewal anew

    # what people and others send

    def ask(self, asked: SeatRequest, source: str) -> None:
        """Hand a request to the guard, from that source, and check what it did about it."""
        self.sent = [*self.sent[-30:], (source, asked)]
        before, number = len(self.news), dict(self.number)
        is_good = self._is_good(asked)
        if is_good:
            self.used.add(asked.proof)
        held = self.holder[asked.seat] == source and asked.holder == source
        if is_good and asked.do == "renew" and held:
            self.renewed_ns[asked.seat] = max(self.renewed_ns[asked.seat], min(asked.stamp_ns, self.clock.ns))
        token = current_call.set(HandlerContext.of(self.clock.ns, {}, self.arrived(asked, source)))
        try:
            self.guard.seated(asked)
        finally:
            current_call.reset(token)
        is_of_ladder = asked.kind == "script" and asked.do == "take" and asked.holder in SHADOWS[asked.seat][:1]
        for lease in self.news[before:]:
            assert lease.seat == asked.seat, "another seat than the one asked for"
            assert asked.do in ("take", "give"), "a renewal handed over"
            assert is_good or is_of_ladder, "handed over without proof"
            assert is_candidate(lease.holder, lease.seat) or lease.holder == source, "a stranger was seated"
            assert lease.number == number[asked.seat] + 1

    def request(self, do: Any, seat: str, holder: str, *, age_ms: int = 0, is_forged: bool = False) -> SeatRequest:
        """A request as a tool makes it; a forged one is signed with another token."""
        token = "0" * 64 if is_forged else self.token
        return request(token, do, seat, holder, "Ann", self.clock.ns - age_ms * MS)

    def _is_good(self, asked: SeatRequest) -> bool:
        proper = request(self.token, asked.do, asked.seat, asked.holder, asked.by, asked.stamp_ns, kind=asked.kind)
        is_fresh = abs(self.clock.ns - asked.stamp_ns) <= GOOD_FOR_NS and asked.stamp_ns > self.since_ns
        return asked.proof == proper.proof and is_fresh and asked.proof not in self.used

    def arrived(self, message: Message, source: str) -> Stamped[Message]:
        self.seqs[source] = seq = self.seqs.get(source, 0) + 1
        topic = "command" if isinstance(message, JointCommand) else "seat/request"
        return Stamped(message, Envelope(topic, source, seq, self.clock.ns))

    def command(self, source: str) -> None:
        """A command of anybody reaches the guard's port."""
        arrived = self.arrived(JointCommand(position=HOME, base_v_mps=0.1), source)
        self.guard.command.push(cast(Any, arrived))

    # what the guard does

    def wait(self, ticks: int) -> None:
        """Let the guard tick that often."""
        for _ in range(ticks):
            self.clock.ns += TICK_NS
            before = len(self.news)
            held, renewed_ns = dict(self.holder), dict(self.renewed_ns)
            self.guard.state.push(Stamped(standing(self.clock.ns), Envelope("robot/state", "d", 1, self.clock.ns)))
            self.guard.tick()
            for lease in self.news[before:]:
                silent_ns = self.clock.ns - renewed_ns[lease.seat]
                assert not is_candidate(held[lease.seat], lease.seat), "a candidate of the launch file need not renew"
                assert silent_ns > to_ns(RENEWED_WITHIN_S), "lost a seat that was renewed in time"
                assert lease.holder == HOLDERS[lease.seat], "a lost seat goes home"
                if lease.seat == "policy":
                    assert self.guard.machine.mode in ("stopped", "disarmed", "estopped"), "lost, and not stopped"
            self._check_overdue()
            self._check_command()

    def _check_overdue(self) -> None:
        for seat, holder in self.holder.items():
            if not is_candidate(holder, seat):
                late_ns = self.clock.ns - self.renewed_ns[seat]
                assert late_ns <= to_ns(RENEWED_WITHIN_S), f"{holder} keeps {seat} without renewing it"

    def _check_command(self) -> None:
        machine = self.guard.machine
        if machine.mode == "moving":
            assert machine.report().holder == self.holder["policy"], "somebody else's command is applied"

    def _issued(self, message: Message) -> None:
        assert isinstance(message, Lease)
        if message.is_repetition:
            assert (message.number, message.holder) == (self.number[message.seat], self.holder[message.seat])
            return
        assert message.number == self.number[message.seat] + 1, "a lease's number did not grow by one"
        self.number[message.seat], self.holder[message.seat] = message.number, message.holder
        self.renewed_ns[message.seat] = self.clock.ns
        self.news.append(message)

    # what others hear of it

    def deliver(self, number: int, *, is_backwards: bool) -> None:
        """A listener gets the last leases, some twice, in order or not."""
        leases = self.news[-number:] if number else []
        for lease in reversed(leases) if is_backwards else list(leases):
            self.line.take(lease)
            self.line.take(lease.repeated())

    def check(self) -> None:
        """What holds between any two steps: whatever a listener has heard, at most one source speaks for the seat."""
        sources = ("first", "second", "replayed", *PEOPLE, "stranger")
        heard = [name for name in sources if not self.line.is_shadow(Envelope("command", name, 1, 0, seat="policy"))]
        assert len(heard) == 1, "not exactly one in command"
        leases = self.guard.arbitration.leases
        assert {seat: lease.number for seat, lease in leases.items()} == self.number
        assert {seat: lease.holder for seat, lease in leases.items()} == self.holder


def changed(asked: SeatRequest, **fields: object) -> SeatRequest:
    """The request with something else in it, under the proof that it had."""
    other: SeatRequest = msgspec.structs.replace(cast(Any, asked), **fields)
    return other
