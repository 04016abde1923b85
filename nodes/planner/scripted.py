"""`ScriptedPlanner`: a planner by rules, on the same topics and at the same rate as one behind an API."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Literal

from nodes.interrupts.intent import understand
from nodes.msgs import (
    Feedback,
    Interrupt,
    Reference,
    Scene,
    SceneDescription,
    SkillCatalogue,
    Subtask,
    Utterance,
)
from nodes.planner.orders import Order, Surroundings, covers, is_vague
from nodes.planner.parser import Noun, parser_of
from nodes.planner.partner import Objections, doubt_about
from nodes.planner.rules import OrdersUnderWay, doubt, given_up, hear, report
from nodes.planner.understanding import Conversation, understand_in
from nodes.seats.seat_node import SeatNode
from runtime import RELIABLE, Fence, Publisher, QoS, Subscription, every, on, to_s

HISTORY_KEPT = 100
KNOWS_WITHIN_S = 8.0
"""How long an utterance waits for the first scene and the first skills; then it is answered without."""
SEES_WITHIN_S = 3.0
"""So long a robot that looks round waits before it asks which thing is meant: more of them may come into sight."""

ANSWERED_BY = "rules answer here, at once; no model is asked"
"""What the person at the terminal is told first."""

ASK_FROM = 0.3
"""How probable an objection is worth a question: what a question costs, as a share of what the deed would harm."""
LEAVES_AFTER_S = 10.0
"""What was asked about and not answered for so long is left alone."""


class ScriptedPlanner(SeatNode):
    """0.5 Hz, and at once when somebody says something.

    The subtask is published again with each tick, so that a VLM that was restarted learns of it; the same one again
    changes nothing there. A restarted planner learns its own order from the VLM's description. Where a `Partner` tells
    what somebody will object to, it asks before it moves such a thing, from the probability `ask_from` on.
    """

    provenance = "script:planner-rules-1"
    seat = "planner"
    effect_name = "planner cancelled"

    heard = Subscription(Utterance, "heard", qos=QoS(required=False))
    interrupt = Subscription(Interrupt, "interrupt", qos=QoS(required=False))
    description = Subscription(SceneDescription, "description", qos=QoS(lifespan_s=3.0))
    scene = Subscription(Scene, "scene", qos=QoS(required=False))
    skills = Subscription(SkillCatalogue, "skills", qos=QoS(required=False))
    feedback = Subscription(Feedback, "feedback", qos=QoS(required=False))
    spoken = Subscription(Utterance, "said", qos=QoS(required=False))
    objections = Subscription(Objections, "partner/objections", qos=QoS(required=False))

    subtask = Publisher(Subtask, "subtask", qos=RELIABLE)
    said = Publisher(Utterance, "said", qos=RELIABLE)

    def __init__(self, speaker: str = "robot", ask_from: float = ASK_FROM) -> None:
        self.speaker = speaker
        self.ask_from = ask_from
        self.asking: tuple[Reference, int] | None = None  # what was asked about, and when
        self.settled: set[tuple[str, str]] = set()  # label and colour of what was asked about and answered
        self.plan = OrdersUnderWay()
        self.unheard: deque[tuple[int, Utterance]] = deque(maxlen=HISTORY_KEPT)  # until it is known what there is
        self.which: tuple[int, Utterance] | None = None  # heard then, and asked about once the robot has looked
        self.history: deque[str] = deque(maxlen=HISTORY_KEPT)
        self.saying: deque[tuple[str, str]] = deque(maxlen=HISTORY_KEPT)  # sent, not yet heard on `said`; its cause

    @classmethod
    def preload(cls) -> None:
        understand("stop")

    def on_start(self) -> None:
        understand("stop")  # reads the tables, so that the first order does not wait for it
        self.log.info(ANSWERED_BY, extra={"is_notice": True})

    @on(heard)
    def listen(self, utterance: Utterance) -> None:
        """Answer an order, remember a correction."""
        self._note(f"{utterance.speaker}: {utterance.text}")
        if self._knows():
            self._settle_which()
            self._hear(utterance.text, utterance.speaker, may_wait=True)
            self._consider()
        else:
            self.unheard.append((self.clock.now_ns(), utterance))

    def _hear(self, text: str, speaker: str = "", *, may_wait: bool = False) -> None:
        before, around = self.plan, self._around()
        if self.asking is not None:
            answer = self._answer_in(text, self.asking[0], around)
            if answer == "yes":
                self._settle()
                return
            text = self._leave() if answer == "no" else text
        self.plan, reply = hear(before, text, around, self.clock.now_ns(), speaker)
        asks_which = self.plan.asked_ns and not before.asked_ns and self.plan.talk.awaits == "thing"
        new = self.plan.order if self.plan.number != before.number else None
        is_open = new is not None and any(is_vague(one) and not one.is_any for one in new.things)
        if may_wait and (asks_which or is_open) and not around.scene.is_looked:
            self.plan, self.which = before, (self.clock.now_ns(), Utterance(speaker=speaker, text=text))
            return
        if self.asking is not None:
            order, thing = self.plan.order, self.asking[0]
            is_open = order is not None and not any(covers(one, thing) for one in order.excluding)
            self.plan = replace(self.plan, is_paused=is_open)
            if not is_open:
                self._settle()
        self._answer(reply)
        if self.plan != before or reply:
            self._publish()

    def _settle_which(self) -> None:
        """Ask which thing was meant, or do it, now that more was seen."""
        if self.which is not None:
            utterance, self.which = self.which[1], None
            self._hear(utterance.text, utterance.speaker)

    # --- asking first

    @on(objections)
    def expect(self, _: Objections) -> None:
        """Somebody will probably object to something else than before."""
        self._consider()

    def _consider(self) -> None:
        """Ask before a thing is moved to whose removal somebody will probably object."""
        told, order = self.objections.latest(), self.plan.order
        if told is None or order is None or self.asking is not None or self.plan.asked_ns:
            return
        thing = doubt_about(order, told.of, self.ask_from, self.settled)
        if thing is not None:
            self.asking = thing, self.clock.now_ns()
            self.plan = replace(self.plan, is_paused=True)
            self._answer(f"May I take the {thing.colour} {thing.label}?")
            self._publish()

    @staticmethod
    def _answer_in(text: str, thing: Reference, around: Surroundings) -> Literal["yes", "no", ""]:
        named = (Noun(kind=thing.label, colour=thing.colour),)
        talk = Conversation(question=Order("place", (thing,)), awaits="yes", mentioned=named)
        intent, _ = understand_in(text, around.world, talk, parser_of(around.world))
        if intent.deed == "do" and all(covers(thing, one) for one in intent.orders[0].things):
            return "yes"
        return "no" if intent.why in ("declined", "cancelled") else ""

    def _leave(self) -> str:
        assert self.asking is not None
        return f"Leave the {self.asking[0].colour} {self.asking[0].label}"

    def _settle(self) -> None:
        assert self.asking is not None
        thing = self.asking[0]
        self.settled.add((thing.label, thing.colour))
        self.asking, self.plan = None, replace(self.plan, is_paused=False)
        self._consider()
        self._publish()

    def _around(self) -> Surroundings:
        scene, skills, told = self.scene.latest(), self.skills.latest(), self.description.latest()
        return Surroundings(
            scene or Scene(), skills.skills if skills is not None else (), told.target if told is not None else None
        )

    def _knows(self) -> bool:
        return self.scene.latest() is not None and self.skills.latest() is not None

    @on(scene)
    def see(self, scene: Scene) -> None:
        """What was heard before anything was known is understood now."""
        if self.unheard and self._knows():
            self._catch_up()
        if self.which is not None:
            is_late = to_s(self.clock.now_ns() - self.which[0]) > SEES_WITHIN_S
            if scene.is_looked or is_late:
                self._settle_which()
        self.plan, asked = doubt(self.plan, self._around(), self.clock.now_ns())
        if asked:
            self._answer(asked)
            self._publish()
        self._consider()

    def _catch_up(self) -> None:
        while self.unheard:
            utterance = self.unheard.popleft()[1]
            self._hear(utterance.text, utterance.speaker)

    @on(interrupt)
    def interrupted(self, interrupt: Interrupt) -> None:
        """What happened is history; only a person's words change the plan."""
        self._note(f"{interrupt.depth} by {interrupt.by}: {interrupt.text}")

    def on_preempted(self, fence: Fence) -> bool:
        return bool(self._unsaid())

    def _unsaid(self) -> list[str]:
        """What was on its way, but for answers to the very words that raised the fence."""
        return [text for text, why in self.saying if why != self.context.cause]

    @on(SeatNode.fence)
    async def fenced(self, fence: Fence) -> None:
        """What was on its way is void, and is said again.

        Async, and so in a lane of its own: it does not wait for a handler that thinks.
        """
        if not self.preempt(fence):
            return
        unsaid, cause = self._unsaid(), self.context.cause
        self.saying = deque(((text, why) for text, why in self.saying if why == cause), maxlen=HISTORY_KEPT)
        for text in unsaid:
            self._note(f"not said: {text}")
            self._answer(text)
        if unsaid:
            self._publish()

    @on(spoken)
    async def remember(self, utterance: Utterance) -> None:
        """What was really said, and not only meant to be; at once, or a stop meanwhile has it said a second time."""
        if utterance.speaker == self.speaker:
            self.saying = deque((pair for pair in self.saying if pair[0] != utterance.text), maxlen=HISTORY_KEPT)
            self._note(f"{self.speaker}: {utterance.text}")

    @on(feedback)
    def learn(self, feedback: Feedback) -> None:
        """How actions end is history too."""
        if feedback.status != "running":
            self._note(f"{feedback.action_id}: {feedback.status} {feedback.why}")

    @every(hz=0.5)
    def tick(self) -> None:
        """Look at what the VLM reports, and say what is to be done."""
        self._consider_report(self.description.latest())

    def _consider_report(self, description: SceneDescription | None) -> None:
        now_ns = self.clock.now_ns()
        if self.unheard and to_s(now_ns - self.unheard[0][0]) > KNOWS_WITHIN_S:
            self._catch_up()
        if self.asking is not None and to_s(now_ns - self.asking[1]) > LEAVES_AFTER_S:
            self._hear(self._leave())
        if description is not None:
            self.plan, reply = report(self.plan, description, self._around(), now_ns)
            self._answer(reply)
        self.plan, reply = given_up(self.plan, now_ns)
        self._answer(reply)
        self._publish()

    def _publish(self) -> None:
        subtask = self.plan.subtask
        if subtask is not None:
            self.subtask.publish(subtask)

    def _answer(self, reply: str) -> None:
        if reply:
            self.saying.append((reply, self.context.cause))
            self.said.publish(Utterance(speaker=self.speaker, text=reply))

    def _note(self, line: str) -> None:
        self.history.append(line)
        self.log.debug("%s", line)
