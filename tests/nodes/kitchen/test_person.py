"""Claims about `nodes/sim/people/person.py`: how the person of a scenario walks where a robot stands."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from nodes.msgs import GuardState, Utterance
from nodes.sim.messages import BodyPart, ObjectTruth, Truth
from nodes.sim.people.person import ScenarioPerson
from runtime import Simulation

SCENARIO = """sentence = "She stands in the way, and steps aside when she is asked."
skill = 2
things = [{ kind = "mug", colour = "red" }]
events = [
  { when = "start", do = "step in" },
  { when = "said: may I pass", do = "step aside" },
]
[verdict]
right = ["red mug on tray"]
wrong = []
"""
ROBOT_M, PERSON_M = 0.30, 0.13
"""How far a robot and a person reach from their middle."""
MUG = ObjectTruth(name="red_mug", label="mug", colour="red", x_m=0.0, y_m=-0.5, z_m=0.55, width_m=0.07, height_m=0.1)


class Room:
    """A person, and a robot that only is where it is told to be."""

    def __init__(self, folder: Path, robot: tuple[float, float]) -> None:
        file = folder / "aside.toml"
        file.write_text(SCENARIO, "utf-8")
        self.sim = Simulation(ScenarioPerson(str(file)))
        self.parts: list[BodyPart] = self.sim.record(ScenarioPerson.body)
        self.robot = robot
        self.nearest_m = math.inf
        self.sim.publish("guard/state", GuardState(mode="armed", reason=""))

    def body(self) -> tuple[float, float]:
        return next(((one.x_m, one.y_m) for one in reversed(self.parts) if one.part == "body"), (1.75, -1.3))

    def run_until(self, is_so: Callable[[], bool], seconds: float = 20.0) -> None:
        """Let time pass until that holds, the robot standing; fails the test where it never does."""
        for _ in range(round(seconds * 10)):
            x, y = self.robot
            self.sim.publish("sim/truth", Truth(objects=(MUG,), robot_x_m=x, robot_y_m=y))
            self.sim.run(seconds=0.1)
            self.nearest_m = min(self.nearest_m, math.dist(self.robot, self.body()))
            if is_so():
                return
        pytest.fail(f"she is at {self.body()}")


def asked_aside(folder: Path, robot: tuple[float, float]) -> Room:
    """She is in the way, the robot has come near and stands, and asks."""
    room = Room(folder, (0.3, 0.0))
    room.run_until(lambda: math.dist(room.body(), (0.09, 0.62)) < 1e-6)
    room.robot, room.nearest_m = robot, math.inf
    room.sim.publish("said", Utterance(speaker="robot", text="Excuse me, may I pass?"))
    return room


def test_who_steps_aside_does_not_walk_into_a_robot_that_stands_between(tmp_path: Path) -> None:
    room = asked_aside(tmp_path, (0.6, 0.5))
    room.run_until(lambda: room.body()[0] < 0.6 - 2 * (ROBOT_M + PERSON_M))
    room.run_until(lambda: True, 3.0)
    assert room.nearest_m > ROBOT_M + PERSON_M


def test_who_has_the_way_out_free_leaves_by_it(tmp_path: Path) -> None:
    room = asked_aside(tmp_path, (-0.6, 0.5))
    room.run_until(lambda: math.dist(room.body(), (1.75, -1.3)) < 1e-6)
    assert room.nearest_m > ROBOT_M + PERSON_M
