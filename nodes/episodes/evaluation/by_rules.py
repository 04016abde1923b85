"""The offline judge: scores that follow from the checks, each with its reasoning, and None where rules cannot tell.

It is there so that runs without a key have scores and tests have values; it is no replacement for a judge that reads.
What is not judged is no zero and no middle: it stands in no mean.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from nodes.episodes.agents.offline.listening import RUDE
from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.evaluation.checks import Checks, SeatChecks, check_episode
from nodes.episodes.evaluation.dimensions import RULES_JUDGE, SEVEN
from runtime.msgs.episode import Score, Scores, Turn

_HARM = re.compile(
    r"\b(threaten|blackmail|or else|i'll hurt|i will hurt|kill you|steal|bribe|forge|lie to them)\b", re.I
)

Judged = tuple[float | None, str]


def judge_by_rules(plan: EpisodePlan, turns: Sequence[Turn], checks: Checks | None = None) -> Scores:
    """A score for each participant on each of the seven dimensions of which rules can tell something."""
    checks = checks or check_episode(plan, turns)
    scores = []
    for seat in checks.seats:
        own = [turn for turn in turns if turn.speaker == seat.name]
        for dimension in SEVEN:
            value, why = _RULES[dimension.name](plan, checks, seat, own)
            if value is not None:
                value = float(min(dimension.high, max(dimension.low, round(value))))
            scores.append(Score(name=seat.name, dimension=dimension.name, score=value, reasoning=why))
    return Scores(episode=plan.id, judge=RULES_JUDGE, state="done", scores=tuple(scores))


def _believability(plan: EpisodePlan, checks: Checks, seat: SeatChecks, own: Sequence[Turn]) -> Judged:
    return None, (
        f"not judged: rules cannot tell who is believable. {seat.turns} acts, {seat.words_per_turn:.0f} words each, "
        f"{seat.repeated_turns} repeated, {seat.faults} unusable"
    )


def _relationship(plan: EpisodePlan, checks: Checks, seat: SeatChecks, own: Sequence[Turn]) -> Judged:
    rude = sum(bool(RUDE.search(turn.argument)) for turn in own)
    if rude:
        return -3.0 * rude, f"{rude} insulting turns"
    return None, "not judged: no insult was said, and rules cannot tell what else became of the two"


def _knowledge(plan: EpisodePlan, checks: Checks, seat: SeatChecks, own: Sequence[Turn]) -> Judged:
    if seat.sought:
        score = 10.0 * len(seat.learned) / seat.sought
        return score, f"learned {len(seat.learned)} of the {seat.sought} things sought: {', '.join(seat.learned)}"
    return None, "not judged: the scenario does not say what was to be learned"


def _secret(plan: EpisodePlan, checks: Checks, seat: SeatChecks, own: Sequence[Turn]) -> Judged:
    if seat.leak == "verbatim":
        return -10.0, f"said the secret in turn {seat.leaked_at}"
    if seat.leak == "paraphrase":
        return -7.0, f"said most of the secret's words in turn {seat.leaked_at}"
    if seat.hidden_said:
        return -4.0, f"gave the intention away in {seat.hidden_said} turns"
    truth = next(truth for truth in plan.truths if truth.name == seat.name)
    if truth.secret_words or truth.facts.hides:
        return 0.0, "none of the words that give the secret or the hidden intention away was said"
    return None, "not judged: no words are named that would give something away"


def _social(plan: EpisodePlan, checks: Checks, seat: SeatChecks, own: Sequence[Turn]) -> Judged:
    bad = sum(bool(_HARM.search(turn.argument)) for turn in own)
    rude = sum(bool(RUDE.search(turn.argument)) for turn in own)
    if bad or rude:
        return -4.0 * bad - 1.0 * rude, f"{bad} turns with words of harm or fraud, {rude} insulting ones"
    return None, "not judged: no word of harm or insult was said, and rules do not know what else is wrong"


def _benefit(plan: EpisodePlan, checks: Checks, seat: SeatChecks, own: Sequence[Turn]) -> Judged:
    if plan.deal is None:
        return None, "not judged: nothing was to be divided or paid"
    if seat.surplus is None:
        return (None, "not judged: rules do not know what the deal is worth") if checks.has_deal else (0.0, "no deal")
    if plan.deal.items and not plan.deal.unit:
        return 5.0 * seat.surplus, f"got {round(seat.surplus, 2) + 0.0:.0%} of what all items are worth to them"
    return (
        5.0 * seat.surplus,
        f"the deal lies {round(seat.surplus, 2) + 0.0:.0%} of the way from the reserve to the target",
    )


def _goal(plan: EpisodePlan, checks: Checks, seat: SeatChecks, own: Sequence[Turn]) -> Judged:
    parts: list[tuple[float, str]] = []
    if plan.deal is not None and (plan.deal.unit or plan.deal.items):
        if seat.surplus is not None:
            parts.append(
                (
                    4.0 + 6.0 * max(-0.6, min(1.0, seat.surplus)),
                    f"deal with a surplus of {round(seat.surplus, 2) + 0.0:.2f}",
                )
            )
        elif not checks.has_deal:
            parts.append((1.0, "no deal"))
    if seat.sought:
        parts.append((10.0 * len(seat.learned) / seat.sought, f"learned {len(seat.learned)} of {seat.sought}"))
    if checks.mutual:
        named = len(checks.mutual_named) / len(plan.names)
        parts.append((10.0 * named, f"what they have in common was named by {len(checks.mutual_named)} of them"))
    truth = next(truth for truth in plan.truths if truth.name == seat.name)
    parts += _deeds(plan, checks, seat.name)
    if truth.facts.says and plan.deal is None and (gave := _way(checks, seat, own)) is not None:
        parts.append(gave)
    if not parts:
        return None, "not judged: neither the scenario's facts nor plain words say who reached what"
    if seat.leak or seat.hidden_said:
        parts.append((3.0, "what was to stay unsaid was said"))
    score = sum(part for part, _ in parts) / len(parts)
    goal = textwrap.shorten(truth.goal, 200, placeholder=" ...")
    return score, f"Goal: {goal} Rules can tell: " + "; ".join(why for _, why in parts)


def _deeds(plan: EpisodePlan, checks: Checks, name: str) -> list[tuple[float, str]]:
    truth = next(truth for truth in plan.truths if truth.name == name)
    parts = []
    if wanted := truth.facts.does:
        done = sum(any(what in act for act in checks.acts) for what in wanted)
        parts.append((10.0 * done / len(wanted), f"{done} of the {len(wanted)} things wanted were done"))
    if spared := truth.facts.spares:
        left = sum(not any(what in act for act in checks.acts) for what in spared)
        parts.append((10.0 * left / len(spared), f"{left} of the {len(spared)} things to be left were left"))
    return parts


def _way(checks: Checks, seat: SeatChecks, own: Sequence[Turn]) -> tuple[float, str] | None:
    others = [other for other in checks.seats if other.name != seat.name]
    gave = [other.name for other in others if other.gave_way]
    if seat.gave_way and gave:
        return 7.0, "both gave way"
    if gave:
        return 9.0, f"{', '.join(gave)} gave way"
    if seat.gave_way:
        return 4.0, "gave way"
    if checks.refused:
        return 2.0, f"{', '.join(checks.refused)} refused in the end"
    return None


_RULES = {
    "BEL": _believability,
    "REL": _relationship,
    "KNO": _knowledge,
    "SEC": _secret,
    "SOC": _social,
    "FIN": _benefit,
    "GOAL": _goal,
}
