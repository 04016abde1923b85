"""What stops the guard, what lifts a stop and what does not, by values."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from nodes.guard.modes import TRANSITIONS
from nodes.msgs.interrupt import Cause
from tests.support.guard.guard_driven import MS, Story, command, interrupt
from tests.support.sentences import sentence


def test_a_stop_brakes_at_once_and_stays() -> None:
    story = Story()
    before = story.drive(40)
    heard_ns = story.now_ns
    story.now_ns += 3 * MS
    story.machine.interrupt(interrupt("stop", by="contact", ident="ouch"), heard_ns, story.now_ns)
    out = story.machine.tick(story.now_ns)
    assert out is not None
    assert out.base_v_mps < before.base_v_mps
    report = story.machine.report()
    assert (report.mode, report.stop_cause, report.stop_heard_ns) == ("stopped", "ouch", heard_ns)
    assert report.held_ns == story.now_ns
    for _ in range(200):
        assert story.send() == f"policy: {sentence('guard.is_stopped')}"
        out = story.tick()
    assert story.machine.mode == "stopped"
    assert story.machine.is_at_rest
    assert story.tick() == out


def test_a_second_stop_keeps_the_first_cause() -> None:
    story = Story()
    story.machine.interrupt(interrupt("stop", ident="one"), story.now_ns, story.now_ns)
    story.machine.interrupt(interrupt("stop", ident="two"), story.now_ns + MS, story.now_ns + MS)
    assert story.machine.report().stop_cause == "one"


@pytest.mark.parametrize("cause", [cause for cause in get_args(Cause) if cause not in ("", "person")])
def test_no_machine_lifts_a_stop_under_whatever_name(cause: Cause) -> None:
    story = Story()
    story.machine.interrupt(interrupt("stop"), story.now_ns, story.now_ns)
    story.tick()
    resume = msgspec.structs.replace(interrupt("resume"), cause=cause)  # type: ignore[type-var]  # a Struct
    story.machine.interrupt(resume, story.now_ns, story.now_ns)
    assert story.machine.mode == "stopped"
    assert sentence("guard.only_a_person_lifts") in story.machine.refusal


def test_words_from_before_the_newest_stop_do_not_lift_it() -> None:
    story = Story()
    said_ns = story.now_ns
    story.machine.interrupt(interrupt("stop"), said_ns - MS, story.now_ns)
    story.machine.interrupt(interrupt("stop"), said_ns, story.now_ns)
    story.machine.interrupt(interrupt("resume"), said_ns, story.now_ns + MS)
    assert story.machine.mode == "stopped"
    story.machine.interrupt(interrupt("resume"), said_ns + 1, story.now_ns + MS)
    assert story.machine.report().mode == "holding"
    assert story.machine.report().stop_cause == ""


def test_after_resume_nothing_moves_until_a_command_made_after_it_arrives() -> None:
    story = Story()
    story.drive(10, v=0.0)
    story.machine.interrupt(interrupt("stop"), story.now_ns, story.now_ns)
    while not story.machine.is_at_rest:
        still = story.tick()
    before_ns = story.now_ns
    story.now_ns += 5 * MS
    story.machine.interrupt(interrupt("resume"), story.now_ns, story.now_ns)
    old = command(before_ns, seq=1000)
    assert story.machine.accept_command(old, story.now_ns) == sentence("guard.of_another_session", source="policy")
    assert story.tick() == still
    story.seq = 2000
    assert story.send() == ""
    assert story.tick() != still
    assert story.machine.mode == "moving"


def test_a_replan_holds_until_a_later_command() -> None:
    story = Story()
    story.drive(10)
    story.machine.interrupt(interrupt("replan"), story.now_ns, story.now_ns)
    assert story.machine.report().mode == "holding"
    story.tick()
    assert story.send() == ""
    story.tick()
    assert story.machine.mode == "moving"


def test_an_amend_changes_nothing_here() -> None:
    story = Story()
    story.drive(10)
    story.machine.interrupt(interrupt("amend"), story.now_ns, story.now_ns)
    story.tick()
    assert story.machine.mode == "moving"


def test_a_stop_before_arming_is_latched_too() -> None:
    story = Story(is_armed=False)
    story.machine.interrupt(interrupt("stop"), story.now_ns, story.now_ns)
    assert not story.machine.arm(story.now_ns)
    story.machine.interrupt(interrupt("resume"), story.now_ns + 1, story.now_ns + 1)
    assert story.machine.mode == "disarmed"


def test_only_resume_and_release_leave_stopped() -> None:
    ways_out = {event for (mode, event), after in TRANSITIONS.items() if mode == "stopped" and after != "stopped"}
    # Both of the first are a person's; the last goes into a stop that is harder to leave.
    assert ways_out == {"resume", "retreat", "release", "estop"}
