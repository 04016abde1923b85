"""[seats.*] of a launch file: every mistake is a sentence."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.errors import UserError
from runtime.launch.graph import NodeSpec
from runtime.launch.seats_table import parse_seats
from tests.support.guard.guarded_nodes import StillPolicy

SPECS = {name: NodeSpec(name, StillPolicy) for name in ("one", "two")}
SEAT = {"holder": "one", "shadows": ["two"]}

MISTAKES: dict[str, Any] = {
    "[seats] is 3; expected tables like [seats.NAME]": 3,
    "[seats.driver] is a seat that no node is on; seats of the nodes: policy": {"driver": SEAT},
    "[seats.policy] 'three' is no node on this seat; nodes on it: one, two": {"policy": {"holder": "three"}},
    "[seats.policy] node 'two' is on this seat; name it as holder or among shadows": {"policy": {"holder": "one"}},
    "[seats.policy] has the unknown key 'kinds'; known: holder, ladder, preempted_by, shadows": {
        "policy": {**SEAT, "kinds": {}}
    },
    "[[seats.policy.ladder]] 1 has the unknown key 'after'; known: after_subtask, do, silent_s, text, to": {
        "policy": {**SEAT, "ladder": [{"silent_s": 1.0, "text": "x", "after": 2}]}
    },
    "[seats.policy] ladder has a rung at 1.5 s that does nothing; give it a text to say, or a do": {
        "policy": {**SEAT, "ladder": [{"silent_s": 1.5}]}
    },
    "[seats.policy] ladder hands over to 'one'; expected one of shadows: two": {
        "policy": {**SEAT, "ladder": [{"silent_s": 1.0, "do": "hand_over", "to": "one"}]}
    },
    "[seats.policy] ladder has silent_s [2.0, 1.0]; expected positive seconds that grow from rung to rung": {
        "policy": {**SEAT, "ladder": [{"silent_s": 2.0, "text": "x"}, {"silent_s": 1.0, "text": "y"}]}
    },
    "[seats.policy.ladder] is 3; expected one or more tables [[seats.policy.ladder]]": {
        "policy": {**SEAT, "ladder": 3}
    },
}


@pytest.mark.parametrize("sentence", MISTAKES)
def test_every_mistake_is_a_sentence(sentence: str) -> None:
    with pytest.raises(UserError) as told:
        parse_seats(MISTAKES[sentence], SPECS)
    assert str(told.value) == sentence


def test_a_ladder_that_says_hands_over_and_holds_is_understood() -> None:
    rungs = [
        {"silent_s": 1.0, "text": "I cannot move."},
        {"silent_s": 2.0, "do": "hand_over", "to": "two"},
        {"silent_s": 3.0, "do": "hold"},
    ]
    table = parse_seats({"policy": {**SEAT, "ladder": rungs}}, SPECS)["policy"]
    assert [rung.do for rung in table.ladder] == ["say", "hand_over", "hold"]
    assert table.candidates == ("one", "two")
