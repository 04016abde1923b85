"""Skills, against a robot that is nothing but joints which follow their goals at their own speed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from nodes.msgs import JointVector, RobotState
from nodes.policy.skill_phases import (
    LOOK,
    PICK,
    PLACE,
    PUT_BACK,
    OutOfReach,
    SkillProgress,
    Spot,
    begin,
    plan,
    retreat,
    step,
)
from nodes.policy.stretch_motion import OPEN_M, StretchMotion, out_of_reach, travel_lift_m
from nodes.stretch.kinematics import ARM, GRIPPER, LIFT, WRIST_YAW, grasp_point, to_odometry
from nodes.stretch.limits import STOW, STRETCH_3
from tests.support.sentences import sentence

MOTION = StretchMotion()
PERIOD_S = 0.05
TALLEST_M = 0.67
TABLE_NEAR_Y_M = -0.40
RED = Spot("red cup", -0.18, -0.50, 0.55, 0.10)
GREEN = Spot("green cup", 0.12, -0.66, 0.55, 0.10)
BIN = Spot("bin", 0.66, -0.58, 0.26, 0.28)


@dataclass
class Joints:
    """Joints at constant speed, a base on a line, and cups that the fingers can close on."""

    position: JointVector = STOW
    x_m: float = 0.0
    heading_rad: float = 0.0
    v_mps: float = 0.0
    cups: tuple[Spot, ...] = (RED, GREEN)
    held: str = ""
    slips: bool = False

    def state(self, arm_mps: float = 0.0) -> RobotState:
        return RobotState(
            read_ns=0,
            position=self.position,
            velocity=(0.0, arm_mps, *(0.0,) * 6),
            effort=(0.0,) * 8,
            base_x_m=self.x_m,
            base_y_m=0.0,
            base_heading_rad=self.heading_rad,
            base_v_mps=self.v_mps,
            base_w_radps=0.0,
            is_grasping=bool(self.held),
        )

    def follow(self, goal: JointVector, v_mps: float, w_radps: float) -> None:
        joints = zip(goal, self.position, STRETCH_3.joints, strict=True)
        moved = [now + min(max(to - now, -j.speed * PERIOD_S), j.speed * PERIOD_S) for to, now, j in joints]
        change = STRETCH_3.base.acceleration_mps2 * PERIOD_S
        self.v_mps = min(max(v_mps, self.v_mps - change), self.v_mps + change)
        self.x_m += self.v_mps * PERIOD_S
        self.heading_rad += w_radps * PERIOD_S
        near = self._near()
        if self.held and moved[GRIPPER] > self.position[GRIPPER]:
            self.held = ""
        elif near and not self.slips and goal[GRIPPER] < 0.06 and moved[GRIPPER] < 0.07:
            self.held = near
        if self.held:
            moved[GRIPPER] = max(moved[GRIPPER], 0.07)
        self.position = tuple(moved)

    def finger_ends(self) -> tuple[float, float, float]:
        x, y, z = to_odometry(self.x_m, 0.0, self.heading_rad, grasp_point(self.position))
        return float(x), float(y), float(z)

    def _near(self) -> str:
        x, y, z = self.finger_ends()
        near = [
            cup.name
            for cup in self.cups
            if math.dist((x, y), (cup.x_m, cup.y_m)) < 0.02 and abs(z - cup.grasp_z_m) < 0.02
        ]
        return near[0] if near else ""


Check = Callable[[Joints, SkillProgress], None]


def act(
    robot: Joints, progress: SkillProgress, *, for_s: float = 60.0, check: Check | None = None, is_seen: bool = True
) -> tuple[SkillProgress, str, float]:
    """Run until an outcome: the progress, the outcome and the seconds that it took."""
    elapsed_s = 0.0
    while elapsed_s < for_s:
        done = step(progress, robot.state(), motion=MOTION, period_s=PERIOD_S, tallest_m=TALLEST_M, is_seen=is_seen)
        robot.follow(done.goal, done.base_v_mps, done.base_w_radps)
        progress = done.progress
        elapsed_s += PERIOD_S
        if check is not None:
            check(robot, progress)
        if done.outcome:
            return progress, done.outcome, elapsed_s
    return progress, "", elapsed_s


def started(robot: Joints, skill: object, spot: Spot, held: Spot | None = None) -> SkillProgress:
    assert isinstance(skill, tuple)
    return begin(plan(skill, spot), robot.state(), held, motion=MOTION)


def test_pick_takes_the_cup_and_place_lets_it_go_over_the_bin() -> None:
    robot = Joints()
    progress, outcome, pick_s = act(robot, started(robot, PICK, RED))
    assert (outcome, robot.held, progress.held) == ("success", "red cup", RED)
    progress, outcome, place_s = act(robot, started(robot, PLACE, BIN, progress.held))
    assert (outcome, robot.held, progress.held) == ("success", "", None)
    x, y, _ = robot.finger_ends()
    assert math.dist((x, y), (BIN.x_m, BIN.y_m)) < 0.03
    assert pick_s + place_s < 25.0


def test_the_first_goal_of_any_skill_is_where_the_robot_is_or_up() -> None:
    robot = Joints()
    first = step(started(robot, PICK, RED), robot.state(), motion=MOTION, period_s=PERIOD_S, tallest_m=TALLEST_M)
    assert first.goal[ARM] == STOW[ARM]
    assert first.goal[WRIST_YAW] == STOW[WRIST_YAW]
    assert first.goal[LIFT] > STOW[LIFT]


def test_nothing_moves_sideways_over_the_table_below_travel_height() -> None:
    robot = Joints()
    before = [robot.finger_ends()]

    def check(robot: Joints, progress: SkillProgress) -> None:
        x, y, z = robot.finger_ends()
        sideways_m = math.dist((x, y), before[-1][:2])
        is_over_table = y < TABLE_NEAR_Y_M and x < 0.5
        hang_m = progress.held.hang_m if progress.held else 0.02
        if is_over_table and sideways_m > 0.002:
            assert z - hang_m > TALLEST_M
        before.append((x, y, z))

    progress, *_ = act(robot, started(robot, PICK, RED), check=check)
    progress, *_ = act(robot, started(robot, PLACE, BIN, progress.held), check=check)
    progress, outcome, _ = act(robot, started(robot, PICK, GREEN, progress.held), check=check)
    assert outcome == "success"


@pytest.mark.parametrize("after_s", [2.0, 6.0, 7.5, 8.5, 9.0, 9.5, 10.0, 11.0, 12.0])
def test_another_pick_at_any_moment_goes_up_before_it_goes_on(after_s: float) -> None:
    robot = Joints()
    progress, *_ = act(robot, started(robot, PICK, RED), for_s=after_s)
    skills = plan(PICK, GREEN) if progress.held is None else plan(PUT_BACK, progress.held) + plan(PICK, GREEN)
    start = robot.finger_ends()

    def check(robot: Joints, progress: SkillProgress) -> None:
        x, y, z = robot.finger_ends()
        is_at_a_cup = min(abs(x - start[0]), abs(x - RED.x_m), abs(x - GREEN.x_m)) < 0.01
        assert z > TALLEST_M or y > TABLE_NEAR_Y_M or is_at_a_cup

    progress, outcome, _ = act(robot, begin(skills, robot.state(), progress.held, motion=MOTION), check=check)
    assert (outcome, robot.held) == ("success", "green cup")


def test_put_back_sets_the_cup_down_where_it_was_taken() -> None:
    robot = Joints()
    progress, *_ = act(robot, started(robot, PICK, RED))
    progress, *_ = act(robot, started(robot, PLACE, BIN, progress.held), for_s=3.0)
    assert progress.held is not None
    let_go: list[tuple[float, float, float]] = []

    def check(robot: Joints, progress: SkillProgress) -> None:
        if not robot.held and not let_go:
            let_go.append(robot.finger_ends())

    skills = plan(PUT_BACK, progress.held) + plan(PICK, GREEN)
    act(robot, begin(skills, robot.state(), progress.held, motion=MOTION), check=check)
    assert math.dist(let_go[0], (RED.x_m, RED.y_m, RED.grasp_z_m)) < 0.02


def test_pick_of_a_cup_that_is_not_there_fails_and_retreats() -> None:
    robot = Joints(cups=())
    progress, outcome, _ = act(robot, started(robot, PICK, RED))
    assert outcome == f"{sentence('policy.nothing_between_fingers')} at the red cup"
    progress, *_ = act(robot, retreat(progress, robot.state(), motion=MOTION), for_s=5.0)
    assert progress.phase is None
    assert robot.position[LIFT] == pytest.approx(travel_lift_m(TALLEST_M, None), abs=0.02)
    assert robot.position[GRIPPER] == pytest.approx(OPEN_M, abs=0.01)


def test_pick_does_not_lower_onto_a_cup_that_its_own_image_does_not_show() -> None:
    robot = Joints()
    _, outcome, _ = act(robot, started(robot, PICK, RED), is_seen=False)
    assert outcome == sentence("policy.not_in_the_image", what="red cup")
    assert robot.position[LIFT] > travel_lift_m(TALLEST_M, None) - 0.02


def test_a_cup_lost_on_the_way_is_a_failure_that_says_so() -> None:
    robot = Joints()
    progress, *_ = act(robot, started(robot, PICK, RED))
    robot.slips, robot.held = True, ""
    progress, outcome, _ = act(robot, started(robot, PLACE, BIN, progress.held))
    assert outcome == sentence("policy.gripper_lost_it", doing="carrying it to the bin")
    assert progress.held is None


def test_a_target_beyond_the_arm_is_out_of_reach_before_anything_moves() -> None:
    far = replace(RED, y_m=-1.2)
    robot = Joints()
    first = step(started(robot, PICK, far), robot.state(), motion=MOTION, period_s=PERIOD_S, tallest_m=TALLEST_M)
    assert first.outcome == sentence("policy.out_of_reach", what="red cup", y_m="-1.20", base_y_m="0.00")
    assert isinstance(first.outcome, OutOfReach)
    assert (first.goal, first.base_v_mps) == (STOW, 0.0)
    assert out_of_reach(RED, robot.state()) == ""


def test_a_phase_that_takes_too_long_fails_in_words() -> None:
    robot = Joints()
    progress = started(robot, PICK, RED)
    outcome = ""
    for _ in range(700):
        done = step(
            progress, robot.state(), motion=MOTION, period_s=PERIOD_S, tallest_m=TALLEST_M
        )  # the robot does not follow
        progress, outcome = done.progress, done.outcome
        if outcome:
            break
    assert outcome == "the gripper does not get above the red cup"


def test_look_moves_only_the_head() -> None:
    robot = Joints()
    _, outcome, _ = act(robot, started(robot, LOOK, RED))
    assert outcome == "success"
    assert robot.position[:6] == STOW[:6]
    assert robot.x_m == 0.0


def test_the_base_steers_back_to_its_heading_while_driving() -> None:
    robot = Joints(heading_rad=0.04)
    _, outcome, _ = act(robot, started(robot, PICK, RED))
    assert outcome == "success"
    assert abs(robot.heading_rad) < 0.02


def test_a_moving_joint_is_asked_to_rest_where_braking_ends() -> None:
    state = Joints().state()
    moving = Joints().state(arm_mps=0.3)
    assert MOTION.resting(moving, None)[ARM] == pytest.approx(0.3**2 / 2 / 0.4)
    assert MOTION.resting(state, RED)[GRIPPER] == 0.0


def test_a_cup_just_beyond_the_arm_is_taken_with_the_gripper_leaning_out() -> None:
    far = replace(RED, y_m=-0.71)
    robot = Joints(cups=(far,))
    _, outcome, _ = act(robot, started(robot, PICK, far))
    assert (outcome, robot.held) == ("success", "red cup")
