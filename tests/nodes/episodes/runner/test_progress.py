"""The bar of `episodes run`: how many, what they cost, how many failed, and how long it will take."""

from __future__ import annotations

import io
import re

import pytest

from nodes.episodes.runner.progress import RunProgress
from nodes.models.budget import Budget
from nodes.models.servers import Servers
from nodes.msgs.episode import Outcome
from tests.support.episode_cast import plan


def outcome(state: str) -> Outcome:
    return Outcome(episode="e", state=state, reason="", turns=3)  # type: ignore[arg-type]


class Terminal(io.StringIO):
    """A file that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    return Terminal()


def lines(terminal: Terminal) -> list[str]:
    """What the terminal showed, one redraw a line, without colours and cursor moves."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.getvalue()).replace("\r", "\n").split("\n")


def test_the_bar_counts_episodes_calls_tokens_money_and_failures(terminal: Terminal) -> None:
    servers = Servers(budget=Budget(prompt_price=2.0, completion_price=10.0))
    progress = RunProgress(4, servers, file=terminal)
    with progress.bar:
        progress.played(plan(), outcome("done"))
        servers.budget.calls += 7
        servers.budget.prompt_tokens += 500_000
        servers.budget.completion_tokens += 100_000
        progress.played(plan(), outcome("failed"))
        progress.played(plan(), outcome("done"))
    last = [line for line in lines(terminal) if "episodes" in line][-1]
    assert "3/4" in last
    assert "7 calls, 600000 tokens, 2.0000 spent, 1 failed" in last
    assert re.search(r"\d+:\d\d:\d\d", last)  # what is left, as a time


def test_a_free_run_shows_no_cost(terminal: Terminal) -> None:
    progress = RunProgress(2, Servers(), file=terminal)
    with progress.bar:
        progress.played(plan(), outcome("done"))
    last = [line for line in lines(terminal) if "episodes" in line][-1]
    assert "1/2" in last
    assert not re.search("calls|tokens|spent|failed", last)


def test_the_bar_ends_although_the_run_is_stopped(terminal: Terminal) -> None:
    with pytest.raises(KeyboardInterrupt), RunProgress(2, Servers(), file=terminal).bar:
        raise KeyboardInterrupt
    assert terminal.getvalue().endswith("\x1b[?25h")  # the cursor is back


def test_quiet_shows_nothing(terminal: Terminal, capsys: pytest.CaptureFixture[str]) -> None:
    quiet = RunProgress(2, Servers(), is_shown=False, file=terminal)
    with quiet.bar:
        quiet.played(plan(), outcome("done"))
    assert (terminal.getvalue(), *capsys.readouterr()) == ("", "", "")
