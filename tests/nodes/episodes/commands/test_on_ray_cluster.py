"""`--engine ray` on a real Ray cluster, where Ray is installed; `make interop` has it in an environment of its own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.sentences import sentence

ROOT = Path(__file__).parents[4]


@pytest.mark.long
@pytest.mark.processes
@pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason=f"needs Ray: {sentence('episodes.install', extra='ray')}"
)
def test_a_run_on_ray_is_that_of_one_process_whoever_dies() -> None:
    script = ROOT / "tests/interop/plays_on_ray.py"
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "a worker and a machine were killed: the same 240 answers" in done.stdout
