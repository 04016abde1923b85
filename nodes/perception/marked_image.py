"""The image that a planner's model is shown, with the ids of the scene's things where they are seen."""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec
import numpy as np

from nodes.msgs import Image, Scene, SeenObject

LEAST_WIDTH_PX = 640
"""A smaller image is enlarged, so that ids can be read in it."""


def marked(newest: Image | None, kept: Iterable[Image], scene: Scene) -> tuple[Image | None, Scene]:
    """The image that the scene tells of with the ids in it, of those `kept`, and the scene with places in that image.

    Where it is not kept: the newest image without ids, and the scene with no places in an image.
    """
    image = next((one for one in kept if one.captured_ns == scene.image_ns), None)
    if image is None:
        return newest, _with_pixels(scene, 0.0)
    import cv2

    scale = max(1, math.ceil(LEAST_WIDTH_PX / image.rgb.shape[1]))
    drawn = np.ascontiguousarray(cv2.resize(image.rgb, None, fx=scale, fy=scale, interpolation=cv2.INTER_CUBIC))
    shown = _with_pixels(scene, scale)
    for one in shown.things:
        if one.u_px or one.v_px:
            at = int(one.u_px), int(one.v_px)
            cv2.circle(drawn, at, 3, (255, 255, 255), -1)
            for colour, width in (((0, 0, 0), 3), ((255, 255, 255), 1)):
                cv2.putText(drawn, one.id, (at[0] + 5, at[1] - 4), cv2.FONT_HERSHEY_SIMPLEX, 0.45, colour, width)
    return Image(camera=image.camera, captured_ns=image.captured_ns, rgb=np.asarray(drawn, np.uint8)), shown


def _with_pixels(scene: Scene, scale: float) -> Scene:
    def moved(one: SeenObject) -> SeenObject:
        return msgspec.structs.replace(one, u_px=one.u_px * scale, v_px=one.v_px * scale)  # type: ignore[type-var]  # a Struct

    return msgspec.structs.replace(scene, things=tuple(moved(one) for one in scene.things))  # type: ignore[type-var]  # a Struct
