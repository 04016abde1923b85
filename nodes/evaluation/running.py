"""Runs trials as processes, several side by side, which end with this one however it ends."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import msgspec

from nodes.evaluation.trials import EvaluationRun, Result, Variant, result_of
from runtime.clock import NS_PER_S, SystemClock
from runtime.errors import PolyrhythmError, UserError

RECORDING = "run.mcap"
REPORT = "nodes.report.command:report_figures"
_ASKED_WRONGLY = 2
_LAST_WORDS = 400
_GRACE_S = 10.0
MOST_WAIT_S = 1e6  # the longest that a process can be waited for


class Runs:
    """Starts the processes, and can stop them all."""

    def __init__(
        self,
        launch: str,
        launch_text: str,
        variants: Sequence[Variant],
        changes_of_task: Callable[[str, Sequence[str]], Sequence[str]],
        folder: Path,
        *,
        is_virtual: bool,
        for_s: float | None,
        keeps_all: bool,
        longest_s: float,
        report: str = REPORT,
    ) -> None:
        """`changes_of_task`: what a task and a variant's changes set together; `longest_s`: on the wall clock."""
        self._launch = launch
        self._launch_text = launch_text
        self._changes = {variant.name: variant.changes for variant in variants}
        self._changes_of_task = changes_of_task
        self._folder = folder
        self._is_virtual = is_virtual
        self._for_s = for_s
        self._keeps_all = keeps_all
        self._longest_s = min(longest_s, MOST_WAIT_S)
        self._report = report
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._clock = SystemClock()

    def all_of(self, trials: Sequence[EvaluationRun], jobs: int, done: Callable[[Result], None]) -> None:
        """Run them; `done` is told of each in this thread. Raises UserError where one was asked wrongly."""
        alive_fd, held_fd = os.pipe()  # its end tells the runs that this process is gone
        try:
            with ThreadPoolExecutor(jobs, "trial") as pool:
                futures = [pool.submit(self._run, trial, alive_fd) for trial in trials]
                try:
                    for future in as_completed(futures):
                        if (result := future.result()) is not None:
                            done(result)
                except BaseException:
                    self._stop()
                    for future in futures:
                        future.cancel()
                    raise
        finally:
            os.close(alive_fd)
            os.close(held_fd)

    def _run(self, trial: EvaluationRun, alive_fd: int) -> Result | None:
        folder = self._folder / trial.name
        shutil.rmtree(folder, ignore_errors=True)  # of a run that was stopped
        recording = folder / RECORDING
        self._check_unchanged()
        started_ns = self._clock.now_ns()
        with self._lock:
            if self._stopped.is_set():
                return None
            starting = [sys.executable, "-m", "nodes.evaluation.child", str(alive_fd)]
            process = subprocess.Popen(
                starting + self._command(trial, folder, recording),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                stdin=subprocess.DEVNULL,
                pass_fds=(alive_fd,),
                text=True,
                errors="replace",
            )
            self._running.add(process)
        try:
            said, complaint = process.communicate(timeout=self._longest_s)
        except subprocess.TimeoutExpired:
            _end(process)
            said, complaint = "", f"it did not end within {self._longest_s:g} s and was killed"
        finally:
            with self._lock:
                self._running.discard(process)
        if self._stopped.is_set():
            return None
        if process.returncode == _ASKED_WRONGLY:
            raise UserError(complaint.strip().removeprefix("polyrhythm: "))
        result = _read(trial, said, complaint, (self._clock.now_ns() - started_ns) / NS_PER_S, recording)
        if result.is_success and not self._keeps_all:
            shutil.rmtree(folder, ignore_errors=True)
            return msgspec.structs.replace(result, recording="")
        return result

    def _check_unchanged(self) -> None:
        """What is run in the end must be what was run at the beginning."""
        try:
            if Path(self._launch).read_text(encoding="utf-8") == self._launch_text:
                return
            how = "has changed"
        except (OSError, UnicodeDecodeError):
            how = "cannot be read any more"
        raise PolyrhythmError(f"{self._launch} {how} since the evaluation began; start another one with another --out")

    def _command(self, trial: EvaluationRun, folder: Path, recording: Path) -> list[str]:
        changes = self._changes[trial.variant]
        if trial.task:
            changes = tuple(self._changes_of_task(trial.task, changes))
        command = ["run", self._launch, "--json", "--seed", str(trial.seed)]
        command += ["--virtual"] if self._is_virtual else []
        command += ["--for", str(self._for_s)] if self._for_s is not None else []
        command += ["--out", str(folder), "--record", str(recording)]
        return command + [part for change in (*changes, f"run.report={self._report}") for part in ("--set", change)]

    def _stop(self) -> None:
        with self._lock:
            self._stopped.set()
            for process in self._running:
                process.terminate()


def _end(process: subprocess.Popen[str]) -> None:
    """Kill a run that does not end: politely first, for a run in real time then ends its nodes as well."""
    process.terminate()
    for after_s in (_GRACE_S, _GRACE_S):
        try:
            process.communicate(timeout=after_s)
            return
        except subprocess.TimeoutExpired:
            process.kill()
    # Something that it had started holds its output open; it is not waited for.


def _summary(said: str) -> dict[str, Any] | None:
    """The JSON object that ends the output, whatever a node has printed before it."""
    try:
        found = json.loads(said[said.rfind("\n{") + 1 :])
    except json.JSONDecodeError:
        return None
    return found if isinstance(found, dict) and "is_success" in found else None


def _read(trial: EvaluationRun, said: str, complaint: str, took_s: float, recording: Path) -> Result:
    summary = _summary(said)
    if summary is None:
        lines = [line for line in complaint.strip().splitlines() if line.strip()]
        reason = lines[-1][:_LAST_WORDS] if lines else "it ended without a word"
        return Result(
            trial=trial, is_success=None, reason=f"broken: {reason}", has_broken=True, took_s=round(took_s, 2)
        )
    kept = str(recording) if recording.is_file() else ""
    return result_of(trial, summary, took_s=took_s, recording=kept)


def check_not_broken(results: Sequence[Result]) -> None:
    """Raise PolyrhythmError where all runs broke: nothing was evaluated."""
    if results and all(result.has_broken for result in results):
        raise PolyrhythmError(f"no run came to an end; {results[0].trial.name} is {results[0].reason}")
