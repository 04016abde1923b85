"""Runs trials as processes, several side by side, which end with this one however it ends; or as tasks of Ray."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import KW_ONLY, dataclass, field
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from nodes.episodes.commands.ray_cluster import MOST_DEATHS, RayCluster
from nodes.evaluation.own_measures import Measure, measured, measures_of, tell_measure
from nodes.evaluation.trials import EvaluationRun, Result, TrialVariant, result_of
from runtime import __version__
from runtime.cli import main
from runtime.clock import SystemClock
from runtime.commands.run import use_one_thread
from runtime.errors import PolyrhythmError, UserError
from runtime.launch.file import find, load
from runtime.operating_system.terminal import signals_of_end
from runtime.supervision.orphan import end_with

RECORDING = "run.mcap"
REPORT = "nodes.report.command:report_figures"
LAST, PICTURES = "last.jpg", "pictures"
"""What a report calls the picture of how a run ended, and where those of all runs are."""
_ASKED_WRONGLY = 2
_LAST_WORDS = 400
_GRACE_S = 10.0
WATCHED_EACH_S, EACH_S = 2.0, 60.0
"""So often it is told which runs go on, on a terminal and elsewhere, where no run ends meanwhile."""
_LIBRARIES = (
    "cv2", "mcap.writer", "nodes.report.contact_sheet", "runtime.virtual.simulation", "runtime.commands.run",
    "nodes.mcap.file", __name__,
)  # fmt: skip
"""What a run imports besides the modules of its nodes."""


@dataclass
class _Trial:
    """One that runs."""

    trial: EvaluationRun
    process: BaseProcess
    started_ns: int
    folder: Path
    said: Path
    complaint: Path


@dataclass
class Runs:
    """Starts the processes, and ends them all where one of them was asked wrongly or this one is interrupted.

    They are forked from a process that has imported what the graph needs and done nothing else, where the system can
    fork; elsewhere each starts anew.
    """

    launch: str
    launch_text: str
    variants: Sequence[TrialVariant]
    changes_of_task: Callable[[str, Sequence[str]], Sequence[str]]
    """What a task and a variant's changes set together."""
    folder: Path
    _: KW_ONLY
    is_virtual: bool
    for_s: float | None
    keeps_all: bool
    longest_s: float
    """On the wall clock."""
    report: str = REPORT
    reads: Mapping[Path, str] = field(default_factory=dict)
    """Files that each run reads besides, and the digests that they must keep."""
    measures: Mapping[str, Measure] = field(default_factory=dict)
    complain: Callable[[str], None] = tell_measure
    clock: SystemClock = field(default_factory=SystemClock, init=False)

    def all_of(self, trials: Sequence[EvaluationRun], jobs: int, done: Callable[[Result], None]) -> None:
        """Run them; `done` is told of each. Those that go on meanwhile are told on stderr.

        Raises UserError where one was asked wrongly.
        """
        each_s = told_each_s()
        waiting = deque(trials)
        running: dict[int, _Trial] = {}
        methods = multiprocessing.get_all_start_methods()
        context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
        use_one_thread(is_virtual=self.is_virtual)
        told_ns = self.clock.now_ns()
        if trials:
            context.set_forkserver_preload(self._modules(trials[0]))
        with tempfile.TemporaryDirectory(prefix="polyrhythm-trials-") as outputs:
            try:
                while waiting or running:
                    while waiting and len(running) < jobs:
                        with _uninterrupted():
                            started = self._start(context, waiting.popleft(), Path(outputs))
                            running[started.process.sentinel] = started
                    ended = connection.wait(list(running), min(each_s, self._left_s(running.values())))
                    late = [key for key, one in running.items() if self._age_s(one) >= self.longest_s]
                    for key in dict.fromkeys([*ended, *late]):
                        assert isinstance(key, int)
                        one = running.pop(key)
                        done(self._result(one, has_ended=key in ended))
                        told_ns = self.clock.now_ns()
                    if running and self.clock.since_s(told_ns) >= each_s:
                        tell_running(self._going_on(one) for one in running.values())
                        told_ns = self.clock.now_ns()
            finally:
                for one in running.values():
                    one.process.terminate()
                for one in running.values():
                    _end(one.process)

    def _start(self, context: Any, trial: EvaluationRun, outputs: Path) -> _Trial:
        folder = self.folder / trial.name
        shutil.rmtree(folder, ignore_errors=True)  # of a run that was stopped
        self._check_unchanged()
        said, complaint = outputs / f"{trial.name}.out", outputs / f"{trial.name}.err"
        argv = self._command(trial, folder, folder / RECORDING)
        process = context.Process(target=run_trial, args=(argv, said, complaint), name=trial.name)
        started_ns = self.clock.now_ns()
        process.start()
        return _Trial(trial, process, started_ns, folder, said, complaint)

    def _going_on(self, one: _Trial) -> str:
        recording = one.folder / RECORDING
        recorded_mb = recording.stat().st_size / 1e6 if recording.is_file() else 0.0
        return f"{one.trial.name} for {self._age_s(one):.0f} s ({recorded_mb:.1f} MB recorded)"

    def _age_s(self, one: _Trial) -> float:
        return self.clock.since_s(one.started_ns)

    def _left_s(self, running: Iterable[_Trial]) -> float:
        return max(0.0, self.longest_s - max(self._age_s(one) for one in running))

    def _result(self, one: _Trial, *, has_ended: bool) -> Result:
        _end(one.process)
        said, complaint = (_text(path) for path in (one.said, one.complaint))
        if not has_ended:
            said, complaint = "", f"it did not end within {self.longest_s:g} s and was killed"
        elif one.process.exitcode == _ASKED_WRONGLY:
            raise UserError(complaint.strip().removeprefix("polyrhythm: "))
        result = _read(one.trial, said, complaint, self._age_s(one), one.folder / RECORDING)
        if has_ended and one.process.exitcode and result.is_success is not False and not result.has_broken:
            result = msgspec.structs.replace(result, is_success=False, reason=_last_line(complaint))
        if self.measures and result.recording:
            own = measured(self.measures, Path(result.recording), one.folder.name, self.complain)
            result = msgspec.structs.replace(result, measures={**result.measures, **own})
        picture = one.folder / LAST
        if picture.is_file():
            (self.folder / PICTURES).mkdir(exist_ok=True)
            picture.rename(self.folder / PICTURES / f"{one.trial.name}.jpg")
        if result.is_success and not self.keeps_all:
            shutil.rmtree(one.folder, ignore_errors=True)
            return msgspec.structs.replace(result, recording="")
        return result

    def _modules(self, trial: EvaluationRun) -> list[str]:
        """What the process that others are forked from imports: all that the graph's nodes and the report are in."""
        variant = self.changed(trial)
        launch = load(Path(self.launch), variant.changes, added=variant.added, without=variant.without)
        nodes = {spec.cls.__module__ for spec in launch.graph.nodes.values()}
        return [*_LIBRARIES, self.report.partition(":")[0], *sorted(nodes)]

    def changed(self, trial: EvaluationRun) -> TrialVariant:
        """The variant of a run, with what its task changes."""
        variant = next(one for one in self.variants if one.name == trial.variant)
        changes = self.changes_of_task(trial.task, variant.changes) if trial.task else variant.changes
        return msgspec.structs.replace(variant, changes=tuple(changes))

    def _check_unchanged(self) -> None:
        """What is run in the end must be what was run at the beginning. Raises PolyrhythmError."""
        for path, digest in {Path(self.launch): _digest(self.launch_text), **self.reads}.items():
            try:
                how = "" if digest_of(path) == digest else "has changed"
            except (OSError, UnicodeDecodeError):
                how = "cannot be read any more"
            if how:
                raise PolyrhythmError(f"{path} {how} since the evaluation began; start another one with another --out")

    def _command(self, trial: EvaluationRun, folder: Path, recording: Path) -> list[str]:
        command = ["run", self.launch, "--json", "--seed", str(trial.seed)]
        command += ["--virtual"] if self.is_virtual else []
        command += ["--for", str(self.for_s)] if self.for_s is not None else []
        command += ["--out", str(folder), "--record", str(recording)]
        variant = self.changed(trial)
        command += [part for node in variant.added for part in ("--add", node)]
        command += [part for node in variant.without for part in ("--without", node)]
        return command + [
            part for change in (*variant.changes, f"run.report={self.report}") for part in ("--set", change)
        ]


def run_trial(argv: list[str], said: Path, complaint: Path) -> None:
    """One run, in this process that ends with its starter: output in these files; leave with its exit code."""
    for stream, path in ((sys.stdout, said), (sys.stderr, complaint)):
        stream.flush()
        target_fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(target_fd, stream.fileno())
        os.close(target_fd)
    starter = multiprocessing.parent_process()
    if starter is not None:
        end_with(os.dup(starter.sentinel))
    sys.exit(main(argv))


def told_each_s() -> float:
    """So often it is told which runs go on, on a terminal and elsewhere."""
    return WATCHED_EACH_S if sys.stderr.isatty() else EACH_S


def tell_running(runs: Iterable[str]) -> None:
    """Tell which go on, on stderr."""
    print(f"still running: {', '.join(runs)}", file=sys.stderr, flush=True)


def digest_of(file: Path) -> str:
    """SHA-256 of its text, in hexadecimal digits. Raises OSError and UnicodeDecodeError."""
    return _digest(file.read_text(encoding="utf-8"))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def answered_by(handler: Callable[[int, Any], object]) -> Iterator[None]:
    """Meanwhile each signal that asks for an end goes to the handler."""
    before = {number: signal.signal(number, handler) for number in signals_of_end()}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """An interrupt waits until a process has been started as a whole, and is known."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list[int] = []
    with answered_by(lambda number, _: caught.append(number)):
        yield
    if caught:
        raise KeyboardInterrupt


def _end(process: BaseProcess) -> None:
    """Wait for a run that has ended; kill one that does not: politely first, a run in real time then ends its nodes."""
    if process.is_alive() and process.exitcode is None:
        process.terminate()
        process.join(_GRACE_S)
        process.kill()
    process.join(_GRACE_S)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


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
        reason = f"broken: {_last_line(complaint)}"
        return Result(trial=trial, is_success=None, reason=reason, has_broken=True, took_s=round(took_s, 2))
    kept = str(recording) if recording.is_file() else ""
    return result_of(trial, summary, took_s=took_s, recording=kept)


def _last_line(complaint: str) -> str:
    """What a run said last of why it failed."""
    lines = [line for line in complaint.strip().splitlines() if line.strip()]
    return lines[-1][:_LAST_WORDS] if lines else "it ended without a word"


def check_not_broken(results: Sequence[Result]) -> None:
    """Raise PolyrhythmError where all runs broke: nothing was evaluated."""
    if results and all(result.has_broken for result in results):
        raise PolyrhythmError(f"no run came to an end; {results[0].trial.name} is {results[0].reason}")


class TrialWork(msgspec.Struct, frozen=True):
    """What a worker is given: one run, and how it is run."""

    trial: EvaluationRun
    variant: TrialVariant  # with what the task changes
    launch: str  # its path here, or the shipped one of that name there
    launch_text: str
    for_s: float | None
    keeps_all: bool
    longest_s: float
    report: str
    measures: tuple[str, ...] = ()  # as --measure names them; a worker finds their modules as it finds those of nodes
    version: str = __version__


class TrialNews(msgspec.Struct, frozen=True):
    """What a worker gives back: how the run went, and its recording where that is kept."""

    result: Result
    recording: bytes = b""
    complaints: tuple[str, ...] = ()  # of measures that failed
    picture: bytes = b""


def play_trial(work: TrialWork) -> Iterator[TrialNews]:
    """Do one run on this machine. Raises UserError where another version is installed, or the launch file differs."""
    if work.version != __version__:
        raise UserError(f"a worker has polyrhythm {__version__}, who started it has {work.version}; expected the same")
    launch = work.launch if Path(work.launch).is_file() else str(find(Path(work.launch).stem))
    with TemporaryDirectory(prefix="polyrhythm-trial-") as folder:
        found: list[Result] = []
        complaints: list[str] = []
        runs = Runs(
            launch, work.launch_text, [work.variant], lambda _, changes: changes, Path(folder), is_virtual=True,
            for_s=work.for_s, keeps_all=work.keeps_all, longest_s=work.longest_s, report=work.report,
            measures=measures_of(work.measures), complain=complaints.append,
        )  # fmt: skip
        runs.all_of([work.trial], 1, found.append)
        (result,) = found
        picture = Path(folder) / PICTURES / f"{work.trial.name}.jpg"
        recording = Path(result.recording).read_bytes() if result.recording else b""
        yield TrialNews(result, recording, tuple(complaints), picture.read_bytes() if picture.is_file() else b"")


def run_on_ray(
    runs: Runs, trials: Sequence[EvaluationRun], measures: tuple[str, ...], done: Callable[[Result], None]
) -> None:
    """Do all runs; `done` is told of each, its recording in the folder. Raises PolyrhythmError where workers die."""
    if not trials:
        return
    how = (runs.launch, runs.launch_text, runs.for_s, runs.keeps_all, runs.longest_s, runs.report, measures)
    works = [TrialWork(trial, runs.changed(trial), *how) for trial in trials]
    waiting, running, told, deaths = deque(range(len(works))), dict[int, int](), set[int](), Counter[int]()
    clock, each_s = SystemClock(), told_each_s()
    with redirect_stdout(sys.stderr):  # Ray prints what it thinks of dead workers
        cluster = RayCluster(play_trial)
        try:
            while waiting or running:
                while waiting and len(running) < cluster.slots:
                    running[number := waiting.popleft()] = clock.now_ns()
                    cluster.submit(number, works[number])
                while not cluster.has_news(each_s):
                    tell_running(
                        f"{works[one].trial.name} for {clock.since_s(ns):.0f} s" for one, ns in running.items()
                    )
                number, news, death = cluster.next()
                name = works[number].trial.name
                if news is not None:
                    told.add(number)
                    done(_kept(news, runs.folder / name / RECORDING))
                    continue
                running.pop(number, None)
                if number in told:
                    continue
                deaths[number] += 1
                if deaths[number] >= MOST_DEATHS:
                    raise PolyrhythmError(f"{deaths[number]} workers died over {name}, the last one: {death}")
                waiting.appendleft(number)
        finally:
            cluster.close()


def _kept(news: TrialNews, recording: Path) -> Result:
    """The result, its recording written here."""
    for complaint in news.complaints:
        print(complaint, file=sys.stderr)
    if news.picture:
        pictures = recording.parents[1] / PICTURES
        pictures.mkdir(parents=True, exist_ok=True)
        (pictures / f"{news.result.trial.name}.jpg").write_bytes(news.picture)
    if not news.recording:
        return news.result
    recording.parent.mkdir(parents=True, exist_ok=True)
    recording.write_bytes(news.recording)
    return msgspec.structs.replace(news.result, recording=str(recording))
