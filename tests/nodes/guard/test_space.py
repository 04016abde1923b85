"""The robot's body stays where it may be and no part of it is fast; each row orders too much."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import cos, hypot, inf, nan, pi, sin

import numpy as np
import pytest

from nodes.guard import space as space_module
from nodes.guard.motion_profile import Motion, Wheels
from nodes.guard.node import Guard
from nodes.guard.space import BodyMotion, Box, Space
from nodes.guard.state_machine import GuardMachine
from nodes.msgs import JOINTS, GuardState, JointCommand, RobotState
from nodes.robot.driver import Driver
from nodes.robot.protocol import CartesianLimits
from nodes.robot.robot_from_launch import limits_problem
from nodes.sim.kinematic import KinematicRobot
from nodes.stretch.body import outline
from nodes.stretch.kinematics import grasp_point, to_odometry
from nodes.stretch.limits import STRETCH_3
from runtime import Node, ParameterError, Publisher, Simulation, every
from runtime.clock import to_ns
from runtime.launch.graph import NodeSpec
from tests.support.guard.guard_driven import command
from tests.support.sentences import sentence
from tests.support.standing import HOME, moving, standing

TICK_S = 0.02
OUT = (0.6, 0.52, 0.0, 0.0, 0.0, 0.05, 0.0, 0.0)
IN = (0.6, 0.0, 3.0, 0.0, 0.0, 0.05, 0.0, 0.0)
FOLDED = KinematicRobot.folded
DOWN = (0.6, 0.3, 0.0, -pi / 2, 0.0, 0.05, 0.0, 0.0)
TABLE = {"table": (-0.5, 0.5, -0.9, -0.4, 0.0, 0.5)}


@dataclass
class Moment:
    """What was asked of the motors at a tick, and where that has brought the base."""

    out: JointCommand
    pose: tuple[float, float, float]
    tip_mps: float
    tip_m: tuple[float, float, float]  # odometry frame


@pytest.mark.parametrize(
    ("there", "mps"), [((0.2, 0.0, 0.0), 2.0), ((0.0, -0.3, 0.0), 3.0), ((0.0, 0.0, 0.1), 1.0), ((0.2, 0.3, -0.6), 7.0)]
)
def test_a_ball_is_as_fast_as_its_way_is_long(there: tuple[float, float, float], mps: float) -> None:
    assert space_module.fastest(((0.0, 0.0, 0.0, 0.1),), ((*there, 0.1),), 0.0, 0.0, 0.1) == pytest.approx(mps)
    assert space_module.fastest(((0.0, 0.5, 0.0, 0.1),), ((0.0, 0.5, 0.0, 0.1),), 0.2, -0.4, 0.1) == pytest.approx(0.4)


def test_an_arc_leads_where_half_of_its_turn_points() -> None:
    assert space_module.driven((1.0, 2.0, 0.2), 0.5, 0.6) == pytest.approx(
        (1.0 + 0.5 * cos(0.5), 2.0 + 0.5 * sin(0.5), 0.8)
    )


def test_no_time_is_no_step_whatever_moves() -> None:
    space = Space(STRETCH_3)
    assert space.cartesian is not None
    now = BodyMotion(tuple(Motion(position) for position in HOME), Wheels(0.1, 0.1))
    out = JointCommand(position=OUT, base_v_mps=0.3)
    step, why = space.follow(now, out, standing(0), 0.0, 0.0)
    assert (step.joints, step.wheels, why) == (now.joints, now.wheels, "")


BOX_OF = Box((0.0, 0.0, 0.0), (1.0, 2.0, 3.0))


@pytest.mark.parametrize(
    ("place", "radius_m", "beyond_m", "within_m"),
    [
        ((0.5, 1.0, 1.5), 0.1, -0.4, 0.6),  # in its middle: half a metre from the nearest side
        ((0.9, 1.0, 1.5), 0.1, 0.0, 0.2),
        ((1.0, 1.0, 1.5), 0.1, 0.1, 0.1),
        ((1.3, 1.0, 1.5), 0.1, 0.4, -0.2),
        ((-0.3, 1.0, 1.5), 0.1, 0.4, -0.2),
        ((0.5, 2.3, 1.5), 0.1, 0.4, -0.2),
        ((0.5, 1.0, -0.3), 0.1, 0.4, -0.2),
        ((1.3, 2.4, 1.5), 0.1, 0.5, -0.4),  # off an edge by 0.5 m
        ((-0.2, -0.3, 3.6), 0.0, 0.6, -0.7),  # off a corner by 0.7 m
    ],
)
def test_a_ball_is_in_a_box_or_out_of_it_by_the_shortest_way(
    place: tuple[float, float, float], radius_m: float, beyond_m: float, within_m: float
) -> None:
    balls = np.array([(*place, radius_m)])
    assert BOX_OF.beyond(balls) == pytest.approx(beyond_m)
    assert BOX_OF.within(balls) == pytest.approx(within_m)
    far = np.array([(0.5, 1.0, 1.5, 0.01), (*place, radius_m), (0.4, 1.0, 1.5, 0.01)])
    assert BOX_OF.beyond(far) == pytest.approx(max(beyond_m, -0.39)), "that which is furthest out counts"
    out = np.array([(9.0, 9.0, 9.0, 0.01), (*place, radius_m)])
    assert BOX_OF.within(out) == pytest.approx(within_m), "that which is deepest in counts"


FRONT_M = max(ball[0] + ball[3] for ball in outline(IN))
V_MPS, AGE_S = 0.2, 0.03
GOES_ON_S = V_MPS / STRETCH_3.base.acceleration_mps2 / 2 + 0.1 + AGE_S + TICK_S
"""It brakes at 0.3 m/s2, which its wheels begin 0.1 s late, from where it was a while ago, after one step more."""


@pytest.mark.parametrize(("room_m", "why"), [(1e-4, ""), (-1e-4, sentence("guard.into_keep_out", name="wall"))])
@pytest.mark.parametrize("start", [(0.0, 0.0, 0.0), (2.0, -1.0, 0.0)])
def test_a_base_needs_the_room_in_which_it_brakes(room_m: float, why: str, start: tuple[float, float, float]) -> None:
    wall_m = start[0] + FRONT_M + V_MPS * GOES_ON_S + room_m
    space = Space(STRETCH_3, keep_out={"wall": (wall_m, wall_m + 1.0, start[1] - 2.0, start[1] + 2.0, -1.0, 3.0)})
    now = BodyMotion(tuple(map(Motion, IN)), Wheels(V_MPS, V_MPS))
    assert space.fault(now, now, standing(0, IN, pose=start), AGE_S, TICK_S) == why
    kept = Space(STRETCH_3, keep_in=(start[0] - 3.0, wall_m, start[1] - 3.0, start[1] + 3.0, -1.0, 3.0))
    assert kept.fault(now, now, standing(0, IN, pose=start), AGE_S, TICK_S) == (
        why and sentence("guard.out_of_keep_in")
    )


@pytest.mark.parametrize(("room_m", "why"), [(1e-4, ""), (-1e-4, sentence("guard.to_the_floor"))])
def test_a_joint_needs_the_room_in_which_it_brakes(room_m: float, why: str) -> None:
    speed_mps, under_m, over_m = 0.1, 0.0, 1.0
    for _ in range(40):  # the height of the lift at which the hand, which points down, is at the floor
        middle_m = (under_m + over_m) / 2
        is_under = space_module.lowest(outline((middle_m, *DOWN[1:]))) < 0.0
        under_m, over_m = (middle_m, over_m) if is_under else (under_m, middle_m)
    assert over_m > 0.0
    brakes_m = speed_mps**2 / (2 * STRETCH_3.joints[0].acceleration)
    joints = (Motion(over_m + brakes_m + room_m, -speed_mps), *map(Motion, DOWN[1:]))
    now = BodyMotion(joints, Wheels())
    assert Space(STRETCH_3).fault(now, now, standing(0), 0.0, TICK_S) == why


@pytest.mark.parametrize(("room_m", "why"), [(1e-4, ""), (-1e-4, sentence("guard.out_of_keep_in"))])
@pytest.mark.parametrize("v_mps", [-0.1, 0.0])
def test_a_hand_that_swings_to_a_wall_needs_room_though_the_base_drives_away(
    room_m: float, why: str, v_mps: float
) -> None:
    """The base may stop before the hand does."""
    yaw, turns_radps = JOINTS.index("wrist_yaw"), 1.0
    brakes_rad = turns_radps**2 / (2 * STRETCH_3.joints[yaw].acceleration)

    def front_m(turned_rad: float) -> float:
        return max(ball[0] + ball[3] for ball in outline((*OUT[:yaw], turned_rad, *OUT[yaw + 1 :])))

    assert front_m(0.4 + brakes_rad) > front_m(0.4) + 0.005
    joints = tuple(Motion(0.4, turns_radps) if number == yaw else Motion(place) for number, place in enumerate(OUT))
    now = BodyMotion(joints, Wheels(v_mps, v_mps))
    kept = Space(STRETCH_3, keep_in=(-3.0, front_m(0.4 + brakes_rad) + room_m, -3.0, 3.0, -1.0, 3.0))
    assert kept.fault(now, now, standing(0, OUT), AGE_S, TICK_S) == why


@pytest.mark.parametrize(("share", "least"), [(0.95, 0.92), (0.8, 0.77), (1.1, 1.0)])
def test_a_joint_that_is_too_fast_for_the_tip_is_slowed_no_more_than_it_must(share: float, least: float) -> None:
    yaw, dt_s = JOINTS.index("wrist_yaw"), 0.05
    limit = STRETCH_3.joints[yaw]

    def at(turned_rad: float) -> tuple[float, ...]:
        return (*OUT[:yaw], OUT[yaw] + turned_rad, *OUT[yaw + 1 :])

    tip_mps = space_module.fastest(outline(at(0.0)), outline(at(share * limit.speed * dt_s)), 0.0, 0.0, dt_s)
    assert STRETCH_3.cartesian is not None
    robot = replace(STRETCH_3, cartesian=replace(STRETCH_3.cartesian, tip_speed_mps=tip_mps))
    joints = tuple(Motion(place, limit.speed if number == yaw else 0.0) for number, place in enumerate(OUT))
    command = JointCommand(position=at(2.0))
    step, why = Space(robot).follow(BodyMotion(joints, Wheels()), command, standing(0, OUT), 0.0, dt_s)
    assert bool(why) is (share < 1.0)
    assert least * limit.speed <= step.joints[yaw].velocity <= min(share, 1.0) * limit.speed + 1e-9


@pytest.mark.parametrize("part", [1, 2])
def test_a_box_across_the_way_of_a_braking_base_is_seen_though_the_way_ends_behind_it(part: int) -> None:
    v_mps, joints = 0.95, tuple(map(Motion, FOLDED))
    way_m = v_mps * (v_mps / STRETCH_3.base.acceleration_mps2 / 2 + space_module.LAG_S + TICK_S)
    at_m = way_m * part / 3
    space = Space(STRETCH_3, (), {"wall": (at_m - 0.02, at_m + 0.02, -5.0, 5.0, 0.0, 2.0)})
    now, step = BodyMotion(joints, Wheels()), BodyMotion(joints, Wheels(v_mps, v_mps))
    told = space.fault(now, step, standing(0, FOLDED), 0.0, TICK_S)
    assert told == sentence("guard.into_keep_out", name="wall")


def test_a_post_on_the_arc_of_a_hand_is_seen_by_looks_that_lie_close_together() -> None:
    joints, wheel_mps, age_s = tuple(map(Motion, OUT)), 0.165, 0.2
    turn_rad = 2 * wheel_mps / STRETCH_3.base.track_m
    turn_rad *= wheel_mps / STRETCH_3.base.acceleration_mps2 / 2 + space_module.LAG_S + age_s + TICK_S
    x_m, y_m = max(outline(OUT), key=lambda ball: hypot(ball[0], ball[1]))[:2]
    at_rad = turn_rad / 5  # the first of five looks, as 0.15 rad are at most between two
    x_m, y_m = x_m * cos(at_rad) - y_m * sin(at_rad), x_m * sin(at_rad) + y_m * cos(at_rad)
    post = (x_m - 0.004, x_m + 0.004, y_m - 0.004, y_m + 0.004, 0.0, 2.0)
    now, step = BodyMotion(joints, Wheels()), BodyMotion(joints, Wheels(-wheel_mps, wheel_mps))
    told = Space(STRETCH_3, (), {"post": post}).fault(now, step, standing(0, OUT), age_s, TICK_S)
    assert told == sentence("guard.into_keep_out", name="post")


def test_where_it_is_already_it_may_stay_and_come_out_and_go_no_deeper() -> None:
    space = Space(STRETCH_3, keep_out={"wall": (FRONT_M - 0.2, 9.0, -3.0, 3.0, -1.0, 3.0)})

    def fault(v_mps: float) -> str:
        now = BodyMotion(tuple(map(Motion, IN)), Wheels(v_mps, v_mps))
        return space.fault(now, now, standing(0, IN), 0.0, TICK_S)

    assert (fault(0.0), fault(-0.1)) == ("", "")
    assert fault(0.01) == sentence("guard.into_keep_out", name="wall")


class Ground:
    """A guard with a robot that does exactly as it is told."""

    def __init__(self, start: tuple[float, ...] = HOME, space: Space | None = None) -> None:
        self.machine = GuardMachine(STRETCH_3, space=space)
        self.now_ns, self.seq, self.pose = to_ns(1.0), 0, (0.0, 0.0, 0.0)
        self.machine.update_state(moving(self.now_ns, start, (0.0,) * 8))
        assert self.machine.arm(self.now_ns)
        self.position = start

    def go(self, seconds: float, position: tuple[float, ...], v: float = 0.0, w: float = 0.0) -> list[Moment]:
        moments = []
        for _ in range(round(seconds / TICK_S)):
            self.seq += 1
            self.now_ns += to_ns(TICK_S)
            sent = command(self.now_ns - 1, seq=self.seq, position=position, v=v, w=w)
            assert self.machine.accept_command(sent, self.now_ns) == ""
            out = self.machine.tick(self.now_ns)
            assert out is not None
            x, y, heading = self.pose
            before = to_odometry(x, y, heading, grasp_point(self.position))
            ahead, turned = out.base_v_mps * TICK_S, out.base_w_radps * TICK_S
            middle = heading + turned / 2
            self.pose = (x + ahead * cos(middle), y + ahead * sin(middle), heading + turned)
            tip = to_odometry(*self.pose, grasp_point(out.position))
            speed = float(((tip - before) ** 2).sum() ** 0.5) / TICK_S
            velocity = tuple((b - a) / TICK_S for a, b in zip(self.position, out.position, strict=True))
            moments.append(Moment(out, self.pose, speed, (float(tip[0]), float(tip[1]), float(tip[2]))))
            self.position = out.position
            state = moving(self.now_ns, out.position, velocity, out.base_v_mps, out.base_w_radps, self.pose)
            self.machine.update_state(state)
        return moments

    @property
    def reason(self) -> str:
        return self.machine.reason


Measure = Callable[[list[Moment]], float]


def fastest(moments: list[Moment]) -> float:
    return max(moment.tip_mps for moment in moments)


def wheel(moments: list[Moment]) -> float:
    half = STRETCH_3.base.track_m / 2
    return max(abs(one.out.base_v_mps) + half * abs(one.out.base_w_radps) for one in moments)


def test_an_arm_that_is_out_and_turns_is_slowed_from_1_7_to_1_0_metres_a_second() -> None:
    unlimited = Ground(OUT, Space(replace(STRETCH_3, cartesian=None)))
    assert fastest(unlimited.go(2.0, OUT, w=9.0)) > 1.6
    ground = Ground(OUT)
    moments = ground.go(2.0, OUT, w=9.0)
    assert 0.9 < fastest(moments) <= 1.0
    assert len({round(one.out.base_w_radps, 3) for one in moments[-40:]}) == 1, "it turns steadily"
    assert sentence("guard.slowed", why=sentence("guard.too_fast_a_part", speed_mps=1)) in ground.reason


def test_why_it_was_slowed_is_told_for_half_a_second_and_no_longer() -> None:
    ground = Ground(OUT)
    ground.go(2.0, OUT, w=9.0)
    ground.go(0.48, OUT)
    assert ground.reason == f"commanded by policy, slowed: {sentence('guard.too_fast_a_part', speed_mps=1)}"
    ground.go(0.02, OUT)
    assert ground.reason == "commanded by policy"


@pytest.mark.parametrize(
    ("start", "position", "v", "w", "measure", "least", "most"),
    [
        pytest.param(OUT, (0.9, 0.0, 4.5, 0.4, 0.0, 0.05, 0.0, 0.0), 0.3, 9.0, fastest, 0.8, 1.01, id="everything"),
        pytest.param(OUT, OUT, 0.3, 0.0, wheel, 0.249, 0.25, id="base with the arm out"),
        pytest.param(OUT, OUT, -0.3, 0.0, wheel, 0.249, 0.25, id="base backwards with the arm out"),
        pytest.param(IN, IN, 0.3, 0.0, wheel, 0.299, 0.3, id="base with the arm in"),
    ],
)
def test_speed_has_a_bound(
    start: tuple[float, ...],
    position: tuple[float, ...],
    v: float,
    w: float,
    measure: Measure,
    least: float,
    most: float,
) -> None:
    assert least <= measure(Ground(start).go(3.0, position, v, w)) <= most + 1e-9


def test_the_arm_goes_out_only_while_the_base_is_slow_enough_and_both_go_on() -> None:
    ground = Ground(IN)
    ground.go(2.0, IN, v=0.3)
    moments = ground.go(6.0, OUT, v=0.3)
    out = [one for one in moments if hypot(*grasp_point(one.out.position)[:2]) > 0.55]
    assert wheel(out) <= 0.25 + 1e-9
    assert moments[-1].out.position[:3] == pytest.approx(OUT[:3], abs=1e-3)
    assert moments[-1].out.base_v_mps == pytest.approx(0.25)


LOW = (0.0, 0.52, 0.0, -pi / 2, 0.0, 0.05, 0.0, 0.0)
OVER = (0.9, 0.4, 0.0, -pi / 2, 0.0, 0.05, 0.0, 0.0)


@pytest.mark.parametrize(
    ("start", "space", "position", "v", "w", "place", "least", "most", "why"),
    [
        pytest.param(DOWN, {}, LOW, 0.0, 0.0, 2, 0.0, 0.03, "the floor", id="the floor"),
        pytest.param(OVER, {"keep_out": TABLE}, LOW, 0.0, 0.0, 2, 0.5, 0.53, "keep_out table", id="down on the table"),
        pytest.param(IN, {"keep_in": (-1, 0.8, -1, 1, -0.1, 2)}, IN, 0.3, 0.0, 0, -9, 0.8, "leave keep_in", id="ahead"),
        pytest.param(OUT, {"keep_in": (-1, 1, -1.2, 0.5, -0.1, 2)}, OUT, 0.0, 0.6, 1, -9, 0.5, "leave keep_in",
                     id="round"),
    ],
)  # fmt: skip
def test_the_tip_stays_where_it_may_be_and_comes_near_its_end(
    start: tuple[float, ...], space: dict[str, object], position: tuple[float, ...], v: float, w: float, place: int,
    least: float, most: float, why: str,
) -> None:  # fmt: skip
    ground = Ground(start, Space(STRETCH_3, **space))  # type: ignore[arg-type]  # from a table
    moments = ground.go(9.0, position, v, w)
    ends = [one.tip_m[place] for one in moments]
    assert all(least <= end <= most for end in ends) if place != 2 else least <= min(ends) <= most
    assert moments[-1].tip_mps < 0.005
    assert ground.machine.mode == "holding"
    assert ground.reason.startswith("kept still: ")
    assert why in ground.reason


def test_the_base_stops_before_a_box_with_all_of_its_body_and_may_go_back() -> None:
    ground = Ground(IN, Space(STRETCH_3, keep_out={"stairs": (0.8, 2.0, -1.0, 1.0, 0.0, 0.3)}))
    ground.go(6.0, IN, v=0.3)
    front_m = ground.pose[0] + max(ball[0] + ball[3] for ball in outline(IN) if ball[2] < 0.3)
    assert 0.7 < front_m <= 0.8
    assert ground.reason == sentence("guard.kept_still", why=sentence("guard.into_keep_out", name="stairs"))
    ground.go(2.0, IN, v=-0.3)
    assert ground.reason == "commanded by policy"
    assert ground.pose[0] < 0.5


def test_what_is_kept_from_the_table_still_moves_along_it() -> None:
    ground = Ground(OVER, Space(STRETCH_3, keep_out=TABLE))
    ground.go(9.0, LOW)
    moments = ground.go(3.0, (0.0, 0.3, *LOW[2:]))
    assert moments[-1].out.position[1] == pytest.approx(0.3, abs=0.01), "the arm comes in over the table"
    assert min(one.tip_m[2] for one in moments) >= 0.5


def test_a_base_of_which_nobody_knows_where_it_is_stands_where_boxes_are_given() -> None:
    ground = Ground(IN, Space(STRETCH_3, keep_in=(-1, 1, -1, 1, -0.1, 2)))
    ground.pose = (nan, 0.0, 0.0)
    ground.go(0.04, IN)
    assert all(one.out.base_v_mps == 0.0 for one in ground.go(1.0, IN, v=0.3))
    assert sentence("guard.base_is_unknown") in ground.reason


class Pusher(Node):
    """Wants to drive ahead for ever."""

    command = Publisher(JointCommand, "command")

    @every(hz=20)
    def tick(self) -> None:
        self.command.publish(JointCommand(position=KinematicRobot.folded, base_v_mps=0.3))


def test_a_launch_file_keeps_the_robot_in_its_place() -> None:
    driver = NodeSpec("driver", Driver, params={"robot": "nodes.sim.kinematic:KinematicRobot"})
    guard = NodeSpec("guard", Guard, params={"arm": "auto", "keep_in": [-1.0, 0.7, -1.0, 1.0, -0.1, 2.0]})
    sim = Simulation(driver, guard, NodeSpec("policy", Pusher))
    said: list[GuardState] = sim.record_topic("guard/state", GuardState)
    seen: list[RobotState] = sim.record_topic("robot/state", RobotState)
    sim.run(seconds=8.0)
    front_m = max(ball[0] + ball[3] for ball in outline(KinematicRobot.folded))
    assert 0.6 < max(state.base_x_m for state in seen) + front_m <= 0.7
    assert said[-1].reason == sentence("guard.kept_still", why=sentence("guard.out_of_keep_in"))


BOX = sentence("guard.box_expected")


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"keep_in": (1.0, 0.0, 0.0, 1.0, 0.0, 1.0)}, f"guard: keep_in is [1.0, 0.0, 0.0, 1.0, 0.0, 1.0]; {BOX}"),
        ({"keep_in": (1.0, 1.0, 0.0, 1.0, 0.0, 1.0)}, f"guard: keep_in is [1.0, 1.0, 0.0, 1.0, 0.0, 1.0]; {BOX}"),
        ({"keep_in": (0.0, 1.0, 1.0, 0.0, 0.0, 1.0)}, f"guard: keep_in is [0.0, 1.0, 1.0, 0.0, 0.0, 1.0]; {BOX}"),
        ({"keep_in": (0.0, 1.0, 0.0, 1.0, 1.0, 0.0)}, f"guard: keep_in is [0.0, 1.0, 0.0, 1.0, 1.0, 0.0]; {BOX}"),
        ({"keep_out": {"bin": (0.0, 1.0)}}, f"guard: keep_out 'bin' is [0.0, 1.0]; {BOX}"),
        ({"keep_in": (-inf, 1.0, 0.0, 1.0, 0.0, 1.0)}, f"guard: keep_in is [-inf, 1.0, 0.0, 1.0, 0.0, 1.0]; {BOX}"),
    ],
)
def test_what_is_no_box_is_told(params: dict[str, object], told: str) -> None:
    with pytest.raises(ParameterError) as refusal:
        Guard(**params)  # type: ignore[arg-type]  # from a table
    assert str(refusal.value) == told


def test_a_box_needs_a_robot_whose_body_is_known() -> None:
    with pytest.raises(ParameterError) as refusal:
        Space(replace(STRETCH_3, cartesian=None), keep_in=(0, 1, 0, 1, 0, 1))
    assert str(refusal.value) == sentence("guard.space_needs_a_body")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (
            CartesianLimits("nodes.stretch.body:outline", nan, 0.2, 0.5),
            sentence("robot.number_expected", what="cartesian", name="tip_speed_mps", value="nan", wanted=""),
        ),
        (
            CartesianLimits("nodes.stretch.kinematics:look_at", 1.0, 0.2, 0.5),
            sentence("robot.wrong_outline", name="nodes.stretch.kinematics:look_at", what=""),
        ),
        (
            CartesianLimits("nowhere:x", 1.0, 0.2, 0.5),
            sentence("robot.wrong_outline", name="nowhere:x", what="no balls: "),
        ),
    ],
)
def test_a_body_that_no_robot_has_is_told(body: CartesianLimits, told: str) -> None:
    assert limits_problem(replace(STRETCH_3, cartesian=body)).startswith(told)
