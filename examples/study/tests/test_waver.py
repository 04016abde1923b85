"""The arm keeps the promises of a robot, and the guard its limits, in virtual time."""

from itertools import pairwise

from waver.limits import LIMITS
from waver.robot import Waver
from waver.wave import Wave
from nodes.guard.node import Guard
from nodes.interrupts.reflex import Reflex
from nodes.msgs import Utterance
from nodes.robot.conformance import Bench, RobotConformance
from nodes.robot.driver import Driver
from runtime import Simulation

ROBOT = "waver.limits:LIMITS"
TICK_S = 0.02


def graph(reach_rad: float) -> Simulation:
    """The launch file's nodes."""
    driver = Driver(robot="waver.robot:Waver", limits=ROBOT)
    return Simulation(driver, Guard(robot=ROBOT, arm="auto", memory="run"), Reflex(), Wave(reach_rad))


def test_the_guard_keeps_the_waist_within_its_speed_whatever_the_policy_asks_for() -> None:
    simulation = graph(reach_rad=2.7)  # 2.7 rad/s, and the waist may turn at 0.5
    sent = simulation.record(Driver.command)
    simulation.run(seconds=4.0)
    simulation.close()
    waist_rad = [command.position[0] for command in sent]
    assert max(waist_rad) > 0.5, "it moves"
    assert max(abs(after - before) / TICK_S for before, after in pairwise(waist_rad)) <= LIMITS.joints[0].speed + 1e-6


def test_stop_stops_it() -> None:
    simulation = graph(reach_rad=0.6)
    felt = simulation.record(Driver.state)
    simulation.run(seconds=2.0)
    assert felt[-1].position[0] > 0.1, "it moved until then"
    simulation.publish("heard", Utterance(speaker="ann", text="Stop!"))
    simulation.run(seconds=1.0)
    stopped_at = len(felt)
    simulation.run(seconds=2.0)
    simulation.close()
    assert len({state.position for state in felt[stopped_at:]}) == 1


class ArmBench(Bench):
    """How the test reaches the simulated arm beside its protocol."""

    robot: Waver

    def __init__(self) -> None:
        super().__init__(Waver())

    def press_runstop(self, is_on: bool) -> None:
        self.robot.runstop(is_on)

    def unhome(self) -> None:
        self.robot = Waver(homed=False)

    def touch(self) -> str:
        self.robot.touch("waist")
        return "waist"


class TestWaver(RobotConformance):
    limits = ROBOT

    def make(self) -> Bench:
        return ArmBench()
