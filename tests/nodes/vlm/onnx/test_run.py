"""The robot graph with a model made by hand on the VLM's seat: `polyrhythm run` as a user runs it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.guard.driving import SIMULATED, driver_and_guard

SMALL_GRAPH = (
    driver_and_guard(SIMULATED)
    + """
[nodes.vlm]
use    = "nodes.vlm.onnx.vlm:OnnxVLM"
params = { folder = "FOLDER", threads = 1 }

[nodes.head_camera]
use    = "nodes.sim.camera:SimCamera"
hz     = 10
params = { camera = "head", width = 160, height = 120 }


[nodes.planner]
use     = "nodes.planner.scripted:ScriptedPlanner"
process = "robot"

[nodes.policy]
use     = "nodes.policy.expert:ExpertPolicy"
process = "robot"
"""
)
ONNX = ("--set", "vlm.use=nodes.vlm.onnx.vlm:OnnxVLM")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("models") / "made-by-hand"
    done = run("tests.nodes.vlm.onnx.vlm_model", str(path))
    assert done.returncode == 0, done.stderr
    return str(path)


@pytest.fixture
def small_graph(folder: str, tmp_path: Path) -> str:
    """A robot, its camera and the VLM, each in a process of its own."""
    path = tmp_path / "small.toml"
    path.write_text(SMALL_GRAPH.replace("FOLDER", folder))
    return str(path)


@pytest.mark.long
@pytest.mark.processes
def test_with_it_the_robot_clears_the_table(folder: str, tmp_path: Path) -> None:
    done = run(
        *("runtime", "run", "laptop", "--virtual", "--seed", "7", "--for", "6", "--out", str(tmp_path)),
        *(*ONNX, "--set", f"vlm.folder={folder}", "--set", "run.report="),
    )
    assert "picking up the red cup" in done.stdout, done.stdout + done.stderr
    told = run("runtime", "report", str(tmp_path / "run.mcap"), "--out", str(tmp_path / "report"))
    assert re.search(r"vlm +made-by-hand +\d+ +[\d,]+ \+ [\d,]+", told.stdout), told.stdout + told.stderr


@pytest.mark.long
@pytest.mark.processes
def test_the_same_seed_is_the_same_run(small_graph: str) -> None:
    done = [run("runtime", "run", small_graph, "--virtual", "--for", "3") for _ in range(2)]
    traces = [re.findall(r"trace: ([0-9a-f]+)", one.stdout + one.stderr) for one in done]
    assert len(traces[0]) == 1
    assert traces[0] == traces[1]
    assert "vlm: 3 calls, " in done[0].stdout


@pytest.mark.long
@pytest.mark.processes
def test_in_a_process_of_its_own_it_loads_its_model_and_answers(small_graph: str) -> None:
    done = run("runtime", "run", small_graph, "--for", "1.5")
    assert "vlm: loading made-by-hand: vision_encoder.onnx, embed_tokens.onnx, decoder_model_merged" in done.stdout
    assert "vlm: made-by-hand is loaded, after " in done.stdout
    assert re.search(r"vlm: [1-9]\d* calls, \d+ \+ \d+ tokens; [\d.]+ s an answer, [\d.]+ tokens/s", done.stdout)
    assert done.returncode == 0, done.stderr


@pytest.mark.processes
def test_check_and_run_say_what_a_folder_lacks_and_start_nothing(tmp_path: Path) -> None:
    for command in ("check", "run"):
        done = run("runtime", command, "laptop", *ONNX, "--set", f"vlm.folder={tmp_path}")
        assert done.returncode == 2
        assert "config.json does not exist" in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.processes
def test_importing_the_node_loads_neither_onnxruntime_nor_tokenizers() -> None:
    code = "import sys, nodes.vlm.onnx.vlm; sys.exit(bool({'onnxruntime', 'tokenizers', 'cv2'} & set(sys.modules)))"
    assert run("runtime", "--help").returncode == 0
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
