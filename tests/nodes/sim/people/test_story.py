"""The demo's story to its end, in virtual time, judged by the simulator's world."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nodes.mcap.file import BagReader
from nodes.msgs import Utterance
from nodes.sim.messages import Truth
from tests.support.sentences import sentence

FIRST_ORDER_S, WHOLE_STORY_S = 35.0, 150.0
PATIENCE_S = 600.0

pytestmark = pytest.mark.processes


@pytest.mark.parametrize("clock", [["--virtual"], []], ids=["virtual time", "real time"])
def test_a_person_reads_first_that_rules_answer(clock: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "runtime", "run", "laptop", *clock, "--for", "0.5", "--out", str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    title, *lines = [line for line in ran.stdout.splitlines() if "every node runs" not in line]
    assert lines[0].endswith(sentence("planner.rules_answer")), (title, lines)


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_the_story_ends_in_time_with_the_cups_in_the_bin_and_the_ball_in_the_persons_hand(
    seed: int, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "runtime", "run", "laptop", "--virtual", "--seed", str(seed)]
    command += ["--set", "collaborator.script=story", "--set", "run.report=", "--out", str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
    lines: list[tuple[float, str]] = []
    truths: list[tuple[float, Truth]] = []
    for record in BagReader(tmp_path / "run.mcap"):
        at_s = record.envelope.published_ns * 1e-9
        if record.topic in ("heard", "said"):
            lines.append((at_s, record.message(Utterance).text))
        elif record.topic == "sim/truth":
            truths.append((at_s, record.message(Truth)))
    binned_s = next(at_s for at_s, truth in truths if any(one.is_in_bin for one in truth.objects))
    told_s = next(at_s for at_s, text in lines if text == "I am done. The red cup is in the bin.")
    assert binned_s < told_s < FIRST_ORDER_S
    last_s, last = truths[-1]
    assert last_s < WHOLE_STORY_S
    where = {one.name: one.held_by or ("bin" if one.is_in_bin else "table") for one in last.objects}
    assert where == {
        "red_cup": "bin", "green_cup": "bin", "yellow_cup": "bin", "white_cup": "bin", "blue_cup": "table",
        "purple_ball": "person", "orange_block": "table", "brown_bottle": "table",
    }  # fmt: skip
    assert {part for _, truth in truths for part in truth.touched} == {"foot"}
    told = " ".join(text for _, text in lines)
    cups = "the blue cup, the green cup, the red cup, the white cup or the yellow cup"
    parts = (
        f"Which cup do you mean: {cups}?",
        "That is the bottle",
        "You have the ball",
        "not the blue one",
        "Ouch",
        "go on",
    )
    assert [part for part in parts if part not in told] == []
