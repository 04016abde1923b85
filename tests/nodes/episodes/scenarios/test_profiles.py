"""Profiles: what a record may hold, and the sentences for what it may not."""

from __future__ import annotations

import msgspec
import pytest

from nodes.episodes.scenarios.profiles import (
    Bond,
    Character,
    ProfileError,
    Relationship,
    Scenario,
    SeatPair,
    Task,
    is_identifier,
)
from nodes.episodes.scenarios.visibility import Cast
from nodes.msgs.episode import Deal, Facts
from tests.support.sentences import pattern


def scenario(**fields: object) -> Scenario:
    return msgspec.convert({"id": "s", "context": "A room.", "goals": ["a", "b"], **fields}, Scenario)


def test_relationships_have_the_published_numbers() -> None:
    assert {each.word: int(each) for each in Relationship} == {
        "stranger": 0,
        "know_by_name": 1,
        "acquaintance": 2,
        "friend": 3,
        "romantic": 4,
        "family": 5,
    }


@pytest.mark.parametrize("text", ["", "A", "-a", "a.b", "../a", "a/b", "a" * 65, "é", "a\n"])
def test_identifiers_that_could_leave_a_folder_or_a_row_are_refused(text: str) -> None:
    assert not is_identifier(text)
    with pytest.raises(ValueError, match="^" + pattern("episodes.identifier_expected", value=".*") + " of a-z"):
        Character(id=text, first_name="Ann")


@pytest.mark.parametrize("name", ["<b>Ann</b>", "Ann\nBo", "../Ann", "Ann\x1b[2J", "Ann\u202eBo", " ", "A" * 81])
def test_names_with_markup_control_characters_or_no_end_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"^first_name "):
        Character(id="a", first_name=name)


def test_texts_keep_newlines_and_refuse_control_characters_and_floods() -> None:
    assert Character(id="a", first_name="Ann", public_info="One.\nTwo.").public_info == "One.\nTwo."
    with pytest.raises(ValueError, match=pattern("episodes.control_character", code="0007") + " at 1; remove it"):
        Character(id="a", first_name="Ann", secret="x\x07")
    with pytest.raises(ValueError, match=pattern("episodes.too_long", field="secret", number=10000000, most=8000)):
        Character(id="a", first_name="Ann", secret="x" * 10_000_000)
    with pytest.raises(ValueError, match="moral_values holds the control character"):
        Character(id="a", first_name="Ann", moral_values=("care", "\x00"))


def test_ages_are_years() -> None:
    with pytest.raises(ValueError, match=pattern("episodes.age_expected", value=-1)):
        Character(id="a", first_name="Ann", age=-1)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"goals": ["alone"]}, pattern("episodes.one_per_seat", number=1)),
        ({"goals": ["a", " "]}, f"goals {pattern('episodes.is_empty')}"),
        ({"ages": [[18, 70]]}, pattern("episodes.none_or_one_per_seat", field="ages", number=1, seats=2)),
        ({"ages": [[70, 18], [1, 2]]}, pattern("episodes.ages_expected", first=70, last=18)),
        ({"pairs": [{"seats": [0, 2], "relationship": 3}]}, pattern("episodes.wrong_pair", first=0, second=2, last=1)),
        ({"robot_seat": 2}, pattern("episodes.seat_expected", field="robot_seat", value=2, last=1)),
        ({"facts": [{"worth": {"hat": 1}}, {}]}, r"facts\[0\]." + pattern("episodes.unknown_item", item="hat")),
        ({"deal": {"about": "it"}}, "a deal needs unit"),
        (
            {"deal": {"about": "it", "unit": "EUR", "step": 0}},
            f"step {pattern('episodes.more_than_zero', value='0.0')}",
        ),
        (
            {"facts": [{"wants": "low", "target": 9, "reserve": 3}, {}]},
            pattern("episodes.target_and_reserve", target="9.0", where="above", reserve="3.0"),
        ),
        (
            {"facts": [{"wants": "high", "target": 3, "reserve": 9}, {}]},
            pattern("episodes.target_and_reserve", target="3.0", where="below", reserve="9.0"),
        ),
    ],
)
def test_a_scenario_that_cannot_be_played_says_which_field(fields: dict[str, object], told: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=told):
        scenario(**fields)


def test_pairs_of_seats_override_the_scenarios_relationship() -> None:
    trio = Scenario(
        id="s",
        context="A room.",
        goals=("a", "b", "c"),
        relationship=Relationship.FRIEND,
        pairs=(SeatPair(seats=(2, 0), relationship=Relationship.FAMILY),),
    )
    assert trio.relationship_between(0, 2) == trio.relationship_between(2, 0) == Relationship.FAMILY
    assert trio.relationship_between(1, 2) == Relationship.FRIEND
    with pytest.raises(ValueError, match=pattern("episodes.seat_to_itself", seat=1)):
        trio.relationship_between(1, 1)


def test_facts_are_empty_where_a_scenario_has_none() -> None:
    assert scenario().facts_of(1) == Facts()
    assert Deal(about="it", items={"hat": 2}).items == {"hat": 2}


def test_nobody_is_bound_to_themselves_or_sits_twice() -> None:
    with pytest.raises(ValueError, match=pattern("episodes.bound_to_itself", who="a")):
        Bond(first="a", second="a", relationship=Relationship.FRIEND)
    with pytest.raises(ValueError, match=pattern("episodes.nobody_twice")):
        Task(id="t", scenario="s", characters=("a", "a"))


def test_a_cast_fills_every_seat_with_a_different_name() -> None:
    ann, other_ann = Character(id="a", first_name="Ann"), Character(id="b", first_name="ann")
    with pytest.raises(ProfileError, match="scenario s: 1 characters; expected 2"):
        Cast(scenario=scenario(), people=(ann,))
    with pytest.raises(ProfileError, match=pattern("episodes.named_twice", name="ann")):
        Cast(scenario=scenario(), people=(ann, other_ann))
