"""The words of a run as LeRobot's language columns (0.6 and later), and back.

`language_persistent` holds what stays true until the next of its kind: subtasks. It is the same in all frames of an
episode, and each of its rows says since when. `language_events` holds, at the first frame at which it was known, what
a person said (`interjection`), what the robot said (a call of the tool `say`), what interrupted it and what that did
(calls of `interrupt` and `interrupt_effect`, which `meta/info.json` describes). People are roles in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pyarrow as arrow
from msgspec import structs

from nodes.msgs import Interrupt, InterruptRecord, Subtask, Utterance
from runtime.message import Message

PERSISTENT, EVENTS = "language_persistent", "language_events"
SAY, INTERRUPT, EFFECT = "say", "interrupt", "interrupt_effect"
_EFFECTS = tuple(name for name in InterruptRecord.__struct_fields__ if name.endswith("_ms"))
_ROLE_WORDS = {
    "",
    "i",
    "you",
    "me",
    "user",
    "person",
    "people",
    "robot",
    "human",
    "operator",
    "participant",
    "terminal",
}


class Roles:
    """People by what they are in a dataset, and not by their names: "person", "person 2"."""

    def __init__(self, people: Mapping[str, str]) -> None:
        self._people = {name.lower(): role for name, role in people.items() if name.lower() not in _ROLE_WORDS}
        names = sorted(map(re.escape, self._people), key=len, reverse=True)
        self._pattern = re.compile(rf"\b(?:{'|'.join(names)})\b", re.I) if names else None

    def of(self, name: str) -> str:
        """Of somebody by name; what is no person, such as "contact", keeps its name."""
        return self._people.get(name.lower(), name)

    def without_names(self, text: str) -> str:
        """The same words with roles in place of names."""
        return self._pattern.sub(lambda found: self.of(found[0]), text) if self._pattern else text


@dataclass(frozen=True)
class Word:
    """Something that was said, planned or interrupted, and the first frame at which it was known."""

    frame: int
    topic: str
    message: Message

    def told(self, roles: Roles) -> Word:
        """The same without anybody's name."""
        named = {"speaker": roles.of, "by": roles.of, "text": roles.without_names}
        changed = {
            field: told(getattr(self.message, field)) for field, told in named.items() if hasattr(self.message, field)
        }
        return replace(self, message=structs.replace(self.message, **changed))  # type: ignore[type-var]  # a Struct


def _row(**told: object) -> dict[str, object]:
    return {"role": "assistant", "content": None, "style": None, "camera": None, "tool_calls": None} | told


def _call(name: str, arguments: Mapping[str, object]) -> dict[str, object]:
    call = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return _row(tool_calls=[msgspec.json.encode(call).decode()])


def language_columns(words: Sequence[Word], length: int, fps: float) -> dict[str, Any]:
    """Both columns of an episode of that many frames, as Arrow arrays."""
    lasting: list[dict[str, object]] = []
    events: list[list[dict[str, object]]] = [[] for _ in range(length)]
    for word in words:
        message, here = word.message, events[word.frame]
        if isinstance(message, Subtask):
            if message.text and (not lasting or lasting[-1]["content"] != message.text):
                lasting.append(_row(content=message.text, style="subtask", timestamp=word.frame / fps))
        elif isinstance(message, Utterance) and word.topic == "heard":
            here.append(_row(role="user", content=message.text, style="interjection"))
        elif isinstance(message, Utterance):
            here.append(_call(SAY, {"text": message.text}))
        elif isinstance(message, Interrupt):
            told = {"id": message.id, "depth": message.depth, "by": message.by, "cause": message.cause}
            here.append(_call(INTERRUPT, told | {"takes_back": message.takes_back} if message.takes_back else told))
        elif isinstance(message, InterruptRecord):
            effects = {name: getattr(message, name) for name in _EFFECTS}
            known = {name: value for name, value in effects.items() if value is not None}
            here.append(_call(EFFECT, {"id": message.id} | known))
    return {
        PERSISTENT: arrow.array([lasting] * length, arrow.list_(_struct(is_timed=True))),
        EVENTS: arrow.array(events, arrow.list_(_struct(is_timed=False))),
    }


def _struct(*, is_timed: bool) -> Any:
    """What LeRobot's loader expects of a row."""
    text = arrow.string()
    timed = [arrow.field("timestamp", arrow.float32(), nullable=False)] if is_timed else []
    before = [arrow.field("role", text, nullable=False), arrow.field("content", text), arrow.field("style", text)]
    return arrow.struct([*before, *timed, arrow.field("camera", text), arrow.field("tool_calls", arrow.list_(text))])


LANGUAGE_FEATURES = {name: {"dtype": "language", "shape": [1], "names": None} for name in (PERSISTENT, EVENTS)}
"""For `meta/info.json`."""


def tools() -> list[dict[str, Any]]:
    """What the calls in `language_events` mean, for `meta/info.json`."""
    return [
        _tool(SAY, "Speak to the people here.", {"text": "string"}),
        _tool(
            INTERRUPT,
            "What is going on is amended, planned anew, held, stopped or resumed, by a person's words or a touch.",
            dict.fromkeys(("id", "depth", "by", "cause", "takes_back"), "string"),
        ),
        _tool(
            EFFECT,
            "What an interrupt did, in ms after it was heard or felt: the robot at rest, planner, VLM and policy told.",
            {"id": "string"} | dict.fromkeys(_EFFECTS, "number"),
        ),
    ]


def _tool(name: str, description: str, arguments: Mapping[str, str]) -> dict[str, Any]:
    properties = {argument: {"type": kind} for argument, kind in arguments.items()}
    parameters = {"type": "object", "properties": properties, "required": [next(iter(arguments))]}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def words_of(rows: Mapping[str, Sequence[Any]], stamps_s: Sequence[float]) -> list[tuple[float, str, Message]]:
    """What the language columns of an episode tell: when, s from its beginning, on which topic, and what."""
    found: list[tuple[float, str, Message]] = []
    for number, row in enumerate((rows.get(PERSISTENT) or [[]])[0] or ()):
        if row.get("style") in ("subtask", "plan"):
            task = Subtask(id=f"dataset-{number + 1}", text=row.get("content") or "", state="work")
            found.append((float(row["timestamp"]), "subtask", task))
    for at_s, events in zip(stamps_s, rows.get(EVENTS) or (), strict=False):
        for row in events or ():
            if row.get("role") == "user" and row.get("content"):
                found.append((at_s, "heard", Utterance(speaker="person", text=row["content"])))
            for call in row.get("tool_calls") or ():
                found += _called(at_s, call)
    return sorted(found, key=lambda one: one[0])


def _called(at_s: float, call: object) -> list[tuple[float, str, Message]]:
    """What a call says; nothing where it is of a tool that we do not know."""
    try:
        told = msgspec.json.decode(call) if isinstance(call, str) else call
        name, arguments = told["function"]["name"], told["function"]["arguments"]  # type: ignore[index]  # or TypeError
        if name == SAY:
            return [(at_s, "said", Utterance(speaker="robot", text=str(arguments["text"])))]
        if name == INTERRUPT:
            return [(at_s, "interrupt", msgspec.convert({"text": "", **arguments}, Interrupt))]
    except (msgspec.MsgspecError, KeyError, TypeError):
        pass
    return []
