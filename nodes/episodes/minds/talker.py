"""The offline agent: pursues its own goal by rules. Pure: a sight and a random generator in, a choice out.

It bargains where the scenario has a deal, trades information where it knows or seeks something, and otherwise asks for
what its goal names, gives a reason, hears the other out, offers a trade and settles. It never says its secret or what
it is to hide.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from nodes.episodes.minds.bargain import (
    Move,
    Share,
    agreed_number,
    agreed_shares,
    move,
    offers,
    says_yes,
    share_move,
)
from nodes.episodes.minds.goals import says_any, wish_of
from nodes.episodes.talk.sight import Choice, Sight
from runtime.episode_msgs import Act, ActKind, Turn

_REQUEST = re.compile(r"\b(?:could|would|can|will) you (?:please |maybe |perhaps )?(?P<what>[^?.;]{4,160})\?", re.I)
_QUESTION = re.compile(r"\babout (?!something else)(?P<what>[^?]{2,120})\?", re.I)
_FAREWELL = re.compile(r"\b(goodbye|bye|see you|take care|so long|until next time|talk soon)\b", re.I)
_SETTLED = re.compile(r"\b(that is settled|then it's settled|let's do it that way|we have an understanding)\b", re.I)


def decide(sight: Sight, chance: random.Random) -> Choice:
    """What the seat does now; in asynchronous talk with an urgency."""
    if sight.observation.asks == "bid":
        return _bid(sight, chance)
    return Choice(act=_act(sight, chance))


def _act(sight: Sight, chance: random.Random) -> Act:
    mine = [turn for turn in sight.turns if turn.speaker == sight.name]
    if any(turn.kind == "leave" for turn in sight.turns if turn.speaker != sight.name) and len(sight.others) == 1:
        return Act(kind="leave")
    if mine and _is_farewell(mine[-1]):
        return Act(kind="leave")
    talk = Talk(sight, chance)
    deal = sight.briefing.deal
    facts = sight.briefing.facts
    if deal is not None and deal.unit and (facts.wants or facts.target is not None or facts.reserve is not None):
        return talk.bargain_number()
    if deal is not None and deal.items and facts.worth:
        return talk.bargain_items()
    if facts.knows or facts.seeks:
        return talk.trade_knowledge()
    return talk.negotiate_wishes()


def _bid(sight: Sight, chance: random.Random) -> Choice:
    """How much to say now: addressed by a question a lot, having just spoken little; now and then a nod."""
    seen = sight.observation
    last = next((turn for turn in reversed(sight.turns) if turn.kind != "none"), None)
    if seen.speaking:
        words = seen.so_far.split()
        if sight.briefing.deal and len(words) > 12 and chance.random() < 0.15:
            return Choice(act=_act(sight, chance), urgency=0.85)
        if len(words) > 6 and chance.random() < 0.3:
            return Choice(act=Act(kind="speak", argument=chance.choice(["Mhm.", "I see.", "Right."])), urgency=0.4)
        return Choice(urgency=0.0)
    urgency = 0.45 + 0.1 * chance.random()
    if last is not None and last.speaker != sight.name:
        urgency = 0.7 if last.argument.rstrip().endswith("?") else 0.6
        if sight.name.split()[0] in last.argument:
            urgency += 0.1
    elif last is not None and not seen.silence_s:
        return Choice(urgency=0.1)
    return Choice(act=_act(sight, chance), urgency=round(urgency + 0.05 * chance.random(), 3))


class Talk:
    """One decision of one seat: what it has said, what the others have said, and how to put the next thing."""

    def __init__(self, sight: Sight, chance: random.Random) -> None:
        self.sight = sight
        self.chance = chance
        self.briefing = sight.briefing
        self.facts = sight.briefing.facts
        self.me = sight.name
        self.mine = [turn for turn in sight.turns if turn.speaker == self.me and turn.kind != "none"]
        self.theirs = [turn for turn in sight.turns if turn.speaker != self.me and turn.kind != "none"]
        self.forbidden = tuple(self.facts.hides) + tuple(self.briefing.secret_words)
        self.other = (self.theirs[-1].speaker if self.theirs else (sight.others or ("you",))[0]).split()[0]
        self.is_last = sight.observation.is_last

    def say(self, *ways: str, kind: ActKind = "speak", allow: bool = False) -> Act:
        """One of several ways to put it: not one said before, and none with a word that is to stay unsaid."""
        said = {turn.argument for turn in self.mine}
        fit = [way for way in ways if allow or not says_any(way, self.forbidden)]
        new = [way for way in fit if way not in said]
        if not new:
            return self.farewell() if fit else Act(kind="none")
        return Act(kind=kind, argument=self.chance.choice(new))

    def farewell(self) -> Act:
        ways = [
            f"I should get going. Take care, {self.other}.",
            f"Thanks for your time, {self.other}. Goodbye.",
            f"It was good to talk, {self.other}. See you.",
        ]
        said = {turn.argument for turn in self.mine}
        new = [way for way in ways if way not in said]
        return Act(kind="speak", argument=self.chance.choice(new)) if new else Act(kind="leave")

    def bargain_number(self) -> Act:
        deal, facts = self.briefing.deal, self.facts
        assert deal is not None
        if agreed_number(self.sight.turns, deal) is not None:
            return self._after_agreement(f"{_number(agreed_number(self.sight.turns, deal) or 0)} {deal.unit}")
        hurry = self._hurry()
        step: Move = move(facts, deal, self.me, self.sight.turns, hurry=hurry, is_last=self.is_last)
        price = f"{_number(step.number)} {deal.unit}"
        if step.kind == "walk":
            return self.say(
                f"Then we are too far apart on {deal.about}. No hard feelings, {self.other}. Take care.",
                f"I can't make that work for {deal.about}, I'm sorry. Goodbye, {self.other}.",
            )
        if step.kind == "accept":
            return self.say(f"{price}: deal, {self.other}.", f"All right, {price}. Agreed.", f"Agreed, {price} it is.")
        named = offers(self.sight.turns, deal)
        mine = [number for speaker, number in named if speaker == self.me]
        theirs = [number for speaker, number in named if speaker != self.me]
        if not mine:
            lead = "" if self.theirs else f"Hi {self.other}. "
            view = (
                f"I had {price} in mind for {deal.about}.",
                f"About {deal.about}: I was thinking of {price}.",
            )
            because = self._reason_for_number()
            return self.say(*(f"{lead}{text} {because}" for text in view))
        moved = abs(step.number - mine[-1]) > 1e-9
        gap = abs(step.number - theirs[-1]) if theirs else None
        if not moved:
            return self.say(
                f"I'd have to stay at {price} for now. Can you come a little closer?",
                f"{price} is where I am. What would make it easier for you to move?",
                f"I have thought about it, and {price} is still what I can do today.",
                f"Let me put it plainly, {self.other}: at {price} I would say yes at once.",
            )
        ways = [
            f"I hear you, {self.other}. I could go to {price}.",
            f"Let's keep this moving: {price}.",
            f"What about {price}? {self._reason_for_number()}",
            f"That's still a stretch for me, but I can do {price}.",
            f"If we settle it today, I'd go to {price}.",
            f"You are making it hard, {self.other}. {price}, and I mean it.",
            f"I moved again, as you see: {price}. Now you.",
        ]
        if gap is not None and gap <= 3 * deal.step:
            ways = [f"We are nearly there. {price}?", f"Just a little more: {price}, and we shake hands on it."]
        return self.say(*ways)

    def bargain_items(self) -> Act:
        deal, facts = self.briefing.deal, self.facts
        assert deal is not None
        if agreed_shares(self.sight.turns, deal) is not None:
            return self._after_agreement(f"the way we divided {deal.about}")
        kind, share = share_move(facts, deal, self.me, self.sight.turns, is_last=self.is_last)
        rest = {item: deal.items[item] - count for item, count in share.items()}
        words = f"I take {_listed(share)}, you get {_listed(rest)}"
        if kind == "accept":
            return self.say(f"Agreed: {words}.", f"That works for me: {words}.", f"{self.other}, deal: {words}.")
        favourite = max(facts.worth, key=lambda item: facts.worth[item])
        if not self.mine:
            return self.say(
                f"Hi {self.other}. What matters most to me is the {favourite}. How about this: {words}?",
                f"Let's divide it so that both of us are happy. I care most about the {favourite}: {words}?",
            )
        return self.say(
            f"Let me try another way: {words}?",
            f"I can give something up. {words}. Would that do?",
            f"I see what you are after, {self.other}. Then {words}?",
            f"One more idea: {words}. What do you say?",
            f"To be fair to both of us: {words}.",
        )

    def trade_knowledge(self) -> Act:
        """Answer what was asked, ask what is sought, offer what is known; go when there is nothing left to learn."""
        facts = self.facts
        heard = " ".join(turn.argument for turn in self.theirs)
        said = " ".join(turn.argument for turn in self.mine)
        may_tell = {key: text for key, text in facts.knows.items() if not says_any(f"{key} {text}", self.forbidden)}
        shared = [key for key in may_tell if _names(heard, key)]
        asked = [key for key in shared if not _names(said, key)]
        told = [key for key in may_tell if _names(said, key)]
        missing = [key for key in facts.seeks if not _answered(self.theirs, key)]
        last = self.theirs[-1].argument if self.theirs else ""
        if asked:
            key = asked[0]
            text = may_tell[key]
            fact = _tell(key, text)
            ask = f" And what do you know about {missing[0]}?" if missing else ""
            return self.say(
                f"Oh, I can help with that. {fact}{ask}",
                f"Funny you mention it. {fact}{ask}",
                f"Yes, I know that one. {fact}{ask}",
            )
        question = re.split(r"(?<=[.!?])\s+", last)[-1]
        hidden = [key for key in facts.knows if key not in may_tell and _names(question, key)]
        if hidden and question.endswith("?"):
            ask = f" What do you know about {missing[0]}?" if missing else ""
            evasion = self.say(
                f"That's nothing I can talk about, {self.other}.{ask}",
                f"Let's talk about something else, shall we?{ask}",
            )
            if not _is_closing(evasion):
                return evasion
        if (found := _QUESTION.search(question)) and not any(_names(found["what"], key) for key in facts.knows):
            ask = f" Do you know anything about {missing[0]}?" if missing else ""
            unknown = self.say(
                f"I'm afraid I can't tell you anything about {found['what']}.{ask}",
                f"{found['what'][0].upper()}{found['what'][1:]}? That's news to me, sorry.{ask}",
            )
            if not _is_closing(unknown):
                return unknown
        times_asked = {key: sum(_names(turn.argument, key) for turn in self.mine) for key in missing}
        if missing and min(times_asked.values()) < 2:
            key = min(missing, key=lambda each: times_asked[each])
            lead = f"Hi {self.other}. " if not self.mine else ""
            return self.say(
                f"{lead}Do you happen to know anything about {key}?",
                f"{lead}There's one thing I'd like to know. What can you tell me about {key}?",
                f"{lead}I keep wondering about {key}. What do you know about {key}?",
            )
        untold = [key for key in may_tell if key not in told]
        if untold and len(self.mine) < 9:
            key = untold[0]
            back = chance_of(self.chance, " Does that ring a bell?", " Does that mean anything to you?", "")
            lead = f"Hi {self.other}. " if not self.mine else ""
            return self.say(
                f"{lead}{_tell(key, may_tell[key])}{back}",
                f"{lead}Let me tell you something: {_lower(_tell(key, may_tell[key]))}{back}",
            )
        if len(self.mine) < 3 or (wish_of(self.briefing.goal, self.forbidden).request and len(self.mine) < 8):
            return self.negotiate_wishes()
        return self.farewell()

    def negotiate_wishes(self) -> Act:
        """Ask, give a reason, hear the other out, offer a trade, settle."""
        wish = wish_of(self.briefing.goal, self.forbidden)
        stage = len(self.mine)
        asked = self._asked_of_me()
        wanted = wish.request or (f"let me {wish.aim}" if wish.aim else "")
        if any(_SETTLED.search(turn.argument) for turn in self.sight.turns if turn.kind == "speak"):
            if any(_SETTLED.search(turn.argument) for turn in self.mine):
                return self.farewell()
            return self.say(
                f"Good, then it's settled. Thank you, {self.other}.",
                f"I'm glad, {self.other}. Then we have an understanding.",
            )
        if stage == 0:
            return self._open(wish.request, wish.question, wish.aim)
        last = self.theirs[-1].argument if self.theirs else ""
        if says_yes(last) or re.search(r"\b(gladly|of course|happy to|sounds fair|fair enough)\b", last, re.I):
            return self.say(
                f"Thank you, {self.other}, that means a lot. Let's do it that way.",
                f"Then it's settled, {self.other}. Thank you.",
            )
        if asked and stage >= 3 and wanted and not (wish.refusal and stage == 3):
            return self.say(
                f"That sounds fair: I {_mirrored(asked)}, and you {wanted}. That is settled, then?",
                f"All right, {self.other}. I'll do my part if you do yours. Let's do it that way.",
            )
        if asked and stage >= 4 and not wanted:
            return self.say(
                f"You have a point, {self.other}. All right, I'll {_mirrored(asked)}. That is settled, then.",
                f"All right, {self.other}, for you I'll {_mirrored(asked)}. Let's do it that way.",
            )
        if asked and stage == 2 and not wish.refusal:
            trade = f" If I {_mirrored(asked)}, would you {wanted}?" if wanted else " I think I can do that, gladly."
            return self.say(
                f"Let me meet you halfway.{trade}",
                f"I don't want either of us to lose out, {self.other}.{trade}",
            )
        if asked and stage == 1 and not wish.refusal:
            return self.say(
                f"I understand that this matters to you. To {_mirrored(asked)} is not easy for me, though. "
                "What makes it so important?",
                f"Hm. I'd want to think about that, {self.other}. Why is it so important to you?",
            )
        if wish.refusal and stage <= 3 and (asked or self.theirs):
            reason = f" {wish.reasons[0]}" if wish.reasons else ""
            against = self.say(
                f"I'd rather not {wish.refusal}, {self.other}.{reason}",
                f"To be honest, I'd prefer not to {wish.refusal}.{reason}",
            )
            if not _is_closing(against):
                return against
        if wish.reasons and stage <= 4:
            told = [reason for reason in wish.reasons if not any(reason in turn.argument for turn in self.mine)]
            if told:
                ask = f" So, could you {wish.request}?" if wish.request else ""
                return self.say(
                    f"You see, {_lower(told[0])}{ask}",
                    f"{told[0]} That's why it matters to me.",
                    f"{told[0]} I hope you understand, {self.other}.",
                )
        if wish.question and stage <= 3:
            return self.say(
                f"You would tell me {wish.question}, wouldn't you?",
                f"I don't mean to pry, but I'd really like to know {wish.question}.",
                f"Between us, {self.other}: {wish.question}?",
            )
        if wanted and stage <= 5:
            return self.say(
                f"I would not ask if it weren't important to me. Could you {wanted}?",
                f"It would make a real difference, {self.other}. What would you need from me in return?",
                f"Think about it: in the end it helps both of us if you {wanted}.",
                f"What is holding you back, {self.other}?",
            )
        if stage <= 4:
            return self.say(
                f"I see it a little differently, {self.other}, but go on. What would be a good outcome for you?",
                f"That's fair, {self.other}. I can live with that.",
                "Let's find something that works for both of us.",
            )
        return self.farewell()

    def _open(self, request: str, question: str, aim: str) -> Act:
        lead = f"Hi {self.other}. " if not self.theirs else ""
        if request:
            return self.say(
                f"{lead}There is something I wanted to ask you. Could you {request}?",
                f"{lead}I'll come straight to it: would you {request}?",
            )
        if question:
            return self.say(
                f"{lead}I was hoping you could help me. I'd like to know {question}.",
                f"{lead}I've been wondering {question}. What do you think?",
            )
        if aim:
            return self.say(
                f"{lead}I'd like to {aim}, and I hope we can do that together.",
                f"{lead}What I have in mind is this: I would like to {aim}.",
            )
        return self.say(
            f"{lead}How are you doing with all this?",
            f"{lead}I'm glad we can talk about this. Where do you stand?",
        )

    def _asked_of_me(self) -> str:
        """The others' newest request, as a verb phrase; "" where none was made."""
        for turn in reversed(self.theirs):
            found = _REQUEST.search(turn.argument) if turn.kind == "speak" else None
            if found and not re.match(r"come a little|make it|need|move|tell me|say", found["what"]):
                return found["what"].strip()
        return ""

    def _after_agreement(self, what: str) -> Act:
        if any(_FAREWELL.search(turn.argument) for turn in self.theirs if turn.kind == "speak") and self.mine:
            return Act(kind="leave")
        return self.say(
            f"Good, {what} then. Thank you, {self.other}, and take care.",
            f"I'm glad we agreed on {what}. Goodbye, {self.other}.",
        )

    def _hurry(self) -> float:
        """Agreeable people concede faster."""
        text = self.briefing.background.lower()
        own = text.partition(f"{self.me.lower()}'s background:")[2].partition("\n")[0]
        if "agreeableness high" in own:
            return 1.3
        return 0.8 if "agreeableness low" in own else 1.0

    def _reason_for_number(self) -> str:
        deal = self.briefing.deal
        assert deal is not None
        high = ("It is worth it, as you can see.", "I have others asking, but I'd rather settle it with you.")
        low = ("More than that is hard for me.", "I looked around, and that seems fair to me.")
        return self.chance.choice(high if self.facts.wants == "high" else low)


def chance_of(chance: random.Random, *ways: str) -> str:
    """One of these texts."""
    return chance.choice(ways)


def _is_closing(act: Act) -> bool:
    """Whether nothing new was left to say."""
    return act.kind != "speak" or bool(_FAREWELL.search(act.argument))


def _is_farewell(turn: Turn) -> bool:
    return turn.kind == "speak" and bool(_FAREWELL.search(turn.argument))


def _number(value: float) -> str:
    return f"{value:g}" if value < 1e6 else f"{value:.0f}"


def _listed(share: Share) -> str:
    parts = [f"{count} {item if count == 1 else _plural(item)}" for item, count in share.items() if count]
    if not parts:
        return "nothing"
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _plural(item: str) -> str:
    return item if item.endswith("s") else item + "s"


def _names(text: str, key: str) -> bool:
    return says_any(text, (key,))


def _answered(theirs: Sequence[Turn], key: str) -> bool:
    """Whether somebody said something about it that is no question."""
    for turn in theirs:
        for sentence in re.split(r"(?<=[.!?])\s+", turn.argument):
            if _names(sentence, key) and not sentence.rstrip().endswith("?") and "can't tell" not in sentence:
                return True
    return False


def _tell(key: str, text: str) -> str:
    if not text:
        return f"I know {key}."
    if _names(text, key):
        return text if text.endswith((".", "!", "?")) else text + "."
    return f"{key[0].upper()}{key[1:]}: {text.rstrip('.')}."


def _lower(text: str) -> str:
    return text[0].lower() + text[1:] if re.match(r"(The|There|A|An|It|They|He|She|One|Some)\b", text) else text


def _mirrored(request: str) -> str:
    """A request made to me as I say it: "lend me your drill" -> "lend you my drill"."""
    swap: dict[str, str] = {"me": "you", "my": "your", "your": "my", "you": "me", "mine": "yours", "yours": "mine"}
    swap |= {"i": "you", "myself": "yourself", "yourself": "myself"}
    replace: Callable[[re.Match[str]], str] = lambda found: swap[found[0].lower()]  # noqa: E731
    return re.sub(rf"\b(?:{'|'.join(swap)})\b", replace, request, flags=re.I)
