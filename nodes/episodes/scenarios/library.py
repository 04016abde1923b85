"""Characters, scenarios, bonds and tasks together: read from JSONL or TOML files, checked, looked up by identifier.

Or from the published Sotopia files (40 characters, 90 scenarios, 450 tasks), for those who bring them: a folder with
`agent_profiles.jsonl`, `environment_profiles.jsonl` and, if present, `relationship_profiles.jsonl` and
`env_agent_combo_storages.jsonl`. Unknown keys are ignored; what we use is checked, and an error names file, line and
field. A row that cannot be read is left out and named, with what depends on it; the rest is played. Identifiers are
written in lower case here, the original stays in `source_id`. What a scenario is about (a price, things to divide,
friends) follows from its `source`.
"""

from __future__ import annotations

import ast
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NoReturn

import msgspec

from nodes.episodes.scenarios.profiles import Bond, Character, ProfileError, Record, Relationship, Scenario, Task
from runtime.errors import UserError, choices
from runtime.serialization.toml_errors import guess, parse_toml

LARGEST_FILE_BYTES = 64 * 2**20
DATA = Path(__file__).parent / "data"
TABLES: dict[str, type[Character] | type[Scenario] | type[Bond] | type[Task]] = {
    "characters": Character,
    "scenarios": Scenario,
    "relationships": Bond,
    "tasks": Task,
}
"""File names (without ending) in a folder, and table names in one TOML file."""


class Library:
    """Everything that episodes are cast from; looking up what is not there raises ProfileError with what is."""

    def __init__(
        self,
        characters: Iterable[Character] = (),
        scenarios: Iterable[Scenario] = (),
        bonds: Iterable[Bond] = (),
        tasks: Iterable[Task] = (),
        *,
        name: str = "library",
        left_out: Iterable[str] = (),
    ) -> None:
        self.name = name
        self.left_out = tuple(left_out)  # rows of a published set that could not be read, as sentences
        self.characters = {character.id: character for character in _unique(characters, name, "characters")}
        self.scenarios = {scenario.id: scenario for scenario in _unique(scenarios, name, "scenarios")}
        self.tasks = {task.id: task for task in _unique(tasks, name, "tasks")}
        self.bonds = tuple(bonds)
        self._bond: dict[frozenset[str], Bond] = {}
        for bond in self.bonds:
            for end in (bond.first, bond.second):
                if end not in self.characters:
                    raise ProfileError(
                        f"{name}: relationships: {bond.first} and {bond.second}: no character {end!r} in this library"
                    )
            # Where a data set says two things about a pair, the first one counts, as a list read from the top would.
            self._bond.setdefault(frozenset((bond.first, bond.second)), bond)
        for task in self.tasks.values():
            self._check_task(task)

    def character(self, identifier: str) -> Character:
        """The character of that identifier."""
        return self._found("character", self.characters, identifier)

    def scenario(self, identifier: str) -> Scenario:
        """The scenario of that identifier."""
        return self._found("scenario", self.scenarios, identifier)

    def _found(self, what: str, known: Mapping[str, Record], identifier: str) -> Record:
        if identifier not in known:
            raise ProfileError(f"{self.name}: no {what} {identifier[:70]!r}; known: {choices(known)}")
        return known[identifier]

    def bond(self, first: str, second: str) -> Bond | None:
        """What binds two characters; None where nothing is written about them."""
        return self._bond.get(frozenset((first, second)))

    def relationship(self, first: str, second: str) -> Relationship:
        """How two characters stand to each other; strangers where nothing is written about them."""
        bond = self.bond(first, second)
        return bond.relationship if bond else Relationship.STRANGER

    def _check_task(self, task: Task) -> None:
        where = f"{self.name}: tasks: {task.id}"
        scenario = self.scenarios.get(task.scenario)
        if scenario is None:
            raise ProfileError(f"{where}: scenario: no scenario {task.scenario!r} in this library")
        if len(task.characters) != scenario.seats:
            raise ProfileError(
                f"{where}: characters: {len(task.characters)} named; scenario {scenario.id} has {scenario.seats} seats"
            )
        for identifier in task.characters:
            if identifier not in self.characters:
                raise ProfileError(f"{where}: characters: no character {identifier!r} in this library")


@cache
def starter() -> Library:
    """The set that comes with the package: 24 characters, 45 scenarios, our own writing."""
    return read_folder(DATA, name="starter")


def read_folder(folder: Path, *, name: str = "") -> Library:
    """A library from `characters`, `scenarios`, `relationships` and `tasks` (.jsonl or .toml); absent ones are empty.

    Raises ProfileError for a folder with none of them.
    """
    found = {stem: path for stem in TABLES if (path := _present(folder, stem)) is not None}
    if not found:
        raise ProfileError(f"{folder}: none of {', '.join(f'{stem}.jsonl' for stem in TABLES)} (or .toml) is here")

    def rows(kind: type[Record]) -> list[Record]:
        path = found.get(_table_of(kind))
        return [] if path is None else read_records(path, kind)

    return Library(rows(Character), rows(Scenario), rows(Bond), rows(Task), name=name or str(folder))


def read_records(path: Path, kind: type[Record]) -> list[Record]:
    """All records of one kind in a .jsonl or .toml file; raises ProfileError naming file, record and field."""
    return [make(where, raw, kind) for where, raw in raw_records(path, _table_of(kind))]


def make(where: str, raw: object, kind: type[Record]) -> Record:
    """A checked record of plain data; raises ProfileError that begins with `where`."""
    try:
        return msgspec.convert(_numbered(raw), kind)
    except msgspec.ValidationError as error:
        raise ProfileError(f"{where}: {_sentence(str(error), raw, kind)}") from error


def raw_records(path: Path, table: str) -> Iterator[tuple[str, object]]:
    """Where each record stands ("file:line" or "file: record 3") and its plain data; raises ProfileError."""
    if path.suffix == ".toml":
        text = _read_text(path)
        try:
            document = parse_toml(text, path)
        except UserError as error:
            raise ProfileError(str(error)) from error
        unknown = sorted(set(document) - set(TABLES))
        if unknown:
            raise ProfileError(f"{path}: unknown table {unknown[0]!r}; {guess(unknown[0], TABLES)}")
        rows = document.get(table, [])
        if not isinstance(rows, list):
            raise ProfileError(f"{path}: {table} is one table; expected a list of tables ([[{table}]])")
        for number, row in enumerate(rows, start=1):
            yield _where(f"{path}: {table} record {number}", row), row
        return
    for where, line in json_lines(path, _read_text(path)):
        try:
            row = msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ProfileError(f"{where}: not a line of JSON: {error}") from error
        yield _where(where, row), row


def json_lines(path: Path, text: str) -> Iterator[tuple[str, str]]:
    """The lines of such a file that hold anything, each after "file:line"."""
    # Not splitlines(): it also splits at separators that JSON allows inside a string.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield f"{path}:{number}", line


def _read_text(path: Path) -> str:
    if path.suffix not in (".jsonl", ".toml"):
        raise ProfileError(f"{path}: unknown ending {path.suffix!r}; expected .jsonl or .toml")
    try:
        size = path.stat().st_size
        if size > LARGEST_FILE_BYTES:
            raise ProfileError(f"{path}: {size} bytes; expected at most {LARGEST_FILE_BYTES}")
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ProfileError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ProfileError(f"{path}: not UTF-8 at byte {error.start}; save the file as UTF-8") from error


def _present(folder: Path, stem: str) -> Path | None:
    found = [path for ending in (".jsonl", ".toml") if (path := folder / f"{stem}{ending}").is_file()]
    if len(found) > 1:
        raise ProfileError(f"{folder}: both {found[0].name} and {found[1].name} are here; keep one")
    return found[0] if found else None


def _table_of(kind: type[Record]) -> str:
    return next(table for table, each in TABLES.items() if each is kind)


def _where(place: str, row: object) -> str:
    identifier = row.get("id") if isinstance(row, dict) else None
    return f"{place} ({identifier[:64]!r})" if isinstance(identifier, str) else place


def _numbered(raw: object) -> object:
    """The raw record with relationships written as words ("friend") turned into their numbers."""
    if not isinstance(raw, dict):
        return raw
    numbered = dict(raw)
    if "relationship" in numbered:
        numbered["relationship"] = relationship_number(numbered["relationship"])
    if isinstance(numbered.get("pairs"), list):
        numbered["pairs"] = [_numbered(pair) for pair in numbered["pairs"]]
    return numbered


def relationship_number(value: object) -> object:
    """The number of a relationship's word; anything else comes back as it is, for the type check to judge."""
    if isinstance(value, str) and value.strip().upper() in Relationship.__members__:
        return int(Relationship[value.strip().upper()])
    return value


def _sentence(problem: str, raw: object, kind: type[Record]) -> str:
    """Msgspec's message with the field first: "age: Expected `int`, got `str`"."""
    if not isinstance(raw, dict):
        return f"expected an object with the fields of a {kind.__name__.lower()}, found {type(raw).__name__}"
    text, _, path = problem.partition(" - at `$")
    field = path.rstrip("`").lstrip(".")
    if "enum value" in text or field.endswith("relationship"):
        text = f"{text}; expected one of {', '.join(each.word for each in Relationship)} or its number"
    if "unknown field" in text and not field:
        text = f"{text}; {guess(text.split('`')[1], kind.__struct_fields__)}"
    return f"{field}: {text}" if field else text


def _unique(records: Iterable[Record], name: str, table: str) -> Iterator[Record]:
    seen: set[str] = set()
    for record in records:
        identifier = str(getattr(record, "id", ""))
        if identifier in seen:
            raise ProfileError(f"{name}: {table}: the identifier {identifier!r} is used twice; rename one")
        seen.add(identifier)
        yield record


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
    bonds = _read(folder / RELATIONSHIPS, _bond, Bond, left_out) if (folder / RELATIONSHIPS).is_file() else {}
    tasks = _read(folder / COMBINATIONS, _task, Task, left_out) if (folder / COMBINATIONS).is_file() else {}
    if not characters or not scenarios:
        raise ProfileError(left_out[0] if left_out else f"{folder}: holds no characters and scenarios")
    known = {character.id for character in characters.values()}
    seats = {scenario.id: scenario.seats for scenario in scenarios.values()}
    problems = {
        where: _unknown(known, [("agent1_id", bond.first), ("agent2_id", bond.second)]) for where, bond in bonds.items()
    }
    for where, task in tasks.items():
        count = seats.get(task.scenario)
        problems[where] = _unknown(known, [("agent_ids", name) for name in task.characters])
        if count is None:
            problems[where] = f"env_id: no scenario {task.scenario!r} in {ENVIRONMENTS}"
        elif len(task.characters) != count:
            problems[where] = f"agent_ids: {len(task.characters)} named; the scenario has {count} seats"
    left_out += [f"{where}: {problem}" for where, problem in problems.items() if problem]
    fine_bonds = [bond for where, bond in bonds.items() if not problems[where]]
    fine_tasks = [task for where, task in tasks.items() if not problems[where]]
    both = characters.values(), scenarios.values()
    return Library(*both, fine_bonds, fine_tasks, name=str(folder), left_out=left_out)


def _unknown(known: set[str], named: Sequence[tuple[str, str]]) -> str:
    """Which field names nobody, as a sentence; "" where all are known."""
    unknown = ((field, name) for field, name in named if name not in known)
    return next((f"{field}: no character {name!r} in {AGENTS}" for field, name in unknown), "")


def is_published(folder: Path) -> bool:
    """Whether a folder holds the published file names rather than ours."""
    return (folder / AGENTS).is_file() or (folder / ENVIRONMENTS).is_file()


def _read(
    path: Path, convert: Callable[[PublishedRow], Mapping[str, object]], kind: type[Record], left_out: list[str]
) -> dict[str, Record]:
    """The records that can be read, by where they stand."""
    found: dict[str, Record] = {}
    first_seen: dict[str, str] = {}
    for where, line in json_lines(path, _read_text(path)):
        try:
            try:
                raw = json.loads(line, parse_constant=lambda _: None)  # NaN, as tables are often saved
            except (ValueError, RecursionError) as problem:
                raise ProfileError(f"{where}: not a line of JSON: {problem}") from problem
            if not isinstance(raw, dict):
                raise ProfileError(f"{where}: expected an object, found {type(raw).__name__}")
            record = make(where, convert(PublishedRow(where, raw)), kind)
            identifier = str(getattr(record, "id", ""))
            if identifier and (first := first_seen.setdefault(identifier, where)) != where:
                raise ProfileError(f"{where}: {record.source_id!r} is already used at {first}; rename one")
        except ProfileError as problem:
            left_out.append(str(problem))
            continue
        found[where] = record
    return found


AGENT_FIELDS = {
    "first_name": "first_name", "last_name": "last_name", "age": "age", "occupation": "occupation", "gender": "gender",
    "pronouns": "gender_pronoun", "public_info": "public_info", "big_five": "big_five", "moral_values": "moral_values",
    "schwartz_values": "schwartz_personal_values", "personality": "personality_and_values", "mbti": "mbti",
    "decision_style": "decision_making_style", "secret": "secret", "model": "model_id", "tag": "tag",
}  # fmt: skip
"""Our fields of a character, and the published ones."""


def _character(row: PublishedRow) -> Mapping[str, object]:
    special = {
        "first_name": row.text("first_name"),
        "age": row.whole("age"),
        "moral_values": row.words("moral_values"),
        "schwartz_values": row.words("schwartz_personal_values"),
    }
    texts = {ours: row.text(theirs, default="") for ours, theirs in AGENT_FIELDS.items() if ours not in special}
    return row.named("agent_id") | texts | special


def _scenario(row: PublishedRow) -> Mapping[str, object]:
    goals, source, context = row.list("agent_goals"), row.text("source", default=""), row.text("scenario")
    return {
        **row.named("env_id"),
        "codename": row.text("codename", default=""),
        "source": source,
        "context": context,
        "goals": [row.plain("agent_goals", goal) for goal in goals],
        "relationship": row.relationship(default=0),
        "ages": row.ages(len(goals)),
        "occupations": row.by_seat("occupation_constraint"),
        # Read like the occupations: one list per seat; the published set leaves it empty.
        "characters": [[text.lower() for text in allowed] for allowed in row.by_seat("agent_constraint")],
        "tag": row.text("tag", default=""),
        **_matter(source, context, [str(goal) for goal in goals]),
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
        prices = [float(price[1].replace(",", "")) for text in (context, *goals) if (price := _PRICE.search(text))]
        is_buyer = [bool(re.search(r"\bbuyer\b|\bbuy\b|\bpurchas", goal)) for goal in goals]
        if len(prices) == 3 and sum(is_buyer) == 1:
            opening, *targets = prices
            found["deal"] = {"about": "the price", "unit": "USD", "opening": opening, "step": max(1.0, opening // 100)}
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


def _bond(row: PublishedRow) -> Mapping[str, object]:
    return {
        "source_id": row.text("relationship_id", "pk", default=""),
        "first": row.text("agent1_id", "agent_1_id").lower(),
        "second": row.text("agent2_id", "agent_2_id").lower(),
        "relationship": row.relationship(),
        # The published stories tell secrets and were not used in the experiments: kept for readers, never shown.
        "note": row.text("background_story", default=""),
        "tag": row.text("tag", default=""),
    }


def _task(row: PublishedRow) -> Mapping[str, object]:
    people = [row.plain("agent_ids", each).lower() for each in row.list("agent_ids")]
    return row.named("combo_id") | {"scenario": row.text("env_id").lower(), "characters": people}


class PublishedRow:
    """One row, read field by field. Raises ProfileError naming the field."""

    def __init__(self, where: str, fields: Mapping[str, object]) -> None:
        self._where, self._fields = where, fields

    def refuse(self, field: str, problem: str) -> NoReturn:
        """Raise ProfileError."""
        raise ProfileError(f"{self._where}: {field}: {problem}")

    def found(self, *fields: str) -> object:
        """The first of these that holds anything; None where none does."""
        return next((self._fields[field] for field in fields if self._fields.get(field) not in (None, "")), None)

    def plain(self, field: str, value: object) -> str:
        """A text without invisible marks."""
        if not isinstance(value, str):
            self.refuse(field, f"expected text, found {type(value).__name__}")
        return value.replace("\r\n", "\n").translate(INVISIBLE).strip()

    def text(self, *fields: str, default: str | None = None) -> str:
        """The text in the first of these fields."""
        value = self.found(*fields)
        if value is None and default is None:
            self.refuse(fields[0], "missing or empty; expected a text")
        return default or "" if value is None else self.plain(fields[0], value)

    def named(self, field: str) -> dict[str, object]:
        """The identifier, ours in lower case."""
        identifier = self.text(field, "pk")
        return {"id": identifier.lower(), "source_id": identifier}

    def whole(self, field: str) -> int:
        """A number of years; 0 where none is told."""
        value = self.found(field)
        if isinstance(value, str) and value.strip().isdecimal():
            return int(value)
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if isinstance(value, bool) or not isinstance(value, int | None):
            self.refuse(field, f"expected a whole number of years, found {value!r:.70}")
        return value or 0

    def relationship(self, default: int | None = None) -> object:
        """A number from 0 to 5, where the published code writes it as one of several words."""
        value = self.found("relationship")
        if value is None:
            if default is None:
                self.refuse("relationship", "missing or empty; expected 0 to 5")
            return default
        if isinstance(value, str):
            text = value.strip().lower().removeprefix("relationshiptype.")
            # Published code says romantic_relationship and family_member where we say romantic and family.
            text = text.removesuffix("_relationship").removesuffix("_member").removesuffix(".0")
            return int(text) if text.isdecimal() else relationship_number(text)
        return int(value) if isinstance(value, float) and value.is_integer() else value

    def list(self, field: str) -> list[object]:
        """A list, or the text of one."""
        value = self._literal(field)
        if value is None:
            self.refuse(field, "missing or empty; expected a list")
        if not isinstance(value, list | tuple):
            self.refuse(field, f"expected a list, found {type(value).__name__}")
        return [*value]

    def words(self, field: str) -> Sequence[str]:
        """A list of words, or words with commas between them."""
        value = self.found(field)
        if value is None:
            return []
        if isinstance(value, str) and not value.lstrip().startswith("["):
            return [word.strip() for word in value.replace(";", ",").split(",") if word.strip()]
        return [self.plain(field, word) for word in self.list(field)]

    def ages(self, seats: int) -> Sequence[tuple[object, ...]]:
        """A range for each seat; none where nobody is kept out."""
        value = self._literal("age_constraint")
        if value is None:
            return []
        if self._fields.get("age_constraint") == ANY_AGE:
            return [(18, 70)] * seats
        if not isinstance(value, list | tuple) or not all(isinstance(span, list | tuple) for span in value):
            self.refuse("age_constraint", f"expected a range per seat like {ANY_AGE}, found {value!r:.90}")
        return [tuple(span) for span in value]

    def by_seat(self, field: str) -> Sequence[Sequence[str]]:
        """The names that a seat is kept for, for each seat; none where anybody may sit anywhere."""
        value = self._literal(field)
        if isinstance(value, list) and all(isinstance(part, str) for part in value):
            value = [[part] for part in value]  # one for each seat
        if value is None:
            return []
        if not isinstance(value, list | tuple) or not all(isinstance(part, list | tuple) for part in value):
            self.refuse(field, f"expected a list of names per seat, found {value!r:.90}")
        allowed = [[self.plain(field, name) for name in part] for part in value]
        return allowed if any(allowed) else []

    def _literal(self, field: str) -> object:
        """The value of a field that holds a list or the text of one; None where it stands for nothing."""
        value = self.found(field)
        if not isinstance(value, str):
            return value
        if value.strip().lower() in EMPTY:
            return None
        if bare := re.fullmatch(r"\s*\[([^\[\]()'\"]+)\]\s*", value):  # [actor, actor], as one row has it
            return [part.strip() for part in bare[1].split(",") if part.strip()]
        try:
            parsed: object = ast.literal_eval(value.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            self.refuse(field, f"expected a list or the text of one, found {value!r:.90}")
        return parsed


def library_of(name: str) -> Library:
    """The starter set, the hard subset of the published one, or the library in a folder. Raises UserError."""
    if name == "starter":
        return starter()
    if name == "hard":
        if not (data := os.environ.get("SOTOPIA_DATA", "")):
            raise UserError("--tasks hard is of the published set: expected its folder in SOTOPIA_DATA")
        library = library_of(data)
        tasks = [task for task in library.tasks.values() if task.scenario in HARD]
        if not tasks:
            raise UserError(f"--tasks hard: {data} holds none of its {len(HARD)} scenarios")
        people, scenarios = library.characters.values(), library.scenarios.values()
        name = f"hard tasks of {data}"
        return Library(people, scenarios, library.bonds, tasks, name=name, left_out=library.left_out)
    folder = Path(name)
    if not folder.is_dir():
        raise UserError(f"--tasks {name}: is no folder; expected starter, or a folder with characters and scenarios")
    if is_published(folder):
        library = read_published(folder)
        for problem in library.left_out[:5]:
            print(f"left out: {problem}", file=sys.stderr)
        if len(library.left_out) > 5:
            more = f"{len(library.left_out) - 5} more rows; see polyrhythm episodes scenarios lint --tasks {name}"
            print(f"left out: {more}", file=sys.stderr)
        return library
    return read_folder(folder)
