"""Each folder of `examples/` is a whole project: its tests pass, its launch file is checked and runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLES = sorted({file.parent for file in FOLDER.glob("*/test_*.py")})
"""Those with a launch file and tests; what shows a command, or a training, has tests beside that command's."""


def run(folder: Path, *arguments: str) -> str:
    """What a Python program says that is started in the folder."""
    path = os.pathsep.join([str(folder.parents[1]), os.environ.get("PYTHONPATH", "")])
    ran = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda folder: folder.name)
def test_the_tests_of_an_example_pass(folder: Path) -> None:
    rootless = ("-p", "no:cacheprovider", "--rootdir", ".", "-c", os.devnull)
    assert "passed" in run(folder, "-m", "pytest", "-q", *rootless)


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda folder: folder.name)
def test_the_launch_file_of_an_example_fits_and_runs(folder: Path) -> None:
    (file,) = folder.glob("*.toml")
    assert "all of it fits" in run(folder, "-m", "runtime", "check", file.name)
    assert " received; " in run(folder, "-m", "runtime", "run", file.name, "--for", "2")


def test_every_example_is_in_the_list() -> None:
    listed = (FOLDER / "README.md").read_text()
    assert len(EXAMPLES) >= 2
    folders = {file.parent.name for file in FOLDER.glob("*/*.*")}
    assert [name for name in sorted(folders) if f"]({name})" not in listed] == []
