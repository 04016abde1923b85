"""Each shipped launch file in virtual time: it runs and repeats itself, or says in a sentence why it cannot."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
pytestmark = pytest.mark.processes


def run(folder: Path, name: str, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "runtime", "run", name, "--virtual", "--out", str(folder), *more]
    environment = {
        **os.environ,
        "OPENAI_API_KEY": "k",
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
        "VLM_BASE_URL": "http://127.0.0.1:9/v1",
        "VLM_MODEL": "m",
    }
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240, check=False)


def trace(done: subprocess.CompletedProcess[str]) -> str:
    found = re.search(r"^trace: ([0-9a-f]{16})$", done.stderr, re.MULTILINE)
    assert found is not None, done.stdout + done.stderr
    return found[1]


@pytest.mark.long
def test_an_episode_is_the_same_each_time(tmp_path: Path) -> None:
    one, again = (run(tmp_path / name, "sotopia", "--seed", "5") for name in ("one", "again"))
    assert (one.returncode, again.returncode) == (0, 0), one.stderr + again.stderr
    assert trace(one) == trace(again)
    assert one.stdout == again.stdout


def test_the_wizards_graph_runs_without_its_wizard(tmp_path: Path) -> None:
    done = run(tmp_path, "wizard", "--for", "1", "--set", "run.report=")
    assert done.returncode == 0, done.stderr
    assert trace(done)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("webcam", "camera 0 is live and does not wait for virtual time; give source a video file"),
        ("stretch", "robot 'bridges.stretch.robot:StretchRobot' is a real one and does not wait for virtual time"),
    ],
)
def test_what_does_not_wait_for_virtual_time_is_refused_in_a_sentence(name: str, sentence: str, tmp_path: Path) -> None:
    more = ["--set", "vlm.use=nodes.vlm.openai_api:OpenAIVLM"] if name == "webcam" else []
    done = run(tmp_path, name, "--for", "1", *more)
    assert done.returncode != 0
    assert sentence in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
