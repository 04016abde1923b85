"""Who sends what cannot be read hears of it: once in its log, and by number in its health."""

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
[nodes.judge]
use = "tests.support.garbling_nodes:Judge"
"""


@pytest.mark.processes
def test_the_sender_of_garbled_messages_is_told_class_and_field_once_and_counts_them(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(LAUNCH)
    command = [sys.executable, "-m", "runtime", "run", str(tmp_path / "run.toml"), "--for", "60"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=90, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "the sensor knows" in ran.stdout + ran.stderr
    told = [line for line in ran.stdout.splitlines() if "what this node sends on" in line]
    assert len(told) == 4  # two topics, and two who hear them
    (reading,) = (line for line in told if "sends on reading" in line and "by display" in line)
    assert "sensor: warning: what this node sends on reading cannot be read by display, which drops it: " in reading
    assert "a Reading whose field 'value' is wrong: Expected `int`, got `str`" in reading
    (alarm,) = (
        line for line in told if "sends on alarm" in line and "by display" in line
    )  # acknowledged, and so on another way
    assert "an Alarm whose field 'level' is wrong" in alarm or "a Alarm whose field 'level' is wrong" in alarm
