"""From the command to the first beat, and the demo: until every node runs, its memory, and how old its images are."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.measure import FOR_P99, ROUNDS
from bench.process_tree import descendants, usage
from bench.result import Result, percentile
from runtime.launch.file import find, load

ROOT = Path(__file__).resolve().parent.parent
BARE = "python -c import zmq, msgspec, numpy"
DEMO_S = 30
FIRST_BEAT = "heard beat"
ALL_RUN = r"^\[ "
"""The clock of the run: every node runs."""
_IMPORT = "import zmq, msgspec, numpy"
_SHOW_PSS = "print(next(line.split()[1] for line in open('/proc/self/smaps_rollup') if line.startswith('Pss:')))"


def _run(*arguments: str, folder: str | None = None) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "runtime", "run", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # the reference's libraries have theirs, too
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, bufsize=1
    )


def _started(*arguments: str, line: str, folder: str) -> tuple[subprocess.Popen[str], float]:
    """That run, and how many seconds it took until a line of it matched."""
    start = time.monotonic()
    process = _run(*arguments, folder=folder)
    assert process.stdout is not None
    for _ in filter(re.compile(line).search, process.stdout):
        break
    return process, time.monotonic() - start


def _start_s(name: str, line: str) -> float:
    """The same alone: the run is ended then."""
    with tempfile.TemporaryDirectory() as folder:
        process, taken_s = _started(name, line=line, folder=folder)
        process.terminate()
        process.communicate()
    return taken_s


def _bare_import_s() -> float:
    start = time.monotonic()
    subprocess.run([sys.executable, "-c", _IMPORT], check=True)
    return time.monotonic() - start


def _bare_pss_mb() -> float:
    done = subprocess.run([sys.executable, "-c", f"{_IMPORT}; {_SHOW_PSS}"], check=True, capture_output=True, text=True)
    return int(done.stdout) / 1024


def _demo(seconds: int) -> tuple[float, list[float]]:
    """The memory of the laptop graph's processes in MB, and ages of images behind commands."""
    with tempfile.TemporaryDirectory() as folder:
        process, _ = _started("laptop", "--for", str(seconds), line=ALL_RUN, folder=folder)
        time.sleep(5.0)
        memory_mb = usage([process.pid, *descendants(process.pid)]).pss_mb
        process.communicate(timeout=seconds + 120)
        ages_ms = [age_ms for file in Path(folder).rglob("*.mcap") for age_ms in _image_ages_ms(file)]
    return memory_mb, ages_ms


def _image_ages_ms(file: Path) -> list[float]:
    """How old the newest image was behind each command to the motors, as recorded."""
    from nodes.mcap.file import BagReader

    envelopes = (message.envelope for message in BagReader(file) if message.envelope.topic == "robot/command")
    return [
        (envelope.published_ns - stamp_ns) * 1e-6
        for envelope in envelopes
        if (stamp_ns := envelope.born_ns("image")) is not None
    ]


def measure(rounds: int = ROUNDS, *, is_quick: bool = False) -> list[Result]:
    """In turns; medians. The demo once."""
    first_beats, all_run, bare = [], [], []
    _start_s("hello", FIRST_BEAT)  # so that bytecode is there, as after any first run
    for _ in range(rounds):
        bare.append(_bare_import_s())
        first_beats.append(_start_s("hello", FIRST_BEAT))
        all_run.append(_start_s("laptop", ALL_RUN))
    least, how = statistics.median(bare), f"{rounds} x"
    memory_mb, ages_ms = _demo(10 if is_quick else DEMO_S)
    number = len(load(find("laptop")).processes)
    results = [
        Result("run hello, to the first beat", "s", statistics.median(first_beats), least, BARE, 2.0, how=how),
        Result("laptop graph, until every node runs", "s", statistics.median(all_run), least, BARE, 10.0, how=how),
        Result(
            "laptop graph, memory", "MB", memory_mb, _bare_pss_mb() * number, f"{number} x {BARE}", None,
            how="proportional set sizes of all processes, 5 s after the start",
        ),
    ]  # fmt: skip
    if ages_ms:
        how = f"{len(ages_ms)} commands of one run"
        name = "laptop graph, age of the image behind a command"
        results.append(Result(f"{name}: p50", "ms", percentile(ages_ms, 50), 35.0, "the goal", 1.0, how=how))
        if len(ages_ms) >= FOR_P99:
            results.append(Result(f"{name}: p99", "ms", percentile(ages_ms, 99), 70.0, "the goal", 1.0, how=how))
    return results
