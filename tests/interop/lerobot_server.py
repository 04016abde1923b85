"""LeRobot's own policy server behind the gateway says what the adopted file says.

Usage: python -m tests.interop.lerobot_server LEROBOTS_PYTHON TRAINED_FOLDER ADOPTED.onnx
"""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from nodes.policy.onnx.inputs import Felt
from nodes.policy.onnx.session import PolicySession
from nodes.policy.remote.openpi import OpenPiSession
from runtime.errors import PolyrhythmError

NAMES = {"image": "observation.images.head", "wrist": "", "joints": "observation.state", "text": "task"}
LONGEST_S = 180.0


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@contextmanager
def running(command: list[str], folder: str) -> Iterator[None]:
    with (Path(folder) / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield
        finally:
            process.terminate()
            process.wait(20)
            if sys.exc_info()[0] is not None:
                print((Path(folder) / "log").read_text()[-2000:], file=sys.stderr)


def main() -> None:
    python, trained, model = str(Path(sys.argv[1]).absolute()), str(Path(sys.argv[2]).resolve()), Path(sys.argv[3])
    server, gateway = free_port(), free_port()
    of_lerobot = [python, "-m", "lerobot.async_inference.policy_server", "--host=127.0.0.1", f"--port={server}"]
    ours = [sys.executable, "-m", "runtime", "policy", "gateway", trained, "--python", python]
    ours += ["--server", f"127.0.0.1:{server}", "--bind", f"127.0.0.1:{gateway}"]
    random = np.random.default_rng(1)
    seen = {"image": random.integers(0, 256, (120, 160, 3), np.uint8)}
    felt = Felt((0.6, 0.1, 0.0, -0.3, 0.0, 0.1, 0.2, -0.3), text="pick up the red cup")
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        refused = subprocess.run([*ours[:-2], "--bind", "0.0.0.0:1"], cwd=other, capture_output=True, text=True)
        assert "is not this machine alone" in refused.stderr, refused.stderr
        with running(of_lerobot, one), running(ours, other):
            asked = OpenPiSession(f"ws://127.0.0.1:{gateway}", NAMES, size_px=0, within_s=10.0)
            end_s = time.monotonic() + LONGEST_S
            while True:
                try:
                    theirs = asked.run(seen, felt).chunk
                    break
                except PolyrhythmError as problem:
                    if time.monotonic() > end_s or "cannot be asked" not in str(problem):
                        raise
                    time.sleep(1.0)
            took_s = []
            for _ in range(10):
                began_s = time.monotonic()
                asked.run(seen, felt)
                took_s.append(time.monotonic() - began_s)
            with pytest.raises(PolyrhythmError, match=r"expected observation\.images\.head, observation\.state, task"):
                asked.run(seen, Felt(()))
            asked.close()
    session = PolicySession(
        model.read_bytes(), name="it", width_px=160, height_px=120, providers=("CPUExecutionProvider",)
    )
    own = session.run(seen, felt).chunk
    off = float(np.abs(theirs - own).max())
    assert theirs.shape == own.shape, (theirs.shape, own.shape)
    assert off < 1e-3, off
    print(
        f"LeRobot's server behind the gateway and the adopted file say the same: {off:.1g} off at most; "
        f"an answer took {1000 * sorted(took_s)[5]:.0f} ms"
    )


if __name__ == "__main__":
    main()
