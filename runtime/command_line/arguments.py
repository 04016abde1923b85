"""What all commands share: how numbers are read from the command line, and which exit code an error has."""

from __future__ import annotations

import argparse
import functools
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from runtime.errors import PolyrhythmError, UserError
from runtime.extras import lacking


def answered(command: str, do: Callable[[], int]) -> int:
    """What `do` returns; an error is printed as a sentence on stderr, and returns 2 for a wrong request, 1 for a
    failure.

    A missing library of an extra counts as a wrong request. An error of a handler is told with node, time and line.
    """
    try:
        return do()
    except PolyrhythmError as problem:
        code = f" [{problem.code}]" if isinstance(problem, UserError) and problem.code else ""
        print(f"{command}: {problem}{_handler_of(problem)}{code}", file=sys.stderr)
        return 2 if isinstance(problem, UserError) else 1
    except ModuleNotFoundError as problem:
        sentence = lacking(problem)
        if sentence is None:
            raise
        print(f"{command}: {sentence}", file=sys.stderr)
        return 2


def command(
    name: str, parser: Callable[[], argparse.ArgumentParser]
) -> Callable[[Callable[[argparse.Namespace], int]], Callable[[Sequence[str]], int]]:
    """Make `polyrhythm NAME` of what does it: it takes a command line, and answers as `answered` says."""

    def made(do: Callable[[argparse.Namespace], int]) -> Callable[[Sequence[str]], int]:
        @functools.wraps(do)
        def main(argv: Sequence[str]) -> int:
            asked = parser().parse_args(argv)
            return answered(f"polyrhythm {name}", lambda: do(asked))

        return main

    return made


def _handler_of(problem: PolyrhythmError) -> str:
    """What virtual time has noted of the handler that raised it, with the line where that says more."""
    notes = getattr(problem, "__notes__", ())
    if not notes:
        return ""
    from runtime.launch.checks.class_check import (
        place_of_problem,  # not at the top: an emergency stop starts sooner without
    )

    place = place_of_problem(problem)
    return f" ({', '.join([*notes, *([place] if place and place not in str(problem) else [])])})"


def positive(text: str) -> float:
    """A positive number."""
    value = _number(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is no positive number")
    return value


def seconds(text: str) -> float:
    """A positive number of seconds."""
    value = _number(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is no positive number of seconds")
    return value


def count(text: str) -> int:
    """A positive whole number."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text} is no positive whole number")
    return int(text)


def port_number(text: str) -> int:
    """A TCP port; 0 is any free one."""
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text} is no port; expected 0 to 65535")
    return int(text)


def share(text: str) -> float:
    """A number from 0 to 1."""
    value = _number(text)
    if not 0.0 <= value <= 1.0:
        raise argparse.ArgumentTypeError(f"{text} is no share from 0 to 1")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def add_launch_options(parser: argparse.ArgumentParser) -> None:
    """`--set`, `--add` and `--without`: what a command changes in the launch file that it is given."""
    parser.add_argument(
        "--set", action="append", default=[], metavar="NODE.PARAM=VALUE", help="override one value of the file"
    )
    parser.add_argument(
        "--add", action="append", default=[], metavar="NAME=MODULE:CLASS", help="a node more than the file has"
    )
    parser.add_argument(
        "--without", action="append", default=[], metavar="NAME",
        help="leave this node out; never the guard or the driver of a robot",
    )  # fmt: skip


def new_path(asked: Path | None, default: Path) -> Path:
    """Where a command writes: what somebody named, or else the next free one of `default`.

    Raises UserError where what somebody named is there already: nothing is written over.
    """
    if asked is None:
        return unique_path(default)
    check_new(asked)
    return asked


def check_new(path: Path, option: str = "--out") -> None:
    """Raise UserError where a file of that name is there already, or a folder with something in it."""
    try:
        is_taken = path.is_symlink() or (any(path.iterdir()) if path.is_dir() else path.exists())
    except OSError:
        return  # whoever writes there says why it cannot
    if is_taken:
        raise UserError(f"{option} {path}: is there already, and nothing is written over it; name another")


def unique_path(path: Path) -> Path:
    """This path, or the next free one (NAME-2, NAME-3...) where that is there already."""
    number, free = 1, path
    while free.exists():
        number += 1
        free = path.with_name(f"{path.stem}-{number}{path.suffix}")
    return free
