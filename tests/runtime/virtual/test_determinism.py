"""One seed gives one stream of messages, images included, whatever else the machine does meanwhile."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SECONDS = "4"


def start(folder: Path, name: str, seed: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "runtime", "run", "laptop", "--virtual", "--for", SECONDS]
    command += ["--set", "run.report="]  # its pictures take longer than the run
    command += ["--seed", str(seed), "--out", str(folder / name)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def trace(process: subprocess.Popen[str]) -> str:
    out, error = process.communicate(timeout=180)
    found = re.search(r"^trace: ([0-9a-f]{16})$", error, re.MULTILINE)
    assert found is not None, out + error
    return found[1]


@contextmanager
def busy_machine() -> Iterator[None]:
    burner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        burner.kill()
        burner.wait()


@pytest.mark.processes
def test_one_seed_gives_one_stream_whatever_the_load_and_another_seed_another(tmp_path: Path) -> None:
    alone = trace(start(tmp_path, "alone", 7))
    with busy_machine():
        again, other = start(tmp_path, "again", 7), start(tmp_path, "other", 8)
        assert (trace(again), trace(other) != alone) == (alone, True)
