"""`polyrhythm bag COMMAND`: recordings: info, diff, recover, cut, merge, plot, export, why.

Finds the subcommand; each lives in a module of its own, imported when asked for.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Callable

from nodes.recording.bag.progress import told_at_terminal
from runtime.command_line.arguments import answered
from runtime.errors import os_sentence

COMMANDS = {
    "info": ("nodes.recording.bag.info", "topics, rates, gaps, ages, drops, duration, parts"),
    "diff": ("nodes.recording.bag.diff", "whether two recordings hold the same messages; the first difference"),
    "recover": ("nodes.recording.bag.recover", "write what can be read of a damaged recording into a sound one"),
    "cut": ("nodes.recording.bag.cut", "keep a span of time, or some topics"),
    "merge": ("nodes.recording.bag.merge", "join the parts of one run"),
    "plot": ("nodes.recording.bag.plot", "rates, ages, joints and events as a picture"),
    "export": ("nodes.recording.bag.export.command", "to a LeRobot dataset, a ROS 2 bag, JSON lines, CSV or videos"),
    "import": (
        "nodes.recording.bag.export.command",
        "a ROS 2 bag or a LeRobot dataset as recordings that can be replayed",
    ),
    "latency": ("nodes.recording.bag.latency", "how long handlers took, as a trace for virtual time"),
    "why": ("nodes.recording.bag.why", "what led to the robot's command at a point of time"),
}


def main(argv: list[str]) -> int:
    """Run one subcommand. 0 did it, 1 ran and failed (or: differs, lossy), 2 was asked wrongly."""
    if not argv:
        _parser().print_help()
        return 2
    if argv[0] in ("-h", "--help"):
        _parser().parse_args(argv)
    if argv[0] not in COMMANDS:
        print(f"polyrhythm bag: unknown command {argv[0]!r}; known: {', '.join(COMMANDS)}", file=sys.stderr)
        return 2
    module = importlib.import_module(COMMANDS[argv[0]][0])
    run: Callable[[list[str]], int] = module.import_main if argv[0] == "import" else module.main

    def obey() -> int:
        with told_at_terminal(is_wanted="--json" not in argv):
            return run(argv[1:])

    try:
        return answered(f"polyrhythm bag {argv[0]}", obey)
    except SystemExit as end:  # argparse: asked wrongly, or --help
        return int(end.code or 0)
    except BrokenPipeError:
        raise  # `polyrhythm bag info RUN.mcap | head` is no failure
    except OSError as problem:
        print(f"polyrhythm bag {argv[0]}: {os_sentence(problem)}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    """Of the subcommands by name; each reads its own words."""
    parser = argparse.ArgumentParser(
        prog="polyrhythm bag",
        description="Look into recordings, repair, cut, join, compare and export them.",
        epilog="example: polyrhythm bag info runs/20261121-113639-laptop/run.mcap",
    )
    commands = parser.add_subparsers(metavar="COMMAND")
    for name, (_, does) in COMMANDS.items():
        commands.add_parser(name, help=does)
    return parser
