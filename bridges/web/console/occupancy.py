"""Who sits where, as the console knows it: one person per seat, bound to a session that may reload its page."""

from __future__ import annotations

from dataclasses import dataclass

from bridges.web.http.wire import Seat
from runtime.clock import to_s

SEATS: tuple[Seat, ...] = ("planner", "vlm", "policy")
GRACE_S = 5.0
"""How long a seat waits for a person whose page is gone; a reload is back by then. Nothing is sent meanwhile."""


@dataclass(frozen=True, slots=True)
class Occupant:
    """A person on a seat."""

    session: str
    name: str
    lost_ns: int = 0  # since when the page is gone; 0: it is there


class Occupancy:
    """The seats that are held through this console."""

    def __init__(self) -> None:
        self.occupants: dict[Seat, Occupant] = {}

    def take(self, seat: Seat, session: str, name: str, *, force: bool) -> str:
        """Sit down; returns why not, or "" where it is done."""
        now = self.occupants.get(seat)
        if now is not None and now.session != session and not now.lost_ns and not force:
            return f"{now.name} sits on the seat {seat}; ask for it, or take it by force"
        self.occupants[seat] = Occupant(session, name)
        return ""

    def give(self, seat: Seat, session: str) -> bool:
        """Stand up; False for a seat that is not one's own."""
        if not self.holds(seat, session):
            return False
        del self.occupants[seat]
        return True

    def hand(self, seat: Seat, session: str, name: str) -> None:
        """Pass the seat on to another person."""
        self.occupants[seat] = Occupant(session, name)

    def holds(self, seat: Seat, session: str) -> bool:
        """Whether this session sits there."""
        occupant = self.occupants.get(seat)
        return occupant is not None and occupant.session == session

    def left(self, session: str, now_ns: int) -> None:
        """The page of this session is gone."""
        for seat, occupant in self.occupants.items():
            if occupant.session == session:
                self.occupants[seat] = Occupant(session, occupant.name, now_ns)

    def joined(self, session: str) -> None:
        """The page of this session is back."""
        for seat, occupant in self.occupants.items():
            if occupant.session == session:
                self.occupants[seat] = Occupant(session, occupant.name)

    def expire(self, now_ns: int) -> list[tuple[Seat, Occupant]]:
        """Those who did not come back, who have lost their seats now."""
        late = [
            (seat, occupant)
            for seat, occupant in self.occupants.items()
            if occupant.lost_ns and to_s(now_ns - occupant.lost_ns) > GRACE_S
        ]
        for seat, _ in late:
            del self.occupants[seat]
        return late
