"""What the robot's touches give to a person's hand and foot, in N s, against what mechanics says of known bodies."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import pytest

from nodes.robot.protocol import JointLimit, RobotLimits
from nodes.sim.physics import BuiltRobot, DrivenJoint, PhysicsRobot
from nodes.sim.robot import SimRobot
from nodes.sim.world.room_mjcf import PHYSICS_STEP_S
from nodes.sim.world.scenario import layout_of
from runtime.clock import to_ns

WEIGHT_KG, SLED_KG = 2.0, 3.0
G_MPS2 = 9.81
REACH_M = 0.1
COLLISION_ROBOT, COLLISION_PERSON = 'contype="2" conaffinity="0"', 'contype="8" conaffinity="2"'
SCENE = f"""
<mujoco>
  <option timestep="{PHYSICS_STEP_S}" gravity="0 0 -{G_MPS2}" integrator="implicitfast" cone="elliptic"/>
  <worldbody>
    <body name="hand" mocap="true" pos="0 0 -1"><geom type="box" size="0.1 0.1 0.02" {COLLISION_PERSON}/></body>
    <body name="foot" mocap="true" pos="9 0 0"><geom type="box" size="0.05 0.1 0.1" {COLLISION_PERSON}/></body>
    <body name="weight"><joint name="down" type="slide" axis="0 0 1"/>
      <geom type="box" size="0.05 0.05 0.05" mass="{WEIGHT_KG}" {COLLISION_ROBOT}/></body>
    <body name="sled" pos="2 0 0"><joint name="along" type="slide" axis="1 0 0"/>
      <geom type="box" size="0.05 0.05 0.05" mass="{SLED_KG}" {COLLISION_ROBOT}/></body>
    <body name="arm" pos="0 5 0" gravcomp="1"><joint name="wrist" axis="0 0 1"/><geom size="0.05" mass="1"/></body>
  </worldbody>
  <actuator><position name="wrist" joint="wrist" kp="1" kv="0.1" forcerange="-1 1"/></actuator>
</mujoco>
"""
WRIST = JointLimit(name="wrist", lowest=-1.0, highest=1.0, speed=1.0, acceleration=1.0)


class Bodies(PhysicsRobot):
    """A robot of which two parts move freely: a weight that falls, and a sled."""

    limits = RobotLimits(joints=(WRIST,))

    def __init__(self) -> None:
        super().__init__(
            BuiltRobot(
                model=mujoco.MjModel.from_xml_string(SCENE),
                layout=replace(layout_of("clear-table"), things=()),
                joints=(DrivenJoint(limit=WRIST, carriers=("wrist",), folded=0.0),),
                hand="arm",
                fingers=("arm", "arm"),
                contact_percent={},
            )
        )
        self.now_ns = 0
        self.start(0)

    def let_pass(self, seconds: float) -> None:
        end_ns = self.now_ns + to_ns(seconds)
        while self.now_ns < end_ns:
            self.now_ns += to_ns(0.02)
            self.advance(self.now_ns)

    def impulse_n_s(self, part: str) -> float:
        impulses = self.truth().impulse_n_s
        assert impulses is not None
        return impulses[part]

    def speed_mps(self, joint: str) -> float:
        return float(self.data.joint(joint).qvel[0])


def test_a_weight_that_lies_on_a_hand_gives_its_weight_times_the_time() -> None:
    bodies = Bodies()
    bodies.move_person("hand", (0.0, 0.0, -0.07))  # its upper side is where the weight's lower side is
    bodies.let_pass(1.0)
    before_n_s = bodies.impulse_n_s("hand")
    bodies.let_pass(2.0)
    assert bodies.impulse_n_s("hand") - before_n_s == pytest.approx(WEIGHT_KG * G_MPS2 * 2.0, rel=1e-3)
    assert bodies.impulse_n_s("foot") == 0.0


def test_what_falls_on_a_hand_gives_all_its_momentum_and_its_weight() -> None:
    bodies = Bodies()
    bodies.move_person("hand", (0.0, 0.0, -0.07 - 0.2))
    bodies.let_pass(2.0)
    assert bodies.speed_mps("down") == pytest.approx(0.0, abs=1e-6)
    # From rest to rest, the hand gave back all that gravity gave, also while it fell.
    assert bodies.impulse_n_s("hand") == pytest.approx(WEIGHT_KG * G_MPS2 * 2.0, rel=0.01)


@pytest.mark.parametrize("speed_mps", [0.2, 0.5])
def test_a_collision_with_a_foot_gives_the_momentum_that_the_body_loses(speed_mps: float) -> None:
    bodies = Bodies()
    bodies.move_person("foot", (2.0 + 0.05 + 0.05 + REACH_M, 0.0, 0.0))
    bodies.data.joint("along").qvel[:] = speed_mps
    bodies.let_pass(2.0)
    lost_n_s = SLED_KG * (speed_mps - bodies.speed_mps("along"))
    assert lost_n_s >= SLED_KG * speed_mps * 0.99, "it was stopped, or thrown back"
    assert bodies.impulse_n_s("foot") == pytest.approx(lost_n_s, rel=1e-3)


def test_nothing_that_was_not_touched_has_taken_anything() -> None:
    robot = SimRobot(1)
    robot.start(0)
    robot.advance(to_ns(0.1))
    truth = robot.truth()
    assert (truth.touched, truth.impulse_n_s) == ((), {"hand": 0.0, "foot": 0.0})


def test_what_was_told_does_not_change_afterwards() -> None:
    bodies = Bodies()
    bodies.move_person("hand", (0.0, 0.0, -0.07))
    bodies.let_pass(0.1)
    told = bodies.truth().impulse_n_s
    assert told is not None
    before = dict(told)
    bodies.let_pass(0.1)
    assert told == before
    assert bodies.impulse_n_s("hand") > before["hand"]
