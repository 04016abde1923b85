"""A drawn kitchen for tests of eyes: what its head camera sees, with a person as told."""

from __future__ import annotations

import math

import msgspec
import mujoco

from nodes.msgs import JOINTS, Image, RobotState
from nodes.sim.camera import FARTHEST_M
from nodes.sim.messages import BodyPart
from nodes.sim.rendering.renderer import RayRenderer
from nodes.sim.robot import SimRobot
from nodes.sim.world.mjcf import build_stretch
from nodes.stretch.kinematics import look_at

PAN, TILT = JOINTS.index("head_pan"), JOINTS.index("head_tilt")
TABLE_M, FACE_M = (0.0, -0.64, 0.5), (0.1, -1.3, 1.5)


class DrawnKitchen:
    """The kitchen of a scenario ("": with something of everything) and a seed, and its head camera."""

    def __init__(self, scenario: str = "kitchen", seed: int = 1) -> None:
        self.robot = SimRobot(seed, scenario=scenario)
        self.robot.start(0)
        self.now_ns = 0
        self.pass_s(1.0)

    def pass_s(self, seconds: float) -> None:
        """Let the world go on."""
        for _ in range(round(seconds * 20)):
            self.now_ns += 50_000_000
            self.robot.advance(self.now_ns)

    def move(self, part: str, at_m: tuple[float, float, float], yaw_rad: float = math.pi / 2, pitch_rad: float = 0.0,
             gesture: str = "") -> None:  # fmt: skip
        """Put a part of the person there."""
        x, y, z = at_m
        self.robot.move_part(
            BodyPart(part=part, x_m=x, y_m=y, z_m=z, yaw_rad=yaw_rad, pitch_rad=pitch_rad, gesture=gesture)
        )

    def point_at(self, name: str) -> None:
        """The hand points at a thing."""
        one = next(one for one in self.robot.truth().objects if one.name == name)
        at = (one.x_m, one.y_m - 0.26, one.z_m + 0.14)
        self.move("hand", at, pitch_rad=math.atan2(0.14, 0.26), gesture="point")

    def see(self, target_m: tuple[float, float, float] = TABLE_M) -> tuple[Image, RobotState]:
        """The picture of a head that looks there, and the robot's state then."""
        model = mujoco.MjModel.from_xml_string(build_stretch(self.robot.layout, self.robot.truth()))
        data = mujoco.MjData(model)
        data.qpos[:] = self.robot.data.qpos
        data.mocap_pos[:], data.mocap_quat[:] = self.robot.data.mocap_pos, self.robot.data.mocap_quat
        pan, tilt = look_at(target_m, 0.0, 0.0, 0.0)
        data.qpos[model.joint("head_pan").qposadr[0]] = pan
        data.qpos[model.joint("head_tilt").qposadr[0]] = tilt
        mujoco.mj_kinematics(model, data)
        mujoco.mj_camlight(model, data)
        renderer = RayRenderer(model, "head", 480, 360, FARTHEST_M)
        rgb, depth_m = renderer.render(data)
        state = self.robot.read(self.now_ns)
        position = list(state.position)
        position[PAN], position[TILT] = pan, tilt
        turned: RobotState = msgspec.structs.replace(  # type: ignore[type-var]  # a Struct, but not to type checkers
            state, position=tuple(position), base_x_m=0.0, base_y_m=0.0, base_heading_rad=0.0
        )
        image = Image(camera="head", captured_ns=self.now_ns, rgb=rgb, depth_m=depth_m, focal_px=renderer.focal_px)
        return image, turned
