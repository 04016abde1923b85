"""How a robot from a file looks: a URDF as it stands, an MJCF as the URDF that it comes down to."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from nodes.robot.looks import BASE, ODOMETRY, Looks, free_name, free_of, read_beside
from nodes.robot.products import product
from nodes.robot.urdf import Floats, Joint, Quaternion, Rgba, Shape, Urdf, Vector3, frame, in_order, parse_urdf, turned
from nodes.robot_file.body import camera_axes
from nodes.robot_file.engine import mujoco
from nodes.robot_file.model import load_robot, ties
from nodes.robot_file.table import model_path
from runtime.serialization.toml_errors import read_text

SHOWN_GROUPS = 3
"""Geoms of the groups below this are what a person sees, as in MuJoCo's own viewer."""
UNPAINTED = (0.5, 0.5, 0.5, 1.0)
"""MuJoCo's colour of a geom that says none: its material's counts then."""
_KINDS = {int(mujoco.mjtJoint.mjJNT_HINGE): "revolute", int(mujoco.mjtJoint.mjJNT_SLIDE): "prismatic"}


def looks_of_file(name: str) -> Looks:
    """Raises UserError."""
    robot = load_robot(name)
    file = model_path(robot.path, robot.table)
    cameras = set(robot.table.cameras)
    if robot.table.base is None:
        mount = frame(robot.table.mount_m, turned((0.0, 0.0, 1.0), robot.table.yaw_rad))
    else:
        mount = frame((0.0, 0.0, robot.table.mount_m[2]), np.eye(3))
    if file.suffix.lower() == ".urdf" or _is_urdf(file):
        named = parse_urdf(read_text(file), str(file))
        meshes = None
    else:
        model = robot.spec().compile()
        named, meshes = urdf_of_model(model, file.stem)
    urdf = free_of(named, {ODOMETRY, BASE, *cameras})
    links = dict(zip(named.links, urdf.links, strict=True))
    extra = [
        Joint(f"{camera}_camera", "fixed", links[table.link], camera, frame(table.place_m, camera_axes(table)))
        for camera, table in robot.table.cameras.items()
    ]
    urdf = in_order(urdf.name, {**urdf.shapes, **dict.fromkeys(cameras, ())}, (*urdf.joints, *extra), str(file))
    carriers = {one.limit.name: tuple((name, one.factor, one.offset) for name in one.carriers) for one in robot.driven}
    return Looks(
        urdf, tuple(carriers), carriers=carriers, mount=mount,
        hand=links.get(robot.table.hand, ""),
        read_mesh=(lambda mesh: meshes[mesh]) if meshes is not None else (lambda mesh: read_beside(file, mesh)),
    )  # fmt: skip


def urdf_of_model(
    model: mujoco.MjModel, name: str, root: str = "", plane: tuple[str, ...] = ()
) -> tuple[Urdf, dict[str, bytes]]:
    """A model as a URDF, and the bytes of its meshes (STL) by name.

    `root` is the body that it begins with ("": all that stands in the world); joints of the `plane` are left out: the
    base's own way over the floor. Cameras and sites become links without a shape; a body that has the name of a camera
    is called NAME_link. An equality of joints becomes the joint that mimics; of a polynomial its straight part.
    """
    start = model.body(root).id if root else 0
    cameras = [model.camera(number).name or f"camera_{number}" for number in range(model.ncam)]
    bodies = [start, *(one for one in range(start + 1, model.nbody) if _is_below(model, one, start))]
    names = {0: "world"}
    taken = {*cameras, *(model.body(body).name for body in bodies)}
    for body in bodies:
        called = model.body(body).name or f"body_{body}"
        is_free = called not in (cameras if model.body(body).name else taken)
        names[body] = called if is_free else free_name(called, taken)
        taken.add(names[body])
    mimics = {one: (model.joint(leader).name, how[1], how[0]) for one, (leader, how) in ties(model).items()}
    meshes: dict[str, bytes] = {}
    shapes: dict[str, tuple[Shape, ...]] = {}
    joints: list[Joint] = []
    for body in bodies:
        shapes[names[body]] = tuple(_shapes(model, body, meshes))
        if body != start:
            joints += _joints_of(model, body, names, mimics, plane)
    for joint in joints:
        shapes.setdefault(joint.child, ())
    for number, camera in enumerate(cameras):
        body = int(model.cam_bodyid[number])
        if body in bodies and body != 0:
            optical = _rotation(model.cam_quat[number]) * (1.0, -1.0, -1.0)
            pose = frame(model.cam_pos[number], optical)
            joints.append(Joint(f"{camera}_camera", "fixed", names[body], camera, pose))
            shapes[camera] = ()
    for number in range(model.nsite):
        site, body = model.site(number), int(model.site_bodyid[number])
        if body in bodies and site.name and site.name not in shapes:
            pose = frame(site.pos, _rotation(model.site_quat[number]))
            joints.append(Joint(f"{site.name}_site", "fixed", names[body], site.name, pose))
            shapes[site.name] = ()
    return in_order(name, shapes, joints, name), meshes


def _joints_of(
    model: mujoco.MjModel,
    body: int,
    names: dict[int, str],
    mimics: dict[int, tuple[str, float, float]],
    plane: tuple[str, ...],
) -> Iterator[Joint]:
    """From its parent to a body: one joint each, with links without a shape between them where it has several."""
    parent, child = names[int(model.body_parentid[body])], names[body]
    here = frame(model.body_pos[body], _rotation(model.body_quat[body]))
    first = int(model.body_jntadr[body])
    numbers = [
        number
        for number in range(first, first + int(model.body_jntnum[body]))
        if int(model.jnt_type[number]) in _KINDS and model.joint(number).name not in plane
    ]
    if not numbers:
        yield Joint(f"{child}_fixed", "fixed", parent, child, here)
        return
    back = np.eye(4)
    for number in numbers:
        kind, name = _KINDS[int(model.jnt_type[number])], model.joint(number).name
        axis: Vector3 = tuple(model.jnt_axis[number].tolist())
        at = frame(model.jnt_pos[number], np.eye(3))
        bare = Joint(name, kind, "", "", np.eye(4), axis=axis)
        reference = float(model.qpos0[model.jnt_qposadr[number]])
        link = child if number == numbers[-1] and not model.jnt_pos[number].any() else f"{child}_by_{name}"
        lowest, highest = model.jnt_range[number].tolist()
        origin = product(product(here, back), product(at, bare.moved(-reference)))
        yield Joint(name, kind, parent, link, origin, axis, lowest, highest, mimics.get(number))
        parent, here, back = link, np.eye(4), frame(-model.jnt_pos[number], np.eye(3))
    if parent != child:
        yield Joint(f"{child}_fixed", "fixed", parent, child, back)


def _shapes(model: mujoco.MjModel, body: int, meshes: dict[str, bytes]) -> Iterator[Shape]:
    geoms = [
        number
        for number in np.flatnonzero(model.geom_bodyid == body).tolist()
        if model.geom_type[number] != mujoco.mjtGeom.mjGEOM_PLANE
    ]
    for number in [one for one in geoms if model.geom_group[one] < SHOWN_GROUPS] or geoms:
        rgba = _colour(model, number)
        if rgba[3] == 0.0:
            continue
        a, b, c = (float(part) for part in model.geom_size[number])
        place: Vector3 = tuple(model.geom_pos[number].tolist())
        w, x, y, z = (float(part) for part in model.geom_quat[number])
        turn: Quaternion = (x, y, z, w)
        match int(model.geom_type[number]):
            case mujoco.mjtGeom.mjGEOM_BOX:
                yield Shape("box", (2 * a, 2 * b, 2 * c), place, turn, rgba)
            case mujoco.mjtGeom.mjGEOM_CYLINDER:
                yield Shape("cylinder", (a, 2 * b, 0.0), place, turn, rgba)
            case mujoco.mjtGeom.mjGEOM_SPHERE:
                yield Shape("sphere", (a, 0.0, 0.0), place, turn, rgba)
            case mujoco.mjtGeom.mjGEOM_ELLIPSOID:
                yield Shape("sphere", ((a + b + c) / 3, 0.0, 0.0), place, turn, rgba)
            case mujoco.mjtGeom.mjGEOM_CAPSULE:
                yield Shape("cylinder", (a, 2 * b, 0.0), place, turn, rgba)
                along = _rotation(model.geom_quat[number])[:, 2] * b
                for end in (model.geom_pos[number] + along, model.geom_pos[number] - along):
                    yield Shape("sphere", (a, 0.0, 0.0), tuple(end.tolist()), rgba=rgba)
            case mujoco.mjtGeom.mjGEOM_MESH:
                mesh = int(model.geom_dataid[number])
                called = f"{model.mesh(mesh).name or mesh}.stl"
                meshes.setdefault(called, _stl(model, mesh))
                yield Shape("mesh", (1.0, 1.0, 1.0), place, turn, rgba, called)


def _colour(model: mujoco.MjModel, geom: int) -> Rgba:
    rgba = model.geom_rgba[geom].tolist()
    material = int(model.geom_matid[geom])
    if material >= 0 and tuple(rgba) == UNPAINTED:
        rgba = model.mat_rgba[material].tolist()
    r, g, b, a = (round(part, 4) for part in rgba)
    return r, g, b, a


def _stl(model: mujoco.MjModel, mesh: int) -> bytes:
    """A mesh as MuJoCo has it after reading, binary STL."""
    first, number = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
    corners = model.mesh_vert[first : first + number]
    first, number = int(model.mesh_faceadr[mesh]), int(model.mesh_facenum[mesh])
    triangles = corners[model.mesh_face[first : first + number]].astype("<f4")  # (n, 3, 3)
    rows = np.zeros(number, dtype=[("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("more", "<u2")])
    rows["corners"] = triangles
    normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    rows["normal"] = normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
    return b"\0" * 80 + struct.pack("<I", number) + rows.tobytes()


def _rotation(quat: np.ndarray) -> Floats:
    found = np.zeros(9)
    mujoco.mju_quat2Mat(found, quat)
    return found.reshape(3, 3)


def _is_below(model: mujoco.MjModel, body: int, above: int) -> bool:
    while body and body != above:
        body = int(model.body_parentid[body])
    return body == above


def _is_urdf(file: Path) -> bool:
    return "<robot" in file.read_text(encoding="utf-8", errors="replace")[:4000]
