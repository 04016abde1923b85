"""`ArmMotion`: how an arm that stands still, from a robot file, carries out the phases of skills.

The hand points down, with its fingers open along the x of the room, or turned from that where the arm reaches a place
only so. It goes up and down straight, and sideways at the travel height around its own base, a piece of the way at a
time, so that all joints arrive together.
"""

from __future__ import annotations

import math

import numpy as np

from nodes.msgs import JointVector, RobotState
from nodes.policy.skill_phases import (
    LIFTED_OFF_M,
    MARGIN_M,
    NEAR_M,
    SET_DOWN_M,
    OutOfReach,
    Phase,
    PhaseAim,
    SkillProgress,
    Spot,
    Until,
    below_hand_m,
    resting_at,
    with_goals,
)
from nodes.robot.products import angle_between, product, turn_z
from nodes.robot.protocol import PointM
from nodes.robot_file.body import FileBody
from nodes.robot_file.inverse_kinematics import Pose

DOWN = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
"""The hand's x, y and z in columns: z down, y, along which the fingers open, along the room's x."""
YAWS_DEG = (0, 90, 30, -30, 60, -60, 45, -45)
"""How the hand may be turned about the vertical, in the order in which it is tried: square to a cube first."""
FINGER_BELOW_M = 0.02
"""How far the ends of the fingers are below the point between them."""
SLACK_M = 0.02
"""The hand may go sideways from this far below the travel height."""
LEAD_M, LEAD_RAD = 0.10, 0.25
"""How far ahead of the hand its goal is, straight and around the base."""
LEAD_TURN_RAD = 0.4
HEIGHT_M, PLACE_M, TURNED_RAD = 0.010, 0.008, 0.08
OPEN_SHARE, OPEN_ENOUGH = 0.96, 0.85
"""Of the gripper's widest opening: what is asked for, and from where on it counts as open."""


class ArmMotion:
    """The `SkillMotion` of a robot from a file. It does not drive, and its camera stands still.

    Places are reckoned in the frame of the base, wherever it has been driven to.
    """

    still_joints: tuple[int, ...] = ()

    def __init__(self, body: FileBody) -> None:
        self.body = body
        grips = frozenset({"pick", "place", "put_back"}) if body.gripper is not None else frozenset[str]()
        self.skills = grips | {"look", "hold"}
        x, y, z = body.robot.table.mount_m
        self._base = np.array((0.0, 0.0, z) if body.drives else (x, y, z))
        self._reached: tuple[PointM, np.ndarray] | None = None
        self._down = DOWN

    def aim(
        self, phase: Phase, spot: Spot, progress: SkillProgress, state: RobotState, tallest_m: float
    ) -> PhaseAim | str:
        gripper = self.body.gripper
        if phase.drives or phase.points or phase.rolls_rad is not None or phase.folds:
            return f"this robot cannot do {phase.name!r}: its skills move neither a base nor a head"
        turn, origin = self.body.base_pose(state)
        x_m, y_m, _ = product(np.array((spot.x_m, spot.y_m, 0.0)) - origin, turn).tolist()
        heading_rad = math.atan2(turn[1, 0], turn[0, 0])
        here = self.body.hand(state.position)
        kept = self.body.hand(progress.goal)
        travel_m = tallest_m + MARGIN_M + below_hand_m(FINGER_BELOW_M, progress.held)
        # What is let go from above is not gone down to.
        lowest_m = travel_m if "near" in phase.until else spot.grasp_z_m
        if phase.goes:
            turned = self._reach((x_m, y_m, lowest_m), heading_rad, state)
            if turned is None:
                return OutOfReach(
                    f"the {spot.name} is out of reach of the arm, at x {spot.x_m:.2f}, y {spot.y_m:.2f} m"
                )
            self._down = turned
        is_low = float(here.place[2]) < travel_m - SLACK_M
        heights = {
            "keep": float(kept.place[2]),
            "travel": travel_m,
            "grasp": spot.grasp_z_m,
            "set down": spot.grasp_z_m + SET_DOWN_M,
        }
        goal = progress.goal
        if gripper is not None and phase.opens is not None:
            limit = self.body.limits.joints[gripper]
            wide = limit.lowest + OPEN_SHARE * (limit.highest - limit.lowest)
            goal = with_goals(goal, {gripper: wide if phase.opens else limit.lowest})
        is_half_closed = phase.opens is True and not self._is_open(state)
        goes = phase.goes and (not is_low or phase.slides)
        if goes or (phase.lift != "keep" and not (is_low and is_half_closed)):  # fingers that touch a thing drag it
            beside = (x_m, y_m) if goes else (float(kept.place[0]), float(kept.place[1]))
            wanted = Pose(self._down if goes or not is_low else kept.rotation, np.array((*beside, heights[phase.lift])))
            posture, *_ = self.body.towards(self._carrot(here, wanted), goal)
            goal = posture
        at = Pose(self._down, np.array((x_m, y_m, heights[phase.lift])))
        return PhaseAim(goal, 0.0, 0.0, all(self._holds(until, at, here, spot, state) for until in phase.until))

    def resting(self, state: RobotState, held: Spot | None) -> JointVector:
        rest = tuple(resting_at(state, self.body.limits))
        gripper = self.body.gripper
        if held is None or gripper is None:
            return rest
        return with_goals(rest, {gripper: self.body.limits.joints[gripper].lowest})

    def is_out(self, state: RobotState) -> bool:
        return True

    def gaze(self, state: RobotState) -> Spot:
        rotation, place = self.body.head_camera(state)
        x, y, z = (place + rotation[:, 2]).tolist()
        return Spot("other", x, y, z, 0.0)

    def around(self, state: RobotState) -> tuple[Spot, ...]:
        """It has no head to turn."""
        return (self.ahead(state),)

    def ahead(self, state: RobotState) -> Spot:
        return self.gaze(state)

    def _reach(self, place: PointM, heading_rad: float, state: RobotState) -> np.ndarray | None:
        """How the hand is turned that gets there, or None; searched once for each place."""
        if self._reached is not None and math.dist(self._reached[0], place) < PLACE_M:
            return self._reached[1]
        for yaw_deg in YAWS_DEG:
            turned = down_at(math.radians(yaw_deg) - heading_rad)
            if self.body.reaching(Pose(turned, np.array(place)), state.position) is not None:
                self._reached = (place, turned)
                return turned
        return None

    def _carrot(self, here: Pose, wanted: Pose) -> Pose:
        """A pose on the way: around the base and up or down, no further than the hand can follow at once."""
        x, y, z = (here.place - self._base).tolist()
        to_x, to_y, to_z = (wanted.place - self._base).tolist()
        radius, angle = math.hypot(x, y), math.atan2(y, x)
        out = math.hypot(to_x, to_y) - radius
        around = math.remainder(math.atan2(to_y, to_x) - angle, 2 * math.pi)
        share = min(
            1.0,
            LEAD_M / max(abs(out), abs(to_z - z), 1e-9),
            LEAD_RAD / max(abs(around), 1e-9),
        )
        if share >= 1.0:
            place = wanted.place
        else:
            radius, angle, z = radius + share * out, angle + share * around, z + share * (to_z - z)
            place = self._base + np.array((radius * math.cos(angle), radius * math.sin(angle), z))
        return Pose(_turned_towards(here.rotation, wanted.rotation, LEAD_TURN_RAD), place)

    def _is_open(self, state: RobotState) -> bool:
        gripper = self.body.gripper
        if gripper is None:
            return True
        limit = self.body.limits.joints[gripper]
        return state.position[gripper] > limit.lowest + OPEN_ENOUGH * (limit.highest - limit.lowest)

    def _holds(self, until: Until, at: Pose, here: Pose, spot: Spot, state: RobotState) -> bool:
        off_m = math.dist(here.place[:2].tolist(), at.place[:2].tolist())
        match until:
            case "lift":
                return abs(float(here.place[2] - at.place[2])) < HEIGHT_M
            case "arm" | "base":
                return off_m < PLACE_M and float(np.abs(state.velocity).max()) < 0.1
            case "near":
                return off_m < NEAR_M
            case "wrist":
                return angle_between(here.rotation, self._down) < TURNED_RAD
            case "grasp":
                return state.is_grasping
            case "open":
                return self._is_open(state) and not state.is_grasping
            case "off":
                return float(here.place[2]) > spot.grasp_z_m + LIFTED_OFF_M
            case _:
                return True


def down_at(yaw_rad: float) -> np.ndarray:
    """`DOWN`, turned about the vertical."""
    return product(turn_z(yaw_rad), DOWN)


def _turned_towards(one: np.ndarray, other: np.ndarray, most_rad: float) -> np.ndarray:
    """The first rotation, turned towards the other by so much at most."""
    angle = angle_between(one, other)
    if angle <= most_rad:
        return other
    turn = product(other, one.T)
    axis = np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]])
    length = math.hypot(*axis.tolist())
    if length < 1e-6:  # half a turn: any axis at right angles will do
        return other
    x, y, z = (axis / length).tolist()
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    rotation = np.eye(3) + math.sin(most_rad) * cross + (1.0 - math.cos(most_rad)) * product(cross, cross)
    return product(rotation, one)
