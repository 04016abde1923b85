"""New tasks from prompts: cast, deduplicated, none of the evaluation's; a prompt is used once, whatever is killed."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from pathlib import Path

import msgspec
import pytest

from nodes.episodes.command import main
from nodes.episodes.learning.new_tasks import GENERATION, REVIEWS, Prompt, by_template, generated_in, refusal
from nodes.episodes.learning.task_page import TaskPages
from nodes.episodes.results.browse import open_page
from nodes.episodes.scenarios.library import read_folder, starter
from runtime.errors import UserError
from tests.support.sentences import pattern, sentence
from tests.support.servers.fake_openai_server import FakeOpenAI, answers

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
    library = starter()
    task = library.scenarios["cello-with-a-crack"]
    known = {task.id: ("the evaluation task", task)}
    copy = by_template(Prompt("x"))
    copy = type(copy)(id="mine", context=task.context + " It rains.", goals=task.goals)
    assert "it is like the evaluation task cello-with-a-crack" in refusal(copy, library, known)
    assert refusal(by_template(Prompt("x")), library, known) == ""


def test_a_task_that_is_there_already_or_that_nobody_can_play_is_refused() -> None:
    library = starter()
    task = by_template(Prompt("x"))
    double = msgspec.structs.replace(task, id="double")
    assert refusal(double, library, {task.id: ("the task", task)}).startswith(f"it is like the task {task.id}: 100%")
    nobody = msgspec.structs.replace(task, ages=((1, 2), (1, 2)))
    assert sentence("episodes.no_two_people") in refusal(nobody, library, {})


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


def test_a_model_that_writes_an_evaluation_task_is_refused_and_the_next_prompt_is_taken(tmp_path: Path) -> None:
    known = starter().scenarios["cello-with-a-crack"]
    copy = {"context": known.context, "goals": list(known.goals), "relationship": "stranger"}
    goals = ["You want to get the loaf.", "You want to share the loaf."]
    other = {"context": "A queue at a bakery, and one loaf is left.", "goals": goals, "relationship": "stranger"}
    with FakeOpenAI(answers(json.dumps(copy)), answers(json.dumps(other))) as server:
        assert new(tmp_path / "t", "--n", "1", "--model", f"m@{server.url}") == 0
    refused, accepted = generated_in(tmp_path / "t")
    assert (refused.state, accepted.state) == ("refused", "accepted")
    assert refused.why.startswith("it is like the evaluation task cello-with-a-crack: 100% of their word triples")
    assert list(read_folder(tmp_path / "t").scenarios) == [f"new-{accepted.key}"]


def decide(pages: TaskPages, name: str, state: str, **changes: str) -> str:
    task = pages.current(name)
    form = {"context": task.context, "goal0": task.goals[0], "goal1": task.goals[1], "state": state, **changes}
    return pages.page("/task", {"id": name}, {"relationship": task.relationship.word, **form})


def test_people_edit_accept_and_refuse_and_a_run_takes_what_they_accepted(tmp_path: Path) -> None:
    folder = tmp_path / "tasks"
    assert new(folder, "--n", "4") == 0
    pages = TaskPages(folder, starter().scenarios.values())
    one, two, three, _ = pages.made
    assert len(read_folder(folder).scenarios) == 4  # nobody has read any yet
    assert "Task 2 of 4" in decide(pages, one, "accepted", context="A stall at dusk.")  # the next one comes
    decide(pages, two, "refused", why="dull")
    scenarios = read_folder(folder).scenarios
    assert list(scenarios) == [one]
    assert scenarios[one].context == "A stall at dusk."
    with open(folder / REVIEWS, "ab") as file:  # a kill cut the next line short
        file.write(b'{"id":"half')
    again = TaskPages(folder)
    assert {name: review.state for name, review in again.reviews().items()} == {one: "accepted", two: "refused"}
    decide(again, three, "accepted")
    assert new(folder, "--n", "6") == 0  # more tasks: nobody has read those, and decisions stay
    assert list(read_folder(folder).scenarios) == [one, three]
    assert main(["run", "--tasks", str(folder), "--out", str(tmp_path / "run.sqlite")]) == 0


def test_an_edit_that_cannot_be_taken_keeps_the_words_and_says_why(tmp_path: Path) -> None:
    folder = tmp_path / "tasks"
    assert new(folder, "--n", "2") == 0
    evaluation = starter().scenarios["cello-with-a-crack"]
    pages = TaskPages(folder, [evaluation])
    name = next(iter(pages.made))
    for why, changes in (
        ("keep the numbers", {"goal0": "You want to sell it <b>well</b>."}),
        ("expected", {"context": ""}),
        (sentence("episodes.like_evaluation_task", task="cello-with-a-crack"), {
            "context": evaluation.context, "goal0": evaluation.goals[0] + pages.current(name).goals[0],
            "goal1": evaluation.goals[1] + pages.current(name).goals[1]}),
    ):  # fmt: skip
        page = decide(pages, name, "accepted", **changes)
        assert why in page
        assert "<b>" not in page
    assert not pages.reviews()
    with pytest.raises(UserError, match="there is no task"):
        pages.page("/task", {"id": "nobody"})
    with pytest.raises(UserError, match=pattern("episodes.no_generated_task")):
        TaskPages(tmp_path)


@pytest.mark.processes
def test_the_page_takes_a_form_and_none_from_elsewhere(tmp_path: Path) -> None:
    folder = tmp_path / "tasks"
    assert new(folder, "--n", "2") == 0
    pages = TaskPages(folder)
    name = next(iter(pages.made))
    style = tmp_path / "none.css"
    style.touch()
    server = open_page(pages.page, 0, title="Tasks", style=style, takes_forms=True)
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        url = f"{server.url}task?id={name}"
        page = urllib.request.urlopen(url, timeout=30).read().decode()
        for told in ("autofocus", "accesskey='a'", "accesskey='r'", "<label>"):  # all of it without a mouse
            assert told in page
        foreign = urllib.request.Request(url, b"state=refused", {"Origin": "http://elsewhere.example"})
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(foreign, timeout=30)
        assert not pages.reviews()
        own = urllib.request.Request(url, b"state=refused", {"Origin": url.partition("/task")[0]})
        assert urllib.request.urlopen(own, timeout=30).status == 200
        assert pages.reviews()[name].state == "refused"
    finally:
        server.stop()
        thread.join()
