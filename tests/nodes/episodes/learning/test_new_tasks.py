"""New tasks from prompts: cast, deduplicated, none of the evaluation's; a prompt is used once, whatever is killed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodes.episodes.command import main
from nodes.episodes.dialogue.planning import starter_library
from nodes.episodes.learning.new_tasks import GENERATION, Prompt, by_template, generated_in, refusal
from nodes.episodes.scenarios.library import read_folder
from tests.support.fake_openai_server import FakeOpenAI, answers

PROMPTS = Path(__file__).parents[4] / "examples" / "social_learning" / "prompts.csv"


def new(folder: Path, *more: str) -> int:
    return main(["scenarios", "new", "--from", str(PROMPTS), "--out", str(folder), *more])


def test_the_template_makes_tasks_that_can_be_played(tmp_path: Path) -> None:
    assert new(tmp_path / "tasks", "--n", "6") == 0
    assert len(read_folder(tmp_path / "tasks").scenarios) == 6
    asked = ("--tasks", str(tmp_path / "tasks"), "--out", str(tmp_path / "run.sqlite"))
    assert main(["run", *asked]) == 0


def test_a_generation_goes_on_where_it_was_cut_and_repeats_no_prompt(tmp_path: Path) -> None:
    assert new(tmp_path / "whole", "--n", "8") == 0
    assert new(tmp_path / "cut", "--n", "8") == 0
    path = tmp_path / "cut" / GENERATION
    path.write_bytes(path.read_bytes()[:-700])  # as a kill leaves it: the last lines gone, one of them half
    assert new(tmp_path / "cut", "--n", "8") == 0
    for name in (GENERATION, "scenarios.jsonl"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_later_round_uses_no_prompt_of_an_earlier_one(tmp_path: Path) -> None:
    assert new(tmp_path / "one", "--n", "10") == 0
    assert new(tmp_path / "two", "--n", "10", "--not-in", str(tmp_path / "one")) == 0
    keys = [{one.key for one in generated_in(tmp_path / name)} for name in ("one", "two")]
    assert not keys[0] & keys[1]
    assert new(tmp_path / "three", "--n", "1000", "--not-in", str(tmp_path / "one")) == 1  # there are 40 prompts


def test_an_evaluation_task_in_other_words_is_refused_with_its_name() -> None:
    library = starter_library()
    task = library.scenarios["cello-with-a-crack"]
    known = {task.id: ("the evaluation task", task)}
    copy = by_template(Prompt("x"))
    copy = type(copy)(id="mine", context=task.context + " It rains.", goals=task.goals)
    assert "it is like the evaluation task cello-with-a-crack" in refusal(copy, library, known)
    assert refusal(by_template(Prompt("x")), library, known) == ""


def test_a_model_writes_tasks_and_prose_is_a_state_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = json.dumps(
        {"context": "A queue at a bakery before dawn, and one loaf is left on the shelf.",
         "goals": ["You want to get the loaf.", "You want to share the loaf."], "relationship": "stranger"}
    )  # fmt: skip
    odd = json.dumps({"context": "A shed.", "goals": ["You want to leave."], "relationship": "rival"})
    with FakeOpenAI(answers("Sure! Here is one."), answers("No."), answers(good), answers(odd)) as server:
        assert new(tmp_path / "t", "--n", "2", "--model", f"m@{server.url}") == 1
    states = [one.state for one in generated_in(tmp_path / "t")]
    assert states[:2] == ["unreadable", "accepted"]
    assert set(states[2:]) == {"unreadable"}
    assert "goals" in generated_in(tmp_path / "t")[2].why or "relationship" in generated_in(tmp_path / "t")[2].why
    assert "unreadable: It is rude" in capsys.readouterr().out
    (tmp_path / "bad.csv").write_text("text\nx\n")
    assert main(["scenarios", "new", "--from", str(tmp_path / "bad.csv"), "--out", str(tmp_path / "u")]) == 2
    assert "expected prompt[,source]" in capsys.readouterr().err
