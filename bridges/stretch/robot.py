"""`StretchRobot`: Hello Robot's Stretch 3 behind the `Robot` protocol, by their library stretch_body.

Written from stretch_body's source (0.7.31), tested against the real library above a simulated body, and never yet on a
robot. Go through docs/stretch.md before it is. The library lives in a process of its own, which the link starts.
"""

from __future__ import annotations

import atexit
import logging
import math
import os
from pathlib import Path

from bridges.stretch import calibration as measured
from bridges.stretch.link import Link, Process, found_python
from bridges.stretch.onboard.words import CHAINS, Goals, Hello, Reading
from nodes.robot.protocol import BaseLimit, JointLimit, RobotError, RobotLimits
from runtime.clock import NS_PER_S, SystemClock, to_s
from runtime.errors import ParameterError
from runtime.msgs import JOINTS, JointCommand, RobotMode, RobotState, RobotStatus

WATCHDOG_S = 0.5
"""Without a command for this long everything stands still."""
LOST_S = 1.0
"""A chain that does not measure for this long is lost, and the robot with it."""
SEEN_S = 0.2
"""A runstop that we pressed shows in the status by then."""
LEASED_S = 0.3
"""A lease that was asked for is live by then, or another one is asked for."""
TOUCHED_S = 0.1
"""Wheels that push for this long have met something; setting off takes less."""
VERB_S = 180.0
"""Longer than this nothing homes or stows."""
NEAR = {"lift": 0.03, "arm": 0.03, "gripper": 0.12}
"""How near a command must be to where the robot stands to be followed after it was ignored; others: 0.15 rad."""
PROFILES = ("slow", "default", "fast", "max")

log = logging.getLogger("bridges.stretch.robot")

WHYS: dict[RobotMode, str] = {
    "runstopped": "the runstop is pressed; hold the button on the head for two seconds to release it",
    "homing": "it is homing",
    "stowing": "it folds itself",
    "unhomed": "it is not homed; it has to be after each power-up: clear the space around it and home it",
}
CHAIN_WORDS = {
    "pimu": "the power board (hello-pimu)",
    "lift": "the lift's motor board (hello-motor-lift)",
    "arm": "the arm's motor board (hello-motor-arm)",
    "left_wheel": "the left wheel's motor board (hello-motor-left-wheel)",
    "right_wheel": "the right wheel's motor board (hello-motor-right-wheel)",
    "end_of_arm": "the wrist's bus (hello-dynamixel-wrist)",
    "head": "the head's bus (hello-dynamixel-head)",
}
BUSY: dict[str, RobotMode] = {"homing": "homing", "stowing": "stowing"}
GRIPPER = JOINTS.index("gripper")


class StretchRobot:
    """The robot that this process runs on. `speed` is one of stretch_body's motion profiles."""

    is_hardware = True  # never driven in virtual time

    @staticmethod
    def libraries() -> tuple[str, ...]:
        """The maker's, where no Python of this machine has it: it is spoken to in a process of its own."""
        try:
            found_python()
        except RobotError:
            return ("stretch_body",)
        return ()

    def __init__(
        self, speed: str = "default", avoid_collisions: bool = True, python: str = "", link: Link | None = None
    ) -> None:
        """`avoid_collisions`: let stretch_body narrow the joints' ranges where the arm would hit the robot itself.
        `python`: the interpreter that has stretch_body; found where none is named."""
        if speed not in PROFILES:
            raise ParameterError(f"stretch: speed is {speed!r}; known: {', '.join(PROFILES)}")
        self._link: Link = link or Process(python, speed, avoid_collisions)
        self._is_open = False
        self._limits: RobotLimits | None = None
        self._reading = Reading()
        self.calibration = measured.Calibration()
        self.hello = Hello()
        self._now_ns = self._commanded_ns = 0
        self._pressed_ns = -NS_PER_S
        self._wanted: JointCommand | None = None
        self._lease, self._is_leased, self._leased_ns = 1, False, 0
        self._verb, self._verb_number = "", 0  # said again until it is done
        self._gripper_sent: float | None = None
        self._pushing_ns: int | None = None  # since when wheels push
        self._must_rest = False  # commands were ignored: none is followed before a pause, or one that fits the posture

    @property
    def limits(self) -> RobotLimits:
        """Soft limits and speeds as the robot itself has them. Raises RobotError before `start`."""
        if self._limits is None:
            raise RobotError("a Stretch tells its limits once it is started")
        return self._limits

    def start(self, now_ns: int) -> None:
        """Take hold of the robot. Raises RobotError where the library, or the robot, cannot be had."""
        self._now_ns = self._commanded_ns = now_ns
        try:
            self.calibration = measured.load(calibration_file())
        except ValueError as problem:
            raise RobotError(str(problem)) from problem
        hello = self.hello = self._link.open()
        self._is_open = True
        atexit.register(self.close)
        try:
            for note in hello.notes:
                log.warning("%s", note)
            self._limits = RobotLimits(
                joints=tuple(
                    JointLimit(limit.name, limit.lowest, limit.highest, limit.speed, limit.acceleration)
                    for limit in hello.joints
                ),
                base=BaseLimit(hello.wheel_speed_mps, hello.wheel_acceleration_mps2, hello.track_m),
            )
            self._exchange()
            for _ in range(500):  # the first reading is on its way
                if self._reading.position or self._link.ended():
                    break
                SystemClock().block(0.01)
                self._exchange()
            if not self._reading.position:
                raise RobotError(
                    self._link.ended() or "the process that speaks to stretch_body does not tell of the robot"
                )
        except BaseException:
            self.close()
            raise

    def read(self, now_ns: int) -> RobotState:
        """Joint state, odometry and contact; as old as its oldest part: steppers 40 ms, wrist and head 67 ms."""
        self._now_ns = max(now_ns, self._now_ns)
        reading = self._reading
        x, y, heading = reading.pose
        v_mps, w_radps = reading.twist
        return RobotState(
            read_ns=self._measured_ns,
            position=reading.position,
            velocity=reading.velocity,
            effort=reading.effort,
            base_x_m=x,
            base_y_m=y,
            base_heading_rad=heading,
            base_v_mps=v_mps,
            base_w_radps=w_radps,
            contact=self._contact(),
            is_grasping=self._is_grasping(),
        )

    def status(self, now_ns: int) -> RobotStatus:
        """Mode, homing, runstop, battery and alerts."""
        self._now_ns = max(now_ns, self._now_ns)
        mode, reading = self._mode, self._reading
        why = self._why_lost() if mode == "lost" else WHYS.get(mode, "")
        if mode == "ready" and self._must_rest:
            why = (
                "a command from before is still being sent, far from where the robot stands: let go of it, or arm again"
            )
        return RobotStatus(
            read_ns=self._measured_ns,
            mode=mode,
            why=why,
            is_homed=reading.is_homed,
            is_runstopped=reading.is_runstopped,
            battery_v=reading.battery_v,
            battery_a=reading.battery_a,
            is_charging=reading.is_charging,
            alerts=reading.alerts,
        )

    @property
    def reading(self) -> Reading:
        """All that the robot last said of itself: by chain, by lane."""
        return self._reading

    def command(self, command: JointCommand) -> None:
        """Take joint targets and base velocity. Raises ValueError where they are not eight finite positions."""
        values = (*command.position, command.base_v_mps, command.base_w_radps)
        if len(command.position) != len(JOINTS) or not all(math.isfinite(value) for value in values):
            raise ValueError(f"joint command {command} is refused; expected {len(JOINTS)} finite positions")
        if self._mode != "ready":
            self._must_rest = True
            return
        if self._must_rest and not self._fits(command):
            return
        self._must_rest = False
        self._wanted = command
        self._commanded_ns = self._now_ns
        self._gripper_sent = command.position[GRIPPER]
        self._exchange()

    def advance(self, now_ns: int) -> None:
        """Tell the process that somebody is there, and hear what the robot says."""
        self._now_ns = now_ns
        if not self._is_open:
            return
        self._exchange()
        if self._wanted is None:
            return
        if self._mode != "ready":
            self._wanted = None
        elif to_s(now_ns - self._commanded_ns) > WATCHDOG_S:
            log.warning("no command for %g s: stopping", WATCHDOG_S)
            self.stop()

    def stop(self) -> None:
        """Base velocity zero, joints held; the gripper keeps its grip. Homing and stowing end by the runstop only."""
        if not self._is_open or self._reading.busy:
            return
        self._must_rest = self._must_rest and self._mode != "ready"
        if self._wanted is None:
            return
        self._wanted = None
        self._exchange()

    def home(self) -> None:
        """Find the joints' zeros; about half a minute. Raises RobotError where that is refused or fails."""
        self._occupy("home")

    def stow(self) -> None:
        """Fold the robot. Raises RobotError where that is refused."""
        if self._is_open and not self._reading.is_homed:
            raise RobotError("the robot does not stow before it is homed; home it first")
        self._occupy("stow")

    def runstop(self, is_on: bool) -> None:
        """The software side of the button on the head; waits for nothing, homing included."""
        self._opened()
        self._wanted = None
        self._pressed_ns = self._now_ns if is_on else -NS_PER_S
        self._say("runstop" if is_on else "release")

    def close(self) -> None:
        """Stop and let go of the robot."""
        if not self._is_open:
            return
        self._is_open = False
        atexit.unregister(self.close)
        if self._reading.busy:
            log.warning("closed while %s: the runstop is pressed, release it at the robot", self._reading.busy)
        self._wanted = None
        self._link.close()

    # what it knows

    def _opened(self) -> None:
        if not self._is_open:
            raise RobotError("the robot is not started")

    def _say(self, verb: str) -> int:
        self._verb, self._verb_number = verb, self._verb_number + 1
        number = self._verb_number
        self._exchange()
        return number

    def _exchange(self) -> None:
        wanted = self._wanted
        goals = Goals(wanted.position, wanted.base_v_mps, wanted.base_w_radps) if wanted is not None else None
        if goals is not None and not self._is_leased and not self._leased_ns:
            self._leased_ns = self._now_ns
        self._reading = self._link.exchange(goals, self._lease, self._verb, self._verb_number)
        if self._reading.verb_number >= self._verb_number:
            self._verb = ""
        is_live = self._reading.lease == self._lease
        if self._is_leased and not is_live:
            if self._wanted is not None:
                log.warning("the robot's side holds: it heard nothing for a while, or was stopped")
                self._must_rest = True
                self._wanted = None
            self._next_lease()
        elif not is_live and self._leased_ns and to_s(self._now_ns - self._leased_ns) > LEASED_S:
            self._next_lease()
        else:
            self._is_leased = is_live
        self._feel()

    def _next_lease(self) -> None:
        self._lease, self._is_leased, self._leased_ns = self._lease + 1, False, 0

    @property
    def _measured_ns(self) -> int:
        return min(self._reading.read_ns.values(), default=0)

    @property
    def _mode(self) -> RobotMode:
        if not self._is_open or to_s(self._now_ns - self._measured_ns) > LOST_S or self._link.ended():
            return "lost"
        if self._reading.is_runstopped or to_s(self._now_ns - self._pressed_ns) < SEEN_S:
            return "runstopped"
        if self._reading.busy:
            return BUSY[self._reading.busy]
        return "ready" if self._reading.is_homed else "unhomed"

    def _why_lost(self) -> str:
        if not self._is_open:
            return "it is not started"
        if self._link.ended():
            return f"{self._link.ended()}; end the run and start it again"
        silent = [
            CHAIN_WORDS[chain] for chain in CHAINS if to_s(self._now_ns - self._reading.read_ns.get(chain, 0)) > LOST_S
        ]
        if len(silent) == len(CHAINS):
            return "nothing of it has measured for a second; is stretch_body still running, is the robot on?"
        return f"{' and '.join(silent)} does not answer; look at its cable, then end the run and start it again"

    def _feel(self) -> None:
        is_pushing = any(abs(effort) > self.calibration.wheel_percent for effort in self._reading.wheel_effort)
        if not is_pushing:
            self._pushing_ns = None
        elif self._pushing_ns is None:
            self._pushing_ns = self._now_ns

    def _contact(self) -> tuple[str, ...]:
        touching = list(self._reading.guarded)
        if self._pushing_ns is not None and to_s(self._now_ns - self._pushing_ns) >= TOUCHED_S:
            touching.append("base")
        return (*touching, *self._reading.dangers)  # the guard stops for them as for whatever is touched

    def _is_grasping(self) -> bool:
        """It was told to close further than it is, does not move any more, and its motor feels something."""
        reading, target = self._reading, self._gripper_sent
        if target is None or not reading.position:
            return False
        is_still = abs(reading.velocity[GRIPPER]) < 0.005
        is_closing = target < 0.003 or reading.position[GRIPPER] - target > 0.008
        return (
            is_still and is_closing and self.calibration.is_grasping(reading.gripper_percent, reading.effort[GRIPPER])
        )

    def _fits(self, command: JointCommand) -> bool:
        is_near = all(
            abs(target - position) <= NEAR.get(name, 0.15)
            for name, target, position in zip(JOINTS, command.position, self._reading.position, strict=True)
        )
        return is_near and command.base_v_mps == 0.0 and command.base_w_radps == 0.0

    def _occupy(self, verb: str) -> None:
        self._opened()
        if self._reading.is_runstopped:
            raise RobotError(f"the robot does not {verb} while its runstop is pressed; release it first")
        if self._reading.busy:
            raise RobotError(f"the robot does not {verb} while it is {self._reading.busy}")
        self.stop()
        number = self._say(verb)
        for _ in range(round(VERB_S / 0.02)):
            if (
                not self._is_open
                or self._link.ended()
                or (self._reading.verb_number >= number and not self._reading.busy)
            ):
                break
            SystemClock().block(0.02)
            self._exchange()
        self._opened()
        if self._link.ended():
            raise RobotError(self._link.ended())
        if self._reading.verb_number < number:
            raise RobotError(f"the robot did not {verb} within {VERB_S:g} s")
        if self._reading.verb_problem:
            raise RobotError(self._reading.verb_problem)


def calibration_file() -> Path:
    """Where what was measured on this very robot is kept: beside the maker's own calibration."""
    return Path(os.environ.get("HELLO_FLEET_PATH", ""), os.environ.get("HELLO_FLEET_ID", ""), "polyrhythm.json")
