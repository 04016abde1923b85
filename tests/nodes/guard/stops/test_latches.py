"""What a person presses stays pressed: emergency stops over restarts, re-arming by proof, and the page about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nodes.guard import persistence
from nodes.guard.node import Guard
from nodes.guard.persistence import SavedState, StateFile
from nodes.guard.table import with_table
from nodes.msgs import EStop, GuardState, Interrupt, JointCommand
from nodes.msgs.signature import order
from runtime import Node, Publisher, Simulation, every
from runtime.launch.graph import NodeSpec
from runtime.run_facts import RunFacts
from tests.support.robots.still_robot import StillRobot
from tests.support.sentences import sentence
from tests.support.standing import HOME

TOKEN = "t" * 64


class Drive(Node):
    """Drives ahead."""

    command = Publisher(JointCommand, "command")

    @every(hz=20)
    def tick(self) -> None:
        self.command.publish(JointCommand(position=HOME, base_v_mps=0.2))


class Room:
    def __init__(self, **params: Any) -> None:
        self.robot, self.guard = StillRobot(), Guard(**{"arm": "auto", **params})
        self.sim = Simulation(self.robot, Drive(), NodeSpec("guard", Guard, instance=self.guard))
        self.states: list[GuardState] = self.sim.record_topic("guard/state", GuardState)
        self.interrupts: list[Interrupt] = self.sim.record_topic("interrupt", Interrupt)

    def run(self, seconds: float) -> GuardState:
        self.sim.run(seconds=seconds)
        return self.states[-1]

    def order(self, do: str, token: str = TOKEN) -> GuardState:
        self.guard.proofs.token = TOKEN
        self.sim.publish("guard/order", order(token, do, "Ann", self.sim.clock.now_ns()))  # type: ignore[arg-type]
        return self.run(0.1)

    def resume(self) -> GuardState:
        self.sim.publish("interrupt", Interrupt(id="r", depth="resume", text="go on", by="Ann"))
        return self.run(0.3)


def test_an_emergency_stop_is_left_by_re_arming_alone_and_then_waits_to_be_told_to_go_on() -> None:
    room = Room()
    assert room.run(0.5).mode == "moving"
    room.sim.publish("estop", EStop(source="button", is_pressed=True))
    room.sim.run(seconds=0.0001)
    assert room.states[-1].estop == "button: pressed"
    assert room.resume().estop
    assert room.order("rearm").estop, "still pressed"
    room.sim.publish("estop", EStop(source="button", is_pressed=False))
    assert room.order("rearm", token="wrong").estop
    after = room.order("rearm")
    assert (after.mode, after.estop) == ("stopped", "")
    assert room.run(1.0).mode == "stopped"
    assert room.resume().mode == "moving"


def test_a_source_that_must_repeat_itself_and_does_not_counts_as_pressed() -> None:
    room = Room(estop_sources=("pendant",), estop_silence_s=0.3)
    for _ in range(10):
        room.sim.publish("estop", EStop(source="pendant", is_pressed=False))
        assert room.run(0.1).estop == ""
    assert room.run(0.5).estop == sentence("guard.source_is_silent", source="pendant", seconds=0.3)
    assert room.order("rearm").estop


def test_no_source_lets_go_for_another_however_many_press() -> None:
    room = Room(estop_sources=("pendant",), estop_silence_s=10.0)
    sources = [f"source {number}" for number in range(40)]
    for source in ("pendant", *sources):
        room.sim.publish("estop", EStop(source=source, is_pressed=True))
    room.run(0.1)
    for source in ("pendant", *sources[:31]):
        assert room.order("rearm").estop
        room.sim.publish("estop", EStop(source="pendant", is_pressed=True))  # as each source repeats what it is
        room.sim.publish("estop", EStop(source=source, is_pressed=False))
    room.sim.publish("estop", EStop(source="pendant", is_pressed=False))
    assert room.order("rearm").estop, "sources that are not known by name still press"
    assert room.guard.pressed == {sentence("guard.too_many_sources", number=32)}


def test_as_many_sources_as_are_known_by_name_let_go_one_by_one() -> None:
    room = Room()
    sources = [f"source {number}" for number in range(32)]
    for is_pressed in (True, True, False):
        for source in sources:
            room.sim.publish("estop", EStop(source=source, is_pressed=is_pressed))
        room.run(0.1)
    assert room.order("rearm").estop == ""


def test_a_guard_that_is_armed_by_a_person_moves_nothing_before() -> None:
    room = Room(arm="manual")
    assert room.run(0.5).mode == "disarmed"
    assert room.order("arm", token="wrong").mode == "disarmed"
    assert room.order("arm").mode in ("armed", "moving")
    assert room.run(0.3).mode == "moving"


@pytest.mark.parametrize(
    ("fault", "by"),
    [({"contact": ("base",)}, "contact"), ({"effort": 99.0}, "effort"), ({"is_silent": True}, "driver")],
)
def test_the_guard_stops_by_itself_for_what_it_feels_and_tells_it(fault: dict[str, Any], by: str) -> None:
    room = Room()
    room.run(0.5)
    for name, value in fault.items():
        setattr(room.robot, name, value)
    assert room.run(1.5).mode == "stopped"
    assert [interrupt.by for interrupt in room.interrupts] == [by]
    assert room.states[-1].stop_cause == room.interrupts[0].id


def test_a_restarted_guard_is_stopped_as_the_one_before_was(tmp_path: Path) -> None:
    info = {"registry": str(tmp_path), "launch_file": "x/robot.toml"}

    def start() -> Guard:
        guard = Guard(arm="auto", memory="run")
        guard.run_info = RunFacts.of(info)
        guard.on_start()
        return guard

    first = start()
    first.emergency(EStop(source="button", is_pressed=True))
    second = start()
    assert second.machine.mode == "estopped"
    assert second.machine.latch.estop == "button: pressed"
    assert second.arbitration.epochs == first.arbitration.epochs == {"planner": 1, "vlm": 1, "policy": 1}
    StateFile(tmp_path / persistence.FILE_NAME).note(SavedState(stop="stopped by Sam: Ouch!"))
    assert start().machine.mode == "stopped"
    (tmp_path / persistence.FILE_NAME).write_text("{")
    assert start().machine.mode == "stopped"


def test_the_file_is_kept_from_run_to_run_unless_the_launch_file_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    info = {"registry": str(tmp_path), "launch_file": "x/stretch.toml"}
    robots = tmp_path / "state" / "polyrhythm" / "robots"
    assert persistence.place_of("machine", "stretch_3", RunFacts.of(info)) == robots / "stretch_3" / "guard.json"
    assert (
        persistence.place_of("machine", "my.arm:LIMITS", RunFacts.of(info)) == robots / "my.arm_LIMITS" / "guard.json"
    )
    assert persistence.place_of("run", "stretch_3", RunFacts.of(info)) == tmp_path / "guard.json"
    assert persistence.place_of("machine", "stretch_3", RunFacts.of({"clock": "virtual"})) is None


def test_the_page_shows_the_table_as_it_is() -> None:
    page = (Path(__file__).resolve().parents[4] / "docs" / "guard.md").read_text()
    assert with_table(page) == page, "run: python -m nodes.guard.table"
