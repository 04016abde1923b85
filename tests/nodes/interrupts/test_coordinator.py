"""Claims about the coordinator: in a graph without a robot, too, "Stop!" cancels what a seat is about."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from nodes.interrupts.coordinator import Coordinator
from nodes.interrupts.reflex import Reflex
from nodes.msgs import Utterance
from runtime import (
    Fence,
    Graph,
    GraphError,
    LaunchFileError,
    Node,
    NodeSpec,
    Publisher,
    Simulation,
    Subscription,
    every,
    graph,
    on,
    run,
)
from runtime.launch.file import check, resolve
from tests.support.sentences import pattern

THINKS_S = 5.0


class Thinker(Node):
    """Thinks for long about each thing that it hears."""

    seat = "planner"
    heard = Subscription(Utterance, "heard")
    said = Publisher(Utterance, "said")

    def __init__(self) -> None:
        self.cancelled: list[tuple[str, float]] = []

    @on(heard)
    async def listen(self, heard: Utterance) -> None:
        began_ns = self.clock.now_ns()
        try:
            await self.clock.sleep(THINKS_S)
        except asyncio.CancelledError:
            self.cancelled.append((heard.text, self.clock.since_s(began_ns)))
            raise
        self.said.publish(Utterance(speaker="robot", text=heard.text))


class Navigator(Thinker):
    """The same on a seat of its own."""

    seat = "navigation"


class Person(Node):
    """Orders, and says stop a little later."""

    role = "ears"
    heard = Publisher(Utterance, "heard")

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts or ("Bring me tea", "Stop!"))

    @every(hz=10)
    def speak(self) -> None:
        if self.texts:
            self.heard.publish(Utterance(speaker="ann", text=self.texts.pop(0)))


class Raiser(Node):
    """Issues fences of its own."""

    fence = Publisher(Fence, "fence")


@pytest.mark.parametrize("thinker", [Thinker, Navigator])
def test_stop_cancels_an_async_handler_without_a_robot_in_virtual_time(thinker: type[Thinker]) -> None:
    node = thinker()
    simulation = Simulation(node, Person(), Reflex(), Coordinator())
    said = simulation.record(Thinker.said)
    simulation.run(THINKS_S + 0.05)
    simulation.close()
    ((text, after_s), *_) = node.cancelled
    assert text == "Bring me tea"
    assert after_s == pytest.approx(0.1, abs=0.01)
    assert all("tea" not in one.text for one in said)


def test_stop_cancels_an_async_handler_without_a_robot_in_real_time() -> None:
    node = Thinker()
    run(node, Person(), Reflex(), Coordinator(), seconds=0.6)
    assert node.cancelled[0][0] == "Bring me tea"
    assert node.cancelled[0][1] < THINKS_S / 2


def test_without_anybody_who_issues_fences_the_thought_goes_on() -> None:
    node = Thinker()
    simulation = Simulation(node, Person(), Reflex())
    simulation.run(THINKS_S - 0.5)
    assert node.cancelled == []
    simulation.close()


def test_words_that_interrupt_nothing_cancel_nothing() -> None:
    node = Thinker()
    simulation = Simulation(node, Person("Bring me tea", "mhm", "go on"), Reflex(), Coordinator())
    simulation.run(THINKS_S - 0.5)
    assert node.cancelled == []
    simulation.close()


def launch(**nodes: str) -> Any:
    return resolve({"nodes": {name: {"use": use} for name, use in nodes.items()}}, path=Path("talk.toml"))


HERE, REFLEX = "tests.nodes.interrupts.test_coordinator", "nodes.interrupts.reflex:Reflex"
COORDINATOR = "nodes.interrupts.coordinator:Coordinator"


def test_a_graph_with_seats_and_interrupts_and_nobody_who_issues_fences_is_refused() -> None:
    nodes = {"planner": f"{HERE}:Thinker", "person": f"{HERE}:Person", "reflex": REFLEX}
    with pytest.raises(LaunchFileError, match=pattern("runtime.nobody_fences", seat="planner", who="reflex")):
        check(launch(**nodes))
    check(launch(**nodes, coordinator=COORDINATOR))


def test_a_graph_in_one_python_file_is_asked_the_same() -> None:
    nodes = (Thinker(), Person(), Reflex())
    with pytest.raises(GraphError, match=pattern("runtime.nobody_fences", seat="planner", who="reflex")) as raised:
        graph(*nodes)
    assert raised.value.code == "P034"
    graph(*nodes, Coordinator())


def test_a_graph_without_seats_or_without_interrupts_needs_nobody_who_issues_fences() -> None:
    check(launch(person=f"{HERE}:Person", reflex=REFLEX))
    check(launch(planner=f"{HERE}:Thinker", person=f"{HERE}:Person"))


@pytest.mark.parametrize("other", [Coordinator, Raiser])
def test_two_who_issue_fences_are_refused(other: type[Node]) -> None:
    found = Graph([NodeSpec("one", Coordinator), NodeSpec("other", other)]).problems()
    assert [node for node, _ in found] == ["other"]
    assert found[0][1].startswith("topic 'fence': one and other ")
