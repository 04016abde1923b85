"""People who say rows that a launch file has: each when what it waits for has come about."""

from __future__ import annotations

import pytest

from nodes.msgs import GuardState, Utterance
from nodes.sim.messages import ObjectTruth, Truth
from nodes.sim.people.person import ScenarioPerson
from nodes.sim.world.scenario import ScenarioEvent
from runtime import Simulation
from runtime.errors import UserError
from tests.support.sentences import pattern


def thing(name: str, *, place: str = "table", was_lifted: bool = False) -> ObjectTruth:
    colour, label = name.split("_")
    return ObjectTruth(
        name=name, label=label, colour=colour, x_m=0.0, y_m=0.0, z_m=0.8, place=place, was_lifted=was_lifted
    )  # fmt: skip


class Room:
    """The person in virtual time, with a world that changes by hand."""

    def __init__(self, person: ScenarioPerson) -> None:
        self.sim = Simulation(person)
        self.heard = self.sim.record(ScenarioPerson.heard)
        self.things = (thing("red_cup"), thing("blue_cup"))
        self.sim.publish("guard/state", GuardState(mode="armed", reason=""))

    def passes(self, seconds: float, *, is_moving: bool = False) -> None:
        for _ in range(round(seconds * 10)):
            truth = Truth(
                objects=self.things,
                touched=(),
                is_moving=is_moving,
                robot_x_m=0.0,
                robot_y_m=0.0,
                robot_heading_rad=0.0,
            )
            self.sim.publish("sim/truth", truth)
            self.sim.run(seconds=0.1)

    def said(self) -> list[tuple[str, str]]:
        return [(utterance.speaker, utterance.text) for utterance in self.heard]


RIGHT = ("red cup in bin", "not blue cup in bin", "not blue cup on floor")


def test_lines_come_at_the_start_after_words_and_after_deeds() -> None:
    events = (
        ScenarioEvent(when="start", after_s=0.0, who="earlier", say="Put the cups in the bin"),
        ScenarioEvent(when="start", after_s=1.0, who="Ana", say="Hello"),
        ScenarioEvent(when="then", after_s=2.0, who="Ben", say="And hello"),
        ScenarioEvent(when="said: the red (cup|one)", after_s=0.5, who="Ana", say="Yes, that one"),
        ScenarioEvent(when="ever: red cup moved", after_s=0.2, who="Ben", say="Higher"),
        ScenarioEvent(when="is: red cup in bin", after_s=0.0, who="Ana", say="Thank you"),
    )
    room = Room(ScenarioPerson(events=events, right=RIGHT))
    room.passes(2.5)
    assert room.said() == [("earlier", "Put the cups in the bin")]
    room.passes(4.0)
    assert room.said()[1:] == [("Ana", "Hello"), ("Ben", "And hello")]
    room.sim.publish("said", Utterance(speaker="robot", text="I take the red cup"))
    room.passes(1.0)
    room.things = (thing("red_cup", place="", was_lifted=True), thing("blue_cup"))
    room.passes(1.0)
    room.things = (thing("red_cup", place="bin"), thing("blue_cup"))
    room.passes(1.0)
    assert room.said()[3:] == [("Ana", "Yes, that one"), ("Ben", "Higher"), ("Ana", "Thank you")]
    assert room.sim.outcome is None
    room.passes(13.0)
    assert room.sim.outcome == (True, "red cup in bin; not blue cup in bin; not blue cup on floor")


def test_while_something_moves_it_is_not_over_but_patience_ends() -> None:
    room = Room(ScenarioPerson(events=(ScenarioEvent(when="start", say="Hello"),), right=RIGHT[:1], patience_s=20.0))
    room.passes(18.0, is_moving=True)
    assert room.sim.outcome is None
    room.passes(3.0, is_moving=True)
    assert room.sim.outcome == (False, "not: red cup in bin")


def test_what_fell_is_neither_done_nor_left() -> None:
    room = Room(ScenarioPerson(right=RIGHT, patience_s=5.0))
    room.things = (thing("red_cup", place="floor"), thing("blue_cup", place="floor"))
    room.passes(8.0)
    assert room.sim.outcome == (False, "not: red cup in bin; not: not blue cup on floor")


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (ScenarioEvent(when="sung", say="La"), pattern("sim.when_expected")),
        (ScenarioEvent(when="said: (", say="Hi"), pattern("sim.no_pattern")),
        (ScenarioEvent(when="is: red cap in bin", say="Hi"), pattern("sim.no_such_thing")),
        (ScenarioEvent(when="is: red cup in bin", again=True, say="Hi"), pattern("sim.at_every_moment")),
        (ScenarioEvent(when="start"), pattern("sim.says_nothing")),
    ],
)
def test_a_row_of_another_shape_is_refused_in_a_sentence(event: ScenarioEvent, said: str) -> None:
    with pytest.raises(UserError, match=said):
        ScenarioPerson(events=(event,))


def test_a_row_waits_for_what_it_comes_after_and_not_for_ever() -> None:
    events = (
        ScenarioEvent(when="said: which", after="first", by_s=5.0, after_s=0.0, say="second"),
        ScenarioEvent(when="start", after_s=0.0, say="first"),
        ScenarioEvent(when="said: which", after="second", again=True, after_s=0.0, say="third"),
    )
    room = Room(ScenarioPerson(events=events, right=RIGHT))
    room.passes(4.0)
    assert room.said() == [("Ann", "first")]
    room.passes(4.0)
    assert room.said() == [("Ann", "first"), ("Ann", "second")]
    for _ in range(2):
        room.sim.publish("said", Utterance(speaker="robot", text="Which one?"))
        room.passes(1.0)
    assert room.said()[2:] == [("Ann", "third")], "once after each of what it comes after"
