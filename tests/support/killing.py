"""A command that is killed at random moments and begun again, until it has come to its end."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable, Sequence

ENOUGH_S = 300.0


def run_killed(
    command: Callable[[], Sequence[str]], chance: random.Random, whole_s: float, kills: int,
    note: Callable[[], None] = lambda: None,
) -> int:  # fmt: skip
    """Run it to its end; at most `kills` times it is killed within `whole_s`. How many kills hit; `note` after each."""
    hits = 0
    while True:
        process = subprocess.Popen(command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            code = process.wait(chance.uniform(0.0, whole_s) if hits < kills else ENOUGH_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            assert hits < kills, f"it has not come to its end within {ENOUGH_S:g} s"
            hits += 1
            note()
            continue
        assert code == 0, f"it ended with {code}"
        return hits
