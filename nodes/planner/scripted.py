"""`ScriptedPlanner`: a planner by rules, on the same topics and at the same rate as one behind an API."""

from __future__ import annotations

from collections import deque

from nodes.interrupts.intent import understand
from nodes.planner.rules import OrdersUnderWay, Surroundings, doubt, given_up, hear, report
from nodes.seats.seat_node import SeatNode
from runtime import RELIABLE, Fence, Publisher, QoS, Subscription, every, on, to_s
from runtime.msgs import (
    Feedback,
    Interrupt,
    Scene,
    SceneDescription,
    SkillCatalogue,
    Subtask,
    Utterance,
)

HISTORY_KEPT = 100
KNOWS_WITHIN_S = 8.0
"""How long an utterance waits for the first scene and the first skills; then it is answered without."""


class ScriptedPlanner(SeatNode):
    """0.5 Hz, and at once when somebody says something.

    The subtask is published again with each tick, so that a VLM that was restarted learns of it; the same one again
    changes nothing there. A restarted planner learns its own order from the VLM's description.
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

    subtask = Publisher(Subtask, "subtask", qos=RELIABLE)
    said = Publisher(Utterance, "said", qos=RELIABLE)

    def __init__(self, speaker: str = "robot") -> None:
        self.speaker = speaker
        self.plan = OrdersUnderWay()
        self.unheard: deque[tuple[int, str]] = deque(maxlen=HISTORY_KEPT)  # until it is known what there is
        self.history: deque[str] = deque(maxlen=HISTORY_KEPT)
        self.saying: deque[tuple[str, str]] = deque(maxlen=HISTORY_KEPT)  # sent, not yet heard on `said`; its cause

    @classmethod
    def preload(cls) -> None:
        understand("stop")

    def on_start(self) -> None:
        understand("stop")  # reads the tables, so that the first order does not wait for it

    @on(heard)
    def listen(self, utterance: Utterance) -> None:
        """Answer an order, remember a correction."""
        self._note(f"{utterance.speaker}: {utterance.text}")
        if self._knows():
            self._hear(utterance.text)
        else:
            self.unheard.append((self.clock.now_ns(), utterance.text))

    def _hear(self, text: str) -> None:
        before = self.plan
        self.plan, reply = hear(before, text, self._around(), self.clock.now_ns())
        self._answer(reply)
        if self.plan != before or reply:
            self._publish()

    def _around(self) -> Surroundings:
        scene, skills = self.scene.latest(), self.skills.latest()
        return Surroundings(scene or Scene(), skills.skills if skills is not None else ())

    def _knows(self) -> bool:
        return self.scene.latest() is not None and self.skills.latest() is not None

    @on(scene)
    def see(self, scene: Scene) -> None:
        """What was heard before anything was known is understood now."""
        if self.unheard and self._knows():
            self._catch_up()
        self.plan, asked = doubt(self.plan, self._around(), self.clock.now_ns())
        if asked:
            self._answer(asked)
            self._publish()

    def _catch_up(self) -> None:
        while self.unheard:
            self._hear(self.unheard.popleft()[1])

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
        now_ns = self.clock.now_ns()
        if self.unheard and to_s(now_ns - self.unheard[0][0]) > KNOWS_WITHIN_S:
            self._catch_up()
        description = self.description.latest()
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
