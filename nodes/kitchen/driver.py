"""`KitchenDriver`: drives the robot in the kitchen, and shows its world to eyes, cameras and people."""

from __future__ import annotations

from pathlib import Path

from nodes.kitchen.eyes import IdealDetector
from nodes.kitchen.messages import KitchenTruth, Obstacles
from nodes.kitchen.robot import KitchenRobot
from nodes.kitchen.scenario import load_scenario
from nodes.msgs import Scene
from nodes.sim.driver import SimDriver
from runtime import Publisher, UserError, every

ROBOT = "nodes.kitchen.robot:KitchenRobot"


class KitchenDriver(SimDriver):
    """A driver whose robot is a `KitchenRobot`; `scenario` is the file that lays the kitchen out ("": ours)."""

    kitchen = Publisher(KitchenTruth, "sim/kitchen")
    eyes = Publisher(Scene, "sim/eyes")
    obstacles = Publisher(Obstacles, "obstacles")

    def __init__(self, scenario: str = "", limits: str = "") -> None:
        super().__init__(ROBOT, {"scenario": scenario}, limits)
        self._scenario = scenario
        self._eyes: IdealDetector | None = None

    def problems(self) -> list[str]:
        """What is wrong with the scenario."""
        try:
            if self._scenario:
                load_scenario(Path(self._scenario))
        except UserError as problem:
            return [str(problem)]
        return super().problems()

    def on_start(self) -> None:
        """Lay the kitchen out by the run's seed."""
        super().on_start()
        person = load_scenario(Path(self._scenario)).person if self._scenario else "Ann"
        seed = self.run_info.seed
        self._eyes = IdealDetector(self._robot.layout.kitchen, person, seed)

    @every(hz=10)
    def show_world(self) -> None:
        """For cameras that people look through; no policy looks."""
        super().show_world()

    @every(hz=10)
    def show_kitchen(self) -> None:
        """The truth for people and judges, what can be seen for eyes."""
        truth = self._robot.kitchen()
        self.kitchen.publish(truth)
        still = tuple((x, y, one.radius_m) for _, x, y, one in self._robot.layout.obstacles)
        self.obstacles.publish(Obstacles(furniture=still, people=((*truth.body_m[:2], 0.16),)))
        if self._eyes is not None:
            self.eyes.publish(self._eyes.see(truth, self.clock.now_ns()))

    @property
    def _robot(self) -> KitchenRobot:
        assert isinstance(self.robot, KitchenRobot), "on_start has made it"
        return self.robot
