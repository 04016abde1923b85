"""Where the seat drives by pictures, its launch file says so: without a picture, or by a still one, nothing moves."""

from __future__ import annotations

import numpy as np
import pytest

from nodes.guard.node import Guard
from nodes.guard.retreat import SHARE
from nodes.msgs import JOINTS, GuardState, Image, Interrupt, JointCommand, RobotState
from nodes.msgs.signature import Signatures, order
from nodes.robot.driver import Driver
from runtime import Node, Publisher, Simulation, Subscription, every
from runtime.launch.file import find, load
from runtime.launch.graph import NodeSpec
from tests.support.robots.still_robot import StillRobot
from tests.support.sentences import sentence
from tests.support.standing import HOME

SPEED_MPS = 0.1
PAN = JOINTS.index("head_pan")
BY_PICTURES = ("stretch", "wizard", "study", "webcam")


class FreezingCamera(Node):
    """Ten pictures a second until it freezes: then the last one again and again, as some drivers do, or nothing."""

    image = Publisher(Image, "head/image")

    def __init__(self) -> None:
        self.is_on = self.repeats = self.is_frozen = self.stamps_anew = False
        self.captured_ns = 0
        self.noise = np.random.default_rng(1)
        self.rgb = np.zeros((8, 8, 3), np.uint8)

    @every(hz=10)
    def tick(self) -> None:
        if not self.is_frozen:
            self.rgb = self.noise.integers(0, 255, self.rgb.shape, np.uint8)
        if not self.is_frozen or self.stamps_anew:
            self.captured_ns = self.clock.now_ns()
        if self.is_on and (self.repeats or not self.is_frozen):
            rgb, depth = self.rgb, np.ones((8, 8), np.float32)
            self.image.publish(Image(camera="head", captured_ns=self.captured_ns, rgb=rgb, depth_m=depth, focal_px=6.0))


class Looking(Node):
    """A policy that reads the newest picture it has, and drives on without one."""

    image = Subscription(Image, "head/image")
    command = Publisher(JointCommand, "command")

    def __init__(self) -> None:
        self.v_mps, self.pan_rad = SPEED_MPS, HOME[PAN]

    @every(hz=20)
    def tick(self) -> None:
        self.image.latest()
        position = (*HOME[:PAN], self.pan_rad, *HOME[PAN + 1 :])
        self.command.publish(JointCommand(position=position, base_v_mps=self.v_mps))


@pytest.mark.parametrize("name", BY_PICTURES)
@pytest.mark.parametrize("repeats", [True, False])
def test_a_robot_that_drives_by_pictures_holds_without_one_and_when_the_camera_freezes(
    name: str, repeats: bool
) -> None:
    params = dict(load(find(name)).graph.nodes["guard"].params)
    guard, camera = Guard(**{**params, "arm": "auto", "memory": "run"}), FreezingCamera()
    sim = Simulation(StillRobot(), NodeSpec("guard", Guard, instance=guard), camera, Looking())
    states: list[GuardState] = sim.record_topic("guard/state", GuardState)
    sim.run(seconds=1.0)
    modes = [states[-1].mode]
    assert states[-1].rejected > 10
    camera.is_on = True
    sim.run(seconds=0.5)
    modes.append(states[-1].mode)
    camera.is_frozen, camera.repeats = True, repeats
    sim.run(seconds=1.5)
    modes.append(states[-1].mode)
    camera.is_frozen = False
    sim.run(seconds=0.5)
    modes.append(states[-1].mode)
    assert modes == ["armed", "moving", "holding", "moving"]


def test_what_the_guard_says_does_not_stem_from_the_pictures_that_it_watches() -> None:
    camera = FreezingCamera()
    camera.is_on = True
    sim = Simulation(StillRobot(), NodeSpec("guard", Guard, instance=Guard(arm="auto")), camera)
    sim.run(seconds=1.0)
    for topic in ("guard/state", "robot/command"):
        told = sim.latest_stamped(topic)
        assert told is not None
        assert told.envelope.born_ns("image") is None, topic


@pytest.mark.parametrize(("v_mps", "pan_rad"), [(SPEED_MPS, HOME[PAN]), (0.0, -3.0)])
def test_a_camera_that_repeats_one_picture_with_new_stamps_while_base_or_head_moves_holds_it_within_a_second(
    v_mps: float, pan_rad: float, caplog: pytest.LogCaptureFixture
) -> None:
    camera, robot, looking = FreezingCamera(), StillRobot(), Looking()
    looking.v_mps = v_mps
    sim = Simulation(robot, NodeSpec("guard", Guard, instance=Guard(arm="auto")), camera, looking)
    states: list[GuardState] = sim.record_topic("guard/state", GuardState)

    def mode() -> str:
        return states[-1].mode

    camera.is_on = True
    sim.run(seconds=1.0)
    assert mode() == "moving"
    camera.is_frozen = camera.repeats = camera.stamps_anew = True
    looking.pan_rad = pan_rad
    sim.run(seconds=1.0)
    assert mode() == "holding"
    assert sentence("guard.picture_is_stuck") in states[-1].reason
    sim.run(seconds=2.0)
    assert mode() == "holding"
    assert caplog.text.count(sentence("guard.camera_is_stuck", camera="head")) == 1
    camera.is_frozen = False
    sim.run(seconds=0.5)
    assert mode() == "moving"


@pytest.mark.parametrize("repeats", [True, False])
def test_a_camera_that_freezes_on_the_way_back_after_pain_leaves_it_slow_and_at_its_end_nothing_drives(
    repeats: bool,
) -> None:
    guard, camera = Guard(arm="auto", memory="run", needs=("image",)), FreezingCamera()
    driver = NodeSpec("driver", Driver, params={"robot": "nodes.sim.kinematic:KinematicRobot"})
    sim = Simulation(driver, NodeSpec("guard", Guard, instance=guard), camera, Looking())
    seen: list[RobotState] = sim.record_topic("robot/state", RobotState)

    def mode() -> str:
        return guard.machine.mode

    camera.is_on, camera.repeats = True, repeats
    sim.run(seconds=4.0)
    assert mode() == "moving"
    sim.publish("interrupt", Interrupt(id="o", depth="stop", text="Ouch!", by="Ann", is_pain=True))
    sim.run(seconds=1.5)
    guard.proofs = Signatures("t")
    sim.publish("guard/order", order("t", "resume", "Ann", sim.clock.now_ns()))
    sim.run(seconds=0.5)
    assert mode() == "retreating"
    camera.is_frozen, before = True, len(seen)
    sim.run(seconds=8.0)
    assert mode() == "holding", "what the policy makes of the last picture is refused"
    speeds = [state.base_v_mps for state in seen[before:]]
    assert -SHARE * SPEED_MPS - 0.005 <= min(speeds) < -0.01
    assert max(speeds) < 0.001
    assert speeds[-1] == pytest.approx(0.0, abs=0.001)
    camera.is_frozen = False
    sim.run(seconds=1.0)
    assert mode() == "moving"
