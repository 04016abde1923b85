"""Claims about the edges of `Reflex`: what it raises field by field, from when until when, and what it says aloud."""

from __future__ import annotations

from typing import Literal

import pytest

from nodes.interrupts.hold_seconds import ALARM_HOLD_S, HOLD_S
from nodes.interrupts.intent import forget, understand
from nodes.interrupts.phrase_matcher import load
from nodes.interrupts.reflex import (
    ANSWER_S,
    LETS_GO,
    MOST_STOPS,
    ONLY_GO_ON,
    REFUSALS,
    TAKE_BACK_S,
    Reflex,
    StopCalled,
    taken_back,
)
from nodes.interrupts.second_judge import SecondJudge
from nodes.interrupts.stop_classifier import StopClassifier
from nodes.msgs import (
    Alarm,
    AnswerCode,
    GuardAnswer,
    GuardState,
    HeldOrder,
    Interrupt,
    RobotState,
    SceneDescription,
    SeenObject,
    Utterance,
)
from runtime import Node, Publisher, QoS, Simulation, Subscription, on, to_ns
from tests.support.sentences import sentence

UNKNOWN = "Blimp wozzle!"
PHASES: tuple[Literal["spotted", "refuted"], ...] = ("spotted", "refuted")


class Prompter(Node):
    """Hands on what is said on `prompt`, as a node that is not declared as ears."""

    prompt = Subscription(Utterance, "prompt", qos=QoS(required=False))
    spotted = Subscription(Alarm, "spotted", qos=QoS(required=False))
    heard = Publisher(Utterance, "heard")
    alarm = Publisher(Alarm, "alarm")

    @on(prompt)
    def hand_on(self, utterance: Utterance) -> None:
        self.heard.publish(utterance)

    @on(spotted)
    def hand_on_alarm(self, alarm: Alarm) -> None:
        self.alarm.publish(alarm)


class Room:
    """A reflex, a guard that is played by the test, and all that the reflex says and raises."""

    def __init__(self, *others: Node, speaker: str = "robot") -> None:
        self.reflex = Reflex(speaker)
        self.sim = Simulation(self.reflex, *others)
        self.raised: list[Interrupt] = self.sim.record_topic("interrupt", Interrupt)
        self.said: list[Utterance] = self.sim.record_topic("said", Utterance)
        self.orders: list[HeldOrder] = self.sim.record_topic("order/held", HeldOrder)
        self.sim.run(seconds=0.01)

    def hear(self, text: str, speaker: str = "Ann", *, topic: str = "heard") -> list[str]:
        """The depths that it raises."""
        before = len(self.raised)
        self.sim.publish(topic, Utterance(speaker=speaker, text=text))
        self.sim.run(seconds=0.01)
        return [one.depth for one in self.raised[before:]]

    def guard(self, mode: str) -> None:
        self.sim.publish("guard/state", GuardState(mode=mode, reason="a test"))  # type: ignore[arg-type]  # as given
        self.sim.run(seconds=0.01)

    def answer(self, code: AnswerCode, do: str = "resume") -> None:
        answer = GuardAnswer(request="x", do=do, by="Ann", is_accepted=False, code=code)
        self.sim.publish("guard/answer", answer)
        self.sim.run(seconds=0.01)


def test_a_stop_says_by_whom_with_which_words_and_how_sure_and_is_numbered() -> None:
    room = Room()
    assert room.hear("Stop!") == ["stop"]
    assert room.hear("Ah!", "Ben") == ["stop"]
    first, second = room.raised
    assert (first.id, first.text, first.by, first.is_sure, first.takes_back, first.hold_s) == (
        "reflex-1", "Stop!", "Ann", True, "", 0.0,
    )  # fmt: skip
    assert (second.id, second.by, second.is_sure) == ("reflex-2", "Ben", False)
    assert (first.is_pain, second.is_pain) == (False, False)
    assert (first.cause, first.person) == ("person", "test/Ann")
    assert room.hear("Ouch!") == ["stop"]
    assert room.raised[2].is_pain
    assert room.said == []


class Microphone(Prompter):
    """The same as ears."""

    role = "ears"


@pytest.mark.parametrize(("node", "cause"), [(Microphone, "reflex"), (Prompter, "")])
def test_the_robots_own_stop_is_the_reflexs_and_that_of_no_ears_is_nobodys(node: type[Prompter], cause: str) -> None:
    room = Room(node())
    assert room.hear("Ah!", "robot", topic="prompt") == ["stop"]
    [stop] = room.raised
    assert (stop.cause, stop.person, stop.is_sure) == (cause, "", cause == "reflex")


@pytest.mark.parametrize(("node", "is_believed"), [(Microphone, True), (Prompter, False)])
def test_only_ears_are_believed_that_somebody_is_to_be_let_go(node: type[Prompter], is_believed: bool) -> None:
    room = Room(node())
    assert room.hear("Let go of me!", topic="prompt") == ["stop"]
    assert (room.raised[0].is_pain, room.raised[0].is_caught) == (is_believed, is_believed)
    assert [one.text for one in room.said] == [LETS_GO] * is_believed
    assert room.hear("Stop!", topic="prompt") == ["stop"]
    assert not room.raised[1].is_caught
    assert len(room.said) == is_believed


def test_a_long_utterance_is_cut_to_its_ends() -> None:
    room = Room()
    room.hear("Stop! " + "x" * 5000)
    assert room.raised[0].text.startswith("Stop! xxx")
    assert len(room.raised[0].text) < 700


@pytest.mark.parametrize("speaker", ["robot", "Stretch"])
def test_what_nobody_understood_holds_a_moving_robot_for_its_time_and_says_so_in_the_robots_name(speaker: str) -> None:
    room = Room(speaker=speaker)
    assert room.hear(UNKNOWN) == [], "it does not move"
    room.guard("moving")
    assert room.hear(UNKNOWN) == ["hold"]
    [hold] = room.raised
    assert (hold.hold_s, hold.text, hold.by, hold.is_sure, hold.takes_back) == (HOLD_S, UNKNOWN, "Ann", True, "")
    assert (hold.cause, hold.person) == ("person", "test/Ann")
    [said] = room.said
    assert (said.speaker, said.text) == (speaker, sentence("interrupts.did_not_understand"))
    room.guard("holding")
    assert room.hear(UNKNOWN) == []


def test_where_a_stop_may_stand_behind_other_words_it_holds_and_says_nothing() -> None:
    room = Room()
    room.guard("moving")
    text = "the plates go up there and wait"
    assert room.hear(text) == ["hold"]
    [hold] = room.raised
    assert (hold.hold_s, hold.text, hold.by, hold.cause, hold.person) == (HOLD_S, text, "Ann", "person", "test/Ann")
    assert room.said == []


@pytest.mark.parametrize(("mode", "holds"), [("moving", True), ("holding", True), ("armed", False), ("stopped", False)])
def test_a_spotted_alarm_holds_in_the_persons_name_and_is_refuted_once(mode: str, holds: bool) -> None:
    room = Room()
    room.guard(mode)
    spotted, refuted = (
        Alarm(speaker="Ann", word="ah", sureness=0.9, captured_ns=7, ended_ns=9, phase=phase) for phase in PHASES
    )
    for alarm in (refuted, spotted, refuted, refuted):
        room.sim.publish("alarm", alarm)
        room.sim.run(seconds=0.01)
    told = [(one.id, one.depth, one.text, one.by, one.cause, one.is_sure, one.hold_s) for one in room.raised]
    wanted = [
        ("reflex-1", "hold", "ah", "Ann", "person", True, ALARM_HOLD_S),
        ("reflex-2", "hold", "ah", "Ann", "person", True, 0.0),
    ]
    assert told == wanted * holds
    assert [one.takes_back for one in room.raised] == ["", "reflex-1"] * holds
    assert {one.person for one in room.raised} <= {""}


def test_an_alarm_before_the_first_word_of_the_guard_holds_nothing() -> None:
    room = Room()
    room.sim.publish("alarm", Alarm(speaker="Ann", word="ah", sureness=0.9, captured_ns=7, ended_ns=9, phase="spotted"))
    room.sim.run(seconds=0.01)
    assert room.raised == []


@pytest.mark.parametrize(("node", "person", "wanted"), [
    (Microphone, "p7", ("person", "p7")), (Microphone, "", ("person", "Ann")), (Prompter, "p7", ("reflex", "")),
])  # fmt: skip
def test_an_alarm_that_stands_is_an_unsure_stop_of_whom_ears_have_heard(
    node: type[Prompter], person: str, wanted: tuple[str, str]
) -> None:
    room = Room(node())
    word = "ouch " * 999
    alarm = Alarm(speaker="Ann", word=word, person=person, phase="stands", sureness=0.9, captured_ns=7, ended_ns=9)
    room.sim.publish("spotted", alarm)
    room.sim.run(seconds=0.01)
    [stop] = room.raised
    assert (stop.depth, stop.by, stop.is_sure, stop.is_pain, stop.hold_s) == ("stop", "Ann", False, False, 0.0)
    assert (stop.cause, stop.person) == wanted
    assert len(stop.text) < 700


def test_an_order_or_an_amendment_to_a_moving_robot_holds_nothing_besides() -> None:
    room = Room()
    room.guard("moving")
    assert room.hear("Make me a coffee") == ["replan"]
    assert room.hear("No, the blue one.") == ["amend"]
    assert room.orders == []
    assert room.said == []


def test_an_order_to_a_stopped_robot_is_kept_word_for_word_and_asked_back() -> None:
    room = Room()
    room.hear("Stop!")
    room.hear("Make me a coffee")
    [order] = room.orders
    assert (order.speaker, order.text) == ("Ann", "Make me a coffee")
    assert order.id.startswith("heard:")
    assert [one.text for one in room.said] == [sentence("guard.heard_and_stopped", words="Make me a coffee")]
    assert room.hear("the weather of yesterday was rather good") == []
    assert len(room.orders) == len(room.said) == 1


SEEN = SceneDescription(
    text="", subtask_id="", progress="idle",
    objects=(
        SeenObject(label="Wozzle", colour="mauve", x_m=0, y_m=0, z_m=0, width_m=0, height_m=0, u_px=0, v_px=0),
    ),
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "depths"), [("wozzle", []), ("the mauve", []), ("Fribble flump", ["hold"]), (UNKNOWN, [])]
)
def test_words_that_name_what_the_robot_sees_hold_nothing(text: str, depths: list[str]) -> None:
    room = Room()
    room.guard("moving")
    room.sim.publish("description", SEEN)
    room.sim.run(seconds=0.01)
    assert room.hear(text) == depths


@pytest.mark.parametrize("mark", ["?", "？", "؟", "? "])
def test_the_next_words_after_a_question_are_its_answer(mark: str) -> None:
    room = Room()
    room.guard("moving")
    room.sim.publish("said", Utterance(speaker="robot", text=f"Which one{mark}"))
    room.sim.run(seconds=0.01)
    assert room.hear(UNKNOWN) == []
    assert room.hear(UNKNOWN) == ["hold"], "one answer"


@pytest.mark.parametrize(("text", "wait_s", "depths"), [
    ("Which one?", ANSWER_S, []), ("Which one?", ANSWER_S + 0.1, ["hold"]), ("That one.", 0.1, ["hold"]),
])  # fmt: skip
def test_a_question_waits_so_long_for_its_answer(text: str, wait_s: float, depths: list[str]) -> None:
    room = Room()
    room.guard("moving")
    room.sim.publish("said", Utterance(speaker="robot", text=text))
    room.sim.run(seconds=wait_s)
    assert room.hear(UNKNOWN) == depths


def test_whoever_asked_to_go_on_in_vain_is_told_why() -> None:
    room = Room()
    for code, why in REFUSALS.items():
        room.answer(code)
        assert room.said[-1].text == why
    assert len(room.said) == len(REFUSALS) == len({one.text for one in room.said})
    room.answer("too_late", do="arm")
    room.answer("done")
    assert len(room.said) == len(REFUSALS)


TOLD: tuple[AnswerCode, ...] = (
    "not_a_person", "too_early", "too_late", "in_the_future", "estopped", "runstopped", "another_stop", "caught",
    "another_person",
)  # fmt: skip


@pytest.mark.parametrize("code", TOLD)
def test_no_reason_for_which_going_on_is_refused_is_kept_from_people(code: AnswerCode) -> None:
    room = Room()
    room.answer(code)
    assert len(room.said) == 1


def test_words_of_a_node_that_is_no_ears_stop_and_are_told_that_they_lift_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    room = Room(Prompter())
    assert room.hear("Stop!", topic="prompt") == ["stop"]
    assert room.hear("Go on", topic="prompt") == []
    assert [one.text for one in room.said] == [REFUSALS["not_a_person"]]
    assert "(prompter)" in caplog.text
    assert room.hear("Go on") == ["resume"]


def test_what_no_ears_have_heard_is_refused_where_it_answers_yes_to_a_question_alone() -> None:
    room = Room(Prompter())
    room.guard("stopped")
    refused = [REFUSALS["not_a_person"]]
    assert room.hear("Yes.", topic="prompt") == []
    assert room.said == [], "nobody has asked"
    room.sim.publish("said", Utterance(speaker="robot", text="Shall I?"))
    room.sim.run(seconds=0.01)
    assert room.hear("The door is open.", topic="prompt") == []
    assert [one.text for one in room.said[1:]] == [], "it is no yes"
    room.sim.publish("said", Utterance(speaker="robot", text="Shall I?"))
    room.sim.run(seconds=0.01)
    assert room.hear("Yes.", topic="prompt") == []
    assert [one.text for one in room.said[2:]] == refused


def test_utterances_that_were_lost_stop_the_robot_once_each_time() -> None:
    room = Room()
    room.reflex.heard.dropped["queue full"] = 3
    assert room.hear("hello") == ["stop"]
    stop = room.raised[0]
    assert (stop.by, stop.is_sure, stop.is_pain, stop.is_caught) == ("reflex", True, False, False)
    assert room.raised[0].text.startswith("3 utterances ")
    assert room.hear("hello") == []
    room.reflex.heard.dropped["queue full"] = 4
    assert room.hear("hello") == ["stop"]
    assert room.raised[1].text.startswith("1 utterances ")


def test_contact_is_told_in_order_and_counts_as_sure() -> None:
    room = Room()
    zeros = (0.0,) * 8
    state = RobotState(
        read_ns=0, position=zeros, velocity=zeros, effort=zeros, base_x_m=0.0, base_y_m=0.0, base_heading_rad=0.0,
        base_v_mps=0.0, base_w_radps=0.0, contact=("lift", "arm"),
    )  # fmt: skip
    room.sim.publish("robot/state", state)
    room.sim.run(seconds=0.01)
    [stop] = room.raised
    assert (stop.text, stop.by, stop.is_sure) == ("contact: arm, lift", "contact", True)


def test_the_name_of_a_sensor_is_no_cry() -> None:
    room = Room()
    zeros = (0.0,) * 8
    state = RobotState(
        read_ns=0, position=zeros, velocity=zeros, effort=zeros, base_x_m=0.0, base_y_m=0.0, base_heading_rad=0.0,
        base_v_mps=0.0, base_w_radps=0.0, contact=("ouch, my foot",),
    )  # fmt: skip
    assert understand("contact: ouch, my foot").is_pain
    room.sim.publish("robot/state", state)
    room.sim.run(seconds=0.01)
    [stop] = room.raised
    assert (stop.by, stop.is_sure, stop.is_pain, stop.is_caught) == ("contact", True, False, False)


def test_what_is_read_before_processes_are_forked_are_the_tables() -> None:
    forget()
    load.cache_clear()
    Reflex.preload()
    assert load.cache_info().currsize == 1


# --- what is taken back


def called(by: str = "Ann", age_s: float = 1.0, *, is_sure: bool = False, ident: str = "reflex-1") -> StopCalled:
    return StopCalled(ident, by, is_sure, to_ns(100.0) - to_ns(age_s))


@pytest.mark.parametrize(
    ("stops", "text", "found"),
    [
        ([], "okay", ""),
        ([called()], "okay", "reflex-1"),
        ([called(is_sure=True)], "okay", ""),
        ([called(is_sure=True)], "False alarm.", "reflex-1"),
        ([called()], "Make me a coffee", ""),
        ([called(age_s=TAKE_BACK_S)], "okay", "reflex-1"),
        ([called(age_s=TAKE_BACK_S + 1e-6)], "okay", ""),
        ([called("Ben")], "okay", ""),
        ([called(), called("Ben", ident="reflex-2")], "okay", ""),
        ([called(), called(ident="reflex-2")], "okay", "reflex-2"),
        ([called(is_sure=True), called(ident="reflex-2")], "okay", ""),
        ([called(age_s=TAKE_BACK_S + 1), called(ident="reflex-2")], "okay", ""),
    ],
)
def test_who_caused_every_stop_takes_the_last_one_back_for_a_while(
    stops: list[StopCalled], text: str, found: str
) -> None:
    assert taken_back(text, "Ann", stops, to_ns(100.0)) == found


def test_a_false_alarm_names_the_stop_that_it_takes_back_and_an_ordinary_go_on_none() -> None:
    room = Room()
    room.hear("Ah!")
    assert room.hear("Okay.") == ["resume"]
    assert room.raised[-1].takes_back == "reflex-1"
    room.guard("stopped")
    room.guard("moving")
    room.hear("Stop!")
    room.sim.run(seconds=TAKE_BACK_S + 1.0)
    assert room.hear("Go on.") == ["resume"]
    assert room.raised[-1].takes_back == ""


def test_a_stop_that_was_taken_back_is_taken_back_once() -> None:
    room = Room()
    room.hear("Ah!")
    assert room.hear("Okay.") == ["resume"]
    assert room.hear("Okay.") == []


def test_what_others_have_stopped_for_is_not_taken_back_by_words() -> None:
    room = Room()
    room.hear("Ah!")
    room.sim.publish("interrupt", Interrupt(id="console-1", depth="stop", text="held", by="Ben"))
    room.sim.run(seconds=0.01)
    assert room.hear("Okay.") == []
    assert [one.ident for one in room.reflex.stops] == ["reflex-1", "console-1"]


def test_what_stops_nothing_is_no_stop_and_a_stop_of_its_own_is_noted_once() -> None:
    room = Room()
    room.sim.publish("interrupt", Interrupt(id="console-1", depth="amend", text="", by="Ben"))
    room.sim.run(seconds=0.01)
    room.hear("Stop!")
    assert [(one.ident, one.person, one.is_sure) for one in room.reflex.stops] == [("reflex-1", "test/Ann", True)]
    assert room.reflex.stops.maxlen == MOST_STOPS


def test_stops_are_forgotten_when_the_guard_lets_go_and_not_before() -> None:
    room = Room()
    room.hear("Ah!")
    room.guard("holding")
    assert len(room.reflex.stops) == 1, "the guard has not heard of it yet"
    room.guard("stopped")
    room.guard("stopped")
    assert len(room.reflex.stops) == 1
    assert room.reflex.is_stopped
    room.guard("holding")
    assert not room.reflex.stops
    assert not room.reflex.is_stopped


# --- the second judge


class Judged:
    """A judge that is as sure as the test says, and what it raises."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, certainty: float) -> None:
        monkeypatch.setattr(StopClassifier, "certainty", lambda _, text: certainty)
        self.sim = Simulation(SecondJudge())
        self._all = self.sim.record(SecondJudge.interrupt)

    @property
    def raised(self) -> list[Interrupt]:
        return [one for one in self._all if not one.id.startswith("reflex-")]

    def hear(self, text: str) -> list[Interrupt]:
        self.sim.publish("heard", Utterance(speaker="Ann", text=text))
        self.sim.run(seconds=0.01)
        return self.raised


def test_a_judge_stops_from_its_certainty_on_and_not_below(monkeypatch: pytest.MonkeyPatch) -> None:
    least = StopClassifier.stops_from(understand(UNKNOWN))
    assert Judged(monkeypatch, least - 1e-6).hear(UNKNOWN) == []
    judged = Judged(monkeypatch, least)
    [stop] = judged.hear(UNKNOWN)
    assert (stop.depth, stop.text, stop.by, stop.takes_back) == ("stop", UNKNOWN, "Ann", "")
    assert (stop.cause, stop.person) == ("person", "test/Ann")
    assert [one.id.rpartition("-")[2] for one in judged.hear(UNKNOWN)] == ["1", "2"]


ORDER = "Make me a coffee"


@pytest.mark.parametrize(("text", "certainty", "depths"), [
    (ORDER, StopClassifier.HOLDS_FROM, ["hold"]), (ORDER, StopClassifier.HOLDS_FROM - 1e-6, []),
    (ORDER, StopClassifier.STOPS_FROM, ["stop"]), (UNKNOWN, StopClassifier.HOLDS_FROM, []),
    ("He said: stop the blimp", 1.0, []), ("There is no need to stop", 1.0, []), ("Go on", 1.0, []),
])  # fmt: skip
def test_a_judge_holds_for_what_may_be_a_stop_and_adds_nothing_to_what_is_told_or_denied(
    monkeypatch: pytest.MonkeyPatch, text: str, certainty: float, depths: list[str]
) -> None:
    raised = Judged(monkeypatch, certainty).hear(text)
    assert [one.depth for one in raised] == depths
    assert [one.hold_s for one in raised] == [HOLD_S if depth == "hold" else 0.0 for depth in depths]


def test_a_judge_that_has_not_read_its_network_yet_neither_stops_nor_ends_a_hold() -> None:
    judge = SecondJudge()
    judge.listen(Utterance(speaker="Ann", text=UNKNOWN))
    judge.review(Interrupt(id="reflex-7", depth="hold", text=UNKNOWN, by="Ann", hold_s=1.2))
    assert judge.count == 0


def test_a_judge_ends_a_hold_below_its_bound_by_the_holds_own_id(monkeypatch: pytest.MonkeyPatch) -> None:
    hold = Interrupt(id="reflex-7", depth="hold", text=UNKNOWN, by="Ann", hold_s=1.2)
    for certainty, ends in ((StopClassifier.HARMLESS_BELOW, 0), (StopClassifier.HARMLESS_BELOW - 1e-6, 1)):
        judged = Judged(monkeypatch, certainty)
        judged.sim.publish("interrupt", hold)
        judged.sim.run(seconds=0.01)
        assert len(judged.raised) == ends
    [end] = judged.raised
    assert (end.cause, end.person) == ("", "")
    assert (end.depth, end.takes_back, end.text, end.by) == ("hold", "reflex-7", UNKNOWN, end.id.rpartition("-")[0])
    for other in (
        Interrupt(id="reflex-8", depth="stop", text=UNKNOWN, by="Ann"),
        Interrupt(id="reflex-9", depth="hold", text=UNKNOWN, by="Ann", takes_back="reflex-7"),
    ):
        judged.sim.publish("interrupt", other)
        judged.sim.run(seconds=0.01)
    assert len(judged.raised) == 1


def test_a_stopped_robot_asks_for_going_on_alone_where_more_was_said_with_it_and_a_moving_one_says_nothing() -> None:
    room = Room()
    room.guard("moving")
    assert room.hear("I moved my hand away. Go on.") == []
    assert room.said == []
    room.guard("stopped")
    assert room.hear("I moved my hand away. Go on.") == []
    assert [one.text for one in room.said] == [ONLY_GO_ON]
    assert room.hear("The door is open.") == []
    assert len(room.said) == 1
