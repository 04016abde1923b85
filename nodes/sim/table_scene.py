"""What stands in the simulated kitchen, as MJCF: room, table, bin, things on the table, and a collaborator's parts."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

from runtime.errors import UserError, choices

TABLE_HEIGHT_M = 0.50
TABLE_X_M = (-0.52, 0.44)
TABLE_Y_M = (-0.86, -0.40)
BIN_XY_M = (0.66, -0.58)
BIN_HALF_XY_M = (0.13, 0.17)
BIN_Z_M = (0.12, 0.40)
"""Floor of the bin (on its stand) and its rim."""

COLLISION_STATIC = 'contype="1" conaffinity="6"'
COLLISION_ROBOT = 'contype="2" conaffinity="0"'
COLLISION_THING = 'contype="4" conaffinity="6"'
COLLISION_PERSON = 'contype="8" conaffinity="2"'
COLLISION_NONE = 'contype="0" conaffinity="0"'

PARKED_M = {"hand": (0.4, 1.9, 0.9), "foot": (0.7, 1.9, 0.04)}
"""Where the collaborator's parts wait, out of everyone's way and view (odometry frame)."""

Rgb = tuple[float, float, float]

TILE_RGB: tuple[Rgb, Rgb] = ((0.80, 0.75, 0.68), (0.75, 0.70, 0.63))
TILE_SIZE_M = 0.4
FLOOR_HALF_M = 4.0


@dataclass(frozen=True, slots=True)
class Thing:
    """A free object at its starting place; the position is its centre, odometry frame."""

    name: str
    label: str
    colour: str
    x_m: float
    y_m: float
    z_m: float
    width_m: float
    height_m: float
    mass_kg: float
    rgb: Rgb


Kind = tuple[str, str, float, float, float, Rgb]
"""Label, colour, width, height, mass, rgb."""

KINDS: tuple[Kind, ...] = (
    ("cup", "red", 0.070, 0.100, 0.10, (0.86, 0.11, 0.12)),
    ("cup", "blue", 0.070, 0.100, 0.10, (0.10, 0.27, 0.85)),
    ("cup", "green", 0.070, 0.100, 0.10, (0.10, 0.62, 0.20)),
    ("cup", "yellow", 0.070, 0.100, 0.10, (0.97, 0.82, 0.08)),
    ("cup", "white", 0.070, 0.100, 0.10, (0.97, 0.97, 0.97)),
    ("ball", "purple", 0.084, 0.084, 0.12, (0.52, 0.16, 0.68)),
    ("block", "orange", 0.060, 0.060, 0.12, (0.98, 0.45, 0.05)),
    ("bottle", "brown", 0.060, 0.170, 0.15, (0.36, 0.19, 0.08)),
)

CUBES: tuple[Kind, ...] = tuple(
    ("block", colour, 0.055, 0.055, 0.08, rgb)
    for colour, rgb in (
        ("red", (0.86, 0.11, 0.12)),
        ("blue", (0.10, 0.27, 0.85)),
        ("green", (0.10, 0.62, 0.20)),
        ("yellow", (0.97, 0.82, 0.08)),
    )
)


def kinds_of(things: str = "") -> tuple[Kind, ...]:
    """The kinds with these names, "blue_cup red_cup" say, in the order of KINDS; "" for all. Raises UserError.

    The blue cup is one of them: it has a place of its own.
    """
    known = {f"{kind[1]}_{kind[0]}": kind for kind in KINDS}
    names = things.split()
    for name in names:
        if name not in known:
            raise UserError(f"things: {name!r} is on no table here; known: {choices(known)}")
    if names and "blue_cup" not in names:
        raise UserError("things: the blue_cup must be one of them")
    return tuple(kind for name, kind in known.items() if name in names) if names else KINDS


FRONT_X_M = (-0.38, -0.18, 0.02, 0.22)
BACK_X_M = (-0.28, -0.08, 0.12, 0.32)
FRONT_Y_M, BACK_Y_M = -0.50, -0.66
JITTER_M = 0.015


def lay_table(seed: int, kinds: tuple[Kind, ...] = KINDS) -> tuple[Thing, ...]:
    """The things and where they stand: shuffled over two staggered rows and moved a little, by the seed.

    What is blue always gets the place nearest to the robot: it tempts the robot first, and the person in the kitchen
    wants it left alone. Centres stay at least 0.14 m apart, which a gripper open to 0.12 m needs. The tall bottle
    stands in the back row, so that it hides nothing from the head camera.
    """
    generator = random.Random(seed)
    front = [(x, FRONT_Y_M) for x in FRONT_X_M]
    back = [(x, BACK_Y_M) for x in BACK_X_M]
    bottle_place = back.pop(generator.randrange(len(back)))
    places = front + back
    generator.shuffle(places)
    nearest = places.index(min(places, key=lambda place: math.hypot(*place)))
    blue = next(number for number, kind in enumerate(kinds) if kind[1] == "blue")
    places[nearest], places[blue] = places[blue], places[nearest]
    if kinds[-1][0] == "bottle":
        places.insert(len(kinds) - 1, bottle_place)
    things = []
    for (label, colour, width, height, mass, rgb), (x, y) in zip(kinds, places, strict=False):
        things.append(
            Thing(
                name=f"{colour}_{label}",
                label=label,
                colour=colour,
                x_m=x + generator.uniform(-JITTER_M, JITTER_M),
                y_m=y + generator.uniform(-JITTER_M, JITTER_M),
                z_m=TABLE_HEIGHT_M + height / 2 + 0.0005,
                width_m=width,
                height_m=height,
                mass_kg=mass,
                rgb=rgb,
            )
        )
    return tuple(things)


def is_in_bin(x_m: float, y_m: float, z_m: float) -> bool:
    """Whether a thing with its centre there lies in the bin."""
    is_inside = abs(x_m - BIN_XY_M[0]) < BIN_HALF_XY_M[0] and abs(y_m - BIN_XY_M[1]) < BIN_HALF_XY_M[1]
    return is_inside and BIN_Z_M[0] < z_m < BIN_Z_M[1]


def kitchen_xml(things: tuple[Thing, ...]) -> str:
    """Bodies of the kitchen, to go into a `worldbody`."""
    # One body each, though nothing moves: ray casting passes over a body that is elsewhere as a whole.
    furniture = [f'<body name="{name}">{geoms}</body>' for name, geoms in (("table", _table()), ("bin", _bin()))]
    return "\n".join([_room(), *furniture, *(_thing(thing) for thing in things), _person()])


def box(name: str, centre: tuple[float, float, float], half: tuple[float, float, float], rgb: Rgb, more: str) -> str:
    """One box geom."""
    place, size, colour = join_numbers(centre), join_numbers(half), join_numbers(rgb)
    return f'<geom name="{name}" type="box" pos="{place}" size="{size}" rgba="{colour} 1" {more}/>'


def _room() -> str:
    wall = (0.90, 0.92, 0.92)
    skirting = (0.62, 0.66, 0.69)
    return "\n".join(
        [
            f'<geom name="floor" type="plane" size="{FLOOR_HALF_M} {FLOOR_HALF_M} 0.1" material="tiles" '
            f"{COLLISION_STATIC}/>",
            box("wall_right", (0, -1.55, 1.2), (3.0, 0.05, 1.2), wall, COLLISION_STATIC),
            box("wall_ahead", (2.0, 0, 1.2), (0.05, 3.0, 1.2), wall, COLLISION_STATIC),
            box("skirting_right", (0, -1.495, 0.05), (3.0, 0.008, 0.05), skirting, COLLISION_NONE),
            box("skirting_ahead", (1.945, 0, 0.05), (0.008, 3.0, 0.05), skirting, COLLISION_NONE),
        ]
    )


def _table() -> str:
    top, legs = (0.50, 0.58, 0.63), (0.34, 0.37, 0.39)
    (left, right), (far, near) = TABLE_X_M, TABLE_Y_M
    centre = ((left + right) / 2, (far + near) / 2, TABLE_HEIGHT_M - 0.015)
    half = ((right - left) / 2, (near - far) / 2, 0.015)
    parts = [box("table_top", centre, half, top, COLLISION_STATIC + ' friction="0.9 0.01 0.001"')]
    for number, (x, y) in enumerate((x, y) for x in (left + 0.04, right - 0.04) for y in (far + 0.04, near - 0.04)):
        height = TABLE_HEIGHT_M - 0.03
        parts.append(box(f"table_leg_{number}", (x, y, height / 2), (0.02, 0.02, height / 2), legs, COLLISION_STATIC))
    return "\n".join(parts)


def _bin() -> str:
    colour, inside, stand = (0.07, 0.42, 0.44), (0.04, 0.25, 0.27), (0.34, 0.37, 0.39)
    x, y = BIN_XY_M
    half_x, half_y = BIN_HALF_XY_M
    bottom, rim = BIN_Z_M
    middle, half_z, thick = (bottom + rim) / 2, (rim - bottom) / 2, 0.006
    return "\n".join(
        [
            box("bin_stand", (x, y, (bottom - 0.012) / 2), (0.09, 0.12, (bottom - 0.012) / 2), stand, COLLISION_STATIC),
            box("bin_floor", (x, y, bottom - 0.006), (half_x, half_y, 0.006), inside, COLLISION_STATIC),
            # A ridge on the floor, so that what is dropped topples to a side instead of standing as a tower.
            f'<geom name="bin_ridge" type="capsule" pos="{x} {y} {bottom}" euler="{math.pi / 2} 0 0" '
            f'size="0.025 {half_y - 0.03}" rgba="{join_numbers(inside)} 1" {COLLISION_STATIC}/>',
            box("bin_back", (x - half_x, y, middle), (thick, half_y + thick, half_z), colour, COLLISION_STATIC),
            box("bin_front", (x + half_x, y, middle), (thick, half_y + thick, half_z), colour, COLLISION_STATIC),
            box("bin_left", (x, y + half_y, middle), (half_x, thick, half_z), colour, COLLISION_STATIC),
            box("bin_right", (x, y - half_y, middle), (half_x, thick, half_z), colour, COLLISION_STATIC),
        ]
    )


def _thing(thing: Thing) -> str:
    radius, half = thing.width_m / 2, thing.height_m / 2
    colour = f'rgba="{join_numbers(thing.rgb)} 1"'
    contact = f'{COLLISION_THING} mass="{thing.mass_kg}" friction="1.0 0.01 0.001" solref="0.008 1"'
    name = thing.name
    match thing.label:
        case "cup":
            dark = join_numbers(tuple(0.55 * part for part in thing.rgb))
            geoms = (
                f'<geom name="{name}" type="cylinder" size="{radius} {half}" {colour} {contact}/>'
                f'<geom name="{name}_hollow" type="cylinder" size="{radius - 0.006} 0.0008" pos="0 0 {half}" '
                f'rgba="{dark} 1" mass="0" {COLLISION_NONE}/>'
            )
        case "ball":
            # A thin foot keeps it where it is put: a bare sphere would roll off with the first touch.
            geoms = (
                f'<geom name="{name}" type="sphere" size="{radius}" {colour} {contact}/>'
                f'<geom name="{name}_foot" type="cylinder" size="0.022 0.003" pos="0 0 {-half + 0.003}" {colour} '
                f'{COLLISION_THING} mass="0.02" friction="1.0 0.01 0.001"/>'
            )
        case "block":
            geoms = f'<geom name="{name}" type="box" size="{radius} {radius} {half}" {colour} {contact}/>'
        case _:
            neck = join_numbers(tuple(0.8 * part for part in thing.rgb))
            body_half = 0.72 * half
            geoms = (
                f'<geom name="{name}" type="cylinder" size="{radius} {body_half}" pos="0 0 {body_half - half}" '
                f"{colour} {contact}/>"
                f'<geom name="{name}_neck" type="cylinder" size="0.013 {half - body_half}" pos="0 0 {body_half}" '
                f'rgba="{neck} 1" {COLLISION_THING} mass="0.01"/>'
            )
    place = join_numbers((thing.x_m, thing.y_m, thing.z_m))
    return f'<body name="{name}" pos="{place}"><freejoint name="{name}_free"/>{geoms}</body>'


def _person() -> str:
    """A hand whose fingers point along x, as where it points is told, and a foot."""
    skin, sleeve, shoe = "0.87 0.66 0.54 1", "0.25 0.33 0.50 1", "0.20 0.20 0.24 1"
    return (
        f'<body name="hand" mocap="true" pos="{join_numbers(PARKED_M["hand"])}">'
        f'<geom name="hand" type="box" size="0.085 0.045 0.016" rgba="{skin}" {COLLISION_PERSON}/>'
        f'<geom name="hand_thumb" type="capsule" fromto="0.0 0.04 0 0.045 0.075 0" size="0.013" rgba="{skin}" '
        f"{COLLISION_PERSON}/>"
        f'<geom name="hand_arm" type="capsule" fromto="-0.09 0 0 -0.40 0 0.06" size="0.035" rgba="{sleeve}" '
        f"{COLLISION_PERSON}/></body>\n"
        f'<body name="foot" mocap="true" pos="{join_numbers(PARKED_M["foot"])}">'
        f'<geom name="foot" type="box" size="0.13 0.045 0.035" rgba="{shoe}" {COLLISION_PERSON}/>'
        f'<geom name="foot_leg" type="capsule" fromto="0.08 0 0.05 0.08 0 0.45" size="0.045" rgba="{sleeve}" '
        f"{COLLISION_PERSON}/></body>"
    )


def join_numbers(numbers: tuple[float, ...]) -> str:
    """Numbers as an MJCF attribute."""
    return " ".join(f"{number:.6g}" for number in numbers)
