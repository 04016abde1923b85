"""What the guard lets through, by values and by random stories of commands, losses, stops and resumes."""

from __future__ import annotations

from math import inf, isfinite, nan

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from nodes.guard.state_machine import MACHINES, MOST_SOURCES, TRANSITIONS, GuardMachine, GuardSettings
from nodes.stretch import STOW, STRETCH_3
from runtime.clock import to_ns
from runtime.message import Envelope, Stamped
from runtime.msgs import Interrupt, JointCommand, RobotState
from tests.guard_story import STEPS

MS = 1_000_000
TICK = 20 * MS
HOME = (0.3, 0.1, 0.5, -0.3, 0.0, 0.05, 0.0, 0.0)
FAR = (1.0, 0.5, 3.0, 0.4, 2.0, 0.12, 1.0, 0.2)


def state(now_ns: int, position: tuple[float, ...] = HOME) -> RobotState:
    zeros = (0.0,) * 8
    return RobotState(
        read_ns=now_ns,
        position=position,
        velocity=zeros,
        effort=zeros,
        base_x_m=0.0,
        base_y_m=0.0,
        base_heading_rad=0.0,
        base_v_mps=0.0,
        base_w_radps=0.0,
    )


def command(
    now_ns: int,
    *,
    seq: int = 1,
    position: tuple[float, ...] = FAR,
    v: float = 0.0,
    w: float = 0.0,
    source: str = "policy",
    image_ns: int = 0,
) -> Stamped[JointCommand]:
    envelope = Envelope("command", source, seq, now_ns, image_ns=image_ns)
    return Stamped(JointCommand(position=position, base_v_mps=v, base_w_radps=w), envelope)


def interrupt(depth: str, by: str = "person", ident: str = "i1") -> Interrupt:
    return Interrupt(id=ident, depth=depth, text="words", by=by)  # type: ignore[arg-type]  # from a test's table


class Story:
    """A machine with a robot that answers, and a hand on the clock."""

    def __init__(self, *, is_armed: bool = True) -> None:
        self.machine = GuardMachine(STRETCH_3)
        self.now_ns = 1_000_000_000
        self.seq = 0
        self.machine.saw(state(self.now_ns))
        if is_armed:
            assert self.machine.arm(self.now_ns)
            self.now_ns += MS

    def tick(self, *, sees: bool = True) -> JointCommand | None:
        self.now_ns += TICK
        if sees:
            self.machine.saw(state(self.now_ns))
        return self.machine.tick(self.now_ns)

    def send(self, *, v: float = 0.0, w: float = 0.0, position: tuple[float, ...] = FAR) -> str:
        self.seq += 1
        return self.machine.offer(command(self.now_ns, seq=self.seq, v=v, w=w, position=position), self.now_ns)

    def drive(self, ticks: int, v: float = 0.3) -> JointCommand:
        out = None
        for _ in range(ticks):
            assert self.send(v=v) == ""
            out = self.tick()
        assert out is not None
        return out


def test_a_disarmed_guard_gives_nothing_to_the_driver_and_refuses_commands() -> None:
    story = Story(is_armed=False)
    assert story.send() == "policy: the guard is disarmed"
    assert story.tick() is None


def test_arming_needs_a_fresh_posture() -> None:
    machine = GuardMachine(STRETCH_3)
    assert not machine.arm(0)
    machine.saw(state(0))
    assert not machine.arm(to_ns(0.3))
    machine.saw(state(to_ns(0.3)))
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
    assert story.machine.offer(late, story.now_ns + 151 * MS) == "policy: no command for 150 ms"
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
    assert story.machine.reason == "no command for 150 ms"
    assert story.machine.held_ns - last_ns <= to_ns(0.170)
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
    assert story.send(position=(0.1,) * 7) == "policy: position is not 8 finite numbers"


def test_an_absurd_base_speed_is_refused() -> None:
    assert Story().send(v=1e308) == "policy: base velocity is not a finite number below 100"


def test_a_robot_that_measures_nonsense_counts_as_silent() -> None:
    story = Story()
    story.drive(5)
    for _ in range(20):
        story.send()
        story.now_ns += TICK
        story.machine.saw(state(story.now_ns, (nan,) * 8))
        story.machine.tick(story.now_ns)
    assert story.machine.mode == "holding"


def test_sequence_numbers_of_a_source_only_grow() -> None:
    story = Story()
    now_ns = story.now_ns + TICK
    assert story.machine.offer(command(now_ns, seq=5), now_ns) == ""
    assert story.machine.offer(command(now_ns, seq=5), now_ns) == "policy: out of order"
    assert story.machine.offer(command(now_ns + MS, seq=4), now_ns + MS) == "policy: out of order"
    assert story.machine.offer(command(now_ns - MS, seq=6), now_ns) == "policy: out of order"
    assert story.machine.offer(command(now_ns + MS, seq=6), now_ns + MS) == ""


def test_a_restarted_source_may_count_from_one_again_after_half_a_second() -> None:
    story = Story()
    story.drive(5)
    for _ in range(30):
        story.tick()
    assert story.machine.offer(command(story.now_ns, seq=1), story.now_ns) == ""


def test_a_stamp_from_the_future_is_refused() -> None:
    story = Story()
    assert story.machine.offer(command(story.now_ns + to_ns(1)), story.now_ns) == "policy: stamped in the future"


def test_one_source_is_in_command_until_it_falls_silent() -> None:
    story = Story()
    story.drive(3)
    other = command(story.now_ns, source="other")
    assert story.machine.offer(other, story.now_ns) == "other: policy is in command"
    for _ in range(10):
        story.tick()
    assert story.machine.offer(command(story.now_ns, source="other", seq=2), story.now_ns) == ""


def test_invented_sources_do_not_fill_the_memory() -> None:
    story = Story()
    refusals = []
    for number in range(MOST_SOURCES + 5):
        story.now_ns += to_ns(0.2)
        refusals.append(story.machine.offer(command(story.now_ns, source=f"s{number}"), story.now_ns))
    assert refusals[:MOST_SOURCES] == [""] * MOST_SOURCES
    assert all("sources" in refusal for refusal in refusals[MOST_SOURCES:])


def test_a_command_from_an_old_image_is_refused_and_one_that_ages_in_use_is_dropped() -> None:
    story = Story()
    stale = command(story.now_ns, image_ns=story.now_ns - to_ns(1.1))
    assert "image" in story.machine.offer(stale, story.now_ns)
    ageing = command(story.now_ns, image_ns=story.now_ns - to_ns(0.97))
    assert story.machine.offer(ageing, story.now_ns) == ""
    story.tick()
    assert story.machine.report().mode == "moving"
    story.tick()
    assert story.machine.mode == "holding"
    assert story.machine.reason == "the image behind the command is older than 1 s"


def test_without_fresh_robot_state_the_robot_holds() -> None:
    story = Story()
    story.drive(5)
    for _ in range(14):
        story.send(v=0.3)
        story.tick(sees=False)
    assert story.machine.mode == "holding"
    assert story.machine.reason == "robot/state is older than 200 ms"


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
        assert story.send() == "policy: the guard is stopped"
        out = story.tick()
    assert story.machine.mode == "stopped"
    assert story.machine.is_at_rest
    assert story.tick() == out


def test_a_second_stop_keeps_the_first_cause() -> None:
    story = Story()
    story.machine.interrupt(interrupt("stop", ident="one"), story.now_ns, story.now_ns)
    story.machine.interrupt(interrupt("stop", ident="two"), story.now_ns + MS, story.now_ns + MS)
    assert story.machine.report().stop_cause == "one"


@pytest.mark.parametrize("by", sorted(MACHINES))
def test_no_machine_lifts_a_stop(by: str) -> None:
    story = Story()
    story.machine.interrupt(interrupt("stop"), story.now_ns, story.now_ns)
    story.tick()
    story.machine.interrupt(interrupt("resume", by=by), story.now_ns, story.now_ns)
    assert story.machine.mode == "stopped"
    assert "only a person lifts a stop" in story.machine.refusal


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
    assert story.machine.offer(old, story.now_ns) == "policy: from before the last interrupt"
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


def test_a_late_tick_makes_no_jump() -> None:
    story = Story()
    before = story.drive(50)
    story.now_ns += to_ns(5)
    story.machine.saw(state(story.now_ns))
    story.send(v=0.3)
    out = story.tick()
    assert out is not None
    assert abs(out.position[0] - before.position[0]) <= STRETCH_3.joints[0].speed * 0.04 + 1e-9


def test_only_resume_and_release_leave_stopped() -> None:
    ways_out = {event for (mode, event), after in TRANSITIONS.items() if mode == "stopped" and after != "stopped"}
    assert ways_out == {"resume", "release", "estop"}  # the last into a stop that is harder to leave


numbers = st.floats(allow_nan=True, allow_infinity=True)


class AnyStory(RuleBasedStateMachine):
    """Whatever happens in whatever order, the output keeps its promises."""

    @initialize()
    def begin(self) -> None:
        self.machine = GuardMachine(STRETCH_3, GuardSettings())
        self.now_ns = 1_000_000_000
        self.seq = 0
        self.is_stopped = False
        self.since_command_ns = 0
        self.out: JointCommand | None = None
        self.velocity: tuple[float, ...] = (0.0,) * 8
        self.wheels = (0.0, 0.0)
        self.machine.saw(state(self.now_ns))
        self.machine.arm(self.now_ns)
        self.out = self.machine.tick(self.now_ns)

    @rule(
        position=st.lists(st.floats(-10, 10) | numbers, min_size=8, max_size=8),
        v=st.floats(-2, 2) | numbers,
        w=st.floats(-9, 9) | numbers,
        age_ms=st.integers(-20, 300),
        step=st.integers(-2, 5),
        source=st.sampled_from(["policy", "other"]),
    )
    def send(self, position: list[float], v: float, w: float, age_ms: int, step: int, source: str) -> None:
        stamp = self.now_ns - age_ms * MS
        stamped = command(stamp, seq=self.seq + step, position=tuple(position), v=v, w=w, source=source)
        refusal = self.machine.offer(stamped, self.now_ns)
        if not refusal:
            assert not self.is_stopped
            assert -5 <= age_ms <= 150
            assert all(isfinite(value) for value in (*position, v, w))
            self.seq = max(self.seq, self.seq + step)
            self.since_command_ns = stamp

    @rule(by=st.sampled_from(["contact", "Ana"]))
    def stop(self, by: str) -> None:
        self.machine.interrupt(interrupt("stop", by=by), self.now_ns, self.now_ns)
        self.is_stopped = True

    @rule(by=st.sampled_from(["planner", "contact", "Ana"]), early_ms=st.integers(0, 50))
    def resume(self, by: str, early_ms: int) -> None:
        self.machine.interrupt(interrupt("resume", by=by), self.now_ns - early_ms * MS, self.now_ns)
        if self.machine.mode != "stopped":
            assert not self.is_stopped or by == "Ana"
            self.is_stopped = False

    @rule(depth=st.sampled_from(["amend", "replan"]))
    def talk(self, depth: str) -> None:
        self.machine.interrupt(interrupt(depth), self.now_ns, self.now_ns)

    @rule(milliseconds=st.integers(0, 400), sees=st.booleans())
    def tick(self, milliseconds: int, sees: bool) -> None:
        self.now_ns += milliseconds * MS
        if sees:
            self.machine.saw(state(self.now_ns))
        dt_s = min(milliseconds * 1e-3, 0.04)
        before, self.out = self.out, self.machine.tick(self.now_ns)
        assert before is not None
        assert self.out is not None
        base, track = STRETCH_3.base, STRETCH_3.base.track_m
        wheels = (
            self.out.base_v_mps - self.out.base_w_radps * track / 2,
            self.out.base_v_mps + self.out.base_w_radps * track / 2,
        )
        for old, new in zip(self.wheels, wheels, strict=True):
            assert abs(new) <= base.wheel_speed_mps + 1e-9
            assert abs(new - old) <= base.acceleration_mps2 * dt_s + 1e-9
        if dt_s:
            velocity = tuple((b - a) / dt_s for a, b in zip(before.position, self.out.position, strict=True))
            for limit, old, new in zip(STRETCH_3.joints, self.velocity, velocity, strict=True):
                assert abs(new) <= limit.speed + 1e-6
                assert abs(new - old) <= limit.acceleration * dt_s + 1e-6
            if self.now_ns - self.since_command_ns > 150 * MS or self.is_stopped:
                for old, new in zip((*self.velocity, *self.wheels), (*velocity, *wheels), strict=True):
                    assert abs(new) <= abs(old) + 1e-6
            self.velocity = velocity
        self.wheels = wheels

    @invariant()
    def is_latched_and_in_range(self) -> None:
        if self.is_stopped:
            assert self.machine.mode == "stopped"
        if self.out is not None:
            for limit, value in zip(STRETCH_3.joints, self.out.position, strict=True):
                assert limit.lowest - 1e-9 <= value <= limit.highest + 1e-9


TestAnyStory = AnyStory.TestCase
TestAnyStory.settings = settings(max_examples=min(60, max(1, STEPS // 50)), stateful_step_count=50, deadline=None)


def test_the_stowed_posture_is_in_range() -> None:
    for limit, value in zip(STRETCH_3.joints, STOW, strict=True):
        assert limit.lowest <= value <= limit.highest
