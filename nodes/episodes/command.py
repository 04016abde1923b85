"""`polyrhythm episodes`: agents with private goals talk: run, show, score, report, browse."""

from __future__ import annotations

import argparse
import re
import sqlite3
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from runtime.command_line.arguments import answered, count, port_number, share

DEFAULT = " (default: %(default)s)"
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
        module, _, name = asked.work.partition(":")
        work: Callable[[argparse.Namespace], int] = getattr(import_module(f"nodes.episodes.{module}"), name)
        return work(asked)
    except (sqlite3.Error, BaseExceptionGroup) as problem:
        from nodes.episodes.results.run_file import StoreError, database_error

        if not (said := database_error(problem)):
            raise
        path = getattr(asked, "run", None) or getattr(asked, "out", None) or "the run's file"
        raise StoreError(f"{path}: cannot be used: {said}") from problem


Add = Callable[..., argparse.Action]
"""A parser's `add_argument`."""


class Subcommand(NamedTuple):
    """One of them: its module and function, imported when it is called: `--help` needs neither numpy nor the runner."""

    work: str
    does: str
    example: str
    options: Callable[[Add], None] | None = None
    has_run: bool = True
    has_json: bool = True


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="polyrhythm episodes",
        description="Sotopia episodes: agents with private goals who talk; one or thousands, offline or with models.",
        epilog="example: polyrhythm episodes run --tasks starter --agents rules --seeds 3",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, one in SUBCOMMANDS.items():
        examples = one.example.split("\n")
        lead = "\n  polyrhythm episodes " if len(examples) > 1 else " polyrhythm episodes "
        epilog = f"example{'s' * (len(examples) > 1)}:" + "".join(f"{lead}{name} {each}" for each in examples)
        about = f"{one.does[:1].upper()}{one.does[1:]}."
        of_one = commands.add_parser(name, help=one.does, description=about, epilog=epilog)
        if len(examples) > 1:
            of_one.formatter_class = argparse.RawDescriptionHelpFormatter
        if one.has_run:
            of_one.add_argument("run", type=Path, help="the run's file (.sqlite)")
        if one.has_json:
            of_one.add_argument("--json", action="store_true", help="JSON and nothing else on standard output")
        if one.options is not None:
            one.options(of_one.add_argument)
        of_one.set_defaults(work=one.work)
    return parser


def _run(add: Add) -> None:
    tasks = "starter (the default), hard (the published hard subset, from SOTOPIA_DATA), or a folder with a library"
    add("--tasks", default="starter", help=tasks)
    named = "only this task or scenario, by identifier or codename"
    add("--task", action="append", default=[], metavar="NAME", help=named)
    agents = "who plays the seats: rules (= scripted), human, script:FILE, replay:RUN[#EPISODE], MODEL[@URL][#t=0.7]; "
    agents += "class:MODULE:CLASS (a brain of your own); default: rules; again for another pairing"
    add("--agents", action="append", metavar="A[,B...]", help=agents)
    add("--models", default="", metavar="A,B,...", help="each of these with each, both ways: the table and heat map")
    add("--partner", default="", metavar="P", help="with --models: each with this one instead, in both seats")
    add("--swap", action="store_true", help="play each pairing in both seat orders")
    add("--seeds", type=int, default=1, help="so many seeds per task, from 0" + DEFAULT)
    add("--casts", type=int, default=1, help="so many casts per scenario" + DEFAULT)
    orders = f"who speaks when: {', '.join(ORDERS)}{DEFAULT}"
    add("--order", choices=ORDERS, default=ORDERS[0], metavar="ORDER", help=orders)
    modes = f"who knows what: {', '.join(MODES)}; several are reported side by side{DEFAULT}"
    add("--mode", default=MODES[0], metavar="MODE[,MODE...]", help=modes)
    like = "as that package plays and judges: its prompts and its rules, read by an interpreter that has it, or from a "
    add("--like", default="", metavar="sotopia-0.1.5[@PYTHON]", help=like + ".json file; default: our own")
    add("--name-only", action="store_true", help="characters are names without profiles")
    add("--turns", type=int, default=20, help="turn limit" + DEFAULT)
    wins = "a social game: saying what matches this regular expression wins and ends it; again for another"
    add("--win", action="append", default=[], metavar="[SEAT=]PATTERN", help=wins)
    add("--coach", default="", help="who coaches both seats: rules or MODEL[@URL]; default: nobody")
    variants = ("dsi", "raw", "nsi", "half-nsi")
    add("--variant", choices=variants, default="dsi", help="how it coaches" + DEFAULT)
    add("--attempts", type=count, default=4, help="with a coach: at a dialogue rated too low" + DEFAULT)
    _judges(add)
    add("--out", type=Path, metavar="RUN.sqlite", help="default: runs/episodes-TIME.sqlite")
    add("--shard", default="", metavar="I/N", help="only every Nth episode, beginning with the Ith")
    shards = "with --engine ray: so many tasks; default: one for each core"
    add("--shards", type=int, default=0, metavar="N", help=shards)
    _resume(add)


def _judges(add: Add) -> None:
    add("--judges", default="rules", help=JUDGES)
    add("--dimensions", type=Path, help="TOML file with own dimensions, for model judges")


def _resume(add: Add) -> None:
    engines = "where episodes are played: in this process (the default), or as tasks on the Ray cluster of this machine"
    add("--engine", choices=("here", "ray"), default="here", help=engines)
    _playing(add)


def _playing(add: Add) -> None:
    latency = "how long a model's answer takes in the episode's time: nothing (the default), as long as it took, or S "
    latency += "seconds; a slow mind is slower in asynchronous talk"
    add("--latency", metavar="none|wall|fixed:S", help=latency)
    add("--jobs", type=count, default=16, help="episodes (or evaluations) at a time" + DEFAULT)
    add("--rate", type=float, metavar="N", help="at most N calls a minute to each server; default: no limit")
    add("--deadline", type=float, metavar="S", help="for one answer, retries and outages included; default: 300")
    add("--timeout", type=float, metavar="S", help="for one attempt at an answer; default: 60")
    add("--max-calls", type=int, help="budget of the whole run; default: no limit")
    add("--max-tokens", type=int, help="budget of the whole run; default: no limit")
    money = "budget of the whole run, at --prices; the longest answer is set aside for each call; default: none"
    add("--max-money", type=float, help=money)
    add("--prices", metavar="IN,OUT", help="money per million prompt, answer tokens")
    add("--temperature", type=float, help="of models that play; default: 0.7")
    add("--stream", action="store_true", default=None, help="ask for streamed answers")
    add("--servers", type=Path, metavar="FILE", help="TOML with [servers.NAME]: urls, key, rate, prices")


def _show(add: Add) -> None:
    add("episode", nargs="?", help="an episode's name, or its number in the list")
    add("--prompts", action="store_true", help="the full text of what each agent was shown")


def _score(add: Add) -> None:
    _judges(add)
    add("--again", action="store_true", help="also what these judges have judged already")
    add("--ratings", type=Path, help="JSONL with human ratings: episode, rater, name, dimension, score")
    _playing(add)


def _report(add: Add) -> None:
    add("--out", type=Path, help="folder for report.html and the pictures")
    add("--judge", default="", help="scores of this judge only; default: the mean of all model judges")


def _rate(add: Add) -> None:
    add("--rater", action="append", default=[], metavar="NAME", help="who rates; again for another")
    add("--each", type=int, default=2, metavar="N", help="so many raters an episode has" + DEFAULT)
    scales = "fine (the seven with a sentence for each number), or a TOML file with own dimensions; default: the seven"
    add("--dimensions", type=Path, help=scales)
    add("--pairs", type=int, default=20, metavar="N", help="comparisons for each rater at most" + DEFAULT)
    add("--lan", action="store_true", help="also for raters elsewhere in this network, by TLS")
    add("--port", type=port_number, default=8428, help="0: a free one" + DEFAULT)


def _export(add: Add) -> None:
    add("--out", type=Path, help="file, or the folder of tables; default: standard output")
    profiles = "characters and scenarios too, as that package's local store has them (its ~/.sotopia/data)"
    add("--profiles", type=Path, metavar="FOLDER", help=profiles)
    forms, told = ("sotopia", "plain", "csv"), "csv: turns, scores, scores of turns and ratings, one a row" + DEFAULT
    add("--to", "--format", dest="format", choices=forms, default="sotopia", help=told)


def _merge(add: Add) -> None:
    add("shards", type=Path, nargs="+", metavar="SHARD.sqlite")
    add("--out", type=Path, required=True, metavar="RUN.sqlite", help="a new file")


def _import(add: Add) -> None:
    add("file", type=Path, help="JSONL, one EpisodeLog a line")
    add("--out", type=Path, metavar="RUN.sqlite", help="default: beside the file")


def _sample(add: Add) -> None:
    add("--tasks", default="starter", help="starter (the default), or a folder with a library")
    add("--uniform", type=int, metavar="N", help="N tasks, constraints not asked")
    add("--per-scenario", type=int, default=1, metavar="N", help="N casts that honour the constraints" + DEFAULT)
    add("--seed", type=int, default=0, help="another draws others" + DEFAULT)


def _embody(add: Add) -> None:
    add("recording", type=Path, nargs="?", help="a .mcap file of polyrhythm run; default: play it now")
    add("--task", required=True, metavar="NAME", help="the embodied scenario")
    add("--tasks", default="starter", metavar="FOLDER", help="with your own; default: the starter set")
    add("--beside-text", action="store_true", help="play it as text too, and compare the two")
    add("--seed", type=int, default=0, help="of the robot's run" + DEFAULT)
    changes = "of launch/laptop.toml, for its run"
    add("--set", action="append", default=[], metavar="NODE.PARAM=VALUE", help=changes)
    add("--out", type=Path, metavar="RUN.sqlite", help="default: beside the recording, or in runs/")
    _judges(add)
    _playing(add)


def _dataset(add: Add) -> None:
    add("runs", type=Path, nargs="+", metavar="RUN", help="a run's file (.sqlite); several are mixed")
    mixes = "of several runs: all that is kept of each, or task by task of the run that is rated highest" + DEFAULT
    add("--mix", choices=("all", "best"), default="all", help=mixes)
    told = "bc: behaviour cloning; sr: self-reinforcement; omega: the best attempts of coached episodes" + DEFAULT
    add("--filter", choices=("bc", "sr", "omega"), default="bc", help=told)
    add("--format", dest="form", choices=("alpaca", "messages"), default="alpaca", help="of each line" + DEFAULT)
    prompts = "shown: as the model got it, else made; full, small: made for every player" + DEFAULT
    add("--prompts", choices=("shown", "full", "small"), default="shown", help=prompts)
    add("--judge", default="", help="goals by this judge only; default: the mean of all model judges")
    add("--by", default="GOAL", metavar="GOAL|overall|...", help="what the filter goes by" + DEFAULT)
    turns = "only turns with such a score, as relevance>=0.5 after `follow --judge`"
    add("--key-turns", type=_key_turns, metavar="DIMENSION>=X", help=turns)
    add("--agent", default="", help="only seats that this agent played; default: all")
    add("--held-out", type=share, default=0.0, metavar="SHARE", help="of the tasks, apart" + DEFAULT)
    add("--longest", type=int, default=0, metavar="TOKENS", help="leave longer pairs out")
    tokenizers = "a model's folder, or tokenizer.json; default: tokens are estimated"
    add("--tokenizer", type=Path, metavar="PATH", help=tokenizers)
    add("--out", type=Path, required=True, metavar="FOLDER", help="a new folder")


def _key_turns(text: str) -> tuple[str, float]:
    dimension, _, value = text.partition(">=")
    try:
        return dimension.strip(), float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: expected DIMENSION>=X, as relevance>=0.5") from None


def _scenarios(add: Add) -> None:
    what = "new: the same command goes on where it was stopped; edit: a page where people edit, accept or refuse what "
    what += "stands in --out; lint: casts, goals, what is given away, in --tasks"
    add("what", choices=("new", "edit", "lint"), help=what)
    add("--from", dest="prompts", type=Path, metavar="CSV", help="new: prompt[,source]")
    add("--casts", type=int, default=5, metavar="N", help="lint: so many should fit" + DEFAULT)
    add("--n", type=count, default=100, help="so many tasks" + DEFAULT)
    add("--model", default="", help="MODEL[@URL] that writes them; default: a template")
    add("--tasks", default="starter", help="whose characters and relationships are used" + DEFAULT)
    add("--evaluation", default="starter", help="starter, hard or a folder: none of these" + DEFAULT)
    add("--not-in", type=Path, action="append", default=[], metavar="FOLDER", help="of earlier tasks")
    add("--seed", type=int, default=0, help="of the template" + DEFAULT)
    add("--out", type=Path, metavar="FOLDER", help="new, edit: a folder for --tasks")
    add("--port", type=port_number, default=8427, metavar="N", help="edit: of the page; 0: any" + DEFAULT)


def _rounds(add: Add) -> None:
    add("file", type=Path, help="TOML with [rounds] and [[round]]")
    add("--quick", action="store_true", help="with the keys of its table [quick]")


def _follow(add: Add) -> None:
    encoders = "auto: all-MiniLM where installed, else hashing; FOLDER; MODEL@URL" + DEFAULT
    add("--encoder", default="auto", help=encoders)
    add("--judge", default="", help="MODEL[@URL] that rates each turn's relevance; default: no S_rel")
    add("--jobs", type=count, default=16, help="turns rated at a time" + DEFAULT)
    add("--power-on-mean", action="store_true", help="S_div: the power of the mean similarity")
    add("--words", type=Path, metavar="FILE", help="words to be counted, one a line")
    solution = "a sentence that matches proposes a solution; alike ones count once"
    add("--injury", type=_pattern, default="", metavar="PATTERN", help="saying what matches is an intended injury")
    add("--prevention", type=_pattern, default="", metavar="PATTERN", help="saying what matches prevents one")
    add("--solution", type=_pattern, default="", metavar="PATTERN", help=solution)


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as problem:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {problem}") from problem
    return text


def _predict(add: Add) -> None:
    add("--by", default="", help="MODEL[@URL] that is asked; default: the baselines alone")
    add("--jobs", type=count, default=16, help="questions at a time" + DEFAULT)


def _sessions(add: Add) -> None:
    add("--tasks", default="starter", help="starter, hard or a folder" + DEFAULT)
    add("--scenario", action="append", default=[], metavar="NAME", help="one meeting each; several")
    add("--agents", default="rules", metavar="A[,B]", help="who plays the seats" + DEFAULT)
    add("--memory", action="append", choices=("none", "summary", "full"), help="several; default: all")
    add("--seeds", type=count, default=1, help="sessions of each memory" + DEFAULT)
    add("--turns", type=count, default=20, help="turn limit of a meeting" + DEFAULT)
    add("--judges", default="rules", help="rules, MODEL, MODEL@URL" + DEFAULT)
    add("--out", type=Path, required=True, metavar="RUN.sqlite", help="gone on with where it is there")


def _game(add: Add) -> None:
    add("--listeners", type=count, default=60, help="so many, from seed 0" + DEFAULT)
    add("--rounds", type=count, default=10, help="with each listener" + DEFAULT)
    minds = "what was learned of each listener; gone on with and written"
    add("--minds", type=Path, metavar="FILE", help=minds)


def _browse(add: Add) -> None:
    add("--port", type=port_number, default=0, help="default: a free one")


RUN_EXAMPLES = """--tasks starter --agents scripted --seeds 3 --json
--task quiet-hours --agents human,rules
--agents qwen@http://localhost:8000/v1,rules"""

SUBCOMMANDS = {
    "run": Subcommand("commands.run:run", "play episodes", RUN_EXAMPLES, _run, has_run=False),
    "resume": Subcommand(
        "commands.run:resume", "go on with a run that was stopped, killed, or failed in part",
        "runs/episodes-1.sqlite", _resume,
    ),
    "show": Subcommand(
        "results.show:show", "one episode to read, with who saw what; or the list of a run's episodes",
        "runs/episodes-1.sqlite 7", _show,
    ),
    "score": Subcommand(
        "commands.run:score", "evaluate again, with other judges or dimensions",
        "runs/episodes-1.sqlite --judges qwen@http://localhost:8000/v1", _score,
    ),
    "report": Subcommand(
        "results.report:report", "tables, comparisons, heat map, HTML", "runs/episodes-1.sqlite --out report", _report
    ),
    "rate": Subcommand(
        "results.rate:rate", "a page where people score episodes, and compare two",
        "runs/episodes-1.sqlite --rater ada --rater ben", _rate, has_json=False,
    ),
    "export": Subcommand(
        "results.export:export", "JSONL in the shape of the sotopia package's EpisodeLog, or tables as CSV",
        "runs/episodes-1.sqlite --to csv --out tables", _export, has_json=False,
    ),
    "merge": Subcommand(
        "commands.on_ray:merge", "the files of a run's shards as one",
        "shard-1.sqlite shard-2.sqlite --out whole.sqlite", _merge, has_run=False,
    ),
    "import": Subcommand(
        "results.export:import_logs", "EpisodeLogs (JSONL) as a run: to browse, to judge again, to report",
        "episodes.jsonl --out runs/published.sqlite", _import, has_run=False, has_json=False,
    ),
    "sample": Subcommand(
        "commands.run:sample", "draw tasks: scenarios with characters", "--tasks starter --per-scenario 2 --seed 7",
        _sample, has_run=False, has_json=False,
    ),
    "embody": Subcommand(
        "commands.embody:embody",
        "a scenario with a robot, played by the robot graph: in simulation now, or as a recording has it",
        "--task clear-table-by-four --beside-text --out runs/table.sqlite", _embody, has_run=False,
    ),
    "dataset": Subcommand(
        "learning.dataset:dataset", "training data of a run: filtered prompts and acts, with a card",
        "runs/episodes-1.sqlite --filter bc --format alpaca --out data/bc", _dataset, has_run=False,
    ),
    "scenarios": Subcommand(
        "learning.task_page:scenarios",
        "new social tasks from inspirational prompts, none of them an evaluation task; and a look at a set's scenarios",
        "new --from prompts.csv --n 20 --out tasks", _scenarios, has_run=False,
    ),
    "rounds": Subcommand(
        "learning.rounds:rounds",
        "generate, play, filter, train, serve, evaluate, compare; the same command goes on where it was stopped",
        "examples/social_learning/pi.toml --quick", _rounds, has_run=False,
    ),
    "follow": Subcommand(
        "commands.follow:follow",
        "how varied acts are and how close to their goals (S_div, S_rel, S_sif), and side effects",
        "runs/episodes-1.sqlite --encoder auto", _follow,
    ),
    "predict": Subcommand(
        "partner.predictions:predict",
        "after each turn: what does the other want, believe, and do next? accuracy against the truth",
        "runs/episodes-1.sqlite --by MODEL@URL", _predict,
    ),
    "sessions": Subcommand(
        "partner.sessions:sessions", "several meetings of the same two, remembered or not, and the gain over meetings",
        "--memory none --memory full --out runs/sessions.sqlite", _sessions, has_run=False,
    ),
    "game": Subcommand(
        "partner.reference_game:game",
        "a referential game: a speaker without a mind of the listener, with one, and one who knows them",
        "--listeners 60", _game, has_run=False,
    ),
    "browse": Subcommand(
        "results.browse:browse", "a local page to read, filter and compare episodes", "runs/episodes-1.sqlite",
        _browse, has_json=False,
    ),
}  # fmt: skip
