"""`DialogueVoice`: one decision of the offline agent: what was said, who speaks how, and one of several ways to put it.

How somebody talks follows from the profile (the agreeable are warmer, the outgoing livelier), which way of several is
taken from the seed; so the same seed gives the same words.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Literal

from nodes.episodes.dialogue.observation import AgentObservation
from nodes.msgs.episode import Act, Turn

Level = Literal["low", "medium", "high"]

FAREWELL = re.compile(r"\b(goodbye|bye|see you|take care|so long|until next time|talk soon)\b", re.I)
RUDE = re.compile(
    r"\b(idiot|stupid|shut up|hate you|liar|moron|pathetic|get lost|damn you|fool|disgust\w*|ridiculous|coward)\b", re.I
)
OFFERS = re.compile(
    r"\b(what if|what about|(?:i|we) could|i would|i['’](?:d|ll)|let me have|take the|you (?:may|can|could have)|in "
    r"exchange)\b",
    re.I,
)
REFUSES = re.compile(
    r"\b((?:can['’]t|cannot) agree|i refuse|i won['’]t (?:do|have) (?:that|it)|better to say so)\b", re.I
)


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

    def trait(self, name: str) -> Level:
        """How high the own profile is in one of the big five."""
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
        left = [line for line in self.facts.says if not any(line in turn.argument for turn in self.mine)]
        return [line for line in left if not says_any(line, self.forbidden)]

    def greets(self) -> str:
        """What opens a talk; "" once it is open."""
        if self.mine or self.theirs:
            return ""
        return {"low": "", "medium": f"Hi {self.other}. ", "high": f"Hello {self.other}! "}[self.trait("extraversion")]

    def farewell(self) -> Act:
        """One way to go; away where all have been said."""
        last = "Well. Goodbye, then."
        ways = [
            f"I should get going. Take care, {self.other}.",
            f"I won't keep you any longer, {self.other}. Goodbye.",
            f"It was good to talk, {self.other}. See you.",
            f"Thanks for hearing me out, {self.other}. Take care.",
            last if self.trait("agreeableness") == "low" else f"Goodbye, {self.other}, and thank you.",
        ]
        begun = {turn.argument[:8] for turn in self.sight.turns}
        new = [way for way in ways if way[:8] not in begun]
        return Act(kind="speak", argument=self.chance.choice(new)) if new else Act(kind="leave")


def is_farewell(said: Act | Turn) -> bool:
    """Whether somebody says goodbye."""
    return said.kind == "speak" and bool(FAREWELL.search(said.argument))


def says_any(text: str, words: tuple[str, ...]) -> bool:
    """Whether the text holds one of these words or phrases, as whole words."""
    return any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.I) for word in words if word.strip())


def is_told(turns: Sequence[Turn], key: str) -> bool:
    """Whether somebody said something about it that is no question."""
    sentences = (part for turn in turns for part in re.split(r"(?<=[.!?])\s+", turn.argument))
    return any(says_any(part, (key,)) and not part.rstrip().endswith("?") for part in sentences)
