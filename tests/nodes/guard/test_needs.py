"""Where the seat drives by pictures, its launch file says so: without a picture, or by a still one, nothing moves."""

from __future__ import annotations

import numpy as np
import pytest

from nodes.guard.node import Guard
from runtime import Node, Publisher, Simulation, Subscription, every
from runtime.launch.file import find, load
from runtime.launch.graph import NodeSpec
from runtime.msgs import GuardState, Image, JointCommand
from tests.support.standing import HOME
from tests.support.still_robot import StillRobot

BY_PICTURES = ("stretch", "wizard", "study", "webcam")


class FreezingCamera(Node):
    """Ten pictures a second until it freezes: then the last one again and again, as some drivers do, or nothing."""

    image = Publisher(Image, "head/image")

    def __init__(self) -> None:
        self.is_on = self.repeats = self.is_frozen = False
        self.captured_ns = 0

    @every(hz=10)
    def tick(self) -> None:
        if not self.is_frozen:
            self.captured_ns = self.clock.now_ns()
        if self.is_on and (self.repeats or not self.is_frozen):
            rgb, depth = np.zeros((8, 8, 3), np.uint8), np.ones((8, 8), np.float32)
            self.image.publish(Image(camera="head", captured_ns=self.captured_ns, rgb=rgb, depth_m=depth, focal_px=6.0))


class Looking(Node):
    """A policy that reads the newest picture it has, and drives on without one."""

    image = Subscription(Image, "head/image")
    command = Publisher(JointCommand, "command")

    @every(hz=20)
    def tick(self) -> None:
        self.image.latest()
        self.command.publish(JointCommand(position=HOME, base_v_mps=0.1))


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
