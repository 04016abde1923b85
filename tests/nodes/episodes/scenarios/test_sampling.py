"""Sampling: repeatable, and no constraint is ever ignored."""

from __future__ import annotations

import random
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.episodes.scenarios.library import Library
from nodes.episodes.scenarios.profiles import Bond, Character, ProfileError, Relationship, Scenario
from nodes.episodes.scenarios.sampling import allowed_casts, sample_constrained, sample_uniform, seat_misfit
from tests.support.sentences import pattern

JOBS = ("smith", "baker", "diver")


@st.composite
def libraries(draw: st.DrawFn) -> Library:
    """Three to eight people, a few bonds, one scenario for two or three with random constraints."""
    count = draw(st.integers(3, 8))
    people = [
        Character(
            id=f"p{number}",
            first_name=f"P{number}",
            age=draw(st.integers(18, 80)),
            occupation=draw(st.sampled_from(JOBS)),
        )
        for number in range(count)
    ]
    levels = st.sampled_from(list(Relationship))
    bonds = [
        Bond(first=f"p{first}", second=f"p{second}", relationship=draw(levels))
        for second in range(count)
        for first in range(second)
        if draw(st.booleans())
    ]
    seats = draw(st.integers(2, 3))
    span = st.tuples(st.integers(18, 80), st.integers(18, 80)).map(lambda ends: (min(ends), max(ends)))
    jobs = st.lists(st.sampled_from(JOBS)).map(tuple)
    names = st.lists(st.sampled_from(["p0", "P1"]), max_size=1).map(tuple)
    scenario = Scenario(
        id="s",
        context="c",
        goals=("win",) * seats,
        relationship=draw(levels),
        ages=draw(st.just(()) | st.tuples(*[span] * seats)),
        occupations=draw(st.just(()) | st.tuples(*[jobs] * seats)),
        characters=draw(st.just(()) | st.tuples(*[names] * seats)),
    )
    return Library(people, [scenario], bonds)


def fits(library: Library, scenario: Scenario, cast: tuple[str, ...]) -> bool:
    """The constraints once more, written independently of the sampler."""
    people = [library.characters[identifier] for identifier in cast]
    seats = range(scenario.seats)
    return (
        len(set(cast)) == scenario.seats
        and all(
            library.relationship(cast[first], cast[second]) == scenario.relationship_between(first, second)
            for first in seats
            for second in seats
            if first != second
        )
        and all(low <= person.age <= high for person, (low, high) in zip(people, scenario.ages, strict=False))
        and all(
            not jobs or person.occupation in jobs for person, jobs in zip(people, scenario.occupations, strict=False)
        )
        and all(
            not names or person.id in names or person.name in names
            for person, names in zip(people, scenario.characters, strict=False)
        )
    )


@given(library=libraries(), seed=st.integers(0, 3))
def test_allowed_casts_are_exactly_those_that_honour_every_constraint(library: Library, seed: int) -> None:
    scenario = library.scenario("s")
    people = list(library.characters)
    expected = {cast for cast in product(people, repeat=scenario.seats) if fits(library, scenario, cast)}
    casts = allowed_casts(library, scenario, random.Random(seed))
    assert len(casts) == len(set(casts))
    assert set(casts) == expected


@given(library=libraries(), count=st.integers(1, 5), seed=st.integers(0, 3))
def test_a_constrained_sample_repeats_by_its_seed_or_says_how_many_there_are(
    library: Library, count: int, seed: int
) -> None:
    available = len(allowed_casts(library, library.scenario("s"), random.Random(0)))
    if available < count:
        with pytest.raises(ProfileError, match=f"scenario s: {available} casts honour .*; {count} asked for"):
            sample_constrained(library, count, seed=seed)
        return
    tasks = sample_constrained(library, count, seed=seed)
    assert tasks == sample_constrained(library, count, seed=seed)
    assert len({task.characters for task in tasks}) == len({task.id for task in tasks}) == count
    assert all(fits(library, library.scenario("s"), task.characters) for task in tasks)


@given(library=libraries(), count=st.integers(1, 20), seed=st.integers(0, 3))
def test_a_uniform_sample_seats_different_people_and_repeats_by_its_seed(
    library: Library, count: int, seed: int
) -> None:
    tasks = sample_uniform(library, count, seed=seed)
    assert tasks == sample_uniform(library, count, seed=seed)
    assert len({task.id for task in tasks}) == count
    assert all(len(set(task.characters)) == library.scenario("s").seats for task in tasks)


def small() -> Library:
    people = [Character(id=f"p{number}", first_name=f"P{number}", age=20 + number) for number in range(3)]
    scenarios = [Scenario(id=identifier, context="c", goals=("a", "b")) for identifier in ("s", "t", "z" * 64)]
    return Library(people, scenarios, [Bond(first="p0", second="p1", relationship=Relationship.FRIEND)])


def test_a_scenario_gets_the_same_casts_whichever_others_are_asked_for() -> None:
    library = small()
    alone = sample_constrained(library, 2, seed=5, scenarios=["t"])
    assert alone == [task for task in sample_constrained(library, 2, seed=5) if task.scenario == "t"]
    assert {task.scenario for task in sample_uniform(library, 50, scenarios=["s"])} == {"s"}


def test_seeds_differ_and_long_names_still_make_identifiers() -> None:
    library = small()
    samples = [[task.characters for task in sample_uniform(library, 20, seed=seed)] for seed in range(5)]
    assert len({tuple(sample) for sample in samples}) == 5
    assert all(len(task.id) <= 64 for task in sample_uniform(library, 50))


def test_a_misfit_says_why() -> None:
    library = small()
    scenario = Scenario(
        id="x",
        context="c",
        goals=("a", "b"),
        ages=((21, 30), (18, 90)),
        occupations=((), ("smith",)),
        characters=(("P1",), ()),
    )
    people = library.characters
    assert seat_misfit(scenario, 0, people["p0"]) == "P0 is 20; seat 0 is for 21 to 30 years"
    assert seat_misfit(scenario, 0, people["p2"]) == "seat 0 is kept for P1, not P2"
    assert seat_misfit(scenario, 1, people["p0"]) == "P0 is no smith, as seat 1 asks"
    assert seat_misfit(scenario, 0, people["p1"]) is None


def test_what_cannot_be_drawn_is_named() -> None:
    with pytest.raises(ProfileError, match=pattern("episodes.one_or_more", value=0)):
        sample_uniform(small(), 0)
    with pytest.raises(ProfileError, match=pattern("episodes.no_scenarios")):
        sample_uniform(Library(), 1)
    with pytest.raises(ProfileError, match=pattern("episodes.few_characters", scenario="s", seats=2, people=0)):
        sample_uniform(Library(scenarios=[Scenario(id="s", context="c", goals=("a", "b"))]), 1)
    with pytest.raises(ProfileError, match="no scenario 'nope'; known: s, t, "):
        sample_constrained(small(), 1, scenarios=["nope"])
