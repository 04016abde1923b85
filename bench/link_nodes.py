"""The graph of `bench.link`: a camera, and a far policy that sways the lift by what it sees."""

from __future__ import annotations

import math

import numpy as np

from nodes.msgs import Image, JointCommand, RobotState, SceneDescription, Subtask
from runtime import Node, Publisher, QoS, Subscription, every

SWAY_M, PERIOD_S = 0.05, 8.0


class Pictures(Node):
    """640x480 with depth, ten times a second; half of it is as hard on JPEG as a kitchen."""

    image = Publisher(Image, "head/image")

    def on_start(self) -> None:
        rgb = np.full((480, 640, 3), 90, np.uint8)
        noise = np.random.default_rng(1).normal(128, 12, (480, 320, 3))
        rgb[:, 320:] = noise.clip(0, 255).astype(np.uint8)
        self.rgb, self.depth_m = rgb, np.full((480, 640), 1.5, np.float32)

    @every(hz=10)
    def tick(self) -> None:
        now_ns = self.clock.now_ns()
        self.image.publish(Image(camera="head", captured_ns=now_ns, rgb=self.rgb, depth_m=self.depth_m, focal_px=600.0))


class Swaying(Node):
    """Lifts and lowers 20 times a second, by the newest picture and state."""

    seat = "policy"
    image = Subscription(Image, "head/image")
    state = Subscription(RobotState, "robot/state")
    command = Publisher(JointCommand, "command")
    begun: tuple[float, ...] = ()

    @every(hz=20)
    def tick(self) -> None:
        state = self.state.latest()
        if state is None or self.image.latest() is None:
            return
        self.begun = self.begun or state.position
        sway_m = SWAY_M * math.sin(self.clock.now_s() * math.tau / PERIOD_S)
        self.command.publish(JointCommand(position=(self.begun[0] + sway_m, *self.begun[1:])))


class Describing(Node):
    """A VLM that sees nothing, five times a second."""

    seat = "vlm"
    image = Subscription(Image, "head/image", qos=QoS(required=False))
    description = Publisher(SceneDescription, "description")

    @every(hz=5)
    def tick(self) -> None:
        self.image.latest()
        self.description.publish(SceneDescription(text="nothing", subtask_id="", progress="idle"))


class Planning(Node):
    """A planner with one plan."""

    seat = "planner"
    subtask = Publisher(Subtask, "subtask")

    @every(hz=1)
    def tick(self) -> None:
        self.subtask.publish(Subtask(id="1", text="sway", state="work"))
