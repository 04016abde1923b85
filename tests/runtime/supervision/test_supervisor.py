"""When the supervisor gives a process up: by the time that it worked, whatever its loading takes."""

from __future__ import annotations

import pytest

from runtime.clock import to_ns
from runtime.supervision.supervisor import RESTARTS, RestartWindow


def backoffs_s(loads_s: float, works_s: float, crashes: int) -> list[float | None]:
    """What the window says at each crash of a process that loads and works for so long each time."""
    window, now_s, found = RestartWindow(), 0.0, []
    for _ in range(crashes):
        window.runs(to_ns(now_s + loads_s))
        now_s += loads_s + works_s
        found.append(window.next_backoff_s(to_ns(now_s)))
    return found


@pytest.mark.parametrize("loads_s", [0.5, 60.0])
def test_a_process_that_crashes_again_and_again_is_given_up_however_long_it_loads(loads_s: float) -> None:
    assert backoffs_s(loads_s, 0.1, RESTARTS + 1) == [0.2, 0.4, 0.8, None]


def test_a_process_that_works_between_its_crashes_is_always_restarted() -> None:
    assert None not in backoffs_s(1.0, 4.0, 20)


def test_a_process_that_never_gets_to_its_work_is_given_up() -> None:
    window = RestartWindow()
    assert [window.next_backoff_s(to_ns(100.0 * number)) for number in range(RESTARTS + 1)][-1] is None
