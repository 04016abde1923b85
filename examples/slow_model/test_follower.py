"""The controller keeps its rate whatever the model does, and stops when the model hangs."""

from pathlib import Path

from follower import Camera, Detector, Steering

from runtime import Simulation
from runtime.launch.file import load

LAUNCH_FILE = Path(__file__).with_name("robot.toml")


def simulation(*changes: str) -> Simulation:
    """The project's own graph, with changes such as `--set` makes."""
    return Simulation(*load(LAUNCH_FILE, changes).graph.nodes.values(), seed=7)


def test_steering_keeps_20_hz_beside_a_model_of_half_a_second() -> None:
    sim = simulation()
    turns, found = sim.record(Steering.turn), sim.record(Detector.detection)
    sim.run(seconds=10.0)
    assert len(turns) == 200
    assert 15 <= len(found) <= 20
    assert any(turn.rate_radps != 0.0 for turn in turns)
    sim.close()


def test_steering_stops_when_the_model_hangs() -> None:
    sim = simulation("detector.latency=3.0")
    turns = sim.record(Steering.turn)
    sim.run(seconds=3.0)
    assert {turn.rate_radps for turn in turns} == {0.0}, "nothing was found yet"
    sim.run(seconds=0.5)
    assert turns[-1].rate_radps != 0.0, "the first detection has come"
    sim.run(seconds=1.0)
    assert turns[-1].rate_radps == 0.0, "and is too old; the next one takes its time"
    sim.close()


def test_a_bright_column_on_the_left_has_a_negative_bearing() -> None:
    sim = Simulation(Camera(), Detector())
    found = sim.record(Detector.detection)
    sim.run(seconds=1.0)
    assert found[0].bearing < 0.0
    sim.close()
