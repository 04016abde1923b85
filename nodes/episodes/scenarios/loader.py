"""The published Sotopia files (40 characters, 90 scenarios, 450 tasks) as a `Library`, for those who bring them.

A folder with `agent_profiles.jsonl`, `environment_profiles.jsonl` and, if present, `relationship_profiles.jsonl` and
`env_agent_combo_storages.jsonl`. Unknown keys are ignored; what we use is checked, and an error names file, line and
field. Identifiers are written in lower case here, the original stays in `source_id`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn

from nodes.episodes.scenarios.library import Library, make, raw_records, relationship_number
from nodes.episodes.scenarios.profiles import Bond, Character, ProfileError, Record, Scenario, Task

AGENTS = "agent_profiles.jsonl"
ENVIRONMENTS = "environment_profiles.jsonl"
RELATIONSHIPS = "relationship_profiles.jsonl"
COMBINATIONS = "env_agent_combo_storages.jsonl"

EMPTY = ("", "nan", "none", "null", "[]")
"""Texts that stand for no constraint."""
ANY_AGE = "[(18, 70), (18, 70)]"
"""The published default, written for two seats even where a scenario has more."""

INVISIBLE = dict.fromkeys((0x200B, 0x200E, 0x200F, 0xFEFF)) | dict.fromkeys((0x0D, 0x85, 0x2028, 0x2029), "\n")
"""Marks that word processors leave in texts and that mean nothing here: dropped, or turned into newlines."""

Row = Mapping[str, object]


def read_published(folder: Path) -> Library:
    """The library in a folder of published files; raises ProfileError naming file, line and field."""
    characters = _read(folder / AGENTS, _character, Character)
    scenarios = _read(folder / ENVIRONMENTS, _scenario, Scenario)
    bonds = _read(folder / RELATIONSHIPS, _bond, Bond) if (folder / RELATIONSHIPS).is_file() else []
    tasks = _read(folder / COMBINATIONS, _task, Task) if (folder / COMBINATIONS).is_file() else []
    known = {character.id for _, character in characters}
    seats = {scenario.id: scenario.seats for _, scenario in scenarios}
    for where, bond in bonds:
        for field, identifier in (("agent1_id", bond.first), ("agent2_id", bond.second)):
            if identifier not in known:
                _refuse(where, field, f"no character {identifier!r} in {AGENTS}")
    for where, task in tasks:
        if task.scenario not in seats:
            _refuse(where, "env_id", f"no scenario {task.scenario!r} in {ENVIRONMENTS}")
        if len(task.characters) != seats[task.scenario]:
            _refuse(where, "agent_ids", f"{len(task.characters)} named; the scenario has {seats[task.scenario]} seats")
        for identifier in task.characters:
            if identifier not in known:
                _refuse(where, "agent_ids", f"no character {identifier!r} in {AGENTS}")
    return Library(
        (character for _, character in characters),
        (scenario for _, scenario in scenarios),
        (bond for _, bond in bonds),
        (task for _, task in tasks),
        name=str(folder),
    )


def is_published(folder: Path) -> bool:
    """Whether a folder holds the published file names rather than ours."""
    return (folder / AGENTS).is_file() or (folder / ENVIRONMENTS).is_file()


def _read(path: Path, convert: Callable[[str, Row], Row], kind: type[Record]) -> list[tuple[str, Record]]:
    found: list[tuple[str, Record]] = []
    first_seen: dict[str, str] = {}
    for where, raw in raw_records(path, ""):
        if not isinstance(raw, dict):
            raise ProfileError(f"{where}: expected an object, found {type(raw).__name__}")
        record = make(where, convert(where, raw), kind)
        identifier = str(getattr(record, "id", ""))
        if identifier and identifier in first_seen:
            raise ProfileError(f"{where}: {record.source_id!r} is already used at {first_seen[identifier]}; rename one")
        first_seen[identifier] = where
        found.append((where, record))
    return found


def _character(where: str, row: Row) -> Row:
    identifier = _text(where, row, "agent_id", "pk")
    return {
        "id": identifier.lower(),
        "source_id": identifier,
        "first_name": _text(where, row, "first_name"),
        "last_name": _text(where, row, "last_name", default=""),
        "age": _whole(where, row, "age"),
        "gender": _text(where, row, "gender", default=""),
        "pronouns": _text(where, row, "gender_pronoun", default=""),
        "occupation": _text(where, row, "occupation", default=""),
        "public_info": _text(where, row, "public_info", default=""),
        "big_five": _text(where, row, "big_five", default=""),
        "moral_values": _words(where, row, "moral_values"),
        "schwartz_values": _words(where, row, "schwartz_personal_values"),
        "personality": _text(where, row, "personality_and_values", default=""),
        "decision_style": _text(where, row, "decision_making_style", default=""),
        "secret": _text(where, row, "secret", default=""),
        "mbti": _text(where, row, "mbti", default=""),
        "model": _text(where, row, "model_id", default=""),
        "tag": _text(where, row, "tag", default=""),
    }


def _scenario(where: str, row: Row) -> Row:
    identifier = _text(where, row, "env_id", "pk")
    goals = _list(where, row, "agent_goals")
    return {
        "id": identifier.lower(),
        "source_id": identifier,
        "codename": _text(where, row, "codename", default=""),
        "source": _text(where, row, "source", default=""),
        "context": _text(where, row, "scenario"),
        "goals": [_plain(where, "agent_goals", goal) for goal in goals],
        "relationship": _relationship(where, row, default=0),
        "ages": _ages(where, row, seats=len(goals)),
        "occupations": _by_seat(where, row, "occupation_constraint"),
        # Read like the occupations: one list per seat; the published set leaves it empty.
        "characters": [[text.lower() for text in allowed] for allowed in _by_seat(where, row, "agent_constraint")],
        "tag": _text(where, row, "tag", default=""),
    }


def _bond(where: str, row: Row) -> Row:
    return {
        "source_id": _text(where, row, "relationship_id", "pk", default=""),
        "first": _text(where, row, "agent1_id", "agent_1_id").lower(),
        "second": _text(where, row, "agent2_id", "agent_2_id").lower(),
        "relationship": _relationship(where, row),
        # The published stories tell secrets and were not used in the experiments: kept for readers, never shown.
        "note": _text(where, row, "background_story", default=""),
        "tag": _text(where, row, "tag", default=""),
    }


def _task(where: str, row: Row) -> Row:
    identifier = _text(where, row, "combo_id", "pk")
    return {
        "id": identifier.lower(),
        "source_id": identifier,
        "scenario": _text(where, row, "env_id").lower(),
        "characters": [_plain(where, "agent_ids", each).lower() for each in _list(where, row, "agent_ids")],
    }


def _refuse(where: str, field: str, problem: str) -> NoReturn:
    raise ProfileError(f"{where}: {field}: {problem}")


def _found(row: Row, *fields: str) -> object:
    return next((row[field] for field in fields if row.get(field) not in (None, "")), None)


def _plain(where: str, field: str, value: object) -> str:
    if not isinstance(value, str):
        _refuse(where, field, f"expected text, found {type(value).__name__}")
    return value.replace("\r\n", "\n").translate(INVISIBLE).strip()


def _text(where: str, row: Row, *fields: str, default: str | None = None) -> str:
    value = _found(row, *fields)
    if value is None:
        if default is None:
            _refuse(where, fields[0], "missing or empty; expected a text")
        return default
    return _plain(where, fields[0], value)


def _whole(where: str, row: Row, field: str) -> int:
    value = _found(row, field)
    if value is None:
        return 0
    if isinstance(value, str) and value.strip().isdecimal():
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        _refuse(where, field, f"expected a whole number of years, found {value!r:.70}")
    return value


def _relationship(where: str, row: Row, default: int | None = None) -> object:
    value = _found(row, "relationship")
    if value is None:
        if default is None:
            _refuse(where, "relationship", "missing or empty; expected 0 to 5")
        return default
    if isinstance(value, str):
        text = value.strip().lower().removeprefix("relationshiptype.")
        # Published code says romantic_relationship and family_member where we say romantic and family.
        text = text.removesuffix("_relationship").removesuffix("_member")
        return int(text) if text.isdecimal() else relationship_number(text)
    return value


def _list(where: str, row: Row, field: str) -> list[object]:
    value = _literal(where, row, field)
    if value is None:
        _refuse(where, field, "missing or empty; expected a list")
    if not isinstance(value, (list, tuple)):
        _refuse(where, field, f"expected a list, found {type(value).__name__}")
    return list(value)


def _words(where: str, row: Row, field: str) -> list[str]:
    value = _found(row, field)
    if value is None:
        return []
    if isinstance(value, str) and not value.lstrip().startswith("["):
        return [word.strip() for word in value.replace(";", ",").split(",") if word.strip()]
    return [_plain(where, field, word) for word in _list(where, row, field)]


def _literal(where: str, row: Row, field: str) -> object:
    """The value of a field that holds a list or the text of one; None where it stands for nothing."""
    value = _found(row, field)
    if not isinstance(value, str):
        return value
    if value.strip().lower() in EMPTY:
        return None
    try:
        parsed: object = ast.literal_eval(value.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        _refuse(where, field, f"expected a list or the text of one, found {value!r:.90}")
    return parsed


def _ages(where: str, row: Row, *, seats: int) -> list[tuple[object, ...]]:
    value = _literal(where, row, "age_constraint")
    if value is None:
        return []
    if row.get("age_constraint") == ANY_AGE:
        return [(18, 70)] * seats
    if not isinstance(value, (list, tuple)) or not all(isinstance(span, (list, tuple)) for span in value):
        _refuse(where, "age_constraint", f"expected a range per seat like {ANY_AGE}, found {value!r:.90}")
    return [tuple(span) for span in value]


def _by_seat(where: str, row: Row, field: str) -> list[list[str]]:
    value = _literal(where, row, field)
    if value is None:
        return []
    if not isinstance(value, (list, tuple)) or not all(isinstance(part, (list, tuple)) for part in value):
        _refuse(where, field, f"expected a list of names per seat, found {value!r:.90}")
    allowed = [[_plain(where, field, name) for name in part] for part in value]
    return allowed if any(allowed) else []
