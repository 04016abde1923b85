"""When a robot is at rest: one definition for guard, summary, interrupt records and experiments."""

from __future__ import annotations

from collections.abc import Sequence

from nodes.msgs import JOINTS, RobotState

REST_MPS, REST_RADPS = 0.005, 0.02
"""Largest measured speed of a robot that stands: of the base and of sliding joints in m/s, of what turns in rad/s."""
SLIDING = frozenset({"lift", "arm", "gripper"})


def is_at_rest(state: RobotState, joints: Sequence[str] = JOINTS) -> bool:
    """Whether neither the base nor any joint is measured to move; a joint not known to slide counts as turning."""
    if max(abs(state.base_v_mps), abs(state.base_vy_mps)) > REST_MPS or abs(state.base_w_radps) > REST_RADPS:
        return False
    names = joints if len(joints) == len(state.velocity) else ("",) * len(state.velocity)
    return all(is_still(name, speed) for name, speed in zip(names, state.velocity, strict=True))


def is_still(joint: str, speed: float) -> bool:
    """Whether a joint with this measured speed, m/s or rad/s, stands."""
    return abs(speed) <= (REST_MPS if joint in SLIDING else REST_RADPS)
