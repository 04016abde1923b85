"""Canned sentences: a file of what is said at the press of a digit."""

from __future__ import annotations

from pathlib import Path

from runtime.errors import ParameterError, UserError
from runtime.toml_errors import read_toml

CANNED = Path(__file__).with_name("canned_phrases.toml")


class Canned:
    """The sentences that operators have: the console's own, or those of a trial's condition while it runs."""

    def __init__(self, own: list[dict[str, str]]) -> None:
        self._own = own
        self.now = own
        self.version = 1

    def set(self, others: list[dict[str, str]]) -> None:
        """Use these; the console's own where there are none."""
        if self.now != (others or self._own):
            self.now, self.version = others or self._own, self.version + 1


def read_canned(path: Path) -> list[dict[str, str]]:
    """The sentences of a file, with voice and key. Raises ParameterError for what is not understood in it."""
    try:
        tables = read_toml(path).get("utterance", [])
    except UserError as problem:
        raise ParameterError(f"console: utterances {problem}") from problem
    found: list[dict[str, str]] = []
    keys: set[str] = set()
    for number, table in enumerate(tables, 1):
        where = f"console: utterances {path}, sentence {number}"
        if not isinstance(table, dict) or not isinstance(table.get("text"), str) or not table["text"]:
            raise ParameterError(f"{where} has no text")
        unknown = sorted(set(table) - {"text", "as", "key"})
        if unknown:
            raise ParameterError(f"{where} has the unknown key {unknown[0]!r}; known: as, key, text")
        voice, key = table.get("as", "robot"), str(table.get("key", ""))
        if voice not in ("robot", "collaborator"):
            raise ParameterError(f"{where} is spoken as {voice!r}; known: robot, collaborator")
        if len(key) > 1 or (key and (key not in "0123456789" or key in keys)):
            raise ParameterError(f"{where} has the key {key!r}; expected a digit of its own")
        keys.update(key)
        found.append({"text": table["text"], "as": voice, "key": key})
    return found
