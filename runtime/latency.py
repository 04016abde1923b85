"""`Latency`: how long a handler takes in virtual time, as a launch file says it."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from runtime.errors import UserError

_P99 = 2.3263478740408408  # standard deviations at the 99th percentile


@dataclass(frozen=True, slots=True)
class Latency:
    """A duration drawn for each call: constant, uniform between two bounds, or log-normal by p50 and p99."""

    lowest_s: float = 0.0
    highest_s: float = 0.0
    p50_s: float = 0.0
    p99_s: float = 0.0

    @classmethod
    def parse(cls, value: object, where: str) -> Latency:
        """From `0.2`, `[0.1, 0.3]` or `{ p50 = 0.2, p99 = 0.8 }`. Raises UserError where it is none of these."""
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf:
            return cls(lowest_s=float(value), highest_s=float(value))
        if isinstance(value, list) and len(value) == 2 and all(isinstance(part, int | float) for part in value):
            lowest, highest = value
            if 0 <= lowest <= highest < math.inf:
                return cls(lowest_s=float(lowest), highest_s=float(highest))
        if isinstance(value, dict) and set(value) == {"p50", "p99"}:
            p50, p99 = value["p50"], value["p99"]
            if isinstance(p50, int | float) and isinstance(p99, int | float) and 0 < p50 <= p99 < math.inf:
                return cls(p50_s=float(p50), p99_s=float(p99))
        raise UserError(
            f"{where}: latency is {value!r}; expected seconds (0.2), bounds ([0.1, 0.3]) or {{ p50 = 0.2, p99 = 0.8 }}"
        )

    def draw_s(self, generator: random.Random) -> float:
        """One duration in seconds."""
        if self.p50_s:
            sigma = math.log(self.p99_s / self.p50_s) / _P99
            return self.p50_s * math.exp(sigma * generator.gauss(0, 1))
        if self.highest_s > self.lowest_s:
            return generator.uniform(self.lowest_s, self.highest_s)
        return self.highest_s
