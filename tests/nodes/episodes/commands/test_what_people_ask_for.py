"""Tidy tables, an agent class of one's own, names that stand twice, and words that stand for a name."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from nodes.episodes.command import main
from nodes.episodes.dialogue.rules import addressed
from nodes.episodes.results.store import Store
from nodes.episodes.runner.by_hand import act_from_line
from tests.support.sentences import sentence


def rows_of(file: Path) -> list[dict[str, str]]:
    with open(file, encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def test_turns_scores_and_ratings_are_tables_of_one_observation_a_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, tables = tmp_path / "run.sqlite", tmp_path / "tables"
    assert main(["run", "--task", "cello-with-a-crack", "--seeds", "2", "--out", str(path)]) == 0
    with Store.read(path) as store:
        ids = [row.id for row in store.episodes()]
        name = store.episodes()[0].names[0]
        turns = [turn for one in ids for turn in store.turns(one)]
    rating = {
        "episode": ids[0],
        "rater": "ada",
        "name": name,
        "dimension": "GOAL",
        "score": 7,
        "reasoning": 'so, "yes"',
    }
    (tmp_path / "ratings.jsonl").write_text(json.dumps(rating) + "\n")
    assert main(["score", str(path), "--ratings", str(tmp_path / "ratings.jsonl")]) == 0
    assert main(["export", str(path), "--to", "csv", "--out", str(tables)]) == 0
    assert [row["argument"] for row in rows_of(tables / "turns.csv")] == [turn.argument for turn in turns]
    scores = rows_of(tables / "scores.csv")
    assert {row["episode"] for row in scores} == set(ids)
    assert {row["judge"] for row in scores} == {"rules"}
    assert "" in {row["score"] for row in scores}, "not judged is empty, and no number"
    (rated,) = rows_of(tables / "ratings.csv")
    assert (rated["rater"], rated["score"], rated["reasoning"]) == ("ada", "7.0", 'so, "yes"')
    capsys.readouterr()
    assert main(["export", str(path), "--to", "csv", "--out", str(tables)]) == 2
    assert sentence("episodes.is_there_already", path=str(tables)) in capsys.readouterr().err
    profiles, log = tmp_path / "profiles", str(tmp_path / "log.jsonl")
    for count in range(2):  # the same ones again are none the worse
        assert main(["export", str(path), "--profiles", str(profiles), "--out", f"{log}{count}"]) == 0
    one = min(profiles.glob("AgentProfile/*.json"))
    one.write_text("{}")
    assert main(["export", str(path), "--profiles", str(profiles), "--out", f"{log}2"]) == 2
    assert sentence("episodes.profile_is_there", path=str(one)) in capsys.readouterr().err
    assert one.read_text() == "{}"
    assert main(["export", str(path), "--to", "csv"]) == 2
    assert main(["export", str(path)]) == 0
    assert sentence("episodes.rewards_are") in capsys.readouterr().out


OWN = """
from nodes.episodes.dialogue.observation import AgentChoice
from nodes.msgs.episode import Act


class Parrot:
    def __init__(self):
        self.count = 0

    async def choose(self, sight, clock, chance):
        self.count += 1
        return AgentChoice(act=Act(kind="speak", argument=f"{sight.name} says it {self.count} times."))


class Mute:
    pass


class Angry:
    async def choose(self, sight, clock, chance):
        raise OSError("my own mistake")


class Wordless:
    async def choose(self, sight, clock, chance):
        return "hello"
"""


def test_a_class_of_ones_own_plays_and_each_seat_has_one_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my_own_agents.py").write_text(OWN)
    path = tmp_path / "run.sqlite"
    asked = ["run", "--task", "quiet-hours", "--turns", "4", "--out", str(path)]
    assert main([*asked, "--agents", "class:my_own_agents:Parrot"]) == 0
    with Store.read(path) as store:
        (row,) = store.episodes()
        said = [turn.argument for turn in store.turns(row.id)]
    assert said == [f"{row.names[n % 2]} says it {n // 2 + 1} times." for n in range(4)]
    for wrong in ("class:my_own_agents:Mute", "class:my_own_agents:Nobody", "class:no_such_module:A", "class:x"):
        capsys.readouterr()
        assert main([*asked, "--agents", wrong]) == 2
        assert wrong in capsys.readouterr().err
    for name, told in (("Angry", "OSError: my own mistake"), ("Wordless", "choose gave 'hello'")):
        more = ["--agents", f"class:my_own_agents:{name}", "--agents", "rules", "--json"]
        assert main([*asked[:-1], str(tmp_path / name), *more]) == 1
        episodes = json.loads(capsys.readouterr().out)["episodes"]
        assert told in episodes[0]["reason"]
        assert episodes[1]["state"] == "done", "one mistake ends no other episode"


def library(folder: Path, people: list[tuple[str, str]], goals: list[str], tasks: list[tuple[int, int]]) -> Path:
    folder.mkdir()
    tables: dict[str, list[dict[str, object]]] = {
        "characters": [{"id": f"p{n}", "first_name": first, "last_name": last, "age": 30}
                       for n, (first, last) in enumerate(people)],
        "scenarios": [{"id": "talk", "context": "A bench.", "goals": goals}],
        "tasks": [{"id": f"t{n}", "scenario": "talk", "characters": [f"p{a}", f"p{b}"]}
                  for n, (a, b) in enumerate(tasks)],
    }  # fmt: skip
    for name, rows in tables.items():
        (folder / f"{name}.jsonl").write_text("\n".join(json.dumps(row) for row in rows) + "\n")
    return folder


def test_two_people_of_one_name_stop_no_batch_and_lint_names_the_task(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people = [("Ana", "Ruiz"), ("Ben", "Okafor"), ("ana", "ruiz")]
    goals = ["Find out how the other is.", "Sell the old bench to somebody."]
    folder = library(tmp_path / "set", people, goals, [(0, 1), (0, 2)])
    path = tmp_path / "run.sqlite"
    assert main(["run", "--tasks", str(folder), "--out", str(path)]) == 0
    assert sentence("episodes.namesakes", task="t1", name="Ana Ruiz") in capsys.readouterr().err
    with Store.read(path) as store:
        assert [row.task for row in store.episodes()] == ["t0"]
    assert main(["scenarios", "lint", "--tasks", str(folder)]) == 1
    assert sentence("episodes.namesakes", task="t1", name="Ana Ruiz") in capsys.readouterr().out
    alone = library(tmp_path / "alone", people, goals, [(0, 2)])
    assert main(["run", "--tasks", str(alone), "--out", str(tmp_path / "no.sqlite")]) == 2
    assert sentence("episodes.namesakes", task="t0", name="Ana Ruiz") in capsys.readouterr().err


@pytest.mark.parametrize("text", ["Agent1", "Agent 2", "{other}", "<name>", "[Your Name]", "participant_1"])
def test_words_that_stand_for_a_name_are_found_before_anybody_plays(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    goals = ["Find out how the other is.", f"Sell the old bench to {text} today."]
    folder = library(tmp_path / "set", [("Ana", "Ruiz"), ("Ben", "Okafor")], goals, [(0, 1)])
    assert main(["scenarios", "lint", "--tasks", str(folder), "--casts", "0"]) == 1
    assert sentence("episodes.placeholder", text=text) in capsys.readouterr().out


@pytest.mark.parametrize("line", ["/to Jonas: hello", "/to jonas sommer: hello", "/to Sommer: hello"])
def test_a_person_whispers_to_somebody_by_any_part_of_the_name_that_only_one_has(line: str) -> None:
    assert addressed(act_from_line(line), ("Jonas Sommer", "Ida Berg")).to == ("Jonas Sommer",)
    assert addressed(act_from_line(line), ("Jonas Sommer", "Jonas Sommer-Berg", "Eva Sommer")).to[0] in (
        "Jonas", "Jonas Sommer", "Sommer",
    )  # fmt: skip


def test_a_scenario_that_nobody_fits_names_the_constraint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = library(tmp_path / "set", [("Ana", "Ruiz"), ("Ben", "Okafor")], ["Be here.", "Be there."], [])
    (folder / "tasks.jsonl").unlink()
    row = json.loads((folder / "scenarios.jsonl").read_text()) | {"ages": [[18, 40], [60, 90]]}
    (folder / "scenarios.jsonl").write_text(json.dumps(row) + "\n")
    main(["run", "--tasks", str(folder), "--out", str(tmp_path / "run.sqlite")])
    assert sentence("episodes.nobody_fits", seat=1) in capsys.readouterr().err
