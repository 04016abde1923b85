"""`Looks`: the shape of a robot and the pose of each of its links, for viewers; from its URDF or its robot file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote

import numpy as np

from nodes.robot.products import product
from nodes.robot.robot_from_launch import DEFAULT, is_file, joint_names, load_limits
from nodes.robot.urdf import Floats, Quaternion, Urdf, Vector3, parse_urdf, quaternion
from runtime.errors import ParameterError, UserError
from runtime.launch.tables.nodes_table import load_name
from runtime.serialization.toml_errors import read_text

ODOMETRY, BASE = "odometry", "base"
"""Frames of every robot: where its odometry began, and where its base is now."""
HANDS = ("hand", "grasp", "tool0")
"""Names that a URDF may give to the link between the fingertips."""

Carriers = Mapping[str, tuple[tuple[str, float, float], ...]]
"""For each joint of the graph, the URDF joints that it moves: their names, a factor, and an offset."""


@dataclass(frozen=True, slots=True)
class Looks:
    """A robot's URDF and how its links follow the joint vectors.

    `joints` are those of the joint vectors, in order. `mount` is the URDF root's pose in the base frame (4, 4).
    """

    urdf: Urdf
    joints: tuple[str, ...]
    carriers: Carriers = field(default_factory=dict)  # {}: each moves the joint of its own name
    mount: Floats = field(default_factory=lambda: np.eye(4))
    hand: str = ""
    read_mesh: Callable[[str], bytes] | None = None
    """Returns the bytes of a mesh by its name in the URDF. Raises UserError where it is missing."""

    def positions(self, position: Iterable[float]) -> dict[str, float]:
        """The positions of the URDF's joints, by name, for a joint vector in m or rad."""
        found: dict[str, float] = {}
        for name, value in zip(self.joints, position, strict=True):
            for carrier, factor, offset in self.carriers.get(name, ((name, 1.0, 0.0),)):
                found[carrier] = factor * value + offset
        return found

    def transforms(self, position: Iterable[float]) -> list[tuple[str, str, Vector3, Quaternion]]:
        """Parent, child, position in m and rotation of every link but the base, which is the first parent."""
        rows = self.urdf.transforms(self.positions(position))
        if self.urdf.root != BASE:
            rows.insert(0, (BASE, self.urdf.root, self.mount))
        return [(parent, child, _place(pose), quaternion(pose[:3, :3])) for parent, child, pose in rows]

    def point(self, position: Iterable[float]) -> Vector3:
        """The position of the hand in the base frame, m; only where `hand` is known."""
        positions, pose = self.positions(position), self.mount
        for joint in self.urdf.way_to(self.hand):
            pose = product(pose, joint.moved(joint.value(positions)))
        return _place(pose)


def looks_of(robot: str) -> Looks | None:
    """The looks of the robot that `[run] robot` names ("": a Stretch); None where its limits name no URDF.

    Raises UserError where one of its files cannot be read.
    """
    if is_file(robot):
        of_file: Looks = load_name("nodes.robot_file.as_urdf:looks_of_file")(robot)
        return of_file
    try:
        limits = load_limits(robot or DEFAULT)
    except ParameterError as problem:
        raise UserError(str(problem)) from problem
    if not limits.urdf:
        return None
    path = in_package(limits.urdf) or Path(limits.urdf)
    urdf = parse_urdf(read_text(path), str(path))
    joints = joint_names(limits)
    known = {joint.name for joint in urdf.joints}
    if lacking := [name for name in joints if name not in known]:
        raise UserError(f"{path}: has no joint {', '.join(lacking)}, which the limits {robot!r} name")
    urdf = free_of(urdf, {ODOMETRY} if urdf.root == BASE else {ODOMETRY, BASE})
    hand = next((link for link in HANDS if link in urdf.links), "")
    return Looks(urdf, joints, hand=hand, read_mesh=lambda name: read_beside(path, name))


def free_of(urdf: Urdf, taken: Iterable[str]) -> Urdf:
    """The same robot with links renamed to NAME_link where a camera or frame has their name; the order stays."""
    others = set(taken)
    names: dict[str, str] = {}
    for link in urdf.links:
        if link in others:
            names[link] = free_name(link, {*others, *urdf.links, *names.values()})
    if not names:
        return urdf
    return replace(
        urdf,
        root=names.get(urdf.root, urdf.root),
        joints=tuple(
            replace(joint, parent=names.get(joint.parent, joint.parent), child=names.get(joint.child, joint.child))
            for joint in urdf.joints
        ),
        shapes={names.get(link, link): shapes for link, shapes in urdf.shapes.items()},
    )


def free_name(link: str, taken: Iterable[str]) -> str:
    """The first free name of NAME_link, NAME_link_2 and so on."""
    others, name, number = set(taken), f"{link}_link", 2
    while name in others:
        name, number = f"{link}_link_{number}", number + 1
    return name


def mesh_path(file: Path, named: str) -> Path | None:
    """Where a mesh lies that a file names; None where it is missing.

    `package://a/meshes/b.stl` is found as b.stl in the nearest folder that has it.
    """
    tails = [
        Path(*parts[start:])
        for parts in (Path(path).parts for path in (named.partition("://")[2] or named, unquote(named)))
        for start in range(len(parts))
    ]
    places = (folder / tail for folder in (file.parent, file.parent.parent) for tail in tails)
    return next((place.resolve() for place in places if place.is_file()), None)


def read_beside(file: Path, named: str) -> bytes:
    """The bytes of a mesh that a file names. Raises UserError where it is missing."""
    place = mesh_path(file, named)
    try:
        if place is not None:
            return place.read_bytes()
    except OSError as problem:
        raise UserError(f"{place}: cannot be read ({problem.strerror})") from problem
    raise UserError(f"{file}: mesh {named!r}: there is no such file beside it; put it there")


def in_package(name: str) -> Path | None:
    """The file that "package:file" names; None for a path. Importing at most the packages around. Raises UserError."""
    package, colon, file = name.partition(":")
    if not colon or Path(name).is_file():
        return None
    try:
        found = find_spec(package)
    except (ImportError, ValueError) as problem:
        raise UserError(f"{name!r}: there is no package {package!r} ({problem})") from problem
    if found is None or not found.submodule_search_locations:
        raise UserError(f"{name!r}: there is no package {package!r}; install it, or name a file by its path")
    return Path(next(iter(found.submodule_search_locations))) / file


def _place(pose: Floats) -> Vector3:
    x, y, z = pose[:3, 3].tolist()
    return x, y, z
