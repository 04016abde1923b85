"""Each folder of `examples/` is a whole project: its tests pass, its launch file is checked and runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.sentences import sentence

pytestmark = pytest.mark.processes

FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLES = sorted({file.parent for file in FOLDER.glob("*/test_*.py")})
"""Those with a launch file and tests; what shows a command, or a training, has tests beside that command's."""
SLOW = ("so101",)
"""They are run in `make long`."""
EACH = [pytest.param(one, id=one.name, marks=[pytest.mark.long] if one.name in SLOW else []) for one in EXAMPLES]


def run(folder: Path, *arguments: str) -> str:
    """What a Python program says that is started in the folder."""
    path = os.pathsep.join([str(folder.parents[1]), os.environ.get("PYTHONPATH", "")])
    ran = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


@pytest.mark.parametrize("folder", EACH)
def test_the_tests_of_an_example_pass(folder: Path) -> None:
    rootless = ("-p", "no:cacheprovider", "--rootdir", ".", "-c", os.devnull)
    assert "passed" in run(folder, "-m", "pytest", "-q", *rootless)


@pytest.mark.parametrize("folder", EACH)
def test_the_launch_file_of_an_example_fits_and_runs(folder: Path) -> None:
    (file,) = folder.glob("*.toml")
    assert sentence("runtime.all_of_it_fits") in run(folder, "-m", "runtime", "check", file.name)
    how = ("--for", "2") if folder.name == "two_robots" else ("--virtual", "--for", "8")
    assert " received; " in run(folder, "-m", "runtime", "run", file.name, *how)


def test_a_recipe_that_is_asked_for_help_trains_nothing() -> None:
    model = FOLDER.parent / "nodes" / "interrupts" / "stop_classifier.onnx"
    before = model.read_bytes()
    assert "--folds" in run(FOLDER / "train_stop_classifier", "train.py", "--help")
    assert model.read_bytes() == before


def test_the_notebook_runs_from_its_first_cell_to_its_last(monkeypatch: pytest.MonkeyPatch) -> None:
    file = FOLDER / "notebook" / "graph.ipynb"
    if find_spec("nbclient") and find_spec("ipykernel"):
        nbformat, nbclient = import_module("nbformat"), import_module("nbclient")
        nbclient.NotebookClient(nbformat.read(file, as_version=4), timeout=60, resources={"metadata": {}}).execute()
        return
    cells = ModuleType("cells_of_the_notebook")
    monkeypatch.setitem(sys.modules, cells.__name__, cells)  # messages look their types up in their module
    for number, cell in enumerate(json.loads(file.read_text())["cells"]):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{file.name}, cell {number}", "exec"), vars(cells))


@pytest.mark.long
def test_a_policy_is_trained_from_a_few_lessons_and_fits_its_seat(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="needs the extra train")
    model = tmp_path / "learned.onnx"
    few = ("--tables", "1", "--lesson-s", "8", "--rounds", "1", "--epochs", "1")
    assert "round 1: " in run(FOLDER.parent, "-m", "examples.train_policy.clone", *few, "--out", str(model))
    seat = ("--set", "policy.use=nodes.policy.onnx.policy:OnnxPolicy", "--set", f"policy.model={model}")
    assert sentence("runtime.all_of_it_fits") in run(FOLDER.parent, "-m", "runtime", "check", "laptop", *seat)


def test_every_example_is_in_the_list() -> None:
    listed = (FOLDER / "README.md").read_text()
    assert len(EXAMPLES) >= 5
    folders = {file.parent.name for file in FOLDER.glob("*/*.*")}
    assert [name for name in sorted(folders) if f"]({name})" not in listed] == []
