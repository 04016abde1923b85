"""What may leave follows from the mode by construction, and an event that a mode does not know stops and is told."""

from __future__ import annotations

from typing import get_args

import pytest

from nodes.guard.modes import CLOSED, OUTPUT, TRANSITIONS, Event
from nodes.msgs import GuardMode
from tests.support.guard.guard_driven import Story, interrupt
from tests.support.sentences import sentence

MODES: tuple[GuardMode, ...] = get_args(GuardMode)


def test_each_mode_has_one_output_and_only_where_commands_leave_is_one_taken_in() -> None:
    assert tuple(OUTPUT) == MODES
    assert set(CLOSED) == {mode for mode in MODES if OUTPUT[mode] != "command"}


@pytest.mark.parametrize("mode", [mode for mode in MODES if OUTPUT[mode] != "command"])
def test_a_command_at_hand_leaves_in_no_mode_but_those_of_the_table(mode: GuardMode) -> None:
    story = Story()
    story.drive(20)
    assert story.send(v=0.3) == ""
    story.machine.mode = mode  # as if some line had forgotten to void it
    # At the end of a way back the robot holds, and a command may leave again.
    speeds = [out.base_v_mps for out in (story.tick() for _ in range(1 if mode == "retreating" else 80)) if out]
    assert speeds == sorted(speeds, reverse=True)
    assert not speeds or speeds[-1] < 0.12
    assert mode == "retreating" or not speeds or speeds[-1] == 0.0
    assert bool(speeds) is (OUTPUT[mode] != "nothing")


def test_a_mode_that_the_table_has_lost_brakes(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story()
    story.drive(20)
    monkeypatch.delitem(OUTPUT, "moving")
    assert story.send(v=0.3) == ""
    speeds = [out.base_v_mps for out in (story.tick() for _ in range(80)) if out is not None]
    assert speeds[-1] == 0.0


@pytest.mark.parametrize(("mode", "event"), [("moving", "stop"), ("moving", "hold"), ("moving", "estop")])
def test_an_event_that_a_mode_does_not_know_stops_the_robot_and_is_told(
    monkeypatch: pytest.MonkeyPatch, mode: GuardMode, event: Event
) -> None:
    story = Story()
    story.drive(20)
    monkeypatch.delitem(TRANSITIONS, (mode, event))
    if event == "estop":
        story.machine.estop("button", story.now_ns)
    else:
        story.machine.interrupt(interrupt("replan" if event == "hold" else event), story.now_ns, story.now_ns)
    assert story.machine.mode == "stopped"
    assert story.machine.reason == story.machine.refusal == sentence("guard.own_fault", mode=mode, event=event)
    outs = [out for out in (story.tick() for _ in range(80)) if out is not None]
    assert outs[-1].base_v_mps == 0.0


@pytest.mark.parametrize(
    ("event", "modes"),
    [
        ("arm", {"disarmed"}),
        ("rearm", {"estopped"}),
        ("hold", {"moving", "retreating"}),
        ("stop", {*MODES} - {"estopped"}),
        ("retreat", {"stopped"}),
        ("resume", {"stopped"}),
        ("release", {"stopped"}),
        ("estop", {*MODES}),
        ("command", {"armed", "moving", "holding"}),
        ("service", {"disarmed", "armed", "holding"}),
    ],
)
def test_each_event_is_known_in_its_own_modes_and_a_fault_in_any_other(event: Event, modes: set[GuardMode]) -> None:
    assert {mode for mode, known in TRANSITIONS if known == event} == modes


@pytest.mark.parametrize(
    ("event", "mode"),
    [
        ("arm", "armed"),
        ("rearm", "stopped"),
        ("hold", "holding"),
        ("stop", "stopped"),
        ("retreat", "retreating"),
        ("resume", "holding"),
        ("release", "disarmed"),
        ("estop", "estopped"),
        ("command", "moving"),
        ("service", "disarmed"),
    ],
)
def test_each_event_leads_to_one_mode_from_wherever_it_is_known(event: Event, mode: GuardMode) -> None:
    assert {after for (_, known), after in TRANSITIONS.items() if known == event} == {mode}


def test_a_robot_that_homes_before_it_was_armed_stays_disarmed() -> None:
    story = Story(is_armed=False)
    assert story.machine.begin_service(story.now_ns) is None
    assert story.machine.mode == "disarmed"
