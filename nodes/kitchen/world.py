"""The kitchen as data: what `world.toml` says of room, places and kinds, and what a seed makes of it.

A world file of one's own has the same tables. Lengths in m, odometry frame.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec

from nodes.msgs import Relation, SeenObject
from nodes.robot.route import PointM
from nodes.sim.table_scene import Rgb, Thing
from runtime.errors import UserError, choices
from runtime.serialization.toml_errors import read_toml

SLOT_M, ROW_M = 0.18, (0.10, 0.24)
"""Things stand this far apart along a place, in two rows so far behind its front edge."""
JITTER_M = 0.012
OUT_OF_REACH_M = 0.42
"""Behind the front edge: no arm gets there."""
GRASP_WIDTH_M = 0.10
"""What is wider does not go between the fingers."""
STAND_OFF_M = 0.40
"""The middle of the base stands this far before a place while the arm works there."""
BESIDE_M = 0.22
"""Things nearer to each other than this stand beside each other."""
NORMALS = {"north": (0.0, 1.0), "south": (0.0, -1.0), "east": (1.0, 0.0), "west": (-1.0, 0.0)}


class Place(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A piece of furniture that things stand on or in."""

    form: Literal["flat", "box"]
    side: Literal["north", "south", "east", "west"] = msgspec.field(name="from")
    x_m: tuple[float, float]
    y_m: tuple[float, float]
    z_m: float
    floor_z_m: float = 0.0  # of a box
    look: str = ""
    rgb: Rgb = (0.6, 0.6, 0.6)
    state: tuple[str, ...] = ()
    fills: str = ""
    washes: bool = False

    @property
    def centre_m(self) -> tuple[float, float]:
        """The middle of its top."""
        return sum(self.x_m) / 2, sum(self.y_m) / 2

    def holds(self, x_m: float, y_m: float, margin_m: float = 0.0) -> bool:
        """Whether a point is above it."""
        (left, right), (low, high) = self.x_m, self.y_m
        return left - margin_m < x_m < right + margin_m and low - margin_m < y_m < high + margin_m

    def point_m(self, along_m: float, deep_m: float) -> tuple[float, float]:
        """The point so far from the middle of its front edge, along it and behind it."""
        (nx, ny), (x, y) = NORMALS[self.side], self.centre_m
        half_x, half_y = (self.x_m[1] - self.x_m[0]) / 2, (self.y_m[1] - self.y_m[0]) / 2
        return x + nx * (half_x - deep_m) + abs(ny) * along_m, y + ny * (half_y - deep_m) + abs(nx) * along_m

    @property
    def length_m(self) -> float:
        """Along its front edge."""
        low, high = self.y_m if self.side in ("east", "west") else self.x_m
        return high - low

    @property
    def depth_m(self) -> float:
        """From its front edge to its back."""
        low, high = self.x_m if self.side in ("east", "west") else self.y_m
        return high - low

    def stand_m(self, x_m: float, y_m: float) -> tuple[float, float, float]:
        """Where the base stands, and how it heads, to work at a point of the place: x, y, heading (rad)."""
        nx, ny = NORMALS[self.side]
        front_x, front_y = self.point_m(0.0, -STAND_OFF_M)
        heading = math.atan2(-nx, ny)
        return (front_x, y_m, heading) if nx else (x_m, front_y, heading)

    def slots_m(self) -> list[tuple[float, float]]:
        """Where things may stand: two staggered rows within reach of the arm."""
        if self.length_m < 2 * SLOT_M:
            return [self.point_m(0.0, ROW_M[0] + 0.06)]
        number = int((self.length_m - 0.12) / SLOT_M)
        first = -(number - 1) / 2 * SLOT_M
        front = [self.point_m(first + step * SLOT_M, ROW_M[0]) for step in range(number)]
        return front + [self.point_m(first + (step + 0.5) * SLOT_M, ROW_M[1]) for step in range(number - 1)]


class Obstacle(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something that stands in the way; x and y are ranges for the seed."""

    radius_m: float
    height_m: float
    x_m: tuple[float, float]
    y_m: tuple[float, float]
    rgb: Rgb


class Kind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What all things of a kind have in common."""

    shape: Literal["cylinder", "ball", "box", "bottle"]
    width_m: float
    height_m: float
    mass_kg: float
    colours: tuple[str, ...]
    depth_m: float = 0.0  # of a box, across its width
    vessel: bool = False
    handle: bool = False
    clear: bool = False  # what is in it is seen through its wall
    lid: bool = False
    wipes: bool = False

    @property
    def is_graspable(self) -> bool:
        """Whether it goes between the fingers."""
        return self.width_m <= GRASP_WIDTH_M


class RoomSize(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The one room."""

    x_m: tuple[float, float]
    y_m: tuple[float, float]
    tallest_m: float
    robot_radius_m: float


class Palette(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the seed draws from."""

    table: tuple[Rgb, ...]
    counter: tuple[Rgb, ...]
    wall: tuple[Rgb, ...]
    floor: tuple[tuple[Rgb, Rgb], ...]
    lamp: tuple[float, float]


class Kitchen(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole world file."""

    room: RoomSize
    looks: Palette
    places: dict[str, Place]
    obstacles: dict[str, Obstacle]
    kinds: dict[str, Kind]
    colours: dict[str, Rgb]


Circle = tuple[float, float, float]
"""x, y and radius of something that stands in the room, m."""


class FreeSpace:
    """Where the middle of the base may be in a kitchen, as a `Floor`."""

    def __init__(self, kitchen: Kitchen, circles: Sequence[Circle] = ()) -> None:
        self._kitchen, self._circles = kitchen, circles
        self._radius_m = kitchen.room.robot_radius_m

    def is_free(self, at: PointM) -> bool:
        """Whether the base may stand there, turned as it likes."""
        (west, east), (south, north) = self._kitchen.room.x_m, self._kitchen.room.y_m
        x, y, r = *at, self._radius_m
        if not (west + r < x < east - r and south + r < y < north - r):
            return False
        if any(math.dist(at, (cx, cy)) < r + radius for cx, cy, radius in self._circles):
            return False
        for place in self._kitchen.places.values():
            dx = max(place.x_m[0] - x, 0.0, x - place.x_m[1])
            dy = max(place.y_m[0] - y, 0.0, y - place.y_m[1])
            if math.hypot(dx, dy) < r:
                return False
        return True


class ThingSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A thing that a scenario asks for."""

    kind: str
    colour: str = ""  # "": drawn
    at: str = "table"  # a place, or "hand": a person holds it
    fill: float = 0.0
    contents: str = "water"
    dirty: bool = False
    owner: str = ""
    stuck: bool = False  # its lid
    reach: bool = True  # False: it stands where no arm gets
    hidden: bool = False  # not there until a person brings it


@dataclass(frozen=True, slots=True)
class Laid:
    """A thing where the seed has put it, and how it is."""

    thing: Thing
    spec: ThingSpec

    @property
    def words(self) -> str:
        """What people call it."""
        return f"{self.thing.colour} {self.thing.label}"


@dataclass(frozen=True, slots=True)
class Layout:
    """The kitchen of one seed."""

    kitchen: Kitchen
    things: tuple[Laid, ...]
    obstacles: tuple[tuple[str, float, float, Obstacle], ...]  # name, x, y
    rgb: dict[str, Rgb]  # of places and walls
    floor: tuple[Rgb, Rgb]
    lamp: float


@cache
def load_world(path: Path | None = None) -> Kitchen:
    """The kitchen of a file; ours by default. Raises UserError."""
    file = path or Path(__file__).with_name("world.toml")
    try:
        return msgspec.convert(read_toml(file), Kitchen)
    except (UserError, msgspec.ValidationError) as problem:
        raise UserError(f"world {file}: {problem}") from problem


DEFAULT_THINGS: tuple[dict[str, Any], ...] = (
    {"kind": "mug", "colour": "red"}, {"kind": "mug", "colour": "blue"}, {"kind": "glass", "fill": 0.5},
    {"kind": "apple", "colour": "red", "dirty": True}, {"kind": "bowl", "colour": "white"},
    {"kind": "cookie jar"}, {"kind": "sponge", "at": "countertop"}, {"kind": "bottle", "colour": "green"},
)  # fmt: skip


def lay_out(kitchen: Kitchen, specs: Sequence[ThingSpec], seed: int) -> Layout:
    """Things, obstacles, looks and light by the seed. Raises UserError where there is no room."""
    generator = random.Random(f"kitchen/{seed}")
    slots = {name: place.slots_m() for name, place in kitchen.places.items()}
    for free in slots.values():
        generator.shuffle(free)
    laid = [_laid(kitchen, spec, slots, generator) for spec in specs]
    names = [one.thing.name for one in laid]
    if doubled := next((name for name in names if names.count(name) > 1), None):
        raise UserError(f"there are two things called {doubled.replace('_', ' ')!r}; give them colours of their own")
    looks = kitchen.looks
    drawn = {
        "table": generator.choice(looks.table), "counter": generator.choice(looks.counter),
        "wall": generator.choice(looks.wall),
    }  # fmt: skip
    rgb = {name: drawn.get(place.look, place.rgb) for name, place in kitchen.places.items()}
    return Layout(
        kitchen=kitchen,
        things=tuple(laid),
        obstacles=tuple(
            (name, generator.uniform(*one.x_m), generator.uniform(*one.y_m), one)
            for name, one in kitchen.obstacles.items()
        ),
        rgb={**rgb, "wall": drawn["wall"]},
        floor=generator.choice(looks.floor),
        lamp=generator.uniform(*looks.lamp),
    )


def _laid(
    kitchen: Kitchen, spec: ThingSpec, slots: dict[str, list[tuple[float, float]]], generator: random.Random
) -> Laid:
    kind = kitchen.kinds.get(spec.kind)
    if kind is None:
        raise UserError(f"there is no kind {spec.kind!r}; known: {choices(kitchen.kinds)}")
    colour = spec.colour or generator.choice(kind.colours)
    if colour not in kitchen.colours:
        raise UserError(f"there is no colour {colour!r}; known: {choices(kitchen.colours)}")
    if spec.hidden or spec.at == "hand":
        x, y, z = 1.75, -1.25, 0.9 + kind.height_m / 2
    else:
        place = kitchen.places.get(spec.at)
        if place is None:
            raise UserError(f"there is no place {spec.at!r}; known: {choices(kitchen.places)}")
        if not slots[spec.at]:
            raise UserError(f"there is no room left for a {spec.kind} at the {spec.at}")
        x, y = slots[spec.at].pop()
        if not spec.reach:
            along = x - place.centre_m[0] if NORMALS[place.side][1] else y - place.centre_m[1]
            x, y = place.point_m(along, OUT_OF_REACH_M)
        x, y = x + generator.uniform(-JITTER_M, JITTER_M), y + generator.uniform(-JITTER_M, JITTER_M)
        z = (place.z_m if place.form == "flat" else place.floor_z_m) + kind.height_m / 2 + 0.0005
    thing = Thing(
        name=f"{colour}_{spec.kind}".replace(" ", "_"), label=spec.kind, colour=colour, x_m=x, y_m=y, z_m=z,
        width_m=kind.width_m, height_m=kind.height_m, mass_kg=kind.mass_kg, rgb=kitchen.colours[colour],
    )  # fmt: skip
    return Laid(thing, spec)


def place_at(kitchen: Kitchen, x_m: float, y_m: float, bottom_z_m: float) -> str:
    """The name of the place on or in which something stands whose bottom is there; "" for none."""
    for name, place in kitchen.places.items():
        if not place.holds(x_m, y_m, 0.02):
            continue
        if place.form == "flat" and abs(bottom_z_m - place.z_m) < 0.03:
            return name
        if place.form == "box" and place.floor_z_m - 0.03 < bottom_z_m < place.z_m - 0.02:
            return name
    return ""


def seen_place(name: str, place: Place, *, is_dirty: bool) -> SeenObject:
    """A place of the map as eyes tell of it."""
    x, y = place.centre_m
    is_box = place.form == "box"
    height = place.z_m - place.floor_z_m if is_box else 0.0
    width = min(place.x_m[1] - place.x_m[0], place.y_m[1] - place.y_m[0]) if is_box else 0.0
    does = f"fills a vessel that stands there with {place.fills}" if place.fills else ""
    return SeenObject(
        id=name, label=name, colour="", x_m=x, y_m=y, z_m=place.z_m - height / 2, width_m=width, height_m=height,
        u_px=0.0, v_px=0.0, is_place=True, state=(*place.state, *(("dirty",) if is_dirty else ())),
        does=does or ("washes what is put in" if place.washes else ""),
    )  # fmt: skip


def relations_of(kitchen: Kitchen, standing: Sequence[tuple[SeenObject, str, str]]) -> tuple[Relation, ...]:
    """How things stand to each other and to places: of each who holds it, else the place where it is; "" for none."""
    found = []
    for thing, holder, place in standing:
        if holder:
            found.append(Relation(subject=thing.id, relation="held by", object=holder))
        elif place in kitchen.places:
            is_box = kitchen.places[place].form == "box"
            found.append(Relation(subject=thing.id, relation="in" if is_box else "on", object=place))
    for number, (thing, _, _) in enumerate(standing):
        for other, _, _ in standing[number + 1 :]:
            if math.dist((thing.x_m, thing.y_m), (other.x_m, other.y_m)) < BESIDE_M:
                found.append(Relation(subject=thing.id, relation="beside", object=other.id))
    return tuple(found)


def default_specs() -> tuple[ThingSpec, ...]:
    """What stands in the kitchen where no scenario says otherwise."""
    return tuple(msgspec.convert(one, ThingSpec) for one in DEFAULT_THINGS)
