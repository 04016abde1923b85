"""What an interrupt voids: answers still on their way, and nothing else."""

from __future__ import annotations

import asyncio

import pytest

from nodes.msgs.interrupt import PREEMPTS
from runtime import Message, Node, Publisher, Simulation, Subscription, every, on
from runtime.coordination.fence import Fence, PreemptionEpochs, raised
from runtime.launch.graph import NodeSpec
from runtime.launch.tables.handler_latency import Latency
from runtime.message import Envelope, Epochs


class Question(Message):
    number: int


class Answer(Message):
    number: int


class SlowPlanner(Node):
    """Answers after two seconds, as a model behind an API does."""

    seat = "planner"
    question = Subscription(Question, "question")
    answer = Publisher(Answer, "answer")

    def __init__(self) -> None:
        self.cancelled = 0

    @on(question)
    async def think(self, question: Question) -> None:
        try:
            await asyncio.sleep(2.0)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        self.answer.publish(Answer(number=question.number))


class SlowVLM(Node):
    """Takes two seconds in a worker thread."""

    seat = "vlm"
    question = Subscription(Question, "question")
    answer = Publisher(Answer, "answer")

    @on(question, blocking=True)
    def look(self, question: Question) -> None:
        self.answer.publish(Answer(number=question.number))


class Consumer(Node):
    """Keeps what it is told."""

    answer = Subscription(Answer, "answer")

    def __init__(self) -> None:
        self.numbers: list[int] = []

    @on(answer)
    def take(self, answer: Answer) -> None:
        self.numbers.append(answer.number)


class Asker(Node):
    """Asks once a minute; not on any seat."""

    question = Publisher(Question, "question")

    @every(hz=1 / 60)
    def ask(self) -> None:
        self.question.publish(Question(number=1))


def fence(depth: str, epochs: Epochs | None = None) -> Fence:
    return Fence(epochs=raised(epochs or {}, PREEMPTS[depth]))


def test_each_depth_fences_its_seats() -> None:
    assert raised({}, PREEMPTS["amend"]) == {"vlm": 1}
    assert raised({"vlm": 1}, PREEMPTS["replan"]) == {"planner": 1, "vlm": 1, "policy": 1}
    assert raised({"planner": 1, "vlm": 1, "policy": 1}, PREEMPTS["stop"]) == {"planner": 2, "vlm": 2, "policy": 2}
    assert raised({"planner": 2, "vlm": 2, "policy": 2}, PREEMPTS["resume"]) == {"planner": 2, "vlm": 2, "policy": 2}


def test_epochs_only_grow() -> None:
    line = PreemptionEpochs()
    assert line.raise_to({"planner": 2, "policy": 1}, "") == {"planner", "policy"}
    assert line.raise_to({"planner": 1, "vlm": 3, "policy": 1}, "") == {"vlm"}
    assert line.epochs == {"planner": 2, "vlm": 3, "policy": 1}


def test_a_message_of_no_seat_is_behind_no_fence() -> None:
    line = PreemptionEpochs()
    line.raise_to({"planner": 9, "vlm": 9, "policy": 9}, "")
    assert not line.is_behind(Envelope("heard", "microphone", 1, 0))
    assert line.is_behind(
        Envelope("command", "policy", 1, 0, epochs={"planner": 9, "vlm": 9, "policy": 8}, seat="policy")
    )


def test_a_stop_cancels_the_planners_call_in_flight() -> None:
    planner, consumer = SlowPlanner(), Consumer()
    sim = Simulation(Asker(), planner, consumer)
    sim.run(seconds=1.0)
    sim.publish("fence", fence("stop"))
    sim.run(seconds=5.0)
    assert (planner.cancelled, consumer.numbers) == (1, [])


def test_an_amendment_leaves_the_planner_thinking() -> None:
    planner, consumer = SlowPlanner(), Consumer()
    sim = Simulation(Asker(), planner, consumer)
    sim.run(seconds=1.0)
    sim.publish("fence", fence("amend"))
    sim.run(seconds=5.0)
    assert (planner.cancelled, consumer.numbers) == (0, [1])


def test_an_amendment_voids_the_vlms_pending_answer() -> None:
    consumer = Consumer()
    vlm = NodeSpec("vlm", SlowVLM, latency={"look": Latency.parse(2.0, "vlm")})
    sim = Simulation(Asker(), vlm, consumer)
    sim.run(seconds=1.0)
    sim.publish("fence", fence("amend"))
    sim.run(seconds=5.0)
    assert consumer.numbers == []
    assert consumer.answer.dropped == {"epoch": 1}


def test_what_is_asked_after_the_fence_is_answered() -> None:
    planner, consumer = SlowPlanner(), Consumer()
    sim = Simulation(Asker(), planner, consumer)
    sim.run(seconds=1.0)
    sim.publish("fence", fence("stop"))
    sim.run(seconds=0.5)
    sim.publish("question", Question(number=2))
    sim.run(seconds=5.0)
    assert consumer.numbers == [2]


@pytest.mark.parametrize("seat", [*PREEMPTS["stop"], "navigation"])
def test_a_line_fences_each_seat_by_itself_and_remembers_what_raised_it(seat: str) -> None:
    line, other = PreemptionEpochs(), "policy" if seat != "policy" else "vlm"
    assert not line.voids(seat, {}, "")
    assert line.raise_to({seat: 1}, "heard:ana:1") == {seat}
    assert line.epochs == {seat: 1}
    assert line.raise_to({seat: 1}, "") == frozenset(), "nothing new"
    assert line.voids(seat, {}, "")
    assert line.voids(seat, {}, "heard:ana:2")
    assert not line.voids(seat, {}, "heard:ana:1"), "the answer to that very event"
    assert not line.voids(other, {}, "")
    assert not line.voids("", {}, "")
    assert line.raise_to({seat: 2, other: 1}, "") == {seat, other}
    assert line.voids(seat, {seat: 1}, ""), "of an event that nobody named"
    assert line.raise_to({}, "") == frozenset()
    assert line.epochs == {seat: 2, other: 1}


def test_each_depth_raises_its_seats_and_leaves_the_vector_before_as_it_was() -> None:
    before = {"planner": 4, "vlm": 5, "policy": 6, "navigation": 7}
    vectors = [raised(before, PREEMPTS[depth]) for depth in ("amend", "replan", "stop", "resume")]
    assert [tuple(vector.values()) for vector in vectors] == [(4, 6, 6, 7), (5, 5, 7, 7), (5, 6, 7, 7), (4, 5, 6, 7)]
    assert before == {"planner": 4, "vlm": 5, "policy": 6, "navigation": 7}


@pytest.mark.parametrize("seat", PREEMPTS["stop"])
def test_no_event_is_the_cause_of_a_fence_that_was_raised_without_one(seat: str) -> None:
    line = PreemptionEpochs()
    line.raise_to(dict.fromkeys(PREEMPTS["stop"], 1), "")
    assert line.voids(seat, {}, "heard:Ana:1")
    assert line.voids(seat, {})


def test_who_answers_the_event_that_raised_the_fence_is_not_behind_it() -> None:
    line = PreemptionEpochs()
    line.raise_to({"planner": 1}, "heard:Ana:7")
    mine = Envelope("plan", "planner", 1, 1, epochs={}, cause="heard:Ana:7", seat="planner")
    assert not line.is_behind(mine)
    assert line.is_behind(Envelope("plan", "planner", 2, 2, epochs={}, cause="heard:Ana:6", seat="planner"))
