"""What may leave follows from the mode by construction, and an event that a mode does not know stops and is told."""

from __future__ import annotations

from typing import get_args

import pytest

from nodes.guard.modes import CLOSED, OUTPUT, TRANSITIONS, Event
from nodes.guard.node import Guard
from nodes.msgs import JOINTS, GuardMode, GuardState, JointCommand
from nodes.robot.driver import Brake, Driver
from nodes.sim.kinematic import KinematicRobot
from nodes.stretch.limits import STOW
from runtime import ALONE, Node, Publisher, Simulation, every
from runtime.launch.graph import NodeSpec
from tests.support.guard.guard_driven import Story, interrupt
from tests.support.sentences import sentence

MODES: tuple[GuardMode, ...] = get_args(GuardMode)


def test_each_mode_has_one_output_and_only_where_commands_leave_is_one_taken_in() -> None:
    assert tuple(OUTPUT) == MODES
    assert set(CLOSED) == {mode for mode in MODES if OUTPUT[mode] != "command"}


@pytest.mark.parametrize("mode", [mode for mode in MODES if OUTPUT[mode] != "command"])
def test_a_command_at_hand_leaves_in_no_mode_but_those_of_the_table(mode: GuardMode) -> None:
    story = Story()
    story.drive(20)
    assert story.send(v=0.3) == ""
    story.machine.mode = mode  # as if some line had forgotten to void it
    # At the end of a way back the robot holds, and a command may leave again.
    speeds = [out.base_v_mps for out in (story.tick() for _ in range(1 if mode == "retreating" else 80)) if out]
    assert speeds == sorted(speeds, reverse=True)
    assert not speeds or speeds[-1] < 0.12
    assert mode == "retreating" or not speeds or speeds[-1] == 0.0
    assert bool(speeds) is (OUTPUT[mode] != "nothing")


def test_a_mode_that_the_table_has_lost_brakes(monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story()
    story.drive(20)
    monkeypatch.delitem(OUTPUT, "moving")
    assert story.send(v=0.3) == ""
    speeds = [out.base_v_mps for out in (story.tick() for _ in range(80)) if out is not None]
    assert speeds[-1] == 0.0


@pytest.mark.parametrize(("mode", "event"), [("moving", "stop"), ("moving", "hold"), ("moving", "estop")])
def test_an_event_that_a_mode_does_not_know_stops_the_robot_and_is_told(
    monkeypatch: pytest.MonkeyPatch, mode: GuardMode, event: Event
) -> None:
    story = Story()
    story.drive(20)
    monkeypatch.delitem(TRANSITIONS, (mode, event))
    if event == "estop":
        story.machine.estop("button", story.now_ns)
    else:
        story.machine.interrupt(interrupt("replan" if event == "hold" else event), story.now_ns, story.now_ns)
    assert story.machine.mode == "stopped"
    assert story.machine.reason == story.machine.refusal == sentence("guard.own_fault", mode=mode, event=event)
    outs = [out for out in (story.tick() for _ in range(80)) if out is not None]
    assert outs[-1].base_v_mps == 0.0


@pytest.mark.parametrize(
    ("event", "modes"),
    [
        ("arm", {"disarmed"}),
        ("rearm", {"estopped"}),
        ("hold", {"moving", "retreating"}),
        ("stop", {*MODES} - {"estopped"}),
        ("retreat", {"stopped"}),
        ("resume", {"stopped"}),
        ("release", {"stopped"}),
        ("estop", {*MODES}),
        ("command", {"armed", "moving", "holding"}),
        ("service", {"disarmed", "armed", "holding"}),
    ],
)
def test_each_event_is_known_in_its_own_modes_and_a_fault_in_any_other(event: Event, modes: set[GuardMode]) -> None:
    assert {mode for mode, known in TRANSITIONS if known == event} == modes


@pytest.mark.parametrize(
    ("event", "mode"),
    [
        ("arm", "armed"),
        ("rearm", "stopped"),
        ("hold", "holding"),
        ("stop", "stopped"),
        ("retreat", "retreating"),
        ("resume", "holding"),
        ("release", "disarmed"),
        ("estop", "estopped"),
        ("command", "moving"),
        ("service", "disarmed"),
    ],
)
def test_each_event_leads_to_one_mode_from_wherever_it_is_known(event: Event, mode: GuardMode) -> None:
    assert {after for (_, known), after in TRANSITIONS.items() if known == event} == {mode}


def test_a_robot_that_homes_before_it_was_armed_stays_disarmed() -> None:
    story = Story(is_armed=False)
    assert story.machine.begin_service(story.now_ns) is None
    assert story.machine.mode == "disarmed"


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
