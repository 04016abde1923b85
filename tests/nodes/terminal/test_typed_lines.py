"""What is typed at a run's terminal is said to its robot, and where nobody can type nothing is read."""

from __future__ import annotations

import io
import os
import pty
import sys
import termios
from collections.abc import Iterator

import pytest

from nodes.terminal import typed_lines
from nodes.terminal.typed_lines import TypedLines
from runtime.errors import PolyrhythmError
from tests.support.running import eventually


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, int]]:
    """Its keys' end, and the end that a program reads, as if it were in the foreground."""
    keys, program = pty.openpty()
    monkeypatch.setattr(os, "tcgetpgrp", lambda _: os.getpgrp())
    yield keys, program
    os.close(keys)
    os.close(program)


def test_a_line_is_said_by_its_typist_when_it_is_ended(
    terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    keys, program = terminal
    said: list[str] = []
    monkeypatch.setattr(TypedLines, "say", lambda self, text: said.append(f"{self.by}: {text}"))
    lines = TypedLines(program, "4711", "ann")
    os.write(keys, "Stöq".encode())
    eventually(lambda: (lines.poll(), lines.text)[1] == "Stöq", "the line")
    assert said == []
    os.write(keys, b"\x7fp!\n\n")
    eventually(lambda: (lines.poll(), said)[1] == ["ann: Stöp!"], "the line")
    assert lines.text == ""
    lines.close()


def test_the_terminal_is_given_back_as_it_was(terminal: tuple[int, int]) -> None:
    _, program = terminal
    before = termios.tcgetattr(program)
    lines = TypedLines(program, "4711", "ann")
    assert not termios.tcgetattr(program)[3] & termios.ECHO
    assert termios.tcgetattr(program)[3] & termios.ISIG, "Ctrl-C interrupts"
    lines.close()
    assert termios.tcgetattr(program) == before


def test_what_nobody_hears_is_told(terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    keys, program = terminal

    def no_run(_: str | None) -> None:
        raise PolyrhythmError("no graph runs")

    monkeypatch.setattr(typed_lines, "attach", no_run)
    lines = TypedLines(program, "4711", "ann")
    os.write(keys, b"Hello\n")
    told: list[str] = []

    def is_told() -> bool:
        told.extend(lines.poll())
        return bool(told)

    eventually(is_told, "that nobody hears")
    assert told == ["not said: Hello: no graph runs"]
    lines.close()


def test_without_a_terminal_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with open(os.devnull) as nothing:
        for stdin in (None, io.StringIO("Stop!\n"), nothing):
            monkeypatch.setattr(sys, "stdin", stdin)
            assert TypedLines.open() is None


def test_in_the_background_nothing_is_read(terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    _, program = terminal
    monkeypatch.setattr(os, "tcgetpgrp", lambda _: os.getpgrp() + 1)
    with os.fdopen(os.dup(program)) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert TypedLines.open() is None
