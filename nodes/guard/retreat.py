"""`WayBack`: the way that the robot came, and the slow way back after pain or contact; a pure part of the guard.

It keeps measured positions, not commanded ones: a joint that was blocked goes back from where it is.
"""

from __future__ import annotations

from collections import deque
from math import nan
from typing import Literal

import msgspec

from nodes.guard.lasting_faults import RANGE_SHARE, jumps
from nodes.msgs import RobotState
from nodes.robot.protocol import RobotLimits
from nodes.robot.rest import is_at_rest

SHARE = 0.25
"""Share of the speed at which it came, and of each joint's speed limit, at which it goes back."""
BACK_S = 1.0
"""How many seconds of motion it goes back; at that share of the speed it takes four times as long."""


class TrailStep(msgspec.Struct, frozen=True):
    """One step of the way: joint positions in m or rad, base velocity in m/s and rad/s, and its duration in s.

    A joint that stays where it is has nan.
    """

    position: tuple[float, ...]
    base_v_mps: float
    base_w_radps: float
    dt_s: float
    base_vy_mps: float = 0.0


class Trail:
    """The last `BACK_S` seconds of motion; `back` returns it step by step, from its end."""

    def __init__(self) -> None:
        self._steps: deque[TrailStep] = deque()
        self._kept_s = 0.0
        self._left_s = 0.0  # of the step that is being retraced

    def __bool__(self) -> bool:
        return bool(self._steps)

    @property
    def end(self) -> tuple[float, ...]:
        """Where its last step has led the joints, m or rad."""
        return self._steps[-1].position if self._steps else ()

    def note(self, state: RobotState, dt_s: float) -> None:
        """Add this step; a robot that stands adds none."""
        if is_at_rest(state) or dt_s <= 0.0:
            return
        base = state.base_v_mps, state.base_w_radps
        self._steps.append(TrailStep(state.position, *base, dt_s, state.base_vy_mps))
        self._kept_s += dt_s
        while self._kept_s > BACK_S and len(self._steps) > 1:
            self._kept_s -= self._steps.popleft().dt_s

    def back(self, dt_s: float) -> TrailStep | None:
        """The next step of the way back, which lasts `dt_s`; None at its end."""
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
        """Drop the whole way."""
        self._steps.clear()
        self._kept_s = self._left_s = 0.0


Due = Literal["nothing", "touched", "going", "touched again", "blocked", "blocked and touched"]
DueEvent = Literal["touch", "go on", "false alarm", "end", "block"]

WAY: dict[tuple[Due, DueEvent], Due] = {
    ("nothing", "touch"): "touched",
    ("touched", "go on"): "going",
    ("touched", "false alarm"): "nothing",  # a person took the stop back
    ("going", "touch"): "touched again",  # it leaves what it touched last
    ("going", "end"): "nothing",
    ("going", "block"): "blocked",  # it went back less than it owes
    ("touched again", "go on"): "going",
    ("touched again", "false alarm"): "going",  # what was owed before stays owed
    ("touched again", "end"): "touched",
    ("blocked", "touch"): "blocked and touched",
    ("blocked", "go on"): "nothing",  # the next go on leads ahead
    ("blocked", "false alarm"): "nothing",
    ("blocked and touched", "go on"): "nothing",
    ("blocked and touched", "false alarm"): "nothing",
}
"""What leads from one to another. What is not listed changes nothing: a stop that is no touch leaves the rest owed."""

TOUCHED: frozenset[Due] = frozenset({"touched", "touched again", "blocked and touched"})
"""Somebody was hurt or touched since the last go on."""


class WayBack:
    """The way that the robot must go back after pain or contact, before anything else.

    A touch on the way back reverses it: the robot leaves what it touched last. Any other stop on the way back leaves
    the rest to be done. Where it was measured to be without being able to get there, it has not been.
    """

    def __init__(self, limits: RobotLimits) -> None:
        self._limits = limits
        self._was: RobotState | None = None
        self._newest: RobotState | None = None
        self._stays: frozenset[int] = frozenset()  # joints that are not where their way ends
        self._since_s = 0.0  # since it was measured there
        self.due: Due = "nothing"
        self.begun_ns = 0  # when it began, or was gone on with
        self._came, self._gone_back = Trail(), Trail()

    @property
    def signature(self) -> tuple[object, ...]:
        """What is owed and whether a way is known: of the one it came, and of what it has gone back of it."""
        return self.due, bool(self._came), bool(self._gone_back)

    @property
    def is_touch(self) -> bool:
        """Whether somebody was hurt or touched since the last go on."""
        return self.due in TOUCHED

    @property
    def is_blocked(self) -> bool:
        """Whether the way was found not to be free, and nobody has said go on since."""
        return self.due in ("blocked", "blocked and touched")

    def note(self, state: RobotState, dt_s: float) -> None:
        """Add the measured state of a step that lasted `dt_s`; a false one leads nowhere."""
        self._newest = state
        self._since_s += dt_s
        if self._was is not None and jumps(self._limits, self._was, state, self._since_s):
            return
        self._was, self._since_s = state, 0.0
        (self._gone_back if self.due in ("going", "blocked") else self._came).note(state, dt_s)

    def touch(self) -> None:
        """Record that somebody is hurt or touched."""
        if self.due == "going":
            self._came, self._gone_back = self._gone_back, Trail()
        self._enter("touch")

    def begin(self, now_ns: int, *, is_false_alarm: bool) -> bool:
        """At a go on, whether the first motion is the way back; where it is not, a new way begins.

        `is_false_alarm` says that the person took the stop back: then no new way back is due.
        """
        self._enter("false alarm" if is_false_alarm else "go on")
        if self.due != "going" or not self._came:
            self.forget()
            return False
        self.begun_ns = now_ns
        joints = zip(self._limits.joints, self._newest.position if self._newest else (), self._came.end, strict=False)
        self._stays = frozenset(
            place
            for place, (limit, here, end) in enumerate(joints)
            if abs(here - end) > RANGE_SHARE * (limit.highest - limit.lowest)
        )
        return True

    def step(self, dt_s: float) -> TrailStep | None:
        """The next step of the way back; None at its end. A joint that is not where its way ends stays."""
        step = self._came.back(dt_s)
        if step is None:
            self.forget()
            return None
        position = tuple(nan if place in self._stays else there for place, there in enumerate(step.position))
        return msgspec.structs.replace(step, position=position)

    def block(self) -> None:
        """Record that the way is not free."""
        self._enter("block")

    def forget(self) -> None:
        """Drop the way and what was owed; a touch stays recorded."""
        self._enter("end")
        self._was = None
        self._came.forget()
        self._gone_back.forget()

    def _enter(self, event: DueEvent) -> None:
        self.due = WAY.get((self.due, event), self.due)
