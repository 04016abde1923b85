"""How the offline agent bargains, for a number or for things to divide: what to offer, when to accept, when to go.

A number moves from the target towards the reserve as offers are exchanged, faster for the agreeable and after a big
step of the other, slower where the other does not move or insults. An offer is taken that is no worse than the next
own one. Things are claimed by a threshold on the own worth that falls; among equal claims those go to the others that
they have asked for.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from nodes.episodes.agents.deal_reading import (
    Share,
    agreed_number,
    agreed_shares,
    division_in,
    limits,
    offers,
    worth,
)
from nodes.episodes.agents.offline.listening import RUDE
from nodes.episodes.agents.offline.phrasing import DialogueVoice, is_farewell
from runtime.msgs.episode import Act, Deal, Facts


@dataclass(frozen=True, slots=True)
class Move:
    """What to do next about a number: offer it, accept it, or leave without."""

    kind: str  # "offer", "accept", "walk"
    number: float = 0.0


def next_offer(facts: Facts, deal: Deal, made: Sequence[float], rounds: float, hurry: float) -> float:
    """The own next number after those already made; after `rounds` of them, fewer with more hurry, the reserve."""
    target, reserve = limits(facts, deal)
    share: float = min(1.0, len(made) / rounds) ** (1.0 / hurry)
    number = target + (reserve - target) * share
    rounded = round(number / deal.step) * deal.step
    bound = min if facts.wants == "low" else max
    worst = bound(rounded, reserve)
    if made:  # never back
        worst = max(worst, made[-1]) if facts.wants == "low" else min(worst, made[-1])
    return round(float(worst), 2)


def move(voice: DialogueVoice) -> Move:
    """Offer, accept or walk away."""
    deal, facts = voice.briefing.deal, voice.facts
    assert deal is not None
    named = [(turn, numbers[-1][1]) for turn in voice.sight.turns if (numbers := offers([turn], deal))]
    mine = [number for turn, number in named if turn.speaker == voice.me]
    theirs = [(turn, number) for turn, number in named if turn.speaker != voice.me]
    target, reserve = limits(facts, deal)
    width = abs(reserve - target) or 1.0
    rounds = 4.5 + 4.0 * voice.temper("patient")
    hurry = {"high": 1.3, "medium": 1.0, "low": 0.8}[voice.trait("agreeableness")]
    for (_, before), (turn, after) in itertools.pairwise(theirs):
        step = abs(after - before) / width
        hurry *= 1.15 if step > 0.2 else 0.85 if step < 0.01 else 1.0
        voice.because = turn.index
    rude = [turn for turn in voice.theirs if RUDE.search(turn.argument)]
    hurry *= 0.6 ** len(rude)
    planned = next_offer(facts, deal, mine, rounds, max(0.3, min(3.0, hurry)))
    is_low = facts.wants != "high"

    def is_at_least(number: float, bar: float) -> bool:
        return number <= bar if is_low else number >= bar

    if len(rude) > 1 + 2 * voice.temper("thick-skinned"):
        voice.because = rude[-1].index
        return Move("walk")
    if theirs:
        turn, best = theirs[-1]
        eager = 0.12 * voice.temper("eager") * width * (1 if is_low else -1)
        if (is_at_least(best, planned + eager) and is_at_least(best, reserve)) or (
            voice.is_last and is_at_least(best, reserve)
        ):
            voice.because = turn.index
            return Move("accept", best)
        if len(mine) > rounds + 1 and len(theirs) >= 2 and theirs[-1][1] == theirs[-2][1]:
            voice.because = turn.index
            return Move("accept", best) if is_at_least(best, reserve) else Move("walk")
    return Move("offer", planned)


def next_division(voice: DialogueVoice, made: int, asked: dict[str, Share]) -> dict[str, Share]:
    """What to propose now: enough for oneself, and as kind as possible to what the others have asked for."""
    deal, facts = voice.briefing.deal, voice.facts
    assert deal is not None
    best = worth(deal.items, facts) or 1.0
    others = list(voice.sight.others)
    fair = 1.0 / (len(others) + 1)
    start = 0.72 + 0.2 * voice.temper("greedy")
    bar = best * (fair if voice.is_last else max(fair, start - (0.05 + 0.05 * voice.temper("yielding")) * made))
    ranges = [range(count + 1) for count in deal.items.values()]
    claims = [
        dict(zip(deal.items, counts, strict=True)) for counts in itertools.islice(itertools.product(*ranges), 5000)
    ]
    good = [claim for claim in claims if worth(claim, facts) >= bar] or [dict(deal.items)]

    def kindness(claim: Share) -> tuple[float, float, float]:
        left = {item: deal.items[item] - count for item, count in claim.items()}
        wished = {item: sum(share.get(item, 0) for share in asked.values()) for item in left}
        return sum(min(left[item], wished[item]) for item in left), sum(left.values()), worth(claim, facts)

    claim = max(good, key=kindness)
    shares = {voice.me: claim} | {other: dict.fromkeys(deal.items, 0) for other in others}
    for item, count in deal.items.items():
        for _ in range(count - claim[item]):  # one piece after the other to whoever misses most of what they asked for
            other = max(
                others, key=lambda one: (asked.get(one, {}).get(item, 0) - shares[one][item], -shares[one][item])
            )
            shares[other][item] += 1
    return shares


def division_move(voice: DialogueVoice) -> tuple[str, dict[str, Share]]:
    """("accept", the others' last proposal) or ("offer", what to propose)."""
    deal, facts = voice.briefing.deal, voice.facts
    assert deal is not None
    names = voice.briefing.participants
    made = 0
    asked: dict[str, Share] = {}
    offered: dict[str, Share] | None = None
    for turn in voice.sight.turns:
        shares = division_in(turn.argument, turn.speaker, deal, names) if turn.kind == "speak" else None
        if shares is None:
            continue
        if turn.speaker == voice.me:
            made += 1
        else:
            asked[turn.speaker], offered = shares[turn.speaker], shares
            voice.because = turn.index
    claim = next_division(voice, made, asked)
    most = worth(deal.items, facts) or 1.0
    bar = min(worth(claim[voice.me], facts), most * 0.8) - 0.1 * most * voice.temper("eager")
    if offered is not None and worth(offered[voice.me], facts) >= bar:
        return "accept", offered
    return "offer", claim


def bargain_number(voice: DialogueVoice) -> Act:
    """Name a number, come closer with a reason, agree, or go."""
    deal = voice.briefing.deal
    assert deal is not None
    agreed = agreed_number(voice.sight.turns, deal, voice.briefing.participants)
    if agreed is not None:
        return _after_agreement(voice, f"{_number(agreed)} {deal.unit}")
    step = move(voice)
    price = f"{_number(step.number)} {deal.unit}"
    if step.kind == "walk":
        return voice.say(
            f"Then we are too far apart on {deal.about}. No hard feelings, {voice.other}. Take care.",
            f"I can't make that work for {deal.about}, I'm sorry. Goodbye, {voice.other}.",
        )
    if step.kind == "accept":
        return voice.say(
            f"{price}: deal, {voice.other}.",
            f"All right, {price}. Agreed.",
            f"Agreed, {price} it is.",
        )
    named = offers(voice.sight.turns, deal)
    mine = [number for speaker, number in named if speaker == voice.me]
    theirs = [number for speaker, number in named if speaker != voice.me]
    because = f" {voice.unsaid()[0]}" if voice.unsaid() else ""
    if not mine:
        lead = voice.greets()
        return voice.say(
            f"{lead}I had {price} in mind for {deal.about}.{because}",
            f"{lead}About {deal.about}: I was thinking of {price}.{because}",
            f"{lead}Let me tell you where I stand: {price}.{because}",
        )
    if abs(step.number - mine[-1]) < 1e-9:
        return voice.say(
            f"I'd have to stay at {price} for now.{because} Can you come a little closer?",
            f"{price} is where I am.{because} What would make it easier for you to move?",
            f"I have thought about it, and {price} is still what I can do today.{because}",
            f"Let me put it plainly, {voice.other}: at {price} I would say yes at once.",
        )
    if theirs and abs(step.number - theirs[-1]) <= 3 * deal.step:
        return voice.say(
            f"We are nearly there. {price}?",
            f"Just a little more: {price}, and we shake hands on it.",
            f"It would be silly to part over so little. {price}, {voice.other}?",
        )
    return voice.say(
        f"I could go to {price}.{because}",
        f"What about {price}?{because}",
        f"That's still a stretch for me, but I can do {price}.{because}",
        f"If we settle it today, I'd go to {price}.{because}",
    )


def bargain_items(voice: DialogueVoice) -> Act:
    """Offer a division, give something up, agree, or go."""
    deal, facts = voice.briefing.deal, voice.facts
    assert deal is not None
    names = voice.briefing.participants
    if agreed_shares(voice.sight.turns, deal, names) is not None:
        return _after_agreement(voice, f"the way we divided {deal.about}")
    kind, shares = division_move(voice)
    words = f"I take {listed(shares[voice.me])}"
    for other in voice.sight.others:
        who = "you get" if len(names) == 2 else f"{other.split()[0]} gets"
        words += f", {who} {listed(shares[other])}"
    if kind == "accept" and len(names) > 2:
        return voice.say("Agreed. Let's do it like that.", f"Deal, {voice.other}. That is fair.", "I accept that.")
    if kind == "accept":
        return voice.say(f"Agreed: {words}.", f"That works for me: {words}.", f"{voice.other}, deal: {words}.")
    favourite = max(facts.worth, key=lambda item: facts.worth[item])
    because = f" {voice.unsaid()[0]}" if voice.unsaid() else ""
    if not voice.mine:
        lead = voice.greets()
        return voice.say(
            f"{lead}What matters most to me is the {favourite}.{because} How about this: {words}?",
            f"{lead}Let's divide it so that everybody is happy. I care most about the {favourite}: {words}?",
            f"{lead}If you ask me, the {favourite} should come to me, and I'll be generous with the rest. {words}?",
        )
    return voice.say(
        f"Let me try another way: {words}?",
        f"I can give something up.{because} {words}. Would that do?",
        f"I see what you are after, {voice.other}. Then {words}?",
        f"One more idea: {words}. What do you say?",
        f"To be fair to everybody: {words}.",
    )


def _after_agreement(voice: DialogueVoice, what: str) -> Act:
    if any(is_farewell(turn) for turn in voice.theirs) and voice.mine:
        return Act(kind="leave")
    return voice.say(
        f"Good, {what} then. Thank you, {voice.other}, and take care.",
        f"I'm glad we agreed on {what}. Goodbye, {voice.other}.",
        f"Then it's {what}. That was easier than I feared. Take care, {voice.other}.",
    )


def _number(value: float) -> str:
    return f"{value:g}" if value < 1e6 else f"{value:.0f}"


def listed(share: Share) -> str:
    parts = [f"{count} {item if count == 1 else _plural(item)}" for item, count in share.items() if count]
    if not parts:
        return "nothing"
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _plural(item: str) -> str:
    """The whole thing's plural: "crates of photographs", "keys to the store"."""
    head, space, rest = re.match(r"(\S+)( (?:of|to|for|in) )?(.*)", item, re.S).groups("")  # type: ignore[union-attr]
    if not space:
        return item if item.endswith("s") else item + "s"
    return f"{head if head.endswith('s') else head + 's'}{space}{rest}"
