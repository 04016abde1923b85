"""`Urdf`: links, joints and shapes of a robot from its URDF, and the pose of each link for given joint positions.

It needs no library but numpy: a recorder on a robot's own computer calls it ten times a second.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nodes.robot.products import product
from runtime.errors import UserError, choices

Floats = NDArray[np.float64]
Vector3 = tuple[float, float, float]
Rgba = tuple[float, float, float, float]
Quaternion = tuple[float, float, float, float]
"""A rotation as x, y, z, w."""

GREY: Rgba = (0.7, 0.7, 0.7, 1.0)
MOVES = ("revolute", "continuous", "prismatic")


@dataclass(frozen=True, slots=True)
class Shape:
    """One visible part of a link, in the link's frame; lengths in m.

    `size` is a box's sides, a cylinder's radius and length, a sphere's radius, or a mesh's scale; `mesh` is a mesh's
    file.
    """

    kind: Literal["box", "cylinder", "sphere", "mesh"]
    size: Vector3
    place: Vector3 = (0.0, 0.0, 0.0)
    turn: Quaternion = (0.0, 0.0, 0.0, 1.0)
    rgba: Rgba = GREY
    mesh: str = ""


@dataclass(frozen=True, slots=True)
class Joint:
    """How a link is attached to its parent; `mimics` is (joint, multiplier, offset)."""

    name: str
    kind: str
    parent: str
    child: str
    origin: Floats  # (4, 4)
    axis: Vector3 = (1.0, 0.0, 0.0)
    lowest: float = 0.0
    highest: float = 0.0
    mimics: tuple[str, float, float] | None = None

    def value(self, positions: Mapping[str, float]) -> float:
        """The joint's position, m or rad, where `positions` are those of all joints by name."""
        if self.mimics is None:
            return positions.get(self.name, 0.0)
        leader, multiplier, offset = self.mimics
        return multiplier * positions.get(leader, 0.0) + offset

    def moved(self, value: float) -> Floats:
        """The child's frame in the parent's (4, 4), at this position in m or rad."""
        if self.kind not in MOVES or value == 0.0:
            return self.origin
        motion = np.eye(4)
        if self.kind == "prismatic":
            motion[:3, 3] = np.multiply(self.axis, value)
        else:
            motion[:3, :3] = turned(self.axis, value)
        return product(self.origin, motion)


@dataclass(frozen=True, slots=True)
class Urdf:
    """A tree of links: each joint comes before those below it; `root` is the link without a parent."""

    name: str
    root: str
    joints: tuple[Joint, ...]
    shapes: Mapping[str, tuple[Shape, ...]] = field(default_factory=dict)  # by link

    @property
    def links(self) -> tuple[str, ...]:
        """The names of all links, the root first."""
        return (self.root, *(joint.child for joint in self.joints))

    def transforms(self, positions: Mapping[str, float]) -> list[tuple[str, str, Floats]]:
        """Parent, child, and the child's frame in the parent's (4, 4), for joint positions by name; others are at 0.

        A joint that mimics another follows it.
        """
        return [(joint.parent, joint.child, joint.moved(joint.value(positions))) for joint in self.joints]

    def way_to(self, link: str) -> tuple[Joint, ...]:
        """The joints from the root to a link, in order."""
        by_child, way = {joint.child: joint for joint in self.joints}, list[Joint]()
        while link in by_child:
            way.append(by_child[link])
            link = way[-1].parent
        return tuple(reversed(way))


def parse_urdf(text: str, where: str) -> Urdf:
    """The robot that a URDF describes. Raises UserError, beginning with `where`, where it is no tree of links."""
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as problem:
        raise UserError(f"{where}: is no XML: {problem}; expected a URDF") from problem
    colours = {material.get("name", ""): _rgba(material, where) for material in root.findall("material")}
    shapes: dict[str, tuple[Shape, ...]] = {}
    for link in root.findall("link"):
        shown = link.findall("visual") or link.findall("collision")
        shapes[link.get("name", "")] = tuple(
            shape for one in shown if (shape := _shape(one, colours, where)) is not None
        )
    for kind in ("link", "joint"):
        names = [element.get("name", "") for element in root.findall(kind)]
        if double := [name for name in names if names.count(name) > 1]:
            raise UserError(f"{where}: two {kind}s are named {double[0]!r}; give each a name of its own")
    joints = [_joint(element, shapes, where) for element in root.findall("joint")]
    return in_order(root.get("name", "robot"), shapes, joints, where)


def in_order(name: str, shapes: Mapping[str, tuple[Shape, ...]], joints: Iterable[Joint], where: str) -> Urdf:
    """The robot made of these links and joints, sorted.

    Raises UserError where they are no tree, or where one mimics a joint that does not exist.
    """
    left = list(joints)
    by_name = {joint.name for joint in left}
    for joint in left:
        if joint.mimics is not None and joint.mimics[0] not in by_name:
            raise UserError(
                f"{where}: joint {joint.name!r} mimics {joint.mimics[0]!r}, which is no joint; "
                f"known: {choices(by_name)}"
            )
    children = [joint.child for joint in left]
    roots = [link for link in shapes if link not in children]
    if len(roots) != 1 or len(set(children)) != len(children):
        raise UserError(
            f"{where}: {len(roots)} links hang on none ({choices(roots)}); expected one, and each other on one joint"
        )
    ordered: list[Joint] = []
    placed = {roots[0]}
    while left:
        ready = [joint for joint in left if joint.parent in placed]
        if not ready:
            raise UserError(f"{where}: joints {choices(joint.name for joint in left)} hang on each other")
        ordered += ready
        placed |= {joint.child for joint in ready}
        left = [joint for joint in left if joint.child not in placed]
    return Urdf(name, roots[0], tuple(ordered), shapes)


def urdf_text(robot: Urdf, meshes: Mapping[str, str] | None = None) -> str:
    """The robot as URDF text; `meshes` maps its mesh files to other names."""
    root = ElementTree.Element("robot", name=robot.name)
    for link in robot.links:
        element = ElementTree.SubElement(root, "link", name=link)
        for number, shape in enumerate(robot.shapes.get(link, ())):
            visual = ElementTree.SubElement(element, "visual")
            ElementTree.SubElement(visual, "origin", xyz=_numbers(shape.place), rpy=_numbers(_rpy(matrix(shape.turn))))
            geometry = ElementTree.SubElement(visual, "geometry")
            match shape.kind:
                case "box":
                    ElementTree.SubElement(geometry, "box", size=_numbers(shape.size))
                case "cylinder":
                    radius, length, _ = shape.size
                    ElementTree.SubElement(geometry, "cylinder", radius=f"{radius:.6g}", length=f"{length:.6g}")
                case "sphere":
                    ElementTree.SubElement(geometry, "sphere", radius=f"{shape.size[0]:.6g}")
                case "mesh":
                    file = (meshes or {}).get(shape.mesh, shape.mesh)
                    ElementTree.SubElement(geometry, "mesh", filename=file, scale=_numbers(shape.size))
            material = ElementTree.SubElement(visual, "material", name=f"{link}_{number}")
            ElementTree.SubElement(material, "color", rgba=_numbers(shape.rgba))
    for joint in robot.joints:
        element = ElementTree.SubElement(root, "joint", name=joint.name, type=joint.kind)
        ElementTree.SubElement(element, "parent", link=joint.parent)
        ElementTree.SubElement(element, "child", link=joint.child)
        place = tuple(joint.origin[:3, 3].tolist())
        ElementTree.SubElement(element, "origin", xyz=_numbers(place), rpy=_numbers(_rpy(joint.origin[:3, :3])))
        if joint.kind in MOVES:
            ElementTree.SubElement(element, "axis", xyz=_numbers(joint.axis))
            ElementTree.SubElement(
                element, "limit", lower=f"{joint.lowest:.6g}", upper=f"{joint.highest:.6g}", effort="0", velocity="0"
            )
        if joint.mimics is not None:
            leader, multiplier, offset = joint.mimics
            ElementTree.SubElement(
                element, "mimic", joint=leader, multiplier=f"{multiplier:.6g}", offset=f"{offset:.6g}"
            )
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def turned(axis: Vector3, angle_rad: float) -> Floats:
    """The rotation matrix (3, 3) for a turn about an axis of any length."""
    length = math.sqrt(sum(part * part for part in axis)) or 1.0
    x, y, z = (part / length for part in axis)
    c, s = math.cos(angle_rad), math.sin(angle_rad)
    d = 1.0 - c
    return np.array(
        [
            [c + x * x * d, x * y * d - z * s, x * z * d + y * s],
            [y * x * d + z * s, c + y * y * d, y * z * d - x * s],
            [z * x * d - y * s, z * y * d + x * s, c + z * z * d],
        ]
    )


def frame(place: Iterable[float], rotation: Floats) -> Floats:
    """The frame (4, 4) of a position (3,) and a rotation (3, 3)."""
    found = np.eye(4)
    found[:3, :3] = rotation
    found[:3, 3] = tuple(place)
    return found


def matrix(turn: Quaternion) -> Floats:
    """The rotation matrix (3, 3) of a quaternion."""
    x, y, z, w = turn
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def quaternion(rotation: Floats) -> Quaternion:
    """The quaternion of a rotation matrix (3, 3); its w is not negative."""
    (a, b, c), (d, e, f), (g, h, i) = rotation.tolist()
    # Each row is the quaternion times four times one of its parts: the one by the largest part is good to divide by.
    row = max(
        ((1 + a - e - i, b + d, c + g, h - f), 0),
        ((b + d, 1 - a + e - i, f + h, c - g), 1),
        ((c + g, f + h, 1 - a - e + i, d - b), 2),
        ((h - f, c - g, d - b, 1 + a + e + i), 3),
        key=lambda candidate: candidate[0][candidate[1]],
    )[0]
    length = math.copysign(math.hypot(*row), row[3])
    x, y, z, w = (part / length for part in row)
    return x, y, z, w


def _rpy(rotation: Floats) -> Vector3:
    pitch = math.asin(min(max(-float(rotation[2, 0]), -1.0), 1.0))
    if abs(rotation[2, 0]) > 1 - 1e-9:  # roll and yaw turn about the same axis
        return 0.0, pitch, math.atan2(-float(rotation[0, 1]), float(rotation[1, 1]))
    return (
        math.atan2(float(rotation[2, 1]), float(rotation[2, 2])),
        pitch,
        math.atan2(float(rotation[1, 0]), float(rotation[0, 0])),
    )


def _origin(element: ElementTree.Element, where: str) -> Floats:
    origin = element.find("origin")
    if origin is None:
        return np.eye(4)
    roll, pitch, yaw = _vector(origin, "rpy", where)
    rotation = product(product(turned((0, 0, 1), yaw), turned((0, 1, 0), pitch)), turned((1, 0, 0), roll))
    return frame(_vector(origin, "xyz", where), rotation)


def _joint(element: ElementTree.Element, links: Mapping[str, object], where: str) -> Joint:
    name = element.get("name", "")
    ends = []
    for end in ("parent", "child"):
        found = element.find(end)
        link = found.get("link", "") if found is not None else ""
        if link not in links:
            raise UserError(
                f"{where}: joint {name!r}: its {end} is {link!r}, which is no link; known: {choices(links)}"
            )
        ends.append(link)
    axis, limit, mimic = element.find("axis"), element.find("limit"), element.find("mimic")
    kind = element.get("type", "fixed")
    return Joint(
        name=name,
        kind=kind,
        parent=ends[0],
        child=ends[1],
        origin=_origin(element, where),
        axis=(1.0, 0.0, 0.0) if axis is None else _vector(axis, "xyz", where),
        lowest=0.0 if limit is None else _number(limit, "lower", 0.0, where),
        highest=0.0 if limit is None else _number(limit, "upper", 0.0, where),
        mimics=None
        if mimic is None
        else (
            mimic.get("joint", ""),
            _number(mimic, "multiplier", 1.0, where),
            _number(mimic, "offset", 0.0, where),
        ),
    )


def _shape(element: ElementTree.Element, colours: Mapping[str, Rgba | None], where: str) -> Shape | None:
    geometry = element.find("geometry")
    part = next(iter(geometry), None) if geometry is not None else None
    if part is None:
        return None
    origin = _origin(element, where)
    x, y, z = origin[:3, 3].tolist()
    material = element.find("material")
    rgba = None
    if material is not None:
        rgba = _rgba(material, where) or colours.get(material.get("name", ""))
    place, turn, rgba = (x, y, z), quaternion(origin[:3, :3]), rgba or GREY
    match part.tag:
        case "box":
            return Shape("box", _vector(part, "size", where), place, turn, rgba)
        case "cylinder" | "capsule":
            size = _number(part, "radius", 0.0, where), _number(part, "length", 0.0, where), 0.0
            return Shape("cylinder", size, place, turn, rgba)
        case "sphere":
            return Shape("sphere", (_number(part, "radius", 0.0, where), 0.0, 0.0), place, turn, rgba)
        case "mesh":
            scale = _vector(part, "scale", where) if part.get("scale") else (1.0, 1.0, 1.0)
            return Shape("mesh", scale, place, turn, rgba, part.get("filename", ""))
        case _:
            return None


def _rgba(material: ElementTree.Element, where: str) -> Rgba | None:
    colour = material.find("color")
    if colour is None:
        return None
    r, g, b, a = _floats(colour, "rgba", colour.get("rgba", ""), "four", where)
    return r, g, b, a


def _vector(element: ElementTree.Element, key: str, where: str) -> Vector3:
    x, y, z = _floats(element, key, element.get(key, "0 0 0"), "three", where)
    return x, y, z


def _floats(element: ElementTree.Element, key: str, text: str, many: str, where: str) -> list[float]:
    number = {"three": 3, "four": 4}[many]
    try:
        found = [float(part) for part in text.split()]
    except ValueError:
        found = []
    if len(found) != number or not all(map(math.isfinite, found)):
        raise UserError(f"{where}: {element.tag} has {key}={text!r}; expected {many} numbers")
    return found


def _number(element: ElementTree.Element, key: str, default: float, where: str) -> float:
    text = element.get(key)
    if text is None:
        return default
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if math.isnan(found) or (math.isinf(found) and key not in ("lower", "upper")):  # who turns on and on may say so
        raise UserError(f"{where}: {element.tag} has {key}={text!r}; expected a number")
    return found


def _numbers(values: Iterable[float]) -> str:
    return " ".join(f"{value + 0.0:.6g}" for value in (round(value, 7) for value in values))
