"""From the command to the first beat, against a bare import of the libraries that it needs."""

from __future__ import annotations

import subprocess
import sys
import time

from bench.result import Result


def _first_beat_s() -> float:
    start = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "runtime", "run", "hello"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        bufsize=1,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "heard beat" in line:
            break
    taken = time.monotonic() - start
    process.terminate()
    process.stdout.read()
    process.wait()
    return taken


def _bare_import_s() -> float:
    start = time.monotonic()
    subprocess.run([sys.executable, "-c", "import zmq, msgspec, numpy"], check=True)
    return time.monotonic() - start


def measure(rounds: int = 5) -> list[Result]:
    """Interleaved; the fastest of each."""
    ours, bare = [], []
    for _ in range(rounds):
        bare.append(_bare_import_s())
        ours.append(_first_beat_s())
    return [Result("run hello, to the first beat", "s", min(ours), min(bare), "python -c import zmq, ...", 4.0)]
