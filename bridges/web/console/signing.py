"""The console's word to the guard, signed with the run's token, and who is told what the guard made of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeVar

from bridges.web.http.wire import Seat
from nodes.msgs import GuardAnswer, GuardOrder, RobotService, SeatRequest
from nodes.msgs.signature import order, request, service, token_of
from runtime.clock import to_ns
from runtime.errors import PolyrhythmError
from runtime.run_facts import RunFacts

Asked = TypeVar("Asked", GuardOrder, RobotService, SeatRequest)

ANSWER_NS = to_ns(2.0)
"""A proof is good for so long; what the guard has not answered by then it will not do."""
NAMES = {
    "arm": "Arm",
    "rearm": "Re-arm",
    "resume": "Resume",
    "home": "Home",
    "stow": "Stow",
    "take": "The seat",
    "give": "Giving back",
}


class RequestSigner:
    """Signs requests with the token that the guard keeps in the run's registry, a folder of this user alone.

    `session`: of the page that asks; it is told where the guard refuses, or does not answer.
    """

    def __init__(self, run_info: RunFacts) -> None:
        self._folder = Path(run_info.registry) if run_info.registry else None
        self._last_ns = 0
        self._asked: dict[str, tuple[str, str, int]] = {}  # request -> session, what for, when
        self._answers: deque[GuardAnswer] = deque(maxlen=64)

    def seat(
        self, do: Literal["take", "give"], seat: Seat, holder: str, by: str, now_ns: int, session: str = ""
    ) -> SeatRequest:
        """A wish for a seat."""
        made = request(self._token(), do, seat, holder, by, self._stamp(now_ns))
        return self._note(session, do, made)

    def order(self, do: Literal["arm", "rearm", "resume"], by: str, now_ns: int, session: str = "") -> GuardOrder:
        """An order to arm, to arm again after an emergency stop, or to go on after a stop."""
        return self._note(session, do, order(self._token(), do, by, self._stamp(now_ns)))

    def service(self, verb: Literal["home", "stow"], by: str, now_ns: int, session: str = "") -> RobotService:
        """A wish that the robot itself fulfils, where the guard lets it."""
        return self._note(session, verb, service(self._token(), verb, by, self._stamp(now_ns)))

    def answered(self, answer: GuardAnswer) -> None:
        """What the guard says (the node's thread)."""
        self._answers.append(answer)

    def beat(self, now_ns: int, tell: Callable[[str, str], object]) -> None:
        """Ten times a second: `tell` a session in words what is not done (the server's thread)."""
        while self._answers:
            answer = self._answers.popleft()
            session, name, _ = self._asked.pop(answer.request, ("", "", 0))
            if session and not answer.is_accepted:
                tell(session, f"{name} was refused: {answer.why}")
        for ident, (session, name, at_ns) in list(self._asked.items()):
            if now_ns - at_ns > ANSWER_NS:
                del self._asked[ident]
                tell(session, f"{name}: the guard has not answered, so it is not done")

    def _note(self, session: str, do: str, made: Asked) -> Asked:
        if session:
            self._asked[made.id] = session, NAMES[do], made.stamp_ns
        return made

    def _stamp(self, now_ns: int) -> int:
        self._last_ns = max(now_ns, self._last_ns + 1)  # each proof is good once
        return self._last_ns

    def _token(self) -> str:
        """Without one nothing is proven, and the guard refuses it in words."""
        try:
            return token_of(self._folder) if self._folder is not None else ""
        except PolyrhythmError:
            return ""
