"""The console's word to the guard, proven with the run's token: as `nodes.guard.proof` asks for it."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path
from typing import Any, Literal

from bridges.web.wire import Seat
from runtime.msgs import GuardOrder, SeatRequest

TOKEN_FILE = "guard.token"


class Asking:
    """Signs requests with the token that the guard keeps in the run's registry, a folder of this user alone."""

    def __init__(self, run_info: dict[str, Any]) -> None:
        self._folder = Path(str(run_info["registry"])) if run_info.get("registry") else None
        self._last_ns = 0

    def seat(self, do: Literal["take", "give"], seat: Seat, holder: str, by: str, now_ns: int) -> SeatRequest:
        """A wish for a seat."""
        stamp_ns = self._stamp(now_ns)
        proof = self._prove(do, seat, holder, by, stamp_ns)
        return SeatRequest(seat=seat, do=do, holder=holder, by=by, stamp_ns=stamp_ns, proof=proof)

    def order(self, do: Literal["arm", "rearm"], by: str, now_ns: int) -> GuardOrder:
        """An order to arm, or to arm again after an emergency stop."""
        stamp_ns = self._stamp(now_ns)
        return GuardOrder(do=do, by=by, stamp_ns=stamp_ns, proof=self._prove(do, by, stamp_ns))

    def _stamp(self, now_ns: int) -> int:
        self._last_ns = max(now_ns, self._last_ns + 1)  # each proof is good once
        return self._last_ns

    def _prove(self, *parts: str | int) -> str:
        """The proof; an empty one, which the guard refuses in words, where the token is not there to be read."""
        try:
            token = (self._folder / TOKEN_FILE).read_text().strip() if self._folder is not None else ""
        except OSError:
            token = ""
        text = "\n".join(str(part) for part in parts)
        return hmac.new(token.encode(), text.encode(), hashlib.sha256).hexdigest() if token else ""
