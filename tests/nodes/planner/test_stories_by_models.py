"""Whole stories with models behind HTTP on the seats of planner and VLM, and no rule of ours above the policy."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.sentences import sentence
from tests.support.servers.fake_openai_server import FakeOpenAI, says
from tests.support.servers.stand_in_models import StandInEyes, StandInPlanner

pytestmark = [pytest.mark.processes, pytest.mark.long]

TABLE = StandInEyes(
    {
        "red": "cup", "green": "cup", "yellow": "cup", "white": "cup", "blue": "cup", "purple": "ball",
        "orange": "block", "brown": "bottle", "teal": "bin",
    },
    frozenset({"bin"}),
)  # fmt: skip
KITCHEN = StandInEyes({"red": "mug", "blue": "mug", "orange": "tray"}, frozenset({"tray"}), least_px=60)


def played(graph: str, eyes: StandInEyes, folder: Path, settings: Sequence[str]) -> tuple[str, StandInPlanner]:
    """What the run printed, and the model that planned."""
    planner = StandInPlanner()
    with FakeOpenAI(says(planner)) as planning, FakeOpenAI(says(eyes)) as seeing:
        wanted = [
            "planner.use=nodes.planner.openai_api:OpenAIPlanner", f"planner.base_url={planning.url}",
            "planner.model=stand-in", "vlm.use=nodes.vlm.openai_api:OpenAIVLM", f"vlm.base_url={seeing.url}",
            "vlm.model=stand-in", "vlm.rules=false", *settings,
        ]  # fmt: skip
        command = [sys.executable, "-m", "runtime", "run", graph, "--virtual", "--seed", "1", "--out", str(folder)]
        command += [part for one in wanted for part in ("--set", one)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    return done.stdout + done.stderr, planner


@pytest.mark.parametrize("script", ["demo", "story"])
def test_the_story_of_the_laptop_is_played_by_models_alone(script: str, tmp_path: Path) -> None:
    printed, planner = played("laptop", TABLE, tmp_path, ["run.report=", f"collaborator.script={script}"])
    assert "done: green, red, white and yellow cups in bin; blue cup on table" in printed
    assert any(sentence("planner.not_looked") in one for one in planner.asked)


def test_in_the_kitchen_a_model_asks_which_mug_and_another_brings_it(tmp_path: Path) -> None:
    scenario = [f"{node}.scenario=which-mug" for node in ("driver", "camera", "person")]
    printed, _ = played("kitchen", KITCHEN, tmp_path, scenario)
    assert "done: blue mug on tray" in printed
