"""The scripted planner's rules: from what is heard and reported to the next subtask and reply, as pure functions.

General over what, where and which colours to leave; the one verb the robot knows is to put things somewhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from nodes.interrupts.intent import Meaning, understand
from nodes.perception.colors import COLOURS
from runtime.msgs import SceneDescription, Subtask

PLURALS = {"cup": "cups", "block": "blocks", "ball": "balls", "bottle": "bottles", "bowl": "bowls"}
HELP = "I can put cups, blocks, balls, bottles or bowls in the bin."


@dataclass(frozen=True, slots=True)
class OrderUnderWay:
    """The order being carried out; `number` 0: none yet."""

    number: int = 0
    revision: int = 0
    what: str = ""  # kind of thing; empty: everything
    where: str = "bin"
    excluding: tuple[str, ...] = ()
    is_over: bool = False

    @property
    def subtask(self) -> Subtask | None:
        """What the VLM is to do for it, or None before the first order."""
        if not self.number:
            return None
        return Subtask(
            id=f"task-{self.number}.{self.revision}",
            text=describe(self),
            verb="done" if self.is_over else "put",
            what=self.what,
            where=self.where,
            excluding=self.excluding,
        )


def describe(plan: OrderUnderWay) -> str:
    """The order in words that `understand` reads back: "Put every cup except the blue one in the bin"."""
    only = _only(plan)
    if only:
        return f"Put every {' and every '.join(only)} {plan.what or 'thing'} in the {plan.where}"
    things = f"every {plan.what}" if plan.what else "everything"
    colours = " and the ".join(plan.excluding)
    but = f" except the {colours} one" if colours else ""
    return f"Put {things}{but} in the {plan.where}"


def _only(plan: OrderUnderWay) -> tuple[str, ...]:
    """The colours that alone are meant, where an order named some; () where all but those excluded are."""
    left = tuple(colour for colour in COLOURS if colour not in plan.excluding)
    return left if len(left) < len(plan.excluding) else ()


def _left_out(meaning: Meaning) -> tuple[str, ...]:
    """The colours that an order leaves out: those that it says, or all but those that it asks for."""
    if meaning.including and not meaning.excluding:
        return tuple(colour for colour in COLOURS if colour not in meaning.including)
    return meaning.excluding


def hear(plan: OrderUnderWay, text: str) -> tuple[OrderUnderWay, str]:
    """The plan after an utterance, and what to answer (empty: nothing)."""
    meaning = understand(text)
    if meaning.wants == "order":
        return _order(plan, meaning)
    if meaning.wants == "amend" or (meaning.excluding and meaning.wants != "nothing"):
        return _amend(plan, meaning), ""
    return plan, ""


def report(plan: OrderUnderWay, description: SceneDescription) -> tuple[OrderUnderWay, str]:
    """The plan after a description by the VLM, and what to say about it."""
    subtask = plan.subtask
    if subtask is None:
        return _recover(description), ""
    if plan.is_over or description.subtask_id != subtask.id:
        return plan, ""
    if description.progress == "finished":
        return replace(plan, is_over=True), f"I am done. {_outcome(plan)}"
    if description.progress == "failed":
        found = re.search(r"I cannot [^.]*", description.text)
        why = found.group(0) if found else "something does not work"
        return replace(plan, is_over=True), f"I have to give up: {why}."
    return plan, ""


def _order(plan: OrderUnderWay, meaning: Meaning) -> tuple[OrderUnderWay, str]:
    if not meaning.can_do:
        also = "" if plan.is_over or not plan.number else f" I go on: {describe(plan)[0].lower()}{describe(plan)[1:]}."
        return plan, f"I am sorry, I cannot do that. {HELP}{also}"
    fresh = OrderUnderWay(
        number=plan.number + 1,
        what="" if meaning.is_everything else meaning.kind,
        where=meaning.where if meaning.where not in ("", "table") else "bin",
        excluding=_left_out(meaning),
    )
    if only := _only(fresh):
        return fresh, f"Sure. I will put the {' and the '.join(only)} {fresh.what or 'thing'} in the {fresh.where}."
    things = PLURALS.get(fresh.what, "things")
    but = f", all but the {' and the '.join(fresh.excluding)} one" if fresh.excluding else ""
    return fresh, f"Sure. I will put the {things} in the {fresh.where}{but}."


def _amend(plan: OrderUnderWay, meaning: Meaning) -> OrderUnderWay:
    kept = [colour for colour in plan.excluding if colour not in meaning.including]
    excluding = tuple(dict.fromkeys((*kept, *meaning.excluding)))
    if excluding == plan.excluding or not plan.number:
        return plan
    return replace(plan, excluding=excluding, revision=plan.revision + 1, is_over=False)


def _outcome(plan: OrderUnderWay) -> str:
    if only := _only(plan):
        return f"The {' and the '.join(only)} {plan.what or 'thing'} is in the {plan.where}."
    things = PLURALS.get(plan.what, "things")
    if not plan.excluding:
        return f"The {things} are in the {plan.where}."
    return f"The {things} are in the {plan.where}, all but the {' and the '.join(plan.excluding)} one."


def _recover(description: SceneDescription) -> OrderUnderWay:
    """After a restart of the planner: the order that the VLM still works on, from its own words."""
    number = re.fullmatch(r"task-(\d+)\.(\d+)", description.subtask_id)
    words = re.search(r"Subtask: ([^.]*)\.", description.text)
    meaning = understand(words.group(1)) if words else None
    if number is None or meaning is None or not meaning.can_do or description.progress == "idle":
        return OrderUnderWay()
    return OrderUnderWay(
        number=int(number.group(1)),
        revision=int(number.group(2)),
        what="" if meaning.is_everything else meaning.kind,
        where=meaning.where,
        excluding=_left_out(meaning),
    )
