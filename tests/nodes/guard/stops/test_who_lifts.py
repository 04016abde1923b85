"""Who lifts a stop is an allow-list: a person whom ears have heard, and one who signs. Nobody else, by any name."""

from __future__ import annotations

from typing import Any

import pytest

from nodes.guard.node import Guard
from nodes.guard.state_machine import GuardMachine
from nodes.interrupts.reflex import AGAIN, REFUSALS, Reflex
from nodes.msgs import (
    EStop,
    GuardAnswer,
    GuardState,
    HeldOrder,
    Interrupt,
    JointCommand,
    RobotService,
    RobotState,
    RobotStatus,
    Utterance,
)
from nodes.msgs.signature import Signatures, order, service
from nodes.robot.driver import Driver
from nodes.stretch.limits import STRETCH_3
from runtime import Node, Publisher, Simulation, every
from runtime.launch.graph import NodeSpec
from runtime.launch.tables.seats_table import SeatTable, topics_of
from tests.support.guard.guard_driven import FAR
from tests.support.sentences import sentence

TOKEN = "t"


class Policy(Node):
    """Wants far away, always."""

    seat = "policy"
    command = Publisher(JointCommand, "command")

    @every(hz=20)
    def tick(self) -> None:
        self.command.publish(JointCommand(position=FAR, base_v_mps=0.2))


class Deaf(Node):
    """A node that publishes words, or goes on by itself, and hears nobody: a behaviour tree, a bridge."""

    heard = Publisher(Utterance, "heard")
    interrupt = Publisher(Interrupt, "interrupt")

    def __init__(self) -> None:
        self.waiting: list[Any] = []

    @every(hz=100)
    def tick(self) -> None:
        """In a handler that knows of the last stop: what it says is void for no other reason than who it is."""
        for message in self.waiting:
            (self.heard if isinstance(message, Utterance) else self.interrupt).publish(message)
        self.waiting.clear()


class Planner(Deaf):
    """The same on a seat; that it calls itself ears helps it nothing."""

    seat = "planner"
    role = "ears"
    role, believes = "lifter", "ears"


class Microphone(Deaf):
    """A node that hears people."""

    role = "ears"


class Room:
    """A kinematic robot with all that may stop it and all that would like it to go on."""

    def __init__(self, arm: str = "auto", robot: str = "nodes.sim.kinematic:KinematicRobot") -> None:
        self.guard = Guard(arm=arm)  # type: ignore[arg-type]  # from a test's table
        self.sim = Simulation(
            NodeSpec("driver", Driver, params={"robot": robot}),
            NodeSpec("guard", Guard, instance=self.guard),
            *(NodeSpec(name, cls) for name, cls in (
                ("reflex", Reflex), ("policy", Policy), ("microphone", Microphone), ("behaviour_tree", Deaf),
                ("planner", Planner),
            )),
            seats={"policy": SeatTable(holder="policy"), "planner": SeatTable(holder="planner")},
        )  # fmt: skip
        self.states: list[GuardState] = self.sim.record_topic("guard/state", GuardState)
        self.answers: list[GuardAnswer] = self.sim.record_topic("guard/answer", GuardAnswer)
        self.said: list[Utterance] = self.sim.record_topic("said", Utterance)
        self.statuses: list[RobotStatus] = self.sim.record_topic("robot/status", RobotStatus)
        self.run(1.0)
        self.guard.proofs = Signatures(TOKEN)

    def run(self, seconds: float) -> GuardState:
        self.sim.run(seconds=seconds)
        return self.states[-1]

    def hear(self, text: str, source: str = "microphone", speaker: str = "Ana") -> GuardState:
        """Words that this node publishes, as its host stamps them."""
        self.publish(source, Utterance(speaker=speaker, text=text))
        return self.run(0.3)

    def publish(self, source: str, message: Any) -> None:
        node: Any = self.sim.bound_nodes[source].node
        node.waiting.append(message)

    @property
    def mode(self) -> str:
        return self.states[-1].mode

    @property
    def machine_mode(self) -> str:
        """As the guard itself has it, with the way back apart from other motion."""
        return self.guard.machine.mode

    def send(self, topic: str, message: Any) -> GuardAnswer:
        self.sim.publish(topic, message, source="somebody")
        self.run(0.1)
        return self.answers[-1]

    @property
    def now_ns(self) -> int:
        return self.sim.clock.now_ns()


def test_words_of_a_person_whom_ears_have_heard_lift_a_stop() -> None:
    room = Room()
    assert room.hear("Stop!").mode == "stopped"
    assert room.hear("Go on").mode == "moving"
    assert (room.answers[-1].do, room.answers[-1].is_accepted) == ("resume", True)


@pytest.mark.parametrize("source", ["behaviour_tree", "planner"])
def test_words_of_any_other_node_stop_and_never_lift_a_stop(source: str) -> None:
    room = Room()
    assert room.hear("Stop!", source).mode == "stopped"
    assert room.hear("Go on", source).mode == "stopped"
    assert [one.text for one in room.said] == [REFUSALS["not_a_person"]]


@pytest.mark.parametrize("source", ["behaviour_tree", "planner"])
def test_a_node_that_raises_go_on_by_itself_in_the_name_of_a_person_lifts_nothing(source: str) -> None:
    room = Room()
    room.hear("Stop!")
    room.publish(source, Interrupt(id="x", depth="resume", text="go on", by="Ana"))
    assert room.run(0.3).mode == "stopped"
    assert (room.answers[-1].code, room.answers[-1].is_accepted) == ("not_a_person", False)
    assert room.said[-1].text == REFUSALS["not_a_person"]


def test_words_that_were_said_too_long_ago_are_answered_aloud() -> None:
    room = Room()
    room.hear("Stop!")
    room.run(6.0)
    room.publish("microphone", Utterance(speaker="Ana", text="Go on", captured_ns=room.now_ns - 5_500_000_000))
    assert room.run(0.3).mode == "stopped"
    assert (room.answers[-1].code, room.said[-1].text) == ("too_late", REFUSALS["too_late"])


def test_each_person_lifts_what_they_stopped_and_nothing_else() -> None:
    room = Room()
    room.hear("Stop!")
    room.hear("Stop!", speaker="Bob")
    assert "Bob" in room.states[-1].reason
    assert room.hear("Go on").mode == "stopped"
    assert (room.answers[-1].code, room.said[-1].text) == ("another_person", REFUSALS["another_person"])
    assert room.hear("Go on", speaker="Bob").mode == "moving", "Ana has let go already"


def test_who_has_stopped_nothing_lifts_no_other_persons_stop_by_words() -> None:
    room = Room()
    room.hear("Stop!")
    assert room.hear("Go on", speaker="Bob").mode == "stopped"
    assert room.hear("Go on", speaker="many").mode == "stopped"
    assert room.hear("Go on").mode == "moving"


@pytest.mark.parametrize("name", ["unknown", "policy", "contact", "guard", "many", "planner", "effort", ""])
def test_a_person_of_any_name_keeps_the_lock_on_their_own_stop(name: str) -> None:
    room = Room()
    assert room.hear("Stop!", speaker=name).mode == "stopped"
    assert room.hear("Go on", speaker="Bob").mode == "stopped"
    assert room.hear("Go on", speaker=name).mode == "moving"


def test_a_participant_who_calls_herself_ana_lifts_no_stop_of_ana() -> None:
    room = Room()
    room.publish("microphone", Utterance(speaker="Ana", text="Stop!", person="console/1"))
    assert room.run(0.3).mode == "stopped"
    for person in ("console/2", ""):
        room.publish("microphone", Utterance(speaker="Ana", text="Go on", person=person))
        assert room.run(0.3).mode == "stopped"
    room.publish("microphone", Utterance(speaker="Anna", text="Go on", person="console/1"))
    assert room.run(0.3).mode == "moving"


@pytest.mark.parametrize("text", ["Go on.", "Please continue.", "Weiter.", "Go on again."])
def test_the_robots_own_words_lift_nothing_and_are_answered(text: str) -> None:
    room = Room()
    room.hear("Stop!")
    room.sim.publish("said", Utterance(speaker="robot", text=text))
    assert room.hear(text).mode == "stopped"
    assert room.said[-1].text == AGAIN
    room.sim.run(seconds=4.0)
    assert room.hear("Go on").mode == "moving"


def test_ears_whose_speaker_is_the_robot_stop_it_and_lift_nothing() -> None:
    room = Room()
    assert room.hear("Stop!", speaker="robot").mode == "stopped"
    assert room.hear("Go on", speaker="robot").mode == "stopped"
    assert room.hear("Go on").mode == "moving", "nobody has stopped it"


def test_a_tools_word_of_pain_owes_nobody_a_way_back() -> None:
    room = Room()
    room.run(1.0)
    room.publish(
        "behaviour_tree", Interrupt(id="x", depth="stop", text="Ouch", by="Ana", is_pain=True, cause="contact")
    )
    assert room.run(0.3).mode == "stopped"
    room.send("guard/order", order(TOKEN, "resume", "Ann", room.now_ns))
    assert (room.mode, room.machine_mode) == ("moving", "moving")


def test_a_person_who_stops_again_has_to_go_on_again() -> None:
    room = Room()
    for who in ("Ana", "Bob"):
        room.hear("Stop!", speaker=who)
    room.hear("Go on")
    room.hear("Ouch!")
    assert room.hear("Go on", speaker="Bob").mode == "stopped"
    assert room.hear("Go on").mode == "retreating"


def test_an_operator_lifts_what_a_crowd_has_stopped() -> None:
    room = Room()
    names = [f"visitor {number}" for number in range(40)]
    for name in names:
        room.hear("Stop!", speaker=name)
    assert room.states[-1].reason.count(sentence("guard.also_stopped", by="")) == 16, "a crowd is told once"
    assert room.states[-1].reason.endswith(
        "; ".join(sentence("guard.also_stopped", by=by) for by in ("visitor 15", "many"))
    )
    for name in (*names, "many"):
        assert room.hear("Go on", speaker=name).mode == "stopped"
    room.send("guard/order", order(TOKEN, "resume", "Ann", room.now_ns))
    assert room.mode == "moving"


def test_whose_stop_it_is_outlives_the_guard() -> None:
    room = Room()
    room.hear("Stop!")
    room.hear("Stop!", speaker="Bob")
    before, after = room.guard.machine, GuardMachine(STRETCH_3)
    after.restore(before.reason, "", room.now_ns, before.latch.stoppers)
    for who, code in (("Ana", "another_person"), ("Bob", None)):
        refusal = after.interrupt(
            Interrupt(id="g", depth="resume", text="go on", by=who, person=f"microphone/{who}"),
            room.now_ns + 1,
            room.now_ns + 1,
        )
        assert (refusal.code if refusal else None) == code


def test_words_from_nobody_lift_nothing() -> None:
    room = Room()
    room.hear("Stop!")
    room.sim.publish("heard", Utterance(speaker="Ana", text="Go on"), source="")
    assert room.run(0.3).mode == "stopped"
    assert room.said[-1].text == REFUSALS["not_a_person"]


def test_an_order_to_a_stopped_robot_is_kept_and_asked_back_and_lifts_nothing() -> None:
    room = Room()
    room.hear("Ouch! My foot!")
    held: list[HeldOrder] = room.sim.record_topic("order/held", HeldOrder)
    assert room.hear("Bring me the bottle.").mode == "stopped"
    assert [(one.speaker, one.text) for one in held] == [("Ana", "Bring me the bottle.")]
    assert room.said[-1].text == sentence("guard.heard_and_stopped", words="Bring me the bottle.")
    assert room.hear("Go on").mode == "retreating"


@pytest.mark.parametrize("first", ["order", "pain"])
def test_with_an_order_that_is_kept_and_pain_the_first_motion_after_go_on_is_the_slow_way_back(first: str) -> None:
    room = Room()
    seen: list[RobotState] = room.sim.record_topic("robot/state", RobotState)
    room.run(2.0)
    held: list[HeldOrder] = room.sim.record_topic("order/held", HeldOrder)
    room.hear("Stop!")
    words = ["Bring me the bottle.", "Ouch! My foot!"]
    for text in words if first == "order" else reversed(words):
        assert room.hear(text).mode == "stopped"
    assert len(held) == 1
    room.run(1.0)
    stood_m, before = seen[-1].base_x_m, len(seen)
    room.hear("Go on")
    assert room.machine_mode == "retreating"
    room.run(1.0)
    assert seen[-1].base_x_m < stood_m - 0.005
    assert max(state.base_x_m for state in seen[before:]) <= stood_m + 0.001, "nothing of the order comes before it"
    room.run(6.0)
    assert room.machine_mode == "moving"


def test_a_person_at_a_console_lifts_a_stop_with_a_signature_and_nobody_without() -> None:
    room = Room()
    room.hear("Stop!")
    assert room.send("guard/order", order("guess", "resume", "Ann", room.now_ns)).code == "unsigned"
    assert room.mode == "stopped"
    signed = order(TOKEN, "resume", "Ann", room.now_ns)
    assert room.send("guard/order", signed).request == signed.id
    assert room.mode == "moving"
    room.hear("Stop!")
    assert room.send("guard/order", signed).code == "unsigned", "a signature is good once"


def test_what_ears_publish_belongs_to_no_seat_though_a_model_alone_publishes_it() -> None:
    class Transcriber(Node):
        seat = "vlm"
        heard = Publisher(Utterance, "heard")

    specs = {spec.name: spec for spec in (NodeSpec("eyes", Transcriber), NodeSpec("reflex", Reflex))}
    assert "heard" not in topics_of({"vlm": SeatTable(holder="eyes")}, specs)
    assert topics_of({"vlm": SeatTable(holder="eyes")}, {"eyes": specs["eyes"]}) == {"heard": "vlm"}


@pytest.mark.parametrize("verb", ["home", "stow"])
def test_an_unsigned_service_is_refused_and_a_signed_one_while_the_guard_is_stopped(verb: Any) -> None:
    room = Room(arm="manual")
    assert room.send("robot/service", RobotService(id="1", verb=verb, by="anybody")).code == "unsigned"
    room.sim.publish("estop", EStop(source="button", is_pressed=True))
    room.run(0.1)
    assert room.send("robot/service", service(TOKEN, verb, "Ann", room.now_ns)).code == "estopped"
    assert {status.mode for status in room.statuses} == {"ready"}


@pytest.mark.parametrize("verb", ["runstop", "release"])
def test_a_service_that_is_none_is_refused_by_its_code(verb: Any) -> None:
    room = Room(arm="manual")
    assert room.send("robot/service", service(TOKEN, verb, "Ann", room.now_ns)).code == "not_ready"


def test_a_robot_under_command_does_not_stow() -> None:
    room = Room()
    assert room.mode == "moving"
    assert room.send("robot/service", service(TOKEN, "stow", "Ann", room.now_ns)).code == "moving"


@pytest.mark.parametrize("how", ["words", "estop"])
@pytest.mark.parametrize(
    ("robot", "verb"),
    [("kinematic:KinematicRobot", "home"), ("kinematic:KinematicRobot", "stow"), ("robot:SimRobot", "stow")],
)
def test_a_stop_while_the_robot_homes_or_stows_presses_its_own_runstop_within_100_ms(
    how: str, robot: str, verb: Any
) -> None:
    room = Room(arm="manual", robot=f"nodes.sim.{robot}")
    driver: Any = room.sim.bound_nodes["driver"].node
    points = driver.robot.set_points
    (points.aim if "Sim" in robot else points.hold)(points.position + 0.2)  # somewhere else than folded
    room.run(3.0)
    assert room.send("robot/service", service(TOKEN, verb, "Ann", room.now_ns)).is_accepted
    assert room.statuses[-1].mode == {"home": "homing", "stow": "stowing"}[verb]
    if how == "words":
        room.publish("microphone", Utterance(speaker="Ana", text="Stop!"))
    else:
        room.sim.publish("estop", EStop(source="button", is_pressed=True))
    room.run(0.1)
    assert room.statuses[-1].mode == "runstopped"
    assert room.mode == ("stopped" if how == "words" else "estopped")
    refused = room.send("robot/runstop", RobotService(id="1", verb="release", by="anybody"))
    assert (refused.do, refused.by, refused.code) == ("release", "anybody", "unsigned")
    assert room.statuses[-1].mode == "runstopped"
    assert room.send("robot/runstop", service(TOKEN, "release", "Ann", room.now_ns)).is_accepted
    assert [status.mode for status in room.statuses][-1] != "runstopped"
    assert room.mode == ("stopped" if how == "words" else "estopped")


def test_anybody_may_press_the_runstop() -> None:
    room = Room()
    assert room.send("robot/runstop", RobotService(id="1", verb="runstop", by="anybody")).is_accepted
    assert room.statuses[-1].is_runstopped


HEARD_BADLY = ["", "\x00\x01\x1b[\x7f", "bla " * 2_500_000, "嗯" * 3_300_000, "\ud7ff\ufffe", "Зупинись!", "ᠰᠠᠶᠢᠨ"]


@pytest.mark.parametrize(
    "text", HEARD_BADLY, ids=["empty", "control", "10 MB", "10 MB of Chinese", "no character", "ru", "mn"]
)
def test_whatever_is_heard_lifts_no_stop_and_the_next_stop_is_heard(text: str) -> None:
    room = Room()
    assert room.mode == "moving"
    room.hear(text)
    assert room.mode in ("moving", "holding"), "it is no stop; a soft hold where it is short and not known"
    assert room.hear("Stop!").mode == "stopped"
    assert room.hear(text).mode == "stopped"
    assert room.hear("Go on.").mode in ("holding", "moving")
