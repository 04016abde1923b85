"""Loader of the published files, on small files of the same shape (the content is ours)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodes.episodes.scenarios.loader import (
    AGENTS,
    COMBINATIONS,
    ENVIRONMENTS,
    RELATIONSHIPS,
    is_published,
    read_published,
)
from nodes.episodes.scenarios.profiles import ProfileError, Relationship
from nodes.episodes.scenarios.visibility import cast_of, view

Rows = list[dict[str, object]]

FIRST, SECOND = "01H0000000000000000000000A", "01H0000000000000000000000B"
SCENARIO = "01H0000000000000000000000S"


def agent(identifier: str, name: str, **fields: object) -> dict[str, object]:
    row: dict[str, object] = {
        "agent_id": identifier,
        "first_name": name,
        "last_name": "Ash",
        "age": 40,
        "occupation": "Smith",
        "gender": "Woman",
        "gender_pronoun": "She/her",
        "public_info": "Shoes horses.",
        "big_five": "Openness to Experience - Low; Conscientiousness - High",
        "moral_values": ["Care/Harm"],
        "schwartz_personal_values": ["Benevolence"],
        "personality_and_values": "Loud.",
        "decision_making_style": "Empathetic",
        "secret": "Eats chalk.",
        "mbti": "ISFJ",
    }
    return row | fields


def environment(**fields: object) -> dict[str, object]:
    row: dict[str, object] = {
        "env_id": SCENARIO,
        "codename": "horse_sale",
        "source": "hand-craft",
        "scenario": "A yard. <p viewer='agent_0'>The horse limps.</p>",
        "agent_goals": ["Sell (<extra_info>Extra information: by noon</extra_info>)", "Buy"],
        "relationship": "3",
        "age_constraint": "[(18, 70), (18, 70)]",
        "occupation_constraint": "nan",
        "agent_constraint": "none",
    }
    return row | fields


def published(
    folder: Path,
    agents: Rows | None = None,
    environments: Rows | None = None,
    relationships: Rows | None = None,
    combinations: Rows | None = None,
) -> Path:
    files: dict[str, Rows] = {
        AGENTS: [agent(FIRST, "Ann"), agent(SECOND, "Bo")] if agents is None else agents,
        ENVIRONMENTS: [environment()] if environments is None else environments,
        RELATIONSHIPS: relationships or [],
        COMBINATIONS: combinations or [],
    }
    for name, rows in files.items():
        (folder / name).write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return folder


def bond(**fields: object) -> dict[str, object]:
    return {
        "relationship_id": "01HR",
        "agent1_id": FIRST,
        "agent2_id": SECOND,
        "relationship": "3",
        "background_story": "Ann does not know Bo's secret: chalk.",
    } | fields


def test_the_published_shape_becomes_a_library(tmp_path: Path) -> None:
    combination: dict[str, object] = {"combo_id": "01HC", "env_id": SCENARIO, "agent_ids": [SECOND, FIRST]}
    library = read_published(published(tmp_path, relationships=[bond()], combinations=[combination]))
    ann = library.character(FIRST.lower())
    assert (ann.name, ann.age, ann.pronouns, ann.moral_values) == ("Ann Ash", 40, "She/her", ("Care/Harm",))
    assert ann.source_id == FIRST
    scenario = library.scenario(SCENARIO.lower())
    assert (scenario.codename, scenario.relationship) == ("horse_sale", Relationship.FRIEND)
    assert scenario.ages == ((18, 70), (18, 70))
    assert scenario.occupations == scenario.characters == ()
    assert library.relationship(SECOND.lower(), FIRST.lower()) is Relationship.FRIEND
    task = library.tasks["01hc"]
    seller, buyer = (view(cast_of(library, task), seat).text() for seat in (0, 1))
    assert "limps" in seller
    assert "Sell (Extra information: by noon)" in seller
    assert "limps" not in buyer
    assert "chalk" not in buyer.replace("secret: Eats chalk", "")  # its own secret is the only chalk it knows


def test_other_spellings_and_extra_keys_are_understood(tmp_path: Path) -> None:
    folder = published(
        tmp_path,
        agents=[
            agent("", "Ann", pk=FIRST, age="40", moral_values="Care/Harm, Loyalty/Betrayal", stars=5),
            agent(SECOND, "Bo", age=40.0, moral_values="['Care/Harm']", secret="Eats\u200b chalk.\u2028Often."),
        ],
        environments=[
            environment(
                agent_goals=["a", "b", "c"],
                relationship="RelationshipType.family_member",
                occupation_constraint="[['Smith'], [], ['Baker', 'Cook']]",
                agent_constraint=None,
                game_metadata={"mode": "x"},
            )
        ],
        relationships=[bond(agent1_id=None, agent_1_id=FIRST, relationship=4)],
    )
    library = read_published(folder)
    assert library.character(FIRST.lower()).moral_values == ("Care/Harm", "Loyalty/Betrayal")
    assert library.character(SECOND.lower()).age == 40
    assert library.character(SECOND.lower()).secret == "Eats chalk.\nOften."
    scenario = library.scenario(SCENARIO.lower())
    assert scenario.relationship is Relationship.FAMILY
    assert scenario.occupations == (("Smith",), (), ("Baker", "Cook"))
    assert scenario.ages == ((18, 70),) * 3
    assert library.bonds[0].relationship is Relationship.ROMANTIC


@pytest.mark.parametrize(
    ("file", "rows", "sentence"),
    [
        (AGENTS, [agent(FIRST, "")], ":1: first_name: missing or empty; expected a text"),
        (AGENTS, [agent("", "Ann")], ":1: agent_id: missing or empty; expected a text"),
        (AGENTS, [agent(FIRST, "Ann", age="old")], ":1: age: expected a whole number of years, found 'old'"),
        (AGENTS, [agent(FIRST, "Ann", age=400)], ":1: age is 400; expected 0 to 130 years"),
        (AGENTS, [agent(FIRST, "Ann", secret=7)], ":1: secret: expected text, found int"),
        (AGENTS, [agent(FIRST, "<script>")], ":1: first_name is '<script>'; expected one line without"),
        (AGENTS, [agent("../../etc", "Ann")], ":1: id is '../../etc'; expected 1 to 64"),
        (AGENTS, [agent(FIRST, "Ann"), agent(FIRST, "Bo")], f":2: '{FIRST}' is already used at "),
        (ENVIRONMENTS, [environment(agent_goals=None)], ":1: agent_goals: missing or empty; expected a list"),
        (ENVIRONMENTS, [environment(agent_goals=["alone"])], ":1: goals has 1 entries; expected one per seat"),
        (ENVIRONMENTS, [environment(agent_goals="Sell")], ":1: agent_goals: expected a list or the text of one"),
        (ENVIRONMENTS, [environment(relationship="7")], ":1: relationship: Invalid enum value 7; expected one of"),
        (ENVIRONMENTS, [environment(relationship="foe")], ":1: relationship: "),
        (ENVIRONMENTS, [environment(age_constraint="18+")], ":1: age_constraint: expected a list or the text of one"),
        (ENVIRONMENTS, [environment(age_constraint="[18, 70]")], ":1: age_constraint: expected a range per seat"),
        (ENVIRONMENTS, [environment(occupation_constraint="['a']")], ":1: occupation_constraint: expected a list of"),
        (RELATIONSHIPS, [bond(relationship=None)], ":1: relationship: missing or empty; expected 0 to 5"),
        (RELATIONSHIPS, [bond(agent2_id="01HX")], f":1: agent2_id: no character '01hx' in {AGENTS}"),
        (
            COMBINATIONS,
            [{"combo_id": "c", "env_id": "x", "agent_ids": [FIRST, SECOND]}],
            f":1: env_id: no scenario 'x' in {ENVIRONMENTS}",
        ),
        (
            COMBINATIONS,
            [{"combo_id": "c", "env_id": SCENARIO, "agent_ids": [FIRST]}],
            ":1: agent_ids: 1 named; the scenario has 2 seats",
        ),
        (
            COMBINATIONS,
            [{"combo_id": "c", "env_id": SCENARIO, "agent_ids": [FIRST, "x"]}],
            f":1: agent_ids: no character 'x' in {AGENTS}",
        ),
    ],
)
def test_an_error_names_file_line_and_field(tmp_path: Path, file: str, rows: Rows, sentence: str) -> None:
    published(tmp_path)
    (tmp_path / file).write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    with pytest.raises(ProfileError) as caught:
        read_published(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / file}{sentence}")


def test_a_list_instead_of_lines_is_refused(tmp_path: Path) -> None:
    published(tmp_path)
    (tmp_path / AGENTS).write_text('[{"first_name": "W", "last_name": "S"}]', encoding="utf-8")
    with pytest.raises(ProfileError, match=r"agent_profiles\.jsonl:1: expected an object, found list"):
        read_published(tmp_path)


def test_relationships_and_tasks_may_be_absent_and_the_shape_is_recognised(tmp_path: Path) -> None:
    assert not is_published(tmp_path)
    published(tmp_path)
    (tmp_path / RELATIONSHIPS).unlink()
    (tmp_path / COMBINATIONS).unlink()
    assert is_published(tmp_path)
    assert len(read_published(tmp_path).characters) == 2
