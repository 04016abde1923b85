"""Visibility: what each participant knows at the start, by relationship and mode, proven over random profiles."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodes.episodes.scenarios.library import Library
from nodes.episodes.scenarios.profiles import Bond, Character, ProfileError, Relationship, Scenario, SeatPair, Task
from nodes.episodes.scenarios.visibility import CLOSE, PUBLIC, Briefable, Cast, cast_of, full_view, view
from nodes.msgs.episode import Facts
from tests.support.sentences import pattern

ANN = Character(
    id="ann",
    first_name="Ann",
    last_name="Ash",
    age=41,
    gender="Woman",
    pronouns="she/her",
    occupation="smith",
    public_info="Shoes horses.",
    big_five="openness high",
    moral_values=("care", "fairness"),
    schwartz_values=("power",),
    personality="Loud.",
    decision_style="directive",
    secret="Eats chalk.",
    mbti="ENTJ",
)
BO = Character(id="bo", first_name="Bo", occupation="baker", secret="Burns bread.")


def pair(relationship: Relationship) -> Cast:
    scenario = Scenario(
        id="s",
        context="A yard. <p viewer='agent_1'>Bo sees a spider.</p>",
        goals=("Sell it <extra_info>by noon</extra_info>", "Buy it"),
        relationship=relationship,
        facts=(Facts(knows={"the horse": "lame"}), Facts()),
    )
    return Cast(scenario=scenario, people=(ANN, BO), stories={(0, 1): "They met in a ditch."})


@pytest.mark.parametrize(
    ("relationship", "fields"),
    [
        (Relationship.STRANGER, ()),
        (Relationship.KNOW_BY_NAME, ()),
        (Relationship.ACQUAINTANCE, PUBLIC),
        (Relationship.FRIEND, CLOSE),
        (Relationship.ROMANTIC, CLOSE),
        (Relationship.FAMILY, CLOSE),
    ],
)
def test_a_relationship_shows_what_the_paper_says(relationship: Relationship, fields: tuple[str, ...]) -> None:
    seen = view(pair(relationship), 1).people[0]
    assert seen.name == "Ann Ash"
    assert set(seen.shown) == set(fields)
    assert seen.goal is None
    assert not seen.knows


def test_one_sees_all_of_oneself() -> None:
    own = view(pair(Relationship.STRANGER), 0).people[0]
    assert own.shown["secret"] == "Eats chalk."
    assert set(own.shown) == {*CLOSE, "secret"}
    assert own.goal == "Sell it by noon"
    assert own.knows == {"the horse": "lame"}


def test_a_view_reads_as_a_prompt() -> None:
    assert view(pair(Relationship.ACQUAINTANCE), 1).text() == (
        "Scenario: A yard. Bo sees a spider.\n"
        "Participants: Ann Ash and Bo\n"
        "Ann Ash's background: occupation: smith; pronouns: she/her; known about them: Shoes horses.\n"
        "Bo's background: occupation: baker; secret: Burns bread.\n"
        "Ann Ash is your acquaintance. They met in a ditch.\n"
        "Ann Ash's goal: Unknown\n"
        "Bo's goal: Buy it"
    )
    assert "Bo's background: Unknown\n" in view(pair(Relationship.STRANGER), 0).text()
    assert "spider" not in view(pair(Relationship.FAMILY), 0).text()


def test_strangers_have_no_common_story() -> None:
    assert "ditch" not in view(pair(Relationship.STRANGER), 0).text()
    assert "ditch" in view(pair(Relationship.FRIEND), 0).text()


def test_a_story_of_two_is_not_told_to_a_third() -> None:
    scenario = Scenario(id="s", context="c", goals=("a", "b", "c"), relationship=Relationship.FAMILY)
    cast = Cast(scenario=scenario, people=(ANN, BO, Character(id="cy", first_name="Cy")), stories={(0, 1): "Ditch."})
    assert ["Ditch." in view(cast, seat).text() for seat in range(3)] == [True, True, False]


def test_mindreaders_see_goals_secrets_and_private_parts() -> None:
    text = view(pair(Relationship.STRANGER), 0, "MINDREADERS").text()
    for private in ("Burns bread", "Buy it", "spider"):
        assert private in text


def test_the_writer_of_a_script_knows_everything_and_has_no_seat() -> None:
    seen = full_view(pair(Relationship.STRANGER))
    for private in ("Burns bread", "Eats chalk", "Buy it", "Sell it by noon", "spider", "lame"):
        assert private in seen.text()
    with pytest.raises(ProfileError, match=pattern("episodes.writer_has_no_seat")):
        view(pair(Relationship.STRANGER), 0, "SCRIPT")


def test_name_only_characters_have_goals_but_no_profiles() -> None:
    for seen in (
        view(pair(Relationship.FAMILY), 0, name_only=True),
        full_view(pair(Relationship.FAMILY), name_only=True),
    ):
        assert not any(person.shown or person.story for person in seen.people)
        assert seen.people[0].goal == "Sell it by noon"


def test_a_seat_that_is_not_there_is_named() -> None:
    with pytest.raises(ProfileError, match="scenario s: no seat 2; seats are 0 to 1"):
        view(pair(Relationship.FRIEND), 2)


def test_the_scenario_decides_how_its_people_stand() -> None:
    library = Library(
        [ANN, BO],
        [Scenario(id="s", context="c", goals=("a", "b"))],
        [Bond(first="ann", second="bo", relationship=Relationship.FAMILY, story="Twins.", note="Never shown.")],
    )
    seen = view(cast_of(library, Task(id="t", scenario="s", characters=("bo", "ann"))), 0)
    assert seen.people[1].relationship is Relationship.STRANGER
    assert "Twins" not in seen.text()


WORDS = st.text(alphabet="abcdefgh ;:'<>&", max_size=12)
NAMES = st.text(alphabet="abcdefgh", min_size=1, max_size=6)


@st.composite
def casts(draw: st.DrawFn) -> Cast:
    """Two to five people, every private text holding a mark of its own: SECRET2!, GOAL2!, FACT2!, PART2!."""
    seats = draw(st.integers(2, 5))
    levels = st.sampled_from(list(Relationship))
    people = tuple(
        Character(
            id=f"p{seat}",
            first_name=f"{draw(NAMES)}{seat}",
            age=draw(st.integers(0, 99)),
            occupation=draw(WORDS),
            public_info=draw(WORDS),
            personality=draw(WORDS),
            moral_values=tuple(draw(st.lists(WORDS, max_size=2))),
            secret=f"{draw(WORDS)}SECRET{seat}!{draw(WORDS)}",
            secret_words=(f"SECRET{seat}!",),
            tag=f"TAG{seat}",
        )
        for seat in range(seats)
    )
    parts = "".join(f"<p viewer='agent_{seat}'>{draw(NAMES)}PART{seat}!</p>" for seat in range(seats))
    scenario = Scenario(
        id="s",
        context=f"{draw(NAMES)}{parts}",
        goals=tuple(f"{draw(WORDS)}GOAL{seat}!<extra_info>{draw(NAMES)}</extra_info>" for seat in range(seats)),
        relationship=draw(levels),
        pairs=tuple(
            SeatPair(seats=(first, second), relationship=draw(levels))
            for second in range(seats)
            for first in range(second)
            if draw(st.booleans())
        ),
        facts=tuple(
            Facts(reserve=1234.5, knows={f"FACT{seat}!": draw(WORDS)}, hides=(f"FACT{seat}!",)) for seat in range(seats)
        ),
    )
    stories = {(first, second): f"STORY{first}{second}!" for second in range(seats) for first in range(second)}
    return Cast(scenario=scenario, people=people, stories=stories)


def everything_in(seen: Briefable) -> str:
    return seen.text() + json.dumps(msgspec.to_builtins(seen))


@given(cast=casts(), name_only=st.booleans())
def test_nobodys_secret_goal_or_facts_reach_anyone_else(cast: Cast, name_only: bool) -> None:
    for seat in range(cast.scenario.seats):
        text = everything_in(view(cast, seat, name_only=name_only))
        for other in range(cast.scenario.seats):
            for mark in ("SECRET", "GOAL", "FACT", "PART"):
                if other != seat:
                    assert f"{mark}{other}!" not in text
        assert f"GOAL{seat}!" in text
        assert name_only or f"SECRET{seat}!" in text
        assert "1234.5" not in text
        for first, second in cast.stories:
            if seat not in (first, second):
                assert f"STORY{first}{second}!" not in text


@given(cast=casts())
def test_in_the_open_modes_everything_private_is_told(cast: Cast) -> None:
    seats = range(cast.scenario.seats)
    for seen in (*(view(cast, seat, "MINDREADERS") for seat in seats), full_view(cast)):
        text = seen.text()
        assert all(f"{mark}{seat}!" in text for seat in seats for mark in ("SECRET", "FACT", "PART"))
