"""Events overtake bulk data on every hop: real processes, facts of order and number, none of time."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path

import pytest

from runtime.launch.file import resolve
from runtime.supervision.supervisor import Supervisor
from runtime.supervision.view import SilentView
from tests.runtime.transport.urgent_nodes import ALARMS

AHEAD = (
    16  # images that a hop may hand over before an alarm sent earlier; its queue holds 64, and as many wait before it
)


@pytest.mark.alone
@pytest.mark.processes
def test_alarms_overtake_a_flood_of_large_images_at_every_hop() -> None:
    tables = {
        name: {"use": f"tests.runtime.transport.urgent_nodes:{cls}"}
        for name, cls in (("flood", "Flood"), ("relay", "Relay"), ("judge", "Judge"))
    }
    with tempfile.TemporaryDirectory() as folder:
        launch = resolve({"nodes": tables}, path=Path("urgent"))
        supervisor = Supervisor(launch, folder=Path(folder), seed=0, run_info={}, view=SilentView())
        outcome = asyncio.run(supervisor.run(90.0))
    assert outcome is not None
    assert outcome[0]
    told = json.loads(outcome[1])
    assert told["lost"] == "{'alarm': {}, 'relayed': {}}"
    for hop in ("relay", "judge"):
        assert len(told[hop]) >= ALARMS - 5
        assert max(later for later, _ in told[hop]) <= AHEAD, told
    assert any(overtaken > AHEAD for hop in ("relay", "judge") for _, overtaken in told[hop]), told  # it was a flood
