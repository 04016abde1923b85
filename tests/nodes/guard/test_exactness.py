"""The guard's exact edges, words and counts: what a random story would hardly ever meet."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nodes.guard.command_sources import FASTEST_MPS, FASTEST_RADPS, MOST_SOURCES, RESTARTED_NS
from nodes.guard.immediate_faults import FUTURE_NS, GuardSettings
from nodes.guard.motion_profile import Motion, limits_of, toward
from nodes.guard.node import Guard
from nodes.guard.space import Space
from nodes.guard.state_machine import LONGEST_TEXT, GuardMachine
from nodes.msgs import Interrupt, JointCommand
from nodes.stretch.limits import STRETCH_3
from runtime.clock import to_ns
from runtime.errors import ParameterError
from runtime.message import Envelope, Stamped
from tests.support.guard.guard_story import LIFESPAN_NS, GuardStory, command, interrupt
from tests.support.sentences import sentence
from tests.support.standing import HOME, standing

FAR = (1.0, 0.5, 3.0, 0.4, 2.0, 0.12, 1.0, 0.2)


def armed() -> GuardStory:
    """A guard that was armed a moment ago."""
    story = GuardStory()
    story.tick(20, sees=True)
    story.arm()
    story.tick(1, sees=True)
    return story


def moving() -> GuardStory:
    """A guard that follows a policy."""
    story = armed()
    assert story.accept_command(command("policy", 1, story.now_ns, FAR, 0.3)) == ""
    story.tick(20, sees=True)
    return story


def test_a_new_guard_says_that_it_is_not_armed_and_has_refused_nothing() -> None:
    said = GuardMachine(STRETCH_3).report()
    assert (said.mode, said.reason, said.holder, said.rejected) == ("disarmed", "not armed", "", 0)
    assert (said.stop_cause, said.stop_heard_ns, said.held_ns) == ("", 0, 0)
    assert GuardMachine(STRETCH_3).refusal == ""


def test_an_armed_guard_says_so() -> None:
    said = armed().machine.report()
    assert (said.mode, said.reason, said.holder) == ("armed", sentence("guard.armed"), "")


def test_a_moving_guard_names_its_commander_and_is_not_held() -> None:
    said = moving().machine.report()
    assert (said.reason, said.holder, said.held_ns) == ("commanded by policy", "policy", 0)


@pytest.mark.parametrize(("by", "name"), [("Ana", "Ana"), ("", "unknown")])
def test_a_stopped_guard_says_by_whom_and_why(by: str, name: str) -> None:
    story = moving()
    story.machine.interrupt(interrupt("stop", by), story.now_ns, story.now_ns)
    assert story.machine.report().reason == sentence("guard.stopped_by", by=name, why="words")


def test_a_stop_that_the_guard_itself_found_has_no_id_and_nobody_takes_it_back() -> None:
    story = moving()
    story.machine.stop("link", "the link is lost", story.now_ns, story.now_ns)
    said = story.machine.report()
    assert (said.reason, said.stop_cause, said.stopped_by) == (
        sentence("guard.stopped_by", by="link", why=sentence("guard.link_is_lost")),
        "",
        "link",
    )
    takes_back = Interrupt(id="r", depth="resume", text="go on", by="Ana", takes_back="i")
    refusal = story.machine.interrupt(takes_back, story.now_ns + 1, story.now_ns + 1)
    assert refusal is not None
    assert refusal.code == "another_stop"


def test_what_the_robot_says_of_a_contact_is_kept_in_part() -> None:
    story = moving()
    story.machine.update_state(standing(story.now_ns, contact=("x" * 100_000,)))
    assert story.machine.check_monitors(story.now_ns) == "contact"
    assert story.machine.report().reason == sentence(
        "guard.stopped_by", by="contact", why=f"contact: {'x' * (LONGEST_TEXT - len('contact: '))}"
    )


def test_a_guard_that_lets_the_robot_home_before_its_first_tick_says_since_when_nothing_is_sent() -> None:
    story = GuardStory()
    story.tick(20, sees=True)
    story.arm()
    assert story.machine.begin_service(story.now_ns) is None
    assert story.machine.report().held_ns == story.now_ns


def test_a_replan_and_a_resume_say_what_is_waited_for() -> None:
    story = moving()
    story.machine.interrupt(interrupt("replan", "Ana"), story.now_ns, story.now_ns)
    assert story.machine.report().reason == sentence("guard.waits_for_a_plan", why="words")
    story.machine.interrupt(interrupt("stop", "Ana"), story.now_ns, story.now_ns)
    story.machine.interrupt(interrupt("resume", "Ana"), story.now_ns + 1, story.now_ns + 1)
    said = story.machine.report()
    assert (said.reason, said.stop_cause, said.stop_heard_ns) == (sentence("guard.resumed", by="Ana"), "", 0)


@pytest.mark.parametrize(
    ("by", "early_ns", "words"),
    [
        (
            "console",
            -1,
            sentence("guard.resume_refused", by="console", why=sentence("guard.stopped_as_well", who="Ana")),
        ),
        ("", -1, sentence("guard.resume_refused", by="unknown", why=sentence("guard.only_a_person_lifts"))),
        ("Ana", 0, sentence("guard.resume_refused", by="Ana", why=sentence("guard.said_before_the_stop"))),
    ],
)
def test_each_refused_resume_counts_once_and_says_why(by: str, early_ns: int, words: str) -> None:
    story = moving()
    story.machine.interrupt(interrupt("stop", "Ana"), story.now_ns, story.now_ns)
    for number in (1, 2, 3):
        story.machine.interrupt(interrupt("resume", by), story.now_ns - early_ns, story.now_ns)
        assert (story.machine.rejected, story.machine.refusal) == (number, words)


def test_each_refused_command_counts_once_and_says_why() -> None:
    story = moving()
    for number in (1, 2, 3):
        refusal = story.machine.accept_command(command("policy", 2, story.now_ns, (0.0,) * 3), story.now_ns)
        assert (story.machine.rejected, story.machine.refusal) == (number, refusal)


def test_a_command_lives_exactly_as_long_as_its_lifespan() -> None:
    story = armed()
    sent_ns = story.now_ns
    assert story.machine.accept_command(command("policy", 1, sent_ns), sent_ns + LIFESPAN_NS) == ""
    late = armed()
    assert (
        late.machine.accept_command(command("policy", 1, sent_ns), sent_ns + LIFESPAN_NS + 1)
        == f"policy: {sentence('guard.no_command', ms=150)}"
    )


def test_a_stamp_may_be_ahead_by_five_milliseconds_and_not_more() -> None:
    story = armed()
    assert story.machine.accept_command(command("policy", 1, story.now_ns + FUTURE_NS), story.now_ns) == ""
    assert "future" in armed().machine.accept_command(command("policy", 1, story.now_ns + FUTURE_NS + 1), story.now_ns)


def test_an_image_counts_until_exactly_its_age() -> None:
    story = armed()

    def seen(age_ns: int) -> Stamped[JointCommand]:
        message = JointCommand(position=HOME)
        return Stamped(
            message, Envelope("command", "policy", 1, story.now_ns, origins={"image": story.now_ns - age_ns})
        )

    assert "image" in story.machine.accept_command(seen(to_ns(1.0) + 1), story.now_ns)
    assert story.machine.accept_command(seen(to_ns(1.0)), story.now_ns) == ""


def test_order_is_kept_to_the_nanosecond() -> None:
    story = armed()
    first_ns = story.now_ns

    def accept_command(seq: int, stamp_ns: int, now_ns: int = 0) -> str:
        refusal: str = story.machine.accept_command(command("policy", seq, stamp_ns), now_ns or first_ns)
        return refusal

    assert accept_command(5, first_ns) == ""
    assert "order" in accept_command(6, first_ns)
    assert accept_command(6, first_ns + 1) == ""
    assert "order" in accept_command(6, first_ns + 2)
    later_ns = first_ns + 1 + RESTARTED_NS
    assert "order" in accept_command(1, later_ns - 1, later_ns)
    assert "restarted" in accept_command(1, later_ns, later_ns)


def test_the_fastest_speed_that_is_no_mistake_is_obeyed_within_limits() -> None:
    story = armed()
    assert story.accept_command(command("policy", 1, story.now_ns, v=FASTEST_MPS, w=-FASTEST_RADPS)) == ""
    out = story.tick(20, sees=True)
    assert out is not None


@pytest.mark.parametrize(("v", "w"), [(FASTEST_MPS + 0.1, 0.0), (-20.0, 0.0), (0.0, 30.0), (0.0, -FASTEST_RADPS - 0.1)])
def test_a_base_speed_in_cm_or_degrees_is_a_mistake_refused_and_counted(v: float, w: float) -> None:
    story = armed()
    assert f"{FASTEST_RADPS:g} rad/s" in story.accept_command(command("policy", 1, story.now_ns, v=v, w=w))
    assert story.machine.report().mistaken == {"policy": 1}
    out = story.tick(20, sees=True)
    assert out is None or (out.base_v_mps, out.base_w_radps) == (0.0, 0.0)


def test_the_robots_state_counts_until_exactly_its_age() -> None:
    story = moving()
    read_ns = story.now_ns
    at_ns = read_ns + to_ns(0.2)
    for now_ns, mode in ((at_ns, "moving"), (at_ns + 1, "holding")):
        assert story.machine.accept_command(command("policy", now_ns - read_ns, now_ns), now_ns) == ""
        story.machine.tick(now_ns)
        assert story.machine.mode == mode
    assert story.machine.reason == sentence("guard.robot_state_is_old", ms=200)


def test_the_settings_of_a_launch_file_reach_the_guard() -> None:
    guard = Guard(lifespan_s=0.1, max_image_age_s=0.7, speed_scale=0.5)
    assert guard.machine.settings == replace(GuardSettings(), lifespan_s=0.1, max_image_age_s=0.7)
    assert guard.command.qos.lifespan_s == 0.1
    assert guard.machine.limits == limits_of("stretch_3", 0.5)
    assert Guard().machine.settings.max_image_age_s == 1.0
    assert Guard(lifespan_s=0.5).machine.settings.lifespan_s == 0.5


@pytest.mark.parametrize("wrong", [{"lifespan_s": 0.0}, {"max_image_age_s": float("inf")}, {"speed_scale": 0.0}])
def test_settings_at_the_edge_of_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ParameterError):
        Guard(**wrong)  # type: ignore[arg-type]  # from a table


def test_half_the_speed_is_half_of_every_speed_and_all_of_the_braking() -> None:
    half = limits_of("stretch_3", 0.5)
    assert half.base == replace(STRETCH_3.base, wheel_speed_mps=0.15)
    assert [joint.speed for joint in half.joints] == [joint.speed / 2 for joint in STRETCH_3.joints]
    assert [joint.acceleration for joint in half.joints] == [joint.acceleration for joint in STRETCH_3.joints]
    whole = STRETCH_3.cartesian
    assert whole is not None
    assert half.cartesian == replace(
        whole, tip_speed_mps=whole.tip_speed_mps / 2, base_speed_out_mps=whole.base_speed_out_mps / 2
    )


def test_limits_that_are_named_by_module_are_scaled_alike_and_an_unknown_robot_is_told() -> None:
    assert limits_of("nodes.stretch.limits:STRETCH_3", 0.5) == limits_of("stretch_3", 0.5)
    with pytest.raises(ParameterError) as refusal:
        limits_of("tank")
    assert str(refusal.value) == "guard: " + sentence("guard.unknown_robot", name="tank")


def test_a_joint_arrives_as_early_as_its_brake_allows() -> None:
    limit = STRETCH_3.joints[2]
    motion = toward(Motion(0.0, 1.0), 0.15, limit, 0.02)
    # v dt + v^2 / 2a = 0.15 with a = 10, dt = 0.02: v = 1.5436
    assert toward(Motion(0.0, 1.5), 0.15, limit, 0.02).velocity == pytest.approx(1.5436, abs=1e-4)
    assert motion.velocity == pytest.approx(1.2)


def test_a_clock_that_begins_at_zero_is_a_clock_as_any() -> None:
    """As in virtual time: nothing that the guard has not seen yet lies in its future."""
    machine = GuardMachine(STRETCH_3)
    machine.update_state(standing(0))
    assert machine.arm(0)
    assert machine.check_monitors(0) == ""
    assert machine.accept_command(command("policy", 1, 1, FAR), to_ns(0.02)) == ""
    machine.update_state(standing(to_ns(0.02)))
    machine.tick(to_ns(0.02))
    assert machine.reason == "commanded by policy"
    assert machine.check_monitors(to_ns(0.02)) == ""
    machine.interrupt(interrupt("stop", "Ana"), 0, to_ns(0.02))
    assert machine.interrupt(interrupt("resume", "Ana"), 1, to_ns(0.02)) is None


def test_a_refusal_is_logged_once_with_its_count(caplog: pytest.LogCaptureFixture) -> None:
    guard = Guard()
    guard.machine.update_state(standing(0))
    guard.machine.accept_command(command("policy", 1, 0), 0)
    with caplog.at_level("INFO"):
        guard.report(is_due=False)
        guard.report(is_due=True)
        guard.report(is_due=True)
        Guard().report(is_due=True)  # that has refused nothing
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "disarmed: not armed"),
        ("INFO", sentence("guard.refused", why=f"policy: {sentence('guard.is_disarmed')}", number=1)),
        ("INFO", "disarmed: not armed"),
    ]
    broken = JointCommand(position=(float("nan"), *HOME[1:]))
    guard.machine.accept_command(Stamped(broken, Envelope("command", "policy", 2, 0)), 0)
    with caplog.at_level("INFO"):
        guard.report(is_due=True)
    last = caplog.records[-1]
    assert (last.levelname, last.getMessage()) == (
        "WARNING",
        sentence("guard.refused", why=sentence("guard.position_is_not_finite", source="policy", number=8), number=2),
    )


def test_a_turn_that_is_commanded_comes_out() -> None:
    story = armed()
    turn = JointCommand(position=HOME, base_v_mps=0.0, base_w_radps=0.3)
    envelope = Envelope("command", "policy", 1, story.now_ns)
    assert story.machine.accept_command(Stamped(turn, envelope), story.now_ns) == ""
    out = story.machine.tick(story.now_ns + to_ns(0.02))
    assert out is not None
    assert out.base_w_radps > 0.0


def test_the_report_says_since_when_the_robot_rests() -> None:
    story = armed()
    story.tick(3, sees=True)
    assert story.machine.body.at_rest_ns > 0
    assert story.machine.report().at_rest_ns == story.machine.body.at_rest_ns


def test_an_emergency_stop_that_comes_again_keeps_when_the_first_one_held() -> None:
    story = moving()
    story.machine.estop("button", story.now_ns)
    story.tick(1, sees=True)
    held_ns = story.machine.report().held_ns
    story.tick(3, sees=True)
    story.machine.estop("button", story.now_ns)
    assert story.machine.report().held_ns == held_ns
    assert held_ns > 0


def test_who_stops_a_stopped_robot_as_well_does_not_make_its_hold_begin_anew() -> None:
    story = moving()
    held_ns = []
    for by in ("Ana", "Ben"):
        story.machine.interrupt(interrupt("stop", by), story.now_ns, story.now_ns)
        story.tick(100, sees=True)
        held_ns.append(story.machine.report().held_ns)
    assert held_ns[0] == held_ns[1] > 0


def test_who_sent_up_to_a_persons_decision_is_forgotten_with_it() -> None:
    story = armed()
    for number in range(MOST_SOURCES):
        story.now_ns += LIFESPAN_NS + 1
        story.machine.update_state(standing(story.now_ns))
        assert story.machine.accept_command(command(f"s{number}", 1, story.now_ns), story.now_ns) == ""
    story.machine.transfer_control("new", story.now_ns)  # in the very moment of the last command
    for number in range(MOST_SOURCES):
        story.now_ns += LIFESPAN_NS + 1
        story.machine.update_state(standing(story.now_ns))
        assert story.machine.accept_command(command(f"n{number}", 1, story.now_ns), story.now_ns) == ""


def test_who_sent_ahead_of_a_persons_decision_may_count_from_zero_after_it() -> None:
    story = moving()
    ahead_ns = story.now_ns + FUTURE_NS
    assert story.accept_command(command("policy", 9, ahead_ns)) == ""
    story.machine.transfer_control("policy", story.now_ns)
    assert story.machine.accept_command(command("policy", 0, ahead_ns), ahead_ns) == sentence(
        "guard.out_of_order", source="policy"
    )
    assert story.machine.accept_command(command("policy", 0, ahead_ns + 1), ahead_ns) == ""


def test_a_robot_that_is_kept_still_by_its_surroundings_says_since_when() -> None:
    space = Space(STRETCH_3, keep_out={"wall": (-0.1, 2.0, -2.0, 2.0, -1.0, 2.0)})
    machine, now_ns, told = GuardMachine(STRETCH_3, space=space), to_ns(1.0), []
    machine.update_state(standing(now_ns))
    assert machine.arm(now_ns)
    for seq, v_mps in enumerate((-0.3, 0.3, 0.3, 0.3, 0.3, -0.3), 1):
        now_ns += to_ns(0.02)
        machine.update_state(standing(now_ns))
        assert machine.accept_command(command("policy", seq, now_ns, HOME, v_mps), now_ns) == ""
        machine.tick(now_ns)
        said = machine.report()
        told.append((said.mode, said.reason.partition(":")[0], said.held_ns))
    driven, still = ("moving", "commanded by policy", 0), ("holding", "kept still", to_ns(1.06))
    assert told == [driven, driven, still, still, still, ("moving", "commanded by policy, slowed", 0)]
