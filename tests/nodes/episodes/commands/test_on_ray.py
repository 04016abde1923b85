"""`--engine ray`: shards elsewhere, merged; here the cluster is this process, and in `make interop` it is Ray."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from nodes.episodes.command import main
from nodes.episodes.commands import on_ray
from nodes.episodes.commands.on_ray import Purse, ShardNews, ShardWork
from nodes.episodes.commands.ray_cluster import RayCluster
from tests.support.sentences import sentence
from tests.support.servers.fake_openai_server import FakeOpenAI, answers, status

ACT = json.dumps({"action_type": "speak", "argument": "Hello", "to": []})
TASKS = ["--task", "quiet-hours", "--task", "three-stalls", "--turns", "4"]


class Here(RayCluster[ShardWork, ShardNews]):
    """A cluster of generators in this process; so many workers as `mortal` says die some time after a checkpoint."""

    mortal = 0

    def __init__(self, do: Callable[[ShardWork], Iterator[ShardNews]]) -> None:
        self.do = do
        self.slots = 3
        self.running: list[tuple[int, Iterator[ShardNews] | None]] = []
        self.copied = set[int]()

    def submit(self, shard: int, work: ShardWork) -> None:
        self.running.append((shard, self.do(work)))

    def next(self) -> tuple[int, ShardNews | None, str]:
        shard, worker = self.running.pop(0)
        if worker is None:
            return shard, None, "the worker was killed"
        news = next(worker, None)
        if news is not None:
            dies = Here.mortal > 0 and shard in self.copied
            Here.mortal -= dies
            self.copied.add(shard)
            self.running.append((shard, None if dies else worker))
            news = msgspec.structs.replace(news, data=b"") if dies else news
        return shard, news, ""

    def close(self) -> None:
        assert not self.running


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_ray, "RayCluster", Here)
    monkeypatch.setattr(on_ray, "NEWS_S", 0.01)
    monkeypatch.setattr(on_ray, "CHECKPOINT_S", 0.0)


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    capsys.readouterr()
    code = main([*arguments, "--json"])
    return code, capsys.readouterr().out


@pytest.mark.usefixtures("cluster")
def test_the_run_is_the_same_as_in_one_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["run", *TASKS, "--agents", "rules", "--seeds", "3"]
    here = told(capsys, *asked, "--out", str(tmp_path / "a.sqlite"))
    there = told(capsys, *asked, "--out", str(tmp_path / "b.sqlite"), "--engine", "ray", "--shards", "4")
    assert there == here
    assert here[0] == 0
    assert len(json.loads(here[1])["episodes"]) == 6
    assert {path.name for path in tmp_path.iterdir() if "lock" not in path.name} == {"a.sqlite", "b.sqlite"}


@pytest.mark.processes
@pytest.mark.usefixtures("cluster")
def test_a_killed_workers_shard_goes_on_from_its_last_copy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Here.mortal = 3
    with FakeOpenAI(answers(ACT)) as server:
        asked = ["run", *TASKS, "--agents", f"m@{server.url}", "--seeds", "3", "--jobs", "1"]
        here = told(capsys, *asked, "--out", str(tmp_path / "a.sqlite"))
        calls = len(server.requests)
        there = told(capsys, *asked, "--out", str(tmp_path / "b.sqlite"), "--engine", "ray")
        assert Here.mortal == 0, "three have died"
        assert there == here
        assert 2 * calls <= len(server.requests) < 3 * calls, "what came back before is not asked for again"


@pytest.mark.processes
@pytest.mark.usefixtures("cluster")
def test_the_budget_is_that_of_the_whole_run_and_resume_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "b.sqlite")
    with FakeOpenAI(answers(ACT)) as server:
        asked = ["run", *TASKS, "--agents", f"m@{server.url}", "--seeds", "3"]
        here = told(capsys, *asked, "--out", str(tmp_path / "a.sqlite"))
        calls = len(server.requests)
        assert main([*asked, "--out", out, "--engine", "ray", "--max-calls", "10"]) == 1
        assert len(server.requests) == calls + 10
        said = capsys.readouterr().err
        assert "the budget of" in said
        assert f"{sentence('episodes.go_on_with')} {out} --engine ray" in said
        assert not Path(out).exists()
        assert told(capsys, "resume", out, "--engine", "ray", "--max-calls", "0") == here
        assert len(server.requests) == 2 * calls
    assert not Path(out + ".shards").exists()


@pytest.mark.processes
@pytest.mark.usefixtures("cluster")
def test_what_failed_is_kept_in_its_shard_and_can_be_merged_or_resumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "run.sqlite")
    with FakeOpenAI(status(401), answers(ACT)) as server:
        asked = ["run", *TASKS, "--agents", f"m@{server.url}", "--out", out, "--engine", "ray", "--jobs", "1"]
        assert main(asked) == 1
        assert "1 of 2 episodes are done (failed: " in capsys.readouterr().err
        shards = sorted(str(path) for path in Path(out + ".shards").glob("*.sqlite"))
        assert len(shards) == 2, "no more shards than episodes"
        assert main(["merge", *shards, "--out", str(tmp_path / "part.sqlite")]) == 0
        assert "1 of 2 episodes done" in capsys.readouterr().out
        assert main(asked) == 2, "it is not begun anew over what is there"
        assert main(["resume", out, "--engine", "ray"]) == 0
        assert "2 of 2 episodes done" in capsys.readouterr().out


@pytest.mark.processes
@pytest.mark.usefixtures("cluster")
def test_what_a_dead_worker_has_spent_is_spent(tmp_path: Path) -> None:
    Here.mortal = 2
    with FakeOpenAI(answers(ACT)) as server:
        asked = ["run", *TASKS, "--agents", f"m@{server.url}", "--seeds", "3", "--jobs", "1", "--engine", "ray"]
        assert main([*asked, "--max-calls", "12", "--out", str(tmp_path / "run.sqlite")]) == 1
        assert len(server.requests) <= 12
    assert Here.mortal == 0


def test_shares_of_a_budget_are_never_more_than_the_whole() -> None:
    purse = Purse((100, 0, 3.0))
    given = {shard: purse.may_go_to(shard, 9 - shard) for shard in range(10)}
    bounds = [bound for bound in given.values() if bound is not None]
    assert sum(bound[0] for bound in bounds) <= 100
    assert sum(bound[2] for bound in bounds) <= 3.0
    assert {bound[1] for bound in bounds} == {0.0}, "no limit"
    for shard in given:
        purse.bounds.pop(shard, None)
        purse.spent[shard] = (1, 50, 0.01)
    bound = purse.may_go_to(0, 0)
    assert bound is not None
    assert bound == pytest.approx((91, 0.0, 2.91))
    assert purse.may_go_to(1, 0) is None, "all the rest is given"


@pytest.mark.usefixtures("cluster")
def test_a_worker_whose_disk_is_a_network_file_system_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "nodes.episodes.results.run_file.network_file_system", lambda path: "nfs4" if "episodes-" in str(path) else ""
    )
    assert main(["run", *TASKS, "--out", str(tmp_path / "run.sqlite"), "--engine", "ray"]) == 2
    assert "is on a network file system (nfs4), where SQLite loses data" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (["--agents", "human,rules"], f"--agents human: {sentence('episodes.plays_here', who='human')}"),
        (["--shard", "1/2"], sentence("episodes.shard_and_engine")),
        (["--shards", "-1"], f"--shards is -1; {sentence('episodes.at_least_one')}"),
    ],
)
@pytest.mark.usefixtures("cluster")
def test_what_cannot_be_played_elsewhere_is_refused(
    more: list[str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *TASKS, "--out", str(tmp_path / "run.sqlite"), "--engine", "ray", *more]) == 2
    assert why in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
