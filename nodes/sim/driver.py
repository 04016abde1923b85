"""`SimDriver`: drives the simulated robot, and shows its world to the simulated cameras and collaborator."""

from __future__ import annotations

from nodes.robot.driver import SIMULATED, Driver, Parameter
from nodes.robot.robot_from_launch import is_file
from nodes.sim.messages import BodyPart, Truth, World
from nodes.sim.physics import PhysicsRobot
from nodes.sim.world.scenario import scenario_problems
from runtime import Publisher, QoS, Subscription, UserError, every, on

FROM_FILE = "nodes.sim.file_robot:FileRobot"


class SimDriver(Driver):
    """A driver whose robot is a `PhysicsRobot`, also one that `[run] robot` names by its file.

    `scenario` is a scenario file, or the name of a shipped one ("": the robot's own); the run's seed lays it out, where
    `robot_params` name no `seed`. The parts of the person in it arrive on `sim/body`.
    """

    world = Publisher(World, "sim/world")
    truth = Publisher(Truth, "sim/truth")
    body = Subscription(BodyPart, "sim/body", qos=QoS(required=False))

    def __init__(
        self, robot: str = SIMULATED, robot_params: dict[str, Parameter] | None = None, limits: str = "",
        scenario: str = "",
    ) -> None:  # fmt: skip
        params = dict(robot_params or {})
        if scenario:
            params["scenario"] = scenario
        if robot == SIMULATED and is_file(limits):
            robot = FROM_FILE
            params.setdefault("file", limits)
        super().__init__(robot, params, limits)

    _skipped_at_start_s = _told_skipped_s = 0.0

    def problems(self) -> list[str]:
        """What is wrong with robot or scenario."""
        return [*scenario_problems(str(self._robot_params.get("scenario", ""))), *super().problems()]

    def on_start(self) -> None:
        """Build the scene, laid by the run's seed. Raises UserError where the robot is not a simulated one."""
        self._robot_params.setdefault("seed", self.run_info.seed)
        super().on_start()
        if not isinstance(self.robot, PhysicsRobot):
            raise UserError(
                f"node {self.name}: SimDriver drives a robot in MuJoCo, not {self._robot_name!r}; "
                f"use nodes.robot.driver:Driver"
            )

    @on(body)
    def move_person(self, part: BodyPart) -> None:
        """Put a part of the collaborator where it says."""
        try:
            self._sim.move_part(part)
        except ValueError as error:
            self.log.warning("sim/body: %s", error)

    @every(hz=50)
    def show_world(self) -> None:
        """For the cameras."""
        skipped_s = self._sim.skipped_s
        if self._ticks <= 1:
            self._skipped_at_start_s = self._told_skipped_s = skipped_s  # while all others were loaded
        elif skipped_s > self._told_skipped_s:
            self._told_skipped_s = skipped_s
            left_out_s = skipped_s - self._skipped_at_start_s
            self.log.warning("the simulation is behind real time and has left out %.2f s so far", left_out_s)
        self.world.publish(self._sim.world())

    @every(hz=10)
    def tell_truth(self) -> None:
        """For the collaborator and the judge, never for a policy."""
        self.truth.publish(self._sim.truth())

    @property
    def _sim(self) -> PhysicsRobot:
        assert isinstance(self.robot, PhysicsRobot), "on_start has checked it"
        return self.robot
