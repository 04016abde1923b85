"""`StretchRobot`: Hello Robot's Stretch 3 behind the `Robot` protocol, by their library stretch_body.

Written from stretch_body's source (0.7.31), tested against the real library above a simulated body, and never yet on a
robot. Go through docs/stretch.md before it is. The library lives in a process of its own, which the link starts.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

import msgspec

from bridges.stretch import calibration as measured
from bridges.stretch.following import FollowingRobot
from bridges.stretch.link import OnboardLink, OnboardProcess, found_python
from bridges.stretch.onboard.words import Goals, Hello, Reading
from nodes.msgs import JOINTS, JointCommand, RobotMode
from nodes.robot.protocol import BaseLimit, JointLimit, RobotError, RobotLimits
from runtime.clock import to_s

LEASED_S = 0.3
"""A lease that was asked for is live by then, or another one is asked for."""
TOUCHED_S = 0.1
"""Wheels that push for this long have met something; setting off takes less."""
FIRST_S = 5.0
"""The first reading comes by then."""
VERB_S = 180.0
"""Longer than this nothing homes or stows."""

log = logging.getLogger("bridges.stretch.robot")

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


class StretchRobot(FollowingRobot):
    """The robot that this process runs on. `speed` is one of stretch_body's motion profiles."""

    joint_names = JOINTS
    profiles = ("slow", "default", "fast", "max")
    gripper_near_m = 0.12
    chain_words = CHAIN_WORDS
    silence = "nothing of it has measured for a second; is stretch_body still running, is the robot on?"

    @staticmethod
    def libraries() -> tuple[str, ...]:
        """The maker's, where no Python of this machine has it: it is spoken to in a process of its own."""
        try:
            found_python()
        except RobotError:
            return ("stretch_body",)
        return ()

    def __init__(
        self, speed: str = "default", avoid_collisions: bool = True, python: str = "", link: OnboardLink | None = None
    ) -> None:
        """`avoid_collisions`: let stretch_body narrow the joints' ranges where the arm would hit the robot itself.
        `python`: the interpreter that has stretch_body; found where none is named."""
        super().__init__(speed)
        self._link: OnboardLink = link or OnboardProcess(python, speed, avoid_collisions)
        self._limits: RobotLimits | None = None
        self._reading = Reading()
        self.calibration = measured.Calibration()
        self.hello = Hello()
        self._lease, self._is_leased, self._leased_ns = 1, False, 0
        self._verb, self._verb_number = "", 0  # said again until it is done
        self._gripper_sent: float | None = None
        self._pushing_ns: int | None = None  # since when wheels push

    @property
    def limits(self) -> RobotLimits:
        """Soft limits and speeds as the robot itself has them. Raises RobotError before `start`."""
        if self._limits is None:
            raise RobotError("a Stretch tells its limits once it is started")
        return self._limits

    @property
    def reading(self) -> Reading:
        """All that the robot last said of itself: by chain, by lane."""
        return self._reading

    def _take_hold(self) -> None:
        try:
            self.calibration = measured.load(calibration_file())
        except ValueError as problem:
            raise RobotError(str(problem)) from problem
        hello = self.hello = self._link.open()
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
        self._wait(lambda: bool(self._reading.position or self._link.ended()), FIRST_S, 0.01)
        if not self._reading.position:
            raise RobotError(self._link.ended() or "the process that speaks to stretch_body does not tell of the robot")

    def _let_go(self) -> None:
        busy, self._wanted = self._reading.busy, None
        self._link.close()
        if busy:
            log.warning("closed while %s: the runstop is pressed, release it at the robot", busy)

    # what it knows

    @property
    def _busy(self) -> RobotMode | None:
        return BUSY.get(self._reading.busy)

    def _why_away(self) -> str:
        return f"{ended}; end the run and start it again" if (ended := self._link.ended()) else ""

    def _felt(self, reading: Reading) -> Reading:
        """With what it touches; the guard stops for dangers as for that."""
        is_pushing = any(abs(effort) > self.calibration.wheel_percent for effort in reading.wheel_effort)
        if not is_pushing:
            self._pushing_ns = None
        elif self._pushing_ns is None:
            self._pushing_ns = self._now_ns
        is_touching = self._pushing_ns is not None and to_s(self._now_ns - self._pushing_ns) >= TOUCHED_S
        contact = (*reading.guarded, *(["base"] if is_touching else []), *reading.dangers)
        return msgspec.structs.replace(reading, contact=contact)

    def _is_gripping(self) -> bool:
        reading, target = self._reading, self._gripper_sent
        if target is None:
            return False
        is_closing = target < 0.003 or reading.position[GRIPPER] - target > 0.008
        return is_closing and self.calibration.is_grasping(reading.gripper_percent, reading.effort[GRIPPER])

    # what passes between it and the process

    def _send(self, command: JointCommand | None) -> None:
        if command is not None:
            self._gripper_sent = command.position[GRIPPER]
        self._exchange()

    def _exchange(self) -> None:
        wanted = self._wanted
        goals = Goals(wanted.position, wanted.base_v_mps, wanted.base_w_radps) if wanted is not None else None
        if goals is not None and not self._is_leased and not self._leased_ns:
            self._leased_ns = self._now_ns
        reading = self._felt(self._link.exchange(goals, self._lease, self._verb, self._verb_number))
        self._reading = reading
        if reading.verb_number >= self._verb_number:
            self._verb = ""
        is_live = reading.lease == self._lease
        if self._is_leased and not is_live:
            if reading.is_homed and not reading.is_runstopped and not reading.busy:
                self._has_braked()
            elif wanted is not None:
                self._ignore()
            self._next_lease()
        elif not is_live and self._leased_ns and to_s(self._now_ns - self._leased_ns) > LEASED_S:
            self._next_lease()
        else:
            self._is_leased = is_live

    def _next_lease(self) -> None:
        self._lease, self._is_leased, self._leased_ns = self._lease + 1, False, 0

    def _do(self, verb: str) -> None:
        self._verb, self._verb_number = verb, self._verb_number + 1
        number = self._verb_number
        self._exchange()
        if verb not in ("home", "stow"):
            return

        def is_over() -> bool:
            is_done = self._reading.verb_number >= number and not self._reading.busy
            return not self._is_open or bool(self._link.ended()) or is_done

        self._wait(is_over, VERB_S)
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
