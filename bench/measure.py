"""Runs a few nodes as processes and returns the figures with which one of them ended the run."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

from runtime.launch.file import resolve
from runtime.supervision.supervisor import Supervisor
from runtime.supervision.view import SilentView


def run_nodes(nodes: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Run these [nodes.*] tables until a node finishes; its reason is JSON."""
    with tempfile.TemporaryDirectory() as folder:
        launch = resolve({"nodes": nodes, "run": {"frozen_s": 600.0}}, path=Path("bench"))
        supervisor = Supervisor(launch, folder=Path(folder), seed=0, run_info={}, view=SilentView())
        outcome = asyncio.run(supervisor.run(120.0))
    if outcome is None or not outcome[0]:
        raise RuntimeError(f"the benchmark did not finish: {outcome}")
    figures: dict[str, Any] = json.loads(outcome[1])
    return figures
