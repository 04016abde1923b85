"""What a camera of the simulated scene sees: colour and depth, by ray casting or, where it works, by OpenGL.

Ray casting (`mj_multiRay`) needs no OpenGL, no display and no thread, and gives the same picture on every run: use it
in virtual time. The OpenGL back end wants `gl_probe.enable_gl()` before anything imports mujoco.
"""

from __future__ import annotations

import math
from typing import Protocol

import mujoco
import numpy as np
from numpy.typing import NDArray

from nodes.sim.kitchen import TILE_RGB, TILE_SIZE_M
from nodes.sim.scene import HIDDEN_GROUP
from runtime.errors import UserError

Frame = tuple[NDArray[np.uint8], NDArray[np.float32]]
"""rgb (height, width, 3) and depth_m (height, width) along the optical axis, 0 where nothing is hit."""

FARTHEST_M = 20.0
SKY_RGB = (0.80, 0.87, 0.93)
AMBIENT, LAMP, HEADLIGHT = 0.46, 0.36, 0.26
LAMP_DIRECTION = (0.12, 0.35, 0.93)
"""From a thing towards the lamp."""


class Renderer(Protocol):
    """One camera of one model."""

    focal_px: float

    def render(self, data: mujoco.MjData) -> Frame:
        """The picture of a state whose kinematics and cameras are up to date."""
        ...

    def close(self) -> None:
        """Give back what the back end holds."""
        ...


def make_renderer(model: mujoco.MjModel, camera: str, width: int, height: int, backend: str) -> Renderer:
    """The renderer of a back end ("rays" or "gl") for one camera. Raises UserError for another name."""
    if camera not in HIDDEN_GROUP:
        raise UserError(f"camera {camera!r} is unknown; known: {', '.join(HIDDEN_GROUP)}")
    if backend == "rays":
        return RayRenderer(model, camera, width, height)
    if backend == "gl":
        return GlRenderer(model, camera, width, height)
    raise UserError(f"rendering back end {backend!r} is unknown; known: rays, gl")


def focal_length_px(model: mujoco.MjModel, camera_id: int, height: int) -> float:
    """Focal length of a pinhole camera with square pixels."""
    return height / 2 / math.tan(math.radians(float(model.cam_fovy[camera_id])) / 2)


class RayRenderer:
    """One ray per pixel centre, shaded from the geom's colour and normal by one lamp and a light at the camera."""

    def __init__(self, model: mujoco.MjModel, camera: str, width: int, height: int) -> None:
        self._model = model
        self._camera_id = model.camera(camera).id
        self._shape = (height, width)
        self.focal_px = focal_length_px(model, self._camera_id, height)
        across = (np.arange(width) + 0.5 - width / 2) / self.focal_px
        up = (height / 2 - np.arange(height) - 0.5) / self.focal_px
        grid = np.stack(np.broadcast_arrays(across[None, :], up[:, None], -1.0), axis=-1).reshape(-1, 3)
        norm = np.linalg.norm(grid, axis=1, keepdims=True)
        self._directions = grid / norm  # (pixels, 3), camera frame: right, up, backward
        self._cosine = (1.0 / norm[:, 0]).astype(np.float32)
        self._groups = np.ones(6, dtype=np.uint8)
        self._groups[HIDDEN_GROUP[camera]] = 0
        count = width * height
        self._geom = np.zeros(count, dtype=np.int32)
        self._distance = np.zeros(count)
        self._normal = np.zeros((count, 3))
        # The last row is the sky: geom id -1 picks it.
        self._palette = np.vstack([model.geom_rgba[:, :3], SKY_RGB]).astype(np.float32)
        floors = np.flatnonzero(model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE)
        self._floor = int(floors[0]) if len(floors) else -2
        self._tiles = np.array(TILE_RGB, dtype=np.float32)
        self._lamp = np.array(LAMP_DIRECTION, dtype=np.float32) / np.float32(np.linalg.norm(LAMP_DIRECTION))

    def render(self, data: mujoco.MjData) -> Frame:
        """Cast and shade all rays (about 0.4 us each on one core)."""
        origin = data.cam_xpos[self._camera_id]
        rays = self._directions @ data.cam_xmat[self._camera_id].reshape(3, 3).T
        mujoco.mj_multiRay(
            self._model,
            data,
            origin,
            rays.reshape(-1),
            self._groups,
            True,
            -1,
            self._geom,
            self._distance,
            self._normal.reshape(-1),
            len(rays),
            FARTHEST_M,
        )
        is_hit = self._geom >= 0
        depth = np.where(is_hit, self._distance.astype(np.float32) * self._cosine, np.float32(0.0))
        rgb = self._shade(rays.astype(np.float32), origin, is_hit)
        return rgb.reshape(*self._shape, 3), depth.reshape(self._shape)

    def close(self) -> None:
        """Nothing is held."""

    def _shade(self, rays: NDArray[np.float32], origin: NDArray[np.float64], is_hit: NDArray[np.bool_]) -> Pixels:
        colour = self._palette[self._geom]
        on_floor = np.flatnonzero(self._geom == self._floor)
        if len(on_floor):
            spot = origin[:2] + rays[on_floor, :2] * self._distance[on_floor, None]
            tile = np.floor(spot / TILE_SIZE_M).astype(np.int64).sum(axis=1) & 1
            colour[on_floor] = self._tiles[tile]
        normal = self._normal.astype(np.float32)
        lamp = np.maximum(normal @ self._lamp, 0.0)
        facing = np.abs(np.einsum("ij,ij->i", normal, rays))
        light = np.where(is_hit, AMBIENT + LAMP * lamp + HEADLIGHT * facing, 1.0)
        shaded: Pixels = np.minimum(colour * (light[:, None] * 255.0), 255.0).astype(np.uint8)
        return shaded


Pixels = NDArray[np.uint8]


class GlRenderer:
    """mujoco's own OpenGL renderer, without shadows. At most one per process, and always from the same thread."""

    def __init__(self, model: mujoco.MjModel, camera: str, width: int, height: int) -> None:
        self._camera_id = model.camera(camera).id
        self.focal_px = focal_length_px(model, self._camera_id, height)
        self._option = mujoco.MjvOption()
        self._option.geomgroup[:] = 1
        self._option.geomgroup[HIDDEN_GROUP[camera]] = 0
        self._option.sitegroup[:] = 0
        self._renderer = mujoco.Renderer(model, height, width)

    def render(self, data: mujoco.MjData) -> Frame:
        """Draw colour, then depth."""
        renderer = self._renderer
        renderer.update_scene(data, self._camera_id, self._option)
        for flag in (mujoco.mjtRndFlag.mjRND_SHADOW, mujoco.mjtRndFlag.mjRND_REFLECTION):
            renderer.scene.flags[flag] = 0
        rgb = renderer.render().copy()
        renderer.enable_depth_rendering()
        depth = renderer.render().astype(np.float32)
        renderer.disable_depth_rendering()
        return rgb, np.where(depth < FARTHEST_M * 0.99, depth, np.float32(0.0))

    def close(self) -> None:
        """Release the OpenGL context."""
        self._renderer.close()
