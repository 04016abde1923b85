"""`polyrhythm completion`: what a shell needs to complete commands, options, files and names; and the answers to it."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress

import argcomplete
from argcomplete.completers import FilesCompleter
from argcomplete.shell_integration import shellcode

from runtime.launch.file import shipped

ASKED = "_ARGCOMPLETE"
"""The shell sets it, beside the line that is typed; a number, from which word on an answer is wanted."""
HOW = {
    "bash": 'eval "$(polyrhythm completion bash)"      into ~/.bashrc',
    "zsh": 'eval "$(polyrhythm completion zsh)"      into ~/.zshrc, after compinit',
    "fish": "polyrhythm completion fish | source      into ~/.config/fish/config.fish",
}


def main(argv: list[str]) -> int:
    """Print what the shell reads once."""
    parser = argparse.ArgumentParser(
        prog="polyrhythm completion",
        description="Print what a shell needs to complete our commands. Put the line for yours into its start file:",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n".join(f"  {line}" for line in HOW.values()) + '\n\nexample: eval "$(polyrhythm completion bash)"\n'
        "examples: polyrhythm completion zsh",
    )
    parser.add_argument("shell", choices=tuple(HOW))
    print(shellcode(["polyrhythm"], shell=parser.parse_args(argv).shell))
    return 0


def answer(commands: Mapping[str, Callable[[list[str]], int]]) -> None:
    """Tell the shell what may stand where the cursor is; ends the program."""
    line, point = os.environ.get("COMP_LINE", ""), int(os.environ.get("COMP_POINT", "0"))
    before = _words(line[:point])
    parser, rest = argparse.ArgumentParser(prog="polyrhythm"), before
    parser.add_argument("command", choices=tuple(commands))
    if before and before[0] in commands:
        parser, rest = _parser_of(commands[before[0]], before[1:]) or (argparse.ArgumentParser(), before[1:])
    os.environ[ASKED] = str(1 + len(before) - len(rest))
    argcomplete.autocomplete(parser, default_completer=Names())


class Names(FilesCompleter):
    """Files; where a launch file is asked for, the shipped ones by name, too."""

    def __call__(self, prefix: str, **more: object) -> list[str]:
        """`more` tells which argument it is, as `action`."""
        names = shipped() if getattr(more.get("action"), "dest", "") == "file" else ()
        return [*(name for name in names if name.startswith(prefix)), *super().__call__(prefix, **more)]


def _words(text: str) -> list[str]:
    """The words that are typed to their end, without the program's."""
    ended = text.rpartition(" ")[0]
    with suppress(ValueError):  # a quotation mark that is still open
        return shlex.split(ended)[1:]
    return ended.split()[1:]


class Built(BaseException):
    """A command has made its parser, and goes no further."""

    def __init__(self, parser: argparse.ArgumentParser, argv: list[str]) -> None:
        self.parser, self.argv = parser, argv


def _parser_of(
    command: Callable[[list[str]], int], words: list[str]
) -> tuple[argparse.ArgumentParser, list[str]] | None:
    """The parser with which a command would read these words, and those that it would read.

    The command is asked for its help, so that nothing is done even by one that parses nothing.
    """
    try:
        with (
            _stopped_at_parsing(),
            open(os.devnull, "w") as nowhere,
            redirect_stdout(nowhere),
            redirect_stderr(nowhere),
        ):
            command([*words, "--help"])
    except Built as found:
        return found.parser, found.argv[:-1]
    except (Exception, SystemExit):  # noqa: BLE001  # a library of an extra that is missing, say
        pass
    return None


@contextmanager
def _stopped_at_parsing() -> Iterator[None]:
    def stop(parser: argparse.ArgumentParser, args: list[str] | None = None, namespace: object = None) -> None:
        raise Built(parser, list(args or []))

    original = argparse.ArgumentParser.parse_args
    argparse.ArgumentParser.parse_args = stop  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        argparse.ArgumentParser.parse_args = original  # type: ignore[method-assign]
