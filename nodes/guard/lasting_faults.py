"""`Conduct`: compares what the robot does with what was asked of it; a pure part of the guard.

The commands alone do not tell whether the robot is safe. A blocked joint, a wheel that turns by itself and a silent
sensor look well from the side of the commands. The thresholds are design choices of this project; docs/guard.md has
them in a table.
"""

from __future__ import annotations

from collections import deque
from math import hypot, isfinite
from typing import Literal

import msgspec

from nodes.guard.motion_profile import Motion
from nodes.msgs import RobotState
from nodes.robot.protocol import RobotLimits
from runtime.clock import to_ns, to_s

Fault = Literal["unknown", "following", "motion", "contact", "effort"]

LASTS_S: dict[Fault, float] = {"unknown": 0.1, "following": 0.5, "motion": 0.3, "contact": 0.1, "effort": 0.3}
"""How long each fault lasts before the robot is stopped for it, s."""
RUNSTOP_S: dict[Fault, float] = {"unknown": 1.0, "following": 3.0, "motion": 1.0, "contact": 3.0, "effort": 3.0}
"""How long each fault goes on after the stop before the robot's own runstop is pressed, s."""
TOUCHES: frozenset[Fault] = frozenset({"contact", "effort"})
RELAXES: frozenset[str] = frozenset({"following", "contact", "effort"})
"""After a stop for these faults the targets return to the measured posture, so that the robot stops pushing."""
LAG_S, RANGE_SHARE = 0.3, 0.03
"""A joint may be behind its target by its way at limit speed in this time, s, plus this share of its range."""
BASE_MPS, BASE_RADPS, JOINT_SHARE, JOINT_PER_S = 0.1, 0.3, 0.5, 0.05
"""Margin by which a measured speed may exceed the commanded one: of the base in m/s and rad/s; of a joint, a share of
its speed limit plus m/s or rad/s.
"""
FASTER, BASE_JUMP_M = 2.0, 0.1
"""A measurement has jumped where it moved by more than this multiple of its speed limit allows, plus a margin.

The margin is `RANGE_SHARE` of a joint's range, and this many metres for the base.
"""
JUMP_SHOWS_NS = to_ns(0.06)
"""A single jump is forgotten after this time; jumps that repeat within it count as one lasting fault."""
ASKED_TICKS = 25
"""Commands of this many ticks, half a second at 50 Hz, may still show in the motion: braking takes its time."""


class CommandedMotion(msgspec.Struct, frozen=True):
    """The motion that the guard asks for at one tick: joints in m or rad, the base in m/s and rad/s.

    `joints` is empty while nothing is asked for.
    """

    joints: tuple[Motion, ...]
    base_v_mps: float
    base_w_radps: float
    base_vy_mps: float = 0.0


class Conduct:
    """Tracks which lasting faults the robot shows, and since when.

    `max_effort_percent` is the effort of a joint, in percent of its maximum, that counts as pushing.
    """

    def __init__(self, limits: RobotLimits, max_effort_percent: float) -> None:
        self.limits = limits
        self.max_effort_percent = max_effort_percent
        self._asked: deque[CommandedMotion] = deque(maxlen=ASKED_TICKS)
        self._since_ns: dict[Fault, int] = {}
        self._last: RobotState | None = None
        self._jump, self._jumped_ns = "", 0

    def forget(self) -> None:
        """Forget all faults, because the robot moves by itself or its state is unknown."""
        self._asked.clear()
        self._since_ns.clear()
        self._last, self._jump = None, ""

    def check(self, state: RobotState, asked: CommandedMotion, now_ns: int) -> dict[Fault, tuple[float, str]]:
        """For each fault that is present: for how many seconds, and a sentence that says why. Call it once per tick."""
        self._asked.append(asked)
        found = self._faults(state, asked)
        if (jump := self._jumps(state, now_ns)) and "unknown" not in found:
            found["unknown"] = jump
        self._since_ns = {fault: self._since_ns.get(fault, now_ns) for fault in found}
        return {fault: (to_s(now_ns - self._since_ns[fault]), why) for fault, why in found.items()}

    def _faults(self, state: RobotState, asked: CommandedMotion) -> dict[Fault, str]:
        joints = self.limits.joints
        base = (state.base_v_mps, state.base_w_radps, state.base_vy_mps)
        for name, values in (("effort", state.effort), ("velocity", state.velocity)):
            if len(values) != len(joints) or not all(isfinite(value) for value in values):
                return {"unknown": f"the {name} of the joints is not known"}
        if not all(isfinite(value) for value in base):
            return {"unknown": "the speed of the base is not known"}
        if not isfinite(state.base_heading_rad):
            return {"unknown": "the heading of the base is not known"}
        found: dict[Fault, str] = {}
        if state.contact:
            found["contact"] = f"contact lasts: {', '.join(state.contact)}"
        if names := self._pushing(state):
            found["effort"] = f"effort above {self.max_effort_percent:g} % lasts: {names}"
        if names := self._behind(state, asked):
            found["following"] = f"does not follow its target: {names}"
        if names := self._too_fast(state):
            found["motion"] = f"moves beyond what was asked for: {names}"
        return found

    def _jumps(self, state: RobotState, now_ns: int) -> str:
        """What is measured further away than it can have moved since the last state; reported for a short time
        afterwards.

        A state has the time of its oldest part. Each part of the last one was measured at `last.read_ns` or later, and
        each part of this one by now. So none had more time to move than lies between.
        """
        last, self._last = self._last, state
        dt_s = to_s(now_ns - last.read_ns) if last is not None else 0.0
        if last is not None and dt_s > 0.0 and (names := jumps(self.limits, last, state, dt_s)):
            self._jump, self._jumped_ns = f"the measured posture jumps: {', '.join(names)}", now_ns
        return self._jump if now_ns - self._jumped_ns <= JUMP_SHOWS_NS else ""

    def _pushing(self, state: RobotState) -> str:
        return ", ".join(
            limit.name
            for limit, effort in zip(self.limits.joints, state.effort, strict=True)
            if abs(effort) >= self.max_effort_percent and limit.name != "gripper"
        )

    def _behind(self, state: RobotState, asked: CommandedMotion) -> str:
        """The joints that are too far from their targets; the gripper is left out, since it is meant to be."""
        if not asked.joints:
            return ""
        return ", ".join(
            limit.name
            for limit, motion, position in zip(self.limits.joints, asked.joints, state.position, strict=True)
            if limit.name != "gripper"
            and abs(motion.position - position) > LAG_S * limit.speed + RANGE_SHARE * (limit.highest - limit.lowest)
        )

    def _too_fast(self, state: RobotState) -> str:
        """What moves faster than all that was asked for lately; nothing while nobody commands."""
        asked = [one for one in self._asked if one.joints]
        if not asked:
            return ""
        names = []
        for place, limit in enumerate(self.limits.joints):
            beyond = abs(state.velocity[place]) - JOINT_SHARE * limit.speed - JOINT_PER_S
            if (
                beyond > 0
                and limit.name != "gripper"
                and beyond > max(abs(one.joints[place].velocity) for one in asked)
            ):
                names.append(limit.name)
        most_v = max(abs(one.base_v_mps) for one in asked)
        most_w = max(abs(one.base_w_radps) for one in asked)
        most_vy = max(abs(one.base_vy_mps) for one in asked)
        is_sliding = abs(state.base_v_mps) > most_v + BASE_MPS or abs(state.base_vy_mps) > most_vy + BASE_MPS
        if is_sliding or abs(state.base_w_radps) > most_w + BASE_RADPS:
            names.append("base")
        return ", ".join(names)


def jumps(limits: RobotLimits, was: RobotState, now: RobotState, dt_s: float) -> list[str]:
    """The joints, and "base", that are measured further away than they can have moved in that time, s."""
    joints = zip(limits.joints, was.position, now.position, strict=True)
    names = [
        limit.name
        for limit, before, after in joints
        if abs(after - before) > FASTER * limit.speed * dt_s + RANGE_SHARE * (limit.highest - limit.lowest)
    ]
    away_m = hypot(now.base_x_m - was.base_x_m, now.base_y_m - was.base_y_m)
    is_near = away_m <= FASTER * limits.base.wheel_speed_mps * dt_s + BASE_JUMP_M  # not where away_m is NaN
    return names if is_near else [*names, "base"]
