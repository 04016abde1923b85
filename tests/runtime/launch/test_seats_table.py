"""[seats.*] of a launch file: every mistake is a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runtime.errors import LaunchFileError, UserError
from runtime.launch.file import load
from runtime.launch.graph import NodeSpec
from runtime.launch.tables.seats_table import parse_seats
from tests.support.guard.guarded_nodes import StillPolicy
from tests.support.sentences import sentence

SPECS = {name: NodeSpec(name, StillPolicy) for name in ("one", "two")}
SEAT = {"holder": "one", "shadows": ["two"]}

MISTAKES: dict[str, Any] = {
    "[seats] is 3; expected tables like [seats.NAME]": 3,
    f"[seats.driver] {sentence('runtime.nobody_on_the_seat', seats='policy')}": {"driver": SEAT},
    f"[seats.policy] {sentence('runtime.not_on_this_seat', node='three', nodes='one, two')}": {
        "policy": {"holder": "three"}
    },
    f"[seats.policy] {sentence('runtime.neither_holder_nor_shadow', node='two')}": {"policy": {"holder": "one"}},
    "[seats.policy] has the unknown key 'kinds'; known: holder, ladder, preempted_by, shadows": {
        "policy": {**SEAT, "kinds": {}}
    },
    "[[seats.policy.ladder]] 1 has the unknown key 'after'; known: after_subtask, do, silent_s, text, to": {
        "policy": {**SEAT, "ladder": [{"silent_s": 1.0, "text": "x", "after": 2}]}
    },
    f"[seats.policy] {sentence('runtime.rung_does_nothing', at_s='1.5')}": {
        "policy": {**SEAT, "ladder": [{"silent_s": 1.5}]}
    },
    f"[seats.policy] {sentence('runtime.shadow_expected', node='one', shadows='two')}": {
        "policy": {**SEAT, "ladder": [{"silent_s": 1.0, "do": "hand_over", "to": "one"}]}
    },
    f"[seats.policy] ladder has silent_s [2.0, 1.0]; {sentence('runtime.rungs_grow')}": {
        "policy": {**SEAT, "ladder": [{"silent_s": 2.0, "text": "x"}, {"silent_s": 1.0, "text": "y"}]}
    },
    f"[seats.policy.ladder] is 3; {sentence('runtime.rungs_expected')}": {"policy": {**SEAT, "ladder": 3}},
}


@pytest.mark.parametrize("words", MISTAKES)
def test_every_mistake_is_a_sentence(words: str) -> None:
    with pytest.raises(UserError) as told:
        parse_seats(MISTAKES[words], SPECS)
    assert str(told.value) == words


def test_a_ladder_that_says_hands_over_and_holds_is_understood() -> None:
    rungs = [
        {"silent_s": 1.0, "text": "I cannot move."},
        {"silent_s": 2.0, "do": "hand_over", "to": "two"},
        {"silent_s": 3.0, "do": "hold"},
    ]
    table = parse_seats({"policy": {**SEAT, "ladder": rungs}}, SPECS)["policy"]
    assert [rung.do for rung in table.ladder] == ["say", "hand_over", "hold"]
    assert table.candidates == ("one", "two")


def test_a_node_that_is_added_on_a_seat_goes_along_in_shadow_where_it_is_set_so(tmp_path: Path) -> None:
    node = "tests.support.guard.guarded_nodes:StillPolicy"
    path = tmp_path / "one.toml"
    path.write_text(f'[nodes.one]\nuse = "{node}"\n[seats.policy]\nholder = "one"\n')
    with pytest.raises(LaunchFileError, match="two"):
        load(path, added=[f"two={node}"])
    launch = load(path, ["seats.policy.shadows=['two']"], added=[f"two={node}"])
    assert launch.seats["policy"].candidates == ("one", "two")
