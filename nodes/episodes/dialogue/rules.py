"""Turn order as pure functions: who is asked next, and which acts count.

Acts of seats that were not asked do not exist, but where the published package is followed, which counts each of them
as a silent one.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from nodes.msgs.episode import ACT_KINDS, Act, ActKind
from runtime.errors import UserError, choices

Order = Literal["round-robin", "simultaneous", "random", "asynchronous", "script"]
ORDERS: tuple[Order, ...] = ("round-robin", "simultaneous", "random", "asynchronous")


class WinCheck(msgspec.Struct, frozen=True):
    """A scenario's `Win` with the names of those who sit on its seats."""

    pattern: str
    who: str = "*"  # who must do it; "*": anyone
    kind: ActKind = "speak"
    text: str = ""  # what the log calls it
    winner: str = ""  # "": whoever did it


class EpisodeRules(msgspec.Struct, frozen=True):
    """How an episode is played."""

    order: Order = "round-robin"
    max_turns: int = 20
    max_stale: int = 2  # so many silent acts in a row are borne
    silent: Literal["asked", "all"] = "asked"  # whose silence counts: "all", those too whose turn it was not
    wins: tuple[WinCheck, ...] = ()
    script: tuple[int, ...] = ()  # the seats in turn, where the order is "script"
    words_per_s: float = 2.8  # of speech, where the order is asynchronous
    patience_s: float = 8.0  # of silence, where the order is asynchronous


def check(rules: EpisodeRules) -> None:
    """Raise UserError with the first thing in the rules that cannot work."""
    lead = "the rules of an episode: "
    if rules.order not in (*ORDERS, "script"):
        raise UserError(f"{lead}order is {rules.order!r}; known: {', '.join(ORDERS)}")
    if rules.max_turns < 1:
        raise UserError(f"{lead}max_turns is {rules.max_turns}; expected at least 1")
    if rules.max_stale < 0:
        raise UserError(f"{lead}max_stale is {rules.max_stale}; expected 0 or more")
    if not 0 < rules.words_per_s < 100:
        raise UserError(f"{lead}words_per_s is {rules.words_per_s}; expected more than 0 and less than 100")
    for win in rules.wins:
        try:
            re.compile(win.pattern)
        except re.error as problem:
            told = f"the win check {win.pattern!r} is no regular expression: {problem}"
            raise UserError(lead + told) from problem


def seats_to_ask(
    rules: EpisodeRules, turn: int, present: Sequence[int], seats: int, chance: random.Random, last: int = -1
) -> tuple[int, ...]:
    """The seats that act in that turn (from 1), of those that are present; `last` is the seat that acted before."""
    if not present:
        return ()
    if rules.order == "simultaneous":
        return tuple(present)
    if rules.order == "random":
        return (chance.choice(list(present)),)
    if rules.order == "script":
        return (rules.script[turn - 1],) if turn <= len(rules.script) else ()
    first = (last + 1) % seats  # a vacant seat is passed over, and gives nobody a second turn
    return (min(present, key=lambda seat: (seat - first) % seats),)


def addressed(act: Act, everyone: Sequence[str]) -> Act:
    """The act with whole names in `to`, where a first or a last name, or a whole one in any case, means one person."""
    by_first: dict[str, list[str]] = {}
    for name in everyone:
        for part in {name.casefold(), name.split()[0].casefold(), name.split()[-1].casefold()}:
            by_first.setdefault(part, []).append(name)
    whole = tuple(
        meant[0] if name not in everyone and len(meant := by_first.get(name.strip().casefold(), [])) == 1 else name
        for name in act.to
    )
    return act if whole == act.to else Act(kind=act.kind, argument=act.argument, to=whole)


def problem_of(act: Act, speaker: str, present: Sequence[str], everyone: Sequence[str]) -> str:
    """Why an act cannot be played; "" where it can."""
    if act.kind not in ACT_KINDS:
        return f"action_type is {act.kind!r}; known: {', '.join(ACT_KINDS)}"
    for name in act.to:
        if name == speaker:
            return f"{speaker} cannot send a private message to {speaker}"
        if name not in everyone:
            return f"there is no {name!r} to send a private message to; known: {choices(set(everyone) - {speaker})}"
        if name not in present:
            return f"{name} has left and hears no private messages"
    if act.kind in ("speak", "non-verbal communication", "action") and not act.argument.strip():
        return f"{act.kind} needs an argument: what is said or done"
    return ""
