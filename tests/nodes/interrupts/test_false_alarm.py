"""False alarms: what is no stop stops nothing; a stop that is taken back costs no plan; what was felt is no mistake."""

from __future__ import annotations

from typing import Any

import pytest

from nodes.guard.node import Guard
from nodes.guard.state_machine import GuardMachine
from nodes.interrupts.intent import understand
from nodes.interrupts.records import InterruptRecords
from nodes.interrupts.reflex import TAKE_BACK_S, Reflex, StopCalled, taken_back
from nodes.msgs import Action, Feedback, GuardState, Interrupt, InterruptRecord, SeenObject, Subtask, Utterance
from nodes.perception.shapes import shape_names
from nodes.planner.scripted import ScriptedPlanner
from nodes.policy.expert import ExpertPolicy
from nodes.sim.driver import SimDriver
from nodes.stretch.limits import STRETCH_3
from nodes.vlm.belief import TableBelief
from nodes.vlm.choice.next_action import decide
from nodes.vlm.grammar_talk import GrammarTalk
from nodes.vlm.memory import Known
from nodes.vlm.node import VLM
from nodes.vlm.parts import EyesAsk, Moment, VLMEyes
from runtime import Simulation
from runtime.clock import NS_PER_S
from runtime.launch.graph import NodeSpec
from tests.support.guard.guard_story import MS, command
from tests.support.sentences import sentence
from tests.support.standing import standing

ANN_S_STOP = StopCalled("s1", "Ann", is_sure=True, raised_ns=0)
UNSURE = StopCalled("s2", "Ann", is_sure=False, raised_ns=0)
FELT = StopCalled("s3", "contact", is_sure=True, raised_ns=0)


# --- words


@pytest.mark.parametrize(
    "text",
    ["Never mind.", "never mind go on", "Never mind, go on!", "False alarm.", "Fehlalarm, weiter!", "Laisse tomber.",
     "Falsa alarma.", "Falso allarme", "Alarme falso!", "Vals alarm.", "误会，继续。", "気にしないで。"],
)  # fmt: skip
def test_a_false_alarm_is_said_in_many_languages(text: str) -> None:
    meaning = understand(text)
    assert meaning.takes_back
    assert meaning.wants in ("nothing", "resume")


@pytest.mark.parametrize(
    "text",
    ["This is not a false alarm!", "Stop! Never mind the cup!", "Never mind, stop!", "I'm fine.", "Go on.", "Okay."],
)
def test_what_is_none_takes_nothing_back(text: str) -> None:
    assert not understand(text).takes_back


def test_a_bare_sound_is_a_stop_that_is_not_sure() -> None:
    assert [(understand(text).wants, understand(text).is_sure) for text in ("Ah!", "Hey!", "Ouch!", "Hey, stop!")] == [
        ("stop", False),
        ("stop", False),
        ("stop", True),
        ("stop", True),
    ]


@pytest.mark.parametrize(
    ("text", "speaker", "stops", "at_s", "stop"),
    [
        ("Never mind, go on.", "Ann", (ANN_S_STOP,), 2.0, "s1"),
        ("Never mind.", "Ann", (ANN_S_STOP,), 2.0, "s1"),
        ("Never mind.", "Ann", (UNSURE, ANN_S_STOP), 2.0, "s1"),
        ("Okay.", "Ann", (UNSURE,), 2.0, "s2"),
        ("Okay.", "Ann", (UNSURE, ANN_S_STOP), 2.0, ""),  # a stop that was sure needs words that say so
        ("Okay.", "Ann", (ANN_S_STOP,), 2.0, ""),
        ("All right, go on.", "Ann", (ANN_S_STOP,), 2.0, ""),  # an ordinary "go on": decided afresh
        ("Never mind.", "Bob", (ANN_S_STOP,), 2.0, ""),  # not his to take back
        ("Never mind.", "Ann", (ANN_S_STOP, FELT), 2.0, ""),  # what was felt was no mistake
        ("Never mind.", "Ann", (FELT, ANN_S_STOP), 2.0, ""),
        ("Never mind.", "Ann", (), 2.0, ""),
        ("Never mind.", "Ann", (ANN_S_STOP,), TAKE_BACK_S + 0.1, ""),  # the world is another one
    ],
)
def test_who_may_take_back_what(text: str, speaker: str, stops: tuple[StopCalled, ...], at_s: float, stop: str) -> None:
    assert taken_back(text, speaker, stops, round(at_s * NS_PER_S)) == stop


# --- the guard


def stopped_machine(*idents: str) -> tuple[Any, int]:
    machine, now_ns = GuardMachine(STRETCH_3), 10 * NS_PER_S
    machine.update_state(standing(now_ns))
    assert machine.arm(now_ns)
    machine.accept_command(command("policy", 1, now_ns + MS), now_ns + MS)
    machine.tick(now_ns + MS)
    for ident in idents:
        now_ns += 10 * MS
        machine.interrupt(Interrupt(id=ident, depth="stop", text="x", by="Ann"), now_ns, now_ns)
    return machine, now_ns + 10 * MS


def take_back(ident: str) -> Interrupt:
    return Interrupt(id="r", depth="resume", text="never mind", by="Ann", takes_back=ident)


def test_the_guard_lets_only_the_last_stop_be_taken_back() -> None:
    machine, now_ns = stopped_machine("s1", "s2")
    machine.interrupt(take_back("s1"), now_ns, now_ns)
    assert machine.mode == "stopped"
    assert sentence("guard.lifts_another_stop") in machine.refusal
    machine.interrupt(take_back("s2"), now_ns, now_ns)
    assert machine.mode == "holding"


def test_what_the_guard_felt_itself_or_an_emergency_stop_cannot_be_taken_back() -> None:
    machine, now_ns = stopped_machine("s1")
    machine.stop("contact", "contact: arm", now_ns, now_ns)
    machine.interrupt(take_back("s1"), now_ns + MS, now_ns + MS)
    assert machine.mode == "stopped"
    machine, now_ns = stopped_machine("s1")
    machine.estop("button", now_ns)
    assert machine.rearm("Ann", now_ns)
    machine.interrupt(take_back("s1"), now_ns + MS, now_ns + MS)
    assert machine.mode == "stopped"
    machine.interrupt(Interrupt(id="g", depth="resume", text="go on", by="Ann"), now_ns + MS, now_ns + MS)
    assert machine.mode == "holding"


def test_no_machine_takes_a_stop_back_and_nobody_does_with_words_from_before_it() -> None:
    machine, now_ns = stopped_machine("s1")
    for by in ("reflex", "planner", "vlm", ""):
        machine.interrupt(Interrupt(id="r", depth="resume", text="x", by=by, takes_back="s1"), now_ns, now_ns)
        assert machine.mode == "stopped"
    machine.interrupt(take_back("s1"), now_ns - 20 * MS, now_ns)
    assert machine.mode == "stopped"


# --- the graph


CUP = SeenObject(
    id="cup-1", label="cup", colour="red", x_m=0.1, y_m=-0.65, z_m=0.55, width_m=0.08, height_m=0.1, u_px=1.0, v_px=1.0
)
BIN = SeenObject(
    id="bin-1",
    label="bin",
    colour="grey",
    x_m=-0.5,
    y_m=-0.65,
    z_m=0.2,
    width_m=0.36,
    height_m=0.35,
    u_px=1.0,
    v_px=1.0,
    is_place=True,
)


class Knowing(VLMEyes):
    """See what is there without a look."""

    def __init__(self, belief: TableBelief) -> None:
        self.belief = belief

    def look(self, now: Moment) -> EyesAsk:
        self.belief.images += 1
        self.belief.known = tuple(Known(thing, 9, 0, ((thing.label, thing.colour),)) for thing in (CUP, BIN))
        return EyesAsk()


class KnowingVLM(VLM):
    """Knows what is there without looking."""

    def __init__(self) -> None:
        belief = TableBelief(shape_names())
        super().__init__(Knowing(belief), belief, GrammarTalk(), decide)


class Room:
    """A robot at work on a cup, and what came of what was said to it."""

    def __init__(self) -> None:
        self.driver = SimDriver(robot_params={"seed": 0})
        self.sim = Simulation(
            self.driver,
            NodeSpec("guard", Guard, params={"arm": "auto"}),
            NodeSpec("policy", ExpertPolicy, params={"sees": False}),
            NodeSpec("planner", ScriptedPlanner),
            NodeSpec("vlm", KnowingVLM),
            Reflex(),
            InterruptRecords(),
        )
        self.actions: list[Action] = self.sim.record_topic("action", Action)
        self.subtasks: list[Subtask] = self.sim.record_topic("subtask", Subtask)
        self.states: list[GuardState] = self.sim.record_topic("guard/state", GuardState)
        self.feedback: list[Feedback] = self.sim.record_topic("feedback", Feedback)
        self.records: list[InterruptRecord] = self.sim.record_topic("interrupt/record", InterruptRecord)
        self.interrupts: list[Interrupt] = self.sim.record_topic("interrupt", Interrupt)
        self.say("Please put the cups in the bin.")
        self.sim.run(seconds=2.5)
        assert self.picks, "the robot picks something up"
        assert self.mode == "moving"

    def say(self, text: str, speaker: str = "Ann") -> None:
        self.sim.publish("heard", Utterance(speaker=speaker, text=text))

    @property
    def picks(self) -> list[str]:
        return [action.id for action in self.actions if action.skill == "pick"]

    @property
    def mode(self) -> str:
        return self.states[-1].mode

    def notes(self, depth: str) -> list[str]:
        return [record.note for record in self.records if record.depth == depth]


def test_a_stop_that_is_taken_back_resumes_the_same_action_under_the_same_plan() -> None:
    room = Room()
    before, plans, told = set(room.picks), {subtask.id for subtask in room.subtasks}, len(room.feedback)
    room.say("Ouch!")
    room.sim.run(seconds=1.5)
    assert room.mode == "stopped"
    room.say("Never mind, go on.")
    room.sim.run(seconds=1.0)
    assert room.mode == "moving"
    assert set(room.picks) == before, "no new action"
    assert {subtask.id for subtask in room.subtasks} == plans, "no new plan"
    assert {feedback.status for feedback in room.feedback[told:]} == {"running"}, "and none is set aside"
    (note,) = room.notes("resume")
    assert note in [sentence("interrupts.false_alarm", time=f"{seconds} s") for seconds in (1.5, 1.6)]
    assert [record.takes_back for record in room.records if record.depth == "resume"] == [
        next(one.id for one in room.interrupts if one.depth == "stop")
    ]
    room.sim.run(seconds=3.0)
    assert set(room.picks) == before, "and it does not lose patience with it"


def test_an_ordinary_go_on_decides_afresh() -> None:
    room = Room()
    before = set(room.picks)
    room.say("Ouch! That's my toe!")
    room.sim.run(seconds=1.5)
    room.say("All right, go on.")
    room.sim.run(seconds=1.0)
    assert room.mode == "retreating"
    assert set(room.picks) > before, "the world may have changed: a new action"
    assert room.notes("resume") == [""]


@pytest.mark.parametrize("text", ["Mhm.", "Okay.", "Never mind."])
def test_what_is_no_interrupt_interrupts_nothing(text: str) -> None:
    room = Room()
    before = len(room.interrupts)
    room.say(text)
    room.sim.run(seconds=0.5)
    assert (len(room.interrupts), room.mode) == (before, "moving")


def test_a_bare_sound_stops_and_an_okay_of_the_same_person_lets_it_go_on() -> None:
    room = Room()
    room.say("Hey!")
    room.sim.run(seconds=0.5)
    assert room.mode == "stopped"
    room.say("Okay.", speaker="Bob")
    room.sim.run(seconds=0.5)
    assert room.mode == "stopped", "not his to take back"
    room.say("Okay.")
    room.sim.run(seconds=0.5)
    assert room.mode == "moving"
    assert room.notes("resume")[-1].startswith(sentence("interrupts.false_alarm", time="1."))


def test_time_alone_resumes_no_stop_however_unsure() -> None:
    room = Room()
    room.say("Ah!")
    room.sim.run(seconds=40.0)
    assert room.mode == "stopped"
    room.say("Never mind.")
    room.sim.run(seconds=0.5)
    assert room.mode == "stopped", "after half a minute somebody has to say go on"
    room.say("Go on.")
    room.sim.run(seconds=0.5)
    assert room.mode == "moving"


def test_a_stop_by_anybody_else_in_between_needs_a_go_on() -> None:
    room = Room()
    room.say("Ouch!")
    room.sim.run(seconds=0.5)
    room.sim.publish(
        "interrupt", Interrupt(id="ladder-1", depth="stop", text="nothing is heard", by="ladder", cause="ladder")
    )
    room.sim.run(seconds=0.3)
    room.say("Never mind.")
    room.sim.run(seconds=0.5)
    assert room.mode == "stopped"
    room.say("Never mind, go on.")
    room.sim.run(seconds=0.5)
    assert room.mode == "retreating"
    assert room.notes("resume") == [""], "an ordinary resume"


def test_a_correction_that_meant_nothing_goes_on_by_itself_with_the_same_action() -> None:
    room = Room()
    before: Any = set(room.picks)
    room.say("No, leave the blue one alone.")
    room.sim.run(seconds=1.5)
    assert [one.depth for one in room.interrupts][-1] == "amend"
    assert (room.mode, set(room.picks)) == ("moving", before)
