"""Scenario files as the tasks of an evaluation: which there are, and what each changes in a launch file."""

from __future__ import annotations

import glob
import inspect
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nodes.evaluation.trials import WRONG_DEED, print_outcome
from nodes.sim.messages import ScenarioVerdict
from nodes.sim.world.scenario import NINE_SKILLS, load_scenario, world_file_of
from runtime.errors import UserError, choices
from runtime.launch.file import Launch

HELD_OUT = Path(__file__).with_name("nine_skills_heldout.toml")
HELD_OUT_SEED = 1000
SKILLS = (
    "", "underspecified orders", "legibility", "coordination", "errors and feedback", "asking for help",
    "physical interaction", "non-verbal cues", "common sense", "asking for specification",
)  # fmt: skip
VERDICT = "sim/verdict"
REPORT = "nodes.evaluation.scenario_files:report_verdict"
PERSON = "nodes.sim.people.person:ScenarioPerson"


def files_in(patterns: Sequence[str | Path], asked: Sequence[str] = ()) -> dict[str, Path]:
    """The files by name that patterns such as 'scenarios/*.toml', or folders, name; `asked`: these alone.

    Each is one that can succeed. Raises UserError with all that is wrong.
    """
    files: dict[str, Path] = {}
    for pattern in map(str, patterns):
        there = sorted(Path(pattern).glob("*.toml") if Path(pattern).is_dir() else map(Path, glob.glob(pattern)))
        if not there:
            raise UserError(
                f"{pattern}: holds no scenario; expected files such as clean-and-wash.toml (docs/kitchen.md)"
            )
        for file in there:
            if files.setdefault(file.stem, file) != file:
                raise UserError(f"{file}: {file.stem!r} is the name of {files[file.stem]}, too; give it another one")
    for name in asked:
        if name not in files:
            raise UserError(f"--task {name!r}: known: {choices(files)}")
    files = {name: files[name] for name in dict.fromkeys(asked)} if asked else files
    problems = []
    for file in files.values():
        try:
            if load_scenario(file).verdict is None:
                problems.append(f"{file}: has no [verdict], so that nobody can say how it went")
        except UserError as problem:
            problems.append(str(problem))
    if problems:
        raise UserError("\n".join(problems))
    return files


def nine_skills(argv: Sequence[str]) -> list[str]:
    """What `eval nine-skills` is another word for."""
    tasks = [] if any(one.startswith("--tasks") for one in argv) else ["--tasks", str(NINE_SKILLS)]
    return ["kitchen", *tasks, "--seeds", "5", *argv]


def skills_of(files: Mapping[str, Path]) -> dict[str, str]:
    """Which of the nine skills each file shows; those of none are left out."""
    numbers = {name: load_scenario(file).skill for name, file in files.items()}
    return {name: f"{number} {SKILLS[number]}" for name, number in numbers.items() if number}


def worlds_of(files: Iterable[Path]) -> list[Path]:
    """The world files that are not shipped ones."""
    return [Path(world) for world in dict.fromkeys(map(world_file_of, files)) if Path(world).suffix]


def report_verdict(
    recording: Path, folder: Path, *, outcome: tuple[bool | None, str] | None = None, **_: Any
) -> bool | None:
    """The person's verdict as JSON, and nothing else of the recording."""

    def measures(verdict: ScenarioVerdict) -> dict[str, Any]:
        return {"duration_s": verdict.duration_s, "measures": {WRONG_DEED: verdict.wrong_deed}}

    return print_outcome(outcome, recording, VERDICT, ScenarioVerdict, measures)


def changes_for_file(launch: Launch, file: Path, changes: Sequence[str] = (), words: str = "") -> list[str]:
    """What `--set` makes of a launch file, so that it plays a scenario file: in its world, with its person.

    `words` is a file with other wordings.
    """
    takes = {name: inspect.signature(spec.cls).parameters for name, spec in launch.graph.nodes.items()}
    plays = [name for name, known in takes.items() if "scenario" in known]
    if not plays:
        raise UserError(f"{launch.path}: no node takes a `scenario`; expected nodes.sim.driver:SimDriver and {PERSON}")
    world = world_file_of(file)
    return [
        *changes,
        *(f"{name}.scenario={file}" for name in plays),
        *(f"{name}.script=" for name in plays if "script" in takes[name]),
        *(f"{name}.words={words}" for name, known in takes.items() if words and "words" in known),
        *(f"{name}.world={world}" for name, known in takes.items() if "world" in known),
    ]
