"""`FileRobot`: a robot from its own file, MJCF or URDF, beside a table."""

from __future__ import annotations

import math

import numpy as np

from nodes.robot.protocol import RobotLimits
from nodes.robot_file.body import put_into
from nodes.robot_file.engine import mujoco
from nodes.robot_file.model import GRIPPER, PREFIX, RobotModel, load_robot
from nodes.sim.messages import Truth
from nodes.sim.physics import BuiltRobot, DrivenJoint, PhysicsRobot
from nodes.sim.world.mjcf import BASE_JOINTS, HIDDEN_GROUP
from nodes.sim.world.room_mjcf import build_room
from nodes.sim.world.scenario import CUBES, layout_of
from nodes.sim.world.world_file import Layout
from runtime.errors import UserError

BANDWIDTH_HZ = 6.0
"""How stiff its servos are: each moves what hangs on it like a spring of this frequency, critically damped."""
SAG = 0.05
"""Where a model names no effort, its servo gives as much as an error of this many m or rad asks for."""
CONTACT_PERCENT = 80.0
BASE_FORCE_N, BASE_TORQUE_NM, BASE_GAIN, BASE_YAW_GAIN = 60.0, 12.0, 2500.0, 200.0
"""The least that a base gives, and per m/s and rad/s: a blocked one shows its full force at 0.024 m/s."""
BASE_RESERVE = 4.0
"""A base gives so many times what its acceleration takes: it drives at a quarter of its force."""
ON_PLANE, FLOOR_MEETS_ARM = 2, 18
"""Collision bits: of a base that drives, which a person and furniture meet and the floor does not; of its arm."""
HOUSING_M = 0.02
"""What of the robot is this near around a camera is its housing, which it looks out of."""


class FileRobot(PhysicsRobot):
    """The robot of a robot file (a path, or "package:file.toml") in the world of a scenario.

    Effort beyond 80 % of a joint counts as contact. Gravity is compensated, as most arms' own controllers do it.
    """

    folds_first = ""

    def __init__(self, file: str, seed: int = 0, scenario: str = CUBES) -> None:
        robot = load_robot(file)
        self.limits: RobotLimits = robot.limits
        super().__init__(build(robot, layout_of(scenario, seed)))


def build(robot: RobotModel, layout: Layout, shown: Truth | None = None) -> BuiltRobot:
    """The robot in a world; `shown`: as a camera sees that then. Raises UserError where the two do not go together."""
    spec = mujoco.MjSpec.from_string(build_room(layout, shown))
    drive = _put_on_wheels(spec, robot)
    if drive is None:
        put_into(spec, spec.worldbody, robot, robot.table.mount_m, robot.table.yaw_rad)
    mine = [body for body in spec.bodies if body.name.startswith(PREFIX)]
    _make_solid([*mine, drive] if drive is not None else mine)
    for actuator in list(spec.actuators):
        spec.delete(actuator)
    hand = PREFIX + robot.table.hand
    hand = hand if any(body.name == hand for body in mine) else str(spec.site(hand).parent.name)
    hands = {"hold": hand} | ({"give": "hand"} if "hand" in layout.world.person else {})
    for what, body in hands.items():
        for one in layout.things:
            spec.add_equality(
                name=f"{what}_{one.thing.name}", type=mujoco.mjtEq.mjEQ_WELD, objtype=mujoco.mjtObj.mjOBJ_BODY,
                name1=body, name2=one.thing.name, active=False, solref=(0.01, 1.0),
            )  # fmt: skip
    joints = _with_servos(spec, robot)
    contact_percent = {joint.limit.name: (-CONTACT_PERCENT, CONTACT_PERCENT) for joint in joints}
    if drive is not None:
        _drive(spec, robot)
        contact_percent["base"] = (-CONTACT_PERCENT, CONTACT_PERCENT)
    contact_percent.pop(GRIPPER, None)
    try:
        model = spec.compile()
    except (ValueError, mujoco.FatalError) as problem:
        raise UserError(f"{robot.path}: does not go into its world: {problem}; mend the model") from problem
    names = [joint.limit.name for joint in joints]
    gripper = names.index(GRIPPER) if GRIPPER in names else None
    return BuiltRobot(
        model=model,
        layout=layout,
        joints=joints,
        hand=hand,
        fingers=_fingers(model, joints[gripper] if gripper is not None else None, hand),
        contact_percent=contact_percent,
        base=BASE_JOINTS if drive is not None else (),
        gripper=gripper,
    )


def _put_on_wheels(room: mujoco.MjSpec, robot: RobotModel) -> mujoco.MjsBody | None:
    """A body that goes over the floor as a base does, and the robot on it; None: it stands still.

    It begins where the robot file puts it, and so does its odometry: the odometry frame is that of the room.
    """
    if robot.table.base is None:
        return None
    x, y, z = robot.table.mount_m
    yaw = robot.table.yaw_rad
    c, s = math.cos(yaw), math.sin(yaw)
    drive = room.worldbody.add_body(
        name="drive", pos=(x, y, 0.0), quat=(math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2))
    )
    slide, hinge = mujoco.mjtJoint.mjJNT_SLIDE, mujoco.mjtJoint.mjJNT_HINGE
    for name, kind, axis, begins in zip(
        BASE_JOINTS,
        (slide, slide, hinge),
        ((c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0)),  # the room's x and y, as the turned body has them
        (x, y, yaw),
        strict=True,
    ):
        drive.add_joint(name=name, type=kind, axis=axis, ref=begins)
    put_into(room, drive, robot, (0.0, 0.0, z))
    floor = room.geom("floor")
    floor.conaffinity = floor.conaffinity & ~ON_PLANE | (FLOOR_MEETS_ARM & ~ON_PLANE)
    return drive


def _drive(spec: mujoco.MjSpec, robot: RobotModel) -> None:
    """A velocity actuator for each joint of the base, as strong as its acceleration asks for."""
    base = robot.limits.base
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    inertia = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, inertia)
    moved, _, turned = (float(inertia[dof, dof]) for dof in (int(model.joint(name).dofadr[0]) for name in BASE_JOINTS))
    force_n = max(BASE_FORCE_N, BASE_RESERVE * moved * base.acceleration_mps2)
    torque_nm = max(BASE_TORQUE_NM, BASE_RESERVE * turned * 2 * base.acceleration_mps2 / base.track_m)
    along, around = BASE_GAIN * force_n / BASE_FORCE_N, BASE_YAW_GAIN * torque_nm / BASE_TORQUE_NM
    for name, gain, most in zip(BASE_JOINTS, (along, along, around), (force_n, force_n, torque_nm), strict=True):
        spec.add_actuator(
            name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT, gaintype=mujoco.mjtGain.mjGAIN_FIXED,
            biastype=mujoco.mjtBias.mjBIAS_AFFINE, gainprm=[gain, *[0.0] * 9], biasprm=[0.0, 0.0, -gain, *[0.0] * 7],
            forcelimited=True, forcerange=[-most, most],
        )  # fmt: skip


def _make_solid(bodies: list[mujoco.MjsBody]) -> None:
    """What collides in the robot's own model collides here with things and furniture, never with itself."""
    cameras = [(camera, body) for body in bodies for camera in body.cameras]
    for body in bodies:
        body.gravcomp = 1.0
        for geom in body.geoms:
            is_solid = geom.contype or geom.conaffinity
            meets = ON_PLANE if _is_base(body) else FLOOR_MEETS_ARM
            geom.contype, geom.conaffinity, geom.group = (meets if is_solid else 0), 0, 1
            for camera, owner in cameras:
                name = camera.name.removeprefix(PREFIX)
                if owner is body and name in HIDDEN_GROUP and _is_around(geom, camera.pos):
                    geom.group = HIDDEN_GROUP[name]


def _is_base(body: mujoco.MjsBody) -> bool:
    """Whether it is fixed to a base that drives."""
    while body.name != "drive":
        if body.joints or body.parent is None or body.parent == body:
            return False
        body = body.parent
    return True


def _is_around(geom: mujoco.MjsGeom, place: np.ndarray) -> bool:
    return (
        math.dist(geom.pos, place) < max(geom.size) + HOUSING_M
        and geom.type not in (mujoco.mjtGeom.mjGEOM_MESH, mujoco.mjtGeom.mjGEOM_PLANE)
        and max(geom.size) < 0.06
    )


def _with_servos(spec: mujoco.MjSpec, robot: RobotModel) -> tuple[DrivenJoint, ...]:
    """A position servo for each joint of the robot, as stiff as what hangs on it needs."""
    model = spec.compile()
    data = mujoco.MjData(model)
    for driven in robot.driven:
        for name in driven.carriers:
            data.qpos[model.joint(PREFIX + name).qposadr[0]] = driven.factor * driven.folded + driven.offset
    mujoco.mj_forward(model, data)
    inertia = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, inertia)
    found = []
    for driven in robot.driven:
        carriers = tuple(PREFIX + name for name in driven.carriers)
        moved = max(float(inertia[dof, dof]) for dof in (int(model.joint(name).dofadr[0]) for name in carriers))
        turns = 2 * math.pi * BANDWIDTH_HZ
        stiffness = max(moved, 0.02) * turns**2
        damping, most = 2.0 * stiffness / turns, driven.effort or stiffness * SAG
        for name in carriers:
            spec.add_actuator(
                name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT, gaintype=mujoco.mjtGain.mjGAIN_FIXED,
                biastype=mujoco.mjtBias.mjBIAS_AFFINE, gainprm=[stiffness, *[0.0] * 9],
                biasprm=[0.0, -stiffness, -damping, *[0.0] * 7], forcelimited=True, forcerange=[-most, most],
            )  # fmt: skip
        number = len(carriers)
        found.append(
            DrivenJoint(
                driven.limit, carriers, driven.folded, factor=number * driven.factor, offset=number * driven.offset
            )
        )
    return tuple(found)


def _fingers(model: mujoco.MjModel, gripper: DrivenJoint | None, hand: str) -> tuple[str, str]:
    """The two bodies between which things are gripped: two fingers, one and what follows it, or one and the hand."""
    if gripper is None:
        return hand, hand
    names = list(gripper.carriers)
    for number in range(model.neq):
        if model.eq_type[number] == mujoco.mjtEq.mjEQ_JOINT and model.eq_obj2id[number] == model.joint(names[0]).id:
            names.append(str(model.joint(int(model.eq_obj1id[number])).name))
    bodies = [str(model.body(int(model.joint(name).bodyid[0])).name) for name in names]
    return bodies[0], next((body for body in bodies[1:] if body != bodies[0]), hand)
