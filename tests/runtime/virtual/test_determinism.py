"""One seed gives one stream of messages, images included, whatever the machine does meanwhile and however it rounds."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SECONDS = "4"


def start(
    folder: Path, name: str, seed: int, *, graph: str = "laptop", seconds: str = SECONDS, kernel: str | None = None
) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "runtime", "run", graph, "--virtual", "--for", seconds]
    command += ["--set", "run.report="]  # its pictures take longer than the run
    command += ["--seed", str(seed), "--out", str(folder / name)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(kernel))


def environment(kernel: str | None) -> dict[str, str]:
    """That of a process for which numpy multiplies as for this processor; None: for the machine's own."""
    others = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
    return others if kernel is None else {**others, "OPENBLAS_CORETYPE": kernel}


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
@pytest.mark.long
def test_one_seed_gives_one_stream_whatever_the_load_and_another_seed_another(tmp_path: Path) -> None:
    alone = trace(start(tmp_path, "alone", 7))
    with busy_machine():
        again, other = start(tmp_path, "again", 7), start(tmp_path, "other", 8)
        assert (trace(again), trace(other) != alone) == (alone, True)


MULTIPLY = "import numpy as np; a = np.random.default_rng(0).normal(size=(30, 30)); print((a @ a).tobytes().hex())"


def multiplied(kernel: str | None) -> str:
    """What BLAS makes of two matrices, to the last digit."""
    return subprocess.run(
        [sys.executable, "-c", MULTIPLY], capture_output=True, text=True, check=True, env=environment(kernel)
    ).stdout


@pytest.mark.long
@pytest.mark.processes
@pytest.mark.parametrize(
    ("graph", "seconds"),
    [
        ("laptop", "4"),
        ("arm", "6"),
        ("kitchen", "8"),
    ],
)  # all move by then
def test_one_seed_gives_one_stream_on_processors_that_multiply_in_another_way(
    tmp_path: Path, graph: str, seconds: str
) -> None:
    other = "Nehalem"  # of 2008: every x86-64 machine can run what is made for it
    if platform.machine() != "x86_64" or multiplied(other) == multiplied(None):
        pytest.skip("here numpy's BLAS has one way to round")
    runs = [start(tmp_path, str(kernel), 7, graph=graph, seconds=seconds, kernel=kernel) for kernel in (None, other)]
    assert len({trace(run) for run in runs}) == 1
