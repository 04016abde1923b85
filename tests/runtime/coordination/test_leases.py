"""Seats: who holds one is heard, everybody else is a shadow; the guard alone hands over, and the robot never jumps."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from nodes.guard.arbitration import Arbitration, SeatConfig
from nodes.guard.node import Guard
from nodes.msgs import Comparison, GuardState, Interrupt, JointCommand, SeatRequest
from nodes.msgs.interrupt import PREEMPTS
from nodes.msgs.signature import Signatures, request
from nodes.seats.compare import ShadowCompare
from nodes.stretch.limits import STRETCH_3
from runtime import Node, Publisher, Simulation, every
from runtime.coordination.lease import Lease, SeatHolders
from runtime.errors import GraphError
from runtime.launch.graph import NodeSpec
from runtime.launch.tables.seats_table import SeatTable
from runtime.message import Envelope
from tests.support.robots.still_robot import StillRobot
from tests.support.sentences import pattern, sentence
from tests.support.standing import HOME

SEATS = PREEMPTS["stop"]

TOKEN = "t" * 64
SECOND = 1_000_000_000


class Drive(Node):
    """A policy that always wants the same."""

    seat = "policy"
    provenance = "model:drive-1"
    command = Publisher(JointCommand, "command")

    def __init__(self, v_mps: float = 0.3, lift_m: float = 1.0) -> None:
        self.wish = JointCommand(position=(lift_m, *HOME[1:]), base_v_mps=v_mps)

    @every(hz=20)
    def tick(self) -> None:
        self.command.publish(self.wish)


class Room:
    """A guard, two candidates for the policy seat, and what came of them."""

    def __init__(self, shadows: tuple[str, ...] = ("second",)) -> None:
        self.guard = Guard(arm="auto")
        nodes: list[NodeSpec | Node] = [
            NodeSpec("first", Drive, params={"v_mps": 0.3, "lift_m": 1.0}),
            NodeSpec("guard", Guard, instance=self.guard),
            StillRobot(),
            ShadowCompare(),
        ]
        nodes += [NodeSpec(name, Drive, params={"v_mps": -0.3, "lift_m": 0.1}) for name in shadows]
        self.sim = Simulation(*nodes, seats={"policy": SeatTable(holder="first", shadows=shadows)})
        self.commands: list[JointCommand] = self.sim.record_topic("robot/command", JointCommand)
        self.leases: list[Lease] = self.sim.record_topic("lease", Lease)
        self.states: list[GuardState] = self.sim.record_topic("guard/state", GuardState)
        self.comparisons: list[Comparison] = self.sim.record_topic("seat/comparison", Comparison)
        self.sim.run(seconds=0.1)
        self.guard.proofs = Signatures(TOKEN)

    def ask(self, do: str, holder: str = "", *, token: str = TOKEN, source: str = "me-1") -> None:
        now_ns = self.sim.clock.now_ns()
        asked = request(token, do, "policy", holder, "Ann", now_ns)  # type: ignore[arg-type]
        self.sim.publish("seat/request", asked, source=source)

    def renew(self, *, token: str = TOKEN, source: str = "me-1") -> SeatRequest:
        asked = request(token, "renew", "policy", source, "Ann", self.sim.clock.now_ns())
        self.sim.publish("seat/request", asked, source=source)
        return asked

    def send_for(self, seconds: float, wish: JointCommand, *, source: str = "me-1", renews: bool = True) -> None:
        for _ in range(round(seconds / 0.05)):
            if renews:
                self.renew(source=source)
            self.sim.publish("command", wish, source=source)
            self.sim.run(seconds=0.05)

    @property
    def handed_over(self) -> list[tuple[str, int]]:
        return [(lease.holder, lease.number) for lease in self.leases if not lease.is_repetition]


def test_only_the_holder_is_heard_and_the_shadow_is_counted() -> None:
    room = Room()
    room.sim.run(seconds=1.0)
    assert room.commands[-1].base_v_mps == pytest.approx(0.2, abs=0.11)
    assert room.guard.command.dropped["shadow"] >= 15
    assert room.states[-1].holder == "first"


def test_taking_a_seat_hands_over_at_once_and_giving_it_back_too() -> None:
    room = Room()
    room.sim.run(seconds=0.5)
    room.ask("take", "second")
    room.sim.run(seconds=0.3)
    assert room.states[-1].holder == "second"
    room.ask("give")
    room.sim.run(seconds=0.3)
    assert room.states[-1].holder == "first"
    assert room.handed_over == [("second", 1), ("first", 2)]
    assert room.leases[-1].kind == "model"


def test_a_hand_over_is_without_a_jump_on_every_tick() -> None:
    """From full speed ahead with the lift going up, to full speed back with it going down, and back, ten times."""
    room = Room()
    for number in range(10):
        room.sim.run(seconds=0.7 + 0.013 * number)
        room.ask("take" if number % 2 == 0 else "give", "second" if number % 2 == 0 else "")
    room.sim.run(seconds=1.0)
    assert len(room.handed_over) == 10
    base = STRETCH_3.base
    dt_s = 0.02
    assert len(room.commands) > 350
    for before, after in pairwise(room.commands):
        assert abs(after.base_v_mps - before.base_v_mps) <= base.acceleration_mps2 * dt_s + 1e-9
    for place, limit in enumerate(STRETCH_3.joints):
        positions = [command.position[place] for command in room.commands]
        speeds = [(two - one) / dt_s for one, two in pairwise(positions)]
        changes = [abs(two - one) for one, two in pairwise(speeds)]
        assert max(changes) <= limit.acceleration * dt_s + 1e-6, limit.name


def test_a_person_who_holds_the_seat_and_sends_nothing_holds_the_robot() -> None:
    room = Room()
    room.sim.run(seconds=1.0)
    room.ask("take", "me-1")
    for _ in range(20):
        room.renew()
        room.sim.run(seconds=0.1)
    assert room.states[-1].mode == "holding"
    assert room.commands[-1].base_v_mps == 0.0
    assert room.handed_over == [("me-1", 1)]
    assert {one.measure for one in room.comparisons if one.shadow == "first"} >= {"holder_is_silent"}


def test_a_person_drives_and_the_model_goes_on_in_shadow() -> None:
    room = Room()
    room.ask("take", "me-1")
    room.send_for(1.5, JointCommand(position=HOME, base_v_mps=0.1))
    assert room.commands[-1].base_v_mps == pytest.approx(0.1)
    assert room.states[-1].holder == "me-1"
    against = [one for one in room.comparisons if one.shadow == "first" and one.measure == "base_mps"]
    assert against[-1].distance == pytest.approx(0.2)


def test_a_lost_link_holds_the_robot_within_300_ms_and_then_stops_it_until_a_person_says_go_on() -> None:
    room = Room()
    room.ask("take", "me-1")
    room.send_for(1.0, JointCommand(position=HOME, base_v_mps=0.1))
    lost_ns = room.sim.clock.now_ns()
    room.sim.run(seconds=2.0)
    held = [state.held_ns for state in room.states if state.held_ns > lost_ns - SECOND // 10]
    assert held[0] - lost_ns <= 0.3 * SECOND
    assert room.handed_over[-1] == ("first", 2)
    assert (room.states[-1].mode, room.commands[-1].base_v_mps) == ("stopped", 0.0)
    room.sim.publish("interrupt", Interrupt(id="r", depth="resume", text="go on", by="Ann"))
    room.sim.run(seconds=1.0)
    assert room.states[-1].mode == "moving"


def test_who_cannot_prove_to_be_a_person_of_this_run_gets_no_seat() -> None:
    room = Room()
    room.ask("take", "second", token="wrong")
    room.sim.run(seconds=0.3)
    assert room.handed_over == []
    assert "not proven" in room.guard.machine.refusal


def test_a_renewal_that_is_not_signed_or_is_sent_again_does_not_keep_a_seat() -> None:
    room = Room()
    room.ask("take", "me-1")
    room.sim.run(seconds=0.2)
    good = room.renew()
    for _ in range(8):
        room.sim.run(seconds=0.1)
        room.sim.publish("seat/request", good, source="me-1")
        room.renew(token="wrong")
        room.renew(token="")
    assert room.handed_over == [("me-1", 1), ("first", 2)]
    assert room.leases[-1].why == sentence("runtime.link_to_holder_is_lost")


def test_a_renewal_is_worth_what_its_stamp_says_however_late_it_comes() -> None:
    room = Room()
    room.ask("take", "me-1")
    late = request(TOKEN, "renew", "policy", "me-1", "Ann", room.sim.clock.now_ns() + 50_000_000)
    room.sim.run(seconds=0.55)
    room.sim.publish("seat/request", late, source="me-1")
    room.sim.run(seconds=0.2)
    assert room.handed_over == [("me-1", 1), ("first", 2)]


def test_a_request_that_is_sent_again_does_nothing() -> None:
    room = Room()
    asked = request(TOKEN, "take", "policy", "second", "Ann", room.sim.clock.now_ns())
    for _ in range(3):
        room.sim.publish("seat/request", asked)
        room.sim.run(seconds=0.1)
    room.ask("give")
    room.sim.run(seconds=0.1)
    room.sim.publish("seat/request", asked)
    room.sim.run(seconds=0.1)
    assert room.handed_over == [("second", 1), ("first", 2)]


def test_a_node_that_is_no_candidate_cannot_be_seated() -> None:
    room = Room()
    room.ask("take", "stillrobot")
    room.sim.run(seconds=0.2)
    assert "is no candidate" in room.guard.machine.refusal


def test_two_publishers_of_a_state_need_a_seat_between_them() -> None:
    with pytest.raises(GraphError, match=pattern("runtime.two_publishers")):
        Simulation(NodeSpec("first", Drive), NodeSpec("second", Drive))


def test_leases_never_go_back() -> None:
    line = SeatHolders({"policy": "a"}, {"command": "policy"})
    spoken = Envelope("command", "b", 1, 0, seat="policy")
    assert line.is_shadow(spoken)
    line.take(Lease(seat="policy", holder="b", number=2))
    line.take(Lease(seat="policy", holder="a", number=1))
    assert not line.is_shadow(spoken)
    assert line.is_shadow(Envelope("command", "tool", 1, 0))  # on no seat, but the topic is the seat's
    assert not line.is_shadow(Envelope("heard", "tool", 1, 0))


def test_lease_numbers_grow_over_restarts() -> None:
    first = Arbitration({seat: SeatConfig(holder=seat, shadows=("other",)) for seat in SEATS})
    asked: Any = SeatRequest(seat="policy", do="take", holder="other")
    taken = first.decide(asked, "me", 0, is_proven=True)
    assert isinstance(taken, Lease)
    second = Arbitration({seat: SeatConfig(holder=seat, shadows=("other",)) for seat in SEATS})
    second.restore({"vlm": 2}, {"policy": taken}, 0)
    given = second.decide(SeatRequest(seat="policy", do="give"), "me", 0, is_proven=True)
    assert isinstance(given, Lease)
    assert (taken.number, given.number, second.epochs) == (1, 2, {"vlm": 2})


def test_a_repeated_lease_is_the_same_but_for_the_mark() -> None:
    lease = Lease(seat="vlm", holder="me-1", number=7, kind="person", by="Ann", displaced="vlm", why="taken")
    assert lease.repeated() == Lease(
        seat="vlm", holder="me-1", number=7, kind="person", by="Ann", displaced="vlm", why="taken", is_repetition=True
    )


@pytest.mark.parametrize("seat", SEATS)
def test_a_line_takes_the_newest_lease_of_each_seat_from_the_first_on(seat: str) -> None:
    line, place = SeatHolders({seat: "home"}, {"free": seat, "lost": "no seat"}), seat

    def is_shadow(source: str, *, place: str = place, topic: str = "t") -> bool:
        return line.is_shadow(Envelope(topic, source, 1, 1, seat=place))

    assert not is_shadow("home")
    assert is_shadow("guest")
    assert is_shadow("guest", place="", topic="free")
    assert not is_shadow("guest", place="", topic="lost")
    assert not is_shadow("guest", place="")
    assert not is_shadow("guest", place=next(other for other in SEATS if other != seat)), (
        "a seat without a lease is anybody's"
    )
    line.take(Lease(seat=seat, holder="zero", number=0))
    assert not is_shadow("zero")
    line.take(Lease(seat=seat, holder="one", number=1))
    line.take(Lease(seat=seat, holder="uno", number=1))
    assert not is_shadow("uno")
    line.take(Lease(seat=seat, holder="late", number=0))
    assert not is_shadow("uno")
    assert is_shadow("late")
