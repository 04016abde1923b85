"""The study of the interruption experiment: its protocol is balanced, and its launch file fits it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridges.web.study.command import checked
from bridges.web.study.protocol import Protocol, read_protocol
from bridges.web.study.session import Event, SessionProgress
from bridges.web.study.views import experimenter_view, participant_view
from runtime.launch.file import check, load

ROOT = Path(__file__).resolve().parents[4]


def test_both_conditions_stand_on_both_tables_in_every_order_and_nothing_is_worth_a_second_look() -> None:
    protocol = read_protocol(ROOT / "docs" / "study-interruption.toml")
    orders = {tuple((task.id, one.id) for task, one in protocol.trials_of(number)) for number in range(1, 5)}
    assert len(orders) == 4
    assert {frozenset(one for _, one in order) for order in orders} == {frozenset({"one", "two"})}
    assert not [line for line in checked(protocol, 4) if line.startswith("look:")]


def pages_of(protocol: Protocol, number: int) -> list[object]:
    """What both pages are told of a whole session, trials running too, but for who takes part."""
    progress = SessionProgress.of(protocol, Event("begin", 0.0, number=number))
    told: list[object] = []
    while True:
        seen = participant_view(protocol, progress), experimenter_view(protocol, progress, [])
        told.append([{name: one[name] for name in one if name not in ("code", "number")} for one in seen])
        if progress.is_over:
            return told
        if progress.step.kind == "trial" and progress.phase == "ready":
            progress.apply(progress.start(1.0, "experimenter"))
        elif progress.step.kind == "trial":
            progress.apply(progress.finish(2.0, "experimenter", "completed"))
        else:
            progress.apply(Event("submit", 3.0))


def test_no_page_tells_the_condition() -> None:
    protocol = read_protocol(ROOT / "docs" / "study-interruption.toml")
    (first, second), (other, _) = protocol.trials_of(1), protocol.trials_of(2)
    assert other == (first[0], second[1]), "the same table under the other condition"
    assert pages_of(protocol, 1) == pages_of(protocol, 2)


def test_every_condition_is_known_to_the_node_that_holds_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    launch = load(ROOT / "docs" / "study-interruption-launch.toml")
    check(launch)
    held = launch.graph.nodes["arm"].params["holds_in"]
    assert set(held) == {one.id for one in read_protocol(ROOT / "docs" / "study-interruption.toml").condition}
