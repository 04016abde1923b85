"""How a subcommand of `polyrhythm episodes` is declared: its sentence, an example, what does the work, `--json`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TypeAlias

DEFAULT = " (default: %(default)s)"

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def add_command(
    commands: Commands, name: str, work: str, does: str, example: str, *, has_run: bool = False, has_json: bool = True
) -> argparse.ArgumentParser:
    """A parser below these commands; `work` is "module:function" of this package, imported when it is called.

    So `--help` and `show` need neither numpy nor the runner.
    """
    text = f"{does[:1].upper()}{does[1:]}."
    parser = commands.add_parser(name, help=does, description=text, epilog=f"example: {example}")
    if has_run:
        parser.add_argument("run", type=Path, help="the run's file (.sqlite)")
    if has_json:
        parser.add_argument("--json", action="store_true", help="JSON and nothing else on standard output")
    parser.set_defaults(work=work)
    return parser


def work_of(asked: argparse.Namespace) -> int:
    """Import what does the work, and do it."""
    module, _, name = asked.work.partition(":")
    function: Callable[[argparse.Namespace], int] = getattr(import_module(f"nodes.episodes.{module}"), name)
    return function(asked)
