"""Exact words, stamps and edges of what latches: contacts, efforts and silences, emergency stops, restarts."""

from __future__ import annotations

import msgspec
import pytest

from nodes.guard.immediate_faults import GuardSettings
from nodes.guard.state_machine import GuardMachine
from nodes.guard.stop_latch import Refusal
from nodes.msgs import GuardState, Interrupt, RobotState, RobotStatus
from nodes.robot.rest import REST_MPS, REST_RADPS
from nodes.stretch.limits import STRETCH_3
from runtime.clock import to_ns
from tests.support.guard.guard_story import GuardStory, command, interrupt
from tests.support.sentences import sentence
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
    assert (said.mode, said.reason) == (
        "stopped",
        sentence("guard.stopped_by", by="contact", why="contact: base, lift"),
    )
    assert (said.stop_cause, said.stop_heard_ns) == ("", read_ns)
    assert story.machine.check_monitors(story.now_ns) == "", "the same contact is no news"


def test_what_is_no_contact_is_heard_when_it_is_found() -> None:
    story = driving()
    see(story, read_ns=story.now_ns - to_ns(0.01))
    later_ns = story.now_ns + to_ns(2.0)
    assert story.machine.check_monitors(later_ns) not in ("", "contact")
    assert story.machine.report().stop_heard_ns == later_ns


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
    assert story.machine.reason == sentence(
        "guard.stopped_by", by="effort", why=sentence("guard.effort_now", percent=95, seconds=0.3, what=names)
    )
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
    assert story.machine.reason == sentence(
        "guard.stopped_by", by="driver", why=sentence("guard.driver_is_silent", seconds=1)
    )
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
    assert (said.mode, said.estop, said.reason) == (
        "estopped",
        "button: pressed",
        sentence("guard.emergency_stop", why="button: pressed"),
    )
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
        assert story.machine.refusal == sentence("guard.resume_refused", by="Ana", why=sentence("guard.only_rearming"))
        assert story.machine.rejected == before + number
    story.machine.interrupt(interrupt("replan", "Ana"), story.now_ns + 9, story.now_ns + 9)
    assert (story.machine.mode, story.machine.rejected) == ("estopped", before + 2)


def test_re_arming_leaves_an_ordinary_stop_that_older_words_do_not_lift() -> None:
    story = driving()
    story.machine.estop("button", story.now_ns)
    assert story.machine.rearm("Ann", story.now_ns + 50)
    said = story.machine.report()
    assert (said.mode, said.estop) == ("stopped", "")
    assert said.reason == sentence("guard.rearmed", by="Ann")
    assert not story.machine.rearm("Ann", story.now_ns + 60), "there is none any more"
    story.machine.interrupt(interrupt("resume", "Ana"), story.now_ns + 50, story.now_ns + 70)
    assert story.machine.mode == "stopped"
    story.machine.interrupt(interrupt("resume", "Ana"), story.now_ns + 51, story.now_ns + 70)
    assert story.machine.mode == "holding"


@pytest.mark.parametrize(
    ("stop", "estop", "mode", "reason"),
    [
        ("", "", "disarmed", "not armed"),
        (
            sentence("guard.stopped_by", by="Sam", why="Ouch!"),
            "",
            "stopped",
            sentence("guard.stopped_by", by="guard", why=sentence("guard.stopped_by", by="Sam", why="Ouch!")),
        ),
        ("", "button", "estopped", sentence("guard.emergency_stop", why="button")),
        ("stopped by Sam", "button", "estopped", sentence("guard.emergency_stop", why="button")),
    ],
)
def test_what_is_restored_is_latched_as_it_was(stop: str, estop: str, mode: str, reason: str) -> None:
    machine = GuardMachine(STRETCH_3)
    machine.restore(stop, estop, 7)
    assert (machine.mode, machine.reason, machine.latch.estop) == (mode, reason, estop)
    if stop or estop:
        assert (machine.latch.cause, machine.latch.heard_ns) == ("restart", 7)
        machine.interrupt(interrupt("resume", "Ana"), 7, 8)
        assert machine.mode == mode, "words from before the restart lift nothing"


def test_a_stop_restored_without_its_cause_names_the_emergency() -> None:
    machine = GuardMachine(STRETCH_3)
    machine.restore("", "button", 7)
    assert machine.rearm("Ann", 8)
    machine.interrupt(interrupt("resume", "Ana"), 9, 9)
    assert (machine.mode, machine.reason) == ("disarmed", sentence("guard.resumed", by="Ana"))


@pytest.mark.parametrize(("holder", "name"), [("me-1", "me-1"), ("", "nobody")])
def test_a_hand_over_holds_a_moving_robot_and_says_to_whom(holder: str, name: str) -> None:
    story = driving()
    assert story.machine.mode == "moving"
    story.machine.transfer_control(holder, story.now_ns)
    said = story.machine.report()
    assert (said.mode, said.reason, said.holder) == ("holding", sentence("guard.handed_over", to=name), "")
    assert story.machine.accept_command(command("policy", 9, story.now_ns), story.now_ns) == (
        sentence("guard.of_another_session", source="policy")
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
    assert story.machine.body.at_rest_ns == (story.now_ns if is_still else 0)
    story.machine.tick(story.now_ns + 5)
    assert story.machine.body.at_rest_ns == (story.now_ns if is_still else 0), "since when, not when last"
    see(story, base_v_mps=1.0)
    story.machine.tick(story.now_ns + 9)
    assert story.machine.body.at_rest_ns == 0
    assert story.machine.report().at_rest_ns == 0


def test_the_settings_that_no_launch_file_chooses_are_as_documented() -> None:
    assert (SETTINGS.max_state_age_s, SETTINGS.longest_step_s, SETTINGS.effort_s) == (0.2, 0.04, 0.3)
    assert (SETTINGS.lifespan_s, SETTINGS.driver_silence_s, SETTINGS.max_effort_percent) == (0.15, 1.0, 95.0)


def hold(ident: str, hold_s: float = 1.2, takes_back: str = "") -> Interrupt:
    return Interrupt(id=ident, depth="hold", text="hm", by="Ana", hold_s=hold_s, takes_back=takes_back)


def mode_at(story: GuardStory, at_ns: int) -> str:
    """The guard's mode at that moment, with a command and a state that are new."""
    story.machine.update_state(standing(at_ns))
    assert story.machine.accept_command(command("policy", at_ns, at_ns, HOME, 0.3), at_ns) == ""
    story.machine.tick(at_ns)
    said: GuardState = story.machine.report()
    return said.mode


@pytest.mark.parametrize(("asked_s", "lasts_s"), [(1.2, 1.2), (0.0, 0.0), (-1.0, 0.0), (9.0, 1.5), (float("nan"), 1.5)])
def test_a_soft_hold_lasts_exactly_as_long_as_it_says_and_a_second_and_a_half_at_most(
    asked_s: float, lasts_s: float
) -> None:
    story = driving()
    end_ns = story.now_ns + to_ns(lasts_s)
    story.machine.interrupt(hold("h", asked_s), story.now_ns, story.now_ns)
    assert mode_at(story, end_ns - 1 if lasts_s else end_ns) == ("holding" if lasts_s else "moving")
    assert mode_at(story, end_ns + 1) == "moving"
    later = driving()
    later.machine.interrupt(hold("h", asked_s), later.now_ns, later.now_ns)
    assert mode_at(later, later.now_ns + to_ns(lasts_s)) == "moving"


def test_a_second_soft_hold_takes_the_place_of_the_first_one() -> None:
    story = driving()
    start_ns = story.now_ns
    story.machine.interrupt(hold("one", 0.5), start_ns, start_ns)
    between_ns = start_ns + to_ns(0.4)
    story.machine.interrupt(hold("two", 0.5), between_ns, between_ns)
    story.machine.interrupt(hold("r", takes_back="one"), between_ns, between_ns)
    assert mode_at(story, start_ns + to_ns(0.8)) == "holding"
    story.machine.interrupt(hold("r", takes_back="two"), start_ns + to_ns(0.8), start_ns + to_ns(0.8))
    assert mode_at(story, start_ns + to_ns(0.81)) == "moving"


def test_what_does_not_move_is_not_held_softly() -> None:
    story = GuardStory()
    story.tick(20, sees=True)
    story.arm()
    story.machine.interrupt(hold("h"), story.now_ns, story.now_ns)
    assert story.machine.report().reason == sentence("guard.armed")
    assert mode_at(story, story.now_ns + 1) == "moving"


def caught() -> GuardStory:
    """A guard that opens the gripper for somebody who is in it."""
    story = driving()
    stop = msgspec.structs.replace(interrupt("stop", "Ana"), is_caught=True)  # type: ignore[type-var]  # a Struct
    story.machine.interrupt(stop, story.now_ns, story.now_ns)
    story.tick(20, sees=True)
    return story


def go_on(story: GuardStory) -> str:
    """The code of why Ana's go-on is refused, or ""."""
    said_ns = story.now_ns + 1
    refusal: Refusal | None = story.machine.interrupt(interrupt("resume", "Ana"), said_ns, said_ns)
    return refusal.code if refusal is not None else ""


@pytest.mark.parametrize(("short_of_open", "code"), [(0.1 - 1e-9, ""), (0.1 + 1e-9, "caught"), (1.0, "caught")])
def test_a_gripper_counts_as_open_within_a_tenth_of_its_range(short_of_open: float, code: str) -> None:
    story, limit = caught(), STRETCH_3.joints[GRIPPER]
    open_m = limit.highest - short_of_open * (limit.highest - limit.lowest)
    see(story, position=(*HOME[:GRIPPER], open_m, *HOME[GRIPPER + 1 :]))
    assert go_on(story) == code


def test_a_gripper_that_was_seen_open_too_long_ago_may_have_closed() -> None:
    story = caught()
    position = (*HOME[:GRIPPER], STRETCH_3.joints[GRIPPER].highest, *HOME[GRIPPER + 1 :])
    see(story, position=position)
    story.now_ns += to_ns(SETTINGS.max_state_age_s) + 1
    assert go_on(story) == "caught"
    see(story, position=position)
    assert go_on(story) == ""


def test_a_gripper_is_opened_while_the_robot_is_stopped_and_keeps_still_in_an_emergency_stop() -> None:
    story, places = caught(), []
    for tick in range(15):
        if tick == 5:
            story.machine.estop("button", story.now_ns)
        story.now_ns += to_ns(0.02)
        out = story.machine.tick(story.now_ns)
        assert out is not None
        places.append(out.position[GRIPPER])
    assert places[4] > places[0] > HOME[GRIPPER]
    assert places[-1] == pytest.approx(places[-2])
    assert places[-1] < STRETCH_3.joints[GRIPPER].highest


def test_who_was_in_the_gripper_of_a_robot_that_was_let_go_of_need_not_wait_for_it_to_open() -> None:
    story = caught()
    for is_pressed in (True, False):
        story.machine.update_status(
            RobotStatus(read_ns=story.now_ns, mode="runstopped" if is_pressed else "ready", is_runstopped=is_pressed)
        )
        story.machine.check_monitors(story.now_ns)
    see(story)
    assert go_on(story) == ""
    assert story.machine.mode == "disarmed"


def test_the_robots_own_button_ends_what_it_does_by_itself() -> None:
    machine = GuardMachine(STRETCH_3)
    machine.update_state(standing(0))
    assert machine.begin_service(0) is None
    assert machine.is_busy(1)
    machine.update_status(RobotStatus(read_ns=1, mode="runstopped", is_runstopped=True))
    assert not machine.is_busy(1)


def test_the_robots_own_button_is_needed_where_a_stopped_robot_does_something_by_itself_and_is_not_pressed_yet() -> (
    None
):
    story = GuardStory()
    story.tick(20, sees=True)
    machine, now_ns = story.machine, story.now_ns
    assert machine.begin_service(now_ns) is None
    assert not machine.needs_runstop(now_ns), "nobody has stopped it"
    machine.interrupt(interrupt("stop", "Ana"), now_ns, now_ns)
    assert machine.needs_runstop(now_ns)
    machine.estop("button", now_ns)
    assert machine.needs_runstop(now_ns)
    machine.update_status(RobotStatus(read_ns=now_ns, mode="homing", is_runstopped=True))
    assert not machine.needs_runstop(now_ns)


def test_no_emergency_stop_is_told_of_that_is_over() -> None:
    story = driving()
    assert not story.machine.rearm("Ann", story.now_ns), "there was none"
    assert story.machine.mode == "moving"
