"""What a model wrote becomes an act: one typed reading of the object in it, or of a small model's line of a script.

Usual other names of keys and action types, and wrappers ({"value": ...}, {"argument": {...}}), are read as meant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import msgspec

from nodes.episodes.scenarios.library import json_lines
from nodes.models.json_reading import UnreadableError, folded, layers, read_json, read_number, without_thoughts
from nodes.msgs.episode import Act, ActKind
from runtime.errors import UserError
from runtime.serialization.toml_errors import read_text

LONGEST_ARGUMENT = 4000

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_KIND_KEYS = ("action_type", "actiontype", "type", "kind", "action")
_TEXT_KEYS = ("argument", "content", "text", "message", "utterance", "speech")
_SAID_AS: dict[ActKind, str] = {
    "speak": "speak|speech|say|talk|reply|respond|ask",
    "non-verbal communication": "non[ -]?verbal( communication)?|gesture",
    "none": "none|nothing|wait|do(es)? nothing",
    "action": "(physical )?act(ion)?|do",
    "leave": "leav(e|es|ing)|exit",
}


def kind_of(text: str, more: str = "") -> ActKind | None:
    """The kind of act that a word names, as models write it; with `more`, a pattern, where that follows."""
    said = " ".join(text.strip().casefold().replace("_", " ").split())
    return next((kind for kind, words in _SAID_AS.items() if re.fullmatch(f"({words}){more}", said)), None)


@dataclass(frozen=True, slots=True)
class ReadAct:
    """An act, the bid with it (0.5 where there is none), and whether its end was cut off."""

    act: Act
    urgency: float = 0.5
    is_cut: bool = False
    names_nobody: bool = False  # it was cut before it could say who alone is to hear it


def read_act(text: str) -> ReadAct:
    """The act in an answer. Raises UnreadableError."""
    whole = read_json(text)
    found = _unwrapped(whole.fields)
    kind_text = next((found[key] for key in _KIND_KEYS if isinstance(found.get(key), str)), None)
    if not isinstance(kind_text, str):
        raise UnreadableError(f"action_type is missing; found the keys {', '.join(map(str, found)) or '(none)'}")
    kind = kind_of(kind_text)
    if kind is None:
        raise UnreadableError(f"action_type is {kind_text[:60]!r}; known: {', '.join(sorted(_SAID_AS))}")
    if kind != "none" and _is_echo(found):
        raise UnreadableError("the answer repeats the words of its form instead of filling them in")
    argument = next((found[key] for key in _TEXT_KEYS if key in found), "")
    if isinstance(argument, list) and len(argument) == 1:
        argument = argument[0]
    if argument is None:
        argument = ""
    if not isinstance(argument, str | int | float):
        raise UnreadableError(f"argument is {type(argument).__name__}; expected a text")
    act = Act(kind=kind, argument=clean(str(argument)), to=_recipients(found.get("to")))
    urgency = read_number(found.get("urgency"))
    return ReadAct(act, 0.5 if urgency is None else urgency, whole.is_cut, "to" not in found)


def _recipients(to: object) -> tuple[str, ...]:
    names = [to] if isinstance(to, str) else to or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UnreadableError("to is no list of names")
    if any(name.strip().lower() in ("all", "everyone", "everybody", "", "none", "[]") for name in names):
        return ()
    return tuple(clean(name) for name in names)


_FORM = "string|argument|action_type|action type|to|text|words|speak|non-verbal communication"
_ECHOES = tuple(_FORM.split("|"))
"""Words of the question's form."""


def _is_echo(found: dict[str, object]) -> bool:
    """Whether the text is a word of the question's form, as small models give it back."""
    text = next((found[key] for key in _TEXT_KEYS if isinstance(found.get(key), str)), "")
    return str(text).strip(" .\"'<>[]").lower() in _ECHOES or str(text).strip() in ("...", "…")


_STAGE = re.compile(r"^[*(\[]+(?P<what>[^*()\[\]]+)[*)\]]+\.?$")
_QUOTED = re.compile(r"[\"“](?P<said>[^\"“”]+)[\"”]")


def read_line(text: str, name: str, *, is_cut: bool = False) -> Act:
    """The act in one line of a script, as small models write it; of a line that was cut off, its whole sentences.

    Raises UnreadableError where there is none.
    """
    text = without_thoughts(text).strip()
    first = next((line.strip() for line in text.split("\n") if line.strip()), "")
    if is_cut and "\n" not in text:
        ends = [found.end() for found in re.finditer(r"[.!?…][\"”*)]*", first)]
        first = first[: ends[-1]] if ends else ""
    for own in (name, name.split()[0]):
        first = re.sub(rf"^\**{re.escape(own)}\**\s*:\**\s*", "", first)
    if stage := _STAGE.match(first):
        what = clean(stage["what"]).strip()
        if re.search(r"\b(leaves|walks away|walks out|hangs up)\b", what, re.I):
            return Act(kind="leave", argument=what)
        is_look = re.search(r"\b(nods?|smiles?|shrugs?|looks?|sighs?|frowns?|laughs?|waves?)\b", what, re.I)
        return Act(kind="non-verbal communication" if is_look else "action", argument=what)
    quoted = _QUOTED.search(first)
    said = clean(quoted["said"] if quoted else first.strip('"“” ')).strip()
    if said in ("...", "…", "(silence)"):
        return Act()
    if not said or said.lower().strip(" .:") in _ECHOES or said.startswith("{"):
        raise UnreadableError(f"the line holds nothing that somebody says: {first[:60]!r}")
    return Act(kind="speak", argument=said)


def clean(text: str) -> str:
    """Without control characters, not longer than an argument may be."""
    return _CONTROL.sub("", text).strip()[:LONGEST_ARGUMENT]


def _unwrapped(fields: dict[str, object]) -> dict[str, object]:
    """The object that says what kind of act it is, by folded keys: the inner one of two that do."""
    found = [_bare(layer) for layer in layers(fields)]
    told = [one for one in found if any(isinstance(one.get(key), str) for key in _KIND_KEYS)]
    inner = [one for one in told[1:] if isinstance(told[0].get("argument"), dict)]
    return (inner or told or found)[0]


def _bare(layer: dict[str, object]) -> dict[str, object]:
    """By folded keys, with {"value": ...} as what stands in it."""
    found = folded(layer)
    if found and all(isinstance(one, dict) and set(one) <= {"value"} for one in found.values()):
        return {key: one["value"] for key, one in found.items() if isinstance(one, dict) and "value" in one}
    return found


EXPECTED = 'expected one a line, as a text in double quotes or as {"kind": ..., "argument": ...}'


def read_script(path: Path) -> list[Act]:
    """The acts of a .jsonl file, one {"kind", "argument", "to"} or one string a line. Raises UserError."""
    acts = []
    for where, line in json_lines(path, read_text(path)):
        try:
            raw = msgspec.json.decode(line)
            acts.append(Act(kind="speak", argument=raw) if isinstance(raw, str) else msgspec.convert(raw, Act))
        except (msgspec.MsgspecError, RecursionError) as problem:
            raise UserError(f"{where}: no act ({problem}); {EXPECTED}") from problem
    if not acts:
        raise UserError(f"{path}: holds no acts; {EXPECTED}")
    return acts
