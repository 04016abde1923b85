"""Who judges words has the phrase tables before the first word: no handler stands still to read them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nodes.interrupts import phrase_matcher
from nodes.interrupts.reflex import Reflex
from nodes.interrupts.second_judge import SecondJudge
from nodes.planner.scripted import ScriptedPlanner
from nodes.policy.expert import ExpertPolicy
from nodes.vlm.room.vlm import KitchenVLM
from nodes.voice.loudspeaker import Loudspeaker
from nodes.voice.recogniser import Recogniser
from runtime import Node, Simulation


@pytest.mark.parametrize(
    "make",
    [
        Reflex,
        SecondJudge,
        ScriptedPlanner,
        KitchenVLM,
        ExpertPolicy,
        lambda: Loudspeaker(command="", device="none"),
        lambda: Recogniser(by="command", command="true"),
    ],
)
def test_the_phrase_tables_are_read_before_the_first_word(make: Callable[[], Node]) -> None:
    phrase_matcher.load.cache_clear()
    sim = Simulation(make())
    sim.run(seconds=0.01)
    sim.close()
    assert phrase_matcher.load.cache_info().currsize == 1
