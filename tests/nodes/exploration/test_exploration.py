"""Explore, be asked, explore, answer: the score by hand, rooms by seed, questions that need trying, all policies."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from nodes.exploration.command import BASELINES, main, score_of
from nodes.exploration.questions import answer, majority, phrases, questions_of
from nodes.exploration.room import TRIED_BY, Room
from tests.support.fake_openai_server import FakeOpenAI, answers


def test_the_score_is_the_papers_formula() -> None:
    assert score_of(0.5, 0.9, 100, 0.01) == pytest.approx(0.5 + 0.4 * math.exp(-1))
    assert score_of(0.5, 0.9, 100, 0.0) == pytest.approx(0.9)  # k = 0: Acc_ref
    assert score_of(0.5, 0.9, 100, 1e9) == pytest.approx(0.5)  # k large: Acc_exp


def test_a_room_is_its_seed_and_withholds_what_has_to_be_tried() -> None:
    assert Room(3).things == Room(3).things != Room(4).things
    room = Room(3)
    thing = next(iter(room.things.values()))
    room.at = thing.at
    assert next(one for one in room.seen() if one.name == thing.name).state == ""
    trial = TRIED_BY[thing.kind][0]
    assert room.do(f"{trial} {thing.name}") == (thing.name, thing.state)
    room.at = (0, 0) if thing.at[0] + thing.at[1] > 3 else (11, 11)
    assert room.do(f"{trial} {thing.name}") is None  # out of reach: a step, and nothing
    assert room.steps == 2


def test_more_than_half_of_the_questions_need_trying_and_each_is_true_of_the_room() -> None:
    assert len(phrases()) >= 20
    for seed in range(10):
        room = Room(seed)
        questions = questions_of(room, seed)
        assert sum(question.needs_trying for question in questions) >= len(questions) / 2
        states = {thing.name: thing.state for thing in room.things.values()}
        places = {thing.name: thing.at for thing in room.things.values()}
        assert [answer(question, states, places, {}) for question in questions] == [q.answer for q in questions]


def test_who_knows_nothing_answers_what_is_usual_elsewhere() -> None:
    usual = majority(range(100, 120))
    for question in questions_of(Room(0), 0):
        assert answer(question, {}, {}, usual) == usual["|".join(question.choices)]


def test_one_command_makes_a_table_with_the_baselines_and_a_record_of_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--seeds", "8", "--out", str(tmp_path / "out"), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["policies"]
    assert list(rows) == [*BASELINES, "random", "frontier"]
    assert rows["frontier"]["acc_ref"] == 1.0  # it looks for what it was asked until it knows
    assert rows["frontier"]["score"] > rows["random"]["score"] > rows["random answers"]["score"]
    assert len(list((tmp_path / "out").iterdir())) == 4 * 8
    lines = (tmp_path / "out" / "frontier-0.jsonl").read_text().splitlines()
    assert [json.loads(line).get("phase") for line in lines[1:26]] == ["explore"] * 25
    assert main(["--seeds", "1", "--out", str(tmp_path / "out")]) == 2


def test_a_model_explores_and_what_it_answers_wrongly_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = tmp_path / "task.toml"
    task.write_text("[explore]\nsteps = 4\nquestions = 10\nenergy = 0.02\nmost_steps = 3\n")
    go, prose, stop = answers('{"action": "north"}'), answers("Let me look around."), answers('{"action": "done"}')
    with FakeOpenAI(go, prose, go, go, stop) as server:
        asked = ["--policy", f"m@{server.url}", "--seeds", "1", "--task", str(task), "--json"]
        assert main(asked) == 0
        row = json.loads(capsys.readouterr().out)["policies"][f"m@{server.url}"]
        assert "You could not answer" in server.requests[4].user_text
    assert row["t3"] == 0  # done at once
    assert 1 <= row["unreadable"] <= 3  # the prose, and north where there is a wall
    task.write_text("[explore]\nstep = 4\n")
    assert main(["--task", str(task)]) == 2
    assert "step" in capsys.readouterr().err
