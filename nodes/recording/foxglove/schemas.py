"""JSON Schemas of what viewers know by name: as Foxglove publishes them, with the fields that are written here."""

from __future__ import annotations

from typing import Any

import msgspec

from nodes.mcap.schema import ENVELOPE_KEY, Document, envelope_schema
from runtime.clock import NS_PER_S

TRANSFORMS_NAME = "foxglove.FrameTransforms"
LOG_NAME = "foxglove.Log"
JOINTS_NAME = "foxglove.JointStates"
CALIBRATION_NAME = "foxglove.CameraCalibration"
SCENE_NAME = "foxglove.SceneUpdate"
EVENT_NAME = "foxglove.Event"
DESCRIPTION_NAME = "std_msgs/String"
"""What viewers that know ROS take a URDF from."""

_NUMBER: Document = {"type": "number"}
_TEXT: Document = {"type": "string"}
_WHOLE: Document = {"type": "integer"}
_YES: Document = {"type": "boolean"}
_TIME: Document = {
    "type": "object",
    "title": "time",
    "properties": {
        "sec": {"type": "integer", "minimum": 0},
        "nsec": {"type": "integer", "minimum": 0, "maximum": 999_999_999},
    },
}


def _object(title: str, **properties: Document) -> Document:
    return {"type": "object", "title": title, "properties": properties}


def _list(items: Document) -> Document:
    return {"type": "array", "items": items}


_VECTOR = _object("foxglove.Vector3", **dict.fromkeys("xyz", _NUMBER))
_TURN = _object("foxglove.Quaternion", **dict.fromkeys("xyzw", _NUMBER))
_POSE = _object("foxglove.Pose", position=_VECTOR, orientation=_TURN)
_COLOUR = _object("foxglove.Color", **dict.fromkeys("rgba", _NUMBER))
_FACTS = _list(_object("foxglove.KeyValuePair", key=_TEXT, value=_TEXT))
_SOLID = {"pose": _POSE, "size": _VECTOR, "color": _COLOUR}
_ENTITY = _object(
    "foxglove.SceneEntity",
    timestamp=_TIME,
    frame_id=_TEXT,
    id=_TEXT,
    lifetime={**_TIME, "title": "duration"},
    frame_locked=_YES,
    metadata=_FACTS,
    cubes=_list(_object("foxglove.CubePrimitive", **_SOLID)),
    spheres=_list(_object("foxglove.SpherePrimitive", **_SOLID)),
    cylinders=_list(_object("foxglove.CylinderPrimitive", **_SOLID, bottom_scale=_NUMBER, top_scale=_NUMBER)),
    lines=_list(
        _object(
            "foxglove.LinePrimitive",
            type=_WHOLE,
            pose=_POSE,
            thickness=_NUMBER,
            scale_invariant=_YES,
            points=_list(_VECTOR),
            color=_COLOUR,
            colors=_list(_COLOUR),
            indices=_list(_WHOLE),
        )
    ),
    texts=_list(
        _object(
            "foxglove.TextPrimitive",
            pose=_POSE,
            billboard=_YES,
            font_size=_NUMBER,
            scale_invariant=_YES,
            color=_COLOUR,
            text=_TEXT,
        )
    ),
    models=_list(
        _object(
            "foxglove.ModelPrimitive",
            pose=_POSE,
            scale=_VECTOR,
            color=_COLOUR,
            override_color=_YES,
            url=_TEXT,
            media_type=_TEXT,
            data={"type": "string", "contentEncoding": "base64"},
        )
    ),
)

_PROPERTIES: dict[str, Document] = {
    TRANSFORMS_NAME: {
        "transforms": _list(
            _object(
                "foxglove.FrameTransform",
                timestamp=_TIME,
                parent_frame_id=_TEXT,
                child_frame_id=_TEXT,
                translation=_VECTOR,
                rotation=_TURN,
            )
        )
    },
    LOG_NAME: {
        "timestamp": _TIME,
        "level": {"type": "integer", "description": "1 debug, 2 info, 3 warning, 4 error, 5 fatal"},
        "message": _TEXT,
        "name": {"type": "string", "description": "The node, or who speaks"},
        "file": _TEXT,
        "line": _WHOLE,
    },
    JOINTS_NAME: {
        "timestamp": _TIME,
        "joints": _list(_object("foxglove.JointState", name=_TEXT, position=_NUMBER, velocity=_NUMBER, effort=_NUMBER)),
    },
    CALIBRATION_NAME: {
        "timestamp": _TIME,
        "frame_id": _TEXT,
        "width": {"type": "integer", "minimum": 0},
        "height": {"type": "integer", "minimum": 0},
        "distortion_model": _TEXT,
        **{name: _list(_NUMBER) for name in "DKRP"},
    },
    SCENE_NAME: {
        "deletions": _list(_object("foxglove.SceneEntityDeletion", timestamp=_TIME, type=_WHOLE, id=_TEXT)),
        "entities": _list(_ENTITY),
    },
    EVENT_NAME: {"start_time": _TIME, "end_time": _TIME, "metadata": _FACTS},
    DESCRIPTION_NAME: {"data": {"type": "string", "description": "The robot's URDF"}},
}

SCHEMAS: dict[str, bytes] = {
    name: msgspec.json.encode(
        {"title": name, "type": "object", "properties": {**properties, ENVELOPE_KEY: envelope_schema()}}
    )
    for name, properties in _PROPERTIES.items()
}
"""By name."""


def time_document(wall_ns: int) -> dict[str, Any]:
    """A moment on the clock on the wall."""
    sec, nsec = divmod(max(0, wall_ns), NS_PER_S)
    return {"sec": sec, "nsec": nsec}
