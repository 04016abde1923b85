"""`RehearsalRobot`: a robot's own driver and motors in our simulated world, before it is taken to the robot.

What moves is not the simulation's: a twin of the robot's boards and servos does, commanded by the robot's own driver,
and the body in MuJoCo follows it. What that body meets goes back: what is between its fingers, how hard its wheels
push, where its lift or arm does not get on. The robot's own driver tells of joints, odometry, contact and grasps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol, cast

import numpy as np

from nodes.msgs import JOINTS, JointCommand, JointVector, RobotState, RobotStatus
from nodes.robot.driver import robot_class
from nodes.robot.protocol import Robot
from nodes.sim.motion import JointSetPoints, WheelSpeeds
from nodes.sim.physics import CATCH_UP_S
from nodes.sim.robot import CONTACT_PERCENT, SimRobot
from nodes.sim.world.room_mjcf import PHYSICS_STEP_S
from runtime.clock import to_ns, to_s

TWIN = "bridges.stretch.twin.twin_driver:TwinStretch"
GRIPPER = JOINTS.index("gripper")
LIMBS = ("lift", "arm")
AHEAD_S = 0.1
"""A twin that told nothing for longer stands, as far as is known."""
FREE = 20.0
"""How much faster than its joints may the body follows; what bounds it is the twin."""


Told = tuple[int, JointVector, JointVector, tuple[float, float], tuple[float, float]]
"""When (ns); where and how fast the joints are; how far the wheels have rolled, left and right, and how fast (m)."""


class Twin(Robot, Protocol):
    """A robot's own driver above a twin of its motors; it has no world of its own."""

    def __init__(self, speed: str, python: str) -> None: ...

    def stand_at(self, position: JointVector) -> None:
        """Where its joints are when it is switched on; before `start`."""
        ...

    def embody(self, between_m: float | None, wheels_percent: float, blocked: Mapping[str, float]) -> Told | None:
        """Tell the motors what they meet; where they are, or None where nothing new is told.

        `between_m` is how wide a thing holds the fingers apart, `wheels_percent` of the most that the base pushes, and
        `blocked` has lift and arm where they do not get on, with that direction's sign.
        """
        ...


class RehearsalRobot(SimRobot):
    """The robot that `played_by` names, as "module:Class" of a `Twin`, beside the table of the simulated one.

    It is no hardware: what is latched in a rehearsal is latched on no robot. The seed lays the table; `speed` and
    `python` are the driver's own parameters.
    """

    def __init__(
        self, played_by: str = TWIN, seed: int = 0, things: str = "", speed: str = "default", python: str = ""
    ) -> None:
        super().__init__(seed, things=things)
        self.player = cast(type[Twin], robot_class(played_by))(speed=speed, python=python)
        fast = replace(
            self.limits,
            joints=tuple(replace(joint, speed=FREE * joint.speed) for joint in self.limits.joints),
            base=replace(self.limits.base, wheel_speed_mps=FREE, acceleration_mps2=FREE * FREE),
        )
        self.set_points, self._wheels = JointSetPoints(fast, np.array(self.folded)), WheelSpeeds(fast.base)
        self._told: Told | None = None
        self._rolled_m: list[float] = []  # how far the body's wheels were sent so far

    def start(self, now_ns: int) -> None:
        """Switch the twin on, folded, and connect the driver to it. Raises RobotError in words where that fails."""
        self.player.stand_at(self.folded)
        self.player.start(now_ns)
        self.limits = self.player.limits
        super().start(now_ns)

    def advance(self, now_ns: int) -> None:
        """Let the driver's and the motors' time pass, and step the physics up to now."""
        self.player.advance(now_ns)
        self._told = self._embody() or self._told
        step_ns = to_ns(PHYSICS_STEP_S)
        steps = (now_ns - self._next_step_ns) // step_ns + 1
        if self._told is not None and steps > 0:
            self._commanded_ns = now_ns
            self._follow(self._told, self._next_step_ns + steps * step_ns, min(steps * PHYSICS_STEP_S, CATCH_UP_S))
        super().advance(now_ns)

    def _follow(self, told: Told, then_ns: int, within_s: float) -> None:
        """Send the body to where the twin is at that moment: told at another one, and with its speed of that."""
        at_ns, position, velocity, rolled_m, rolling_mps = told
        ahead_s = min(max(to_s(then_ns - at_ns), 0.0), AHEAD_S)
        self.set_points.aim(np.array(position) + ahead_s * np.array(velocity), within_s)
        rolled = [m + ahead_s * mps for m, mps in zip(rolled_m, rolling_mps, strict=True)]
        before, self._rolled_m = self._rolled_m or rolled, rolled
        left, right = ((now - was) / within_s for now, was in zip(rolled, before, strict=True))
        self._wheels.aim((left + right) / 2, (right - left) / self.limits.base.track_m)

    def _embody(self) -> Told | None:
        efforts = dict(zip(JOINTS, self._effort.tolist(), strict=True))
        blocked = {
            name: math.copysign(1.0, efforts[name])
            for name in LIMBS
            if not CONTACT_PERCENT[name][0] <= efforts[name] <= CONTACT_PERCENT[name][1]
        }
        between_m = float(self._joint_position()[GRIPPER]) if self._grip.is_grasping else None
        return self.player.embody(between_m, abs(self._base_effort), blocked)

    # what the robot's own driver does and says

    def command(self, command: JointCommand) -> None:
        self.player.command(command)

    def stop(self) -> None:
        self.player.stop()

    def read(self, now_ns: int) -> RobotState:
        return self.player.read(now_ns)

    def status(self, now_ns: int) -> RobotStatus:
        return self.player.status(now_ns)

    def home(self) -> None:
        self.player.home()

    def stow(self) -> None:
        self.player.stow()

    def runstop(self, is_on: bool) -> None:
        self.player.runstop(is_on)

    def close(self) -> None:
        self.player.close()
