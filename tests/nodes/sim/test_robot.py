from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from nodes.msgs import JOINTS, JointCommand, RobotState
from nodes.sim.camera import FARTHEST_M
from nodes.sim.messages import BodyPart
from nodes.sim.rendering.renderer import make_renderer
from nodes.sim.robot import SimRobot
from nodes.sim.world.table_scene import BIN_XY_M, BIN_Z_M, lay_table
from nodes.sim.world.world_file import Thing
from nodes.stretch import kinematics as k
from nodes.stretch.limits import STOW, STRETCH_3
from runtime.errors import UserError
from runtime.launch.file import find, load

PERIOD_NS = 20_000_000
PERIOD_S = 0.02
SPEED = np.array([joint.speed for joint in STRETCH_3.joints])


class Hand:
    """Sends ramps at the joints' speeds 50 times a second, as a guard does."""

    def __init__(self, seed: int = 0) -> None:
        self.robot = SimRobot(seed)
        self.robot.start(0)
        self.now_ns = 0
        self.position = np.array(STOW)
        self.state = self.robot.read(0)
        self.contacts: set[str] = set()

    def tick(self, target: np.ndarray[tuple[int], np.dtype[np.float64]], v_mps: float = 0.0) -> RobotState:
        self.position = self.position + np.clip(target - self.position, -SPEED * PERIOD_S, SPEED * PERIOD_S)
        self.robot.command(JointCommand(position=tuple(self.position.tolist()), base_v_mps=v_mps))
        return self.wait(1)

    def wait(self, periods: int) -> RobotState:
        for _ in range(periods):
            self.now_ns += PERIOD_NS
            self.robot.advance(self.now_ns)
        self.state = self.robot.read(self.now_ns)
        self.contacts.update(self.state.contact)
        return self.state

    def move(self, **joints: float) -> RobotState:
        target = self.position.copy()
        for name, value in joints.items():
            target[JOINTS.index(name)] = value
        while np.abs(target - self.position).max() > 1e-9:
            self.tick(target)
        for _ in range(10):
            self.tick(target)
        return self.state

    def drive(self, travel_m: float) -> None:
        goal, v_mps = self.state.base_x_m + travel_m, 0.0
        while abs(goal - self.state.base_x_m) > 0.003 or abs(v_mps) > 0.01:
            left = goal - self.state.base_x_m
            wanted = math.copysign(min(0.25, math.sqrt(0.4 * abs(left)), 3 * abs(left)), left)
            v_mps += min(max(wanted - v_mps, -0.006), 0.006)
            self.tick(self.position, v_mps)
        self.tick(self.position)

    def reach(self, target_m: tuple[float, float, float]) -> k.Reach:
        state = self.state
        reach = k.solve(target_m, state.base_x_m, state.base_y_m, state.base_heading_rad)
        assert reach is not None
        return reach


def grasp(hand: Hand, thing: Thing) -> None:
    """As the docstring of kinematics.py tells it."""
    at = (thing.x_m, thing.y_m, thing.z_m + 0.01)
    hand.drive(hand.reach(at).travel_m)
    reach = hand.reach(at)
    hand.move(lift=reach.lift_m + 0.2)
    hand.move(arm=reach.arm_m, wrist_yaw=0.0, wrist_pitch=k.DOWN_RAD, gripper=0.12)
    hand.move(lift=reach.lift_m)
    hand.move(gripper=0.0)


def cup(seed: int, colour: str) -> Thing:
    return next(thing for thing in lay_table(seed) if thing.name == f"{colour}_cup")


def test_starting_never_moves() -> None:
    robot = SimRobot()
    robot.start(5 * PERIOD_NS)
    before = robot.read(5 * PERIOD_NS)
    assert before.position == pytest.approx(STOW)
    robot.advance(5 * PERIOD_NS + 1_000_000_000)
    after = robot.read(5 * PERIOD_NS + 1_000_000_000)
    assert after.position == pytest.approx(STOW, abs=1e-3)
    assert (after.base_x_m, after.base_y_m, after.base_heading_rad) == pytest.approx((0, 0, 0), abs=1e-4)
    assert not after.contact
    assert not robot.truth().is_moving


@pytest.mark.parametrize("launch", ["wizard", "study"])
def test_whoever_sits_down_at_the_console_sees_the_table_in_the_first_picture(launch: str) -> None:
    driver = load(find(launch)).graph.nodes["driver"].params
    robot = SimRobot(**driver["robot_params"])
    robot.start(0)
    at_first = robot.read(0).position
    rgb, _ = make_renderer(robot.model, "head", 96, 72, "rays", FARTHEST_M).render(robot.data)
    saturated = np.ptp(rgb.astype(int), axis=2) > 80
    assert saturated.mean() > 0.02, "cups, balls and a bin; a wall is grey"
    robot.advance(1_000_000_000)
    assert robot.read(1_000_000_000).position == pytest.approx(at_first, abs=1e-3), "and nothing moves"


def test_a_head_turned_further_than_it_can_is_refused() -> None:
    with pytest.raises(UserError, match=r"head_pan_rad is -5\.0; expected -3\.88 to 1\.84"):
        SimRobot(head_pan_rad=-5.0)


def test_joints_follow_a_ramp_at_a_stretchs_speed() -> None:
    hand = Hand()
    hand.move(lift=0.7)  # above the table
    target = np.array([0.9, 0.4, 0.0, -1.5, 0.5, 0.1, -1.5, -0.8])
    worst = np.zeros(len(JOINTS))
    while np.abs(target - hand.position).max() > 1e-9:
        state = hand.tick(target)
        worst = np.maximum(worst, np.abs(np.array(state.position) - hand.position))
    # m for lift, arm and gripper; rad for the others, which travel at 2 to 3 rad/s
    assert (worst < [0.01, 0.015, 0.1, 0.1, 0.1, 0.01, 0.15, 0.15]).all()
    assert hand.wait(10).position == pytest.approx(target, abs=2e-3)
    assert not hand.contacts


def test_a_jump_of_a_target_is_followed_no_faster_than_the_joint_can() -> None:
    hand = Hand()
    hand.robot.command(JointCommand(position=(0.9, *STOW[1:])))
    for _ in range(20):
        assert abs(hand.wait(1).velocity[0]) < STRETCH_3.joints[0].speed * 1.2


def test_each_wheel_is_clamped_by_itself() -> None:
    hand = Hand()
    for _ in range(100):
        hand.robot.command(JointCommand(position=STOW, base_v_mps=0.5, base_w_radps=1.0))
        hand.wait(1)
    # The right wheel is at its limit either way, the left one at 0.5 - 1.0 * 0.3153 / 2 = 0.34, beyond it too.
    assert hand.state.base_v_mps == pytest.approx(0.30, abs=0.01)
    assert hand.state.base_w_radps == pytest.approx(0.0, abs=0.05)


def test_without_commands_the_base_stops_by_itself() -> None:
    hand = Hand()
    for _ in range(100):
        hand.tick(np.array(STOW), 0.25)
    assert hand.state.base_v_mps == pytest.approx(0.25, abs=0.01)
    assert hand.wait(20).base_v_mps > 0.2  # 0.4 s: not yet
    assert hand.wait(50).base_v_mps == pytest.approx(0.0, abs=0.005)


def test_stop_brakes_the_base_and_holds_the_joints() -> None:
    hand = Hand()
    target = np.array([0.9, *STOW[1:]])
    for _ in range(100):
        hand.tick(target, 0.2)
    hand.robot.stop()
    lift = hand.state.position[0]
    for _ in range(60):
        hand.robot.stop()
        hand.wait(1)
    assert hand.state.base_v_mps == pytest.approx(0.0, abs=0.005)
    assert hand.state.position[0] == pytest.approx(lift, abs=0.005)


@pytest.mark.parametrize("position", [(0.1,), (math.nan, *STOW[1:])])
def test_a_command_that_is_short_or_not_finite_is_refused(position: tuple[float, ...]) -> None:
    robot = SimRobot()
    with pytest.raises(ValueError, match="expected 8 finite positions"):
        robot.command(JointCommand(position=position))


def test_driving_against_a_foot_is_felt_and_seen() -> None:
    hand = Hand()
    hand.robot.move_person("foot", (0.28, 0.0, 0.04))
    felt = any("base" in hand.tick(np.array(STOW), 0.15).contact for _ in range(150))
    assert felt
    assert "foot" in hand.robot.truth().touched


def test_lowering_the_arm_onto_a_hand_is_felt_and_seen() -> None:
    hand = Hand()
    hand.move(lift=0.8)
    hand.move(wrist_yaw=0.0, arm=0.3)
    hand.robot.move_person("hand", (0.0, -0.6, 0.75))
    target = hand.position.copy()
    target[0] = 0.5
    felt = any("lift" in hand.tick(target).contact for _ in range(100))
    assert felt
    assert hand.robot.truth().touched == ("hand",)


def test_a_part_that_the_collaborator_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="known: hand, foot"):
        SimRobot().move_person("tail", (0.0, 0.0, 0.0))


def test_a_gripper_that_closes_on_nothing_grasps_nothing() -> None:
    hand = Hand()
    hand.move(gripper=0.12)
    hand.move(gripper=0.0)
    assert not hand.state.is_grasping
    assert hand.state.position[JOINTS.index("gripper")] == pytest.approx(0.0, abs=2e-3)


def test_a_grasped_cup_goes_up_with_the_hand_and_stays_when_let_go() -> None:
    hand = Hand(seed=1)
    thing = cup(1, "green")
    grasp(hand, thing)
    assert hand.state.is_grasping
    assert hand.move(lift=hand.state.position[0] + 0.1).is_grasping
    lifted = next(truth for truth in hand.robot.truth().objects if truth.name == thing.name)
    assert lifted.z_m == pytest.approx(thing.z_m + 0.1, abs=0.01)
    hand.move(lift=hand.state.position[0] - 0.099)
    assert not hand.move(gripper=0.12).is_grasping
    hand.move(lift=hand.state.position[0] + 0.1)
    left = next(truth for truth in hand.robot.truth().objects if truth.name == thing.name)
    assert (left.x_m, left.y_m, left.z_m) == pytest.approx((thing.x_m, thing.y_m, thing.z_m), abs=0.01)


@pytest.mark.parametrize("offset_m", [(0.0, 0.0), (0.015, -0.012)])
def test_a_cup_is_carried_from_the_table_into_the_bin(offset_m: tuple[float, float]) -> None:
    """The offset is what perception may be wrong by."""
    hand = Hand(seed=0)
    thing = cup(0, "blue")
    grasp(hand, replace(thing, x_m=thing.x_m + offset_m[0], y_m=thing.y_m + offset_m[1]))
    assert hand.state.is_grasping
    hand.move(lift=hand.state.position[0] + 0.2)
    over_bin = (*BIN_XY_M, BIN_Z_M[1] + 0.10)
    hand.drive(hand.reach(over_bin).travel_m)
    reach = hand.reach(over_bin)
    hand.move(arm=reach.arm_m)
    hand.move(lift=reach.lift_m)
    hand.move(gripper=0.12)
    hand.move(lift=reach.lift_m + 0.2)
    truth = hand.robot.truth()
    assert [thing.name for thing in truth.objects if thing.is_in_bin] == ["blue_cup"]
    assert not hand.contacts
    for laid, now in zip(lay_table(0), truth.objects, strict=True):
        if laid.name != "blue_cup":
            assert (now.x_m, now.y_m) == pytest.approx((laid.x_m, laid.y_m), abs=0.01)


def test_a_cup_that_is_let_go_after_a_long_pause_in_the_air_falls() -> None:
    hand = Hand(seed=1)
    thing = cup(1, "green")
    grasp(hand, thing)
    hand.move(lift=hand.state.position[0] + 0.2)
    for periods in range(0, 200, 7):  # whatever the engine makes of a thing that has not moved for so long
        hand.wait(periods // 100)
        hand.tick(hand.position)
    for _ in range(150):
        hand.tick(hand.position)
    hand.move(gripper=0.12)
    for _ in range(50):
        hand.tick(hand.position)
    dropped = next(truth for truth in hand.robot.truth().objects if truth.name == thing.name)
    assert dropped.z_m == pytest.approx(thing.z_m, abs=0.03)


def test_the_same_commands_give_the_same_run() -> None:
    worlds = []
    for _ in range(2):
        hand = Hand(seed=3)
        for _ in range(50):
            hand.tick(np.array([0.5, 0.2, 0.0, -1.0, 0.0, 0.1, -1.0, -0.5]), 0.1)
        worlds.append(hand.robot.world())
    np.testing.assert_array_equal(worlds[0].qpos, worlds[1].qpos)
    assert worlds[0].stepped_ns == worlds[1].stepped_ns == 50 * PERIOD_NS


def test_a_late_advance_makes_up_a_bounded_time() -> None:
    robot = SimRobot()
    robot.start(0)
    robot.advance(10_000_000_000)
    assert robot.skipped_s == pytest.approx(9.75)


def let_go_over(gesture: str, off_m: float = 0.0) -> tuple[Hand, str]:
    """A cup that is let go over a person's hand so far beside it, and its name."""
    hand = Hand(seed=1)
    thing = cup(1, "green")
    grasp(hand, thing)
    hand.move(lift=hand.state.position[0] + 0.25)
    x, y, z = hand.robot.data.body(thing.name).xpos.tolist()
    palm_m = z - thing.height_m / 2 - 0.03
    hand.robot.move_part(BodyPart(part="hand", x_m=x + off_m, y_m=y, z_m=palm_m, yaw_rad=math.pi / 2, gesture=gesture))
    assert held_by(hand, thing.name) == "robot"
    hand.move(gripper=0.12)
    hand.wait(50)
    return hand, thing.name


def held_by(hand: Hand, name: str) -> str:
    return next(one.held_by for one in hand.robot.truth().objects if one.name == name)


def test_what_is_let_go_over_an_open_hand_is_the_persons_and_goes_where_the_hand_goes() -> None:
    hand, name = let_go_over("open")
    assert held_by(hand, name) == "person"
    before = hand.robot.data.body(name).xpos.copy()
    x, y, z = hand.robot.data.body("hand").xpos.tolist()
    for _ in range(20):
        y -= 0.02
        hand.robot.move_part(BodyPart(part="hand", x_m=x, y_m=y, z_m=z, yaw_rad=math.pi / 2))
        hand.wait(2)
    assert hand.robot.data.body(name).xpos - before == pytest.approx((0.0, -0.4, 0.0), abs=0.02)
    assert held_by(hand, name) == "person"


@pytest.mark.parametrize(("gesture", "off_m"), [("", 0.0), ("open", 0.13)])
def test_a_hand_that_is_not_open_or_not_there_is_given_nothing(gesture: str, off_m: float) -> None:
    hand, name = let_go_over(gesture, off_m)
    assert held_by(hand, name) == ""
    assert hand.robot.data.body(name).xpos[2] < 0.6  # it fell on the table
