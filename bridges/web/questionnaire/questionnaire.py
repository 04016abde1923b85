"""Questionnaires: items with a scale, choices, a number or free text; read from TOML, answers checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from runtime.errors import UserError
from runtime.serialization.toml_errors import Table, convert, read_toml

Value = str | int | float
SHIPPED = Path(__file__).with_name("scales")
LONGEST_TEXT = 16_000


class Item(Table, frozen=True):
    """One question."""

    id: str
    text: str
    kind: Literal["scale", "choice", "number", "text"] = "scale"
    low: int = 1
    high: int = 7
    step: int = 1
    low_label: str = ""
    high_label: str = ""
    choices: tuple[str, ...] = ()
    required: bool = True
    media: str = ""  # a picture or video beside the protocol
    when: dict[str, str | int] = msgspec.field(default_factory=dict)  # shown only after these answers, "other-item" = 3

    def problem(self) -> str:
        """Why this is no usable item; "" where it is one."""
        if not self.id.strip() or not self.text.strip():
            return "needs an id and a text"
        if self.kind == "choice" and len(set(self.choices)) < 2:
            return f"is a choice of {len(set(self.choices))}; expected choices = [...] with two or more"
        if self.kind != "choice" and self.choices:
            return f'has choices, and its kind is {self.kind!r}; expected kind = "choice"'
        if self.kind in ("scale", "number") and self.low >= self.high:
            return f"goes from {self.low} to {self.high}; expected low < high"
        if self.step < 1 or (self.high - self.low) % self.step:
            return f"has step {self.step}, which does not divide {self.low} to {self.high}"
        return ""

    def problem_of(self, value: Value) -> str:
        """Why that is no answer to this item; "" where it is one. An empty text takes an answer back."""
        if value == "":
            return ""
        if self.kind == "text":
            is_text = isinstance(value, str) and len(value) <= LONGEST_TEXT
            return "" if is_text else f"{self.id}: expected a text of at most {LONGEST_TEXT} characters"
        if self.kind == "choice":
            return "" if value in self.choices else f"{self.id}: {value!r} is none of {', '.join(self.choices)}"
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if not is_whole or not self.low <= int(value) <= self.high or (int(value) - self.low) % self.step:
            return (
                f"{self.id}: {value!r} is not on the scale; expected {self.low} to {self.high} in steps of {self.step}"
            )
        return ""


class Questionnaire(Table, frozen=True):
    """Items under a title. `source` names whose scales these are."""

    id: str
    title: str
    item: tuple[Item, ...]
    intro: str = ""
    source: str = ""
    licence: str = ""
    scoring: str = ""
    per_agent: bool = False  # asked once for each of the protocol's agents
    when: dict[str, str | int] = msgspec.field(default_factory=dict)  # only after these answers, "questionnaire/item"

    def problem(self) -> str:
        """Why this is no usable questionnaire; "" where it is one."""
        if not self.id.strip() or not self.title.strip() or not self.item:
            return "needs an id, a title and items"
        seen: set[str] = set()
        for number, item in enumerate(self.item, 1):
            if problem := item.problem():
                return f"item {number} ({item.id!r}) {problem}"
            if item.id in seen:
                return f"has two items with the id {item.id!r}"
            if unknown := [other for other in item.when if other not in seen]:
                return f"item {number} ({item.id!r}) has when = {unknown[0]!r}; expected the id of an item before it"
            seen.add(item.id)
        return ""

    def is_shown(self, item: Item, answers: dict[str, Value]) -> bool:
        """Whether the answers given so far ask for it; an item behind one that is not shown is not shown, either."""
        by_id = {one.id: one for one in self.item}
        return all(
            answers.get(other, "") == value and self.is_shown(by_id[other], answers)
            for other, value in item.when.items()
        )

    def asked(self, answers: dict[str, Value]) -> dict[str, Value]:
        """Those of the answers whose question is on the page in the end; a later answer may have taken one off it."""
        shown = {item.id for item in self.item if self.is_shown(item, answers)}
        return {item: value for item, value in answers.items() if item in shown}

    def missing(self, answers: dict[str, Value]) -> list[str]:
        """The required items without an answer."""
        return [
            item.id
            for item in self.item
            if item.required and answers.get(item.id, "") == "" and self.is_shown(item, answers)
        ]


def read_questionnaire(path: Path) -> Questionnaire:
    """The questionnaire of a TOML file. Raises UserError in a sentence."""
    return questionnaire_of(read_toml(path), str(path))


def questionnaire_of(tables: Any, where: str) -> Questionnaire:
    """The questionnaire of a table. Raises UserError that begins with `where`."""
    found = convert(tables, Questionnaire, where)
    if sentence := found.problem():
        raise UserError(f"{where}: questionnaire {found.id!r} {sentence}")
    return found


def shipped(name: str) -> Questionnaire | None:
    """One of those that come with Polyrhythm."""
    path = SHIPPED / f"{name}.toml"
    return read_questionnaire(path) if path.parent == SHIPPED and path.is_file() else None


def shipped_names() -> list[str]:
    """Their names."""
    return sorted(path.stem for path in SHIPPED.glob("*.toml"))
