"""Why an episode ends or breaks off, and who has won, as pure functions; `none` acts count towards a stale end."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from nodes.episodes.dialogue.rules import EpisodeRules, WinCheck
from nodes.msgs.episode import Turn


def why_ended(
    rules: EpisodeRules,
    turns: Sequence[Turn],
    number: int,
    present: Sequence[str],
    left: Sequence[str],
    names: Sequence[str] = (),
) -> str:
    """The exact reason why the episode ends after turn `number`; "" where it goes on."""
    silent = silent_of_all(turns, number, names) if rules.silent == "all" else silent_at_end(turns)
    reasons = []
    if won := winner(rules.wins, [turn for turn in turns if turn.number == number]):
        reasons.append(won)
    if len(present) < 2:
        reasons.append(f"left: {', '.join(left)}" if left else "too few participants")
    if number >= rules.max_turns:
        reasons.append(f"turn limit: {rules.max_turns} turns")
    if silent > rules.max_stale:
        reasons.append(f"stale: {silent} silent acts in a row")
    if rules.order == "script" and not reasons and number >= len(rules.script):
        reasons.append("the script is over")
    return "; ".join(reasons)


MOST_FAILED_IN_A_ROW = 4
"""Failed turns of one seat after which nobody knows any more what it would do."""
MOST_FAILED = 0.2
"""Share of an episode's turns that may have failed; above it the talk is not what its agents would have said."""


def why_broken(turns: Sequence[Turn], names: Sequence[str], *, is_over: bool = False) -> str:
    """Why this is no episode of these agents: too many turns failed, one seat's in a row or, in the end, of all."""
    for name in names:
        own = [turn.is_failed for turn in turns if turn.speaker == name][-MOST_FAILED_IN_A_ROW:]
        if len(own) == MOST_FAILED_IN_A_ROW and all(own):
            return f"{name} could not be understood in {MOST_FAILED_IN_A_ROW} turns in a row"
    failed = sum(turn.is_failed for turn in turns)
    if is_over and failed > MOST_FAILED * len(turns):
        return f"{failed} of {len(turns)} turns could not be understood; at most {MOST_FAILED:.0%} may be"
    return ""


def winner(wins: Sequence[WinCheck], acts: Sequence[Turn]) -> str:
    """Who has won the game with one of these acts, and how; "" for nobody."""
    for act in acts:
        for win in wins:
            if act.kind == win.kind and win.who in ("*", act.speaker) and re.search(win.pattern, act.argument, re.I):
                return f"won: {win.winner or act.speaker} ({win.text or win.pattern})"
    return ""


def silent_at_end(turns: Sequence[Turn]) -> int:
    """How many acts from the end back are `none`; a failed turn is no silence."""
    return sum(1 for _ in takewhile(lambda turn: turn.kind == "none" and not turn.is_failed, reversed(turns)))


def silent_of_all(turns: Sequence[Turn], number: int, names: Sequence[str]) -> int:
    """How many acts from the end back are `none`, where a seat that was not asked did nothing in that turn."""
    spoken = next((turn for turn in reversed(turns) if turn.kind != "none"), None)
    if spoken is None:
        return number * len(names)
    after = len(names) - 1 - names.index(spoken.speaker)
    return (number - spoken.number) * len(names) + after
