"""What an interrupt voids: answers still on their way, and nothing else."""

from __future__ import annotations

import asyncio

import pytest

from runtime import Message, Node, Publisher, Simulation, Subscription, every, on
from runtime.control_messages.fence import SEATS, Fence, PreemptionEpochs, raised, seat_index
from runtime.launch.graph import NodeSpec
from runtime.launch.latency import Latency
from runtime.message import Envelope


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


def fence(depth: str, epochs: tuple[int, int, int] = (0, 0, 0)) -> Fence:
    return Fence(epochs=raised(epochs, depth))


def test_each_depth_fences_its_seats() -> None:
    assert raised((0, 0, 0), "amend") == (0, 1, 0)
    assert raised((0, 1, 0), "replan") == (1, 1, 1)
    assert raised((1, 1, 1), "stop") == (2, 2, 2)
    assert raised((2, 2, 2), "resume") == (2, 2, 2)


def test_epochs_only_grow() -> None:
    line = PreemptionEpochs()
    assert line.raise_to((2, 0, 1)) == {"planner", "policy"}
    assert line.raise_to((1, 3, 1)) == {"vlm"}
    assert line.epochs == (2, 3, 1)


def test_a_message_of_no_seat_is_behind_no_fence() -> None:
    line = PreemptionEpochs()
    line.raise_to((9, 9, 9))
    assert not line.is_behind(Envelope("heard", "microphone", 1, 0))
    assert line.is_behind(Envelope("command", "policy", 1, 0, epochs=(9, 9, 8), seat=2))


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


@pytest.mark.parametrize("place", range(3))
def test_a_line_fences_each_seat_by_itself_and_remembers_what_raised_it(place: int) -> None:
    line = PreemptionEpochs()
    new = tuple(int(place == number) for number in range(3))
    assert not line.voids(place, (0, 0, 0), "")
    assert line.raise_to(new, "heard:ana:1") == {SEATS[place]}  # type: ignore[arg-type]  # three numbers
    assert line.epochs == new
    assert line.raise_to(new) == frozenset(), "nothing new"
    assert line.voids(place, (0, 0, 0), "")
    assert line.voids(place, (0, 0, 0), "heard:ana:2")
    assert not line.voids(place, (0, 0, 0), "heard:ana:1"), "the answer to that very event"
    assert not line.voids((place + 1) % 3, (0, 0, 0), "")
    assert not line.voids(-1, (0, 0, 0), "")
    more = tuple(number + 1 for number in new)
    assert line.raise_to(more) == frozenset(SEATS)  # type: ignore[arg-type]
    assert line.voids(place, new, ""), "of an event that nobody named"
    assert line.raise_to((0, 0, 0)) == frozenset()
    assert line.epochs == more


def test_a_vector_of_another_length_is_an_error() -> None:
    for wrong in ((1, 1), (1, 1, 1, 1)):
        with pytest.raises(ValueError, match="zip"):
            PreemptionEpochs().raise_to(wrong)  # type: ignore[arg-type]  # on purpose
        with pytest.raises(ValueError, match="zip"):
            raised(wrong, "stop")  # type: ignore[arg-type]


def test_each_depth_raises_its_seats() -> None:
    vectors = [raised((4, 5, 6), depth) for depth in ("amend", "replan", "stop", "resume")]
    assert vectors == [(4, 6, 6), (5, 5, 7), (5, 6, 7), (4, 5, 6)]
    assert [seat_index(seat) for seat in (*SEATS, "", "cook")] == [0, 1, 2, -1, -1]


def test_a_vector_of_another_length_is_refused_and_raises_nothing() -> None:
    line = PreemptionEpochs()
    for wrong in ((9, 9), (9, 9, 9, 9)):
        with pytest.raises(ValueError, match=r"shorter|longer"):
            line.raise_to(wrong)  # type: ignore[arg-type]  # as a stranger might send it
        assert line.epochs == (0, 0, 0)


@pytest.mark.parametrize("seat", range(3))
def test_no_event_is_the_cause_of_a_fence_that_was_raised_without_one(seat: int) -> None:
    line = PreemptionEpochs()
    assert line._causes == ["", "", ""]
    line.raise_to((1, 1, 1))
    assert line.voids(seat, (0, 0, 0), "heard:Ana:1")
    assert line.voids(seat, (0, 0, 0))
    assert line._causes == ["", "", ""]


def test_who_answers_the_event_that_raised_the_fence_is_not_behind_it() -> None:
    line = PreemptionEpochs()
    line.raise_to((1, 0, 0), "heard:Ana:7")
    mine = Envelope("plan", "planner", 1, 1, epochs=(0, 0, 0), cause="heard:Ana:7", seat=0)
    assert not line.is_behind(mine)
    assert line.is_behind(Envelope("plan", "planner", 2, 2, epochs=(0, 0, 0), cause="heard:Ana:6", seat=0))
