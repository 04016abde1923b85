"""Words that may lift a stop are taken from the processes whose nodes say them, in the names of these nodes only."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from nodes.guard.node import Guard
from nodes.interrupts.reflex import Reflex
from nodes.robot.driver import Driver
from nodes.sim.collaborator import Collaborator
from runtime.launch.file import resolve
from runtime.launch.process_plan import plan
from runtime.message import Envelope, Stamped
from runtime.msgs import Interrupt, Utterance
from runtime.transport.reliable.tag import Terms
from runtime.transport.zeromq import PublisherSockets, SubscriberThread
from tests.support.running import eventually

VOUCHED = {"heard": {"ears": ("sam",), "planner": ("planner",)}}


@pytest.mark.processes
@pytest.mark.parametrize("reliable", [{}, {"heard": Terms(receivers=("robot",))}], ids=["plain", "reliable"])
def test_a_process_that_stamps_another_nodes_name_is_not_heard(reliable: Mapping[str, Terms]) -> None:
    heard: list[tuple[str, str]] = []
    lost: list[str] = []

    def take(stamped: Stamped[Utterance]) -> None:
        heard.append((stamped.envelope.source, stamped.message.text))

    with tempfile.TemporaryDirectory(prefix="pr-", dir="/tmp") as name:
        folder = Path(name)
        outlets = {process: PublisherSockets(folder, process, 0, reliable) for process in ("ears", "planner", "camera")}
        inlet = SubscriberThread(
            {"heard": Utterance, "interrupt": Interrupt}, take, lambda topic, reason, number: lost.append(reason),
            receiver="robot", reliable=tuple(reliable),
        )  # fmt: skip
        inlet.connect(folder, list(outlets), vouched=VOUCHED)
        inlet.start()
        for process in ("ears", "planner"):
            assert asyncio.run(outlets[process].await_subscribers({"heard": 1}, 20.0, asyncio.Event())) == []
        for number in range(1, 4):
            for process in ("camera", "planner"):
                outlets[process].publish(
                    Envelope("heard", "sam", number, number), Utterance(speaker="Sam", text="go on")
                )
        outlets["planner"].publish(Envelope("heard", "planner", 1, 1), Utterance(speaker="robot", text="mine"))
        outlets["ears"].publish(Envelope("heard", "sam", 1, 1), Utterance(speaker="Sam", text="stop"))
        eventually(lambda: len(heard) == 2 and len(lost) == 3, f"both have come: {heard} {lost}", 5.0)
        for outlet in outlets.values():
            outlet.close()
        inlet.close()
    assert sorted(heard) == [("planner", "mine"), ("sam", "stop")]
    assert lost == ["forged: planner speaks in the name of sam"] * 3, "and of the camera nothing is taken at all"


def test_the_plan_names_who_may_say_what_lifts_a_stop() -> None:
    def place(cls: type, process: str) -> dict[str, object]:
        return {"use": f"{cls.__module__}:{cls.__qualname__}", "process": process}

    nodes = {
        "driver": place(Driver, "robot"), "guard": place(Guard, "robot"), "reflex": place(Reflex, "words"),
        "sam": place(Collaborator, "person"), "camera": {"use": "nodes.sim.camera:SimCamera", "process": "camera"},
    }  # fmt: skip
    launch = resolve({"nodes": nodes}, path=Path("graph.toml"))
    plans = plan(launch)
    assert plans["words"].vouched["heard"] == {"person": ("sam",)}
    assert plans["robot"].vouched["interrupt"]["words"] == ("reflex",)
    assert "camera" not in plans["robot"].vouched["interrupt"]
    assert plans["camera"].vouched == {}
