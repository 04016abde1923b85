"""Whether a harm is rarer on one side than on the other, of the same cases."""

from __future__ import annotations

from math import sqrt

from nodes.statistics.paired import Interval, wilson


def risk_difference(both: int, only_first: int, only_second: int, neither: int) -> Interval:
    """The first's risk less the second's on the same cases, with Newcombe's interval for paired shares.

    Newcombe, Statistics in Medicine 17 (1998), 2635-2650, method 10: Wilson's intervals of both shares, joined by the
    correlation of the pairs. Raises ValueError without a case.
    """
    count = both + only_first + only_second + neither
    if count == 0:
        raise ValueError("no cases: a risk difference needs at least one pair")
    first, second = (both + only_first) / count, (both + only_second) / count
    (first_low, first_high), (second_low, second_high) = (
        wilson(both + only_first, count),
        wilson(both + only_second, count),
    )
    phi = _correlation(both, only_first, only_second, neither)
    difference = first - second

    def reach(one: float, other: float) -> float:
        return sqrt(max(0.0, one * one - 2 * phi * one * other + other * other))

    return Interval(
        difference,
        max(-1.0, difference - reach(first - first_low, second_high - second)),
        min(1.0, difference + reach(first_high - first, second - second_low)),
    )


def _correlation(both: int, only_first: int, only_second: int, neither: int) -> float:
    """The pairs' correlation, with Newcombe's continuity correction towards 0."""
    product = (both + only_first) * (only_second + neither) * (both + only_second) * (only_first + neither)
    if product == 0:
        return 0.0
    excess = float(both * neither - only_first * only_second)
    if excess > 0:
        excess = max(0.0, excess - (both + only_first + only_second + neither) / 2)
    return excess / sqrt(product)
