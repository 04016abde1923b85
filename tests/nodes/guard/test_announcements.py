"""What the guard tells others, word by word: stops that it found out itself, refusals, leases, its state file."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest

from nodes.guard.arbitration import Arbitration, SeatConfig
from nodes.guard.estop_signal import EstopSignals
from nodes.guard.feed import WatchdogFeed
from nodes.guard.lasting_faults import CommandedMotion
from nodes.guard.node import MOST_ESTOP_SOURCES, Guard
from nodes.guard.persistence import SavedState, place_of, read
from nodes.guard.watchdog import ECHO
from nodes.msgs import (
    DriverOrder,
    EStop,
    GuardAnswer,
    GuardState,
    Interrupt,
    JointCommand,
    RobotService,
    RobotState,
    SeatRequest,
)
from nodes.msgs.signature import Signatures, order, request, service, token_of
from nodes.stretch.limits import STRETCH_3
from runtime import Node, Publisher, Simulation, every
from runtime.clock import to_ns
from runtime.coordination.fence import Fence
from runtime.coordination.lease import Lease
from runtime.errors import ParameterError
from runtime.launch.graph import NodeSpec
from runtime.launch.tables.seats_table import SeatTable
from runtime.run_facts import RunFacts
from runtime.supervision.registry import account
from tests.support.guard.guard_story import command
from tests.support.robots.still_robot import StillRobot
from tests.support.sentences import sentence
from tests.support.standing import HOME

TOKEN = "t" * 64


class Policy(Node):
    """Drives ahead."""

    seat = "policy"
    command = Publisher(JointCommand, "command")

    @every(hz=20)
    def tick(self) -> None:
        self.command.publish(JointCommand(position=HOME, base_v_mps=0.2))


class Room:
    """A guard in a graph with one seat, and all that it tells."""

    def __init__(self, **params: Any) -> None:
        self.robot, self.guard = StillRobot(), Guard(**{"arm": "auto", **params})
        nodes = (self.robot, NodeSpec("policy", Policy), NodeSpec("guard", Guard, instance=self.guard))
        self.sim = Simulation(*nodes, seats={"policy": SeatTable(holder="policy")})
        self.states: list[GuardState] = self.sim.record_topic("guard/state", GuardState)
        self.interrupts: list[Interrupt] = self.sim.record_topic("interrupt", Interrupt)
        self.fences: list[Fence] = self.sim.record_topic("fence", Fence)
        self.leases: list[Lease] = self.sim.record_topic("lease", Lease)
        self.answers: list[GuardAnswer] = self.sim.record_topic("guard/answer", GuardAnswer)
        self.told_driver: list[DriverOrder] = self.sim.record_topic("driver/service", DriverOrder)
        self.buttons: list[DriverOrder] = self.sim.record_topic("driver/runstop", DriverOrder)
        self.sim.run(seconds=0.5)
        self.guard.proofs = Signatures(TOKEN)

    def run(self, seconds: float) -> GuardState:
        self.sim.run(seconds=seconds)
        return self.states[-1]

    def say(self, topic: str, message: Any, source: str = "me-1") -> GuardState:
        self.sim.publish(topic, message, source=source)
        return self.run(0.1)

    def ask(self, do: str, holder: str = "", by: str = "Ann", token: str = TOKEN) -> GuardState:
        now_ns = self.sim.clock.now_ns()
        asked = request(token, do, "policy", holder, by, now_ns)  # type: ignore[arg-type]
        return self.say("seat/request", asked)

    def order(self, do: str, by: str = "Ann", token: str = TOKEN) -> GuardState:
        return self.say("guard/order", order(token, do, by, self.sim.clock.now_ns()))  # type: ignore[arg-type]

    @property
    def raised(self) -> list[Fence]:
        return [fence for fence in self.fences if fence.depth]


def test_a_contact_is_told_with_an_id_its_words_and_a_fence() -> None:
    room = Room()
    room.robot.contact = ("base",)
    room.run(0.3)
    assert room.interrupts == [
        Interrupt(id="guard-1", depth="stop", text="contact: base", by="contact", cause="contact")
    ]
    assert room.raised == [
        Fence(
            epochs={"planner": 1, "vlm": 1, "policy": 1},
            interrupt_id="guard-1",
            depth="stop",
            text="contact: base",
            by="contact",
        )
    ]
    assert room.states[-1].stop_cause == "guard-1"
    room.robot.contact = ()
    room.say("interrupt", Interrupt(id="r", depth="resume", text="go on", by="Ann"), "test")
    room.run(0.3)
    room.robot.contact = ("lift",)
    room.run(0.3)
    assert [one.id for one in room.interrupts if one.by == "contact"] == ["guard-1", "guard-2"]


def test_a_reflex_that_says_the_same_spares_the_guard_its_own_announcement() -> None:
    room = Room()
    room.robot.contact = ("base",)
    for _ in range(60):
        room.sim.run(seconds=0.001)
        if room.guard.unpublished_fault:
            break
    assert str(room.guard.unpublished_fault) == "contact"
    room.say("interrupt", Interrupt(id="reflex-1", depth="stop", text="contact: base", by="contact"), "reflex")
    assert room.guard.unpublished_fault == ""
    assert [one.id for one in room.interrupts] == ["reflex-1"]
    assert room.states[-1].stop_cause == "reflex-1"


def test_an_emergency_stop_is_told_to_everybody_once() -> None:
    room = Room()
    room.say("estop", EStop(source="button", is_pressed=True, why="toe"))
    room.say("estop", EStop(source="button", is_pressed=True, why="toe"))
    assert room.interrupts == [Interrupt(id="guard-1", depth="stop", text="button: toe", by="estop", cause="guard")]
    said = room.states[-1]
    assert (said.estop, said.reason, said.stop_cause) == (
        "button: toe",
        sentence("guard.emergency_stop", why="button: toe"),
        "guard-1",
    )
    assert said.stopped_by == "estop"
    assert [fence.epochs for fence in room.raised] == [{"planner": 1, "vlm": 1, "policy": 1}]


def test_a_lost_link_is_told_as_such_and_not_on_top_of_another_stop() -> None:
    room = Room()
    room.ask("take", "me-1")
    room.run(1.0)
    assert room.interrupts == [
        Interrupt(id="guard-1", depth="stop", text=sentence("guard.link_to_person_is_lost"), by="link", cause="link")
    ]
    assert room.states[-1].reason == sentence(
        "guard.stopped_by", by="link", why=sentence("guard.link_to_person_is_lost")
    )
    room.ask("take", "me-1")
    room.run(1.0)
    assert len(room.interrupts) == 1, "it is stopped already"
    assert [(one.holder, one.number) for one in room.leases if not one.is_repetition] == [
        ("me-1", 1), ("policy", 2), ("me-1", 3), ("policy", 4),
    ]  # fmt: skip


def test_a_lost_link_during_an_emergency_stop_is_no_news_either() -> None:
    room = Room()
    room.ask("take", "me-1")
    room.say("estop", EStop(source="button", is_pressed=True))
    room.run(1.0)
    assert [one.by for one in room.interrupts] == ["estop"]


def test_a_lease_is_repeated_with_all_that_it_says() -> None:
    room = Room()
    room.ask("take", "me-1")
    lease = next(one for one in room.leases if not one.is_repetition)
    assert (lease.kind, lease.by, lease.displaced, lease.why) == ("person", "Ann", "policy", "taken")
    room.run(0.5)
    again = next(one for one in room.leases if one.is_repetition and one.number == 1)
    assert again == lease.repeated()
    assert again == Lease(
        seat="policy", holder="me-1", number=1, kind="person", by="Ann", displaced="policy", why="taken",
        is_repetition=True,
    )  # fmt: skip


def test_taking_the_policys_seat_holds_the_robot_at_once() -> None:
    room = Room()
    assert room.states[-1].mode == "moving"
    room.sim.publish(
        "seat/request", request(TOKEN, "take", "policy", "me-1", "Ann", room.sim.clock.now_ns()), source="me-1"
    )
    room.sim.run(seconds=0.0001)
    assert room.guard.machine.reason == sentence("guard.handed_over", to="me-1")
    assert room.run(0.2).mode == "holding"


def test_going_on_by_a_signed_order_is_told_with_an_id_its_words_and_a_fence() -> None:
    room = Room()
    room.say("interrupt", Interrupt(id="s", depth="stop", text="Stop!", by="Ann"))
    fences = len(room.raised)
    assert room.order("resume").mode == "moving"
    assert room.interrupts[1:] == [Interrupt(id="guard-1", depth="resume", text="go on", by="Ann", cause="person")]
    assert room.raised[fences:] == [
        Fence(
            epochs={"planner": 1, "vlm": 1, "policy": 1}, interrupt_id="guard-1", depth="resume", text="go on", by="Ann"
        )
    ]


def test_the_driver_is_told_what_to_do_and_who_asked() -> None:
    room = Room(arm="manual")
    now_ns = room.sim.clock.now_ns()
    room.say("robot/service", service(TOKEN, "home", "Ann", now_ns))
    assert room.told_driver == [DriverOrder(verb="home", why="asked for by Ann")]
    room.say("robot/runstop", RobotService(id="1", verb="runstop", by="Bo"))
    room.say("robot/runstop", service(TOKEN, "release", "Ann", room.sim.clock.now_ns()))
    assert room.buttons == [
        DriverOrder(verb="runstop", why="asked for by Bo"), DriverOrder(verb="release", why="asked for by Ann"),
    ]  # fmt: skip


def test_the_driver_is_told_why_it_is_to_press_the_robots_own_button() -> None:
    room = Room(arm="manual")
    room.say("robot/service", service(TOKEN, "home", "Ann", room.sim.clock.now_ns()))
    room.say("interrupt", Interrupt(id="s", depth="stop", text="Ouch!", by="Ann"))
    assert room.buttons[0] == DriverOrder(verb="runstop", why=sentence("guard.stopped_by", by="Ann", why="Ouch!"))
    pushing = Room()
    pushing.robot.effort = 99.0
    pushing.run(6.0)
    assert pushing.buttons[0] == DriverOrder(
        verb="runstop", why=sentence("guard.effort_lasts", percent=95, what="lift")
    )


def test_a_lost_link_to_another_seat_than_the_policys_stops_nothing() -> None:
    room = Room()
    room.guard.arbitration = Arbitration({"policy": SeatConfig(holder="policy"), "vlm": SeatConfig(holder="eyes")})
    now_ns = room.sim.clock.now_ns()
    room.say("seat/request", request(TOKEN, "take", "vlm", "me-1", "Ann", now_ns))
    assert room.run(1.0).mode == "moving"
    assert [(one.seat, one.holder) for one in room.leases if not one.is_repetition] == [
        ("vlm", "me-1"),
        ("vlm", "eyes"),
    ]


def test_epochs_are_told_again_twice_a_second_for_those_who_joined_late() -> None:
    room = Room()
    room.say("interrupt", Interrupt(id="s", depth="stop", text="Ouch!", by="Ann"))
    told = len(room.fences)
    room.run(2.0)
    assert room.fences[told:] == [Fence(epochs={"planner": 1, "vlm": 1, "policy": 1})] * 4


def test_words_that_lift_a_stop_void_what_was_on_its_way_and_words_that_lift_none_do_not() -> None:
    room = Room()

    def go_on(by: str = "Ann") -> list[Fence]:
        known = len(room.raised)
        room.say("interrupt", Interrupt(id="r", depth="resume", text="go on", by=by), "test")
        return room.raised[known:]

    assert go_on() == [], "nothing was stopped"
    room.say("interrupt", Interrupt(id="s", depth="stop", text="Stop!", by="Ann"))
    assert go_on("Bo") == [], "it was not Bo's stop"
    assert [(fence.interrupt_id, fence.depth) for fence in go_on()] == [("r", "resume")]
    room.say("estop", EStop(source="button", is_pressed=True))
    assert go_on() == [], "no word lifts that"


def test_a_soft_hold_voids_nothing_that_is_on_its_way() -> None:
    room = Room()
    said = room.say("interrupt", Interrupt(id="h", depth="hold", text="hm", by="Ann", hold_s=1.0))
    assert said.mode == "holding"
    assert room.raised == []


def test_words_that_lift_no_stop_are_counted_once() -> None:
    room = Room()
    room.guard.lifters = frozenset({"test"})
    room.say("interrupt", Interrupt(id="s", depth="stop", text="Stop!", by="Ann"))
    for source in ("test", "me-1"):  # refused by whose stop it is, and by who says so
        before = room.guard.machine.rejected
        room.sim.publish("interrupt", Interrupt(id="r", depth="resume", text="go on", by="Bo"), source=source)
        room.sim.run(seconds=0.0001)
        assert room.guard.machine.rejected == before + 1


def test_who_asks_without_a_message_is_the_one_who_is_named() -> None:
    room = Room()
    room.ask("take", "me-1")
    answered = len(room.answers)
    now_ns = room.sim.clock.now_ns()
    room.guard.seated(request(TOKEN, "renew", "policy", "me-1", "Ann", now_ns))
    room.guard.seated(request(TOKEN, "renew", "policy", "me-2", "Ann", now_ns))
    room.run(0.1)
    assert [answer.why for answer in room.answers[answered:]] == [
        sentence("guard.holds_not_the_seat", who="me-2", seat="policy")
    ]


def test_epochs_and_leases_are_told_at_the_very_first_tick() -> None:
    guard = NodeSpec("guard", Guard)
    sim = Simulation(StillRobot(), guard, NodeSpec("policy", Policy), seats={"policy": SeatTable(holder="policy")})
    fences, leases = sim.record_topic("fence", Fence), sim.record_topic("lease", Lease)
    sim.run(seconds=0.02)
    assert fences == [Fence(epochs={})]
    assert [(lease.seat, lease.holder, lease.is_repetition) for lease in leases] == [("policy", "policy", True)]


def test_a_stop_is_taken_back_by_its_id_however_long_that_is() -> None:
    room = Room()
    ident = "s" * 5000
    room.say("interrupt", Interrupt(id=ident, depth="stop", text="ah", by="Ann"))
    room.say("interrupt", Interrupt(id="r", depth="resume", text="okay", by="Ann", takes_back=ident), "test")
    assert room.states[-1].mode == "moving"


def test_each_refusal_is_counted_and_says_why() -> None:
    room = Room()
    before = room.states[-1].rejected
    asks: tuple[tuple[Callable[[], GuardState], str], ...] = (
        (lambda: room.ask("take", "me-1", token="wrong"), "take policy by 'Ann' is not proven"),
        (lambda: room.order("rearm"), sentence("guard.nothing_to_rearm", by="Ann")),
        (lambda: room.order("arm", token="x"), sentence("guard.not_proven", what="arm", by="Ann")),
        (lambda: room.order("arm", by="", token="x"), sentence("guard.not_proven", what="arm", by="unknown")),
        (lambda: room.order("arm"), sentence("guard.is_armed_already", by="Ann", mode="moving")),
    )
    for number, (ask, words) in enumerate(asks, 1):
        assert ask().rejected == before + number
        assert room.guard.machine.refusal.startswith(words)
    room.say("estop", EStop(source="b", is_pressed=True))
    room.say("estop", EStop(source="a", is_pressed=True))
    room.sim.publish("guard/order", order(TOKEN, "rearm", "Ann", room.sim.clock.now_ns()))
    room.sim.run(seconds=0.0001)
    assert room.guard.machine.refusal == sentence("guard.still_pressed", by="Ann", sources="a, b")


def test_a_ladder_that_is_not_in_the_launch_file_hands_nothing_over() -> None:
    room = Room()
    room.say("seat/request", SeatRequest(seat="policy", do="take", holder="policy", kind="script", by="ladder"))
    assert room.guard.arbitration.leases["policy"].number == 0
    assert "is not proven" in room.guard.machine.refusal


def test_a_command_of_somebody_who_no_longer_holds_the_seat_is_not_even_forwarded() -> None:
    room = Room()
    room.ask("take", "me-1")
    rejected = room.states[-1].rejected
    assert room.run(0.3).rejected == rejected


def test_pressed_sources_do_not_fill_the_memory() -> None:
    room = Room()
    for number in range(MOST_ESTOP_SOURCES + 3):
        room.sim.publish("estop", EStop(source=f"b{number}", is_pressed=True))
    room.run(0.1)
    assert len(room.guard.pressed) == MOST_ESTOP_SOURCES + 1, "one stands for all others"


def test_a_source_counts_as_silent_after_exactly_its_time() -> None:
    guard = Guard(estop_sources=("pendant",), estop_silence_s=0.3)
    guard.heard_ns = {"pendant": 0}
    guard.check_estop_heartbeats(to_ns(0.3))
    assert guard.pressed == set()
    assert guard.machine.mode == "disarmed"
    guard.check_estop_heartbeats(to_ns(0.3) + 1)
    assert guard.machine.latch.estop == sentence("guard.source_is_silent", source="pendant", seconds=0.3)


def started(folder: Path, memory: str = "run") -> Guard:
    guard = Guard(arm="auto", memory=memory)  # type: ignore[arg-type]
    guard.run_info = RunFacts.of({"registry": str(folder), "launch_file": "x/robot.toml"})
    guard.on_start()
    return guard


def test_what_is_latched_stands_in_the_state_file_as_it_is(tmp_path: Path) -> None:
    guard = started(tmp_path)
    assert guard.proofs.token == token_of(tmp_path)
    assert guard.state_file is not None
    path = guard.state_file.path
    guard.interrupted(Interrupt(id="i", depth="stop", text="Ouch!", by="Ana"))
    assert read(path) == SavedState(
        epochs={"planner": 1, "vlm": 1, "policy": 1},
        stop=sentence("guard.stopped_by", by="Ana", why="Ouch!"),
        locks={"/Ana": "Ana"},
    )
    guard.emergency(EStop(source="button", is_pressed=True))
    found = read(path)
    assert found is not None
    assert (found.stop, found.estop) == (sentence("guard.emergency_stop", why="button: pressed"), "button: pressed")
    assert found.epochs == {"planner": 2, "vlm": 2, "policy": 2}
    assert started(tmp_path).machine.mode == "estopped"


def test_who_sits_where_stands_in_the_saved_state(tmp_path: Path) -> None:
    guard = started(tmp_path)
    lease = Lease(seat="policy", holder="console", number=7, kind="person", by="Ana")
    guard.arbitration.leases = {**guard.arbitration.leases, "policy": lease}
    guard.emergency(EStop(source="button", is_pressed=True))
    found = read(tmp_path / "guard.json")
    assert found is not None
    assert found.leases["policy"] == lease


class Pressed:
    """A signal of this account's that has come once."""

    def __init__(self) -> None:
        self.waiting, self.answered, self.is_closed = [(123, os.getuid())], list[int](), False

    def take(self) -> list[tuple[int, int]]:
        taken, self.waiting = self.waiting, []
        return taken

    def answer(self, pid: int) -> None:
        self.answered.append(pid)

    def close(self) -> None:
        self.is_closed = True


def test_a_press_by_signal_names_the_account_and_is_answered_once_the_robot_brakes() -> None:
    room = Room()
    pressed = Pressed()
    room.guard.estop_signals = cast(EstopSignals, pressed)
    room.run(0.1)
    assert room.guard.machine.latch.estop == sentence("guard.pressed_at_terminal", account=account(os.getuid()))
    assert pressed.answered == [123]
    assert room.order("rearm").estop, "it is still pressed"
    room.say("estop", EStop(source="terminal", is_pressed=False))
    assert not room.order("rearm").estop
    room.guard.on_stop()
    assert pressed.is_closed
    Guard().on_stop()  # without signals there is nothing to close
    Guard().settle()  # and before a start nothing that could be gone


class Watching:
    """A watchdog that answers until a test says otherwise, and what it was told when."""

    def __init__(self) -> None:
        self.modes, self.at_ns, self.ended_ns, self.answers = list[str](), list[int](), list[int](), True
        self.asked: CommandedMotion | None = None
        self.state: RobotState | None = None

    def tell(self, mode: str, asked: CommandedMotion, state: RobotState | None, now_ns: int) -> bool:
        self.asked, self.state = asked, state
        self.modes.append(mode)
        self.at_ns.append(now_ns)
        return self.answers

    def close(self, now_ns: int) -> None:
        self.ended_ns.append(now_ns)


def test_the_watchdog_is_told_at_every_second_tick_what_is_asked_and_measured_and_that_the_guard_ends() -> None:
    room, its = Room(), Watching()
    room.guard.watchdog = cast(WatchdogFeed, its)
    room.run(1.0)
    assert set(its.modes) == {"moving"}
    assert {after - before for before, after in pairwise(its.at_ns)} == {to_ns(0.04)}
    assert its.asked is not None
    assert [joint.position for joint in its.asked.joints] == pytest.approx(HOME)
    assert its.asked.base_v_mps == pytest.approx(0.2, abs=0.001)
    assert its.state is not None
    assert 0 <= its.at_ns[-1] - its.state.read_ns <= to_ns(0.02)
    room.guard.on_stop()
    assert its.ended_ns == [room.sim.clock.now_ns()]


def test_a_watchdog_that_does_not_answer_is_a_stop_of_the_guards_that_is_told_once() -> None:
    room, its = Room(), Watching()
    room.guard.watchdog, its.answers = cast(WatchdogFeed, its), False
    said, text = room.run(0.5), sentence("guard.watchdog_is_silent")
    assert room.interrupts == [Interrupt(id="guard-1", depth="stop", text=text, by="guard", cause="guard")]
    assert (said.mode, said.reason) == ("stopped", sentence("guard.stopped_by", by="guard", why=text))
    assert its.at_ns[0] <= said.held_ns < its.at_ns[0] + to_ns(0.001), "before the next tick"


@pytest.mark.parametrize("has_watchdog", [True, False])
def test_a_run_with_a_watchdog_has_time_from_its_start_until_that_must_answer(
    tmp_path: Path, has_watchdog: bool
) -> None:
    guard = Guard(memory="run")
    programs = ("watchdog",) if has_watchdog else ("another",)
    guard.run_info = RunFacts.of({"registry": str(tmp_path), "launch_file": "x/robot.toml", "programs": programs})
    guard.on_start()
    assert (guard.watchdog is not None) is (tmp_path / ECHO).exists() is has_watchdog
    if guard.watchdog is not None:
        assert guard.watchdog.tell("disarmed", CommandedMotion((), 0.0, 0.0), None, guard.clock.now_ns())
    guard.on_stop()


def test_a_guard_whose_state_file_cannot_be_read_says_that_it_does_not_know_and_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "guard.json"
    path.write_text("{")
    guard = started(tmp_path)
    assert guard.machine.reason == sentence("guard.stopped_by", by="guard", why=sentence("guard.latch_is_unknown"))
    (told,) = [record.message for record in caplog.records if record.levelname == "ERROR"]
    assert told.startswith(f"{path}: {path} {sentence('guard.file_is_damaged', why='Input data was truncated')}")
    assert told.endswith(f"; {sentence('guard.starts_stopped')}")


def test_a_guard_whose_state_file_is_gone_in_mid_run_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    started(tmp_path)
    (tmp_path / "guard.json").unlink()
    started(tmp_path)
    told = [record.message for record in caplog.records if record.levelname == "ERROR"]
    assert told == [f"{tmp_path / 'guard.json'}: {sentence('guard.file_is_gone')}; {sentence('guard.starts_stopped')}"]


def test_a_guard_without_a_place_for_its_state_file_goes_on_without() -> None:
    guard = Guard()
    guard.on_start()
    assert guard.state_file is None
    assert guard.proofs.token == ""
    guard.emergency(EStop(source="button", is_pressed=True))
    assert guard.machine.mode == "estopped"


def test_a_state_file_has_its_own_folder_in_the_home_where_no_other_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / ".local" / "state" / "polyrhythm" / "robots" / "stretch_3" / "guard.json"
    assert place_of("machine", "stretch_3", RunFacts.of({"registry": str(tmp_path)})) == path
    guard = started(tmp_path, "machine")
    guard.emergency(EStop(source="button", is_pressed=True))
    assert path.is_file()
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert place_of("machine", "stretch_3", RunFacts.of({"launch_file": "x"})) is None


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"memory": "disk"}, sentence("guard.wrong_memory", value="disk")),
        ({"arm": "x"}, "guard: " + sentence("guard.wrong_arm", value="x")),
        ({"max_effort_percent": 0.0}, sentence("guard.wrong_effort", value="0.0")),
        ({"max_effort_percent": 100.1}, sentence("guard.wrong_effort", value=100.1)),
        ({"estop_silence_s": 0.0}, sentence("guard.wrong_seconds", name="estop_silence_s", value="0.0")),
        ({"max_image_age_s": float("inf")}, sentence("guard.wrong_seconds", name="max_image_age_s", value="inf")),
        ({"max_plan_age_s": 0.0}, sentence("guard.wrong_seconds", name="max_plan_age_s", value="0.0")),
        ({"max_utterance_age_s": -1.0}, sentence("guard.wrong_seconds", name="max_utterance_age_s", value="-1.0")),
        ({"max_image_age_s": 60.5}, sentence("guard.no_limit", name="max_image_age_s", value=60.5, most_s=60)),
        ({"estop_silence_s": 10.5}, sentence("guard.no_limit", name="estop_silence_s", value=10.5, most_s=10)),
        ({"lifespan_s": 0.0}, sentence("guard.wrong_lifespan", value="0.0", most_s=0.5)),
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused_in_words(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ParameterError) as refused:
        Guard(**wrong)
    assert str(refused.value) == words


def test_parameters_reach_the_machine() -> None:
    assert Guard(max_effort_percent=0.5).machine.settings.max_effort_percent == 0.5
    guard = Guard(max_effort_percent=100.0, estop_silence_s=0.25, estop_sources=("a", "b"), speed_scale=0.5)
    assert guard.machine.settings.max_effort_percent == 100.0
    assert guard.estop_silence_ns == to_ns(0.25)
    assert guard.estop_sources == ("a", "b")
    assert guard.machine.limits.joints[0].speed == STRETCH_3.joints[0].speed * 0.5
    guard.on_start()
    assert guard.heard_ns.keys() == {"a", "b"}


def test_what_a_launch_file_does_not_say_is_on_the_safe_side() -> None:
    guard = Guard()
    assert (guard.arm, guard.memory, guard.estop_sources) == ("manual", "machine", ())
    assert guard.estop_silence_ns == to_ns(0.5)
    assert guard.machine.settings.lifespan_s == guard.command.qos.lifespan_s == 0.150
    assert (guard.machine.settings.max_image_age_s, guard.machine.settings.max_effort_percent) == (1.0, 95.0)
    assert guard.machine.limits == STRETCH_3
    assert (guard.ticks, guard.pressed, guard.heard_ns, guard.unpublished_fault, guard.reported) == (
        0,
        set(),
        {},
        "",
        None,
    )
    assert (guard.run, guard.armed_in, guard.disk_problem, guard.gone, guard.logged_refusal) == ("",) * 5


def test_a_restarted_guard_writes_nothing_that_stands_there_already(tmp_path: Path) -> None:
    first = started(tmp_path)
    first.emergency(EStop(source="button", is_pressed=True))
    path = tmp_path / "guard.json"
    known = read(path)
    assert known is not None
    second = started(tmp_path)
    assert second.state_file is not None
    path.unlink()
    second.state_file.note(known)
    assert not path.exists()


def test_what_somebody_else_said_before_a_hand_over_is_not_forwarded_to_the_machine() -> None:
    guard = Guard()
    guard.arbitration = Arbitration({"policy": SeatConfig(holder="other")})
    guard.forward(command("policy", 1, guard.clock.now_ns()))
    assert guard.machine.rejected == 0
    mine = command("other", 1, guard.clock.now_ns())
    for _ in range(2):
        guard.forward(mine)
        assert guard.machine.rejected == 1, "it is looked at once"
    guard.forward(command("other", 2, guard.clock.now_ns()))
    assert guard.machine.rejected == 2


def test_a_run_whose_files_are_deleted_says_so_once_and_stops(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    here, never = tmp_path / "here.sock", tmp_path / "never.sock"
    here.touch()
    room = Room()
    room.guard.run_info = RunFacts.of({"registry": str(tmp_path), "needed_files": (str(never), str(here))})
    room.guard.memory = "run"
    room.guard.on_start()
    room.guard.settle()
    assert room.run(0.1).mode == "moving"
    here.unlink()
    for _ in range(2):
        room.guard.settle()
    gone = sentence("guard.socket_is_gone", file="here.sock", folder=tmp_path)
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == [gone]
    assert room.run(0.1).reason == sentence("guard.stopped_by", by="link", why=gone)
    assert room.interrupts == [Interrupt(id="guard-1", depth="stop", text=gone, by="link", cause="link")]
