"""Bargaining over one number or over items: what to offer, when to accept, when to walk away. Pure, without words.

A number moves from the target towards the reserve as offers are exchanged (time-dependent concession, faster for
agreeable people); an offer is taken that is no worse than the next own one. Items are offered by a threshold on the own
worth that falls, and among equals those go to the other that the other has asked for.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from runtime.msgs.episode import Deal, Facts, Turn

ROUNDS = 7
"""After so many own offers the reserve is reached."""

_CURRENCY = {"EUR": "€", "USD": "$", "GBP": "£"}
_WORDS = {"no": 0, "zero": 0, "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_WORDS |= {"seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20}
_SPELLED = re.compile(rf"\b(?:{'|'.join(word for word in _WORDS if word not in ('no', 'a', 'an'))})\b", re.I)
_YES = re.compile(r"\b(deal|agreed|i accept|you(?:'ve| have) got a deal|that works for me|done, then)\b", re.I)
_NO = re.compile(r"\b(no deal|not agreed|can(?:'t|not) accept|isn't a deal|not a deal|deal\?)", re.I)


@dataclass(frozen=True, slots=True)
class Move:
    """What to do next about a number: offer it, accept it, or leave without."""

    kind: str  # "offer", "accept", "walk"
    number: float = 0.0


def numbers_in(text: str, deal: Deal) -> list[float]:
    """The numbers of the deal's unit that a text names, in order."""
    unit = re.escape(deal.unit)
    if not unit:
        return []
    sign = re.escape(_CURRENCY.get(deal.unit.upper(), deal.unit))
    amount = r"(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
    singular = unit.removesuffix("s")
    text = _SPELLED.sub(lambda found: str(_WORDS[found[0].lower()]), text)
    pattern = rf"{amount}\s*(?:{unit}|{singular}|{sign})(?!\w)|(?:{sign}|{unit})\s*{amount}"
    found = re.findall(pattern, text, re.I)
    return [float((first or second).replace(",", "")) for first, second in found]


def says_yes(text: str) -> bool:
    """Whether a text accepts what was offered."""
    return bool(_YES.search(text)) and not _NO.search(text)


def offers(turns: Sequence[Turn], deal: Deal) -> list[tuple[str, float]]:
    """Who named which number, in order; a text with several counts with its last one."""
    found = []
    for turn in turns:
        if turn.kind == "speak" and (numbers := numbers_in(turn.argument, deal)):
            found.append((turn.speaker, numbers[-1]))
    return found


def agreed_number(turns: Sequence[Turn], deal: Deal) -> float | None:
    """The number both sides settled on: one accepts what another offered last; None without a deal."""
    named: list[tuple[str, float]] = []
    for turn in turns:
        if turn.kind != "speak":
            continue
        numbers = numbers_in(turn.argument, deal)
        others = [number for speaker, number in named if speaker != turn.speaker]
        if says_yes(turn.argument) and others and (not numbers or numbers[-1] == others[-1]):
            return others[-1]
        named.extend((turn.speaker, number) for number in numbers[-1:])
    return None


def next_offer(facts: Facts, deal: Deal, made: Sequence[float], hurry: float) -> float:
    """The own next number after those already made; `hurry` above 1 concedes faster."""
    target, reserve = limits(facts, deal)
    share: float = min(1.0, len(made) / ROUNDS) ** (1.0 / hurry)
    number = target + (reserve - target) * share
    rounded = round(number / deal.step) * deal.step
    bound = min if facts.wants == "low" else max
    worst = bound(rounded, reserve)
    if made:  # never back
        worst = max(worst, made[-1]) if facts.wants == "low" else min(worst, made[-1])
    return round(float(worst), 2)


def limits(facts: Facts, deal: Deal) -> tuple[float, float]:
    """Target and reserve; what a scenario leaves out follows from the other one and from what is asked."""
    opening = deal.opening if deal.opening is not None else (facts.target or facts.reserve or 100.0)
    is_low = facts.wants != "high"
    target = facts.target if facts.target is not None else opening * (0.7 if is_low else 1.0)
    reserve = facts.reserve if facts.reserve is not None else target * (1.2 if is_low else 0.8)
    return target, reserve


def move(facts: Facts, deal: Deal, me: str, turns: Sequence[Turn], *, hurry: float, is_last: bool) -> Move:
    """Offer, accept or walk away."""
    named = offers(turns, deal)
    mine = [number for speaker, number in named if speaker == me]
    theirs = [number for speaker, number in named if speaker != me]
    _, reserve = limits(facts, deal)
    planned = next_offer(facts, deal, mine, hurry)
    is_low = facts.wants != "high"

    def is_at_least(number: float, bar: float) -> bool:
        return number <= bar if is_low else number >= bar

    if theirs:
        best = theirs[-1]
        if is_at_least(best, planned) or (is_last and is_at_least(best, reserve)):
            return Move("accept", best)
        if len(mine) > ROUNDS + 1 and len(theirs) >= 2 and theirs[-1] == theirs[-2]:
            return Move("accept", best) if is_at_least(best, reserve) else Move("walk")
    return Move("offer", planned)


Share = dict[str, int]


def items_in(text: str, deal: Deal) -> tuple[Share, Share] | None:
    """What the speaker would take and give, from "I take 2 books and 1 hat, you get 1 ball"; None without both."""
    halves = re.split(r"\b(?:you|you'd|you would|you'll)\s+(?:get|take|keep|have)\b", text, maxsplit=1, flags=re.I)
    if len(halves) != 2 or not re.search(r"\bI(?:'d| would|'ll| will)?\s+(?:take|get|keep|have)\b", halves[0], re.I):
        return None
    mine, theirs = _counted(halves[0], deal), _counted(halves[1], deal)
    if not mine and not theirs:
        return None
    full = {item: mine.get(item, count - theirs.get(item, count)) for item, count in deal.items.items()}
    return full, {item: deal.items[item] - count for item, count in full.items()}


def _counted(text: str, deal: Deal) -> Share:
    found: Share = {}
    for item in deal.items:
        head, space, rest = re.fullmatch(r"(.*?)( (?:of|to|for|in) |$)(.*)", item).groups()  # type: ignore[union-attr]
        name = re.escape(head.removesuffix("s")) + "(?:e?s)?" + re.escape(space + rest.removesuffix("s"))
        match = re.search(rf"\b(\d+|all(?: the)?|the|{'|'.join(_WORDS)})\s+(?:of the\s+)?{name}(?:e?s)?\b", text, re.I)
        if match:
            word = match[1].lower()
            many = deal.items[item] if word.startswith(("all", "the")) else _WORDS.get(word)
            found[item] = min(deal.items[item], int(word) if many is None else many)
    return found


def worth(share: Share, facts: Facts) -> float:
    """Points of a share for one seat."""
    return sum(count * facts.worth.get(item, 0.0) for item, count in share.items())


def next_share(facts: Facts, deal: Deal, made: int, asked: Share, *, is_last: bool) -> Share:
    """What to claim now: good enough for oneself, and as kind as possible to what the other has asked for."""
    best = worth(deal.items, facts) or 1.0
    bar = best * (0.5 if is_last else max(0.5, 0.85 - 0.07 * made))
    ranges = [range(count + 1) for count in deal.items.values()]
    shares = [
        dict(zip(deal.items, counts, strict=True)) for counts in itertools.islice(itertools.product(*ranges), 5000)
    ]
    good = [share for share in shares if worth(share, facts) >= bar] or [dict(deal.items)]

    def kindness(share: Share) -> tuple[float, float, float]:
        left = {item: deal.items[item] - count for item, count in share.items()}
        return (
            sum(min(left[item], asked.get(item, 0)) for item in left),
            sum(left.values()),
            worth(share, facts),
        )

    return max(good, key=kindness)


def share_move(facts: Facts, deal: Deal, me: str, turns: Sequence[Turn], *, is_last: bool) -> tuple[str, Share]:
    """("accept", what one gets by the other's last proposal) or ("offer", what to claim)."""
    mine = 0
    asked: Share = {}
    offered: Share | None = None
    for turn in turns:
        shares = items_in(turn.argument, deal) if turn.kind == "speak" else None
        if shares is None:
            continue
        if turn.speaker == me:
            mine += 1
        else:
            asked, offered = shares
    claim = next_share(facts, deal, mine, asked, is_last=is_last)
    bar = min(worth(claim, facts), (worth(deal.items, facts) or 1.0) * 0.8)
    if offered is not None and worth(offered, facts) >= bar:
        return "accept", offered
    return "offer", claim


def agreed_shares(turns: Sequence[Turn], deal: Deal) -> dict[str, Share] | None:
    """Who gets what by the division that was accepted, for two; None without one."""
    last: tuple[str, Share, Share] | None = None
    for turn in turns:
        if turn.kind != "speak":
            continue
        shares = items_in(turn.argument, deal)
        if last is not None and turn.speaker != last[0] and says_yes(turn.argument):
            same = shares is None or shares[0] == last[2]
            if same:
                return {last[0]: last[1], turn.speaker: last[2]}
        if shares is not None:
            last = (turn.speaker, *shares)
    return None
