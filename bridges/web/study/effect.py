"""`ConditionEffect`: puts into force what a trial's condition asks of the seats, sees that it stays so, and undoes it.

What was changed stands in the session's file, so that it is undone also after a kill: as long as no trial runs and
something is not undone, it is asked for again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, cast

from bridges.web.console.signing import RequestSigner
from bridges.web.http.graph_messages import STUDY
from bridges.web.http.wire import Seat
from bridges.web.study.session import Event, SessionProgress
from nodes.msgs import SeatRequest
from runtime.clock import to_ns, to_s
from runtime.coordination.lease import Lease

IN_FORCE_S = 3.0
"""A trial whose condition is not in force by then is no trial under that condition: it is broken off."""
AGAIN_NS = to_ns(1.0)


class ConditionEffect:
    """Used by the node's and the server's thread. `note` keeps an event in the session's file."""

    def __init__(
        self, signer: RequestSigner, publish: Callable[[SeatRequest], object], note: Callable[[Event], object]
    ) -> None:
        self._signer = signer
        self._publish = publish
        self._note = note
        self._leases: dict[Seat, Lease] = {}
        self._asked_ns: dict[Seat, int] = {}
        self._began_ns = 0
        self._is_checked = True
        self._lost: set[Seat] = set()

    def learn(self, lease: Lease) -> None:
        """What the guard says about a seat."""
        self._leases[cast(Seat, lease.seat)] = lease  # the three are the console's

    def why_not(self, progress: SessionProgress) -> str:
        """Why the condition of this step cannot be put into force; "" where it can."""
        if progress.changed:
            return "the seats of the trial before are still being given back; try again"
        for seat in progress.seats_wanted:
            if seat not in self._leases:
                return f"the condition hands over the seat {seat}, and nobody hands it out: is the guard there?"
        return ""

    def begin(self, progress: SessionProgress, now_s: float, now_ns: int) -> None:
        """The trial starts: hand over."""
        self._began_ns, self._is_checked, self._lost = now_ns, False, set()
        for seat, holder in progress.seats_wanted.items():
            before = self._leases[seat].holder if seat in self._leases else ""
            self._tell(progress, "set", seat, holder, before, now_s)
            if before != holder:
                self._take(progress, seat, holder, now_ns)

    def end(self, progress: SessionProgress, now_s: float, now_ns: int) -> None:
        """No trial runs: whatever is still as it was set goes back to who held it before. To be called again."""
        for seat, (holder, before) in list(progress.changed.items()):
            lease = self._leases.get(seat)
            if lease is None:
                continue
            if before and holder != before and lease.holder == holder:
                if now_ns - self._asked_ns.get(seat, -AGAIN_NS) >= AGAIN_NS:
                    self._take(progress, seat, before, now_ns)
                continue
            self._tell(progress, "undone", seat, lease.holder, before, now_s)

    def beat(self, progress: SessionProgress, now_s: float, now_ns: int) -> bool:
        """Ten times a second; True where the running trial is to be broken off."""
        if progress.phase != "running":
            self.end(progress, now_s, now_ns)
            return False
        missing = [seat for seat, holder in progress.seats_wanted.items() if self._holder(seat) != holder]
        if to_s(now_ns - self._began_ns) < IN_FORCE_S:
            return False
        is_first, self._is_checked = not self._is_checked, True
        for seat in set(missing) - self._lost:
            self._tell(progress, "lost", seat, self._holder(seat), progress.seats_wanted[seat], now_s)
        self._lost = set(missing)
        return is_first and bool(missing)

    def documents(self, progress: SessionProgress | None) -> list[dict[str, Any]]:
        """For the experimenter: each seat that the condition names, who is to hold it, and who does."""
        wanted = progress.seats_wanted if progress is not None else {}
        return [{"seat": seat, "wanted": holder, "now": self._holder(seat)} for seat, holder in wanted.items()]

    def _holder(self, seat: Seat) -> str:
        return self._leases[seat].holder if seat in self._leases else ""

    def _take(self, progress: SessionProgress, seat: Seat, holder: str, now_ns: int) -> None:
        self._asked_ns[seat] = now_ns
        self._publish(self._signer.seat("take", seat, holder, f"{STUDY} {progress.code}", now_ns))

    def _tell(
        self,
        progress: SessionProgress,
        how: Literal["set", "undone", "lost"],
        seat: Seat,
        holder: str,
        other: str,
        now_s: float,
    ) -> None:
        self._note(
            Event(
                "condition", now_s, by="study", step=progress.step.ident, item=seat, value=holder, text=other, how=how
            )
        )
