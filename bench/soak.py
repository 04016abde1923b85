"""`python -m bench.soak`: the laptop graph for half an hour; memory, descriptors and shared memory must stay flat.

Each process of the run is looked at every 10 s. What counts is the median of the last fifth against that of the fifth
after the first, in which caches fill. The table goes into docs/results/soak.md where it took 30 minutes or more.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bench.code_commit import ROOT, commit_of
from runtime.supervision.registry import FoundRun, find_runs

PAGE = ROOT / "docs" / "results" / "soak.md"
LOOK_S = 10.0
PATIENCE_S = 120.0
MOST = {"memory, MB": 10.0, "descriptors": 5.0, "shared memory, MB": 1.0}
"""By how much each may have grown; a leak of 10 kB a second makes 11 MB between the two fifths of half an hour."""
SPLIT_S = 300.0
"""A recorder keeps its file's index in memory, 20 MB an hour: with files of five minutes it has to be flat as well."""


@dataclass
class Flatness:
    """One figure of one process over the whole soak."""

    process: str
    figure: str
    values: list[float] = field(default_factory=list)

    @property
    def early(self) -> float:
        """Once caches are full: the second fifth's median."""
        fifth = max(1, len(self.values) // 5)
        return median(self.values[fifth : 2 * fifth] or self.values)

    @property
    def late(self) -> float:
        """The last fifth's median."""
        return median(self.values[-max(1, len(self.values) // 5) :])

    @property
    def is_flat(self) -> bool:
        """Whether it has not grown by more than it may."""
        return self.late - self.early <= MOST[self.figure]

    def as_markdown(self) -> str:
        """A line of the table."""
        verdict = "yes" if self.is_flat else "**NO**"
        cells = (self.process, self.figure, f"{self.early:.1f}", f"{self.late:.1f}", f"{max(self.values):.1f}",
                 f"{self.late - self.early:+.1f}", f"{MOST[self.figure]:g}", verdict)  # fmt: skip
        return f"| {' | '.join(cells)} |"


def main(argv: Sequence[str] | None = None) -> int:
    """0 where everything stayed flat and no process was restarted."""
    asked = _parser().parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        asked_of = [sys.executable, "-m", "runtime", "run", "laptop", "--for", str(asked.minutes * 60 + PATIENCE_S)]
        changes = (
            "collaborator.use=bench.soak_nodes:EndlessPerson", "run.report=", f"recorder.split_s={SPLIT_S:g}",
        )  # fmt: skip
        settings = [part for change in changes for part in ("--set", change)]
        output = (Path(folder) / "output").open("wb")
        supervisor = subprocess.Popen(
            [*asked_of, *settings, "--out", folder, "--json"], cwd=ROOT, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            table, restarts, loads = watch(supervisor, asked.minutes * 60.0)
        finally:
            supervisor.send_signal(signal.SIGINT)
            supervisor.wait(PATIENCE_S)
            output.close()
    grown = [one for one in table if not one.is_flat]
    text = as_markdown(table, asked.minutes, restarts, loads)
    print(text)
    if asked.minutes >= 30:
        PAGE.write_text(text + "\n")
        print(f"written into {PAGE.relative_to(ROOT)}", file=sys.stderr)
    return 1 if grown or restarts else 0


def watch(supervisor: subprocess.Popen[bytes], seconds: float) -> tuple[list[Flatness], int, list[float]]:
    """All processes of that run for so long; how often any was restarted, and the machine's load at each look."""
    run = _run_of(supervisor)
    found: dict[tuple[str, str], Flatness] = {}
    loads: list[float] = []
    end = time.monotonic() + seconds
    due = time.monotonic()
    while time.monotonic() < end:
        if supervisor.poll() is not None:
            raise SystemExit(f"the run ended by itself after {seconds - (end - time.monotonic()):.0f} s")
        pids = {"supervisor": supervisor.pid, **{name: state.pid for name, state in run.states().items()}}
        for process, pid in sorted(pids.items()):
            for figure, look in LOOKS.items():
                found.setdefault((process, figure), Flatness(process, figure)).values.append(look(pid))
        if sys.stderr.isatty() or len(found[("supervisor", "descriptors")].values) % 30 == 1:
            print(f"{(end - time.monotonic()) / 60:.0f} min left", file=sys.stderr, flush=True)
        loads.append(os.getloadavg()[0])
        due += LOOK_S
        time.sleep(max(0.0, due - time.monotonic()))
    return list(found.values()), sum(state.restarts for state in run.states().values()), loads


def _run_of(supervisor: subprocess.Popen[bytes]) -> FoundRun:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end and supervisor.poll() is None:
        for run in find_runs():
            states = run.states().values()
            if run.info.supervisor_pid == supervisor.pid and {state.state for state in states} == {"running"}:
                return run
        time.sleep(0.2)
    raise SystemExit("the laptop graph did not start")


def _memory_mb(pid: int) -> float:
    """Anonymous memory: what a process itself has taken, without files and shared memory that it looks at."""
    for line in _proc(pid, "status").splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _shared_mb(pid: int) -> float:
    for line in _proc(pid, "status").splitlines():
        if line.startswith("RssShmem:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _descriptors(pid: int) -> float:
    try:
        return float(len(os.listdir(f"/proc/{pid}/fd")))
    except OSError:
        return 0.0


def _proc(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except OSError:
        return ""


LOOKS: dict[str, Callable[[int], float]] = {
    "memory, MB": _memory_mb,
    "descriptors": _descriptors,
    "shared memory, MB": _shared_mb,
}


def as_markdown(table: Sequence[Flatness], minutes: float, restarts: int, loads: Sequence[float]) -> str:
    """The page."""
    by_process: dict[str, list[Flatness]] = defaultdict(list)
    for one in table:
        by_process[one.process].append(one)
    flat = sum(one.is_flat for one in table)
    return "\n".join(
        [
            "# Soak of the laptop graph",
            "",
            f"Written by `python -m bench.soak` on commit {commit_of()}: {minutes:g} minutes in real time, with a "
            f"look every {LOOK_S:g} s; {flat} of {len(table)} figures flat, {restarts} restarts. *Early* and *late*"
            " are medians of the second and of the last fifth. The machine's load average was between "
            f"{min(loads):.1f} and {max(loads):.1f} on {os.cpu_count()} cores.",
            "",
            "| process | figure | early | late | worst | grown | may grow | flat |",
            "|---|---|---|---|---|---|---|---|",
            *(one.as_markdown() for process in sorted(by_process) for one in by_process[process]),
            "",
            f"The recorder began another file every {SPLIT_S:g} s, and with it another index in memory.",
        ]
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.soak", epilog="example: nice -n 15 python -m bench.soak --minutes 30")
    parser.add_argument("--minutes", type=float, default=30.0, help="default: %(default)g; fewer write no page")
    return parser


if __name__ == "__main__":
    sys.exit(main())
