"""Virtual time computes in one thread: sums of several would differ from run to run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
