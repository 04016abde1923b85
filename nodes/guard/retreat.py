"""`Trail`: the way that the robot came, and the slow way back after contact, as a pure part of the guard.

What is kept is what was measured, not what was asked for: a joint that was blocked goes back from where it is.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from nodes.robot.rest import is_at_rest
from runtime.msgs import RobotState

SHARE = 0.25
"""Of the speed at which it came, and of each joint's limit."""
BACK_S = 1.0
"""So much of the way is gone back; at that share of the speed it takes four times as long."""


@dataclass(frozen=True, slots=True)
class TrailStep:
    """Where the joints were, how fast the base went, and for how long."""

    position: tuple[float, ...]
    base_v_mps: float
    base_w_radps: float
    dt_s: float


class Trail:
    """The last second of motion. `back` gives it step by step, from its end."""

    def __init__(self) -> None:
        self._steps: deque[TrailStep] = deque()
        self._kept_s = 0.0
        self._left_s = 0.0  # of the step that is gone back now

    def __bool__(self) -> bool:
        return bool(self._steps)

    def note(self, state: RobotState, dt_s: float) -> None:
        """Keep this step of the way; a robot that stands makes none."""
        if is_at_rest(state) or dt_s <= 0.0:
            return
        self._steps.append(TrailStep(state.position, state.base_v_mps, state.base_w_radps, dt_s))
        self._kept_s += dt_s
        while self._kept_s > BACK_S and len(self._steps) > 1:
            self._kept_s -= self._steps.popleft().dt_s

    def back(self, dt_s: float) -> TrailStep | None:
        """Where to go now; None once the way is at its end."""
        if not self._steps:
            return None
        step = self._steps[-1]
        self._left_s = (self._left_s or step.dt_s) - dt_s * SHARE
        if self._left_s <= 0.0:
            self._steps.pop()
            self._left_s = 0.0
        return TrailStep(step.position, -SHARE * step.base_v_mps, -SHARE * step.base_w_radps, dt_s)

    def forget(self) -> None:
        """Begin anew."""
        self._steps.clear()
        self._kept_s = self._left_s = 0.0
