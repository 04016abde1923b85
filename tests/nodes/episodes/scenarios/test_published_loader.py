"""Loader of the published files, on small files of the same shape (the content is ours)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodes.episodes.command import main
from nodes.episodes.scenarios.library import (
    AGENTS,
    COMBINATIONS,
    ENVIRONMENTS,
    HARD,
    RELATIONSHIPS,
    is_published,
    read_published,
)
from nodes.episodes.scenarios.profiles import ProfileError, Relationship
from nodes.episodes.scenarios.visibility import cast_of, view
from tests.support.sentences import pattern, sentence

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
    ("file", "rows", "told"),
    [
        (AGENTS, [agent(FIRST, "")], f":1: first_name: {sentence('episodes.text_is_missing')}"),
        (AGENTS, [agent("", "Ann")], f":1: agent_id: {sentence('episodes.text_is_missing')}"),
        (AGENTS, [agent(FIRST, "Ann", age="old")], f":1: age: {sentence('episodes.years_expected', found='old')}"),
        (AGENTS, [agent(FIRST, "Ann", age=400)], f":1: {sentence('episodes.age_expected', value=400)}"),
        (AGENTS, [agent(FIRST, "Ann", secret=7)], f":1: secret: {sentence('episodes.text_expected', found='int')}"),
        (
            AGENTS,
            [agent(FIRST, "<script>")],
            f":1: {sentence('episodes.one_line_expected', field='first_name', value='<script>')}",
        ),
        (
            AGENTS,
            [agent("../../etc", "Ann")],
            f":1: {sentence('episodes.identifier_expected', value=repr('../../etc'))}",
        ),
        (AGENTS, [agent(FIRST, "Ann"), agent(FIRST, "Bo")], f":2: {sentence('episodes.used_already', name=FIRST)}"),
        (ENVIRONMENTS, [environment(agent_goals=None)], f":1: agent_goals: {sentence('episodes.list_is_missing')}"),
        (ENVIRONMENTS, [environment(agent_goals=["alone"])], f":1: {sentence('episodes.one_per_seat', number=1)}"),
        (ENVIRONMENTS, [environment(agent_goals="Sell")], f":1: agent_goals: {sentence('episodes.list_expected')}"),
        (ENVIRONMENTS, [environment(relationship="7")], ":1: relationship: Invalid enum value 7; expected one of"),
        (ENVIRONMENTS, [environment(relationship="foe")], ":1: relationship: "),
        (
            ENVIRONMENTS,
            [environment(age_constraint="18+")],
            f":1: age_constraint: {sentence('episodes.list_expected')}",
        ),
        (
            ENVIRONMENTS,
            [environment(age_constraint="[18, 70]")],
            f":1: age_constraint: {sentence('episodes.range_per_seat')}",
        ),
        (RELATIONSHIPS, [bond(relationship=None)], f":1: relationship: {sentence('episodes.number_is_missing')}"),
        (
            RELATIONSHIPS,
            [bond(agent2_id="01HX")],
            f":1: agent2_id: {sentence('episodes.not_in_file', what='character', name='01hx', file=AGENTS)}",
        ),
        (
            COMBINATIONS,
            [{"combo_id": "c", "env_id": "x", "agent_ids": [FIRST, SECOND]}],
            f":1: env_id: {sentence('episodes.not_in_file', what='scenario', name='x', file=ENVIRONMENTS)}",
        ),
        (
            COMBINATIONS,
            [{"combo_id": "c", "env_id": SCENARIO, "agent_ids": [FIRST]}],
            f":1: agent_ids: 1 {sentence('episodes.wrong_seats', seats=2)}",
        ),
        (
            COMBINATIONS,
            [{"combo_id": "c", "env_id": SCENARIO, "agent_ids": [FIRST, "x"]}],
            f":1: agent_ids: {sentence('episodes.not_in_file', what='character', name='x', file=AGENTS)}",
        ),
    ],
)
def test_a_row_that_cannot_be_read_is_named_by_file_line_and_field(
    tmp_path: Path, file: str, rows: Rows, told: str
) -> None:
    published(tmp_path)
    (tmp_path / file).write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    try:
        named = read_published(tmp_path).left_out[0]
    except ProfileError as problem:  # where nothing is left of the set
        named = str(problem)
    assert named.startswith(f"{tmp_path / file}{told}")


def test_bad_rows_are_left_out_with_what_depends_on_them_and_the_rest_is_played(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = "01H0000000000000000000000X"
    folder = published(
        tmp_path,
        environments=[
            environment(occupation_constraint="[smith, smith]"),
            environment(env_id=bad, codename="broken", relationship="foe"),
        ],
        relationships=[bond(), bond(agent2_id="01HX")],
        combinations=[
            {"combo_id": "01HC", "env_id": SCENARIO, "agent_ids": [SECOND, FIRST]},
            {"combo_id": "01HD", "env_id": bad, "agent_ids": [SECOND, FIRST]},
        ],
    )
    library = read_published(folder)
    assert list(library.scenarios) == [SCENARIO.lower()]
    assert library.scenario(SCENARIO.lower()).occupations == (("smith",), ("smith",))
    assert [len(library.bonds), len(library.tasks), len(library.left_out)] == [1, 1, 3]
    for number, name in enumerate((SCENARIO, "horse_sale", "01HC")):
        out = str(tmp_path / f"{number}.sqlite")
        assert main(["run", "--tasks", str(folder), "--task", name, "--out", out]) == 0
        shown = capsys.readouterr()
        assert "horse_sale s0" in shown.out
        assert shown.err.count("left out: ") == 3


def test_a_line_that_is_no_json_is_left_out_and_a_nan_is_nothing(tmp_path: Path) -> None:
    folder = published(
        tmp_path,
        agents=[agent(FIRST, "Ann", mbti=float("nan")), agent(SECOND, "Bo")],
        environments=[environment(occupation_constraint=float("nan"), relationship=3.0)],
        relationships=[bond(relationship="3.0")],
    )
    with (folder / AGENTS).open("a", encoding="utf-8") as file:
        file.write('\n{"agent_id": "cut o')
    library = read_published(folder)
    assert len(library.characters) == 2
    assert library.character(FIRST.lower()).mbti == ""
    assert library.scenario(SCENARIO.lower()).relationship is library.bonds[0].relationship is Relationship.FRIEND
    assert [text.partition(": not a line")[0] for text in library.left_out] == [f"{folder / AGENTS}:3"]


def test_a_published_price_and_published_things_are_known_from_their_source(tmp_path: Path) -> None:
    price = environment(
        env_id="01HA",
        source="craigslist_bargains",
        scenario="A saddle is sold for $550.0.",
        agent_goals=[
            "You are the buyer, with a target price of $418.0.",
            "As the seller, your target price is $312.0.",
        ],
    )
    things = environment(
        env_id="01HB",
        source="deal-or-no-deal",
        scenario="They have 3 apples, 2 hats, and 1 ball to divide.",
        agent_goals=[
            "Maximize your points (apples give you 2 points each, hats 1 point each, and the ball gives you 4 points)",
            "Maximize your points (an apple is worth 1 point, hats give you 3 points, and the ball 1 point)",
        ],
    )
    friends = environment(
        env_id="01HF",
        source="mutual_friends",
        agent_goals=["You know the following friends: \n Al Oe: School: X \n Bea: Y", "following friends:\n Bea: Z"],
    )
    library = read_published(published(tmp_path, environments=[price, things, friends]))
    saddle, divided, party = library.scenarios.values()
    assert saddle.deal is not None
    assert (saddle.kind, saddle.deal.unit, saddle.deal.opening) == ("negotiation", "USD", 550.0)
    assert [(one.wants, one.target) for one in saddle.facts] == [("low", 418.0), ("high", 550.0)]
    assert divided.deal is not None
    assert divided.deal.items == {"apple": 3, "hat": 2, "ball": 1}
    assert divided.facts[1].worth == {"apple": 1.0, "hat": 3.0, "ball": 1.0}
    assert (party.kind, list(party.facts[0].knows)) == ("information-seeking", ["Al Oe", "Bea"])


def test_the_hard_subset_is_of_the_published_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hard = sorted(HARD)[0].upper()
    tasks: Rows = [
        {"combo_id": f"01H{number}", "env_id": name, "agent_ids": [FIRST, SECOND]}
        for number, name in enumerate((SCENARIO, hard))
    ]
    folder = published(tmp_path, environments=[environment(), environment(env_id=hard)], combinations=tasks)
    monkeypatch.setenv("SOTOPIA_DATA", str(folder))
    assert main(["run", "--tasks", "hard", "--out", str(tmp_path / "run.sqlite")]) == 0
    assert "1 of 1 episodes done" in capsys.readouterr().out
    monkeypatch.delenv("SOTOPIA_DATA")
    assert main(["run", "--tasks", "hard"]) == 2
    assert sentence("episodes.published_folder") in capsys.readouterr().err


def test_lint_names_every_row_that_was_left_out_and_scenarios_by_their_codenames(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad: Rows = [environment(env_id=f"01HB{n}", relationship="99") for n in range(7)]
    folder = published(tmp_path, environments=[environment(codename="gate_of_rain"), *bad])
    assert main(["scenarios", "lint", "--tasks", str(folder)]) == 1
    out, err = capsys.readouterr()
    assert sum("left-out: " in line and "relationship" in line for line in out.splitlines()) == 7
    assert f"gate_of_rain ({SCENARIO.lower()}): " in out
    assert f"2 {sentence('episodes.more_rows')} {folder}" in err


@pytest.mark.parametrize("command", ["sample", "run"])
def test_a_scenario_that_nobody_can_be_cast_for_is_left_out_of_a_draw_and_not_the_set(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nobody = environment(env_id="01HN", codename="movie_night", occupation_constraint="[actor, actor]")
    folder = published(tmp_path, environments=[nobody, environment()], relationships=[bond()])
    out = [] if command == "sample" else ["--out", str(tmp_path / "run.sqlite")]
    assert main([command, "--tasks", str(folder), *out]) == 0
    told = capsys.readouterr()
    few = sentence("episodes.few_casts", scenario="movie_night (01hn)", casts=0, asked=1)
    (line,) = told.err.splitlines()
    assert line.startswith(f"{few}; {sentence('episodes.nobody_fits', seat=0)}"), "the constraint is named"
    assert SCENARIO.lower() in told.out if command == "sample" else "1 of 1 episodes done" in told.out


def test_a_task_that_is_misspelt_is_told_what_was_meant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cast: Rows = [{"combo_id": "01HC", "env_id": SCENARIO, "agent_ids": [FIRST, SECOND]}]
    folder = published(tmp_path, environments=[environment(codename="gate_of_rain")], combinations=cast)
    assert main(["run", "--tasks", str(folder), "--task", "gate_of_rian"]) == 2
    assert "did you mean 'gate_of_rain'?" in capsys.readouterr().err


def test_a_list_instead_of_lines_is_refused(tmp_path: Path) -> None:
    published(tmp_path)
    (tmp_path / AGENTS).write_text('[{"first_name": "W", "last_name": "S"}]', encoding="utf-8")
    with pytest.raises(
        ProfileError, match=rf"agent_profiles\.jsonl:1: {pattern('episodes.plain_object_expected', found='list')}"
    ):
        read_published(tmp_path)


def test_relationships_and_tasks_may_be_absent_and_the_shape_is_recognised(tmp_path: Path) -> None:
    assert not is_published(tmp_path)
    published(tmp_path)
    (tmp_path / RELATIONSHIPS).unlink()
    (tmp_path / COMBINATIONS).unlink()
    assert is_published(tmp_path)
    assert len(read_published(tmp_path).characters) == 2
