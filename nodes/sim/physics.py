"""`PhysicsRobot`: the simulated robot with physics, by MuJoCo, whichever it is; a subclass builds it in its scene.

Simplified, on purpose: a base is a body on a plane whose wheels neither slip nor drop, odometry is exact, and gravity
is compensated, so that effort is what the world pushes back with. The grip is helped: once both fingers press on the
same thing while they close, it is fixed to the hand until the gripper opens again. Friction alone would hold it too,
but only at a physics step that a laptop has no time for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache

import msgspec
import numpy as np
from numpy.typing import NDArray

from nodes.msgs import JointCommand, JointVector, RobotState
from nodes.robot.products import product
from nodes.robot.protocol import JointLimit
from nodes.robot_file.engine import mujoco
from nodes.robot_file.model import followers, let_follow
from nodes.sim.grip import Grip
from nodes.sim.hand_over import PersonsHand
from nodes.sim.house_rules import RULE_PERIOD_S, HouseRules
from nodes.sim.kinematic import WATCHDOG_S, RobotInSimulation
from nodes.sim.messages import BodyPart, ObjectTruth, Truth, World
from nodes.sim.motion import JointSetPoints
from nodes.sim.world.room_mjcf import PHYSICS_STEP_S
from nodes.sim.world.world_file import Layout, place_at
from runtime.clock import to_ns, to_s

CATCH_UP_S = 0.25
"""The most time that one `advance` makes up; what is beyond is left out and the robot's time moves on without it."""
EFFORT_FILTER_S = 0.06
_KEPT_EFFORT = 1.0 - PHYSICS_STEP_S / EFFORT_FILTER_S
"""Share of a filtered effort that is left after one step."""
STILL_SPEED = 0.05
STILL_BASE_MPS, STILL_BASE_RADPS = 0.01, 0.02
"""Slower than this counts as still, rad/s or m/s."""

HEAD = ("head_pan", "head_tilt")
"""Who only turns the head does not move."""
ON_FLOOR_M = 0.08
RULE_PERIOD_NS = to_ns(RULE_PERIOD_S)

Vector = NDArray[np.float64]
Places = NDArray[np.int64]


class DrivenJoint(msgspec.Struct, frozen=True):
    """One entry of the joint vectors: what the model moves for it, and how.

    `carriers` are joints of the model, and position servos of the same names, which are alike; together they are at
    `factor` times the value plus `offset`, each at its even share.
    """

    limit: JointLimit
    carriers: tuple[str, ...]
    folded: float
    still_speed: float = STILL_SPEED
    factor: float = 1.0
    offset: float = 0.0


class BuiltRobot(msgspec.Struct, frozen=True):
    """A robot in its scene, as the simulation drives it.

    `base` are three joints, along x, along y and around z, with velocity actuators of the same names; (): it stands.
    `hand` is the body to which things are fixed, by welds called "hold_" and the thing; `fingers` are two bodies.
    `contact_percent` says beyond which efforts a joint, or "base", reports contact.
    """

    model: mujoco.MjModel
    layout: Layout
    joints: tuple[DrivenJoint, ...]
    hand: str
    fingers: tuple[str, str]
    contact_percent: Mapping[str, tuple[float, float]]
    base: tuple[str, ...] = ()
    gripper: int | None = None


class PhysicsRobot(RobotInSimulation):
    """The simulated robot and all that stands around it; a subclass builds both. It begins folded, homed, and without a
    battery.
    """

    homing_s = 0.0

    def __init__(self, built: BuiltRobot, begins: JointVector | None = None) -> None:
        self._built = built
        self.folded = tuple(joint.folded for joint in built.joints)
        super().__init__(battery_v=None)
        posture = np.array(self.folded if begins is None else begins)
        self.model = built.model
        self.data = mujoco.MjData(self.model)
        # Views: asking the data for them at each step costs as much as a small step itself.
        self._qpos, self._qvel = self.data.qpos, self.data.qvel
        self._ctrl, self._force = self.data.ctrl, self.data.actuator_force
        self._xpos = self.data.xpos
        self.layout = built.layout
        self.person_parts: tuple[str, ...] = tuple(self.layout.world.person)
        self._index = _Index(built, self.person_parts)
        names = tuple(one.thing.name for one in self.layout.things)
        self._grip = Grip(self.model, names, hand=built.hand, fingers=built.fingers)
        self._place(posture)
        self.set_points = JointSetPoints(self.limits, posture)
        self._effort = np.zeros(len(posture))
        self._still_speed = np.array(
            [math.inf if joint.limit.name in HEAD else joint.still_speed for joint in built.joints]
        )
        self._base_effort = 0.0
        self._touched: set[str] = set()
        self._impulse_n_s: dict[str, float] = dict.fromkeys(self.person_parts, 0.0)
        self.rules = HouseRules(self.layout)
        self.hand = PersonsHand(self.model, self.data, self.layout)
        self._shown: dict[str, BodyPart] = {name: BodyPart(part=name, x_m=x, y_m=y, z_m=z)
                       for name, (x, y, z) in self.layout.world.person.items()}  # fmt: skip
        self._name_of = dict(zip(self._index.thing_body.tolist(), names, strict=True))
        self._held = ""
        self._roll = next((n for n, joint in enumerate(built.joints) if joint.limit.name == "wrist_roll"), None)
        self._rule_ns = 0
        self._wrench = np.zeros(6)  # of one contact: force along its normal and its two tangents in N, then torques
        self._next_step_ns = 0
        self._is_stopped = True
        self.skipped_s = 0.0

    def start(self, now_ns: int) -> None:
        """Begin the robot's time at now. Nothing moves."""
        super().start(now_ns)
        self._next_step_ns = self._rule_ns = now_ns
        mujoco.mj_forward(self.model, self.data)
        for one in self.layout.things:
            if one.spec.at == "hand" or one.spec.hidden:
                self.hand.give(one.thing.name)

    def command(self, command: JointCommand) -> None:
        """Take joint targets and base velocity. Raises ValueError for what is not one finite number a joint."""
        super().command(command)
        self._is_stopped = self._is_stopped and self._mode != "ready"

    def stop(self) -> None:
        """Let the base brake and hold the joints where they are; the gripper keeps its grip."""
        self._wheels.aim(0.0, 0.0)
        if self._is_stopped:
            return  # holding again where they are now would let them creep
        self._is_stopped = True
        position = self._joint_position()
        gripper = self._built.gripper
        if gripper is not None:
            position[gripper] = self.set_points.position[gripper]
        self.set_points.hold(position)

    def stow(self) -> None:
        """Brake, and begin to fold. Raises RobotError while the runstop is pressed."""
        super().stow()
        self._is_stopped = True

    def runstop(self, is_on: bool) -> None:
        """Press or release the button; pressing it also ends stowing."""
        self._is_stopped = False
        super().runstop(is_on)

    def advance(self, now_ns: int) -> None:
        """Step the physics up to now."""
        self._now_ns = now_ns
        if self._is_stowing:
            self._is_stowing = not self.set_points.fold(np.array(self.folded), first=self._first)
        step_ns = to_ns(PHYSICS_STEP_S)
        behind_ns = now_ns - self._next_step_ns - to_ns(CATCH_UP_S)
        if behind_ns > 0:
            self.skipped_s += to_s(behind_ns)
            self._next_step_ns += behind_ns
        number = (now_ns - self._next_step_ns) // step_ns + 1
        if number > 0:
            self._steps(number, step_ns)
        self._hand_over()
        while self._rule_ns + RULE_PERIOD_NS <= now_ns:
            self._rule_ns += RULE_PERIOD_NS
            self.rules.pass_time(self._places_of_things(), self._held, self._roll_rad())

    def read(self, now_ns: int) -> RobotState:
        """Joint state, odometry and contact as of the last step."""
        (x, y, heading), (vx, vy, w) = self._base()
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
            contact=(*self._felt(), *self._contact),
            is_grasping=self._grip.is_grasping,
        )

    def move_person(self, part: str, place_m: tuple[float, float, float]) -> None:
        """Put the collaborator's hand or foot somewhere at once. Raises ValueError for another part."""
        if part not in self.person_parts:
            raise ValueError(f"the collaborator has no {part!r} here; known: {', '.join(self.person_parts)}")
        self.data.mocap_pos[self.model.body(part).mocapid[0]] = place_m

    def move_part(self, part: BodyPart) -> None:
        """Put it there, turned as it says: yaw, then pitch. An open hand takes what is let go above it, "hold:NAME"
        takes a thing, "drop" lets go. Raises ValueError for a part that nobody has."""
        self.move_person(part.part, (part.x_m, part.y_m, part.z_m))
        half_yaw, half_pitch = part.yaw_rad / 2, part.pitch_rad / 2
        cy, sy, cp, sp = math.cos(half_yaw), math.sin(half_yaw), math.cos(half_pitch), math.sin(half_pitch)
        self.data.mocap_quat[self.model.body(part.part).mocapid[0]] = (cy * cp, -sy * sp, cy * sp, sy * cp)
        if part.part == "hand":
            self.hand.show(part.gesture, self._held)
        self._shown[part.part] = part

    def world(self) -> World:
        """All that a camera needs to draw the scene."""
        return World(
            stepped_ns=self._now_ns,
            qpos=self._qpos.copy(),
            mocap_pos=self.data.mocap_pos.copy(),
            mocap_quat=self.data.mocap_quat.copy(),
        )

    def truth(self) -> Truth:
        """Where everything is, what of the collaborator was touched since the last call, and how hard so far."""
        objects, rules, world = [], self.rules, self.layout.world
        bin_, at_m = world.places.get("bin"), self._places_of_things()
        for one in self.layout.things:
            thing, state = one.thing, rules.states[one.thing.name]
            (x, y, z), name = at_m[thing.name], thing.name
            held_by = "robot" if name == self._held else "person" if name == self.hand.holds else ""
            floor = "floor" if z - thing.height_m / 2 < ON_FLOOR_M else ""
            place = "" if held_by else place_at(world, x, y, z, thing.height_m) or floor
            objects.append(
                ObjectTruth(
                    name=name, label=thing.label, colour=thing.colour, x_m=x, y_m=y, z_m=z,
                    is_in_bin=bin_ is not None and bin_.contains(x, y, z), held_by=held_by,
                    width_m=thing.width_m, height_m=thing.height_m, place=place, fill=state.fill,
                    contents=state.contents, is_dirty=state.is_dirty, is_open=state.is_open,
                    is_emptied=state.is_emptied, was_lifted=state.was_lifted, owner=one.spec.owner,
                )
            )  # fmt: skip
        touched, self._touched = self._touched, set()
        (x, y, heading), (vx, vy, _) = self._base()
        return Truth(
            objects=tuple(objects), touched=tuple(sorted(touched)), impulse_n_s=self._impulse_n_s.copy(),
            is_moving=self._is_moving(), robot_x_m=x, robot_y_m=y, robot_heading_rad=heading,
            robot_v_mps=vx * math.cos(heading) + vy * math.sin(heading),
            dirty_places=tuple(sorted(rules.dirty_places)), person=self._shown.copy(),
            scenario=self.layout.scenario,
        )  # fmt: skip

    def _hand_over(self) -> None:
        """What robot and person take from each other, at each advance."""
        held = self._name_of.get(self._grip.held, "")
        if held == self._held:
            return
        before, self._held = self._held, held
        if before:
            self.rules.let_go(before)
        if held:
            self.rules.take(held, self._xpos[self._grip.held].item(2), self._roll_rad())
        self.hand.meet(held, before)

    def _places_of_things(self) -> dict[str, tuple[float, float, float]]:
        places = self._xpos.take(self._index.thing_body, axis=0).tolist()
        return {name: (x, y, z) for name, (x, y, z) in zip(self._name_of.values(), places, strict=True)}

    def _roll_rad(self) -> float:
        return 0.0 if self._roll is None else float(self._joint_position()[self._roll])

    def _steps(self, number: int, step_ns: int) -> None:
        """Step the physics so often. What does not depend on the physics is computed for all steps at once."""
        index, ctrl, force = self._index, self._ctrl, self._force
        positions, velocities = self.set_points.steps(number, PHYSICS_STEP_S)
        # A position servo damps velocity; offsetting its set point by what that costs makes it damp the error only.
        wanted = positions + velocities * index.damping_over_stiffness
        rows = product(wanted, index.servo_of_joint)
        if not index.is_plain:
            rows += index.servo_offset
        forces = np.empty((number, len(force)))
        drives = bool(self._built.base)
        along_x, along_y, turn = index.base_actuator if drives else (0, 0, 0)
        heading_place, watchdog_ns = int(index.base_qpos[2]) if drives else 0, to_ns(WATCHDOG_S)
        model, data, wheels, item = self.model, self.data, self._wheels, self._qpos.item
        for row, felt in zip(rows, forces, strict=True):
            if drives:
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
            if drives:
                self._feel_base(force.item(along_x) * cosine + force.item(along_y) * sine, force.item(turn))
            self._feel_contacts()
            self._next_step_ns += step_ns
        self._feel_joints(forces)

    def _feel_joints(self, forces: Vector) -> None:
        """Filter the efforts of the joints, a row of the actuators' forces for each step."""
        kept, rest = _kept_efforts(len(forces))
        self._effort = self._effort * kept + product(product(rest, forces), self._index.percent_of_force)

    def _feel_base(self, forward_n: float, turning_nm: float) -> None:
        """Filter the effort of the base, the stronger one of driving and turning."""
        along, _, around = self._index.base_most
        forward, turning = forward_n * 100.0 / along, turning_nm * 100.0 / around
        strongest = forward if abs(forward) > abs(turning) else turning
        self._base_effort += (strongest - self._base_effort) * (PHYSICS_STEP_S / EFFORT_FILTER_S)

    def _feel_contacts(self) -> None:
        """Note touches of the collaborator, and close or open the grip."""
        index, data = self._index, self.data
        if data.ncon:
            pairs = data.contact.geom.ravel().tolist()
            if not index.person_part.keys().isdisjoint(pairs):
                self._feel_person(pairs[::2], pairs[1::2])
        gripper = self._built.gripper
        if gripper is not None:
            opening = sum(self._qpos.item(place) for place in index.qpos[gripper])
            opening = (opening - index.offset.item(gripper)) / index.factor.item(gripper)
            self._grip.update(data, opening, self.set_points.target.item(gripper))

    def _feel_person(self, ones: Sequence[int], others: Sequence[int]) -> None:
        """Note which parts of the collaborator are touched, and add what each contact's force gave in this step.

        Only the robot collides with the collaborator. Forces that press from two sides add up.
        """
        for number, pair in enumerate(zip(ones, others, strict=True)):
            for part in (self._index.person_part[geom] for geom in pair if geom in self._index.person_part):
                self._touched.add(part)
                mujoco.mj_contactForce(self.model, self.data, number, self._wrench)
                self._impulse_n_s[part] += math.hypot(*self._wrench[:3].tolist()) * PHYSICS_STEP_S

    def _felt(self) -> tuple[str, ...]:
        efforts = dict(zip((joint.limit.name for joint in self._built.joints), self._effort.tolist(), strict=True))
        efforts["base"] = self._base_effort
        limits = self._built.contact_percent
        return tuple(name for name, (low, high) in limits.items() if not low <= efforts[name] <= high)

    def _is_moving(self) -> bool:
        is_joint_moving = (np.abs(self._joint_velocity()) > self._still_speed).any()
        _, (vx, vy, w) = self._base()
        return bool(is_joint_moving or math.hypot(vx, vy) > STILL_BASE_MPS or abs(w) > STILL_BASE_RADPS)

    def _base(self) -> tuple[list[float], list[float]]:
        """Place and velocity: along x, along y, turning."""
        if not self._built.base:
            return [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]
        return self._qpos.take(self._index.base_qpos).tolist(), self._qvel.take(self._index.base_qvel).tolist()

    def _joint_position(self) -> Vector:
        together, index = _by_joint(self._qpos, self._index.first_qpos, self._index.shared_qpos), self._index
        return together if index.is_plain else (together - index.offset) / index.factor

    def _joint_velocity(self) -> Vector:
        together, index = _by_joint(self._qvel, self._index.first_qvel, self._index.shared_qvel), self._index
        return together if index.is_plain else together / index.factor

    def _place(self, position: Vector) -> None:
        index = self._index
        for value, places in zip((position * index.factor + index.offset).tolist(), index.qpos, strict=True):
            self.data.qpos[places] = value / len(places)
        let_follow(self.data.qpos, followers(self.model))


def _by_joint(values: Vector, first: Places, shared: list[tuple[int, list[int]]]) -> Vector:
    """In the order of the joint vectors, those that several joints share added up."""
    joints = values.take(first)
    for place, others in shared:
        for other in others:
            joints[place] += values.item(other)
    return joints


@cache
def _kept_efforts(number: int) -> tuple[float, Vector]:
    """After so many steps: what is left of the filtered effort, and what each step has put into it."""
    rest: Vector = (1.0 - _KEPT_EFFORT) * _KEPT_EFFORT ** np.arange(number - 1.0, -1.0, -1.0)
    return _KEPT_EFFORT**number, rest


class _Index:
    """Where the joints, actuators and geoms of the model are."""

    def __init__(self, built: BuiltRobot, person_parts: Sequence[str]) -> None:
        model, joints = built.model, built.joints
        self.thing_body = np.array([model.body(one.thing.name).id for one in built.layout.things], dtype=np.int64)
        self.qpos = [[int(model.joint(name).qposadr[0]) for name in joint.carriers] for joint in joints]
        qvel = [[int(model.joint(name).dofadr[0]) for name in joint.carriers] for joint in joints]
        self.first_qpos, self.shared_qpos = _first_and_shared(self.qpos)
        self.first_qvel, self.shared_qvel = _first_and_shared(qvel)
        self.base_qpos = np.array([model.joint(name).qposadr[0] for name in built.base], dtype=np.int64)
        self.base_qvel = np.array([model.joint(name).dofadr[0] for name in built.base], dtype=np.int64)
        self.base_actuator = [int(model.actuator(name).id) for name in built.base]
        self.base_most = model.actuator_forcerange[self.base_actuator, 1].tolist()  # N, N, N m
        # Set points of the joints times this: of the actuators. Forces of those times that: efforts in percent.
        self.factor = np.array([joint.factor for joint in joints])
        self.offset = np.array([joint.offset for joint in joints])
        self.is_plain = bool((self.factor == 1.0).all() and (self.offset == 0.0).all())
        self.servo_of_joint = np.zeros((len(joints), model.nu))
        self.servo_offset = np.zeros(model.nu)
        self.percent_of_force = np.zeros((model.nu, len(joints)))
        servos = [int(model.actuator(joint.carriers[0]).id) for joint in joints]
        self.damping_over_stiffness = model.actuator_biasprm[servos, 2] / -model.actuator_gainprm[servos, 0]
        for place, joint in enumerate(joints):
            actuators = [model.actuator(name).id for name in joint.carriers]
            self.servo_of_joint[place, actuators] = joint.factor / len(actuators)
            self.servo_offset[actuators] = joint.offset / len(actuators)
            most = float(model.actuator_forcerange[actuators[0], 1])
            percent = math.copysign(100.0, joint.factor) / most / len(actuators)
            self.percent_of_force[actuators, place] = percent
        # Which geoms are which part of the collaborator.
        self.person_part = {
            geom: part
            for part in person_parts
            for geom in np.flatnonzero(model.geom_bodyid == model.body(part).id).tolist()
        }


def _first_and_shared(places: list[list[int]]) -> tuple[Places, list[tuple[int, list[int]]]]:
    return np.array([one[0] for one in places]), [(at, one[1:]) for at, one in enumerate(places) if len(one) > 1]
