"""`SimCamera`: a camera in a simulated world. It learns of that only what it needs to draw it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nodes.msgs import Image
from nodes.robot.robot_from_launch import ForRobot, is_file
from nodes.sim.messages import Truth, World
from nodes.sim.rendering.gl_probe import enable_gl
from nodes.sim.world.scenario import CUBES, DEMO, layout_of, scenario_problems, truth_at_start
from runtime import Node, Publisher, QoS, Subscription, UserError, every

if TYPE_CHECKING:
    from nodes.robot_file.engine import mujoco
    from nodes.sim.rendering.renderer import Frame

CAMERAS = ("head", "wrist", "room")
BACKENDS = ("rays", "gl", "auto")
FARTHEST_M = 20.0
"""Depth is 0 beyond."""


class WorldView:
    """What one camera of a simulated scene sees, as (rgb, depth_m): of the model of any seed, for a seed only moves
    things, and where they are comes with each World.
    """

    def __init__(self, model: mujoco.MjModel, camera: str, width: int, height: int, backend: str = "rays") -> None:
        from nodes.robot_file.engine import mujoco
        from nodes.sim.rendering.renderer import make_renderer

        self._model = model
        self._data = mujoco.MjData(self._model)
        self._renderer = make_renderer(self._model, camera, width, height, backend, FARTHEST_M)
        self.focal_px = self._renderer.focal_px

    def fits(self, world: World) -> bool:
        """Whether that world is of the model that is drawn here."""
        return len(world.qpos) == int(self._model.nq)

    def see(self, world: World) -> Frame:
        """The picture of that world."""
        from nodes.robot_file.engine import mujoco

        np.copyto(self._data.qpos, world.qpos)
        np.copyto(self._data.mocap_pos, world.mocap_pos)
        if world.mocap_quat is not None:
            np.copyto(self._data.mocap_quat, world.mocap_quat)
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_camlight(self._model, self._data)
        return self._renderer.render(self._data)

    def close(self) -> None:
        """Give back the renderer."""
        self._renderer.close()


def model_of(
    robot: str = "", scenario: str = "", things: str = "", seed: int = 0, shown: Truth | None = None
) -> mujoco.MjModel:
    """What a camera draws: `robot` is a robot file ("": a Stretch), the others as for the driver; `shown`: as it looks
    then, and else at the start.
    """
    from nodes.robot_file.engine import mujoco

    layout = layout_of(scenario or (CUBES if is_file(robot) else DEMO), seed, things)
    shown = shown or truth_at_start(layout)
    if is_file(robot):
        from nodes.robot_file.model import load_robot
        from nodes.sim.file_robot import build

        return build(load_robot(robot), layout, shown).model
    from nodes.sim.world.mjcf import build_stretch

    return mujoco.MjModel.from_xml_string(build_stretch(layout, shown))


def looks_of(truth: Truth) -> object:
    """What of the truth changes how things look, and not where they are."""
    return truth.dirty_places, tuple((one.fill, one.contents, one.is_dirty, one.is_open) for one in truth.objects)


class SimCamera(ForRobot, Node):
    """Draws the newest World, each at most once.

    `camera` is "head", "wrist" or, for people to watch, "room" (remap `head/image` for those two). `backend` is "rays",
    "gl" or "auto": OpenGL where it works; in virtual time always rays, whose pictures are the same on every run.
    `scenario` and `things` are those of the driver. Stains, lids and liquids are drawn as the simulator's truth says.
    """

    robot_parameter = "limits"

    world = Subscription(World, "sim/world")
    truth = Subscription(Truth, "sim/truth", qos=QoS(required=False))
    image = Publisher(Image, "head/image")

    def __init__(
        self,
        camera: str = "head",
        width: int = 160,
        height: int = 120,
        backend: str = "rays",
        limits: str = "",
        scenario: str = "",
        things: str = "",
    ) -> None:
        if camera not in CAMERAS:
            raise UserError(f"camera is {camera!r}; known: {', '.join(CAMERAS)}")
        if backend not in BACKENDS:
            raise UserError(f"backend is {backend!r}; known: {', '.join(BACKENDS)}")
        if width < 8 or height < 8:
            raise UserError(f"a picture of {width} x {height} pixels is too small; expected 8 x 8 or more")
        self._camera, self._width, self._height, self._backend = camera, width, height, backend
        self._drawn_ns = -1
        self._robot = limits if is_file(limits) else ""
        self._scenario, self._things = scenario or (CUBES if self._robot else DEMO), things
        self._looks: object = None
        self._view: WorldView | None = None

    def problems(self) -> list[str]:
        """What is wrong with the scenario."""
        return [*scenario_problems(self._scenario), *super().problems()]

    def libraries(self) -> tuple[str, ...]:
        return ("mujoco",)

    @classmethod
    def preload(cls) -> None:
        """Load what draws, before the processes of the run are forked."""
        import nodes.sim.rendering.renderer  # noqa: F401

    def on_start(self) -> None:
        """Build the scene and choose the back end. Raises UserError where "gl" is asked for and does not work."""
        self._backend = self._choose_backend()
        begins = truth_at_start(layout_of(self._scenario, self.run_info.seed, self._things))
        self._looks = looks_of(begins)
        self._show(begins)
        self.log.info("%s camera %d x %d, %s", self._camera, self._width, self._height, self._backend)

    def _show(self, truth: Truth) -> None:
        """Draw the world as it looks now from now on."""
        if self._view is not None:
            self._view.close()
        model = model_of(self._robot, self._scenario, self._things, self.run_info.seed, truth)
        self._view = WorldView(model, self._camera, self._width, self._height, self._backend)

    def on_stop(self) -> None:
        """Give back the renderer."""
        if self._view is not None:
            self._view.close()

    @every(hz=10)
    def capture(self) -> None:
        """Draw the newest world, unless it is drawn already."""
        world, truth = self.world.latest(), self.truth.latest()
        if self._view is None:
            return  # not started
        if world is None or world.stepped_ns == self._drawn_ns:
            return
        if truth is not None and (looks := looks_of(truth)) != self._looks:
            self._looks = looks
            self._show(truth)
        view = self._view
        self._drawn_ns = world.stepped_ns
        rgb, depth_m = view.see(world)
        self.image.publish(
            Image(camera=self._camera, captured_ns=world.stepped_ns, rgb=rgb, depth_m=depth_m, focal_px=view.focal_px)
        )

    def _choose_backend(self) -> str:
        if self._backend == "rays" or (self._backend == "auto" and self.clock.is_virtual):
            return "rays"
        if enable_gl() is not None:
            return "gl"
        if self._backend == "auto":
            return "rays"
        raise UserError(f'node {self.name}: backend "gl" finds no OpenGL here; use "rays" or "auto"')
