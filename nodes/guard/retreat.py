"""`WayBack`: the way that the robot came, and the slow way back after pain or contact, as a pure part of the guard.

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
    base_vy_mps: float = 0.0


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
        base = state.base_v_mps, state.base_w_radps
        self._steps.append(TrailStep(state.position, *base, dt_s, state.base_vy_mps))
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
        v_mps, w_radps, vy_mps = (-SHARE * speed for speed in (step.base_v_mps, step.base_w_radps, step.base_vy_mps))
        return TrailStep(step.position, v_mps, w_radps, dt_s, vy_mps)

    def forget(self) -> None:
        """Begin anew."""
        self._steps.clear()
        self._kept_s = self._left_s = 0.0


class WayBack:
    """What the robot owes after pain or contact: before anything else it goes back along the way it came.

    A touch on the way back turns it round: the robot leaves what it has touched last. Any other stop on the way back
    leaves the rest owed.
    """

    def __init__(self) -> None:
        self.is_touch = False  # somebody was hurt or touched since the robot was last told to go on
        self._is_owed = False  # a way back has begun and is not at its end
        self._came, self._gone_back = Trail(), Trail()

    def note(self, state: RobotState, dt_s: float) -> None:
        """Keep this step."""
        (self._gone_back if self._is_back else self._came).note(state, dt_s)

    def touch(self) -> None:
        """Somebody is hurt or touched."""
        if self._is_back:
            self._came, self._gone_back = self._gone_back, Trail()
        self.is_touch = True

    @property
    def _is_back(self) -> bool:
        """On a way back, or stopped on it by something else than a touch."""
        return self._is_owed and not self.is_touch

    def begin(self, *, is_false_alarm: bool) -> bool:
        """Whether the first motion is a way back, now that a person says go on; a new way begins otherwise."""
        is_due = self._is_owed or (self.is_touch and not is_false_alarm)
        self.is_touch, self._is_owed = False, is_due and bool(self._came)
        if not self._is_owed:
            self.forget()
        return self._is_owed

    def step(self, dt_s: float) -> TrailStep | None:
        """Where to go now; None once the way is at its end."""
        step = self._came.back(dt_s)
        if step is None:
            self.forget()
        return step

    def forget(self) -> None:
        """Nothing is owed, and nothing known of the way; what was touched meanwhile is."""
        self._is_owed = False
        self._came.forget()
        self._gone_back.forget()
