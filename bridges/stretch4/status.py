"""What one status of a Stretch 4's server says, as one value; and metres of its gripper's opening. Pure.

Names and units are those of stretch4_body 2026.10.21.2.

The maker says of the gripper's percent that the fingertips touch at 0, and has a formula for metres by which they are
39 mm apart there, as they touch where the servo is fully closed; he calls it a simplification. So a status tells both.
"""

from __future__ import annotations

import math
from typing import Any

from bridges.stretch.onboard.words import Told
from bridges.stretch4.link import Status

WRITTEN_FOR = "2026.10.21.2"
JOINTS = ("lift", "arm", "wrist_yaw", "wrist_pitch", "wrist_roll", "gripper")
LIFT_AND_ARM, WRIST = JOINTS[:2], JOINTS[2:5]
GRIPPER = JOINTS.index("gripper")
TOOL = "stretch_gripper"
OPEN_M, FINGER_M = 0.150, 0.18205
"""The maker's figures: between the fingertips of the open gripper, and the length of a finger."""
_WIDEST_RAD = 2.0 * math.asin(OPEN_M / (2.0 * FINGER_M))
MOST_LETTERS = 80
GRIP_RAD = -0.87
"""Where the servo is sent to grip: half of what it can close beyond touching; the fingers are springs."""


class Stretch4Reading(Told, frozen=True, kw_only=True):
    """What one status says. The pose is by the server's odometry, and by the driver's own once it is handed on."""

    stamps: dict[str, float]
    """By chain: when it measured, by a clock of the robot's. Only compared for being new."""
    servo_rad: tuple[float, float, float]
    """The gripper's servo: fully closed, fully open, now."""
    makers_opening_m: float | None
    """Between the fingertips, by the maker's formula; None where it is not told."""
    ranges: dict[str, tuple[float, float]]
    server: str
    status_id: int
    """Counts from 1 when the server starts."""
    holder: str
    renewed: float
    """Changes whenever the holder of the lease commands."""
    routine: str
    routine_id: object
    last_routine_id: object
    is_last_done: bool


def opening_m(servo_rad: float, open_rad: float) -> float:
    """Between the fingertips. Assumed: they touch at servo 0, and open by an arc of their own length from there."""
    return max(0.0, 2.0 * FINGER_M * math.sin(_WIDEST_RAD * servo_rad / open_rad / 2.0))


def servo_of(opening: float, open_rad: float) -> float:
    """The other way round; to close is to grip."""
    if opening <= 0.0:
        return GRIP_RAD
    return 2.0 * math.asin(min(opening, OPEN_M) / (2.0 * FINGER_M)) / _WIDEST_RAD * open_rad


def radians_a_metre(open_rad: float) -> float:
    """How far the servo turns for a metre of opening, near the fingertips' touch."""
    return open_rad / (FINGER_M * _WIDEST_RAD)


def gripper_words(reading: Stretch4Reading) -> str:
    """What is not known of the gripper's metres, for people."""
    makers = "nothing" if reading.makers_opening_m is None else f"{reading.makers_opening_m * 1000:.0f} mm"
    return (
        f"{reading.position[GRIPPER] * 1000:.0f} mm open, assumed from fingertips that touch at 0 %; the maker's own "
        f"formula says {makers}, and that it is a simplification: measure with a ruler which holds"
    )


def read_status(status: Status) -> Stretch4Reading:
    """What matters of a status. Raises ValueError, KeyError or TypeError where it is not one of a Stretch 4."""
    tip, power, base, server = status["end_of_arm"], status["power_periph"], status["omnibase"], status["server"]
    if TOOL not in tip:
        raise ValueError(f"it has no {TOOL}; expected the standard gripper")
    chains: dict[str, dict[str, Any]] = {name: status[name]["motor"] for name in LIFT_AND_ARM}
    chains |= {name: base[name] for name in ("wheel_0", "wheel_1", "wheel_2")}
    servos = {**{name: tip[name] for name in WRIST}, "gripper": tip[TOOL]}
    joints = {**{name: status[name] for name in LIFT_AND_ARM}, **servos}
    closed, opened = _range(servos["gripper"], (-1.745, 5.236))
    if not closed < 0.0 < opened:
        raise ValueError(f"its gripper goes from {closed} to {opened} rad")
    servo, percent = float(servos["gripper"]["pos"]), float(servos["gripper"]["pos_pct"])
    if servos["gripper"]["pos_calibrated"] and abs(percent + 100.0 * servo / closed) > 2.0 + 0.02 * abs(percent):
        raise ValueError(
            f"its gripper is at {percent:.0f} % and {servo:.2f} rad, of {closed:.2f} rad where it is closed"
        )
    position = [*(float(joints[name]["pos"]) for name in JOINTS[:GRIPPER]), opening_m(servo, opened)]
    velocity = [float(joint["vel"]) for joint in joints.values()]
    velocity[GRIPPER] /= radians_a_metre(opened)
    effort = [*(float(chains[name]["effort_pct"]) for name in LIFT_AND_ARM)]
    effort += [float(servo["effort"]) for servo in servos.values()]
    pose = (float(base["x"]), float(base["y"]), float(base["theta"]))
    twist = (float(base["x_vel"]), float(base["y_vel"]), float(base["theta_vel"]))
    if not all(map(math.isfinite, (*position, *velocity, *effort, *pose, *twist))):
        raise ValueError("it holds numbers that are not finite")
    touching = [name for name in LIFT_AND_ARM if chains[name]["in_guarded_event"]]
    touching += [name for name, joint in joints.items() if any(joint["in_collision_stop"].values())]
    if any(chains[f"wheel_{number}"]["in_guarded_event"] for number in range(3)):
        touching.append("base")
    tilt = status.get("safety_layer", {}).get("safe_motion_manager", {}).get("safe_motion_overtilt_avoid", {})
    alerts = [words for key, words in _POWER_ALERTS.items() if power.get(key)]
    if power.get("over_tilt_type") or tilt.get("in_overtilt"):
        touching.append("tilt")
        alerts.append("over tilt")
    alerts += [f"fault {name}" for name, chain in chains.items() if chain.get("is_drv_fault")]
    for name, servo_status in servos.items():
        alerts += [f"{words} {name}" for key, words in _SERVO_ALERTS.items() if servo_status.get(key)]
    routines = status["routines"]
    return Stretch4Reading(
        stamps={
            **{name: float(chain["timestamp"]) for name, chain in chains.items()},
            **{name: float(servo_status["timestamp_pc"]) for name, servo_status in servos.items()},
            "power": float(power["timestamp"]),
        },
        position=tuple(position),
        velocity=tuple(velocity),
        effort=tuple(effort),
        servo_rad=(closed, opened, servo),
        makers_opening_m=_number(servos["gripper"].get("gripper_conversion", {}).get("aperture_m")),
        pose=pose,
        twist=twist,
        ranges={name: _range(joints[name], (-math.inf, math.inf)) for name in JOINTS[:GRIPPER]},
        contact=tuple(dict.fromkeys(touching)),
        alerts=tuple(alerts),
        is_homed=all(joint["pos_calibrated"] for joint in (*(chains[name] for name in LIFT_AND_ARM), *servos.values())),
        is_runstopped=bool(power["runstop_event"]),
        battery_v=float(power["voltage"]),
        battery_a=float(power.get("battery_current", 0.0)),
        is_charging=bool(power.get("charger_is_charging")),
        server=_text(server["state"]),
        status_id=int(server["status_id"]),
        holder=_text(server["lease_holder"]),
        renewed=float(server["lease_expiry"]),
        routine=_text(routines["active_routine"]),
        routine_id=routines["active_routine_id"],
        last_routine_id=routines["last_routine_id"],
        is_last_done=bool(routines["last_routine_successful"]),
    )  # fmt: skip


def _text(value: object) -> str:
    """What a person may be shown of what another program has chosen."""
    if not isinstance(value, str):
        raise TypeError(f"a {type(value).__name__} in place of text")
    return "".join(letter if letter.isprintable() else "?" for letter in value[:MOST_LETTERS])


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _range(joint: dict[str, Any], unknown: tuple[float, float]) -> tuple[float, float]:
    """Its soft limits; a servo that is not homed has none."""
    low, high = joint.get("soft_motion_limits") or (None, None)
    return unknown if low is None or high is None else (float(low), float(high))


_POWER_ALERTS = {
    "low_soc_alert": "low battery",
    "high_current_alert": "high current",
    "high_current_eoa_alert": "high current at the wrist",
}
_SERVO_ALERTS = {
    "overtemp_error": "hot",
    "overload_error": "overloaded",
    "over_current_error": "too much current in",
    "stall_overload": "stalled",
}
MALFORMED = (ValueError, KeyError, TypeError, AttributeError, OverflowError)
