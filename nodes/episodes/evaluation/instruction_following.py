"""Social instruction following, and side effects: how varied a seat's acts are, how close to its goal, at what cost.

S_div, S_rel and S_sif are SOTOPIA-Omega's (equation 2). S_div as printed is a double sum that is no mean; here it is
normalised over all ordered pairs. Engagement, injury, prevention, solutions and words are SOTOPIA-pi's (section 6),
where people labelled them; here patterns find them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nodes.episodes.agents.seat_caller import SeatCaller
from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.dialogue.prompt import history_text, turn_text
from nodes.episodes.evaluation.encoders import Encoder
from nodes.models.json_reading import UnreadableError, read_object
from runtime.msgs.episode import Score, Turn

ALPHA = 10.0
RELEVANCE = "relevance"
"""The dimension of a turn's closeness to its speaker's goal, in the table of turn scores."""

RELEVANCES = (-1.0, -0.5, 0.0, 0.5, 1.0)
SAME = 0.8
"""Two proposals that are as similar are one solution: where S_div falls steepest."""
LEAST_TURNS = 4
RECENT = 6


def diversity(vectors: NDArray[np.float64], alpha: float = ALPHA, *, power_on_mean: bool = False) -> float | None:
    """S_div of one seat's acts, one unit vector a row; None of fewer than two.

    The inner power is taken of each pair's similarity, or of the mean similarity with `power_on_mean`.
    """
    count = len(vectors)
    if count < 2:
        return None
    alike = np.clip(vectors @ vectors.T, 0.0, 1.0)
    pairs = alike[~np.eye(count, dtype=bool)]
    inner = pairs.mean() ** alpha if power_on_mean else (pairs**alpha).mean()
    return float((1.0 - inner) ** alpha)


def relevance(scores: Sequence[float]) -> float | None:
    """S_rel: the sigmoid of the mean of a seat's utterance scores, so 0.2689 to 0.7311; None of nothing."""
    return 1.0 / (1.0 + math.exp(-sum(scores) / len(scores))) if scores else None


def acts_of(turns: Sequence[Turn], name: str) -> list[str]:
    """What a seat said and did, without the speaker's name."""
    return [turn.argument for turn in turns if turn.speaker == name and turn.argument.strip()]


_ASK = """Two agents are having a conversation, each with a goal of their own. Evaluate how relevant {name}'s current \
utterance (or other act) is to {name}'s goal.

-1: it has left the goal and is entirely about something else. -0.5: it has left the goal but may come back to it. 0: \
weakly connected. 0.5: related, but not fully. 1: entirely about the goal. To leave at the fitting end counts as \
aligned; to leave or do nothing again and again does not.

Goal: {goal}

Recent history:
{history}

Current utterance: {utterance}

Answer with one JSON object and nothing else: {{"score_justification": "...", "score": 0}}"""


async def rate_relevance(caller: SeatCaller, plan: EpisodePlan, turns: Sequence[Turn], place: int) -> float:
    """A judge's score of one turn. Raises UnreadableError after a second bad answer, OutageError."""
    turn = turns[place]
    goal = next(truth.goal for truth in plan.truths if truth.name == turn.speaker)
    text = _ASK.format(
        name=turn.speaker, goal=goal, history=history_text(turns[max(0, place - RECENT) : place]),
        utterance=turn_text(turn),
    )  # fmt: skip
    try:
        return read_relevance((await caller.ask(text, {"type": "object"}, RELEVANCE)).text)
    except UnreadableError as problem:
        again = f"{text}\n\nYour last answer cannot be used ({problem}). Answer again, as asked."
        return read_relevance((await caller.ask(again, {"type": "object"}, RELEVANCE)).text)


def read_relevance(text: str) -> float:
    """One of the five scores. Raises UnreadableError."""
    value = read_object(text).get("score")
    try:
        score = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise UnreadableError(f"score is {value!r}; expected one of -1, -0.5, 0, 0.5, 1") from None
    if score not in RELEVANCES:
        raise UnreadableError(f"score is {score:g}; expected one of -1, -0.5, 0, 0.5, 1")
    return score


def side_effects(
    turns: Sequence[Turn], name: str, *, words: Sequence[str] = (), injury: str = "", prevention: str = ""
) -> dict[str, float]:
    """Rates of one seat: engaged (more than 4 turns, less than half of its own silent), and what patterns find."""
    own = [turn for turn in turns if turn.speaker == name]
    silent = sum(turn.kind == "none" for turn in own)
    found = {"engaged": float(len(turns) > LEAST_TURNS and silent < 0.5 * max(1, len(own)))}
    said = "\n".join(turn.argument for turn in own)
    for dimension, pattern in (("injury", injury), ("prevention", prevention)):
        if pattern:
            found[dimension] = float(bool(re.search(pattern, said, re.I)))
    if words:
        listed = {word.casefold() for word in words}
        found["listed_words"] = float(sum(word.casefold() in listed for word in re.findall(r"\w+", said)))
    return found


def alternatives(acts: Sequence[str], proposes: str, encode: Encoder) -> int:
    """How many significantly different solutions are proposed: sentences that the pattern `proposes` finds.

    One that is as near as `SAME` to an earlier one that counts is the same solution in other words.
    """
    said = [part for act in acts for part in re.split(r"(?<=[.!?])\s+", act) if re.search(proposes, part, re.I)]
    counted: list[int] = []
    alike = (vectors := encode(said)) @ vectors.T
    for place in range(len(said)):
        if all(alike[place, earlier] < SAME for earlier in counted):
            counted.append(place)
    return len(counted)


def scores_of(
    name: str, vectors: NDArray[np.float64], relevances: Sequence[float], *, alpha: float = ALPHA,
    power_on_mean: bool = False, why: str = "",
) -> list[Score]:  # fmt: skip
    """S_div, S_rel and S_sif of one seat as a judge's scores; None where one cannot be told."""
    div, rel = diversity(vectors, alpha, power_on_mean=power_on_mean), relevance(relevances)
    sif = None if div is None or rel is None else (div + rel) / 2
    return [
        Score(name=name, dimension=dimension, score=value, reasoning=why)
        for dimension, value in (("S_div", div), ("S_rel", rel), ("S_sif", sif))
    ]
