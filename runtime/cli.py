"""The `polyrhythm` command. Subcommands of other packages are entry points of the group `polyrhythm.commands`."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points

from runtime.errors import PolyrhythmError, UserError

GROUP = "polyrhythm.commands"

_OWN = {  # imported when asked for: `polyrhythm --help` loads none of them
    "run": "runtime.commands.run:main",
    "check": "runtime.commands.check:check_main",
    "graph": "runtime.commands.check:graph_main",
    "nodes": "runtime.commands.nodes:nodes_main",
    "topics": "runtime.commands.nodes:topics_main",
    "echo": "runtime.commands.listen:echo_main",
    "hz": "runtime.commands.listen:hz_main",
    "delay": "runtime.commands.listen:delay_main",
    "bw": "runtime.commands.listen:bw_main",
    "pub": "runtime.commands.pub:pub_main",
    "top": "runtime.commands.top:top_main",
    "keys": "runtime.commands.keys:main",
    "doctor": "runtime.commands.doctor:doctor_main",
}

Command = Callable[[list[str]], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand. Exit codes: 0 did it, 1 ran and failed, 2 was asked wrongly."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.append(os.getcwd())  # a user's own nodes, after everything that is installed
    commands = {**_own_commands(), **_other_commands()}
    parser = argparse.ArgumentParser(
        prog="polyrhythm",
        description="Event-driven, real-time, multi-rate agent runtime for robots.",
        epilog="example: polyrhythm run laptop     (polyrhythm COMMAND --help tells more)",
    )
    parser.add_argument("command", choices=sorted(commands), metavar="COMMAND", help=", ".join(sorted(commands)))
    if not arguments or arguments[0] in ("-h", "--help"):
        parser.print_help()
        return 0 if arguments else 2
    command = parser.parse_args(arguments[:1]).command
    try:
        return commands[command](arguments[1:])
    except UserError as problem:
        print(f"polyrhythm: {problem}", file=sys.stderr)
        return 2
    except PolyrhythmError as problem:
        print(f"polyrhythm: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # the reader of our output has gone
        return 0


def _own_commands() -> dict[str, Command]:
    def later(place: str) -> Command:
        def command(argv: list[str]) -> int:
            module, _, function = place.partition(":")
            main: Command = getattr(importlib.import_module(module), function)
            return main(argv)

        return command

    return {name: later(place) for name, place in _OWN.items()}


def _other_commands() -> dict[str, Command]:
    def later(entry: object) -> Command:
        def command(argv: list[str]) -> int:
            loaded: Command = entry.load()  # type: ignore[attr-defined]  # an EntryPoint
            return loaded(argv)

        return command

    return {entry.name: later(entry) for entry in entry_points(group=GROUP)}


if __name__ == "__main__":
    sys.exit(main())
