"""How the offline agent bargains: for a number, or for items to divide. What to offer is `bargain.py`'s."""

from __future__ import annotations

import re

from nodes.episodes.agents.offers import Move, Share, agreed_number, agreed_shares, move, offers, share_move
from nodes.episodes.agents.voice import DialogueVoice, is_farewell
from runtime.msgs.episode import Act


def bargain_number(voice: DialogueVoice) -> Act:
    """Name a number, come closer with a reason, agree, or go."""
    deal, facts = voice.briefing.deal, voice.facts
    assert deal is not None
    agreed = agreed_number(voice.sight.turns, deal)
    if agreed is not None:
        return _after_agreement(voice, f"{_number(agreed)} {deal.unit}")
    hurry = {"high": 1.3, "medium": 1.0, "low": 0.8}[voice.trait("agreeableness")]
    step: Move = move(facts, deal, voice.me, voice.sight.turns, hurry=hurry, is_last=voice.is_last)
    price = f"{_number(step.number)} {deal.unit}"
    if step.kind == "walk":
        return voice.say(
            f"Then we are too far apart on {deal.about}. No hard feelings, {voice.other}. Take care.",
            f"I can't make that work for {deal.about}, I'm sorry. Goodbye, {voice.other}.",
            f"We won't meet on {deal.about}, I think, and better to say so. Goodbye, {voice.other}.",
        )
    if step.kind == "accept":
        return voice.say(
            f"{price}: deal, {voice.other}.",
            f"All right, {price}. Agreed.",
            f"Agreed, {price} it is.",
            f"You've talked me into it, {voice.other}: {price}, agreed.",
        )
    named = offers(voice.sight.turns, deal)
    mine = [number for speaker, number in named if speaker == voice.me]
    theirs = [number for speaker, number in named if speaker != voice.me]
    because = f" {voice.unsaid()[0]}" if voice.unsaid() else ""
    if not mine:
        lead = voice.greets()
        if theirs:
            return voice.say(
                f"{lead}{_number(theirs[-1])} is not what I had in mind. I was thinking of {price}.{because}",
                f"{lead}Hm. I came with {price} in my head.{because}",
                f"{lead}Let me tell you where I stand: {price}.{because}",
            )
        return voice.say(
            f"{lead}I had {price} in mind for {deal.about}.{because}",
            f"{lead}About {deal.about}: I was thinking of {price}.{because}",
            f"{lead}Shall I begin? {price} for {deal.about}.{because}",
        )
    moved = abs(step.number - mine[-1]) > 1e-9
    gap = abs(step.number - theirs[-1]) if theirs else None
    came = abs(theirs[-1] - theirs[-2]) if len(theirs) > 1 else None
    if not moved:
        return voice.say(
            f"I'd have to stay at {price} for now.{because} Can you come a little closer?",
            f"{price} is where I am.{because} What would make it easier for you to move?",
            f"I have thought about it, and {price} is still what I can do today.{because}",
            f"Let me put it plainly, {voice.other}: at {price} I would say yes at once.",
        )
    if gap is not None and gap <= 3 * deal.step:
        return voice.say(
            f"We are nearly there. {price}?",
            f"Just a little more: {price}, and we shake hands on it.",
            f"It would be silly to part over so little. {price}, {voice.other}?",
            f"Meet me at {price}, and I'll stop counting.",
        )
    if came is not None and came < 1e-9:
        return voice.say(
            f"You haven't moved, {voice.other}, and I will all the same: {price}.{because}",
            f"One of us has to go first. {price}.{because}",
            f"I'd have liked to see you move as well. {price}.{because}",
        )
    if came is not None and gap is not None and came >= gap:
        return voice.say(
            f"That was a big step, thank you. Then I can go to {price}.{because}",
            f"Now that helps, {voice.other}. {price}.{because}",
            f"I see that you mean it. So do I: {price}.",
        )
    could = f"I could go to {price}.{because}"
    ways = [
        f"{voice.takes_up(could)}{could}",
        f"What about {price}?{because}",
        f"That's still a stretch for me, but I can do {price}.{because}",
        f"If we settle it today, I'd go to {price}.{because}",
        f"I have turned it over, and I can do {price}.{because}",
    ]
    if came is not None and gap is not None:  # they have come closer, and stand still far away
        ways += [f"Closer, but not yet there. {price} from my side.{because}"]
        ways += [f"You are making it hard, {voice.other}. {price}.{because}"] if came < gap / 4 else []
    if len(mine) > 1:
        ways += [f"I've moved again, as you see: {price}. Your turn."]
    return voice.say(*ways)


def bargain_items(voice: DialogueVoice) -> Act:
    """Offer a division, give something up, agree, or go."""
    deal, facts = voice.briefing.deal, voice.facts
    assert deal is not None
    if agreed_shares(voice.sight.turns, deal) is not None:
        return _after_agreement(voice, f"the way we divided {deal.about}")
    kind, share = share_move(facts, deal, voice.me, voice.sight.turns, is_last=voice.is_last)
    rest = {item: deal.items[item] - count for item, count in share.items()}
    words = f"I take {_listed(share)}, you get {_listed(rest)}"
    if kind == "accept":
        return voice.say(f"Agreed: {words}.", f"That works for me: {words}.", f"{voice.other}, deal: {words}.")
    favourite = max(facts.worth, key=lambda item: facts.worth[item])
    because = f" {voice.unsaid()[0]}" if voice.unsaid() else ""
    if not voice.mine:
        lead = voice.greets() or voice.takes_up("")
        return voice.say(
            f"{lead}What matters most to me is the {favourite}.{because} How about this: {words}?",
            f"{lead}Let's divide it so that both of us are happy. I care most about the {favourite}: {words}?",
            f"{lead}If you ask me, the {favourite} should come to me, and I'll be generous with the rest. {words}?",
        )
    return voice.say(
        f"Let me try another way: {words}?",
        f"I can give something up.{because} {words}. Would that do?",
        f"I see what you are after, {voice.other}. Then {words}?",
        f"One more idea: {words}. What do you say?",
        f"To be fair to both of us: {words}.",
        f"You'd get more of it this way, {voice.other}: {words}.",
        f"What if we turn it round? {words}.",
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


def _listed(share: Share) -> str:
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
