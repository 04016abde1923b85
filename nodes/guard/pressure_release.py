"""`Release`: after a stop for a touch, takes the pressure off by moving targets back to the joints; part of the guard.

A joint that pushes against something stands still, also while its target returns. So a target returns only to a
position where its joint was measured to stand for a while, and no further than a blocked joint can lag. It stops
returning once the joint is measured elsewhere. Then nothing was touched, the measurement was false, and the robot would
follow.
"""

from __future__ import annotations

import msgspec

from nodes.guard.lasting_faults import LAG_S, LASTS_S, RANGE_SHARE
from nodes.guard.motion_profile import Motion, brake, toward
from nodes.msgs import RobotState
from nodes.robot.protocol import JointLimit, RobotLimits
from nodes.robot.rest import is_still
from runtime.clock import to_ns

STANDS_NS = to_ns(0.1)
"""A joint counts as standing after this time within `STANDS_SHARE` of its range."""
STANDS_SHARE = 0.005


class _Joint(msgspec.Struct):
    """What is known of one joint since the stop."""

    place: float
    since_ns: int
    goes_back: bool = False
    is_given_up: bool = False


class Release:
    """Moves the targets of blocked joints back to their measured positions after one stop."""

    def __init__(self, limits: RobotLimits) -> None:
        self.limits = limits
        self._joints: dict[str, _Joint] = {}

    def forget(self) -> None:
        """Forget all joints, at the beginning of a stop."""
        self._joints.clear()

    def step(
        self, motions: tuple[Motion, ...], state: RobotState | None, dt_s: float, now_ns: int
    ) -> tuple[Motion, ...]:
        """One step of all joints within their limits; a joint whose target does not return brakes.

        `state` is None where it is stale: then every joint brakes.
        """
        if state is None or len(state.velocity) != len(motions):
            return tuple(brake(motion, limit, dt_s) for motion, limit in zip(motions, self.limits.joints, strict=True))
        return tuple(
            toward(motion, self._joints[limit.name].place, limit, dt_s)
            if self._goes_back(motion, limit, position, velocity, now_ns)
            else brake(motion, limit, dt_s)
            for motion, limit, position, velocity in zip(
                motions, self.limits.joints, state.position, state.velocity, strict=True
            )
        )

    def _goes_back(self, motion: Motion, limit: JointLimit, position: float, velocity: float, now_ns: int) -> bool:
        if limit.name == "gripper":
            return False  # the gripper keeps its grip
        reach, joint = limit.highest - limit.lowest, self._joints.get(limit.name)
        if joint is None or (
            not joint.goes_back
            and (abs(position - joint.place) > STANDS_SHARE * reach or not is_still(limit.name, velocity))
        ):
            self._joints[limit.name] = _Joint(position, now_ns, is_given_up=joint is not None and joint.is_given_up)
            return False
        if joint.goes_back and abs(position - joint.place) > RANGE_SHARE * reach:
            joint.goes_back, joint.is_given_up = False, True
        elif not joint.is_given_up and not joint.goes_back and now_ns - joint.since_ns >= STANDS_NS:
            joint.goes_back = abs(motion.position - joint.place) <= furthest(limit)
            joint.is_given_up = not joint.goes_back
        return joint.goes_back


def furthest(limit: JointLimit) -> float:
    """How far a target can be from a blocked joint, m or rad.

    The joint lags by the margin of `following`, moves on until that fault stops the robot, and then brakes.
    """
    behind = LAG_S * limit.speed + RANGE_SHARE * (limit.highest - limit.lowest)
    return behind + LASTS_S["following"] * limit.speed + limit.speed**2 / (2 * limit.acceleration)
