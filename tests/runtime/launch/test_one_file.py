"""`graph(...)`: nodes, rates and seats in one Python file, with the checks of a launch file; also in a notebook."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from nodes.hello import Beat, Listener, Talker
from runtime import GraphError, Message, Node, NodeSpec, Publisher, Simulation, Subscription, every, graph, on, run
from runtime.cli import main


class Place(Message, kind="state"):
    """A state."""

    by: str = ""


class Hand(Node):
    """One of two that may move."""

    seat = "policy"
    place = Publisher(Place, "place")

    @every(hz=10)
    def tick(self) -> None:
        self.place.publish(Place(by=self.name))


class Ends(Node):
    """Ends the run with the third beat."""

    beat = Subscription(Beat, "beat")

    def __init__(self) -> None:
        self.count = 0

    @on(beat)
    def heard(self, _: Beat) -> None:
        self.count += 1
        if self.count == 3:
            self.finish(ok=True, reason="three")


class Hears(Node):
    """Keeps who moved."""

    place = Subscription(Place, "place")

    def __init__(self) -> None:
        self.by: list[str] = []

    @on(place)
    def heard(self, place: Place) -> None:
        self.by.append(place.by)
        if len(self.by) == 3:
            self.finish(ok=True, reason="three")


class Interrupts(Node):
    """Presses the button that ends a cell, once."""

    beat = Subscription(Beat, "beat")

    @on(beat)
    def heard(self, beat: Beat) -> None:
        if beat.count == 2:
            os.kill(os.getpid(), signal.SIGINT)


def hands() -> list[NodeSpec]:
    return [NodeSpec("expert", Hand), NodeSpec("wizard", Hand)]


@pytest.mark.parametrize("rates", [{"talker": 50}, {"talker": {"tick": 50}}])
def test_rates_are_those_of_the_timers_in_both_clocks(rates: dict[str, Any]) -> None:
    simulation = Simulation(graph(Talker(), Listener(), rates=rates))
    beats = simulation.record(Talker.beat)
    simulation.run(seconds=1.0)
    assert len(beats) == 50
    assert run(graph(Talker(), Ends(), rates=rates)) == (True, "three")


def test_a_run_in_a_notebook_goes_beside_its_loop() -> None:
    async def cell() -> object:
        return run(graph(Talker(), Ends(), rates={"talker": 50}))

    assert asyncio.run(cell()) == (True, "three")


def test_a_cell_that_is_interrupted_ends_its_run() -> None:
    async def cell() -> object:
        return run(graph(Talker(), Interrupts(), rates={"talker": 50}))

    loop = asyncio.new_event_loop()  # which leaves SIGINT to Python, as a notebook's does
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what it starts with &
    try:
        assert loop.run_until_complete(cell()) is None
    finally:
        loop.close()
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("is_virtual", [True, False])
def test_of_two_on_a_seat_the_first_holds_it(is_virtual: bool) -> None:
    hears = Hears()
    made = graph(*hands(), hears, seats={"policy": ("wizard", "expert")})
    if is_virtual:
        Simulation(made).run(seconds=1.0)
    else:
        assert run(made) == (True, "three")
    assert set(hears.by) == {"wizard"}


def test_the_checks_are_those_of_a_launch_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "graph.toml"
    file.write_text('[nodes.listener]\nuse = "nodes.hello:Listener"\n', encoding="utf-8")
    assert main(["check", str(file)]) == 2
    with pytest.raises(GraphError) as raised:
        graph(Listener())
    assert f"{raised.value} [{raised.value.code}]\n" == capsys.readouterr().err.partition("[nodes.listener] ")[2]


@pytest.mark.parametrize(
    ("made", "code"),
    [
        (lambda: graph(Talker(), rates={"tolker": 4}), "P023"),
        (lambda: graph(Talker(), rates={"talker": {"tock": 4}}), "P023"),
        (lambda: graph(Talker(), rates={"talker": -1}), "P023"),
        (lambda: graph(*hands(), Hears()), "P033"),
        (lambda: graph(*hands(), Hears(), seats={"policy": ("wizard",)}), "P040"),
        (lambda: graph(*hands(), Hears(), seats={"policy": ()}), "P004"),
        (lambda: graph(Talker(), seats={"policy": ("talker",)}), "P040"),
        (lambda: graph(NodeSpec("talker", Talker, {"strat": 4})), "P011"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_code(made: Any, code: str) -> None:
    with pytest.raises(GraphError) as raised:
        made()
    assert raised.value.code == code
