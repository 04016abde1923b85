"""Words that may lift a stop, and what speaks for a seat, are taken from the processes whose nodes say them, in the
names of these nodes only.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from bench.faults.nodes import SteadyPolicy
from nodes.guard.node import Guard
from nodes.interrupts.reflex import Reflex
from nodes.msgs import Interrupt, JointCommand, Utterance
from nodes.robot.driver import Driver
from nodes.sim.people.person import ScenarioPerson
from runtime.launch.file import resolve
from runtime.launch.process_plan import plan
from runtime.message import Envelope, Stamped
from runtime.qos import HOLD_S, LIFESPAN_S
from runtime.transport.reliable.tag import Terms
from runtime.transport.zeromq import PublisherSockets, SubscriberThread
from tests.support.running import eventually
from tests.support.sentences import sentence

VOUCHED = {"heard": {"ears": ("sam",), "planner": ("planner",)}}


@pytest.mark.processes
@pytest.mark.parametrize("reliable", [{}, {"heard": Terms(("robot",), LIFESPAN_S, HOLD_S)}], ids=["plain", "reliable"])
def test_a_process_that_stamps_another_nodes_name_is_not_heard(reliable: Mapping[str, Terms]) -> None:
    heard: list[tuple[str, str]] = []
    lost: list[tuple[str, str]] = []

    def take(stamped: Stamped[Utterance]) -> None:
        heard.append((stamped.envelope.source, stamped.message.text))

    with tempfile.TemporaryDirectory(prefix="pr-", dir="/tmp") as name:
        folder = Path(name)
        outlets = {process: PublisherSockets(folder, process, 0, reliable) for process in ("ears", "planner", "camera")}
        inlet = SubscriberThread(
            {"heard": Utterance, "interrupt": Interrupt}, take,
            lambda topic, reason, number, why: lost.append((reason, why)), receiver="robot", reliable=tuple(reliable),
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
    assert lost == [("forged", sentence("runtime.forged", process="planner", node="sam"))] * 3, (
        "and of the camera nothing is taken at all"
    )


@pytest.mark.processes
def test_a_process_that_stamps_the_name_of_who_sits_on_a_seat_moves_nothing() -> None:
    heard: list[float] = []
    lost: list[tuple[str, str]] = []
    with tempfile.TemporaryDirectory(prefix="pr-", dir="/tmp") as name:
        folder = Path(name)
        outlets = {process: PublisherSockets(folder, process, 0) for process in ("policy", "console", "camera")}
        inlet = SubscriberThread(
            {"command": JointCommand}, lambda stamped: heard.append(stamped.message.base_v_mps),
            lambda topic, reason, number, why: lost.append((reason, why)), receiver="robot",
        )  # fmt: skip
        vouched = {"command": {"policy": ("policy",), "console": ("human_policy",)}}
        inlet.connect(folder, list(outlets), vouched=vouched)
        inlet.start()
        for process in ("policy", "console"):
            assert asyncio.run(outlets[process].await_subscribers({"command": 1}, 20.0, asyncio.Event())) == []
        for process in ("camera", "console"):
            outlets[process].publish(
                Envelope("command", "policy", 1 << 40, 1), JointCommand(position=(), base_v_mps=9.0)
            )
        eventually(
            lambda: lost == [("forged", sentence("runtime.forged", process="console", node="policy"))],
            f"it is told: {lost}",
            5.0,
        )
        outlets["console"].publish(Envelope("command", "human_policy", 1, 1), JointCommand(position=(), base_v_mps=0.1))
        outlets["policy"].publish(Envelope("command", "policy", 1, 1), JointCommand(position=(), base_v_mps=0.2))
        eventually(lambda: sorted(heard) == [0.1, 0.2], f"both have come: {heard}", 5.0)
        for outlet in outlets.values():
            outlet.close()
        inlet.close()


def test_the_plan_names_who_may_speak_for_a_seat_and_say_what_lifts_a_stop() -> None:
    def place(cls: type, process: str) -> dict[str, object]:
        return {"use": f"{cls.__module__}:{cls.__qualname__}", "process": process}

    nodes = {
        "driver": place(Driver, "robot"), "guard": place(Guard, "robot"), "reflex": place(Reflex, "words"),
        "policy": place(SteadyPolicy, "policy"), "sam": place(ScenarioPerson, "person"),
        "camera": {"use": "nodes.sim.camera:SimCamera", "process": "camera"},
    }  # fmt: skip
    launch = resolve({"nodes": nodes}, path=Path("graph.toml"))
    plans = plan(launch)
    assert plans["words"].vouched["heard"] == {"person": ("sam",)}
    assert plans["robot"].vouched["interrupt"]["words"] == ("reflex",)
    assert "camera" not in plans["robot"].vouched["interrupt"]
    assert plans["robot"].vouched["command"] == {"policy": ("policy",)}
    assert plans["camera"].vouched == {}
