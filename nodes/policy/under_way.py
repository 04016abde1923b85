"""`UnderWay`: an action that a learned policy acts on, and when it counts as done or as failed. Pure values."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nodes.policy.model_inputs import Pose, pose_of
from runtime.message import Stamped
from runtime.msgs import Action, RobotState


@dataclass(frozen=True, slots=True)
class UnderWay:
    """An action, where the base was when it began, and what the model has said of it so far."""

    action: Action
    stamped: Stamped[Action] | None
    began: Pose | None
    elapsed_s: float = 0.0  # without the time in which the robot was stopped
    is_judged: bool = False  # the model says whether it is done
    sure: int = 0  # answers in a row that say so
    seen: int = -1  # the last one's number

    @classmethod
    def begun(
        cls, action: Action, stamped: Stamped[Action] | None, state: RobotState | None, *, is_judged: bool
    ) -> UnderWay:
        """As it begins."""
        return cls(action, stamped, pose_of(state) if state is not None else None, is_judged=is_judged)

    def later(self, period_s: float) -> UnderWay:
        """The same a period later."""
        return replace(self, elapsed_s=self.elapsed_s + period_s)

    def told(self, done: float | None, number: int, threshold: float) -> UnderWay:
        """With the model's answer of that number, which counts once, that the action is done to this degree."""
        if done is None or number == self.seen:
            return self
        return replace(self, is_judged=True, seen=number, sure=self.sure + 1 if done >= threshold else 0)
