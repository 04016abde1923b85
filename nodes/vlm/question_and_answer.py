"""What the vision-language model is asked, and what it may answer: pure functions around `question_and_answer.toml`."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, get_args

import msgspec

from nodes.models.answers import quoted, read_answer
from runtime.msgs import Subtask

Coordinates = Literal["pixel", "thousandth"]
COORDINATES: tuple[Coordinates, ...] = get_args(Coordinates)

MOST_OBJECTS = 40

Word = Annotated[str, msgspec.Meta(max_length=40)]
Place = Annotated[float, msgspec.Meta(ge=0, le=100_000)]


class Pointed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A thing that the model points at."""

    label: Word
    colour: Word
    u: Place
    v: Place


class VLMAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All that the model can do: point at things and choose one."""

    objects: Annotated[tuple[Pointed, ...], msgspec.Meta(max_length=MOST_OBJECTS)]
    target: int = -1


class Sayings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the robot says about the model."""

    spent: str


class VLMTexts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The data file."""

    colours: tuple[str, ...]
    system: str
    units: dict[str, str]
    sizes_m: dict[str, tuple[float, float]]
    say: Sayings


@cache
def words() -> VLMTexts:
    """The data file beside this module."""
    with Path(__file__).with_name("question_and_answer.toml").open("rb") as file:
        return msgspec.convert(tomllib.load(file), VLMTexts)


def system_prompt(coordinates: Coordinates) -> str:
    """The instructions, with the allowed words and the unit of places filled in."""
    allowed = words()
    text = allowed.system.strip().replace("{units}", allowed.units[coordinates])
    for name, listed in (("labels", tuple(allowed.sizes_m)), ("colours", allowed.colours)):
        text = text.replace("{" + name + "}", ", ".join(f'"{word}"' for word in listed))
    return text


def answer_schema() -> dict[str, object]:
    """JSON schema of the answer, in the subset that structured output takes."""
    allowed = words()
    thing = _object(
        label={"type": "string", "enum": list(allowed.sizes_m)},
        colour={"type": "string", "enum": list(allowed.colours)},
        u={"type": "number"},
        v={"type": "number"},
    )
    return _object(objects={"type": "array", "items": thing}, target={"type": "integer"})


def question_text(subtask: Subtask | None, said: tuple[str, ...], width_px: int, height_px: int) -> str:
    """What the model is told this time."""
    task = "none" if subtask is None or subtask.state != "work" else quoted(subtask.text)
    excluding = subtask.excluding if subtask is not None else ()
    words_left = dict.fromkeys(one.colour or one.label for one in excluding)
    barred = ", ".join(word if word.isalpha() else quoted(word) for word in words_left)
    lines = [f"The image is {width_px} x {height_px} pixels.", f"The subtask: {task}."]
    if barred:
        lines.append(f"Not to be taken: {barred}.")
    lines += [f"Somebody said {quoted(text)}" for text in said]
    return "\n".join(lines)


def parse(text: str, coordinates: Coordinates, width_px: int, height_px: int) -> tuple[tuple[Pointed, ...], int]:
    """Things in pixels inside the image, by allowed words only, and the place of the target among them or -1.

    Raises ModelError where the text is no such answer; a thing by another name or outside the image is left out.
    """
    answer = read_answer(text, VLMAnswer)
    across, down = (width_px / 1000, height_px / 1000) if coordinates == "thousandth" else (1.0, 1.0)
    allowed = words()
    kept: list[Pointed] = []
    target = -1
    for place, thing in enumerate(answer.objects):
        label, colour = thing.label.strip().lower(), thing.colour.strip().lower()
        u, v = thing.u * across, thing.v * down
        if label in allowed.sizes_m and colour in allowed.colours and u < width_px and v < height_px:
            if place == answer.target:
                target = len(kept)
            kept.append(Pointed(label=label, colour=colour, u=u, v=v))
    return tuple(kept), target


def _object(**properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
