"""`SimRobot`: a Stretch in a kitchen, in MuJoCo, behind the `Robot` protocol.

Simplified, on purpose: the base is a body on a plane whose wheels neither slip nor drop, odometry is exact, and gravity
is compensated, so that effort is what the world pushes back with. The grip is helped: once both fingers press on the
same thing while they close, it is fixed to the hand until the gripper opens again. Friction alone would hold it too,
but only at a physics step that a laptop has no time for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import mujoco
import numpy as np
from numpy.typing import NDArray

from nodes.robot.protocol import RobotError, RobotLimits
from nodes.sim.grip import Grip
from nodes.sim.messages import ObjectTruth, Truth, World
from nodes.sim.mjcf import BASE_FORCE_N, BASE_JOINTS, BASE_TORQUE_NM, FINGER, PHYSICS_STEP_S, SERVOS, Scene, build_scene
from nodes.sim.motion import JointSetPoints, WheelSpeeds
from nodes.sim.table_scene import is_in_bin
from nodes.stretch.limits import STOW, STRETCH_3
from runtime.clock import NS_PER_S, to_ns
from runtime.errors import UserError
from runtime.msgs import JOINTS, JointCommand, RobotMode, RobotState, RobotStatus

WATCHDOG_S = 0.5
"""Without a command for this long the base stops by itself, as a Stretch's driver does."""
CATCH_UP_S = 0.25
"""The most time that one `advance` makes up; what is beyond is left out and the robot's time moves on without it."""
EFFORT_FILTER_S = 0.06
_KEPT_EFFORT = 1.0 - PHYSICS_STEP_S / EFFORT_FILTER_S
"""Share of a filtered effort that is left after one step."""
CONTACT_PERCENT = {"lift": (-15.0, 70.0), "arm": (-55.0, 55.0), "base": (-60.0, 60.0)}
"""Effort beyond which a joint reports contact (Stretch's defaults)."""
MOVING_SPEED = {"base": 0.01, "turn": 0.02, "lift": 0.01, "arm": 0.01, "gripper": 0.01}
"""Slower than this counts as still, m/s or rad/s; joints not named here: 0.05 rad/s."""

PERSON_PARTS = ("hand", "foot")
GRIPPER = JOINTS.index("gripper")

Vector = NDArray[np.float64]
Places = NDArray[np.int64]


class SimRobot:
    """The simulated robot and all that stands around it; the seed lays the table.

    It begins folded, with its head where it is told: straight ahead, a wall is all that it sees; the table is on its
    right.
    """

    limits: RobotLimits = STRETCH_3
    person_parts: tuple[str, ...] = PERSON_PARTS

    def __init__(self, seed: int = 0, head_pan_rad: float = 0.0, head_tilt_rad: float = 0.0) -> None:
        posture = [*STOW]
        for name, angle_rad in (("head_pan", head_pan_rad), ("head_tilt", head_tilt_rad)):
            limit = self.limits.joints[JOINTS.index(name)]
            if not limit.lowest <= angle_rad <= limit.highest:
                raise UserError(f"{name}_rad is {angle_rad}; expected {limit.lowest} to {limit.highest}")
            posture[JOINTS.index(name)] = angle_rad
        scene = self._build(seed)
        self.model = mujoco.MjModel.from_xml_string(scene.xml)
        self.data = mujoco.MjData(self.model)
        # Views: asking the data for them at each step costs as much as a small step itself.
        self._qpos, self._qvel = self.data.qpos, self.data.qvel
        self._ctrl, self._force = self.data.ctrl, self.data.actuator_force
        self._xpos = self.data.xpos
        self._things = scene.things
        self._index = _Index(self.model, [thing.name for thing in scene.things], self.person_parts)
        self._grip = Grip(self.model, tuple(thing.name for thing in scene.things))
        self._place(tuple(posture))
        self.set_points = JointSetPoints(self.limits, np.array(posture))
        self._wheels = WheelSpeeds(self.limits.base)
        self._effort = np.zeros(len(JOINTS))
        self._base_effort = 0.0
        self._touched: set[str] = set()
        self._now_ns = 0
        self._next_step_ns = 0
        self._commanded_ns = 0
        self._is_stopped = True
        self._is_runstopped = False
        self._is_stowing = False
        self.skipped_s = 0.0

    def _build(self, seed: int) -> Scene:
        """The scene that the robot stands in; another world builds another one."""
        return build_scene(seed)

    def start(self, now_ns: int) -> None:
        """Begin the robot's time at now. Nothing moves."""
        self._now_ns = self._next_step_ns = self._commanded_ns = now_ns
        mujoco.mj_forward(self.model, self.data)

    def command(self, command: JointCommand) -> None:
        """Take joint targets and base velocity. Raises ValueError where they are not eight finite positions."""
        velocity = (command.base_v_mps, command.base_w_radps)
        if len(command.position) != len(JOINTS) or not all(map(math.isfinite, (*command.position, *velocity))):
            raise ValueError(f"joint command {command} is refused; expected {len(JOINTS)} finite positions")
        if self._is_runstopped or self._is_stowing:
            return
        self.set_points.aim(np.array(command.position))
        self._wheels.aim(*velocity)
        self._commanded_ns = self._now_ns
        self._is_stopped = False

    def stop(self) -> None:
        """Let the base brake and hold the joints where they are; the gripper keeps its grip."""
        self._wheels.aim(0.0, 0.0)
        if self._is_stopped:
            return  # holding again where they are now would let them creep
        self._is_stopped = True
        position = self._joint_position()
        position[GRIPPER] = self.set_points.position[GRIPPER]
        self.set_points.hold(position)

    def status(self, now_ns: int) -> RobotStatus:
        """Always homed; it has no battery."""
        mode: RobotMode = "runstopped" if self._is_runstopped else "stowing" if self._is_stowing else "ready"
        why = {"runstopped": "the runstop is pressed", "stowing": "it folds itself"}.get(mode, "")
        return RobotStatus(read_ns=now_ns, mode=mode, why=why, is_runstopped=self._is_runstopped)

    def home(self) -> None:
        """Its zeros are known. Raises RobotError while the runstop is pressed."""
        self._refuse_runstopped("home")

    def stow(self) -> None:
        """Begin to fold. Raises RobotError while the runstop is pressed."""
        self._refuse_runstopped("stow")
        self._wheels.aim(0.0, 0.0)
        self._is_stopped = self._is_stowing = True

    def runstop(self, is_on: bool) -> None:
        """Stop as by the button on the head, or let go of it."""
        self._is_stowing = self._is_stopped = False
        self.stop()
        self._is_runstopped = is_on

    def _refuse_runstopped(self, what: str) -> None:
        if self._is_runstopped:
            raise RobotError(f"the robot does not {what} while its runstop is pressed; release it first")

    def advance(self, now_ns: int) -> None:
        """Step the physics up to now."""
        self._now_ns = now_ns
        if self._is_stowing:
            self._is_stowing = not self.set_points.fold(np.array(STOW), first=JOINTS.index("arm"))
        step_ns = to_ns(PHYSICS_STEP_S)
        behind_ns = now_ns - self._next_step_ns - to_ns(CATCH_UP_S)
        if behind_ns > 0:
            self.skipped_s += behind_ns / NS_PER_S
            self._next_step_ns += behind_ns
        number = (now_ns - self._next_step_ns) // step_ns + 1
        if number > 0:
            self._steps(number, step_ns)

    def read(self, now_ns: int) -> RobotState:
        """Joint state, odometry and contact as of the last step."""
        x, y, heading = self._qpos.take(self._index.base_qpos).tolist()
        vx, vy, w = self._qvel.take(self._index.base_qvel).tolist()
        return RobotState(
            read_ns=now_ns,
            position=tuple(self._joint_position().tolist()),
            velocity=tuple(self._joint_velocity().tolist()),
            effort=tuple(self._effort.tolist()),
            base_x_m=x,
            base_y_m=y,
            base_heading_rad=heading,
            base_v_mps=vx * math.cos(heading) + vy * math.sin(heading),
            base_w_radps=w,
            contact=self._contact(),
            is_grasping=self._grip.is_grasping,
        )

    def close(self) -> None:
        """Stand still; there is nothing to release."""
        self.stop()

    def move_person(self, part: str, place_m: tuple[float, float, float]) -> None:
        """Put the collaborator's hand or foot somewhere at once. Raises ValueError for another part."""
        if part not in self.person_parts:
            raise ValueError(f"the collaborator has no {part!r} here; known: {', '.join(self.person_parts)}")
        self.data.mocap_pos[self.model.body(part).mocapid[0]] = place_m

    def world(self) -> World:
        """All that a camera needs to draw the scene."""
        return World(stepped_ns=self._now_ns, qpos=self._qpos.copy(), mocap_pos=self.data.mocap_pos.copy())

    def truth(self) -> Truth:
        """Where everything is, and what of the collaborator was touched since the last call."""
        objects = []
        places = self._xpos.take(self._index.thing_body, axis=0).tolist()
        for thing, (x, y, z) in zip(self._things, places, strict=True):
            objects.append(
                ObjectTruth(
                    name=thing.name,
                    label=thing.label,
                    colour=thing.colour,
                    x_m=x,
                    y_m=y,
                    z_m=z,
                    is_in_bin=is_in_bin(x, y, z),
                )
            )
        touched, self._touched = self._touched, set()
        x, y, heading = self._qpos.take(self._index.base_qpos).tolist()
        return Truth(
            objects=tuple(objects),
            touched=tuple(sorted(touched)),
            is_moving=self._is_moving(),
            robot_x_m=x,
            robot_y_m=y,
            robot_heading_rad=heading,
        )

    def _steps(self, number: int, step_ns: int) -> None:
        """Step the physics so often. What does not depend on the physics is computed for all steps at once."""
        index, ctrl, force = self._index, self._ctrl, self._force
        positions, velocities = self.set_points.steps(number, PHYSICS_STEP_S)
        # A position servo damps velocity; offsetting its set point by what that costs makes it damp the error only.
        wanted = positions + velocities * index.damping_over_stiffness
        rows = wanted @ index.servo_of_joint
        forces = np.empty((number, len(force)))
        along_x, along_y, turn = index.base_actuator
        heading_place, watchdog_ns = int(index.base_qpos[2]), to_ns(WATCHDOG_S)
        model, data, wheels, item = self.model, self.data, self._wheels, self._qpos.item
        for row, felt in zip(rows, forces, strict=True):
            if self._next_step_ns - self._commanded_ns > watchdog_ns:
                wheels.aim(0.0, 0.0)
            wheels.step(PHYSICS_STEP_S)
            v_mps, w_radps = wheels.velocity
            heading = item(heading_place)
            cosine, sine = math.cos(heading), math.sin(heading)
            row[along_x], row[along_y], row[turn] = v_mps * cosine, v_mps * sine, w_radps
            ctrl[:] = row
            mujoco.mj_step(model, data)
            felt[:] = force
            self._feel_base(force.item(along_x) * cosine + force.item(along_y) * sine, force.item(turn))
            self._feel_contacts()
            self._next_step_ns += step_ns
        self._feel_joints(forces)

    def _feel_joints(self, forces: Vector) -> None:
        """Filter the efforts of the joints, a row of the actuators' forces for each step."""
        kept, rest = _kept_efforts(len(forces))
        self._effort = self._effort * kept + (rest @ forces) @ self._index.percent_of_force

    def _feel_base(self, forward_n: float, turning_nm: float) -> None:
        """Filter the effort of the base, the stronger one of driving and turning."""
        forward, turning = forward_n * 100.0 / BASE_FORCE_N, turning_nm * 100.0 / BASE_TORQUE_NM
        strongest = forward if abs(forward) > abs(turning) else turning
        self._base_effort += (strongest - self._base_effort) * (PHYSICS_STEP_S / EFFORT_FILTER_S)

    def _feel_contacts(self) -> None:
        """Note touches of the collaborator, and close or open the grip."""
        index, data = self._index, self.data
        if data.ncon:
            pairs = data.contact.geom.ravel().tolist()
            if not index.person_part.keys().isdisjoint(pairs):  # only the robot collides with the collaborator
                self._touched.update(index.person_part[geom] for geom in pairs if geom in index.person_part)
        left, right = index.finger_qpos
        opening = self._qpos.item(left) + self._qpos.item(right)
        self._grip.update(data, opening, self.set_points.target.item(GRIPPER))

    def _contact(self) -> tuple[str, ...]:
        efforts = {
            "base": self._base_effort,
            "arm": self._effort[JOINTS.index("arm")],
            "lift": self._effort[JOINTS.index("lift")],
        }
        limits = CONTACT_PERCENT
        return tuple(name for name, effort in efforts.items() if not limits[name][0] <= effort <= limits[name][1])

    def _is_moving(self) -> bool:
        speed = np.abs(self._joint_velocity())
        vx, vy, w = np.abs(self._qvel.take(self._index.base_qvel))
        joints = any(speed[place] > MOVING_SPEED.get(name, 0.05) for place, name in enumerate(JOINTS))
        return bool(joints or math.hypot(vx, vy) > MOVING_SPEED["base"] or w > MOVING_SPEED["turn"])

    def _joint_position(self) -> Vector:
        return _by_joint(self._qpos, self._index.joint_qpos, self._index.finger_qpos)

    def _joint_velocity(self) -> Vector:
        return _by_joint(self._qvel, self._index.joint_qvel, self._index.finger_qvel)

    def _place(self, position: tuple[float, ...]) -> None:
        self.data.qpos[self._index.joint_qpos] = position
        self.data.qpos[self._index.finger_qpos] = position[GRIPPER] / 2
        for number in (1, 2, 3):
            self.data.joint(f"tube_{number}").qpos = position[JOINTS.index("arm")] * number / 4


def _by_joint(values: Vector, places: Places, fingers: list[int]) -> Vector:
    """In the order of `JOINTS`, the two fingers added up."""
    joints = values.take(places)
    joints[GRIPPER] = values.item(fingers[0]) + values.item(fingers[1])
    return joints


@cache
def _kept_efforts(number: int) -> tuple[float, Vector]:
    """After so many steps: what is left of the filtered effort, and what each step has put into it."""
    rest: Vector = (1.0 - _KEPT_EFFORT) * _KEPT_EFFORT ** np.arange(number - 1.0, -1.0, -1.0)
    return _KEPT_EFFORT**number, rest


class _Index:
    """Where the joints, actuators and geoms of the model are."""

    def __init__(self, model: mujoco.MjModel, things: Sequence[str], person_parts: Sequence[str]) -> None:
        self.thing_body = np.array([model.body(name).id for name in things], dtype=np.int64)
        fingers = ["finger_left", "finger_right"]
        of_joint = ["finger_left" if name == "gripper" else name for name in JOINTS]
        self.joint_qpos = np.array([model.joint(name).qposadr[0] for name in of_joint])
        self.joint_qvel = np.array([model.joint(name).dofadr[0] for name in of_joint])
        self.finger_qpos = [int(model.joint(name).qposadr[0]) for name in fingers]
        self.finger_qvel = [int(model.joint(name).dofadr[0]) for name in fingers]
        self.base_qpos = np.array([model.joint(name).qposadr[0] for name in BASE_JOINTS])
        self.base_qvel = np.array([model.joint(name).dofadr[0] for name in BASE_JOINTS])
        self.base_actuator = [int(model.actuator(name).id) for name in BASE_JOINTS]
        # Set points of the joints times this: of the actuators. Forces of those times that: efforts in percent.
        self.servo_of_joint = np.zeros((len(JOINTS), model.nu))
        self.percent_of_force = np.zeros((model.nu, len(JOINTS)))
        self.damping_over_stiffness = np.zeros(len(JOINTS))
        for place, name in enumerate(JOINTS):
            servo = SERVOS.get(name, FINGER)
            self.damping_over_stiffness[place] = servo.damping / servo.stiffness
            actuators = [model.actuator(one).id for one in (fingers if name == "gripper" else [name])]
            self.servo_of_joint[place, actuators] = 1.0 / len(actuators)
            self.percent_of_force[actuators, place] = 100.0 / servo.force / len(actuators)
        # Which geoms are which part of the collaborator.
        self.person_part = {
            geom: part
            for part in person_parts
            for geom in np.flatnonzero(model.geom_bodyid == model.body(part).id).tolist()
        }
