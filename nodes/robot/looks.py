"""`Looks`: how a robot looks and where each of its links is, for viewers; from its URDF or its robot file."""

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
from runtime.launch.nodes_table import load_name

ODOMETRY, BASE = "odometry", "base"
"""Frames that every robot has: where its odometry began, and where it is now."""
HANDS = ("hand", "grasp", "tool0")
"""What the link between the fingertips may be called in a URDF."""

Carriers = Mapping[str, tuple[tuple[str, float, float], ...]]
"""Of a joint of the graph: the joints of the URDF that it moves, each times a factor, and what is added to that."""


@dataclass(frozen=True, slots=True)
class Looks:
    """`joints` are those of joint vectors, in their order; `mount` is the root's frame in the base's (4, 4)."""

    urdf: Urdf
    joints: tuple[str, ...]
    carriers: Carriers = field(default_factory=dict)  # {}: each moves the joint of its own name
    mount: Floats = field(default_factory=lambda: np.eye(4))
    hand: str = ""
    read_mesh: Callable[[str], bytes] | None = None
    """The bytes of a mesh by the name that the URDF has for it. Raises UserError where they are not there."""

    def positions(self, position: Iterable[float]) -> dict[str, float]:
        """Positions of the URDF's joints for a joint vector."""
        found: dict[str, float] = {}
        for name, value in zip(self.joints, position, strict=True):
            for carrier, factor, offset in self.carriers.get(name, ((name, 1.0, 0.0),)):
                found[carrier] = factor * value + offset
        return found

    def transforms(self, position: Iterable[float]) -> list[tuple[str, str, Vector3, Quaternion]]:
        """Parent, child, place and turn of every link but the base, which comes first of the parents."""
        rows = self.urdf.transforms(self.positions(position))
        if self.urdf.root != BASE:
            rows.insert(0, (BASE, self.urdf.root, self.mount))
        return [(parent, child, _place(pose), quaternion(pose[:3, :3])) for parent, child, pose in rows]

    def point(self, position: Iterable[float]) -> Vector3:
        """Where its hand is, base frame; m. Only where `hand` is known."""
        positions, pose = self.positions(position), self.mount
        for joint in self.urdf.way_to(self.hand):
            pose = product(pose, joint.moved(joint.value(positions)))
        return _place(pose)


def looks_of(robot: str) -> Looks | None:
    """Those of what `[run] robot` names, "": a Stretch; None where its limits name no URDF.

    Raises UserError where a file of it cannot be read.
    """
    if is_file(robot):
        of_file: Looks = load_name("nodes.robot_file.looks:looks_of_file")(robot)
        return of_file
    try:
        limits = load_limits(robot or DEFAULT)
    except ParameterError as problem:
        raise UserError(str(problem)) from problem
    if not limits.urdf:
        return None
    path = _path_of(limits.urdf)
    try:
        urdf = parse_urdf(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as problem:
        raise UserError(f"{path}: cannot be read ({problem}); expected a URDF") from problem
    joints = joint_names(limits)
    known = {joint.name for joint in urdf.joints}
    if lacking := [name for name in joints if name not in known]:
        raise UserError(f"{path}: has no joint {', '.join(lacking)}, which the limits {robot!r} name")
    urdf = free_of(urdf, {ODOMETRY} if urdf.root == BASE else {ODOMETRY, BASE})
    hand = next((link for link in HANDS if link in urdf.links), "")
    return Looks(urdf, joints, hand=hand, read_mesh=lambda name: read_beside(path, name))


def free_of(urdf: Urdf, taken: Iterable[str]) -> Urdf:
    """The same robot, its links called NAME_link where a camera or another frame has their name; in the same order."""
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
    """NAME_link, or NAME_link_2 and so on: the first that nobody has."""
    others, name, number = set(taken), f"{link}_link", 2
    while name in others:
        name, number = f"{link}_link_{number}", number + 1
    return name


def mesh_path(file: Path, named: str) -> Path | None:
    """Where a mesh lies that a file names: `package://a/meshes/b.stl` is b.stl in the nearest folder that has it."""
    tails = [
        Path(*parts[start:])
        for parts in (Path(path).parts for path in (named.partition("://")[2] or named, unquote(named)))
        for start in range(len(parts))
    ]
    places = (folder / tail for folder in (file.parent, file.parent.parent) for tail in tails)
    return next((place.resolve() for place in places if place.is_file()), None)


def read_beside(file: Path, named: str) -> bytes:
    """A mesh. Raises UserError where it is missing."""
    place = mesh_path(file, named)
    try:
        if place is not None:
            return place.read_bytes()
    except OSError as problem:
        raise UserError(f"{place}: cannot be read ({problem.strerror})") from problem
    raise UserError(f"{file}: mesh {named!r}: there is no such file beside it; put it there")


def _path_of(name: str) -> Path:
    package, colon, file = name.partition(":")
    if not colon:
        return Path(name)
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise UserError(f"urdf {name!r}: there is no package {package!r}; expected 'package:file.urdf', or a path")
    return Path(next(iter(found.submodule_search_locations))) / file


def _place(pose: Floats) -> Vector3:
    x, y, z = pose[:3, 3].tolist()
    return x, y, z
