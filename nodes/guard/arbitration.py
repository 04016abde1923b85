"""Arbitration: which source may command each seat, by fences and leases; pure. Its numbers never go back."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping

import msgspec

from nodes.interrupts.fence_issuer import FenceIssuer
from nodes.msgs import SeatRequest
from runtime.clock import to_s
from runtime.coordination.lease import RENEWED_WITHIN_S, Kind, Lease
from runtime.message import Epochs

TOLD_LATE_S = 0.2
"""A ladder may have heard the holder's last word so much earlier than the guard."""


class LadderStep(msgspec.Struct, frozen=True):
    """The part of a ladder's step that matters here: after how long a silence it may hand over, and to whom."""

    to: str = ""
    silent_s: float = math.inf


class SeatConfig(msgspec.Struct, frozen=True):
    """From the launch file: the default holder of a seat, its candidates, their kinds, and what preempts it."""

    holder: str
    shadows: tuple[str, ...] = ()
    kinds: dict[str, Kind] = {}
    ladder: tuple[LadderStep, ...] = ()
    preempted_by: tuple[str, ...] | None = None


class Arbitration(FenceIssuer):
    """Issues fences and leases. Nobody can take a seat that the launch file does not name."""

    def __init__(self, homes: Mapping[str, SeatConfig] | None = None, seats: Iterable[str] = ()) -> None:
        """`homes` are the launch file's seats, by name; `seats` are those that nodes of the graph declare."""
        homes = homes or {}
        super().__init__({seat: home.preempted_by for seat, home in homes.items()}, seats)
        self.homes: dict[str, SeatConfig] = dict(homes)
        self.leases: dict[str, Lease] = {
            seat: Lease(seat=seat, holder=home.holder, number=0, kind=home.kinds.get(home.holder, "model"))
            for seat, home in self.homes.items()
        }
        self._renewed_ns: defaultdict[str, int] = defaultdict(int)
        self._heard_ns: dict[str, tuple[str, int]] = {}  # of each seat: who was heard last, and when
        self._spent: dict[str, str] = {}  # of each seat: the holder whose model may not be asked any more

    def restore(self, epochs: Epochs, leases: Mapping[str, Lease], now_ns: int) -> None:
        """Continue from the epochs and leases of an earlier guard; no number ever goes back."""
        self.go_on_from(epochs)
        for seat, lease in leases.items():
            if seat in self.homes and lease.number >= self.leases[lease.seat].number:
                self.leases[lease.seat] = lease
                self._renewed_ns[lease.seat] = now_ns
                self._heard_ns[lease.seat] = lease.holder, now_ns  # from now on this guard listens itself

    def begin_at(self, number: int) -> None:
        """Continue above every number that an earlier guard may have issued, where its state is lost."""
        self.go_on_from(dict.fromkeys(sorted(set[str]().union(*self.preempts.values())), number))
        self.leases = {
            seat: Lease(seat=seat, holder=lease.holder, number=number, kind=lease.kind)
            for seat, lease in self.leases.items()
        }

    def hear(self, seat: str, source: str, at_ns: int) -> None:
        """Note that the guard itself has heard this source on this seat; who does not hold it is not noted."""
        if seat in self.leases and self.leases[seat].holder == source:
            before, last_ns = self._heard_ns.get(seat, ("", 0))
            self._heard_ns[seat] = source, max(at_ns, last_ns) if before == source else at_ns

    def spend(self, seat: str, source: str) -> None:
        """Note that a holder says of itself that its model may not be asked any more: as good as silent."""
        if seat in self.leases and self.leases[seat].holder == source:
            self._spent[seat] = source

    def silent_s(self, seat: str, now_ns: int) -> float:
        """For how long the guard has heard nothing of a seat's holder, s.

        It is below 0 where the holder has never begun to speak, and of a person, who may stay silent.
        """
        lease = self.leases[seat]
        source, heard_ns = self._heard_ns.get(seat, ("", 0))
        if lease.kind == "person" or source != lease.holder:
            return -1.0
        return math.inf if self._spent.get(seat) == lease.holder else to_s(now_ns - heard_ns)

    def allows_ladder(self, request: SeatRequest, now_ns: int) -> bool:
        """Whether the launch file's ladder asks for this hand-over, and the guard itself has seen the silence that it
        is for; it needs no signature then."""
        home = self.homes.get(request.seat)
        if home is None or request.do != "take" or request.kind != "script" or request.holder == "":
            return False
        silent_s = self.silent_s(request.seat, now_ns) + TOLD_LATE_S
        return any(step.to == request.holder and silent_s >= step.silent_s for step in home.ladder)

    def decide(self, request: SeatRequest, source: str, now_ns: int, *, is_proven: bool) -> Lease | str:
        """The lease that a request leads to, or why it is refused; "" for a renewal that is accepted.

        `source` is the sender; `is_proven` says that the caller has verified the signature.
        """
        seat, now = request.seat, self.leases.get(request.seat)
        if now is None:
            return f"the launch file has no [seats.{seat}]"
        if not is_proven:
            return f"{request.do} {seat} by {request.by or source!r} is not proven with the run's token"
        if request.do == "renew":
            if now.holder != source or request.holder != source:
                return f"{source} does not hold the seat {seat}"
            # A renewal counts from its stamp: one that was delayed on its way does not lengthen a lease.
            self._renewed_ns[seat] = max(self._renewed_ns[seat], min(request.stamp_ns, now_ns))
            return ""
        if request.do == "give":
            return self._give(seat, now_ns, by=request.by, why="given back")
        return self._take(request, source, now_ns)

    def expired(self, now_ns: int) -> list[Lease]:
        """Return each seat whose person fell silent for `RENEWED_WITHIN_S` to its default holder; the new leases."""
        late = [
            seat
            for seat, lease in self.leases.items()
            if self._must_be_renewed(lease) and to_s(now_ns - self._renewed_ns[seat]) > RENEWED_WITHIN_S
        ]
        return [self._give(seat, now_ns, by="guard", why="the link to the holder is lost") for seat in late]

    def _take(self, request: SeatRequest, source: str, now_ns: int) -> Lease | str:
        seat, home = request.seat, self.homes[request.seat]
        known = (home.holder, *home.shadows)
        holder = request.holder or source
        if holder not in known and holder != source:
            return f"{holder!r} is no candidate for the seat {seat}; candidates: {', '.join(known)}"
        kind = home.kinds.get(holder, "model") if holder in known else request.kind
        if self.leases[seat].holder == holder:
            return f"{holder} holds the seat {seat} already"
        self._renewed_ns[seat] = now_ns
        return self._issue(seat, holder, kind, now_ns, by=request.by, why="taken")

    def _give(self, seat: str, now_ns: int, *, by: str, why: str) -> Lease:
        home = self.homes[seat]
        kind = home.kinds.get(home.holder, "model")
        return self._issue(seat, home.holder, kind, now_ns, by=by, why=why)

    def _issue(self, seat: str, holder: str, kind: Kind, now_ns: int, *, by: str, why: str) -> Lease:
        before = self.leases[seat]
        displaced = before.holder if before.holder != holder else ""
        lease = Lease(
            seat=seat, holder=holder, number=before.number + 1, kind=kind, by=by, displaced=displaced, why=why
        )
        self.leases[seat] = lease
        self._spent.pop(seat, None)
        if seat in self._heard_ns:  # a new holder has its time to begin
            self._heard_ns[seat] = holder, now_ns
        return lease

    def _must_be_renewed(self, lease: Lease) -> bool:
        home = self.homes[lease.seat]
        return lease.holder not in (home.holder, *home.shadows)
