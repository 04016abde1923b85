"""Two whole runs of one seed in virtual time are one and the same, to each message and each pixel."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]


def polyrhythm(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "runtime", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.long
def test_two_demos_of_one_seed_do_not_differ_and_another_seed_does(tmp_path: Path) -> None:
    for name, seed in (("one", "7"), ("again", "7"), ("other", "8")):
        ran = polyrhythm("run", "laptop", "--virtual", "--seed", seed, "--out", str(tmp_path / name), "--json")
        assert (tmp_path / name / "run.mcap").is_file(), ran.stdout + ran.stderr
    one, again, other = (str(tmp_path / name / "run.mcap") for name in ("one", "again", "other"))
    same = polyrhythm("bag", "diff", one, again)
    assert (same.returncode, same.stdout.startswith("identical: ")) == (0, True), same.stdout
    assert polyrhythm("bag", "diff", one, other).returncode == 1
