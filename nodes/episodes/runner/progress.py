"""Shows a run while it goes on: how many episodes, what they cost, how long it will still take."""

from __future__ import annotations

import sys
from typing import TextIO

from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.models.budget import Spent
from nodes.models.servers import Servers
from nodes.msgs.episode import Outcome


class RunProgress:
    """A bar on the terminal, or on another file that is one, shown inside `with bar`; is told of every episode."""

    def __init__(self, total: int, servers: Servers, *, is_shown: bool = True, file: TextIO | None = None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._servers = servers
        self._failed = 0
        columns = TextColumn("episodes"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        cost = TextColumn("{task.fields[cost]}")
        self.bar = Progress(*columns, cost, console=Console(file=file or sys.stderr), disable=not is_shown)
        self._task = self.bar.add_task("episodes", total=total, cost="")

    def played(self, plan: EpisodePlan, outcome: Outcome) -> None:
        """An episode is over."""
        self._failed += outcome.state == "failed"
        self.bar.update(self._task, advance=1, cost=_told(self._failed, self._servers.budget.so_far()))

    def stands(self, done: int, failed: int, spent: Spent) -> None:
        """So many are over, elsewhere, and this is what all of it has cost."""
        self.bar.update(self._task, completed=done + failed, cost=_told(failed, spent))


def _told(failed: int, spent: Spent) -> str:
    tokens = spent.prompt_tokens + spent.completion_tokens
    parts = [f"{spent.calls} calls, {tokens} tokens" if spent.calls else ""]
    parts += [f"{spent.money:.4f} spent" if spent.money else "", f"{failed} failed" if failed else ""]
    return ", ".join(part for part in parts if part)
