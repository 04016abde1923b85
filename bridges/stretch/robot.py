"""`StretchRobot`: Hello Robot's Stretch 3 behind the `Robot` protocol, by their library stretch_body.

Written from stretch_body's documentation and source (0.7.31) and tested against a fake of it; it has not touched a
robot yet. Go through docs/stretch.md before it does.

Joints are only ever sent to positions, never given a velocity, and lift and arm no further ahead than they need to
brake plus `LEAD_S`: whatever becomes of this process, they come to rest there. The base is given velocities, which its
firmware drops after a second without news.
"""

from __future__ import annotations

import atexit
import logging
import math
from typing import Any

from bridges.stretch.sdk import avoid_collisions, chain, handlers_kept, is_homed, open_body
from bridges.stretch.units import (
    CHAINS,
    GRIPPER_NAME,
    StatusReading,
    alerts_of,
    limits_of,
    reading_of,
    to_percent,
    wheel_clamped,
)
from nodes.robot.protocol import RobotError, RobotLimits
from runtime.clock import NS_PER_S, to_ns
from runtime.errors import ParameterError
from runtime.msgs import JOINTS, JointCommand, RobotMode, RobotState, RobotStatus

PUSH_PERIOD_S = 1 / 25
"""The steppers' own rate; beyond 80 pushes a second the robot drops some."""
CHAIN_PERIOD_S = 1 / 15
"""Wrist and head: faster streams hold up the library's threads."""
WATCHDOG_S = 0.5
"""Without a command for this long everything stands still."""
LOST_S = 1.0
"""A status that does not change for this long is no status."""
SEEN_S = 0.2
"""A runstop that we pressed shows in the status by then."""
LEAD_S = 0.15
NEAR = {"lift": 0.03, "arm": 0.03, "gripper": 0.12}
"""How near a command must be to where the robot stands to be followed after it was ignored; others: 0.15 rad."""
SMALLEST_MOVE = {"lift": 0.0005, "arm": 0.0005, "gripper": 0.001}
"""Less is not worth a message; others: 0.002 rad."""
CONTACT_EFFORT_PERCENT = 60.0  # of the wheels, whose firmware has no guarded contact
PROFILES = ("slow", "default", "fast", "max")

log = logging.getLogger("bridges.stretch.robot")

WHYS: dict[RobotMode, str] = {
    "lost": "its status has not changed for a second; is stretch_body still running, is the robot on?",
    "runstopped": "the runstop is pressed; hold the button on the head for two seconds to release it",
    "homing": "it is homing",
    "stowing": "it folds itself",
    "unhomed": "it is not homed; it has to be after each power-up: clear the space around it and home it",
}
GRIPPER = JOINTS.index("gripper")


class StretchRobot:
    """The robot that this process runs on. `speed` is one of stretch_body's motion profiles."""

    is_hardware = True  # never driven in virtual time
    libraries = ("stretch_body",)

    def __init__(self, speed: str = "default", avoid_collisions: bool = True) -> None:
        """`avoid_collisions`: let stretch_body narrow the joints' ranges where the arm would hit the robot itself."""
        if speed not in PROFILES:
            raise ParameterError(f"stretch: speed is {speed!r}; known: {', '.join(PROFILES)}")
        self._profile = speed
        self._avoids_collisions = avoid_collisions
        self._body: Any = None
        self._limits: RobotLimits | None = None
        self._reading = StatusReading()
        self._now_ns = self._measured_ns = self._commanded_ns = 0
        self._pushed_ns = self._chained_ns = self._pressed_ns = -NS_PER_S
        self._wanted: JointCommand | None = None
        self._sent: dict[str, float] = {}
        self._base_sent = (0.0, 0.0)
        self._blocked: dict[str, float] = {}  # joints that met resistance, and in which direction
        self._busy: RobotMode | None = None
        self._must_rest = False  # commands were ignored: none is followed before a pause, or one that fits the posture

    @property
    def limits(self) -> RobotLimits:
        """Soft limits and speeds as the robot itself has them. Raises RobotError before `start`."""
        if self._limits is None:
            raise RobotError("a Stretch tells its limits once it is started")
        return self._limits

    def start(self, now_ns: int) -> None:
        """Take hold of the robot. Raises RobotError where the library, or the robot, cannot be had."""
        self._now_ns = self._measured_ns = self._commanded_ns = now_ns
        with handlers_kept():
            self._body = open_body()
        atexit.register(self.close)
        try:
            if self._avoids_collisions:
                avoid_collisions(self._body)
            self._limits = limits_of(self._body, self._profile)
            self._refresh(now_ns)
        except BaseException:
            self.close()
            raise

    def read(self, now_ns: int) -> RobotState:
        """Joint state, odometry and contact, as of the library's last round (25 Hz; wrist and head 15 Hz)."""
        self._refresh(now_ns)
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
        self._refresh(now_ns)
        mode = self._mode
        pimu = self._body.get_status()["pimu"]
        why = WHYS.get(mode, "")
        if mode == "ready" and self._must_rest:
            why = (
                "a command from before is still being sent, far from where the robot stands: let go of it, or arm again"
            )
        return RobotStatus(
            read_ns=self._measured_ns,
            mode=mode,
            why=why,
            is_homed=is_homed(self._body),
            is_runstopped=self._reading.is_runstopped,
            battery_v=float(pimu["voltage"]),
            battery_a=float(pimu["current"]),
            is_charging=bool(pimu.get("charger_is_charging", False)),
            alerts=alerts_of(self._body.get_status()),
        )

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
        self._send()

    def advance(self, now_ns: int) -> None:
        """Look at the robot, and stop it where nobody has commanded it for a while."""
        self._now_ns = now_ns
        self._refresh(now_ns)
        if self._wanted is None:
            return
        if self._mode != "ready":
            self._forget()
        elif now_ns - self._commanded_ns > to_ns(WATCHDOG_S):
            log.warning("no command for %g s: stopping", WATCHDOG_S)
            self.stop()

    def stop(self) -> None:
        """Base velocity zero, joints held; the gripper keeps its grip. Homing and stowing end by the runstop only."""
        if self._body is None or self._busy is not None:
            return
        self._must_rest = self._must_rest and self._mode != "ready"
        if self._wanted is None:
            return
        self._forget()
        body, reading = self._body, self._reading
        body.base.set_velocity(0.0, 0.0)
        for name in ("lift", "arm"):
            limit = self.limits.joints[JOINTS.index(name)]
            position, speed = reading.of(name), reading.speed_of(name)
            rest = position + math.copysign(speed * speed / (2 * limit.acceleration), speed)
            getattr(body, name).move_to(min(max(rest, limit.lowest), limit.highest), limit.speed, limit.acceleration)
        body.push_command()
        for name in CHAINS:
            if name != "gripper":
                chain(body, name).motors[name].quick_stop()

    def home(self) -> None:
        """Find the joints' zeros; about half a minute. Raises RobotError where that is refused or fails."""
        self._occupy("homing", "home")
        if not is_homed(self._open_body()):
            raise RobotError("the robot is not homed after homing; was something in its way, or its runstop pressed?")

    def stow(self) -> None:
        """Fold the robot. Raises RobotError where that is refused."""
        if not is_homed(self._open_body()):
            raise RobotError("the robot does not stow before it is homed; home it first")
        self._occupy("stowing", "stow")

    def runstop(self, is_on: bool) -> None:
        """The software side of the button on the head; waits for nothing, homing included."""
        body = self._open_body()
        self._forget()
        if is_on:
            self._pressed_ns = self._now_ns
            body.pimu.runstop_event_trigger()
        else:
            self._pressed_ns = -NS_PER_S
            body.pimu.runstop_event_reset()
        body.push_command()

    def close(self) -> None:
        """Stop and let go of the robot."""
        body, busy = self._body, self._busy
        if body is None:
            return
        atexit.unregister(self.close)
        try:
            if busy is not None:
                log.warning("closed while %s: the runstop is pressed, release it at the robot", busy)
                self.runstop(True)
            else:
                self.stop()
        finally:
            self._body = None
            self._wanted = None
            body.stop()

    # what it knows

    def _open_body(self) -> Any:
        if self._body is None:
            raise RobotError("the robot is not started")
        return self._body

    def _refresh(self, now_ns: int) -> None:
        """Copy what is needed out of the library's status, whose dictionaries go on changing."""
        if self._body is None:
            return
        reading = reading_of(self._body.get_status(), self._reading)
        if reading.stamp != self._reading.stamp:
            self._measured_ns = now_ns
        self._reading = reading
        for name in reading.guarded:
            if name not in self._blocked and self._wanted is not None:
                self._blocked[name] = math.copysign(1.0, self._sent.get(name, 0.0) - reading.of(name))

    @property
    def _mode(self) -> RobotMode:
        if self._body is None or self._now_ns - self._measured_ns > to_ns(LOST_S):
            return "lost"
        if self._reading.is_runstopped or self._now_ns - self._pressed_ns < to_ns(SEEN_S):
            return "runstopped"
        if self._busy is not None:
            return self._busy
        return "ready" if is_homed(self._body) else "unhomed"

    def _contact(self) -> tuple[str, ...]:
        touching: list[str] = [
            name for name in ("lift", "arm") if name in self._reading.guarded or name in self._blocked
        ]
        if any(abs(effort) > CONTACT_EFFORT_PERCENT for effort in self._reading.wheel_effort):
            touching.append("base")
        return (*touching, *self._reading.dangers)  # the guard stops for them as for whatever is touched

    def _is_grasping(self) -> bool:
        """It was told to close further than it is, and does not move any more."""
        target = self._sent.get("gripper")
        opening = self._reading.of("gripper")
        is_still = abs(self._reading.speed_of("gripper")) < 0.005
        return target is not None and opening > 0.005 and opening - target > 0.008 and is_still

    def _fits(self, command: JointCommand) -> bool:
        is_near = all(
            abs(target - position) <= NEAR.get(name, 0.15)
            for name, target, position in zip(JOINTS, command.position, self._reading.position, strict=True)
        )
        return is_near and command.base_v_mps == 0.0 and command.base_w_radps == 0.0

    # what it does

    def _forget(self) -> None:
        self._wanted = None
        gripper = self._sent.get("gripper")  # it goes on holding what it holds
        self._sent = {} if gripper is None else {"gripper": gripper}
        self._base_sent = (0.0, 0.0)
        self._blocked = {}

    def _occupy(self, mode: RobotMode, verb: str) -> None:
        body = self._open_body()
        if self._reading.is_runstopped:
            raise RobotError(f"the robot does not {verb} while its runstop is pressed; release it first")
        if self._busy is not None:
            raise RobotError(f"the robot does not {verb} while it is {self._busy}")
        self.stop()
        self._busy = mode
        try:
            getattr(body, verb)()
        finally:
            self._busy = None

    def _send(self) -> None:
        command = self._wanted
        if command is None:
            return
        if self._now_ns - self._pushed_ns >= to_ns(PUSH_PERIOD_S):
            self._pushed_ns = self._now_ns
            self._queue_steppers(command)
            self._body.push_command()
        if self._now_ns - self._chained_ns >= to_ns(CHAIN_PERIOD_S):
            self._chained_ns = self._now_ns
            self._send_chains(command)

    def _queue_steppers(self, command: JointCommand) -> None:
        body = self._body
        for name in ("lift", "arm"):
            place = JOINTS.index(name)
            limit = self.limits.joints[place]
            position = self._reading.of(name)
            lead = limit.speed * limit.speed / (2 * limit.acceleration) + LEAD_S * limit.speed
            target = min(max(command.position[place], position - lead, limit.lowest), position + lead, limit.highest)
            direction = self._blocked.get(name)
            if direction is not None:
                if (target - position) * direction > -0.005:
                    target = position  # it does not push on against what it met
                else:
                    del self._blocked[name]
            if self._is_news(name, target):
                getattr(body, name).move_to(target, limit.speed, limit.acceleration)
        v_mps, w_radps = wheel_clamped(command.base_v_mps, command.base_w_radps, self.limits.base)
        if (v_mps, w_radps) != (0.0, 0.0) or self._base_sent != (0.0, 0.0):
            body.base.set_velocity(v_mps, w_radps, self.limits.base.acceleration_mps2)
            self._base_sent = (v_mps, w_radps)

    def _send_chains(self, command: JointCommand) -> None:
        for name in CHAINS:
            place = JOINTS.index(name)
            limit = self.limits.joints[place]
            target = min(max(command.position[place], limit.lowest), limit.highest)
            if not self._is_news(name, target):
                continue
            if name == "gripper":
                self._body.end_of_arm.move_to(GRIPPER_NAME, to_percent(target))
            else:
                chain(self._body, name).move_to(name, target, limit.speed, limit.acceleration)

    def _is_news(self, name: str, target: float) -> bool:
        sent = self._sent.get(name)
        if sent is not None and abs(target - sent) < SMALLEST_MOVE.get(name, 0.002):
            return False
        self._sent[name] = target
        return True
