"""Two tasks of ours for Inspect Robots: clear the cups into the bin, and reach for a thing."""

from __future__ import annotations

from inspect_robots import Scene, Target, Task, episode_length, success_at_end

from bridges.inspect_robots.embodiments import IN_BIN, REACH

CLEAR_S, REACH_S = 150.0, 15.0


def clear(scenes: int = 4) -> Task:
    """Clear the cups into the bin: so many tables, each laid by its seed."""
    return _task(
        "polyrhythm_clear", "Clear the cups away into the bin.", Target(IN_BIN, {"label": "cup"}), scenes, CLEAR_S
    )


def reach(scenes: int = 4) -> Task:
    """Bring the fingers to within 10 cm of the nearest thing."""
    return _task("polyrhythm_reach", "Reach for the nearest thing.", Target(REACH, {"within_m": 0.1}), scenes, REACH_S)


def _task(name: str, instruction: str, target: Target, scenes: int, for_s: float) -> Task:
    laid = [Scene(f"table-{seed}", instruction, target, init_seed=seed) for seed in range(scenes)]
    return Task(name=name, scenes=laid, scorer=[success_at_end(), episode_length()], max_seconds=for_s)
