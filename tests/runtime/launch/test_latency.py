"""A latency is constant, between bounds, or log-normal by two percentiles; anything else is refused in words."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from runtime.clock import LONGEST_NS, to_ns
from runtime.errors import UserError
from runtime.launch.tables.handler_latency import Latency
from tests.support.sentences import sentence


def draws(value: object, number: int = 4_000) -> list[float]:
    generator = random.Random(1)
    latency = Latency.parse(value, "vlm.look")
    return [latency.draw_s(generator) for _ in range(number)]


@pytest.mark.parametrize("value", [0, 0.2, 3])
def test_a_number_is_constant(value: float) -> None:
    assert set(draws(value, 10)) == {value}


def test_two_numbers_are_bounds() -> None:
    found = draws([0.1, 0.3])
    assert 0.1 <= min(found) < 0.11
    assert 0.29 < max(found) <= 0.3
    assert float(np.median(found)) == pytest.approx(0.2, abs=0.01)


def test_two_percentiles_are_met() -> None:
    p50, p99 = np.percentile(draws({"p50": 0.2, "p99": 0.8}, 40_000), [50, 99])
    assert (p50, p99) == (pytest.approx(0.2, rel=0.02), pytest.approx(0.8, rel=0.05))


def test_equal_seeds_draw_equal_latencies() -> None:
    assert draws({"p50": 0.2, "p99": 0.8}) == draws({"p50": 0.2, "p99": 0.8})


@pytest.mark.parametrize(
    "value",
    [-1, True, "fast", float("inf"), float("nan"), 1e300, 86_401, 10**400,
     [0, 1e300], {"p50": 1e-300, "p99": 1}, [0.3, 0.1], [0.1], [-1, 1], {"p50": 1}, {}, None,
     {"p50": 2, "p99": 1}, {"p50": 0, "p99": 1}, {"p50": "a", "p99": 1}],
)  # fmt: skip
def test_anything_else_is_refused_in_words(value: object) -> None:
    with pytest.raises(UserError) as caught:
        Latency.parse(value, "vlm.look")
    assert str(caught.value) == f"vlm.look: {sentence('runtime.latency_expected', value=repr(value))}"


@pytest.mark.parametrize("forever_s", [1e300, 1e10, math.inf])
def test_what_takes_longer_than_anything_takes_as_long_as_there_is(forever_s: float) -> None:
    assert to_ns(forever_s) == LONGEST_NS
    assert to_ns(1e9) == 10**18
    with pytest.raises(ValueError, match="NaN"):
        to_ns(math.nan)
