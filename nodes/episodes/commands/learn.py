"""Subcommands of `polyrhythm episodes` that learn from episodes; their modules are imported when they are called."""

from __future__ import annotations

import argparse
import asyncio
import re
from collections import Counter
from pathlib import Path

import msgspec

from nodes.episodes.commands.subcommand import DEFAULT, Commands, add_command
from nodes.episodes.scenarios.library import Library
from nodes.episodes.scenarios.lint import lint
from runtime.command_line.arguments import count, port_number, share
from runtime.errors import UserError


def add_learning(commands: Commands) -> None:
    """Add them to the parser."""
    _add_dataset(commands)
    _add_scenarios(commands)
    _add_rounds(commands)
    _add_follow(commands)


def _add_dataset(commands: Commands) -> None:
    parser = add_command(
        commands,
        "dataset",
        "commands.learn:dataset",
        "training data of a run: filtered prompts and acts, with a card",
        "polyrhythm episodes dataset runs/episodes-1.sqlite --filter bc --format alpaca --out data/bc",
    )
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="a run's file (.sqlite); several are mixed")
    parser.add_argument(
        "--mix",
        choices=("all", "best"),
        default="all",
        help="of several runs: all that is kept of each, or task by task of the run that is rated highest" + DEFAULT,
    )
    parser.add_argument(
        "--filter",
        choices=("bc", "sr", "omega"),
        default="bc",
        help="bc: behaviour cloning; sr: self-reinforcement; omega: the best attempts of coached episodes" + DEFAULT,
    )
    parser.add_argument("--format", choices=("alpaca", "messages"), default="alpaca", help="of each line" + DEFAULT)
    parser.add_argument(
        "--prompts",
        choices=("shown", "full", "small"),
        default="shown",
        help="shown: as the model got it, else made; full, small: made for every player" + DEFAULT,
    )
    parser.add_argument("--judge", default="", help="goals by this judge only; default: the mean of all model judges")
    parser.add_argument("--by", default="GOAL", metavar="GOAL|overall|...", help="what the filter goes by" + DEFAULT)
    parser.add_argument(
        "--key-turns",
        type=_key_turns,
        metavar="DIMENSION>=X",
        help="only turns with such a score, as relevance>=0.5 after `follow --judge`",
    )
    parser.add_argument("--agent", default="", help="only seats that this agent played; default: all")
    parser.add_argument("--held-out", type=share, default=0.0, metavar="SHARE", help="of the tasks, apart" + DEFAULT)
    parser.add_argument("--longest", type=int, default=0, metavar="TOKENS", help="leave longer pairs out")
    parser.add_argument(
        "--tokenizer",
        type=Path,
        metavar="PATH",
        help="a model's folder, or tokenizer.json; default: tokens are estimated",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="a new folder")


def dataset(asked: argparse.Namespace) -> int:
    from nodes.episodes.learning.dataset import CARD, write_dataset

    statistics = write_dataset(
        asked.runs,
        asked.out,
        asked.filter,
        mix=asked.mix,
        format_name=asked.format,
        prompts=asked.prompts,
        judge=asked.judge,
        agent=asked.agent,
        held_out=asked.held_out,
        most_tokens=asked.longest,
        tokenizer=asked.tokenizer,
        by=asked.by,
        key_turns=asked.key_turns,
    )
    if asked.json:
        print(msgspec.json.format(msgspec.json.encode(statistics), indent=1).decode())
    else:
        print("\n".join(f"{key.replace('_', ' '):24} {value}" for key, value in statistics.items()))
        print(f"\ndata: {asked.out} ({CARD} is its card)")
    return 0


def _add_scenarios(commands: Commands) -> None:
    parser = add_command(
        commands,
        "scenarios",
        "commands.learn:scenarios",
        "new social tasks from inspirational prompts, none of them an evaluation task; and a look at a set's scenarios",
        "polyrhythm episodes scenarios new --from prompts.csv --n 20 --out tasks",
    )
    parser.add_argument(
        "what",
        choices=("new", "edit", "lint"),
        help="new: the same command goes on where it was stopped; edit: a page where people edit, accept or refuse "
        "what stands in --out; lint: casts, goals, what is given away, in --tasks",
    )
    parser.add_argument("--from", dest="prompts", type=Path, metavar="CSV", help="new: prompt[,source]")
    parser.add_argument("--casts", type=int, default=5, metavar="N", help="lint: so many should fit" + DEFAULT)
    parser.add_argument("--n", type=count, default=100, help="so many tasks" + DEFAULT)
    parser.add_argument("--model", default="", help="MODEL[@URL] that writes them; default: a template")
    parser.add_argument("--tasks", default="starter", help="whose characters and relationships are used" + DEFAULT)
    parser.add_argument("--evaluation", default="starter", help="starter, hard or a folder: none of these" + DEFAULT)
    parser.add_argument("--not-in", type=Path, action="append", default=[], metavar="FOLDER", help="of earlier tasks")
    parser.add_argument("--seed", type=int, default=0, help="of the template" + DEFAULT)
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="new, edit: a folder for --tasks")
    parser.add_argument(
        "--port", type=port_number, default=8427, metavar="N", help="edit: of the page; 0: any" + DEFAULT
    )


def _lint(library: Library, casts: int, *, as_json: bool) -> int:
    """0; 1 where something should be mended."""
    found = lint(library, casts)
    if as_json:
        print(msgspec.json.encode([{**msgspec.to_builtins(one), "is_wrong": one.is_wrong} for one in found]).decode())
    else:
        for one in found:
            print(f"{one.name}: {one.code}: {one.text}")
        wrong = sum(one.is_wrong for one in found)
        print(f"{len(library.scenarios)} scenarios, {wrong} findings to mend, {len(found) - wrong} good to know")
    return int(any(one.is_wrong for one in found))


def scenarios(asked: argparse.Namespace) -> int:
    from nodes.episodes.commands.run import library_of
    from nodes.episodes.learning.new_tasks import generate, read_prompts

    if asked.what == "lint":
        return _lint(library_of(asked.tasks), asked.casts, as_json=asked.json)
    if asked.what == "edit":
        from nodes.episodes.learning.task_page import edit

        if asked.out is None:
            raise UserError("scenarios edit: expected --out FOLDER, where `scenarios new` has put its tasks")
        return edit(asked.out, asked.port, library_of(asked.evaluation).scenarios.values())
    if asked.prompts is None or asked.out is None:
        raise UserError("scenarios new: expected --from CSV with prompts, and --out FOLDER for the tasks")
    made = asyncio.run(
        generate(
            read_prompts(asked.prompts),
            asked.out,
            asked.n,
            library_of(asked.tasks),
            model=asked.model,
            evaluation=library_of(asked.evaluation).scenarios.values(),
            earlier=asked.not_in,
            seed=asked.seed,
        )
    )
    counts = Counter(one.state for one in made)
    if asked.json:
        print(msgspec.json.encode({**counts, "folder": str(asked.out)}).decode())
    else:
        for one in made:
            if one.state != "accepted":
                print(f"{one.state}: {one.prompt[:60]}: {one.why}")
        print(f"{counts['accepted']} of {asked.n} tasks in {asked.out}")
    return 0 if counts["accepted"] >= asked.n else 1


def _add_rounds(commands: Commands) -> None:
    parser = add_command(
        commands,
        "rounds",
        "commands.learn:rounds",
        "generate, play, filter, train, serve, evaluate, compare; the same command goes on where it was stopped",
        "polyrhythm episodes rounds examples/social_learning/pi.toml --quick",
    )
    parser.add_argument("file", type=Path, help="TOML with [rounds] and [[round]]")
    parser.add_argument("--quick", action="store_true", help="with the keys of its table [quick]")


def rounds(asked: argparse.Namespace) -> int:
    from nodes.episodes.learning.rounds import Rounds, comparison_text

    rounds = Rounds(asked.file, asked.episodes, quick=asked.quick)
    comparison = rounds.run()
    if asked.json:
        print(msgspec.json.format(msgspec.json.encode(comparison), indent=1).decode())
    else:
        print(comparison_text(comparison))
        print(f"\nrounds: {rounds.folder}")
    return 0


def _add_follow(commands: Commands) -> None:
    parser = add_command(
        commands,
        "follow",
        "commands.follow:follow",
        "how varied acts are and how close to their goals (S_div, S_rel, S_sif), and side effects",
        "polyrhythm episodes follow runs/episodes-1.sqlite --encoder auto",
    )
    parser.add_argument("run", type=Path, help="the run's file (.sqlite); report shows what it gains")
    parser.add_argument(
        "--encoder", default="auto", help="auto: all-MiniLM where installed, else hashing; FOLDER; MODEL@URL" + DEFAULT
    )
    parser.add_argument("--judge", default="", help="MODEL[@URL] that rates each turn's relevance; default: no S_rel")
    parser.add_argument("--jobs", type=count, default=16, help="turns rated at a time" + DEFAULT)
    parser.add_argument("--power-on-mean", action="store_true", help="S_div: the power of the mean similarity")
    parser.add_argument("--words", type=Path, metavar="FILE", help="words to be counted, one a line")
    for name, found in (
        ("injury", "saying what matches is an intended injury"),
        ("prevention", "saying what matches prevents one"),
        ("solution", "a sentence that matches proposes a solution; alike ones count once"),
    ):
        parser.add_argument(f"--{name}", type=_pattern, default="", metavar="PATTERN", help=found)


def _key_turns(text: str) -> tuple[str, float]:
    dimension, _, value = text.partition(">=")
    try:
        return dimension.strip(), float(value)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: expected DIMENSION>=X, as relevance>=0.5") from None


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as problem:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression: {problem}") from problem
    return text
