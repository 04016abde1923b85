"""Whole episodes in the kitchen, in virtual time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.processes


def played(folder: Path, scenario: str, seed: int = 1, vlm: str = "SimulatorEyesVLM") -> dict[str, Any]:
    command = [sys.executable, "-m", "runtime", "run", "kitchen", "--virtual", "--json", "--seed", str(seed)]
    command += ["--out", str(folder), "--set", f"vlm.use=nodes.vlm.room.vlm:{vlm}"]
    for node in ("driver", "camera", "person"):
        command += ["--set", f"{node}.scenario={scenario}"]
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
    summary = played(tmp_path / "silently", "held-out-silently", vlm=vlm)
    assert summary["outcome"] == {"ok": True, "reason": "white mug in sink"}


def test_a_person_who_says_nothing_is_no_yes(tmp_path: Path) -> None:
    summary = played(tmp_path / "silence", "silence")
    assert summary["outcome"]["ok"], summary["outcome"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("scenario", "reason"),
    [
        ("stop-and-correct", "green apple on tray; banana on table"),
        ("a-side-and-a-name", "blue and white mugs on tray"),
        ("two-on-one-tray", "blue and white mugs on tray"),
        ("yes-to-everything", "blue and red mugs on table"),
    ],
)
def test_what_was_corrected_and_what_was_chosen_stays_so_to_the_end(tmp_path: Path, scenario: str, reason: str) -> None:
    file = Path(__file__).parent / "scenarios" / f"{scenario}.toml"
    assert played(tmp_path / scenario, str(file))["outcome"] == {"ok": True, "reason": reason}
