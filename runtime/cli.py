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
    "run": "runtime.run_command:main",
    "check": "runtime.check_command:check_main",
    "graph": "runtime.check_command:graph_main",
    "nodes": "runtime.nodes_command:nodes_main",
    "topics": "runtime.nodes_command:topics_main",
    "echo": "runtime.listen_command:echo_main",
    "hz": "runtime.listen_command:hz_main",
    "delay": "runtime.listen_command:delay_main",
    "bw": "runtime.listen_command:bw_main",
    "pub": "runtime.pub_command:pub_main",
    "top": "runtime.top_command:top_main",
    "doctor": "runtime.doctor_command:doctor_main",
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
