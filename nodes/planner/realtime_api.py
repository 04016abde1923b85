"""`RealtimePlanner`: the planner on a speech-to-speech model, behind OpenAI's Realtime protocol.

It hears people as sound, speaks by itself (`said/sound`, which a `Loudspeaker` plays) and sets subtasks by calling a
tool. It is not the robot's ears: a stop and a "go on" are still understood by a `Recogniser`, since a seat never says
on `heard` what a person has said. What the server understood is told on `planner/understood`, for the record.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from nodes.models.answers import BudgetError, ModelError, settings_from
from nodes.models.budget import Budget, budget_of
from nodes.models.chat_request import data_url
from nodes.models.realtime import RealtimeConnection
from nodes.planner.model_planner import ASKED_AGAIN, ModelPlanner
from nodes.planner.model_prompt import (
    answer_schema,
    news,
    parse,
    subtask_of,
    system_prompt,
    words,
)
from nodes.planner.realtime_talk import Ended, Fault, HeardWords, Meaning, Piece, RealtimeTalk, ToolCall, Words
from nodes.planner.scene_text import report_text
from runtime import RELIABLE, Fence, ParameterError, Publisher, QoS, Spending, Stamped, Subscription, every, on, to_ns
from runtime.msgs import (
    Feedback,
    Interrupt,
    OutOfBudget,
    Saying,
    Sound,
    SoundSoFar,
    SpokenSound,
    Utterance,
)

DEFAULT_MODEL = "gpt-realtime-2.1"
PUMP_HZ = 40
REPORT_S = 2.0
"""News that nobody said is told at most so often."""
LONGEST_PAUSE_S = 20.0
ECHO_S = 0.5
"""What began so soon after the robot's last word may be its end, in the room and in the microphone."""
LONGEST_SAYING_S = 30.0
MOST_SPEECHES = 16
ANSWER_TOKENS = 1000
"""What an answer is reckoned to cost at most before it is known: about half a minute of speech."""

Speaking = tuple[str, int]
"""One speech: the node that heard it, and when it began."""


class RealtimePlanner(ModelPlanner):
    """Talks with people and sets the subtask.

    Server and model are `base_url` (as "https://api.openai.com/v1") and `model`, or else REALTIME_BASE_URL and
    REALTIME_MODEL; the key is only in REALTIME_API_KEY.
    `voice` is the server's; "" lets it answer in text, which a `Loudspeaker` speaks. `language` as in "en" helps it to
    understand. `hears_robot`: the microphone hears the loudspeaker, so that speech beside the robot's own is sent on
    only when a recogniser found a person's words in it. There is no virtual time with such a server.
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
    ) -> None:
        settings = settings_from(
            "REALTIME", model=model, base_url=base_url, default_model=DEFAULT_MODEL, deadline_s=5.0, max_calls=max_calls
        )
        super().__init__(settings, speaker, sees, persona)
        self.voice = voice
        self.language = language
        self.hears_robot = hears_robot
        self.budget = Budget(max_calls=max_calls)
        self.talk = RealtimeTalk()
        self.connection: RealtimeConnection | None = None
        self.closing: asyncio.Task[None] | None = None
        self.is_configured_for: object = None
        self.failures = 0  # of connections, in a row
        self.next_try_ns = 0
        self.has_called = False  # the tool, in this answer
        self.may_follow_up = False  # a call without a word, after a person spoke, is given one more answer
        self.refused = 0  # calls in a row that could not be used
        self.wants_answer = False
        self.told: tuple[object, ...] = ()
        self.told_ns = 0
        self.stems: tuple[Stamped[Any], ...] = ()  # what the conversation was told last
        self.listening: Speaking | None = None  # the speech that the server has so far
        self.sent = 0  # samples of it
        self.ended: deque[Speaking] = deque(maxlen=MOST_SPEECHES)  # speeches that were sent whole
        self.doubtful: Stamped[Sound] | None = None  # a whole speech that may be the robot's own
        self.recognised: deque[int] = deque(maxlen=MOST_SPEECHES)  # when the speech began whose words were heard
        self.speakers: dict[int, tuple[str, int]] = {}  # by commit: who, and when it began
        self.is_speaking_until_ns = 0  # the robot
        self.spoke_until_ns: int | None = None

    def on_start(self) -> None:
        """Raises ParameterError where the server cannot be asked, or time is virtual."""
        if self.clock.is_virtual:
            raise ParameterError(
                f"{self.name}: a speech-to-speech server does not wait for virtual time; run without --virtual"
            )
        super().on_start()
        self.spoken.provenance = self.understood.provenance = self.said.provenance
        self.budget = budget_of(self.name, self.run_info, self.settings.max_calls)

    def on_stop(self) -> None:
        if self.connection is not None:
            self.closing = asyncio.ensure_future(self.connection.close())

    def spending(self) -> Spending:
        return self.budget.spending(self.settings.model)

    # --- what people say

    @on(so_far)
    def follow(self, sound: Stamped[SoundSoFar]) -> None:
        """Send on what is new of it, so that little is left to be sent at its end."""
        speaking = _speaking(sound)
        if speaking not in self.ended and not self._may_be_echo(sound.message):
            self._send_sound(speaking, sound.message)

    @on(speech)
    def end_speech(self, sound: Stamped[Sound]) -> None:
        """A person has ended: the server is asked to answer, at once or when words of a person's were found in it."""
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
            self.recognised.append(message.captured_ns)
        doubtful = self.doubtful
        if doubtful is not None and message.captured_ns == doubtful.message.captured_ns:
            self.doubtful = None
            self._commit(doubtful)
        elif message.captured_ns is None or all(began_ns != message.captured_ns for _, began_ns in self.ended):
            self.talk.hear_text(f"{message.speaker}: {message.text}")
            self._want_answer(utterance)

    def _commit(self, sound: Stamped[Sound]) -> None:
        message = sound.message
        speaking = _speaking(sound)
        self._send_sound(speaking, message)
        self.ended.append(speaking)
        self.listening = None
        self.speakers[self.talk.commit()] = (message.speaker, message.captured_ns)
        while len(self.speakers) > MOST_SPEECHES:
            self.speakers.pop(next(iter(self.speakers)))
        self._want_answer(sound)

    def _send_sound(self, speaking: Speaking, sound: Sound) -> None:
        if self.listening != speaking:
            if self.listening is not None:
                self.talk.forget_sound()  # of somebody whose end never came
            self.listening, self.sent = speaking, 0
        self.talk.hear(sound.samples[self.sent :])
        self.sent = max(self.sent, len(sound.samples))

    def _may_be_echo(self, sound: Sound) -> bool:
        if not self.hears_robot:
            return False
        if self.clock.now_ns() < self.is_speaking_until_ns:
            return True
        return self.spoke_until_ns is not None and sound.captured_ns < self.spoke_until_ns + to_ns(ECHO_S)

    def _want_answer(self, stem: Stamped[Any]) -> None:
        self.stems = (*self.stems[-3:], stem)
        self.wants_answer = self.may_follow_up = True
        self.talk.call_off()  # an answer to less than all that was said

    # --- what the robot says and does

    @on(ModelPlanner.saying)
    def notice_saying(self, saying: Saying) -> None:
        """How far its words really got: the model is told, and the record."""
        now_ns = self.clock.now_ns()
        if saying.phase == "begun":
            self.is_speaking_until_ns = now_ns + to_ns(LONGEST_SAYING_S)
            return
        self.is_speaking_until_ns, self.spoke_until_ns = 0, now_ns
        self.history.spoke(saying)
        if saying.phase == "cut" and self.talk.cut(saying.id, saying.played_s):
            self.talk.call_off()

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
            for meaning in self.talk.take(event):
                self._follow(meaning)
        self._ask()
        for event in self.talk.outgoing:
            connection.send(event)
        self.talk.outgoing.clear()

    @every(hz=0.5)
    def repeat(self) -> None:
        """Publish the subtask that stands, for a VLM that was restarted or waits for a plan after an interrupt."""
        if not self.talk.is_answering:
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
                self._say_here(words().say.failing)
        if now_ns < self.next_try_ns or self.budget.spent:
            return
        self.talk = RealtimeTalk()
        self.is_configured_for, self.listening, self.doubtful = None, None, None
        self.connection = RealtimeConnection(self.settings)

    def _configure(self) -> None:
        around = self._around()
        fitting = (around.skills, around.world.places)
        if self.is_configured_for == fitting:
            return
        is_first, self.is_configured_for = self.is_configured_for is None, fitting
        self.talk.configure(
            system_prompt(around, self.persona, speaks=True),
            answer_schema(around, speaks=True),
            voice=self.voice,
            language=self.language,
        )
        if is_first and self.history.text():
            self.talk.tell(f"What was said and what happened so far:\n{self.history.text()}")

    def _ask(self) -> None:
        """Ask for an answer where somebody spoke, or where something else is new."""
        if self.talk.is_answering:
            return
        description = self.description.latest()
        now = news(self.history, description)
        is_news = now != self.told and self.clock.since_s(self.told_ns) >= REPORT_S and self.current is not None
        if not (self.wants_answer or is_news):
            return
        self.wants_answer, self.told, self.told_ns = False, now, self.clock.now_ns()
        try:
            self.budget.take_call(self.settings.where, longest_answer=ANSWER_TOKENS)
        except BudgetError as problem:
            self._tell_spent(problem)
            return
        except ModelError as problem:
            self.log.warning("%s", problem)
            return
        if self.sees and (image := self.image.latest()) is not None:
            try:
                self.talk.see(data_url(image))
            except ValueError as problem:
                self.log.warning("%s", problem)
        self.talk.tell(report_text(self.current, description, self.scene.latest()))
        self.talk.ask()

    def _follow(self, meaning: Meaning) -> None:
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
                self.budget.count_tokens(meaning.prompt_tokens, meaning.completion_tokens)
                if self.has_called and self.may_follow_up and not meaning.has_spoken:
                    self.wants_answer, self.may_follow_up = True, False
                self.has_called = False
                if meaning.fault:
                    self.log.warning("the planner's model: %s", meaning.fault)
                    if not meaning.has_spoken:
                        self._say_here(words().say.unusable)
            case Fault():
                self.log.warning("the planner's server: %s", meaning.text)

    def _act(self, call: ToolCall) -> None:
        try:
            answer = parse(call.arguments, self._around())
        except ModelError as problem:
            self.refused += 1
            self.log.warning("a call cannot be used: %s", problem)
            if self.refused <= ASKED_AGAIN:
                self.talk.answer_call(call, f"Refused: {problem}. Call it again, or ask the person.")
                self.wants_answer = True
            else:
                self.talk.answer_call(call, f"Refused: {problem}.")
                self._say_here(words().say.unusable)
            return
        self.refused, self.has_called = 0, True
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
        self._say_here(words().say.spent)


def _speaking(sound: Stamped[Sound] | Stamped[SoundSoFar]) -> Speaking:
    return sound.envelope.source, sound.message.captured_ns
