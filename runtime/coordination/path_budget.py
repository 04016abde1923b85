"""Whether a path has kept its budget, `p99_s` of `[budgets.paths.NAME]`."""

from __future__ import annotations

MISSES = 0.01
"""The share of messages that may be older than a path's `p99_s`."""
JUDGED_FROM = 100
"""A 99th percentile of fewer messages says nothing."""


def is_met(count: int, over: int, unknown: int = 0) -> bool | None:
    """Whether a path of so many messages kept its budget; None where they are too few to judge it by.

    `over` were too old, and the age of `unknown` more cannot be known.
    """
    return None if count + unknown < JUDGED_FROM else is_within(count, over, unknown)


def is_within(count: int, over: int, unknown: int = 0) -> bool:
    """Whether at most one message in a hundred was too old by now; False where nothing was measured."""
    return count > 0 and over + unknown <= MISSES * (count + unknown)
