"""Simulated people who say a scenario's lines: each when what it waits for has come about."""

from __future__ import annotations

import pytest

from nodes.msgs import GuardState, Utterance
from nodes.sim.messages import ObjectTruth, Truth
from nodes.sim.people.actor import Actor
from runtime import Simulation
from runtime.errors import UserError
from tests.support.sentences import pattern


def thing(name: str, *, place: str = "table", was_lifted: bool = False) -> ObjectTruth:
    colour, label = name.split("_")
    return ObjectTruth(
        name=name, label=label, colour=colour, x_m=0.0, y_m=0.0, z_m=0.8, place=place, was_lifted=was_lifted
    )  # fmt: skip


class Room:
    """The actor in virtual time, with a world that changes by hand."""

    def __init__(self, actor: Actor) -> None:
        self.sim = Simulation(actor)
        self.heard = self.sim.record(Actor.heard)
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


def test_lines_come_at_the_start_after_words_and_after_deeds() -> None:
    cues = (
        "start | 1 | Ana | Hello",
        "then | 2 | Ben | And hello",
        "said:the red (cup|one) | 0.5 | Ana | Yes, that one",
        "lifted:red_cup | 0.2 | Ben | Higher",
        "binned:red_cup | 0 | Ana | Thank you",
    )
    room = Room(Actor(cues, order="Put the cups in the bin", binned=("red_cup",), left=("blue_cup",)))
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
    room = Room(Actor(("start | 0 | Ana | Hello",), binned=("red_cup",), patience_s=20.0))
    room.passes(18.0, is_moving=True)
    assert room.sim.outcome is None
    room.passes(3.0, is_moving=True)
    assert room.sim.outcome == (False, "not: red cup in bin")


def test_what_fell_is_neither_done_nor_left() -> None:
    room = Room(Actor(binned=("red_cup",), left=("blue_cup",), patience_s=5.0))
    room.things = (thing("red_cup", place="floor"), thing("blue_cup", place="floor"))
    room.passes(8.0)
    assert room.sim.outcome == (False, "not: red cup in bin; not: not blue cup on floor")


@pytest.mark.parametrize(
    "line", ["start | Ana | Hello", "sung | 1 | Ana | La", "start | soon | Ana | Hi", "said:( | 1 | A | B"]
)
def test_a_cue_of_another_shape_is_refused_in_a_sentence(line: str) -> None:
    with pytest.raises(UserError, match=pattern("sim.cue_expected")):
        Actor((line,))
