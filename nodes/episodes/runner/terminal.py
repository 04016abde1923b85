"""`EpisodeView`: an episode from a launch file as it happens, to read: scenario, who wants what, turns, scores.

Moderator and judge are two processes, whose messages come in no common order: turns are printed in theirs, the end when
all turns before it are, the scores after the end.
"""

from __future__ import annotations

import textwrap
from typing import Any

from nodes.episodes.evaluation.dimensions import NAMES
from nodes.msgs.episode import Observation, Outcome, Scores, Turn
from runtime.command_line.columns import columns, or_dash
from runtime.message import Message, Stamped
from runtime.supervision.view import PlainView, plain, terminal_width

WIDTH = 100
_BOLD, _DIM, _END = "\033[1m", "\033[2m", "\033[0m"


class EpisodeView(PlainView):
    """Prints lines; colours only on a terminal."""

    shows: tuple[type[Message], ...] = (Observation, Turn, Outcome, Scores)

    def __init__(self, title: str, *, live: bool = False) -> None:
        self._live = live
        self._names: dict[str, str] = {}
        self._scenario = ""
        self._shown = 0
        self._early: dict[int, Turn] = {}
        self._outcome: Outcome | None = None
        self._judged: list[Scores] = []
        self._has_ended = False
        self._print(f"{title}\n")

    def message(self, stamped: Stamped[Any]) -> None:
        """A message that was published."""
        message = stamped.message
        if isinstance(message, Observation) and message.briefing is not None:
            self._brief(message)
        elif isinstance(message, Turn):
            self._early[message.index] = message
        elif isinstance(message, Outcome):
            self._outcome = message
        elif isinstance(message, Scores):
            self._judged.append(message)
        self._print_what_is_due()

    def _print_what_is_due(self) -> None:
        while self._shown in self._early:
            self._turn(self._early.pop(self._shown))
            self._shown += 1
        if self._outcome is not None and self._shown >= self._outcome.turns and not self._has_ended:
            self._has_ended = True
            self._print(f"\nEnd after {self._outcome.turns} acts: {self._outcome.reason}\n")
        while self._has_ended and self._judged:
            self._scores(self._judged.pop(0))

    def _brief(self, observation: Observation) -> None:
        briefing = observation.briefing
        assert briefing is not None
        if briefing.scenario != self._scenario:
            self._scenario = briefing.scenario
            self._print(_wrapped(briefing.scenario, ""))
        if briefing.name not in self._names:
            self._names[briefing.name] = briefing.goal
            self._print(f"\n{self._marked(briefing.name, _BOLD)} privately:")
            self._print(self._marked(_wrapped(briefing.goal, "    "), _DIM))
        if len(self._names) == len(briefing.participants):
            self._print("")

    def _turn(self, turn: Turn) -> None:
        note = f"  [{plain(turn.note)}]" if turn.note else ""
        private = f" (only to {', '.join(turn.to)})" if turn.to else ""
        silent = {"none": " says nothing.", "leave": " leaves."}.get(turn.kind, "")
        done = turn.argument if turn.kind == "speak" else f"[{turn.kind}] {turn.argument}"
        self._print(f"{self._marked(turn.speaker, _BOLD)}{silent or private}{note}")
        if not silent:
            self._print(_wrapped(done, "    "))

    def _scores(self, scores: Scores) -> None:
        if scores.state == "failed":
            self._print(f"The evaluation failed: {scores.why}")
            return
        found = {(score.name, score.dimension): score for score in scores.scores}
        dimensions = [*NAMES, *sorted({d for _, d in found} - set(NAMES))]
        people = list(dict.fromkeys(score.name for score in scores.scores))
        rows = [(f"scores by {scores.judge}", *dimensions)]
        for name in people:
            row = [found.get((name, one)) for one in dimensions]
            rows.append((name, *(or_dash(None if s is None else s.score, "g") for s in row)))
        self._print("\n".join(columns(rows, rows[0][:1])))

    def process(self, name: str, pid: int, state: str) -> None:
        """A process changed its state; only failures are worth a line here."""
        if state.startswith(("failed", "restarted")):
            self._print(f"{name} [pid {pid}] {state}")

    def log(self, level: str, source: str, text: str, at_s: float | None = None) -> None:
        """A log line."""
        if level in ("warning", "error", "critical"):
            self._print(f"{source}: {level}: {plain(text)}")

    def _marked(self, text: str, mark: str) -> str:
        return f"{mark}{plain(text)}{_END}" if self._live else plain(text)

    def _print(self, text: str, at_s: float | None = None) -> None:
        print(text, flush=True)


def _wrapped(text: str, indent: str) -> str:
    width = min(WIDTH, terminal_width() or WIDTH)
    return textwrap.fill(plain(text), width, initial_indent=indent, subsequent_indent=indent)
