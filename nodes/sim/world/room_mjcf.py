"""A world of one seed as MJCF: room, furniture, things and a person; a robot is put into it.

For a camera there is more than for physics: handles, lids, what is in a glass, stains. None of it weighs or collides.
"""

from __future__ import annotations

import math
import random
import xml.etree.ElementTree as ElementTree
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from nodes.sim.messages import ObjectTruth, Truth
from nodes.sim.world.world_file import NORMALS, Kind, Laid, Layout, Obstacle, Place, Rgb, RoomSize

PHYSICS_STEP_S = 0.004
COLLISION_STATIC = 'contype="1" conaffinity="6"'
COLLISION_THING = 'contype="4" conaffinity="6"'
COLLISION_NONE = 'contype="0" conaffinity="0"'
CAMERA_FOVY_DEG = {"head": 55.0, "wrist": 58.0, "room": 50.0}
"""Vertical field of view, pinhole, square pixels."""
ROOM_CAMERA_M, ROOM_CAMERA_TARGET_M = (1.70, -1.38, 1.55), (0.02, -0.22, 0.50)
"""A camera in the corner of the room, for people to watch: no policy looks through it."""
TILE_SIZE_M, FLOOR_HALF_M = 0.4, 4.0
_THICK_M = 0.008
_STAIN = "0.27 0.17 0.08 1"
_LIQUIDS = {"water": "0.36 0.56 0.80 1", "coffee": "0.20 0.11 0.06 1", "cream": "0.96 0.93 0.84 1"}


def build_room(layout: Layout, shown: Truth | None = None, *, robot: str = "", beside: str = "") -> str:
    """Room, furniture, things and a person, and what a robot adds: its bodies, and more tables of the model.

    `shown`: as a camera sees them then.
    """
    # One body each, though nothing moves: ray casting passes over a body that is elsewhere as a whole.
    bodies = [_body(name, _place(name, place, layout.rgb[name])) for name, place in layout.world.places.items()]
    bodies += [_body(name, _obstacle(name, x, y, one)) for name, x, y, one in layout.obstacles]
    things_now = {one.name: one for one in (shown.objects if shown is not None else ())}
    bodies += [_thing(one, layout, things_now.get(one.thing.name)) for one in layout.things]
    if shown is not None:
        bodies += [_spilt(name, layout.world.places[name]) for name in shown.dirty_places]
    shapes = {one.get("name"): texts_of(one) for one in model_file("person.xml")[0]}
    shapes["hand"] = shapes[layout.world.hand_shape]
    bodies += [_body(part, shapes[part], f' mocap="true" pos="{join_numbers(at)}"')
               for part, at in layout.world.person.items()]  # fmt: skip
    repeat, lamp = FLOOR_HALF_M / TILE_SIZE_M, layout.lamp
    return f"""<mujoco model="polyrhythm room">
<compiler angle="radian" autolimits="true"/>
<option timestep="{PHYSICS_STEP_S}" integrator="implicitfast" cone="elliptic" impratio="5"
 jacobian="dense">
<flag sleep="enable"/></option>
<visual><headlight ambient="0.45 0.45 0.45" diffuse="0.35 0.35 0.35" specular="0 0 0"/>
<quality shadowsize="0"/><map znear="0.005" zfar="20"/></visual>
<asset>
<texture name="tiles" type="2d" builtin="checker" rgb1="{join_numbers(layout.floor[0])}"
 rgb2="{join_numbers(layout.floor[1])}" width="64" height="64"/>
<material name="tiles" texture="tiles" texrepeat="{repeat} {repeat}" reflectance="0"/>
</asset>
<worldbody>
<light name="lamp" pos="0.3 0.2 2.6" dir="0 -0.25 -1" directional="true"
 diffuse="{lamp} {lamp} {lamp}" specular="0 0 0"/>
{_room_camera_xml()}
{_walls(layout.world.room, layout.rgb["wall"])}
{"".join(bodies)}
{robot}
</worldbody>
{beside}
</mujoco>"""


@cache
def model_file(name: str) -> ElementTree.Element:
    """An MJCF file beside this one."""
    return ElementTree.parse(Path(__file__).with_name(name)).getroot()


def texts_of(table: ElementTree.Element) -> str:
    """What is in it."""
    return "".join(ElementTree.tostring(one, "unicode") for one in table)


def _room_camera_xml() -> str:
    back = np.subtract(ROOM_CAMERA_M, ROOM_CAMERA_TARGET_M)
    right = np.cross((0.0, 0.0, 1.0), back)
    axes = join_numbers((*right.tolist(), *np.cross(back, right).tolist()))
    return f'<camera name="room" pos="{join_numbers(ROOM_CAMERA_M)}" xyaxes="{axes}" fovy="{CAMERA_FOVY_DEG["room"]}"/>'


def join_numbers(numbers: tuple[float, ...]) -> str:
    """Numbers as an MJCF attribute."""
    return " ".join(f"{number:.6g}" for number in numbers)


def box(name: str, centre: tuple[float, float, float], half: tuple[float, float, float], rgb: Rgb, more: str) -> str:
    """One box geom."""
    place, size, colour = join_numbers(centre), join_numbers(half), join_numbers(rgb)
    return f'<geom name="{name}" type="box" pos="{place}" size="{size}" rgba="{colour} 1" {more}/>'


def _body(name: str, geoms: str, more: str = "") -> str:
    return f'<body name="{name}"{more}>{geoms}</body>'


def _walls(room: RoomSize, rgb: Rgb) -> str:
    size = join_numbers((FLOOR_HALF_M, FLOOR_HALF_M, 0.1))
    parts = [f'<geom name="floor" type="plane" size="{size}" material="tiles" {COLLISION_STATIC}/>']
    for side in room.walls:
        is_along_x = side in ("south", "north")
        (low, high), ends = (room.x_m, room.y_m) if is_along_x else (room.y_m, room.x_m)
        sign, end = (1.0, ends[1]) if side in ("north", "east") else (-1.0, ends[0])
        for name, aside, up, thick, tall, colour, how in (
            ("wall", end + sign * 0.05, 1.2, 0.05, 1.2, rgb, COLLISION_STATIC),
            ("skirting", end - sign * 0.005, 0.05, 0.008, 0.05, room.skirting, COLLISION_NONE),
        ):
            (x, half_x), (y, half_y) = ((low + high) / 2, (high - low) / 2), (aside, thick)
            if not is_along_x:
                x, half_x, y, half_y = y, half_y, x, half_x
            if colour is not None:
                parts.append(box(f"{name}_{side}", (x, y, up), (half_x, half_y, tall), colour, how))
    return "".join(parts)


def _place(name: str, place: Place, rgb: Rgb) -> str:
    (x, y), dark = place.centre_m, _darker(rgb)
    half_x, half_y = (place.x_m[1] - place.x_m[0]) / 2, (place.y_m[1] - place.y_m[0]) / 2
    id_ = name.replace(" ", "_")
    if place.form == "flat":
        top = box(f"{id_}_top", (x, y, place.z_m - 0.015), (half_x, half_y, 0.015), rgb,
                  COLLISION_STATIC + ' friction="0.9 0.01 0.001"')  # fmt: skip
        half = (place.z_m - 0.03) / 2
        foot = box(f"{id_}_stand", (x, y, half), (0.8 * half_x, 0.8 * half_y, half), dark, COLLISION_STATIC)
        if place.legs:
            corners = [(i, j) for i in (-1, 1) for j in (-1, 1)]
            foot = "".join(
                box(f"{id_}_leg_{number}", (x + i * (half_x - 0.04), y + j * (half_y - 0.04), half), (0.02, 0.02, half),
                    dark, COLLISION_STATIC)
                for number, (i, j) in enumerate(corners)
            )  # fmt: skip
        spout = ""
        if place.fills:
            spout = box(f"{id_}_spout", (x, place.y_m[1] + 0.08, 0.62), (half_x, 0.06, 0.12), rgb, COLLISION_NONE)
            spout += box(f"{id_}_nose", (x, y + 0.02, 0.73), (0.02, 0.10, 0.015), dark, COLLISION_NONE)
        return top + foot + spout
    rim, floor = place.z_m, place.floor_z_m
    middle, half_z = (rim + floor) / 2, (rim - floor) / 2
    parts = [
        box(f"{id_}_floor", (x, y, floor - 0.006), (half_x, half_y, 0.006), dark, COLLISION_STATIC),
        box(f"{id_}_stand", (x, y, (floor - 0.012) / 2), (0.7 * half_x, 0.7 * half_y, (floor - 0.012) / 2), dark,
            COLLISION_STATIC),
        # A thing that is dropped would sink into a floor so thin, and be held there: this one, unseen, is not.
        f'<geom name="{id_}_ground" type="box" pos="{x} {y} {floor - floor / 4}" '
        f'size="{half_x} {half_y} {floor / 4}" rgba="0 0 0 0" {COLLISION_STATIC}/>',
    ]  # fmt: skip
    for side in ("east", "west", "north", "south"):
        nx, ny = NORMALS[side]
        thick = (_THICK_M, half_y, half_z) if nx else (half_x, _THICK_M, half_z)
        parts.append(box(f"{id_}_{side}", (x + nx * half_x, y + ny * half_y, middle), thick, rgb, COLLISION_STATIC))
    if place.ridge:
        parts.append(
            f'<geom name="{id_}_ridge" type="capsule" pos="{x} {y} {floor}" euler="{math.pi / 2} 0 0" '
            f'size="0.025 {half_y - 0.03}" rgba="{join_numbers(dark)} 1" {COLLISION_STATIC}/>'
        )
    if place.washes:
        at, size = (x, place.y_m[1] - 0.02, rim + 0.10), (0.012, 0.012, 0.10)
        parts.append(box(f"{id_}_tap", at, size, (0.8, 0.8, 0.82), COLLISION_NONE))
    return "".join(parts)


def _obstacle(name: str, x: float, y: float, one: Obstacle) -> str:
    return (
        f'<geom name="{name}" type="cylinder" pos="{x:.4g} {y:.4g} {one.height_m / 2}" '
        f'size="{one.radius_m} {one.height_m / 2}" rgba="{join_numbers(one.rgb)} 1" {COLLISION_STATIC}/>'
    )


def _thing(laid: Laid, layout: Layout, now: ObjectTruth | None) -> str:
    thing, kind = laid.thing, layout.world.kinds[laid.spec.kind]
    radius, half, name = thing.width_m / 2, thing.height_m / 2, thing.name
    colour = f'rgba="{join_numbers(thing.rgb)} 1"'
    dark = f'rgba="{join_numbers(_darker(thing.rgb, kind.neck_shade))} 1"'
    contact = f'{COLLISION_THING} mass="{thing.mass_kg}" friction="1.0 0.01 0.001" solref="0.008 1"'
    match kind.shape:
        case "cylinder":
            geoms = f'<geom name="{name}" type="cylinder" size="{radius} {half}" {colour} {contact}/>'
            inner = radius - 0.006
            geoms += (
                f'<geom name="{name}_top" type="cylinder" size="{inner} 0.0008" pos="0 0 {half}" {dark} mass="0" '
                f"{COLLISION_NONE}/>"
            )
        case "ball":
            geoms = (
                f'<geom name="{name}" type="sphere" size="{radius}" {colour} {contact}/>'
                f'<geom name="{name}_foot" type="cylinder" size="0.022 0.003" pos="0 0 {-half + 0.003}" {colour} '
                f'{COLLISION_THING} mass="0.02" friction="1.0 0.01 0.001"/>'
            )
        case "box":
            geoms = f'<geom name="{name}" type="box" size="{radius} {kind.depth_m / 2} {half}" {colour} {contact}/>'
        case "bottle":
            body_half = 0.72 * half
            geoms = (
                f'<geom name="{name}" type="cylinder" size="{radius} {body_half}" pos="0 0 {body_half - half}" '
                f'{colour} {contact}/><geom name="{name}_neck" type="cylinder" size="0.016 {half - body_half}" '
                f'pos="0 0 {body_half}" {dark} {COLLISION_THING} mass="0.01"/>'
            )
    if now is not None:
        geoms += _looks(kind, radius, half, thing.rgb, now)
    place = join_numbers((thing.x_m, thing.y_m, thing.z_m))
    return f'<body name="{name}" pos="{place}"><freejoint name="{name}_free"/>{geoms}</body>'


def _looks(kind: Kind, radius: float, half: float, rgb: Rgb, now: ObjectTruth) -> str:
    """What a camera sees of a thing besides its body."""
    colour, parts = f"{join_numbers(rgb)} 1", ""
    if kind.vessel and kind.handle:
        bow = ((0.0, 0.5), (0.022, 0.35), (0.02, -0.4), (0.0, -0.5))
        for one, other in pairwise((radius + out, 0, up * half) for out, up in bow):
            parts += _shown("capsule", (0.007,), colour, fromto=(*one, *other))
    if kind.lid and not now.is_open:
        parts += _shown("cylinder", (radius + 0.002, 0.006), f"{join_numbers(_lighter(rgb))} 1", pos=(0, 0, half))
    if now.fill > 0.0 and now.contents:
        liquid = _LIQUIDS.get(now.contents[-1], _LIQUIDS["water"])
        surface = (radius - 0.006) * (0.6 + 0.4 * now.fill)
        parts += _shown("cylinder", (surface, 0.0012), liquid, pos=(0, 0, half + 0.0008))
        if kind.clear:
            height = half * now.fill
            parts += _shown("cylinder", (radius + 0.0006, height), liquid, pos=(0, 0, height - half))
    if now.is_dirty:
        spots = random.Random(now.name)
        for number in range(7):
            turn, share = 2 * math.pi * (number + 0.3 * spots.random()) / 7, spots.uniform(-0.8, 0.8)
            beside, up = (radius, share * half)
            if kind.shape == "ball":
                beside, up = radius * math.sqrt(1 - share * share), radius * share
            elif half < 0.3 * radius:  # flat: on it
                beside, up = radius * abs(share), half
            at = (beside * math.cos(turn), beside * math.sin(turn), up)
            parts += _shown("sphere", (spots.uniform(0.008, 0.013),), _STAIN, pos=at)
    return parts


def _spilt(name: str, place: Place) -> str:
    """Stains on a place."""
    drawn = random.Random(name)
    return "".join(
        _shown(
            "cylinder",
            (drawn.uniform(0.018, 0.036), 0.0007),
            _STAIN,
            pos=(drawn.uniform(*place.x_m) * 0.94, drawn.uniform(place.y_m[0] + 0.04, place.y_m[1] - 0.04), place.z_m),
        )
        for _ in range(7)
    )


def _shown(shape: str, size: tuple[float, ...], rgba: str, **where: tuple[float, ...]) -> str:
    """A geom for cameras alone; `where` is `pos` or `fromto`."""
    at = " ".join(f'{key}="{join_numbers(value)}"' for key, value in where.items())
    return f'<geom type="{shape}" size="{join_numbers(size)}" {at} rgba="{rgba}" mass="0" {COLLISION_NONE}/>'


def _lighter(rgb: Rgb) -> Rgb:
    return tuple(0.45 + 0.55 * part for part in rgb)  # type: ignore[return-value]  # three of three


def _darker(rgb: Rgb, shade: float = 0.55) -> Rgb:
    return rgb[0] * shade, rgb[1] * shade, rgb[2] * shade
