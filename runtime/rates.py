"""How often a timer may tick: what `@every(hz=...)` and `hz` of a launch file have in common."""

from __future__ import annotations

SLOWEST_HZ = 1e-5
"""Once in 28 hours; what happens more rarely is no timer of a run."""
FASTEST_HZ = 10_000.0
"""Beyond this a handler in Python takes longer than its period, and a run does nothing but tick."""


def rate_problem(hz: object) -> str:
    """What is wrong with a rate, as the end of a sentence that has named it; "" where nothing is."""
    is_number = isinstance(hz, int | float) and not isinstance(hz, bool)
    if is_number and SLOWEST_HZ <= hz <= FASTEST_HZ:  # type: ignore[operator]  # False for NaN
        return ""
    return f"expected {SLOWEST_HZ:.5f} to {FASTEST_HZ:.0f} times a second"
