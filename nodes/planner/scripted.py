"""`ScriptedPlanner`: a planner by rules, on the same topics and at the same rate as one behind an API."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from pathlib import Path

import msgspec

from nodes.interrupts.phrase_matcher import load
from nodes.msgs import Feedback, GuardState, Interrupt, Scene, SceneDescription, SkillCatalogue, Subtask, Utterance
from nodes.planner.memory import keep, remembered
from nodes.planner.orders import Surroundings
from nodes.planner.partner import Objections, doubt_about
from nodes.planner.talk.dialogue import Dialogue
from nodes.planner.talk.household import household_of
from nodes.planner.talk.looking_before_asking import LOOKS_FOR_S, looks_first
from nodes.seats.seat_node import SeatNode
from runtime import RELIABLE, Fence, Publisher, QoS, Subscription, every, on, to_s

HISTORY_KEPT = 100
KNOWS_WITHIN_S = 8.0
"""How long an utterance waits for the first scene and the first skills; then it is answered without."""

ANSWERED_BY = "rules answer here, at once; no model is asked"
"""What the person at the terminal is told first."""

ASK_FROM = 0.3
"""How probable an objection is worth a question: what a question costs, as a share of what the deed would harm."""


class ScriptedPlanner(SeatNode):
    """0.5 Hz, and at once when somebody says something.

    The subtask is published again with each tick, so that a VLM that was restarted learns of it; the same one again
    changes nothing there. A restarted planner learns its own order from the VLM's description. Where a `Partner` tells
    what somebody will object to, it asks before it moves such a thing, from the probability `ask_from` on.

    `household` names what differs in a world ("kitchen", or a TOML file; "": whole orders, no habits). `memory` is a
    file that keeps what people taught ("": until the run ends): JSON, a place for each kind.
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
    guard = Subscription(GuardState, "guard/state", qos=QoS(required=False))

    subtask = Publisher(Subtask, "subtask", qos=RELIABLE)
    said = Publisher(Utterance, "said", qos=RELIABLE)

    def __init__(
        self, speaker: str = "robot", ask_from: float = ASK_FROM, household: str = "", memory: str = ""
    ) -> None:
        self.speaker = speaker
        self.ask_from = ask_from
        self.memory = Path(memory) if memory else None
        self.saved = remembered(self.memory) if self.memory is not None else {}
        self.mind = Dialogue(household=household_of(household), habits=self.saved)
        self.settled: set[tuple[str, str]] = set()  # label and colour of what was asked about first
        self.unheard: deque[tuple[int, Utterance]] = deque(maxlen=HISTORY_KEPT)  # until it is known what there is
        self.which: tuple[int, Utterance] | None = None  # heard then, and asked about once the robot has looked
        self.history: deque[str] = deque(maxlen=HISTORY_KEPT)
        self.saying: deque[tuple[str, str]] = deque(maxlen=HISTORY_KEPT)  # sent, not yet heard on `said`; its cause

    @classmethod
    def preload(cls) -> None:
        load()

    def on_start(self) -> None:
        load()  # the phrase tables, so that the first order does not wait for it
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
        before = self._looked_round()
        self.mind = replace(before)
        reply = self.mind.hear(text, speaker, self.clock.now_ns())
        if may_wait and looks_first(before, self.mind):
            self.mind, self.which = before, (self.clock.now_ns(), Utterance(speaker=speaker, text=text))
            return
        self._tell(before, reply)

    def _tell(self, before: Dialogue, reply: str) -> None:
        """Say it, and publish what has changed."""
        self._answer(reply)
        if self.mind != before or reply:
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
        told, order = self.objections.latest(), self.mind.order
        if told is None or order is None or any(one.awaits for one in self.mind.questions):
            return
        thing = doubt_about(order, told.of, self.ask_from, self.settled)
        if thing is not None:
            self.settled.add((thing.label, thing.colour))
            before, self.mind = self.mind, replace(self.mind)
            self._tell(before, self.mind.ask_first(thing, self.clock.now_ns()))

    def _looked_round(self) -> Dialogue:
        """The mind, with what is seen now."""
        self.mind.around = self._around()
        return self.mind

    def _around(self) -> Surroundings:
        scene, skills, told = self.scene.latest(), self.skills.latest(), self.description.latest()
        guard = self.guard.latest()
        return Surroundings(
            scene or Scene(),
            skills.skills if skills is not None else (),
            told.target if told is not None else None,
            guard.is_stopped if guard is not None else None,
        )

    def _knows(self) -> bool:
        return self.scene.latest() is not None and self.skills.latest() is not None

    @on(scene)
    def see(self, scene: Scene) -> None:
        """What was heard before anything was known is understood now."""
        if self.unheard and self._knows():
            self._catch_up()
        if self.which is not None:
            is_late = to_s(self.clock.now_ns() - self.which[0]) > LOOKS_FOR_S
            if scene.is_looked or is_late:
                self._settle_which()
        before = self._looked_round()
        self.mind = replace(before)
        said = self.mind.see(self.clock.now_ns())
        if said or self.mind.subtask != before.subtask:
            self._tell(before, said)
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
        before = self._looked_round()
        self.mind = replace(before)
        said = [self.mind.report(description, now_ns)] if description is not None else []
        said.append(self.mind.tick(now_ns))
        for one in said:
            self._answer(one)
        self._consider()
        self._publish()

    def _publish(self) -> None:
        if self.memory is not None and self.mind.habits != self.saved:
            self.saved = dict(self.mind.habits)
            keep(self.memory, self.saved)
        subtask = self.mind.subtask
        if subtask is not None:
            waiting = [at_ns for at_ns, _ in (*self.unheard, *((self.which,) if self.which is not None else ()))]
            listened_ns = min([self.context.started_ns, *(at_ns - 1 for at_ns in waiting)])
            told: Subtask = msgspec.structs.replace(subtask, listened_ns=listened_ns)  # type: ignore[type-var]  # a Struct
            self.subtask.publish(told)

    def _answer(self, reply: str) -> None:
        if reply:
            self.saying.append((reply, self.context.cause))
            self.said.publish(Utterance(speaker=self.speaker, text=reply))

    def _note(self, line: str) -> None:
        self.history.append(line)
        self.log.debug("%s", line)
