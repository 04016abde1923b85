"""A recorder in a process of its own has the whole run in its file, outcome and launch file included."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from nodes.mcap.file import BagReader
from nodes.report.run import read_run
from runtime.launch.file import load
from runtime.supervision.supervisor import Supervisor
from runtime.supervision.view import SilentView

LAUNCH = """
[nodes.talker]
use = "nodes.hello:Talker"
hz = 20

[nodes.referee]
use = "tests.nodes.recording.referee:Referee"

[nodes.recorder]
use = "nodes.recording.recorder:Recorder"
"""


@pytest.mark.processes
def test_the_outcome_of_a_real_run_is_in_its_recording(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text(LAUNCH)
    launch = load(file, [])

    async def run() -> tuple[bool, str] | None:
        return await Supervisor(launch, folder=tmp_path, seed=7, run_info={}, view=SilentView()).run(10.0)

    assert asyncio.run(run()) == (True, "heard 5 beats")
    reader = BagReader(tmp_path / "run.mcap")
    assert reader.is_complete
    assert reader.attachments["launch.toml"].decode() == LAUNCH
    recorded = read_run(tmp_path / "run.mcap")
    assert recorded.outcome == (True, "heard 5 beats")
    counts = [one.document["count"] for one in reader if one.topic == "beat"]
    assert counts[:5] == [1, 2, 3, 4, 5]
    assert counts == list(range(1, len(counts) + 1))
    assert {"talker", "referee"} <= {one.message.node for one in recorded.health.messages}
    assert recorded.noted("missed") == {}
