"""Exact words, stamps and edges of what latches: felt contacts, efforts and silences, emergency stops, restarts."""

from __future__ import annotations

import msgspec
import pytest

from nodes.guard.monitors import GuardSettings
from nodes.guard.state_machine import GuardMachine
from nodes.robot.rest import REST_MPS, REST_RADPS
from nodes.stretch.limits import STRETCH_3
from runtime.clock import to_ns
from runtime.msgs import GuardState, RobotState
from tests.support.guard.guard_story import GuardStory, command, interrupt
from tests.support.standing import HOME, ZEROS, standing

SETTINGS = GuardSettings()
GRIPPER = next(place for place, joint in enumerate(STRETCH_3.joints) if joint.name == "gripper")


def driving() -> GuardStory:
    """A guard that follows a policy, one tick ago."""
    story = GuardStory()
    story.tick(20, sees=True)
    story.arm()
    story.tick(1, sees=True)
    assert story.accept_command(command("policy", 1, story.now_ns, HOME, 0.3)) == ""
    story.tick(20, sees=True)
    return story


def see(story: GuardStory, **changes: object) -> RobotState:
    """The robot measures something else now."""
    state: RobotState = msgspec.structs.replace(standing(story.now_ns), **changes)  # type: ignore[type-var]
    story.machine.update_state(state)
    return state


def test_a_new_guard_reports_nothing_but_that() -> None:
    assert GuardMachine(STRETCH_3).report() == GuardState(
        mode="disarmed", reason="not armed", holder="", stop_cause="", stop_heard_ns=0, held_ns=0, at_rest_ns=0,
        estop="", is_armed=False, rejected=0,
    )  # fmt: skip


def test_a_new_guard_puts_out_nothing_and_feels_nothing() -> None:
    machine = GuardMachine(STRETCH_3)
    assert machine.tick(1) is None
    assert machine.check_monitors(1) == ""
    assert machine.is_at_rest


def test_contacts_are_named_in_order_and_heard_when_they_were_read() -> None:
    story = driving()
    read_ns = story.now_ns - to_ns(0.01)
    see(story, read_ns=read_ns, contact=("lift", "base"))
    assert story.machine.check_monitors(story.now_ns) == "contact"
    said = story.machine.report()
    assert (said.mode, said.reason) == ("stopped", "stopped by contact: contact: base, lift")
    assert (said.stop_cause, said.stop_heard_ns) == ("", read_ns)
    assert story.machine.check_monitors(story.now_ns) == "", "the same contact is no news"


def test_a_contact_during_a_stop_of_any_kind_changes_neither_cause_nor_mode() -> None:
    for latch in ("stop", "estop"):
        story = driving()
        if latch == "stop":
            story.machine.interrupt(interrupt("stop", "Ana"), story.now_ns, story.now_ns)
        else:
            story.machine.estop("button: pressed", story.now_ns)
        before = story.machine.report()
        see(story, contact=("base",))
        assert story.machine.check_monitors(story.now_ns) == ""
        assert story.machine.report() == before


def test_an_effort_counts_from_exactly_its_limit_and_after_exactly_its_time() -> None:
    story = driving()
    efforts = list(ZEROS)
    for place, percent in ((0, SETTINGS.max_effort_percent), (1, -100.0), (2, SETTINGS.max_effort_percent - 0.1)):
        efforts[place] = percent
    efforts[GRIPPER] = 100.0
    start_ns = story.now_ns
    for late_ns, by in ((0, ""), (to_ns(SETTINGS.effort_s), ""), (to_ns(SETTINGS.effort_s) + 1, "effort")):
        story.now_ns = start_ns + late_ns
        see(story, effort=tuple(efforts))
        assert story.machine.check_monitors(story.now_ns) == by
    names = f"{STRETCH_3.joints[0].name}, {STRETCH_3.joints[1].name}"
    assert story.machine.reason == f"stopped by effort: effort above 95 % for 0.3 s: {names}"
    assert story.machine.check_monitors(story.now_ns + to_ns(1.0)) == "", "told once"


def test_an_effort_that_ends_in_between_starts_anew() -> None:
    story = driving()
    start_ns = story.now_ns
    for step in range(20):
        story.now_ns = start_ns + step * to_ns(0.1)
        see(story, effort=(100.0 if step % 3 else 0.0, *ZEROS[1:]))
        assert story.machine.check_monitors(story.now_ns) == ""


def test_a_driver_is_silent_after_exactly_its_time_and_only_once_the_guard_was_armed() -> None:
    story = driving()
    see(story)
    silence_ns = to_ns(SETTINGS.driver_silence_s)
    assert story.machine.check_monitors(story.now_ns + silence_ns) == ""
    assert story.machine.check_monitors(story.now_ns + silence_ns + 1) == "driver"
    assert story.machine.reason == "stopped by driver: the driver has been silent for 1 s"
    idle = GuardStory()
    see(idle)
    assert idle.machine.check_monitors(idle.now_ns + 10 * silence_ns) == ""


def test_an_emergency_stop_tells_its_first_cause_and_when() -> None:
    story = driving()
    story.machine.estop("button: pressed", story.now_ns)
    at_ns = story.now_ns
    story.tick(1, sees=True)
    story.machine.estop("console: pressed too", story.now_ns)
    said = story.machine.report()
    assert (said.mode, said.estop, said.reason) == ("stopped", "button: pressed", "emergency stop: button: pressed")
    assert (said.stop_cause, said.stop_heard_ns, said.held_ns) == ("estop", at_ns, story.now_ns)
    assert said.is_armed


def test_an_emergency_stop_on_top_of_a_stop_leaves_the_cause_of_the_stop() -> None:
    story = driving()
    heard_ns = story.now_ns - 5
    story.machine.interrupt(interrupt("stop", "Ana", "i-7"), heard_ns, story.now_ns)
    story.machine.estop("button", story.now_ns)
    said = story.machine.report()
    assert (said.stop_cause, said.stop_heard_ns) == ("i-7", heard_ns)
    assert story.machine.mode == "estopped"


def test_no_word_resumes_an_emergency_stop_and_each_is_counted() -> None:
    story = driving()
    story.machine.estop("button", story.now_ns)
    before = story.machine.rejected
    for number in (1, 2):
        later_ns = story.now_ns + number
        story.machine.interrupt(interrupt("resume", "Ana"), later_ns, later_ns)
        assert story.machine.refusal == "resume by 'Ana' refused: an emergency stop is only left by re-arming"
        assert story.machine.rejected == before + number
    story.machine.interrupt(interrupt("replan", "Ana"), story.now_ns + 9, story.now_ns + 9)
    assert (story.machine.mode, story.machine.rejected) == ("estopped", before + 2)


def test_re_arming_leaves_an_ordinary_stop_that_older_words_do_not_lift() -> None:
    story = driving()
    story.machine.estop("button", story.now_ns)
    assert story.machine.rearm("Ann", story.now_ns + 50)
    said = story.machine.report()
    assert (said.mode, said.estop) == ("stopped", "")
    assert said.reason == "re-armed by Ann, waiting to be told to go on"
    assert not story.machine.rearm("Ann", story.now_ns + 60), "there is none any more"
    story.machine.interrupt(interrupt("resume", "Ana"), story.now_ns + 50, story.now_ns + 70)
    assert story.machine.mode == "stopped"
    story.machine.interrupt(interrupt("resume", "Ana"), story.now_ns + 51, story.now_ns + 70)
    assert story.machine.mode == "holding"


@pytest.mark.parametrize(
    ("stop", "estop", "mode", "reason"),
    [
        ("", "", "disarmed", "not armed"),
        ("stopped by Sam: Ouch!", "", "stopped", "stopped by guard: stopped by Sam: Ouch!"),
        ("", "button", "estopped", "emergency stop: button"),
        ("stopped by Sam", "button", "estopped", "emergency stop: button"),
    ],
)
def test_what_is_restored_is_latched_as_it_was(stop: str, estop: str, mode: str, reason: str) -> None:
    machine = GuardMachine(STRETCH_3)
    machine.restore(stop, estop, 7)
    assert (machine.mode, machine.reason, machine.estop_cause) == (mode, reason, estop)
    if stop or estop:
        assert (machine.stop_cause, machine.stop_heard_ns) == ("restart", 7)
        machine.interrupt(interrupt("resume", "Ana"), 7, 8)
        assert machine.mode == mode, "words from before the restart lift nothing"


def test_a_stop_restored_without_its_cause_names_the_emergency() -> None:
    machine = GuardMachine(STRETCH_3)
    machine.restore("", "button", 7)
    assert machine.rearm("Ann", 8)
    machine.interrupt(interrupt("resume", "Ana"), 9, 9)
    assert (machine.mode, machine.reason) == ("disarmed", "resumed by Ana, no command yet")


@pytest.mark.parametrize(("holder", "name"), [("me-1", "me-1"), ("", "nobody")])
def test_a_hand_over_holds_a_moving_robot_and_says_to_whom(holder: str, name: str) -> None:
    story = driving()
    assert story.machine.mode == "moving"
    story.machine.transfer_control(holder, story.now_ns)
    said = story.machine.report()
    assert (said.mode, said.reason, said.holder) == ("holding", f"handed over to {name}, no command yet", "")
    assert story.machine.accept_command(command("policy", 9, story.now_ns), story.now_ns) == (
        "policy: sent before the guard was last armed, stopped or interrupted"
    )


def test_a_hand_over_in_a_stop_changes_no_reason() -> None:
    story = driving()
    story.machine.interrupt(interrupt("stop", "Ana"), story.now_ns, story.now_ns)
    before = story.machine.report()
    story.machine.transfer_control("me-1", story.now_ns)
    assert story.machine.report() == before


@pytest.mark.parametrize(
    ("changes", "is_still"),
    [
        ({"base_v_mps": REST_MPS}, True),
        ({"base_v_mps": -REST_MPS - 1e-6}, False),
        ({"base_w_radps": REST_RADPS}, True),
        ({"base_w_radps": -REST_RADPS - 1e-6}, False),
        ({"velocity": (0.0, REST_MPS, *ZEROS[2:])}, True),
        ({"velocity": (0.0, -REST_MPS - 1e-6, *ZEROS[2:])}, False),
        ({"velocity": (*ZEROS[:4], REST_RADPS, *ZEROS[5:])}, True),
        ({"velocity": (*ZEROS[:4], REST_RADPS + 1e-6, *ZEROS[5:])}, False),
    ],
)
def test_a_robot_rests_where_nothing_is_asked_of_it_and_it_stands_itself(
    changes: dict[str, object], is_still: bool
) -> None:
    story = GuardStory()
    story.tick(20, sees=True)
    story.arm()
    see(story, **changes)
    story.machine.tick(story.now_ns)
    assert story.machine.at_rest_ns == (story.now_ns if is_still else 0)
    story.machine.tick(story.now_ns + 5)
    assert story.machine.at_rest_ns == (story.now_ns if is_still else 0), "since when, not when last"
    see(story, base_v_mps=1.0)
    story.machine.tick(story.now_ns + 9)
    assert story.machine.at_rest_ns == 0
    assert story.machine.report().at_rest_ns == 0


def test_the_settings_that_no_launch_file_chooses_are_as_documented() -> None:
    assert (SETTINGS.max_state_age_s, SETTINGS.longest_step_s, SETTINGS.effort_s) == (0.2, 0.04, 0.3)
    assert (SETTINGS.lifespan_s, SETTINGS.driver_silence_s, SETTINGS.max_effort_percent) == (0.15, 1.0, 95.0)
