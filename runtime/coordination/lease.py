"""Leases: who holds a seat. What anybody else publishes for that seat reaches recorders and comparers only.

Only the guard issues leases; their number only grows. Every subscription asks its process's `SeatHolders`. So a
hand-over takes effect wherever the lease has arrived, with no node between the holder and its readers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from runtime.message import Envelope, Message

LEASE_TOPIC = "lease"
RENEWED_WITHIN_S = 0.6
"""A person's lease ends when it was not renewed for this long: the person's tool, or the link to it, is gone.

What the person ordered last is shorter valid by itself, so nothing goes on until then.
"""

Kind = Literal["model", "person", "script", "replay"]


class Lease(Message):
    """Says who holds a seat from now on; comes on `LEASE_TOPIC`.

    Subscribe to it to show who is in command, or to act otherwise while another node has the seat. A node need not do
    so to be displaced: the readers drop what the seat's other candidates say. It is repeated for those that start
    later.
    """

    seat: str
    holder: str  # the source whose messages count; "" nobody's
    number: int  # fencing number: a lease with a smaller one is void
    kind: Kind = "model"
    by: str = ""  # who asked for it
    displaced: str = ""  # the holder before, which goes on in shadow
    why: str = ""
    is_repetition: bool = False

    def repeated(self) -> Lease:
        """The same lease, marked as a repetition."""
        return Lease(
            seat=self.seat,
            holder=self.holder,
            number=self.number,
            kind=self.kind,
            by=self.by,
            displaced=self.displaced,
            why=self.why,
            is_repetition=True,
        )


class SeatHolders:
    """The leases that a process knows; without a lease for a seat, everybody may speak for it."""

    def __init__(self, holders: Mapping[str, str] | None = None, topics: Mapping[str, str] | None = None) -> None:
        """`holders` maps each seat to its node at the start. `topics` belong to one seat, whoever publishes there."""
        self._holders = dict(holders or {})
        self._numbers: dict[str, int] = {}
        self.seat_topics = dict(topics or {})
        """Those that belong to one seat, and which."""

    def take(self, lease: Lease) -> None:
        """Take in a lease; one that is older than the present one changes nothing."""
        if lease.number >= self._numbers.get(lease.seat, 0):
            self._holders[lease.seat], self._numbers[lease.seat] = lease.holder, lease.number

    def is_shadow(self, envelope: Envelope) -> bool:
        """Whether this message speaks for a seat that its source does not hold."""
        seat = envelope.seat or self.seat_topics.get(envelope.topic, "")
        holder = self._holders.get(seat) if seat else None
        return holder is not None and holder != envelope.source
