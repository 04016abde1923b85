"""The hard ceilings of each robot model, which a configuration may lower and cannot raise.

A robot of one's own brings its ceilings with it, as "module:NAME"; they are checked for sense, and hold from then on.
"""

from __future__ import annotations

from dataclasses import replace

from nodes.robot.described import load_limits
from nodes.robot.protocol import RobotLimits
from nodes.stretch.limits import STRETCH_3
from runtime.errors import ParameterError, choices

CEILINGS: dict[str, RobotLimits] = {"stretch_3": STRETCH_3}


def limits_of(robot: str, speed_scale: float = 1.0) -> RobotLimits:
    """The limits of that robot with all speeds scaled down; braking stays as strong as the robot allows.

    Raises ParameterError for an unknown robot, for limits that no robot can have, and for a scale outside (0, 1].
    """
    ceiling = load_limits(robot) if ":" in robot else CEILINGS.get(robot)
    if ceiling is None:
        known = f'{choices(CEILINGS)}, or limits of your own, as "module:NAME"'
        raise ParameterError(f"guard: robot {robot!r} is unknown; known: {known}")
    if not 0.0 < speed_scale <= 1.0:
        raise ParameterError(f"guard: speed_scale is {speed_scale}; expected more than 0 and at most 1, the ceiling")
    return RobotLimits(
        joints=tuple(replace(joint, speed=joint.speed * speed_scale) for joint in ceiling.joints),
        base=replace(ceiling.base, wheel_speed_mps=ceiling.base.wheel_speed_mps * speed_scale),
    )
