"""Claims about `nodes/interrupts/reflex.py`."""

from __future__ import annotations

import pytest

from nodes.interrupts.intent import understand
from nodes.interrupts.reflex import Depth, Reflex, depths_of
from nodes.msgs import GuardState, Interrupt, RobotState, Utterance
from runtime import Simulation
from runtime.message import Message
from runtime.ports import Publisher, Sources

LABELLED: tuple[tuple[str, tuple[Depth, ...]], ...] = (
    ("Ouch! That's my toe!", ("stop",)),
    ("ouch thats my toe", ("stop",)),
    ("Stop!", ("stop",)),
    ("STOP", ("stop",)),
    ("No, stop!", ("stop",)),
    ("no stop", ("stop",)),
    ("Okay, stop.", ("stop",)),
    ("please stop moving", ("stop",)),
    ("Wait a second.", ("stop",)),
    ("Hold on!", ("stop",)),
    ("Watch out!", ("stop",)),
    ("You're on my foot!", ("stop",)),
    ("Ow, ow, ow!", ("stop",)),
    ("Don't move!", ("stop",)),
    ("Don't go on.", ("stop",)),
    ("Aua! Mein Fuß!", ("stop",)),
    ("Halt!", ("stop",)),
    ("Arrête-toi !", ("stop",)),
    ("Aïe !", ("stop",)),
    ("¡Para!", ("stop",)),
    ("¡Cuidado!", ("stop",)),
    ("Fermati!", ("stop",)),
    ("Ahi!", ("stop",)),
    ("Pare!", ("stop",)),
    ("Ai!", ("stop",)),
    ("Pas op!", ("stop",)),
    ("Au!", ("stop",)),
    ("停下来！", ("stop",)),
    ("小心！", ("stop",)),
    ("止まって！", ("stop",)),
    ("痛い！", ("stop",)),
    ("Don't stop.", ()),
    ("不要停", ()),
    ("Mhm.", ()),
    ("Okay.", ()),
    ("okay, okay", ()),
    ("Yes, thank you.", ()),
    ("Uh-huh.", ()),
    ("Genau.", ()),
    ("D'accord, merci.", ()),
    ("嗯。", ()),
    ("はい。", ()),
    ("An AI robot is a nice thing.", ()),
    ("What a lovely day it is today.", ()),
    ("", ()),
    ("All right, go on", ()),
    ("No, not the blue one", ("amend",)),
    ("No, without cream", ("amend",)),
    ("That's wrong.", ("amend",)),
    ("Not that one!", ("amend",)),
    ("Leave the blue one alone.", ("amend",)),
    ("Nein, nicht die blaue.", ("amend",)),
    ("Non, pas la bleue.", ("amend",)),
    ("The green one, please.", ("amend",)),
    ("Please clear the table: put the cups in the bin", ("replan",)),
    ("Make me a coffee", ("replan",)),
    ("Could you bring me the bottle?", ("replan",)),
    ("Put everything except the blue one in the bin.", ("replan",)),
)


@pytest.mark.parametrize(("text", "depths"), LABELLED)
def test_utterances_raise_the_depth_they_ask_for(text: str, depths: tuple[Depth, ...]) -> None:
    assert depths_of(text, is_stopped=False) == depths


@pytest.mark.parametrize(
    "text",
    [
        "All right, go on",
        "Continue.",
        "Weiter!",
        "Vas-y.",
        "Sigue.",
        "Vai avanti.",
        "Pode continuar.",
        "Ga door.",
        "继续。",
        "続けて。",
    ],
)
def test_go_on_resumes_only_after_a_stop(text: str) -> None:
    assert depths_of(text, is_stopped=True) == ("resume",)
    assert depths_of(text, is_stopped=False) == ()


@pytest.mark.parametrize("text", ["Okay.", "Mhm.", "No, not the blue one", "Ouch!"])
def test_nothing_but_going_on_lifts_a_stop(text: str) -> None:
    assert "resume" not in depths_of(text, is_stopped=True)


@pytest.mark.parametrize(
    "text",
    ["Make me a coffee", "Move it off my foot", "Get it off me", "Help me up", "I need a doctor", "Turn yourself off",
     "Hol einen Arzt", "dame un momento", "Give me a moment", "Bring mir Eis", "Appelle un médecin", "帮我拿开"],
)  # fmt: skip
def test_no_order_lifts_a_stop(text: str) -> None:
    assert "resume" not in depths_of(text, is_stopped=True)


def reflex_with_sink() -> tuple[Reflex, list[Interrupt]]:
    reflex = Reflex()
    sent: list[Interrupt] = []

    def sink(port: Publisher[Interrupt], message: Message, stems_from: Sources = None) -> None:
        assert isinstance(message, Interrupt)
        sent.append(message)

    reflex.interrupt.sink = sink
    return reflex, sent


def state(*contact: str) -> RobotState:
    zeros = (0.0,) * 8
    return RobotState(
        read_ns=0, position=zeros, velocity=zeros, effort=zeros, base_x_m=0.0, base_y_m=0.0, base_heading_rad=0.0,
        base_v_mps=0.0, base_w_radps=0.0, contact=contact,
    )  # fmt: skip


def test_contact_stops_once_when_it_begins() -> None:
    reflex, sent = reflex_with_sink()
    for contact in [(), ("base",), ("base",), ("base", "arm"), (), ("base",)]:
        reflex.feel(state(*contact))
    assert [(i.depth, i.by, i.text) for i in sent] == [
        ("stop", "contact", "contact: base"),
        ("stop", "contact", "contact: arm"),
        ("stop", "contact", "contact: base"),
    ]


def test_reflex_remembers_its_own_stop_and_follows_the_guard() -> None:
    sim = Simulation(Reflex())
    sent = sim.record(Reflex.interrupt)
    for text in ("Go on", "Stop", "Go on"):
        sim.publish("heard", Utterance(speaker="alex", text=text))
        sim.run(seconds=0.01)
    sim.publish("guard/state", GuardState(mode="stopped", reason="console"))
    sim.run(seconds=0.01)
    sim.publish("heard", Utterance(speaker="alex", text="Go on"))
    sim.run(seconds=0.01)
    assert [(i.id, i.depth) for i in sent] == [("reflex-1", "stop"), ("reflex-2", "resume"), ("reflex-3", "resume")]


@pytest.mark.parametrize(
    ("text", "is_pain"),
    [
        ("Ouch! That's my toe!", True),
        ("Stop! My foot!", True),
        ("aaah my foot", True),
        ("You're on my foot!", True),
        ("Aua! Mein Fuß!", True),
        ("Aïe !", True),
        ("痛い！", True),
        ("Stop!", False),
        ("Hands off!", False),
        ("Hey!", False),
        ("No no no no!", False),
    ],
)
def test_pain_in_words_is_told_as_a_fact(text: str, is_pain: bool) -> None:
    meaning = understand(text)
    assert (meaning.wants, meaning.is_pain) == ("stop", is_pain)


@pytest.mark.parametrize(
    ("text", "is_caught"),
    [
        ("Let go of me!", True),
        ("Ouch! My hand is stuck!", True),
        ("Open your gripper!", True),
        ("Lass mich los!", True),
        ("Lâche-moi !", True),
        ("¡Suéltame!", True),
        ("Lasciami!", True),
        ("Me solta!", True),
        ("Laat me los!", True),
        ("Puść mnie!", True),
        ("मुझे छोड़ो", True),
        ("اتركني", True),
        ("離して", True),
        ("放开我", True),
        ("Stop!", False),
        ("Ouch! My foot!", False),
        ("Stop! I am not stuck.", False),
        ("Stop! His hand is stuck in the film.", False),
    ],
)
def test_who_asks_to_be_let_go_or_is_caught_is_told_as_a_fact(text: str, is_caught: bool) -> None:
    meaning = understand(text)
    assert (meaning.wants, meaning.is_caught) == ("stop", is_caught)
    assert meaning.is_pain or not is_caught


@pytest.mark.parametrize("text", ["Please let go of the cup and bring me the bottle", "It is stuck to the table"])
def test_letting_go_of_a_thing_is_about_nobody(text: str) -> None:
    assert not understand(text).is_caught


def test_what_happens_to_others_is_told_and_no_cry() -> None:
    assert understand("My hand is stuck").wants == "stop"
    assert understand("Her hand is stuck").wants == "stop", "whoever it is, it is now"
    assert understand("Her hand was stuck").wants != "stop"


def test_a_stop_at_the_end_of_a_clause_may_have_a_tail() -> None:
    assert understand("could everybody just stop now").wants == "stop"


def test_an_excuse_beside_a_cry_takes_nothing_back() -> None:
    meaning = understand("Sorry! Ah!")
    assert (meaning.wants, meaning.takes_back) == ("stop", False)


def test_the_robots_name_is_robot_where_nobody_gave_it_one() -> None:
    assert Reflex().speaker == "robot"
