"""`--like`: prompts of another package are filled in once, kept with the run, and its rule of silence holds.

Its real texts are compared in `make interop` (tests/interop/plays_like_sotopia.py); these are of our own making.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodes.episodes.command import main
from nodes.episodes.dialogue.ending import why_ended
from nodes.episodes.dialogue.rules import EpisodeRules
from nodes.episodes.results.store import Store
from nodes.msgs.episode import ActKind, Turn
from tests.support.sentences import sentence
from tests.support.servers.fake_openai_server import FakeOpenAI, answers

SEVEN = (
    "believability",
    "relationship",
    "knowledge",
    "secret",
    "social_rules",
    "financial_and_material_benefits",
    "goal",
)
TOLD = "⟦SCENARIO⟧|⟦NAME_0⟧ (⟦occupation_0⟧) wants ⟦GOAL_0⟧|⟦NAME_1⟧, ⟦GENDER_1⟧, hides ⟦SECRET_1⟧"
PROMPTS = {
    "version": "0.1.5",
    "genders": {"": "", "Woman": "W!", "Man": "M!", "Nonbinary": "N!"},
    "first": {
        f"{mode} {number}": [f"first: {TOLD}", f"second: {TOLD}", f"whole: {TOLD}"]
        for mode in ("AGENTS", "MINDREADERS", "NAMES")
        for number in range(6)
    },
    "act": "Be ⟦AGENT⟧ at ⟦TURN⟧.\n⟦HISTORY⟧",
    "act_schema": {"type": "object"},
    "acts": {
        "none": "rests",
        "speak": "says ⟦ARGUMENT⟧",
        "non-verbal communication": "shows ⟦ARGUMENT⟧",
        "action": "does ⟦ARGUMENT⟧",
        "leave": "goes",
    },
    "turn": "<⟦BEFORE⟧> ⟦ACTS⟧",
    "judge": "Judge:\n⟦HISTORY⟧",
    "judge_schema": {},
    "judge_turn": "turn ⟦TURN⟧",
}


def act(kind: ActKind, argument: str = "") -> str:
    return json.dumps({"action_type": kind, "argument": argument})


def test_players_and_judge_are_asked_as_the_package_asks_and_the_run_keeps_how(tmp_path: Path) -> None:
    file = tmp_path / "like.json"
    file.write_text(json.dumps(PROMPTS))
    judged = {"evaluations": {f"agent_{n}": {name: ["so it seems", 0] for name in SEVEN} for n in (1, 2)}}
    tricky = "⟦NAME_0⟧ is what I say"  # a place in what somebody says is no place
    script = (act("speak", tricky), act("non-verbal communication", "nods"), act("leave"), json.dumps(judged))
    run = tmp_path / "run.sqlite"
    with FakeOpenAI(*map(answers, script)) as server:
        like = ["--like", f"sotopia-0.1.5@{file}", "--task", "quiet-hours", "--jobs", "1"]
        agents = ["--agents", f"m@{server.url}", "--judges", f"j@{server.url}"]
        assert main(["run", "--out", str(run), *like, *agents]) == 0
        asked = [(request.user_text, request.body.get("response_format")) for request in server.requests]
    schemas = [request.body.get("response_format", {}) for request in server.requests]
    with Store.read(run) as store:
        (row,) = store.episodes()
        plan = store.plan(row.id)
        assert plan.like == "sotopia-0.1.5"
        assert {score.dimension for one in store.scores(row.id) for score in one.scores} >= {"BEL", "GOAL"}
        assert store.spec["like"]["version"] == "0.1.5"
    first, second = plan.briefings
    assert first.background.startswith("first: ")
    assert f"{first.name} (" in first.background
    assert "⟦" not in first.background + second.background + plan.whole_background
    said, nodded = f"{first.name} says {tricky}", f"{second.name} shows nods"
    assert asked[0][0] == f"Be {first.name} at 0.\n{first.background}"
    assert asked[1][0] == f"Be {second.name} at 1.\n{second.background}\n<0> {said}"
    assert asked[2][0] == f"Be {first.name} at 2.\n{first.background}\n<0> {said}\n<1> {nodded}"
    gone = f"{first.name} goes"
    whole = plan.whole_background
    assert asked[3] == (f"Judge:\n{whole}\nturn 1\n{said}\nturn 2\n{nodded}\nturn 3\n{gone}", None)
    assert all(form["json_schema"]["schema"] == {"type": "object"} for form in schemas[:3])


@pytest.mark.parametrize(
    ("like", "said"),
    [
        ("sotopia-9.9", sentence("episodes.unknown_package", known="sotopia-0.1.5")),
        ("0.1.5", "unknown"),
        ("sotopia-0.1.5@nowhere.json", sentence("runtime.no_such_file")),
        ("sotopia-0.1.5@/nowhere/python", "cannot be asked"),
        ("sotopia-0.1.5", sentence("episodes.interpreter_expected")),
    ],
)
def test_what_cannot_be_followed_is_told_before_anything_is_played(
    like: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--out", str(tmp_path / "run.sqlite"), "--like", like]) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_file_without_prompts_or_a_scenario_of_three_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "like.json"
    for content, task, said in (
        ("{}", "quiet-hours", "holds no prompts"),
        (
            json.dumps(PROMPTS | {"version": "0.1.4"}),
            "quiet-hours",
            sentence("episodes.another_package", version="0.1.4"),
        ),
        (json.dumps(PROMPTS), "three-who-saw-it", "expected two seats"),
    ):
        file.write_text(content)
        assert main(["run", "--task", task, "--like", f"sotopia-0.1.5@{file}", "--out", str(tmp_path / "r")]) == 2
        assert said in capsys.readouterr().err
    file.write_text(json.dumps(PROMPTS))
    for more in (
        ["--coach", "rules"],
        ["--order", "asynchronous"],
        ["--agents", "m@http://127.0.0.1:9/v1#prompt=small"],
    ):
        like = ["--task", "quiet-hours", "--like", f"sotopia-0.1.5@{file}", "--out", str(tmp_path / "r")]
        assert main(["run", *like, *more]) == 2
        assert sentence("episodes.no_coach_there") in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kinds", "ends_after"),
    [  # as sotopia 0.1.5 was seen to end, two seats in round-robin, max_stale_turn 2
        (("none", "none", "none"), 2),
        (("speak", "none", "none"), 2),
        (("speak", "speak", "none", "none"), 4),
        (("speak", "speak", "speak", "none"), 4),
    ],
)
def test_silence_of_those_whose_turn_it_is_not_counts_there(kinds: tuple[ActKind, ...], ends_after: int) -> None:
    names = ("Ana", "Ben")
    rules = EpisodeRules(silent="all")
    turns: list[Turn] = []
    for number, kind in enumerate(kinds, start=1):
        turns.append(Turn(index=number - 1, number=number, speaker=names[(number - 1) % 2], kind=kind, argument="x"))
        reason = why_ended(rules, turns, number, names, [], names)
        assert bool(reason) == (number == ends_after), (number, reason)
        if reason:
            return
    raise AssertionError("it goes on")
