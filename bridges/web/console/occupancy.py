"""Who sits where, as the console knows it: one person per seat, bound to a session that may reload its page."""

from __future__ import annotations

from dataclasses import dataclass

from bridges.web.http.wire import Seat
from runtime.clock import to_ns

SEATS: tuple[Seat, ...] = ("planner", "vlm", "policy")
GRACE_S = 5.0
"""How long a seat waits for a person whose page is gone; a reload is back by then. Nothing is sent meanwhile."""


@dataclass(frozen=True, slots=True)
class Sitter:
    """A person on a seat."""

    session: str
    name: str
    lost_ns: int = 0  # since when the page is gone; 0: it is there


class Seating:
    """The seats that are held through this console."""

    def __init__(self) -> None:
        self.sitters: dict[Seat, Sitter] = {}

    def take(self, seat: Seat, session: str, name: str, *, force: bool) -> str:
        """Sit down; returns why not, or "" where it is done."""
        now = self.sitters.get(seat)
        if now is not None and now.session != session and not now.lost_ns and not force:
            return f"{now.name} sits on the seat {seat}; ask for it, or take it by force"
        self.sitters[seat] = Sitter(session, name)
        return ""

    def give(self, seat: Seat, session: str) -> bool:
        """Stand up; False for a seat that is not one's own."""
        if not self.holds(seat, session):
            return False
        del self.sitters[seat]
        return True

    def hand(self, seat: Seat, session: str, name: str) -> None:
        """Pass the seat on to another person."""
        self.sitters[seat] = Sitter(session, name)

    def holds(self, seat: Seat, session: str) -> bool:
        """Whether this session sits there."""
        sitter = self.sitters.get(seat)
        return sitter is not None and sitter.session == session

    def left(self, session: str, now_ns: int) -> None:
        """The page of this session is gone."""
        for seat, sitter in self.sitters.items():
            if sitter.session == session:
                self.sitters[seat] = Sitter(session, sitter.name, now_ns)

    def came(self, session: str) -> None:
        """The page of this session is back."""
        for seat, sitter in self.sitters.items():
            if sitter.session == session:
                self.sitters[seat] = Sitter(session, sitter.name)

    def expire(self, now_ns: int) -> list[tuple[Seat, Sitter]]:
        """Those who did not come back, who have lost their seats now."""
        late = [
            (seat, sitter)
            for seat, sitter in self.sitters.items()
            if sitter.lost_ns and now_ns - sitter.lost_ns > to_ns(GRACE_S)
        ]
        for seat, _ in late:
            del self.sitters[seat]
        return late
