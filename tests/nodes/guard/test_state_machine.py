"""Which commands the guard lets through, how old, from whom and how fast, by values."""

from __future__ import annotations

from math import inf, nan

import pytest

from nodes.guard.command_sources import MOST_SOURCES
from nodes.guard.immediate_faults import GuardSettings
from nodes.guard.node import Guard
from nodes.guard.state_machine import GuardMachine
from nodes.msgs import JointCommand
from nodes.stretch.limits import STOW, STRETCH_3
from runtime.clock import to_ns
from runtime.errors import ParameterError
from runtime.message import UNKNOWN_NS, Envelope, Stamped
from tests.support.guard.guard_driven import MS, TICK, Story, command, interrupt
from tests.support.sentences import sentence
from tests.support.standing import HOME, standing


def test_a_disarmed_guard_gives_nothing_to_the_driver_and_refuses_commands() -> None:
    story = Story(is_armed=False)
    assert story.send() == f"policy: {sentence('guard.is_disarmed')}"
    assert story.tick() is None


def test_arming_needs_a_fresh_posture() -> None:
    machine = GuardMachine(STRETCH_3)
    assert not machine.arm(0)
    machine.update_state(standing(0))
    assert not machine.arm(to_ns(0.3))
    machine.update_state(standing(to_ns(0.3)))
    assert machine.arm(to_ns(0.3))


def test_the_first_target_is_the_measured_posture_and_starting_never_moves() -> None:
    story = Story()
    for _ in range(50):
        assert story.tick() == JointCommand(position=HOME)
    assert story.machine.mode == "armed"


def test_a_far_target_is_approached_at_the_joints_limit_speed() -> None:
    story = Story()
    first = story.drive(60).position[0]
    second = story.drive(10).position[0]
    assert (second - first) / 0.2 == pytest.approx(STRETCH_3.joints[0].speed)
    assert story.machine.mode == "moving"
    assert story.machine.report().holder == "policy"


def test_a_command_older_than_its_lifespan_is_refused() -> None:
    story = Story()
    late = command(story.now_ns, seq=1)
    assert (
        story.machine.accept_command(late, story.now_ns + 151 * MS) == f"policy: {sentence('guard.no_command', ms=150)}"
    )
    assert story.machine.rejected == 1


def test_silence_brakes_after_the_lifespan_and_then_holds() -> None:
    story = Story()
    story.drive(60)
    last_ns = story.now_ns - TICK
    speeds = []
    for _ in range(70):
        out = story.tick()
        assert out is not None
        speeds.append(out.base_v_mps)
    assert story.machine.mode == "holding"
    assert story.machine.reason == sentence("guard.no_command", ms=150)
    assert story.machine.body.held_ns - last_ns <= to_ns(0.170)
    assert speeds[-1] == 0.0
    assert story.machine.is_at_rest
    held = story.tick()
    assert held == out


def test_braking_keeps_the_acceleration_limit_of_every_wheel() -> None:
    story = Story()
    before = story.drive(60).base_v_mps
    story.machine.interrupt(interrupt("stop"), story.now_ns, story.now_ns)
    while not story.machine.is_at_rest:
        out = story.tick()
        assert out is not None
        assert 0.0 <= before - out.base_v_mps <= 0.30 * 0.020 + 1e-9
        before = out.base_v_mps


@pytest.mark.parametrize("bad", [nan, inf, -inf])
@pytest.mark.parametrize("place", range(10))
def test_what_is_not_finite_is_refused_in_every_field(bad: float, place: int) -> None:
    story = Story()
    values = [*HOME, 0.0, 0.0]
    values[place] = bad
    assert "finite" in story.send(position=tuple(values[:8]), v=values[8], w=values[9])
    assert story.tick() == JointCommand(position=HOME)


def test_a_position_of_the_wrong_length_is_refused() -> None:
    story = Story()
    assert story.send(position=(0.1,) * 7) == sentence("guard.position_is_not_finite", source="policy", number=8)


def test_an_absurd_base_speed_is_refused() -> None:
    told = sentence("guard.base_is_too_fast", source="policy", ahead="1e+308", left=0, turning=0)
    assert Story().send(v=1e308) == told


def test_a_robot_that_measures_nonsense_counts_as_silent() -> None:
    story = Story()
    story.drive(5)
    for _ in range(20):
        story.send()
        story.now_ns += TICK
        story.machine.update_state(standing(story.now_ns, (nan,) * 8))
        story.machine.tick(story.now_ns)
    assert story.machine.mode == "holding"


def test_sequence_numbers_of_a_source_only_grow() -> None:
    story = Story()
    now_ns = story.now_ns + TICK
    assert story.machine.accept_command(command(now_ns, seq=5), now_ns) == ""
    assert story.machine.accept_command(command(now_ns, seq=5), now_ns) == sentence(
        "guard.out_of_order", source="policy"
    )
    assert story.machine.accept_command(command(now_ns + MS, seq=4), now_ns + MS) == sentence(
        "guard.out_of_order", source="policy"
    )
    assert story.machine.accept_command(command(now_ns - MS, seq=6), now_ns) == sentence(
        "guard.out_of_order", source="policy"
    )
    assert story.machine.accept_command(command(now_ns + MS, seq=6), now_ns + MS) == ""


def test_a_stamp_from_the_future_is_refused() -> None:
    story = Story()
    assert story.machine.accept_command(command(story.now_ns + to_ns(1)), story.now_ns) == sentence(
        "guard.from_the_future", source="policy"
    )


def test_one_source_is_in_command_until_it_falls_silent() -> None:
    story = Story()
    story.drive(3)
    other = command(story.now_ns, source="other")
    assert story.machine.accept_command(other, story.now_ns) == sentence(
        "guard.another_commands", source="other", holder="policy"
    )
    for _ in range(10):
        story.tick()
    assert story.machine.accept_command(command(story.now_ns, source="other", seq=2), story.now_ns) == ""


def test_invented_sources_do_not_fill_the_memory() -> None:
    story = Story()
    refusals = []
    for number in range(MOST_SOURCES + 5):
        story.now_ns += to_ns(0.2)
        refusals.append(story.machine.accept_command(command(story.now_ns, source=f"s{number}"), story.now_ns))
    assert refusals[:MOST_SOURCES] == [""] * MOST_SOURCES
    assert all("sources" in refusal for refusal in refusals[MOST_SOURCES:])


def test_any_number_of_people_may_drive_one_after_another() -> None:
    story = Story()
    for number in range(3 * MOST_SOURCES):
        story.now_ns += to_ns(0.2)
        story.machine.transfer_control(f"me-{number}", story.now_ns)
        story.now_ns += MS
        assert story.machine.accept_command(command(story.now_ns, source=f"me-{number}"), story.now_ns) == ""


def test_a_command_from_an_old_image_is_refused_and_one_that_ages_in_use_is_dropped() -> None:
    story = Story()
    stale = command(story.now_ns, image_ns=story.now_ns - to_ns(1.1))
    assert "image" in story.machine.accept_command(stale, story.now_ns)
    ageing = command(story.now_ns, image_ns=story.now_ns - to_ns(0.97))
    assert story.machine.accept_command(ageing, story.now_ns) == ""
    story.tick()
    assert story.machine.report().mode == "moving"
    story.tick()
    assert story.machine.mode == "holding"
    assert story.machine.reason == sentence("guard.origin_is_old", origin="image", seconds=1)


def test_without_fresh_robot_state_the_robot_holds() -> None:
    story = Story()
    story.drive(5)
    for _ in range(14):
        story.send(v=0.3)
        story.tick(sees=False)
    assert story.machine.mode == "holding"
    assert story.machine.reason == sentence("guard.robot_state_is_old", ms=200)


def test_a_late_tick_makes_no_jump() -> None:
    story = Story()
    before = story.drive(50)
    story.now_ns += to_ns(5)
    story.machine.update_state(standing(story.now_ns))
    story.send(v=0.3)
    out = story.tick()
    assert out is not None
    assert abs(out.position[0] - before.position[0]) <= STRETCH_3.joints[0].speed * 0.04 + 1e-9


def test_the_stowed_posture_is_in_range() -> None:
    for limit, value in zip(STRETCH_3.joints, STOW, strict=True):
        assert limit.lowest <= value <= limit.highest


@pytest.mark.parametrize("origin", ["image", "plan", "utterance"])
def test_a_command_is_as_old_as_the_oldest_thing_of_each_kind_behind_it(origin: str) -> None:
    settings = GuardSettings(
        max_image_age_s=2.0, max_plan_age_s=2.0, max_utterance_age_s=2.0, needs=frozenset({origin})
    )
    machine = GuardMachine(STRETCH_3, settings)
    now_ns = to_ns(60.0)
    machine.update_state(standing(now_ns))
    assert machine.arm(now_ns)
    rows = [
        ({origin: now_ns - to_ns(2.0)}, ""),
        ({origin: now_ns - to_ns(2.0) - 1}, f"policy: {sentence('guard.origin_is_old', origin=origin, seconds=2)}"),
        ({origin: now_ns + to_ns(1.0)}, f"policy: {sentence('guard.origin_is_in_the_future', origin=origin)}"),
        ({}, f"policy: {sentence('guard.no_origin', origin=origin)}"),
        ({origin: UNKNOWN_NS}, f"policy: {sentence('guard.origin_is_unknown', origin=origin)}"),
    ]
    for seq, (origins, told) in enumerate(rows, start=1):
        envelope = Envelope("command", "policy", seq, now_ns + seq * 1000, origins=origins)
        refusal = machine.accept_command(Stamped(JointCommand(position=HOME), envelope), now_ns)
        assert refusal.startswith(told), origins
        assert bool(refusal) is bool(told)


def test_a_guard_that_limits_plans_refuses_commands_without_one() -> None:
    assert Guard(max_plan_age_s=60.0, needs=("image",)).machine.settings.needs == {"plan", "image"}
    assert Guard(max_utterance_age_s=60.0).machine.settings.needs == {"utterance"}
    settings = Guard(max_image_age_s=1.0, max_plan_age_s=60.0, max_utterance_age_s=30.0).machine.settings
    assert (settings.max_image_age_s, settings.max_plan_age_s, settings.max_utterance_age_s) == (1.0, 60.0, 30.0)
    assert Guard().machine.settings.needs == frozenset()
    with pytest.raises(ParameterError) as refusal:
        Guard(needs=("picture",))
    assert str(refusal.value) == sentence("guard.wrong_need", value="picture")
