"""What the guard refuses it refuses by a code for programs and in words for people, each for one reason."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from nodes.guard.arbitration import Arbitration, SeatConfig
from nodes.guard.commanded_body import SERVICE_STARTS_NS
from nodes.guard.node import Guard
from nodes.guard.state_machine import GuardMachine
from nodes.guard.stop_latch import GO_ON_NS, Refusal
from nodes.msgs import EStop, GuardAnswer, Interrupt, RobotService, RobotStatus, SeatRequest
from nodes.msgs.signature import Signatures, order, request, service
from nodes.stretch.limits import STRETCH_3
from runtime import Simulation
from runtime.clock import to_ns
from runtime.launch.graph import NodeSpec
from tests.support.guard.guard_driven import MS, Story, interrupt
from tests.support.robots.still_robot import StillRobot
from tests.support.sentences import sentence
from tests.support.standing import standing

TOKEN = "t"


def pressed(now_ns: int, *, is_runstopped: bool = True, mode: Any = "runstopped") -> RobotStatus:
    return RobotStatus(read_ns=now_ns, mode=mode, is_runstopped=is_runstopped)


def test_a_robot_that_stands_under_no_command_is_let_home_and_while_it_does_not_again() -> None:
    story = Story()
    story.tick()
    assert story.machine.begin_service(story.now_ns) is None
    assert (story.machine.mode, story.machine.reason) == ("disarmed", sentence("guard.robot_homes"))
    busy = Refusal("busy", "the robot homes or stows already")
    assert story.machine.begin_service(story.now_ns + SERVICE_STARTS_NS - 1) == busy
    assert story.machine.begin_service(story.now_ns + to_ns(0.1)) == busy
    story.machine.update_state(standing(story.now_ns + SERVICE_STARTS_NS))
    assert story.machine.begin_service(story.now_ns + SERVICE_STARTS_NS) is None, "it never began"


def test_a_go_on_that_is_refused_is_told_as_something_unexpected() -> None:
    story = Story()
    story.machine.interrupt(interrupt("stop"), story.now_ns, story.now_ns)
    assert story.machine.interrupt(interrupt("resume", by=""), story.now_ns, story.now_ns) is not None
    assert story.machine.refusal
    assert not story.machine.is_refusal_expected


def test_each_reason_not_to_home_has_its_code_and_its_words() -> None:
    story = Story()
    story.drive(5)
    assert story.machine.begin_service(story.now_ns) == Refusal("moving", sentence("guard.robot_is_commanded"))
    story.machine.interrupt(interrupt("replan"), story.now_ns, story.now_ns)
    story.tick()
    assert story.machine.mode == "holding"
    assert story.machine.begin_service(story.now_ns) == Refusal("moving", sentence("guard.robot_is_commanded")), (
        "it brakes"
    )
    for _ in range(100):
        story.tick()
    assert story.machine.begin_service(story.now_ns + to_ns(0.3)) == Refusal(
        "not_ready", sentence("guard.state_is_unknown")
    )
    story.machine.update_status(pressed(story.now_ns))
    assert story.machine.begin_service(story.now_ns) == Refusal("runstopped", sentence("guard.runstop_is_pressed"))
    story.machine.interrupt(interrupt("stop"), story.now_ns, story.now_ns)
    assert story.machine.begin_service(story.now_ns) == Refusal("stopped", sentence("guard.is_stopped"))
    story.machine.estop("button", story.now_ns)
    assert story.machine.begin_service(story.now_ns) == Refusal("estopped", "the guard is estopped")


def test_each_reason_not_to_go_on_has_its_code_and_its_words() -> None:
    story = Story()
    machine = story.machine

    def go_on(by: str = "Ana", heard_ns: int | None = None, **more: Any) -> Refusal | None:
        said = msgspec.structs.replace(interrupt("resume", by), **more)  # type: ignore[type-var]  # a Struct
        return machine.interrupt(said, story.now_ns if heard_ns is None else heard_ns, story.now_ns)

    assert go_on() == Refusal("not_stopped", "nothing is stopped")
    machine.interrupt(interrupt("stop", "Bo", "s1"), story.now_ns, story.now_ns)
    stop_ns = story.now_ns
    story.now_ns += 100 * MS
    assert go_on("contact") == Refusal("not_a_person", sentence("guard.only_a_person_lifts"))
    assert go_on(heard_ns=stop_ns) == Refusal("too_early", sentence("guard.said_before_the_stop"))
    assert go_on(heard_ns=story.now_ns + 6 * MS) == Refusal("in_the_future", sentence("guard.said_in_the_future"))
    assert go_on(takes_back="s0") == Refusal("another_stop", sentence("guard.lifts_another_stop"))
    assert go_on() == Refusal("another_person", sentence("guard.stopped_as_well", who="Bo"))
    story.now_ns += GO_ON_NS
    assert go_on(heard_ns=story.now_ns - GO_ON_NS - 1) == Refusal(
        "too_late", sentence("guard.said_long_ago", seconds="5.0")
    )
    machine.update_status(pressed(story.now_ns))
    assert go_on() == Refusal("runstopped", sentence("guard.runstop_is_pressed"))
    machine.estop("button", story.now_ns)
    assert go_on() == Refusal("estopped", sentence("guard.only_rearming"))
    assert machine.latch.stoppers == {"Bo": "Bo"}


def test_a_soft_hold_is_ended_early_by_its_own_id_alone() -> None:
    story = Story()
    story.drive(5)

    def hold(ident: str = "", takes_back: str = "") -> Interrupt:
        return Interrupt(id=ident, depth="hold", text="hm", by="Ana", takes_back=takes_back, hold_s=1.2)

    story.machine.interrupt(hold("h1"), story.now_ns, story.now_ns)
    assert (story.machine.mode, story.machine.reason) == ("holding", sentence("guard.not_understood", words="hm"))
    for other in ("h0", "h2"):
        story.machine.interrupt(hold(takes_back=other), story.now_ns, story.now_ns)
        story.send(v=0.3)
        story.tick()
        assert story.machine.mode == "holding"
    story.machine.interrupt(hold(takes_back="h1"), story.now_ns, story.now_ns)
    story.send(v=0.3)
    story.tick()
    assert story.machine.mode == "moving"


class Room:
    """A guard in a graph, and what it answers."""

    def __init__(self, **params: Any) -> None:
        self.guard = Guard(**params)
        self.sim = Simulation(StillRobot(), NodeSpec("guard", Guard, instance=self.guard))
        self.answers: list[GuardAnswer] = self.sim.record_topic("guard/answer", GuardAnswer)
        self.sim.run(seconds=0.5)
        self.guard.proofs = Signatures(TOKEN)
        self.guard.arbitration = Arbitration({"policy": SeatConfig(holder="policy")})

    def ask(self, topic: str, message: Any) -> tuple[str, str, str, bool, str, str]:
        """Who asked for what, and how it was answered."""
        self.sim.publish(topic, message, source="me-1")
        self.sim.run(seconds=0.1)
        found = self.answers[-1]
        return found.request, found.do, found.by, found.is_accepted, found.code, found.why

    def order(self, do: Any, token: str = TOKEN) -> tuple[str, str, str, bool, str, str]:
        return self.ask("guard/order", order(token, do, "Ann", self.now_ns))

    @property
    def now_ns(self) -> int:
        return self.sim.clock.now_ns()


@pytest.mark.parametrize("do", ["arm", "rearm", "resume"])
def test_an_order_without_proof_is_answered_as_such(do: Any) -> None:
    room = Room()
    why = sentence("guard.not_proven", what=do, by="Ann")
    assert room.order(do, token="guess")[1:] == (do, "Ann", False, "unsigned", why)


def test_orders_are_answered_with_what_they_asked_for_and_by_whom() -> None:
    room = Room()
    ident = f"Ann-{room.now_ns}"
    assert room.order("arm") == (ident, "arm", "Ann", True, "done", "")
    assert room.order("arm")[3:] == (
        False, "not_ready", sentence("guard.is_armed_already", by="Ann", mode="armed"),
    )  # fmt: skip
    assert room.order("rearm")[3:] == (False, "not_estopped", sentence("guard.nothing_to_rearm", by="Ann"))
    room.sim.publish("estop", EStop(source="button", is_pressed=True))
    room.sim.run(seconds=0.1)
    assert room.order("rearm")[3:] == (False, "pressed", sentence("guard.still_pressed", by="Ann", sources="button"))
    room.sim.publish("estop", EStop(source="button", is_pressed=False))
    room.sim.run(seconds=0.1)
    assert room.order("rearm")[1:] == ("rearm", "Ann", True, "done", "")
    assert room.guard.machine.reason == sentence("guard.rearmed", by="Ann")


def test_services_and_the_runstop_are_answered_with_what_they_asked_for_and_by_whom() -> None:
    room = Room()
    assert room.ask("robot/service", RobotService(id="1", verb="stow", by=""))[:5] == (
        "1", "stow", "", False, "unsigned",
    )  # fmt: skip
    assert room.answers[-1].why == sentence("guard.not_proven", what="stow", by="unknown")
    assert room.ask("robot/service", service(TOKEN, "release", "Ann", room.now_ns))[1:] == (
        "release", "Ann", False, "not_ready", sentence("guard.service_takes", verb="release", by="Ann"),
    )  # fmt: skip
    assert room.ask("robot/service", service(TOKEN, "home", "Ann", room.now_ns))[1:] == (
        "home",
        "Ann",
        True,
        "done",
        "",
    )
    assert room.ask("robot/runstop", service(TOKEN, "home", "Ann", room.now_ns))[1:] == (
        "home", "Ann", False, "not_ready", sentence("guard.runstop_takes", verb="home", by="Ann"),
    )  # fmt: skip
    assert room.ask("robot/runstop", RobotService(id="2", verb="runstop", by="Bo")) == (
        "2", "runstop", "Bo", True, "done", "",
    )  # fmt: skip
    assert room.ask("robot/runstop", RobotService(id="3", verb="release", by="Bo"))[3:] == (
        False, "unsigned", sentence("guard.not_proven", what="release", by="Bo"),
    )  # fmt: skip


def test_wishes_for_a_seat_are_answered_with_what_they_asked_for_and_by_whom() -> None:
    room = Room()
    unsigned = SeatRequest(seat="policy", do="take", holder="me-1", by="Ann", id="1")
    assert room.ask("seat/request", unsigned) == (
        "1", "take", "Ann", False, "unsigned", sentence("guard.not_proven", what="take policy", by="Ann"),
    )  # fmt: skip
    wish = request(TOKEN, "take", "vlm", "me-1", "Ann", room.now_ns)
    assert room.ask("seat/request", wish) == (
        wish.id, "take", "Ann", False, "no_seat", sentence("guard.no_such_seat", seat="vlm"),
    )  # fmt: skip
    wish = request(TOKEN, "take", "policy", "me-1", "Ann", room.now_ns)
    assert room.ask("seat/request", wish) == (wish.id, "take", "Ann", True, "done", "")
    answered = len(room.answers)
    room.ask("seat/request", request(TOKEN, "renew", "policy", "me-1", "Ann", room.now_ns))
    assert len(room.answers) == answered, "a renewal that counts is not answered, ten times a second"


def test_go_on_in_a_persons_name_by_a_node_that_hears_nobody_is_answered_with_its_id() -> None:
    room = Room(arm="auto")
    why = sentence("guard.resume_refused", by="Ana", why=sentence("guard.speaks_not_for_people", source="me-1"))
    assert room.ask("interrupt", Interrupt(id="x", depth="resume", text="go on", by="Ana")) == (
        "x", "resume", "Ana", False, "not_a_person", why,
    )  # fmt: skip


def test_a_machine_without_settings_is_that_of_a_launch_file_without_parameters() -> None:
    assert GuardMachine(STRETCH_3).settings == Guard().machine.settings
