"""The limiter's promises, for any joint, any start it can stop from, any target and any rhythm of steps."""

from __future__ import annotations

from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.guard.motion_profile import Motion, Wheels, base_velocity, brake, drive, toward
from nodes.robot.protocol import BaseLimit, JointLimit
from nodes.stretch.limits import STRETCH_3

EPSILON = 1e-9

joints = st.sampled_from(STRETCH_3.joints)
steps_s = st.lists(st.floats(0.001, 0.04), min_size=1, max_size=120)
fractions = st.floats(0.0, 1.0)


def between(limit: JointLimit, fraction: float) -> float:
    return limit.lowest + fraction * (limit.highest - limit.lowest)


def start(limit: JointLimit, fraction: float, push: float) -> Motion:
    """A motion inside the range that can still stop inside it."""
    position = between(limit, fraction)
    room = (limit.highest - position) if push > 0 else (position - limit.lowest)
    fastest = min(limit.speed, (2 * limit.acceleration * max(room, 0.0)) ** 0.5)  # rounding may leave no room
    return Motion(position, push * fastest)


@given(joints, fractions, st.floats(-1.0, 1.0), st.lists(st.floats(-100, 100), min_size=1, max_size=8), steps_s)
def test_speed_acceleration_and_range_hold_for_any_targets(
    limit: JointLimit, fraction: float, push: float, targets: list[float], dts: list[float]
) -> None:
    motion = start(limit, fraction, push)
    for index, dt_s in enumerate(dts):
        after = toward(motion, targets[index % len(targets)], limit, dt_s)
        assert abs(after.velocity) <= limit.speed + EPSILON
        assert abs(after.velocity - motion.velocity) <= limit.acceleration * dt_s + EPSILON
        assert abs(after.position - motion.position) <= abs(after.velocity) * dt_s + EPSILON
        assert limit.lowest - EPSILON <= after.position <= limit.highest + EPSILON
        motion = after


@given(joints, fractions, fractions, steps_s)
def test_a_fixed_target_is_approached_without_passing_it(
    limit: JointLimit, fraction: float, goal: float, dts: list[float]
) -> None:
    motion, target = Motion(between(limit, fraction)), between(limit, goal)
    side = target - motion.position
    for dt_s in dts:
        after = toward(motion, target, limit, dt_s)
        remaining = target - after.position
        assert remaining * side >= -EPSILON
        assert abs(remaining) <= abs(target - motion.position) + EPSILON
        motion = after


@given(joints, fractions, fractions)
def test_every_target_is_reached_nearly_as_fast_as_physics_allows(
    limit: JointLimit, fraction: float, goal: float
) -> None:
    motion, target, dt_s = Motion(between(limit, fraction)), between(limit, goal), 0.02
    distance = abs(target - motion.position)
    ideal_s = distance / limit.speed + limit.speed / limit.acceleration
    for _ in range(int((ideal_s + 0.3) / dt_s) + 1):
        motion = toward(motion, target, limit, dt_s)
    assert motion.position == pytest.approx(target, abs=1e-4)
    assert abs(motion.velocity) < 0.01


@given(joints, fractions, st.floats(-1.0, 1.0), steps_s)
def test_braking_only_slows_and_stays_within_v2_over_2a(
    limit: JointLimit, fraction: float, push: float, dts: list[float]
) -> None:
    first = motion = start(limit, fraction, push)
    for dt_s in dts:
        after = brake(motion, limit, dt_s)
        assert abs(after.velocity) <= abs(motion.velocity)
        assert abs(after.velocity - motion.velocity) <= limit.acceleration * dt_s + EPSILON
        motion = after
    assert abs(motion.position - first.position) <= first.velocity**2 / (2 * limit.acceleration) + EPSILON
    if sum(dts) > abs(first.velocity) / limit.acceleration:
        assert abs(motion.velocity) <= EPSILON


def test_a_joint_measured_outside_its_range_does_not_jump_in() -> None:
    lift = STRETCH_3.joints[0]
    after = toward(Motion(-0.02), -0.5, lift, 0.02)
    assert -0.02 < after.position <= -0.02 + lift.acceleration * 0.02**2 + EPSILON


def test_no_time_no_motion() -> None:
    lift = STRETCH_3.joints[0]
    assert toward(Motion(0.3, 0.1), 1.0, lift, 0.0) == Motion(0.3, 0.1)
    assert brake(Motion(0.3, 0.1), lift, 0.0) == Motion(0.3, 0.1)
    assert drive(Wheels(0.1, 0.1), 0.3, 0.0, STRETCH_3.base, -1.0) == Wheels(0.1, 0.1)


wheel_speeds = st.floats(-STRETCH_3.base.wheel_speed_mps, STRETCH_3.base.wheel_speed_mps)


@given(wheel_speeds, wheel_speeds, st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(0.001, 0.04))
def test_each_wheel_keeps_its_speed_and_acceleration(
    left: float, right: float, v_mps: float, w_radps: float, dt_s: float
) -> None:
    base = STRETCH_3.base
    after = drive(Wheels(left, right), v_mps, w_radps, base, dt_s)
    for old, new in ((left, after.left_mps), (right, after.right_mps)):
        assert isfinite(new)
        assert abs(new) <= base.wheel_speed_mps + EPSILON
        assert abs(new - old) <= base.acceleration_mps2 * dt_s + EPSILON


@given(wheel_speeds, wheel_speeds, st.floats(0.001, 0.04))
def test_a_braking_base_slows_both_wheels_until_they_stand(left: float, right: float, dt_s: float) -> None:
    base: BaseLimit = STRETCH_3.base
    wheels = Wheels(left, right)
    for _ in range(int(base.wheel_speed_mps / (base.acceleration_mps2 * dt_s)) + 2):
        after = drive(wheels, 0.0, 0.0, base, dt_s)
        assert abs(after.left_mps) <= abs(wheels.left_mps)
        assert abs(after.right_mps) <= abs(wheels.right_mps)
        wheels = after
    assert wheels == Wheels(0.0, 0.0)


def test_a_curve_too_fast_for_the_wheels_keeps_its_shape() -> None:
    base = STRETCH_3.base
    wheels = Wheels()
    for _ in range(200):
        wheels = drive(wheels, 0.6, 1.2, base, 0.02)
    v_mps, w_radps = base_velocity(wheels, base)
    assert w_radps / v_mps == pytest.approx(2.0)
    assert max(wheels.left_mps, wheels.right_mps) == pytest.approx(base.wheel_speed_mps)
