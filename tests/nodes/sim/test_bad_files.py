"""Worlds and scenarios that nobody can play are refused by file and line, before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodes.evaluation.scenario_files import changes_for_file, files_in
from nodes.sim.world.scenario import load_scenario
from nodes.sim.world.world_file import load_world
from runtime.errors import UserError
from runtime.launch.file import find, load
from tests.support.sentences import pattern

TUTORIAL = Path(__file__).parents[3] / "docs" / "tutorials" / "your-world.md"
RED, BLUE = '{ kind = "vial", colour = "red", at = "bench" }', '{ kind = "vial", colour = "blue", at = "bench" }'


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """The files of the tutorial."""
    world, scenario = (part.split("```", 1)[0] for part in TUTORIAL.read_text("utf-8").split("```toml\n")[1:3])
    (tmp_path / "lab.toml").write_text(world, "utf-8")
    (tmp_path / "vial.toml").write_text(scenario, "utf-8")
    return tmp_path


def changed(file: Path, old: str, new: str) -> Path:
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new), "utf-8")
    return file


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("rack  =", "bench =", 5, ""),  # a name given twice is no TOML
        ("[0.5, 0.9]", "[0.2, 0.9]", 5, pattern("sim.same_spot")),
        ("[0.5, 0.9]", "[0.9, 0.5]", 5, pattern("sim.lower_first")),
        ("vial =", "rack =", 5, pattern("sim.place_and_kind")),
        ('"flat", from = "north", x_m = [0.5', '"box", from = "north", x_m = [0.5', 5, pattern("sim.box_floor")),
        (
            "z_m = 0.5 }\nrack",
            "z_m = 0.5, rows_m = [[[0.0, -0.5], [0.0, -0.5]]] }\nrack",
            4,
            pattern("sim.one_spot_twice"),
        ),
        ('form = "flat", from = "north", x_m = [0.5', 'form = "flat", form_ = "n", from = "north", x_m = [0.5', 5, ""),
        ("width_m = 0.05", "width_m = -0.05", 8, pattern("sim.above_0")),
        ("width_m = 0.05", "width_m = nan", 8, pattern("sim.above_0")),
        ("z_m = 0.5 }\nrack", "z_m = inf }\nrack", 4, ""),
        ("x_m = [0.5, 0.9]", "x_m = [1.5, 1.9]", 5, pattern("sim.out_of_room")),
        ("y_m = [-1.5, 2.0]", "y_m = [-0.9, 0.2]", 1, pattern("sim.nowhere_to_stand")),
        ("red  = [0.86", "red  = [3.0", 11, pattern("sim.0_to_1")),
    ],
)
def test_a_world_is_refused_by_its_line(lab: Path, old: str, new: str, line: int, said: str) -> None:
    file = changed(lab / "lab.toml", old, new)
    with pytest.raises(UserError, match=rf"lab\.toml, line {line}\b.*{said}"):
        load_world(file)


def test_a_world_needs_a_place_to_stand_on(lab: Path) -> None:
    text = (lab / "lab.toml").read_text("utf-8")
    start, end = text.index("bench ="), text.index("[kinds]")
    (lab / "lab.toml").write_text(text[:start] + text[end:], "utf-8")
    with pytest.raises(UserError, match=rf"lab\.toml, line 3: {pattern('sim.no_place')}"):
        load_world(lab / "lab.toml")


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        (BLUE, RED, 3, pattern("sim.two_of_a_name")),
        ("red vial on rack", "red vial on bench", 5, pattern("sim.always_wrong")),
        ('wrong = ["blue vial moved"]', 'wrong = ["red vial on rack"]', 5, pattern("sim.right_and_wrong")),
        ('["red vial on rack"]', '["red vial on rack", "red vial on bench"]', 5, pattern("sim.never_both")),
        ('["red vial on rack"], wrong = ["blue vial moved"]', '["red vial on bench"]', 5, pattern("sim.true_at_once")),
        ('kind = "vial", colour = "red"', 'kind = "jug", colour = "red"', 3, pattern("sim.no_kind")),
        ('when = "start"', 'when = "then"', 4, pattern("sim.none_before")),
        ('when = "start"', 'when = "start", after_s = nan', 4, pattern("sim.seconds_or_none")),
        ('say = "Put the red vial on the rack"', 'say = "  "', 4, pattern("sim.says_nothing")),
        ('say = "Put the red vial on the rack"', 'do = "nod"', 4, pattern("sim.no_hand")),
        ('say = "Put the red vial on the rack"', 'do = "put red vial"', 4, pattern("sim.put_where")),
        ('kind = "vial", colour = "red"', 'kind = "vial", fill = 2.0, colour = "red"', 3, pattern("sim.0_to_1")),
        ('["red vial on rack"]', '["rack on bench"]', 5, pattern("sim.place_moves")),
        ('["red vial on rack"]', '["red vial held by Bob"]', 5, pattern("sim.holds_nothing")),
        ('["red vial on rack"]', '["red vial contains tea"]', 5, pattern("sim.nothing_holds")),
        ("sentence =", 'person = "robot"\nsentence =', 1, pattern("sim.not_the_robots")),
        ("sentence =", "patience_s = -1\nsentence =", 1, ""),
        ('"lab.toml"', '"mars"', 0, pattern("sim.no_world")),
    ],
)
def test_a_scenario_is_refused_by_its_line(lab: Path, old: str, new: str, line: int, said: str) -> None:
    if new == "red vial on bench":
        changed(lab / "vial.toml", "blue vial moved", "blue vial on bench")
    file = changed(lab / "vial.toml", old, new)
    where = rf"vial\.toml, line {line}: .*" if line else ""
    with pytest.raises(UserError, match=where + said):
        load_scenario(file)


def test_a_thing_that_is_larger_than_the_hand_is_named(lab: Path) -> None:
    changed(lab / "lab.toml", "width_m = 0.05", "width_m = 0.15")
    with pytest.raises(UserError, match=rf"vial\.toml, line 5: .*{pattern('sim.too_wide')}"):
        load_scenario(lab / "vial.toml")


def test_files_of_an_evaluation_are_all_looked_at_before_it_starts(lab: Path) -> None:
    files = files_in([str(lab / "vi*.toml")])
    assert list(files) == ["vial"]
    changes = changes_for_file(load(find("kitchen")), files["vial"])
    assert f"driver.scenario={lab / 'vial.toml'}" in changes
    assert {f"policy.world={lab / 'lab.toml'}", f"vlm.world={lab / 'lab.toml'}"} <= set(changes)
    (lab / "more").mkdir()
    (lab / "more" / "vial.toml").write_text("", "utf-8")
    for patterns, said in (
        ([str(lab / "no*.toml")], pattern("sim.no_scenario")),
        ([lab / "vial.toml", lab / "more"], pattern("sim.name_twice")),
    ):
        with pytest.raises(UserError, match=said):
            files_in(patterns)
