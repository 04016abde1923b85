"""`SimRobot`: a Stretch in a world, in MuJoCo, behind the `Robot` protocol."""

from __future__ import annotations

from nodes.msgs import JOINTS
from nodes.robot.protocol import RobotLimits
from nodes.robot_file.engine import mujoco
from nodes.sim.physics import STILL_SPEED, BuiltRobot, DrivenJoint, PhysicsRobot
from nodes.sim.world.mjcf import BASE_JOINTS, build_stretch
from nodes.sim.world.scenario import DEMO, layout_of
from nodes.stretch.limits import STOW, STRETCH_3
from runtime.errors import UserError

CONTACT_PERCENT = {"base": (-60.0, 60.0), "arm": (-55.0, 55.0), "lift": (-15.0, 70.0)}
"""Effort beyond which a joint reports contact (Stretch's defaults)."""
STILL_SPEEDS_MPS = {"lift": 0.01, "arm": 0.01, "gripper": 0.01}


class SimRobot(PhysicsRobot):
    """The simulated robot and all that stands around it; the seed lays the world out.

    It begins folded, with its head where it is told: straight ahead, a wall is all that it sees; the table is on its
    right.
    """

    limits: RobotLimits = STRETCH_3

    def __init__(
        self, seed: int = 0, head_pan_rad: float = 0.0, head_tilt_rad: float = 0.0, things: str = "",
        scenario: str = DEMO,
    ) -> None:  # fmt: skip
        """`things`: of the scenario only these stand there, "blue_cup red_cup" say; its cameras are told the same."""
        begins = dict(zip(JOINTS, STOW, strict=True))
        for name, angle_rad in (("head_pan", head_pan_rad), ("head_tilt", head_tilt_rad)):
            limit = self.limits.joints[JOINTS.index(name)]
            if not limit.lowest <= angle_rad <= limit.highest:
                raise UserError(f"{name}_rad is {angle_rad}; expected {limit.lowest} to {limit.highest}")
            begins[name] = angle_rad
        layout = layout_of(scenario, seed, things)
        super().__init__(
            BuiltRobot(
                model=mujoco.MjModel.from_xml_string(build_stretch(layout)),
                layout=layout,
                joints=tuple(
                    DrivenJoint(
                        limit=limit,
                        carriers=("finger_left", "finger_right") if limit.name == "gripper" else (limit.name,),
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
            ),
            begins=tuple(begins.values()),
        )
