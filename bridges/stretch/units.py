"""Between stretch_body's numbers and ours: status dictionaries, percent of gripper, limits of the robot at hand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nodes.robot.protocol import BaseLimit, JointLimit, RobotError, RobotLimits
from runtime.msgs import JOINTS

CHAINS = {
    "wrist_yaw": "end_of_arm",
    "wrist_pitch": "end_of_arm",
    "wrist_roll": "end_of_arm",
    "gripper": "end_of_arm",
    "head_pan": "head",
    "head_tilt": "head",
}
"""The Dynamixel chain of each joint that hangs on one."""
GRIPPER_NAME = "stretch_gripper"
APERTURE_M, APERTURE_PERCENT = 0.09, 70.0
"""stretch_body's linear model of the gripper: 0 m of opening at 0 %, 0.09 m at 70 %."""
WIDEST_M = 0.12
"""Beyond this the linear model says more than the fingers open."""
ZERO = (0.0,) * len(JOINTS)

Status = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StatusReading:
    """What was read out of one status; nothing in it changes any more. Units as in `msgs`."""

    stamp: float = -1.0
    position: tuple[float, ...] = ZERO
    velocity: tuple[float, ...] = ZERO
    effort: tuple[float, ...] = ZERO
    pose: tuple[float, float, float] = (0.0, 0.0, 0.0)
    twist: tuple[float, float] = (0.0, 0.0)
    wheel_effort: tuple[float, ...] = ()
    guarded: frozenset[str] = field(default_factory=frozenset)
    is_runstopped: bool = False
    dangers: tuple[str, ...] = ()  # "cliff", "tilt": what the base must not go on into

    def of(self, joint: str) -> float:
        """Where a joint is."""
        return self.position[JOINTS.index(joint)]

    def speed_of(self, joint: str) -> float:
        """How fast a joint goes."""
        return self.velocity[JOINTS.index(joint)]


def to_percent(opening_m: float) -> float:
    """Opening between the fingertips as stretch_body's percent."""
    return opening_m * APERTURE_PERCENT / APERTURE_M


def to_opening_m(percent: float) -> float:
    """stretch_body's percent as opening between the fingertips; closed harder than touching is 0 m too."""
    return max(0.0, percent * APERTURE_M / APERTURE_PERCENT)


def wheel_clamped(v_mps: float, w_radps: float, limit: BaseLimit) -> tuple[float, float]:
    """The velocity that is left once each wheel is clamped by itself, as the robot does."""
    half_turn = w_radps * limit.track_m / 2
    most = limit.wheel_speed_mps
    left = min(max(v_mps - half_turn, -most), most)
    right = min(max(v_mps + half_turn, -most), most)
    return (left + right) / 2, (right - left) / limit.track_m


def reading_of(status: Status, before: StatusReading) -> StatusReading:
    """The numbers of a status. `before` tells how the gripper moved, for which the robot has no speed in metres, and
    where a joint was that does not say where it is: a joint that is thought to be at zero would be driven there."""
    position, velocity, effort = [], [], []
    stamp = _number(status["lift"].get("timestamp_pc", 0.0))
    for name in JOINTS:
        part = joint_status(status, name)
        if name == "gripper":
            opening_m = to_opening_m(_number(part["pos_pct"], to_percent(before.of("gripper"))))
            position.append(opening_m)
            speed = before.speed_of("gripper")
            if before.stamp >= 0 and stamp > before.stamp:
                speed = (opening_m - before.of("gripper")) / max(stamp - before.stamp, 1e-3)
            velocity.append(speed)
        else:
            position.append(_number(part["pos"], before.of(name)))
            velocity.append(_number(part["vel"]))
        effort.append(_number(part["motor"]["effort_pct"] if "motor" in part else part["effort"]))
    base, pimu = status["base"], status["pimu"]
    return StatusReading(
        stamp=stamp,
        position=tuple(position),
        velocity=tuple(velocity),
        effort=tuple(effort),
        pose=(_number(base["x"]), _number(base["y"]), _number(base["theta"])),
        twist=(_number(base["x_vel"]), _number(base["theta_vel"])),
        wheel_effort=tuple(_number(value) for value in base.get("effort", ())),
        guarded=frozenset(name for name in ("lift", "arm") if status[name]["motor"]["in_guarded_event"]),
        is_runstopped=bool(pimu["runstop_event"]),
        dangers=(("cliff",) if any(pimu.get("at_cliff", ())) else ())
        + (("tilt",) if pimu.get("over_tilt_alert") else ()),
    )


def joint_status(status: Status, name: str) -> Status:
    """The part of a status that tells of one joint."""
    if name not in CHAINS:
        part: Status = status[name]
        return part
    found: Status = status[CHAINS[name]][GRIPPER_NAME if name == "gripper" else name]
    return found


def alerts_of(status: Status) -> tuple[str, ...]:
    """What the robot warns of."""
    pimu = status["pimu"]
    alerts = [
        words
        for key, words in (
            ("over_tilt_alert", "over tilt"),
            ("low_voltage_alert", "low voltage"),
            ("high_current_alert", "high current"),
        )
        if pimu.get(key)
    ]
    if any(pimu.get("at_cliff", ())):
        alerts.append("cliff")
    for name in CHAINS:
        part = joint_status(status, name)
        alerts += [
            f"{words} {name}"
            for key, words in (
                ("overheating_error", "hot"),
                ("overload_error", "overloaded"),
                ("electrical_shock_error", "electrical fault in"),
                ("input_voltage_error", "wrong voltage at"),
                ("watchdog_errors", "watchdog stopped"),
            )
            if part.get(key)
        ]
    return tuple(alerts)


def limits_of(body: Any, profile: str) -> RobotLimits:
    """Ranges and speeds as this very robot has them. Raises RobotError where it does not tell."""
    try:
        joints = tuple(_joint_limit(body, name, profile) for name in JOINTS)
        base = body.base.params
        return RobotLimits(
            joints=joints,
            base=BaseLimit(
                wheel_speed_mps=float(base["motion"][profile]["vel_m"]),
                acceleration_mps2=float(base["motion"][profile]["accel_m"]),
                track_m=float(base["wheel_separation_m"]),
            ),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as problem:
        raise RobotError(
            f"the Stretch's limits cannot be read ({type(problem).__name__}: {problem}); "
            "expected what stretch_body 0.7 has"
        ) from problem


def _joint_limit(body: Any, name: str, profile: str) -> JointLimit:
    if name in CHAINS:
        joint = getattr(body, CHAINS[name]).motors[GRIPPER_NAME if name == "gripper" else name]
        suffix = ""
    else:
        joint, suffix = getattr(body, name), "_m"
    if name == "gripper":
        # Its motor's speed in rad/s says little of the opening; stretch_body moves it by its own profile.
        return JointLimit(name, 0.0, WIDEST_M, 0.12, 1.0)
    lowest, highest = (float(value) for value in joint.soft_motion_limits["current"])
    motion = joint.params["motion"][profile]
    return JointLimit(name, lowest, highest, float(motion["vel" + suffix]), float(motion["accel" + suffix]))


def _number(value: Any, otherwise: float = 0.0) -> float:
    """A finite number, also where a device that just woke up leaves it out."""
    number = float(value) if value is not None else otherwise
    return number if math.isfinite(number) else otherwise
