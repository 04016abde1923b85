"""`DialogueVoice`: one decision of the offline agent: what was said, who speaks how, and one of several ways to put
a thing.

How somebody talks follows from the profile (the agreeable are warmer, the outgoing livelier), which way of several is
taken from the seed; so the same seed gives the same words.
"""

from __future__ import annotations

import random
import re
from typing import Literal

from nodes.episodes.agents.deal_reading import says_yes
from nodes.episodes.agents.offline.goal_reading import says_any
from nodes.episodes.dialogue.observation import AgentObservation
from runtime.msgs.episode import Act, ActKind, Turn

Level = Literal["low", "medium", "high"]

FAREWELL = re.compile(r"\b(goodbye|bye|see you|take care|so long|until next time|talk soon)\b", re.I)
SETTLED = re.compile(
    r"\b(that is settled|then it's settled|let's do it that way|we have an understanding|that sounds fair)\b", re.I
)
_THANKS = re.compile(r"\b(thank|thanks|glad)\b", re.I)

# How one takes up what another has just said, by what that was and by how warm one is.
_TAKES_UP: dict[str, dict[str, tuple[str, ...]]] = {
    "question": {
        "warm": ("I'll be honest with you.", "Let me put it this way."),
        "plain": ("Let me put it this way.", "How shall I say it."),
        "dry": ("Put it like this.", "Let me say it my way."),
    },
    "asks back": {
        "warm": ("May I ask you something as well?",),
        "plain": ("Let me ask back.",),
        "dry": ("I'll ask you one.",),
    },
    "refusal": {
        "warm": ("I understand, and I don't want to press you.", "That's all right."),
        "plain": ("I see.", "All right, but hear me out."),
        "dry": ("I thought as much.", "So be it. Still."),
    },
    "offer": {
        "warm": ("That's kind of you.", "I hadn't expected that, thank you."),
        "plain": ("Now we're getting somewhere.", "That's something."),
        "dry": ("Well, that's a start.", "It took you a while."),
    },
    "reason": {
        "warm": ("I hear you.", "I believe you."),
        "plain": ("I see.", "That may be.", "Mm."),
        "dry": ("So you say.", "Maybe.", "That's your side of it.", "Hm."),
    },
}
_ANSWERS = re.compile(
    r"(yes|no|oh|good|and|but|then|so|well|still|thank|thanks|please|fine|all right|i see|i know|i believe|i understand"
    r"|agreed|perhaps|maybe|of course|to be honest|what if|that|that's|this)\b",
    re.I,
)
"""How a line begins that takes up by itself what was said."""
_REFUSAL = re.compile(
    r"\b(rather not|prefer not|don't want to|not today|can't talk about|let's talk about something)\b", re.I
)
_OFFER = re.compile(r"\b(what if|what about|i could|we could|i'd|i'll|let me have|take the|you may)\b", re.I)


class DialogueVoice:
    """What one seat has said, what the others have said, and how to put the next thing."""

    def __init__(self, sight: AgentObservation, chance: random.Random, seed: int = 0) -> None:
        self.sight = sight
        self.chance = chance
        self.seed = seed
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
        return self.theirs[-1].argument if self.theirs and self.theirs[-1].kind == "speak" else ""

    def temper(self, name: str) -> float:
        """A number from 0 to 1 that is this participant's for the whole episode, by its seed."""
        return random.Random(f"{self.seed} {name}").random()

    def trait(self, name: str) -> Level:
        """How high the own profile is in one of the big five."""
        own = self.briefing.background.lower().partition(f"{self.me.lower()}'s background:")[2].partition("\n")[0]
        found = re.search(rf"{name} (low|medium|high)", own)
        return {"low": "low", "high": "high"}.get(found[1], "medium") if found else "medium"  # type: ignore[return-value]

    def say(self, *ways: str, kind: ActKind = "speak") -> Act:
        """One of several ways to put it: not one said before by anybody, none with a word that is to stay unsaid."""
        said = {turn.argument for turn in self.sight.turns}
        fit = [way for way in ways if not says_any(way, self.forbidden)]
        new = [way for way in fit if way not in said]
        openings = {turn.argument[:14] for turn in (*self.mine, *self.theirs[-2:])}
        new = [way for way in new if way[:14] not in openings] or new  # a new beginning, where there is one
        if not new:
            return self.farewell() if fit else Act(kind="none")
        return Act(kind=kind, argument=self.chance.choice(new))

    def has_said(self, line: str) -> bool:
        """Whether this line was part of something that this seat has said."""
        return any(line in turn.argument for turn in self.mine)

    def unsaid(self) -> list[str]:
        """The scenario's own lines for this seat that are still to be said, in order."""
        return [line for line in self.facts.says if not self.has_said(line) and not says_any(line, self.forbidden)]

    def takes_up(self, line: str) -> str:
        """A few words on what was just said, before this line, or none; never the same twice.

        None where the line does that by itself; none that promise an answer, which the line may not be.
        """
        if not self.heard or not self.mine or _ANSWERS.match(line):
            return ""
        last = self.heard.rstrip()
        if last.endswith("?"):
            about = "asks back" if line.rstrip().endswith("?") else "question"
        elif _REFUSAL.search(last):
            about = "refusal"
        else:
            about = "offer" if _OFFER.search(last) and len(self.theirs) > 2 else "reason"
        warmth = {"low": "dry", "medium": "plain", "high": "warm"}[self.trait("agreeableness")]
        said = " ".join(turn.argument for turn in self.sight.turns)
        fit = [way for way in _TAKES_UP[about][warmth] if way not in said]
        likely = {"low": 0.2, "medium": 0.4, "high": 0.6}[self.trait("extraversion")]
        return self.chance.choice(fit) + " " if fit and self.chance.random() < likely else ""

    def greets(self) -> str:
        """What opens a talk; "" once it is open."""
        if self.mine or self.theirs:
            return ""
        ways = {"low": ("",), "medium": (f"Hi {self.other}.",), "high": (f"Hello {self.other}!",)}
        greeting = self.chance.choice(ways[self.trait("extraversion")])
        return greeting + " " if greeting else ""

    def farewell(self) -> Act:
        """One way to go; away where all have been said."""
        warm = self.trait("agreeableness") != "low"
        ways = [
            f"I should get going. Take care, {self.other}.",
            f"I won't keep you any longer, {self.other}. Goodbye.",
            f"It was good to talk, {self.other}. See you.",
            f"Thanks for hearing me out, {self.other}. Take care.",
            *(("Well. Goodbye, then.",) if not warm else (f"Goodbye, {self.other}, and thank you.",)),
        ]
        begun = {turn.argument[:8] for turn in self.sight.turns}
        new = [way for way in ways if way[:8] not in begun]
        return Act(kind="speak", argument=self.chance.choice(new)) if new else Act(kind="leave")

    def heard_yes(self) -> bool:
        """Whether the last thing said by another agrees."""
        pattern = r"\b(gladly|of course|happy to|sounds fair|fair enough)\b"
        return says_yes(self.heard) or bool(re.search(pattern, self.heard, re.I))

    def heard_thanks(self) -> bool:
        """Whether the last thing said by another thanks."""
        return bool(_THANKS.search(self.heard))


def is_closing(act: Act) -> bool:
    """Whether nothing new was left to say."""
    return act.kind != "speak" or bool(FAREWELL.search(act.argument))


def is_farewell(turn: Turn) -> bool:
    """Whether somebody says goodbye."""
    return turn.kind == "speak" and bool(FAREWELL.search(turn.argument))
