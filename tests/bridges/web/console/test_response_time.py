"""How long a participant waited for the wizard: from their last words to the wizard's first act."""

from __future__ import annotations

import pytest

from bridges.web.console.response_time import ResponseTimes
from bridges.web.http.wire import ActRequest, Decide, Drive, Incoming, NoteMark, PlanRequest, Say, StopPressed, Take
from runtime.clock import to_ns


@pytest.mark.parametrize(
    ("message", "act"),
    [
        (Say("robot", "Yes."), "say"), (ActRequest("nod"), "act"), (PlanRequest("Wait."), "plan"),
        (Decide(1, "approve"), "decide"), (Drive(ahead=1.0), "drive"), (StopPressed(), "stop"),
    ],
)  # fmt: skip
def test_the_first_act_after_the_last_words_is_measured_once(message: Incoming, act: str) -> None:
    times = ResponseTimes()
    assert times.acted("Wiz", message, to_ns(1.0)) is None  # nobody has said anything
    times.heard(to_ns(2.0))
    times.heard(to_ns(3.0))
    for unseen in (NoteMark("mark"), Take("vlm"), Drive(), Say("collaborator", "Hello.")):
        assert times.acted("Wiz", unseen, to_ns(3.5)) is None
    assert times.document(to_ns(4.0))["waiting_s"] == 1.0
    response = times.acted("Wiz", message, to_ns(4.25))
    assert response is not None
    assert (response.by, response.act) == ("Wiz", act)
    assert response.after_s == pytest.approx(1.25)
    assert times.acted("Wiz", message, to_ns(5.0)) is None
    times.heard(to_ns(6.0))
    times.acted("Wiz", message, to_ns(9.0))
    assert times.document(to_ns(9.0)) == {"waiting_s": None, "last_s": 3.0, "median_s": 2.1, "count": 2}
