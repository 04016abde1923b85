"""`Arm`: holds speech and feedback back as an arm of the experiment says; and the planner of all arms."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping

import msgspec

from nodes.interrupts.intent import understand
from nodes.interrupts.phrase_matcher import clipped
from nodes.interrupts.reflex import Reflex
from nodes.msgs import (
    Action,
    Feedback,
    GuardState,
    Interrupt,
    RunningTrial,
    SceneDescription,
    SeenObject,
    Subtask,
    Utterance,
)
from nodes.planner.scripted import ASK_FROM, ScriptedPlanner
from runtime import RELIABLE, URGENT, Message, Node, Publisher, QoS, Subscription, UserError, every, on

ARMS: Mapping[str, tuple[str, ...]] = {
    "A": (),
    "B": ("arm.holds=blocking",),
    "B+": ("arm.holds=cancel",),
    "B++": ("arm.holds=spotter",),
    "C": ("arm.holds=two-rates",),
    "D": ('guard.remap={fence="fence/unheard"}',),
    "O": (),
}
"""What `--set` makes of bench/interruptions/interruptions.toml for each arm, besides latencies."""
PARTNER_ARMS: Mapping[str, tuple[str, ...]] = {"M": (), "Q": ("planner.ask_from=0.0",)}
"""A with a partner in mind, which asks where an objection is likely, and A that always asks; no part of `ARMS`."""
PARTNER = "partner=nodes.planner.partner:Partner"
"""The node that those arms have besides."""
ROUTED = (
    'planner.remap={heard="heard/planner"}', 'vlm.remap={heard="heard/vlm",feedback="feedback/vlm"}',
    "reflex.use=nodes.evaluation.arms:RoutedReflex", 'reflex.remap={heard="heard/reflex"}',
)  # fmt: skip
ROUTER = "arm=nodes.evaluation.arms:Arm"
"""What `--set` and `--add` make of another graph with planner, vlm and reflex, so that an `Arm` is between."""
REGIMES: Mapping[str, tuple[tuple[float, float], tuple[float, float]]] = {
    "edge": ((0.3, 0.6), (0.05, 0.12)),
    "cloud": ((0.8, 2.0), (0.05, 0.12)),
    "slow": ((2.5, 8.0), (0.35, 1.2)),
    "none": ((0.0, 0.0), (0.0, 0.0)),
}
"""Latencies p50 and p99 in s, of the planner and of the VLM; without any all good arms are alike."""


SWEEPS: Mapping[str, tuple[str, ...]] = {
    "planner": tuple(f"planner{seconds:g}s" for seconds in (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)),
    "vlm": tuple(f"vlm{hz:g}hz" for hz in (1.0, 2.5, 5.0, 10.0)),
    "policy": tuple(f"policy{hz:g}hz" for hz in (5.0, 10.0, 20.0, 40.0)),
}
"""Regimes that are "cloud" but for one thing: the planner's median latency, or the rate of another policy."""
SWEPT_TAIL = 2.5
"""The planner's p99 in a sweep, as a multiple of its p50; that of "cloud"."""
_SWEPT = re.compile(r"(?P<who>planner|vlm|policy)(?P<value>\d+(\.\d+)?)(?P<unit>s|hz)")


def swept_value(regime: str) -> tuple[str, float] | None:
    """Who is swept in a regime, and its latency in s or rate in Hz; None where nobody is."""
    found = _SWEPT.fullmatch(regime)
    if found is None or (found["who"] == "planner") != (found["unit"] == "s") or not float(found["value"]):
        return None
    return found["who"], float(found["value"])


def _latencies(regime: str) -> tuple[tuple[float, float], tuple[float, float]]:
    if regime in REGIMES:
        return REGIMES[regime]
    swept = swept_value(regime)
    if swept is None:
        raise UserError(
            f"regime {regime!r}: known: {', '.join(sorted(REGIMES))}; or planner2s, vlm10hz, policy10hz and the like"
        )
    who, value = swept
    planner, vlm = REGIMES["cloud"]
    return ((value, SWEPT_TAIL * value) if who == "planner" else planner), vlm


def changes_of(arm: str, regime: str = "cloud", *, recogniser_s: float = 0.0) -> tuple[str, ...]:
    """What `--set` makes of the launch file for an arm under these latencies. Raises UserError."""
    arms = {**ARMS, **PARTNER_ARMS}
    if arm not in arms:
        raise UserError(f"arm {arm!r}: known: {', '.join(sorted(arms))}")
    planner, vlm = (f"{{p50={p50},p99={p99}}}" for p50, p99 in _latencies(regime))
    changes = [*arms[arm]]
    if (swept := swept_value(regime)) is not None and swept[0] != "planner":
        changes.append(f"{swept[0]}.hz={{tick={swept[1]:g}}}")
    own = [f"listen={recogniser_s}"] if recogniser_s else []
    is_at_once = arm == "O" or regime == "none"
    if is_at_once:
        changes += ["planner.latency={}", "vlm.latency={}"]
    else:
        changes += [
            f"planner.latency={{listen={planner},tick={planner}}}",
            f"vlm.latency={{listen={vlm},tick={vlm},learn={vlm}}}",
        ]
    if arm in ("B", "B++") and not is_at_once:
        own.append(f"hand_on={planner}")  # a round of the planner before each next action
    if own:
        changes.append(f"arm.latency={{{','.join(own)}}}")
    return tuple(changes)


class RoutedReflex(Reflex):
    """A reflex that hears people through an `Arm`, and so by another topic than any other one may."""

    fixed = Reflex.fixed - {"heard"}


HOLDS = ("nothing", "blocking", "cancel", "spotter", "two-rates")
MOST_QUEUED = 64


class Arm(Node):
    """Between the people and the models: who hears what, and when.

    "nothing": all hear everything at once. "blocking": words wait until the action under way has ended, and each end
    reaches the VLM a planner's round later (its `hand_on` latency). "spotter": the same, but words that stop or resume
    pass at once. "cancel": every utterance that is no stop holds the robot at once and begins a round of the planner.
    "two-rates": the VLM hears nothing. A stopped robot hears everything at once in every arm.
    """

    provenance = "script:arm-1"
    role = "ears"  # it hands on what people said

    heard = Subscription(Utterance, "heard", qos=QoS(required=False))
    action = Subscription(Action, "action", qos=QoS(required=False))
    feedback = Subscription(Feedback, "feedback", qos=QoS(required=False))
    ended = Subscription(Feedback, "feedback/ended", qos=RELIABLE)
    subtask = Subscription(Subtask, "subtask", qos=QoS(required=False))
    guard = Subscription(GuardState, "guard/state", qos=QoS(required=False))

    interrupt = Publisher(Interrupt, "interrupt", qos=URGENT)
    to_reflex = Publisher(Utterance, "heard/reflex", qos=RELIABLE)
    to_planner = Publisher(Utterance, "heard/planner", qos=RELIABLE)
    to_vlm = Publisher(Utterance, "heard/vlm", qos=RELIABLE)
    feedback_ended = Publisher(Feedback, "feedback/ended", qos=RELIABLE)
    feedback_to_vlm = Publisher(Feedback, "feedback/vlm", qos=RELIABLE)

    def __init__(self, holds: str = "nothing") -> None:
        if holds not in HOLDS:
            raise UserError(f"arm: holds is {holds!r}; known: {', '.join(sorted(HOLDS))}")
        self.holds = holds
        self.is_waiting_for_ends = holds in ("blocking", "spotter")
        self.queue: deque[Utterance] = deque()  # until the action under way has ended
        self.read: deque[Utterance] = deque()  # by the planner; the VLM hears them with the end of the action
        self.rounds = 0  # ends of actions that the VLM has not heard of yet
        self.doing: Action | None = None
        self.picked: SeenObject | None = None
        self.is_stopped = False
        self.count = 0
        self.people: frozenset[str] = frozenset()

    def on_start(self) -> None:
        self.people = self.run_info.in_role("ears") - {self.name}

    @on(heard)
    async def listen(self, utterance: Utterance) -> None:
        """Hand words on, or keep them until the action under way has ended; async: a slow recogniser is alone."""
        trigger = self.context.trigger
        if trigger is None or trigger.envelope.seat or trigger.envelope.source not in self.people:
            self.log.warning("words that nobody said are not handed on: %s", utterance.text)
            return
        meaning = understand(utterance.text)
        if (
            self.is_stopped
            or not self.is_waiting_for_ends
            or self.doing is None
            or (self.holds == "spotter" and (meaning.wants == "stop" or meaning.lifts_stop))
        ):
            self._hand_on(utterance)
        elif len(self.queue) >= MOST_QUEUED:
            self.log.error("more than %d utterances wait; this one is lost: %s", MOST_QUEUED, utterance.text)
        else:
            self.queue.append(self._named(utterance))  # read later, it means what it meant when it was said

    def _hand_on(self, utterance: Utterance) -> None:
        meaning = understand(utterance.text)
        is_plain = self.is_stopped or meaning.wants == "stop" or meaning.lifts_stop
        if self.holds == "cancel" and not is_plain:
            self.count += 1
            text, by = clipped(utterance.text), utterance.speaker
            self.interrupt.publish(Interrupt(id=f"{self.name}-{self.count}", depth="replan", text=text, by=by))
            named = self._named(utterance)
            self.to_planner.publish(named)
            self.read.append(named)  # the VLM hears them with the plan: sooner it might act on them
            return
        self.to_reflex.publish(utterance)
        self.to_planner.publish(self._named(utterance) if self.holds == "two-rates" else utterance)
        if self.rounds and not is_plain:
            self.read.append(utterance)
        elif self.holds != "two-rates":
            self.to_vlm.publish(utterance)

    def _named(self, utterance: Utterance) -> Utterance:
        """With the thing under way named, where the words only point at it: the planner does not see the action."""
        target = self.picked
        if target is None or not understand(utterance.text).is_about_current:
            return utterance
        said: Utterance = msgspec.structs.replace(  # type: ignore[type-var]  # a Struct
            utterance, text=f"No, not the {target.colour} {target.label}"
        )
        return said

    @on(action)
    def follow_action(self, action: Action) -> None:
        """What is under way, and what was reached for last."""
        self.doing = action
        if action.skill == "pick":
            self.picked = action.target

    @on(feedback)
    def follow_feedback(self, feedback: Feedback) -> None:
        """The end of an action lets out what waited for it."""
        if not self.is_waiting_for_ends or feedback.status == "running":
            self.feedback_to_vlm.publish(feedback)
            return
        self.rounds += 1
        self.feedback_ended.publish(feedback)
        if self.doing is not None and feedback.action_id == self.doing.id:
            self.doing = None
            self._let_out()

    @on(ended)
    async def hand_on(self, feedback: Feedback) -> None:
        """A round of the planner later; async, and so in a lane of its own."""
        self.rounds -= 1
        while self.read:
            self.to_vlm.publish(self.read.popleft())
        self.feedback_to_vlm.publish(feedback)

    @on(subtask)
    def follow_plan(self, _: Subtask) -> None:
        """In "cancel" the VLM hears with the plan what the plan was made from."""
        while self.holds == "cancel" and self.read:
            self.to_vlm.publish(self.read.popleft())

    @on(guard)
    def follow_guard(self, state: GuardState) -> None:
        """A stopped robot does nothing that words could wait for."""
        self.is_stopped = state.is_stopped
        if self.is_stopped:
            self._let_out()

    def _let_out(self) -> None:
        while self.queue:
            self._hand_on(self.queue.popleft())


class ArmByCondition(Arm):
    """The same in a study with people: the condition of the trial that runs says how it holds; between trials, nothing.

    `holds_in`: by the id of a condition, one of `HOLDS`. What waited when a trial ends is handed on.
    """

    running = Subscription(RunningTrial, "study/running", qos=QoS(required=False, late_join=True))

    def __init__(self, holds_in: Mapping[str, str]) -> None:
        for condition, holds in holds_in.items():
            if holds not in HOLDS:
                raise UserError(f"arm: holds_in.{condition} is {holds!r}; known: {', '.join(sorted(HOLDS))}")
        super().__init__()
        self.holds_in = dict(holds_in)

    @on(running)
    def follow_study(self, trial: RunningTrial) -> None:
        """A trial that begins or ends changes how words are held."""
        self.holds = self.holds_in.get(trial.condition, "nothing") if trial.number else "nothing"
        self.is_waiting_for_ends = self.holds in ("blocking", "spotter")
        if not self.is_waiting_for_ends:
            self._let_out()
        while self.holds != "cancel" and self.read:
            self.to_vlm.publish(self.read.popleft())


class PlannerLooked(Message):
    """A round of the planner that no word began has ended."""


class AnsweringPlanner(ScriptedPlanner):
    """The planner of all arms: words begin a round at once, and its plan is published when it has been thought about.

    Otherwise words would wait for the round under way, and who waits for a plan that does not change would wait for the
    next tick. Both were a handicap of B+.
    """

    looks = Publisher(PlannerLooked, "planner/looked", qos=RELIABLE)
    looked = Subscription(PlannerLooked, "planner/looked", qos=RELIABLE)

    def __init__(self, speaker: str = "robot", ask_from: float = ASK_FROM) -> None:
        super().__init__(speaker, ask_from)
        self.seen: deque[SceneDescription | None] = deque()  # by rounds under way

    @on(ScriptedPlanner.heard)
    def listen(self, utterance: Utterance) -> None:
        super().listen(utterance)
        self._publish()

    @every(hz=0.5)
    async def tick(self) -> None:  # type: ignore[override]  # in a lane of its own, so that words do not wait for it
        """Look at what the VLM reports now, and act on it a round later."""
        self.seen.append(self.description.latest())
        self.looks.publish(PlannerLooked())

    @on(looked)
    def look(self, _: PlannerLooked) -> None:
        """The round has ended; one that words have begun ends before."""
        self._consider_report(self.seen.popleft())
