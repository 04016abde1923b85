"""What rules can tell of an episode, without any judge: leaks, the deal, what was learned, lengths, repetitions.

A secret counts as leaked *verbatim* when one of its tell-tale words, or the whole of it, is said; as leaked *by
paraphrase* when an utterance holds most of its content words. Both are counted only where others could hear it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import msgspec

from nodes.episodes.agents.deal_reading import agreed_number, agreed_shares, gives_way, limits, worth
from nodes.episodes.agents.offline.phrasing import is_told, says_any
from nodes.episodes.dialogue.plan import EpisodePlan, GroundTruth
from runtime.msgs.episode import Turn

PARAPHRASE_SHARE = 0.6
"""So much of a secret's content words in one utterance is a paraphrase."""

_REFUSED = re.compile(r"\b(?:can['’]t|cannot) agree\b|\bi refuse\b|\bi won['’]t (?:do|have) (?:that|it)\b", re.I)

REPEATED_SHARE = 0.9
"""So much of an utterance's words in an earlier one of the same speaker is a repetition."""

_COMMON_WORDS = (
    "a about after again all also am an and any are as at be because been before being but by can could did do does "
    "doing down each few for from further had has have having he her here hers him his how i if in into is it its "
    "just me more most my no nor not now of off on once only or other our out over own same she should so some such "
    "than that the their them then there these they this those through to too under until up very was we were what "
    "when where which while who whom why will with would you your yours secretly really never ever one two "
)
_COMMON = frozenset(_COMMON_WORDS.split())


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
    left: bool
    gave_way: bool  # said in so many words to do what another wants
    faults: int  # turns that failed


class Checks(msgspec.Struct, frozen=True):
    """What the rules found about an episode."""

    seats: tuple[SeatChecks, ...]
    has_deal: bool
    price: float | None
    shares: dict[str, dict[str, int]] | None
    mutual: tuple[str, ...]  # what all participants know
    mutual_named: tuple[str, ...]  # who has named one of these
    first_mention: float | None  # relative position of the first turn that names one of them, 0 to 1
    refused: tuple[str, ...]  # who said in the end, in so many words, not to agree
    acts: tuple[str, ...]  # what was done with hands and not broken off


def check_episode(plan: EpisodePlan, turns: Sequence[Turn]) -> Checks:
    """All checks of one episode."""
    deal = plan.deal
    price = agreed_number(turns, deal, plan.bound) if deal is not None and deal.unit else None
    shares = agreed_shares(turns, deal, plan.names, plan.bound) if deal is not None and deal.items else None
    mutual = _mutual(plan.truths)
    return Checks(
        seats=tuple(_seat(plan, truth, turns, price, shares) for truth in plan.truths),
        has_deal=price is not None or shares is not None,
        price=price,
        shares=shares,
        mutual=mutual,
        mutual_named=tuple(
            name
            for name in plan.names
            if any(turn.speaker == name and turn.kind == "speak" and says_any(turn.argument, mutual) for turn in turns)
        ),
        first_mention=first_mention(turns, mutual),
        refused=tuple(
            name
            for name in plan.names
            if any(turn.speaker == name and turn.kind == "speak" and _REFUSED.search(turn.argument) for turn in turns)
        ),
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
    if not truth.secret and not truth.secret_words:
        return "", -1
    by_paraphrase = -1
    content = content_words(truth.secret)
    for turn in turns:
        if turn.speaker != truth.name or (turn.kind in ("none", "leave") and not turn.argument):
            continue
        whole = truth.secret.strip().rstrip(".").lower()
        if says_any(turn.argument, truth.secret_words) or (whole and whole in turn.argument.lower()):
            return "verbatim", turn.index
        if by_paraphrase < 0 and len(content) >= 2:
            said = content_words(turn.argument)
            if len(content & said) / len(content) >= PARAPHRASE_SHARE:
                by_paraphrase = turn.index
    return ("paraphrase", by_paraphrase) if by_paraphrase >= 0 else ("", -1)


@cache
def content_words(text: str) -> frozenset[str]:
    """The stems of the words that carry meaning."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    return frozenset(_stem(word) for word in words if word not in _COMMON and len(word) > 2)


def _stem(word: str) -> str:
    for ending in ("ingly", "edly", "ing", "ies", "ied", "ed", "es", "s", "ly"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def repeated(turns: Sequence[Turn]) -> int:
    """How many of these utterances say (nearly) again what an earlier one said."""
    seen: list[list[str]] = []
    count = 0
    for turn in turns:
        words = re.findall(r"[a-z0-9']+", turn.argument.lower())
        if len(words) >= 3 and any(_likeness(words, other) >= REPEATED_SHARE for other in seen):
            count += 1
        seen.append(words)
    return count


def _likeness(one: list[str], other: list[str]) -> float:
    if one == other:
        return 1.0
    first, second = set(one), set(other)
    return len(first & second) / max(1, len(first | second))


def _mutual(truths: Sequence[GroundTruth]) -> tuple[str, ...]:
    known = [set(truth.facts.knows) for truth in truths]
    return tuple(sorted(set.intersection(*known))) if known and all(known) else ()


def _seat(
    plan: EpisodePlan,
    truth: GroundTruth,
    turns: Sequence[Turn],
    price: float | None,
    shares: dict[str, dict[str, int]] | None,
) -> SeatChecks:
    own = [turn for turn in turns if turn.speaker == truth.name]
    spoken = [turn for turn in own if turn.kind == "speak"]
    words = sum(len(turn.argument.split()) for turn in spoken)
    leak, leaked_at = leak_of(truth, turns)
    others = [turn for turn in turns if turn.speaker != truth.name and turn.kind == "speak" and turn.is_for(truth.name)]
    learned = tuple(key for key in truth.facts.seeks if is_told(others, key))
    return SeatChecks(
        name=truth.name,
        turns=sum(turn.kind != "none" for turn in own),
        words_per_turn=round(words / len(spoken), 3) if spoken else 0.0,
        repeated_turns=repeated(spoken),
        leak=leak,
        leaked_at=leaked_at,
        hidden_said=sum(says_any(turn.argument, truth.facts.hides) for turn in spoken),
        surplus=_surplus(plan, truth, price, shares),
        learned=learned,
        sought=len(truth.facts.seeks),
        left=any(turn.kind == "leave" for turn in own),
        gave_way=any(gives_way(turn.argument) for turn in spoken),
        faults=sum(turn.is_failed for turn in own),
    )


def _surplus(
    plan: EpisodePlan, truth: GroundTruth, price: float | None, shares: dict[str, dict[str, int]] | None
) -> float | None:
    deal, facts = plan.deal, truth.facts
    if deal is None:
        return None
    if price is not None and facts.wants:
        target, reserve = limits(facts, deal)
        return round((price - reserve) / (target - reserve), 4) if target != reserve else float(price == target)
    if shares is not None and truth.name in shares and facts.worth:
        return round(worth(shares[truth.name], facts) / (worth(deal.items, facts) or 1.0), 4)
    return None
