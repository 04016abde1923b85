"""The head keeps the promises of a robot, and its guard the limits, in virtual time."""

from itertools import pairwise
from pathlib import Path

from pan_tilt import LIMITS, LookAbout, PanTilt

from nodes.msgs import RobotState, Utterance
from nodes.robot.conformance import Bench, RobotConformance
from nodes.robot.driver import Driver
from runtime import Simulation
from runtime.launch.file import load


class TestPanTilt(RobotConformance):
    limits = "pan_tilt:LIMITS"

    def make(self) -> Bench:
        return Bench(PanTilt())


def test_the_guard_keeps_the_pan_within_its_speed_and_stop_stops_it() -> None:
    launch = load(Path("pan_tilt.toml"), ["policy.reach_rad=3.0"])
    sim = Simulation(*launch.graph.nodes.values(), seed=7)
    sent, felt = sim.record(Driver.command), sim.record_topic("robot/state", RobotState)
    sim.run(seconds=3.0)
    pans_rad = [one.position[0] for one in sent]
    assert max(abs(after - before) for before, after in pairwise(pans_rad)) <= LIMITS.joints[0].speed * 0.02 + 1e-6
    assert 1.0 < max(one.position[0] for one in felt) <= LIMITS.joints[0].highest + 1e-3
    sim.publish("heard", Utterance(speaker="ann", text="Stop!"))
    sim.run(seconds=1.0)
    stopped_at = len(felt)
    sim.run(seconds=1.0)
    sim.close()
    assert len({one.position for one in felt[stopped_at:]}) == 1
    assert LookAbout.seat == "policy"
