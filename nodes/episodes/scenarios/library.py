"""Characters, scenarios, bonds and tasks together: read from JSONL or TOML files, checked, looked up by identifier."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

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
        found = self.characters.get(identifier)
        if found is None:
            raise ProfileError(f"{self.name}: no character {identifier[:70]!r}; known: {choices(self.characters)}")
        return found

    def scenario(self, identifier: str) -> Scenario:
        """The scenario of that identifier."""
        found = self.scenarios.get(identifier)
        if found is None:
            raise ProfileError(f"{self.name}: no scenario {identifier[:70]!r}; known: {choices(self.scenarios)}")
        return found

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
    return Library(
        read_records(found["characters"], Character) if "characters" in found else (),
        read_records(found["scenarios"], Scenario) if "scenarios" in found else (),
        read_records(found["relationships"], Bond) if "relationships" in found else (),
        read_records(found["tasks"], Task) if "tasks" in found else (),
        name=name or str(folder),
    )


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
    for where, line in json_lines(path):
        try:
            row = msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ProfileError(f"{where}: not a line of JSON: {error}") from error
        yield _where(where, row), row


def json_lines(path: Path) -> Iterator[tuple[str, str]]:
    """The lines of a .jsonl file that hold anything, each after "file:line"; raises ProfileError."""
    # Not splitlines(): it also splits at separators that JSON allows inside a string.
    for number, line in enumerate(_read_text(path).split("\n"), start=1):
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
