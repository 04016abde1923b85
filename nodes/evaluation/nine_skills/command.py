"""`polyrhythm eval nine-skills`: the kitchen's scenarios over seeds, and how many came out right, skill by skill.

Each verdict is of the simulator's world. A wrong deed is a condition that must never hold and did, once.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from nodes.evaluation.arms import ARMS, ROUTED, ROUTER, changes_of
from nodes.evaluation.command import add_run_options, run_to_end, seeds_of
from nodes.evaluation.figures import share_of
from nodes.evaluation.folder import ResultsFolder
from nodes.evaluation.running import digest_of
from nodes.evaluation.trials import Card, Result, TrialVariant, trials_of
from nodes.kitchen.messages import ScenarioVerdict
from nodes.kitchen.scenario import SHIPPED, KitchenScenario, load_scenario
from runtime.bag.file import BagReader
from runtime.clock import wall_time_text
from runtime.command_line.arguments import unique_path
from runtime.errors import UserError, choices
from runtime.launch.file import check, find, load
from runtime.launch.provenance import git_state, versions

LAUNCH = "kitchen"
REPORT = "nodes.evaluation.nine_skills.command:report_verdict"
HELD_OUT = Path(__file__).with_name("heldout.toml")
HELD_OUT_SEED = 1000
SKILLS = (
    "underspecified orders", "legibility", "coordination", "errors and feedback", "asking for help",
    "physical interaction", "non-verbal cues", "common sense", "asking for specification",
)  # fmt: skip
VERDICT = "sim/verdict"
WRONG_DEED = "wrong_deed"
"""The measure of a result that names the condition which must never hold and did; "" for none."""


def main(argv: list[str]) -> int:
    """0; 1 where runs broke. Raises UserError where it was asked wrongly."""
    asked = _parser().parse_args(argv)
    files = files_in(asked.tasks or SHIPPED)
    names = _chosen(files, asked.task)
    changes = [*asked.change, *([f"person.words={HELD_OUT}"] if asked.words == "heldout" else [])]
    variants = [with_arm(arm, changes) for arm in dict.fromkeys(asked.arm)] or [
        TrialVariant(asked.words, tuple(changes))
    ]
    path = find(LAUNCH)
    for variant in variants:
        check(load(path, overrides=variant.changes, added=variant.added))
    seeds = seeds_of(asked.seeds)
    if asked.words == "heldout":
        seeds = range(seeds.start + HELD_OUT_SEED, seeds.stop + HELD_OUT_SEED)
    trials = trials_of(variants, names, seeds)
    out: Path = asked.out or unique_path(Path("runs") / f"nine-skills-{wall_time_text()}")
    reads = [*(files[name] for name in names), *([HELD_OUT] if asked.words == "heldout" else [])]
    card = Card(
        launch=load(path).text, variants=tuple(variants), tasks=names, is_virtual=True, for_s=None, versions=versions(),
        git=git_state(path.parent), reads={file.name: digest_of(file) for file in reads},
    )  # fmt: skip
    folder = ResultsFolder(out, card)

    def changed(task: str, changes: Sequence[str]) -> Sequence[str]:
        return changes_for_file(files[task], changes)

    results = run_to_end(
        asked, str(path), variants, trials, folder, changes_of_task=changed, report=REPORT, reads=reads
    )
    scenarios = {name: load_scenario(files[name]) for name in names}
    figures = {
        variant.name: figures_of_skills([one for one in results if one.trial.variant == variant.name], scenarios)
        for variant in variants
    }
    if asked.json:
        told = figures if asked.arm else figures[variants[0].name]
        print(msgspec.json.format(msgspec.json.encode(told), indent=1).decode())
    else:
        for name, mine in figures.items():
            print(f"{f'arm {name}' + chr(10) if asked.arm else ''}{table(mine)}")
        for result in results:
            if not result.is_success:
                arm = f"arm {result.trial.variant}, " if asked.arm else ""
                print(f"! {arm}{result.trial.task}, seed {result.trial.seed}: {result.reason}")
    return 1 if any(result.has_broken for result in results) else 0


def with_arm(arm: str, changes: Sequence[str]) -> TrialVariant:
    """The kitchen with an arm of the interruption experiment between the person and the models."""
    return TrialVariant(arm, (*ROUTED, *changes_of(arm), *changes), (ROUTER,))


def files_in(folder: Path) -> dict[str, Path]:
    """The scenario files of a folder by name; each is one that can succeed. Raises UserError with all that is wrong."""
    files = {file.stem: file for file in sorted(folder.glob("*.toml"))}
    if not files:
        raise UserError(f"{folder}: holds no scenario; expected files such as clean-and-wash.toml (docs/kitchen.md)")
    problems = []
    for file in files.values():
        try:
            load_scenario(file)
        except UserError as problem:
            problems.append(str(problem))
    if problems:
        raise UserError("\n".join(problems))
    return files


def changes_for_file(file: Path, changes: Sequence[str]) -> list[str]:
    """What `--set` makes of launch/kitchen.toml, so that it plays a scenario file."""
    return [*changes, *(f"{node}.scenario={file}" for node in ("driver", "camera", "person"))]


def _chosen(files: Mapping[str, Path], asked: Sequence[str]) -> tuple[str, ...]:
    for name in asked:
        if name not in files:
            raise UserError(f"--task {name!r}: known: {choices(files)}")
    return tuple(dict.fromkeys(asked)) or tuple(files)


def report_verdict(
    recording: Path, folder: Path, *, outcome: tuple[bool | None, str] | None = None, **_: Any
) -> bool | None:
    """The person's verdict as JSON, and nothing else of the recording."""
    ok, reason = outcome if outcome is not None else (None, "nobody judged it")
    told: dict[str, Any] = {"is_success": ok, "reason": reason}
    found = next((one for one in BagReader(recording).newest_first(lambda: True) if one.topic == VERDICT), None)
    if found is not None:
        verdict = found.message(ScenarioVerdict)
        told |= {"duration_s": verdict.duration_s, "measures": {WRONG_DEED: verdict.wrong_deed}}
    print(json.dumps(told))
    return ok


def figures_of_skills(results: Sequence[Result], scenarios: Mapping[str, KitchenScenario]) -> dict[str, object]:
    """Shares with 95 % intervals, in all and by skill."""
    by_skill = {
        f"{number} {SKILLS[number - 1]}": [one for one in results if scenarios[one.trial.task].skill == number]
        for number in range(1, len(SKILLS) + 1)
    }
    return {"all": _figure(results), "by_skill": {name: _figure(some) for name, some in by_skill.items() if some}}


def _figure(results: Sequence[Result]) -> dict[str, object]:
    number = len(results)
    return {
        "runs": number,
        "right": share_of(sum(bool(one.is_success) for one in results), number),
        "wrong_deeds": share_of(sum(bool(one.measures.get(WRONG_DEED)) for one in results), number),
    }


def table(figures: Mapping[str, object]) -> str:
    """The figures for people."""
    lines = [f"{'skill':30}{'runs':>6}{'right':>22}{'wrong deeds':>26}"]
    by_skill = figures["by_skill"]
    assert isinstance(by_skill, dict)
    for name, figure in (*by_skill.items(), ("all", figures["all"])):
        assert isinstance(figure, dict)
        right, wrong = figure["right"], figure["wrong_deeds"]
        lines.append(
            f"{name:30}{figure['runs']:>6}{right['share']:>8.0%} ({right['low']:.0%} to {right['high']:.0%})"
            f"{wrong['count']:>12} ({wrong['low']:.1%} to {wrong['high']:.1%})"
        )
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polyrhythm eval nine-skills",
        description="Play the scenarios of the nine skills in the simulated kitchen, and judge by where things really "
        "are. Of the count are --words heldout: other wordings, and layouts that nobody worked on.",
        epilog="examples: polyrhythm eval nine-skills --seeds 5; polyrhythm eval nine-skills --arm A --arm B+; "
        "polyrhythm eval nine-skills --tasks my_scenarios --task mine --set planner.use=mine:Planner",
    )
    parser.add_argument(
        "--tasks", type=Path, metavar="FOLDER", help="scenario files of your own; default: those that ship"
    )
    parser.add_argument("--task", action="append", default=[], metavar="NAME", help="only this one; several")
    parser.add_argument("--arm", action="append", default=[], choices=list(ARMS),
                        help="hold speech and feedback as this arm of `eval interruptions` does; several")  # fmt: skip
    parser.add_argument("--words", choices=("tuning", "heldout"), default="tuning", help="default: tuning")
    parser.add_argument("--set", action="append", default=[], dest="change", metavar="NODE.PARAM=VALUE",
                        help="as for run: another planner or VLM")  # fmt: skip
    parser.add_argument("--seeds", default="5", metavar="N", help="so many, from 0 (default: 5); or FIRST:END")
    add_run_options(parser)
    parser.set_defaults(real_time=False, for_s=None)
    return parser
