"""From what a person holds down to a joint command: pure, one call per message of the browser.

Nothing here repeats anything: a browser that falls silent makes no command, and the guard's lifespan does the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import copysign

from bridges.web.wire import Drive
from runtime.msgs import JointCommand, JointVector
from runtime.robot import JointLimit, RobotLimits

TURN_RADPS = 0.8
"""Fastest turn of the base; its wheels could do more than a person wants."""
LEAD_S = 0.12
"""How far ahead of the guard's output a goal is kept, so that it moves on until the next message."""
STILL = 0.02
"""Of a joint's speed: below it, a joint stands."""


def command(wanted: Drive, limits: RobotLimits, setpoint: JointVector, velocity: JointVector) -> JointCommand:
    """The command for what is held: joints start from what the guard asks for now, so that taking over never jumps."""
    position = tuple(
        _goal(wanted, joint, here, speed) for joint, here, speed in zip(limits.joints, setpoint, velocity, strict=True)
    )
    return JointCommand(
        position=position,
        base_v_mps=wanted.ahead * wanted.scale * limits.base.wheel_speed_mps,
        base_w_radps=wanted.left * wanted.scale * TURN_RADPS,
    )


def unknown_joints(wanted: Drive, joints: Sequence[JointLimit]) -> list[str]:
    """Names in the message that are no joints."""
    names = {joint.name for joint in joints}
    return sorted((set(wanted.jog) | set(wanted.goals)) - names)


def _goal(wanted: Drive, joint: JointLimit, here: float, velocity: float) -> float:
    speed = joint.speed * wanted.scale
    # Where the guard's braking profile for this speed ends, and what is covered until the next message.
    lead = speed * speed / (2 * joint.acceleration) + speed * LEAD_S
    jog = wanted.jog.get(joint.name)
    if jog:
        goal = here + jog * lead
    elif joint.name in wanted.goals:
        goal = min(max(wanted.goals[joint.name], here - lead), here + lead)
    elif abs(velocity) > STILL * joint.speed:
        goal = here + copysign(velocity * velocity / (2 * joint.acceleration), velocity)  # come to rest, no way back
    else:
        goal = here
    return min(max(goal, joint.lowest), joint.highest)
