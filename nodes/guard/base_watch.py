"""`BaseWatch`: what the base does against what is asked of it, and against its own second source; part of the guard.

A base has no target to be behind, so what counts is its way: as asked, by its measured speed, and by its odometry. A
base that is held, that drives the wrong way, whose odometry is dead or whose speed is, differs in one of the three.
"""

from __future__ import annotations

from collections import deque
from math import copysign, cos, exp, hypot, isfinite, pi, sin, tau

from nodes.guard.lasting_faults import ASKED_TICKS, LAG_S, CommandedMotion, Fault
from nodes.msgs import RobotState
from nodes.robot.rest import REST_MPS, REST_RADPS
from runtime.clock import to_s

BEHIND_M, BEHIND_RAD = 0.05, 0.15
"""How far the base may be from where it is asked to be, beside its way in `LAG_S` at the speed asked lately.

Measured with commands that arrive 0.16 s late, a simulated Stretch is 0.04 m and 0.18 rad behind, of 0.14 and 0.72.
"""
APART_M, APART_RAD = 0.08, 0.20
"""How far the way by speed and the way by odometry may lie apart; simulated robots: 0.002 m and 0.009 rad. What a
driver tells of wheels and odometry may stem from two moments, and each from a sensor with noise.
"""
OFF_SHARE = 0.15
"""A speed that is off by this share counts as right: wheels slip in turns, and radii are known to some percent."""
FORGETS_S, APART_FORGETS_S = 5.0, 2.0
"""What the base is behind, and what its sources are apart, decays by 1/e in these times, s: noise does not add up."""
GAP_S = 0.25
"""States or ticks further apart than this, s, say nothing of the way between: a simulator leaves out what is beyond."""
STANDS_S = 1.0
"""So long after it is asked to stand a base stands, or moves by itself."""
ASIDE_M, ASIDE_RAD = 0.03, 0.0524
"""A base that was at rest in a stop and is then measured further away than this moves by itself: 3 cm, 3 degrees."""
SHORT, OTHERWISE = "the base does not move as far as it is asked to", "the base moves otherwise than it is asked to"
MOVES_IN_A_STOP = "the base moves while the robot is stopped"

Way = tuple[float, float, float]
"""Ahead and to the left, m, and turned to the left, rad; or the speeds of these."""


class BaseWatch:
    """What is wrong with the ways of the base; while it is stopped: whether it stays where it came to rest."""

    def __init__(self) -> None:
        self._ways, self._standstill = _Ways(), _Standstill()

    def forget(self) -> None:
        """The robot moves by itself, or its state is unknown."""
        self._ways, self._standstill = _Ways(), _Standstill()

    def check(
        self, state: RobotState, asked: CommandedMotion, dt_s: float, *, is_stopped: bool
    ) -> tuple[Fault, str] | None:
        """The fault that this state shows, and why; None where there is none. `dt_s` ago it was called last."""
        seen = (*_speed(state), state.base_x_m, state.base_y_m, state.base_heading_rad)
        if not asked.joints or not all(map(isfinite, seen)):
            self.forget()  # that something is not known is a fault by itself, where it lasts
            return None
        if is_stopped:
            self._ways = _Ways()
            return ("motion", MOVES_IN_A_STOP) if self._standstill.has_moved(state, asked, dt_s) else None
        self._standstill = _Standstill()
        return self._ways.fault(state, asked, dt_s)


class _Ways:
    """The ways of a base that may move."""

    def __init__(self) -> None:
        self._last: RobotState | None = None
        self._pending: Way = (0.0, 0.0, 0.0)  # asked for since the last state
        self._speeds: deque[Way] = deque(maxlen=ASKED_TICKS)
        self._behind, self._apart, self._length = [0.0] * 3, [0.0] * 3, [0.0] * 3

    def fault(self, state: RobotState, asked: CommandedMotion, dt_s: float) -> tuple[Fault, str] | None:
        speeds = asked.base_v_mps, asked.base_vy_mps, asked.base_w_radps
        self._speeds.append(speeds)
        last = self._last
        measured_s = to_s(state.read_ns - last.read_ns) if last is not None else 0.0
        if last is None or dt_s > GAP_S or not 0.0 <= measured_s <= GAP_S:
            self._last, self._pending = state, (0.0, 0.0, 0.0)
            return None
        self._pending = _plus(self._pending, speeds, dt_s)
        if measured_s == 0.0:
            return None
        done = _plus(_plus((0.0, 0.0, 0.0), _speed(last), measured_s / 2), _speed(state), measured_s / 2)
        moved, wanted = _moved(last, state), self._pending
        self._last, self._pending = state, (0.0, 0.0, 0.0)
        behind_keeps, apart_keeps = exp(-measured_s / FORGETS_S), exp(-measured_s / APART_FORGETS_S)
        found: tuple[Fault, str] | None = None
        meters, turn = (BEHIND_M, APART_M), (BEHIND_RAD, APART_RAD)
        for axis, (behind_most, apart_most) in enumerate((meters, meters, turn)):
            off, slack = wanted[axis] - done[axis], OFF_SHARE * abs(wanted[axis])
            self._behind[axis] = behind_keeps * self._behind[axis] + copysign(max(abs(off) - slack, 0.0), off)
            self._apart[axis] = apart_keeps * self._apart[axis] + done[axis] - moved[axis]
            self._length[axis] = apart_keeps * self._length[axis] + max(abs(done[axis]), abs(moved[axis]))
            if abs(self._apart[axis]) > apart_most + OFF_SHARE * self._length[axis]:
                return "unknown", "speed and odometry of the base do not agree"
            if abs(self._behind[axis]) > behind_most + LAG_S * max(abs(one[axis]) for one in self._speeds):
                is_short = self._behind[axis] * wanted[axis] > 0.0 and done[axis] * wanted[axis] >= 0.0
                found = ("following", SHORT) if is_short else ("motion", OTHERWISE)
        return found


class _Standstill:
    """Where the base came to rest in a stop, and how far it has moved from there by itself."""

    def __init__(self) -> None:
        self._place: Way | None = None
        self._braked_s = 0.0  # since it is asked to stand
        self._gone_m = self._gone_rad = 0.0  # by measured speed alone, where the odometry says nothing

    def has_moved(self, state: RobotState, asked: CommandedMotion, dt_s: float) -> bool:
        """Whether only the robot's own runstop stops it now.

        It counts from where the base comes to rest, or from where it is `STANDS_S` after it was asked to.
        """
        here = state.base_x_m, state.base_y_m, state.base_heading_rad
        speed_mps, turning_radps = hypot(state.base_v_mps, state.base_vy_mps), abs(state.base_w_radps)
        is_asked_to_stand = asked.base_v_mps == asked.base_w_radps == asked.base_vy_mps == 0.0
        is_still = speed_mps <= REST_MPS and turning_radps <= REST_RADPS
        self._braked_s = self._braked_s + dt_s if is_asked_to_stand else 0.0
        if self._place is None:
            if is_asked_to_stand and (is_still or self._braked_s > STANDS_S):
                self._place = here
            return False
        self._gone_m += speed_mps * min(dt_s, GAP_S) if speed_mps > REST_MPS else 0.0
        self._gone_rad += turning_radps * min(dt_s, GAP_S) if turning_radps > REST_RADPS else 0.0
        away_m = hypot(here[0] - self._place[0], here[1] - self._place[1])
        turned_rad = abs(_turn(here[2] - self._place[2]))
        return max(away_m, self._gone_m) > ASIDE_M or max(turned_rad, self._gone_rad) > ASIDE_RAD


def _speed(state: RobotState) -> Way:
    return state.base_v_mps, state.base_vy_mps, state.base_w_radps


def _plus(way: Way, speed: Way, dt_s: float) -> Way:
    return way[0] + speed[0] * dt_s, way[1] + speed[1] * dt_s, way[2] + speed[2] * dt_s


def _moved(last: RobotState, state: RobotState) -> Way:
    """The way between two states by odometry, as the base saw it halfway."""
    turned = _turn(state.base_heading_rad - last.base_heading_rad)
    x_m, y_m, ahead = state.base_x_m - last.base_x_m, state.base_y_m - last.base_y_m, last.base_heading_rad + turned / 2
    return x_m * cos(ahead) + y_m * sin(ahead), y_m * cos(ahead) - x_m * sin(ahead), turned


def _turn(angle_rad: float) -> float:
    return (angle_rad + pi) % tau - pi
