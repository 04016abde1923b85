"""What the planner's model is asked, and what it may answer: pure functions around `model_prompt.toml`."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from functools import cache
from typing import Annotated, Literal

import msgspec

from nodes.models.answers import ModelError, named, one_of, quoted, read_answer, schema_of, texts_beside
from nodes.msgs import Condition, Interrupt, Reference, Saying, Scene, SceneDescription, SkillSpec, Subtask, Utterance
from nodes.planner.orders import Surroundings

LONGEST_HISTORY = 40
"""Lines that are told word for word; of earlier ones a summary is."""
MOST_SUMMED, LONGEST_SUMMED = 20, 100
"""What was said or planned in earlier lines is told so often, and with so many letters of each."""

Word = Annotated[str, msgspec.Meta(max_length=40)]


class MeantThing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Things as a model means them."""

    label: Word
    colour: Word = ""
    count: Annotated[int, msgspec.Meta(ge=0, le=100)] = 1  # 0: all
    id: Word = ""

    @property
    def reference(self) -> Reference:
        """The same in the robot's words."""
        return Reference(
            id=self.id, label=self.label.strip().lower(), colour=self.colour.strip().lower(), count=self.count
        )


class Lesson(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a person taught that a kind of thing belongs."""

    label: Word
    place: Word


MostThings = Annotated[tuple[MeantThing, ...], msgspec.Meta(max_length=20)]


class PlannerAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All that a planner's model can do: say something, and change the subtask."""

    do: Literal["keep", "work", "wait", "done"]
    skill: Word = ""
    things: MostThings = ()
    excluding: MostThings = ()
    place: Word = ""
    relation: Literal["", "in", "on", "beside"] = ""
    text: Annotated[str, msgspec.Meta(max_length=300)] = ""
    learned: Annotated[tuple[Lesson, ...], msgspec.Meta(max_length=10)] = ()
    say: Annotated[str, msgspec.Meta(max_length=300)] = ""


class _Say(msgspec.Struct, frozen=True):
    failing: str
    giving_up: str
    spent: str
    unusable: str
    unanswered: str
    blind: str
    unearned: str
    unmeasured: str


class PlannerTexts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The data file: the prompt, and sentences of the robot."""

    system: str
    spoken: str
    part: str
    again: str
    say: _Say


@cache
def words(prompt: str = "") -> PlannerTexts:
    """Ours, or with a file `prompt` that has its `system` or other keys otherwise. Raises UserError."""
    return texts_beside(__file__, prompt, PlannerTexts)


def skills_text(skills: Sequence[SkillSpec]) -> str:
    """The declared skills, a line each."""
    lines = []
    for spec in skills:
        arguments = ", ".join(f"{one.name}: {one.type}" for one in spec.arguments)
        lines.append(f'- "{spec.name}"({arguments}): {quoted(spec.sentence)}')
    return "\n".join(lines) or "(none are known yet)"


def system_prompt(
    around: Surroundings, persona: str = "", *, speaks: bool = False, texts: PlannerTexts | None = None
) -> str:
    """The instructions, with the declared skills and the known places filled in, and the part to play.

    With `speaks` they are those of a model that talks and calls a tool; `texts` are others than ours.
    """
    told = texts or words()
    text = (told.spoken if speaks else told.system).strip().replace("{skills}", skills_text(around.skills))
    places = ", ".join(quoted(place) for place in sorted(around.world.places))
    text = text.replace("{places}", places or "none are known yet")
    return f"{text}\n\n{told.part.strip()}\n{persona.strip()}" if persona.strip() else text


def answer_schema(around: Surroundings, *, speaks: bool = False) -> dict[str, object]:
    """JSON schema of the answer, in the subset that structured output takes: all required, nothing else.

    What a model that `speaks` says is no part of it.
    """
    lessons = {"type": "array", "items": schema_of(Lesson)}
    skills, places = one_of(one.name for one in around.skills), one_of(sorted(around.world.places))
    silent = ("say",) if speaks else ()
    return schema_of(PlannerAnswer, without=silent, skill=skills, place=places, learned=lessons)


def parse(text: str, around: Surroundings) -> PlannerAnswer:
    """The answer in the text, checked against what there is. Raises ModelError, with what there is instead."""
    answer = read_answer(text, PlannerAnswer)
    if answer.do != "work":
        return answer
    if not answer.text.strip():
        raise ModelError("the model's answer has a subtask without a text")
    skills = {spec.name for spec in around.skills}
    answer = msgspec.structs.replace(
        answer,
        skill=named(answer.skill, skills),
        place=named(answer.place, around.world.places),
        things=tuple(_there(thing, around.scene) for thing in answer.things),
        excluding=tuple(_there(thing, around.scene) for thing in answer.excluding),
    )
    _check("skill", answer.skill, skills)
    _check("place", answer.place, around.world.places)
    spec = around.spec(answer.skill)
    needs = {one.type for one in spec.arguments if one.is_needed} if spec is not None else set()
    if "place" in needs and not answer.place:
        raise ModelError(f"the model's answer has no place, which {answer.skill} needs; {_known(around.world.places)}")
    if "thing" in needs and not answer.things and not answer.place:
        raise ModelError(f"the model's answer names no thing, which {answer.skill} needs")
    return answer


def _there(thing: MeantThing, scene: Scene) -> MeantThing:
    """The thing without an id that is not there, where label and colour say as much. Raises ModelError else."""
    known = {one.id for one in scene.things}
    ident = named(thing.id, known)
    if not ident or ident in known:
        return msgspec.structs.replace(thing, id=ident)
    meant = thing.reference
    same = [one for one in scene.things if one.label == meant.label and meant.colour in ("", one.colour)]
    if not same or 0 < meant.count < len(same):
        raise ModelError(f"the model's answer has id {thing.id!r}, which is not there; {_known(known)}")
    return msgspec.structs.replace(thing, id="")


def _check(key: str, word: str, known: Collection[str]) -> None:
    if word and known and word not in known:
        raise ModelError(f"the model's answer has {key} {word[:40]!r}; {_known(known)}")


def _known(known: Collection[str]) -> str:
    return f"known: {', '.join(sorted(known)[:30])}"


def subtask_of(answer: PlannerAnswer, ident: str) -> Subtask:
    """The subtask that it sets."""
    if answer.do != "work":
        state: Literal["wait", "done"] = "done" if answer.do == "done" else "wait"
        return Subtask(id=ident, text=answer.text or answer.do, state=state)
    things = tuple(one.reference for one in answer.things)
    relation = answer.relation or ("in" if answer.place else "")
    return Subtask(
        id=ident,
        text=answer.text,
        state="work",
        skill=answer.skill,
        things=things,
        excluding=tuple(one.reference for one in answer.excluding),
        place=answer.place,
        relation=relation,
        done_when=Condition(things=things, relation=relation, place=answer.place) if answer.place else None,
    )


_PLANNED = "[you set the subtask"


class History:
    """What was said and what happened, newest last, bounded; every word from outside is quoted."""

    def __init__(self) -> None:
        self._lines: deque[list[str]] = deque()  # id of an utterance of the robot's or "", line
        self._earlier: deque[str] = deque(maxlen=MOST_SUMMED)  # what was said and planned, cut short
        self.events = 0
        self.summed = 0  # lines that only the summary tells of

    def heard(self, utterance: Utterance) -> None:
        self._add(f"{quoted(utterance.speaker)} said {quoted(utterance.text)}")

    def interrupted(self, interrupt: Interrupt) -> None:
        if interrupt.takes_back:
            self._add(f"[{quoted(interrupt.by)} took the stop back: a false alarm, the robot goes on as it was]")
            return
        self._add(f"[interrupt: {interrupt.depth}, by {quoted(interrupt.by)}, because of {quoted(interrupt.text)}]")

    def failed(self, why: str) -> None:
        self._add(f"[an action failed: {quoted(why)}]")

    def unanswered(self, seconds: float) -> None:
        """A question is given up after a time; what to do without an answer is the model's to say."""
        self._add(f"[nobody answered your question for {seconds:.0f} seconds: it is closed]")

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
        self._note(f"{_PLANNED}: {subtask.state}, {quoted(subtask.text)}]")

    def text(self) -> str:
        lines = [line for _, line in self._lines]
        if self.summed:
            told = "; ".join(self._earlier)
            lines.insert(0, f"[{self.summed} earlier lines, cut short to what was said and planned: {told}]")
        return "\n".join(lines)

    def _add(self, line: str) -> None:
        self.events += 1
        self._note(line)

    def _note(self, line: str, ident: str = "") -> None:
        self._lines.append([ident, line])
        while len(self._lines) > LONGEST_HISTORY:
            old = self._lines.popleft()[1]
            self.summed += 1
            if not old.startswith("[") or old.startswith(_PLANNED):
                self._earlier.append(old if len(old) <= LONGEST_SUMMED else f"{old[:LONGEST_SUMMED]}...")


def _cut_off(saying: Saying) -> str:
    why = quoted(saying.why)
    if not saying.spoken:
        return f"[nobody heard what you wanted to say, {quoted(saying.text)}, because of {why}]"
    return f"You said {quoted(saying.spoken)} [cut off there, because of {why}; the whole was {quoted(saying.text)}]"


def question_text(history: History, report: str) -> str:
    """What the model is told this time; `report` is of what the robot does and sees now."""
    return f"What was said and what happened:\n{history.text() or '(nothing yet)'}\n\n{report}"


def news(history: History, description: SceneDescription | None, scene: Scene | None = None) -> tuple[object, ...]:
    """What a new answer could depend on; equal to the last time's, there is nothing to ask."""
    people = scene.people if scene is not None else ()
    shown = tuple(
        (one.id, one.points_at, one.gesture, one.hand == "open")
        for one in people
        if one.points_at or one.gesture or one.hand == "open"
    )
    is_blind = scene is not None and not scene.is_looked
    if description is None:
        return (history.events, shown, is_blind)
    seen = sorted((o.colour, o.label) for o in description.objects)
    gone = tuple(sorted((one.label, one.colour) for one in description.gone))
    return (history.events, shown, is_blind, description.subtask_id, description.progress, gone, *seen)


def unearned(answer: PlannerAnswer, subtask: Subtask | None, told: SceneDescription | None) -> str:
    """Why "done" is not what was measured, and what to answer instead; "" where it is, or where it is not said."""
    if answer.do != "done" or (subtask is not None and subtask.state == "done"):
        return ""
    was_restarted = subtask is None and told is not None and told.subtask_id != ""
    if not was_restarted and (subtask is None or subtask.state != "work"):
        return 'nothing was under way that could be done; answer "wait", and do not say that something is done'
    if told is None or (subtask is not None and told.subtask_id != subtask.id):
        return 'the vision model has not reported on this subtask yet; answer "keep", and say nothing is done yet'
    if told.progress != "finished":
        return (
            f"the vision model does not report it finished but {told.progress}: {told.why or told.text}; "
            'answer "keep", or "wait" to give it up, and say what was measured'
        )
    if told.did == () and answer.say.strip():
        return f'the robot did nothing for it: {told.why or told.text}; say that in "say", and not that it is done'
    return ""
