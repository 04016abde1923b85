"""`People`: who counts as a person where words name somebody, lift a stop, take it back or say yes; decided here alone.

A name proves nothing, and neither does the topic. A person is who ears have heard (`role = "ears"`, on no seat), or
who signs with the run's token. The robot's own voice is nobody: not what ears hear while the loudspeaker plays or just
after, and not the words that it has just said. Whoever asks the robot to stop is obeyed all the same.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

from nodes.interrupts.phrase_matcher import clipped, words_of
from nodes.msgs import Saying, Utterance
from nodes.msgs.signature import Signatures, token_of
from runtime import Node, PolyrhythmError, QoS, Stamped, Subscription, on, to_ns
from runtime.message import Envelope
from runtime.run_facts import RunFacts

ROBOT = "robot"
"""The name under which a robot speaks unless its nodes use another one."""
TAIL_NS = to_ns(0.5)
"""Speech that begins so soon after the loudspeaker's last word may be its end, on its way through device and room."""
EARLY_NS = to_ns(0.1)
"""And so much before its first word: a detector of speech begins with what was before."""
JUST_SAID_NS = to_ns(2.0)
"""For so long after they were said, the robot's words are not a person's."""
WORD_NS = to_ns(0.4)
"""How long a word takes, where no loudspeaker tells when it ends."""
LONGEST_SAYING_NS = to_ns(30.0)
"""A loudspeaker that tells no end within that time has gone."""
MOST_KEPT = 32
SHARE = 0.7
"""Of the words heard; a recogniser gets some of them wrong."""
FEWEST_WORDS = 3
"""Of fewer words all must be the robot's, one behind the other."""
_SPACELESS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")

Doubt = Literal["", "not_ears", "robot", "robot_speaks", "robot_said"]
"""Why words are not taken for a person's: no ears have heard them, they are of the robot, they began while it spoke,
or it has just said them itself."""


class Judged(msgspec.Struct, frozen=True):
    """Whose words they are: `person` as ears tell people apart, "" for nobody; `doubt` says why they lift nothing."""

    person: str
    doubt: Doubt

    @property
    def counts(self) -> bool:
        """Whether they lift a stop, take it back, or say yes."""
        return self.person != "" and self.doubt == ""


class _Spoken(msgspec.Struct):
    text: str
    from_ns: int
    until_ns: int  # of its sound, or when it will be over at the latest
    plays: bool  # by a loudspeaker that tells of it
    ident: str = ""


class RobotVoice:
    """What the robot says, and when it can be heard."""

    def __init__(self) -> None:
        self._spoken: deque[_Spoken] = deque(maxlen=MOST_KEPT)
        self._names: deque[str] = deque((ROBOT,), maxlen=MOST_KEPT)

    def said(self, utterance: Utterance, at_ns: int) -> None:
        """What is to be said, at this time; a loudspeaker may tell later when it is heard."""
        if (name := utterance.speaker.casefold()) not in self._names:
            self._names.append(name)
        until_ns = at_ns + len(words_of(utterance.text)) * WORD_NS
        self._spoken.append(_Spoken(utterance.text, at_ns, until_ns, plays=False))

    def speaking(self, saying: Saying, at_ns: int) -> None:
        """A loudspeaker begins or ends to say something, at this time."""
        if saying.phase == "begun":
            self._spoken.append(_Spoken(saying.text, at_ns, at_ns + LONGEST_SAYING_NS, plays=True, ident=saying.id))
        elif not any(one.plays and one.ident == saying.id for one in self._spoken):  # its beginning was not heard
            self._spoken.append(_Spoken(saying.spoken, at_ns, at_ns, plays=True, ident=saying.id))
        for one in self._spoken:
            if saying.phase == "begun":
                is_same = not one.plays and one.text == saying.text
            else:
                is_same = one.plays and one.ident == saying.id
            if is_same:
                one.until_ns = min(one.until_ns, at_ns)

    def is_name(self, speaker: str) -> bool:
        """Whether the robot speaks under this name."""
        return speaker.casefold() in self._names

    def plays_at(self, begun_ns: int) -> bool:
        """Whether speech that began then may be the loudspeaker's."""
        return any(one.plays and one.from_ns - EARLY_NS <= begun_ns < one.until_ns + TAIL_NS for one in self._spoken)

    def has_just_said(self, text: str, now_ns: int) -> bool:
        """Whether these are words of the robot, as far as a recogniser gets them right."""
        return is_echo(text, (one.text for one in self._spoken if now_ns < one.until_ns + JUST_SAID_NS))


class People:
    """The people of one run, as one node hears them."""

    def __init__(self, run_info: RunFacts) -> None:
        self._ears = run_info.in_role("ears")
        self._registry = run_info.registry
        self._signatures: Signatures | None = None
        self.voice = RobotVoice()

    def judge(self, heard: Stamped[Utterance], now_ns: int) -> Judged:
        """Whose words they are; of a signed one, ask once: a signature is good once."""
        words, envelope = heard.message, heard.envelope
        if words.proof:
            return Judged(f"terminal/{words.speaker}", "") if self._is_signed(words, now_ns) else Judged("", "not_ears")
        if not self.are_ears(envelope):
            return Judged("", "not_ears")
        if self.voice.is_name(words.speaker):
            return Judged("", "robot")
        person = words.person or f"{envelope.source}/{words.speaker}"
        if words.is_typed:
            return Judged(person, "")
        begun_ns = envelope.published_ns if words.captured_ns is None else words.captured_ns
        if self.voice.plays_at(begun_ns):
            return Judged(person, "robot_speaks")
        return Judged(person, "robot_said" if self.voice.has_just_said(words.text, now_ns) else "")

    def are_ears(self, envelope: Envelope) -> bool:
        """Whether a node that hears people, and holds no seat, says this."""
        return not envelope.seat and envelope.source in self._ears

    def _is_signed(self, words: Utterance, now_ns: int) -> bool:
        if self._signatures is None and self._registry:
            try:
                self._signatures = Signatures(token_of(Path(self._registry)))
            except PolyrhythmError:  # a graph without a guard
                return False
        return self._signatures is not None and self._signatures.holds(words, now_ns)


class HearsPeople(Node):
    """A node that asks of what it hears whether a person said it: `self.people.judge(...)`."""

    robot_voice = Subscription(Saying, "saying", qos=QoS(required=False))
    robot_words = Subscription(Utterance, "said", qos=QoS(required=False))

    _people: People | None = None

    @property
    def people(self) -> People:
        """Who counts as a person in this run."""
        if self._people is None:
            self._people = People(self.run_info)
        return self._people

    @on(robot_voice)
    def follow_voice(self, saying: Saying) -> None:
        """Note when the robot can be heard."""
        self.people.voice.speaking(saying, self._told_ns())

    @on(robot_words)
    def follow_words(self, utterance: Utterance) -> None:
        """Note what the robot says."""
        self.people.voice.said(utterance, self._told_ns())

    def judge(self, utterance: Utterance) -> Judged:
        """Whose words the handler of `heard` has before it."""
        trigger = self.context.trigger
        if trigger is None or trigger.message is not utterance:
            return Judged("", "not_ears")
        return self.people.judge(trigger, self.clock.now_ns())

    def _told_ns(self) -> int:
        trigger = self.context.trigger
        return self.clock.now_ns() if trigger is None else trigger.envelope.published_ns


def is_echo(heard: str, spoken: Iterable[str]) -> bool:
    """Whether the words heard stand in something that was said: of three and more most of them, in their order."""
    words = words_of(clipped(heard))
    if not words:
        return False
    if len(words) < FEWEST_WORDS or (_SPACELESS.search(heard) and len(words) <= 2 * FEWEST_WORDS):
        joined = f" {' '.join(words)} "
        return any(joined in f" {' '.join(words_of(clipped(text)))} " for text in spoken)
    return any(_common(words, words_of(clipped(text))) >= SHARE * len(words) for text in spoken)


def _common(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    """How many words both have in the same order: the longest common subsequence."""
    row = [0] * (len(other) + 1)
    for word in one:
        before = 0
        for place, candidate in enumerate(other, 1):
            here = row[place]
            row[place] = before + 1 if word == candidate else max(row[place], row[place - 1])
            before = here
    return row[-1]
