"""The robot that `[run] robot` of a launch file names: loads and checks its limits, for the nodes that rely on it.

The name is that of a `nodes.robot.protocol.RobotLimits`, as "module:NAME", or of a robot file. It is one description
for guard, driver and conformance tests. A node class that relies on it has `ForRobot` as its first base.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar

from nodes.robot.protocol import Ball, BaseLimit, Body, CartesianLimits, JointLimit, MovesHand, RobotLimits
from runtime.errors import ParameterError, UserError, choices, naming
from runtime.launch.tables.nodes_table import lacks, load_as, load_module, load_name
from runtime.renamed import renamed

if TYPE_CHECKING:
    from nodes.msgs import JointVector

STRETCH = "stretch_3"
"""The robot's name where `[run] robot` names none."""
DEFAULT = "nodes.stretch.limits:STRETCH_3"
"""Where the limits of that robot are defined."""

LEROBOT = ".lerobot.toml"
"""How the name of a file of facts ends."""

CLAIM = "robot "

LEAST, MOST = 1e-6, 1e6
"""Bounds of ranges, speeds and accelerations; a value outside is a mistake."""
RANGE = f"{LEAST:.6f} to {MOST:.0f}"

_JOINT_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")


class ForRobot:
    """Base of node classes that rely on the robot's joints; the runtime asks them before a run with another robot."""

    made_for_joints: ClassVar[tuple[str, ...]] = ()
    """The joints whose order in joint vectors the class relies on; empty where it takes those of any robot."""

    needs_body: ClassVar[bool] = False
    """Whether the class needs the robot's `Body`, to look or to reach."""

    robot_parameter: ClassVar[str] = ""
    """The parameter that is given the name of the robot's limits, from `[run] robot` of a launch file; "": none."""

    @classmethod
    def run_parameters(cls) -> Mapping[str, str]:
        """Of `[run]` it takes the robot."""
        return {"robot": cls.robot_parameter}

    @classmethod
    def run_facts(cls, key: str, robot: str) -> Mapping[str, object]:
        """The robot's name and the names of its joints.

        Raises UserError where the name leads to no robot, or to one that this class is not made for.
        """
        with naming("[run] robot"):
            joints = joint_names(load_limits(robot))
        if cls.made_for_joints and cls.made_for_joints != joints:
            raise UserError(
                f"{cls.__name__} is made for a robot with the joints {', '.join(cls.made_for_joints)}; "
                f"[run] robot {robot!r} has {', '.join(joints)}: put a node of your own in its place, or leave it out"
            )
        if cls.needs_body:
            with naming(f"{cls.__name__} looks along the robot's body:"):
                load_body(robot)
        return {"joints": joints, "robot": robot}


def claim_of(robot: str) -> str:
    """The name under which a run reserves the robot for itself; its latch belongs to that name."""
    return f"{CLAIM}{latched_name(robot)}"


def latched_name(robot: str) -> str:
    """The name under which the robot's latch is saved; for a robot file the file's own name, wherever it lies."""
    if is_file(robot):
        return PurePath(robot).stem
    if has_facts(robot):
        return PurePath(robot).name.removesuffix(LEROBOT)
    return STRETCH if robot in ("", DEFAULT) else robot


def is_file(robot: str) -> bool:
    """Whether a robot file describes the robot and names its model, rather than a Python module."""
    return robot.endswith(".toml") and not has_facts(robot)


def has_facts(robot: str) -> bool:
    """Whether a file of facts describes the robot: an arm that LeRobot drives, with limits and no model."""
    return robot.endswith(LEROBOT)


def load_body(robot: str) -> Body:
    """The `Body` of a robot ("": a Stretch). Raises UserError where its limits name none."""
    if has_facts(robot):
        raise UserError(f"{robot} has no model of the body, so that nobody knows where its hand is; name a robot file")
    if is_file(robot):
        found: Body = load_name("nodes.robot_file.body:body_of_file")(robot)
        return found
    body = load_limits(robot or DEFAULT).body
    if not body:
        raise UserError(
            f"the limits {robot!r} name no body, so that nobody knows where its hand and its camera are; "
            'say body="module:NAME" of a nodes.robot.protocol:Body there, or describe the robot by a file'
        )
    return body_named(body)


def body_named(name: str) -> Body:
    """The `Body` that limits name as "module:NAME". Raises UserError where there is none."""
    found: Body = load_as(name, Body)
    return found


def load_hand(robot: str, name: str = "") -> MovesHand:
    """The kinematics of that name, or those of the robot's body. Raises UserError where nobody knows any."""
    if name:
        found: MovesHand = load_as(name, MovesHand)
        return found
    body: Any = load_body(robot)
    if lacks(body, MovesHand):
        raise UserError(
            f"nobody knows how the hand of {robot or 'a Stretch'} moves: say hand= (of a Stretch: "
            "nodes.policy.stretch_hand:STRETCH_HAND), or name a robot file in [run] robot"
        )
    hand: MovesHand = body
    return hand


def load_motion(body: Body) -> object:
    """What carries out the scripted skills with that body. Raises UserError where it is missing."""
    make = load_name(body.skills)
    if not callable(make):
        raise UserError(f"the body's skills {body.skills!r} are no function of a body")
    motion: object = make(body)
    return motion


def load_limits(name: str) -> RobotLimits:
    """The limits that "module:NAME" or a robot file names. Raises ParameterError where they are not a robot's."""
    if is_file(name) or has_facts(name):
        facts, model = "bridges.lerobot.facts:limits_of_facts", "nodes.robot_file.model:limits_of_file"
        try:
            limits: RobotLimits = load_name(facts if has_facts(name) else model)(name)
        except UserError as problem:
            raise ParameterError(str(problem)) from problem
        if nonsense := limits_problem(limits):
            raise ParameterError(f"{name}: {nonsense}")
        return limits
    try:
        module, attribute = load_module(name, "limits; expected 'module:NAME', like 'my_robot.limits:LIMITS'")
    except UserError as problem:
        raise ParameterError(str(problem)) from problem
    if name in renamed("names"):
        raise ParameterError(f"{name!r} is now {renamed('names')[name]!r}")
    found = getattr(module, attribute, None)
    if not isinstance(found, RobotLimits):
        known = choices(key for key, value in vars(module).items() if isinstance(value, RobotLimits))
        what = f"is a {type(found).__name__}" if hasattr(module, attribute) else "is not there"
        raise ParameterError(
            f"{name!r}: {attribute!r} {what}; expected a nodes.robot.protocol:RobotLimits; there: {known}"
        )
    if nonsense := limits_problem(found):
        raise ParameterError(f"{name!r}: {nonsense}")
    return found


def outline_of(cartesian: CartesianLimits) -> Callable[[JointVector], tuple[Ball, ...]]:
    """The function from joint positions to the balls that cover the body. Raises UserError where it is not found."""
    if callable(cartesian.outline):
        return cartesian.outline
    found: Callable[[JointVector], tuple[Ball, ...]] = load_name(cartesian.outline)
    return found


def joint_names(limits: RobotLimits) -> tuple[str, ...]:
    """The names of the joints, in the order of joint vectors."""
    return tuple(joint.name for joint in limits.joints)


def limits_problem(limits: RobotLimits) -> str:
    """Why no robot can have these limits, as a sentence; "" where a guard can keep them."""
    joints: Any = limits.joints  # a dataclass takes what it is given
    base: Any = limits.base
    if not isinstance(joints, tuple) or not joints:
        what = "empty" if joints == () else f"a {type(joints).__name__}"
        return f"joints is {what}; expected a tuple of one JointLimit or more"
    names: set[str] = set()
    for place, joint in enumerate(joints):
        if not isinstance(joint, JointLimit):
            return f"joint {place} is {joint!r}; expected a JointLimit"
        if not isinstance(joint.name, str) or not _JOINT_NAME.fullmatch(joint.name):
            return f"joint {place} is named {joint.name!r}; expected a-z, 0-9 and _, starting with a letter"
        if joint.name in names:
            return f"two joints are named {joint.name!r}; each has a name of its own"
        names.add(joint.name)
        for key in ("lowest", "highest"):
            if not _is_within(end := getattr(joint, key), -MOST, MOST):
                return f"joint {joint.name!r}: {key} is {end!r}; expected {-MOST:.0f} to {MOST:.0f} m or rad"
        if not joint.lowest < joint.highest:
            return f"joint {joint.name!r}: lowest {joint.lowest!r} is not below highest {joint.highest!r}"
        for key in ("speed", "acceleration"):
            if not _is_within(getattr(joint, key), LEAST, MOST):
                return f"joint {joint.name!r}: {key} is {getattr(joint, key)!r}; expected {RANGE}"
    if not isinstance(base, BaseLimit):
        return f"base is {base!r}; expected a BaseLimit, or nodes.robot.protocol:FIXED_BASE where it does not drive"
    if base.wheel_speed_mps != 0 and not _is_within(base.wheel_speed_mps, LEAST, MOST):
        return f"base: wheel_speed_mps is {base.wheel_speed_mps!r}; expected {RANGE}, or 0: it stands"
    for key in ("acceleration_mps2", "track_m"):
        if not _is_within(getattr(base, key), LEAST, MOST):
            return f"base: {key} is {getattr(base, key)!r}; expected {RANGE}"
    return "" if limits.cartesian is None else _cartesian_problem(limits, limits.cartesian)


def _cartesian_problem(limits: RobotLimits, body: Any) -> str:
    if not isinstance(body, CartesianLimits):
        return f"cartesian is {body!r}; expected a CartesianLimits, or None"
    for key in ("tip_speed_mps", "base_speed_out_mps", "out_m"):
        if not _is_within(getattr(body, key), LEAST, MOST):
            return f"cartesian: {key} is {getattr(body, key)!r}; expected {RANGE}"
    if not _is_within(body.floor_m, -MOST, MOST):
        return f"cartesian: floor_m is {body.floor_m!r}; expected {-MOST:.0f} to {MOST:.0f} m"
    try:
        outline = outline_of(body)
        found = [
            outline(tuple(ends)) for ends in zip(*((one.lowest, one.highest) for one in limits.joints), strict=True)
        ]
    except (UserError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as problem:
        return f"cartesian: outline {body.outline!r} gives no balls: {problem}"
    if len({len(balls) for balls in found}) != 1 or not found[0]:
        numbers = " or ".join(str(len(balls)) for balls in found)
        return f"cartesian: outline {body.outline!r} gives {numbers} balls; expected as many each time"
    if any(
        len(ball) != 4 or not all(_is_within(part, -MOST, MOST) for part in ball) for balls in found for ball in balls
    ):
        return f"cartesian: outline {body.outline!r} gives {found[0][0]!r}; expected balls of x, y, z and radius, m"
    return ""


def _is_within(value: object, least: float, most: float) -> bool:
    """Whether the value is a number in this range; False for NaN."""
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most
