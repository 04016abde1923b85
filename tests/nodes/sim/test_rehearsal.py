"""The body in MuJoCo follows the motors of a twin, and they feel what it meets; virtual time, without the library."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from bridges.stretch.twin.robot import WHEEL_RAD_PER_M, TwinRobot
from nodes.msgs import JOINTS, JointCommand, JointVector
from nodes.sim.kinematic import KinematicRobot
from nodes.sim.rehearsal import RehearsalRobot, Told
from nodes.stretch import kinematics as k
from nodes.stretch.limits import STOW, STRETCH_3

PERIOD_NS = 20_000_000
THIS = f"{__name__}:Motors"


class Motors(KinematicRobot):
    """A driver that sends goals to a twin's motors without boards, buses or library between."""

    def __init__(self, speed: str, python: str) -> None:
        super().__init__()
        self.now_s = 0.0
        self.random = random.Random(0)
        self.twin = TwinRobot(lambda: self.now_s)
        for servo in self.twin.servos.values():
            servo.motor.has_torque = True

    def stand_at(self, position: JointVector) -> None:
        self.twin.stand_at(position)

    def command(self, command: JointCommand) -> None:
        for limit, value in zip(STRETCH_3.joints, command.position, strict=True):
            motor, zero, scale = self.twin.axis(limit.name)
            motor.goal = (zero + value * scale, limit.speed * abs(scale), limit.acceleration * abs(scale))
        for name in ("left_wheel", "right_wheel"):
            self.twin.motors[name].motor.velocity = (command.base_v_mps * WHEEL_RAD_PER_M, 0.3 * WHEEL_RAD_PER_M)

    def advance(self, now_ns: int) -> None:
        self.now_s = now_ns * 1e-9
        self.twin.step()

    def embody(self, between_m: float | None, wheels_percent: float, blocked: Mapping[str, float]) -> Told | None:
        self.twin.feel(between_m, wheels_percent, blocked)
        wheels = [self.twin.motors[name].motor for name in ("left_wheel", "right_wheel")]
        left_m, right_m = (wheel.place / WHEEL_RAD_PER_M for wheel in wheels)
        left_mps, right_mps = (wheel.speed / WHEEL_RAD_PER_M for wheel in wheels)
        is_late = self.random.random() < 0.1  # a twin whose answer came too late for this tick
        joints = self.twin.position(), self.twin.velocity()
        return (
            None if is_late else (round(self.twin.stepped_s * 1e9), *joints, (left_m, right_m), (left_mps, right_mps))
        )


class Rehearsal:
    def __init__(self, things: str = "") -> None:
        self.robot = RehearsalRobot(THIS, things=things)
        self.robot.start(0)
        assert isinstance(self.robot.player, Motors)
        self.twin = self.robot.player.twin
        self.now_ns = 0
        self.jitter = random.Random(1)
        self.felt: set[str] = set()
        self.goal = list(STOW)

    def go(self, seconds: float, v_mps: float = 0.0, **joints: float) -> None:
        for name, value in joints.items():
            self.goal[JOINTS.index(name)] = value
        for _ in range(round(seconds * 50)):
            self.now_ns += PERIOD_NS + self.jitter.randrange(-4_000_000, 4_000_000)
            self.robot.command(JointCommand(position=tuple(self.goal), base_v_mps=v_mps))
            self.robot.advance(self.now_ns)
            motors = self.twin.motors
            self.felt |= {name for name, board in motors.items() if abs(board.motor.effort_percent) > 50}

    def at(self, *joints: str) -> float:
        """Where the body's joint is."""
        return sum(float(self.robot.data.joint(name).qpos[0]) for name in joints)


def test_what_the_robot_begins_with_is_where_its_motors_are_and_nothing_moves() -> None:
    rehearsal = Rehearsal()
    rehearsal.go(1.0)
    assert rehearsal.twin.position() == pytest.approx(STOW, abs=1e-6)
    assert not rehearsal.robot.truth().is_moving
    assert rehearsal.at("wrist_yaw") == pytest.approx(STOW[2], abs=1e-3)


def test_the_body_goes_where_the_motors_go() -> None:
    rehearsal = Rehearsal()
    rehearsal.go(4.0, 0.12, lift=0.6, head_pan=-1.5, head_tilt=-0.6)
    rehearsal.go(1.5, 0.0, wrist_pitch=-1.2, gripper=0.08)
    position = rehearsal.twin.position()
    for name in ("lift", "wrist_yaw", "wrist_pitch", "head_pan", "head_tilt"):
        assert rehearsal.at(name) == pytest.approx(position[JOINTS.index(name)], abs=4e-3), name
    assert rehearsal.at("finger_left", "finger_right") == pytest.approx(0.08, abs=2e-3)
    rolled_m = rehearsal.twin.motors["left_wheel"].motor.place / WHEEL_RAD_PER_M
    assert rehearsal.robot.truth().robot_x_m == pytest.approx(rolled_m, abs=2e-3)
    assert rolled_m > 0.4
    assert rehearsal.felt == set(), "ticks that come early or late, and answers that do not come, are no touch"


def test_a_thing_between_the_fingers_is_felt_by_the_grippers_servo_and_comes_up_with_it() -> None:
    rehearsal = Rehearsal("blue_cup")
    cup = next(thing for thing in rehearsal.robot.truth().objects if thing.name == "blue_cup")
    reach = k.solve((cup.x_m, cup.y_m, cup.z_m + 0.01), 0.0, 0.0, 0.0)
    assert reach is not None
    rehearsal.go(4.5, lift=reach.lift_m + 0.2)
    for _ in range(100):
        rehearsal.go(0.02, 2 * (reach.travel_m - rehearsal.robot.truth().robot_x_m))
    assert rehearsal.robot.truth().robot_x_m == pytest.approx(reach.travel_m, abs=0.01)
    rehearsal.go(3.0, arm=reach.arm_m, wrist_yaw=0.0, wrist_pitch=k.DOWN_RAD, gripper=0.12)
    rehearsal.go(3.0, lift=reach.lift_m)
    servo = rehearsal.twin.servos["stretch_gripper"]
    assert servo.between is None
    rehearsal.go(2.0, gripper=0.0)
    _, zero, scale = rehearsal.twin.axis("gripper")
    assert servo.between == pytest.approx(zero + 0.07 * scale, abs=0.006 * scale), "a cup is 7 cm wide"
    assert servo.motor.effort_percent < -30
    rehearsal.go(2.0, lift=reach.lift_m + 0.15)
    up = next(thing for thing in rehearsal.robot.truth().objects if thing.name == "blue_cup")
    assert up.z_m > cup.z_m + 0.12
    rehearsal.go(2.0, gripper=0.12)
    assert servo.between is None
    assert abs(servo.motor.effort_percent) < 5
    down = next(thing for thing in rehearsal.robot.truth().objects if thing.name == "blue_cup")
    assert down.z_m < up.z_m - 0.05


def test_wheels_push_against_a_foot_and_slip_and_the_body_does_not_jump_when_it_is_gone() -> None:
    rehearsal = Rehearsal()
    rehearsal.go(0.2)
    rehearsal.robot.move_person("foot", (0.30, 0.0, 0.04))
    felt = 0.0
    for _ in range(60):
        rehearsal.go(0.05, 0.12)
        felt = max(felt, abs(rehearsal.twin.motors["left_wheel"].motor.effort_percent))
    assert felt > 60
    assert "foot" in rehearsal.robot.truth().touched
    rehearsal.go(1.0)
    stood_m = rehearsal.robot.truth().robot_x_m
    rehearsal.robot.move_person("foot", (0.7, 1.9, 0.04))
    rehearsal.go(1.0)
    assert rehearsal.robot.truth().robot_x_m == pytest.approx(stood_m, abs=0.01)
    assert rehearsal.twin.motors["left_wheel"].motor.place / WHEEL_RAD_PER_M > stood_m + 0.05


def test_a_lift_that_comes_down_onto_a_hand_does_not_get_on_and_its_board_says_so() -> None:
    rehearsal = Rehearsal()
    rehearsal.go(5.0, lift=0.8)
    rehearsal.go(2.5, wrist_yaw=0.0, arm=0.3)
    rehearsal.robot.move_person("hand", (0.0, -0.6, 0.75))
    rehearsal.go(3.0, lift=0.5)
    lift = rehearsal.twin.motors["lift"].motor
    assert lift.is_blocked
    assert lift.effort_percent < -90
    assert rehearsal.robot.truth().touched == ("hand",)
    rehearsal.go(2.0, lift=0.8)
    assert rehearsal.at("lift") == pytest.approx(0.8, abs=0.01)
