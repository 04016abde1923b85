"""`KitchenCamera`: the robot's head camera in the kitchen of a scenario; it tells no more than a picture shows."""

from __future__ import annotations

from pathlib import Path

from nodes.kitchen.messages import KitchenTruth
from nodes.kitchen.mjcf import build_kitchen
from nodes.kitchen.scenario import load_scenario
from nodes.kitchen.world import Layout, default_specs, lay_out, load_world
from nodes.sim.camera import SimCamera, compiled
from runtime import QoS, Subscription, UserError, every


class KitchenCamera(SimCamera):
    """`scenario` is that of the driver. Stains, lids and liquids are drawn as the simulator's truth has them."""

    robot_parameter = ""
    kitchen = Subscription(KitchenTruth, "sim/kitchen", qos=QoS(required=False))

    def __init__(self, scenario: str = "", width: int = 480, height: int = 360, backend: str = "rays") -> None:
        super().__init__("head", width, height, backend)
        self._scenario = scenario
        self._layout: Layout | None = None
        self._looks: object = None

    def problems(self) -> list[str]:
        """What is wrong with the scenario."""
        try:
            if self._scenario:
                load_scenario(Path(self._scenario))
        except UserError as problem:
            return [str(problem)]
        return super().problems()

    def on_start(self) -> None:
        """Build the kitchen that the run's seed lays out."""
        self._backend = self._choose_backend()
        found = load_scenario(Path(self._scenario)) if self._scenario else None
        world = load_world(Path(found.world) if found is not None and found.world else None)
        self._layout = lay_out(world, found.things if found is not None else default_specs(), self.run_info.seed)

    @every(hz=5)
    def capture(self) -> None:
        """Draw the newest world; where a lid, a stain or a liquid has changed, build it anew."""
        truth = self.kitchen.latest()
        if truth is None or self._layout is None:
            return
        looks = looks_of(truth)
        if looks != self._looks:
            self._looks = looks
            self._show(compiled(build_kitchen(self._layout, truth).xml))
        super().capture()


def looks_of(truth: KitchenTruth) -> object:
    """What of the truth changes how things look, and not where they are."""
    return truth.dirty_places, tuple((one.fill, one.contents, one.is_dirty, one.is_open) for one in truth.things)
