"""When a robot is at rest: one definition for the guard, the summary, the interrupt's record and the experiment."""

from __future__ import annotations

from collections.abc import Sequence

from runtime.msgs import JOINTS, RobotState

REST_MPS, REST_RADPS = 0.005, 0.02
"""What is measured of a robot that stands: the base and joints that slide; the base's and other joints' turning."""
SLIDING = frozenset({"lift", "arm", "gripper"})


def is_at_rest(state: RobotState, joints: Sequence[str] = JOINTS) -> bool:
    """Whether neither the base nor any joint is measured to move. A joint that is not known to slide turns."""
    if max(abs(state.base_v_mps), abs(state.base_vy_mps)) > REST_MPS or abs(state.base_w_radps) > REST_RADPS:
        return False
    names = joints if len(joints) == len(state.velocity) else ("",) * len(state.velocity)
    return all(is_still(name, speed) for name, speed in zip(names, state.velocity, strict=True))


def is_still(joint: str, speed: float) -> bool:
    """Whether a joint with this measured speed, m/s or rad/s, stands."""
    return abs(speed) <= (REST_MPS if joint in SLIDING else REST_RADPS)
