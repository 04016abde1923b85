"""The study of the interruption experiment: its protocol is balanced, and its launch file fits it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridges.web.study.command import checked
from bridges.web.study.protocol import read_protocol
from runtime.launch.file import check, load

ROOT = Path(__file__).resolve().parents[4]


def test_both_conditions_stand_on_both_tables_in_every_order_and_nothing_is_worth_a_second_look() -> None:
    protocol = read_protocol(ROOT / "docs" / "study-interruption.toml")
    orders = {tuple((task.id, one.id) for task, one in protocol.trials_of(number)) for number in range(1, 5)}
    assert len(orders) == 4
    assert {frozenset(one for _, one in order) for order in orders} == {frozenset({"one", "two"})}
    assert not [line for line in checked(protocol, 4) if line.startswith("look:")]


def test_every_condition_is_known_to_the_node_that_holds_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    launch = load(ROOT / "docs" / "study-interruption-launch.toml")
    check(launch)
    held = launch.graph.nodes["arm"].params["holds_in"]
    assert set(held) == {one.id for one in read_protocol(ROOT / "docs" / "study-interruption.toml").condition}
