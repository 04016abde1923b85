"""A real model judges, and is asked again: SmolLM2 behind llama.cpp, under the grammar of the judge's schema.

Run by an interpreter that has llama.cpp and the weights (`make interop`). What a model of 135 million weights says of
calm is not looked at. That every score is one of the scale is, that nothing is lost when it is asked again, and
that what it could not give is counted and makes the exit code 1.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from nodes.episodes.results.store import Store

DIMENSION = '[[dimension]]\nname = "CALM"\nlow = 0\nhigh = 4\ninstruction = "Were they calm?"\n'
JUDGE = "smollm2#tokens=400"


def episodes(*asked: str) -> int:
    """The exit code of the command."""
    return subprocess.run([sys.executable, "-m", "runtime", "episodes", *asked], check=False).returncode


def judged(run: Path) -> tuple[dict[tuple[str, str], float | None], int, int]:
    """The model's scores, how many episodes it judged, and how often it was asked."""
    with Store.read(run) as store:
        rows = store.episodes()
        mine = [(row.id, one) for row in rows for one in store.scores(row.id) if one.judge == JUDGE]
        scores = {(episode, score.name): score.score for episode, one in mine for score in one.scores}
        calls = sum(call[2] == "judge" for row in rows for call in store.calls(row.id))
        return scores, sum(one.state == "done" for _, one in mine), calls


def main() -> int:
    """0 where the judge's scores hold what is promised."""
    with tempfile.TemporaryDirectory() as folder:
        run, scale = Path(folder) / "run.sqlite", Path(folder) / "calm.toml"
        scale.write_text(DIMENSION)
        tasks = [part for task in ("one-solo", "quiet-hours", "last-table") for part in ("--task", task)]
        assert episodes("run", *tasks, "--turns", "4", "--agents", "rules", "--out", str(run)) == 0
        asked = (
            "score",
            str(run),
            "--judges",
            JUDGE,
            "--dimensions",
            str(scale),
            "--deadline",
            "900",
            "--timeout",
            "600",
        )
        code = episodes(*asked)
        first, done, calls = judged(run)
        assert code == (0 if done == 3 else 1), f"{done} of 3 are judged, and the exit code is {code}"
        assert done, "a real model judged none of three episodes"
        assert len(first) == 2 * done
        assert all(score is not None and 0 <= score <= 4 and score == int(score) for score in first.values()), first
        code = episodes(*asked, "--again")
        second, still, more = judged(run)
        assert more >= calls + 3, "each episode is asked about again"
        assert still >= done, "no evaluation is lost"
        assert first.keys() <= second.keys(), "no score is lost"
        with Store.read(run) as store:
            rules = [one for row in store.episodes() for one in store.scores(row.id) if one.judge == "rules"]
        assert len(rules) == 3, "the other judge's stay"
        print(
            f"SmolLM2 judged {done} of 3 episodes in {calls} calls, and {still} after {more - calls} more; exit {code}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
