"""`imagine`: lessons at tables without physics: a robot is given actions, and a teacher says at each tick what to do.

The teacher acts on what the pupil would believe of its target: a guess before it is seen, then an estimate that gets
better as the hand comes near. So both are told the same in the same place. Whoever moves, each tick is labelled
(DAgger).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from examples.train_policy.base_lesson import BaseLesson
from examples.train_policy.imagined import ImaginedRobot
from examples.train_policy.teacher import lift_for
from examples.train_visuomotor.teacher import Aim, wanted
from nodes.msgs import JointCommand, RobotState
from nodes.policy.onnx.chunks import Playback, as_message
from nodes.policy.onnx.inputs import PolicyAnswer, pose_of
from nodes.policy.skill_phases import Spot
from nodes.sim.messages import ObjectTruth
from nodes.sim.world.table_scene import BIN_XY_M, BIN_Z_M, SIZES_M, TABLE_HEIGHT_M, lay_table
from nodes.stretch.kinematics import GRIPPER, HEAD_PAN, HEAD_TILT, LIFT, from_odometry, grasp_point, to_odometry

RATE_HZ = 25
WIDTH_PX, HEIGHT_PX = 64, 48
"""Of both pictures, as the policy sees them."""
STEP_S = 0.08
"""Of a chunk: every other tick."""
SKILLS = ("pick", "place", "look")
NAMES = (*(name.replace("_", " ") for name in SIZES_M), "bin")
"""What an action may be about; the place in this tuple stands for it."""
BIN = len(NAMES) - 1
HEIGHTS_M = tuple(height for _, height in SIZES_M.values())
LONGEST_S = {"pick": 30.0, "place": 25.0, "look": 4.0}
IS_LOW_M, LEAVES_LOW = 0.08, 0.2
"""Of the picks so many are replaced by another action while the gripper is beside the thing."""
BLEND_S = 0.24
"""How long a chunk counts: what it expects of later depends on how fast the base really gets there."""
LATER_M = {"red cup": 0.0, "green cup": 0.07, "yellow cup": -0.07, "white cup": 0.02, "blue cup": -0.03}
"""How far beyond the bin's middle each is let go: upon each other they would be a tower."""


@dataclass
class Rows:
    """What a lesson gives, a row a tick; shapes (n, ...)."""

    felt: list[tuple[float, ...]] = field(default_factory=list)  # joints, velocity, grasp, v
    pose: list[tuple[float, float, float]] = field(default_factory=list)
    aim: list[tuple[float, ...]] = field(default_factory=list)  # skill number, believed ahead, left, up, lift
    run: list[int] = field(default_factory=list)  # of the same action
    about: list[tuple[int, int]] = field(default_factory=list)  # what the action is about, and what is held (-1)
    true: list[tuple[float, ...]] = field(default_factory=list)  # joints, pose, three numbers a thing; for pictures
    outcomes: list[tuple[str, str, str]] = field(default_factory=list)


def plane_of(about: int) -> float:
    """The height of what is looked at: a thing's middle, the bin's rim."""
    return BIN_Z_M[1] if about == BIN else TABLE_HEIGHT_M + HEIGHTS_M[about] / 2


def lift_of(about: int) -> float:
    """The lift that grasps a thing on the table."""
    return 0.0 if about == BIN else lift_for(Spot("", 0.0, 0.0, plane_of(about), HEIGHTS_M[about]).grasp_z_m)


def beyond_of(held: int) -> float:
    """How far beyond the bin's middle what is held is let go, m."""
    return LATER_M.get(NAMES[held], 0.0) if held >= 0 else 0.0


Pupil = Callable[[tuple[float, ...]], tuple[NDArray[np.float64], float]]
"""From felt and aim, one after the other, to a chunk and how sure it is that it is done."""


class Belief:
    """Where the robot believes its target to be, as eyes would tell; odometry frame, x and y in m."""

    def __init__(self, dice: random.Random, *, is_known: bool) -> None:
        self.dice = dice
        self.unseen_s = 0.0 if is_known else dice.uniform(0.1, 1.2)
        off = 0.02 if is_known else 0.25
        self.error = [dice.gauss(0, off), dice.gauss(0, off)]
        self.bias = [dice.gauss(0, 0.012), dice.gauss(0, 0.012)]
        self.near_bias = [dice.gauss(0, 0.004), dice.gauss(0, 0.004)]

    def at(self, truth: tuple[float, float], hand: tuple[float, float], *, is_frozen: bool) -> tuple[float, float]:
        """One tick later; better near the hand, and as it was while what it is about is in the hand."""
        self.unseen_s -= 1 / RATE_HZ
        if self.unseen_s <= 0 and not is_frozen:
            nearness = math.exp(-((math.dist(truth, hand) / 0.12) ** 2))
            for axis in range(2):
                mean = self.bias[axis] + nearness * (self.near_bias[axis] - self.bias[axis])
                self.error[axis] += 0.12 * (mean + self.dice.gauss(0, 0.008) - self.error[axis])
        return truth[0] + self.error[0], truth[1] + self.error[1]


class Lesson(BaseLesson):
    """A lesson at a table whose things are where the robot believes them."""

    rate_hz = RATE_HZ

    def __init__(self, seed: int, pupil: Pupil | None = None, share: float = 0.0) -> None:
        self.rows = Rows()
        super().__init__(seed, share, self.rows.outcomes, has_pupil=pupil is not None)
        self.pupil = pupil
        self.number = -1
        self.skill, self.about, self.held = "", -1, -1
        self.look_m = (0.0, 0.0, 0.0)
        self.elapsed_s = 0.0
        self.sure = 0
        self.now_ns = 0
        self.playback = Playback(BLEND_S)
        self.leaves_low = False
        self.belief = Belief(self.dice, is_known=True)

    def tick(self, state: RobotState, things: list[ObjectTruth], held: int) -> JointCommand:
        """What is done now; it is noted beside what should be."""
        self.held = held
        if self.number < 0 or self.elapsed_s > self.ends_s:
            self._next(state, things)
        self.elapsed_s += 1 / RATE_HZ
        self.now_ns += round(1e9 / RATE_HZ)
        aim = self._aim(state, things)
        row, done = wanted(aim, state)
        felt = (*state.position, *state.velocity, float(state.is_grasping), state.base_v_mps)
        about = (float(SKILLS.index(aim.skill)), aim.ahead_m, aim.left_m, aim.up_m, aim.lift_m)
        rows = self.rows
        rows.felt.append(felt)
        rows.pose.append(pose_of(state))
        rows.aim.append(about)
        rows.run.append(self.number)
        rows.about.append((self.about, held))
        if self.is_pupil and self.pupil is not None:
            chunk, sure = self.pupil((*felt, *about))
            message = as_message(PolicyAnswer(chunk, sure), STEP_S, self.now_ns, "")
            self.playback = self.playback.with_chunk(message, seen_ns=self.now_ns, came_ns=self.now_ns)
            command = self.playback.command(self.now_ns + 1)
            assert command is not None
            self.sure = self.sure + 1 if sure >= 0.5 else 0
            if self.sure == 3:
                self.end("success" if done else "says that it is done, and is not", 0.4)
        else:
            if done:
                self.end("success", self.dice.uniform(0.2, 1.5))
            command = self.pushed(row)
        is_beside = state.position[LIFT] < aim.lift_m + IS_LOW_M and not state.is_grasping
        if self.leaves_low and is_beside and self.dice.random() < 0.05:
            self.ends_s = 0.0
        if self.elapsed_s >= LONGEST_S[self.skill]:
            self.end("takes too long", 0.0)
        return command

    def end(self, outcome: str, more_s: float) -> None:
        """Note how the action ended, once; it goes on for so long at most."""
        self.over(self.skill, outcome, self.elapsed_s, more_s)

    def _aim(self, state: RobotState, things: list[ObjectTruth]) -> Aim:
        pose = pose_of(state)
        if self.skill == "look":
            x, y, up = self.look_m
            lift_m = 0.0
        else:
            truth = self._truth(things)
            hand = to_odometry(*pose, grasp_point(state.position))
            is_frozen = state.is_grasping and self.skill == "pick"
            x, y = self.belief.at(truth, (float(hand[0]), float(hand[1])), is_frozen=is_frozen)
            up, lift_m = plane_of(self.about), lift_of(self.about)
        ahead, left, _ = from_odometry(*pose, np.array((x, y, 0.0))).tolist()
        return Aim(self.skill, ahead, left, up, lift_m)

    def _truth(self, things: list[ObjectTruth]) -> tuple[float, float]:
        if self.about == BIN:
            return BIN_XY_M[0], BIN_XY_M[1] - beyond_of(self.held)
        return things[self.about].x_m, things[self.about].y_m

    def _next(self, state: RobotState, things: list[ObjectTruth]) -> None:
        self.number, self.is_over, self.elapsed_s, self.sure = self.number + 1, False, 0.0, 0
        on_table = [
            number for number, thing in enumerate(things)
            if not thing.is_in_bin and thing.z_m > TABLE_HEIGHT_M and number != self.held
        ]  # fmt: skip
        dice = self.dice
        if dice.random() < 0.2 or (not on_table and not state.is_grasping):
            self.skill, self.about = "look", -1
            self.look_m = (dice.uniform(-0.6, 1.0), dice.uniform(-0.9, 0.1), dice.uniform(0.3, 0.55))
        elif state.is_grasping:
            self.skill, self.about = "place", BIN
        else:
            self.skill, self.about = "pick", dice.choice(on_table)
        if self.skill != "look":
            self.belief = Belief(dice, is_known=dice.random() < 0.4)
        self.choose_who()
        self.playback = Playback(BLEND_S)
        self.leaves_low = self.skill == "pick" and dice.random() < LEAVES_LOW
        self.begin(LONGEST_S[self.skill], is_grasping=state.is_grasping)


class RobotAtTable(ImaginedRobot):
    """It stands straight beside the very things that the cameras are shown."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.pose = [0.0, 0.0, 0.0]
        self.sizes = SIZES_M
        self.things = [
            ObjectTruth(
                name=one.name, label=one.label, colour=one.colour,
                x_m=one.x_m, y_m=one.y_m, z_m=one.z_m, is_in_bin=False,
            )
            for one in lay_table(self.seed)
        ]  # fmt: skip


def imagine(seed: int, seconds: float, pupil: Pupil | None = None, share: float = 0.0) -> Rows:
    """A lesson at the table of a seed; the robot begins somewhere beside it."""
    robot, lesson = RobotAtTable(seed), Lesson(seed, pupil, share)
    dice = random.Random(f"begins/{seed}")
    if dice.random() < 0.7:
        robot.pose = [dice.uniform(-0.5, 0.5), dice.gauss(0, 0.02), dice.gauss(0, 0.03)]
    if dice.random() < 0.6:
        robot.position[LIFT] = dice.uniform(0.1, 0.95)
    if dice.random() < 0.8:
        robot.position[HEAD_PAN], robot.position[HEAD_TILT] = dice.uniform(-2.2, 0.3), dice.uniform(-0.9, 0.1)
    if dice.random() < 0.5:
        robot.position[GRIPPER] = dice.uniform(0.0, 0.115)
    order = [robot.things.index(next(one for one in robot.things if f"{one.colour} {one.label}" == name))
             for name in NAMES[:BIN]]  # fmt: skip
    for _ in range(int(seconds * RATE_HZ)):
        things = [robot.things[place] for place in order]
        held = order.index(robot.held) if robot.held >= 0 else -1
        state = robot.state()
        command = lesson.tick(state, things, held)
        places = [value for thing in things for value in (thing.x_m, thing.y_m, thing.z_m)]
        lesson.rows.true.append((*robot.position.tolist(), *robot.pose, *places))
        robot.follow(command, 1 / RATE_HZ)
    return lesson.rows
