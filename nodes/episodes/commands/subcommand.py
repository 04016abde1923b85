"""How a subcommand of `polyrhythm episodes` is declared: its sentence, an example, `--json`."""

from __future__ import annotations

import argparse

DEFAULT = " (default: %(default)s)"


def add_command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, does: str, example: str
) -> argparse.ArgumentParser:
    """A parser below these commands; it knows `--json`."""
    text = f"{does[:1].upper()}{does[1:]}."
    parser = commands.add_parser(name, help=does, description=text, epilog=f"example: {example}")
    parser.add_argument("--json", action="store_true", help="JSON and nothing else on standard output")
    return parser
