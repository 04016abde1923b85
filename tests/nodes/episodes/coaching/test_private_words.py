"""No private word of one seat stands in what is asked for another: every order, mode, coach and stage, all prompts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from nodes.episodes.command import main
from nodes.episodes.dialogue.rules import ORDERS
from nodes.episodes.results.store import Store
from nodes.episodes.scenarios.visibility import MODES
from tests.support.servers.episode_model import scales_of
from tests.support.servers.fake_openai_server import FakeOpenAI, Request, says

pytestmark = pytest.mark.processes

PEOPLE = ("Ana", "Ben", "Cai")
SEES_ALL = ("SCRIPT", "MINDREADERS")
RATES = ("step rating", "judge")  # numbers come of these, and no words


def private(name: str) -> str:
    """A word that stands in all that only this person may know."""
    return f"Zq{name}Qz"


@pytest.fixture
def library(tmp_path: Path) -> Path:
    folder = tmp_path / "library"
    folder.mkdir()

    def person(name: str) -> dict[str, object]:
        return {"id": name.lower(), "first_name": name, "last_name": "Ruiz", "age": 30,
                "secret": f"{private(name)} hides", "secret_words": [private(name)],
                "big_five": f"{private(name)} temper", "decision_style": f"{private(name)} style"}  # fmt: skip

    def scenario(name: str, people: tuple[str, ...]) -> dict[str, object]:
        return {"id": name, "context": "A lane, and a cart for sale.", "kind": "negotiation",
                "relationship": "acquaintance",
                "goals": [f"Trade. {private(one)} at 50. <extra_info>{private(one)} more</extra_info>"
                          for one in people],
                "deal": {"about": "the cart", "unit": "EUR", "opening": 60, "step": 1},
                "facts": [{"wants": "high" if n == 0 else "low", "target": 60 - 20 * n, "reserve": 50 + n,
                           "hides": [private(one)], "knows": {private(one): private(one)}}
                          for n, one in enumerate(people)]}  # fmt: skip

    tables: dict[str, list[dict[str, object]]] = {
        "characters": [person(name) for name in PEOPLE],
        "scenarios": [scenario("two", PEOPLE[:2]), scenario("three", PEOPLE)],
        "tasks": [{"id": f"task-{name}", "scenario": name, "characters": [one.lower() for one in PEOPLE[:count]]}
                  for name, count in (("two", 2), ("three", 3))],
    }  # fmt: skip
    for name, rows in tables.items():
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    return folder


def whispers(request: Request) -> str:
    """The first of all says a word to the second that is for those two, whatever else is asked is answered."""
    is_first = "You play Ana" in request.user_text
    act = {"action_type": "speak", "argument": "Zwhisper" if is_first else "How about 55 EUR?",
           "to": ["Ben Ruiz"] if is_first else [], "urgency": 0.9}  # fmt: skip
    steps = {f"step{n}": {"analysis": "", "score": 1 if n in (5, 7) else 3} for n in range(1, 8)}
    coached = {"matters": [{"text": "price", "weight": 0.5, "ratio": 0.5, "utility": 8}], "thought": "",
               "proposal_type": "revise_proposal", "speak": "How about 54 EUR?"}  # fmt: skip
    scales = {n: {d: {"reasoning": "", "score": 0} for d in ds} for n, ds in scales_of(request).items()}
    script = [{"speaker": "Ana Ruiz", "action_type": "speak", "argument": "Hello."}]
    return json.dumps(act | steps | coached | {"evaluations": scales, "script": script})


def played(library: Path, out: Path, *asked: str) -> list[tuple[int, str, str]]:
    """(seat, what, prompt) of every call of a run."""
    with FakeOpenAI(says(whispers)) as server:
        here = [part.replace("MODEL", f"m@{server.url}") for part in asked]
        assert main(["run", "--tasks", str(library), "--turns", "14", "--out", str(out), *here]) == 0
    with Store.read(out) as store:
        rows = store.episodes()
        return [(seat, what, prompt) for row in rows for seat, _, what, _, prompt, _ in store.calls(row.id)]


def owners(prompt: str) -> set[str]:
    """Whose private words stand in it."""
    return {name for name in PEOPLE if private(name) in prompt}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("mode", MODES)
def test_a_player_is_told_no_private_word_of_another(order: str, mode: str, library: Path, tmp_path: Path) -> None:
    calls = played(library, tmp_path / "run.sqlite", "--agents", "MODEL", "--order", order, "--mode", mode,
                   "--judges", "rules,MODEL")  # fmt: skip
    assert {what for _, what, _ in calls} & {"act", "bid", "script"}
    for seat, what, prompt in calls:
        if mode not in SEES_ALL and what not in RATES:
            assert owners(prompt) == {PEOPLE[seat]}
            assert seat < 2 or "Zwhisper" not in prompt
        assert what != "judge" or len(owners(prompt)) > 1, "who judges sees all"


@pytest.mark.parametrize("variant", ["dsi", "nsi", "half-nsi"])
def test_a_coach_guesses_what_the_other_wants_from_what_was_said(variant: str, library: Path, tmp_path: Path) -> None:
    calls = played(library, tmp_path / "run.sqlite", "--agents", "MODEL", "--coach", "MODEL", "--variant", variant,
                   "--attempts", "1")  # fmt: skip
    stages = {what for _, what, _ in calls if what not in RATES} - {"act"}
    assert {"utility", "guess", "resources", "difference", "proposal", "update", "style"} == stages
    for _, what, prompt in calls:
        if what in RATES:
            continue
        (owner,) = owners(prompt)
        assert f"You are {owner}" in prompt or f"{owner} Ruiz's private goal" in prompt
        assert owner != "Cai" or "Zwhisper" not in prompt
    assert any(re.search("Guess what matters to Ben Ruiz from", prompt) for _, what, prompt in calls if what == "guess")
