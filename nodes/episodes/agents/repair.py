"""What a model wrote becomes an act or scores: repairs that cost no second call, then one typed reading.

Repaired are fences and words around the object, a model's thoughts, trailing commas, single quotes, Python's constants,
wrappers ({"value": ...}, {"properties": ...}, a list of one), and usual other names of keys and action types.
"""

from __future__ import annotations

import ast
import re

import msgspec

from runtime.errors import PolyrhythmError
from runtime.msgs.episode import Act, ActKind

LONGEST_ANSWER = 65_536
LONGEST_ARGUMENT = 4000

_FENCE = re.compile(r"```[a-zA-Z]*")
_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)
_TRAILING_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u2028-\u202e\u2066-\u2069\ufeff]")
_WRAPPERS = ("value", "properties", "action", "output", "answer", "response", "result", "arguments")
_KIND_KEYS = ("action_type", "type", "kind", "action")
_TEXT_KEYS = ("argument", "content", "text", "message", "utterance", "speech")
_KINDS: dict[str, ActKind] = {
    "speak": "speak",
    "say": "speak",
    "speech": "speak",
    "talk": "speak",
    "non-verbal communication": "non-verbal communication",
    "non-verbal": "non-verbal communication",
    "nonverbal": "non-verbal communication",
    "nonverbal communication": "non-verbal communication",
    "gesture": "non-verbal communication",
    "action": "action",
    "act": "action",
    "do": "action",
    "none": "none",
    "nothing": "none",
    "wait": "none",
    "leave": "leave",
    "exit": "leave",
}


class UnreadableError(PolyrhythmError):
    """A model's answer is not what was asked for; the text says why."""


def read_object(text: str) -> dict[str, object]:
    """The JSON object in the text, repaired where needed. Raises UnreadableError."""
    if len(text) > LONGEST_ANSWER:
        raise UnreadableError(f"the answer has {len(text)} characters; at most {LONGEST_ANSWER} are read")
    try:
        found: object = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        inner = _inner(text)
        try:
            found = _decode(inner)
        except UnreadableError:
            if (closed := _closed(inner)) is None:
                raise
            found = _decode(closed)
    for _ in range(4):
        if isinstance(found, list) and len(found) == 1:
            found = found[0]
    if not isinstance(found, dict):
        raise UnreadableError(f"the answer is {type(found).__name__}, not a JSON object")
    return {str(key): value for key, value in found.items()}


def read_act(text: str) -> tuple[Act, float]:
    """The act, and the bid with it (0.5 where there is none). Raises UnreadableError."""
    found = _unwrapped(read_object(text), _KIND_KEYS)
    kind_text = next((found[key] for key in _KIND_KEYS if isinstance(found.get(key), str)), None)
    if not isinstance(kind_text, str):
        raise UnreadableError(f"action_type is missing; found the keys {', '.join(map(str, found)) or '(none)'}")
    kind = _KINDS.get(kind_text.strip().lower().replace("_", " "))
    if kind is None:
        raise UnreadableError(f"action_type is {kind_text[:60]!r}; known: {', '.join(sorted(set(_KINDS.values())))}")
    if kind != "none" and _is_echo(found):
        raise UnreadableError("the answer repeats the words of its form instead of filling them in")
    argument = next((found[key] for key in _TEXT_KEYS if key in found), "")
    if argument is None:
        argument = ""
    if not isinstance(argument, str | int | float):
        raise UnreadableError(f"argument is {type(argument).__name__}; expected a text")
    to = found.get("to") or []
    names = [to] if isinstance(to, str) else to
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UnreadableError("to is no list of names")
    urgency = found.get("urgency", 0.5)
    if isinstance(urgency, bool) or not isinstance(urgency, int | float):
        urgency = 0.5
    if any(name.lower() in ("all", "everyone", "everybody") for name in names):
        names = []
    return Act(kind=kind, argument=clean(str(argument)), to=tuple(clean(name) for name in names)), float(urgency)


_ECHOES = (
    "string",
    "argument",
    "action_type",
    "action type",
    "to",
    "text",
    "words",
    "speak",
    "non-verbal communication",
)


def _is_echo(found: dict[str, object]) -> bool:
    """Whether the text is a word of the question's form, as small models give it back."""
    text = next((found[key] for key in _TEXT_KEYS if isinstance(found.get(key), str)), "")
    return str(text).strip(" .\"'<>[]").lower() in _ECHOES or str(text).strip() in ("...", "…")


_STAGE = re.compile(r"^[*(\[]+(?P<what>[^*()\[\]]+)[*)\]]+\.?$")
_QUOTED = re.compile(r"[\"“](?P<said>[^\"“”]+)[\"”]")


def read_line(text: str, name: str) -> Act:
    """The act in one line of a script, as small models write it. Raises UnreadableError where there is none."""
    text = _THOUGHT.sub("", text).strip()
    first = next((line.strip() for line in text.split("\n") if line.strip()), "")
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


def _inner(text: str) -> str:
    text = _FENCE.sub("", _THOUGHT.sub("", text))
    start, end = text.find("{"), text.rfind("}")
    if start < 0:
        raise UnreadableError("the answer holds no JSON object")
    return text[start : end + 1] if end > start else text[start:]


def _decode(text: str) -> object:
    text = _TRAILING_COMMA.sub(lambda match: match.group(1) or "", text)
    try:
        found: object = msgspec.json.decode(text)
        return found
    except (msgspec.MsgspecError, RecursionError) as problem:
        why = str(problem)
    try:  # single quotes, None, True
        literal: object = ast.literal_eval(text)
        return literal
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise UnreadableError(f"the answer is no JSON: {why}") from None


def _closed(text: str) -> str | None:
    """JSON that was cut off inside a text's value, closed where it ends; None where that is not what happened."""
    stack: list[str] = []
    is_text = is_escaped = False
    begun = 0
    for place, mark in enumerate(text):
        if is_text:
            is_text, is_escaped = mark != '"' or is_escaped, mark == "\\" and not is_escaped
        elif mark == '"':
            is_text, begun = True, place
        elif mark in "{[":
            stack.append("}" if mark == "{" else "]")
        elif mark in "}]" and stack:
            stack.pop()
    if not is_text or not stack or len(text) < 20:
        return None
    words = text[: -1 if is_escaped else None].rstrip()
    ends = [words.rfind(mark) for mark in ".!?"]  # what was said of the last sentence is not said
    whole = words[: max(ends) + 1] if max(ends) > begun else words
    return whole + '"' + "".join(reversed(stack))


def _unwrapped(found: dict[str, object], keys: tuple[str, ...]) -> dict[str, object]:
    for _ in range(4):
        if any(isinstance(found.get(key), str) for key in keys):
            break
        inner = next((found[key] for key in _WRAPPERS if isinstance(found.get(key), dict)), None)
        if inner is None and len(found) == 1:
            inner = next(iter(found.values()))
        if not isinstance(inner, dict):
            break
        found = {str(key): value for key, value in inner.items()}
    if all(isinstance(value, dict) and set(value) <= {"value"} for value in found.values()) and found:
        found = {key: value["value"] for key, value in found.items() if isinstance(value, dict) and "value" in value}
    return found
