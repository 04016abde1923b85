"""Real runs for tests: started as a user starts them, in a registry of their own, and gone at the end."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import pytest

from runtime.clock import SystemClock, to_ns
from runtime.supervision.registry import FoundRun, find_runs

PATIENCE_S = 60.0


def eventually(fact: Callable[[], bool], what: str, within_s: float = PATIENCE_S) -> None:
    """Return once the fact holds; fail the test where it does not within that time."""
    clock = SystemClock()
    end_ns = clock.now_ns() + to_ns(within_s)
    pause = threading.Event()
    while not fact():
        assert clock.now_ns() < end_ns, f"not within {within_s:g} s: {what}"
        pause.wait(0.02)


async def becomes(fact: Callable[[], bool], within_s: float = PATIENCE_S) -> None:
    """Return once the fact holds, while the loop goes on; fails with TimeoutError."""
    async with asyncio.timeout(within_s):
        while not fact():
            await asyncio.sleep(0.02)


class Runs:
    """The runs of one test."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="pr-", dir="/tmp")  # short: sockets have short paths
        self.folder = Path(self._folder.name)
        patch.setenv("XDG_RUNTIME_DIR", str(self.folder))
        patch.setenv("TMPDIR", str(self.folder))
        patch.setattr(tempfile, "tempdir", None)
        self._supervisors: list[subprocess.Popen[bytes]] = []

    def start(self, launch: Path | str, log: Path = Path(os.devnull)) -> FoundRun:
        """Start a launch file, whose log goes there; return once all of its processes run."""
        with log.open("wb") as out:
            supervisor = subprocess.Popen(
                [sys.executable, "-m", "runtime", "run", str(launch)], stdout=out, stderr=subprocess.STDOUT
            )
        self._supervisors.append(supervisor)

        def found() -> list[FoundRun]:
            return [run for run in find_runs() if run.info.supervisor_pid == supervisor.pid]

        def is_running() -> bool:
            assert supervisor.poll() is None, f"the run ended with {supervisor.returncode}"
            return any(
                set(run.states()) == set(run.info.processes)
                and all(state.state == "running" for state in run.states().values())
                for run in found()
            )

        eventually(is_running, "all processes run")
        return found()[0]

    def kill_supervisor(self, run: FoundRun) -> None:
        """SIGKILL, and wait for its end."""
        supervisor = next(one for one in self._supervisors if one.pid == run.info.supervisor_pid)
        supervisor.kill()
        supervisor.wait(PATIENCE_S)

    def __enter__(self) -> Runs:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        for supervisor in self._supervisors:
            if supervisor.poll() is None:
                supervisor.send_signal(signal.SIGINT)
        for supervisor in self._supervisors:
            supervisor.wait(PATIENCE_S)
        self._folder.cleanup()


def is_alive(pid: int) -> bool:
    """Whether there is a process of that id that has not ended."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
