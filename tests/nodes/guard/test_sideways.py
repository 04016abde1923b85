"""A base that drives sideways: its speeds share one budget, it brakes, and a base that cannot is not asked to."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import inf, nan
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert, structs, to_builtins

from nodes.guard.lasting_faults import CommandedMotion, Conduct
from nodes.guard.motion_profile import Motion, Wheels, base_velocity, drive
from nodes.guard.retreat import SHARE, Trail
from nodes.guard.space import BodyMotion, Space, driven, fastest
from nodes.guard.state_machine import GuardMachine
from nodes.msgs import Interrupt, JointCommand, RobotState
from nodes.robot.rest import is_at_rest
from nodes.stretch.limits import STRETCH_3
from runtime.clock import to_ns
from runtime.message import Envelope, Stamped
from tests.support.sentences import sentence
from tests.support.standing import HOME, standing

OMNI = replace(STRETCH_3, base=replace(STRETCH_3.base, is_omni=True))
BASE = OMNI.base
TICK_S = 0.02
EPSILON = 1e-9
SPEEDS = st.floats(-20.0, 20.0)


@st.composite
def wheels(draw: st.DrawFn) -> Wheels:
    """Any that keep the budget."""
    left, right, aside = (draw(st.floats(-1.0, 1.0)) for _ in range(3))
    size = max(1.0, max(abs(left), abs(right)) + abs(aside)) / BASE.wheel_speed_mps
    return Wheels(left / size, right / size, aside / size)


@given(wheels(), SPEEDS, SPEEDS, SPEEDS, st.floats(0.001, 0.04))
def test_faster_wheel_and_the_way_sideways_share_one_budget_of_speed_and_of_change(
    before: Wheels, v_mps: float, w_radps: float, vy_mps: float, dt_s: float
) -> None:
    after = drive(before, v_mps, w_radps, BASE, dt_s, vy_mps)
    change = Wheels(
        after.left_mps - before.left_mps,
        after.right_mps - before.right_mps,
        after.sideways_mps - before.sideways_mps,
    )
    assert after.fastest_mps <= BASE.wheel_speed_mps + EPSILON
    assert change.fastest_mps <= BASE.acceleration_mps2 * dt_s + EPSILON


@given(wheels(), st.floats(0.001, 0.04))
def test_braking_brings_the_way_sideways_to_zero_as_well_and_never_faster(before: Wheels, dt_s: float) -> None:
    for _ in range(int(BASE.wheel_speed_mps / (BASE.acceleration_mps2 * dt_s)) + 2):
        after = drive(before, 0.0, 0.0, BASE, dt_s)
        assert abs(after.sideways_mps) <= abs(before.sideways_mps)
        before = after
    assert before == Wheels()


def test_what_is_too_fast_keeps_its_direction() -> None:
    now = Wheels()
    for _ in range(200):
        now = drive(now, 0.4, 0.0, BASE, TICK_S, -0.8)
    v_mps, w_radps = base_velocity(now, BASE)
    assert (v_mps, now.sideways_mps, w_radps) == pytest.approx((0.1, -0.2, 0.0))


@given(st.floats(-0.3, 0.3), st.floats(-0.3, 0.3), SPEEDS, SPEEDS, st.floats(0.001, 0.04))
def test_a_differential_base_goes_to_the_last_bit_as_it_did(
    left: float, right: float, v_mps: float, w_radps: float, dt_s: float
) -> None:
    limit = STRETCH_3.base
    wanted_left, wanted_right = v_mps - w_radps * limit.track_m / 2, v_mps + w_radps * limit.track_m / 2
    most = max(abs(wanted_left), abs(wanted_right))
    if most > limit.wheel_speed_mps:
        wanted_left *= limit.wheel_speed_mps / most
        wanted_right *= limit.wheel_speed_mps / most
    changes, allowed = (wanted_left - left, wanted_right - right), limit.acceleration_mps2 * dt_s
    largest = max(map(abs, changes))
    if largest > allowed:
        wanted_left, wanted_right = left + changes[0] * allowed / largest, right + changes[1] * allowed / largest
    after = drive(Wheels(left, right), v_mps, w_radps, limit, dt_s)
    assert (after.left_mps, after.right_mps, after.sideways_mps) == (wanted_left, wanted_right, 0.0)


def drifting(state: RobotState, vy_mps: float) -> RobotState:
    found: RobotState = structs.replace(cast(Any, state), base_vy_mps=vy_mps)
    return found


class Deck:
    """A guard with an omni base that does as it is told."""

    def __init__(self, space: Space | None = None, is_omni: bool = True) -> None:
        self.machine = GuardMachine(OMNI if is_omni else STRETCH_3, space=space)
        self.now_ns, self.seq, self.y_m, self.vy_mps = to_ns(1.0), 0, 0.0, 0.0
        self.machine.update_state(self.state())
        assert self.machine.arm(self.now_ns)
        self.now_ns += to_ns(0.001)

    def state(self) -> RobotState:
        return drifting(standing(self.now_ns, pose=(0.0, self.y_m, 0.0)), self.vy_mps)

    def send(self, vy: float, v: float = 0.0) -> str:
        self.seq += 1
        message = JointCommand(position=HOME, base_v_mps=v, base_vy_mps=vy)
        return self.machine.accept_command(
            Stamped(message, Envelope("command", "policy", self.seq, self.now_ns)), self.now_ns
        )

    def tick(self) -> JointCommand:
        self.now_ns += to_ns(TICK_S)
        out = self.machine.tick(self.now_ns)
        assert out is not None
        self.vy_mps = out.base_vy_mps
        self.y_m += self.vy_mps * TICK_S
        self.machine.update_state(self.state())
        self.machine.check_monitors(self.now_ns)
        self.machine.check_conduct(self.now_ns)
        return out

    def go(self, ticks: int, vy: float) -> None:
        for _ in range(ticks):
            assert self.send(vy) == ""
            self.tick()


def test_it_drives_sideways_and_brakes_when_commands_end() -> None:
    deck = Deck()
    deck.go(60, 0.3)
    assert deck.vy_mps == pytest.approx(0.3)
    assert deck.machine.commanded().base_vy_mps == deck.vy_mps
    assert deck.machine.is_at_rest is False
    speeds = [deck.tick().base_vy_mps for _ in range(100)]
    assert all(one >= other for one, other in pairwise(speeds))
    assert speeds[-1] == 0.0
    assert (deck.machine.is_at_rest, deck.machine.mode) == (True, "holding")


def test_a_base_that_does_not_drive_sideways_is_not_asked_to() -> None:
    deck = Deck(is_omni=False)
    assert deck.send(0.1) == sentence("guard.drives_not_sideways", source="policy", speed_mps=0.1)
    assert deck.send(0.0) == ""


@pytest.mark.parametrize("bad", [nan, inf, -inf])
def test_a_speed_sideways_that_is_none_is_refused(bad: float) -> None:
    assert Deck().send(bad) == sentence("guard.base_is_not_finite", source="policy")


def test_a_speed_sideways_in_cm_is_refused() -> None:
    assert Deck().send(30.0) == sentence("guard.base_is_too_fast", source="policy", ahead=0, left=30, turning=0)


def test_a_box_to_the_left_stops_it() -> None:
    deck = Deck(Space(OMNI, keep_out={"wall": (-1.0, 1.0, 0.8, 2.0, 0.0, 2.0)}))
    deck.go(400, 0.3)
    assert 0.1 < deck.y_m < 0.7, "it came near, and its balls did not come in"
    assert deck.vy_mps == pytest.approx(0.0, abs=1e-6)
    assert "keep_out wall" in deck.machine.reason


def test_the_way_sideways_counts_in_the_speed_of_a_part_and_in_where_a_base_comes_to() -> None:
    ball = ((0.5, 0.0, 0.0, 0.1),)
    assert fastest(ball, ball, 0.3, 0.8, 0.02, 0.0) == pytest.approx(0.5)
    assert fastest(ball, ball, 0.3, 0.8, 0.02, 0.2) == pytest.approx((0.3**2 + 0.6**2) ** 0.5)
    assert driven((1.0, 2.0, 0.0), 0.1, 0.0, 0.3) == pytest.approx((1.1, 2.3, 0.0))
    assert driven((1.0, 2.0, 1.5708), 0.1, 0.0, 0.3) == pytest.approx((0.7, 2.1, 1.5708), abs=1e-4)


def test_with_the_arm_out_the_way_sideways_is_slow_too() -> None:
    assert OMNI.cartesian is not None
    out = (0.6, 0.52, 0.0, 0.0, 0.0, 0.05, 0.0, 0.0)
    now = BodyMotion(tuple(Motion(place) for place in out), Wheels(0.0, 0.0, 0.29))
    step = BodyMotion(now.joints, Wheels(0.1, 0.1, 0.2))
    assert "with the arm out" in Space(OMNI).fault(now, step, standing(0), 0.0, TICK_S)


def test_the_way_back_goes_sideways_too() -> None:
    trail, state = Trail(), Deck().state()
    moving = drifting(state, 0.2)
    trail.note(state, TICK_S)
    assert not trail, "a robot that stands makes no way"
    trail.note(moving, TICK_S)
    step = trail.back(TICK_S)
    assert step is not None
    assert step.base_vy_mps == -SHARE * 0.2


def test_after_pain_it_goes_back_to_the_right_where_it_came_to_the_left() -> None:
    deck = Deck()
    deck.go(60, 0.2)
    hurt = Interrupt(id="i", depth="stop", text="ouch", by="Ana", is_pain=True)
    deck.machine.interrupt(hurt, deck.now_ns, deck.now_ns)
    for _ in range(100):
        deck.tick()
    assert deck.vy_mps == 0.0
    come_to = deck.y_m
    go_on = Interrupt(id="j", depth="resume", text="go on", by="Ana")
    assert deck.machine.interrupt(go_on, deck.now_ns, deck.now_ns) is None
    for _ in range(50):
        deck.tick()
    assert deck.machine.mode == "retreating"
    assert deck.y_m < come_to - 0.01
    assert -SHARE * 0.2 - EPSILON <= deck.vy_mps < -0.005


@pytest.mark.parametrize(("vy_mps", "is_rest"), [(0.004, True), (0.006, False), (-0.006, False)])
def test_a_robot_that_drifts_sideways_is_not_at_rest(vy_mps: float, is_rest: bool) -> None:
    deck = Deck()
    deck.vy_mps = vy_mps
    assert is_at_rest(deck.state()) is is_rest


@pytest.mark.parametrize(("vy_mps", "fault"), [(0.05, ""), (0.2, "motion"), (-0.2, "motion"), (nan, "unknown")])
def test_motion_sideways_that_nobody_asked_for_is_a_fault(vy_mps: float, fault: str) -> None:
    conduct, deck = Conduct(OMNI, 80.0), Deck()
    deck.vy_mps = vy_mps
    asked = CommandedMotion(tuple(Motion(place) for place in HOME), 0.0, 0.0)
    assert "".join(conduct.check(deck.state(), asked, deck.now_ns)) == fault
    asked = CommandedMotion(asked.joints, 0.0, 0.0, base_vy_mps=vy_mps)
    assert "".join(conduct.check(deck.state(), asked, deck.now_ns)) == ("unknown" if fault == "unknown" else "")


def test_states_and_commands_of_before_there_was_a_way_sideways_are_read_as_none() -> None:
    state = cast(dict[str, Any], to_builtins(Deck().state()))
    del state["base_vy_mps"]
    assert convert(state, RobotState, strict=False).base_vy_mps == 0.0
    assert convert({"position": list(HOME), "base_v_mps": 0.1}, JointCommand, strict=False).base_vy_mps == 0.0
