"""The console's word to the guard, signed with the run's token."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from bridges.web.http.wire import Seat
from runtime.errors import PolyrhythmError
from runtime.msgs import GuardOrder, RobotService, SeatRequest
from runtime.msgs.signature import order, request, service, token_of
from runtime.run_facts import RunFacts


class RequestSigner:
    """Signs requests with the token that the guard keeps in the run's registry, a folder of this user alone."""

    def __init__(self, run_info: RunFacts) -> None:
        self._folder = Path(run_info.registry) if run_info.registry else None
        self._last_ns = 0

    def seat(self, do: Literal["take", "give"], seat: Seat, holder: str, by: str, now_ns: int) -> SeatRequest:
        """A wish for a seat."""
        return request(self._token(), do, seat, holder, by, self._stamp(now_ns))

    def order(self, do: Literal["arm", "rearm", "resume"], by: str, now_ns: int) -> GuardOrder:
        """An order to arm, to arm again after an emergency stop, or to go on after a stop."""
        return order(self._token(), do, by, self._stamp(now_ns))

    def service(self, verb: Literal["home", "stow"], by: str, now_ns: int) -> RobotService:
        """A wish that the robot itself fulfils, where the guard lets it."""
        return service(self._token(), verb, by, self._stamp(now_ns))

    def _stamp(self, now_ns: int) -> int:
        self._last_ns = max(now_ns, self._last_ns + 1)  # each proof is good once
        return self._last_ns

    def _token(self) -> str:
        """Without one nothing is proven, and the guard refuses it in words."""
        try:
            return token_of(self._folder) if self._folder is not None else ""
        except PolyrhythmError:
            return ""
