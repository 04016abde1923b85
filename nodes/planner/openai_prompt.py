"""What the planner's model is asked, and what it may answer: pure functions around `openai_api.toml`."""

from __future__ import annotations

import tomllib
from collections import deque
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from nodes.models.answers import ModelError, quoted, read_answer
from runtime.msgs import Interrupt, Saying, SceneDescription, Subtask, Utterance

LONGEST_HISTORY = 40

Word = Annotated[str, msgspec.Meta(max_length=40)]


class PlannerAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All that a planner's model can do: say something, and change the subtask."""

    verb: Literal["keep", "put", "wait", "done"]
    what: Word = ""
    where: Word = ""
    excluding: Annotated[tuple[Word, ...], msgspec.Meta(max_length=12)] = ()
    text: Annotated[str, msgspec.Meta(max_length=300)] = ""
    say: Annotated[str, msgspec.Meta(max_length=300)] = ""


class _Say(msgspec.Struct, frozen=True):
    failing: str
    giving_up: str
    spent: str


class PlannerTexts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The data file: the prompt, the words that an answer may use, and sentences of the robot."""

    kinds: tuple[str, ...]
    places: tuple[str, ...]
    colours: tuple[str, ...]
    system: str
    say: _Say


@cache
def words() -> PlannerTexts:
    """The data file beside this module."""
    with Path(__file__).with_name("openai_api.toml").open("rb") as file:
        return msgspec.convert(tomllib.load(file), PlannerTexts)


def system_prompt() -> str:
    """The instructions, with the allowed words filled in."""
    allowed = words()
    text = allowed.system.strip()
    for name in ("kinds", "places", "colours"):
        text = text.replace("{" + name + "}", ", ".join(f'"{word}"' for word in getattr(allowed, name)))
    return text


def answer_schema() -> dict[str, object]:
    """JSON schema of the answer, in the subset that structured output takes: all required, nothing else."""
    allowed = words()
    text = {"type": "string"}
    properties: dict[str, object] = {
        "verb": {"type": "string", "enum": ["keep", "put", "wait", "done"]},
        "what": {"type": "string", "enum": [*allowed.kinds, ""]},
        "where": {"type": "string", "enum": [*allowed.places, ""]},
        "excluding": {"type": "array", "items": {"type": "string", "enum": list(allowed.colours)}},
        "text": text,
        "say": text,
    }
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def parse(text: str) -> PlannerAnswer:
    """The answer in the text, checked against the allow-lists. Raises ModelError."""
    answer = read_answer(text, PlannerAnswer)
    if answer.verb != "put":
        return answer
    allowed = words()
    what = answer.what.strip().lower()
    if what not in allowed.kinds and what.endswith("s"):
        what = what[:-1]
    _check("what", what, allowed.kinds)
    _check("where", answer.where, allowed.places)
    for colour in answer.excluding:
        _check("excluding", colour, allowed.colours)
    return msgspec.structs.replace(answer, what=what)


def _check(key: str, word: str, allowed: tuple[str, ...]) -> None:
    if word not in allowed:
        raise ModelError(f"the model's answer has {key} {word[:40]!r}; allowed: {', '.join(allowed)}")


class History:
    """What was said and what happened, newest last, bounded; every word from outside is quoted."""

    def __init__(self) -> None:
        self._lines: deque[list[str]] = deque(maxlen=LONGEST_HISTORY)  # id of an utterance of the robot's or "", line
        self.events = 0

    def heard(self, utterance: Utterance) -> None:
        self._add(f"{quoted(utterance.speaker)} said {quoted(utterance.text)}")

    def interrupted(self, interrupt: Interrupt) -> None:
        if interrupt.takes_back:
            self._add(f"[{quoted(interrupt.by)} took the stop back: a false alarm, the robot goes on as it was]")
            return
        self._add(f"[interrupt: {interrupt.depth}, by {quoted(interrupt.by)}, because of {quoted(interrupt.text)}]")

    def failed(self, why: str) -> None:
        self._add(f"[an action failed: {quoted(why)}]")

    def done(self, what: str) -> None:
        """An action that succeeded is no reason to ask, since the report tells how far the subtask is."""
        self._note(f"[done: {quoted(what)}]")

    def cancelled(self) -> None:
        self._note("[your answer was cancelled by the interrupt: nothing of it was said or done]")

    def said(self, text: str, ident: str = "") -> None:
        """What the robot said itself is no news; `ident` is how the loudspeaker calls it."""
        self._note(f"You said {quoted(text)}", ident)

    def spoke(self, saying: Saying) -> None:
        """An utterance that was cut stands here as far as people heard it."""
        if saying.phase != "cut":
            return
        for line in self._lines:
            if line[0] and line[0] == saying.id:
                line[1] = _cut_off(saying)

    def planned(self, subtask: Subtask) -> None:
        self._note(f"[you set the subtask: {subtask.verb}, {quoted(subtask.text)}]")

    def text(self) -> str:
        return "\n".join(line for _, line in self._lines)

    def _add(self, line: str) -> None:
        self.events += 1
        self._note(line)

    def _note(self, line: str, ident: str = "") -> None:
        self._lines.append([ident, line])


def _cut_off(saying: Saying) -> str:
    why = quoted(saying.why)
    if not saying.spoken:
        return f"[nobody heard what you wanted to say, {quoted(saying.text)}, because of {why}]"
    return f"You said {quoted(saying.spoken)} [cut off there, because of {why}; the whole was {quoted(saying.text)}]"


def question_text(history: History, subtask: Subtask | None, description: SceneDescription | None) -> str:
    """What the model is told this time."""
    lines = ["What was said and what happened:", history.text() or "(nothing yet)", ""]
    if subtask is None and description is not None and description.subtask_id:
        lines.append("You were restarted; the robot works on a subtask that you set before, see the report.")
    elif subtask is None:
        lines.append("There is no subtask yet.")
    else:
        excluding = ", ".join(subtask.excluding) or "nothing"
        lines.append(
            f"The subtask now: {subtask.verb} {subtask.what} {subtask.where}".rstrip() + f", excluding {excluding}."
        )
    if description is None:
        lines.append("The vision model has reported nothing yet.")
    else:
        lines.append(f"The vision model reports ({description.progress}): {quoted(description.text)}")
        seen = ", ".join(f"{quoted(o.colour)} {quoted(o.label)}" for o in description.objects[:30])
        lines.append(f"It sees: {seen or 'nothing'}.")
    return "\n".join(lines)


def news(history: History, description: SceneDescription | None) -> tuple[object, ...]:
    """What a new answer could depend on; equal to the last time's, there is nothing to ask."""
    if description is None:
        return (history.events,)
    seen = sorted((o.colour, o.label) for o in description.objects)
    return (history.events, description.subtask_id, description.progress, *seen)
