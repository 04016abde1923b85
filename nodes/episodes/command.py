"""`polyrhythm episodes`: agents with private goals talk: run, show, score, report, browse."""

from __future__ import annotations

import argparse
import sqlite3
from pathlib import Path

from nodes.episodes.commands.learn import add_learning
from nodes.episodes.commands.partner import add_partner
from nodes.episodes.commands.subcommand import DEFAULT, add_command, work_of
from runtime.command_line.arguments import answered, port_number

ORDERS = ("round-robin", "simultaneous", "random", "asynchronous")
MODES = ("AGENTS", "MINDREADERS", "SCRIPT")
JUDGES = "rules (the default), MODEL, MODEL@URL; #scale=fine: a sentence for each number; several with commas"


def main(argv: list[str]) -> int:
    """Run one subcommand. Returns 0, 1 where it ran and failed, 2 where it was asked wrongly."""
    parser = _parser()
    if not argv:
        parser.print_help()
        return 2
    asked = parser.parse_args(argv)
    asked.episodes = main  # for a command that calls others
    return answered("polyrhythm episodes", lambda: _done(asked))


def _done(asked: argparse.Namespace) -> int:
    """What the command returns. Raises StoreError where a run's file is full, damaged or not to be written."""
    try:
        return work_of(asked)
    except (sqlite3.Error, BaseExceptionGroup) as problem:
        from nodes.episodes.results.run_file import StoreError, database_error

        if not (said := database_error(problem)):
            raise
        path = getattr(asked, "run", None) or getattr(asked, "out", None) or "the run's file"
        raise StoreError(f"{path}: cannot be used: {said}") from problem


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polyrhythm episodes",
        description="Sotopia episodes: agents with private goals who talk; one or thousands, offline or with models.",
        epilog="example: polyrhythm episodes run --tasks starter --agents rules --seeds 3",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = add_command(commands, "run", "commands.run:run", "play episodes", RUN_EXAMPLES)
    run.formatter_class = argparse.RawDescriptionHelpFormatter
    run.epilog = RUN_EXAMPLES
    _add_run(run)
    resume = add_command(
        commands,
        "resume",
        "commands.run:resume",
        "go on with a run that was stopped, killed, or failed in part",
        "polyrhythm episodes resume runs/episodes-1.sqlite",
        has_run=True,
    )
    _add_engine(resume)
    _add_playing(resume)
    show = add_command(
        commands,
        "show",
        "results.show:show",
        "one episode to read, with who saw what; or the list of a run's episodes",
        "polyrhythm episodes show runs/episodes-1.sqlite 7",
        has_run=True,
    )
    show.add_argument("episode", nargs="?", help="an episode's name, or its number in the list")
    show.add_argument("--prompts", action="store_true", help="the full text of what each agent was shown")
    score = add_command(
        commands,
        "score",
        "commands.score:score",
        "evaluate again, with other judges or dimensions",
        "polyrhythm episodes score runs/episodes-1.sqlite --judges qwen@http://localhost:8000/v1",
        has_run=True,
    )
    score.add_argument("--judges", default="rules", help=JUDGES)
    score.add_argument("--dimensions", type=Path, help="TOML file with own dimensions")
    score.add_argument("--again", action="store_true", help="also what these judges have judged already")
    score.add_argument("--ratings", type=Path, help="JSONL with human ratings: episode, rater, name, dimension, score")
    _add_playing(score)
    report = add_command(
        commands,
        "report",
        "results.report:report",
        "tables, comparisons, heat map, HTML",
        "polyrhythm episodes report runs/episodes-1.sqlite --out report",
        has_run=True,
    )
    report.add_argument("--out", type=Path, help="folder for report.html and the pictures")
    report.add_argument("--judge", default="", help="scores of this judge only; default: the mean of all model judges")
    rate = add_command(
        commands,
        "rate",
        "results.rate:rate",
        "a page where people score episodes, and compare two",
        "polyrhythm episodes rate runs/episodes-1.sqlite --rater ada --rater ben",
        has_run=True,
        has_json=False,
    )
    rate.add_argument("--rater", action="append", default=[], metavar="NAME", help="who rates; again for another")
    rate.add_argument("--each", type=int, default=2, metavar="N", help="so many raters an episode has" + DEFAULT)
    rate.add_argument(
        "--dimensions",
        type=Path,
        help="fine (the seven with a sentence for each number), or a TOML file with own dimensions; default: the seven",
    )
    rate.add_argument("--pairs", type=int, default=20, metavar="N", help="comparisons for each rater at most" + DEFAULT)
    rate.add_argument("--lan", action="store_true", help="also for raters elsewhere in this network, by TLS")
    rate.add_argument("--port", type=port_number, default=8428, help="0: a free one" + DEFAULT)
    export = add_command(
        commands,
        "export",
        "results.export:export",
        "JSONL in the shape of the sotopia package's EpisodeLog, or tables as CSV",
        "polyrhythm episodes export runs/episodes-1.sqlite --to csv --out tables",
        has_run=True,
        has_json=False,
    )
    export.add_argument("--out", type=Path, help="file, or the folder of tables; default: standard output")
    export.add_argument(
        "--profiles",
        type=Path,
        metavar="FOLDER",
        help="characters and scenarios too, as that package's local store has them (its ~/.sotopia/data)",
    )
    export.add_argument(
        "--to",
        "--format",
        dest="format",
        choices=("sotopia", "plain", "csv"),
        default="sotopia",
        help="csv: turns, scores, scores of turns and ratings, one a row" + DEFAULT,
    )
    merge = add_command(
        commands,
        "merge",
        "commands.merge:merge",
        "the files of a run's shards as one",
        "polyrhythm episodes merge shard-1.sqlite shard-2.sqlite --out whole.sqlite",
    )
    merge.add_argument("shards", type=Path, nargs="+", metavar="SHARD.sqlite")
    merge.add_argument("--out", type=Path, required=True, metavar="RUN.sqlite", help="a new file")
    imports = add_command(
        commands,
        "import",
        "results.import_logs:import_logs",
        "EpisodeLogs (JSONL) as a run: to browse, to judge again, to report",
        "polyrhythm episodes import episodes.jsonl --out runs/published.sqlite",
        has_json=False,
    )
    imports.add_argument("file", type=Path, help="JSONL, one EpisodeLog a line")
    imports.add_argument("--out", type=Path, metavar="RUN.sqlite", help="default: beside the file")
    sample = add_command(
        commands,
        "sample",
        "commands.run:sample",
        "draw tasks: scenarios with characters",
        "polyrhythm episodes sample --tasks starter --per-scenario 2 --seed 7",
        has_json=False,
    )
    sample.add_argument("--tasks", default="starter", help="starter (the default), or a folder with a library")
    sample.add_argument("--uniform", type=int, metavar="N", help="N tasks, constraints not asked")
    sample.add_argument(
        "--per-scenario", type=int, default=1, metavar="N", help="N casts that honour the constraints" + DEFAULT
    )
    sample.add_argument("--seed", type=int, default=0, help="another draws others" + DEFAULT)
    embody = add_command(
        commands,
        "embody",
        "commands.embody:embody",
        "a scenario with a robot, played by the robot graph: in simulation now, or as a recording has it",
        "polyrhythm episodes embody --task clear-table-by-four --beside-text --out runs/table.sqlite",
    )
    embody.add_argument("recording", type=Path, nargs="?", help="a .mcap file of polyrhythm run; default: play it now")
    embody.add_argument("--task", required=True, metavar="NAME", help="the embodied scenario")
    embody.add_argument("--tasks", default="starter", metavar="FOLDER", help="with your own; default: the starter set")
    embody.add_argument("--beside-text", action="store_true", help="play it as text too, and compare the two")
    embody.add_argument("--seed", type=int, default=0, help="of the robot's run" + DEFAULT)
    embody.add_argument(
        "--set", action="append", default=[], metavar="NODE.PARAM=VALUE", help="of launch/laptop.toml, for its run"
    )
    embody.add_argument("--out", type=Path, metavar="RUN.sqlite", help="default: beside the recording, or in runs/")
    embody.add_argument("--judges", default="rules", help=JUDGES)
    embody.add_argument("--dimensions", type=Path, help="TOML file with own dimensions, for model judges")
    _add_playing(embody)
    add_learning(commands)
    add_partner(commands)
    browse = add_command(
        commands,
        "browse",
        "results.browse:browse",
        "a local page to read, filter and compare episodes",
        "polyrhythm episodes browse runs/episodes-1.sqlite",
        has_run=True,
        has_json=False,
    )
    browse.add_argument("--port", type=port_number, default=0, help="default: a free one")
    return parser


RUN_EXAMPLES = """examples:
  polyrhythm episodes run --tasks starter --agents scripted --seeds 3 --json
  polyrhythm episodes run --task quiet-hours --agents human,rules
  polyrhythm episodes run --agents qwen@http://localhost:8000/v1,rules"""


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tasks",
        default="starter",
        help="starter (the default), hard (the published hard subset, from SOTOPIA_DATA), or a folder with a library",
    )
    parser.add_argument(
        "--task",
        action="append",
        default=[],
        metavar="NAME",
        help="only this task or scenario, by identifier or codename",
    )
    parser.add_argument(
        "--agents",
        action="append",
        metavar="A[,B...]",
        help="who plays the seats: rules (= scripted), human, script:FILE, replay:RUN[#EPISODE], MODEL[@URL][#t=0.7]; "
        "class:MODULE:CLASS (a brain of your own); default: rules; again for another pairing",
    )
    parser.add_argument(
        "--models", default="", metavar="A,B,...", help="each of these with each, both ways: the table and heat map"
    )
    parser.add_argument(
        "--partner", default="", metavar="P", help="with --models: each with this one instead, in both seats"
    )
    parser.add_argument("--swap", action="store_true", help="play each pairing in both seat orders")
    parser.add_argument("--seeds", type=int, default=1, help="so many seeds per task, from 0" + DEFAULT)
    parser.add_argument("--casts", type=int, default=1, help="so many casts per scenario" + DEFAULT)
    parser.add_argument(
        "--order",
        choices=ORDERS,
        default=ORDERS[0],
        metavar="ORDER",
        help="who speaks when: " + ", ".join(ORDERS) + DEFAULT,
    )
    parser.add_argument(
        "--mode",
        default=MODES[0],
        metavar="MODE[,MODE...]",
        help="who knows what: " + ", ".join(MODES) + "; several are reported side by side" + DEFAULT,
    )
    parser.add_argument(
        "--like",
        default="",
        metavar="sotopia-0.1.5[@PYTHON]",
        help="as that package plays and judges: its prompts and its rules, read by an interpreter that has it, or "
        "from a .json file; default: our own",
    )
    parser.add_argument("--name-only", action="store_true", help="characters are names without profiles")
    parser.add_argument("--turns", type=int, default=20, help="turn limit" + DEFAULT)
    parser.add_argument(
        "--win",
        action="append",
        default=[],
        metavar="[SEAT=]PATTERN",
        help="a social game: saying what matches this regular expression wins and ends it; again for another",
    )
    parser.add_argument("--coach", default="", help="who coaches both seats: rules or MODEL[@URL]; default: nobody")
    parser.add_argument(
        "--variant", choices=("dsi", "raw", "nsi", "half-nsi"), default="dsi", help="how it coaches" + DEFAULT
    )
    parser.add_argument("--attempts", type=int, default=4, help="with a coach: at a dialogue rated too low" + DEFAULT)
    parser.add_argument("--judges", default="rules", help=JUDGES)
    parser.add_argument("--dimensions", type=Path, help="TOML file with own dimensions, for model judges")
    parser.add_argument("--out", type=Path, metavar="RUN.sqlite", help="default: runs/episodes-TIME.sqlite")
    parser.add_argument("--shard", default="", metavar="I/N", help="only every Nth episode, beginning with the Ith")
    parser.add_argument(
        "--shards",
        type=int,
        default=0,
        metavar="N",
        help="with --engine ray: so many tasks; default: one for each core",
    )
    _add_engine(parser)
    _add_playing(parser)


def _add_engine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--engine",
        choices=("here", "ray"),
        default="here",
        help="where episodes are played: in this process (the default), or as tasks on the Ray cluster of this machine",
    )


def _add_playing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--latency",
        metavar="none|wall|fixed:S",
        help="how long a model's answer takes in the episode's time: nothing (the default), as long as it took, or S "
        "seconds; a slow mind is slower in asynchronous talk",
    )
    parser.add_argument("--jobs", type=int, help="episodes (or evaluations) at a time; default: 16")
    parser.add_argument(
        "--rate",
        type=float,
        metavar="N",
        help="at most N calls a minute to each server; default: no limit",
    )
    parser.add_argument(
        "--deadline", type=float, metavar="S", help="for one answer, retries and outages included; default: 300"
    )
    parser.add_argument("--timeout", type=float, metavar="S", help="for one attempt at an answer; default: 60")
    parser.add_argument("--max-calls", type=int, help="budget of the whole run; default: no limit")
    parser.add_argument("--max-tokens", type=int, help="budget of the whole run; default: no limit")
    parser.add_argument(
        "--max-money",
        type=float,
        help="budget of the whole run, at --prices; the longest answer is set aside for each call; default: none",
    )
    parser.add_argument("--prices", metavar="IN,OUT", help="money per million prompt, answer tokens")
    parser.add_argument("--temperature", type=float, help="of models that play; default: 0.7")
    parser.add_argument("--stream", action="store_true", default=None, help="ask for streamed answers")
    parser.add_argument(
        "--servers", type=Path, metavar="FILE", help="TOML with [servers.NAME]: urls, key, rate, prices"
    )
