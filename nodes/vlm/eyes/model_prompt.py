"""What the vision-language model is asked, and what it may answer: pure functions around `model_prompt.toml`."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, get_args

import msgspec

from nodes.models.answers import ModelError, named, one_of, quoted, read_answer, schema_of, texts_beside
from nodes.msgs import SkillSpec, Subtask
from nodes.planner.model_prompt import skills_text
from nodes.vlm.choice.giving_up import tried
from nodes.vlm.choice.situation import Situation
from nodes.vlm.choice.things import place_of

Coordinates = Literal["pixel", "thousandth"]
COORDINATES: tuple[Coordinates, ...] = get_args(Coordinates)

MOST_OBJECTS, MOST_PEOPLE = 40, 8

Word = Annotated[str, msgspec.Meta(max_length=40)]
Place = Annotated[float, msgspec.Meta(ge=0, le=100_000)]
UNSAID = -1.0
"""Where a model says no place in the image: then it points at nothing, but for what has an id."""


class Pointed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A thing that the model points at."""

    label: Word
    colour: Word
    u: Place = UNSAID
    v: Place = UNSAID
    is_place: bool = False
    id: Word = ""  # of what is remembered, wherever the head looks now; then u and v count for nothing


class PointedPerson(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Somebody whom the model points at; `points_at` and `holds` count its list of things, -1 for none."""

    u: Place
    v: Place
    hand: Literal["", "open", "point"] = ""
    gesture: Literal["", "nod", "shake"] = ""
    points_at: int = -1
    holds: int = -1


class VLMAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All that the model can do: point at things, choose a skill and what it is about, say done, and speak."""

    objects: Annotated[tuple[Pointed, ...], msgspec.Meta(max_length=MOST_OBJECTS)]
    target: int = -1
    place: int = -1
    skill: Word = ""
    done: bool = False
    say: Annotated[str, msgspec.Meta(max_length=300)] = ""
    people: Annotated[tuple[PointedPerson, ...], msgspec.Meta(max_length=MOST_PEOPLE)] = ()


@dataclass(frozen=True, slots=True)
class Advice:
    """An answer that was checked: things in pixels inside the image, and places in that list or -1."""

    things: tuple[Pointed, ...] = ()
    target: int = -1
    place: int = -1
    skill: str = ""  # declared; "": whatever the subtask comes down to
    done: bool = False
    say: str = ""
    people: tuple[PointedPerson, ...] = ()

    @property
    def asks(self) -> bool:
        """Whether what it says waits for an answer."""
        return self.say.rstrip().endswith("?")


class Sayings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the robot says about the model."""

    spent: str
    unusable: str
    unanswered: str
    led: dict[str, str]  # all that a model may say whose answer is led word by word, by a code


_NAME = re.compile(r"[a-z][a-z -]{0,39}")
"""What a thing may be called: words, and no sentence."""


class VLMTexts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The data file."""

    colours: tuple[str, ...]
    system: str
    people: str
    units: dict[str, str]
    again: str
    other_m: tuple[float, float]
    other_place_m: tuple[float, float]
    sizes_m: dict[str, tuple[float, float]]
    say: Sayings

    def size_m(self, label: str, *, is_place: bool) -> tuple[float, float]:
        """Width and height of what the depth image does not show whole."""
        return self.sizes_m.get(label, self.other_place_m if is_place else self.other_m)


@cache
def words(prompt: str = "") -> VLMTexts:
    """Ours, or with a file `prompt` that has its `system` or other keys otherwise. Raises UserError."""
    return texts_beside(__file__, prompt, VLMTexts)


def system_prompt(coordinates: Coordinates, texts: VLMTexts | None = None) -> str:
    """The instructions, with the allowed words and the unit of places filled in; `texts` are others than ours."""
    allowed = texts or words()
    text = allowed.system.strip().replace("{units}", allowed.units[coordinates])
    for name, listed in (("labels", tuple(allowed.sizes_m)), ("colours", allowed.colours)):
        text = text.replace("{" + name + "}", ", ".join(f'"{word}"' for word in listed))
    return text


def answer_schema(skills: Sequence[SkillSpec] = ()) -> dict[str, object]:
    """JSON schema of the answer, in the subset that structured output takes."""
    return schema_of(VLMAnswer, colour=one_of(words().colours), skill=one_of(one.name for one in skills))


def skills_of(schema: dict[str, object]) -> tuple[str, ...]:
    """The skills that a schema lets a model choose."""
    found: Any = schema.get("properties", {})
    return tuple(name for name in found.get("skill", {}).get("enum", ()) if name)


def question_text(
    subtask: Subtask | None,
    said: tuple[str, ...],
    width_px: int,
    height_px: int,
    skills: Sequence[SkillSpec] = (),
    doing: str = "",
    facts: Sequence[str] = (),
) -> str:
    """What the model is told this time; `doing` is what the robot does now, or how it ended; `facts` are lines that say
    what it holds, did, tried in vain and remembers.
    """
    task = "none" if subtask is None or subtask.state != "work" else quoted(subtask.text)
    excluding = subtask.excluding if subtask is not None else ()
    words_left = dict.fromkeys(one.colour or one.label for one in excluding)
    barred = ", ".join(word if word.isalpha() else quoted(word) for word in words_left)
    lines = [f"The image is {width_px} x {height_px} pixels.", f"The subtask: {task}."]
    if barred:
        lines.append(f"Not to be taken: {barred}.")
    if doing:
        lines.append(f"The robot now: {quoted(doing)}.")
    lines += facts
    if skills:
        lines.append(f"The skills that the robot's body declares:\n{skills_text(skills)}")
    lines += [f"Somebody said {quoted(text)}" for text in said]
    return "\n".join(lines)


def facts_of(now: Situation, *, has_ids: bool) -> tuple[str, ...]:
    """What the image does not show: what the robot holds, did for the subtask, tried in vain, and remembers by ids."""
    held = now.holding
    lines = [f"The robot holds: {quoted(held.name)}." if held is not None else "The robot's hand is empty."]
    if now.did:
        lines.append(f"Done for this subtask: {', '.join(quoted(one) for one in now.did)}.")
    if now.hand is not None:
        lines.append("Somebody holds out an open hand.")
    lines += [f"Tried in vain: {quoted(one)}." for one in tried(now)]
    for one in now.objects[:MOST_OBJECTS] if has_ids else ():
        where = None if one.is_place else place_of(one, now.objects)
        at = f", {'in' if where.height_m else 'on'} {quoted(where.id)}" if where is not None else ""
        what = "place" if one.is_place else "thing"
        lines.append(f"Remembered {what} {quoted(one.id)}: {quoted(one.name)}{at}.")
    return tuple(lines)


def parse(
    text: str,
    coordinates: Coordinates,
    width_px: int,
    height_px: int,
    skills: Sequence[SkillSpec] = (),
    known: Collection[str] = (),
) -> Advice:
    """The answer, checked; a thing outside the image, or by what is no name, is left out. `known` are ids of what is
    remembered; another id counts as none.

    Raises ModelError where the text is no such answer, and where it names a skill that nobody declares, or a thing or
    place that it does not list, with what there is instead.
    """
    answer = read_answer(text, VLMAnswer)
    across, down = (width_px / 1000, height_px / 1000) if coordinates == "thousandth" else (1.0, 1.0)
    kept: list[Pointed] = []
    places: dict[int, int] = {-1: -1}
    for number, thing in enumerate(answer.objects):
        label, colour = thing.label.strip().lower(), thing.colour.strip().lower()
        colour = colour if colour in words().colours else ""
        u, v = thing.u * across, thing.v * down
        ident = thing.id if thing.id in known else ""
        if not ident and not (_NAME.fullmatch(label) and 0 <= u < width_px and 0 <= v < height_px):
            places[number] = -1
            continue
        places[number] = len(kept)
        kept.append(
            Pointed(label=label, colour=colour, u=max(u, 0.0), v=max(v, 0.0), is_place=thing.is_place, id=ident)
        )
    for key, number in (("target", answer.target), ("place", answer.place)):
        if number not in places:
            raise ModelError(f"the model's answer has {key} {number}; it lists {len(answer.objects)} things, from 0")
    skill = named(answer.skill, [one.name for one in skills])
    spec = next((one for one in skills if one.name == skill), None)
    if answer.skill and skills and spec is None:
        known = ", ".join(one.name for one in skills)
        raise ModelError(f"the model's answer has skill {answer.skill!r}; known: {known}")
    advice = Advice(
        tuple(kept),
        places[answer.target],
        places[answer.place],
        spec.name if spec is not None else "",  # before anybody has declared any, none is begun
        answer.done,
        words().say.led.get(answer.say, answer.say).strip(),
        tuple(
            msgspec.structs.replace(
                one, u=one.u * across, v=one.v * down,
                points_at=places.get(one.points_at, -1), holds=places.get(one.holds, -1),
            )
            for one in answer.people
        ),
    )  # fmt: skip
    needs = [one.type for one in spec.arguments if one.is_needed] if spec is not None else []
    if "thing" in needs and advice.target < 0:
        raise ModelError(f"the model's answer names no target, which {answer.skill} needs")
    if "place" in needs and advice.place < 0:
        raise ModelError(f"the model's answer names no place, which {answer.skill} needs")
    return advice
