"""The published Sotopia files (40 characters, 90 scenarios, 450 tasks) as a `Library`, for those who bring them.

A folder with `agent_profiles.jsonl`, `environment_profiles.jsonl` and, if present, `relationship_profiles.jsonl` and
`env_agent_combo_storages.jsonl`. Unknown keys are ignored; what we use is checked, and an error names file, line and
field. A row that cannot be read is left out and named, with what depends on it; the rest is played. Identifiers are
written in lower case here, the original stays in `source_id`. What a scenario is about (a price, things to divide,
friends) follows from its `source`.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn

from nodes.episodes.scenarios.library import Library, json_lines, make, relationship_number
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

HARD = frozenset(
    """
    01H7VFHNV13MHN97GAH73E3KM8 01H7VFHN5WVC5HKKVBHZBA553R 01H7VFHN9W0WAFZCBT09PKJJNK 01H7VFHPDZVVCDZR3AARA547CY
    01H7VFHPQQQY6H4DNC6NBQ8XTG 01H7VFHN7WJK7VWVRZZTQ6DX9T 01H7VFHPS5WJW2694R1MNC8JFY 01H7VFHNN7XTR99319DS8KZCQM
    01H7VFHQ11NAMZS4A2RDGDB01V 01H7VFHPSWGDGEYRP63H2DJKV0 01H7VFHNF4G18PC9JHGRC8A1R6 01H7VFHNNYH3W0VRWVY178K2TK
    01H7VFHP8AN5643B0NR0NP00VE 01H7VFHN7A1ZX5KSMT2YN9RXC4
    """.lower().split()
)
"""The environments of the paper's hard subset, by their published identifiers."""


def read_published(folder: Path) -> Library:
    """The library in a folder of published files; raises ProfileError naming file, line and field."""
    left_out: list[str] = []
    characters = _read(folder / AGENTS, _character, Character, left_out)
    scenarios = _read(folder / ENVIRONMENTS, _scenario, Scenario, left_out)
    bonds = _read(folder / RELATIONSHIPS, _bond, Bond, left_out) if (folder / RELATIONSHIPS).is_file() else []
    tasks = _read(folder / COMBINATIONS, _task, Task, left_out) if (folder / COMBINATIONS).is_file() else []
    if not characters or not scenarios:
        raise ProfileError(left_out[0] if left_out else f"{folder}: holds no characters and scenarios")
    known = {character.id for _, character in characters}
    seats = {scenario.id: scenario.seats for _, scenario in scenarios}
    return Library(
        (character for _, character in characters),
        (scenario for _, scenario in scenarios),
        [bond for where, bond in bonds if _kept(left_out, _check_bond, where, bond, known)],
        [task for where, task in tasks if _kept(left_out, _check_task, where, task, known, seats)],
        name=str(folder),
        left_out=left_out,
    )


def _kept(left_out: list[str], check: Callable[..., None], *row: object) -> bool:
    """Whether a row is as it should be; where it is not, that is noted."""
    try:
        check(*row)
    except ProfileError as problem:
        left_out.append(str(problem))
        return False
    return True


def _check_bond(where: str, bond: Bond, known: set[str]) -> None:
    for field, identifier in (("agent1_id", bond.first), ("agent2_id", bond.second)):
        if identifier not in known:
            _refuse(where, field, f"no character {identifier!r} in {AGENTS}")


def _check_task(where: str, task: Task, known: set[str], seats: Mapping[str, int]) -> None:
    if task.scenario not in seats:
        _refuse(where, "env_id", f"no scenario {task.scenario!r} in {ENVIRONMENTS}")
    if len(task.characters) != seats[task.scenario]:
        _refuse(where, "agent_ids", f"{len(task.characters)} named; the scenario has {seats[task.scenario]} seats")
    for identifier in task.characters:
        if identifier not in known:
            _refuse(where, "agent_ids", f"no character {identifier!r} in {AGENTS}")


def is_published(folder: Path) -> bool:
    """Whether a folder holds the published file names rather than ours."""
    return (folder / AGENTS).is_file() or (folder / ENVIRONMENTS).is_file()


def _read(
    path: Path, convert: Callable[[str, Row], Row], kind: type[Record], left_out: list[str]
) -> list[tuple[str, Record]]:
    found: list[tuple[str, Record]] = []
    first_seen: dict[str, str] = {}
    for where, line in json_lines(path):
        try:
            try:
                raw = json.loads(line, parse_constant=lambda _: None)  # NaN, as tables are often saved
            except (ValueError, RecursionError) as problem:
                raise ProfileError(f"{where}: not a line of JSON: {problem}") from problem
            if not isinstance(raw, dict):
                raise ProfileError(f"{where}: expected an object, found {type(raw).__name__}")
            record = make(where, convert(where, raw), kind)
            identifier = str(getattr(record, "id", ""))
            if identifier and identifier in first_seen:
                raise ProfileError(
                    f"{where}: {record.source_id!r} is already used at {first_seen[identifier]}; rename one"
                )
        except ProfileError as problem:
            left_out.append(str(problem))
            continue
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
        **_matter(
            _text(where, row, "source", default=""), _text(where, row, "scenario"), [str(goal) for goal in goals]
        ),
    }


KINDS = {
    "craigslist_bargains": "negotiation",
    "deal-or-no-deal": "negotiation",
    "mutual_friends": "information-seeking",
    "persuation_for_good": "persuasion",
    "persuasion_for_good": "persuasion",
}
"""What kind of scenario a published source holds, where all of it is of one kind."""

_PRICE = re.compile(r"\$\s?(\d[\d,]*(?:\.\d+)?)")
_ITEM = re.compile(r"\b(\d+|an?|one|two|three|four|five|six) ([a-z]+?)s?\b")
_COUNTS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_FRIEND = re.compile(r"^\s*([A-Z][\w' -]*?):\s*(.+?)\s*$", re.M)


def _matter(source: str, context: str, goals: list[str]) -> dict[str, object]:
    """Kind, deal and facts, as far as the source's fixed wording tells them."""
    found: dict[str, object] = {"kind": KINDS.get(source, "")}
    if source == "craigslist_bargains" and len(goals) == 2:
        prices = [_PRICE.search(text) for text in (context, *goals)]
        if all(prices):
            opening, *targets = [float(price[1].replace(",", "")) for price in prices if price]
            is_buyer = [bool(re.search(r"\bbuyer\b|\bbuy\b|\bpurchas", goal)) for goal in goals]
            if sum(is_buyer) == 1:
                found["deal"] = {
                    "about": "the price",
                    "unit": "USD",
                    "opening": opening,
                    "step": max(1.0, opening // 100),
                }
                found["facts"] = [
                    {"role": "buyer", "wants": "low", "target": target, "reserve": max(target, opening)}
                    if buys
                    else {"role": "seller", "wants": "high", "target": max(target, opening), "reserve": target}
                    for target, buys in zip(targets, is_buyer, strict=True)
                ]
    elif source == "deal-or-no-deal":
        items = {name: _COUNTS.get(count) or int(count) for count, name in _ITEM.findall(context)}
        items = {name: count for name, count in items.items() if any(name in goal.lower() for goal in goals)}
        worth = [{name: _points(goal, name) for name in items} for goal in goals]
        if len(items) > 1 and all(points is not None for one in worth for points in one.values()):
            found["deal"] = {"about": "the things", "items": items}
            found["facts"] = [{"worth": one} for one in worth]
    elif source == "mutual_friends":
        knows = [dict(_FRIEND.findall(goal.partition("following friends:")[2])) for goal in goals]
        if all(knows):
            found["facts"] = [{"knows": one} for one in knows]
    return found


def _points(goal: str, item: str) -> float | None:
    said = re.search(rf"\b{item}s?\b[^.;,\d]{{0,30}}(\d+(?:\.\d+)?) points?", goal, re.I)
    return float(said[1]) if said else None


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
        text = text.removesuffix(".0")
        return int(text) if text.isdecimal() else relationship_number(text)
    return int(value) if isinstance(value, float) and value.is_integer() else value


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
    if bare := re.fullmatch(r"\s*\[([^\[\]()'\"]+)\]\s*", value):  # [actor, actor], as one row has it
        return [part.strip() for part in bare[1].split(",") if part.strip()]
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
    if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
        value = [[part] for part in value]  # one for each seat
    if not isinstance(value, (list, tuple)) or not all(isinstance(part, (list, tuple)) for part in value):
        _refuse(where, field, f"expected a list of names per seat, found {value!r:.90}")
    allowed = [[_plain(where, field, name) for name in part] for part in value]
    return allowed if any(allowed) else []
