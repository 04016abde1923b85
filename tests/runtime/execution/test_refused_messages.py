"""Who writes what does not fit is told at once, with the line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LAUNCH = """
[nodes.sensor]
use = "tests.support.garbling_nodes:Sensor"
[nodes.display]
use = "tests.support.garbling_nodes:Display"
"""


@pytest.mark.processes
def test_the_sender_of_garbled_messages_is_told_line_class_and_field_and_the_run_fails(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(LAUNCH)
    command = [sys.executable, "-m", "runtime", "run", str(tmp_path / "run.toml"), "--for", "3"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=90, check=False)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    told = [line for line in ran.stdout.splitlines() if "garbling_nodes.py" in line]
    assert "a Reading that does not fit: its field value is 'three': expected int, got str" in told[0]
    assert "times more" in told[1]
