"""`Lesson`: a robot at a simulated table is given actions; teacher or pupil moves it, and the teacher labels each tick.

What is written down at a tick is what the robot feels, in a learned policy's own inputs, and what the scripted policy
would command there, so that the pupil's own mistakes are corrected where it makes them (DAgger). The graph has a
simulated robot and the guard, no cameras: an action's target is where the thing really is, a little off.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from examples.train_policy.imagined import SIZES, ImaginedRobot
from nodes.guard.node import Guard
from nodes.policy.onnx.inputs import Felt, Pose, feel, one_hot, pose_of, target_of
from nodes.policy.onnx.session import PolicySession
from nodes.policy.sight import spot_of
from nodes.policy.skill_phases import (
    LIFTED_OFF_M,
    LOOK,
    PICK,
    PLACE,
    SkillProgress,
    Spot,
    begin,
    plan,
    step,
)
from nodes.policy.stretch_motion import HEAD_TOLERANCE_RAD, OPEN_M, WRIST_TOLERANCE_RAD, StretchMotion
from nodes.sim.driver import SimDriver
from nodes.sim.messages import ObjectTruth, Truth
from nodes.sim.table_scene import BIN_XY_M, BIN_Z_M, TABLE_HEIGHT_M, TABLE_X_M, TABLE_Y_M
from nodes.stretch.kinematics import (
    ARM,
    ARM_Z_M,
    DOWN_RAD,
    GRASP_REACH_M,
    GRIPPER,
    HEAD_PAN,
    HEAD_TILT,
    LIFT,
    WRIST_DROP_M,
    WRIST_OUT_M,
    WRIST_PITCH,
    WRIST_ROLL,
    WRIST_YAW,
    look_at,
)
from runtime import Node, Publisher, QoS, Simulation, Subscription, every, on
from runtime.msgs import Action, GuardState, JointCommand, JointVector, RobotState, SeenObject, aimed_at

RATE_HZ = 20
MOTION = StretchMotion()
TALLEST_M = 0.68
OFF_M = 0.008
"""How far off a target is seen, one standard deviation."""
LONGEST_S = {"pick": 30.0, "place": 30.0, "look": 6.0}
CHANGES_MIND = 0.2
"""Of the actions so many are replaced by another before they are over."""
SHAKES = 0.25
"""Of the teacher's own actions in so many the robot is pushed off course, so that the way back is seen, too."""
PUSHED_S = 2.0
SHORTEST_S = 5.0
SEEN_AFTER_S = 0.4
APPROACH, LOWER, CLOSE, TAKE = range(4)
RELEASE = 1
SLOW_MPS = 0.03
NEAR_M, BESIDE_M, OPEN_ENOUGH_M = 0.01, 0.03, OPEN_M - 0.02
MOST_LESSONS, MOST_ACTIONS = 1000, 1000
FELT_NUMBERS = 8 + 8 + 1 + 3 + 2 + 7
PLANS = {"pick": PICK, "place": PLACE, "look": LOOK}


def flat(felt: Felt) -> tuple[float, ...]:
    """What is felt as one row: joints, velocity, grasp, target, size, skill."""
    return (*felt.joints, *felt.velocity, felt.grasp, *felt.target, *felt.size, *one_hot(felt.skill))


@dataclass
class Notes:
    """What a lesson gives: rows to learn from, and how each action went."""

    felt: list[tuple[float, ...]] = field(default_factory=list)
    wanted: list[tuple[float, ...]] = field(default_factory=list)  # ten columns and done
    runs: list[int] = field(default_factory=list)  # rows of the same number follow each other
    outcomes: list[tuple[str, str, str]] = field(default_factory=list)  # skill, who, how it ended


class Lesson:
    """`share` of the actions are the pupil's, with whatever it does; the rest are the teacher's own."""

    def __init__(self, seed: int, session: PolicySession | None = None, share: float = 0.0) -> None:
        self.dice = random.Random(seed)
        self.session = session
        self.share = share
        self.notes = Notes()
        self.action: Action | None = None
        self.progress: SkillProgress | None = None
        self.began: Pose = (0.0, 0.0, 0.0)
        self.held: Spot | None = None
        self.actions = 0
        self.elapsed_s = 0.0
        self.ends_s = 0.0  # once it is over
        self.is_pupil = False
        self.is_done = self.is_over = False
        self.is_stopped = False
        self.told: list[float] = []  # what the pupil said of its being done
        self.judged_s = 0.0  # when that is looked at
        self.push: tuple[float, ...] = (0.0,) * 10

    def tick(self, state: RobotState, things: Sequence[ObjectTruth]) -> JointCommand:
        """What is done now; both labels and outcomes are noted."""
        if self.action is None or self.elapsed_s > self.ends_s:
            self._next(state, things)
        assert self.action is not None
        assert self.progress is not None
        self.elapsed_s += 1 / RATE_HZ
        self.progress = where(self.progress, self.action, state)
        held = self.progress.held if state.is_grasping else None
        self.progress = replace(self.progress, goal=kept(self.progress, self.action, state, held))
        done = step(self.progress, state, motion=MOTION, period_s=1 / RATE_HZ, tallest_m=TALLEST_M)
        self.progress = done.progress
        self.is_done = is_done(self.action, state)
        if done.outcome == "success":
            if not self.is_pupil:
                self._over("success", self.dice.uniform(0.2, 1.5))
        elif done.outcome:
            if not self.is_pupil:
                self._over(done.outcome, 0.0)
            self.progress = self._plan(self.action, state)
        felt = feel(state, self.action, self.began)
        wanted = (*done.goal, done.base_v_mps, done.base_w_radps)
        self.notes.felt.append(flat(felt))
        self.notes.wanted.append((*wanted, float(self.is_done)))
        self.notes.runs.append(self.actions)
        if self.is_pupil and self.session is not None:
            answer = self.session.run({}, felt)
            wanted = tuple(float(value) for value in answer.chunk[0])
            self._judge(answer.done or 0.0)
            if self.judged_s and self.elapsed_s > self.judged_s:
                self._over("success" if self.is_done else "says that it is done, and is not", 0.0)
            elif self.elapsed_s >= LONGEST_S[self.action.skill]:
                self._over("takes too long", 0.0)
        elif any(self.push) and self.dice.random() < 1 / (RATE_HZ * PUSHED_S):
            self.push = (0.0,) * 10
        sent = [value + off for value, off in zip(wanted, self.push, strict=True)]
        return JointCommand(position=tuple(sent[:8]), base_v_mps=sent[8], base_w_radps=sent[9])

    def stop(self, why: str) -> None:
        """Something was touched: only a person could go on, so the lesson is over."""
        if not self.is_stopped:
            self.is_stopped = True
            self._over(f"stopped: {why}", 0.0)

    def _judge(self, done: float) -> None:
        """As `OnnxPolicy` does: three answers in a row; whether it is so is seen a moment later."""
        self.told = [*self.told[-2:], done]
        if len(self.told) == 3 and min(self.told) >= 0.5 and not self.judged_s:
            self.judged_s = self.elapsed_s + SEEN_AFTER_S
            self.ends_s = max(self.ends_s, self.judged_s + 1.0)

    def _over(self, outcome: str, more_s: float) -> None:
        if self.action is None or self.is_over:
            return
        self.is_over = True
        who = "pupil" if self.is_pupil else "teacher"
        self.notes.outcomes.append((self.action.skill, who, outcome))
        self.ends_s = min(self.ends_s, self.elapsed_s + more_s)

    def _next(self, state: RobotState, things: Sequence[ObjectTruth]) -> None:
        self.held = self.progress.held if self.progress is not None and state.is_grasping else None
        skill, target = self._choose(state, things)
        self.actions, self.is_over = self.actions + 1, False
        self.action = Action(id=str(self.actions), skill=skill, arguments=aimed_at(target))
        self.began, self.elapsed_s, self.is_done, self.told, self.judged_s = pose_of(state), 0.0, False, [], 0.0
        self.progress = self._plan(self.action, state)
        self.is_pupil = self.session is not None and self.dice.random() < self.share
        self.ends_s = LONGEST_S[skill]
        if not state.is_grasping and self.dice.random() < CHANGES_MIND:
            self.ends_s = self.dice.uniform(0.3, 8.0)
        self.push = (0.0,) * 10
        if not self.is_pupil and self.dice.random() < SHAKES:
            near = (0.03, 0.03, 0.2, 0.1, 0.05, 0.01, 0.1, 0.1, 0.03, 0.0)
            self.push = tuple(self.dice.gauss(0.0, off) for off in near)

    def _plan(self, action: Action, state: RobotState) -> SkillProgress:
        assert action.target is not None
        held = self.held
        if held is None and state.is_grasping:
            held = spot_of(action.target) if action.skill == "pick" else _cup(action.target)
        return begin(
            plan(PLANS[action.skill], spot_of(action.target)), state, held if state.is_grasping else None, motion=MOTION
        )

    def _choose(self, state: RobotState, things: Sequence[ObjectTruth]) -> tuple[str, SeenObject]:
        on_table = [thing for thing in things if not thing.is_in_bin and thing.z_m > TABLE_HEIGHT_M]
        if self.dice.random() < 0.2:
            return "look", self._bin() if self.dice.random() < 0.5 else self._table()
        if state.is_grasping:
            return "place", self._bin()
        if not on_table:
            return "look", self._table()
        return "pick", self._seen(self.dice.choice(on_table))

    def _seen(self, thing: ObjectTruth) -> SeenObject:
        width_m, height_m = SIZES[thing.name]
        return self._off(thing.label, thing.colour, (thing.x_m, thing.y_m, thing.z_m), (width_m, height_m))

    def _bin(self) -> SeenObject:
        middle = (*BIN_XY_M, sum(BIN_Z_M) / 2)
        return self._off("bin", "teal", middle, (0.26, BIN_Z_M[1] - BIN_Z_M[0]))

    def _table(self) -> SeenObject:
        place = (self.dice.uniform(*TABLE_X_M), self.dice.uniform(*TABLE_Y_M), TABLE_HEIGHT_M)
        return self._off("table", "", place, (0.0, 0.0))

    def _off(self, label: str, colour: str, place: tuple[float, float, float], size: tuple[float, float]) -> SeenObject:
        x, y, z = (at + self.dice.gauss(0.0, off) for at, off in zip(place, (OFF_M, OFF_M, OFF_M / 2), strict=True))
        width, height = (max(0.0, at + self.dice.gauss(0.0, OFF_M / 2)) for at in size)
        return SeenObject(
            label=label, colour=colour, x_m=x, y_m=y, z_m=z, width_m=width, height_m=height, u_px=0.0, v_px=0.0
        )


def where(progress: SkillProgress, action: Action, state: RobotState) -> SkillProgress:
    """The teacher's phase as it follows from the state alone, so that it teaches the same in the same place.

    Its own phases remember how it came there; a pupil that came otherwise would be told otherwise.
    """
    off_m, lift_m = _off_from(action, state)
    if action.skill == "place":
        is_early = progress.index < RELEASE and not state.is_grasping and off_m < BESIDE_M
        return replace(progress, index=RELEASE, elapsed_s=0.0, missing_s=0.0, held=None) if is_early else progress
    if action.skill != "pick" or progress.index > TAKE:
        return progress
    index, is_open = progress.index, state.position[GRIPPER] > OPEN_ENOUGH_M
    if state.is_grasping and off_m < BESIDE_M:
        index = TAKE if index != CLOSE else index
    elif index == APPROACH and off_m < NEAR_M and is_open and _is_straight(state) and _is_slow(state):
        index = LOWER
    elif index == LOWER and off_m > BESIDE_M:
        index = APPROACH
    elif index == CLOSE and state.position[LIFT] > lift_m + BESIDE_M:
        index = LOWER
    if index == progress.index:
        return progress
    held = spot_of(action.target) if index == TAKE and action.target is not None else None
    return replace(progress, index=index, elapsed_s=0.0, missing_s=0.0, held=held)


def kept(progress: SkillProgress, action: Action, state: RobotState, held: Spot | None) -> JointVector:
    """Where a joint stays that the phase does not move: above the target once the gripper got there, else as it is.

    Not where it would come to rest: a pupil that only nearly learns to brake would go on.
    """
    rest = list(state.position)
    rest[GRIPPER] = 0.0 if held is not None else rest[GRIPPER]
    phase = progress.phase
    if phase is not None and not phase.goes and action.skill != "look" and _off_from(action, state)[0] < BESIDE_M:
        rest[ARM] = -target_of(action, state)[1] - WRIST_OUT_M
        rest[WRIST_YAW], rest[WRIST_PITCH], rest[WRIST_ROLL] = 0.0, DOWN_RAD, 0.0
    return tuple(rest)


def is_done(action: Action, state: RobotState) -> bool:
    """Whether the action is done, by what is felt."""
    off_m, lift_m = _off_from(action, state)
    if action.skill == "pick":
        return state.is_grasping and off_m < BESIDE_M and state.position[LIFT] > lift_m + LIFTED_OFF_M
    if action.skill == "place":
        return not state.is_grasping and off_m < 2 * BESIDE_M and state.position[GRIPPER] > OPEN_ENOUGH_M
    assert action.target is not None
    place = (action.target.x_m, action.target.y_m, action.target.z_m)
    pan, tilt = look_at(place, *pose_of(state))
    return max(abs(pan - state.position[HEAD_PAN]), abs(tilt - state.position[HEAD_TILT])) < HEAD_TOLERANCE_RAD


def _off_from(action: Action, state: RobotState) -> tuple[float, float]:
    """How far the gripper is from above the target, and the lift that would grasp it."""
    assert action.target is not None
    spot = spot_of(action.target)
    ahead, left, up = target_of(action, state)
    lift_m = up + spot.grasp_z_m - spot.z_m - ARM_Z_M + WRIST_DROP_M + GRASP_REACH_M
    return max(abs(ahead), abs(-left - WRIST_OUT_M - state.position[ARM])), lift_m


def _is_straight(state: RobotState) -> bool:
    return max(abs(state.position[WRIST_YAW]), abs(state.position[WRIST_PITCH] - DOWN_RAD)) < WRIST_TOLERANCE_RAD


def _is_slow(state: RobotState) -> bool:
    return max(abs(state.velocity[ARM]), abs(state.base_v_mps)) < SLOW_MPS


def _cup(target: SeenObject) -> Spot:
    return replace(spot_of(target), name="thing", height_m=0.10)


class LessonAtTable(Node):
    """The same with the simulated robot and the guard."""

    realtime = True
    seat = "policy"

    state = Subscription(RobotState, "robot/state", qos=QoS(lifespan_s=0.25))
    truth = Subscription(Truth, "sim/truth")
    guard = Subscription(GuardState, "guard/state", qos=QoS(required=False))
    command = Publisher(JointCommand, "command")

    def __init__(self, lesson: Lesson) -> None:
        self.lesson = lesson

    @every(hz=RATE_HZ)
    def tick(self) -> None:
        state, truth = self.state.latest(), self.truth.latest()
        if state is not None and truth is not None:
            self.command.publish(self.lesson.tick(state, truth.objects))

    @on(guard)
    def guarded(self, guard: GuardState) -> None:
        if guard.mode == "stopped":
            self.lesson.stop(guard.reason)


@dataclass(frozen=True, slots=True)
class Rows:
    """Lessons to learn from: felt (n, 29), wanted (n, 11), and which rows follow each other (n,)."""

    felt: NDArray[np.float32]
    wanted: NDArray[np.float32]
    runs: NDArray[np.int64]
    outcomes: tuple[tuple[str, str, str], ...]


def teach(
    seeds: Sequence[int], seconds: float, model: bytes | None = None, share: float = 0.0, is_imagined: bool = False
) -> Rows:
    """A lesson of so long at the table of each seed."""
    session = None
    if model is not None:
        cpu = ("CPUExecutionProvider",)
        session = PolicySession(model, name="the pupil", width_px=160, height_px=120, providers=cpu)
    felt: list[tuple[float, ...]] = []
    wanted: list[tuple[float, ...]] = []
    runs: list[int] = []
    outcomes: list[tuple[str, str, str]] = []
    for seed in seeds:
        left_s, number = seconds, 0
        while left_s > SHORTEST_S:  # whatever was touched, a fresh robot goes on at the same table
            lesson = Lesson(seed * MOST_LESSONS + number, session, share)
            left_s -= (_imagine if is_imagined else _simulate)(lesson, seed, left_s)
            notes = lesson.notes
            felt += notes.felt
            wanted += notes.wanted
            runs += [(seed * MOST_LESSONS + number) * MOST_ACTIONS + run for run in notes.runs]
            outcomes += notes.outcomes
            number += 1
    return Rows(np.array(felt, np.float32), np.array(wanted, np.float32), np.array(runs), tuple(outcomes))


def _simulate(lesson: Lesson, seed: int, seconds: float) -> float:
    """How long it took, s."""
    graph = (SimDriver(robot_params={"seed": seed}), Guard(arm="auto"), LessonAtTable(lesson))
    sim = Simulation(*graph, seed=seed)
    sim.run(seconds=seconds, until=lambda: lesson.is_stopped)
    took_s = sim.clock.now_ns() * 1e-9
    sim.close()
    return took_s


def _imagine(lesson: Lesson, seed: int, seconds: float) -> float:
    robot = ImaginedRobot(seed)
    for _ in range(int(seconds * RATE_HZ)):
        robot.follow(lesson.tick(robot.state(), robot.things), 1 / RATE_HZ)
    return seconds
