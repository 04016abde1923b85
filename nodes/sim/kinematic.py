"""`RobotInSimulation`, and `KinematicRobot`: one without physics, which needs neither mujoco nor a display.

Joints follow at their limit speed, wheels at the base's acceleration, odometry is exact, and nothing is ever touched
unless a test says so. It can be switched on un-homed, as a real one is. It is a Stretch; a subclass with `limits` and
`folded` of its own is another robot.
"""

from __future__ import annotations

import numpy as np

from nodes.msgs import JointCommand, JointVector, RobotMode, RobotState, RobotStatus
from nodes.robot.path_preview import moved
from nodes.robot.protocol import RobotError, RobotLimits, check_command
from nodes.sim.motion import JointSetPoints, WheelSpeeds
from nodes.stretch.limits import STOW, STRETCH_3
from runtime.clock import to_ns, to_s
from runtime.errors import UserError

STEP_S = 0.01
CATCH_UP_S = 1.0
"""The most time that one `advance` makes up."""
WATCHDOG_S = 0.5
"""Without a command for this long everything stands still."""
HOMING_S = 5.0
FULL_BATTERY_V, EMPTY_BATTERY_V = 12.6, 10.5
WHYS: dict[RobotMode, str] = {
    "unhomed": "its joints are not homed; home it first",
    "homing": "it is homing",
    "stowing": "it folds itself",
    "runstopped": "the runstop is pressed",
}


class RobotInSimulation:
    """What all simulated robots have: limits, set points, wheels, and the buttons of a robot.

    `folded` is the posture that it starts in and stows to; the joint `folds_first` gets there before all others do.
    `homed=False`: it ignores commands until `home` is through. Without `battery_v` it has no battery.
    """

    is_hardware = False
    limits: RobotLimits
    folded: JointVector
    folds_first: str = "arm"
    homing_s: float = HOMING_S

    def __init__(self, homed: bool = True, battery_v: float | None = FULL_BATTERY_V) -> None:
        self._is_homed = homed
        self._battery_v = battery_v
        names = [joint.name for joint in self.limits.joints]
        if len(self.folded) != len(names):
            raise UserError(
                f"{type(self).__name__}: folded has {len(self.folded)} positions; expected one for each of its joints: "
                f"{', '.join(names)}"
            )
        self._first = names.index(self.folds_first) if self.folds_first in names else 0
        self.set_points = JointSetPoints(self.limits, np.array(self.folded))
        self._wheels = WheelSpeeds(self.limits.base)
        self._now_ns = self._commanded_ns = 0
        self._homing_left_s = 0.0
        self._is_stowing = self._is_runstopped = False
        self._contact: tuple[str, ...] = ()

    def start(self, now_ns: int) -> None:
        """Begin the robot's time at now. Nothing moves."""
        self._now_ns = self._commanded_ns = now_ns

    def status(self, now_ns: int) -> RobotStatus:
        """Mode, homing, runstop and a battery that does not drain."""
        return RobotStatus(
            read_ns=min(now_ns, self._now_ns),
            mode=self._mode,
            why=WHYS.get(self._mode, ""),
            is_homed=self._is_homed,
            is_runstopped=self._is_runstopped,
            battery_v=self._battery_v,
            alerts=("low voltage",) if self._battery_v is not None and self._battery_v <= EMPTY_BATTERY_V else (),
        )

    def command(self, command: JointCommand) -> None:
        """Take joint targets and base velocity. Raises ValueError for what is not one finite number a joint."""
        check_command(command, len(self.folded))
        if self._mode != "ready":
            return
        self.set_points.aim(np.array(command.position))
        self._wheels.aim(command.base_v_mps, command.base_w_radps, command.base_vy_mps)
        self._commanded_ns = self._now_ns

    def stop(self) -> None:
        """Brake the base and hold the joints; homing and stowing go on."""
        self._wheels.aim(0.0, 0.0)
        if not self._is_stowing:
            self.set_points.hold(self.set_points.position.copy())

    def home(self) -> None:
        """Begin to home; takes `homing_s`. Raises RobotError while the runstop is pressed."""
        self._refuse_runstopped("home")
        self._homing_left_s = self.homing_s

    def stow(self) -> None:
        """Brake, and begin to fold. Raises RobotError un-homed and while the runstop is pressed."""
        self._refuse_runstopped("stow")
        if not self._is_homed:
            raise RobotError("the robot does not stow before it is homed; home it first")
        self._wheels.aim(0.0, 0.0)
        self._is_stowing = True

    def runstop(self, is_on: bool) -> None:
        """Press or release the button; pressing it also ends homing and stowing."""
        self._is_runstopped = is_on
        self._is_stowing = False
        self._homing_left_s = 0.0
        self.stop()

    def close(self) -> None:
        """Stand still; there is nothing to release."""
        self._is_stowing = False
        self._homing_left_s = 0.0
        self.stop()

    def touch(self, *parts: str) -> None:
        """Pretend that these joints, or "base", meet resistance, until called again."""
        self._contact = parts

    @property
    def _mode(self) -> RobotMode:
        if self._is_runstopped:
            return "runstopped"
        if self._homing_left_s > 0.0:
            return "homing"
        if not self._is_homed:
            return "unhomed"
        return "stowing" if self._is_stowing else "ready"

    def _refuse_runstopped(self, what: str) -> None:
        if self._is_runstopped:
            raise RobotError(f"the robot does not {what} while its runstop is pressed; release it first")


class KinematicRobot(RobotInSimulation):
    """Positions and velocities only."""

    limits: RobotLimits = STRETCH_3
    folded: JointVector = STOW

    def __init__(self, homed: bool = True, battery_v: float | None = FULL_BATTERY_V) -> None:
        super().__init__(homed, battery_v)
        self._pose = (0.0, 0.0, 0.0)
        self._stepped_ns = 0

    def start(self, now_ns: int) -> None:
        """Begin the robot's time at now. Nothing moves."""
        super().start(now_ns)
        self._stepped_ns = now_ns

    def read(self, now_ns: int) -> RobotState:
        """Joint state and odometry as of the last step; effort is always zero."""
        x, y, heading = self._pose
        v_mps, w_radps = self._wheels.velocity
        return RobotState(
            read_ns=min(now_ns, self._now_ns),
            position=tuple(self.set_points.position.tolist()),
            velocity=tuple(self.set_points.velocity.tolist()),
            effort=(0.0,) * len(self.folded),
            base_x_m=x,
            base_y_m=y,
            base_heading_rad=heading,
            base_v_mps=v_mps,
            base_w_radps=w_radps,
            contact=self._contact,
            base_vy_mps=self._wheels.sideways_mps,
        )

    def advance(self, now_ns: int) -> None:
        """Move on to now, in steps."""
        self._now_ns = max(now_ns, self._now_ns)
        self._stepped_ns = max(self._stepped_ns, now_ns - to_ns(CATCH_UP_S))
        while self._stepped_ns + to_ns(STEP_S) <= now_ns:
            self._stepped_ns += to_ns(STEP_S)
            self._step()

    def _step(self) -> None:
        if self._homing_left_s > 0.0:
            self._homing_left_s -= STEP_S
            self._is_homed = self._is_homed or self._homing_left_s <= 0.0
        if self._is_stowing:
            self._is_stowing = not self.set_points.fold(np.array(self.folded), first=self._first)
        elif to_s(self._stepped_ns - self._commanded_ns) > WATCHDOG_S:
            self.stop()
        self.set_points.steps(1, STEP_S)
        self._wheels.step(STEP_S)
        self._pose = moved(self._pose, *self._wheels.velocity, STEP_S, self._wheels.sideways_mps)
