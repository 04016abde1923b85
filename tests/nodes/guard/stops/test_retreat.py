"""After pain or contact the first motion is a slow retreat along the way the robot came."""

from __future__ import annotations

from itertools import islice
from typing import Any

import msgspec
import pytest

from nodes.guard.node import LONGEST_NAME, Guard
from nodes.guard.retreat import BACK_S, SHARE, Trail
from nodes.guard.space import Space
from nodes.guard.state_machine import LONGEST_TEXT, GuardMachine
from nodes.msgs import JOINTS, EStop, GuardState, Interrupt, JointCommand, RobotState
from nodes.msgs.signature import Signatures, order
from nodes.robot.driver import Driver
from nodes.sim.kinematic import KinematicRobot
from nodes.stretch.limits import STRETCH_3
from runtime import Node, Publisher, Simulation, every
from runtime.launch.graph import NodeSpec
from tests.support.sentences import sentence
from tests.support.standing import HOME, standing

TOKEN = "t"
SPEED_MPS = 0.2


class Policy(Node):
    """Drives ahead, whatever happens."""

    command = Publisher(JointCommand, "command")

    @every(hz=20)
    def tick(self) -> None:
        self.command.publish(JointCommand(position=KinematicRobot.folded, base_v_mps=SPEED_MPS))


class Room:
    """A robot that drives ahead, and somebody who gets in its way."""

    def __init__(self) -> None:
        self.driver = Driver(robot="nodes.sim.kinematic:KinematicRobot")
        specs = (NodeSpec("guard", Guard, params={"arm": "auto"}), NodeSpec("policy", Policy))
        self.sim = Simulation(NodeSpec("driver", Driver, instance=self.driver), *specs)
        self.guard: list[GuardState] = self.sim.record_topic("guard/state", GuardState)
        self.seen: list[RobotState] = self.sim.record_topic("robot/state", RobotState)
        self.sim.run(seconds=3.0)
        guard: Any = self.sim.bound_nodes["guard"].node
        guard.proofs = Signatures(TOKEN)
        guard.lifters = frozenset({"reflex"})

    @property
    def robot(self) -> KinematicRobot:
        assert isinstance(self.driver.robot, KinematicRobot)
        return self.driver.robot

    @property
    def machine(self) -> GuardMachine:
        guard: Any = self.sim.bound_nodes["guard"].node
        assert isinstance(guard.machine, GuardMachine)
        return guard.machine

    @property
    def mode(self) -> str:
        return self.guard[-1].mode

    def bump(self) -> None:
        """It drives against something and is stopped by that."""
        assert self.mode == "moving"
        self.robot.touch("base")
        self.sim.run(seconds=1.5)
        assert (self.mode, self.guard[-1].stopped_by) == ("stopped", "contact")

    def hear(self, ident: str, text: str = "Stop!", *, is_pain: bool = False) -> None:
        heard = Interrupt(id=ident, depth="stop", text=text, by="Ann", cause="person", person="Ann", is_pain=is_pain)
        self.sim.publish("interrupt", heard, source="reflex")
        self.sim.run(seconds=1.5)
        assert self.mode == "stopped"

    def goes_back(self, seconds: float = 1.0) -> float:
        """Told to go on: how far it goes back meanwhile, m; less than nothing where it goes ahead."""
        before_m = self.seen[-1].base_x_m
        self.go_on()
        self.sim.run(seconds=seconds)
        return before_m - self.seen[-1].base_x_m

    def go_on(self) -> None:
        self.sim.publish("guard/order", order(TOKEN, "resume", "Ann", self.sim.clock.now_ns()))


def test_it_goes_back_slowly_before_it_goes_on() -> None:
    room = Room()
    room.bump()
    room.robot.touch()
    before_m = room.seen[-1].base_x_m
    room.go_on()
    room.sim.run(seconds=1.0)
    assert room.guard[-1].reason == sentence("guard.moving_back", by="Ann")
    room.sim.run(seconds=3.5)
    furthest_m = before_m - min(state.base_x_m for state in room.seen[-225:])
    assert 0.03 < furthest_m <= SPEED_MPS * BACK_S
    assert min(state.base_v_mps for state in room.seen[-225:]) >= -SHARE * SPEED_MPS - 0.005
    room.sim.run(seconds=2.0)
    assert room.mode == "moving"
    assert room.seen[-1].base_v_mps == pytest.approx(SPEED_MPS, abs=0.01)


def test_who_still_touches_at_the_end_of_the_way_stops_it_again() -> None:
    room = Room()
    room.bump()
    room.go_on()  # within the time after which the runstop is pressed
    room.sim.run(seconds=5.0)
    assert (room.mode, room.guard[-1].stopped_by) == ("stopped", "contact")
    assert all(state.base_v_mps < 0.03 for state in room.seen[-200:]), "it does not drive into what it touches"


@pytest.mark.parametrize("how", ["words", "contact"])
def test_a_stop_or_a_new_touch_ends_the_way_back_at_once(how: str) -> None:
    room = Room()
    room.bump()
    room.robot.touch()
    room.go_on()
    room.sim.run(seconds=1.0)
    if how == "words":
        room.sim.publish("interrupt", Interrupt(id="s", depth="stop", text="Stop!", by="Ann"))
    else:
        room.robot.touch("arm")
    room.sim.run(seconds=0.1)
    assert room.mode == "stopped"
    room.sim.run(seconds=0.4)
    assert room.seen[-1].base_v_mps == pytest.approx(0.0, abs=0.001)


def test_a_stop_without_touch_needs_no_way_back() -> None:
    room = Room()
    room.sim.publish("interrupt", Interrupt(id="s", depth="stop", text="Stop!", by="Ann"))
    room.sim.run(seconds=1.5)
    before_m = room.seen[-1].base_x_m
    room.go_on()
    room.sim.run(seconds=1.0)
    assert min(state.base_x_m for state in room.seen[-50:]) >= before_m - 1e-6


def test_the_way_is_what_was_measured_from_its_end_and_never_longer_than_a_second() -> None:
    trail = Trail()
    assert (bool(trail), trail.end) == (False, ())
    for number in range(200):
        state = standing(number, (number * 0.001, *HOME[1:]))
        trail.note(msgspec.structs.replace(state, base_v_mps=0.1), 0.02)  # type: ignore[type-var]  # a Struct
    trail.note(standing(0), 0.02)
    steps = list(islice(iter(lambda: trail.back(0.02), None), 1000))
    assert len(steps) == pytest.approx(BACK_S / 0.02 / SHARE, abs=5)
    assert steps[0].position[0] == pytest.approx(0.199)
    assert steps[0].base_v_mps == pytest.approx(-0.1 * SHARE)
    assert steps[-1].position[0] == pytest.approx(0.15, abs=0.002)


def test_a_way_that_turned_is_turned_back() -> None:
    trail = Trail()
    moving = msgspec.structs.replace(standing(1), base_w_radps=0.4, base_v_mps=0.1)  # type: ignore[type-var]  # a Struct
    trail.note(moving, 0.02)
    step = trail.back(0.02)
    assert step is not None
    assert (step.base_v_mps, step.base_w_radps, step.base_vy_mps) == pytest.approx((-0.1 * SHARE, -0.4 * SHARE, 0.0))


def test_after_pain_known_from_words_it_goes_back_slowly_before_it_goes_on() -> None:
    room = Room()
    room.hear("o", "Ouch! That's my toe!", is_pain=True)
    assert 0.03 < room.goes_back(4.5) <= SPEED_MPS * BACK_S
    assert min(state.base_v_mps for state in room.seen[-225:]) >= -SHARE * SPEED_MPS - 0.005
    room.sim.run(seconds=2.0)
    assert room.mode == "moving"


@pytest.mark.parametrize("pain_is", ["first", "second"])
def test_pain_is_not_forgotten_beside_another_stop(pain_is: str) -> None:
    room = Room()
    room.hear("a", is_pain=pain_is == "first")
    room.hear("b", is_pain=pain_is == "second")
    assert room.goes_back() > 0.005


def test_pain_is_not_forgotten_over_an_emergency_stop() -> None:
    room = Room()
    room.bump()
    room.robot.touch()
    room.sim.publish("estop", EStop(source="terminal", is_pressed=True))
    room.sim.run(seconds=0.2)
    room.sim.publish("estop", EStop(source="terminal", is_pressed=False))
    room.sim.publish("guard/order", order(TOKEN, "rearm", "Ann", room.sim.clock.now_ns()))
    room.sim.run(seconds=0.2)
    assert room.mode == "stopped"
    assert room.goes_back() > 0.005


def test_pain_that_was_a_false_alarm_needs_no_way_back() -> None:
    room = Room()
    room.hear("o", "Ouch!", is_pain=True)
    machine = room.machine
    now_ns = room.sim.clock.now_ns()
    machine.interrupt(
        Interrupt(id="r", depth="resume", text="sorry", by="Ann", cause="person", person="Ann", takes_back="o"),
        now_ns,
        now_ns,
    )
    assert machine.mode == "holding"


def test_a_stop_on_the_way_back_leaves_the_rest_of_it_owed() -> None:
    room = Room()
    room.bump()
    room.robot.touch()
    room.goes_back()
    room.hear("s")
    assert room.goes_back() > 0.005
    assert room.machine.mode == "retreating"


@pytest.mark.parametrize("how", ["words", "contact"])
def test_a_touch_on_the_way_back_turns_it_round(how: str) -> None:
    room = Room()
    room.bump()
    room.robot.touch()
    room.goes_back(2.0)
    if how == "words":
        room.hear("o", "Ouch!", is_pain=True)
    else:
        room.robot.touch("arm")
        room.sim.run(seconds=1.5)
        room.robot.touch()
    before = len(room.seen)
    assert -0.05 < room.goes_back(3.0) < -0.005, "away from whom it has backed into"
    assert max(state.base_v_mps for state in room.seen[before:]) <= SHARE**2 * SPEED_MPS + 0.005


def test_a_robot_that_is_not_seen_for_a_moment_waits_on_its_way_back() -> None:
    room = Room()
    room.bump()
    room.robot.touch()
    room.goes_back()
    read, last = room.robot.read, room.seen[-1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room.robot, "read", lambda now_ns: last)
        room.sim.run(seconds=0.6)
        assert room.machine.mode == "retreating"
        assert abs(read(room.sim.clock.now_ns()).base_v_mps) < 0.001, "it does not go on blindly"
    room.sim.run(seconds=0.6)
    assert room.machine.mode == "retreating"
    assert room.seen[-1].base_v_mps < -0.01


def test_a_way_back_that_is_not_free_stops_the_robot_and_the_next_go_on_leads_ahead() -> None:
    room = Room()
    room.bump()
    room.robot.touch()
    stood_m = room.seen[-1].base_x_m
    behind = (stood_m - 2.0, stood_m - 0.25, -2.0, 2.0, -1.0, 2.0)
    room.machine.body.space = Space(room.machine.limits, (), {"wall": behind})
    assert abs(room.goes_back()) < 0.005
    assert (room.mode, room.machine.latch.by) == ("stopped", "guard")
    assert room.machine.reason == sentence("guard.stopped_by", by="guard", why=sentence("guard.way_back_is_not_free"))
    assert room.goes_back(2.0) < -0.05
    assert room.mode == "moving"


GRIPPER = JOINTS.index("gripper")


def let_go(room: Room, *, source: str = "reflex") -> None:
    """Somebody asks to be let go, and `source` tells the guard."""
    heard = Interrupt(
        id="l", depth="stop", text="Let go of me!", by="Ann", cause="person", person="Ann", is_pain=True, is_caught=True
    )
    room.sim.publish("interrupt", heard, source=source)


def test_who_asks_to_be_let_go_is_let_go_before_anything_moves_back() -> None:
    room = Room()
    closed_m = room.seen[-1].position[GRIPPER]
    open_m = STRETCH_3.joints[GRIPPER].highest
    assert closed_m < 0.5 * open_m
    let_go(room)
    room.sim.run(seconds=0.6)
    assert (room.mode, room.machine.latch.by) == ("stopped", "Ann")
    assert closed_m < room.seen[-1].position[GRIPPER] < 0.9 * open_m
    now_ns = room.sim.clock.now_ns()
    on = Interrupt(id="r", depth="resume", text="go on", by="Ann", cause="person", person="Ann")
    refusal = room.machine.interrupt(on, now_ns, now_ns)
    assert refusal is not None
    assert refusal.code == "caught"
    room.sim.run(seconds=1.5)
    assert room.seen[-1].position[GRIPPER] == pytest.approx(open_m, abs=0.002)
    stood = room.seen[-1]
    now_ns = room.sim.clock.now_ns()
    assert room.machine.interrupt(on, now_ns, now_ns) is None
    room.sim.run(seconds=1.0)
    assert room.machine.mode == "retreating"
    assert room.seen[-1].base_x_m < stood.base_x_m - 0.005
    assert room.seen[-1].position[GRIPPER] == pytest.approx(open_m, abs=0.002), "it stays open on the way back"


def test_a_gripper_that_does_not_open_is_an_operators_to_judge() -> None:
    room = Room()
    state = room.seen[-1]
    let_go(room)
    with pytest.MonkeyPatch.context() as patch:
        jammed = room.robot.read
        patch.setattr(room.robot, "read", lambda now_ns: _closed(jammed(now_ns), state.position[GRIPPER]))
        room.sim.run(seconds=2.5)
        now_ns = room.sim.clock.now_ns()
        on = Interrupt(id="r", depth="resume", text="go on", by="Ann", cause="person", person="Ann")
        refusal = room.machine.interrupt(on, now_ns, now_ns)
        assert refusal is not None
        assert refusal.code == "caught"
        room.go_on()
        room.sim.run(seconds=0.1)
        assert room.machine.mode == "retreating"


def _closed(state: RobotState, gripper_m: float) -> RobotState:
    position = (*state.position[:GRIPPER], gripper_m, *state.position[GRIPPER + 1 :])
    return msgspec.structs.replace(state, position=position)  # type: ignore[type-var]  # a Struct


def test_an_ordinary_stop_and_one_that_no_ears_have_heard_keep_the_grip() -> None:
    room = Room()
    closed_m = room.seen[-1].position[GRIPPER]
    let_go(room, source="planner")
    room.sim.run(seconds=1.5)
    assert room.mode == "stopped"
    assert room.seen[-1].position[GRIPPER] == pytest.approx(closed_m, abs=0.002)


def test_words_that_nobody_understood_hold_it_on_the_way_back_and_end_nothing() -> None:
    room = Room()
    room.bump()
    room.robot.touch()
    room.goes_back()
    room.sim.publish("interrupt", Interrupt(id="h", depth="hold", text="hmpf", by="Ann", hold_s=1.2))
    room.sim.run(seconds=0.6)
    assert room.seen[-1].base_v_mps == pytest.approx(0.0, abs=0.001)
    room.sim.run(seconds=1.2)
    assert room.machine.mode == "retreating"
    assert room.seen[-1].base_v_mps < -0.01


@pytest.mark.parametrize("hold_s", [float("nan"), float("inf"), -1.0, 1e300])
def test_a_soft_hold_of_no_sensible_length_is_at_most_as_long_as_any(hold_s: float) -> None:
    room = Room()
    room.sim.publish("interrupt", Interrupt(id="h", depth="hold", text="hmpf", by="Ann", hold_s=hold_s))
    room.sim.run(seconds=1.6)
    assert room.mode == "moving"


def test_names_and_causes_of_a_megabyte_are_neither_told_nor_latched_whole() -> None:
    room = Room()
    much = "x" * 1_000_000
    room.sim.publish("interrupt", Interrupt(id=much, depth="stop", text=much, by=much))
    room.sim.run(seconds=0.1)
    told = room.guard[-1]
    assert (told.mode, set(room.machine.latch.stoppers.values())) == ("stopped", {much[:LONGEST_NAME]})
    assert len(told.reason) + len(told.stop_cause) + len(told.stopped_by) < 5 * LONGEST_TEXT
    room.sim.publish("estop", EStop(source=much, is_pressed=True, why=much))
    room.sim.run(seconds=0.1)
    assert room.guard[-1].estop == f"{much[:LONGEST_NAME]}: {much[:LONGEST_TEXT]}"
    room.sim.publish("guard/order", order(TOKEN, "rearm", "Ann", room.sim.clock.now_ns()))
    room.sim.run(seconds=0.1)
    assert room.guard[-1].estop, "it is still pressed"
    room.sim.publish("estop", EStop(source=much, is_pressed=False))
    room.sim.publish("guard/order", order(TOKEN, "rearm", "Ann", room.sim.clock.now_ns()))
    room.sim.run(seconds=0.1)
    assert not room.guard[-1].estop
