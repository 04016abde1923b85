"""Library: files of profiles, and errors that name file, record and field."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodes.episodes.scenarios.library import Library, read_folder, read_records
from nodes.episodes.scenarios.profiles import Bond, Character, ProfileError, Relationship, Scenario, Task
from tests.support.sentences import pattern, sentence

ANN = '{"id": "ann", "first_name": "Ann"}'


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_jsonl_and_toml_say_the_same(tmp_path: Path) -> None:
    lines = write(tmp_path, "relationships.jsonl", '{"first":"a","second":"b","relationship":"friend"}\n\n')
    tables = write(tmp_path, "relationships.toml", '[[relationships]]\nfirst = "a"\nsecond = "b"\nrelationship = 3\n')
    assert read_records(lines, Bond) == read_records(tables, Bond)
    assert read_records(lines, Bond)[0].relationship is Relationship.FRIEND


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", f":2: {sentence('episodes.no_line_of_json')} "),
        ("[1]", f":2: {sentence('episodes.object_expected', what='character', found='list')}"),
        ('{"id": "bo"}', ":2 ('bo'): Object missing required field `first_name`"),
        ('{"id": "bo", "first_name": "Bo", "age": "7"}', ":2 ('bo'): age: Expected `int`, got `str`"),
        (
            '{"id": "bo", "first_name": "<i>"}',
            f":2 ('bo'): {sentence('episodes.one_line_expected', field='first_name', value='<i>')}",
        ),
        ('{"id": "bo", "first_name": "Bo", "zip": 1}', ":2 ('bo'): Object contains unknown field `zip`; known: age, "),
        (
            '{"id": "../bo", "first_name": "Bo"}',
            f":2 ('../bo'): {sentence('episodes.identifier_expected', value=repr('../bo'))}",
        ),
    ],
)
def test_an_error_names_file_line_record_and_field(tmp_path: Path, line: str, told: str) -> None:
    path = write(tmp_path, "characters.jsonl", f"{ANN}\n{line}\n")
    with pytest.raises(ProfileError) as caught:
        read_records(path, Character)
    assert str(caught.value).startswith(f"{path}{told}")


GAME = '{"id": "g", "context": "A game.", "goals": ["Win.", "Win."], "wins": [%s]}'


@pytest.mark.parametrize(
    ("win", "told"),
    [
        ('{"pattern": "("}', f"wins[0]: pattern '(' {sentence('episodes.no_regular_expression')}: "),
        ('{"pattern": " "}', f"wins[0]: pattern {sentence('episodes.is_empty')}"),
        ('{"pattern": "x", "kind": "shout"}', "wins[0].kind: Invalid enum value 'shout'"),
        ('{"pattern": "x", "by": 1}', "wins[0]: Object contains unknown field `by`"),
        ('{"pattern": "x", "winner": 2}', sentence("episodes.seat_expected", field="wins: winner", value=2, last=1)),
    ],
)
def test_a_win_check_that_cannot_work_is_refused_with_its_place(tmp_path: Path, win: str, told: str) -> None:
    path = write(tmp_path, "scenarios.jsonl", GAME % win)
    with pytest.raises(ProfileError) as caught:
        read_records(path, Scenario)
    assert str(caught.value).startswith(f"{path}:1 ('g'): {told}")


def test_a_win_check_names_pattern_seat_kind_and_winner(tmp_path: Path) -> None:
    path = write(tmp_path, "scenarios.jsonl", GAME % '{"pattern": "moon", "seat": 1, "kind": "action", "winner": 0}')
    (win,) = read_records(path, Scenario)[0].wins
    assert (win.pattern, win.seat, win.kind, win.winner) == ("moon", 1, "action", 0)


def test_an_unknown_relationship_lists_the_known_ones(tmp_path: Path) -> None:
    for value in ('"nemesis"', "9"):
        path = write(
            tmp_path, "scenarios.jsonl", f'{{"id":"s","context":"c","goals":["a","b"],"relationship":{value}}}'
        )
        with pytest.raises(ProfileError, match=r"relationship: .*stranger, know_by_name, acquaintance, friend"):
            read_records(path, Scenario)


def test_a_nested_error_names_its_place(tmp_path: Path) -> None:
    path = write(tmp_path, "scenarios.jsonl", '{"id":"s","context":"c","goals":["a","b"],"facts":[{"role":3},{}]}')
    with pytest.raises(ProfileError) as caught:
        read_records(path, Scenario)
    assert str(caught.value) == f"{path}:1 ('s'): facts[0].role: Expected `str`, got `int`"


def test_toml_records_are_counted_and_tables_are_known(tmp_path: Path) -> None:
    path = write(tmp_path, "characters.toml", '[[characters]]\nid = "ann"\n')
    with pytest.raises(ProfileError) as caught:
        read_records(path, Character)
    assert str(caught.value) == f"{path}: characters record 1 ('ann'): Object missing required field `first_name`"
    path = write(tmp_path, "characters.toml", '[[people]]\nid = "ann"\n')
    with pytest.raises(
        ProfileError, match="unknown table 'people'; known: characters, relationships, scenarios, tasks"
    ):
        read_records(path, Character)
    path = write(tmp_path, "characters.toml", "[[characters]\n")
    with pytest.raises(ProfileError, match=r"line 1, column [0-9]+: is no TOML: "):
        read_records(path, Character)
    path = write(tmp_path, "characters.toml", '[characters]\nid = "ann"\n')
    with pytest.raises(ProfileError, match="characters is one table; expected a list of tables"):
        read_records(path, Character)


def test_a_line_separator_inside_a_text_is_no_new_record(tmp_path: Path) -> None:
    path = write(tmp_path, "characters.jsonl", '{"id": "ann", "first_name": "Ann", "secret": "a\x85b"}\n')
    with pytest.raises(ProfileError, match=rf":1 \('ann'\): {pattern('episodes.control_character', code='0085')}"):
        read_records(path, Character)


def test_files_that_are_no_text_are_refused_by_name(tmp_path: Path) -> None:
    binary = tmp_path / "characters.jsonl"
    binary.write_bytes(b'{"id": "\xff"}')
    with pytest.raises(ProfileError, match=pattern("episodes.no_utf8", byte=8)):
        read_records(binary, Character)
    with pytest.raises(ProfileError, match=pattern("episodes.unknown_ending", ending=".csv")):
        read_records(write(tmp_path, "characters.csv", "id"), Character)
    with pytest.raises(ProfileError, match="cannot be read: No such file or directory"):
        read_records(tmp_path / "none.jsonl", Character)
    deep = write(tmp_path, "deep.jsonl", "[" * 100_000)
    with pytest.raises(ProfileError, match=":1: not a line of JSON"):
        read_records(deep, Character)


def test_a_folder_is_a_library(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match=r"none of characters\.jsonl, scenarios\.jsonl"):
        read_folder(tmp_path)
    write(tmp_path, "characters.jsonl", f'{ANN}\n{{"id": "bo", "first_name": "Bo"}}\n')
    write(tmp_path, "scenarios.toml", '[[scenarios]]\nid = "s"\ncontext = "c"\ngoals = ["a", "b"]\n')
    write(tmp_path, "relationships.jsonl", '{"first":"ann","second":"bo","relationship":"family"}')
    write(tmp_path, "tasks.jsonl", '{"id":"t","scenario":"s","characters":["bo","ann"]}')
    library = read_folder(tmp_path)
    assert library.relationship("bo", "ann") is Relationship.FAMILY
    assert library.tasks["t"].characters == ("bo", "ann")
    write(tmp_path, "characters.toml", "")
    with pytest.raises(ProfileError, match=r"both characters.jsonl and characters.toml are here; keep one"):
        read_folder(tmp_path)


def test_a_library_knows_what_it_holds() -> None:
    ann, bo = Character(id="ann", first_name="Ann"), Character(id="bo", first_name="Bo")
    scenario = Scenario(id="s", context="c", goals=("a", "b"))
    library = Library([ann, bo], [scenario])
    assert library.relationship("ann", "bo") is Relationship.STRANGER
    with pytest.raises(ProfileError, match="library: no character 'eve'; known: ann, bo"):
        library.character("eve")
    with pytest.raises(ProfileError, match="library: no scenario 'x'; known: s"):
        library.scenario("x")
    with pytest.raises(ProfileError, match=f"characters: {pattern('episodes.used_twice', name='ann')}"):
        Library([ann, ann])
    with pytest.raises(
        ProfileError, match=f"relationships: ann and eve: {pattern('episodes.no_character', name='eve')}"
    ):
        Library([ann], bonds=[Bond(first="ann", second="eve", relationship=Relationship.FRIEND)])
    with pytest.raises(ProfileError, match=f"tasks: t: scenario: {pattern('episodes.no_scenario', name='x')}"):
        Library([ann, bo], [scenario], tasks=[Task(id="t", scenario="x", characters=("ann", "bo"))])
    with pytest.raises(ProfileError, match="tasks: t: characters: 1 named; scenario s has 2 seats"):
        Library([ann, bo], [scenario], tasks=[Task(id="t", scenario="s", characters=("ann",))])
    with pytest.raises(ProfileError, match=f"tasks: t: characters: {pattern('episodes.no_character', name='eve')}"):
        Library([ann, bo], [scenario], tasks=[Task(id="t", scenario="s", characters=("ann", "eve"))])
