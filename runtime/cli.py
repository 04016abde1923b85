"""The `polyrhythm` command. Subcommands of other packages are entry points of the group `polyrhythm.commands`."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Callable, Sequence

from runtime.commands import GROUP
from runtime.exit_codes import code_of_interrupt
from runtime.operating_system import telling
from runtime.operating_system.loading import WholeImports
from runtime.operating_system.terminal import end_as_by_interrupt

ESTOP = "nodes.guard.command:main"
"""Named here: to look through the environment for it, as for others, takes longer than the stop itself."""

OWN = {  # imported when asked for: `polyrhythm --help` loads none of them
    "run": ("runtime.commands.run:main", "run a launch file, or a shipped one by name; real or virtual time"),
    "check": ("runtime.commands.check:check_main", "all that can be known of a launch file before it starts"),
    "graph": ("runtime.commands.check:graph_main", "nodes and topics of a launch file, as text, Mermaid or a page"),
    "doctor": ("runtime.commands.doctor:doctor_main", "what this machine lacks, and what a launch file misses on it"),
    "nodes": ("runtime.commands.nodes:nodes_main", "of a running graph: what runs where"),
    "topics": ("runtime.commands.nodes:topics_main", "type, rate, publishers and subscribers of each topic"),
    "echo": ("runtime.commands.topic_commands:echo_main", "the messages of a topic"),
    "hz": ("runtime.commands.topic_commands:hz_main", "how often a topic is published"),
    "delay": ("runtime.commands.topic_commands:delay_main", "how old messages are when they arrive"),
    "bw": ("runtime.commands.topic_commands:bw_main", "the bandwidth that a topic takes"),
    "completion": ("runtime.commands.completion:main", "what bash, zsh or fish reads to complete our commands"),
    "pub": ("runtime.commands.pub:pub_main", "publish a message, checked against its topic's type"),
}

Command = Callable[[list[str]], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand. Exit codes: 0 did it, 1 ran and failed, 2 was asked wrongly."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        if argv is None:
            telling.keep_numbers()
            end_as_by_interrupt()
        sys.stdout = telling.writable(sys.stdout)  # what is asked for; it fails where it cannot be given
        telling.use("stderr")  # what is told besides
        try:
            return _obey(arguments)
        finally:
            sys.stdout.flush()  # here, where a reader that has gone and a full disk can still be answered
    except KeyboardInterrupt:  # while it was still looking for the command, while it worked, or once more at its end
        return code_of_interrupt(arguments)
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # the reader of our output has gone
        return 0
    except Exception as problem:
        from runtime.errors import fault_of_machine

        sentence = fault_of_machine(problem)
        if sentence is None:
            raise
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # what the old one still holds cannot be written either
        if (
            isinstance(problem, OSError) and problem.errno == errno.EIO
        ):  # the terminal has gone, which is the end as by Ctrl-C
            return code_of_interrupt(arguments)
        print(f"polyrhythm: {sentence}", file=sys.stderr)
        return 1


def _obey(arguments: list[str]) -> int:
    if arguments[:2] == ["guard", "estop"] and "_ARGCOMPLETE" not in os.environ:
        from runtime.operating_system.held_signal import SIGNAL

        if SIGNAL is not None:  # else it goes by the bus, as other orders do
            return _estop(arguments[1:])
    try:
        here = os.getcwd()
    except FileNotFoundError:
        print("polyrhythm: the folder that you are in is gone; go to another one: cd", file=sys.stderr)
        return 2
    if here not in sys.path and "" not in sys.path:
        sys.path.append(here)  # a user's own nodes, after everything that is installed
    return _obeyed(arguments)


def _estop(arguments: list[str]) -> int:
    try:
        return _later(ESTOP)(arguments)
    except ModuleNotFoundError as problem:
        from runtime.extras import lacking

        if (sentence := lacking(problem)) is None:
            raise
        print(f"polyrhythm guard: {sentence}", file=sys.stderr)
        return 2


def _obeyed(arguments: list[str]) -> int:
    """By a table of all commands; what that needs is imported here and below, since a stop does without."""
    with WholeImports():
        from runtime.command_line.arguments import answered
        from runtime.errors import choices, nearest

    commands = _own_commands()
    if not arguments or arguments[0] not in commands or "_ARGCOMPLETE" in os.environ:  # looking for others takes time
        commands |= _other_commands()
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what may stand where its cursor is
        from runtime.commands.completion import answer

        answer(commands)
    if arguments[:1] == ["--version"]:
        from importlib.metadata import version

        print(f"polyrhythm {version('polyrhythm')}")
        return 0
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_overview())
        return 0 if arguments else 2
    command, *rest = arguments
    if command not in commands:
        from runtime.extras import or_absent

        near = nearest(command, commands)
        meant = f"did you mean {near}? " if near else ""
        known = or_absent(f"{meant}known: {choices(commands)}")
        print(f"polyrhythm: there is no command {command!r}; {known}", file=sys.stderr)
        return 2
    return answered("polyrhythm", lambda: _told(commands[command], rest))


def _told(command: Command, arguments: list[str]) -> int:
    """Run it; a folder of the user's that hides a package of ours is told, and no traceback."""
    try:
        return command(arguments)
    except ModuleNotFoundError as problem:
        from runtime.errors import UserError
        from runtime.launch.tables.nodes_table import hidden

        if do := hidden(problem.name or ""):
            raise UserError(f"there is no module {problem.name!r}: {do}") from problem
        raise


def _overview() -> str:
    """What `polyrhythm --help` prints: every command and what it does."""
    from importlib.metadata import entry_points

    from runtime.extras import absent

    does = {name: sentence for name, (_, sentence) in OWN.items()}
    does |= {entry.name: _first_sentence(entry.module) for entry in sorted(entry_points(group=GROUP))}
    width = sorted(map(len, does))[-2]  # the longest name stands out a little, and lines stay short
    lines = [f"  {name:<{width}}  {sentence}" for name, sentence in does.items()]
    return "\n".join(
        [
            "usage: polyrhythm COMMAND ...",
            "",
            "An event-driven, real-time, multi-rate agent runtime.",
            "",
            *lines,
            *filter(None, [absent()]),
            "",
            "example: polyrhythm run laptop     (polyrhythm COMMAND --help tells more)",
            "         polyrhythm --version",
        ]
    )


def _first_sentence(module: str) -> str:
    """What a command's module says of itself, read without importing it."""
    import ast
    import importlib.util
    from pathlib import Path

    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        return ""
    text = ast.get_docstring(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))) or ""
    return text.partition("\n")[0].partition("`: ")[2].rstrip(".")


def _later(place: str) -> Command:
    def command(argv: list[str]) -> int:
        module, _, function = place.partition(":")
        with WholeImports():
            main: Command = getattr(importlib.import_module(module), function)
        return main(argv)

    return command


def _own_commands() -> dict[str, Command]:
    return {name: _later(place) for name, (place, _) in OWN.items()}


def _other_commands() -> dict[str, Command]:
    from importlib.metadata import entry_points

    def later(entry: object) -> Command:
        def command(argv: list[str]) -> int:
            with WholeImports():
                loaded: Command = entry.load()  # type: ignore[attr-defined]  # an EntryPoint
            return loaded(argv)

        return command

    return {entry.name: later(entry) for entry in entry_points(group=GROUP)}
