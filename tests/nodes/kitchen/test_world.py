"""The kitchen as data: layouts, what stands where, the way through the room, and files that cannot succeed."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from nodes.robot.route import find_route, is_clear
from nodes.sim.messages import BodyPart, ObjectTruth, Truth
from nodes.sim.world.scenario import NINE_SKILLS, holds, layout_of, load_scenario
from nodes.sim.world.world_file import FreeSpace, ThingSpec, lay_out, load_world
from nodes.vlm.room.simulator_eyes import IdealDetector
from runtime import UserError
from tests.support.sentences import pattern, sentence

SCENARIO = """
sentence = "Put it there."
skill = 1
things = [{ kind = "mug", colour = "red"%s }]
events = [{ when = "start", say = "Put the mug in the sink" }]
[verdict]
right = ["%s"]
"""


def truth_of(*things: ObjectTruth, **more: object) -> Truth:
    return Truth(objects=things, **more)  # type: ignore[arg-type]  # fields by name


def thing(name: str, x: float = 0.0, y: float = -0.5, **more: object) -> ObjectTruth:
    colour, _, kind = name.partition("_")
    return ObjectTruth(
        name=name,
        label=kind,
        colour=colour,
        x_m=x,
        y_m=y,
        z_m=0.55,
        width_m=0.07,
        height_m=0.1,
        **more,  # type: ignore[arg-type]  # fields by name
    )


def test_a_seed_lays_the_same_kitchen_each_time_and_another_one_another() -> None:
    world = load_world()
    one, again, other = (layout_of("kitchen", seed) for seed in (1, 1, 2))
    assert one == again
    assert [x.thing.x_m for x in one.things] != [x.thing.x_m for x in other.things]
    assert {lay_out(world, (), seed).rgb["table"] for seed in range(20)} > {one.rgb["table"]}


def test_what_a_gripper_takes_stands_far_enough_apart() -> None:
    for seed in range(20):
        things = [one.thing for one in layout_of("kitchen", seed).things]
        for number, one in enumerate(things):
            assert all(math.dist((one.x_m, one.y_m), (two.x_m, two.y_m)) > 0.14 for two in things[number + 1 :])


def test_a_way_goes_round_the_stool_and_keeps_off_all_furniture() -> None:
    world = load_world()
    stool = (0.05, 0.6, 0.15)
    room, here = FreeSpace(world, (stool,)), (0.05, 0.0)
    way = find_route(room, here, (0.05, 1.2))
    assert way is not None
    assert len(way) > 1
    assert way[-1] == (0.05, 1.2)
    for corner in way:
        assert is_clear(room, here, corner)
        here = corner


def test_there_is_no_way_to_where_somebody_stands() -> None:
    assert find_route(FreeSpace(load_world(), ((0.0, 1.1, 0.2),)), (0.0, 0.0), (0.0, 1.2)) is None


@pytest.mark.parametrize(
    ("more", "right", "problem"),
    [
        (", reach = false", "red mug in sink", sentence("kitchen.out_of_reach")),
        ("", "red mug in oven", sentence("kitchen.no_such_place", name="oven")),
        ("", "green mug in sink", sentence("kitchen.no_such_thing", name="green mug")),
        ("", "red mug happy", "condition 'red mug happy'"),
        (', at = "moon"', "red mug in sink", sentence("kitchen.no_such_place", name="moon")),
    ],
)
def test_a_file_that_cannot_succeed_is_named(tmp_path: Path, more: str, right: str, problem: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(SCENARIO % (more, right), "utf-8")
    with pytest.raises(UserError, match=problem):
        load_scenario(file)


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        (('right = ["red mug in sink"]', "right = []"), pattern("kitchen.right_is_empty")),
        (("[verdict]", "[words]\norder = []\n\n[verdict]"), pattern("kitchen.no_wording", name="order")),
    ],
)
def test_a_file_that_asks_for_nothing_or_has_no_words_is_named(
    tmp_path: Path, changed: tuple[str, str], problem: str
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text((SCENARIO % ("", "red mug in sink")).replace(*changed), "utf-8")
    with pytest.raises(UserError, match=problem):
        load_scenario(file)


def test_a_plate_that_nobody_helps_with_cannot_get_into_the_sink(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text((SCENARIO % ("", "plate in sink")).replace('"mug", colour = "red"', '"plate"'), "utf-8")
    with pytest.raises(UserError, match=pattern("kitchen.too_wide")):
        load_scenario(file)


def test_every_skill_has_three_scenarios_that_ship() -> None:
    skills = [load_scenario(file).skill for file in NINE_SKILLS.glob("*.toml")]
    assert all(skills.count(number) >= 3 for number in range(1, 10))


def test_conditions_are_about_the_world() -> None:
    mug = thing("red_mug", place="sink", was_lifted=True, contents=("coffee",), fill=1.0)
    world = truth_of(mug, thing("blue_mug", held_by="person"), dirty_places=("table",), touched=("hand",))
    said = ("red mug in sink", "red mug moved", "red mug contains coffee", "red mug full", "blue mug held by person",
            "table dirty", "not table clean", "hand touched", "not foot touched", "not mug in sink")  # fmt: skip
    assert [one for one in said if not holds(one, world)] == []


def test_eyes_tell_what_a_finger_points_at_from_its_direction_alone() -> None:
    eyes = IdealDetector(load_world(), "Ann", 0)
    mugs = (thing("red_mug", -0.2), thing("blue_mug", 0.2))
    hand = BodyPart(part="hand", x_m=0.2, y_m=-0.8, z_m=0.55, yaw_rad=math.pi / 2, gesture="point")
    scene = eyes.see(truth_of(*mugs, person={"hand": hand}), 0)
    pointed = next(one for one in scene.things if one.id == scene.people[0].points_at)
    assert pointed.colour == "blue"


def test_eyes_see_a_nod_in_the_movement_of_a_head_and_nothing_in_a_still_one() -> None:
    eyes = IdealDetector(load_world(), "Ann", 0)
    gestures = []
    for step in range(20):
        pitch = 0.3 * math.sin(2 * math.pi * step * 0.1 / 0.7) if step < 16 else 0.0
        gestures.append(
            eyes.see(
                truth_of(person={"face": BodyPart(part="face", x_m=0, y_m=0, z_m=0, pitch_rad=pitch)}),
                step * 100_000_000,
            )
            .people[0]
            .gesture
        )
    assert "nod" in gestures
    assert "shake" not in gestures
    assert gestures[0] == ""


def test_a_colour_that_is_none_is_named() -> None:
    with pytest.raises(UserError, match="there is no colour 'beige'"):
        lay_out(load_world(), (ThingSpec(kind="mug", colour="beige"),), 0)
