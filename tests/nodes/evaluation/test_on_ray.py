"""`eval --engine ray`: runs elsewhere; here the cluster is this process (a real one: tests/interop/plays_on_ray.py)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nodes.episodes.commands.ray_cluster import MOST_DEATHS, RayCluster
from nodes.evaluation import running
from nodes.evaluation.command import main
from nodes.evaluation.running import REPORT, TrialNews, TrialWork, play_trial
from nodes.evaluation.trials import EvaluationRun, TrialVariant
from runtime.errors import PolyrhythmError, UserError
from tests.support.sentences import pattern

LAUNCH = """
[nodes.lot]
use = "tests.nodes.evaluation.evaluated_nodes:Lot"
"""


class Here(RayCluster[TrialWork, TrialNews]):
    """A cluster of generators in this process; as many workers as `mortal` says die over their first work."""

    mortal = 0
    submitted = 0
    silences = 0

    def __init__(self, do: Callable[[TrialWork], Iterator[TrialNews]]) -> None:
        self.do, self.slots = do, 3
        self.running: list[tuple[int, Iterator[TrialNews]]] = []

    def submit(self, number: int, work: TrialWork) -> None:
        Here.submitted += 1
        assert len(self.running) < self.slots
        self.running.append((number, self.do(work)))

    def has_news(self, timeout_s: float) -> bool:
        Here.silences -= 1
        return Here.silences < 0

    def next(self) -> tuple[int, TrialNews | None, str]:
        number, worker = self.running.pop()  # the last one first: results come in another order
        if Here.mortal:
            Here.mortal -= 1
            return number, None, "the worker was killed"
        news = next(worker, None)
        if news is not None:
            self.running.append((number, worker))
        return number, news, ""

    def close(self) -> None:
        self.running.clear()


@pytest.fixture
def launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(running, "RayCluster", Here)
    monkeypatch.setattr(Here, "mortal", 0)
    monkeypatch.setattr(Here, "submitted", 0)
    monkeypatch.setattr(Here, "silences", 0)
    path = tmp_path / "lot.toml"
    path.write_text(LAUNCH)
    return path


def work(launch: Path) -> TrialWork:
    return TrialWork(EvaluationRun("a", "", 0), TrialVariant("a"), str(launch), LAUNCH, None, False, 60.0, REPORT)


def told(launch: Path, out: Path, capsys: pytest.CaptureFixture[str], *more: str) -> list[dict[str, Any]]:
    own = "tests.nodes.evaluation.evaluated_nodes"
    measures = ["--measure", f"beats={own}:beats", "--measure", f"grams={own}:broken"]
    asked = [*measures, "--seeds", "2", "--variant", "sure", "--variant", "poor", "--set", "lot.luck=0.0", "--json"]
    assert main([str(launch), *asked, "--out", str(out), *more]) == 0
    said = capsys.readouterr()
    results = json.loads(said.out)["results"]
    assert said.err.count("no scale") == len(results), "a measure that fails is told, wherever it is made"
    for one in results:
        one["recording"] = Path(one["recording"]).name
        del one["took_s"]
    found: list[dict[str, Any]] = results
    return found


@pytest.mark.processes
def test_a_cluster_gives_the_same_results_and_measures_also_where_a_worker_dies(
    launch: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = told(launch, tmp_path / "here", capsys)
    Here.mortal = 1
    there = told(launch, tmp_path / "there", capsys, "--engine", "ray")
    assert there == here
    assert {one["measures"]["beats"] > 0 for one in there} == {True}
    assert Here.submitted == len(here) + 1, "what died was done again, and nothing else"
    recordings = {path.relative_to(tmp_path / "there") for path in (tmp_path / "there").glob("*/run.mcap")}
    assert recordings == {path.relative_to(tmp_path / "here") for path in (tmp_path / "here").glob("*/run.mcap")}
    assert len(recordings) == 2, "those of runs that did not succeed"


def test_a_run_that_kills_each_worker_is_given_up(
    launch: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Here.mortal, Here.silences = 100, 1
    assert main([str(launch), "--seeds", "1", "--out", str(tmp_path / "out"), "--engine", "ray"]) == 1
    said = capsys.readouterr().err
    assert f"{MOST_DEATHS} workers died over as it is-seed0" in said
    assert "still running: as it is-seed0 for 0 s" in said, "whoever is silent meanwhile is told"


def test_a_worker_of_another_version_or_with_another_launch_file_refuses(launch: Path) -> None:
    with pytest.raises(UserError, match=pattern("evaluation.another_version", version=".*", other=r"0\.0\.1")):
        next(play_trial(msgspec.structs.replace(work(launch), version="0.0.1")))
    launch.write_text(LAUNCH + "# other")
    with pytest.raises(PolyrhythmError, match=r"lot\.toml has changed"):
        next(play_trial(work(launch)))


def test_a_cluster_has_no_real_time(launch: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([str(launch), "--engine", "ray", "--real-time"])
    assert "not allowed with argument" in capsys.readouterr().err
