"""`polyrhythm eval ... --engine ray`: runs as tasks on an existing Ray cluster. One whose worker dies is run again."""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from nodes.episodes.commands.ray_cluster import MOST_DEATHS, RayCluster
from nodes.evaluation.own_measures import measures_of
from nodes.evaluation.running import PICTURES, RECORDING, Runs, tell_running, told_each_s
from nodes.evaluation.trials import EvaluationRun, Result, TrialVariant
from runtime import __version__
from runtime.clock import SystemClock
from runtime.errors import PolyrhythmError, UserError
from runtime.launch.file import find


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
