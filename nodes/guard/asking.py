"""What a person's tool sends to the guard, with the proof that the guard asks for."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from nodes.guard.proof import TOKEN_FILE, prove
from runtime.errors import PolyrhythmError
from runtime.fence import Seat
from runtime.msgs import GuardOrder, SeatRequest


def token_of(registry: Path) -> str:
    """The run's token. Raises PolyrhythmError where there is none, or it is not this user's to read."""
    try:
        return (registry / TOKEN_FILE).read_text().strip()
    except OSError as problem:
        raise PolyrhythmError(
            f"the run's token cannot be read ({problem.strerror}); does this graph have a guard, and is the run yours?"
        ) from problem


def order(token: str, do: Literal["arm", "rearm"], by: str, now_ns: int) -> GuardOrder:
    """An order to arm or re-arm."""
    return GuardOrder(do=do, by=by, stamp_ns=now_ns, proof=prove(token, do, by, now_ns))


def request(token: str, do: Literal["take", "give"], seat: Seat, holder: str, by: str, now_ns: int) -> SeatRequest:
    """A wish for a seat; to take it for another than oneself, name the holder."""
    proof = prove(token, do, seat, holder, by, now_ns)
    return SeatRequest(seat=seat, do=do, holder=holder, by=by, stamp_ns=now_ns, proof=proof)
