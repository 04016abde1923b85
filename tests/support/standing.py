"""A robot that stands in one posture, as it is felt."""

from __future__ import annotations

from nodes.msgs import RobotState

HOME = (0.3, 0.1, 0.5, -0.3, 0.0, 0.05, 0.0, 0.0)
ZEROS = (0.0,) * 8


def standing(
    now_ns: int,
    position: tuple[float, ...] = HOME,
    *,
    effort: tuple[float, ...] = ZEROS,
    contact: tuple[str, ...] = (),
    pose: tuple[float, float, float] = (0.0, 0.0, 0.0),
) -> RobotState:
    """Its state, read now."""
    return RobotState(
        read_ns=now_ns, position=position, velocity=ZEROS, effort=effort, base_x_m=pose[0], base_y_m=pose[1],
        base_heading_rad=pose[2], base_v_mps=0.0, base_w_radps=0.0, contact=contact,
    )  # fmt: skip


def moving(
    now_ns: int,
    position: tuple[float, ...],
    velocity: tuple[float, ...],
    v_mps: float = 0.0,
    w_radps: float = 0.0,
    pose: tuple[float, float, float] = (0.0, 0.0, 0.0),
) -> RobotState:
    """The state of a robot that moves, read now."""
    return RobotState(
        read_ns=now_ns, position=position, velocity=velocity, effort=ZEROS, base_x_m=pose[0], base_y_m=pose[1],
        base_heading_rad=pose[2], base_v_mps=v_mps, base_w_radps=w_radps,
    )  # fmt: skip
