"""`Seats`: the seats that people hold through this console, in step with the guard's leases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bridges.web.console.occupancy import SEATS, Occupancy
from bridges.web.console.ports import ConsolePorts
from bridges.web.console.signing import RequestSigner
from bridges.web.http.graph_messages import STUDY, SeatWord
from bridges.web.http.message_ids import MessageIds
from bridges.web.http.open_page import Session
from bridges.web.http.wire import Seat
from nodes.msgs import Interrupt
from runtime.clock import to_s
from runtime.coordination.lease import Lease

ANSWER_S = 1.0
"""How long the guard's answer to a request may take before it is asked again."""
HANDS: dict[Seat, str] = {"planner": "human_planner", "vlm": "human_vlm", "policy": "human_policy"}
"""The nodes that speak for the person, by seat; they are candidates in the launch file."""


WISH_S = 30.0
"""How long a person's wish for somebody else's seat waits for its answer."""


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """Somebody asks for a seat on which another person sits."""

    number: int
    seat: Seat
    session: str
    name: str
    since_ns: int


class Seats:
    """Asks the guard for seats in the name of those who sit at the pages."""

    def __init__(self, ports: ConsolePorts, signer: RequestSigner, message_ids: MessageIds) -> None:
        self.sessions: Sequence[Session] = ()  # the open pages
        self._ports = ports
        self.signer = signer
        self._occupancy = Occupancy()
        self._leases: dict[Seat, Lease] = {}
        self._asked_ns: dict[Seat, int] = {}
        self.message_ids = message_ids
        self._wishes: dict[int, PendingRequest] = {}
        self._wish_count = 0

    def holder(self, seat: Seat) -> str:
        """Whose words count, as far as is known."""
        lease = self._leases.get(seat)
        return "" if lease is None else lease.holder

    def has_person(self, seat: Seat) -> bool:
        """Whether somebody at a page sits there, and the guard agrees."""
        return seat in self._occupancy.occupants and self.holder(seat) == HANDS[seat]

    def learn(self, lease: Lease) -> None:
        """What the guard says (the node's thread)."""
        for seat in HANDS:
            if seat == lease.seat:
                self._leases[seat] = lease

    def holds(self, seat: Seat, session: Session) -> bool:
        """Whether this person sits there."""
        return self._occupancy.holds(seat, session.ident)

    def joined(self, session: Session) -> None:
        """A page was opened; one that may not sit does not take up a seat that its tab held before."""
        if session.is_operator:
            self._occupancy.joined(session.ident)

    def left(self, session: Session, now_ns: int) -> None:
        """A page is gone: its person keeps the seat for a moment, in which nothing is sent."""
        self._occupancy.left(session.ident, now_ns)

    def take(self, seat: Seat, session: Session, now_ns: int, *, force: bool) -> None:
        """Sit down, if need be instead of another person."""
        before = self._occupancy.occupants.get(seat)
        refusal = self._occupancy.take(seat, session.ident, session.name, force=force)
        if refusal:
            session.notice(refusal)
            return
        lease = self._leases.get(seat)
        if lease is None:
            self._occupancy.give(seat, session.ident)
            session.notice(f"nobody hands out the seat {seat} in this run")
            return
        is_forced = before is not None and before.session != session.ident
        if before is not None and is_forced:
            self._notify(before.session, f"{session.name} has taken the seat {seat} from you")
        self._word("force" if is_forced else "take", seat, session.name, before.name if before and is_forced else "")
        if lease.holder != HANDS[seat]:
            self._ask("take", seat, session.name, now_ns, session.ident)

    def ask(self, seat: Seat, session: Session, now_ns: int) -> None:
        """Ask the person who sits there; where nobody does, sit down."""
        occupant = self._occupancy.occupants.get(seat)
        if occupant is None or occupant.session == session.ident or occupant.lost_ns:
            self.take(seat, session, now_ns, force=False)
            return
        known = [one for one in self._wishes.values() if (one.seat, one.session) == (seat, session.ident)]
        if known:
            session.notice(f"{occupant.name} has been asked already")
            return
        self._wish_count += 1
        self._wishes[self._wish_count] = PendingRequest(self._wish_count, seat, session.ident, session.name, now_ns)
        self._word("ask", seat, session.name, occupant.name)
        self._notify(occupant.session, f"{session.name} asks for the seat {seat}")

    def answer(self, seat: Seat, number: int, session: Session, *, is_granted: bool) -> None:
        """Give one's seat to the person who asked for it, or say no."""
        wish = self._wishes.get(number)
        if wish is None or wish.seat != seat or not self.holds(seat, session):
            session.notice("that wish is not there any more")
            return
        del self._wishes[number]
        if all(one.ident != wish.session for one in self.sessions):
            session.notice(f"{wish.name} is gone")
            return
        self._word("grant" if is_granted else "refuse", seat, session.name, wish.name)
        self._notify(wish.session, f"{session.name} {'gives you' if is_granted else 'keeps'} the seat {seat}")
        if is_granted:
            self._occupancy.hand(seat, wish.session, wish.name)

    def give(self, seat: Seat, session: Session, now_ns: int) -> None:
        """Give the seat back to the model."""
        if self._occupancy.give(seat, session.ident):
            self._word("give", seat, session.name)
            self._ask("give", seat, session.name, now_ns, session.ident)

    def beat(self, now_ns: int) -> None:
        """Ten times a second: who has no page any more loses the seat, and the leases follow who sits."""
        self.signer.beat(now_ns, self._notify)
        here = {session.ident for session in self.sessions}
        for wish in list(self._wishes.values()):
            is_late = to_s(now_ns - wish.since_ns) > WISH_S
            if is_late or wish.session not in here or self._occupancy.occupants.get(wish.seat) is None:
                del self._wishes[wish.number]
        for seat, gone in self._occupancy.expire(now_ns):
            if seat == "policy":
                self.stop(f"the link to {gone.name}, who drove, is lost")
            self._ask("give", seat, gone.name, now_ns)
        for seat, lease in list(self._leases.items()):
            if to_s(now_ns - self._asked_ns.get(seat, 0)) < ANSWER_S:
                continue
            is_ours, occupant = lease.holder == HANDS[seat], self._occupancy.occupants.get(seat)
            if is_ours and occupant is None and lease.by.startswith(STUDY) and (wizard := self._wizard()) is not None:
                self._occupancy.hand(seat, wizard.ident, wizard.name)
                wizard.notice(f"the study gives you the seat {seat}")
            elif is_ours and occupant is None:  # of a console before this one
                if seat == "policy":
                    self.stop("nobody is at the console that drove")
                self._ask("give", seat, self._ports.name, now_ns)
            elif occupant is not None and not is_ours:
                del self._occupancy.occupants[seat]
                self._notify(occupant.session, f"the seat {seat} is {lease.holder}'s now")

    def _wizard(self) -> Session | None:
        """The operator who has been here longest."""
        return next((session for session in self.sessions if session.is_operator), None)

    def stop(self, text: str) -> None:
        """Stop the robot."""
        ident = self.message_ids.next("interrupt")
        self._ports.interrupt.publish(Interrupt(id=ident, depth="stop", text=text, by="console"))

    def documents(self, session: Session) -> dict[str, dict[str, Any]]:
        """Who sits where, for one page."""
        return {seat: self._document(seat, session) for seat in SEATS}

    def _document(self, seat: Seat, session: Session) -> dict[str, Any]:
        occupant = self._occupancy.occupants.get(seat)
        lease = self._leases.get(seat)
        return {
            "holder": "" if lease is None else lease.holder,
            "kind": "" if lease is None else lease.kind,
            "by": "" if occupant is None else occupant.name,
            "mine": self._occupancy.holds(seat, session.ident),
            "lost": occupant is not None and occupant.lost_ns > 0,
            "wishes": [
                {"wish": wish.number, "name": wish.name}
                for wish in list(self._wishes.values())
                if wish.seat == seat and self._occupancy.holds(seat, session.ident)
            ],
        }

    def _ask(self, do: Literal["take", "give"], seat: Seat, by: str, now_ns: int, session: str = "") -> None:
        """`session`: whose wish it is, and who is told where the guard refuses it."""
        self._asked_ns[seat] = now_ns
        self._ports.request.publish(self.signer.seat(do, seat, HANDS[seat], by, now_ns, session))

    def _word(
        self, do: Literal["take", "ask", "grant", "refuse", "force", "give"], seat: Seat, by: str, of: str = ""
    ) -> None:
        self._ports.seat_word.publish(SeatWord(seat=seat, do=do, by=by, of=of))

    def _notify(self, ident: str, text: str) -> None:
        for session in self.sessions:
            if session.ident == ident:
                session.notice(text)
