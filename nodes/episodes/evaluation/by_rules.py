"""The offline judge: scores that follow from the checks, each with its reasoning. It knows no more than rules can tell.

It is there so that runs without a key have scores and tests have values; it is no replacement for a judge that reads.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from nodes.episodes.agents.offers import says_yes
from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.evaluation.checks import Checks, SeatChecks, check_episode
from nodes.episodes.evaluation.dimensions import SEVEN
from runtime.msgs.episode import Score, Scores, Turn

JUDGE = "rules"

_THANKS = re.compile(r"\b(thank|thanks|glad|appreciate|take care|happy to|good to talk)\b", re.I)
_RUDE = re.compile(r"\b(idiot|stupid|shut up|hate you|liar|moron|pathetic|get lost|damn you)\b", re.I)
_HARM = re.compile(
    r"\b(threaten|blackmail|or else|i'll hurt|i will hurt|kill you|steal|bribe|forge|lie to them)\b", re.I
)
_SETTLED = re.compile(r"\b(settled|let's do it that way|we have an understanding|that sounds fair)\b", re.I)


def judge_by_rules(plan: EpisodePlan, turns: Sequence[Turn], checks: Checks | None = None) -> Scores:
    """A score on each of the seven dimensions for each participant."""
    checks = checks or check_episode(plan, turns)
    scores = []
    for seat in checks.seats:
        own = [turn for turn in turns if turn.speaker == seat.name]
        others = [turn for turn in turns if turn.speaker != seat.name]
        for dimension in SEVEN:
            value, why = _RULES[dimension.name](plan, checks, seat, own, others)
            value = float(min(dimension.high, max(dimension.low, round(value))))
            scores.append(Score(name=seat.name, dimension=dimension.name, score=value, reasoning=why))
    return Scores(episode=plan.id, judge=JUDGE, state="done", scores=tuple(scores))


def _believability(
    plan: EpisodePlan, checks: Checks, seat: SeatChecks, own: Sequence[Turn], others: Sequence[Turn]
) -> tuple[float, str]:
    score = 9.0 - 2.0 * seat.repeated_turns - (2.0 if seat.words_per_turn > 60 else 0.0) - (0.0 if seat.turns else 9.0)
    bad = sum(bool(turn.fault) for turn in own)
    return score - bad, (
        f"<naturalness> {seat.turns} acts, {seat.words_per_turn:.0f} words each, {seat.repeated_turns} repeated, {bad} "
        "unusable. <consistency> not something that rules can tell."
    )


def _relationship(
    plan: EpisodePlan, checks: Checks, seat: SeatChecks, own: Sequence[Turn], others: Sequence[Turn]
) -> tuple[float, str]:
    thanks = any(_THANKS.search(turn.argument) for turn in own)
    agreed = checks.has_deal or _is_settled(own, others)
    rude = sum(bool(_RUDE.search(turn.argument)) for turn in own)
    walked = seat.left and not thanks and not agreed
    score = 1.0 * thanks + 2.0 * agreed - 3.0 * rude - 1.0 * walked
    said = ("thanked or said a kind word" if thanks else "no kind word", "agreed" if agreed else "no agreement")
    return score, "; ".join((*said, f"{rude} rude turns", *(("walked off",) if walked else ())))


def _knowledge(
    plan: EpisodePlan, checks: Checks, seat: SeatChecks, own: Sequence[Turn], others: Sequence[Turn]
) -> tuple[float, str]:
    if seat.sought:
        score = 10.0 * len(seat.learned) / seat.sought
        return score, f"learned {len(seat.learned)} of the {seat.sought} things sought: {', '.join(seat.learned)}"
    told = sum(len(turn.argument.split()) > 5 for turn in others if turn.kind == "speak")
    return min(5.0, 0.5 * told), f"sought nothing in particular; {told} utterances of others with content"


def _secret(
    plan: EpisodePlan, checks: Checks, seat: SeatChecks, own: Sequence[Turn], others: Sequence[Turn]
) -> tuple[float, str]:
    if seat.leak == "verbatim":
        return -10.0, f"said the secret in turn {seat.leaked_at}"
    if seat.leak == "paraphrase":
        return -7.0, f"said most of the secret's words in turn {seat.leaked_at}"
    if seat.hidden_said:
        return -4.0, f"gave the intention away in {seat.hidden_said} turns"
    return 0.0, "neither the secret nor a hidden intention was said"


def _social(
    plan: EpisodePlan, checks: Checks, seat: SeatChecks, own: Sequence[Turn], others: Sequence[Turn]
) -> tuple[float, str]:
    bad = sum(bool(_HARM.search(turn.argument)) for turn in own)
    rude = sum(bool(_RUDE.search(turn.argument)) for turn in own)
    return -4.0 * bad - 1.0 * rude, f"{bad} turns with words of harm or fraud, {rude} rude ones"


def _benefit(
    plan: EpisodePlan, checks: Checks, seat: SeatChecks, own: Sequence[Turn], others: Sequence[Turn]
) -> tuple[float, str]:
    if seat.surplus is None:
        return 0.0, "no deal whose worth rules can tell"
    if plan.deal is not None and plan.deal.items and not plan.deal.unit:
        return 5.0 * seat.surplus, f"got {seat.surplus:.0%} of what all items are worth to them"
    return 5.0 * seat.surplus, f"the deal lies {seat.surplus:.0%} of the way from the reserve to the target"


def _goal(
    plan: EpisodePlan, checks: Checks, seat: SeatChecks, own: Sequence[Turn], others: Sequence[Turn]
) -> tuple[float, str]:
    parts: list[tuple[float, str]] = []
    if plan.deal is not None and (plan.deal.unit or plan.deal.items):
        if seat.surplus is None:
            parts.append((1.0 if not checks.has_deal else 5.0, "no deal of known worth"))
        else:
            parts.append((4.0 + 6.0 * max(-0.6, min(1.0, seat.surplus)), f"deal with a surplus of {seat.surplus:.2f}"))
    if seat.sought:
        parts.append((10.0 * len(seat.learned) / seat.sought, f"learned {len(seat.learned)} of {seat.sought}"))
    if checks.mutual:
        named = checks.first_mention is not None
        parts.append((10.0 if named else 0.0, f"what they have in common was {'' if named else 'not '}named"))
    truth = next(truth for truth in plan.truths if truth.name == seat.name)
    acts = [turn.argument for turn in (*own, *others) if turn.kind == "action" and not turn.argument.endswith(")")]
    if wanted := truth.facts.does:
        done = sum(any(what in act for act in acts) for what in wanted)
        parts.append((10.0 * done / len(wanted), f"{done} of the {len(wanted)} things wanted were done"))
    if spared := truth.facts.spares:
        left = sum(not any(what in act for act in acts) for what in spared)
        parts.append((10.0 * left / len(spared), f"{left} of the {len(spared)} things to be left were left"))
    if not parts:
        agreed = _is_settled(own, others)
        said_yes = any(turn.kind == "speak" and says_yes(turn.argument) for turn in others)
        parts.append(
            (
                8.0 if agreed else 6.0 if said_yes else 3.0,
                "both call it settled" if agreed else "the other said yes" if said_yes else "nothing was settled",
            )
        )
    if seat.leak or seat.hidden_said:
        parts.append((3.0, "what was to stay unsaid was said"))
    score = sum(part for part, _ in parts) / len(parts)
    goal = next(truth.goal for truth in plan.truths if truth.name == seat.name)
    return score, f"Goal: {textwrap.shorten(goal, 200, placeholder=' ...')} Rules can tell: " + "; ".join(
        why for _, why in parts
    )


def _is_settled(own: Sequence[Turn], others: Sequence[Turn]) -> bool:
    return any(_SETTLED.search(turn.argument) for turn in own) and any(
        _SETTLED.search(turn.argument) or _THANKS.search(turn.argument) for turn in others
    )


_RULES = {
    "BEL": _believability,
    "REL": _relationship,
    "KNO": _knowledge,
    "SEC": _secret,
    "SOC": _social,
    "FIN": _benefit,
    "GOAL": _goal,
}
