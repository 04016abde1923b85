"""SOTOPIA-Omega's variants side by side, without a model: python -m examples.social_learning.omega_table FOLDER."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from nodes.episodes.coaching.coach import VARIANTS, Variant, attempts_of
from nodes.episodes.command import main as episodes
from nodes.episodes.learning.dataset import Mix, write_dataset
from nodes.episodes.results.figures import values_of
from nodes.episodes.results.store import Store

MIXES: tuple[tuple[str, tuple[Variant, ...], Mix], ...] = (
    ("raw mix nsi", ("raw", "nsi"), "best"),
    ("nsi com half-nsi", ("nsi", "half-nsi"), "all"),
)


def play(variant: str, path: Path) -> None:
    """Play the starter set under one variant."""
    with contextlib.redirect_stdout(io.StringIO()):
        asked = ["--tasks", "starter", "--agents", "rules", "--coach", "rules", "--variant", variant]
        if episodes(["run", *asked, "--out", str(path)]) or episodes(["follow", str(path), "--encoder", "hashing"]):
            raise SystemExit(f"{variant}: the episodes were not played")


def row(name: str, runs: Sequence[Path], mix: Mix, data: Path) -> str:
    """The data of one run or of several, and what the dialogues in it are like, a line."""
    card = write_dataset(runs, data, "omega", prompts="full", mix=mix)
    kept = {
        (one["run"], one["episode"])
        for one in map(json.loads, (data / "decisions.jsonl").read_text(encoding="utf-8").splitlines())
        if one["is_kept"]
    }
    goals, varied, turns = [], [], []
    good = 0
    for run in runs:
        with Store.read(run) as store:
            mine = {episode for of, episode in kept if of == run.name}
            good += sum(one.is_good for tries in attempts_of(store).values() for one in tries if one.episode in mine)
            turns += [len(store.turns(episode)) for episode in mine]
            for value in values_of(store):
                if value.episode in mine:
                    goals += [value.scores["GOAL"]]
                    varied += [value.scores["S_div"]] if "S_div" in value.scores else []
    share = card["conversations_kept"] / card["conversations"]
    figures = f"{mean(goals):8.2f} {mean(varied):8.3f} {mean(turns):8.1f}"
    volume = f"{card['train_pairs']:7} {share:8.1%} {good / card['conversations_kept']:8.1%}"
    return f"{name:18} {volume} {card['goal_of_kept']:8.2f} {figures}"


def main(folder: Path) -> int:
    """Print the table, from runs and data that are made in a new folder."""
    folder.mkdir(parents=True, exist_ok=True)
    heads = ("pairs", "usable", "good", "goal_c", "GOAL", "S_div", "turns")
    print(f"{'variant':18} {heads[0]:>7}" + "".join(f" {one:>8}" for one in heads[1:]))
    paths = {variant: folder / f"{variant}.sqlite" for variant in VARIANTS}
    for variant, path in paths.items():
        play(variant, path)
        print(row(variant, [path], "all", folder / f"data-{variant}"), flush=True)
    for name, of, mix in MIXES:
        print(row(name, [paths[one] for one in of], mix, folder / f"data-{name.replace(' ', '-')}"), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
