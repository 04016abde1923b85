"""What Foxglove shows beside plots and images: transforms of base and cameras, and log lines, in its own schemas."""

from __future__ import annotations

import math
from typing import Any

import msgspec
from numpy.typing import NDArray

from nodes.stretch.kinematics import head_camera_pose, wrist_camera_pose
from runtime.bag.journal import LogLine
from runtime.bag.schema import ENVELOPE_KEY, Document, envelope_document, envelope_schema
from runtime.clock import NS_PER_S
from runtime.message import Envelope
from runtime.msgs import RobotState

TRANSFORMS_NAME = "foxglove.FrameTransforms"
LOG_NAME = "foxglove.Log"
TRANSFORM_PERIOD_NS = 100_000_000

_TIME = {
    "type": "object",
    "title": "time",
    "properties": {"sec": {"type": "integer", "minimum": 0}, "nsec": {"type": "integer", "minimum": 0}},
}


def _vector(title: str, names: str) -> Document:
    return {"type": "object", "title": title, "properties": {name: {"type": "number"} for name in names}}


TRANSFORMS_SCHEMA = msgspec.json.encode(
    {
        "title": TRANSFORMS_NAME,
        "type": "object",
        "properties": {
            "transforms": {
                "type": "array",
                "items": {
                    "title": "foxglove.FrameTransform",
                    "type": "object",
                    "properties": {
                        "timestamp": _TIME,
                        "parent_frame_id": {"type": "string"},
                        "child_frame_id": {"type": "string"},
                        "translation": _vector("foxglove.Vector3", "xyz"),
                        "rotation": _vector("foxglove.Quaternion", "xyzw"),
                    },
                },
            },
            ENVELOPE_KEY: envelope_schema(),
        },
    }
)
LOG_SCHEMA = msgspec.json.encode(
    {
        "title": LOG_NAME,
        "type": "object",
        "properties": {
            "timestamp": _TIME,
            "level": {"type": "integer", "description": "1 debug, 2 info, 3 warning, 4 error, 5 fatal"},
            "message": {"type": "string"},
            "name": {"type": "string", "description": "The node"},
            "file": {"type": "string"},
            "line": {"type": "integer"},
            ENVELOPE_KEY: envelope_schema(),
        },
    }
)
_LEVELS = ((50, 5), (40, 4), (30, 3), (20, 2), (0, 1))


def transforms_document(
    state: RobotState, envelope: Envelope, *, wall_offset_ns: int, is_stretch: bool = True
) -> Document:
    """Where base and cameras are: odometry -> base -> head and wrist camera (optical frames).

    Of another robot than a Stretch only the base: where its cameras are, nobody here knows.
    """
    stamp = _stamp(state.read_ns + wall_offset_ns)
    half = state.base_heading_rad / 2
    rows = [("odometry", "base", (state.base_x_m, state.base_y_m, 0.0), (0.0, 0.0, math.sin(half), math.cos(half)))]
    for name, pose in (("head", head_camera_pose), ("wrist", wrist_camera_pose)) if is_stretch else ():
        rotation, place = pose(state.position)
        x, y, z = (float(value) for value in place)
        rows.append(("base", name, (x, y, z), quaternion(rotation)))
    return {
        "transforms": [
            {
                "timestamp": stamp,
                "parent_frame_id": parent,
                "child_frame_id": child,
                "translation": dict(zip("xyz", translation, strict=True)),
                "rotation": dict(zip("xyzw", rotation_xyzw, strict=True)),
            }
            for parent, child, translation, rotation_xyzw in rows
        ],
        ENVELOPE_KEY: envelope_document(envelope),
    }


def log_document(line: LogLine, envelope: Envelope, *, wall_offset_ns: int) -> Document:
    """One log line of a node."""
    return {
        "timestamp": _stamp(line.at_ns + wall_offset_ns),
        "level": next(level for floor, level in _LEVELS if line.level >= floor),
        "message": line.text,
        "name": envelope.source,
        "file": "",
        "line": 0,
        ENVELOPE_KEY: envelope_document(envelope),
    }


def quaternion(rotation: NDArray[Any]) -> tuple[float, float, float, float]:
    """A rotation matrix (3, 3) as x, y, z, w; w is not negative."""
    (a, b, c), (d, e, f), (g, h, i) = rotation.tolist()
    # Each row is the quaternion times four times one of its parts: the one by the largest part is good to divide by.
    row = max(
        ((1 + a - e - i, b + d, c + g, h - f), 0),
        ((b + d, 1 - a + e - i, f + h, c - g), 1),
        ((c + g, f + h, 1 - a - e + i, d - b), 2),
        ((h - f, c - g, d - b, 1 + a + e + i), 3),
        key=lambda candidate: candidate[0][candidate[1]],
    )[0]
    length = math.copysign(math.hypot(*row), row[3])
    x, y, z, w = (part / length for part in row)
    return x, y, z, w


def _stamp(ns: int) -> Document:
    sec, nsec = divmod(max(0, ns), NS_PER_S)
    return {"sec": sec, "nsec": nsec}
