"""A world as a file: room, places, kinds of things and their looks, people; and what a seed makes of it.

`worlds/` has those that ship; a file of one's own has the same tables. Lengths in m, odometry frame.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import field

from nodes.msgs import Relation, SeenObject
from nodes.robot.route import PointM
from runtime.errors import UserError, choices
from runtime.serialization.toml_errors import Table, convert, parse_toml, read_text

Metres = Annotated[float, msgspec.Meta(ge=-1000.0, le=1000.0, description="a number of metres")]
Height = Annotated[float, msgspec.Meta(ge=0.0, le=1000.0, description="a number of metres, 0 or more")]
Size = Annotated[float, msgspec.Meta(gt=0.0, le=1000.0, description="a number of metres above 0")]
Mass = Annotated[float, msgspec.Meta(gt=0.0, le=1000.0, description="a number of kilograms above 0")]
Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0, description="a number from 0 to 1")]
Rgb = tuple[Share, Share, Share]
PointM3 = tuple[float, float, float]
PersonPart = Literal["hand", "foot", "body", "face"]
Side = Literal["north", "south", "east", "west"]
T = TypeVar("T")
_HEADER = re.compile(r"\[+([^\]]+)\]+")
_KEY = re.compile(r"(?<=unknown key ')\w+|^[\w.]+(?= is )")
SHIPPED_WORLDS = Path(__file__).parents[1] / "worlds"
SLOT_M, ROW_M = 0.18, (0.10, 0.24)
"""Things stand this far apart along a place, in two rows so far behind its front edge."""
OUT_OF_REACH_M = 0.42
"""Behind the front edge: no arm gets there."""
GRASP_WIDTH_M = 0.10
"""What is wider does not go between the fingers."""
STAND_OFF_M = 0.40
"""The middle of the base stands this far before a place while the arm works there."""
BESIDE_M = 0.22
"""Things nearer to each other than this stand beside each other."""
NORMALS = {"north": (0.0, 1.0), "south": (0.0, -1.0), "east": (1.0, 0.0), "west": (-1.0, 0.0)}


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


ROOM_M, EDGE_M = 0.15, 0.08
"""Room around what is set down; so far from an edge it stays."""


class Place(Table, frozen=True):
    """A piece of furniture that things stand on or in."""

    form: Literal["flat", "box"]
    side: Side = field(name="from")
    x_m: tuple[Metres, Metres]
    y_m: tuple[Metres, Metres]
    z_m: Height
    floor_z_m: Height = 0.0  # of a box
    look: str = ""
    rgb: Rgb = (0.6, 0.6, 0.6)
    state: tuple[str, ...] = ()
    fills: str = ""
    washes: bool = False
    legs: bool = False  # four, and no block below it
    ridge: bool = False  # on a box's floor, so that what is dropped topples to a side instead of standing as a tower
    jitter_m: Height = 0.012
    rows_m: tuple[tuple[PointM, ...], ...] = ()  # where things may stand, the front row first; (): by its size

    @property
    def centre_m(self) -> tuple[float, float]:
        """The middle of its top."""
        return sum(self.x_m) / 2, sum(self.y_m) / 2

    def holds(self, x_m: float, y_m: float, margin_m: float = 0.0) -> bool:
        """Whether a point is above it."""
        (left, right), (low, high) = self.x_m, self.y_m
        return left - margin_m < x_m < right + margin_m and low - margin_m < y_m < high + margin_m

    def away_m(self, x_m: float, y_m: float) -> float:
        """How far a point is from it, seen from above."""
        dx = max(self.x_m[0] - x_m, 0.0, x_m - self.x_m[1])
        return math.hypot(dx, max(self.y_m[0] - y_m, 0.0, y_m - self.y_m[1]))

    def contains(self, x_m: float, y_m: float, z_m: float) -> bool:
        """Whether a thing with its middle there lies in it, where it is a box."""
        return self.form == "box" and self.holds(x_m, y_m) and self.floor_z_m < z_m < self.z_m

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

    def free_point_m(self, taken: Sequence[PointM]) -> PointM:
        """Where there is most room, near the middle of its front: ROOM_M from all that is taken, where it can be."""
        half = max(self.length_m / 2 - EDGE_M, 0.0)
        alongs = [step * 0.06 for step in range(-20, 21) if abs(step * 0.06) <= half] or [0.0]
        deeps: tuple[float, ...] = (0.12, 0.18)
        if self.length_m <= 0.5:  # something small is used up to its corners
            alongs = [*alongs, -half, half]
            deeps = (0.14, 0.10, *(deep for deep in (0.20, 0.26, 0.30) if deep <= self.depth_m - EDGE_M))
        points = [self.point_m(along, deep) for deep in deeps for along in alongs]
        free = [at for at in points if all(math.dist(at, other) > ROOM_M for other in taken)]
        if free:
            return min(free, key=lambda at: math.dist(at, self.point_m(0.0, 0.12)))
        return max(points, key=lambda at: min(math.dist(at, other) for other in taken))


class Obstacle(Table, frozen=True):
    """Something that stands in the way; x and y are ranges for the seed."""

    radius_m: Size
    height_m: Size
    x_m: tuple[Metres, Metres]
    y_m: tuple[Metres, Metres]
    rgb: Rgb


class Kind(Table, frozen=True):
    """What all things of a kind have in common."""

    shape: Literal["cylinder", "ball", "box", "bottle"]
    width_m: Size
    height_m: Size
    mass_kg: Mass
    colours: tuple[str, ...] = ()  # what is drawn from where a scenario names none
    called: str = ""  # by people, where that is another word than its name here
    depth_m: Height = 0.0  # of a box, across its width
    vessel: bool = False
    handle: bool = False
    clear: bool = False  # what is in it is seen through its wall
    lid: bool = False
    wipes: bool = False
    neck_shade: float = 0.55  # of a bottle's colour

    @property
    def is_graspable(self) -> bool:
        """Whether it goes between the fingers."""
        return self.width_m <= GRASP_WIDTH_M


class RoomSize(Table, frozen=True):
    """The one room."""

    x_m: tuple[Metres, Metres]
    y_m: tuple[Metres, Metres]
    tallest_m: Size = 0.74
    robot_radius_m: Size = 0.36
    walls: tuple[Side, ...] = ("south", "north", "west", "east")
    skirting: Rgb | None = None


class Palette(Table, frozen=True):
    """What the seed draws from."""

    wall: tuple[Rgb, ...] = ((0.9, 0.9, 0.9),)
    floor: tuple[tuple[Rgb, Rgb], ...] = (((0.80, 0.75, 0.68), (0.75, 0.70, 0.63)),)
    lamp: tuple[float, float] = (0.45, 0.45)
    table: tuple[Rgb, ...] = ((0.6, 0.6, 0.6),)
    counter: tuple[Rgb, ...] = ((0.6, 0.6, 0.6),)


class WorldFile(Table, frozen=True):
    """A whole world file."""

    room: RoomSize
    places: dict[str, Place]
    kinds: dict[str, Kind]
    colours: dict[str, Rgb]
    looks: Palette = Palette()
    obstacles: dict[str, Obstacle] = field(default_factory=dict)
    person: dict[PersonPart, PointM3] = field(default_factory=dict)
    """Which parts of a person are seen, and where each waits."""
    hand_shape: Literal["hand", "thumb"] = "hand"  # with a finger that points, or with a thumb alone
    seeded_as: str = ""
    """A word that its seeds are drawn by, with their number."""

    def place_near(self, x_m: float, y_m: float) -> Place:
        """The place at which something is, or that it is nearest to."""
        return min(self.places.values(), key=lambda one: one.away_m(x_m, y_m))

    def stand_for(self, x_m: float, y_m: float) -> tuple[float, float, float]:
        """Where the base stands to work at a point: x, y, heading."""
        return self.place_near(x_m, y_m).stand_m(x_m, y_m)

    def fills(self, place: str) -> str:
        """What a machine there fills vessels with; "" for nothing."""
        return self.places[place].fills if place in self.places else ""


Circle = tuple[float, float, float]
"""x, y and radius of something that stands in the room, m."""


class FreeSpace:
    """Where the middle of the base may be in a world, as a `Floor`."""

    def __init__(self, kitchen: WorldFile, circles: Sequence[Circle] = ()) -> None:
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
        return all(place.away_m(x, y) >= r for place in self._kitchen.places.values())


class ThingSpec(Table, frozen=True):
    """A thing that a scenario asks for."""

    kind: str
    colour: str = ""  # "": drawn
    at: str = "table"  # a place, or "hand": a person holds it
    fill: Share = 0.0
    contents: str = "water"
    dirty: bool = False
    owner: str = ""
    stuck: bool = False  # its lid
    reach: bool = True  # False: it stands where no arm gets
    stands: Literal["", "near", "behind"] = ""  # of a place with rows: nearest to the robot, or in the last row
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
    """A world of one seed."""

    world: WorldFile
    things: tuple[Laid, ...]
    obstacles: tuple[tuple[str, float, float, Obstacle], ...]  # name, x, y
    rgb: dict[str, Rgb]  # of places and walls
    floor: tuple[Rgb, Rgb]
    lamp: float
    dirty: tuple[str, ...] = ()  # places
    scenario: str = ""  # its name or file


@cache
def load_world(name: str | Path = "kitchen") -> WorldFile:
    """The world of a file, or the shipped one of a name. Raises UserError."""
    shipped = {file.stem: file for file in SHIPPED_WORLDS.glob("*.toml")}
    if not Path(name).suffix and str(name) not in shipped:
        raise UserError(f"there is no world {str(name)!r}; expected a file, or one of {choices(sorted(shipped))}")
    file = shipped.get(str(name), Path(name))
    text, world = read_file(file, WorldFile)
    if found := _wrong_of(world):
        raise UserError(sentences_of(file, text, found))
    return world


def read_file(file: Path, kind: type[T]) -> tuple[str, T]:
    """The text of a file, and its tables as a type. Raises UserError with file and line."""
    text = read_text(file)
    tables = parse_toml(text, file)
    try:
        return text, convert(tables, kind)
    except UserError as problem:
        header, key = _HEADER.match(str(problem)), _KEY.search(str(problem))
        where = "" if header is None else header[0] if header[0] in text else header[1]
        where = where if key is None or not line_of(text, f"[{key[0]}]") else f"[{key[0]}]"
        raise UserError(sentences_of(file, text, [(where, str(problem))]), code=problem.code) from problem


def sentences_of(file: Path, text: str, found: Sequence[tuple[str, str]]) -> str:
    """Each problem with the file and the first line that has the words where it stands, where one has."""
    return "\n".join(f"{file}{line_of(text, where)}: {what}" for where, what in found)


def line_of(text: str, where: str) -> str:
    """ ", line 7" for the first line of a file's text that has these words; "" for none."""
    lines = [line.partition("#")[0] for line in text.splitlines()]
    numbers = [number for number, line in enumerate(lines, 1) if where and where in line]
    name = re.escape(where.strip("[]").rpartition(".")[2])  # of an inline table
    numbers += [number for number, line in enumerate(lines, 1) if name and re.match(rf"\s*{name}\s*=", line)]
    return f", line {numbers[0]}" if numbers else ""


def _wrong_of(world: WorldFile) -> list[tuple[str, str]]:
    """What is wrong with a world: words of the line where it stands, and a sentence."""
    found: list[tuple[str, str]] = []
    if not world.places:
        found.append(
            ("[places", "a world needs a place to stand on; add [places.table] with form, from, x_m, y_m, z_m")
        )
    extents: dict[str, RoomSize | Place] = {"[room]": world.room}
    extents |= {_header("places", name): place for name, place in world.places.items()}
    for header, extent in extents.items():
        if not (extent.x_m[0] < extent.x_m[1] and extent.y_m[0] < extent.y_m[1]):
            found.append(
                (header, f"{header} x_m and y_m are {extent.x_m} and {extent.y_m}; expected the lower end first")
            )
    names = list(world.places)
    for number, name in enumerate(names):
        one, header = world.places[name], _header("places", name)
        if one.form == "box" and not 0.0 < one.floor_z_m < one.z_m:
            found.append((header, f"{header} has its floor at {one.floor_z_m} m and its rim at {one.z_m} m; "
                          "expected floor_z_m above 0 and below z_m"))  # fmt: skip
        for other_name in names[:number]:
            other = world.places[other_name]
            if all(a[0] < b[1] - 1e-9 and b[0] < a[1] - 1e-9 for a, b in ((one.x_m, other.x_m), (one.y_m, other.y_m))):
                found.append((header, f"{header} stands in the same spot as the {other_name}; move one of the two"))
        if not all(one.rows_m) or any(not one.holds(*point) for row in one.rows_m for point in row):
            found.append((header, f"{header} rows_m has an empty row, or a point that is not on the {name}"))
        points = [point for row in one.rows_m for point in row]
        if len(set(points)) < len(points):
            found.append((header, f"{header} rows_m names one spot twice, and two things do not stand in one spot"))
        inside = zip((one.x_m, one.y_m), (world.room.x_m, world.room.y_m), strict=True)
        if any(mine[0] < room[0] or mine[1] > room[1] for mine, room in inside):
            found.append((header, f"{header} reaches out of the room; move it, or make [room] larger"))
        if name in world.kinds:
            found.append((header, f"{name!r} is the name of a place and of a kind; give one of them another name"))
    return found + (_nowhere_to_stand(world) if not found else []) + _unknown_colours(world)


def _nowhere_to_stand(world: WorldFile) -> list[tuple[str, str]]:
    stands = (place.stand_m(*place.centre_m) for place in world.places.values())
    free, radius_m = FreeSpace(world), world.room.robot_radius_m
    if any(free.is_free((x, y)) for x, y, _ in stands):
        return []
    what = f"a robot of {radius_m} m radius has no place to stand before any of its places"
    return [("[room]", f"{what}; make [room] larger, or move them")]


def _unknown_colours(world: WorldFile) -> list[tuple[str, str]]:
    found = []
    for name, kind in world.kinds.items():
        for colour in kind.colours:
            if colour not in world.colours:
                found.append((_header("kinds", name), f"{_header('kinds', name)} has the colour {colour!r}; "
                              f"known in [colours]: {choices(world.colours)}"))  # fmt: skip
    return found


def _header(table: str, name: str) -> str:
    return f'[{table}."{name}"]' if " " in name else f"[{table}.{name}]"


def lay_out(world: WorldFile, specs: Sequence[ThingSpec], seed: int) -> Layout:
    """Things, obstacles, looks and light by the seed. Raises UserError where there is no room."""
    generator = random.Random(f"{world.seeded_as}/{seed}" if world.seeded_as else seed)
    slots = {}
    for name, place in world.places.items():
        if place.rows_m:
            slots[name] = _rows(place, [spec for spec in specs if spec.at == name], generator)[::-1]
        else:
            slots[name] = place.slots_m()
            generator.shuffle(slots[name])
    laid = [_laid(world, spec, slots, generator) for spec in specs]
    names = [one.thing.name for one in laid]
    if doubled := next((name for name in names if names.count(name) > 1), None):
        raise UserError(f"there are two things called {doubled.replace('_', ' ')!r}; give them colours of their own")
    looks = world.looks
    drawn = {
        "table": generator.choice(looks.table), "counter": generator.choice(looks.counter),
        "wall": generator.choice(looks.wall),
    }  # fmt: skip
    rgb = {name: drawn.get(place.look, place.rgb) for name, place in world.places.items()}
    return Layout(
        world=world,
        things=tuple(laid),
        obstacles=tuple(
            (name, generator.uniform(*one.x_m), generator.uniform(*one.y_m), one)
            for name, one in world.obstacles.items()
        ),
        rgb={**rgb, "wall": drawn["wall"]},
        floor=generator.choice(looks.floor),
        lamp=generator.uniform(*looks.lamp),
    )


def _rows(place: Place, specs: Sequence[ThingSpec], generator: random.Random) -> list[PointM]:
    """The points of a place with rows in the order of its things."""
    *front, back = (list(row) for row in place.rows_m)
    behind = back.pop(generator.randrange(len(back)))
    points = [point for row in (*front, back) for point in row]
    generator.shuffle(points)
    nearest = points.index(min(points, key=lambda point: math.hypot(*point)))
    for number, spec in enumerate(specs):
        if spec.stands == "near":
            points[nearest], points[number] = points[number], points[nearest]
    for number, spec in enumerate(specs):
        if spec.stands == "behind":
            points.insert(number, behind)
    return points


def _laid(world: WorldFile, spec: ThingSpec, slots: dict[str, list[PointM]], generator: random.Random) -> Laid:
    kind = world.kinds.get(spec.kind)
    if kind is None:
        raise UserError(f"there is no kind {spec.kind!r}; known: {choices(world.kinds)}")
    if not spec.colour and not kind.colours:
        raise UserError(
            f"a {spec.kind} has no colours of its own here; say which: colour = {next(iter(world.colours))!r}"
        )
    colour = spec.colour or generator.choice(kind.colours)
    if colour not in world.colours:
        raise UserError(f"there is no colour {colour!r}; known: {choices(world.colours)}")
    if spec.hidden or spec.at == "hand":
        if "hand" not in world.person:
            raise UserError(f"nobody can hold the {spec.kind}: this world's [person] has no hand")
        x, y, z = world.person["hand"]
        z += kind.height_m / 2
    else:
        place = world.places.get(spec.at)
        if place is None:
            raise UserError(f"there is no place {spec.at!r}; known: {choices(world.places)}")
        if not slots[spec.at]:
            raise UserError(f"there is no room left for a {spec.kind} at the {spec.at}")
        x, y = slots[spec.at].pop()
        if not spec.reach:
            along = x - place.centre_m[0] if NORMALS[place.side][1] else y - place.centre_m[1]
            x, y = place.point_m(along, OUT_OF_REACH_M)
        jitter_m = place.jitter_m
        x, y = x + generator.uniform(-jitter_m, jitter_m), y + generator.uniform(-jitter_m, jitter_m)
        z = (place.z_m if place.form == "flat" else place.floor_z_m) + kind.height_m / 2 + 0.0005
    label = kind.called or spec.kind
    thing = Thing(
        name=f"{colour}_{label}".replace(" ", "_"), label=label, colour=colour, x_m=x, y_m=y, z_m=z,
        width_m=kind.width_m, height_m=kind.height_m, mass_kg=kind.mass_kg, rgb=world.colours[colour],
    )  # fmt: skip
    return Laid(thing, spec)


def place_at(world: WorldFile, x_m: float, y_m: float, z_m: float, height_m: float) -> str:
    """The name of the place on or in which something stands whose middle is there; "" for none."""
    bottom_z_m = z_m - height_m / 2
    for name, place in world.places.items():
        if not place.holds(x_m, y_m, 0.02):
            continue
        if place.form == "flat" and abs(bottom_z_m - place.z_m) < 0.03:
            return name
        is_low = place.floor_z_m - 0.03 < bottom_z_m < place.z_m - 0.02
        if place.contains(x_m, y_m, z_m) or (place.form == "box" and is_low):  # it lies, or stands
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


def relations_of(kitchen: WorldFile, standing: Sequence[tuple[SeenObject, str, str]]) -> tuple[Relation, ...]:
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
