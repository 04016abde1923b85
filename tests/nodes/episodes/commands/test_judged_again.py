"""A judge's scores survive being asked again, on other dimensions, in any order, and by a server that fails."""

from __future__ import annotations

import itertools
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from nodes.episodes.command import main
from nodes.episodes.evaluation.dimensions import NAMES
from nodes.episodes.results.store import Store
from tests.support.sentences import sentence
from tests.support.servers.episode_model import judged, scales_of
from tests.support.servers.fake_openai_server import FakeOpenAI, answers, says, status

pytestmark = pytest.mark.processes

OWN, OTHER = ("WIT", 0, 4), ("TACT", -2, 2)


def dimensions_file(folder: Path, name: str, low: int, high: int, instruction: str = "How much?") -> Path:
    path = folder / f"{name}-{high}.toml"
    path.write_text(f'[[dimension]]\nname = "{name}"\nlow = {low}\nhigh = {high}\ninstruction = "{instruction}"\n')
    return path


def scores_by(path: Path, judge: str) -> dict[str, int]:
    """How many scores that judge has given on each dimension."""
    found: dict[str, int] = {}
    with Store.read(path) as store:
        for row in store.episodes():
            for one in store.scores(row.id):
                if one.judge == judge and one.state == "done":
                    for score in one.scores:
                        found[score.dimension] = found.get(score.dimension, 0) + 1
    return found


@pytest.fixture
def played(tmp_path: Path) -> Path:
    path = tmp_path / "run.sqlite"
    assert main(["run", "--task", "quiet-hours", "--agents", "rules", "--judges", "rules", "--out", str(path)]) == 0
    return path


@pytest.mark.parametrize("order", list(itertools.permutations(("seven", "own", "other-own"))), ids="-".join)
def test_a_judge_is_asked_on_any_dimensions_in_any_order_and_again_and_loses_nothing(
    order: tuple[str, ...], played: Path, tmp_path: Path
) -> None:
    files = {
        "seven": [],
        "own": ["--dimensions", str(dimensions_file(tmp_path, *OWN))],
        "other-own": ["--dimensions", str(dimensions_file(tmp_path, *OTHER))],
    }
    names = {"seven": NAMES, "own": ("WIT",), "other-own": ("TACT",)}
    had: dict[str, int] = {}
    with FakeOpenAI(says(judged)) as server:
        judge = f"j@{server.url}"
        for which in order:
            had |= dict.fromkeys(names[which], 2)
            assert main(["score", str(played), "--judges", judge, *files[which]]) == 0
            assert scores_by(played, judge) == had
        assert len(server.requests) == 3
        for which in order:
            assert main(["score", str(played), "--judges", judge, *files[which]]) == 0
        assert len(server.requests) == 3, "nothing was missing"
        for number, which in enumerate((*order, *order), start=4):
            assert main(["score", str(played), "--judges", judge, "--again", *files[which]]) == 0
            assert len(server.requests) == number, "asked anew, and once"
            assert {name for one in scales_of(server.requests[-1]).values() for name in one} == set(names[which])
            assert scores_by(played, judge) == had
        assert main(["report", str(played), "--judge", judge]) == 0
    with Store.read(played) as store:
        assert store.tokens()[0] == 9, "what was paid for stands in the log"


@pytest.mark.parametrize("bad", [status(401), answers("I would rather not."), answers('{"evaluations": {}}')])
def test_what_cannot_be_asked_again_keeps_its_scores_and_says_so(
    bad: object, played: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeOpenAI(says(judged)) as server:
        judge = f"j@{server.url}"
        assert main(["score", str(played), "--judges", f"rules,{judge}"]) == 0
        had = scores_by(played, judge)
        server.script = [bad]  # type: ignore[list-item]  # one of the behaviours above
        capsys.readouterr()
        assert main(["score", str(played), "--judges", judge, "--again"]) == 1
        assert sentence("episodes.scores_stay") in capsys.readouterr().err
        assert scores_by(played, judge) == had
        wit = dimensions_file(played.parent, *OWN)
        assert main(["score", str(played), "--judges", judge, "--dimensions", str(wit)]) == 1
        assert scores_by(played, judge) == had, "a scale that failed takes no other with it"
        server.script = [says(lambda request: judged(request, 1 if "WIT" in request.user_text else 0))]
        assert main(["score", str(played), "--judges", judge, "--dimensions", str(wit)]) == 0
        assert scores_by(played, judge) == had | {"WIT": 2}
        other = dimensions_file(played.parent, "WIT", 0, 10)
        server.script = [bad]  # type: ignore[list-item]
        assert main(["score", str(played), "--judges", judge, "--dimensions", str(other), "--again"]) == 1
        assert sentence("episodes.all_or_none") in capsys.readouterr().err
        assert main(["score", str(played), "--judges", judge, "--dimensions", str(wit)]) == 0, (
            "it is that scale's still"
        )
        assert main(["score", str(played), "--judges", f"k@{server.url}", "--dimensions", str(other), "--again"]) == 2


def test_a_name_that_stood_for_another_scale_is_refused_and_loses_nothing(
    played: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeOpenAI(says(judged)) as server:
        judge = f"j@{server.url}"
        for file in (dimensions_file(tmp_path, "WIT", 0, 4), dimensions_file(tmp_path, "WIT", 0, 10)):
            code = main(["score", str(played), "--judges", judge, "--dimensions", str(file)])
        assert code == 2
        assert sentence("episodes.another_scale", name="WIT", before="WIT [0, 4]") in capsys.readouterr().err
        assert scores_by(played, judge) == {"WIT": 2}
        assert main(["score", str(played), "--judges", judge, "--again", "--dimensions", str(file)]) == 0
        assert scores_by(played, judge) == {"WIT": 2}


def test_a_run_whose_scores_an_older_version_has_lost_is_judged_again(played: Path) -> None:
    with FakeOpenAI(says(judged)) as server:
        judge = f"j@{server.url}"
        assert main(["score", str(played), "--judges", judge]) == 0
        with closing(sqlite3.connect(played)) as file, file:
            for table in ("judgements", "evaluations"):
                file.execute(f"DELETE FROM {table} WHERE judge = ?", (judge,))
            file.execute("DELETE FROM calls WHERE seat >= 200")  # what it left are the latencies
        assert main(["score", str(played), "--judges", judge]) == 0
        assert scores_by(played, judge) == dict.fromkeys(NAMES, 2)
