"""`Recogniser`: what somebody said, as text on `heard`: by a speech server here or in the cloud, or by a program.

Speech so far is recognised, too, when the speaker pauses or goes on for long: a stop in it is passed on at once, and
where nothing but silence follows, its text is that of the whole, which then takes no further time. What the robot says
itself is not heard as a person's words. Of a word of alarm that the microphone spotted it tells, once it has the words,
whether they explain it.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections import deque
from typing import Any, Literal

import msgspec

from nodes.interrupts.intent import says_yes, understand
from nodes.interrupts.people import FEWEST_WORDS, HearsPeople
from nodes.interrupts.phrase_matcher import load, words_of
from nodes.models.answers import ModelError, language_problem, settings_from
from nodes.models.budget import Budget, budget_of
from nodes.msgs import SOUND_RATE_HZ, Alarm, RecogniserState, Sound, SoundSoFar, Utterance
from nodes.voice.hearing import whisper
from nodes.voice.hearing.alarm_spotter import SURE_FROM
from nodes.voice.hearing.recognition import Recognition, clean, recognition
from nodes.voice.hearing.segments import SHORTEST_VOICED_S
from nodes.voice.program import ProgramError, command_problems
from runtime import RELIABLE, URGENT, ParameterError, Publisher, QoS, Spending, Stamped, Subscription, on, to_ns

DEFAULT_MODEL = "whisper-1"
LIFESPAN_S = 10.0
"""What was said longer ago and not recognised yet is not recognised any more."""
MOST_SAID = 16
MOST_CALLS = 5000
MOST_PARTS = 3
"""Of speech that was cut since it is too long: the words of so many are joined, about a minute."""
LONGEST_WHOLE_S = 200.0
LOOKS_SHARE = 0.8
"""Of the calls; the others are kept for whole speech: whoever talks on and on makes nobody deaf the sooner."""

Speaking = tuple[str, int]
"""One speech, by the node that heard it and when it began: numbers begin anew where a microphone is started again."""


_ALIKE = re.compile(r"stop|halt|fr[eo]e?z|ouch|\bow\b|hurt|mov(e|ing)\b|emergenc|hold|careful", re.IGNORECASE)
"""What the recogniser writes where it heard a word of alarm; words that are understood say what was meant by it."""


def verdict(sureness: float, text: str | None, *, is_over: bool) -> Literal["refuted", "stands"] | None:
    """What the words of a speech make of a word of alarm that was spotted in it; None: that is not known yet.

    `text` is None where the recogniser failed, and "" where it found no words; `is_over`: no more words will come.
    """
    is_explained = bool(text) and bool(_ALIKE.search(text or "")) and not understand(text or "").is_unclear
    if sureness >= SURE_FROM and not is_explained:
        return "stands"
    return "refuted" if is_over or text else None


class Recogniser(HearsPeople):
    """Publishes on `heard` what is said on `microphone/speech`.

    With `by = "api"` it asks a server with OpenAI's `/audio/transcriptions`, such as Whisper here or in the cloud;
    model, address and key also as SPEECH_MODEL, SPEECH_BASE_URL and SPEECH_API_KEY. With "command" a program reads WAV
    and writes text. With "whisper" it is done in this process; `model` is a folder, or "" for that of the extra
    "models", which knows English only.
    "auto" is "whisper" where that extra is installed and no server is named, else "api". `looks_ahead`: speech so far
    is recognised as well, about one call more for each utterance. `language` as in "en". `latency_s` is how long an
    answer takes in virtual time.
    """

    role = "ears"

    speech = Subscription(Sound, "microphone/speech", qos=QoS(depth=8, lifespan_s=LIFESPAN_S))
    so_far = Subscription(SoundSoFar, "microphone/so_far", qos=QoS(required=False, depth=2, lifespan_s=2.0))
    alarms = Subscription(Alarm, "alarm", qos=QoS(required=False))
    heard = Publisher(Utterance, "heard", qos=RELIABLE)
    alarm_meant = Publisher(Alarm, "alarm", qos=URGENT)
    state = Publisher(RecogniserState, "recogniser")

    def __init__(
        self,
        by: Literal["api", "auto", "command", "whisper"] = "api",
        model: str = "",
        base_url: str = "",
        command: str = "",
        language: str = "",
        looks_ahead: bool = True,
        deadline_s: float = 5.0,
        max_calls: int = MOST_CALLS,
        latency_s: float = 0.4,
    ) -> None:
        if by not in ("api", "auto", "command", "whisper"):
            raise ParameterError(f"recogniser: by is {by!r}; known: api, auto, command, whisper")
        is_server = bool(base_url or os.environ.get("SPEECH_BASE_URL") or os.environ.get("SPEECH_API_KEY"))
        self.is_auto = by == "auto"
        self.by = by if by != "auto" else "whisper" if whisper.is_installed() and not is_server else "api"
        self.folder = model if self.by == "whisper" else ""
        self.command = command
        self.language = language
        self.looks_ahead = looks_ahead
        self.latency_s = latency_s
        self.settings = settings_from(
            "SPEECH", model=model, base_url=base_url, default_model=DEFAULT_MODEL, deadline_s=deadline_s,
            max_calls=max_calls,
        )  # fmt: skip
        self.budget = Budget(max_calls=max_calls)
        self.recognition: Recognition | None = None
        self.so_far_text: tuple[Speaking, float, asyncio.Future[str | None]] | None = None
        self.ended: deque[Speaking] = deque(maxlen=MOST_SAID)
        self.recognised: deque[Speaking] = deque(maxlen=MOST_SAID)  # as a whole: an early look is too late then
        self.parts: dict[str, list[Utterance]] = {}  # of speech that goes on, by its person
        self.told_early: deque[tuple[Speaking, str]] = deque(maxlen=MOST_SAID)  # what was passed on already
        self.spotted: dict[Speaking, Alarm] = {}  # the surest of a speech, until its words are known
        self.fault = ""
        self.has_told_scarce = False
        self.closing: asyncio.Task[None] | None = None

    def problems(self) -> list[str]:
        """What its parameters and this environment lack."""
        found = [] if self.latency_s >= 0 else [f"latency_s is {self.latency_s}; expected 0 or more"]
        if self.by == "command":
            task = "reads WAV and writes text, such as a script around whisper.cpp"
            return found + command_problems(self.command, task)
        if self.by == "whisper":
            lacking = whisper.folder_problems(self.folder)
            return found + (lacking or [one for one in (whisper.language_problem(self.folder, self.language),) if one])
        found += [problem for problem in (language_problem(self.language),) if problem]
        lacking = self.settings.problems()
        if lacking and self.is_auto:
            lacking = [
                type(problem)(f"{problem}; or {whisper.INSTALL} recognises speech on this machine")
                for problem in lacking
            ]
        return found + lacking

    def model_findings(self, *, is_timed: bool) -> list[tuple[Literal["ok", "note", "problem"], str]]:
        """Return where the weights come from, under which licence, and which languages they know."""
        return [("note", text) for text in (whisper.findings_of(self.folder) if self.by == "whisper" else [])]

    def parameter_notes(self) -> list[str]:
        """Return that other languages are not understood, where nobody has said that English is enough."""
        is_told = self.by != "whisper" or bool(self.folder or self.language)
        return (
            [] if is_told else [f'{whisper.ENGLISH_ONLY}; {whisper.OTHERS}; language = "en" says that it is meant so']
        )

    def on_start(self) -> None:
        load()  # the phrase tables
        self.heard.provenance = f"script:{self.command}" if self.by == "command" else f"model:{self._model_name()}"
        self.budget = budget_of(self.name, self.run_info, self.settings.max_calls)
        if self.by == "whisper":
            self.recognition = whisper.Whisper(self.folder, language=self.language, deadline_s=self.settings.deadline_s)
            if not self.clock.is_virtual:
                self.recognition.begin()
            return
        self.recognition = recognition(
            self.command if self.by == "command" else "",
            self.settings,
            language=self.language,
            keep_open=not self.clock.is_virtual,
            budget=self.budget,
        )

    def _model_name(self) -> str:
        return (self.folder or "whisper-tiny.en") if self.by == "whisper" else self.settings.model

    def on_stop(self) -> None:
        if isinstance(self.recognition, whisper.Whisper):
            self.recognition.end()
        elif self.recognition is not None and not self.clock.is_virtual:  # there each call has a connection of its own
            self.closing = asyncio.ensure_future(self.recognition.close())

    def spending(self) -> Spending:
        return self.budget.spending(self.command if self.by == "command" else self._model_name())

    @on(alarms)
    def note(self, alarm: Alarm) -> None:
        """Remember a spotted alarm until the words of its speech are known."""
        if alarm.phase != "spotted":
            return
        speaking = _speaking(self.context.trigger, alarm)
        before = self.spotted.pop(speaking, None)
        self.spotted[speaking] = alarm if before is None or alarm.sureness >= before.sureness else before
        while len(self.spotted) > MOST_SAID:
            del self.spotted[next(iter(self.spotted))]

    @on(so_far)
    async def look(self, sound: SoundSoFar) -> None:
        """Pass on a stop before its speaker has ended."""
        speaking = _speaking(self.context.trigger, sound)
        if not self.looks_ahead or speaking in self.ended or self._is_scarce():
            return
        answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self.so_far_text = (speaking, sound.voiced_s, answer)
        text = None
        try:
            text = await self.text_of(sound)
        finally:
            answer.set_result(text)
        if speaking in self.recognised:
            return
        if text and understand(text).wants == "stop" and not self._is_echo(text):
            self.told_early.append((speaking, text))
            self._pass_on(sound, text)
        self._judge(speaking, sound, text, is_over=False)

    @on(speech)
    async def understand_speech(self, sound: Sound) -> None:
        """Pass on the whole, but for what has been passed on already."""
        speaking = _speaking(self.context.trigger, sound)
        self.ended.append(speaking)
        text: str | None = None
        if self.so_far_text is not None and self.so_far_text[:2] == (speaking, sound.voiced_s):
            text = await asyncio.shield(self.so_far_text[2])  # nothing was added but silence; it is the other handler's
        if text is None and (sound.goes_on or sound.voiced_s >= SHORTEST_VOICED_S):
            text = await self.text_of(sound)
        if text:
            self.recognised.append(speaking)
        is_new = bool(text) and (speaking, text) not in self.told_early and not self._is_echo(text or "")
        self._join(sound, text if is_new and text else "")
        self._judge(speaking, sound, text, is_over=True)

    def _judge(self, speaking: Speaking, sound: Sound, text: str | None, *, is_over: bool) -> None:
        """Tell what these words make of an alarm that was spotted in their sound."""
        alarm = self.spotted.get(speaking)
        if alarm is None or (alarm.ended_ns > _end_ns(sound) and not is_over):
            return
        is_echo = bool(text) and self._is_echo(text or "")
        is_stop = not is_echo and bool(text) and understand(text or "").wants == "stop"
        phase = "refuted" if is_echo else verdict(alarm.sureness, text, is_over=is_over)
        if phase is None and not is_stop:
            return
        del self.spotted[speaking]
        if phase is not None and not is_stop:  # a stop by its words needs no more
            person = sound.person or f"{speaking[0]}/{alarm.speaker}"
            meant = msgspec.structs.replace(alarm, phase=phase, person=person)  # type: ignore[type-var]  # a Struct at run time
            self.alarm_meant.publish(meant)

    def _join(self, sound: Sound, text: str) -> None:
        """Pass on what was said, with what was said before where it was cut; a stop never waits for its rest."""
        said = self._utterance(sound, text)
        parts = self.parts.pop(said.person, [])
        if parts and sound.captured_ns - (parts[0].captured_ns or 0) > to_ns(LONGEST_WHOLE_S):
            self._publish_joined(parts)  # its rest never came
            parts = []
        parts += [said] if text else []
        is_stop = bool(text) and understand(text).wants == "stop"
        if sound.goes_on and len(parts) < MOST_PARTS and not is_stop:
            self.parts[said.person] = parts
        elif parts:
            self._publish_joined(parts)

    def _publish_joined(self, parts: list[Utterance]) -> None:
        whole = clean(" ".join(part.text for part in parts))
        self.heard.publish(msgspec.structs.replace(parts[0], text=whole))  # type: ignore[type-var]  # a Struct at run time

    def _pass_on(self, sound: Sound, text: str) -> None:
        self.heard.publish(self._utterance(sound, text))

    def _utterance(self, sound: Sound, text: str) -> Utterance:
        person = sound.person or f"{_speaking(self.context.trigger, sound)[0]}/{sound.speaker}"
        return Utterance(speaker=sound.speaker, text=text, captured_ns=sound.captured_ns, person=person)

    async def text_of(self, sound: Sound) -> str | None:
        """The words; "" where there are none, None where that is not known."""
        assert self.recognition is not None
        asked = self.recognition.text_of(sound.samples.tobytes())
        try:
            text = await self.clock.external(asked, self.latency_s)
        except (ModelError, ProgramError) as problem:
            self._tell(str(problem))
            return None
        self._tell("")
        return text

    def _is_scarce(self) -> bool:
        """Whether so few calls are left that none is spent on speech so far any more."""
        most = self.budget.max_calls
        if not most or self.budget.calls < LOOKS_SHARE * most:
            return False
        if not self.has_told_scarce:
            self.has_told_scarce = True
            self.log.warning("most of the %d calls are made: from now on a stop is understood at its end only", most)
        return True

    def _is_echo(self, text: str) -> bool:
        """Whether the robot has just said this. What would lift a stop is passed on, and answered: nobody counts it."""
        meaning = understand(text)
        if len(words_of(text)) < FEWEST_WORDS or meaning.lifts_stop or meaning.takes_back or says_yes(text):
            return False
        return self.people.voice.has_just_said(text, self.clock.now_ns())

    def _tell(self, fault: str) -> None:
        """Once for each change: as long as nothing is recognised, the robot is deaf, and people should know."""
        if bool(fault) is bool(self.fault) and self.state.sent:
            return
        if fault:
            self.log.warning("the robot does not understand what is said: %s", fault)
        elif self.fault:
            self.log.info("the robot understands again what is said")
        self.fault = fault
        self.state.publish(RecogniserState(is_live=not fault, why=fault))


def _end_ns(sound: Sound) -> int:
    """When the last of its samples was taken."""
    return sound.captured_ns + to_ns(len(sound.samples) / SOUND_RATE_HZ - sound.before_s)


def _speaking(trigger: Stamped[Any] | None, sound: Sound | Alarm) -> Speaking:
    """The speech that is handled now."""
    return "" if trigger is None else trigger.envelope.source, sound.captured_ns
