"""Three people: a number or a division is agreed when all whom it binds stand by it; each seat is somebody's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodes.episodes.agents.deal_reading import agreed_number, agreed_shares
from nodes.episodes.command import main
from nodes.episodes.results.store import Store
from nodes.msgs.episode import Deal, Turn
from runtime.cli import main as polyrhythm
from tests.support.sentences import sentence

LANDLADY, IDA, OLE = "Una Moor", "Ida Berg", "Ole Lund"
PEOPLE = (LANDLADY, IDA, OLE)
RENT = Deal(about="the rent", unit="EUR", opening=1000, step=10)
GEAR = Deal(about="the gear", items={"tent": 2, "stove": 1})


def talk(*said: tuple[str, str]) -> list[Turn]:
    return [Turn(index=n, number=n + 1, speaker=who, kind="speak", argument=text) for n, (who, text) in enumerate(said)]


OFFER, YES = (IDA, "How about 900 EUR?"), (OLE, "Agreed, 900 it is.")


@pytest.mark.parametrize(
    ("said", "agreed"),
    [
        ([OFFER, YES], None),
        ([OFFER, YES, (LANDLADY, "No. Never.")], None),
        ([OFFER, YES, (LANDLADY, "Deal.")], 900),
        ([OFFER, (LANDLADY, "Deal."), (OLE, "Fine with me, 900.")], 900),
        ([OFFER, YES, (LANDLADY, "I want 950 EUR."), (IDA, "Deal."), (OLE, "Deal.")], 950),
        ([OFFER, YES, (LANDLADY, "I want 950 EUR."), (IDA, "Deal.")], None),
        ([OFFER, YES, (OLE, "No. No deal."), (LANDLADY, "Deal.")], None),
        ([OFFER, YES, (IDA, "No. Never."), (LANDLADY, "Deal.")], None),
    ],
)
def test_a_number_is_agreed_when_all_whom_it_binds_stand_by_it(
    said: list[tuple[str, str]], agreed: float | None
) -> None:
    assert agreed_number(talk(*said), RENT, PEOPLE) == agreed


def test_who_has_no_stake_binds_nobody() -> None:
    assert agreed_number(talk(OFFER, (LANDLADY, "Deal.")), RENT, (LANDLADY, IDA)) == 900
    assert agreed_number(talk(OFFER, YES), RENT, (LANDLADY, IDA)) is None


def test_a_division_that_one_takes_back_is_none_until_it_is_accepted_again() -> None:
    offer = (IDA, "I take 1 tent, Una gets 1 tent, Ole gets 1 stove.")
    said = [offer, (LANDLADY, "Deal."), (LANDLADY, "No. Never."), (OLE, "Deal.")]
    assert agreed_shares(talk(*said), GEAR, PEOPLE) is None
    assert agreed_shares(talk(*said, (LANDLADY, "Deal.")), GEAR, PEOPLE) is not None


@pytest.fixture
def library(tmp_path: Path) -> Path:
    folder = tmp_path / "set"
    folder.mkdir()
    facts = [{"wants": "high", "target": 1000, "reserve": 900}, *[{"wants": "low", "target": 800, "reserve": 950}] * 2]
    tables: dict[str, list[dict[str, object]]] = {
        "characters": [{"id": name[:3].lower(), "first_name": name.split()[0], "last_name": name.split()[1], "age": 40}
                       for name in PEOPLE],
        "scenarios": [{"id": "rent", "context": "A flat.", "kind": "negotiation",
                       "goals": [f"Come to a good rent, {who}." for who in PEOPLE],
                       "deal": {"about": "the rent", "unit": "EUR", "opening": 1000, "step": 10}, "facts": facts}],
        "tasks": [{"id": "a-rent", "scenario": "rent", "characters": [name[:3].lower() for name in PEOPLE]}],
    }  # fmt: skip
    for name, rows in tables.items():
        (folder / f"{name}.jsonl").write_text("\n".join(json.dumps(row) for row in rows) + "\n")
    return folder


@pytest.mark.parametrize(("last", "has_deal"), [("No. Never.", False), ("All right, 900 it is. Deal.", True)])
def test_two_tenants_who_agree_have_no_deal_against_the_landlady(
    last: str, has_deal: bool, library: Path, tmp_path: Path
) -> None:
    lines = {LANDLADY: ["Good evening.", last], IDA: ["How about 900 EUR?", ""], OLE: ["Agreed, 900 it is.", ""]}
    for name, said in lines.items():
        (tmp_path / f"{name[:3]}.txt").write_text("\n".join(json.dumps(text) for text in said if text) + "\n")
    agents = ",".join(f"script:{tmp_path / name[:3]}.txt" for name in PEOPLE)
    path = tmp_path / "run.sqlite"
    assert main(["run", "--tasks", str(library), "--agents", agents, "--turns", "4", "--out", str(path)]) == 0
    with Store.read(path) as store:
        (row,) = store.episodes()
        checks = store.checks(row.id)
        goals = {s.name: s.score for one in store.scores(row.id) for s in one.scores if s.dimension == "GOAL"}
    assert checks is not None
    assert checks["has_deal"] is has_deal
    assert has_deal or set(goals.values()) == {1.0}


def test_three_who_bargain_by_rules_come_to_an_end_that_binds_all(library: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    assert main(["run", "--tasks", str(library), "--turns", "40", "--out", str(path)]) == 0
    with Store.read(path) as store:
        (row,) = store.episodes()
        checks = store.checks(row.id)
        assert checks is not None
        assert checks["price"] is None or 900 <= checks["price"] <= 950


LAUNCH = """
[nodes.moderator]
use    = "nodes.episodes.runner.live_moderator:LiveModerator"
params = {{ task = "three-who-saw-it" }}

[nodes.judge]
use    = "nodes.episodes.runner.judge:Judge"
params = {{ task = "three-who-saw-it" }}
{seats}"""
SEAT = """
[nodes.player{n}]
use   = "nodes.episodes.agents.agent:Agent"
remap = {{ "episode/seat" = "episode/seat{n}" }}
"""


@pytest.mark.parametrize(("seats", "code"), [((0, 1), 2), ((0, 1, 2), 0), ((0, 1, 2, 3), 2)])
def test_check_knows_who_plays_each_seat(
    seats: tuple[int, ...], code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    launch = tmp_path / "three.toml"
    launch.write_text(LAUNCH.format(seats="".join(SEAT.format(n=n) for n in seats)))
    assert polyrhythm(["check", str(launch)]) == code
    if code:
        said = "".join(capsys.readouterr())
        one = sentence("episodes.nobody_plays", seat=2), sentence("episodes.no_such_seat", seat=3)
        assert one[len(seats) > 3] in said


def test_lint_names_a_seat_that_rules_cannot_judge_and_a_deal_without_another_side(
    library: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = library / "scenarios.jsonl"
    row = json.loads(file.read_text())
    row["facts"] = [{"wants": "high"}, {"wants": "high"}, {}]
    file.write_text(json.dumps(row) + "\n" + json.dumps(row | {"id": "all", "facts": [{"wants": "low"}] * 3}) + "\n")
    main(["scenarios", "lint", "--tasks", str(library)])
    shown = capsys.readouterr().out
    assert sentence("episodes.binds_it_not", seat=2) in shown
    assert sentence("episodes.one_sided", wants="low") in shown
