"""`SimRobot`: a Stretch in a kitchen, in MuJoCo, behind the `Robot` protocol, and the hand of a person beside it.

The hand takes what is let go above it while it is open, and lets go of what the gripper holds.
"""

from __future__ import annotations

import math

import mujoco
import numpy as np

from nodes.msgs import JOINTS
from nodes.robot.protocol import RobotLimits
from nodes.sim.grip import fix, keep_awake
from nodes.sim.messages import BodyPart
from nodes.sim.mjcf import BASE_JOINTS, FINGER, SERVOS, SimScene, build_scene
from nodes.sim.physics import STILL_SPEED, BuiltRobot, DrivenJoint, PhysicsRobot
from nodes.stretch.limits import STOW, STRETCH_3
from runtime.errors import UserError

CONTACT_PERCENT = {"base": (-60.0, 60.0), "arm": (-55.0, 55.0), "lift": (-15.0, 70.0)}
"""Effort beyond which a joint reports contact (Stretch's defaults)."""
STILL_SPEEDS_MPS = {"lift": 0.01, "arm": 0.01, "gripper": 0.01}
PALM_M, PALM_ABOVE_M = 0.10, 0.08
"""A thing that is let go this near to an open palm, and this little above it, is taken."""
REACH_M = 0.16
"""A person's hand takes what is this near."""


class SimRobot(PhysicsRobot):
    """The simulated robot and all that stands around it; the seed lays the table.

    It begins folded, with its head where it is told: straight ahead, a wall is all that it sees; the table is on its
    right.
    """

    limits: RobotLimits = STRETCH_3

    def __init__(self, seed: int = 0, head_pan_rad: float = 0.0, head_tilt_rad: float = 0.0, things: str = "") -> None:
        """`things`: only these stand on the table, "blue_cup red_cup" say; its cameras are told the same."""
        self._things_named = things
        begins = dict(zip(JOINTS, STOW, strict=True))
        for name, angle_rad in (("head_pan", head_pan_rad), ("head_tilt", head_tilt_rad)):
            limit = self.limits.joints[JOINTS.index(name)]
            if not limit.lowest <= angle_rad <= limit.highest:
                raise UserError(f"{name}_rad is {angle_rad}; expected {limit.lowest} to {limit.highest}")
            begins[name] = angle_rad
        scene = self._build(seed)
        super().__init__(
            BuiltRobot(
                model=mujoco.MjModel.from_xml_string(scene.xml),
                things=scene.things,
                joints=tuple(
                    DrivenJoint(
                        limit=limit,
                        carriers=("finger_left", "finger_right") if limit.name == "gripper" else (limit.name,),
                        servo=SERVOS.get(limit.name, FINGER),
                        folded=folded,
                        still_speed=STILL_SPEEDS_MPS.get(limit.name, STILL_SPEED),
                    )
                    for limit, folded in zip(self.limits.joints, STOW, strict=True)
                ),
                hand="wrist_roll",
                fingers=("finger_left", "finger_right"),
                contact_percent=CONTACT_PERCENT,
                base=BASE_JOINTS,
                gripper=JOINTS.index("gripper"),
                folds_first=JOINTS.index("arm"),
            ),
            begins=tuple(begins.values()),
        )
        self.gesture = ""  # of the person's hand
        self.in_hand = ""
        self._body_of = {thing.name: int(self.model.body(thing.name).id) for thing in scene.things}
        self._height_of = {thing.name: thing.height_m for thing in scene.things}
        self._name_of = {body: name for name, body in self._body_of.items()}
        self._hand_body = int(self.model.body("hand").id)
        self._held = ""

    def _build(self, seed: int) -> SimScene:
        """The scene that the robot stands in; another world builds another one."""
        return build_scene(seed, self._things_named)

    def advance(self, now_ns: int) -> None:
        super().advance(now_ns)
        self._hand_over()

    def move_part(self, part: BodyPart) -> None:
        """The same; an open hand takes what is let go above it, "hold:NAME" takes a thing, "drop" lets go."""
        super().move_part(part)
        if part.part != "hand":
            return
        verb, _, name = part.gesture.partition(":")
        if verb == "hold" and not self.in_hand and name in self._body_of:
            if math.dist(self._at(name), (part.x_m, part.y_m, part.z_m)) < REACH_M and self._held != name:
                self._give(name)
        elif verb == "drop" and self.in_hand:
            self._let_go()
        self.gesture = verb

    def _hand_over(self) -> None:
        """What robot and person take from each other, at each advance."""
        held = self._name_of.get(self._grip.held, "")
        if held == self._held:
            return
        before, self._held = self._held, held
        if held:
            if held == self.in_hand:
                self._let_go()
        elif self.gesture == "open" and not self.in_hand and self._is_over_palm(before):
            self._give(before)

    def _is_over_palm(self, name: str) -> bool:
        hand, (x, y, z) = self._part_m("hand"), self._at(name)
        above_m = z - self._height_of[name] / 2 - hand[2]
        return math.dist((x, y), hand[:2]) < PALM_M and -0.02 < above_m < PALM_ABOVE_M

    def _give(self, name: str) -> None:
        fix(self.model, self.data, self.model.equality(f"give_{name}").id, self._hand_body, self._body_of[name])
        self.in_hand = name

    def _let_go(self) -> None:
        self.data.eq_active[self.model.equality(f"give_{self.in_hand}").id] = 0
        keep_awake(self.model, self.data, self._body_of[self.in_hand])
        self.in_hand = ""

    def _at(self, name: str) -> tuple[float, float, float]:
        x, y, z = self._xpos[self._body_of[name]].tolist()
        return x, y, z

    def _part_m(self, part: str) -> tuple[float, float, float]:
        x, y, z = np.asarray(self.data.mocap_pos[self.model.body(part).mocapid[0]]).tolist()
        return x, y, z
