"""What was recorded in real time, in processes and with threads racing in a node, replays bit for bit."""

from __future__ import annotations

import asyncio

import pytest

from nodes.recording.bag.recording import Recording
from nodes.recording.replay.command import replay_nodes
from nodes.recording.replay.player import NodeResult
from nodes.recording.replay.recorded_launch import recorded_launch
from runtime.launch.file import load
from runtime.supervision.supervisor import Supervisor
from runtime.supervision.view import SilentView

LAUNCH = """
[nodes.source]
use = "tests.nodes.recording.replay.threaded_nodes:Source"

[nodes.racer]
use = "tests.nodes.recording.replay.threaded_nodes:Racer"

[nodes.recorder]
use = "nodes.recording.recorder:Recorder"
"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    folder = tmp_path_factory.mktemp("run")
    file = folder / "a.toml"
    file.write_text(LAUNCH)
    launch = load(file, [])

    async def run() -> tuple[bool, str] | None:
        return await Supervisor(launch, folder=folder, seed=7, run_info={}, view=SilentView()).run(60.0)

    assert asyncio.run(run()) == (True, "200 ticks")
    return Recording(folder / "run.mcap")


def again(recording: Recording, *changes: str) -> NodeResult:
    (result,) = replay_nodes(recording, [recorded_launch(recording, list(changes)).graph.nodes["racer"]])
    return result


@pytest.mark.processes
def test_two_threads_of_one_node_replay_bit_for_bit(recording: Recording) -> None:
    result = again(recording)
    assert result.is_exact, (result.difference, result.doubts)
    assert result.compared > 220  # 200 answers, and the worker's looks


@pytest.mark.processes
def test_a_changed_value_is_told_at_the_first_message_that_differs(recording: Recording) -> None:
    result = again(recording, "racer.gain=1.000001")
    assert result.difference is not None
    assert result.difference.message.startswith("answer:racer:")
    assert result.difference.where == "value"
    first, second = result.difference.first, result.difference.second
    assert 0 < second - first < 1e-3


@pytest.mark.processes
def test_a_source_replays_with_its_randomness(recording: Recording) -> None:
    (result,) = replay_nodes(recording, [recorded_launch(recording, []).graph.nodes["source"]])
    assert result.is_exact, (result.difference, result.doubts)
