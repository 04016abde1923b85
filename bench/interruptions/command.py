"""`polyrhythm eval interruptions`: the arms on the same scenarios and seeds, and what may be said of them."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.interruptions.comparisons import compare, figures_of, partner_table, table, variant_name
from bench.interruptions.scenarios import FILE, names, partner_names, shipped
from nodes.evaluation.arms import ARMS, PARTNER, PARTNER_ARMS, REGIMES, SWEEPS, changes_of
from nodes.evaluation.command import add_run_options, run_to_end, seeds_of
from nodes.evaluation.folder import ResultsFolder, read_results, write_raw
from nodes.evaluation.running import Runs, digest_of
from nodes.evaluation.trials import Card, Result, TrialVariant, trials_of
from runtime.clock import wall_time_text
from runtime.command_line.arguments import check_new, count, seconds, unique_path
from runtime.errors import UserError, choices
from runtime.launch.file import check, load
from runtime.launch.provenance import git_state, versions

LAUNCH = Path(__file__).with_name("interruptions.toml")
REPORT = "bench.interruptions.measures:report_measures"
_OF_THE_MACHINE = ("took_s", "recording")


def main(argv: list[str]) -> int:
    """0; 1 where runs broke. Raises UserError where it was asked wrongly."""
    if argv[:1] == ["report"]:
        return _report(argv[1:])
    asked = _parser().parse_args(argv)
    regimes = [*(asked.regime or ()), *(name for who in asked.sweep or () for name in SWEEPS[who])] or ["cloud"]
    variants = [
        _variant(arm, regime, recogniser_s=asked.recogniser) for regime in regimes for arm in asked.arm or list(ARMS)
    ]
    scenarios = _scenarios(asked.scenario)
    path = LAUNCH
    for variant in variants:
        check(load(path, overrides=variant.changes, added=variant.added))
    launch = load(path)
    trials = trials_of(variants, scenarios, seeds_of(asked.seeds))
    out: Path = asked.out or unique_path(Path("runs") / f"interruptions-{wall_time_text()}")
    card = Card(
        launch=launch.text, variants=tuple(variants), tasks=scenarios, is_virtual=not asked.real_time,
        for_s=asked.for_s, versions=versions(), git=git_state(path.parent), reads={FILE.name: digest_of(FILE)},
    )  # fmt: skip
    results = run_to_end(
        asked, str(path), variants, trials, ResultsFolder(out, card), changes_of_task=_with_scenario, report=REPORT,
        reads=(FILE,),
    )  # fmt: skip
    from bench.interruptions.report import write_report  # draws, which is an extra

    _tell(results, out, as_json=asked.json)
    written = write_report(results, out)
    if not asked.json:
        print(f"report: {written}; pictures of each harm: polyrhythm eval interruptions report {out} --sheets")
    return 1 if any(result.has_broken for result in results) else 0


def _report(argv: list[str]) -> int:
    """Tables and the HTML page of what several folders hold together."""
    from bench.interruptions.findings import real_time_table
    from bench.interruptions.report import markdown, write_report

    asked = _report_parser().parse_args(argv)
    for path, option in ((asked.raw, "--raw"), (asked.out, "--out")):
        if path is not None:
            check_new(path, option)
    found = [read_results(folder) for folder in asked.folders]
    seeds = None if asked.seeds is None else seeds_of(asked.seeds)
    virtual, real = (
        list({one.trial: one for card, some in found if card.is_virtual is is_virtual for one in some
              if seeds is None or one.trial.seed in seeds}.values())
        for is_virtual in (True, False)
    )  # fmt: skip
    places = {one.name: place for card, _ in reversed(found) for place, one in enumerate(card.variants)}
    results = sorted(virtual or real, key=lambda one: (places.get(one.trial.variant, 0), one.trial.seed))
    if not results:
        raise UserError(f"{asked.folders[0]}: holds no run yet")
    first: Path = asked.folders[0]
    out: Path = asked.out or (first if first.is_dir() else first.parent)
    out.mkdir(parents=True, exist_ok=True)
    if asked.raw is not None:
        write_raw(asked.raw, found[0][0], results)
    sheets = _sheets(results, out, asked.jobs) if asked.sheets else []
    written = write_report(results, out, sheets)
    for regime in dict.fromkeys(one.trial.variant.rpartition("-")[2] for one in results):
        print(f"## {regime}: {sum(one.trial.variant.endswith(f'-{regime}') for one in results)} runs\n")
        print(markdown(results, regime), end="\n\n")
    if virtual and real:
        print(f"## real time: {len(real)} runs\n\n{real_time_table(virtual, real)}\n")
    print(f"report: {written}")
    return 0


def _sheets(results: Sequence[Result], out: Path, jobs: int | None) -> list[tuple[str, bytes]]:
    """Run what did harm again, the same byte for byte but with the images recorded, and draw what the robot saw."""
    from bench.interruptions.report import harm_sheet, harmful

    path = LAUNCH
    names = list(dict.fromkeys(one.trial.variant for one in harmful(results)))
    variants = [_variant(*_arm_and_regime(name)) for name in names]
    sheets: dict[str, tuple[str, bytes]] = {}

    def with_images(task: str, changes: Sequence[str]) -> Sequence[str]:
        return (*_with_scenario(task, changes), 'recorder.exclude=["calls/*", "sim/world"]', "recorder.jpeg_quality=80",
                'recorder.depth="none"')  # fmt: skip

    def done(result: Result) -> None:
        picture = harm_sheet(Path(result.recording)) if result.recording else None
        if picture is not None:
            text = f"{result.trial.name}: “{result.measures.get('text')}”; {result.reason}"
            sheets[result.trial.name] = text, picture
        print(f"[{len(sheets)} of {len(harmful(results))}] {result.trial.name}", file=sys.stderr, flush=True)

    runs = Runs(str(path), path.read_text(encoding="utf-8"), variants, with_images, out / "harms", is_virtual=True,
                for_s=None, keeps_all=True, longest_s=900.0, report=REPORT)  # fmt: skip
    runs.all_of([one.trial for one in harmful(results)], jobs or os.cpu_count() or 1, done)
    return [sheets[name] for name in sorted(sheets)]


def _variant(arm: str, regime: str, *, recogniser_s: float = 0.0) -> TrialVariant:
    added = (PARTNER,) if arm in PARTNER_ARMS else ()
    return TrialVariant(variant_name(arm, regime), changes_of(arm, regime, recogniser_s=recogniser_s), added)


def _arm_and_regime(variant: str) -> tuple[str, str]:
    arm, _, regime = variant.rpartition("-")
    return arm, regime


def _scenarios(asked: Sequence[str]) -> tuple[str, ...]:
    """Those named; a kind stands for its three moments, none for all. Raises UserError."""
    kinds, known = (*shipped().kinds, "partner"), (*names(), *partner_names())
    found: list[str] = []
    for name in asked:
        mine = [one for one in known if one == name or (name in kinds and one.startswith(f"{name}-"))]
        if not mine:
            raise UserError(f"--scenario {name!r}: known: {choices((*kinds, *known))}")
        found += mine
    return tuple(dict.fromkeys(found)) or names()


def _with_scenario(task: str, changes: Sequence[str]) -> Sequence[str]:
    return (*changes, f"person.scenario={task}")


def _tell(results: Sequence[Result], out: Path, *, as_json: bool) -> None:
    figures, comparisons = figures_of(results), compare(results)
    if not as_json:
        if figures:
            print(table(figures, comparisons))
        if any(one.trial.task.startswith("partner-") for one in results):
            print(partner_table(results))
        for result in results:
            if why := reason_without(result):
                print(f"! {result.trial.name}: {why}")
        print(f"all results: {out}")
        return
    rows = []
    for result in results:
        row = msgspec.to_builtins(result)
        rows.append({key: value for key, value in row.items() if key not in _OF_THE_MACHINE})
    told = {"figures": figures, "comparisons": comparisons, "results": rows}
    print(msgspec.json.format(msgspec.json.encode(told, order="sorted"), indent=1).decode())


def reason_without(result: Result) -> str:
    """Why a run has no measures; "" where it has."""
    if result.has_broken or not result.measures:
        return result.reason
    return "" if result.measures.get("is_measured") else str(result.measures.get("why_not"))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polyrhythm eval interruptions",
        description="Interrupt a moving robot under several arms: the same scenarios and seeds, measured from the "
        "recordings. docs/decisions/interruption-experiment.md specifies it.",
        epilog="example: polyrhythm eval interruptions --arm A --arm B+ --scenario retraction --seeds 3",
    )
    parser.add_argument("--arm", action="append", choices=[*ARMS, *PARTNER_ARMS],
                        help="several; default: all but M and Q, which predict objections and ask first")  # fmt: skip
    parser.add_argument(
        "--scenario",
        action="append",
        default=[],
        metavar="NAME",
        help="a kind (stop), one at a moment (stop-carry), a control; default: all but `partner`",
    )
    parser.add_argument(
        "--regime",
        action="append",
        metavar="NAME",
        help=f"latencies: {', '.join(REGIMES)}, or planner2s, vlm10hz, policy10hz; several",
    )
    parser.add_argument(
        "--sweep",
        action="append",
        choices=list(SWEEPS),
        help="regimes in which one thing differs from `cloud`: latency of the planner, rates",
    )
    parser.add_argument("--recogniser", type=float, default=0.0, metavar="S", help="latency of the recogniser in s")
    parser.add_argument("--seeds", default="20", metavar="N", help="so many, from 0 (default: 20); or FIRST:END")
    add_run_options(
        parser, real_time="in processes, one run after the other; use --regime none: nothing is declared there"
    )
    parser.add_argument("--for", type=seconds, dest="for_s", metavar="S", help="end each run after that many seconds")
    return parser


def _report_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polyrhythm eval interruptions report",
        description="Tables on the terminal, and report.html with plots, of what several folders of results hold.",
        epilog="example: polyrhythm eval interruptions report runs/all runs/sweep --sheets",
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER", help="of results, or a file of --raw")
    parser.add_argument("--seeds", metavar="N", help="only these: those that all arms have run, of a run that goes on")
    parser.add_argument("--sheets", action="store_true", help="run what did harm again, and show what the robot saw")
    parser.add_argument("--jobs", type=count, metavar="N", help="runs side by side for --sheets")
    parser.add_argument("--raw", type=Path, metavar="FILE", help="write all results into one compressed file")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="a new one, for report.html; default: beside the first folder's results"
    )
    return parser
