"""A stopped robot may brake and come back, whatever its guard asks: by value, joint by joint and way by way."""

from __future__ import annotations

import pytest

from nodes.guard.node import Guard
from nodes.msgs import JOINTS, GuardState, JointCommand
from nodes.robot.driver import BRAKES_TICKS, Brake, Driver
from nodes.sim.kinematic import KinematicRobot
from nodes.stretch.limits import STOW
from runtime import ALONE, Node, Publisher, Simulation, every
from runtime.launch.graph import NodeSpec
from tests.support.guard.guard_driven import Story, interrupt
from tests.support.sentences import sentence

HERE = (0.5,) * len(JOINTS)


def told(brake: Brake, position: float, v_mps: float = 0.0, *, is_stopped: bool = True) -> JointCommand:
    asked = JointCommand(position=(position, *HERE[1:]), base_v_mps=v_mps)
    return brake.apply(asked, HERE, is_stopped=is_stopped)


def test_a_guard_that_brakes_as_it_should_is_not_cut() -> None:
    story, brake = Story(), Brake(JOINTS)
    for number in range(300):
        if number < 100:
            assert story.send(v=0.3, w=0.0) == ""
        if number == 100:  # right behind a tick, so that it has had no time to brake
            story.machine.interrupt(interrupt("stop"), story.now_ns, story.now_ns)
            out = story.machine.tick(story.now_ns)
        else:
            out = story.tick()
        assert out is not None
        assert brake.apply(out, HERE, is_stopped=number >= 100) == out, number


def test_a_stopped_joint_goes_no_further_away_than_it_brakes_and_may_come_back() -> None:
    brake = Brake(JOINTS)
    told(brake, 0.500, is_stopped=False)
    told(brake, 0.502, is_stopped=False)
    places = [told(brake, 0.502 + 0.002 * number).position[0] for number in range(1, 90)]
    assert max(places) <= 0.502 + 50 * 0.002 + 1e-9
    assert told(brake, 0.501).position[0] == 0.501
    assert told(brake, 0.499).position[0] in (0.499, 0.501)


def test_a_stopped_joint_that_stood_stays_and_a_gripper_opens_only() -> None:
    brake, gripper = Brake(JOINTS), JOINTS.index("gripper")
    told(brake, 0.5, is_stopped=False)
    assert told(brake, 0.6).position == HERE
    for place, expected in ((0.7, 0.7), (0.6, 0.6), (0.3, 0.6)):
        asked = tuple(place if number == gripper else here for number, here in enumerate(HERE))
        out = brake.apply(JointCommand(position=asked), HERE, is_stopped=True)
        assert out.position[gripper] == expected


@pytest.mark.parametrize(
    ("before", "asked", "left"), [(0.2, 0.3, 0.2), (0.2, 0.1, 0.1), (0.2, -0.1, 0.0), (-0.2, -0.3, -0.2)]
)
def test_a_stopped_base_brakes_and_never_turns_round(before: float, asked: float, left: float) -> None:
    brake = Brake(JOINTS)
    told(brake, 0.5, before, is_stopped=False)
    assert told(brake, 0.5, asked).base_v_mps == pytest.approx(left, rel=0.011)
    for _ in range(100):
        out = told(brake, 0.5, asked)
    assert out.base_v_mps == 0.0


def test_after_the_stop_all_is_let_through_and_after_silence_the_base_stands_first() -> None:
    brake = Brake(JOINTS)
    told(brake, 0.5)
    assert told(brake, 0.9, 0.3, is_stopped=False).base_v_mps == 0.3
    brake.forget()
    assert told(brake, 0.9, 0.3).base_v_mps == 0.0


def test_each_speed_of_the_base_falls_in_even_steps_and_is_zero_in_the_end() -> None:
    brake = Brake(JOINTS)
    asked = JointCommand(position=HERE, base_v_mps=0.4, base_w_radps=-0.8, base_vy_mps=0.2)
    brake.apply(asked, HERE, is_stopped=False)
    for tick in range(BRAKES_TICKS + 2):  # the first one keeps it: the guard may have stopped between two ticks
        out = brake.apply(asked, HERE, is_stopped=True)
        left = max(0.0, 1.0 - tick / BRAKES_TICKS)
        assert (out.base_v_mps, out.base_w_radps, out.base_vy_mps) == pytest.approx(
            (0.4 * left, -0.8 * left, 0.2 * left)
        )


@pytest.mark.parametrize("way", [1.0, -1.0])
def test_a_joint_goes_on_by_half_of_what_it_would_while_it_brakes_and_no_further(way: float) -> None:
    brake, step = Brake(JOINTS), way * 0.002
    room = BRAKES_TICKS / 2 * abs(step)
    told(brake, 0.5, is_stopped=False)
    told(brake, 0.5 + step, is_stopped=False)
    for share, goes in ((0.6, 0.6), (0.99, 0.99), (1.1, 0.99), (0.995, 0.99)):  # what is refused uses up what is left
        found = told(brake, 0.5 + step + way * share * room).position[0]
        assert found == pytest.approx(0.5 + step + way * goes * room, abs=1e-9)


def test_a_way_back_costs_no_room_and_one_past_where_the_joint_is_does() -> None:
    brake = Brake(JOINTS)
    told(brake, 0.51, is_stopped=False)
    told(brake, 0.51, is_stopped=False)  # it stands, so there is no room
    assert told(brake, 0.505).position[0] == 0.505
    assert told(brake, 0.499).position[0] == 0.499
    assert told(brake, 0.498).position[0] == 0.499
    goes = Brake(JOINTS)
    told(goes, 0.560, is_stopped=False)
    told(goes, 0.562, is_stopped=False)
    assert told(goes, 0.51).position[0] == 0.51
    assert told(goes, 0.51 + 0.9 * BRAKES_TICKS / 2 * 0.002).position[0] == 0.6


def test_a_second_stop_has_room_and_speed_of_its_own() -> None:
    brake = Brake(JOINTS)
    told(brake, 0.5, 0.3, is_stopped=False)
    for _ in range(BRAKES_TICKS + 1):
        told(brake, 0.5, 0.3)
    told(brake, 0.5, 0.3, is_stopped=False)
    assert told(brake, 0.5, 0.3).base_v_mps == 0.3
    assert told(brake, 0.5, 0.3).base_v_mps == pytest.approx(0.3 * (1 - 1 / BRAKES_TICKS))


class Deaf(Node):
    """A guard that says that it is stopped, and goes on driving: the fault that the driver's own look is for."""

    command = Publisher(JointCommand, "robot/command", qos=ALONE)
    told = Publisher(GuardState, "guard/state", qos=ALONE)
    is_stopped = has_let_go = False
    lift_m = STOW[0]

    def devices(self) -> tuple[str, ...]:
        return ()

    @every(hz=50, phase=0.5)
    def tick(self) -> None:
        self.told.publish(GuardState(mode="stopped" if self.is_stopped else "moving", reason=""))
        if self.has_let_go:
            return
        self.lift_m = min(self.lift_m + 0.001, 0.9)
        self.command.publish(JointCommand(position=(self.lift_m, *STOW[1:]), base_v_mps=0.2, base_w_radps=-0.2))


def test_a_driver_does_not_drive_on_for_a_guard_that_is_stopped_and_asks_for_motion(
    caplog: pytest.LogCaptureFixture,
) -> None:
    driver, guard = Driver(robot="nodes.sim.kinematic:KinematicRobot"), Deaf()
    sim = Simulation(NodeSpec("driver", Driver, instance=driver), guard)
    sim.run(seconds=2.0)
    robot = driver.robot
    assert isinstance(robot, KinematicRobot)
    assert robot.read(sim.clock.now_ns()).base_v_mps > 0.15
    lift = robot.read(sim.clock.now_ns()).position[0]
    guard.is_stopped = True
    sim.run(seconds=2.5)
    before = robot.read(sim.clock.now_ns())
    assert (before.base_v_mps, before.base_w_radps) == (0.0, 0.0)
    assert before.position[0] <= lift + 0.06
    sim.run(seconds=1.0)
    after = robot.read(sim.clock.now_ns())
    assert (after.base_x_m, after.position) == (before.base_x_m, before.position)
    assert caplog.text.count(sentence("guard.driver_brakes")) == 1
    guard.is_stopped = False
    sim.run(seconds=1.0)
    assert robot.read(sim.clock.now_ns()).base_v_mps > 0.15


def test_a_guard_that_lets_go_of_a_robot_that_drives_is_not_said_to_ask_for_motion(
    caplog: pytest.LogCaptureFixture,
) -> None:
    driver, guard = Driver(robot="nodes.sim.kinematic:KinematicRobot"), Deaf()
    sim = Simulation(NodeSpec("driver", Driver, instance=driver), guard)
    sim.run(seconds=2.0)
    guard.is_stopped = guard.has_let_go = True
    sim.run(seconds=0.1)
    robot = driver.robot
    assert isinstance(robot, KinematicRobot)
    assert robot.read(sim.clock.now_ns()).base_v_mps < 0.199, "it brakes all the same"
    assert sentence("guard.driver_brakes") not in caplog.text


class Drives(Node):
    """A policy that drives ahead."""

    seat = "policy"
    command = Publisher(JointCommand, "command")

    @every(hz=20)
    def tick(self) -> None:
        self.command.publish(JointCommand(position=STOW, base_v_mps=0.3))


@pytest.mark.parametrize("stop_s", [0.801 + 0.0125 * number for number in range(8)])
def test_a_guard_that_is_stopped_while_it_speeds_up_is_not_said_to_ask_for_motion(
    stop_s: float, caplog: pytest.LogCaptureFixture
) -> None:
    sim = Simulation(Driver(robot="nodes.sim.kinematic:KinematicRobot"), Guard(arm="auto", memory="run"), Drives())
    commands = sim.record_topic("robot/command", JointCommand)
    sim.run(seconds=stop_s)
    assert 0.02 < commands[-1].base_v_mps < 0.29, "it speeds up"
    sim.publish("interrupt", interrupt("stop"))
    sim.run(seconds=1.0)
    assert commands[-1].base_v_mps == 0.0
    assert sentence("guard.driver_brakes") not in caplog.text
