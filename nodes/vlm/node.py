"""`VLM`: the node on the VLM's seat, made of the parts that it is given: eyes, belief, choice and talk.

The tick is plain rather than blocking: looking takes about 10 ms, so an utterance never waits longer than that, and
handlers need no locks.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec

from nodes.interrupts.people import HearsPeople
from nodes.interrupts.phrase_matcher import load
from nodes.msgs import (
    Action,
    Feedback,
    GuardState,
    Image,
    Interrupt,
    RobotState,
    Scene,
    SceneDescription,
    SkillCatalogue,
    Subtask,
    Utterance,
)
from nodes.robot.robot_from_launch import ForRobot, load_body
from nodes.seats.seat_node import SeatNode
from nodes.vlm.choice.hold import PLAN_WAIT_S, Hold, LookRound, LooksRound
from nodes.vlm.parts import Belief, Choice, Moment, VLMEyes
from nodes.vlm.talk import SORRY, VlmTalk
from nodes.vlm.work import VLMWork
from runtime import RELIABLE, Fence, Lease, Publisher, QoS, Stamped, Subscription, every, on, to_s

STATES_KEPT = 60
REPEAT_S = 15.0
"""The same words are not said again within this time."""


class VLM(ForRobot, SeatNode, HearsPeople):
    """5 Hz, and at once when something is heard, felt or decided. `limits` names the robot whose body it looks along.

    After a new order it waits `plan_wait_s` for the planner, in s, and then goes on with the old subtask.
    """

    seat = "vlm"
    preempted_at = ("amend", "stop")
    effect_name = "vlm voided"
    needs_body = True

    subtask = Subscription(Subtask, "subtask")
    image = Subscription(Image, "head/image", qos=QoS(lifespan_s=1.0))
    state = Subscription(RobotState, "robot/state", qos=QoS(required=False))
    heard = Subscription(Utterance, "heard", qos=QoS(required=False))
    interrupt = Subscription(Interrupt, "interrupt", qos=QoS(required=False))
    feedback = Subscription(Feedback, "feedback", qos=QoS(required=False))
    skills = Subscription(SkillCatalogue, "skills", qos=QoS(required=False))
    guard = Subscription(GuardState, "guard/state", qos=QoS(required=False))

    action = Publisher(Action, "action", qos=RELIABLE)
    description = Publisher(SceneDescription, "description")
    scene = Publisher(Scene, "scene")
    said = Publisher(Utterance, "said", qos=RELIABLE)

    def __init__(
        self,
        eyes: VLMEyes,
        belief: Belief,
        talk: VlmTalk,
        choice: Choice,
        *,
        speaker: str = "robot",
        limits: str = "",
        plan_wait_s: float = PLAN_WAIT_S,
        looks_round: LooksRound = "asked",
    ) -> None:
        self.speaker, self.body = speaker, load_body(limits)
        self.work = VLMWork(eyes, belief, talk, choice, Hold(plan_wait_s), LookRound(looks_round), self)
        self.states: deque[RobotState] = deque(maxlen=STATES_KEPT)
        self._said_ns: dict[str, int] = {}

    @classmethod
    def preload(cls) -> None:
        import nodes.perception.objects  # noqa: F401  # with OpenCV

        load()

    def on_start(self) -> None:
        load()  # the phrase tables, so that the first word does not wait for it

    def now(self, *, looks: bool = False) -> Moment:
        """What is known now of time and robot; where it `looks`, with the newest image."""
        catalogue = self.skills.latest()
        skills = None if catalogue is None else {one.name: one for one in catalogue.skills}
        return Moment(self.clock.now_ns(), self.body, self.states, skills, self.image.stamped() if looks else None)

    @on(state)
    def remember(self, state: RobotState) -> None:
        """Where the robot was when an image was taken is looked up here."""
        self.states.append(state)
        self.work.belief.stand(state)

    @on(subtask)
    def take_subtask(self, subtask: Subtask) -> None:
        """A new subtask replaces the old one."""
        self.work.take(subtask, self._published_ns, self.now())

    @on(heard)
    def listen(self, utterance: Utterance) -> None:
        """A correction changes the action under way at once; the planner hears it too and remembers it."""
        self.work.hear(utterance, self._published_ns, self.now(), is_persons=self.judge(utterance).counts)

    @on(interrupt)
    def interrupted(self, interrupt: Interrupt) -> None:
        """A stop is the guard's to carry out; here it is answered."""
        self.work.interrupted(interrupt, self.now())

    def on_preempted(self, fence: Fence) -> bool:
        return self.work.eyes.void() or self.work.deeds.is_unheard

    @on(SeatNode.fence)
    def fenced(self, fence: Fence) -> None:
        """What was on its way is void: an action that nobody has answered yet is sent again, or another one."""
        is_unheard = self.work.deeds.is_unheard
        is_amended = self.preempt(fence) and fence.depth == "amend"
        if is_amended and self.work.act(self.now()).skill == "keep" and is_unheard:
            self.work.send_again()

    def on_seat(self) -> None:
        """Decide afresh."""
        self.work.afresh(self.now())

    @on(SeatNode.lease)
    def leased(self, lease: Lease) -> None:
        """A new holder of the policy's seat is asked again."""
        super().leased(lease)
        if lease.seat == "policy" and not lease.is_repetition:
            self.work.deeds.ask(self.clock.now_ns())

    @on(guard)
    def follow(self, guard: GuardState) -> None:
        """Whether the robot may move is the guard's word."""
        self.work.looks_round.is_armed = guard.is_armed
        self.work.stop_or_go("guard stops" if guard.is_stopped else "guard moves", self.now())

    @on(feedback)
    def learn(self, feedback: Feedback) -> None:
        """How the policy fares; a success or failure is acted on at once."""
        self.work.learn(feedback, self.now())

    @every(hz=5)
    def tick(self) -> None:
        """Look, decide, and tell the planner what is seen and done."""
        now, work = self.now(looks=True), self.work
        told = work.tick(now)
        self.description.publish(told, stems_from=self._sources())
        if work.eyes.has_seen:
            scene: Scene = msgspec.structs.replace(work.belief.scene(now.now_ns), image_ns=work.eyes.shown_ns)  # type: ignore[type-var]  # a Struct
            self.scene.publish(scene, stems_from=self._sources())

    def send(self, action: Action) -> None:
        """Publish an action."""
        self.action.publish(action, stems_from=self._sources())

    def say(self, text: str, *, again: bool = False) -> None:
        """Say it, where it was not said just now; `again`: the robot may say once more that it has stopped."""
        if again:
            self._said_ns.pop(SORRY, None)
        text = text.strip()
        now_ns = self.clock.now_ns()
        last_ns = self._said_ns.get(text)
        if text and (last_ns is None or to_s(now_ns - last_ns) >= REPEAT_S):
            self._said_ns[text] = now_ns
            self.said.publish(Utterance(speaker=self.speaker, text=text), stems_from=self._sources())

    @property
    def _published_ns(self) -> int | None:
        """When what is handled now was published."""
        trigger = self.context.trigger
        return None if trigger is None else trigger.envelope.published_ns

    def _sources(self) -> list[Stamped[Any]]:
        """What is decided stems from the image behind what is remembered, the subtask and the last words."""
        return [one for one in (self.work.eyes.seen, self.subtask.peek(), self.heard.peek()) if one is not None]
