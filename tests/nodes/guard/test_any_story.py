"""Whatever happens in whatever order, what the guard lets through keeps within limits and stays stopped."""

from __future__ import annotations

from math import isfinite

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from nodes.guard.immediate_faults import GuardSettings
from nodes.guard.state_machine import GuardMachine
from nodes.msgs import JointCommand
from nodes.stretch.limits import STRETCH_3
from tests.support.guard.guard_driven import MS, command, interrupt
from tests.support.guard.guard_story import STEPS
from tests.support.standing import standing

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
        self.machine.update_state(standing(self.now_ns))
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
        refusal = self.machine.accept_command(stamped, self.now_ns)
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

    @rule(by=st.sampled_from(["ladder", "contact", "Ana"]), early_ms=st.integers(0, 50))
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
            self.machine.update_state(standing(self.now_ns))
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
