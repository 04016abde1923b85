"""`polyrhythm explore`: a simulated robot explores rooms and is asked about them."""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from nodes.evaluation.command import run_to_end
from nodes.evaluation.folder import ResultsFolder
from nodes.evaluation.trials import Card, TrialVariant, print_outcome, trials_of
from nodes.exploration.examiner import share
from nodes.exploration.explorer import OTHER_ROOMS
from nodes.exploration.messages import ExplorationResult
from nodes.exploration.room import Room, majority, questions_of
from nodes.statistics.paired import mean_of
from runtime.clock import wall_time_text
from runtime.command_line.arguments import command, count, seconds, unique_path
from runtime.command_line.columns import columns
from runtime.launch.file import check, find, load
from runtime.launch.provenance import git_state, versions
from runtime.serialization.toml_errors import convert, read_toml

LAUNCH = "explore"
REPORT = "nodes.exploration.command:report_result"
RESULT = "room/result"
BASELINES = ("random answers", "always the majority")
FIGURES = ("acc_exp", "acc_ref", "tried_exp", "tried_ref", "t3", "score", "unreadable", "late_steps")


class Phases(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A task file's [explore]."""

    steps: int = 25  # of the first exploration
    questions: int = 20
    energy: float = 0.01  # k: what a step of the second exploration costs
    most_steps: int = 300  # of the second one


class TaskFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A task file."""

    explore: Phases = Phases()


def baseline(name: str, seed: int, count: int, usual: dict[str, str]) -> dict[str, float]:
    """The figures of who sees nothing: chance, or the usual answers of other rooms."""
    questions, chance = questions_of(Room(seed), seed, count), random.Random(f"answers {seed}")
    said = [chance.choice(q.choices) if name == BASELINES[0] else usual["|".join(q.choices)] for q in questions]
    right = [one == q.answer for one, q in zip(said, questions, strict=True)]
    tried = share([one for one, q in zip(right, questions, strict=True) if q.needs_trying])
    acc = dict.fromkeys(("acc_exp", "acc_ref", "score"), share(right))
    return dict.fromkeys(FIGURES, 0.0) | acc | {"tried_exp": tried, "tried_ref": tried}


def report_result(
    recording: Path, folder: Path, *, outcome: tuple[bool | None, str] | None = None, **_: Any
) -> bool | None:
    """The examiner's result as JSON, and nothing else of the recording."""

    def figures(result: ExplorationResult) -> dict[str, Any]:
        return {"measures": {name: float(getattr(result, name)) for name in FIGURES}}

    return print_outcome(outcome, recording, RESULT, ExplorationResult, figures)


@command("explore", lambda: _parser())
def main(asked: argparse.Namespace) -> int:
    """0; 1 where runs broke; 2 where it was asked wrongly."""
    task = convert(read_toml(asked.task), TaskFile, str(asked.task)).explore if asked.task else Phases()
    path = find(LAUNCH)
    of_task = tuple(f"examiner.{name}={value}" for name, value in msgspec.structs.asdict(task).items())
    policies = tuple(dict.fromkeys(asked.policy or ("random", "frontier")))
    variants = [
        TrialVariant(
            "".join(mark if mark.isalnum() else "-" for mark in one)[:40], (*of_task, f'explorer.policy="{one}"')
        )
        for one in policies
    ]
    for variant in variants:
        check(load(path, overrides=variant.changes))
    out: Path = asked.out or unique_path(Path("runs") / f"explore-{wall_time_text()}")
    card = Card(
        launch=load(path).text, variants=tuple(variants), tasks=("",), is_virtual=True, for_s=None, versions=versions(),
        git=git_state(path.parent),
    )  # fmt: skip
    results = run_to_end(
        asked, str(path), variants, trials_of(variants, (), range(asked.seeds)), ResultsFolder(out, card),
        changes_of_task=lambda _, changes: changes, report=REPORT,
    )  # fmt: skip
    usual = majority(OTHER_ROOMS)
    rows = {
        name: _row([baseline(name, seed, task.questions, usual) for seed in range(asked.seeds)]) for name in BASELINES
    }
    broken = [one for one in results if one.has_broken or not one.is_success]
    for policy, variant in zip(policies, variants, strict=True):
        done = [one for one in results if one.trial.variant == variant.name and one not in broken]
        mine = [{name: float(one.measures[name] or 0.0) for name in FIGURES} for one in done]
        if mine:
            rows[policy] = _row(mine)
    if asked.json:
        print(msgspec.json.encode({"task": task, "policies": rows, "out": str(out)}).decode())
        return 1 if broken else 0
    lines: list[Sequence[str]] = [("policy", "acc_exp", "acc_ref", "of tried", "refined", "T3", "score [95 %]")]
    for policy, row in rows.items():
        cells = (f"{row[key]:.3f}" for key in ("acc_exp", "acc_ref", "tried_exp", "tried_ref"))
        bounds = f" [{row['low']:.3f}, {row['high']:.3f}]" if row["low"] is not None else ""
        lines.append((policy[:24], *cells, f"{row['t3']:.1f}", f"{row['score']:.3f}{bounds}"))
    print("\n".join(columns(lines, ("policy", "score [95 %]"))))
    for one in broken:
        print(f"! {one.trial.name}: {one.reason}")
    print(f"recordings: {out}")
    return 1 if broken else 0


def _row(trials: Sequence[dict[str, float]]) -> dict[str, Any]:
    row: dict[str, Any] = {name: sum(one[name] for one in trials) / len(trials) for name in FIGURES}
    score = mean_of({f"{number:06}": [one["score"]] for number, one in enumerate(trials)})
    return {**row, "low": score and score.low, "high": score and score.high}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polyrhythm explore",
        description="A simulated robot explores rooms, answers questions about them, explores again and answers again, "
        "in virtual time: a score for each policy. `polyrhythm run explore --virtual` is one room.",
        epilog="example: polyrhythm explore --seeds 20 --policy random --policy frontier --out runs/explore",
    )
    parser.add_argument(
        "--policy", action="append", help="random, frontier, MODEL[@URL]; several; default: both by rules"
    )
    parser.add_argument("--seeds", type=count, default=20, help="so many rooms, from 0 (default: %(default)s)")
    parser.add_argument("--task", type=Path, help="TOML with [explore]: steps, questions, energy, most_steps")
    parser.add_argument("--jobs", type=count, metavar="N", help="runs side by side (default: as many as cores)")
    parser.add_argument(
        "--longest", type=seconds, default=1800.0, metavar="S", help="seconds after which one is killed"
    )
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="results that stand there are gone on with")
    parser.add_argument("--json", action="store_true", help="JSON and nothing else on standard output")
    parser.set_defaults(keep="all", real_time=False, engine="", for_s=None)
    return parser
