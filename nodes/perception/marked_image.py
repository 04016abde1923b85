"""The image that a planner's model is shown, with the ids of the scene's things where they are seen."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from runtime.clock import to_ns
from runtime.msgs import Image, Scene, SeenObject

LEAST_WIDTH_PX = 640
"""A smaller image is enlarged, so that ids can be read in it."""
SAME_VIEW_NS = to_ns(0.5)
STEADY = 0.02
"""Of a picture's width: what moves less between two scenes says that the head stands still."""


def is_steady(before: Scene | None, now: Scene) -> bool:
    """Whether the head stood still between two scenes, as far as things that both show can tell."""
    if before is None:
        return False
    were = {one.id: one for one in before.things if one.u_px or one.v_px}
    both = [(were[one.id], one) for one in now.things if one.id in were and (one.u_px or one.v_px)]
    return bool(both) and all(
        math.dist((one.u_px, one.v_px), (two.u_px, two.v_px)) < STEADY * max(two.u_px, two.v_px, 100.0)
        for one, two in both
    )


def marked(image: Image | None, scene: Scene, *, is_still: bool) -> tuple[Image | None, Scene]:
    """The image with the ids in it, and the scene with places in that image; with none where that is not the view.

    `is_still` says that the head stands still.
    """
    if image is None or not is_still or abs(image.captured_ns - scene.image_ns) > SAME_VIEW_NS:
        return image, _with_pixels(scene, 0.0)
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
