"""How long it takes to understand an utterance: the first time, and once it is known."""

from __future__ import annotations

import time

from bench.result import Result
from nodes.interrupts import intent
from nodes.interrupts.phrase_matcher import load

OUCH = "Ouch! That's my toe!"
SAID = (OUCH, "Please clear the table: put the cups in the bin", "No, not the blue one", "रुक जाओ", "停下来！", "mhm")
ALLOWED_FIRST_MS, ALLOWED_AGAIN_MS = 0.3, 0.1


def measure(rounds: int = 200) -> list[Result]:
    """The median over many rounds, of the slowest of a few utterances."""
    load()
    first: dict[str, list[float]] = {text: [] for text in SAID}
    again: dict[str, list[float]] = {text: [] for text in SAID}
    for _ in range(rounds):
        for text in SAID:
            intent.forget()
            for times in (first[text], again[text]):
                begun = time.perf_counter()
                intent.understand(text)
                times.append((time.perf_counter() - begun) * 1e3)
    slowest_first, slowest_again = (max(_median(one) for one in times.values()) for times in (first, again))
    return [
        Result("understanding an utterance, first time", "ms", slowest_first, ALLOWED_FIRST_MS, "what is allowed", 1.0),
        Result("the same once it is known", "ms", slowest_again, ALLOWED_AGAIN_MS, "what is allowed", 1.0),
    ]


def _median(times: list[float]) -> float:
    return sorted(times)[len(times) // 2]
