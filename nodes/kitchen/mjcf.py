"""The kitchen of one seed as one MJCF text, around the robot of `nodes.sim.mjcf`."""

from __future__ import annotations

from nodes.kitchen.world import Laid, Layout, Obstacle, Place
from nodes.sim.mjcf import Scene, build_around
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


def build_kitchen(layout: Layout) -> Scene:
    """Room, furniture, things and a person, with the robot among them."""
    world = [_walls(layout)]
    world += [_body(name, _place(name, place, layout.rgb[name])) for name, place in layout.kitchen.places.items()]
    world += [_body(name, _obstacle(name, x, y, one)) for name, x, y, one in layout.obstacles]
    world += [_thing(one, layout) for one in layout.things]
    world.append(_person())
    things = tuple(one.thing for one in layout.things)
    welds = "\n".join(
        f'<weld name="give_{thing.name}" body1="hand" body2="{thing.name}" active="false" solref="0.01 1"/>'
        for thing in things
    )
    return build_around("\n".join(world), things, tiles=layout.floor, lamp=layout.lamp, equality=welds)


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


def _thing(laid: Laid, layout: Layout) -> str:
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
    place = join_numbers((thing.x_m, thing.y_m, thing.z_m))
    return f'<body name="{name}" pos="{place}"><freejoint name="{name}_free"/>{geoms}</body>'


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
