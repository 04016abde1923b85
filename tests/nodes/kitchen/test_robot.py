"""Rules of the kitchen besides physics."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodes.sim.messages import BodyPart
from nodes.sim.robot import SimRobot
from nodes.sim.world.world_file import load_world

pytest.importorskip("mujoco")

FILE = """
sentence = "."
skill = 6
things = [{ kind = "mug", colour = "red", at = "%s", fill = 0.5%s }]
events = [{ when = "start", do = "hold out red mug" }]
[verdict]
right = ["not red mug on floor"]
wrong = ["foot touched"]
"""


def kitchen(tmp_path: Path, at: str, more: str = "") -> SimRobot:
    file = tmp_path / "one.toml"
    file.write_text(FILE % (at, more), "utf-8")
    robot = SimRobot(scenario=str(file), seed=0)
    robot.start(0)
    return robot


def let_pass(robot: SimRobot, start_s: float, seconds: float) -> None:
    for step in range(round(seconds * 50)):
        robot.advance(round((start_s + step * 0.02) * 1e9))


def test_things_stay_where_the_seed_has_put_them(tmp_path: Path) -> None:
    robot = kitchen(tmp_path, "table")
    let_pass(robot, 0.0, 2.0)
    (mug,) = robot.truth().objects
    assert (mug.place, mug.fill, mug.was_lifted) == ("table", 0.5, False)


def test_what_a_person_holds_goes_with_the_hand_and_falls_when_it_lets_go(tmp_path: Path) -> None:
    robot = kitchen(tmp_path, "hand")
    x, y, z = load_world().person["hand"]
    for step in range(60):
        robot.move_part(BodyPart(part="hand", x_m=x - 0.03 * step, y_m=y + 0.01 * step, z_m=z, gesture="open"))
        robot.advance(step * 20_000_000)
    (held,) = robot.truth().objects
    assert held.held_by == "person"
    assert held.x_m < 0.2
    robot.move_part(BodyPart(part="hand", x_m=x, y_m=y, z_m=z, gesture="drop"))
    let_pass(robot, 1.3, 2.0)
    (dropped,) = robot.truth().objects
    assert dropped.held_by == ""
    assert dropped.place in ("table", "floor")


def test_a_vessel_in_the_sink_is_emptied_and_washed(tmp_path: Path) -> None:
    robot = kitchen(tmp_path, "sink", ", dirty = true")
    let_pass(robot, 0.0, 3.0)
    (mug,) = robot.truth().objects
    assert (mug.place, mug.fill, mug.is_emptied, mug.is_dirty) == ("sink", 0.0, True, False)


def test_a_machine_fills_what_stands_below_its_spout(tmp_path: Path) -> None:
    robot = kitchen(tmp_path, "coffee machine")
    let_pass(robot, 0.0, 6.0)
    (mug,) = robot.truth().objects
    assert mug.contents == ("water", "coffee")
    assert mug.fill == 1.0


def test_what_falls_into_the_bin_lies_on_its_floor_and_not_in_it(tmp_path: Path) -> None:
    file = tmp_path / "one.toml"
    file.write_text((FILE % ("table", "")).replace("mug", "apple").replace(", fill = 0.5", ""), "utf-8")
    robot = SimRobot(scenario=str(file), seed=0)
    robot.start(0)
    place = robot.layout.world.places["bin"]
    name = robot.layout.things[0].thing.name
    at = int(robot.model.jnt_qposadr[robot.model.body(name).jntadr[0]])
    robot.data.qpos[at : at + 3] = (*place.centre_m, place.z_m + 0.1)
    let_pass(robot, 0.0, 2.0)
    (apple,) = robot.truth().objects
    assert apple.place == "bin"
    assert apple.z_m - apple.height_m / 2 > place.floor_z_m - 0.003
