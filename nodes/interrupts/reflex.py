"""`Reflex`: turns what is heard and felt into an interrupt within one hop, before any model has seen it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Literal

import msgspec

from nodes.interrupts.hold_seconds import ALARM_HOLD_S, HOLD_S
from nodes.interrupts.intent import says_yes, understand
from nodes.interrupts.people import ROBOT, HearsPeople, Judged
from nodes.interrupts.phrase_matcher import clipped, load, words_of
from nodes.msgs import (
    Alarm,
    AnswerCode,
    Cause,
    GuardAnswer,
    GuardState,
    HeldOrder,
    Interrupt,
    RobotState,
    SceneDescription,
    Utterance,
)
from runtime import RELIABLE, URGENT, Publisher, QoS, Subscription, on, to_s

Depth = Literal["amend", "replan", "stop", "resume", "hold"]

TAKE_BACK_S = 30.0
"""How long a stop may be taken back as a false alarm, s; after that "go on" resumes, and everything is decided anew."""
MOST_STOPS = 64
AGAIN = "Please say that again."
"""What the robot says to words that may have been its own. None of its sentences has a word that lifts a stop."""

REFUSALS: dict[AnswerCode, str] = {
    "not_a_person": "I wait for a person beside me to say so.",
    "too_early": f"I stopped after you said that. {AGAIN}",
    "too_late": f"I heard that too late. {AGAIN}",
    "in_the_future": f"I cannot tell when that was said. {AGAIN}",
    "estopped": "My emergency stop is pressed. It has to be released first.",
    "runstopped": "My own stop button is pressed. Release it first.",
    "another_stop": f"Something else has stopped me since. {AGAIN}",
    "caught": "My gripper is not open yet. Tell me once you are out of it.",
    "another_person": "Somebody else has stopped me as well. I wait for them, or for the button at the console.",
}
"""What the robot says to a person whose "go on" is refused, by the guard's code."""

LETS_GO = "I open my gripper. Tell me once you are out of it."
"""What the robot says to a person who asks to be let go, or who is caught."""

ONLY_GO_ON = f"I am stopped. {AGAIN[:-1]}, and nothing else with it."
"""What the robot says where going on was mentioned among other things, which may have been a story."""

KEPT = 'I heard: "{}" I am stopped, and keep it in mind until you tell me.'
"""What it says to an order while it is stopped."""

ANSWER_S = 20.0
"""How long after the robot's question short words count as its answer, s."""


def depths_of(text: str, *, is_stopped: bool) -> tuple[Depth, ...]:
    """The interrupts that an utterance raises, in the order in which they are sent.

    "Go on" resumes a stopped robot only. Nothing else lifts a stop; no order does.
    """
    meaning = understand(text)
    if meaning.lifts_stop:
        return ("resume",) if is_stopped else ()
    return (meaning.depth,) if meaning.depth is not None else ()


class StopCalled(msgspec.Struct, frozen=True):
    """One stop since the robot last moved."""

    ident: str
    person: str  # "" for nobody
    is_sure: bool
    raised_ns: int


def taken_back(text: str, person: str, stops: Sequence[StopCalled], now_ns: int) -> str:
    """The id of the stop that these words take back as a false alarm, or "".

    Only the person who caused every stop since the robot last moved can do so, by words, within `TAKE_BACK_S`. A stop
    by a sensor was no mistake, and after that time the scene has changed. "Okay" takes back a stop for a bare "ah"; any
    other stop needs words that say so.
    """
    if (
        not person
        or not stops
        or any(stop.person != person or to_s(now_ns - stop.raised_ns) > TAKE_BACK_S for stop in stops)
    ):
        return ""
    meaning = understand(text)
    is_unsure = not any(stop.is_sure for stop in stops)
    return stops[-1].ident if meaning.takes_back or (meaning.is_listening and is_unsure) else ""


class Reflex(HearsPeople):
    """Listens to people and to the robot's contact sensing, and raises interrupts.

    Words of anybody stop the robot. A word of alarm that was spotted in the sound holds it for a moment, and stops it
    where no words explain the alarm. Words lift a stop only where `People` counts them as a person's. A person whose
    "go on" is refused is told so aloud; an order to a stopped robot is kept and asked back.

    It runs on a thread of its own, so that a blocked event loop does not delay a stop.
    """

    realtime = True
    role, believes = "lifter", "ears"
    fixed = frozenset({"interrupt", "heard", "robot/state", "guard/state", "alarm", "saying"})

    heard = Subscription(Utterance, "heard", qos=QoS(required=False, candidates=True))
    alarms = Subscription(Alarm, "alarm", qos=QoS(required=False, candidates=True))
    description = Subscription(SceneDescription, "description", qos=QoS(required=False))
    state = Subscription(RobotState, "robot/state", qos=QoS(required=False))
    guard = Subscription(GuardState, "guard/state", qos=QoS(required=False))
    interrupts = Subscription(Interrupt, "interrupt", qos=QoS(required=False))
    answers = Subscription(GuardAnswer, "guard/answer", qos=QoS(required=False))
    interrupt = Publisher(Interrupt, "interrupt", qos=URGENT)
    held_order = Publisher(HeldOrder, "order/held", qos=RELIABLE)
    says = Publisher(Utterance, "said", qos=RELIABLE)

    def __init__(self, speaker: str = ROBOT) -> None:
        self.speaker = speaker
        self.count = 0
        self.lost = 0  # utterances that came while the queue was full
        self.asked_ns = 0  # when the robot's last question was heard; 0: answered, or none
        self.is_moving = False
        self.may_hold = False
        self.alarm_hold: tuple[int, str] = (0, "")  # when the speech began, and the id of its soft hold
        self.stops: deque[StopCalled] = deque(maxlen=MOST_STOPS)
        self.was_guard_stopped = False
        self.touching: frozenset[str] = frozenset()
        self.is_stopped = False

    @classmethod
    def preload(cls) -> None:
        """Read the phrase tables once, before the processes of the run are forked."""
        load()

    def on_start(self) -> None:
        """Read the phrase tables, so that the first stop does not wait for them."""
        load()

    @on(heard)
    def listen(self, utterance: Utterance) -> None:
        """Raise the interrupts that an utterance asks for; hold a moving robot for short words not understood."""
        text, speaker = utterance.text, utterance.speaker
        lost = self.heard.dropped["queue full"]
        if lost > self.lost:  # one of them may have been a stop
            self._raise(
                "stop", f"{lost - self.lost} utterances came too fast to be understood", "reflex", cause="reflex"
            )
            self.lost = lost
        trigger = self.context.trigger
        judged = self.judge(utterance)
        stop = taken_back(text, judged.person, self.stops, self.clock.now_ns()) if self.is_stopped else ""
        depths = depths_of(text, is_stopped=self.is_stopped)
        if stop:
            depths = ("resume",)
        if not judged.counts and ("resume" in depths or (says_yes(text) and self._is_asked())):
            self._refuse(utterance, judged)
            return
        is_answer, self.asked_ns = self._is_asked(), 0
        is_caught = judged.person != "" and judged.doubt != "robot_said" and understand(text).is_caught
        cause: Cause = "person" if judged.person else "reflex" if judged.doubt == "robot" else ""
        for depth in depths:
            self._raise(
                depth, text, speaker, cause=cause, person=judged.person,
                takes_back=stop, is_caught=is_caught,
            )  # fmt: skip
        if is_caught:
            self._say(LETS_GO)
        if self.is_stopped and trigger is not None and understand(text).wants == "order":
            self.held_order.publish(HeldOrder(id=trigger.envelope.ident, speaker=speaker, text=text))
            self._say(KEPT.format(clipped(text)))
        elif self.is_stopped and understand(text).asks_in_vain:
            self._say(ONLY_GO_ON)
        elif self.is_moving and understand(text).may_stop and "stop" not in depths:
            self._raise("hold", clipped(text), speaker, cause=cause, person=judged.person)
        elif not depths and self.is_moving and not is_answer and understand(text).is_unclear and not self._names(text):
            self._raise("hold", clipped(text), speaker, cause=cause, person=judged.person)
            self._say("One moment. I did not understand that.")

    @on(alarms)
    def hear_alarm(self, alarm: Alarm) -> None:
        """Hold softly for a word of alarm; let go where its words are harmless, stop where nothing explains it.

        A word that was only spotted moves nobody back, though it may be "ouch".
        """
        trigger = self.context.trigger
        are_ears = trigger is not None and self.people.are_ears(trigger.envelope)
        person = (alarm.person or alarm.speaker) if are_ears else ""
        cause: Cause = "person" if person else "reflex"
        if alarm.phase == "stands":
            self._raise("stop", clipped(alarm.word), alarm.speaker, cause=cause, person=person, is_sure=False)
        elif alarm.phase == "spotted" and self.may_hold:
            self.alarm_hold = (
                alarm.captured_ns,
                self._raise("hold", clipped(alarm.word), alarm.speaker, cause=cause, hold_s=ALARM_HOLD_S),
            )
        elif alarm.phase == "refuted" and self.alarm_hold[0] == alarm.captured_ns and are_ears:
            self._raise("hold", clipped(alarm.word), alarm.speaker, cause=cause, takes_back=self.alarm_hold[1])
            self.alarm_hold = (0, "")

    @on(answers)
    def answered(self, answer: GuardAnswer) -> None:
        """Tell a person why "go on" was refused."""
        if answer.do == "resume" and answer.code in REFUSALS:
            self._say(REFUSALS[answer.code])

    @on(HearsPeople.robot_words)
    def follow_words(self, utterance: Utterance) -> None:
        """Note what the robot says, and whether it asks: the next words answer it."""
        super().follow_words(utterance)
        if utterance.text.rstrip().endswith(("?", "？", "؟")):
            self.asked_ns = self.clock.now_ns()

    @on(state)
    def feel(self, state: RobotState) -> None:
        """Stop for contact that begins; the guard handles contact that lasts."""
        touching = frozenset(state.contact)
        new = sorted(touching - self.touching)
        self.touching = touching
        if new:
            self._raise("stop", f"contact: {', '.join(new)}", "contact", cause="contact")

    @on(guard)
    def follow(self, state: GuardState) -> None:
        """Note the guard's mode: whether the robot is stopped, and whether it moves."""
        was_stopped, self.was_guard_stopped = self.was_guard_stopped, state.is_stopped
        self.is_stopped, self.is_moving = state.is_stopped, state.is_moving
        self.may_hold = state.is_moving or state.mode == "holding"
        if was_stopped and not self.is_stopped:
            self.stops.clear()

    @on(interrupts)
    def notice(self, interrupt: Interrupt) -> None:
        """Note stops that others have raised: a sensor, the console, a ladder."""
        trigger = self.context.trigger
        if trigger is not None and trigger.envelope.source == self.name:
            return
        if interrupt.depth == "stop":
            self._note(interrupt)

    def _refuse(self, utterance: Utterance, judged: Judged) -> None:
        """Words that would lift a stop or say yes, and are not counted as a person's, are answered at once."""
        trigger = self.context.trigger
        source = "nobody" if trigger is None else trigger.envelope.source
        self.log.warning("%r by %r is not counted: %s (%s)", clipped(utterance.text), utterance.speaker,
                         judged.doubt.replace("_", " "), source)  # fmt: skip
        if judged.doubt != "not_ears":
            self._say(AGAIN)
        elif self.is_stopped:
            self._say(REFUSALS["not_a_person"])

    def _is_asked(self) -> bool:
        return bool(self.asked_ns) and self.clock.since_s(self.asked_ns) <= ANSWER_S

    def _names(self, text: str) -> bool:
        """Whether the words name a thing that the robot sees."""
        description = self.description.latest()
        if description is None:
            return False
        said = set(words_of(clipped(text)))
        return any(said.intersection(words_of(f"{thing.colour} {thing.label}")) for thing in description.objects)

    def _say(self, text: str) -> None:
        self.says.publish(Utterance(speaker=self.speaker, text=text))

    def _raise(
        self, depth: Depth, text: str, by: str, *, cause: Cause, person: str = "", takes_back: str = "",
        is_caught: bool = False, is_sure: bool = True, hold_s: float = HOLD_S,
    ) -> str:  # fmt: skip
        """Publish an interrupt; its id."""
        self.count += 1
        is_said = depth == "stop" and cause in ("person", "")
        interrupt = Interrupt(
            id=f"{self.name}-{self.count}", depth=depth, text=clipped(text), by=by, cause=cause, person=person,
            is_sure=is_sure and (not is_said or understand(text).is_sure),
            is_pain=depth == "stop" and cause == "person" and is_sure and understand(text).is_pain,
            is_caught=is_caught, takes_back=takes_back, hold_s=hold_s if depth == "hold" and not takes_back else 0.0,
        )  # fmt: skip
        if depth in ("stop", "resume"):
            self.is_stopped = depth == "stop"
        if depth == "stop":
            self._note(interrupt)
        self.interrupt.publish(interrupt)
        return interrupt.id

    def _note(self, interrupt: Interrupt) -> None:
        self.stops.append(StopCalled(interrupt.id, interrupt.person, interrupt.is_sure, self.clock.now_ns()))
