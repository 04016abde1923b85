"""Judges and what they cost, from the outside: two scales side by side, a body judged by a model, prices on resume."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodes.episodes.command import main
from nodes.episodes.evaluation.dimensions import NAMES, fine
from nodes.episodes.results.browse import answer
from nodes.episodes.results.store import Store
from tests.support.sentences import sentence
from tests.support.servers.fake_openai_server import FakeOpenAI, answers, status
from tests.support.synthetic_run import write_run

pytestmark = pytest.mark.processes

ACT = json.dumps({"action_type": "speak", "argument": "Hello", "to": []})
JUDGED = json.dumps(
    {"evaluations": {f"agent_{seat}": {name: {"reasoning": "so", "score": 0} for name in NAMES} for seat in (1, 2)}}
)


def test_one_model_judges_on_two_scales_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.sqlite"
    with FakeOpenAI(answers(JUDGED)) as server:
        plain, finer = f"j@{server.url}", f"j@{server.url}#scale=fine"
        assert main(["run", "--task", "quiet-hours", "--judges", f"{plain},{finer}", "--out", str(path)]) == 0
        asked = [request.user_text for request in server.requests]
        assert [asked[0].count(line) for line in fine()[0].meanings] == [0] * 11
        assert all(line in asked[1] for dimension in fine() for line in dimension.meanings)
        assert main(["score", str(path), "--judges", finer]) == 0
        assert len(server.requests) == 2, "nothing was missing"
    with Store.read(path) as store:
        assert store.judges() == [plain, finer]
    for refused, why in (
        (["run", "--judges", "m@http://127.0.0.1:1/v1", "--dimensions", "fine"], "--judges MODEL#scale=fine"),
        (
            ["run", "--agents", "m@http://127.0.0.1:1/v1#scale=fine"],
            sentence("episodes.of_judges", option="scale=fine"),
        ),
        (["run", "--judges", "human"], sentence("episodes.judges_nothing", who="human")),
    ):
        capsys.readouterr()
        assert main([*refused, "--out", str(tmp_path / "no.sqlite")]) == 2
        assert why in capsys.readouterr().err


@pytest.mark.parametrize("key", ["agent_{}", "agent_{}_evaluation"])
@pytest.mark.parametrize("score", ["0", "0/10", 0.0])
def test_scores_as_texts_and_people_by_number_come_from_a_server_and_count(
    key: str, score: str | float, tmp_path: Path
) -> None:
    people = {key.format(n): {name: {"reasoning": "so", "score": score} for name in NAMES} for n in (1, 2)}
    path = tmp_path / "run.sqlite"
    with FakeOpenAI(answers(json.dumps({"evaluations": people}))) as server:
        assert main(["run", "--task", "quiet-hours", "--judges", f"j@{server.url}", "--out", str(path)]) == 0
        assert len(server.requests) == 1, "read at the first time"
    with Store.read(path) as store:
        (judged,) = store.scores(store.episodes()[0].id)
    assert [one.score for one in judged.scores] == [0.0] * 2 * len(NAMES)


def test_a_report_says_whose_scores_it_means_and_leaves_what_rules_tell_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.sqlite"
    two = [part for task in ("quiet-hours", "cello-with-a-crack") for part in ("--task", task)]
    with FakeOpenAI(answers(JUDGED)) as server:
        finer = f"j@{server.url}#scale=fine"
        asked = ["run", *two, "--agents", "rules", "--agents", "scripted", "--judges", f"rules,{finer}"]
        assert main([*asked, "--out", str(path)]) == 0
    capsys.readouterr()
    assert main(["report", str(path), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["judges"] == [finer]
    assert figures["table"]["rules"]["GOAL"]["mean"] == 0.0, "the model gave 0 to everybody, whatever rules say"
    assert main(["report", str(path), "--out", str(tmp_path / "report")]) == 0
    assert f"means by {finer};" in capsys.readouterr().out
    assert f"Means by {finer}, with" in (tmp_path / "report" / "report.html").read_text()
    with Store.read(path) as store:
        assert f"{finer}" in answer(store, "/episode", {"id": store.episodes()[0].id})
    assert main(["report", str(path), "--judge", "rules"]) == 0
    alone = capsys.readouterr().out
    assert "no measure of skill" in alone
    assert "from " not in alone.partition("what rules can tell")[0].partition("no measure")[2]
    assert "p = " not in alone


def test_the_card_tells_who_judged_and_what_they_were_asked_also_later(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    assert main(["run", "--task", "quiet-hours", "--out", str(path)]) == 0
    with FakeOpenAI(answers(JUDGED)) as server:
        finer = f"j@{server.url}#scale=fine"
        assert main(["score", str(path), "--judges", finer]) == 0
        asked = server.requests[0].user_text
    with Store.read(path) as store:
        metrics = store.card["metrics"]
        page = answer(store, "/card", {})
    assert metrics["judges"] == ["rules", finer]
    assert metrics["temperature"] == {finer: 0.0}
    assert asked.endswith(metrics["prompts"]["fine"]["text"])
    assert metrics["prompts"]["fine"]["version"] in page
    assert "caveat" not in metrics, "no longer by rules alone"


def test_a_body_is_judged_by_any_judge_and_what_is_missing_is_asked_for_later(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "body.sqlite"
    with FakeOpenAI(status(401), answers(JUDGED)) as server:
        asked = ["embody", str(write_run(tmp_path)), "--task", "clear-table-by-four", "--out", str(run)]
        assert main([*asked, "--judges", f"rules,j@{server.url}"]) == 1
        assert "1 evaluations are missing" in capsys.readouterr().err
        assert main(["resume", str(run)]) == 0
        assert len(server.requests) == 2
        assert "[action]" in server.requests[1].user_text, "what the body did is judged"
    with Store.read(run) as store:
        (row,) = store.episodes()
        assert {one.judge: one.state for one in store.scores(row.id)} == {"rules": "done", f"j@{server.url}": "done"}


def test_a_servers_own_prices_fields_and_what_was_spent_at_them_hold_over_a_resume(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    servers, path = tmp_path / "servers.toml", tmp_path / "run.sqlite"
    with FakeOpenAI(answers(ACT)) as server:
        servers.write_text(
            f'[servers.lab]\nurls = ["{server.url}"]\nprices = [1000000, 0]\nextra_body = {{ guided = "yes" }}\n'
        )
        asked = ["run", "--task", "quiet-hours", "--turns", "6", "--agents", "m@lab", "--servers", str(servers)]
        assert main([*asked, "--max-money", "33", "--out", str(path)]) == 1  # a call of the fake server costs 11
        made = len(server.requests)
        assert made in (3, 4), "passed by one call at most"
        assert server.requests[0].body["guided"] == "yes"
        capsys.readouterr()
        assert main(["resume", str(path)]) == 1
        assert len(server.requests) == made, "it is spent, also in a new process"
        assert main(["resume", str(path), "--max-money", "0"]) == 0
        assert "66.0000 in money" in capsys.readouterr().out


def test_the_prompts_shown_are_those_that_were_sent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.sqlite"
    with FakeOpenAI(answers('"Good evening."')) as server:
        small = f"m@{server.url}#prompt=small"
        assert main(["run", "--task", "quiet-hours", "--turns", "3", "--agents", small, "--out", str(path)]) == 0
        capsys.readouterr()
        assert main(["show", str(path), "0", "--prompts"]) == 0
        shown = capsys.readouterr().out
        assert len(server.requests) == 3
        assert all(request.user_text in shown for request in server.requests)


def test_a_page_of_episodes_is_sorted_by_what_is_clicked(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    tasks = ("quiet-hours", "cello-with-a-crack", "three-who-saw-it")
    assert main(["run", *(part for task in tasks for part in ("--task", task)), "--out", str(path)]) == 0
    with Store.read(path) as store:
        rows = store.episodes()
        turns = {row.id: len(store.turns(row.id)) for row in rows}
        for sort in ("turns", "-turns"):
            listed = [row.id for row in store.matching({}, 0, 10, sort)[0]]
            assert [turns[one] for one in listed] == sorted(turns.values(), reverse=sort[0] == "-")
            page = answer(store, "/", {"sort": sort})
            assert [page.index(f"id={one}'") for one in listed] == sorted(page.index(f"id={one}'") for one in listed)
        assert "sort=-turns" in answer(store, "/", {"sort": "turns"}), "another click, the other direction"
        assert answer(store, "/", {"sort": "number; DROP TABLE episodes"}).count("name='a'") == 3


def test_what_an_act_follows_from_and_what_an_offline_player_is_told_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.sqlite"
    assert main(["run", "--task", "quiet-hours", "--out", str(path)]) == 0
    with Store.read(path) as store:
        (row,) = store.episodes()
        moved = [turn for turn in store.turns(row.id) if turn.because >= 0]
    assert moved
    capsys.readouterr()
    assert main(["show", str(path), "0", "--prompts"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("(because of turn ") >= len(moved)
    assert sentence("episodes.told_by_the_scenario") + ' {"role":' in shown
    assert "-0%" not in shown


def test_tasks_are_hard_beside_another_model_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.sqlite"
    for agents, are_there in ((["rules"], False), (["rules", "scripted"], True)):
        path.unlink(missing_ok=True)
        asked = [part for name in agents for part in ("--agents", name)]
        assert main(["run", "--task", "quiet-hours", *asked, "--out", str(path)]) == 0
        capsys.readouterr()
        assert main(["report", str(path)]) == 0
        assert ("hardest fifth" in capsys.readouterr().out) is are_there
