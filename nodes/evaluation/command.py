"""`polyrhythm eval`: many runs of a graph: successes, times, reactions, with intervals."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from nodes.evaluation.arms import ARMS, ROUTED, ROUTER, changes_of
from nodes.evaluation.figures import compare, figures_of
from nodes.evaluation.folder import ResultsFolder
from nodes.evaluation.grades import Grade, Grader, grader_of, keep_grades, read_grades
from nodes.evaluation.log import PAGE, EvaluationLog, logged_trials, variants_of, write_log
from nodes.evaluation.own_measures import Measure, has_end, measures_of
from nodes.evaluation.running import PICTURES, REPORT, Runs, answered_by, check_not_broken, digest_of, run_on_ray
from nodes.evaluation.scenario_files import HELD_OUT, HELD_OUT_SEED, changes_for_file, files_in, skills_of, worlds_of
from nodes.evaluation.table import draw, sentences, table
from nodes.evaluation.trials import Card, EvaluationRun, Result, TrialVariant, trials_of
from runtime.clock import SystemClock, wall_time_text
from runtime.command_line.arguments import answered, count, seconds, share, unique_path
from runtime.errors import PolyrhythmError, UserError
from runtime.launch.file import Launch, check, find, load
from runtime.launch.provenance import git_state, versions

MOST_RUNS = 100_000
LONGEST_NAME = 50
FIRST = "as it is"
PICTURE = "evaluation.png"


def main(argv: list[str]) -> int:
    """0; 1 where runs broke or too few succeeded; 2 where it was asked wrongly."""
    report = REPORT
    if argv[:1] == ["reflex"]:
        return answered("polyrhythm eval", lambda: _reflex(argv[1:]))
    if argv[:1] == ["interruptions"]:
        return answered("polyrhythm eval", lambda: _interruptions(argv[1:]))
    if argv[:1] == ["nine-skills"]:
        from nodes.evaluation import scenario_files

        argv, report = scenario_files.nine_skills(argv[1:]), scenario_files.REPORT
    if argv[:1] == ["understanding"]:
        from nodes.evaluation import understanding

        return understanding.main(argv[1:])
    asked = _parser().parse_args(argv)
    return answered("polyrhythm eval", lambda: _evaluate(asked, report))


def _interruptions(argv: list[str]) -> int:
    """The experiment lives among the measurements of a checkout: nothing that is installed needs it."""
    try:
        command = import_module("bench.interruptions.command")
    except ModuleNotFoundError as problem:
        if problem.name is None or not "bench.interruptions.command".startswith(problem.name):
            raise
        raise UserError(
            "interruptions: the experiment is part of a checkout (bench/interruptions); run it there"
        ) from None
    return int(command.main(argv))


def _reflex(argv: list[str]) -> int:
    from nodes.evaluation import reflex  # its second judge is of an extra

    return reflex.main(argv)


def _evaluate(asked: argparse.Namespace, report: str) -> int:
    variants = _variants(asked.changes or [], asked.arm)
    path = find(asked.file)
    launch = _checked(path, variants)
    tasks, changes_of_task, reads, named = _tasks(asked, launch)
    for task in tasks:
        changes_of_task(task, ())  # unknown ones are known now
    seeds = seeds_of(asked.seeds)
    if asked.words == "heldout":
        seeds = range(seeds.start + HELD_OUT_SEED, seeds.stop + HELD_OUT_SEED)
    trials = trials_of(variants, tasks, seeds)
    if len(trials) > MOST_RUNS:
        raise UserError(f"these are {len(trials)} runs; at most {MOST_RUNS} are taken on")
    measures = measures_of(asked.measure)
    grader = grader_of(asked.grade) if asked.grade else None
    if asked.rerun:
        import nodes.recording.bag.export.rerun_file  # noqa: F401  # an extra, which is missed before anything runs
    for_s = asked.for_s or launch.for_s
    if not has_end(launch.graph):
        how = f"each run lasts {for_s:g} s" if for_s else "each run goes on until --longest; --for S ends it sooner"
        print(
            f"! {path}: no node ends a run or says how it went, by self.finish(ok=..., reason=...): "
            f"{how}, and is not judged; {len(trials)} runs are to come",
            file=sys.stderr, flush=True,
        )  # fmt: skip
    out: Path = asked.out or unique_path(Path("runs") / f"eval-{wall_time_text()}-{path.stem}")
    card = Card(
        launch=launch.text, variants=tuple(variants), tasks=tasks, is_virtual=not asked.real_time, for_s=asked.for_s,
        versions=versions(), git=git_state(path.parent), reads={file.name: digest_of(file) for file in reads},
        measures=tuple(asked.measure),
    )  # fmt: skip
    grades = read_grades(out)
    results = run_to_end(
        asked, str(path), variants, trials, ResultsFolder(out, card), changes_of_task=changes_of_task, reads=reads,
        report=report, measures=measures,
        told=_graded_by(grader, out, grades) if grader is not None else lambda _: None,
    )  # fmt: skip
    if asked.rerun:
        _write_rerun(results)
    models = [_models(path, variant) for variant in variants]
    status: Literal["complete", "stopped"] = "complete" if len(results) == len(trials) else "stopped"
    log = EvaluationLog(
        status=status, written=wall_time_text(), launch_file=str(path), launch_sha256=digest_of(path),
        launch=card.launch,
        commit=card.git, versions=card.versions, is_virtual=card.is_virtual, variants=variants_of(card, models),
        trials=logged_trials(results, grades, out), figures=figures_of(results, list(measures), named),
        comparisons=compare(results),
    )  # fmt: skip
    return _tell(results, out, list(measures), log, at_least=asked.at_least, as_json=asked.json)


def _graded_by(grader: Grader, out: Path, grades: list[Grade]) -> Callable[[Result], None]:
    """Has each trial graded as it ends, and keeps what was said."""

    def graded(result: Result) -> None:
        grade = None if result.has_broken else grader(result, out / PICTURES / f"{result.trial.name}.jpg")
        if grade is not None:
            grades[:] = [one for one in grades if (one.trial, one.by) != (grade.trial, grade.by)]
            grades.append(grade)
            keep_grades(out, grades)

    return graded


def _models(path: Path, variant: TrialVariant) -> dict[str, dict[str, str]]:
    """The model files that a variant's nodes name, with their digests."""
    from nodes.recording.ring_buffer import model_files

    launch = load(path, variant.changes, added=variant.added, without=variant.without)
    return model_files({name: spec.params for name, spec in launch.graph.nodes.items()})


def _write_rerun(results: Sequence[Result]) -> None:
    """Each recording that was kept also as Rerun reads it."""
    from nodes.recording.bag.export.rerun_file import export_rerun  # an extra
    from nodes.recording.bag.recording import Recording

    for result in results:
        if result.recording:
            try:
                recording = Recording(Path(result.recording))
                export_rerun(recording, recording.path.with_suffix(".rrd"), skip_damaged=True)
            except PolyrhythmError as problem:
                print(f"! {result.trial.name} is not written for Rerun: {problem}", file=sys.stderr)


def run_to_end(
    asked: argparse.Namespace,
    launch: str,
    variants: Sequence[TrialVariant],
    trials: Sequence[EvaluationRun],
    folder: ResultsFolder,
    *,
    changes_of_task: Callable[[str, Sequence[str]], Sequence[str]],
    report: str = REPORT,
    reads: Sequence[Path] = (),
    measures: Mapping[str, Measure] = MappingProxyType({}),
    told: Callable[[Result], None] = lambda _: None,
) -> list[Result]:
    """Run what is missing, and give all results in order; those that there are where somebody stops it.

    `reads`: files that each run reads besides the launch file; `folder.card` has the digests of them.

    Raises PolyrhythmError where it was stopped before the first, and UserError where every run broke.
    """
    runs = Runs(
        launch, folder.card.launch, variants, changes_of_task, folder.path,
        is_virtual=not asked.real_time, for_s=asked.for_s, keeps_all=asked.keep == "all",
        longest_s=asked.longest, report=report, reads={path: folder.card.reads[path.name] for path in reads},
        measures=measures,
    )  # fmt: skip
    try:
        # a polite end is one by Ctrl-C, with which a shell's background job begins ignored: no run is left behind
        with answered_by(signal.default_int_handler):
            _run_left(asked, runs, trials, folder, told)
    except KeyboardInterrupt:
        done = f"{len(folder.results)} of {len(trials)} runs"
        stopped = f"stopped after {done}; the same command with --out {folder.path} goes on"
        if not folder.results:
            raise PolyrhythmError(stopped) from None
        print(f"\n{stopped}", file=sys.stderr)
    finally:
        folder.close()
    results = in_order(folder.results, trials)
    check_not_broken(results)
    return results


def _run_left(
    asked: argparse.Namespace,
    runs: Runs,
    trials: Sequence[EvaluationRun],
    folder: ResultsFolder,
    told: Callable[[Result], None],
) -> None:
    """Run what the folder does not hold yet, and tell how far it is and how long it still takes."""
    known = {result.trial for result in folder.results if not result.has_broken}
    folder.results = [result for result in folder.results if not result.has_broken]  # those are tried again
    left = [trial for trial in trials if trial not in known]
    clock = SystemClock()
    started_ns, begun = clock.now_ns(), len(folder.results)

    def done(result: Result) -> None:
        folder.add(result)
        number = len(folder.results)
        per_run_s = clock.since_s(started_ns) / (number - begun)
        left_s = per_run_s * (len(trials) - number)
        how = {True: "succeeded", False: "failed", None: "was not judged"}[result.is_success]
        why = "" if result.is_success else f": {result.reason}"
        where = f"[{number} of {len(trials)}{_in_words(left_s)}]"
        after = f" after {result.duration_s:.1f} s" if result.duration_s else ""  # a report need not measure it
        print(f"{where} {result.trial.name} {how}{after}{why}", file=sys.stderr, flush=True)
        told(result)

    if asked.engine == "ray":
        run_on_ray(runs, left, folder.card.measures, done)
    else:
        runs.all_of(left, asked.jobs or os.cpu_count() or 1 if runs.is_virtual else 1, done)


def _in_words(left_s: float) -> str:
    if left_s < 1:
        return ""
    return f", {left_s:.0f} s left" if left_s < 120 else f", {left_s / 60:.0f} min left"


def _tell(
    results: Sequence[Result],
    out: Path,
    own: Sequence[str],
    log: EvaluationLog,
    *,
    at_least: float | None,
    as_json: bool,
) -> int:
    figures, comparisons = log.figures, log.comparisons
    picture = out / PICTURE
    is_kept = True
    try:
        draw(picture, figures, results)
        write_log(out, log, own, picture)
    except OSError as problem:
        is_kept = False
        remedy = f"once there is room, the same command with --out {out} writes it"
        print(f"! {problem.filename}: cannot be written ({problem.strerror}); {remedy}", file=sys.stderr)
    if as_json:
        told: dict[str, Any] = {"figures": figures, "comparisons": comparisons, "results": results, "out": str(out)}
        print(msgspec.json.format(msgspec.json.encode(told), indent=1).decode())
    else:
        print(table(figures, own))
        for sentence in sentences(comparisons):
            print(sentence)
        kept = sum(bool(result.recording) for result in results)
        print(
            f"{out / PAGE}; {kept} recordings in {out}"
            + ("" if kept else " (--keep all keeps those of successes, too)")
        )
    if not is_kept or any(result.has_broken for result in results):
        return 1
    return 1 if at_least is not None and any(one.success.share < at_least for one in figures) else 0


def in_order(results: Sequence[Result], trials: Sequence[EvaluationRun]) -> list[Result]:
    """Of several of one trial the last; others than those asked for left out."""
    newest = {result.trial: result for result in results}
    return [newest[trial] for trial in dict.fromkeys(trials) if trial in newest]


def _checked(path: Path, variants: Sequence[TrialVariant]) -> Launch:
    """The launch file, once it is known that it loads with each variant's changes. Raises UserError."""
    for variant in variants:
        try:
            check(load(path, variant.changes, added=variant.added, without=variant.without))
        except UserError as problem:
            raise UserError(f"variant {variant.name!r}: {problem}" if len(variants) > 1 else str(problem)) from problem
    return load(path)


def _tasks(
    asked: argparse.Namespace, launch: Launch
) -> tuple[tuple[str, ...], Callable[[str, Sequence[str]], Sequence[str]], Sequence[Path], Mapping[str, str]]:
    """Embodied scenarios by name, or scenario files; what each changes in the launch file; files that are read; and
    what several tasks have in common.
    """
    if not asked.tasks:
        return tuple(dict.fromkeys(asked.task)), _changes_of_task, (), {}
    files = files_in(asked.tasks, asked.task)
    words = str(HELD_OUT) if asked.words == "heldout" else asked.words

    def changed(task: str, changes: Sequence[str]) -> Sequence[str]:
        return changes_for_file(launch, files[task], changes, words)

    reads = [*files.values(), *([Path(words)] if words else []), *worlds_of(files.values())]
    return tuple(files), changed, reads, skills_of(files)


def _changes_of_task(task: str, changes: Sequence[str]) -> list[str]:
    from nodes.episodes.commands.embody import changes_for, embodied_plan

    return changes_for(embodied_plan(task), changes)


def _variants(asked: Sequence[tuple[str, str]], arms: Sequence[str] = ()) -> list[TrialVariant]:
    """Each arm with what `--set` changes, or each variant: what is changed before the first one is changed in all."""
    shared: list[tuple[str, str]] = []
    named: list[tuple[str, list[tuple[str, str]]]] = []
    for option, value in asked:
        if option == "variant":
            if not value or "/" in value or value[0] in ".-" or len(value) > LONGEST_NAME or not value.isprintable():
                raise UserError(
                    f"--variant {value[:LONGEST_NAME]!r}: expected a name that a folder may have, of at most "
                    f"{LONGEST_NAME} characters"
                )
            named.append((value, []))
        else:
            (named[-1][1] if named else shared).append((option, value))
    if arms and named:
        raise UserError("--arm and --variant are two ways to name what is compared; use one of them")
    if arms:
        changes = tuple(value for option, value in shared if option == "set")
        return [TrialVariant(arm, (*ROUTED, *changes_of(arm), *changes), (ROUTER,)) for arm in dict.fromkeys(arms)]
    names = [name for name, _ in named]
    if doubled := next((name for name in names if names.count(name) > 1), None):
        raise UserError(f"--variant {doubled!r} is named twice")
    if not named:
        return [_variant(FIRST, shared)]
    return [_variant(name, [*shared, *own]) for name, own in named]


def _variant(name: str, asked: Sequence[tuple[str, str]]) -> TrialVariant:
    of = {option: tuple(value for one, value in asked if one == option) for option in ("set", "add", "without")}
    return TrialVariant(name, of["set"], of["add"], of["without"])


def seeds_of(text: str) -> range:
    """ "20" is 0 to 19, "5:8" is 5, 6 and 7."""
    first, colon, end = text.rpartition(":")
    try:
        seeds = range(int(first or 0) if colon else 0, int(end))
    except ValueError as problem:
        raise UserError(f"--seeds {text!r}: expected a number of seeds, or FIRST:END such as 100:120") from problem
    if not seeds or seeds[0] < 0:
        raise UserError(f"--seeds {text!r}: names no seed; expected a number from 1 on, or FIRST:END such as 100:120")
    return seeds


class _InOrder(argparse.Action):
    """Keeps `--variant` and what is changed in the order in which they come."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option: str | None = None) -> None:
        changes = getattr(namespace, "changes", None) or []
        namespace.changes = [*changes, ((option or "").lstrip("-"), values)]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polyrhythm eval",
        description="Run a graph many times and tell how often it succeeded, how long it took and how fast it stopped, "
        "with 95 % intervals; compare variants on the same seeds. "
        "`polyrhythm eval interruptions` runs the interruption experiment, from a checkout. "
        "`polyrhythm eval nine-skills` plays the kitchen's scenarios. "
        "`polyrhythm eval reflex` scores the words that stop a robot.",
        epilog="examples: polyrhythm eval laptop --seeds 20; "
        "polyrhythm eval laptop --seeds 20 --variant expert --variant mine "
        "--set policy.use=nodes.policy.onnx.policy:OnnxPolicy --set policy.model=mine.onnx; "
        "polyrhythm eval laptop --task clear-table-by-four --task the-brown-bottle --seeds 5 --at-least 0.9",
        formatter_class=argparse.HelpFormatter,
    )
    parser.add_argument(
        "file", help="a launch file, or the name of a shipped one; or the suite `understanding` (see its --help)"
    )
    parser.add_argument("--seeds", default="10", metavar="N", help="so many, from 0 (default: 10); or FIRST:END")
    parser.add_argument("--task", action="append", default=[], metavar="NAME",
                        help="an embodied scenario, played by the laptop's graph; several")  # fmt: skip
    parser.add_argument("--tasks", action="append", default=[], metavar="FILES",
                        help="scenario files, as 'scenarios/*.toml', or a folder of them; several")  # fmt: skip
    parser.add_argument("--words", default="", metavar="FILE",
                        help="other wordings for a scenario's person, in tables by scenario; `heldout`: those of the "
                        "nine skills, in layouts of seeds from 1000 on")  # fmt: skip
    parser.add_argument("--arm", action="append", default=[], choices=list(ARMS),
                        help="hold speech and feedback as this arm of `eval interruptions` does; several")  # fmt: skip
    parser.add_argument("--variant", action=_InOrder, dest="changes", metavar="NAME",
                        help="what changes after it are of this variant; several are compared")  # fmt: skip
    parser.add_argument("--set", action=_InOrder, dest="changes", metavar="NODE.PARAM=VALUE",
                        help="as for run; before the first --variant: in all")  # fmt: skip
    parser.add_argument("--add", action=_InOrder, dest="changes", metavar="NAME=MODULE:CLASS",
                        help="a node more than the file has; as --set")  # fmt: skip
    parser.add_argument("--without", action=_InOrder, dest="changes", metavar="NAME",
                        help="leave this node out; as --set")  # fmt: skip
    add_run_options(parser, real_time="in real time, one after the other")
    parser.add_argument("--for", type=seconds, dest="for_s", metavar="S",
                        help="end each run after that many seconds (default: the launch file's)")  # fmt: skip
    parser.add_argument("--measure", action="append", default=[], metavar="NAME=MODULE:FUNCTION",
                        help="a number for each run that your function makes of its Recording; several")  # fmt: skip
    parser.add_argument("--grade", default="", metavar="WHO",
                        help="who says after each run whether it was done: operator, or MODEL@URL")  # fmt: skip
    parser.add_argument("--rerun", action="store_true", help="each recording that is kept also as .rrd, for Rerun")
    parser.add_argument("--at-least", type=share, metavar="SHARE",
                        help="exit with 1 where fewer runs of a variant succeed: for a CI")  # fmt: skip
    return parser


def add_run_options(parser: argparse.ArgumentParser, *, real_time: str = "") -> None:
    """How the runs of any suite are run and kept; `real_time`: what it means, where it can be."""
    parser.add_argument("--jobs", type=count, metavar="N", help="runs side by side (default: as many as cores)")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--engine", choices=("ray",), default="",
                       help="ray: on the Ray cluster of this machine, as many at once as it has CPUs")  # fmt: skip
    if real_time:
        where.add_argument("--real-time", action="store_true", help=real_time)
    parser.add_argument("--longest", type=seconds, default=900.0, metavar="S",
                        help="seconds on the wall clock after which a run is killed (default: 900)")  # fmt: skip
    parser.add_argument("--keep", choices=("failures", "all"), default="failures", help="which recordings are kept")
    parser.add_argument("--out", type=Path, metavar="DIR",
                        help="results that stand there are gone on with; default: a new folder in runs/")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print the figures, and what is behind them, as JSON")
