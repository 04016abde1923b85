"""Preview of the path of base and hand under the present chunk or command. Pure."""

from __future__ import annotations

from collections.abc import Callable
from math import cos, sin
from typing import Any

from nodes.msgs import ActionChunk, JointCommand, JointVector, RobotState
from nodes.robot.protocol import PointM

Point = Callable[[JointVector], PointM]
"""A function from joint positions to the position of the hand in the base frame, m."""

AHEAD_S = 1.5
"""How far ahead a single command is extrapolated, s."""
POINTS = 12
"""Most points of a line."""


def path(state: RobotState, command: JointCommand | None, chunk: ActionChunk | None, point: Point) -> dict[str, Any]:
    """Points in the odometry frame, m: the base's on the floor, and those of the hand; rounded to 1 mm.

    A chunk is taken before a command. `point` gives the hand for joint positions.
    """
    if chunk is not None and len(chunk.position):
        return _of_chunk(state, chunk, point)
    if command is None:
        return {"of": "", "base": [], "hand": []}
    steps = range(1, POINTS + 1)
    share = AHEAD_S / POINTS
    pose, base = (state.base_x_m, state.base_y_m, state.base_heading_rad), []
    points = [_in_odometry(pose, point(state.position))]
    for step in steps:
        pose = moved(pose, command.base_v_mps, command.base_w_radps, share, command.base_vy_mps)
        base.append(_rounded(pose[:2]))
        part = step / POINTS
        between = tuple(
            here + part * (goal - here) for here, goal in zip(state.position, command.position, strict=True)
        )
        points.append(_in_odometry(pose, point(between)))
    return {"of": "command", "base": base, "hand": points}


def _of_chunk(state: RobotState, chunk: ActionChunk, point: Point) -> dict[str, Any]:
    pose = (state.base_x_m, state.base_y_m, state.base_heading_rad)
    every = max(1, len(chunk.position) // POINTS)
    base: list[list[float]] = []
    points: list[list[float]] = []
    for step, position in enumerate(chunk.position):
        pose = moved(pose, float(chunk.base_v_mps[step]), float(chunk.base_w_radps[step]), chunk.step_s)
        if step % every == 0 or step == len(chunk.position) - 1:
            base.append(_rounded(pose[:2]))
            points.append(_in_odometry(pose, point(tuple(position.tolist()))))
    return {"of": "chunk", "base": base, "hand": points}


def moved(
    pose: tuple[float, float, float], v_mps: float, w_radps: float, for_s: float, vy_mps: float = 0.0
) -> tuple[float, float, float]:
    """Where a base gets to in a short time at these speeds: x and y, m, and its heading, rad."""
    x, y, heading = pose
    middle = heading + w_radps * for_s / 2
    c, s = cos(middle), sin(middle)
    return x + (v_mps * c - vy_mps * s) * for_s, y + (v_mps * s + vy_mps * c) * for_s, heading + w_radps * for_s


def _in_odometry(pose: tuple[float, float, float], point: tuple[float, float, float]) -> list[float]:
    x, y, heading = pose
    ahead, left, up = point
    return _rounded(
        (x + ahead * cos(heading) - left * sin(heading), y + ahead * sin(heading) + left * cos(heading), up)
    )


def _rounded(values: tuple[float, ...]) -> list[float]:
    return [round(value, 3) for value in values]
