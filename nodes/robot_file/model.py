"""The model that a robot file names, read by MuJoCo, its mistakes told by file, part and remedy; and its limits."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from nodes.msgs import JointVector
from nodes.robot.looks import mesh_path
from nodes.robot.protocol import FIXED_BASE, Ball, BaseLimit, CartesianLimits, JointLimit, RobotLimits
from nodes.robot_file.engine import mujoco
from nodes.robot_file.mesh_file import mesh_problem
from nodes.robot_file.table import DEFAULT_RISE_S, JointTable, RobotTable, model_path, path_of, read_robot
from runtime.errors import UserError, choices
from runtime.launch.tables.nodes_table import load_name

DRIVEN = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
PREFIX = "robot/"
"""Before all names of the robot's model, which may be those of the room that it stands in."""
GRIPPER = "gripper"
"""What the joints of the gripper are called together, in joint vectors."""
MESHES = (".stl", ".obj", ".msh")
REMEDIES = {
    "ASCII file": "save the mesh as a binary STL",
    "mjMINVAL": "give what moves there a mass and an inertia above 0 (in a URDF: <inertial>)",
}
"""What to do where MuJoCo says these words."""
MOST_NUMBER = 1e6
"""No joint has a limit beyond it, m, rad, N or N m."""
MOST_WRITTEN = 1e9
"""No number of a model is beyond it, not even a stiffness."""
NEVER_NEGATIVE = {("mass", "value"), ("dynamics", "damping"), ("dynamics", "friction")}
"""Parts of a URDF that are 0 or more."""
FAST_RADPS, FAST_MPS = 20.0, 5.0
"""A joint that is faster than this by its URDF is asked about: 99 stands there where nobody knew."""
XACRO = "http://www.ros.org/wiki/xacro"


@dataclass(frozen=True, slots=True)
class Driven:
    """One entry of the joint vectors: the joints of the model that carry it, which share it evenly, and its effort.

    Each carrier is at `factor` times the entry plus `offset`: of a gripper that turns, these make metres an angle.
    """

    limit: JointLimit
    carriers: tuple[str, ...]
    effort: float | None  # N or N m of each carrier; None: the model does not say
    folded: float
    factor: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, slots=True)
class Outline:
    """The balls that cover what moves of the robot of a file, odometry frame."""

    file: str

    def __call__(self, position: JointVector) -> tuple[Ball, ...]:
        return _outline(self.file)(position)


@lru_cache(maxsize=8)
def _outline(file: str) -> Callable[[JointVector], tuple[Ball, ...]]:
    found: Callable[[JointVector], tuple[Ball, ...]] = load_name("nodes.robot_file.body:body_of_file")(file).outline
    return found


@dataclass(frozen=True, slots=True)
class RobotModel:
    """A robot file, read and checked."""

    path: Path
    table: RobotTable
    driven: tuple[Driven, ...]

    @property
    def limits(self) -> RobotLimits:
        """Of its joints, in the order of the model, the gripper last; of its body where the file has tip_speed_mps."""
        speed, drives, base = self.table.tip_speed_mps, self.table.base, FIXED_BASE
        if drives is not None:
            base = BaseLimit(drives.wheel_speed_mps, drives.acceleration_mps2, drives.track_m)
        body = (
            None if speed is None else CartesianLimits(Outline(str(self.path)), speed, speed, 1.0, self.table.floor_m)
        )
        return RobotLimits(joints=tuple(one.limit for one in self.driven), base=base, cartesian=body)

    @property
    def folded(self) -> tuple[float, ...]:
        """The posture in which it starts, and to which it stows."""
        return tuple(one.folded for one in self.driven)

    def spec(self) -> mujoco.MjSpec:
        """A fresh copy of the model, to be compiled or to be put into a scene."""
        return _read_spec(self.path, model_path(self.path, self.table), self.table)


def load_robot(name: str) -> RobotModel:
    """The robot of a robot file, as a path or "package:file.toml". Raises UserError with all that is known wrong."""
    path = path_of(name).resolve()
    return _load(path, _stamps(path))


def limits_of_file(name: str) -> RobotLimits:
    """The limits of the robot that a robot file describes. Raises UserError."""
    return load_robot(name).limits


def _stamps(path: Path) -> tuple[int, ...]:
    """Changes where the file or its model was written anew."""
    model = model_path(path, read_robot(path))
    return tuple(one.stat().st_mtime_ns for one in (path, model) if one.is_file())


@lru_cache(maxsize=8)
def _load(path: Path, stamps: tuple[int, ...]) -> RobotModel:
    table = read_robot(path)
    file = model_path(path, table)
    if not file.is_file():
        raise UserError(f"{path}: model is {table.model!r}; there is no file {file}; name an MJCF or URDF beside it")
    efforts: dict[str, float] = {}
    speeds: dict[str, tuple[float | None, float | None]] = {}  # and accelerations
    root = _parsed(file)
    problems = list(_number_problems(file, root))
    if root.tag == "robot":
        problems += _urdf_problems(file, root, table)
    if problems:
        raise UserError("; ".join(problems))
    if root.tag == "robot":
        for joint in root.iter("joint"):
            limit = joint.find("limit")
            if limit is not None:
                name = joint.get("name", "")
                speeds[name] = _number(limit, "velocity"), _number(limit, "acceleration")
                effort = _number(limit, "effort")
                if effort:
                    efforts[name] = effort
    spec = _read_spec(path, file, table)
    try:
        model = spec.compile()
    except (ValueError, mujoco.FatalError) as problem:
        raise UserError(_said_by_mujoco(file, problem)) from problem
    efforts |= _actuator_forces(model)
    _require(file, path, "hand", table.hand, [one.name for one in (*spec.bodies, *spec.sites) if one.name])
    for name, camera in table.cameras.items():
        _require(file, path, f"[cameras.{name}] link", camera.link, [one.name for one in spec.bodies if one.name])
    driven = _Joints(path, file, table, model, speeds, efforts).driven()
    return RobotModel(path=path, table=table, driven=driven)


def _read_spec(path: Path, file: Path, table: RobotTable) -> mujoco.MjSpec:
    try:
        spec = mujoco.MjSpec.from_file(str(file))
    except (ValueError, mujoco.FatalError) as problem:
        raise UserError(_said_by_mujoco(file, problem)) from problem
    for mesh in spec.meshes:
        if mesh.file:
            mesh.file = str(_mesh(file, str(Path(spec.meshdir or "") / mesh.file), f"mesh {mesh.name or mesh.file!r}"))
    if (root := _parsed(file)).tag == "robot":
        _let_follow(spec, root)
    _take_off_wheels(spec, path, file, table)
    for key in list(spec.keys):
        spec.delete(key)  # postures of its maker: nobody asks for them, and they do not fit into a room
    spec.meshdir, spec.strippath = "", False
    spec.compiler.fusestatic = False  # links that do not move keep their names: hands and cameras are among them
    return spec


def _take_off_wheels(spec: mujoco.MjSpec, path: Path, file: Path, table: RobotTable) -> None:
    """Leave out by what a robot drives: whoever puts it into a room lets it go over the floor as a whole."""
    if table.base is None:
        return
    named = table.base.joints
    known = [joint.name for joint in spec.joints]
    for name in named:
        if name not in known:
            raise UserError(
                f"{path}: [base] joints names {name!r}, which is no joint of {file.name}; known: {choices(known)}"
            )
    planes = {f"{joint.get('name')}_{way}" for joint in _parsed(file).findall("joint") for way in ("TX", "TY", "RZ")}
    floating = [joint for joint in spec.joints if joint.type == mujoco.mjtJoint.mjJNT_FREE]
    if len(floating) > 1:
        bodies = choices(joint.parent.name for joint in floating)
        raise UserError(f"{file}: {bodies} float freely, and only the robot may; take the other bodies out")
    for geom in [one for one in spec.worldbody.geoms if one.type == mujoco.mjtGeom.mjGEOM_PLANE]:
        spec.delete(geom)  # a floor of its own does not go with the robot
    gone = floating + [joint for joint in spec.joints if joint.name in named or joint.name in planes]
    names = {joint.name for joint in gone}
    for tendon in list(spec.tendons):
        if any(wrap.type == mujoco.mjtWrap.mjWRAP_JOINT and wrap.target.name in names for wrap in tendon.path):
            spec.delete(tendon)
    for joint in gone:
        spec.delete(joint)


def _let_follow(spec: mujoco.MjSpec, root: ElementTree.Element) -> None:
    """What mimics another joint in a URDF, which MuJoCo passes over, becomes an equality of the two."""
    for joint in root.findall("joint"):
        mimic = joint.find("mimic")
        if mimic is not None:
            multiplier, offset = (float(mimic.get(key, default)) for key, default in (("multiplier", 1), ("offset", 0)))
            spec.add_equality(
                type=mujoco.mjtEq.mjEQ_JOINT, objtype=mujoco.mjtObj.mjOBJ_JOINT, name1=joint.get("name", ""),
                name2=mimic.get("joint", ""), solref=(0.01, 1.0),
                data=[offset, multiplier, *[0.0] * (mujoco.mjNEQDATA - 2)],
            )  # fmt: skip


def _said_by_mujoco(file: Path, problem: Exception) -> str:
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    remedy = next((told for words, told in REMEDIES.items() if words in str(problem)), "mend that part of the file")
    return f"{file}: MuJoCo cannot read it: {': '.join(lines)}; {remedy}"


def _parsed(file: Path) -> ElementTree.Element:
    try:
        return ElementTree.parse(file).getroot()
    except (ElementTree.ParseError, UnicodeDecodeError, OSError) as problem:
        raise UserError(f"{file}: is no XML: {problem}; expected an MJCF or a URDF") from problem


def _number_problems(file: Path, root: ElementTree.Element) -> Iterator[str]:
    """Numbers that no model can have, by the file's line: a simulator takes many of them, and the hand is nowhere."""
    names = {one.get("name") for one in root.iter()}
    for element in root.iter():
        for key, said in element.items():
            try:
                numbers = [float(part) for part in said.split()]
            except ValueError:
                continue
            least = 0.0 if (element.tag, key) in NEVER_NEGATIVE and root.tag == "robot" else -MOST_WRITTEN
            # The limits of a joint are told with the joint's name.
            is_told = said in names or (root.tag == "robot" and element.tag == "limit")
            if not is_told and not all(least <= number <= MOST_WRITTEN for number in numbers):
                line = _line_of(file, rf"<{element.tag}\b[^>]*\b{key}\s*=\s*[\"']{re.escape(said)}[\"']")
                yield (
                    f"{file}:{line}: <{element.tag}> has {key} {said!r}; expected numbers from {least:g} to "
                    f"{MOST_WRITTEN:g}"
                )


def _urdf_problems(file: Path, root: ElementTree.Element, table: RobotTable) -> Iterator[str]:
    """What is wrong with a URDF, a sentence each, before anybody simulates it."""
    if any(element.tag.startswith(f"{{{XACRO}}}") for element in root.iter()):
        yield f"{file}: is a xacro, from which a URDF is made; make it: xacro {file.name} > robot.urdf"
        return
    for kind in ("link", "joint"):
        names = [one.get("name", "") for one in root.findall(kind)]
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield f"{file}: two {kind}s are named {name!r}; give each a name of its own"
    links = {one.get("name", "") for one in root.findall("link")}
    if len(roots := links - {child.get("link", "") for child in root.findall("joint/child")}) != 1:
        yield f"{file}: {len(roots)} links hang on no other one ({choices(roots)}); expected one, its base"
    elif loose := links - _hanging_on(root, roots):
        yield f"{file}: links {choices(loose)} hang on each other, and none of them on {choices(roots)}; mend a parent"
    for joint in root.findall("joint"):
        yield from _joint_problems(file, root, table, joint, links)
    for mesh in root.iter("mesh"):
        try:
            where = _mesh(file, mesh.get("filename", ""), "mesh")
        except UserError as problem:
            yield str(problem)
            continue
        if where.suffix.lower() not in MESHES:
            yield f"{file}: mesh {where.name!r} is no {' or '.join(MESHES)}; convert it, for example with Blender"
    for texture in root.iter("texture"):
        named = texture.get("filename", "")
        if mesh_path(file, named) is None:
            yield f"{file}: texture {named!r}: there is no such file beside it; put it there, or take the <texture> out"


def _joint_problems(
    file: Path, root: ElementTree.Element, table: RobotTable, joint: ElementTree.Element, links: set[str]
) -> Iterator[str]:
    """What is wrong with one joint: its ends, what it follows, its numbers, its kind, its range."""
    name, kind = joint.get("name", ""), joint.get("type")
    for end in ("parent", "child"):
        link = joint.find(end)
        wanted = link.get("link", "") if link is not None else ""
        if wanted not in links:
            yield f"{file}: joint {name!r}: its {end} is {wanted!r}, which is no link; known: {choices(links)}"
    mimic, limit = joint.find("mimic"), joint.find("limit")
    if mimic is not None:
        yield from _mimic_problems(file, root, table, name, mimic)
    if limit is not None:
        yield from _limit_problems(file, table, joint, limit)
    if kind in ("planar", "floating") and table.base is None:
        yield (
            f"{file}: joint {name!r} is {kind}: write [base] into the robot file if the robot drives "
            "(docs/new-robot.md), or make the joint fixed"
        )
    if kind in ("revolute", "prismatic") and name not in _wheels(table):
        yield from _range_problems(file, table, name, limit)


def _range_problems(file: Path, table: RobotTable, name: str, limit: ElementTree.Element | None) -> Iterator[str]:
    given = table.joints.get(name, JointTable())
    is_told = given.lowest is not None and given.highest is not None
    lower, upper = (None, None) if limit is None else (_number(limit, "lower"), _number(limit, "upper"))
    if (lower is None or upper is None) and not is_told:
        yield (
            f'{file}: joint {name!r} has no range; expected <limit lower="..." upper="..." velocity="..." '
            f'effort="..."/>, or [joints.{name}] lowest and highest in the robot file'
        )
    elif lower is not None and upper is not None and not lower < upper:
        yield f"{file}: joint {name!r}: lower {lower:g} is not below upper {upper:g}; exchange or mend them"


def _limit_problems(
    file: Path, table: RobotTable, joint: ElementTree.Element, limit: ElementTree.Element
) -> Iterator[str]:
    """Numbers that no joint can have, and speeds that few have, by the file's line."""
    name = joint.get("name", "")
    line = _line_of(file, rf"<joint\b[^>]*\bname\s*=\s*[\"']{re.escape(name)}[\"']")
    where = f"{file}:{line}: joint {name!r}"
    for key in ("lower", "upper", "velocity", "acceleration", "effort"):
        said = limit.get(key)
        value = _number(limit, key)
        least = -MOST_NUMBER if key in ("lower", "upper") else 0.0
        if said is not None and not (value is not None and least <= value <= MOST_NUMBER):
            yield f"{where} has {key} {said!r}; expected a number from {least:g} to {MOST_NUMBER:g}"
            return
    speed, is_sliding = _number(limit, "velocity") or 0.0, joint.get("type") == "prismatic"
    most, unit = (FAST_MPS, "m/s") if is_sliding else (FAST_RADPS, "rad/s")
    of_group = GRIPPER if name in table.gripper else name
    if speed > most and table.joints.get(of_group, JointTable()).speed is None and name not in _wheels(table):
        yield (
            f"{where} may go {speed:g} {unit}, and arms beside people go no faster than {most:g}; is that so? "
            f"Write [joints.{of_group}] speed = ... into the robot file: less, or the same where it is right"
        )


def _wheels(table: RobotTable) -> tuple[str, ...]:
    return table.base.joints if table.base is not None else ()


def _line_of(file: Path, pattern: str) -> int:
    """The line of the file on which what the pattern finds ends."""
    text = file.read_text("utf-8", "replace")
    found = re.search(pattern, text)
    return 1 + text.count("\n", 0, found.end()) if found else 1


def _hanging_on(root: ElementTree.Element, links: set[str]) -> set[str]:
    """Those links, and all that hang on them by joints."""
    ends = [(joint.find("parent"), joint.find("child")) for joint in root.findall("joint")]
    named = [
        (one.get("link", ""), other.get("link", "")) for one, other in ends if one is not None and other is not None
    ]
    found, more = set(links), set(links)
    while more:
        more = {child for parent, child in named if parent in more} - found
        found |= more
    return found


def _mesh(file: Path, named: str, what: str) -> Path:
    """Where a mesh lies. Raises UserError where it does not."""
    if (place := mesh_path(file, named)) is not None:
        if problem := mesh_problem(place):
            raise UserError(f"{file}: {what} {place}: {problem}")
        return place
    last = Path(named.partition("://")[2] or named).name or "?"
    raise UserError(f"{file}: {what} {named!r}: there is no file {file.parent / last}; put it there")


def _mimic_problems(
    file: Path, root: ElementTree.Element, table: RobotTable, name: str, mimic: ElementTree.Element
) -> Iterator[str]:
    """A joint that follows another one is moved with it; what is told is where that cannot be."""
    other = mimic.get("joint", "")
    leaders = [one for one in root.findall("joint") if one.get("name", "") == other]
    if not leaders or leaders[0].get("type") not in ("revolute", "continuous", "prismatic"):
        yield f"{file}: joint {name!r} mimics {other!r}, which is no joint that moves; name one that does"
    elif other == name:
        yield f"{file}: joint {name!r} mimics itself; name the joint that it follows, or take the <mimic> out"
    elif leaders[0].find("mimic") is not None:
        yield f"{file}: joint {name!r} mimics {other!r}, which mimics another one; name that one in both"
    for key, default in (("multiplier", 1.0), ("offset", 0.0)):
        if mimic.get(key) is not None and _number(mimic, key) is None:
            yield f"{file}: joint {name!r}: its mimic has {key} {mimic.get(key)!r}; expected a number, or leave it out"
        elif name in table.gripper and (_number(mimic, key) or 0.0) != default and mimic.get(key) is not None:
            yield (
                f"{file}: joint {name!r} mimics {other!r} with {key} {mimic.get(key)}, so they do not open evenly; "
                f"take {name!r} out of gripper: it follows by itself"
            )


def _number(element: ElementTree.Element, key: str) -> float | None:
    try:
        return float(element.get(key, ""))
    except ValueError:
        return None


def _actuator_forces(model: mujoco.MjModel) -> dict[str, float]:
    """The most that an actuator of the model gives to a joint, where it says so."""
    found = {}
    for number in range(model.nu):
        if model.actuator_trntype[number] == mujoco.mjtTrn.mjTRN_JOINT and model.actuator_forcelimited[number]:
            joint = model.joint(int(model.actuator_trnid[number, 0])).name
            found[joint] = float(abs(model.actuator_forcerange[number]).max())
    for number in range(model.njnt):
        if model.jnt_actfrclimited[number]:
            found.setdefault(model.joint(number).name, float(abs(model.jnt_actfrcrange[number]).max()))
    return found


def _require(file: Path, path: Path, key: str, name: str, known: Iterable[str]) -> None:
    names = list(known)
    if name not in names:
        raise UserError(f"{path}: {key} is {name!r}; {file.name} has no such link or site; known: {choices(names)}")


@dataclass(frozen=True, slots=True)
class _Joints:
    """What the joints of a compiled model can do, by the model and by the robot file."""

    path: Path
    file: Path
    table: RobotTable
    model: mujoco.MjModel
    speeds: dict[str, tuple[float | None, float | None]]  # and accelerations
    efforts: dict[str, float]

    def driven(self) -> tuple[Driven, ...]:
        """The entries of the joint vectors. Raises UserError for joints without limits or with contradictory ones."""
        names = self._moving()
        gripper = self.table.gripper
        groups: list[tuple[tuple[str, ...], str]] = [((name,), name) for name in names if name not in gripper]
        if gripper:
            groups.append((gripper, GRIPPER))
        found = [self._entry(carriers, name) for carriers, name in groups]
        if not found:
            raise UserError(f"{self.file}: has no joint that moves; expected hinges or slides")
        by_name: dict[str, str] = {}
        for one, (_, name) in zip(found, groups, strict=True):
            if (other := by_name.setdefault(one.limit.name, name)) != name:
                raise UserError(
                    f"{self.file}: joints {other!r} and {name!r} are both called {one.limit.name!r} in a graph, where "
                    "only a-z, 0-9 and _ are left of a name; give one of them another one"
                )
        return tuple(found)

    def _moving(self) -> list[str]:
        """The driven joints, the gripper's with those that follow another. Raises UserError for others' names."""
        followers, names = ties(self.model), []
        for number in range(self.model.njnt):
            name = self.model.joint(number).name
            if int(self.model.jnt_type[number]) not in DRIVEN:
                raise UserError(
                    f"{self.file}: joint {name!r} is free or a ball; expected hinges and slides; of a robot that "
                    "drives, write [base] into its robot file (docs/new-robot.md)"
                )
            if number not in followers or name in self.table.gripper:
                names.append(name)
        for key, said in (("gripper", self.table.gripper), ("[joints]", tuple(self.table.joints))):
            for name in said:
                if name not in (*names, GRIPPER):
                    raise UserError(
                        f"{self.path}: {key} names {name!r}, which is no joint of {self.file.name}; "
                        f"known: {choices(names)}"
                    )
        return names

    def _entry(self, carriers: tuple[str, ...], name: str) -> Driven:
        """One entry of the joint vectors: of one joint, or of the gripper's joints together."""
        given = self.table.joints.get(name, JointTable())
        ranges = [self._range(one, given) for one in carriers]
        lowest, highest = sum(one[0] for one in ranges), sum(one[1] for one in ranges)
        factor, offset = self._opening(carriers, given, (lowest, highest), is_gripper=name == GRIPPER)
        if len(carriers) > 1:
            lowest, highest = self._narrowed(name, given, lowest, highest)
        told = [self.speeds.get(one, (None, None)) for one in carriers]
        speed = self._speed(name, given, [speed * len(carriers) for speed, _ in told if speed])
        strong = [more * len(carriers) for _, more in told if more]
        acceleration = given.acceleration or (min(strong) if strong else speed / DEFAULT_RISE_S)
        folded = given.folded if given.folded is not None else min(max(0.0, lowest), highest)
        if not lowest <= folded <= highest:
            raise UserError(f"{self.path}: [joints.{name}] folded is {folded:g}; expected {lowest:g} to {highest:g}")
        effort = given.effort or min((self.efforts[one] for one in carriers if one in self.efforts), default=None)
        if given.opening_m is not None:
            lowest, highest = sorted(given.opening_m)
            speed, acceleration, folded = speed / abs(factor), acceleration / abs(factor), (folded - offset) / factor
        limit = JointLimit(_called(name), lowest, highest, speed, acceleration)
        return Driven(limit, carriers, effort, folded, factor, offset)

    def _speed(self, name: str, given: JointTable, fastest: list[float]) -> float:
        """The speed that the robot file gives, or the slowest of the model's; none that the model forbids."""
        speed = given.speed or (min(fastest) if fastest else None)
        if speed is None:
            raise UserError(
                f"{self.file}: joint {name!r} has no speed, and without one no guard can limit it; write "
                f"[joints.{name}] speed = ... (m or rad per s) into {self.path.name}"
            )
        if fastest and speed > min(fastest):
            raise UserError(
                f"{self.path}: [joints.{name}] speed is {speed:g}, above the {min(fastest):g} of {self.file.name}; "
                "lower it"
            )
        return speed

    def _opening(
        self, carriers: tuple[str, ...], given: JointTable, ends: tuple[float, float], *, is_gripper: bool
    ) -> tuple[float, float]:
        """What makes an entry the position of each carrier. Raises UserError for a gripper of unknown opening."""
        if given.opening_m is None:
            hinge = mujoco.mjtJoint.mjJNT_HINGE
            turns = [one for one in carriers if self.model.jnt_type[self.model.joint(one).id] == hinge]
            if is_gripper and turns:
                raise UserError(
                    f"{self.path}: gripper: joint {turns[0]!r} of {self.file.name} turns, and nobody knows how far it "
                    f"opens; write [joints.{GRIPPER}] opening_m = [...], in m at its lowest and at its highest angle"
                )
            if is_gripper and len(carriers) == 1 and (followers := self._followers(carriers[0])):
                raise UserError(
                    f"{self.path}: gripper: joint {followers[0]!r} of {self.file.name} follows {carriers[0]!r}, and "
                    f"nobody knows how far both open; write [joints.{GRIPPER}] opening_m = [...], in m at its lowest "
                    "and highest position"
                )
            return 1.0 / len(carriers), 0.0
        if not is_gripper or len(carriers) != 1:
            raise UserError(
                f"{self.path}: opening_m is for a gripper of one joint; let the others mimic that one, or leave "
                "opening_m out"
            )
        low, high = given.opening_m
        if low == high or min(low, high) < 0.0:
            raise UserError(f"{self.path}: opening_m is {low:g} to {high:g}; expected two openings in m, not the same")
        factor = (ends[1] - ends[0]) / (high - low)
        return factor, ends[0] - factor * low

    def _followers(self, joint: str) -> list[str]:
        """The joints that go where this one goes."""
        followed = self.model.joint(joint).id
        return [self.model.joint(one).name for one, (leader, _) in ties(self.model).items() if leader == followed]

    def _range(self, name: str, given: JointTable) -> tuple[float, float]:
        number = self.model.joint(name).id
        if self.model.jnt_limited[number]:
            lowest, highest = (float(end) for end in self.model.jnt_range[number])
        elif given.lowest is None or given.highest is None:
            raise UserError(
                f"{self.file}: joint {name!r} has no range; give it one there, or write [joints.{name}] lowest and "
                f"highest into {self.path.name}; a wheel's name goes into [base] joints"
            )
        else:
            lowest, highest = given.lowest, given.highest
        return self._narrowed(name, given, lowest, highest)

    def _narrowed(self, name: str, given: JointTable, lowest: float, highest: float) -> tuple[float, float]:
        low = lowest if given.lowest is None else given.lowest
        high = highest if given.highest is None else given.highest
        if low < lowest - 1e-9 or high > highest + 1e-9 or not low < high:
            raise UserError(
                f"{self.path}: [joints.{name}] is {low:g} to {high:g}, but {self.file.name} has {lowest:g} to "
                f"{highest:g}; narrow the range, or mend the model"
            )
        return low, high


def ties(model: mujoco.MjModel) -> dict[int, tuple[int, list[float]]]:
    """By joint that an equality of the model ties to another: that one, and the polynomial by which it follows."""
    return {
        int(model.eq_obj1id[number]): (int(model.eq_obj2id[number]), model.eq_data[number, :5].tolist())
        for number in range(model.neq)
        if model.eq_type[number] == mujoco.mjtEq.mjEQ_JOINT and model.eq_obj2id[number] >= 0
    }


def followers(model: mujoco.MjModel) -> list[tuple[int, int, list[float]]]:
    """The same by places in `qpos`: of each that follows, of the one that it follows, and the polynomial."""
    place = model.jnt_qposadr
    return [(int(place[one]), int(place[leader]), how) for one, (leader, how) in ties(model).items()]


def let_follow(qpos: Any, tied: Iterable[tuple[int, int, list[float]]]) -> None:
    """Put those `followers` where the others take them."""
    for follower, leader, polynomial in tied:
        qpos[follower] = sum(part * qpos[leader] ** power for power, part in enumerate(polynomial))


def _called(name: str) -> str:
    """What a joint of the model is called in a graph: "left/Shoulder-Pan" is "left_shoulder_pan"."""
    plain = re.sub(r"[^a-z0-9_]+", "_", name.lower()).strip("_")
    return (plain if plain[:1].isalpha() else f"joint_{plain}")[:32]
