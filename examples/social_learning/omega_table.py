"""SOTOPIA-Omega's variants side by side, without a model: python -m examples.social_learning.omega_table FOLDER."""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path

from nodes.episodes.coaching.coach import VARIANTS
from nodes.episodes.coaching.regeneration import attempts_of, best_of
from nodes.episodes.command import main as episodes
from nodes.episodes.results.figures import values_of
from nodes.episodes.results.store import Store


def row(variant: str, path: Path) -> str:
    """Play the starter set under one variant, and what came out of it, a line."""
    with contextlib.redirect_stdout(io.StringIO()):
        asked = ["--tasks", "starter", "--agents", "rules", "--coach", "rules", "--variant", variant]
        if episodes(["run", *asked, "--out", str(path)]) or episodes(["follow", str(path), "--encoder", "hashing"]):
            raise SystemExit(f"{variant}: the episodes were not played")
    with Store.read(path) as store:
        attempts = attempts_of(store)
        best = [best_of(tries)[0] for tries in attempts.values()]
        kept = {one.episode for one in best}
        values = [value for value in values_of(store) if value.episode in kept]
        turns = [len(store.turns(episode)) for episode in sorted(kept)]
    means = [_mean([value.scores[name] for value in values if name in value.scores]) for name in ("GOAL", "S_div")]
    share = sum(one.is_good for one in best) / sum(len(tries) for tries in attempts.values())
    rated = _mean([one.goal_c for one in best if one.goal_c is not None])
    dialogues = sum(len(tries) for tries in attempts.values())
    figures = f"{share:8.1%} {rated:8.2f} {means[0]:8.2f} {means[1]:8.3f} {_mean(turns):8.1f}"
    return f"{variant:10} {dialogues:10} {figures}"


def _mean(values: list[float] | list[int]) -> float:
    return sum(values) / len(values)


def main(folder: Path) -> int:
    """Print the table, from runs that are made in a new folder."""
    folder.mkdir(parents=True, exist_ok=True)
    print(f"{'variant':10} {'dialogues':>10} {'usable':>8} {'goal_c':>8} {'GOAL':>8} {'S_div':>8} {'turns':>8}")
    for variant in VARIANTS:
        print(row(variant, folder / f"{variant}.sqlite"), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
