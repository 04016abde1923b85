"""Things in space as entities of a SceneUpdate: the robot's links, what it sees, where it goes, the guard's space."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Mapping, Sequence

from nodes.mcap.schema import Document
from nodes.msgs import SeenObject, SeenPerson
from nodes.recording.foxglove.schemas import time_document
from nodes.robot.looks import ODOMETRY, Looks
from nodes.robot.protocol import Ball, PointM
from nodes.robot.urdf import Quaternion, Rgba, Shape
from nodes.sim.messages import BodyPart
from runtime.errors import UserError

UPRIGHT: Quaternion = (0.0, 0.0, 0.0, 1.0)
COLOURS: Mapping[str, tuple[float, float, float]] = {
    "red": (0.86, 0.11, 0.12), "blue": (0.10, 0.27, 0.85), "green": (0.10, 0.62, 0.20), "yellow": (0.97, 0.82, 0.08),
    "white": (0.95, 0.95, 0.95), "purple": (0.52, 0.16, 0.68), "orange": (0.98, 0.45, 0.05),
    "brown": (0.36, 0.19, 0.08), "black": (0.10, 0.10, 0.10), "grey": (0.55, 0.55, 0.55), "teal": (0.07, 0.42, 0.44),
}  # fmt: skip
UNKNOWN = (0.60, 0.60, 0.66)
SKIN: Rgba = (0.87, 0.66, 0.54, 0.9)
SIGN: Rgba = (1.0, 0.55, 0.0, 0.95)
WAY: Rgba = (0.10, 0.60, 1.0, 0.95)
FORBIDDEN: Rgba = (0.90, 0.10, 0.10, 0.25)
ALLOWED: Rgba = (0.10, 0.60, 0.30, 0.08)
ENVELOPES: Mapping[str, Rgba] = {
    "moving": (0.15, 0.70, 0.30, 0.22), "armed": (0.40, 0.60, 0.70, 0.18), "holding": (1.0, 0.75, 0.1, 0.30),
    "stopped": (0.90, 0.15, 0.10, 0.35), "estopped": (0.70, 0.0, 0.0, 0.45), "retreating": (0.60, 0.30, 0.80, 0.30),
    "disarmed": (0.50, 0.50, 0.50, 0.15),
}  # fmt: skip
"""Of the balls by which the guard knows the body, by its mode."""
TABLE_M, PLACE_M, PERSON_M, PALM_M = 0.6, 0.30, 1.6, 0.10
"""Sizes that are drawn where nobody has told them: a table's side, another place's, a person's height, a palm."""
FOOT_M = (0.26, 0.09, 0.07)
LETTERS_M = 0.05
MOST_MESH_BYTES = 16_000_000
MEDIA = {".stl": "model/stl", ".obj": "model/obj", ".glb": "model/gltf-binary", ".dae": "model/vnd.collada+xml"}


_PARTS = ("metadata", "arrows", "cubes", "spheres", "cylinders", "lines", "triangles", "texts", "models")
_EMPTY: Document = {"lifetime": {"sec": 0, "nsec": 0}, **{part: [] for part in _PARTS}}
"""What an entity has in any case, by Foxglove's schema."""


class Sketch:
    """Entities of one topic; those of an update that are not in the next one are deleted by that."""

    def __init__(self) -> None:
        self._before: frozenset[str] = frozenset()

    def update(self, entities: Sequence[Document], wall_ns: int) -> Document:
        """The whole of what is to be seen now, so that somebody who begins to look here sees all of it."""
        stamp = time_document(wall_ns)
        now = frozenset(str(entity["id"]) for entity in entities)
        gone, self._before = sorted(self._before - now), now
        return {
            "deletions": [{"timestamp": stamp, "type": 0, "id": ident} for ident in gone],
            "entities": [{"timestamp": stamp, **_EMPTY, **entity} for entity in entities],
        }


def robot_entities(looks: Looks) -> tuple[list[Document], str]:
    """Each link with its shapes, which go where its frame goes; and what of its meshes is not shown, or ""."""
    entities, problems, used = [], list[str](), 0
    meshes: dict[str, str] = {}
    for link in looks.urdf.links:
        parts: dict[str, list[Document]] = {}
        for shape in looks.urdf.shapes.get(link, ()):
            if shape.kind == "mesh" and shape.mesh not in meshes and looks.read_mesh is not None:
                try:
                    data = looks.read_mesh(shape.mesh)
                    used += len(data)
                    if used > MOST_MESH_BYTES:
                        raise UserError(
                            f"mesh {shape.mesh!r}: all meshes together are above {MOST_MESH_BYTES // 10**6} MB"
                        )
                    meshes[shape.mesh] = base64.b64encode(data).decode()
                except UserError as problem:
                    meshes[shape.mesh] = ""
                    problems.append(str(problem))
            kind, part = _solid_of(shape, meshes)
            if part is not None:
                parts.setdefault(kind, []).append(part)
        if parts:
            entities.append({"id": link, "frame_id": link, "frame_locked": True, **parts})
    return entities, "; ".join(problems)


def thing_entity(thing: SeenObject) -> Document:
    """A thing or a place, the table among them, as the robot believes it to be."""
    r, g, b = COLOURS.get(thing.colour, UNKNOWN)
    width, height = thing.width_m, thing.height_m
    if thing.is_place and width == 0.0:  # where it is, and not how large
        side = TABLE_M if thing.label == "table" else PLACE_M
        flat = _solid((thing.x_m, thing.y_m, thing.z_m - 0.01), (side, side, 0.02), (r, g, b, 0.45))
        parts: Document = {"cubes": [flat]}
    else:
        size = (max(width, 0.01), max(width, 0.01), max(height, 0.01))
        solid = _solid((thing.x_m, thing.y_m, thing.z_m), size, (r, g, b, 0.35 if thing.is_place else 0.95))
        is_square = thing.is_place or thing.label in ("block", "cube", "box")
        parts = {"cubes": [solid]} if is_square else {"cylinders": [{**solid, "bottom_scale": 1.0, "top_scale": 1.0}]}
    text = " ".join(part for part in (thing.colour, thing.label) if part)
    above = (thing.x_m, thing.y_m, thing.z_m + height / 2 + LETTERS_M)
    facts = {"confidence": f"{thing.confidence:.2f}", "owner": thing.owner, "state": ", ".join(thing.state)}
    return {
        **_placed(thing.id or text),
        **parts,
        "texts": [_text(text, above, (0.1, 0.1, 0.1, 1.0))],
        "metadata": [{"key": key, "value": value} for key, value in facts.items() if value],
    }


def person_entity(person: SeenPerson) -> Document:
    """Somebody who is seen, with a palm where that is."""
    middle = (person.x_m, person.y_m, PERSON_M / 2)
    body = {**_solid(middle, (0.4, 0.4, PERSON_M), (*SKIN[:3], 0.35)), "bottom_scale": 1.0, "top_scale": 0.6}
    words = [_text(person.id, (person.x_m, person.y_m, PERSON_M + LETTERS_M), SIGN)]
    palms = [] if person.hand_m is None else [_solid(person.hand_m, (PALM_M, PALM_M, PALM_M), SKIN)]
    return {**_placed(f"person {person.id}"), "cylinders": [body], "spheres": palms, "texts": words}


def body_part_entity(part: BodyPart) -> Document:
    """A hand or a foot that a simulated person puts somewhere; no policy knows of it but by what it feels and sees."""
    place = (part.x_m, part.y_m, part.z_m)
    turn = (0.0, 0.0, math.sin(part.yaw_rad / 2), math.cos(part.yaw_rad / 2))
    size = FOOT_M if part.part == "foot" else (PALM_M, PALM_M * 1.6, PALM_M * 0.4)
    return {
        **_placed(f"part {part.part}"), "cubes": [_solid(place, size, SKIN, turn)],
        "texts": [_text(part.part, (place[0], place[1], place[2] + LETTERS_M), SIGN)],
    }  # fmt: skip


def target_entity(target: SeenObject, text: str) -> Document:
    """What the action under way goes to: a ring around it, and the action's words above."""
    radius = max(target.width_m / 2, 0.03) + 0.03
    ring = [
        (target.x_m + radius * math.cos(turn), target.y_m + radius * math.sin(turn), target.z_m)
        for turn in (2 * math.pi * part / 16 for part in range(17))
    ]
    above = (target.x_m, target.y_m, target.z_m + target.height_m / 2 + 0.12)
    return {**_placed("target"), "lines": [_line(ring, SIGN, 0.012)], "texts": [_text(text, above, SIGN)]}


def way_entity(name: str, points: Sequence[PointM]) -> Document:
    """A way through the room, odometry frame."""
    return {**_placed(name), "lines": [_line(points, WAY, 0.008)]}


def envelope_entity(balls: Iterable[Ball], mode: str, base: str) -> Document:
    """The balls by which the guard knows the robot's body, in the base's frame."""
    colour = ENVELOPES.get(mode, ENVELOPES["armed"])
    spheres = [_solid((x, y, z), (2 * r, 2 * r, 2 * r), colour) for x, y, z, r in balls]
    return {"id": "envelope", "frame_id": base, "frame_locked": True, "spheres": spheres}


def box_entity(name: str, ends: Sequence[float], *, is_allowed: bool) -> Document:
    """A box of the guard, [x_low, x_high, y_low, y_high, z_low, z_high]: to stay in, or to stay out of."""
    lows, highs = ends[0::2], ends[1::2]
    x, y, z = ((low + high) / 2 for low, high in zip(lows, highs, strict=True))
    a, b, c = (high - low for low, high in zip(lows, highs, strict=True))
    colour = ALLOWED if is_allowed else FORBIDDEN
    label = [_text(name, (x, y, highs[2] + LETTERS_M), (*colour[:3], 1.0))]
    return {**_placed(f"box {name}"), "cubes": [_solid((x, y, z), (a, b, c), colour)], "texts": label}


def _solid_of(shape: Shape, meshes: Mapping[str, str]) -> tuple[str, Document | None]:
    a, b, c = shape.size
    match shape.kind:
        case "box":
            return "cubes", _solid(shape.place, (a, b, c), shape.rgba, shape.turn)
        case "cylinder":
            return "cylinders", {
                **_solid(shape.place, (2 * a, 2 * a, b), shape.rgba, shape.turn), "bottom_scale": 1.0, "top_scale": 1.0,
            }  # fmt: skip
        case "sphere":
            return "spheres", _solid(shape.place, (2 * a, 2 * a, 2 * a), shape.rgba, shape.turn)
        case "mesh":
            data, suffix = meshes.get(shape.mesh, ""), shape.mesh[shape.mesh.rfind(".") :].lower()
            if not data or suffix not in MEDIA:
                return "models", None
            return "models", {
                "pose": _pose(shape.place, shape.turn),
                "scale": {"x": a, "y": b, "z": c},
                "color": _colour(shape.rgba),
                "override_color": suffix in (".stl", ".obj"),
                "url": "",
                "media_type": MEDIA[suffix],
                "data": data,
            }


def _placed(name: str) -> Document:
    return {"id": name, "frame_id": ODOMETRY, "frame_locked": True}


def _pose(place: PointM, turn: Quaternion = UPRIGHT) -> Document:
    return {
        "position": {axis: round(part, 5) for axis, part in zip("xyz", place, strict=True)},
        "orientation": {axis: round(part, 6) for axis, part in zip("xyzw", turn, strict=True)},
    }


def _solid(place: PointM, size: PointM, rgba: Rgba, turn: Quaternion = UPRIGHT) -> Document:
    return {
        "pose": _pose(place, turn),
        "size": {axis: round(part, 5) for axis, part in zip("xyz", size, strict=True)},
        "color": _colour(rgba),
    }


def _line(points: Sequence[PointM], rgba: Rgba, thickness_m: float) -> Document:
    return {
        "type": 0,
        "pose": _pose((0.0, 0.0, 0.0)),
        "thickness": thickness_m,
        "scale_invariant": False,
        "points": [{axis: round(part, 4) for axis, part in zip("xyz", point, strict=True)} for point in points],
        "color": _colour(rgba),
        "colors": [],
        "indices": [],
    }


def _text(text: str, place: PointM, rgba: Rgba) -> Document:
    return {
        "pose": _pose(place),
        "billboard": True,
        "font_size": LETTERS_M,
        "scale_invariant": False,
        "color": _colour(rgba),
        "text": text,
    }


def _colour(rgba: Rgba) -> Document:
    return dict(zip("rgba", rgba, strict=True))
