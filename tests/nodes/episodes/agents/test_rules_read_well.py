"""What the offline agents say in the starter set is worth reading: no line twice, hands wait for words, deals hold."""

from __future__ import annotations

import pytest

from nodes.episodes.agents.deal_reading import agreed_number, division_in, numbers_in
from nodes.episodes.agents.offline_agent import listed
from nodes.episodes.dialogue.planning import plan_of_task
from nodes.episodes.evaluation.by_rules import check_episode
from nodes.episodes.scenarios.library import starter
from nodes.msgs.episode import Deal, Turn
from tests.support.episode_cast import play

EMBODIED = sorted(scenario.id for scenario in starter().scenarios.values() if scenario.is_embodied)


def turns_of(task: str) -> list[Turn]:
    return play(plan_of_task(task, order="round-robin", mode="AGENTS", max_turns=20)).conduct.turns


@pytest.mark.parametrize("task", sorted(starter().scenarios))
def test_nobody_says_the_same_twice(task: str) -> None:
    spoken = [turn.argument for turn in turns_of(task) if turn.kind == "speak"]
    assert len(spoken) == len(set(spoken))


def test_what_is_counted_out_is_read_back_whatever_its_plural() -> None:
    items = {"crate of photographs": 4, "key to the cold store": 1, "dog": 1}
    deal = Deal(about="the house", items=items)
    mine, rest = {"crate of photographs": 3, "key to the cold store": 0, "dog": 1}, {"crate of photographs": 1}
    assert listed(mine) == "3 crates of photographs and 1 dog"
    text = f"I take {listed(mine)}, you get {listed({**rest, 'key to the cold store': 1})}."
    read = division_in(text, "Ana Ruiz", deal, ("Ana Ruiz", "Ben Okafor"))
    assert read is not None
    assert read["Ana Ruiz"] == mine


def test_two_who_divide_a_house_agree_on_one_division() -> None:
    plan = plan_of_task("dog-piano-car", order="round-robin", mode="AGENTS", max_turns=20)
    checks = check_episode(plan, turns_of("dog-piano-car"))
    assert checks.shares is not None
    first, second = checks.shares.values()
    assert plan.deal is not None
    assert {item: first[item] + second[item] for item in plan.deal.items} == plan.deal.items


def test_a_robot_hears_people_out_before_it_does_what_cannot_be_undone() -> None:
    for task in ("which-cup-was-mine", "who-broke-the-white-cup", "hold-it-in-the-light"):
        turns = turns_of(task)
        first = next(index for index, turn in enumerate(turns) if turn.kind == "action")
        assert sum(turn.kind == "speak" for turn in turns[:first]) >= 8, task
    assert not any(turn.kind == "action" for turn in turns_of("the-brown-bottle"))


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("a thousand five hundred euros", 1500.0),
        ("two hundred and fifty euros", 250.0),
        ("two thousand and ten euros", 2010.0),
        ("sixty-one euros", 61.0),
        ("fifteen hundred euros", 1500.0),
        ("1.500 €", 1500.0),
        ("1.50 €", 1.5),
        ("0.125 €", 0.125),
    ],
)
def test_an_amount_in_words_or_with_a_point_for_thousands_is_read_whole(text: str, amount: float) -> None:
    assert numbers_in(text, Deal(about="the van", unit="EUR")) == [amount]


def test_numbers_that_only_stand_side_by_side_are_not_added() -> None:
    assert numbers_in("one and two nights", Deal(about="New Year", unit="nights")) == [2.0]


@pytest.mark.parametrize(
    ("answer", "agreed"),
    [
        ("I appreciate your offer, and I'm happy to accept it.", 1500.0),
        ("Thank you for meeting me halfway. You've got yourself a van.", 1500.0),
        ("That sounds reasonable. Let's proceed with 1500 euros.", 1500.0),
        ("Yes, I heard you. Still no.", None),
    ],
)
def test_answers_as_models_write_them_are_read(answer: str, agreed: float | None) -> None:
    turns = [
        Turn(index=0, number=1, speaker="Ana", kind="speak", argument="I can do 1500 EUR."),
        Turn(index=1, number=2, speaker="Ben", kind="speak", argument=answer),
    ]
    assert agreed_number(turns, Deal(about="the van", unit="EUR")) == agreed
