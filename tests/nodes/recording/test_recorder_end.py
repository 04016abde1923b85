"""What waits for a recorder when the run ends is written, or counted as missed."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodes.mcap.file import BagReader
from nodes.msgs import Utterance
from nodes.recording.recorder import Recorder
from runtime.coordination.health import Health
from runtime.execution import executor as module
from runtime.execution.executor import Executor, Transport
from runtime.launch.graph import NodeSpec
from runtime.launch.tables.handler_latency import Latency
from runtime.message import Envelope, Message, Stamped
from runtime.node import Node, every
from runtime.ports import Publisher
from runtime.virtual.simulation import Simulation

NUMBER = 500  # more than a lane takes in one turn


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    interval_s = sys.getswitchinterval()
    yield
    sys.setswitchinterval(interval_s)
    gc.unfreeze()


def run_to_its_end(folder: Path) -> dict[str, dict[str, int]]:
    """Record messages of a run that ends before they were taken in; what the recorder said last it had dropped."""
    told: list[Health] = []

    class Wire(Transport):
        def publish(self, envelope: Envelope, message: Message) -> None:
            if isinstance(message, Health):
                told.append(message)

    async def run() -> None:
        executor = Executor(
            [NodeSpec("recorder", Recorder)],
            {"said": Utterance},
            transport=Wire(),
            seed=0,
            run_info={"folder": str(folder)},
        )
        await executor.prepare()
        for seq in range(1, NUMBER + 1):
            words = Utterance(speaker="robot", text=f"{seq}")
            executor.deliver(Stamped(words, Envelope("said", "robot", seq, executor.clock.now_ns())))
        stop = asyncio.Event()
        stop.set()
        await executor.run(stop)

    asyncio.run(run())
    return {port.topic: dict(port.dropped) for port in told[-1].ports if port.dropped}


def test_what_waits_at_the_end_is_written(tmp_path: Path) -> None:
    dropped = run_to_its_end(tmp_path)
    reader = BagReader(tmp_path / "run.mcap")
    assert [one.document["text"] for one in reader if one.topic == "said"] == [str(n) for n in range(1, NUMBER + 1)]
    assert (reader.metadata["end"]["missed"], dropped) == ("{}", {})


def test_what_there_is_no_time_for_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LAST_WRITES_S", 0.0)
    dropped = run_to_its_end(tmp_path)
    reader = BagReader(tmp_path / "run.mcap")
    written = sum(one.topic == "said" for one in reader)
    assert written < NUMBER
    assert json.loads(reader.metadata["end"]["missed"]) == {"said": NUMBER - written}
    assert dropped == {"said": {"end of run": NUMBER - written}}


class Talker(Node):
    said = Publisher(Utterance, "said")

    @every(hz=50)
    def tick(self) -> None:
        self.said.publish(Utterance(speaker="robot", text="yes"))


def test_a_recorder_that_takes_its_time_in_virtual_time_has_all_of_it_too(tmp_path: Path) -> None:
    slow = NodeSpec("recorder", Recorder, latency={"flush": Latency.parse(0.7, "recorder")})
    simulation = Simulation(NodeSpec("talker", Talker), slow)
    simulation.run_info["folder"] = str(tmp_path)
    simulation.run(2.0)
    simulation.close()
    reader = BagReader(tmp_path / "run.mcap")
    assert [one.envelope.seq for one in reader if one.topic == "said"] == list(range(1, 101))
    assert reader.metadata["end"]["missed"] == "{}"
