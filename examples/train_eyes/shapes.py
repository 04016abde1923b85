"""Shapes of kitchen things by kind, as MJCF, and strangers: to train on, to check while training, and held out.

A shape is drawn from its generator. What is turned on a lathe is a mesh with its inside; the rest is primitives. More
than half of the profiles that are trained on are drawn freely, but none that comes near to one of `CHECK` or `HELD`.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

Split = Literal["train", "check", "held"]
"""What a scene is for: to learn from, to decide between networks, and to measure the last one."""

Profile = Sequence[tuple[float, float]]  # radius and height, in parts of half the width and of the height

LIQUIDS = {"water": (0.36, 0.56, 0.80), "coffee": (0.20, 0.11, 0.06), "cream": (0.96, 0.93, 0.84)}
STAIN = (0.27, 0.17, 0.08)


@dataclass
class Shape:
    """Geoms and meshes of one thing, its foot at 0; lengths in m."""

    width_m: float
    height_m: float
    meshes: list[str] = field(default_factory=list)
    geoms: list[str] = field(default_factory=list)

    def mesh(self, name: str, points: np.ndarray, faces: np.ndarray, look: str) -> None:
        """A mesh with texture coordinates round its axis."""
        turn = np.arctan2(points[:, 1], points[:, 0]) / (2 * math.pi) + 0.5
        uv = np.column_stack([turn * 2, points[:, 2] / self.height_m])
        numbers = (" ".join(f"{v:.5g}" for v in part.reshape(-1)) for part in (points, uv))
        vertex, coordinates = numbers
        face = " ".join(str(v) for v in faces.reshape(-1))
        self.meshes.append(
            f'<mesh name="{name}" vertex="{vertex}" texcoord="{coordinates}" face="{face}" inertia="shell"/>'
        )
        self.geoms.append(f'<geom type="mesh" mesh="{name}" {look} contype="0" conaffinity="0"/>')

    def geom(self, shape: str, size: Sequence[float], look: str, **where: Sequence[float]) -> None:
        """A primitive; `where` as in MJCF."""
        at = " ".join(f'{key}="{" ".join(f"{v:.5g}" for v in value)}"' for key, value in where.items())
        numbers = " ".join(f"{v:.5g}" for v in size)
        self.geoms.append(f'<geom type="{shape}" size="{numbers}" {at} {look} contype="0" conaffinity="0"/>')

    def turned(self, name: str, profile: Profile, look: str, sides: int = 28) -> None:
        """On a lathe; with few sides it has corners."""
        radius = np.array([max(r, 1e-3) for r, _ in profile]) * self.width_m / 2
        z = np.array([h for _, h in profile]) * self.height_m
        angle = np.arange(sides) * 2 * math.pi / sides
        ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        rings = [np.column_stack([r * ring, np.full(sides, h)]) for r, h in zip(radius, z, strict=True)]
        points = np.concatenate(rings)
        faces = []
        for step in range(len(z) - 1):
            for side in range(sides):
                a, b = step * sides + side, step * sides + (side + 1) % sides
                faces += [(a, b, b + sides), (a, b + sides, a + sides)]
        self.mesh(name, points, np.array(faces), look)


def hollow(outer: Profile, wall: float = 0.09) -> Profile:
    """An outer profile with its inside, down to a floor."""
    return [(0.0, 0.0), *outer, *[(max(r - wall, 0.02), max(h, 0.06)) for r, h in reversed(outer)], (0.0, 0.06)]


TRAIN: dict[str, dict[str, Profile]] = {
    "mug": {
        "straight": [(0.97, 0.0), (1.0, 0.05), (1.0, 1.0)],
        "tapered": [(0.72, 0.0), (0.85, 0.4), (1.0, 1.0)],
        "barrel": [(0.78, 0.0), (0.98, 0.3), (1.0, 0.55), (0.86, 1.0)],
    },
    "glass": {
        "tumbler": [(0.95, 0.0), (1.0, 1.0)],
        "tapered": [(0.70, 0.0), (1.0, 1.0)],
    },
    "bowl": {
        "half ball": [(0.42, 0.0), (0.72, 0.25), (0.92, 0.6), (1.0, 1.0)],
        "straight": [(0.90, 0.0), (1.0, 0.2), (1.0, 1.0)],
    },
    "plate": {
        "rim": [(0.6, 0.0), (0.68, 0.4), (1.0, 1.0), (0.66, 0.7), (0.0, 0.55)],
        "disc": [(0.98, 0.0), (1.0, 0.5), (1.0, 1.0), (0.0, 1.0)],
    },
    "bottle": {
        "round": [(0.96, 0.0), (1.0, 0.05), (1.0, 0.62), (0.5, 0.76), (0.48, 1.0), (0.0, 1.0)],
        "wine": [(0.96, 0.0), (1.0, 0.04), (1.0, 0.55), (0.8, 0.66), (0.42, 0.76), (0.40, 1.0), (0.0, 1.0)],
    },
    "cookie jar": {"straight": [(0.96, 0.0), (1.0, 0.04), (1.0, 1.0)]},
}
CHECK: dict[str, dict[str, Profile]] = {
    "mug": {"round": [(0.55, 0.0), (0.92, 0.2), (1.0, 0.5), (0.97, 1.0)]},
    "glass": {"curved": [(0.75, 0.0), (0.95, 0.35), (0.9, 1.0)]},
    "bowl": {"cone": [(0.45, 0.0), (1.0, 1.0)]},
    "plate": {"coupe": [(0.7, 0.0), (1.0, 1.0), (0.8, 0.6), (0.0, 0.45)]},
    "bottle": {"step": [(1.0, 0.0), (1.0, 0.70), (0.55, 0.72), (0.55, 1.0), (0.0, 1.0)]},
    "cookie jar": {"belly": [(0.72, 0.0), (1.0, 0.4), (0.98, 0.65), (0.84, 1.0)]},
}
HELD: dict[str, dict[str, Profile]] = {
    "mug": {
        "hourglass": [(0.95, 0.0), (0.78, 0.45), (1.0, 1.0)],
        "bell": [(0.68, 0.0), (0.72, 0.25), (0.86, 0.7), (1.0, 1.0)],
    },
    "glass": {
        "tulip": [(0.6, 0.0), (1.0, 0.4), (0.82, 1.0)],
        "waisted": [(0.9, 0.0), (0.74, 0.3), (1.0, 1.0)],
    },
    "bowl": {
        "flared": [(0.5, 0.0), (0.7, 0.35), (0.8, 0.75), (1.0, 1.0)],
        "footed": [(0.5, 0.0), (0.42, 0.12), (0.85, 0.5), (1.0, 1.0)],
    },
    "plate": {
        "deep": [(0.5, 0.0), (0.62, 0.3), (0.7, 0.9), (1.0, 1.0), (0.64, 0.8), (0.0, 0.35)],
        "stepped": [(0.75, 0.0), (0.78, 0.5), (1.0, 0.6), (1.0, 1.0), (0.7, 0.9), (0.0, 0.6)],
    },
    "bottle": {
        "pear": [(0.8, 0.0), (1.0, 0.22), (0.86, 0.5), (0.46, 0.72), (0.42, 0.92), (0.52, 1.0), (0.0, 1.0)],
        "sauce": [(0.9, 0.0), (1.0, 0.3), (0.9, 0.58), (0.35, 0.68), (0.3, 1.0), (0.0, 1.0)],
    },
    "cookie jar": {"ginger": [(0.66, 0.0), (0.84, 0.3), (1.0, 0.75), (0.8, 1.0)]},
}
RANGES: dict[str, Sequence[tuple[tuple[float, float], float]]] = {
    "mug": (((0.55, 1.0), 0.0), ((0.78, 1.04), 0.33), ((0.82, 1.04), 0.66), ((0.82, 1.0), 1.0)),
    "glass": (((0.55, 1.0), 0.0), ((0.72, 1.0), 0.4), ((0.84, 1.04), 1.0)),
    "bowl": (((0.3, 0.9), 0.0), ((0.6, 1.0), 0.3), ((0.8, 1.0), 0.65), ((0.92, 1.0), 1.0)),
    "plate": (((0.5, 0.95), 0.0), ((0.62, 1.0), 0.45), ((0.98, 1.0), 1.0), ((0.6, 0.9), 0.75), ((0.0, 0.0), 0.5)),
    "bottle": (((0.8, 1.0), 0.0), ((0.9, 1.0), 0.3), ((0.8, 1.0), 0.55), ((0.35, 0.6), 0.75), ((0.32, 0.55), 1.0),
               ((0.0, 0.0), 1.0)),
    "cookie jar": (((0.65, 1.0), 0.0), ((0.86, 1.04), 0.3), ((0.9, 1.04), 0.6), ((0.8, 1.0), 1.0)),
}  # fmt: skip
"""Radii from and to at heights, of profiles that are drawn freely."""
NEAR = 0.06
"""A free profile is farther than this, somewhere, from each that is kept back; in parts of half the width."""


def apart(one: Profile, other: Profile) -> float:
    """The largest difference of the radii of two profiles' outer sides."""
    sides = []
    for profile in (one, other):
        widest = max(range(len(profile)), key=lambda k: (profile[k][1], k if profile[k][0] else -1))
        outer = profile[: widest + 1]
        sides.append(np.interp(np.linspace(0, 1, 21), [h for _, h in outer], [r for r, _ in outer]))
    return float(np.abs(sides[0] - sides[1]).max())


def free(kind: str, drawn: random.Random) -> Profile:
    """A profile that nobody wrote down."""
    kept_back = [*CHECK[kind].values(), *HELD[kind].values()]
    while True:
        found = [(drawn.uniform(low, high), at) for (low, high), at in RANGES[kind]]
        widest = max(r for r, _ in found)
        found = [(r / widest, min(at * drawn.uniform(0.85, 1.15), 1.0) if 0 < at < 1 else at) for r, at in found]
        if all(apart(found, one) > NEAR for one in kept_back):
            return found


def pick(kind: str, split: Split, drawn: random.Random) -> Profile:
    """One of the shapes of a split, stretched a little."""
    if split == "train" and drawn.random() < 0.6:
        return free(kind, drawn)
    profile = drawn.choice(list({"train": TRAIN, "check": CHECK, "held": HELD}[split][kind].values()))
    return [(min(r * drawn.uniform(0.96, 1.03), 1.0) if 0 < r < 1 else r, h) for r, h in profile]


def liquid(shape: Shape, fill: float, contents: str, at: float, radius: float) -> None:
    """A level in a vessel: `at` is how high, `radius` how wide."""
    if fill > 0:
        rgb = " ".join(str(v) for v in LIQUIDS[contents])
        shape.geom("cylinder", (radius, 0.001), f'rgba="{rgb} 1"', pos=(0, 0, at))


def stains(
    shape: Shape, radius: float, low: float, high: float, drawn: random.Random, *, is_flat: bool = False
) -> None:
    """Brown spots on it."""
    for number in range(drawn.randint(5, 8)):
        turn, z = 2 * math.pi * (number + 0.5 * drawn.random()) / 7, drawn.uniform(low, high)
        away = radius * math.sqrt(drawn.random()) if is_flat else radius
        size = drawn.uniform(0.007, 0.013)
        rgb = " ".join(f"{v * drawn.uniform(0.8, 1.3):.3f}" for v in STAIN)
        shape.geom("sphere", (size,), f'rgba="{rgb} 1"', pos=(away * math.cos(turn), away * math.sin(turn), z))


@dataclass(frozen=True)
class Wanted:
    """What a thing is to look like."""

    name: str
    rgb: tuple[float, float, float]
    look: str  # material or rgba of its body
    split: Split
    fill: float = 0.0
    contents: str = "water"
    is_dirty: bool = False
    is_open: bool = False

    @property
    def is_held(self) -> bool:
        """Whether it has a shape that is held out."""
        return self.split == "held"


def sides_of(w: Wanted, drawn: random.Random, held: Sequence[int]) -> int:
    """How many sides a turned thing has: as few as its kind has where it is held out, and other numbers else."""
    if w.is_held:
        return drawn.choice(held) if len(held) > 1 else held[0]
    return drawn.choice((28, 28, 28, 6 + drawn.randrange(12)))


def mug(w: Wanted, drawn: random.Random) -> Shape:
    s = Shape(drawn.uniform(0.062, 0.084), drawn.uniform(0.080, 0.112))
    r, h = s.width_m / 2, s.height_m
    s.turned(w.name, hollow(pick("mug", w.split, drawn)), w.look, sides_of(w, drawn, (28, 28, 12)))
    out, top, low = r + drawn.uniform(0.016, 0.03), drawn.uniform(0.7, 0.85) * h, drawn.uniform(0.2, 0.35) * h
    thick = drawn.uniform(0.004, 0.008)
    line = [(0.86 * r, top), (out, top - 0.01), (out, low + 0.01), (0.8 * r, low)]
    if w.split == "train" and drawn.random() < 0.5:  # an ear instead of corners
        middle, half = (top + low) / 2, (top - low) / 2
        turns = [math.pi * (k / 6 - 0.5) for k in range(7)]
        line = [(0.85 * r + (out + 0.006 - 0.85 * r) * math.cos(a), middle + half * math.sin(a)) for a in turns]
    for (a, b), (c, d) in itertools.pairwise(line):
        s.geom("capsule", (thick,), w.look, fromto=(a, 0, b, c, 0, d))
    liquid(s, w.fill, w.contents, h * (0.35 + 0.55 * w.fill), 0.80 * r)
    if w.is_dirty:
        stains(s, 0.95 * r, 0.1 * h, 0.9 * h, drawn)
    return s


def glass(w: Wanted, drawn: random.Random) -> Shape:
    s = Shape(drawn.uniform(0.054, 0.074), drawn.uniform(0.090, 0.135))
    r, h = s.width_m / 2, s.height_m
    s.turned(w.name, hollow(pick("glass", w.split, drawn), 0.07), w.look, sides_of(w, drawn, (28, 28, 10)))
    if w.fill > 0:
        rgb, half = " ".join(str(v) for v in LIQUIDS[w.contents]), 0.46 * h * w.fill
        s.geom("cylinder", (0.86 * r, half), f'rgba="{rgb} 1"', pos=(0, 0, half + 0.004))
    if w.is_dirty:
        stains(s, 0.95 * r, 0.1 * h, 0.9 * h, drawn)
    return s


def plate(w: Wanted, drawn: random.Random) -> Shape:
    s = Shape(drawn.uniform(0.14, 0.20), drawn.uniform(0.016, 0.028))
    s.turned(w.name, [(0.0, 0.0), *pick("plate", w.split, drawn)], w.look, sides_of(w, drawn, (32, 32, 8)))
    if w.is_dirty:
        stains(s, 0.35 * s.width_m, 0.7 * s.height_m, 0.9 * s.height_m, drawn, is_flat=True)
    return s


def bowl(w: Wanted, drawn: random.Random) -> Shape:
    s = Shape(drawn.uniform(0.12, 0.17), drawn.uniform(0.048, 0.075))
    s.turned(w.name, hollow(pick("bowl", w.split, drawn), 0.05), w.look, sides_of(w, drawn, (32, 32, 9)))
    if w.is_dirty:
        stains(s, 0.46 * s.width_m, 0.6 * s.height_m, 0.95 * s.height_m, drawn)
    return s


def bottle(w: Wanted, drawn: random.Random) -> Shape:
    s = Shape(drawn.uniform(0.054, 0.072), drawn.uniform(0.140, 0.22))
    profile = [(0.0, 0.0), *pick("bottle", w.split, drawn)]
    s.turned(w.name, profile, w.look, 4 if w.is_held and drawn.random() < 0.3 else sides_of(w, drawn, (24,)))
    if drawn.random() < 0.6:
        cap = " ".join(f"{drawn.uniform(0.1, 0.9):.2f}" for _ in range(3))
        s.geom("cylinder", (0.26 * s.width_m, 0.008), f'rgba="{cap} 1"', pos=(0, 0, s.height_m))
    if drawn.random() < 0.5:
        rgb = " ".join(f"{drawn.uniform(0.5, 0.95):.2f}" for _ in range(3))
        s.geom("cylinder", (0.51 * s.width_m, 0.14 * s.height_m), f'rgba="{rgb} 1"', pos=(0, 0, 0.32 * s.height_m))
    if w.is_dirty:
        stains(s, 0.48 * s.width_m, 0.05, 0.55 * s.height_m, drawn)
    return s


def _round(w: Wanted, drawn: random.Random, squash: tuple[float, float]) -> Shape:
    width = drawn.uniform(0.062, 0.084)
    height = width * drawn.uniform(*squash)
    s = Shape(width, height)
    s.geom("ellipsoid", (width / 2, width / 2 * drawn.uniform(0.95, 1.0), height / 2), w.look, pos=(0, 0, height / 2))
    if w.is_dirty:
        for _ in range(drawn.randint(5, 8)):
            z, turn = drawn.uniform(-0.6, 0.9), drawn.uniform(0, 2 * math.pi)
            away = width / 2 * math.sqrt(1 - z * z)
            at = (away * math.cos(turn), away * math.sin(turn), height / 2 * (1 + z))
            rgb = " ".join(str(v) for v in STAIN)
            s.geom("sphere", (drawn.uniform(0.007, 0.012),), f'rgba="{rgb} 1"', pos=at)
    return s


def apple(w: Wanted, drawn: random.Random) -> Shape:
    s = _round(w, drawn, (1.02, 1.14) if w.is_held else (0.86, 1.0))
    h = s.height_m
    if drawn.random() < 0.8:
        s.geom("capsule", (0.0025,), 'rgba="0.3 0.2 0.1 1"', fromto=(0, 0, h * 0.95, 0.005, 0.003, h + 0.014))
    if drawn.random() < 0.4:
        s.geom("ellipsoid", (0.014, 0.006, 0.002), 'rgba="0.2 0.5 0.15 1"', pos=(0.014, 0, h + 0.008))
    return s


def orange(w: Wanted, drawn: random.Random) -> Shape:
    s = _round(w, drawn, (0.86, 0.93) if w.is_held else (0.95, 1.02))
    s.geom("sphere", (0.004,), 'rgba="0.3 0.4 0.1 1"', pos=(0, 0, s.height_m - 0.002))
    return s


def banana(w: Wanted, drawn: random.Random) -> Shape:
    bend = drawn.uniform(0.06, 0.08) if w.is_held else drawn.uniform(0.09, 0.16)
    thick, number = drawn.uniform(0.015, 0.020), 7
    span = drawn.uniform(0.13, 0.17) / bend
    s = Shape(0.04, 2 * thick)
    turn = drawn.uniform(0, 2 * math.pi)
    at = []
    for step in range(number + 1):
        a = span * (step / number - 0.5)
        x, y = bend * math.sin(a), bend * (math.cos(a) - 1)
        at.append((x * math.cos(turn) - y * math.sin(turn), x * math.sin(turn) + y * math.cos(turn)))
    for step in range(number):
        radius = thick * (0.6 if step in (0, number - 1) else 1.0)
        s.geom("capsule", (radius,), w.look, fromto=(*at[step], thick, *at[step + 1], thick))
    s.geom("sphere", (0.007,), 'rgba="0.25 0.2 0.08 1"', pos=(*at[-1], thick))
    return s


def cookie_jar(w: Wanted, drawn: random.Random) -> Shape:
    s = Shape(drawn.uniform(0.084, 0.115), drawn.uniform(0.105, 0.14))
    r, h = s.width_m / 2, s.height_m
    sides = 4 if w.is_held and drawn.random() < 0.4 else sides_of(w, drawn, (28,))
    s.turned(w.name, hollow(pick("cookie jar", w.split, drawn), 0.08), w.look, sides)
    if not w.is_open:
        light = " ".join(f"{0.45 + 0.55 * v:.3f}" for v in w.rgb) if drawn.random() < 0.6 else "0.7 0.6 0.45"
        s.geom("cylinder", (0.98 * r, 0.007), f'rgba="{light} 1"', pos=(0, 0, h))
        if drawn.random() < 0.6:
            s.geom("sphere", (0.012,), f'rgba="{light} 1"', pos=(0, 0, h + 0.012))
    if w.is_dirty:
        stains(s, 0.98 * r, 0.1 * h, 0.9 * h, drawn)
    return s


def sponge(w: Wanted, drawn: random.Random) -> Shape:
    x, y, z = drawn.uniform(0.05, 0.075), drawn.uniform(0.08, 0.115), drawn.uniform(0.024, 0.046)
    s = Shape(x, z)
    if w.is_held:  # rounded ends
        s.geom("cylinder", (x / 2, z / 2), w.look, pos=(0, -y / 4, z / 2))
        s.geom("cylinder", (x / 2, z / 2), w.look, pos=(0, y / 4, z / 2))
        s.geom("box", (x / 2, y / 4, z / 2), w.look, pos=(0, 0, z / 2))
    else:
        s.geom("box", (x / 2, y / 2, z / 2), w.look, pos=(0, 0, z / 2))
    if drawn.random() < 0.5:
        s.geom("box", (x / 2 + 0.0005, y / 2 + (0 if not w.is_held else -y / 5), z / 8), 'rgba="0.15 0.4 0.2 1"',
               pos=(0, 0, z - z / 8 + 0.0005))  # fmt: skip
    return s


KINDS: dict[str, Callable[[Wanted, random.Random], Shape]] = {
    "mug": mug, "glass": glass, "plate": plate, "bowl": bowl, "bottle": bottle, "apple": apple, "orange": orange,
    "banana": banana, "cookie jar": cookie_jar, "sponge": sponge,
}  # fmt: skip
COLOURS_OF = {
    "glass": ("clear",), "orange": ("orange",), "banana": ("yellow", "yellow", "green"),
    "apple": ("red", "green", "yellow"),
    "sponge": ("yellow", "yellow", "blue", "green"), "cookie jar": ("brown", "brown", "white", "blue", "red"),
}  # fmt: skip
RGB = {
    "red": (0.86, 0.11, 0.12), "blue": (0.10, 0.27, 0.85), "green": (0.10, 0.62, 0.20), "yellow": (0.97, 0.82, 0.08),
    "white": (0.97, 0.97, 0.97), "orange": (0.98, 0.50, 0.05), "brown": (0.36, 0.19, 0.08), "clear": (0.75, 0.88, 0.92),
}  # fmt: skip


def stranger(name: str, w: Wanted, drawn: random.Random) -> Shape:
    """Something of none of the kinds; `STRANGERS` tells what it is for."""
    size = drawn.uniform(0.8, 1.25)
    s = Shape(0.08 * size, 0.09 * size)
    a, look = 0.04 * size, w.look
    other = 'rgba="' + " ".join(f"{drawn.uniform(0.1, 0.9):.2f}" for _ in range(3)) + ' 1"'
    match name:
        case "cube":
            s.geom("box", (a, a, a), look, pos=(0, 0, a))
        case "cone":
            s.turned(w.name, [(0.0, 0.0), (1.0, 0.0), (0.03, 1.0)], look)
        case "ring":
            for k in range(10):
                t, u = 2 * math.pi * k / 10, 2 * math.pi * (k + 1) / 10
                s.geom("capsule", (a / 4,), look, fromto=(a * math.cos(t), a * math.sin(t), a / 4,
                                                          a * math.cos(u), a * math.sin(u), a / 4))  # fmt: skip
        case "book":
            s.geom("box", (1.8 * a, 1.3 * a, 0.35 * a), look, pos=(0, 0, 0.35 * a))
        case "candle":
            s.geom("cylinder", (0.35 * a, 1.2 * a), look, pos=(0, 0, 1.2 * a))
            s.geom("ellipsoid", (0.1 * a, 0.1 * a, 0.3 * a), 'rgba="1 0.7 0.1 1"', pos=(0, 0, 2.6 * a))
        case "cross":
            s.geom("box", (1.4 * a, 0.4 * a, 0.4 * a), look, pos=(0, 0, 0.4 * a))
            s.geom("box", (0.4 * a, 1.4 * a, 0.4 * a), look, pos=(0, 0, 0.4 * a))
        case "arch":
            s.geom("box", (0.3 * a, 0.5 * a, 0.9 * a), look, pos=(-a, 0, 0.9 * a))
            s.geom("box", (0.3 * a, 0.5 * a, 0.9 * a), look, pos=(a, 0, 0.9 * a))
            s.geom("box", (1.4 * a, 0.5 * a, 0.3 * a), other, pos=(0, 0, 2.1 * a))
        case "snowman":
            s.geom("sphere", (a,), look, pos=(0, 0, a))
            s.geom("sphere", (0.65 * a,), look, pos=(0, 0, 2.4 * a))
        case "pile":
            height = 0.0
            for _ in range(drawn.randint(2, 5)):
                x, y, z = (a * drawn.uniform(0.25, 1.3) for _ in range(3))
                at = (drawn.uniform(-0.7, 0.7) * a, drawn.uniform(-0.7, 0.7) * a, height + z)
                form = drawn.choice(("box", "box", "ellipsoid", "cylinder"))
                turned = (0, 0, drawn.uniform(0, 3))
                size_m = (x, z) if form == "cylinder" else (x, y, z)
                s.geom(form, size_m, drawn.choice((look, other)), pos=at, euler=turned)
                height += drawn.choice((0.0, 1.6 * z))
        case "sticks":
            for _ in range(drawn.randint(1, 4)):
                half, t = a * drawn.uniform(0.8, 2.2), drawn.uniform(0, math.pi)
                x, y, z = half * math.cos(t), half * math.sin(t), a * drawn.uniform(0.15, 0.6)
                s.geom("capsule", (a * drawn.uniform(0.12, 0.35),), drawn.choice((look, other)),
                       fromto=(-x, -y, z, x, y, a * drawn.uniform(0.15, 0.6)))  # fmt: skip
        case "spool":
            waist = drawn.uniform(0.25, 0.5)
            edge = [(0.0, 0.0), (1.0, 0.0), (1.0, 0.15), (waist, 0.25)]
            s.turned(w.name, [*edge, *[(r, 1.0 - h) for r, h in reversed(edge)]], look)
        case "tower":
            height = 0.0
            for _ in range(drawn.randint(3, 5)):
                half = a * drawn.uniform(0.15, 0.4)
                s.geom("cylinder", (a * drawn.uniform(0.4, 1.3), half), drawn.choice((look, other)),
                       pos=(0, 0, height + half))  # fmt: skip
                height += 2 * half
        case "star":
            for k in range(5):
                t = 2 * math.pi * k / 5
                s.geom("capsule", (0.3 * a,), look, fromto=(0, 0, 0.3 * a, 1.4 * a * math.cos(t), 1.4 * a * math.sin(t),
                                                            0.3 * a))  # fmt: skip
        case "spoon":
            s.geom("ellipsoid", (0.9 * a, 0.6 * a, 0.25 * a), look, pos=(0, 0, 0.3 * a))
            s.geom("capsule", (0.14 * a,), look, fromto=(0.8 * a, 0, 0.3 * a, 3.2 * a, 0, 0.4 * a))
        case "egg":
            s.geom("ellipsoid", (0.75 * a, 0.55 * a, 0.55 * a), look, pos=(0, 0, 0.55 * a))
        case "block":
            x, y, z = (a * drawn.uniform(0.4, 1.8) for _ in range(3))
            s.geom("box", (x, y, z), look, pos=(0, 0, z))
            if drawn.random() < 0.5:
                s.geom("box", (0.6 * x, 0.6 * y, 0.1 * a), other, pos=(0, 0, 2 * z))
        case "drum":  # a jar's height would make it one
            s.geom("cylinder", (a * drawn.uniform(0.9, 1.5), 0.5 * a), look, pos=(0, 0, 0.5 * a))
            s.geom("cylinder", (0.4 * a, 0.3 * a), other, pos=(0, 0, 1.3 * a))
        case "table":
            for x, y in ((-0.9, -0.7), (-0.9, 0.7), (0.9, -0.7), (0.9, 0.7)):
                s.geom("box", (0.12 * a, 0.12 * a, 0.8 * a), other, pos=(x * a, y * a, 0.8 * a))
            s.geom("box", (1.2 * a, 0.9 * a, 0.15 * a), look, pos=(0, 0, 1.7 * a))
        case "house":
            s.geom("box", (a, 0.8 * a, 0.7 * a), look, pos=(0, 0, 0.7 * a))
            s.turned(w.name, [(0.0, 0.66), (1.5, 0.66), (0.03, 1.3)], other, 4)
        case "tree":
            s.geom("cylinder", (0.25 * a, 0.6 * a), other, pos=(0, 0, 0.6 * a))
            s.turned(w.name, [(0.0, 0.5), (1.1, 0.5), (0.45, 1.0), (0.8, 1.0), (0.03, 1.6)], look)
        case "chair":
            for x, y in ((-0.7, -0.7), (-0.7, 0.7), (0.7, -0.7), (0.7, 0.7)):
                s.geom("box", (0.12 * a, 0.12 * a, 0.5 * a), look, pos=(x * a, y * a, 0.5 * a))
            s.geom("box", (0.85 * a, 0.85 * a, 0.12 * a), other, pos=(0, 0, 1.1 * a))
            s.geom("box", (0.12 * a, 0.85 * a, 0.8 * a), look, pos=(-0.75 * a, 0, 2.0 * a))
        case "boat":
            s.geom("ellipsoid", (1.6 * a, 0.6 * a, 0.5 * a), look, pos=(0, 0, 0.5 * a))
            s.geom("box", (0.5 * a, 0.35 * a, 0.35 * a), other, pos=(-0.3 * a, 0, 1.1 * a))
        case "ladder":
            for y in (-0.5, 0.5):
                s.geom("capsule", (0.14 * a,), look, fromto=(-1.6 * a, y * a, 0.15 * a, 1.6 * a, y * a, 0.4 * a))
            for x in (-1.2, -0.4, 0.4, 1.2):
                s.geom("capsule", (0.12 * a,), other, fromto=(x * a, -0.5 * a, 0.3 * a, x * a, 0.5 * a, 0.3 * a))
        case "rocket":
            s.turned(w.name, [(0.0, 0.0), (0.7, 0.0), (0.9, 0.7), (0.7, 1.4), (0.03, 2.0)], look)
            for k in range(3):
                t = 2 * math.pi * k / 3
                x, y = math.cos(t), math.sin(t)
                s.geom(
                    "capsule",
                    (0.15 * a,),
                    other,
                    fromto=(0.6 * a * x, 0.6 * a * y, a, 1.3 * a * x, 1.3 * a * y, 0.15 * a),
                )
        case "fish":
            s.geom("ellipsoid", (1.3 * a, 0.4 * a, 0.7 * a), look, pos=(0, 0, 0.7 * a))
            s.geom("ellipsoid", (0.4 * a, 0.12 * a, 0.6 * a), other, pos=(1.5 * a, 0, 0.7 * a))
        case "pan":
            s.geom("cylinder", (1.3 * a, 0.3 * a), look, pos=(0, 0, 0.3 * a))
            s.geom("capsule", (0.15 * a,), other, fromto=(1.3 * a, 0, 0.45 * a, 3.2 * a, 0, 0.6 * a))
        case "car":
            s.geom("box", (1.5 * a, 0.7 * a, 0.35 * a), look, pos=(0, 0, 0.7 * a))
            s.geom("box", (0.7 * a, 0.6 * a, 0.3 * a), other, pos=(0, 0, 1.3 * a))
            for x, y in ((-0.9, -0.7), (-0.9, 0.7), (0.9, -0.7), (0.9, 0.7)):
                s.geom("cylinder", (0.36 * a, 0.12 * a), 'rgba="0.1 0.1 0.1 1"', pos=(x * a, y * a, 0.36 * a),
                       euler=(math.pi / 2, 0, 0))  # fmt: skip
        case "duck":
            s.geom("ellipsoid", (1.2 * a, 0.8 * a, 0.7 * a), look, pos=(0, 0, 0.7 * a))
            s.geom("sphere", (0.5 * a,), look, pos=(0.9 * a, 0, 1.6 * a))
            s.geom("ellipsoid", (0.35 * a, 0.2 * a, 0.1 * a), 'rgba="0.95 0.5 0.1 1"', pos=(1.5 * a, 0, 1.55 * a))
        case "mushroom":
            s.geom("cylinder", (0.4 * a, 0.8 * a), other, pos=(0, 0, 0.8 * a))
            s.geom("ellipsoid", (1.1 * a, 1.1 * a, 0.6 * a), look, pos=(0, 0, 1.8 * a))
        case "dumbbell":
            s.geom("cylinder", (0.25 * a, 1.3 * a), other, pos=(0, 0, 0.7 * a), euler=(0, math.pi / 2, 0))
            s.geom("sphere", (0.7 * a,), look, pos=(-1.3 * a, 0, 0.7 * a))
            s.geom("sphere", (0.7 * a,), look, pos=(1.3 * a, 0, 0.7 * a))
        case "cactus":
            s.geom("capsule", (0.4 * a, 1.2 * a), look, pos=(0, 0, 1.5 * a))
            s.geom("capsule", (0.25 * a,), look, fromto=(0, 0, 1.3 * a, 0.9 * a, 0, 1.4 * a))
            s.geom("capsule", (0.25 * a,), look, fromto=(0.9 * a, 0, 1.4 * a, 0.9 * a, 0, 2.2 * a))
        case "pyramid":
            for k in range(4):
                s.geom(
                    "box", ((1.2 - 0.3 * k) * a, (1.2 - 0.3 * k) * a, 0.22 * a), look, pos=(0, 0, (0.22 + 0.44 * k) * a)
                )
        case "tee":
            s.geom("box", (0.3 * a, 0.3 * a, 1.1 * a), look, pos=(0, 0, 1.1 * a))
            s.geom("box", (1.4 * a, 0.3 * a, 0.3 * a), look, pos=(0, 0, 2.4 * a))
        case "teapot":
            s.geom("ellipsoid", (1.1 * a, 1.1 * a, 0.9 * a), look, pos=(0, 0, 0.9 * a))
            s.geom("capsule", (0.2 * a,), look, fromto=(a, 0, 0.9 * a, 1.9 * a, 0, 1.6 * a))
            s.geom("capsule", (0.14 * a,), look, fromto=(-a, 0, 1.3 * a, -1.7 * a, 0, 1.1 * a))
            s.geom("capsule", (0.14 * a,), look, fromto=(-1.7 * a, 0, 1.1 * a, -a, 0, 0.5 * a))
            s.geom("sphere", (0.2 * a,), other, pos=(0, 0, 1.95 * a))
    return s


STRANGERS: dict[Split, tuple[str, ...]] = {
    "train": ("cube", "cone", "ring", "book", "candle", "cross", "arch", "snowman", "spool", "tower", "star", "spoon",
              "egg", "block", "drum", "table", "sticks", "sticks", "pile", "pile", "pile", "pile", "pile", "pile"),
    "check": ("house", "tree", "chair", "boat", "ladder", "rocket", "fish", "pan"),
    "held": ("car", "duck", "mushroom", "dumbbell", "cactus", "pyramid", "tee", "teapot"),
}  # fmt: skip
