"""Claims about soft holds: what nobody understood makes a moving robot hold for a moment, in the laptop's graph."""

from __future__ import annotations

from functools import cache

import pytest

from nodes.guard.soft_hold import LONGEST_HOLD_NS
from nodes.interrupts.hold_seconds import HOLD_S
from nodes.interrupts.second_judge import SecondJudge
from nodes.interrupts.stop_classifier import MODEL, StopClassifier
from nodes.msgs import GuardState, Interrupt, InterruptRecord, JointCommand, Utterance
from runtime import Node, Simulation
from runtime.launch.file import Launch, find, load
from tests.support.sentences import sentence

UNKNOWN = "Blimp wozzle!"
PARTS = ("driver", "guard", "reflex", "interrupt_records")


@cache
def laptop() -> Launch:
    return load(find("laptop"))


class Room:
    """The robot's side of the laptop's graph, driving because somebody on the policy's topic asks for it."""

    def __init__(self, *others: Node) -> None:
        self.sim = Simulation(*(laptop().graph.nodes[name] for name in PARTS), *others)
        self.states: list[GuardState] = self.sim.record_topic("guard/state", GuardState)
        self.interrupts: list[Interrupt] = self.sim.record_topic("interrupt", Interrupt)
        self.records: list[InterruptRecord] = self.sim.record_topic("interrupt/record", InterruptRecord)
        self.out: list[JointCommand] = self.sim.record_topic("robot/command", JointCommand)
        self.said: list[Utterance] = self.sim.record_topic("said", Utterance)
        self.sim.run(seconds=0.5)
        self.drive(1.0)
        assert self.states[-1].mode == "moving"

    def drive(self, seconds: float, v_mps: float = 0.1) -> list[str]:
        """The guard's modes while commands go on coming at 20 Hz."""
        modes: list[str] = []
        for _ in range(round(seconds * 20)):
            position = self.out[-1].position
            self.sim.publish("command", JointCommand(position=position, base_v_mps=v_mps))
            self.sim.run(seconds=0.05)
            modes.append(self.states[-1].mode)
        return modes

    def hear(self, text: str, speaker: str = "Ann") -> None:
        self.sim.publish("heard", Utterance(speaker=speaker, text=text))


def test_what_nobody_understood_brakes_a_moving_robot_and_lets_it_go_on_by_itself() -> None:
    room = Room()
    room.hear(UNKNOWN)
    modes = room.drive(HOLD_S + 0.5)
    held = modes.count("holding") * 0.05
    assert abs(held - HOLD_S) <= 0.15, modes
    assert modes[-1] == "moving"
    assert room.states[-1].stop_cause == "", "nothing was latched"
    (hold,) = (one for one in room.interrupts if one.depth == "hold")
    assert (hold.by, hold.text) == ("Ann", UNKNOWN)
    assert any("did not understand" in one.text for one in room.said), "it is announced"
    (record,) = room.records
    assert record.depth == "hold"
    assert record.held_ms is not None
    assert record.held_ms <= 50.0


def test_while_it_holds_the_output_brakes_to_zero() -> None:
    room = Room()
    assert room.out[-1].base_v_mps > 0.05
    room.hear(UNKNOWN)
    room.drive(1.0)
    assert room.out[-1].base_v_mps == 0.0


@pytest.mark.parametrize("text", ["Hello robot!", "What time is it?", "mhm", "No, the blue one.", "the cup", "Go on."])
def test_what_is_understood_holds_nothing(text: str) -> None:
    room = Room()
    room.hear(text)
    room.drive(0.2)
    assert "hold" not in [one.depth for one in room.interrupts]


def test_an_answer_to_the_robots_question_holds_nothing_and_the_next_words_do() -> None:
    room = Room()
    room.sim.publish("said", Utterance(speaker="robot", text="Which one do you mean?"))
    room.hear(UNKNOWN)
    room.drive(0.2)
    assert not room.interrupts
    room.hear(UNKNOWN)
    room.drive(0.2)
    assert [one.depth for one in room.interrupts] == ["hold"]


def test_a_script_without_a_table_holds_the_robot_whatever_the_length() -> None:
    room = Room()
    room.hear("Будь ласка, зупинись негайно, ти їдеш просто на дитину!")
    room.drive(0.2)
    assert [one.depth for one in room.interrupts] == ["hold"]


def test_a_robot_that_stands_is_not_held() -> None:
    room = Room()
    room.sim.run(seconds=2.0)
    room.hear(UNKNOWN)
    room.sim.run(seconds=0.2)
    assert not room.interrupts


def test_a_hold_ends_by_itself_however_long_it_asks_for() -> None:
    room = Room()
    room.sim.publish("interrupt", Interrupt(id="x", depth="hold", text="?", by="anybody", hold_s=1e9))
    modes = room.drive(LONGEST_HOLD_NS * 1e-9 + 0.3)
    assert "holding" in modes
    assert modes[-1] == "moving"


def test_a_hold_is_ended_early_by_its_own_id_alone_and_lifts_no_stop() -> None:
    room = Room()
    room.sim.publish("interrupt", Interrupt(id="x", depth="hold", text="?", by="anybody", hold_s=1.2))
    room.drive(0.1)
    room.sim.publish("interrupt", Interrupt(id="y", depth="hold", text="?", by="judge", takes_back="z"))
    assert room.drive(0.1)[-1] == "holding"
    room.sim.publish("interrupt", Interrupt(id="y", depth="hold", text="?", by="judge", takes_back="x"))
    assert room.drive(0.2)[-1] == "moving"
    room.hear("Stop!")
    assert room.drive(0.1)[-1] == "stopped"
    for takes_back in ("", "x", room.interrupts[-1].id):
        room.sim.publish("interrupt", Interrupt(id="w", depth="hold", text="?", by="judge", takes_back=takes_back))
        assert room.drive(0.2)[-1] == "stopped"


def test_the_second_judge_makes_a_stop_of_a_shout_that_the_table_missed_and_ends_harmless_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sure = {UNKNOWN: 0.99, "Fribble soup": 0.01}
    monkeypatch.setattr("nodes.interrupts.stop_classifier.StopClassifier.certainty", lambda _, text: sure[text])
    room = Room(SecondJudge())
    room.hear("Fribble soup")
    modes = room.drive(0.4)
    assert [one.depth for one in room.interrupts] == ["hold", "hold"]
    assert modes[-1] == "moving", "long before the hold is over"
    room.hear(UNKNOWN)
    assert room.drive(0.3)[-1] == "stopped"
    assert room.interrupts[-1].by == "Ann"


def test_a_stop_that_a_full_queue_dropped_still_stops_the_robot() -> None:
    room = Room()
    room.hear("Stop!")
    for number in range(200):
        room.hear(f"I like the weather of today number {number}")
    assert room.drive(0.2)[-1] == "stopped"


def test_the_classifier_that_ships_is_small_and_knows_a_shout_from_a_sentence() -> None:
    judge = StopClassifier()
    assert MODEL.stat().st_size < 2_000_000
    assert judge.certainty("stop right now") > 0.9
    assert judge.certainty("the soup was very good yesterday") < 0.1
    assert 0.0 <= judge.certainty("") <= 1.0


def test_an_order_to_a_stopped_robot_lifts_nothing_and_is_asked_back() -> None:
    room = Room()
    room.hear("Ouch! My foot!")
    assert room.drive(0.2)[-1] == "stopped"
    room.hear("Move it off my foot")
    assert room.drive(0.5)[-1] == "stopped"
    assert room.said[-1].text == sentence("guard.heard_and_stopped", words="Move it off my foot")
    room.hear("Go on, please.")
    assert room.drive(0.5)[-1] == "retreating"
