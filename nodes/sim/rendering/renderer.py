"""What a camera of the simulated scene sees: colour and depth, by ray casting or, where it works, by OpenGL.

Ray casting (`casting`) needs no OpenGL, no display and no thread, and gives the same picture on every run: use it
in virtual time. The OpenGL back end wants `gl_probe.enable_gl()` first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nodes.robot.products import product
from nodes.robot_file.engine import mujoco
from nodes.robot_file.model import PREFIX
from nodes.sim.rendering.casting import Caster
from nodes.sim.rendering.pixel_grid import NOTHING, Doubles, Floats, Integers
from nodes.sim.world.mjcf import HIDDEN_GROUP
from nodes.sim.world.room_mjcf import TILE_SIZE_M
from runtime.errors import UserError

Frame = tuple[NDArray[np.uint8], NDArray[np.float32]]
"""rgb (height, width, 3) and depth_m (height, width) along the optical axis, 0 where nothing is hit."""

TILE_RGB = (0.80, 0.75, 0.68), (0.75, 0.70, 0.63)
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


def make_renderer(
    model: mujoco.MjModel, camera: str, width: int, height: int, backend: str, farthest_m: float
) -> Renderer:
    """The renderer of a back end ("rays" or "gl") for one camera, whose depth is 0 from `farthest_m` on.

    Raises UserError for another name.
    """
    if camera not in HIDDEN_GROUP:
        raise UserError(f"camera {camera!r} is unknown; known: {', '.join(HIDDEN_GROUP)}")
    if backend == "rays":
        return RayRenderer(model, camera, width, height, farthest_m)
    if backend == "gl":
        return GlRenderer(model, camera, width, height, farthest_m)
    raise UserError(f"rendering back end {backend!r} is unknown; known: rays, gl")


def focal_length_px(model: mujoco.MjModel, camera_id: int, height: int) -> float:
    """Focal length of a pinhole camera with square pixels."""
    return height / 2 / math.tan(math.radians(float(model.cam_fovy[camera_id])) / 2)


def _camera(model: mujoco.MjModel, name: str) -> int:
    """The camera of that name, of the room or of a robot from a file. Raises UserError where there is none."""
    names = [model.camera(number).name for number in range(model.ncam)]
    for one in (name, PREFIX + name):
        if one in names:
            return names.index(one)
    known = ", ".join(one.removeprefix(PREFIX) for one in names)
    raise UserError(f"the robot has no camera {name!r}; known: {known}; [cameras.{name}] of its robot file adds one")


class RayRenderer:
    """One ray per pixel centre, shaded from the surface's colour and normal by one lamp and a light at the camera."""

    def __init__(self, model: mujoco.MjModel, camera: str, width: int, height: int, farthest_m: float) -> None:
        self._camera_id = _camera(model, camera)
        self.focal_px = focal_length_px(model, self._camera_id, height)
        across = (np.arange(width) + 0.5 - width / 2) / self.focal_px
        up = (height / 2 - np.arange(height) - 0.5) / self.focal_px
        self._caster = Caster(model, HIDDEN_GROUP[camera], across, up, farthest_m)
        surfaces = self._caster.surfaces
        self._across, self._up = across.astype(np.float32)[None, :], up.astype(np.float32)[:, None]
        self._cosine = (1.0 / np.sqrt(self._across**2 + self._up**2 + 1.0)).astype(np.float32)
        self._is_curved, self._is_flat = surfaces.is_curved, surfaces.axis >= 0
        palette = model.geom_rgba[surfaces.geom, :3]
        palette[NOTHING] = SKY_RGB
        # The last colour is that of every other tile of the floor.
        self._palette = np.ascontiguousarray((np.vstack([palette, TILE_RGB[1]]) * 255).T, dtype=np.float32)
        self._other_tile = self._palette.shape[1] - 1
        floor = np.flatnonzero((surfaces.geom >= 0) & (model.geom_type[surfaces.geom] == mujoco.mjtGeom.mjGEOM_PLANE))
        self._floor = int(floor[0]) if len(floor) else -1
        if len(floor):
            self._palette[:, self._floor] = np.array(TILE_RGB[0], dtype=np.float32) * 255
        self._lamp = np.array(LAMP_DIRECTION) / math.hypot(*LAMP_DIRECTION)
        # What is round around the middle of an axis, which for a ball is a point.
        kind = model.geom_type
        self._is_capped = np.isin(kind, [mujoco.mjtGeom.mjGEOM_SPHERE, mujoco.mjtGeom.mjGEOM_CAPSULE])
        self._half_length = np.where(kind == mujoco.mjtGeom.mjGEOM_CAPSULE, model.geom_size[:, 1], 0.0)

    def render(self, data: mujoco.MjData) -> Frame:
        """Cast and shade all rays (about 0.1 us each on one core)."""
        eye = data.cam_xpos[self._camera_id]
        axes = data.cam_xmat[self._camera_id].reshape(3, 3)
        caster = self._caster
        caster.cast(data, eye, axes)
        surface, nearness = caster.grid.surface, caster.grid.nearness
        depth: Floats = np.reciprocal(nearness)
        np.copyto(depth, np.float32(0.0), where=surface == NOTHING)
        light = self._light(data, surface, nearness, depth, axes)
        if self._floor >= 0:
            self._lay_tiles(surface, depth, eye, axes)
        rgb: Pixels = np.empty((*surface.shape, 3), dtype=np.uint8)
        for channel, palette in enumerate(self._palette):
            colour = palette.take(surface)
            colour *= light
            rgb[..., channel] = np.minimum(colour, np.float32(255.0), out=colour)
        return rgb, depth

    def close(self) -> None:
        """Nothing is held."""

    def _lay_tiles(self, surface: Integers, depth: Floats, eye: Doubles, axes: Doubles) -> None:
        """Give every other tile of the floor the other colour."""
        on_floor = surface == self._floor
        first, from_end = on_floor.argmax(), on_floor.reshape(-1)[::-1].argmax()
        if not on_floor.reshape(-1)[first]:
            return
        width = on_floor.shape[1]
        seen = slice(int(first) // width, len(on_floor) - int(from_end) // width)
        tiles = np.zeros(surface[seen].shape, dtype=np.int32)
        for axis in range(2):
            right, upward, backward = (axes[axis] / TILE_SIZE_M).astype(np.float32)
            spot = right * self._across + (upward * self._up[seen] - backward)
            spot *= depth[seen]
            spot += np.float32(eye[axis] / TILE_SIZE_M)
            tiles ^= np.floor(spot, out=spot).astype(np.int32)
        is_other = (tiles & 1).astype(np.bool_)
        is_other &= on_floor[seen]
        np.copyto(surface[seen], self._other_tile, where=is_other)

    def _light(self, data: mujoco.MjData, surface: Integers, nearness: Floats, depth: Floats, axes: Doubles) -> Floats:
        """How bright each pixel is, from the normal of what it sees; 1 for the sky."""
        caster = self._caster
        geom, axis, side = caster.surfaces.geom, caster.surfaces.axis, caster.surfaces.side
        slopes = product(self._lamp, data.geom_xmat.reshape(-1, 3, 3))
        slope = slopes[geom, axis] * side  # of each flat surface to the lamp
        lamp = np.where(self._is_flat, np.maximum(slope, 0.0) * LAMP + AMBIENT, 1.0).astype(np.float32)
        # Normal times ray is the distance from the plane of the surface over the depth.
        away = np.abs(caster.start[geom, axis] * side - caster.reach) * HEADLIGHT
        away = np.where(self._is_flat, away, 0.0).astype(np.float32)
        light: Floats = away.take(surface)
        light *= nearness
        light *= self._cosine
        light += lamp.take(surface)
        curved = self._is_curved.take(surface.reshape(-1)).nonzero()[0]
        if len(curved):
            lit_from = product(self._lamp, axes).tolist()
            light.reshape(-1)[curved] = self._light_of_curved(surface, curved, depth, lit_from)
        return light

    def _light_of_curved(self, surface: Integers, curved: Integers, depth: Floats, lamp: list[float]) -> Doubles:
        """The same for some pixels, coordinate by coordinate in the frame of the camera: several times as fast."""
        caster, grid = self._caster, self._caster.grid
        geom = caster.surfaces.geom.take(surface.take(curved))
        ahead = depth.take(curved).astype(np.float64)
        row, column = np.divmod(curved, grid.width)
        ray: list[Any] = [grid.across.take(column), grid.up.take(row), -1.0]
        axis = [part.take(geom) for part in caster.turn[:, :, 2].T]
        away = [slope * ahead - part.take(geom) for slope, part in zip(ray, caster.centre.T, strict=True)]
        along = _product(away, axis)
        end = self._half_length.take(geom)
        along = np.where(self._is_capped.take(geom), np.minimum(np.maximum(along, -end), end), along)
        normal = [part - along * of_axis for part, of_axis in zip(away, axis, strict=True)]
        length = np.sqrt(_product(normal, normal))
        turned = np.abs(_product(normal, ray)) * self._cosine.take(curved)
        light: Doubles = AMBIENT + (LAMP * np.maximum(_product(normal, lamp), 0.0) + HEADLIGHT * turned) / length
        return light


def _product(one: Sequence[Any], other: Sequence[Any]) -> Doubles:
    """Of vectors that are given coordinate by coordinate."""
    product: Doubles = one[0] * other[0] + one[1] * other[1] + one[2] * other[2]
    return product


Pixels = NDArray[np.uint8]


class GlRenderer:
    """mujoco's own OpenGL renderer, without shadows. At most one per process, and always from the same thread."""

    def __init__(self, model: mujoco.MjModel, camera: str, width: int, height: int, farthest_m: float) -> None:
        self._camera_id = _camera(model, camera)
        self.focal_px = focal_length_px(model, self._camera_id, height)
        self._option = mujoco.MjvOption()
        self._option.geomgroup[:] = 1
        self._option.geomgroup[HIDDEN_GROUP[camera]] = 0
        self._option.sitegroup[:] = 0
        self._renderer = mujoco.Renderer(model, height, width)
        self._farthest_m = farthest_m

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
        return rgb, np.where(depth < self._farthest_m * 0.99, depth, np.float32(0.0))

    def close(self) -> None:
        """Release the OpenGL context."""
        self._renderer.close()
