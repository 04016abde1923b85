"""What stands around the console while it is measured: a camera, a robot that hears commands, a control loop."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from nodes.msgs import GuardState, Image, JointCommand, RobotState
from runtime import Node, Publisher, QoS, Subscription, every, on
from runtime.coordination.lease import LEASE_TOPIC, Lease

STOW = (0.30, 0.0, 3.0, -0.62, 0.0, 0.0, 0.0, 0.0)
IDLE_NS = 300_000_000
"""After such a silence the next command is the first of a key press."""


class BenchCamera(Node):
    """Pictures with as much detail as a camera's, none like the last, at 15 Hz."""

    image = Publisher(Image, "head/image")

    def __init__(self, width: int = 640, height: int = 480) -> None:
        noise = np.random.default_rng(0).normal(0, 6, (height, width, 3))
        across = np.linspace(0, 200, width)[None, :, None]
        self._picture = np.clip(across + noise + 30, 0, 255).astype(np.uint8)
        self._shift = 0

    @every(hz=15)
    def capture(self) -> None:
        self._shift += 7
        now_ns = self.clock.now_ns()
        rgb = np.ascontiguousarray(np.roll(self._picture, self._shift, axis=1))
        self.image.publish(Image(camera="head", captured_ns=now_ns, rgb=rgb, focal_px=500.0))


class BenchRobot(Node):
    """Stands where the guard does: hears the person's commands, and writes down when each burst began."""

    realtime = True

    command = Subscription(JointCommand, "command", qos=QoS(lifespan_s=0.15))
    state = Publisher(RobotState, "robot/state")
    guard = Publisher(GuardState, "guard/state")
    lease = Publisher(Lease, LEASE_TOPIC)

    def __init__(self, out: str = "") -> None:
        self.out = out
        self.first_ns: list[int] = []
        self.last_ns = 0

    @on(command)
    def commanded(self, command: JointCommand) -> None:
        now_ns = self.clock.now_ns()
        if command.base_v_mps == 0.0:
            return
        if now_ns - self.last_ns > IDLE_NS:
            self.first_ns.append(now_ns)
        self.last_ns = now_ns

    @every(hz=50)
    def tell(self) -> None:
        still = (0.0,) * len(STOW)
        self.state.publish(
            RobotState(
                read_ns=self.clock.now_ns(),
                position=STOW,
                velocity=still,
                effort=still,
                base_x_m=0.0,
                base_y_m=0.0,
                base_heading_rad=0.0,
                base_v_mps=0.0,
                base_w_radps=0.0,
            )
        )

    @every(hz=5)
    def repeat(self) -> None:
        self.guard.publish(GuardState(mode="moving", reason="bench", holder="human_policy", is_armed=True))
        self.lease.publish(Lease(seat="policy", holder="human_policy", number=1, kind="person", is_repetition=True))

    def on_stop(self) -> None:
        if self.out:
            Path(self.out).write_text(json.dumps(self.first_ns))


class BenchControl(Node):
    """A 20 Hz control loop in a process of its own; writes down when each of its ticks came."""

    realtime = True

    def __init__(self, out: str = "") -> None:
        self.out = out
        self.ticks_ns: list[int] = []

    @every(hz=20)
    def tick(self) -> None:
        self.ticks_ns.append(self.clock.now_ns())

    def on_stop(self) -> None:
        if self.out:
            Path(self.out).write_text(json.dumps(self.ticks_ns))
