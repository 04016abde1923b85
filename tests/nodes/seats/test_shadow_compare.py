"""How shadows differ from the holders of their seats: by number for commands, by content for words."""

from __future__ import annotations

from typing import Any

import pytest

from nodes.msgs import Action, Comparison, JointCommand, Reference, SeenObject, Subtask, aimed_at
from nodes.seats.compare import MOST_SOURCES, ShadowCompare
from runtime import Message, Simulation
from runtime.coordination.lease import Lease

ZEROS = (0.0,) * 8
NOW_S = 0.01
"""When it has heard who holds which seat."""


class Told:
    """A comparer alone, told leases and messages by hand."""

    def __init__(self) -> None:
        self.compare = ShadowCompare()
        self.sim = Simulation(self.compare)
        self.found: list[Comparison] = self.sim.record(ShadowCompare.comparison)
        for seat in ("planner", "vlm", "policy"):
            self.sim.publish("lease", Lease(seat=seat, holder="model", number=1))
        self.sim.run(seconds=NOW_S)

    def say(self, topic: str, message: Message, source: str) -> None:
        self.sim.publish(topic, message, source=source)
        self.sim.run(seconds=0.001)


def subtask(text: str = "Cups away", **more: Any) -> Subtask:
    return Subtask(
        **{"id": text, "text": text, "state": "work", "skill": "place", "things": cups(), "place": "bin", **more}
    )


def cups(*colours: str, label: str = "cup") -> tuple[Reference, ...]:
    return tuple(Reference(label=label, colour=colour) for colour in colours or ("",))


def pick(colour: str, text: str = "take it", label: str = "cup") -> Action:
    thing = SeenObject(
        label=label, colour=colour, x_m=0.0, y_m=0.0, z_m=0.0, width_m=0.1, height_m=0.1, u_px=1.0, v_px=1.0
    )
    return Action(id=text, skill="pick", arguments=aimed_at(thing), text=text)


def test_a_shadows_subtask_that_means_the_same_is_no_distance_away_whatever_its_words() -> None:
    told = Told()
    told.say("subtask", subtask("Put the cups in the bin"), "model")
    assert told.found == []
    told.say("subtask", subtask("Cups away"), "shadow")
    assert told.found == [
        Comparison(
            seat="planner", holder="model", shadow="shadow", measure="same_subtask", distance=0.0,
            text="'Cups away' against 'Put the cups in the bin'",
        )
    ]  # fmt: skip


def test_a_shadows_subtask_that_means_something_else_is_one_away() -> None:
    told = Told()
    told.say("subtask", subtask(excluding=cups("red", "blue")), "model")
    for other, distance in (
        (subtask(excluding=cups("blue", "red")), 0.0),
        (subtask(state="wait"), 1.0),
        (subtask(things=cups(label="ball")), 1.0),
        (subtask(place="table"), 1.0),
        (subtask(excluding=cups("red")), 1.0),
    ):
        told.say("subtask", other, "shadow")
        assert told.found[-1].distance == distance
    assert len(told.found) == 5


def test_a_shadows_action_is_compared_by_skill_and_target() -> None:
    told = Told()
    told.say("action", pick("red"), "model")
    hold = Action(id="h", skill="hold", text="hold")
    others = (
        (pick("red", "other words"), 0.0),
        (pick("blue"), 1.0),
        (pick("red", label="ball"), 1.0),
        (hold, 1.0),
        (Action(id="n", skill="pick", text="nothing"), 1.0),
    )
    for other, distance in others:
        told.say("action", other, "shadow")
        assert (told.found[-1].seat, told.found[-1].measure) == ("vlm", "same_action")
        assert told.found[-1].distance == distance
    told.say("action", hold, "model")
    told.say("action", hold, "shadow")
    assert told.found[-1].distance == 0.0
    assert len(told.found) == 6


def test_before_the_holder_has_spoken_there_is_nothing_to_compare() -> None:
    told = Told()
    told.say("subtask", subtask(), "shadow")
    told.say("action", pick("red"), "shadow")
    assert told.found == []
    alone = ShadowCompare()
    sim = Simulation(alone)
    sim.publish("subtask", subtask(), source="anybody")
    sim.run(seconds=0.1)
    assert sim.record(ShadowCompare.comparison) == []


def test_invented_names_do_not_fill_the_memory() -> None:
    told = Told()
    told.say("subtask", subtask(), "model")
    for number in range(MOST_SOURCES + 5):
        told.say("subtask", subtask(), f"shadow{number}")
        told.say("command", JointCommand(position=ZEROS), f"shadow{number}")
    assert len(told.compare.commands) == MOST_SOURCES
    assert len(told.compare.subtasks) == MOST_SOURCES
    assert len(told.found) == MOST_SOURCES + 5, "each was compared, with a holder who is not forgotten for them"


def test_of_many_who_speak_the_one_that_was_silent_for_longest_is_forgotten() -> None:
    told = Told()
    told.say("subtask", subtask(), "model")
    for number in range(MOST_SOURCES - 1):
        told.say("subtask", subtask(), f"shadow{number}")
    assert len(told.compare.subtasks) == MOST_SOURCES
    told.say("subtask", subtask(), "shadow0")
    told.say("subtask", subtask(), "another")
    assert "shadow0" in told.compare.subtasks
    assert "shadow1" not in told.compare.subtasks
    assert {"model", "another"} < set(told.compare.subtasks)
    assert len(told.compare.subtasks) == MOST_SOURCES


def test_commands_are_compared_by_their_farthest_joint_and_their_speed_five_times_a_second() -> None:
    told = Told()
    told.sim.run(seconds=0.15)
    told.say("command", JointCommand(position=(0.1, 0.5, *ZEROS[2:]), base_v_mps=0.3), "model")
    told.say("command", JointCommand(position=(0.2, 0.2, *ZEROS[2:]), base_v_mps=-0.1), "shadow")
    told.sim.run(seconds=0.2)
    assert [
        (one.seat, one.holder, one.shadow, one.measure, round(one.distance, 9), one.text) for one in told.found
    ] == [
        ("policy", "model", "shadow", "joint_m_or_rad", 0.3, ""),
        ("policy", "model", "shadow", "base_mps", 0.4, ""),
    ]


@pytest.mark.parametrize(("late_s", "measures"), [(0.0, ["holder_is_silent"]), (0.001, ["joint_m_or_rad", "base_mps"])])
def test_a_holder_is_silent_whose_last_command_is_half_a_second_old(late_s: float, measures: list[str]) -> None:
    told = Told()
    told.sim.run(seconds=0.3 - NOW_S + late_s)
    told.say("command", JointCommand(position=ZEROS), "model")
    told.sim.run(seconds=0.4)
    told.say("command", JointCommand(position=ZEROS), "shadow")
    told.sim.run(seconds=0.1)  # the next look is at 0.8 s
    assert [one.measure for one in told.found] == measures


def test_commands_differ_sideways_as_well_and_the_holder_is_not_its_own_shadow() -> None:
    told = Told()
    told.say("command", JointCommand(position=ZEROS, base_v_mps=0.3, base_vy_mps=-0.1), "model")
    told.say("command", JointCommand(position=ZEROS, base_v_mps=0.0, base_vy_mps=0.3), "shadow")
    told.sim.run(seconds=0.2)
    assert [(one.shadow, one.measure, round(one.distance, 9)) for one in told.found] == [
        ("shadow", "joint_m_or_rad", 0.0),
        ("shadow", "base_mps", 0.5),
    ]


def test_of_each_shadow_it_is_told_that_the_holder_is_silent() -> None:
    told = Told()
    for shadow in ("one", "two"):
        told.say("command", JointCommand(position=ZEROS), shadow)
    told.sim.run(seconds=0.2)
    assert [(one.seat, one.shadow, one.measure) for one in told.found] == [
        ("policy", "one", "holder_is_silent"),
        ("policy", "two", "holder_is_silent"),
    ]


def test_a_silent_holder_is_told_of_and_a_silent_shadow_is_forgotten() -> None:
    told = Told()
    told.say("command", JointCommand(position=ZEROS), "shadow")
    told.sim.run(seconds=0.25)
    assert [(one.holder, one.shadow, one.measure, one.distance, one.text) for one in told.found] == [
        ("model", "shadow", "holder_is_silent", 1.0, "")
    ]
    told.sim.run(seconds=2.0)
    assert told.compare.commands == {}
    assert len(told.found) == 2
