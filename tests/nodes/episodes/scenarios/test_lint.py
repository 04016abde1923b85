"""`scenarios lint`: each finding once, on scenarios made for it; our own set has none to mend."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodes.episodes.command import main
from nodes.episodes.scenarios.library import Library
from nodes.episodes.scenarios.lint import Code, lint
from nodes.episodes.scenarios.profiles import Character, Scenario, Win

PEOPLE = [Character(id=f"p{n}", first_name=name, last_name="Hale", age=30 + n) for n, name in enumerate(("Ana", "Ben"))]
FINE = Scenario(
    id="fine",
    context="Two neighbours meet at the letter boxes.",
    goals=("Borrow the ladder for a day", "Keep the ladder at home"),
    wins=(Win(pattern="yes"),),
)


def scenario(**changes: object) -> Scenario:
    fields = {name: getattr(FINE, name) for name in FINE.__struct_fields__}
    return Scenario(**(fields | changes))


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"ages": ((80, 90), (0, 99))}, "no-cast"),
        ({"ages": ((31, 31), (0, 99))}, "few-casts"),
        ({"goals": ("Borrow the ladder today", "borrow the ladder today")}, "same-goals"),
        ({"goals": ("Win", "Keep the ladder at home")}, "short-goal"),
        ({"goals": ("Get it; start by praising the garden", "Keep the ladder at home")}, "strategy"),
        (
            {
                "context": "Ada wants to borrow the wooden ladder from the garage before Sunday evening.",
                "goals": ("Borrow the wooden ladder from the garage before Sunday", "Keep it at home"),
            },
            "goal-in-context",
        ),
        ({"context": "Ana Hale meets a neighbour."}, "name-in-context"),
        ({"wins": ()}, "unjudged"),
    ],
)
def test_each_finding(changes: dict[str, object], code: Code) -> None:
    found = lint(Library(PEOPLE, [scenario(**changes)]), casts=2)
    assert [one.code for one in found] == [code]


def test_a_good_scenario_and_a_tactic_where_tactics_belong_have_none() -> None:
    hint = ("Get it. <strategy_hint>Start by praising the garden</strategy_hint>", "Keep the ladder at home")
    assert lint(Library(PEOPLE, [FINE, scenario(id="hint", goals=hint)]), casts=2) == []


def test_our_own_set_has_nothing_to_mend_and_a_bad_one_ends_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["scenarios", "lint", "--json"]) == 0
    assert not [one for one in json.loads(capsys.readouterr().out) if one["is_wrong"]]
    (tmp_path / "characters.toml").write_text(
        '[[characters]]\nid = "a"\nfirst_name = "Ana"\n[[characters]]\nid = "b"\nfirst_name = "Ben"\n'
    )
    (tmp_path / "scenarios.toml").write_text('[[scenarios]]\nid = "x"\ncontext = "A yard."\ngoals = ["Win", "Win"]\n')
    assert main(["scenarios", "lint", "--tasks", str(tmp_path)]) == 1
    assert "same-goals" in capsys.readouterr().out
    assert main(["scenarios", "new"]) == 2
