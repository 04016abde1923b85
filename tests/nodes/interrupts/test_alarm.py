"""Claims about spotted alarms: the robot holds at once, goes on where words are harmless, stops where none explain."""

from __future__ import annotations

import msgspec

from nodes.interrupts.hold_seconds import ALARM_HOLD_S
from nodes.msgs import Alarm, Utterance
from runtime import Node, Publisher
from tests.nodes.interrupts.test_soft_hold import Room

SPOTTED = Alarm(speaker="Ann", word="stop", sureness=0.99, captured_ns=1_200_000_000, ended_ns=1_600_000_000)


def changed(**fields: object) -> Alarm:
    return msgspec.structs.replace(SPOTTED, **fields)  # type: ignore[type-var]  # a Struct at run time


class Words(Node):
    """The recogniser's place."""

    role = "ears"
    heard = Publisher(Utterance, "heard")
    alarm = Publisher(Alarm, "alarm")

    def tell(self, phase: str) -> None:
        self.alarm.publish(changed(phase=phase, person="test/Ann"))


class Stranger(Words):
    """It hears nobody."""

    role = ""


def test_a_spotted_alarm_holds_a_moving_robot_at_once_and_by_itself_no_longer_than_a_moment() -> None:
    room = Room()
    room.sim.publish("alarm", SPOTTED)
    modes = room.drive(ALARM_HOLD_S + 0.5)
    assert modes[0] == "holding"
    assert abs(modes.count("holding") * 0.05 - ALARM_HOLD_S) <= 0.15, modes
    assert modes[-1] == "moving"
    assert [(one.depth, one.by, one.text) for one in room.interrupts] == [("hold", "Ann", "stop")]
    assert not room.said, "a false alarm is a pause and no speech"


def test_an_alarm_that_the_words_refute_is_let_go_at_once() -> None:
    words = Words()
    room = Room(words)
    room.sim.publish("alarm", SPOTTED)
    assert room.drive(0.3)[-1] == "holding"
    words.tell("refuted")
    assert room.drive(0.2)[-1] == "moving"


def test_nobody_but_ears_lets_go_of_it() -> None:
    stranger = Stranger()
    room = Room(stranger)
    room.sim.publish("alarm", SPOTTED)
    room.drive(0.1)
    stranger.tell("refuted")
    assert room.drive(0.2)[-1] == "holding"


def test_the_end_of_one_speech_does_not_let_go_of_the_alarm_of_another() -> None:
    words = Words()
    room = Room(words)
    room.sim.publish("alarm", changed(captured_ns=SPOTTED.captured_ns + 1))
    room.drive(0.1)
    words.tell("refuted")
    assert room.drive(0.2)[-1] == "holding"


def test_an_alarm_that_no_words_explain_stops_the_robot_until_somebody_says_otherwise() -> None:
    words = Words()
    room = Room(words)
    room.sim.publish("alarm", SPOTTED)
    room.drive(0.5)
    words.tell("stands")
    assert set(room.drive(3.0)[1:]) == {"stopped"}
    assert [(one.depth, one.is_sure) for one in room.interrupts] == [("hold", True), ("stop", False)]
    room.hear("Okay.")
    assert room.drive(0.5)[-1] == "moving", "as after a bare cry, it is taken back easily"


def test_a_cry_that_was_only_spotted_tells_of_no_pain() -> None:
    words = Words()
    room = Room(words)
    words.alarm.publish(changed(word="ouch", phase="stands"))
    assert room.drive(0.3)[-1] == "stopped"
    assert [(one.text, one.is_pain) for one in room.interrupts] == [("ouch", False)]


def test_a_stop_by_words_during_the_hold_stays_when_the_alarm_is_refuted_later() -> None:
    words = Words()
    room = Room(words)
    room.sim.publish("alarm", SPOTTED)
    room.drive(0.2)
    room.hear("Stop!")
    room.drive(0.1)
    words.tell("refuted")
    assert set(room.drive(2.0)) == {"stopped"}


def test_a_spotted_word_says_nothing_to_a_robot_that_is_stopped() -> None:
    room = Room()
    room.hear("Stop!")
    room.drive(0.2)
    before = len(room.interrupts)
    room.sim.publish("alarm", SPOTTED)
    assert room.drive(2.0)[-1] == "stopped"
    assert len(room.interrupts) == before
