"""Subcommands of `polyrhythm episodes` that learn from episodes; their modules are imported when they are called."""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec

DEFAULT = " (default: %(default)s)"


def add_learning(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add them to the parser."""
    _add_dataset(commands)


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, does: str, example: str
) -> argparse.ArgumentParser:
    text = f"{does[:1].upper()}{does[1:]}."
    parser = commands.add_parser(name, help=does, description=text, epilog=f"example: {example}")
    parser.add_argument("--json", action="store_true", help="JSON and nothing else on standard output")
    return parser


def _add_dataset(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "dataset",
        "training data of a run: filtered prompts and acts, with a card",
        "polyrhythm episodes dataset runs/episodes-1.sqlite --filter bc --format alpaca --out data/bc",
    )
    parser.add_argument("run", type=Path, help="the run's file (.sqlite)")
    parser.add_argument(
        "--filter",
        choices=("bc", "sr", "released"),
        default="bc",
        help="bc: behaviour cloning; sr: self-reinforcement; released: goal of 7.0 with seats balanced" + DEFAULT,
    )
    parser.add_argument("--format", choices=("alpaca", "messages"), default="alpaca", help="of each line" + DEFAULT)
    parser.add_argument(
        "--prompts",
        choices=("shown", "full", "small"),
        default="shown",
        help="shown: as the model got it, else made; full, small: made for every player" + DEFAULT,
    )
    parser.add_argument("--judge", default="", help="goals by this judge only; default: the mean of all")
    parser.add_argument("--agent", default="", help="only seats that this agent played; default: all")
    parser.add_argument("--held-out", type=float, default=0.0, metavar="SHARE", help="of the tasks, apart" + DEFAULT)
    parser.add_argument("--longest", type=int, default=0, metavar="TOKENS", help="leave longer pairs out")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="a new folder")
    parser.set_defaults(command=_dataset)


def _dataset(asked: argparse.Namespace) -> int:
    from nodes.episodes.learning.dataset import CARD, write_dataset

    statistics = write_dataset(
        asked.run,
        asked.out,
        asked.filter,
        format_name=asked.format,
        prompts=asked.prompts,
        judge=asked.judge,
        agent=asked.agent,
        held_out=asked.held_out,
        most_tokens=asked.longest,
    )
    if asked.json:
        print(msgspec.json.format(msgspec.json.encode(statistics), indent=1).decode())
    else:
        print("\n".join(f"{key.replace('_', ' '):24} {value}" for key, value in statistics.items()))
        print(f"\ndata: {asked.out} ({CARD} is its card)")
    return 0
