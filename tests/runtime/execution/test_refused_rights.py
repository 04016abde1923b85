"""Where the system refuses real-time priorities, a run says so in one line: louder where it moves a real robot."""

from __future__ import annotations

import logging

import pytest

from nodes.guard.node import Guard
from nodes.hello import Talker
from runtime.execution import process_priorities
from runtime.execution.process_priorities import RealTimeStart
from runtime.launch.graph import NodeSpec
from runtime.launch.tables.processes_table import RealTime
from tests.support.sentences import sentence

REFUSAL = "SCHED_FIFO: Operation not permitted"


@pytest.mark.parametrize(
    ("asked", "is_claimed", "level"),
    [(None, False, logging.INFO), (None, True, logging.WARNING), (RealTime(fifo=20), False, logging.WARNING)],
    ids=["simulated", "a real robot", "asked for"],
)
def test_a_refusal_is_told_in_one_line(
    asked: RealTime | None,
    is_claimed: bool,
    level: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(process_priorities, "ask_for_fifo", lambda priority: REFUSAL)
    with caplog.at_level(logging.DEBUG):
        RealTimeStart("robot", [NodeSpec("guard", Guard)], asked, is_claimed=is_claimed).go()
    (line,) = caplog.records
    assert line.levelno == level
    assert vars(line)["is_notice"] == (level == logging.INFO), "it is shown, however quiet the terminal"
    assert line.getMessage() == f"{REFUSAL}; {sentence('runtime.stops_are_late')}"


def test_a_process_without_a_control_loop_asks_for_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        RealTimeStart("talker", [NodeSpec("talker", Talker)], None, is_claimed=True).go()
    assert caplog.records == []
