"""`PushToTalk`: what people say into their browser's microphone becomes sound of the graph, for a recogniser.

A page sends pieces while its button is held; where somebody pauses or goes on for long, what there is of it is looked
at for a stop. All methods but `note` are called in the server's thread.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from bridges.robot_ports import PagePorts
from bridges.web.http.auth import TokenBucket
from bridges.web.http.open_page import Session
from bridges.web.http.wire import SoundPiece, Talk, Talked, Talks
from nodes.msgs import SOUND_BYTES_PER_S, SOUND_RATE_HZ, Sound, SoundSoFar, Speech, Utterance
from runtime.clock import to_ns, to_s
from runtime.errors import ParameterError
from runtime.launch.tables.nodes_table import load_name
from runtime.run_facts import RunFacts
from runtime.serialization.msgspec_cache import from_json
from runtime.supervision.registry import RunInfo

S = TypeVar("S", bound=Sound)

LONGEST_S, SHORTEST_S = 20.0, 0.2
MOST_BYTES = int(LONGEST_S * SOUND_BYTES_PER_S)
LATEST_S = 5.0
"""The most that a page may say that its sound took to be sent."""
SILENT_S, GONE_S = 2.0, 10.0
"""Nobody waits longer for a page that holds its button and sends nothing; so much later nothing more of it is taken."""
REPEAT_S = 0.25
SAME_NS = to_ns(0.05)
"""Words are those of a sound that began as long ago: stamps may cross to another host and back."""
UTTERANCES_PER_S, UTTERANCES_BURST = 1.0, 5.0
LOOKS_APART_NS = to_ns(0.5)
"""At one page, however fast it sends: each look is all that was said until then, to be recognised and recorded."""

Refusal = Literal["", "too_fast", "too_short", "cut_off", "not_heard"]
"""Why an utterance was not passed on: the page says it in its language."""


PAUSE_S = 0.2
"""So much silence after words: perhaps this was all."""
EACH_S = 1.0
"""So often while they go on without a pause."""
QUIET_SHARE = 0.25
"""Of the loudest piece so far: what is softer is a pause. A guess that decides when to look, never what was said."""
QUIETEST = 60.0
"""Root mean square of 16-bit samples; what is softer is no word in any room."""


class PartialRecognition:
    """Takes the pieces of one utterance."""

    def __init__(self) -> None:
        self._loudest = 0.0
        self._quiet = self._since = 0  # samples: since the last word, and since the last look
        self._has_more = False  # than at the last look

    def add(self, samples: NDArray[np.int16]) -> bool:
        """The next piece, some samples at SOUND_RATE_HZ; True where it is time for a look."""
        loudness = float(np.sqrt(np.mean(np.square(samples, dtype=np.float64))))
        self._since += len(samples)
        self._loudest = max(self._loudest, loudness)
        if loudness >= max(QUIETEST, QUIET_SHARE * self._loudest):
            self._has_more, self._quiet = True, 0
        else:
            self._quiet += len(samples)
        is_pause = self._quiet >= PAUSE_S * SOUND_RATE_HZ
        if not self._has_more or (not is_pause and self._since < EACH_S * SOUND_RATE_HZ):
            return False
        self._has_more, self._since = False, 0
        return True


@dataclass(slots=True)
class _Person:
    """What is known of the one who speaks at a page, for as long as it is open."""

    pace: TokenBucket = field(default_factory=lambda: TokenBucket(UTTERANCES_PER_S, UTTERANCES_BURST))
    speaker: str = ""
    person: str = ""  # whoever has this page, whatever their name
    begun_ns: int = 0  # 0: nobody speaks
    last_ns: int = 0  # when the newest piece came
    sound: bytearray = field(default_factory=bytearray)
    number: int = 0  # of this utterance
    looks: PartialRecognition = field(default_factory=PartialRecognition)
    is_look_due: bool = False
    last_look_ns: int = -LOOKS_APART_NS  # of whatever they said
    looked_ns: int = 0  # how old this utterance was taken to be when it was first looked at; 0: not yet
    count: int = 0  # of what was said, or refused
    why: Refusal = ""  # the last of it was refused
    captured_ns: int = 0  # of the last that was passed on
    words: str = ""  # what was understood of it


class PushToTalk:
    """Everybody who speaks at the pages of one node."""

    def __init__(self, ports: PagePorts, run_info: RunFacts, name: str = "") -> None:
        """`name` is that of the node."""
        self._ports = ports
        self._people: dict[str, _Person] = {}
        self._name = name
        self._number = 0
        self._told_ns, self._told_of = 0, ""  # that somebody speaks, and who; 0: that nobody does
        self.is_understood = has_listener(run_info, PagePorts.sound.topic, but=name)

    def handle(self, session: Session, message: Talks, speaker: str, now_ns: int) -> None:
        """One who may speak does so, under that name."""
        person = self._people.setdefault(session.ident, _Person())
        match message:
            case Talk():
                self._begin(session, person, speaker, now_ns)
            case SoundPiece():
                self._add(session, person, message.pcm, now_ns)
            case Talked() if person.begun_ns:
                if message.is_wanted:
                    self._end(session, person, message.ago_s, now_ns)
                else:
                    self._reset(person)
                    self._tell(now_ns)

    def refuse(self, session: Session, message: Talks, why: Refusal) -> None:
        """One who may not speak now tried to, or went on to."""
        person = self._people.setdefault(session.ident, _Person())
        if isinstance(message, Talk) or person.begun_ns:
            self._answer(session, person, why)
            self._tell(self._ports.clock.now_ns())

    def left(self, session: Session) -> None:
        """A page is gone, and with it half a sentence."""
        self._people.pop(session.ident, None)
        self._tell(self._ports.clock.now_ns())

    def beat(self, now_ns: int) -> None:
        """Ten times a second."""
        for person in self._people.values():
            if person.begun_ns and to_s(now_ns - person.last_ns) > GONE_S:
                self._reset(person)
                person.count, person.why = person.count + 1, "cut_off"
        self._tell(now_ns)

    def note(self, heard: Utterance) -> None:
        """What was understood (the node's thread)."""
        for person in tuple(self._people.values()):
            is_near = heard.captured_ns is not None and abs(heard.captured_ns - person.captured_ns) <= SAME_NS
            if heard.speaker == person.speaker and is_near and person.captured_ns:
                person.words = heard.text

    def document(self, session: Session, *, is_told_why: bool) -> dict[str, Any]:
        """Whether speaking is of use, and what became of what was said at this page."""
        deaf = {
            name: (state.why or "no reason told") if is_told_why else "yes"
            for name, port in (("recogniser", self._ports.recogniser), ("microphone", self._ports.microphone))
            if (state := port.latest()) is not None and not state.is_live
        }
        if not is_told_why:
            deaf.pop("microphone", None)  # of the robot: not what this person speaks into
        person = self._people.get(session.ident, _Person())
        return {
            "understood": self.is_understood,
            "deaf": deaf,
            "count": person.count,
            "why": person.why,
            "words": person.words,
        }

    def _begin(self, session: Session, person: _Person, speaker: str, now_ns: int) -> None:
        self._reset(person)
        if not person.pace.allows(now_ns):
            self._answer(session, person, "too_fast")
            return
        person.speaker, person.begun_ns, person.last_ns = speaker, now_ns, now_ns
        person.person = f"{self._name}/{session.ident}"
        self._number += 1
        person.number = self._number
        self._tell(now_ns)

    def _add(self, session: Session, person: _Person, pcm: bytes, now_ns: int) -> None:
        if not person.begun_ns:
            return  # it was under way when it ended
        person.last_ns = now_ns
        person.sound += pcm[: MOST_BYTES - len(person.sound)]
        person.is_look_due |= person.looks.add(np.frombuffer(pcm, np.dtype("<i2")))
        if len(person.sound) >= MOST_BYTES:
            self._end(session, person, 0.0, now_ns)
        elif person.is_look_due and self.is_understood and _length_s(person) >= SHORTEST_S:
            self._look(person, now_ns)

    def _look(self, person: _Person, now_ns: int) -> None:
        if now_ns - person.last_look_ns < LOOKS_APART_NS:
            return  # with one of the next pieces
        person.is_look_due, person.last_look_ns = False, now_ns
        if not person.looked_ns:
            person.words, person.looked_ns = "", _age(person, 0.0, now_ns)
        person.captured_ns = person.looked_ns
        self._ports.so_far.publish(_sound(SoundSoFar, person))

    def _end(self, session: Session, person: _Person, ago_s: float, now_ns: int) -> None:
        if _length_s(person) < SHORTEST_S:
            self._answer(session, person, "too_short")
        else:
            captured_ns = _age(person, ago_s, now_ns)
            if person.looked_ns - captured_ns > SAME_NS:  # the link hung: what was looked at was older than it seemed
                person.looked_ns = 0
            words = person.words if person.looked_ns else ""  # a stop in it may have been understood already
            person.captured_ns = person.looked_ns or captured_ns
            self._ports.sound.publish(_sound(Sound, person))
            self._answer(session, person, "")
            person.words = words
        self._tell(now_ns)

    def _answer(self, session: Session, person: _Person, why: Refusal) -> None:
        self._reset(person)
        person.count, person.why, person.words = person.count + 1, why, ""
        session.wake.set()

    def _reset(self, person: _Person) -> None:
        person.begun_ns, person.sound = 0, bytearray()
        person.looks, person.is_look_due, person.looked_ns = PartialRecognition(), False, 0

    def _tell(self, now_ns: int) -> None:
        """That somebody speaks: at each change, and again while it lasts; so a loudspeaker falls silent."""
        speaks = [one for one in self._people.values() if one.begun_ns and to_s(now_ns - one.last_ns) <= SILENT_S]
        first = min(speaks, key=lambda one: one.begun_ns, default=None)
        if first is None:
            if self._told_ns:
                self._ports.speaking.publish(Speech(speaker=self._told_of, is_speaking=False))
            self._told_ns = 0
        elif not self._told_ns or to_s(now_ns - self._told_ns) >= REPEAT_S:
            self._told_ns, self._told_of = now_ns, first.speaker
            self._ports.speaking.publish(Speech(speaker=first.speaker, is_speaking=True, begun_ns=first.begun_ns))


def _length_s(person: _Person) -> float:
    return len(person.sound) / SOUND_BYTES_PER_S


def _age(person: _Person, ago_s: float, now_ns: int) -> int:
    """When the words began, of which the page says that it was so long ago."""
    length_s = _length_s(person)
    since_s = min(max(ago_s, length_s), length_s + LATEST_S)
    return max(1, min(person.begun_ns, now_ns - to_ns(since_s)))


def _sound(kind: type[S], person: _Person) -> S:
    """All that was said until now."""
    return kind(
        speaker=person.speaker,
        number=person.number,
        captured_ns=person.captured_ns,
        voiced_s=_length_s(person),
        before_s=0.0,
        samples=np.frombuffer(bytes(person.sound), np.dtype("<i2")).astype(np.int16),
        person=person.person,
    )


def has_listener(run_info: RunFacts, topic: str, *, but: str = "") -> bool:
    """Whether a node of this run hears that topic, `but` the one of that name and those that hear everything.

    True where that is not known.
    """
    if not run_info.registry:
        return True
    try:
        run = from_json((Path(run_info.registry) / "run.json").read_bytes(), RunInfo)
    except (OSError, msgspec.MsgspecError):
        return True
    everything = set.intersection(*(set(one.subscribers) for one in run.topics.values())) if run.topics else set()
    named = run.topics.get(topic)
    return named is not None and bool(set(named.subscribers) - everything - {but})


STOP_WORDS = "nodes.interrupts.intent:is_stop"


def load_stop_words(name: str) -> Callable[[str], bool]:
    """What tells whether a sentence means "stop", named as "module:function". Raises UserError where it is none."""
    found = load_name(name)
    if not callable(found):
        raise ParameterError(f"stop_words {name!r} is no function; expected one like {STOP_WORDS}")
    return cast(Callable[[str], bool], found)
