"""The kitchen of one seed as one MJCF text, around the robot of `nodes.sim.mjcf`.

For a camera there is more than for physics: handles, lids, what is in a glass, stains. None of it weighs or collides.
"""

from __future__ import annotations

import math
import random

from nodes.kitchen.messages import KitchenThing, KitchenTruth
from nodes.kitchen.world import Kind, Laid, Layout, Obstacle, Place
from nodes.sim.mjcf import SimScene, build_around
from nodes.sim.table_scene import (
    COLLISION_NONE,
    COLLISION_PERSON,
    COLLISION_STATIC,
    COLLISION_THING,
    FLOOR_HALF_M,
    Rgb,
    box,
    join_numbers,
)

PARTS = ("hand", "foot", "body", "face")
"""What a person has that the robot can meet."""
PARKED_M = {
    "hand": (1.75, -1.25, 0.9),
    "foot": (1.80, -1.30, 0.04),
    "body": (1.75, -1.30, 0.75),
    "face": (1.75, -1.30, 1.5),
}
"""Where the person stands who has nothing to do."""
_THICK_M = 0.008
_STAIN = "0.27 0.17 0.08 1"
_LIQUIDS = {"water": "0.36 0.56 0.80 1", "coffee": "0.20 0.11 0.06 1", "cream": "0.96 0.93 0.84 1"}


def build_kitchen(layout: Layout, shown: KitchenTruth | None = None) -> SimScene:
    """Room, furniture, things and a person, with the robot among them; `shown`: as a camera sees them then."""
    world = [_walls(layout)]
    world += [_body(name, _place(name, place, layout.rgb[name])) for name, place in layout.kitchen.places.items()]
    world += [_body(name, _obstacle(name, x, y, one)) for name, x, y, one in layout.obstacles]
    things_now = {one.name: one for one in (shown.things if shown is not None else ())}
    world += [_thing(one, layout, things_now.get(one.thing.name)) for one in layout.things]
    if shown is not None:
        world += [_spilt(name, layout.kitchen.places[name]) for name in shown.dirty_places]
    world.append(_person())
    things = tuple(one.thing for one in layout.things)
    return build_around("\n".join(world), things, tiles=layout.floor, lamp=layout.lamp)


def _body(name: str, geoms: str) -> str:
    return f'<body name="{name}">{geoms}</body>'


def _walls(layout: Layout) -> str:
    (west, east), (south, north) = layout.kitchen.room.x_m, layout.kitchen.room.y_m
    rgb, middle_x, middle_y = layout.rgb["wall"], (west + east) / 2, (south + north) / 2
    half_x, half_y = (east - west) / 2, (north - south) / 2
    walls = {
        "south": ((middle_x, south - 0.05, 1.2), (half_x, 0.05, 1.2)),
        "north": ((middle_x, north + 0.05, 1.2), (half_x, 0.05, 1.2)),
        "west": ((west - 0.05, middle_y, 1.2), (0.05, half_y, 1.2)),
        "east": ((east + 0.05, middle_y, 1.2), (0.05, half_y, 1.2)),
    }
    size = join_numbers((FLOOR_HALF_M, FLOOR_HALF_M, 0.1))
    floor = f'<geom name="floor" type="plane" size="{size}" material="tiles" {COLLISION_STATIC}/>'
    return floor + "".join(box(f"wall_{name}", *where, rgb, COLLISION_STATIC) for name, where in walls.items())


def _place(name: str, place: Place, rgb: Rgb) -> str:
    (x, y), dark = place.centre_m, _darker(rgb)
    half_x, half_y = (place.x_m[1] - place.x_m[0]) / 2, (place.y_m[1] - place.y_m[0]) / 2
    id_ = name.replace(" ", "_")
    if place.form == "flat":
        top = box(f"{id_}_top", (x, y, place.z_m - 0.015), (half_x, half_y, 0.015), rgb,
                  COLLISION_STATIC + ' friction="0.9 0.01 0.001"')  # fmt: skip
        height = place.z_m - 0.03
        foot = box(f"{id_}_stand", (x, y, height / 2), (0.8 * half_x, 0.8 * half_y, height / 2), dark, COLLISION_STATIC)
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
    for side, sign in (("east", 1), ("west", -1)):
        parts.append(
            box(f"{id_}_{side}", (x + sign * half_x, y, middle), (_THICK_M, half_y, half_z), rgb, COLLISION_STATIC)
        )
    for side, sign in (("north", 1), ("south", -1)):
        parts.append(
            box(f"{id_}_{side}", (x, y + sign * half_y, middle), (half_x, _THICK_M, half_z), rgb, COLLISION_STATIC)
        )
    if place.washes:
        parts.append(
            box(
                f"{id_}_tap",
                (x, place.y_m[1] - 0.02, rim + 0.10),
                (0.012, 0.012, 0.10),
                (0.8, 0.8, 0.82),
                COLLISION_NONE,
            )
        )
    return "".join(parts)


def _obstacle(name: str, x: float, y: float, one: Obstacle) -> str:
    return (
        f'<geom name="{name}" type="cylinder" pos="{x:.4g} {y:.4g} {one.height_m / 2}" '
        f'size="{one.radius_m} {one.height_m / 2}" rgba="{join_numbers(one.rgb)} 1" {COLLISION_STATIC}/>'
    )


def _thing(laid: Laid, layout: Layout, now: KitchenThing | None) -> str:
    thing, kind = laid.thing, layout.kitchen.kinds[laid.spec.kind]
    radius, half, name = thing.width_m / 2, thing.height_m / 2, thing.name
    colour = f'rgba="{join_numbers(thing.rgb)} 1"'
    dark = f'rgba="{join_numbers(_darker(thing.rgb))} 1"'
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


def _looks(kind: Kind, radius: float, half: float, rgb: Rgb, now: KitchenThing) -> str:
    """What a camera sees of a thing besides its body."""
    colour, parts = f"{join_numbers(rgb)} 1", ""
    if kind.vessel and kind.handle:
        parts += _shown("capsule", (0.007,), colour, fromto=(radius, 0, 0.5 * half, radius + 0.022, 0, 0.35 * half))
        parts += _shown(
            "capsule", (0.007,), colour, fromto=(radius + 0.022, 0, 0.35 * half, radius + 0.02, 0, -0.4 * half)
        )
        parts += _shown("capsule", (0.007,), colour, fromto=(radius + 0.02, 0, -0.4 * half, radius, 0, -0.5 * half))
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


def _person() -> str:
    """The hand is a palm with a pointing finger, its arm behind it; the person stands where `BodyPart` messages say."""
    skin, shirt, shoe = "0.87 0.66 0.54 1", "0.25 0.33 0.50 1", "0.20 0.20 0.24 1"
    geoms = {
        "hand": (
            f'<geom name="hand" type="box" size="0.085 0.045 0.014" rgba="{skin}" {COLLISION_PERSON}/>'
            f'<geom name="hand_finger" type="capsule" fromto="0.08 0 0 0.14 0 0" size="0.010" rgba="{skin}" '
            f"{COLLISION_PERSON}/>"
            f'<geom name="hand_arm" type="capsule" fromto="-0.09 0 0 -0.40 0 0.02" size="0.032" rgba="{shirt}" '
            f"{COLLISION_PERSON}/>"
        ),
        "foot": f'<geom name="foot" type="box" size="0.13 0.045 0.035" rgba="{shoe}" {COLLISION_PERSON}/>',
        "body": f'<geom name="body" type="capsule" size="0.13 0.50" rgba="{shirt}" {COLLISION_PERSON}/>',
        "face": (
            f'<geom name="face" type="sphere" size="0.10" rgba="{skin}" {COLLISION_PERSON}/>'
            f'<geom name="face_nose" type="capsule" fromto="0.10 0 0 0.13 0 0" size="0.015" rgba="{skin}" '
            f"{COLLISION_NONE}/>"
        ),
    }
    return "".join(
        f'<body name="{part}" mocap="true" pos="{join_numbers(PARKED_M[part])}">{geoms[part]}</body>' for part in PARTS
    )


def _darker(rgb: Rgb) -> Rgb:
    return rgb[0] * 0.55, rgb[1] * 0.55, rgb[2] * 0.55
