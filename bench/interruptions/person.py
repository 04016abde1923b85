"""`InterruptingPerson`: orders the cups into the bin, interrupts at a phase of the first pick, and judges the end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from bench.interruptions.contract import thing_of
from bench.interruptions.scenarios import BURST_S, draw, names, partner_names
from nodes.msgs import Action, RobotState, Utterance
from nodes.sim.messages import BodyPart, Interruption, ObjectTruth, Truth
from nodes.sim.people.person import ON_TABLE_M
from nodes.sim.people.simulated_person import SimulatedPerson
from nodes.sim.world.scenario import DEMO, list_words, load_scenario
from nodes.stretch.kinematics import grasp_point, to_odometry
from runtime import RELIABLE, Publisher, QoS, Subscription, UserError, on, to_ns

ORDER = load_scenario(DEMO).words["order"][0]
ANSWERS = {True: "No, leave the {colour} one", False: "Yes, the {colour} one can go"}
ORDER_AFTER_REMARK_S, ANSWERS_AFTER_S = 4.0, 1.5
ORDER_AFTER_S = 1.0
NEAR_M = 0.05
"""Closer than this the gripper is at its target, or the target is lifted."""
LIFTED_M = 0.02
MOMENT_BY_S = 60.0
"""A phase that has not come so long after the order never comes."""
SETTLED_S = 3.0
"""So long after "I am done", or after everything is as wanted, it is judged."""
BODY_BEFORE_WORD_S, BODY_STAYS_S = 0.4, 4.0
HAND_ABOVE_M, FOOT_AHEAD_M = 0.12, 0.30
AWAY_M = {"hand": (0.4, 1.9, 0.9), "foot": (0.7, 1.9, 0.04)}

Phase = Literal["before", "approach", "near", "carry", "after"]


class InterruptingPerson(SimulatedPerson):
    """Says the order, then what the scenario and the run's seed decide; `patience_s` after the order it gives up.

    The gripper's distance comes from the robot's own state, and the thing that it reaches for from `action`: the moment
    is the experimenter's to choose, not something that a person could time.
    """

    provenance = "script:interrupting-person-1"
    forgives_all = True

    state = Subscription(RobotState, "robot/state")
    action = Subscription(Action, "action", qos=QoS(required=False))

    body = Publisher(BodyPart, "sim/body", qos=RELIABLE)
    interruption = Publisher(Interruption, "interruption", qos=RELIABLE)

    def __init__(self, scenario: str = "nothing", patience_s: float = 150.0, name: str = "Sam") -> None:
        if scenario not in (*names(), *partner_names()):
            raise UserError(
                f"person: scenario is {scenario!r}; known: {', '.join(sorted((*names(), *partner_names())))}"
            )
        super().__init__(name, patience_s)
        self.lines: list[tuple[int, str, str]] = []  # due, who, text
        self.scenario = scenario
        self.drawn = draw(scenario, 0)
        self.phase: Phase = "before"
        self.thing = ""
        self.colour = ""
        self.thing_m: tuple[float, float, float] = (0.0, 0.0, 0.0)
        self.in_bin_then: frozenset[str] = frozenset()
        self.last: Truth | None = None

    def on_start(self) -> None:
        self.drawn = draw(self.scenario, self.run_info.seed)
        if self.drawn.own:
            self.thing, self.colour = f"{self.drawn.own}_cup", self.drawn.own

    @on(action)
    def follow(self, action: Action) -> None:
        """The first thing that is reached for is the one that is talked about; or a cup of one's own."""
        thing = thing_of(action)
        is_own = thing is not None and self.drawn.own in (None, thing.colour)
        if action.skill == "pick" and thing is not None and is_own and "approach" not in self.began_ns:
            self.thing, self.colour = f"{thing.colour}_{thing.label}", thing.colour
            self.thing_m = (thing.x_m, thing.y_m, thing.z_m)
            self._enter("approach")
        elif action.skill == "place" and self.phase in ("approach", "near"):
            self._enter("carry")

    @on(state)
    def feel(self, state: RobotState) -> None:
        """Say what is due; the robot's state comes often enough for that."""
        if self.phase == "approach" and math.dist(gripper_of(state), self.thing_m) < NEAR_M:
            self._enter("near")
        now_ns = self.clock.now_ns()
        self._interrupt(now_ns, state)
        due = [line for line in self.lines if line[0] <= now_ns]
        self.lines = [line for line in self.lines if line[0] > now_ns]
        for _, who, text in due:
            self.say(text, who)

    @on(SimulatedPerson.said)
    def listen(self, utterance: Utterance) -> None:
        """ "I am done" is judged a moment later; who has cups of their own in mind answers what is asked about cups."""
        text = utterance.text.lower()
        colours = [one for one in ("blue", "red") if one in text]
        if self.drawn.own is not None and text.endswith("?") and len(colours) == 1:
            answer = ANSWERS[colours[0] == self.drawn.own].format(colour=colours[0])
            self.lines.append((self.clock.now_ns() + to_ns(ANSWERS_AFTER_S), "", answer))
        if ("i am done" in text or "give up" in text) and "interrupted" in self.began_ns:
            self.mark("told")

    @on(SimulatedPerson.truth)
    def watch(self, truth: Truth) -> None:
        """Order, forgive, judge."""
        self.last = truth
        self.mark("arrived")
        if "ordered" not in self.began_ns:
            if lacking := lacks(truth.objects, self.drawn.wants):
                self.finish(ok=False, reason=f"cannot succeed: there is no {lacking} to put into the bin")
                return
            wait_s = ORDER_AFTER_S
            if self.drawn.remark:
                wait_s += ORDER_AFTER_REMARK_S
                if self.since("arrived") > ORDER_AFTER_S and "remarked" not in self.began_ns:
                    self.mark("remarked")
                    self.say(self.drawn.remark)
            if self.since("arrived") > wait_s and self.guard.latest() is not None:
                self.mark("ordered")
                self.say(ORDER)
                if self.drawn.own is not None:  # such a run is measured from the order on
                    self.mark("interrupted")
                    self._tell([self.drawn.remark])
            return
        stood = next((one for one in truth.objects if one.name == self.thing), None)
        if stood is not None:
            if self.phase == "approach" and stood.z_m > self.thing_m[2] + LIFTED_M + NEAR_M:
                self._enter("near")
            if self.phase == "carry" and stood.is_in_bin:
                self._enter("after")
        self.forgive(is_clear="body" not in self.began_ns or "withdrawn" in self.began_ns)
        self._withdraw()
        self._conclude(truth)

    # --- the interruption

    def _interrupt(self, now_ns: int, state: RobotState) -> None:
        if "spoken" in self.began_ns or self.drawn.moment not in self.began_ns:
            return
        due_ns = self.began_ns[self.drawn.moment] + to_ns(self.drawn.offset_s)
        body_due_ns = due_ns - (to_ns(BODY_BEFORE_WORD_S) if self.drawn.lines else 0)
        if self.drawn.body and "body" not in self.began_ns and now_ns >= body_due_ns:
            self.mark("body")
            self._put_body(state)
        if now_ns < due_ns:
            return
        self.mark("spoken")
        lines = [line.format(colour=self.colour, it=self.thing.replace("_", " ")) for line in self.drawn.lines]
        if "interrupted" not in self.began_ns:
            self.mark("interrupted")
            self._tell(lines)
        for number, line in enumerate(lines):
            who, colon, text = line.partition(": ")  # "NAME: text"
            self.lines.append((now_ns + to_ns(number * BURST_S), who if colon else "", text if colon else line))

    def _tell(self, lines: Sequence[str]) -> None:
        if self.last is not None:
            self.in_bin_then = frozenset(one.name for one in self.last.objects if one.is_in_bin)
        self.interruption.publish(
            Interruption(
                scenario=self.scenario, kind=self.drawn.kind, moment=self.drawn.moment,
                text=" / ".join(lines), is_new_wording=self.drawn.is_new_wording, thing=self.thing,
                wants=self.drawn.wants, offset_s=self.drawn.offset_s, phase=self.phase,
            )
        )  # fmt: skip

    def _put_body(self, state: RobotState) -> None:
        if self.drawn.body == "hand":
            x, y, z = self.thing_m
            self.body.publish(BodyPart(part="hand", x_m=x, y_m=y, z_m=z + HAND_ABOVE_M))
            return
        ahead = FOOT_AHEAD_M if state.base_v_mps >= 0 else -FOOT_AHEAD_M - 0.2
        c, s = math.cos(state.base_heading_rad), math.sin(state.base_heading_rad)
        x, y = state.base_x_m + c * ahead, state.base_y_m + s * ahead
        self.body.publish(BodyPart(part="foot", x_m=x, y_m=y, z_m=0.04))

    def _withdraw(self) -> None:
        if "body" in self.began_ns and "withdrawn" not in self.began_ns and self.since("body") > BODY_STAYS_S:
            self.mark("withdrawn")
            x, y, z = AWAY_M[self.drawn.body]
            self.body.publish(BodyPart(part=self.drawn.body, x_m=x, y_m=y, z_m=z))

    # --- the end

    def _conclude(self, truth: Truth) -> None:
        if "interrupted" not in self.began_ns:
            if self.since("ordered") > MOMENT_BY_S:
                self.finish(ok=False, reason=f"the moment never came: {self.drawn.moment} of the first pick")
            return
        is_late = self.since("ordered") > self.patience_s
        if is_late or self.since("told") > SETTLED_S:
            ok, why = judged(truth.objects, self.drawn.wants, self.thing, self.in_bin_then)
            self.finish(ok=ok, reason=f"not done after {self.patience_s:g} s: {why}" if is_late else why)

    def _enter(self, phase: Phase) -> None:
        self.phase = phase
        self.mark(phase)


def gripper_of(state: RobotState) -> tuple[float, float, float]:
    """Where the point between the fingertips is, odometry frame, m."""
    x, y, z = to_odometry(state.base_x_m, state.base_y_m, state.base_heading_rad, grasp_point(state.position))
    return float(x), float(y), float(z)


def lacks(things: tuple[ObjectTruth, ...], wants: str) -> str:
    """What must be in the bin in the end and is nowhere: "cup" or "ball"; "" where all is there."""
    labels = {one.label for one in things}
    return next((label for label in ("cup", "ball") if label in wants and label not in labels), "")


def judged(
    things: tuple[ObjectTruth, ...], wants: str, it: str, in_bin_then: frozenset[str] = frozenset()
) -> tuple[bool, str]:
    """Whether things are where they are wanted after the interruption, and which are where.

    `in_bin_then`: what lay in the bin when the words came; nothing brings that back.
    """
    cups = {one.name for one in things if one.label == "cup"}
    balls = {one.name for one in things if one.label == "ball"}
    inside = {one.name for one in things if one.is_in_bin}
    fallen = {one.name for one in things if not one.is_in_bin and one.z_m <= ON_TABLE_M}
    wanted = {"cups": cups, "cups but it": cups - {it}, "ball": balls, "cups and ball": cups | balls}.get(wants)
    told = f"{list_words([name.replace('_', ' ') for name in inside]) if inside else 'nothing'} in the bin"
    if fallen:
        told += f"; {list_words([name.replace('_', ' ') for name in fallen])} on the floor"
    if wanted is None:
        return not fallen, told
    return wanted <= inside and inside <= wanted | in_bin_then and not fallen, told
