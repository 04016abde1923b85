"""Virtual time computes in one thread, since sums of several differ from run to run; it says for which processor."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np  # noqa: F401  # which says how it multiplies once it is loaded
import pytest

from nodes.mcap.file import BagReader
from runtime.launch.provenance import blas_kernel
from runtime.virtual.simulation import Simulation
from tests.support.served_nodes import Counter

ROOT = Path(__file__).resolve().parents[3]

THINKER = """
import os

import cv2
import numpy as np

from nodes.policy.onnx.inputs import Felt
from runtime import Node, every


def threads():
    return len(os.listdir("/proc/self/task"))


class Thinker(Node):
    def on_start(self):
        values = np.ones((800, 800), dtype=np.float32)
        cv2.GaussianBlur(values @ values, (9, 9), 2.0)
        print("BLAS and OpenCV:", threads() - 1, flush=True)
        from tests.support.models.policy_model import policy_model
        from nodes.policy.onnx.session import PolicySession

        self.before = threads()  # the import of ONNX Runtime may start one that computes nothing
        self.session = PolicySession(
            policy_model(), name="it", width_px=160, height_px=120, providers=("CPUExecutionProvider",)
        )

    @every(hz=1)
    def think(self):
        self.session.run({"image": np.zeros((120, 160, 3), np.uint8)}, Felt((0.0,) * 8))
        print("ONNX Runtime:", threads() - self.before, flush=True)
"""


@pytest.mark.processes
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are counted in /proc")
def test_blas_opencv_and_onnx_runtime_start_no_threads_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "thinker.py").write_text(THINKER)
    (tmp_path / "thinker.toml").write_text('[nodes.thinker]\nuse = "thinker:Thinker"\n')
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-m", "runtime", "run", str(tmp_path / "thinker.toml"), "--virtual", "--for", "2"],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": f"{tmp_path}:{ROOT}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "BLAS and OpenCV: 0\n" in done.stdout
    assert done.stdout.count("ONNX Runtime: 0\n") == 2, done.stdout


needs_kernel = pytest.mark.skipif(not blas_kernel(), reason="this numpy does not say how it multiplies")


@needs_kernel
def test_a_run_in_virtual_time_knows_at_its_end_for_which_processor_numpy_multiplies() -> None:
    simulation = Simulation(Counter())
    simulation.run(0.1)
    simulation.close()
    assert simulation.run_info["blas"] == blas_kernel()


@needs_kernel
@pytest.mark.processes
@pytest.mark.skipif(platform.machine() != "x86_64", reason="OpenBLAS has other kernels here")
def test_its_recording_names_the_kernel_that_the_environment_chose(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("import numpy\nfrom runtime import Node\nclass Quiet(Node): pass\n")
    (tmp_path / "own.toml").write_text('[nodes.quiet]\nuse = "own:Quiet"\n')
    recording = tmp_path / "run.mcap"
    run = [sys.executable, "-m", "runtime", "run", str(tmp_path / "own.toml"), "--virtual", "--for", "1"]
    subprocess.run(
        [*run, "--record", str(recording)],
        cwd=tmp_path,
        env={**os.environ, "OPENBLAS_CORETYPE": "Nehalem", "PYTHONPATH": f"{tmp_path}:{ROOT}"},
        check=True,
        capture_output=True,
        timeout=120,
    )
    assert BagReader(recording).metadata["end"]["blas"] == "Nehalem"
