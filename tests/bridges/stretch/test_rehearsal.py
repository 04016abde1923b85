"""The demo's story on the maker's own library, in real time, judged by where things are in the simulator's world.

Needs an environment with stretch_body, as test_twin.py does, and a machine with two cores to itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nodes.mcap.file import BagReader
from nodes.msgs import GuardState, RobotState, Utterance
from nodes.sim.messages import Truth
from tests.support.running import PATIENCE_S, Runs, eventually

PYTHON = os.environ.get("POLYRHYTHM_STRETCH_PYTHON", "")
LONGEST_S = 660.0
STOOD_M = 0.03

pytestmark = [pytest.mark.long, pytest.mark.processes, pytest.mark.alone]


class Story:
    """What a recording tells of a run: seconds since its first message."""

    def __init__(self, recording: Path) -> None:
        self.lines: list[tuple[float, str, str]] = []
        self.guard: list[tuple[float, GuardState]] = []
        self.truth: list[tuple[float, Truth]] = []
        self.ages_ms: list[float] = []
        began_ns = 0
        for record in BagReader(recording):
            began_ns = began_ns or record.log_time_ns
            at_s = (record.log_time_ns - began_ns) * 1e-9
            if record.topic in ("heard", "said"):
                utterance = record.message(Utterance)
                self.lines.append((at_s, utterance.speaker, utterance.text))
            elif record.topic == "guard/state":
                state = record.message(GuardState)
                if not self.guard or self.guard[-1][1].sentence != state.sentence:
                    self.lines.append((at_s, "guard", state.sentence))
                self.guard.append((at_s, state))
            elif record.topic == "sim/truth":
                self.truth.append((at_s, record.message(Truth)))
            elif record.topic == "robot/state":
                age_ns = record.envelope.published_ns - record.message(RobotState).read_ns
                self.ages_ms.append(age_ns * 1e-6)

    def said_at(self, text: str) -> float:
        """When somebody said that; fails the test where nobody did."""
        found = [at_s for at_s, _, said in self.lines if text in said]
        assert found, f"nobody said {text!r}"
        return found[0]

    def stop(self) -> tuple[float, float]:
        """From when until when the robot was stopped for the first time."""
        begins = next(at_s for at_s, state in self.guard if state.mode == "stopped")
        return begins, next(at_s for at_s, state in self.guard if at_s > begins and state.mode != "stopped")

    def way_m(self, begins_s: float, ends_s: float) -> float:
        """How far the base really went."""
        places = [(one.robot_x_m, one.robot_y_m) for at_s, one in self.truth if begins_s <= at_s <= ends_s]
        (x, y), (to_x, to_y) = places[0], places[-1]
        return float(((to_x - x) ** 2 + (to_y - y) ** 2) ** 0.5)


@pytest.mark.skipif(not PYTHON, reason="POLYRHYTHM_STRETCH_PYTHON names no Python that has stretch_body")
def test_the_story_of_the_demo_on_the_makers_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Runs(monkeypatch):
        command = [sys.executable, "-m", "runtime"]
        run = subprocess.Popen(
            [*command, "run", "rehearsal", "--out", str(tmp_path), "--set", f"driver.robot_params.python={PYTHON}"]
        )
        try:
            arm = [*command, "guard", "arm", "--run", "rehearsal", "--by", "Alex"]
            eventually(lambda: subprocess.run(arm, capture_output=True).returncode == 0, "it is armed", 2 * PATIENCE_S)
            assert run.wait(LONGEST_S) == 0, "the person in the kitchen is not content"
        finally:
            run.terminate()
            run.wait(PATIENCE_S)
    story = Story(tmp_path / "run.mcap")
    for at_s, who, text in story.lines:
        print(f"-- {at_s:6.1f} s  {who}: {text}")
    ages_ms = sorted(story.ages_ms)
    print(f"-- robot/state is {ages_ms[len(ages_ms) // 2]:.0f} ms old (median), worst {ages_ms[-1]:.0f} ms")
    begins_s, ends_s = story.stop()
    assert begins_s <= story.said_at("Ouch") + 0.5
    assert ends_s > story.said_at("go on")
    assert story.way_m(begins_s + 1.0, ends_s) < STOOD_M
    cups = {thing.colour: thing.is_in_bin for thing in story.truth[-1][1].objects if thing.label == "cup"}
    assert cups == {colour: colour != "blue" for colour in cups}
    assert len(cups) == 5
