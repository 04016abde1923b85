"""The starter set: complete, consistent, varied, and every scenario can be cast."""

from __future__ import annotations

import random
import re
from collections import Counter

import pytest

from nodes.episodes.scenarios.library import Library, starter
from nodes.episodes.scenarios.profiles import (
    Character,
    Relationship,
    Scenario,
)
from nodes.episodes.scenarios.sampling import allowed_casts, sample_constrained
from nodes.episodes.scenarios.visibility import cast_of, full_view, view

BIG_FIVE = ("openness", "conscientiousness", "extraversion", "agreeableness", "neuroticism")
MORAL_VALUES = ("care", "fairness", "loyalty", "authority", "purity")
SCHWARTZ_VALUES = (
    "self-direction",
    "stimulation",
    "hedonism",
    "achievement",
    "power",
    "security",
    "conformity",
    "tradition",
    "benevolence",
    "universalism",
)
DECISION_STYLES = ("directive", "analytical", "conceptual", "behavioral")
"""The types that SOTOPIA's appendix C.2 names; other people's files may hold other words, ours may not."""

LIBRARY = starter()
PEOPLE = list(LIBRARY.characters.values())
SCENARIOS = list(LIBRARY.scenarios.values())
TABLE = {
    "red_cup",
    "blue_cup",
    "green_cup",
    "yellow_cup",
    "white_cup",
    "purple_ball",
    "orange_block",
    "brown_bottle",
}


@pytest.fixture(scope="module")
def library() -> Library:
    return LIBRARY


def test_there_are_24_characters_and_55_scenarios() -> None:
    assert (len(PEOPLE), len(SCENARIOS)) == (24, 55)


@pytest.mark.parametrize("character", PEOPLE, ids=lambda character: character.id)
def test_a_character_is_whole(character: Character) -> None:
    for field in ("gender", "pronouns", "occupation", "public_info", "personality", "decision_style", "secret"):
        assert getattr(character, field), field
    traits = dict(part.split(" ") for part in character.big_five.split(", "))
    assert tuple(traits) == BIG_FIVE
    assert set(traits.values()) <= {"low", "medium", "high"}
    assert 1 <= len(character.moral_values) <= 3
    assert set(character.moral_values) <= set(MORAL_VALUES)
    assert 2 <= len(character.schwartz_values) <= 4
    assert set(character.schwartz_values) <= set(SCHWARTZ_VALUES)
    assert character.decision_style in DECISION_STYLES
    assert 60 <= len(character.public_info) <= 400
    assert 40 <= len(character.personality) <= 300
    assert 40 <= len(character.secret) <= 300
    assert len(character.secret_words) >= 2
    told = f"{character.public_info} {character.personality}".casefold()
    assert not any(word.casefold() in told for word in character.secret_words)


def test_the_characters_differ() -> None:
    for field in ("name", "first_name", "occupation", "public_info", "personality", "secret"):
        assert len({getattr(character, field) for character in PEOPLE}) == 24, field
    people = [character for character in PEOPLE if character.occupation != "household robot"]
    assert len({character.pronouns for character in PEOPLE}) >= 4
    assert len({character.age for character in people}) >= 20
    assert min(character.age for character in people) < 21
    assert max(character.age for character in people) > 75
    assert max(Counter(character.gender for character in people).values()) <= 12
    assert {character.decision_style for character in PEOPLE} == set(DECISION_STYLES)
    assert {value for character in PEOPLE for value in character.schwartz_values} == set(SCHWARTZ_VALUES)
    assert {value for character in PEOPLE for value in character.moral_values} == set(MORAL_VALUES)


def test_relationships_reach_everyone_and_use_every_level(library: Library) -> None:
    counts = Counter(bond.relationship for bond in library.bonds)
    assert all(counts[level] >= 6 for level in Relationship)
    assert len({frozenset((bond.first, bond.second)) for bond in library.bonds}) == len(library.bonds)
    assert all(20 <= len(bond.story) <= 300 for bond in library.bonds)
    neighbours = {identifier: set[str]() for identifier in library.characters}
    for bond in library.bonds:
        if bond.relationship > Relationship.KNOW_BY_NAME:
            neighbours[bond.first].add(bond.second)
            neighbours[bond.second].add(bond.first)
    reached, edge = {"tock"}, {"tock"}
    while edge:
        edge = {other for each in edge for other in neighbours[each]} - reached
        reached |= edge
    assert reached == set(library.characters)
    assert all(len(known) >= 3 for known in neighbours.values())


def test_no_bond_and_no_public_text_tells_a_secret(library: Library) -> None:
    for character in PEOPLE:
        for bond in library.bonds:
            if character.id in (bond.first, bond.second):
                assert not any(word.casefold() in bond.story.casefold() for word in character.secret_words)


def test_the_scenarios_cover_kinds_relationships_and_sizes() -> None:
    kinds = Counter(scenario.kind for scenario in SCENARIOS)
    assert set(kinds) == {
        "cooperation",
        "competition",
        "mixed-motives",
        "negotiation",
        "persuasion",
        "accommodation",
        "information-seeking",
        "secrets",
    }
    assert all(count >= 4 for count in kinds.values())
    assert {scenario.relationship for scenario in SCENARIOS} == set(Relationship)
    assert sum(scenario.seats == 3 for scenario in SCENARIOS) >= 4
    assert sum(scenario.is_embodied for scenario in SCENARIOS) >= 4


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.id)
def test_a_scenario_is_whole_and_can_be_cast(scenario: Scenario, library: Library) -> None:
    assert 80 <= len(scenario.context) <= 500
    assert all(120 <= len(goal) <= 700 for goal in scenario.goals)
    assert len(set(scenario.goals)) == scenario.seats
    assert scenario.tags
    assert scenario.source == "polyrhythm"
    assert not re.search(r"  |\s[,.;]", scenario.context + "".join(scenario.goals))
    assert len(allowed_casts(library, scenario, random.Random(0))) >= 5
    for first in range(scenario.seats):
        for word in scenario.facts_of(first).hides:
            assert word.casefold() not in scenario.context.casefold(), "the context gives the intention away"


@pytest.mark.parametrize("scenario", [each for each in SCENARIOS if each.deal], ids=lambda scenario: scenario.id)
def test_a_negotiation_can_succeed_and_has_something_to_win(scenario: Scenario) -> None:
    assert scenario.deal is not None
    facts = [scenario.facts_of(seat) for seat in range(scenario.seats)]
    if scenario.deal.unit:
        most = min(each.reserve for each in facts if each.wants == "low" and each.reserve is not None)
        lows = [each.reserve for each in facts if each.wants == "high" and each.reserve is not None]
        if lows:
            assert max(lows) <= most, "there is no number that everybody could accept"
            assert any(each.target != each.reserve for each in facts)
    if scenario.deal.items:
        assert all(set(each.worth) == set(scenario.deal.items) for each in facts)
        assert len({tuple(sorted(each.worth.items())) for each in facts}) == scenario.seats


def test_what_a_seat_seeks_is_known_by_another() -> None:
    for scenario in SCENARIOS:
        for seat in range(scenario.seats):
            elsewhere = {
                key for other in range(scenario.seats) if other != seat for key in scenario.facts_of(other).knows
            }
            for sought in scenario.facts_of(seat).seeks:
                shared = sought == "the mutual friend"
                assert shared or sought in elsewhere or scenario.kind == "secrets", (scenario.id, sought)


def test_the_mutual_friend_is_exactly_one() -> None:
    wedding = LIBRARY.scenario("mutual-friend-at-the-wedding")
    first, second = (set(wedding.facts_of(seat).knows) for seat in (0, 1))
    assert first & second == {"Sunniva Okoye"}


def test_embodied_scenarios_seat_the_robot_at_the_table_it_knows(library: Library) -> None:
    for scenario in SCENARIOS:
        if scenario.robot_seat is not None:
            assert set(scenario.objects) == TABLE
            for cast in allowed_casts(library, scenario, random.Random(0)):
                assert cast[scenario.robot_seat] == "tock"
                assert cast.count("tock") == 1
        else:
            assert all("tock" not in cast for cast in allowed_casts(library, scenario, random.Random(0)))


def test_no_view_of_the_set_holds_another_ones_secret_or_goal(library: Library) -> None:
    for task in sample_constrained(library, 5, seed=1):
        cast = cast_of(library, task)
        for seat in range(cast.scenario.seats):
            text = view(cast, seat).text()
            for other in range(cast.scenario.seats):
                if other != seat:
                    assert cast.people[other].secret not in text
                    assert full_view(cast).goal(other) not in text
