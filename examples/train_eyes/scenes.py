"""Scenes by seed with meshes, textures and light, drawn by OpenGL: what the eyes are trained on, and what is held out.

A held-out scene has other shapes of each kind, other textures, other light, and things of kinds that were never shown.
So has a scene to check with, which is neither trained on nor held out: it decides between networks.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

import cv2
import mujoco
import numpy as np
from numpy.typing import NDArray

from examples.train_eyes.shapes import COLOURS_OF, KINDS, RGB, STRANGERS, Split, Wanted, stranger
from nodes.vlm.room.blobs import RoomMap, Surface

WIDTH, HEIGHT, FOVY_DEG = 480, 360, 55.0
FOCAL_PX = HEIGHT / 2 / math.tan(math.radians(FOVY_DEG) / 2)
VIEWS = 3
OTHER = "other"


@dataclass(frozen=True)
class Shown:
    """What a thing of a scene is."""

    kind: str  # "other": of none of the kinds
    colour: str
    fill: float
    contents: str
    is_dirty: bool
    is_open: bool
    stranger: str = ""


@dataclass(frozen=True)
class View:
    """One picture of a scene, and which pixels are whose: -1, or a thing's number."""

    rgb: NDArray[np.uint8]
    depth_m: NDArray[np.float32]
    rotation: NDArray[np.float64]
    position: NDArray[np.float64]
    whose: NDArray[np.int16]
    things: tuple[Shown, ...]
    room: RoomMap
    at_m: tuple[tuple[float, float, float], ...]  # feet of the things


def texture(kind: str, drawn: random.Random, rgb: tuple[float, float, float], size: int = 96) -> bytes:
    """A picture to lay on a surface, as PNG: trained on are "plain", "grain", "specks" and "stripes"."""
    noise = np.random.default_rng(drawn.randrange(2**32))
    base = np.ones((size, size, 3)) * np.array(rgb)
    rows, columns = np.mgrid[0:size, 0:size]
    strength = drawn.uniform(0.06, 0.2)
    match kind:
        case "grain":
            wave = np.sin(rows / size * drawn.uniform(10, 40) * 2 + 2 * np.sin(columns / size * 5))
            base *= (1 + strength * wave)[..., None]
        case "specks":
            base *= 1 + strength * noise.standard_normal((size, size, 1))
        case "stripes":
            base *= (1 + strength * np.sign(np.sin(columns / size * 2 * math.pi * drawn.randint(2, 6))))[..., None]
        case "clouds":
            rough = cv2.resize(noise.standard_normal((9, 9)), (size, size), interpolation=cv2.INTER_CUBIC)
            base *= (1 + strength * rough)[..., None]
        case "patches":
            base *= (1 + strength * np.kron(noise.standard_normal((8, 8)), np.ones((size // 8, size // 8))))[..., None]
        case "gradient":
            base *= (1 + strength * (2 * rows / size - 1))[..., None]
        case "rings":
            away = np.hypot(rows - size / 2, columns - size / 2) / size
            base *= (1 + strength * np.sign(np.sin(away * 2 * math.pi * drawn.randint(3, 7))))[..., None]
        case "lattice":
            n = drawn.randint(4, 9)
            is_line = (rows * n / size % 1 < 0.2) | (columns * n / size % 1 < 0.2)
            base *= np.where(is_line, 1 - strength, 1 + 0.5 * strength)[..., None]
        case "checks":
            n = drawn.randint(3, 8)
            base *= (1 + strength * np.where(((rows * n // size) + (columns * n // size)) % 2, 1, -1))[..., None]
        case "marble":
            rough = cv2.resize(noise.standard_normal((7, 7)), (size, size), interpolation=cv2.INTER_CUBIC)
            base *= (1 + strength * np.sin(6 * rough + columns / size * 9))[..., None]
        case "dots":
            n = drawn.randint(4, 9)
            at = np.hypot(rows * n / size % 1 - 0.5, columns * n / size % 1 - 0.5)
            base *= np.where(at < 0.28, 1 + 1.5 * strength, 1 - 0.5 * strength)[..., None]
    picture = np.clip(base * 255, 0, 255).astype(np.uint8)
    return cv2.imencode(".png", picture[..., ::-1])[1].tobytes()


TEXTURES: dict[Split, tuple[str, ...]] = {
    "train": ("plain", "plain", "grain", "specks", "stripes", "clouds", "patches", "gradient"),
    "check": ("rings", "lattice", "plain"),
    "held": ("checks", "marble", "dots"),
}
TINTS: dict[Split, tuple[tuple[float, float, float], ...]] = {
    "check": ((1.0, 0.90, 0.80), (0.85, 0.95, 1.0), (0.95, 1.0, 0.9)),
    "held": ((1.0, 0.86, 0.70), (0.78, 0.90, 1.0), (1.0, 0.95, 0.85)),
}
"""Of the light; to train on they are drawn freely."""


def views_of(seed: int, split: Split) -> list[View]:
    """Some pictures of the scene of a seed."""
    drawn = random.Random(f"eyes/{split}/{seed}")
    assets: dict[str, bytes] = {}
    textures: list[str] = []

    def material(rgb: tuple[float, float, float], alpha: float = 1.0, repeat: float = 1.0) -> str:
        name = f"t{len(textures)}"
        assets[f"{name}.png"] = texture(drawn.choice(TEXTURES[split]), drawn, rgb)
        textures.append(
            f'<texture name="{name}" type="2d" file="{name}.png"/><material name="{name}" texture="{name}" '
            f'texrepeat="{repeat} {repeat}" specular="{drawn.uniform(0, 0.5):.2f}" rgba="1 1 1 {alpha}"/>'
        )
        return f'material="{name}"'

    def grey() -> tuple[float, float, float]:
        v = drawn.uniform(0.25, 0.85)
        return v * drawn.uniform(0.85, 1.1), v * drawn.uniform(0.88, 1.05), v * drawn.uniform(0.75, 1.1)

    world, surfaces = [], []
    length, deep, top = drawn.uniform(0.7, 1.3), drawn.uniform(0.40, 0.60), drawn.uniform(0.42, 0.62)
    table = Surface("table", (-length / 2, length / 2), (-0.42 - deep, -0.42), top, top)
    surfaces.append(table)
    sink_x, sink_top = length / 2 + 0.10, top + drawn.uniform(-0.03, 0.03)
    sink = Surface("sink", (sink_x, sink_x + 0.36), (-0.80, -0.42), sink_top - 0.13, sink_top)
    surfaces.append(sink)
    world.append(_flat(table, material(grey(), repeat=3), material(grey())))
    world.append(_box(sink, material(grey())))
    world.append(f'<geom type="plane" size="4 4 0.1" {material(grey(), repeat=8)}/>')
    for x, y, w, d in ((0, -2.05, 3, 0.05), (-2.55, 0, 0.05, 3), (2.55, 0, 0.05, 3)):
        world.append(f'<geom type="box" pos="{x} {y} 1.2" size="{w} {d} 1.2" {material(grey(), repeat=4)}/>')
    slots = [(table, x, y) for x in np.arange(-length / 2 + 0.09, length / 2 - 0.08, 0.17) for y in (-0.52, -0.70)]
    slots = [one for one in slots if one[2] - 0.07 > table.y_m[0]] + [(sink, sink_x + 0.18, -0.60)]
    drawn.shuffle(slots)
    things, at_m, meshes = [], [], []
    for number, (surface, x, y) in enumerate(slots[: drawn.randint(4, 8)]):
        x, y = x + drawn.uniform(-0.02, 0.02), y + drawn.uniform(-0.02, 0.02)
        is_stranger = drawn.random() < (0.35 if split == "train" else 0.2)
        kind = OTHER if is_stranger else drawn.choice(list(KINDS))
        colour = drawn.choice(COLOURS_OF.get(kind, ("red", "blue", "green", "yellow", "white", "brown", "orange")))
        rgb = tuple(min(max(v * drawn.uniform(0.85, 1.12) + drawn.uniform(-0.04, 0.04), 0.0), 1.0) for v in RGB[colour])
        assert len(rgb) == 3
        fill = drawn.choice((0.0, 0.0, 0.5, 1.0)) if kind in ("mug", "glass") else 0.0
        contents = drawn.choice(("water", "coffee", "cream")) if fill else ""
        look = material(rgb, 0.45 if colour == "clear" else 1.0)
        is_dirty = drawn.random() < 0.25 and kind not in ("banana", "sponge", OTHER)
        wanted = Wanted(f"m{number}", rgb, look, split, fill, contents or "water", is_dirty, drawn.random() < 0.4)
        name = drawn.choice(STRANGERS[split]) if is_stranger else ""
        shape = stranger(name, wanted, drawn) if is_stranger else KINDS[kind](wanted, drawn)
        meshes += shape.meshes
        turn = drawn.uniform(0, 2 * math.pi)
        world.append(
            f'<body name="thing{number}" pos="{x:.4f} {y:.4f} {surface.z_m + 0.0005:.4f}" euler="0 0 {turn:.3f}">'
            f"{''.join(shape.geoms)}</body>"
        )
        is_open = kind == "cookie jar" and wanted.is_open
        things.append(Shown(kind, "" if colour == "clear" else colour, fill, contents, is_dirty, is_open, name))
        at_m.append((x, y, surface.z_m))
    xml = _document(drawn, "".join(meshes), "".join(textures), "".join(world), split)
    model = mujoco.MjModel.from_xml_string(xml, assets)
    return _draw(model, drawn, tuple(things), RoomMap(tuple(surfaces), (), (-2.5, 2.5), (-2.0, 3.0)), tuple(at_m))


def _document(drawn: random.Random, meshes: str, textures: str, world: str, split: Split) -> str:
    if split == "train":  # from the light of candles to that of a clear sky
        warm, green = drawn.uniform(-1.0, 1.0), drawn.uniform(0.92, 1.0)
        tint = (1 + min(0.25 * warm, 0.0), green, 1 - max(0.35 * warm, 0.0))
    else:
        tint = drawn.choice(TINTS[split])
    ambient, head, lamp = drawn.uniform(0.25, 0.5), drawn.uniform(0.1, 0.4), drawn.uniform(0.2, 0.6)
    x, y = (
        (drawn.uniform(-2, 2), drawn.uniform(0.5, 2))
        if split != "train"
        else (drawn.uniform(-1, 1), drawn.uniform(-0.8, 0.8))
    )
    lit = [" ".join(f"{v * t:.3f}" for t in tint) for v in (ambient, head, lamp)]
    return f"""<mujoco><compiler angle="radian"/>
<visual><headlight ambient="{lit[0]}" diffuse="{lit[1]}" specular="0 0 0"/>
<global offwidth="{WIDTH}" offheight="{HEIGHT}" fovy="{FOVY_DEG}"/><map znear="0.01" zfar="20"/>
<quality shadowsize="1024"/></visual>
<asset>{meshes}{textures}</asset><worldbody>
<light pos="{x} {y} 2.6" dir="{-0.4 * x:.3f} {-0.4 * y - 0.2:.3f} -1" diffuse="{lit[2]}" specular="0.2 0.2 0.2"
 castshadow="{"true" if drawn.random() < 0.6 else "false"}"/>
{world}</worldbody></mujoco>"""


def _flat(one: Surface, top: str, below: str) -> str:
    x, y = sum(one.x_m) / 2, sum(one.y_m) / 2
    half_x, half_y = (one.x_m[1] - one.x_m[0]) / 2, (one.y_m[1] - one.y_m[0]) / 2
    low = one.z_m - 0.03
    return (
        f'<geom type="box" pos="{x} {y} {one.z_m - 0.015}" size="{half_x} {half_y} 0.015" {top}/>'
        f'<geom type="box" pos="{x} {y} {low / 2}" size="{0.8 * half_x} {0.8 * half_y} {low / 2}" {below}/>'
    )


def _box(one: Surface, look: str) -> str:
    x, y = sum(one.x_m) / 2, sum(one.y_m) / 2
    half_x, half_y = (one.x_m[1] - one.x_m[0]) / 2, (one.y_m[1] - one.y_m[0]) / 2
    middle, half = (one.rim_z_m + one.z_m) / 2, (one.rim_z_m - one.z_m) / 2
    parts = [(x, y, one.z_m / 2, half_x, half_y, one.z_m / 2)]
    parts += [(x + side * half_x, y, middle, 0.008, half_y, half) for side in (-1, 1)]
    parts += [(x, y + side * half_y, middle, half_x, 0.008, half) for side in (-1, 1)]
    return "".join(f'<geom type="box" pos="{a} {b} {c}" size="{d} {e} {f}" {look}/>' for a, b, c, d, e, f in parts)


def _draw(
    model: mujoco.MjModel, drawn: random.Random, things: tuple[Shown, ...], room: RoomMap,
    at_m: tuple[tuple[float, float, float], ...],
) -> list[View]:  # fmt: skip
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    whose_geom = np.full(model.ngeom + 1, -1, dtype=np.int16)
    for geom in range(model.ngeom):
        body = mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_BODY, int(model.geom_bodyid[geom])) or ""
        whose_geom[geom] = int(body[5:]) if body.startswith("thing") else -1
    found = []
    renderer = mujoco.Renderer(model, HEIGHT, WIDTH)
    try:
        for _ in range(VIEWS):
            target = np.array([drawn.uniform(-0.25, 0.6), -0.6, room.surfaces[0].z_m])
            eye = np.array([drawn.uniform(-0.4, 0.6), drawn.uniform(-0.05, 0.9), drawn.uniform(1.15, 1.45)])
            rotation, camera = _pose(eye, target)
            renderer.update_scene(data, camera)
            rgb = renderer.render().copy()
            renderer.enable_depth_rendering()
            depth = renderer.render().astype(np.float32)
            renderer.disable_depth_rendering()
            renderer.enable_segmentation_rendering()
            segments = renderer.render()
            renderer.disable_segmentation_rendering()
            is_geom = segments[..., 1] == int(mujoco.mjtObj.mjOBJ_GEOM)
            whose = whose_geom[np.where(is_geom, segments[..., 0], model.ngeom)]
            found.append(View(rgb, np.where(depth < 15, depth, 0), rotation, eye, whose, things, room, at_m))
    finally:
        renderer.close()
    return found


def _pose(eye: NDArray[np.float64], target: NDArray[np.float64]) -> tuple[NDArray[np.float64], mujoco.MjvCamera]:
    """Rotation (right, down, forward in columns) and MuJoCo's camera that looks from there to there."""
    ahead = (target - eye) / np.linalg.norm(target - eye)
    right = np.cross(ahead, (0.0, 0.0, 1.0))
    right /= np.linalg.norm(right)
    camera = mujoco.MjvCamera()
    camera.type = mujoco.mjtCamera.mjCAMERA_FREE
    camera.lookat[:] = target
    camera.distance = float(np.linalg.norm(target - eye))
    camera.azimuth = math.degrees(math.atan2(ahead[1], ahead[0]))
    camera.elevation = math.degrees(math.asin(ahead[2]))
    return np.column_stack([right, np.cross(ahead, right), ahead]), camera
