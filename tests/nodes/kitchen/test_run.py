"""Whole episodes in the kitchen, in virtual time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nodes.evaluation.scenario_files import changes_for_file
from nodes.sim.world.scenario import load_scenario
from runtime.launch.file import find, load

SCENARIOS = sorted(Path(__file__).with_name("scenarios").rglob("*.toml"))
ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.processes


def played(folder: Path, scenario: str, *more: str) -> dict[str, Any]:
    graph = "laptop" if load_scenario(scenario).world == "table" else "kitchen"
    changes = changes_for_file(load(find(graph)), Path(scenario), ["run.report=", *more])
    command = [sys.executable, "-m", "runtime", "run", graph, "--virtual", "--json", "--seed", "1"]
    command += ["--out", str(folder), *(word for change in changes for word in ("--set", change))]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=folder.parent, env=environment, capture_output=True, text=True, timeout=400, check=False
    )
    assert done.stdout, done.stderr
    summary: dict[str, Any] = json.loads(done.stdout[done.stdout.find("{") :])
    return summary


@pytest.mark.long
def test_it_asks_which_mug_and_brings_the_one_that_was_meant(tmp_path: Path) -> None:
    summary = played(tmp_path / "which", "which-mug")
    assert summary["outcome"] == {"ok": True, "reason": "blue mug on tray"}


@pytest.mark.long
@pytest.mark.parametrize("vlm", ["SimulatorEyesVLM", "KitchenVLM"])
def test_a_nod_is_the_yes_to_taking_what_is_held_out_without_a_word(tmp_path: Path, vlm: str) -> None:
    """The second one sees it in the camera's images alone."""
    pytest.importorskip("onnxruntime")
    summary = played(tmp_path / "silently", "held-out-silently", f"vlm.use=nodes.vlm.room.vlm:{vlm}")
    assert summary["outcome"] == {"ok": True, "reason": "white mug in sink"}


def test_a_person_who_says_nothing_is_no_yes(tmp_path: Path) -> None:
    summary = played(tmp_path / "silence", "silence")
    assert summary["outcome"]["ok"], summary["outcome"]


@pytest.mark.long
@pytest.mark.parametrize("file", SCENARIOS, ids=lambda file: file.stem)
def test_what_was_wanted_is_so_in_the_end_and_what_is_wrong_never_was(tmp_path: Path, file: Path) -> None:
    outcome = played(tmp_path / file.stem, str(file))["outcome"]
    assert outcome["ok"], outcome["reason"]
