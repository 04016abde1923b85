"""Cut-outs with what they show, from drawn scenes: python -m examples.train_eyes.cuts OUT.npz [--scenes N] [--rooms N]

Half of them are the scenes of `scenes` (OpenGL: meshes, textures, light), half are the kitchen that the simulated robot
sees (cast rays). A group of which less than half the pixels are of one thing is "other".
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Iterator
from pathlib import Path

import msgspec
import mujoco
import numpy as np
from numpy.typing import NDArray

from examples.train_eyes.scenes import FOCAL_PX, Shown, views_of
from examples.train_eyes.shapes import Split
from nodes.msgs import JOINTS, RobotState
from nodes.perception.point_cloud import Shot
from nodes.sim.camera import FARTHEST_M
from nodes.sim.messages import BodyPart, ObjectTruth, Truth
from nodes.sim.rendering.renderer import RayRenderer
from nodes.sim.robot import SimRobot
from nodes.sim.world.mjcf import build_stretch
from nodes.sim.world.world_file import ThingSpec, WorldFile, lay_out, load_world
from nodes.stretch.body import BODY
from nodes.stretch.kinematics import look_at
from nodes.vlm.room.blobs import Blob, look, map_of
from nodes.vlm.room.crops import COLOURS, CONTENTS, KINDS, cut_out
from runtime.errors import UserError

Label = tuple[int, int, int, int, int, int]
"""Kind, colour, fill, contents, dirty, open; -1 where nothing is asked."""
NOTHING: Label = (len(KINDS) - 1, -1, -1, -1, -1, -1)
NEAR_M = 0.04
WIDTH, HEIGHT = 480, 360
SMALL = ("tray", "sink", "bin", "coffee machine")
PLACES = (*SMALL, "shelf", "countertop", "countertop", "table", "table", "table")


def label_of(shown: Shown) -> Label:
    """What the network is to say of it."""
    if shown.kind == "other":
        return NOTHING
    level = 0 if shown.fill == 0 else 2 if shown.fill > 0.8 else 1
    is_vessel = shown.kind in ("mug", "glass")
    return (
        KINDS.index(shown.kind), COLOURS.index(shown.colour), level if is_vessel else -1,
        CONTENTS.index(shown.contents) if level else -1, int(shown.is_dirty),
        int(shown.is_open) if shown.kind == "cookie jar" else -1,
    )  # fmt: skip


def whose(blob: Blob, pixels: NDArray[np.int16]) -> int:
    """The number of the thing that most of a group is of; -1 for none."""
    numbers, counts = np.unique(pixels.reshape(-1)[blob.pixels], return_counts=True)
    return int(numbers[counts.argmax()]) if counts.max() > len(blob.pixels) / 2 else -1


def from_scenes(
    first: int, last: int, split: Split = "train"
) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.float32], Label]]:
    """Of the scenes of these seeds."""
    for seed in range(first, last):
        for view in views_of(seed, split):
            seen = look(view.rgb, Shot(view.depth_m, FOCAL_PX, view.rotation, view.position), view.room)
            for blob in seen.blobs:
                number = whose(blob, view.whose)
                label = label_of(view.things[number]) if number >= 0 else NOTHING
                yield *cut_out(blob, view.rgb, view.depth_m), label


def specs_of(drawn: random.Random) -> list[ThingSpec]:
    """Some things anywhere in the kitchen."""
    kitchen, names = load_world(), set()
    specs: list[ThingSpec] = []
    for _ in range(drawn.randint(7, 11)):
        kind = drawn.choice(list(kitchen.kinds))
        colour = drawn.choice(kitchen.kinds[kind].colours)
        if (kind, colour) in names:
            continue
        names.add((kind, colour))
        places = [one for one in PLACES if one not in SMALL or all(spec.at != one for spec in specs)]
        at = drawn.choice(places)
        specs.append(ThingSpec(kind=kind, colour=colour, at=at))
    return specs


def changed(one: ObjectTruth, drawn: random.Random) -> ObjectTruth:
    """The thing with another state."""
    kind = load_world().kinds[one.label]
    fill = drawn.choice((0.0, 0.0, 0.5, 1.0)) if kind.vessel else 0.0
    contents = (drawn.choice(("water", "coffee", "coffee", "cream")),) if fill else ()
    changed: ObjectTruth = msgspec.structs.replace(  # type: ignore[type-var]  # a Struct, but not to type checkers
        one, fill=fill, contents=contents, is_dirty=drawn.random() < 0.35,
        is_open=kind.lid and drawn.random() < 0.5,
    )  # fmt: skip
    return changed


def from_rooms(first: int, last: int) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.float32], Label]]:
    """Of the kitchen of these seeds, seen from where the robot works."""
    kitchen = load_world()
    room = map_of(kitchen)
    robot = SimRobot(scenario="kitchen")
    robot.start(0)
    state, nothing = robot.read(0), robot.truth()
    joints = {name: JOINTS.index(name) for name in ("lift", "arm", "head_pan", "head_tilt", "wrist_yaw")}
    for seed in range(first, last):
        drawn = random.Random(f"rooms/{seed}")
        try:
            layout = lay_out(kitchen, specs_of(drawn), seed)
        except UserError:
            continue  # more things than room
        things = tuple(
            changed(ObjectTruth(name=one.thing.name, label=one.spec.kind, colour=one.thing.colour, x_m=one.thing.x_m,
                                 y_m=one.thing.y_m, z_m=one.thing.z_m, width_m=one.thing.width_m,
                                 height_m=one.thing.height_m), drawn)
            for one in layout.things
        )  # fmt: skip
        dirty = ("table",) if drawn.random() < 0.5 else ()
        truth: Truth = msgspec.structs.replace(nothing, objects=things, dirty_places=dirty)  # type: ignore[type-var]
        model = mujoco.MjModel.from_xml_string(build_stretch(layout, truth))
        data = mujoco.MjData(model)
        renderer = RayRenderer(model, "head", WIDTH, HEIGHT, FARTHEST_M)
        for _ in range(3):
            place = kitchen.places[drawn.choice(("table", "table", "countertop", "sink", "shelf", "tray", "bin"))]
            x, y = place.centre_m
            stand = place.stand_m(
                x + drawn.uniform(-0.4, 0.4), y + (drawn.uniform(-0.4, 0.4) if place.side == "east" else 0)
            )
            if drawn.random() < 0.35:
                stand = (drawn.uniform(-0.5, 0.5), drawn.uniform(-0.1, 0.2), drawn.uniform(-0.2, 0.2))
            pan, tilt = look_at((x + drawn.uniform(-0.25, 0.25), y + drawn.uniform(-0.1, 0.1), place.z_m), *stand)
            position = list(state.position)
            for name, value in (("head_pan", pan), ("head_tilt", tilt), ("lift", drawn.uniform(0.4, 1.0)),
                                ("arm", drawn.choice((0.0, 0.0, drawn.uniform(0.0, 0.4))))):  # fmt: skip
                position[joints[name]] = value
                data.qpos[model.joint(name).qposadr[0]] = value
            for number in (1, 2, 3):
                data.qpos[model.joint(f"tube_{number}").qposadr[0]] = position[joints["arm"]] * number / 4
            for name, value in zip(("base_x", "base_y", "base_yaw"), stand, strict=True):
                data.qpos[model.joint(name).qposadr[0]] = value
            data.qpos[model.joint("wrist_yaw").qposadr[0]] = position[joints["wrist_yaw"]]
            part, shown_things = _hand(drawn, truth.objects), truth.objects
            if drawn.random() < 0.4:
                part, shown_things = _held_out(drawn, truth.objects, kitchen)
            for one in shown_things:
                at = model.joint(f"{one.name}_free").qposadr[0]
                data.qpos[at : at + 3] = one.x_m, one.y_m, one.z_m
            body = model.body("hand").mocapid[0]
            data.mocap_pos[body] = (part.x_m, part.y_m, part.z_m)
            cy, sy = math.cos(part.yaw_rad / 2), math.sin(part.yaw_rad / 2)
            cp, sp = math.cos(part.pitch_rad / 2), math.sin(part.pitch_rad / 2)
            data.mocap_quat[body] = (cy * cp, -sy * sp, cy * sp, sy * cp)
            mujoco.mj_kinematics(model, data)
            mujoco.mj_camlight(model, data)
            rgb, depth = renderer.render(data)
            there: RobotState = msgspec.structs.replace(  # type: ignore[type-var]  # as above
                state, position=tuple(position), base_x_m=stand[0], base_y_m=stand[1], base_heading_rad=stand[2]
            )
            rotation, camera = BODY.head_camera(there)
            seen = look(rgb, Shot(depth, renderer.focal_px, rotation, camera), room, BODY.own_parts(there))
            for blob in seen.blobs:
                near = min(shown_things, key=lambda one: math.dist((one.x_m, one.y_m), (blob.x_m, blob.y_m)))
                is_it = math.dist((near.x_m, near.y_m), (blob.x_m, blob.y_m)) < NEAR_M
                shown = Shown(near.label, near.colour if near.colour != "clear" else "", near.fill,
                              near.contents[0] if near.contents else "", near.is_dirty, near.is_open)  # fmt: skip
                yield *cut_out(blob, rgb, depth), label_of(shown) if is_it else NOTHING


def _hand(drawn: random.Random, things: tuple[ObjectTruth, ...]) -> BodyPart:
    """A person's hand somewhere, often beside a thing."""
    if drawn.random() < 0.4:
        return BodyPart(part="hand", x_m=1.75, y_m=-1.25, z_m=0.9)
    one = drawn.choice(things)
    away, up = drawn.choice(((0.13, 0.0), (0.26, 0.14), (0.1, 0.2), (0.0, 0.25)))
    side = -1.0 if one.y_m < 1.0 else 1.0
    return BodyPart(
        part="hand", x_m=one.x_m + drawn.uniform(-0.05, 0.05), y_m=one.y_m + side * away, z_m=one.z_m + up,
        yaw_rad=-side * math.pi / 2, pitch_rad=drawn.choice((0.0, 0.48)),
    )  # fmt: skip


def _held_out(
    drawn: random.Random, things: tuple[ObjectTruth, ...], kitchen: WorldFile
) -> tuple[BodyPart, tuple[ObjectTruth, ...]]:
    """A palm over the table with a thing on it."""
    place, one = kitchen.places["table"], drawn.choice(things)
    (x, y), z = place.centre_m, place.z_m + drawn.uniform(0.1, 0.3)
    x, y = x + drawn.uniform(-0.4, 0.4), y + drawn.uniform(-0.12, 0.12)
    palm = BodyPart(part="hand", x_m=x, y_m=y, z_m=z, yaw_rad=math.pi / 2 + drawn.uniform(-0.2, 0.2))
    shift = drawn.uniform(-0.02, 0.02), drawn.uniform(-0.02, 0.02), 0.016 + one.height_m / 2
    held: ObjectTruth = msgspec.structs.replace(one, x_m=x + shift[0], y_m=y + shift[1], z_m=z + shift[2])  # type: ignore[type-var]
    return palm, tuple(held if other is one else other for other in things)


def main() -> None:
    """Write them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--scenes", type=int, default=700)
    parser.add_argument("--rooms", type=int, default=1200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--split", choices=("train", "check"), default="train")
    asked = parser.parse_args()
    found = []
    for source in (
        from_rooms(asked.first, asked.first + asked.rooms),
        from_scenes(asked.first, asked.first + asked.scenes, asked.split),
    ):
        found += list(source)
        print(len(found), "cut-outs", flush=True)
    cuts, sizes, labels = zip(*found, strict=True)
    np.savez(asked.out, cuts=np.stack(cuts), sizes=np.stack(sizes), labels=np.array(labels, np.int16))


if __name__ == "__main__":
    main()
