"""`RealtimePlanner`: the planner on a speech-to-speech model, behind OpenAI's Realtime protocol.

It hears people as sound, speaks by itself (`said/sound`, which a `Loudspeaker` plays) and sets subtasks by calling a
tool. It is not the robot's ears: a stop and a "go on" are still understood by a `Recogniser`, since a seat never says
on `heard` what a person has said. What the server understood is told on `planner/understood`, for the record.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from nodes.interrupts.people import RobotVoice
from nodes.models.answers import BudgetError, ModelError, language_problem, settings_from
from nodes.models.budget import Budget, budget_of
from nodes.models.chat_request import data_url
from nodes.models.pace_and_outages import LONGEST_PAUSE_S
from nodes.models.realtime import RealtimeConnection
from nodes.msgs import Feedback, Interrupt, OutOfBudget, Saying, Sound, SoundSoFar, SpokenSound, Utterance
from nodes.planner.model_planner import ASKED_AGAIN, ModelPlanner
from nodes.planner.model_prompt import answer_schema, news, parse, subtask_of, system_prompt, unearned
from nodes.planner.realtime_talk import (
    Ended,
    Fault,
    HeardWords,
    Meaning,
    NotAnswered,
    NotTaken,
    Piece,
    RealtimeTalk,
    ToolCall,
    Words,
)
from nodes.planner.scene_text import report_text
from runtime import (
    RELIABLE,
    Fence,
    ParameterError,
    Publisher,
    QoS,
    Spending,
    Stamped,
    Subscription,
    every,
    needs_real_time,
    on,
    to_ns,
)

DEFAULT_MODEL = "gpt-realtime-2.1"
PUMP_HZ = 40
REPORT_S = 2.0
"""News that nobody said is told at most so often."""
MOST_SPEECHES = 16
ANSWER_TOKENS = 1000
"""What an answer is reckoned to cost at most before it is known: about half a minute of speech."""

MOST_TRIES = 5
"""How often the server is asked for one answer; then a person is asked to say it again."""
BUSY_PAUSE_S = 0.5
FIRST_WORD_WITHIN_S, NEXT_SOUND_WITHIN_S = 20.0, 4.0
"""An answer that has begun and is silent for so long is given up; a loudspeaker waits 5 s for more of a sound."""
SESSION_S = 1500.0
"""Servers end a session after an hour, Azure's after half of one; ours is renewed before, in a quiet moment."""
RENEWED_WITHIN_S = 180.0
"""Where there is no quiet moment, it is renewed all the same; what is being said is then sent from its beginning."""
KEPT_S = 30.0
"""What was said so long ago at most, and not answered, is sent to the next session as sound."""

Speaking = tuple[str, int]
"""One speech: the node that heard it, and when it began."""


class RealtimePlanner(ModelPlanner):
    """Talks with people and sets the subtask.

    Server and model are `base_url` (as "https://api.openai.com/v1") and `model`, or else REALTIME_BASE_URL and
    REALTIME_MODEL; the key is only in REALTIME_API_KEY.
    `voice` is the server's; "" lets it answer in text, which a `Loudspeaker` speaks. `language` as in "en" helps it to
    understand. `hears_robot`: the microphone hears the loudspeaker, so that speech beside the robot's own is sent on
    only when a recogniser found a person's words in it. A session is renewed after `session_s`. There is no virtual
    time with such a server. `memory` and `prompt` are files as those of an `OpenAIPlanner`.
    """

    provenance = "model:realtime"

    speech = Subscription(Sound, "microphone/speech", qos=QoS(required=False, depth=8, lifespan_s=10.0))
    so_far = Subscription(SoundSoFar, "microphone/so_far", qos=QoS(required=False, depth=4, lifespan_s=5.0))

    spoken = Publisher(SpokenSound, "said/sound", qos=RELIABLE)
    understood = Publisher(Utterance, "planner/understood")

    def __init__(
        self,
        model: str = "",
        base_url: str = "",
        voice: str = "marin",
        language: str = "",
        sees: bool = True,
        hears_robot: bool = True,
        max_calls: int = 500,
        speaker: str = "robot",
        persona: str = "",
        session_s: float = SESSION_S,
        memory: str = "",
        prompt: str = "",
    ) -> None:
        if not session_s > 0:
            raise ParameterError(f"realtime planner: session_s is {session_s}; expected a positive number of seconds")
        settings = settings_from(
            "REALTIME", model=model, base_url=base_url, default_model=DEFAULT_MODEL, deadline_s=5.0, max_calls=max_calls
        )
        super().__init__(settings, speaker, sees, persona, memory, prompt)
        self.voice = voice
        self.language = language
        self.hears_robot = hears_robot
        self.budget = Budget(max_calls=max_calls)
        self.talk = RealtimeTalk()
        self.session_s = session_s
        self.connection: RealtimeConnection | None = None
        self.successor: RealtimeConnection | None = None  # opened beside it, to take its place
        self.opened_ns = 0  # when the connection took its place
        self.closing: asyncio.Task[None] | None = None
        self.is_configured_for: object = None
        self.failures = 0  # of connections, in a row
        self.next_try_ns = 0
        self.has_called = False  # the tool, in this answer
        self.may_follow_up = False  # a call without a word, after a person spoke, is given one more answer
        self.refused = 0  # calls in a row that could not be used
        self.wants_answer = False
        self.next_ask_ns = 0
        self.tries = 0  # of one answer
        self.progress_ns = 0  # when the server was asked, or told something of an answer
        self.told: tuple[object, ...] = ()
        self.told_ns = 0
        self.stems: tuple[Stamped[Any], ...] = ()  # what the conversation was told last
        self.listening: Speaking | None = None  # the speech that the server has so far
        self.sent = 0  # samples of it
        self.ended: deque[Speaking] = deque(maxlen=MOST_SPEECHES)  # speeches that were sent whole
        self.doubtful: Stamped[Sound] | None = None  # a whole speech that may be the robot's own
        self.recognised: dict[int, Utterance] = {}  # words that were heard, by when their speech began
        self.followed: deque[int] = deque(maxlen=MOST_SPEECHES)  # when speech began whose end is to come
        self.unanswered: deque[tuple[Stamped[Sound], int]] = deque(maxlen=4)  # committed, and when
        self.speakers: dict[int, tuple[str, int]] = {}  # by commit: who, and when it began
        self.own_voice = RobotVoice()

    def on_start(self) -> None:
        """Raises ParameterError in virtual time."""
        needs_real_time(self, "a speech-to-speech server")
        super().on_start()
        self.spoken.provenance = self.understood.provenance = self.said.provenance
        self.budget = budget_of(self.name, self.run_info, self.settings.max_calls)

    def on_stop(self) -> None:
        open_ones = [one for one in (self.connection, self.successor) if one is not None]
        self.closing = asyncio.ensure_future(_close(open_ones))

    def problems(self) -> list[str]:
        return super().problems() + [problem for problem in (language_problem(self.language),) if problem]

    def spending(self) -> Spending:
        return self.budget.spending(self.settings.model)

    # --- what people say

    @on(so_far)
    def follow(self, sound: Stamped[SoundSoFar]) -> None:
        """Send on what is new of it, so that little is left to be sent at its end."""
        speaking = _speaking(sound)
        if speaking in self.ended:
            return
        if speaking[1] not in self.followed:
            self.followed.append(speaking[1])
        if speaking[1] in self.recognised or not self._may_be_echo(sound.message):
            self._send_sound(speaking, sound.message)

    @on(speech)
    def end_speech(self, sound: Stamped[Sound]) -> None:
        """A person has ended: the server is asked to answer, at once or when words of a person's were found in it."""
        if sound.message.captured_ns in self.followed:
            self.followed.remove(sound.message.captured_ns)
        if self._may_be_echo(sound.message) and sound.message.captured_ns not in self.recognised:
            self.doubtful = sound
        else:
            self._commit(sound)

    @on(ModelPlanner.heard)
    def listen(self, utterance: Stamped[Utterance]) -> None:
        """Words: typed ones are told to the model; of spoken ones it has heard the sound."""
        message = utterance.message
        self.history.heard(message)
        if message.captured_ns is not None:
            self.recognised[message.captured_ns] = message
            _shorten(self.recognised)
        doubtful = self.doubtful
        if doubtful is not None and message.captured_ns == doubtful.message.captured_ns:
            self.doubtful = None
            self._commit(doubtful)
        elif message.captured_ns not in {*self.followed, *(began_ns for _, began_ns in self.ended)}:  # no sound of it
            self._tell_words(message)
            self._want_answer(utterance)

    def _tell_words(self, message: Utterance) -> None:
        self.talk.hear_text(f"{message.speaker}: {message.text}")

    def _commit(self, sound: Stamped[Sound]) -> None:
        self.ended.append(_speaking(sound))
        self.unanswered.append((sound, self.clock.now_ns()))
        self._send_whole(sound)
        if not sound.message.goes_on:  # else its rest is to come
            self._want_answer(sound)

    def _send_whole(self, sound: Stamped[Sound]) -> None:
        message = sound.message
        self._send_sound(_speaking(sound), message)
        self.listening = None
        self.speakers[self.talk.commit()] = (message.speaker, message.captured_ns)
        _shorten(self.speakers)

    def _send_sound(self, speaking: Speaking, sound: Sound) -> None:
        if self.listening != speaking:
            if self.listening is not None:
                self.talk.forget_sound()  # of somebody whose end never came
            self.listening, self.sent = speaking, 0
        self.talk.hear(sound.samples[self.sent :])
        self.sent = max(self.sent, len(sound.samples))

    def _may_be_echo(self, sound: Sound) -> bool:
        times_ns = (self.clock.now_ns(), sound.captured_ns) if self.hears_robot else ()
        return any(map(self.own_voice.plays_at, times_ns))

    def _want_answer(self, stem: Stamped[Any]) -> None:
        self.stems = (*self.stems[-3:], stem)
        self.wants_answer = self.may_follow_up = True
        self.tries = 0
        self.talk.call_off()  # an answer to less than all that was said

    # --- what the robot says and does

    @on(ModelPlanner.saying)
    def notice_saying(self, saying: Saying) -> None:
        """How far its words really got: the model is told, and the record."""
        self.own_voice.speaking(saying, self.clock.now_ns())
        self.history.spoke(saying)
        if saying.phase == "cut":
            self.talk.cut(saying.id, saying.played_s)

    @on(ModelPlanner.robot_said)
    def remember(self, utterance: Utterance) -> None:
        """What the robot said, whether it was this node's idea or the VLM's."""
        trigger = self.context.trigger
        ident = utterance.sound or ("" if trigger is None else trigger.envelope.ident)
        self.history.said(utterance.text, ident)
        if trigger is not None and trigger.envelope.source != self.name:
            self.talk.remember_said(utterance.text)

    @on(ModelPlanner.feedback)
    def notice(self, feedback: Feedback) -> None:
        super().notice(feedback)
        if feedback.status == "failure":
            self.talk.tell(f"[an action failed: {feedback.why}]")

    @on(ModelPlanner.interrupts)
    def interrupted(self, interrupt: Interrupt) -> None:
        super().interrupted(interrupt)
        self.talk.tell(f"[interrupt: {interrupt.depth}, by {interrupt.by}]")

    def on_preempted(self, fence: Fence) -> bool:
        was_busy = self.talk.call_off()
        if was_busy:
            self.history.cancelled()
        return was_busy

    # --- the server

    @every(hz=PUMP_HZ)
    def pump(self) -> None:
        """Take what has come from the server, and send what waits."""
        connection = self.connection
        if connection is None or connection.state == "closed":
            self.talk.outgoing.clear()  # what was said meanwhile stands in the history
            self._connect()
            return
        if connection.state == "opening":
            return
        if self.failures:
            self.failures = 0
            self.log.info("the planner's server is there again")
        self._configure()
        for event in connection.take():
            if str(event.get("type")).startswith("response."):
                self.progress_ns = self.clock.now_ns()
            for meaning in self.talk.take(event):
                self._follow(meaning)
        self._give_up_what_takes_too_long()
        self._renew()
        self._ask()
        if self.connection is not None:
            for event in self.talk.outgoing:
                self.connection.send(event)
        self.talk.outgoing.clear()

    def _give_up_what_takes_too_long(self) -> None:
        if not (awaits := self.talk.awaits):
            return
        limits_s = {"begin": self.settings.deadline_s, "words": FIRST_WORD_WITHIN_S, "more": NEXT_SOUND_WITHIN_S}
        if self.clock.since_s(self.progress_ns) < limits_s[awaits]:
            return
        was_wanted = self.talk.is_answering
        for meaning in self.talk.give_up():
            self._follow(meaning)
        if was_wanted:
            self._ask_again(f"{self.settings.where} sent nothing for {limits_s[awaits]:g} s")

    def _ask_again(self, why: str, after_s: float = 0.0, *, is_busy: bool = False) -> None:
        """An answer did not come: it is asked for again after a while; a person is told, and in the end asked."""
        self.tries += 1
        if self.tries >= MOST_TRIES:
            self.log.warning("no answer of the planner's model: %s; it was asked %d times", why, self.tries)
            self._say_here(self.texts.say.unusable)
            self.tries, self.unanswered = 0, deque(maxlen=self.unanswered.maxlen)
            return
        pause_s = max(after_s, BUSY_PAUSE_S if is_busy else min(2.0 ** (self.tries - 1), LONGEST_PAUSE_S))
        self.wants_answer, self.next_ask_ns = True, self.clock.now_ns() + to_ns(pause_s)
        self.log.warning("no answer of the planner's model: %s; it is asked again in %.1f s", why, pause_s)
        if self.tries == (3 if is_busy else 1):
            self._say_here(self.texts.say.failing)

    def _renew(self) -> None:
        """Take a new session before the server ends this one: in a quiet moment, or soon."""
        age_s = self.clock.since_s(self.opened_ns)
        now_ns = self.clock.now_ns()
        if age_s < self.session_s or self.budget.spent:
            return
        if self.successor is None and now_ns >= self.next_try_ns:
            self.successor = RealtimeConnection(self.settings)
        successor = self.successor
        if successor is None or successor.state == "opening":
            return
        if successor.state == "closed":
            self.successor, self.next_try_ns = None, now_ns + to_ns(LONGEST_PAUSE_S)
            self.log.warning("the planner's session cannot be renewed yet: %s", successor.fault)
            return
        is_quiet = not (self.listening or self.talk.awaits or self.wants_answer or self.own_voice.plays_at(now_ns))
        if is_quiet or age_s > self.session_s + RENEWED_WITHIN_S:
            before, self.successor = self.connection, None
            self._take(successor)
            self._configure()
            self.closing = asyncio.ensure_future(_close([before] if before is not None else []))
            self.log.info("the planner's session was renewed after %.0f s", age_s)

    @every(hz=0.5)
    def repeat(self) -> None:
        """Publish the subtask that stands, for a VLM that was restarted or waits for a plan after an interrupt."""
        if not (self.talk.is_answering or self.wants_answer or self.listening):
            self._stand()

    def _connect(self) -> None:
        now_ns = self.clock.now_ns()
        if self.connection is not None:
            fault, self.connection = self.connection.fault, None
            self.failures += 1
            pause_s = min(2.0 ** (self.failures - 1), LONGEST_PAUSE_S)
            self.next_try_ns = now_ns + to_ns(pause_s)
            self.log.warning("no planner's server: %s; the next try is in %.0f s", fault, pause_s)
            if self.failures == 1:
                self._say_here(self.texts.say.failing)
        if now_ns < self.next_try_ns or self.budget.spent:
            return
        if self.successor is not None:
            connection, self.successor = self.successor, None
        else:
            connection = RealtimeConnection(self.settings)
        self._take(connection)

    def _take(self, connection: RealtimeConnection) -> None:
        """From now on the conversation is this one's; what was not answered in the one before is asked again."""
        self.wants_answer = self.wants_answer or self.talk.is_answering
        for meaning in self.talk.give_up():
            self._follow(meaning)
        self.is_configured_for = None
        self.connection, self.opened_ns = connection, self.clock.now_ns()

    def _configure(self) -> None:
        around = self._around()
        fitting = (around.skills, around.world.places)
        if self.is_configured_for == fitting:
            return
        is_first, self.is_configured_for = self.is_configured_for is None, fitting
        if is_first:
            self.talk, self.listening = RealtimeTalk(), None
            self.speakers.clear()
        self.talk.configure(
            system_prompt(around, self.persona, speaks=True, texts=self.texts),
            answer_schema(around, speaks=True),
            voice=self.voice,
            language=self.language,
        )
        if not is_first:
            return
        if self.history.text():
            self.talk.tell(f"What was said and what happened so far:\n{self.history.text()}")
        for sound, sent_ns in self.unanswered:
            if self.clock.since_s(sent_ns) < KEPT_S:
                self._send_whole(sound)
                self.wants_answer = True

    def _ask(self) -> None:
        """Ask for an answer where somebody spoke, or where something else is new."""
        if self.talk.awaits or self.clock.now_ns() < self.next_ask_ns:
            return
        description = self.description.latest()
        scene = self.scene.latest()
        now = news(self.history, description, scene)
        is_news = now != self.told and self.clock.since_s(self.told_ns) >= REPORT_S and self.current is not None
        if not (self.wants_answer or is_news):
            return
        self.wants_answer, self.told = False, now
        self.told_ns = self.progress_ns = self.clock.now_ns()
        try:
            self.budget.take_call(self.settings.where, longest_answer=ANSWER_TOKENS)
        except BudgetError as problem:
            self._tell_spent(problem)
            return
        except ModelError as problem:
            self.log.warning("%s", problem)
            return
        image, scene = self._shown()
        if image is not None:
            try:
                self.talk.see(data_url(image))
            except ValueError as problem:
                self.log.warning("%s", problem)
        self.talk.tell(report_text(self.current, description, scene, self.taught))
        self.talk.ask()

    def _follow(self, meaning: Meaning) -> None:
        if isinstance(meaning, Words | ToolCall) or (isinstance(meaning, Piece) and len(meaning.samples)):
            self.unanswered.clear()
        match meaning:
            case Piece():
                piece = SpokenSound(id=meaning.id, text=meaning.text, samples=meaning.samples, is_last=meaning.is_last)
                self.spoken.publish(piece, stems_from=self.stems)
            case Words():
                said = Utterance(speaker=self.speaker, text=meaning.text, sound=meaning.sound)
                self.said.publish(said, stems_from=self.stems)
            case HeardWords():
                speaker, began_ns = self.speakers.get(meaning.turn, ("person", 0))
                told = Utterance(speaker=speaker, text=meaning.text, captured_ns=began_ns or None)
                self.understood.publish(told, stems_from=self.stems)
            case ToolCall():
                self._act(meaning)
            case Ended():
                self._end_answer(meaning)
            case NotAnswered():
                self._ask_again(meaning.text, meaning.after_s, is_busy=meaning.is_busy)
            case NotTaken(turn=0):
                self.sees = False
                self.log.warning("the planner's server takes no images: %s", meaning.text)
                self._say_here(self.texts.say.blind)
            case NotTaken():
                self._not_taken(meaning)
            case Fault():
                self.log.warning("the planner's server: %s", meaning.text)

    def _end_answer(self, ended: Ended) -> None:
        self.budget.count_tokens(ended.prompt_tokens, ended.completion_tokens)
        has_called, self.has_called = self.has_called, False
        if ended.is_void:
            return
        if not ended.fault:
            self.tries = 0
            if self.may_follow_up and not ended.has_spoken:
                self.wants_answer, self.may_follow_up = True, False
        elif ended.may_pass and not (has_called or ended.has_spoken):
            self._ask_again(ended.fault)
        else:
            self.log.warning("the planner's model: %s", ended.fault)
            if not ended.has_spoken:
                self._say_here(self.texts.say.unusable)

    def _not_taken(self, refused: NotTaken) -> None:
        """What a person said did not arrive as sound: its words are told, now or when they are recognised."""
        speaker, began_ns = self.speakers.pop(refused.turn, ("person", 0))
        self.log.warning("the planner's server did not take what %s said: %s", speaker, refused.text)
        for speaking in [one for one in self.ended if one[1] == began_ns]:
            self.ended.remove(speaking)
        for kept in [one for one in self.unanswered if one[0].message.captured_ns == began_ns]:
            self.unanswered.remove(kept)
        if began_ns in self.recognised:
            self._tell_words(self.recognised[began_ns])
            self.wants_answer = True

    def _act(self, call: ToolCall) -> None:
        try:
            answer = parse(call.arguments, self._around())
            if why := unearned(answer, self.current, self.description.latest()):
                raise ModelError(why)
        except ModelError as problem:
            self.refused += 1
            self.log.warning("a call cannot be used: %s", problem)
            if self.refused <= ASKED_AGAIN:
                self.talk.answer_call(call, f"Refused: {problem}. Call it again, or ask the person.")
                self.wants_answer = True
            else:
                self.refused = 0  # whoever says it otherwise is answered with as much patience
                self.talk.answer_call(call, f"Refused: {problem}.")
                self._say_here(self.texts.say.unusable)
            return
        self.refused, self.has_called = 0, True
        self._learn(answer)
        if answer.do != "keep":
            self._set(subtask_of(answer, ""))
        self.talk.answer_call(call, "Done." if answer.do == "keep" else "The robot was told.")

    def _stand(self) -> None:
        if self.current is not None:
            self.subtask.publish(self.current, stems_from=self.stems)

    def _say_here(self, text: str) -> None:
        """Words of the robot's own, which a loudspeaker makes sound."""
        self.said.publish(Utterance(speaker=self.speaker, text=text), stems_from=self.stems)

    def _tell_spent(self, problem: BudgetError) -> None:
        self.out_of_budget.publish(OutOfBudget(seat="planner", why=problem.spent))
        self.log.error("nothing more is planned: %s", problem.spent)
        self._say_here(self.texts.say.spent)


async def _close(connections: list[RealtimeConnection]) -> None:
    for connection in connections:
        await connection.close()


def _shorten(kept: dict[int, Any]) -> None:
    while len(kept) > MOST_SPEECHES:
        del kept[next(iter(kept))]


def _speaking(sound: Stamped[Sound] | Stamped[SoundSoFar]) -> Speaking:
    return sound.envelope.source, sound.message.captured_ns
