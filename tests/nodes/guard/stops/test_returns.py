"""Nothing that comes back moves the robot: a guard, a policy, a runstop that is released, words and seats of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nodes.guard.node import Guard
from nodes.guard.persistence import SavedState, read
from nodes.msgs import EStop, GuardState, Interrupt, JointCommand, RobotState, RobotStatus, Utterance
from nodes.msgs.signature import Signatures, service
from nodes.robot.driver import Driver
from nodes.sim.kinematic import KinematicRobot
from runtime import Node, Publisher, QoS, Simulation, Subscription, every, on
from runtime.clock import SystemClock
from runtime.coordination.fence import Fence
from runtime.launch.graph import NodeSpec
from runtime.launch.tables.seats_table import SeatTable
from runtime.run_facts import RunFacts
from tests.support.guard.guard_driven import FAR, MS
from tests.support.sentences import sentence
from tests.support.standing import HOME, standing

TOKEN = "t"


class Policy(Node):
    """Wants far away; and lifts a stop by itself where it is told to, in the name of a person."""

    seat = "policy"
    heard = Subscription(Utterance, "heard", qos=QoS(required=False))
    command = Publisher(JointCommand, "command")
    interrupt = Publisher(Interrupt, "interrupt")

    @every(hz=20)
    def tick(self) -> None:
        self.command.publish(JointCommand(position=FAR, base_v_mps=0.2))

    @on(heard)
    def obey(self, heard: Utterance) -> None:
        self.interrupt.publish(Interrupt(id="p1", depth="resume", text=heard.text, by="Ana"))


class Room:
    """A driver with a kinematic robot, a guard that arms itself, and a policy."""

    def __init__(self) -> None:
        self.driver = Driver(robot="nodes.sim.kinematic:KinematicRobot")
        self.sim = Simulation(
            NodeSpec("driver", Driver, instance=self.driver),
            NodeSpec("policy", Policy),
            NodeSpec("guard", Guard, params={"arm": "auto"}),
            seats={"policy": SeatTable(holder="policy")},
        )
        self.states: list[GuardState] = self.sim.record_topic("guard/state", GuardState)
        self.positions: list[RobotState] = self.sim.record_topic("robot/state", RobotState)
        self.interrupts: list[Interrupt] = self.sim.record_topic("interrupt", Interrupt)
        self.run(1.0)
        guard: Any = self.sim.bound_nodes["guard"].node
        guard.proofs = Signatures(TOKEN)

    def run(self, seconds: float) -> GuardState:
        self.sim.run(seconds=seconds)
        return self.states[-1]

    def say_go_on(self) -> GuardState:
        self.sim.publish("interrupt", Interrupt(id="g", depth="resume", text="Go on", by="Ana"))
        return self.run(0.3)

    def button(self, verb: Any) -> None:
        self.sim.publish("robot/runstop", service(TOKEN, verb, "Ana", self.sim.clock.now_ns()))

    @property
    def robot(self) -> KinematicRobot:
        assert isinstance(self.driver.robot, KinematicRobot)
        return self.driver.robot


def test_a_runstop_on_the_robot_stops_the_graph_and_releasing_it_moves_nothing() -> None:
    room = Room()
    assert room.states[-1].mode == "moving"
    room.button("runstop")
    said = room.run(0.1)
    assert (said.mode, said.reason) == (
        "stopped",
        sentence("guard.stopped_by", by="runstop", why=sentence("guard.runstop_is_pressed")),
    )
    assert [one.by for one in room.interrupts] == ["runstop"]
    assert room.say_go_on().mode == "stopped", "still pressed"
    room.button("release")
    room.run(0.5)
    before = room.positions[-1]
    assert room.run(5.0).mode == "stopped"
    after = room.positions[-1]
    assert (after.position, after.base_x_m) == (before.position, before.base_x_m)
    assert room.say_go_on().mode == "moving"


def test_a_runstop_reaches_the_guard_within_two_ticks_and_not_with_the_next_report() -> None:
    room = Room()
    room.robot.runstop(True)  # somebody's hand
    assert room.run(0.0401).mode == "stopped"


def test_a_policy_that_says_go_on_in_the_name_of_a_person_lifts_nothing() -> None:
    room = Room()
    room.sim.publish("interrupt", Interrupt(id="s", depth="stop", text="Ouch!", by="Ana"))
    assert room.run(0.5).mode == "stopped"
    fences: list[Fence] = room.sim.record_topic("fence", Fence)
    room.sim.publish("heard", Utterance(speaker="Ana", text="well"))
    said = room.run(0.3)
    assert [one.id for one in room.interrupts] == ["s", "p1"]
    assert said.mode == "stopped"
    assert [fence.depth for fence in fences if fence.depth] == []
    assert room.say_go_on().mode == "moving"


class StandingClock(SystemClock):
    """Always the same moment: what the guard sees is not too old however busy the machine is."""

    now_ns = staticmethod(lambda: 1000 * MS)


def started(folder: Path, **params: Any) -> Guard:
    """A guard of the run whose folder that is, with a robot that it sees."""
    guard = Guard(**{"arm": "auto", "memory": "run", **params})
    guard.clock = StandingClock()
    guard.run_info = RunFacts.of({"registry": str(folder), "launch_file": "x/robot.toml"})
    guard.on_start()
    guard.machine.update_state(standing(guard.clock.now_ns(), HOME))
    return guard


def test_a_guard_that_arms_itself_does_so_once_in_a_run(tmp_path: Path) -> None:
    first = started(tmp_path)
    first.tick()
    assert first.machine.mode == "armed"
    assert read(tmp_path / "guard.json") == SavedState(armed_in=str(tmp_path))
    second = started(tmp_path)
    assert second.machine.reason == sentence("guard.stopped_by", by="guard", why=sentence("guard.guard_was_restarted"))
    second.tick()
    assert second.machine.mode == "stopped"
    now_ns = second.clock.now_ns()
    second.machine.interrupt(Interrupt(id="r", depth="resume", text="go on", by="Ana"), now_ns + 1, now_ns + 1)
    second.interrupted(Interrupt(id="a", depth="amend", text="the blue one", by="Ana"))
    assert read(tmp_path / "guard.json") == SavedState(epochs={"vlm": 1}, armed_in=str(tmp_path))
    assert started(tmp_path).machine.reason == sentence(
        "guard.stopped_by", by="guard", why=sentence("guard.guard_was_restarted")
    ), "as often as it is"


def test_a_source_that_must_repeat_itself_has_its_time_from_the_start_on(tmp_path: Path) -> None:
    guard = started(tmp_path, estop_sources=("pendant",))
    assert guard.heard_ns == {"pendant": guard.clock.now_ns()}


def test_where_the_file_is_lost_epochs_go_on_above_one_a_millisecond(tmp_path: Path) -> None:
    (tmp_path / "guard.json").write_text("{")
    assert started(tmp_path).arbitration.epochs == dict.fromkeys(("planner", "policy", "vlm"), 1000)


def test_an_emergency_stop_is_kept_with_its_cause_beside_why_the_guard_is_stopped(tmp_path: Path) -> None:
    started(tmp_path).emergency(EStop(source="button", is_pressed=True, why="toe"))
    kept = read(tmp_path / "guard.json")
    assert kept is not None
    assert (kept.stop, kept.estop) == (sentence("guard.emergency_stop", why="button: toe"), "button: toe")


def test_what_stopped_the_guard_before_is_told_rather_than_that_it_was_restarted(tmp_path: Path) -> None:
    first = started(tmp_path)
    first.tick()
    first.interrupted(Interrupt(id="i", depth="stop", text="Ouch!", by="Ana"))
    assert started(tmp_path).machine.reason == sentence(
        "guard.stopped_by", by="guard", why=sentence("guard.stopped_by", by="Ana", why="Ouch!")
    )


@pytest.mark.parametrize("memory", ["run", "machine"])
def test_another_run_begins_as_any_does(tmp_path: Path, memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        guard = started(tmp_path / name, memory=memory)
        assert guard.machine.report().mode == "disarmed"
        guard.tick()
        assert guard.machine.report().mode == "armed"


def test_a_guard_that_a_person_arms_waits_for_that_after_a_restart_too(tmp_path: Path) -> None:
    first = started(tmp_path, arm="manual")
    assert first.arm_robot(first.clock.now_ns())
    second = started(tmp_path, arm="manual")
    second.tick()
    assert second.machine.mode == "disarmed"


def test_a_guard_that_was_never_armed_is_not_stopped_by_its_restart(tmp_path: Path) -> None:
    guard = started(tmp_path)
    guard.machine.monitors.state = None
    guard.tick()
    assert started(tmp_path).machine.mode == "disarmed"


def test_the_status_of_a_robot_that_has_no_runstop_changes_nothing() -> None:
    room = Room()
    room.sim.publish("robot/status", RobotStatus(read_ns=MS, mode="unhomed"))
    assert room.run(0.2).mode == "moving"
