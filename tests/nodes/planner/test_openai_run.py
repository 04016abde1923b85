"""The robot graph with its planner behind a real HTTP server, or behind none: `polyrhythm run` as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.sentences import sentence
from tests.support.servers.fake_openai_server import FakeOpenAI, answers

PLAN = {
    "do": "work",
    "skill": "place",
    "things": [{"label": "cup", "count": 0}],
    "place": "bin",
    "relation": "in",
    "excluding": [{"label": "cup", "colour": "blue"}],
    "text": "Put the cups except the blue one in the bin",
    "say": "With pleasure.",
}


def run(url: str, out: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "runtime", "run", "launch/laptop.toml", "--virtual", "--seed", "7"]
    command += ["--set", "planner.use=nodes.planner.openai_api:OpenAIPlanner", "--out", str(out), *arguments]
    environment = {**os.environ, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-very-secret"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.long
@pytest.mark.processes
def test_a_plan_from_an_http_server_moves_the_robot(tmp_path: Path) -> None:
    with FakeOpenAI(answers(json.dumps(PLAN))) as server:
        done = run(server.url, tmp_path, "--for", "8", "--set", "run.report=")
        assert "With pleasure." in done.stdout
        assert "Put the cups except the blue one in the bin" in done.stdout
        assert "picking up the" in done.stdout
        assert server.requests[0].image_urls[0].startswith("data:image/jpeg;base64,")
    assert "sk-very-secret" not in done.stdout + done.stderr


@pytest.mark.processes
@pytest.mark.long
def test_an_unreachable_planner_ends_the_run_as_failed_with_the_reason(tmp_path: Path) -> None:
    done = run("http://127.0.0.1:9/v1", tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"FAILED  {sentence('planner.gave_up')}127.0.0.1:9 cannot be reached" in done.stdout
    assert "I cannot plan any further" in done.stdout
