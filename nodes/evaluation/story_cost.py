"""What soft holds cost in the story of `polyrhythm run laptop`, which is told in virtual time."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from runtime.bag.file import BagReader
from runtime.clock import NS_PER_S
from runtime.errors import PolyrhythmError

STORY = "laptop"
TALKER = "visitor=nodes.evaluation.reflex_cost:UtteranceSource"
LATEST_S = 600.0
PATIENCE_S = 1800.0


class StoryCost(msgspec.Struct, frozen=True):
    """One telling of the story, in virtual time."""

    lasted_s: float  # until the collaborator had what they wanted
    holds: int

    @property
    def holds_a_minute(self) -> float:
        """None of them was needed: nobody in the story shouts what is not understood."""
        return self.holds / self.lasted_s * 60


def story_costs(seed: int = 0) -> tuple[StoryCost, StoryCost]:
    """The story as it is, and with somebody beside it who talks all the time. Raises PolyrhythmError where it fails."""
    return _told((), seed), _told(("--add", TALKER), seed)


def _told(changes: Sequence[str], seed: int) -> StoryCost:
    with tempfile.TemporaryDirectory(prefix="story-") as folder:
        asked = ["run", STORY, "--virtual", "--seed", str(seed), "--for", str(LATEST_S), "--out", folder]
        done = subprocess.run(
            [sys.executable, "-m", "runtime", *asked, "--set", "run.report=", "--json", *changes],
            capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        if done.returncode:
            raise PolyrhythmError(f"polyrhythm run {STORY} failed:\n{done.stderr[-1000:]}")
        end_ns = holds = 0
        for record in BagReader(Path(folder) / "run.mcap"):
            end_ns = max(end_ns, record.envelope.published_ns)
            holds += record.topic == "interrupt" and b'"hold"' in record.data
    return StoryCost(end_ns / NS_PER_S, holds)
