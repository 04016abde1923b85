"""The scenarios: all that were specified, drawn by their seed, and judged by where things are."""

from __future__ import annotations

import pytest

from bench.interruptions.person import ORDER, InterruptingPerson, judged, lacks
from bench.interruptions.scenarios import WANTS, draw, names, partner_names, shipped
from nodes.msgs import GuardState, Utterance
from nodes.sim.messages import ObjectTruth, Truth
from runtime import Simulation
from runtime.errors import UserError
from runtime.launch.graph import NodeSpec
from tests.support.sentences import sentence

PARTNER = shipped().partner


def thing(name: str, *, is_in_bin: bool = False, z_m: float = 0.55) -> ObjectTruth:
    colour, _, label = name.partition("_")
    return ObjectTruth(name=name, label=label, colour=colour, x_m=0.0, y_m=0.0, z_m=z_m, is_in_bin=is_in_bin)


TRUTH = Truth(
    objects=(thing("blue_cup"),), touched=(), is_moving=False, robot_x_m=0.0, robot_y_m=0.0, robot_heading_rad=0.0
)


def test_four_kinds_at_three_moments_and_six_controls_ship() -> None:
    assert len(names()) == 4 * 3 + 6


def test_each_kind_has_ten_wordings_half_of_them_new() -> None:
    for name, kind in shipped().kinds.items():
        assert (len(kind.known), len(kind.new)) == (5, 5), name
        assert len({*kind.known, *kind.new}) == 10, name


def test_a_seed_draws_the_same_again_and_another_seed_another_moment() -> None:
    one, again, other = draw("stop-carry", 3), draw("stop-carry", 3), draw("stop-carry", 4)
    assert one == again
    assert one.offset_s != other.offset_s


def test_words_end_within_the_phase() -> None:
    for name in names():
        drawn = draw(name, 5)
        assert 0.0 <= drawn.offset_s <= shipped().moments[drawn.moment].length_s


def test_of_those_with_a_cup_of_their_own_most_say_so_and_nothing_is_added_to_the_main_experiment() -> None:
    drawn = [draw("partner-near", seed) for seed in range(300)]
    owners = [one for one in drawn if one.own]
    assert 170 < len(owners) < 230
    telling = [one for one in owners if one.own and one.remark in {t.format(colour=one.own) for t in PARTNER.telling}]
    assert 0.5 < len(telling) / len(owners) < 0.7
    assert {one.wants for one in owners} == {"cups but it"}
    assert {one.wants for one in drawn if not one.own} == {"cups"}
    assert not any(one.remark in {t.format(colour=c) for t in PARTNER.telling for c in ("red", "blue")}
                   for one in drawn if not one.own)  # fmt: skip
    assert not set(partner_names()) & set(names())
    assert all(one.own is None for one in map(draw, names(), [0] * len(names())))


def test_a_phase_that_never_comes_ends_the_run_with_its_reason() -> None:
    simulation = Simulation(NodeSpec("person", InterruptingPerson, {"scenario": "stop-carry"}), seed=1)
    words: list[Utterance] = simulation.record_topic("heard", Utterance)
    simulation.publish("guard/state", GuardState(mode="moving", reason=""))
    for _ in range(640):  # the world goes on, and the robot never moves
        simulation.publish("sim/truth", TRUTH)
        simulation.run(0.1)
    assert [one.text for one in words] == [ORDER]
    assert simulation.outcome == (False, sentence("bench.moment_never_came", moment="carry"))


@pytest.mark.parametrize(("scenario", "lacking"), [("revision-near", "ball"), ("addition-near", "ball")])
def test_a_scenario_that_cannot_succeed_ends_the_run_with_its_reason_before_anything_is_said(
    scenario: str, lacking: str
) -> None:
    simulation = Simulation(NodeSpec("person", InterruptingPerson, {"scenario": scenario}), seed=1)
    words: list[Utterance] = simulation.record_topic("heard", Utterance)
    simulation.publish("sim/truth", TRUTH)
    simulation.run(0.1)
    assert words == []
    assert simulation.outcome == (False, sentence("bench.lacks_a_thing", thing=lacking))


def test_what_is_wanted_is_there_or_is_named() -> None:
    cup, ball = thing("blue_cup"), thing("purple_ball")
    assert [lacks((cup,), wants) for wants in WANTS] == ["", "", "ball", "ball", ""]
    assert [lacks((ball,), wants) for wants in WANTS] == ["cup", "cup", "", "cup", ""]
    assert not any(lacks((cup, ball), wants) for wants in WANTS)


def test_an_unknown_scenario_is_told() -> None:
    with pytest.raises(UserError, match=r"scenario is 'stop-lunch'; known: "):
        InterruptingPerson("stop-lunch")


@pytest.mark.parametrize(
    ("wants", "inside", "ok"),
    [
        ("cups", {"blue_cup", "red_cup"}, True),
        ("cups", {"red_cup"}, False),
        ("cups", {"blue_cup", "red_cup", "purple_ball"}, False),
        ("cups but it", {"red_cup"}, True),
        ("cups but it", {"red_cup", "blue_cup"}, False),
        ("ball", {"purple_ball"}, True),
        ("ball", {"purple_ball", "red_cup"}, False),
        ("cups and ball", {"blue_cup", "red_cup", "purple_ball"}, True),
        ("", {"red_cup"}, True),
    ],
)
def test_success_is_where_things_are(wants: str, inside: set[str], ok: bool) -> None:
    things = tuple(thing(name, is_in_bin=name in inside) for name in ("blue_cup", "red_cup", "purple_ball"))
    assert judged(things, wants, "blue_cup")[0] is ok


def test_what_lay_in_the_bin_when_the_words_came_is_no_fault() -> None:
    things = (thing("red_cup", is_in_bin=True), thing("purple_ball", is_in_bin=True))
    assert judged(things, "ball", "red_cup", frozenset({"red_cup"}))[0]


def test_what_fell_to_the_floor_is_a_failure_and_told() -> None:
    ok, why = judged((thing("red_cup", is_in_bin=True), thing("blue_cup", z_m=0.05)), "cups but it", "blue_cup")
    assert not ok
    assert why == "red cup in the bin; blue cup on the floor"
