"""`Latency`: how long a handler takes in virtual time, as a launch file says it."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import TypeGuard

import msgspec

from runtime.errors import UserError, choices

LONGEST_S = 86_400.0
"""Longest latency, one day in s: a longer one is a mistake, and sums of times stay far below 64 bits."""

SHORTEST_P50_S = 1e-9
"""Shortest median, s: nothing is measured more finely, and p99 / p50 stays finite."""

_P99 = 2.3263478740408408  # standard deviations at the 99th percentile


class Latency(msgspec.Struct, frozen=True):
    """The duration of each call: constant, uniform between two bounds, log-normal by p50 and p99, or as measured."""

    lowest_s: float = 0.0
    highest_s: float = 0.0
    p50_s: float = 0.0
    p99_s: float = 0.0
    measured_s: tuple[float, ...] = ()

    @classmethod
    def parse(cls, value: object, where: str) -> Latency:
        """From `0.2`, `[0.1, 0.3]` or `{ p50 = 0.2, p99 = 0.8 }`. Raises UserError for anything else."""
        if _is_duration(value):
            return cls(lowest_s=float(value), highest_s=float(value))
        if isinstance(value, list) and len(value) == 2 and all(_is_duration(part) for part in value):
            lowest, highest = value
            if lowest <= highest:
                return cls(lowest_s=float(lowest), highest_s=float(highest))
        if isinstance(value, dict) and set(value) == {"p50", "p99"}:
            p50, p99 = value["p50"], value["p99"]
            if _is_duration(p50) and _is_duration(p99) and SHORTEST_P50_S <= p50 <= p99:
                return cls(p50_s=float(p50), p99_s=float(p99))
        raise UserError(
            f"{where}: latency is {value!r}; expected seconds (0.2), bounds ([0.1, 0.3]) or "
            "{ p50 = 0.2, p99 = 0.8 }, a day at most"
        )

    def draw_s(self, generator: random.Random, turn: int | None = None) -> float:
        """One duration, s; of a measured latency the value whose turn it is, or a random one."""
        if self.measured_s:
            return generator.choice(self.measured_s) if turn is None else self.measured_s[turn % len(self.measured_s)]
        if self.p50_s:
            sigma = math.log(self.p99_s / self.p50_s) / _P99
            return self.p50_s * math.exp(sigma * generator.gauss(0, 1))
        if self.highest_s > self.lowest_s:
            return generator.uniform(self.lowest_s, self.highest_s)
        return self.highest_s


class Turns:
    """Which measured duration comes next for each handler: in the order of the trace, beginning where the seed says."""

    def __init__(self, seed: int, node: str) -> None:
        self._seed, self._node = seed, node
        self._next: dict[str, int] = {}

    def take(self, handler: str) -> int:
        """The number of this handler's next call."""
        turn = self._next.get(handler)
        if turn is None:
            turn = random.Random(f"{self._seed}/{self._node}/{handler}/trace").randrange(1 << 30)
        self._next[handler] = turn + 1
        return turn


def read_trace(path: Path, node: str) -> dict[str, Latency]:
    """Handler durations of one node from a file `{"handlers": {"node.handler": [seconds, ...]}}`.

    Raises UserError where the file has another form, or nothing of this node.
    """
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError) as problem:
        raise UserError(f"latency trace {path} cannot be read: {problem}") from problem
    handlers = document.get("handlers") if isinstance(document, dict) else None
    if not isinstance(handlers, dict):
        raise UserError(f'latency trace {path} has no "handlers"; expected a file that `polyrhythm bag latency` wrote')
    found: dict[str, Latency] = {}
    for name, durations in handlers.items():
        owner, _, handler = name.partition(".")
        if owner != node:
            continue
        if not isinstance(durations, list) or not durations or not all(_is_duration(part) for part in durations):
            raise UserError(f"latency trace {path}: {name!r} holds no list of durations in seconds")
        found[handler] = Latency(measured_s=tuple(float(part) for part in durations))
    if not found:
        raise UserError(f"latency trace {path} holds no handler of node {node!r}; it has: {choices(handlers)}")
    return found


def _is_duration(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LONGEST_S
