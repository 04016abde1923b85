"""`ResponseTimes`: how long a participant waited from their last words to the wizard's first act."""

from __future__ import annotations

from collections import deque
from statistics import median
from typing import Any

from bridges.web.http.wire import ActRequest, Decide, Drive, Incoming, PlanRequest, Say, StopPressed
from nodes.msgs import WizardResponse
from runtime.clock import to_s

KEPT = 200


class ResponseTimes:
    """Words and acts come in by two threads; each is one assignment."""

    def __init__(self) -> None:
        self._heard_ns = 0  # the participant's last words; 0: somebody has acted on them
        self._after_s: deque[float] = deque(maxlen=KEPT)

    def heard(self, at_ns: int) -> None:
        """A participant has spoken; their words are there."""
        self._heard_ns = at_ns

    def acted(self, by: str, message: Incoming, now_ns: int) -> WizardResponse | None:
        """A wizard does something; an answer to the participant where it is the first thing since their words."""
        act = act_of(message)
        heard_ns = self._heard_ns
        if not act or not heard_ns:
            return None
        self._heard_ns = 0
        after_s = to_s(now_ns - heard_ns)
        self._after_s.append(after_s)
        return WizardResponse(by=by, act=act, after_s=after_s)

    def document(self, now_ns: int) -> dict[str, Any]:
        """For operators' pages: how long somebody waits now, the last time and the median of them; s."""
        times = list(self._after_s)
        heard_ns = self._heard_ns
        return {
            "waiting_s": round(to_s(now_ns - heard_ns), 1) if heard_ns else None,
            "last_s": round(times[-1], 1) if times else None,
            "median_s": round(median(times), 1) if times else None,
            "count": len(times),
        }


def act_of(message: Incoming) -> str:
    """What a wizard does with it; "" for what a participant sees nothing of."""
    match message:
        case Say(voice="robot"):
            return "say"
        case ActRequest():
            return "act"
        case PlanRequest():
            return "plan"
        case Decide():
            return "decide"
        case Drive():
            return "drive" if message.is_held else ""
        case StopPressed():
            return "stop"
    return ""
