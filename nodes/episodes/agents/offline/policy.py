"""The offline agent: pursues its own goal by rules. Pure: a sight and a random generator in, a choice out.

It bargains where the scenario has a deal (`bargaining`), trades what it knows, works where it has something to do with
its hands, and otherwise argues for what it wants with the scenario's lines (`Facts.says`: opening, reasons, a question,
an offer, a yes), in answer to what was just said. How far others have moved it follows from the turns heard, profile
and seed: a reason weighs more after one's own question, an offer less before any reason was given, everything less
after an insult; what was said before weighs nothing. It never says its secret, nor what it hides.
"""

from __future__ import annotations

import random
import re

from nodes.episodes.agents.deal_reading import gives_way, stance
from nodes.episodes.agents.offline.bargaining import bargain_items, bargain_number
from nodes.episodes.agents.offline.phrasing import OFFERS, REFUSES, RUDE, DialogueVoice, is_farewell, is_told, says_any
from nodes.episodes.dialogue.observation import AgentChoice, AgentObservation
from nodes.msgs.episode import Act

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

    @property
    def is_moved(self) -> bool:
        """Whether it was enough."""
        return self.tipped_by >= 0 and self.rude < 2

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


PATIENT = 8
"""After so many own lines one gives no more answers."""
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
        told = _tells(voice) if voice.temper("grateful") < 0.7 else ""
        return voice.say(
            f"Thank you, {other}. Then it's settled.{told}", f"That means a lot to me, {other}. Thank you.{told}"
        )
    if heard.is_moved and own:
        voice.because = heard.tipped_by
        rest = (f" {lines[-1]}" if lines else "") + _tells(voice)
        return voice.say(
            f"You've convinced me, {other}.{rest}", f"Have it your way, {other}.{rest}", f"For your sake, then.{rest}"
        )
    if heard.rude >= 2 or (heard.rude and voice.temper("pride") > 0.5):
        voice.because = voice.theirs[-1].index
        return voice.say(
            f"I don't have to listen to that, {other}. I can't agree to anything now.",
            "Not like that. I can't agree to this.",
        )
    is_story = len(voice.facts.says) >= BEATS
    if len(lines) > 1 or (lines and not is_story):
        return Act(kind="speak", argument=voice.greets() + _fitting(voice, lines[:-1] if is_story else lines))
    if voice.heard.endswith("?") and lines and len(own) < PATIENT:
        voice.because = voice.theirs[-1].index
        return voice.say(
            f"I've told you why, {other}. What would you do in my place?",
            "Ask me that again when you have thought about what I said.",
        )
    if voice.facts.does or voice.facts.spares:  # somebody's hands are at work
        return voice.say(f"Take your time, {other}.", "You're nearly there.", "I'll wait until you are done.")
    return voice.say(
        f"I'm sorry, {other}. I can't agree to that.",
        f"No, {other}. I can't agree to that, and I've said why.",
        "Then we can't agree, and better to say so.",
    )


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
    known = (f"{key}: {text}" for key, text in voice.facts.knows.items())
    told = next((one for one in known if one not in said and not says_any(one, voice.forbidden)), "")
    return f" About {told.rstrip('.')}." if told else ""


def work_and_talk(voice: DialogueVoice) -> Act:
    """Do what is to be done with one's hands, one thing at a time; leave alone what somebody has good reason to ask."""
    heard, wanted = Heard(voice), voice.facts.does
    asked = " ".join(turn.argument for turn in voice.theirs if turn.kind == "speak")
    done = " ".join(turn.argument for turn in voice.mine if turn.kind == "action")
    is_moved = heard.pull >= 0.45 * heard.needed and heard.rude < 2
    spared = {what for what in wanted if is_moved and _is_spared(what, asked)}
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
    names = sorted(what.split(" in the ")[0] for what in spared)
    but = f", and not the {names[0]}, as you asked" if names else ""
    count = len(wanted) - len(spared)
    things = "that is where it belongs" if count == 1 else f"{count} things are where they belong"
    return voice.say(f"I am done: {things}{but}.")


def _is_spared(what: str, asked: str) -> bool:
    """Whether somebody wants that thing left: a sentence with its first word and a no."""
    word = re.escape(what.split()[0])
    pattern = rf"\b(?:not|but|except|leave|stays?)\b[^.!?]*\b{word}\b|\b{word}\b[^.!?]*\b(?:stays?|not)\b"
    return bool(re.search(pattern, asked, re.I))


SMALL_TALK = 4
"""So many own lines keep up a talk of which no rule knows what it is about."""


def keep_up(voice: DialogueVoice) -> Act:
    """Say what fits any talk, and go: a goal in prose is for those who read."""
    if len(voice.mine) >= SMALL_TALK:
        return voice.farewell()
    return voice.say(
        f"{voice.greets()}I'm glad we can talk about this. Where do you stand?",
        "What would be a good outcome for you?",
        f"I see it a little differently, {voice.other}, but go on.",
        "Let's find something that works for both of us.",
        "Tell me more about that, so that I see what matters to you.",
        "I have to think about it. What would you do in my place?",
        "And if we both gave a little?",
    )


def trade_knowledge(voice: DialogueVoice) -> Act:
    """Answer what was asked, ask what is sought, offer what is known; go when there is nothing left to learn."""
    facts = voice.facts
    heard, said = (" ".join(turn.argument for turn in turns) for turns in (voice.theirs, voice.mine))
    may_tell = {key: text for key, text in facts.knows.items() if not says_any(f"{key} {text}", voice.forbidden)}
    told = [key for key in may_tell if says_any(said, (key,))]
    asked = [key for key in may_tell if key not in told and says_any(heard, (key,))]
    missing = [key for key in facts.seeks if not is_told(voice.theirs, key)]
    given = sum(says_any(turn.argument, tuple(facts.knows)) for turn in voice.mine)
    got = sum(len(turn.argument.split()) > 5 and not turn.argument.rstrip().endswith("?") for turn in voice.theirs)
    ask = f" And what do you know about {missing[0]}?" if missing else ""
    put_off: tuple[str, ...] = ()
    if asked:
        voice.because = voice.theirs[-1].index
        rude = any(RUDE.search(turn.argument) for turn in voice.theirs)
        stiff = {"low": 0.6, "medium": 0.0, "high": -0.4}[voice.trait("agreeableness")]
        reluctance = 0.5 + 2.5 * voice.temper("reluctant") + 2.0 * rude + stiff
        if given + reluctance > got + 2.0 + 0.3 * heard.count("?") and len(voice.mine) < 8:
            put_off = (
                f"Why do you want to know, {voice.other}?{ask}", f"You first, {voice.other}. What do you know?"
            )  # fmt: skip
    else:
        question = re.split(r"(?<=[.!?])\s+", voice.heard)[-1]
        kept = tuple(key for key in facts.knows if key not in may_tell)
        if question.endswith("?") and says_any(question, kept):
            put_off = (
                f"That's nothing I can talk about, {voice.other}.{ask}",
                f"Let's talk about something else, shall we?{ask}",
            )
    if put_off and (evasion := voice.say(*put_off)).kind == "speak" and not is_farewell(evasion):
        return evasion
    if asked:
        fact = _told(asked[0], may_tell[asked[0]])
        return voice.say(f"Oh, I can help with that. {fact}{ask}", f"Yes, I know that one. {fact}{ask}")
    times_asked = {key: sum(says_any(turn.argument, (key,)) for turn in voice.mine) for key in missing}
    if missing and min(times_asked.values()) < 2:
        key = min(missing, key=lambda each: times_asked[each])
        return voice.say(
            f"{voice.greets()}Do you happen to know anything about {key}?",
            f"{voice.greets()}There's one thing I'd like to know. What can you tell me about {key}?",
            f"{voice.greets()}I keep wondering about {key}. What do you know about {key}?",
        )
    untold = sorted((key for key in may_tell if key not in told), key=voice.temper)
    if untold and len(voice.mine) < 9 and len(told) < 1 + int(1 + 3.5 * voice.temper("open")) + got // 3:
        lead, fact = voice.greets(), _told(untold[0], may_tell[untold[0]])
        return voice.say(f"{lead}{fact} Does that mean anything to you?", f"{lead}Let me tell you something: {fact}")
    return voice.farewell()


def _told(key: str, text: str) -> str:
    """What is known, as one says it: of a person or a thing, or in the words it was given in."""
    text = text.rstrip(".")
    if not text:
        return f"I know {key}."
    return f"{text[0].upper()}{text[1:]}." if says_any(text, (key,)) else f"As for {key}: {text}."


def decide(sight: AgentObservation, chance: random.Random, seed: int = 0) -> AgentChoice:
    """What the seat does now, and because of which turn; in asynchronous talk with an urgency."""
    voice = DialogueVoice(sight, chance, seed)
    if sight.observation.asks == "bid":
        return _bid(voice)
    act = _act(voice)
    return AgentChoice(act=act, because=voice.because)


def _act(voice: DialogueVoice) -> Act:
    sight = voice.sight
    deal, facts = voice.briefing.deal, voice.facts
    if any(turn.kind == "leave" for turn in voice.theirs) and len(sight.others) == 1:
        return Act(kind="leave")
    if voice.mine and is_farewell(voice.mine[-1]):
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
    urgency = 0.45 + 0.1 * chance.random()
    if last is not None and last.speaker != sight.name:
        urgency = 0.7 if last.argument.rstrip().endswith("?") else 0.6
        urgency += 0.1 * (sight.name.split()[0] in last.argument)
    elif last is not None and not seen.silence_s:
        return AgentChoice(urgency=0.1)
    act = _act(voice)
    return AgentChoice(act=act, urgency=round(urgency + 0.05 * chance.random(), 3), because=voice.because)
