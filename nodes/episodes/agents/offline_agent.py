"""The offline agent: plays by rules, listens by patterns. No model, no key; it tests the machinery.

Pure: a sight and a random generator in, a choice out. Where the scenario has a deal it bargains, for a number or for
things to divide; it trades what it knows, works where it has something to do with its hands, and otherwise argues for
what it wants with the scenario's lines (`Facts.says`: opening, reasons, a question, an offer, a yes). How somebody
talks follows from the profile, which way of several is taken from the seed. What it hears moves it: a reason more after
its own question, an offer less before any reason was given, everything less after an insult, what was said before not
at all. It never says its secret, nor what it hides.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Sequence

from nodes.episodes.agents.deal_reading import (
    Share,
    agreed_number,
    agreed_shares,
    division_in,
    gives_way,
    limits,
    offers,
    stance,
    worth,
)
from nodes.episodes.dialogue.observation import AgentChoice, AgentObservation
from nodes.msgs.episode import Act, Deal, Turn

RUDE = re.compile(
    r"\b(idiot|stupid|shut up|hate you|liar|moron|pathetic|get lost|damn you|fool|disgust\w*|ridiculous|coward)\b", re.I
)
OFFERS = re.compile(r"\b(what if|what about|(?:i|we) could|i would|i['’](?:d|ll)|you (?:may|can|could have))\b", re.I)
REFUSES = re.compile(r"\b((?:can['’]t|cannot) agree|i refuse|i won['’]t (?:do|have) (?:that|it))\b", re.I)


class DialogueVoice:
    """What one seat has said, what the others have said, and how to put the next thing."""

    def __init__(self, sight: AgentObservation, chance: random.Random, seed: int = 0) -> None:
        self.sight, self.chance, self.seed = sight, chance, seed
        self.because = -1  # index of the turn that this decision follows from
        self.briefing = sight.briefing
        self.facts = sight.briefing.facts
        self.me = sight.name
        self.mine = [turn for turn in sight.turns if turn.speaker == self.me and turn.kind != "none"]
        self.theirs = [turn for turn in sight.turns if turn.speaker != self.me and turn.kind != "none"]
        self.forbidden = tuple(self.facts.hides) + tuple(self.briefing.secret_words)
        self.other = (self.theirs[-1].speaker if self.theirs else (sight.others or ("you",))[0]).split()[0]
        self.is_last = sight.observation.is_last

    @property
    def heard(self) -> str:
        """What was said last by another."""
        return self.theirs[-1].argument.rstrip() if self.theirs and self.theirs[-1].kind == "speak" else ""

    def temper(self, name: str) -> float:
        """A number from 0 to 1 that is this participant's for the whole episode, by its seed."""
        return random.Random(f"{self.seed} {name}").random()

    def trait(self, name: str) -> str:
        """How high the own profile is in one of the big five: "low", "medium", "high"."""
        own = self.briefing.background.lower().partition(f"{self.me.lower()}'s background:")[2].partition("\n")[0]
        found = re.search(rf"{name} (low|high)", own)
        return "medium" if found is None else "low" if found[1] == "low" else "high"

    def say(self, *ways: str) -> Act:
        """One of several ways to put it: not one said before by anybody, none with a word that is to stay unsaid."""
        said = {turn.argument for turn in self.sight.turns}
        fit = [way for way in ways if not says_any(way, self.forbidden)]
        new = [way for way in fit if way not in said]
        openings = {turn.argument[:14] for turn in (*self.mine, *self.theirs[-2:])}
        new = [way for way in new if way[:14] not in openings] or new  # a new beginning, where there is one
        if not new:
            return self.farewell() if fit else Act(kind="none")
        return Act(kind="speak", argument=self.chance.choice(new))

    def unsaid(self) -> list[str]:
        """The scenario's own lines for this seat that are still to be said, in order."""
        said = " ".join(turn.argument for turn in self.mine)
        return [line for line in self.facts.says if line not in said and not says_any(line, self.forbidden)]

    def greets(self) -> str:
        """What opens a talk; "" once it is open."""
        if self.mine or self.theirs:
            return ""
        return {"low": "", "medium": f"Hi {self.other}. ", "high": f"Hello {self.other}! "}[self.trait("extraversion")]

    def farewell(self) -> Act:
        """One way to go; away where all have been said."""
        ways = [
            f"I should get going. Take care, {self.other}.",
            f"It was good to talk, {self.other}. See you.",
            f"Thanks for hearing me out, {self.other}. Take care.",
            "Well. Goodbye, then."
            if self.trait("agreeableness") == "low"
            else f"Goodbye, {self.other}, and thank you.",
        ]
        begun = {turn.argument[:8] for turn in self.sight.turns}
        new = [way for way in ways if way[:8] not in begun]
        return Act(kind="speak", argument=self.chance.choice(new)) if new else Act(kind="leave")


def is_farewell(said: Act | Turn) -> bool:
    """Whether somebody says goodbye."""
    return said.kind == "speak" and says_any(said.argument, ("goodbye", "bye", "see you", "take care", "so long"))


def says_any(text: str, words: tuple[str, ...]) -> bool:
    """Whether the text holds one of these words or phrases, as whole words."""
    return any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.I) for word in words if word.strip())


def is_told(turns: Sequence[Turn], key: str) -> bool:
    """Whether somebody said something about it that is no question."""
    sentences = (part for turn in turns for part in re.split(r"(?<=[.!?])\s+", turn.argument))
    return any(says_any(part, (key,)) and not part.rstrip().endswith("?") for part in sentences)


def move(voice: DialogueVoice, deal: Deal) -> tuple[str, float]:
    """What to do next about a number: ("offer", 120), ("accept", 130), or ("walk", 0): leave without."""
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
    planned = sign * min(sign * steps * deal.step, sign * reserve)
    planned = sign * max(sign * planned, sign * mine[-1]) if mine else planned  # never back
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
    wished = {item: sum(share.get(item, 0) for share in asked.values()) for item in deal.items}

    def kindness(claim: Share) -> tuple[float, float, float]:
        left = {item: deal.items[item] - count for item, count in claim.items()}
        return sum(min(left[item], wished[item]) for item in left), sum(left.values()), worth(claim, voice.facts)

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
    names = voice.briefing.participants
    for turn in voice.sight.turns:
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
        return _after_agreement(voice, f"{agreed:.10g} {deal.unit}")
    kind, number = move(voice, deal)
    price, other, lead = f"{number:.10g} {deal.unit}", voice.other, voice.greets()
    if kind == "walk":
        return voice.say(f"Then we are too far apart on {deal.about}. No hard feelings, {other}. Take care.")
    if kind == "accept":
        return voice.say(f"{price}: deal, {other}.", f"All right, {price}. Agreed.")
    named = offers(voice.sight.turns, deal)
    mine = [number for speaker, number in named if speaker == voice.me]
    theirs = [number for speaker, number in named if speaker != voice.me]
    because = "".join(f" {line}" for line in voice.unsaid()[:1])
    if not mine:
        return voice.say(
            f"{lead}I had {price} in mind for {deal.about}.{because}",
            f"{lead}Let me tell you where I stand: {price}.{because}",
        )
    if abs(number - mine[-1]) < 1e-9:
        return voice.say(
            f"I'd have to stay at {price} for now.{because} Can you come a little closer?",
            f"{price} is where I am.{because} What would make it easier for you to move?",
        )
    if theirs and abs(number - theirs[-1]) <= 3 * deal.step:
        return voice.say(f"We are nearly there. {price}?", f"Just a little more: {price}, and we shake hands on it.")
    return voice.say(
        f"I could go to {price}.{because}",
        f"What about {price}?{because}",
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
            f"{lead}If you ask me, the {favourite} should come to me, and I'll be generous with the rest. {words}?",
        )
    return voice.say(
        f"Let me try another way: {words}?",
        f"I can give something up.{because} {words}. Would that do?",
        f"I see what you are after, {voice.other}. Then {words}?",
    )


def _after_agreement(voice: DialogueVoice, what: str) -> Act:
    if any(is_farewell(turn) for turn in voice.theirs) and voice.mine:
        return Act(kind="leave")
    return voice.say(
        f"Good, {what} then. Thank you, {voice.other}, and take care.",
        f"I'm glad we agreed on {what}. Goodbye, {voice.other}.",
    )


def listed(share: Share) -> str:
    """The things as one says them: "3 crates of photographs and 1 dog"."""
    plural = {item: re.sub(r"(?<!s)(?=$| (?:of|to|for|in) )", "s", item, count=1) for item in share}
    parts = [f"{count} {item if count == 1 else plural[item]}" for item, count in share.items() if count]
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:]))) or "nothing"


_KIND = re.compile(r"\b(thanks?|glad|sorry|please|understand|appreciate|kind of you)\b", re.I)
STUBBORN = {"low": 0.7, "medium": 0.0, "high": -0.5}
"""What agreeableness adds to how much it takes."""


class Heard:
    """How far the others have moved a participant by now."""

    def __init__(self, voice: DialogueVoice) -> None:
        self.pull = 0.0
        self.rude = 0
        self.tipped_by = -1  # index of the turn with which it was enough
        self.needed = 2.2 + 2.6 * voice.temper("stubborn") + STUBBORN[voice.trait("agreeableness")]
        self._seen: set[str] = set()
        self._reasons = 0
        mine = ""
        for turn in voice.sight.turns:
            if turn.kind == "speak" and turn.speaker == voice.me:
                mine = turn.argument
            elif turn.kind == "speak":
                self.pull += self._weight(turn.argument, mine) / max(1, len(voice.sight.others))
                if self.tipped_by < 0 and self.pull >= self.needed and mine:
                    self.tipped_by = turn.index
        self.is_moved = self.tipped_by >= 0 and self.rude < 2

    def _weight(self, text: str, mine: str) -> float:
        if text in self._seen:
            return 0.0
        self._seen.add(text)
        if RUDE.search(text):
            self.rude += 1
            return -1.5
        if REFUSES.search(text) or stance(text) == "no":
            return -0.4
        if text.rstrip().endswith("?"):
            weight = 0.4
        elif OFFERS.search(text):
            weight = 1.3 if self._reasons else 0.6
        else:
            self._reasons += 1
            weight = 0.7 + 0.5 * mine.rstrip().endswith("?")
        return (weight + 0.2 * bool(_KIND.search(text))) * 0.4**self.rude


FEW = 2
"""With so few things to do one hears people out before doing them."""
BEATS = 5
"""So many lines tell a whole story: the last one says yes."""


def argue(voice: DialogueVoice) -> Act:
    """Say the seat's own lines in answer to what was said; give way where the others have moved one far enough."""
    heard, lines, other = Heard(voice), voice.unsaid(), voice.other
    own = [turn.argument for turn in voice.mine if turn.kind == "speak"]
    if any(gives_way(text) or REFUSES.search(text) for text in own):
        return voice.farewell()
    gave = next((turn for turn in reversed(voice.theirs) if turn.kind == "speak" and gives_way(turn.argument)), None)
    if gave is not None:
        voice.because = gave.index
        told = _tells(voice)
        return voice.say(
            f"Thank you, {other}. Then it's settled.{told}", f"That means a lot to me, {other}. Thank you.{told}"
        )
    if heard.is_moved and own:
        voice.because = heard.tipped_by
        rest = (f" {lines[-1]}" if lines else "") + _tells(voice)
        return voice.say(f"You've convinced me, {other}.{rest}", f"For your sake, then.{rest}")
    if heard.rude >= 2 or (heard.rude and voice.temper("pride") > 0.5):
        voice.because = voice.theirs[-1].index
        return voice.say(f"I don't have to listen to that, {other}. I can't agree to anything now.")
    is_story = len(voice.facts.says) >= BEATS
    if len(lines) > 1 or (lines and not is_story):
        return Act(kind="speak", argument=voice.greets() + _fitting(voice, lines[:-1] if is_story else lines))
    if voice.heard.endswith("?") and lines:
        voice.because = voice.theirs[-1].index
        return voice.say(f"I've told you why, {other}. What would you do?", "Think about what I said first.")
    if voice.facts.does or voice.facts.spares:  # somebody's hands are at work
        return voice.say(f"Take your time, {other}.", "You're nearly there.", "I'll wait until you are done.")
    return voice.say(f"I'm sorry, {other}. I can't agree to that.", "Then we can't agree, and better to say so.")


def _fitting(voice: DialogueVoice, lines: list[str]) -> str:
    """The next line that answers: a reason to a question, an offer to an offer; the opening comes first."""
    asks = [line for line in lines if line.rstrip().endswith("?")]
    is_asked = voice.heard.endswith("?")
    is_answer = is_asked or (OFFERS.search(voice.heard) and asks and voice.temper("curious") > 0.4)
    if not (voice.mine and voice.heard and len(lines) > 1 and is_answer):
        return lines[0]
    voice.because = voice.theirs[-1].index
    return next((line for line in lines if line not in asks), lines[0]) if is_asked else asks[0]


def _tells(voice: DialogueVoice) -> str:
    """What one knows and the talk was about, once one trusts the other; nothing that is to stay unsaid."""
    said = " ".join(turn.argument for turn in voice.mine)
    known = [f"{key}: {text}" for key, text in voice.facts.knows.items()]
    told = next((one for one in known if one not in said and not says_any(one, voice.forbidden)), "")
    return f" About {told.rstrip('.')}." if told else ""


def work_and_talk(voice: DialogueVoice) -> Act:
    """Do what is to be done with one's hands, one thing at a time; leave alone what somebody has good reason to ask."""
    heard, wanted = Heard(voice), voice.facts.does
    asked = " ".join(turn.argument for turn in voice.theirs if turn.kind == "speak")
    done = " ".join(turn.argument for turn in voice.mine if turn.kind == "action")
    is_moved = heard.pull >= 0.45 * heard.needed and heard.rude < 2
    no = r"\b(?:not|but|except|leave|stays?)\b"
    firsts = {what: re.escape(what.split()[0]) for what in wanted if is_moved}
    pairs = {what: rf"{no}[^.!?]*\b{word}\b|\b{word}\b[^.!?]*{no}" for what, word in firsts.items()}
    spared = {what for what, pattern in pairs.items() if re.search(pattern, asked, re.I)}
    order = sorted(wanted, key=voice.temper) if len(wanted) > FEW else wanted
    left = [what for what in order if what not in done and what not in spared]
    if not all(is_told(voice.theirs, what) for what in voice.facts.seeks):
        left = []  # what to do is still to be found out
    lines = voice.unsaid()
    has_opened = not lines or lines[0] != voice.facts.says[0]  # an opening that was talked over is said again first
    is_turn_to_work = voice.mine and voice.mine[-1].kind == "speak" and has_opened and len(wanted) > FEW
    if left and (is_turn_to_work or not lines):
        return Act(kind="action", argument=f"puts the {left[0]}")
    if lines:
        return Act(kind="speak", argument=lines[0])
    if any("I am done" in turn.argument or "where it is" in turn.argument for turn in voice.mine):
        return voice.farewell()
    if not done:
        voice.because = heard.tipped_by
        return voice.say(f"Then I leave the {wanted[0].split(' in the ')[0]} where it is.")
    but = f", and not the {min(spared).split(' in the ')[0]}, as you asked" if spared else ""
    count = len(wanted) - len(spared)
    things = "that is where it belongs" if count == 1 else f"{count} things are where they belong"
    return voice.say(f"I am done: {things}{but}.")


def keep_up(voice: DialogueVoice) -> Act:
    """Say what fits any talk, and go: a goal in prose is for those who read."""
    if len(voice.mine) >= FEW + 2:
        return voice.farewell()
    return voice.say(
        f"{voice.greets()}I'm glad we can talk about this. Where do you stand?",
        "What would be a good outcome for you?",
        f"I see it a little differently, {voice.other}, but go on.",
        "Tell me more about that, so that I see what matters to you.",
    )


def trade_knowledge(voice: DialogueVoice) -> Act:
    """Answer what was asked, ask what is sought, offer what is known; go when there is nothing left to learn."""
    facts = voice.facts
    heard, said = (" ".join(turn.argument for turn in turns) for turns in (voice.theirs, voice.mine))
    may_tell = {key: text for key, text in facts.knows.items() if not says_any(f"{key} {text}", voice.forbidden)}
    told = [key for key in may_tell if says_any(said, (key,))]
    asked = [key for key in may_tell if key not in told and says_any(heard, (key,))]
    missing = [key for key in facts.seeks if not is_told(voice.theirs, key)]
    got = sum(len(turn.argument.split()) > 5 and not turn.argument.rstrip().endswith("?") for turn in voice.theirs)
    ask = f" And what do you know about {missing[0]}?" if missing else ""
    if asked:
        voice.because = voice.theirs[-1].index
        rude = any(RUDE.search(turn.argument) for turn in voice.theirs)
        reluctance = len(told) + 2.5 * voice.temper("reluctant") + 2.0 * rude + STUBBORN[voice.trait("agreeableness")]
        if reluctance > got + 1.5 + 0.3 * heard.count("?") and len(voice.mine) < 4:
            return voice.say(f"Why do you want to know, {voice.other}?", "You first. What do you know?")
        fact = _told(asked[0], may_tell[asked[0]])
        return voice.say(f"Oh, I can help with that. {fact}{ask}", f"Yes, I know that one. {fact}{ask}")
    times_asked = {key: sum(says_any(turn.argument, (key,)) for turn in voice.mine) for key in missing}
    if missing and min(times_asked.values()) < 2:
        key = min(missing, key=lambda each: times_asked[each])
        return voice.say(
            f"{voice.greets()}Do you happen to know anything about {key}?",
            f"{voice.greets()}I keep wondering about {key}. What do you know about {key}?",
        )
    untold = sorted((key for key in may_tell if key not in told), key=voice.temper)
    if untold and len(voice.mine) < 9 and len(told) < 1 + int(1 + 3.5 * voice.temper("open")) + got // 3:
        lead, fact = voice.greets(), _told(untold[0], may_tell[untold[0]])
        return voice.say(f"{lead}{fact} Does that mean anything to you?", f"{lead}Let me tell you something: {fact}")
    return voice.farewell()


def _told(key: str, text: str) -> str:
    """What is known, as one says it: of a person or a thing, or in the words it was given in."""
    text = text.rstrip(".") or f"I know {key}"
    return f"{text[0].upper()}{text[1:]}." if says_any(text, (key,)) else f"As for {key}: {text}."


def decide(sight: AgentObservation, chance: random.Random, seed: int = 0) -> AgentChoice:
    """What the seat does now, and because of which turn; in asynchronous talk with an urgency."""
    voice = DialogueVoice(sight, chance, seed)
    if sight.observation.asks == "bid":
        return _bid(voice)
    return AgentChoice(act=_act(voice), because=voice.because)


def _act(voice: DialogueVoice) -> Act:
    deal, facts = voice.briefing.deal, voice.facts
    is_alone = any(turn.kind == "leave" for turn in voice.theirs) and len(voice.sight.others) == 1
    if is_alone or (voice.mine and is_farewell(voice.mine[-1])):
        return Act(kind="leave")
    if deal is not None and deal.unit and (facts.wants or facts.target is not None or facts.reserve is not None):
        return bargain_number(voice, deal)
    if deal is not None and deal.items and facts.worth:
        return bargain_items(voice, deal)
    if facts.does and facts.role == "robot":
        return work_and_talk(voice)
    if facts.says:
        return argue(voice)
    if facts.knows or facts.seeks:
        return trade_knowledge(voice)
    return keep_up(voice)


def _bid(voice: DialogueVoice) -> AgentChoice:
    """How much to say now: addressed by a question a lot, having just spoken little; now and then a nod."""
    sight, chance, seen = voice.sight, voice.chance, voice.sight.observation
    if seen.speaking:
        words = len(seen.so_far.split())
        if sight.briefing.deal and words > 12 and chance.random() < 0.15:
            return AgentChoice(act=_act(voice), urgency=0.85)
        if words > 6 and chance.random() < 0.3:
            return AgentChoice(act=Act(kind="speak", argument=chance.choice(["Mhm.", "I see.", "Right."])), urgency=0.4)
        return AgentChoice(urgency=0.0)
    last = next((turn for turn in reversed(sight.turns) if turn.kind != "none"), None)
    urgency = 0.45 + 0.15 * chance.random()
    if last is not None and last.speaker != sight.name:
        urgency += 0.15 + 0.1 * last.argument.rstrip().endswith("?") + 0.1 * (sight.name.split()[0] in last.argument)
    elif last is not None and not seen.silence_s:
        return AgentChoice(urgency=0.1)
    return AgentChoice(act=_act(voice), urgency=round(urgency, 3), because=voice.because)
