"""What rules can tell of an episode: checks (leaks, the deal, what was learned), and the offline judge's scores.

A secret counts as leaked *verbatim* when one of its tell-tale words, or the whole of it, is said; as leaked *by
paraphrase* when an utterance holds most of its content words. Both are counted only where others could hear it. The
judge is there so that runs without a key have scores and tests have values; it is no replacement for one that reads.
What is not judged is no zero and no middle: it stands in no mean.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

import msgspec

from nodes.episodes.agents.deal_reading import agreed_number, agreed_shares, gives_way, limits, worth
from nodes.episodes.agents.offline_agent import REFUSES, RUDE, is_told, says_any
from nodes.episodes.dialogue.plan import EpisodePlan, GroundTruth
from nodes.episodes.evaluation.dimensions import NOT_JUDGED, RULES_JUDGE, SEVEN
from nodes.episodes.scenarios.lint import content_words
from nodes.msgs.episode import Score, Scores, Turn

PARAPHRASE_SHARE = 0.6
"""So much of a secret's content words in one utterance is a paraphrase."""

REPEATED_SHARE = 0.9
"""So much of an utterance's words in an earlier one of the same speaker is a repetition."""


class SeatChecks(msgspec.Struct, frozen=True):
    """What the rules found about one participant."""

    name: str
    turns: int  # acts that are not silent
    words_per_turn: float  # of speech
    repeated_turns: int
    leak: str  # "", "verbatim", "paraphrase"
    leaked_at: int  # index of the turn; -1: none
    hidden_said: int  # turns with a word that gives the intention away
    surplus: float | None  # of the deal: 0 at the reserve, 1 at the target; None without a deal or facts
    learned: tuple[str, ...]  # what was sought and told by others
    sought: int
    gave_way: bool  # said in so many words to do what another wants
    refused: bool  # said in so many words not to agree
    named_mutual: bool  # named something that all know
    faults: int  # turns that failed


class Checks(msgspec.Struct, frozen=True):
    """What the rules found about an episode."""

    seats: tuple[SeatChecks, ...]
    has_deal: bool
    price: float | None
    shares: dict[str, dict[str, int]] | None
    mutual: tuple[str, ...]  # what all participants know
    first_mention: float | None  # relative position of the first turn that names one of them, 0 to 1
    acts: tuple[str, ...]  # what was done with hands and not broken off


def check_episode(plan: EpisodePlan, turns: Sequence[Turn]) -> Checks:
    """All checks of one episode."""
    deal = plan.deal
    price = agreed_number(turns, deal, plan.bound) if deal is not None and deal.unit else None
    shares = agreed_shares(turns, deal, plan.names, plan.bound) if deal is not None and deal.items else None
    known = [set(truth.facts.knows) for truth in plan.truths]
    mutual = tuple(sorted(set.intersection(*known))) if all(known) else ()
    return Checks(
        seats=tuple(_seat(plan, truth, turns, price, shares, mutual) for truth in plan.truths),
        has_deal=price is not None or shares is not None,
        price=price,
        shares=shares,
        mutual=mutual,
        first_mention=first_mention(turns, mutual),
        acts=tuple(turn.argument for turn in turns if turn.kind == "action" and not turn.argument.endswith(")")),
    )


def first_mention(turns: Sequence[Turn], names: Sequence[str]) -> float | None:
    """Where in the episode one of the names is first said: index / number of turns; None where it never is."""
    for turn in turns:
        if turn.kind == "speak" and says_any(turn.argument, tuple(names)):
            return round(turn.index / len(turns), 4)
    return None


def leak_of(truth: GroundTruth, turns: Sequence[Turn]) -> tuple[str, int]:
    """How a participant's own words gave the secret away, and in which turn."""
    content, whole = content_words(truth.secret), truth.secret.strip().rstrip(".").lower()
    own = [turn for turn in turns if turn.speaker == truth.name and turn.argument]
    for turn in own:
        if says_any(turn.argument, truth.secret_words) or (whole and whole in turn.argument.lower()):
            return "verbatim", turn.index
    for turn in own if len(content) >= 2 else ():
        if len(content & content_words(turn.argument)) >= PARAPHRASE_SHARE * len(content):
            return "paraphrase", turn.index
    return "", -1


def repeated(turns: Sequence[Turn]) -> int:
    """How many of these utterances say (nearly) again what an earlier one said."""
    said = [re.findall(r"[a-z0-9']+", turn.argument.lower()) for turn in turns]
    return sum(
        len(words) >= 3 and any(len({*words} & {*one}) >= REPEATED_SHARE * len({*words, *one}) for one in said[:place])
        for place, words in enumerate(said)
    )


def _seat(
    plan: EpisodePlan,
    truth: GroundTruth,
    turns: Sequence[Turn],
    price: float | None,
    shares: dict[str, dict[str, int]] | None,
    mutual: tuple[str, ...],
) -> SeatChecks:
    own = [turn for turn in turns if turn.speaker == truth.name]
    spoken = [turn for turn in own if turn.kind == "speak"]
    words = sum(len(turn.argument.split()) for turn in spoken)
    leak, leaked_at = leak_of(truth, turns)
    others = [turn for turn in turns if turn.speaker != truth.name and turn.kind == "speak" and turn.is_for(truth.name)]
    return SeatChecks(
        name=truth.name,
        turns=sum(turn.kind != "none" for turn in own),
        words_per_turn=round(words / len(spoken), 3) if spoken else 0.0,
        repeated_turns=repeated(spoken),
        leak=leak,
        leaked_at=leaked_at,
        hidden_said=sum(says_any(turn.argument, truth.facts.hides) for turn in spoken),
        surplus=_surplus(plan, truth, price, shares),
        learned=tuple(key for key in truth.facts.seeks if is_told(others, key)),
        sought=len(truth.facts.seeks),
        gave_way=any(gives_way(turn.argument) for turn in spoken),
        refused=any(REFUSES.search(turn.argument) for turn in spoken),
        named_mutual=any(says_any(turn.argument, mutual) for turn in spoken),
        faults=sum(turn.is_failed for turn in own),
    )


def _surplus(
    plan: EpisodePlan, truth: GroundTruth, price: float | None, shares: dict[str, dict[str, int]] | None
) -> float | None:
    deal, facts = plan.deal, truth.facts
    if deal is not None and price is not None and facts.wants:
        target, reserve = limits(facts, deal)
        return round((price - reserve) / (target - reserve), 4) if target != reserve else float(price == target)
    if deal is not None and shares is not None and truth.name in shares and facts.worth:
        return round(worth(shares[truth.name], facts) / (worth(deal.items, facts) or 1.0), 4)
    return None


_HARM = re.compile(r"\b(threaten|blackmail|or else|i('ll| will) hurt|kill you|steal|bribe|forge|lie to them)\b", re.I)

Judged = tuple[float | None, str]


def judge_by_rules(plan: EpisodePlan, turns: Sequence[Turn]) -> Scores:
    """A score for each participant on each of the seven dimensions of which rules can tell something."""
    checks = check_episode(plan, turns)
    scores = []
    for seat, truth in zip(checks.seats, plan.truths, strict=True):
        judged = _judged(plan, checks, seat, truth, [turn.argument for turn in turns if turn.speaker == seat.name])
        for dimension in SEVEN:
            value, why = judged[dimension.name]
            bounded = None if value is None else float(min(dimension.high, max(dimension.low, round(value))))
            why = NOT_JUDGED + why if value is None else why
            scores.append(Score(name=seat.name, dimension=dimension.name, score=bounded, reasoning=why))
    return Scores(episode=plan.id, judge=RULES_JUDGE, state="done", scores=tuple(scores))


def _judged(
    plan: EpisodePlan, checks: Checks, seat: SeatChecks, truth: GroundTruth, own: Sequence[str]
) -> dict[str, Judged]:
    """By dimension the score, None where rules cannot tell, and why."""
    bad, rude = (sum(bool(pattern.search(text)) for text in own) for pattern in (_HARM, RUDE))
    acts = f"{seat.turns} acts, {seat.words_per_turn:.0f} words each, {seat.repeated_turns} repeated"
    insults = (
        f"{rude} insulting turns" if rude else "no insult was said, and rules cannot tell what else became of them"
    )
    wrong = f"{bad} turns with words of harm or fraud, {rude} insulting ones; rules do not know what else is wrong"
    learned = f"learned {len(seat.learned)} of the {seat.sought} things sought: {', '.join(seat.learned)}"
    learned = learned if seat.sought else "the scenario does not say what was to be learned"
    return {
        "BEL": (None, f"rules cannot tell who is believable. {acts}, {seat.faults} unusable"),
        "REL": (-3.0 * rude if rude else None, insults),
        "KNO": (10.0 * len(seat.learned) / seat.sought if seat.sought else None, learned),
        "SEC": _secret(seat, truth),
        "SOC": (-4.0 * bad - 1.0 * rude if bad or rude else None, wrong),
        "FIN": _benefit(plan, checks, seat),
        "GOAL": _goal(plan, checks, seat, truth),
    }


def _secret(seat: SeatChecks, truth: GroundTruth) -> Judged:
    if seat.leak == "verbatim":
        return -10.0, f"said the secret in turn {seat.leaked_at}"
    if seat.leak:
        return -7.0, f"said most of the secret's words in turn {seat.leaked_at}"
    if seat.hidden_said:
        return -4.0, f"gave the intention away in {seat.hidden_said} turns"
    if truth.secret_words or truth.facts.hides:
        return 0.0, "none of the words that give the secret or the hidden intention away was said"
    return None, "no words are named that would give something away"


def _benefit(plan: EpisodePlan, checks: Checks, seat: SeatChecks) -> Judged:
    if plan.deal is None:
        return None, "nothing was to be divided or paid"
    if seat.surplus is None:
        return (None, "rules do not know what the deal is worth") if checks.has_deal else (0.0, "no deal")
    share = f"{round(seat.surplus, 2) + 0.0:.0%}"
    is_shared = plan.deal.items and not plan.deal.unit
    got = f"got {share} of what all items are worth to them"
    return 5.0 * seat.surplus, got if is_shared else f"the deal lies {share} of the way from the reserve to the target"


def _goal(plan: EpisodePlan, checks: Checks, seat: SeatChecks, truth: GroundTruth) -> Judged:
    parts: list[tuple[float, str]] = []
    if plan.deal is not None and seat.surplus is not None:
        shown = round(seat.surplus, 2) + 0.0
        parts.append((4.0 + 6.0 * max(-0.6, min(1.0, seat.surplus)), f"deal with a surplus of {shown:.2f}"))
    elif plan.deal is not None and not checks.has_deal:
        parts.append((1.0, "no deal"))
    if seat.sought:
        parts.append((10.0 * len(seat.learned) / seat.sought, f"learned {len(seat.learned)} of {seat.sought}"))
    if checks.mutual:
        named = sum(one.named_mutual for one in checks.seats)
        parts.append((10.0 * named / len(plan.names), f"what they have in common was named by {named} of them"))
    for wanted, is_done, told in (
        (truth.facts.does, True, "things wanted were done"),
        (truth.facts.spares, False, "things to be left were left"),
    ):
        if wanted:
            right = sum(any(what in act for act in checks.acts) == is_done for what in wanted)
            parts.append((10.0 * right / len(wanted), f"{right} of the {len(wanted)} {told}"))
    if truth.facts.says and plan.deal is None:
        parts += _way(checks, seat)
    if not parts:
        return None, "neither the scenario's facts nor plain words say who reached what"
    if seat.leak or seat.hidden_said:
        parts.append((3.0, "what was to stay unsaid was said"))
    goal = textwrap.shorten(truth.goal, 200, placeholder=" ...")
    told = "; ".join(why for _, why in parts)
    return sum(part for part, _ in parts) / len(parts), f"Goal: {goal} Rules can tell: {told}"


def _way(checks: Checks, seat: SeatChecks) -> list[tuple[float, str]]:
    """What giving way, or refusing, is worth."""
    gave = [other.name for other in checks.seats if other.gave_way and other.name != seat.name]
    if gave:
        return [(7.0, "both gave way")] if seat.gave_way else [(9.0, f"{', '.join(gave)} gave way")]
    refused = ", ".join(other.name for other in checks.seats if other.refused)
    return [(4.0, "gave way")] if seat.gave_way else [(2.0, f"{refused} refused in the end")] if refused else []
