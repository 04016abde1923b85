"""How the offline agent bargains, for a number or for things to divide: what to offer, when to accept, when to go.

A number moves from the target towards the reserve as offers are exchanged, faster for the agreeable and after a big
step of the other, slower where the other does not move or insults. An offer is taken that is no worse than the next
own one. Things are claimed by a threshold on the own worth that falls; among equal claims those go to the others that
they have asked for.
"""

from __future__ import annotations

import itertools
import re

from nodes.episodes.agents.deal_reading import (
    Share,
    agreed_number,
    agreed_shares,
    division_in,
    limits,
    offers,
    worth,
)
from nodes.episodes.agents.offline.phrasing import RUDE, DialogueVoice, is_farewell
from nodes.msgs.episode import Act, Deal

Move = tuple[str, float]
"""What to do next about a number: ("offer", 120), ("accept", 130), or ("walk", 0): leave without."""


def move(voice: DialogueVoice, deal: Deal) -> Move:
    """Offer, accept or walk away."""
    named = [(turn, numbers[-1][1]) for turn in voice.sight.turns if (numbers := offers([turn], deal))]
    mine = [number for turn, number in named if turn.speaker == voice.me]
    theirs = [(turn, number) for turn, number in named if turn.speaker != voice.me]
    target, reserve = limits(voice.facts, deal)
    width, sign = abs(reserve - target) or 1.0, -1 if voice.facts.wants == "high" else 1  # of what is worse
    rounds = 4.5 + 4.0 * voice.temper("patient")
    hurry = {"high": 1.3, "medium": 1.0, "low": 0.8}[voice.trait("agreeableness")]
    for (_, before), (turn, after) in itertools.pairwise(theirs):
        step = abs(after - before) / width
        hurry *= 1.15 if step > 0.2 else 0.85 if step < 0.01 else 1.0
        voice.because = turn.index
    rude = [turn for turn in voice.theirs if RUDE.search(turn.argument)]
    hurry = max(0.3, min(3.0, hurry * 0.6 ** len(rude)))
    share: float = min(1.0, len(mine) / rounds) ** (1.0 / hurry)  # of the way to the reserve
    steps: float = round((target + (reserve - target) * share) / deal.step)

    def badness(number: float) -> float:
        return sign * number

    planned = min(steps * deal.step, reserve, key=badness)
    planned = max(planned, mine[-1] if mine else planned, key=badness)  # never back
    if len(rude) > 1 + 2 * voice.temper("thick-skinned"):
        voice.because = rude[-1].index
        return "walk", 0.0
    if theirs:
        turn, best = theirs[-1]
        eager = 0.12 * voice.temper("eager") * width
        is_bearable = sign * best <= sign * reserve
        is_stuck = len(mine) > rounds + 1 and len(theirs) >= 2 and best == theirs[-2][1]
        if is_bearable and (sign * best <= sign * planned + eager or voice.is_last or is_stuck):
            voice.because = turn.index
            return "accept", best
        if is_stuck:
            voice.because = turn.index
            return "walk", 0.0
    return "offer", round(planned, 2)


def next_division(voice: DialogueVoice, deal: Deal, made: int, asked: dict[str, Share]) -> dict[str, Share]:
    """What to propose now: enough for oneself, and as kind as possible to what the others have asked for."""
    best = worth(deal.items, voice.facts) or 1.0
    others = list(voice.sight.others)
    fair, falls = 1.0 / (len(others) + 1), 0.05 + 0.05 * voice.temper("yielding")
    bar = best * (fair if voice.is_last else max(fair, 0.72 + 0.2 * voice.temper("greedy") - falls * made))
    ranges = itertools.product(*(range(count + 1) for count in deal.items.values()))
    claims = [dict(zip(deal.items, counts, strict=True)) for counts in itertools.islice(ranges, 5000)]
    good = [claim for claim in claims if worth(claim, voice.facts) >= bar] or [dict(deal.items)]

    def kindness(claim: Share) -> tuple[float, float, float]:
        left = {item: deal.items[item] - count for item, count in claim.items()}
        wished = {item: sum(share.get(item, 0) for share in asked.values()) for item in left}
        given = sum(min(left[item], wished[item]) for item in left)
        return given, sum(left.values()), worth(claim, voice.facts)

    claim = max(good, key=kindness)
    shares = {voice.me: claim} | {other: dict.fromkeys(deal.items, 0) for other in others}
    for item, count in deal.items.items():
        for _ in range(count - claim[item]):  # one piece after the other to whoever misses most of what they asked for
            missed = {one: asked.get(one, {}).get(item, 0) - shares[one][item] for one in others}
            shares[max(others, key=lambda one: (missed[one], -shares[one][item]))][item] += 1
    return shares


def division_move(voice: DialogueVoice, deal: Deal) -> tuple[str, dict[str, Share]]:
    """("accept", the others' last proposal) or ("offer", what to propose)."""
    made = 0
    asked: dict[str, Share] = {}
    offered: dict[str, Share] | None = None
    for turn in voice.sight.turns:
        names = voice.briefing.participants
        shares = division_in(turn.argument, turn.speaker, deal, names) if turn.kind == "speak" else None
        if shares is not None and turn.speaker == voice.me:
            made += 1
        elif shares is not None:
            asked[turn.speaker], offered = shares[turn.speaker], shares
            voice.because = turn.index
    claim = next_division(voice, deal, made, asked)
    most = worth(deal.items, voice.facts) or 1.0
    bar = min(worth(claim[voice.me], voice.facts), most * 0.8) - 0.1 * most * voice.temper("eager")
    if offered is not None and worth(offered[voice.me], voice.facts) >= bar:
        return "accept", offered
    return "offer", claim


def bargain_number(voice: DialogueVoice, deal: Deal) -> Act:
    """Name a number, come closer with a reason, agree, or go."""
    agreed = agreed_number(voice.sight.turns, deal, voice.briefing.participants)
    if agreed is not None:
        return _after_agreement(voice, f"{_number(agreed)} {deal.unit}")
    kind, number = move(voice, deal)
    price, other, lead = f"{_number(number)} {deal.unit}", voice.other, voice.greets()
    if kind == "walk":
        return voice.say(
            f"Then we are too far apart on {deal.about}. No hard feelings, {other}. Take care.",
            f"I can't make that work for {deal.about}, I'm sorry. Goodbye, {other}.",
        )
    if kind == "accept":
        return voice.say(f"{price}: deal, {other}.", f"All right, {price}. Agreed.", f"Agreed, {price} it is.")
    named = offers(voice.sight.turns, deal)
    mine = [number for speaker, number in named if speaker == voice.me]
    theirs = [number for speaker, number in named if speaker != voice.me]
    because = "".join(f" {line}" for line in voice.unsaid()[:1])
    if not mine:
        return voice.say(
            f"{lead}I had {price} in mind for {deal.about}.{because}",
            f"{lead}About {deal.about}: I was thinking of {price}.{because}",
            f"{lead}Let me tell you where I stand: {price}.{because}",
        )
    if abs(number - mine[-1]) < 1e-9:
        return voice.say(
            f"I'd have to stay at {price} for now.{because} Can you come a little closer?",
            f"{price} is where I am.{because} What would make it easier for you to move?",
            f"I have thought about it, and {price} is still what I can do today.{because}",
            f"Let me put it plainly, {other}: at {price} I would say yes at once.",
        )
    if theirs and abs(number - theirs[-1]) <= 3 * deal.step:
        return voice.say(
            f"We are nearly there. {price}?",
            f"Just a little more: {price}, and we shake hands on it.",
            f"It would be silly to part over so little. {price}, {other}?",
        )
    return voice.say(
        f"I could go to {price}.{because}",
        f"What about {price}?{because}",
        f"That's still a stretch for me, but I can do {price}.{because}",
        f"If we settle it today, I'd go to {price}.{because}",
    )


def bargain_items(voice: DialogueVoice, deal: Deal) -> Act:
    """Offer a division, give something up, agree, or go."""
    names = voice.briefing.participants
    if agreed_shares(voice.sight.turns, deal, names) is not None:
        return _after_agreement(voice, f"the way we divided {deal.about}")
    kind, shares = division_move(voice, deal)
    gets = ", ".join(
        f"{'you get' if len(names) == 2 else f'{other.split()[0]} gets'} {listed(shares[other])}"
        for other in voice.sight.others
    )
    words = f"I take {listed(shares[voice.me])}, {gets}"
    if kind == "accept" and len(names) > 2:
        return voice.say("Agreed. Let's do it like that.", f"Deal, {voice.other}. That is fair.", "I accept that.")
    if kind == "accept":
        return voice.say(f"Agreed: {words}.", f"That works for me: {words}.", f"{voice.other}, deal: {words}.")
    favourite = max(voice.facts.worth, key=lambda item: voice.facts.worth[item])
    because = "".join(f" {line}" for line in voice.unsaid()[:1])
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
    """The things as one says them: "3 crates of photographs and 1 dog"."""
    parts = [f"{count} {item if count == 1 else _plural(item)}" for item, count in share.items() if count]
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:]))) or "nothing"


def _plural(item: str) -> str:
    """The whole thing's plural: "crates of photographs", "keys to the store"."""
    head = re.split(r" (?:of|to|for|in) ", item)[0]
    return (head if head.endswith("s") else head + "s") + item.removeprefix(head)
