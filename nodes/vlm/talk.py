"""What a VLM makes at once of words about its work, before the planner has made a plan of them: the contract of *talk*.

`GrammarTalk` (nodes/vlm/grammar_talk.py) reads by the scripted planner's grammar what is to be left alone. `HoldStill`
reads nothing: where somebody may object, the robot holds still until a planner or a person has said how it goes on. So
a planner says its subtask again only when it has made something of all that it heard.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from nodes.interrupts.objecting_words import may_object
from nodes.msgs import Reference, SeenObject, Subtask, Utterance
from nodes.planner.orders import Surroundings

SORRY = "Sorry! I have stopped."


@dataclass(frozen=True, slots=True)
class WorkUnderWay:
    """What is being worked on when somebody speaks."""

    task: Subtask
    around: Surroundings = field(default_factory=Surroundings)
    target: SeenObject | None = None  # what the robot holds, or goes for to take it
    began_ns: int = 0  # to speak
    retracted_ns: int | None = None  # when the robot was last told to leave what it was doing


@dataclass(frozen=True, slots=True)
class HeardOfWork:
    """What follows at once from words."""

    left: tuple[Reference, ...] = ()  # is to be left alone from now on
    released: tuple[Reference, ...] = ()  # and is free again
    is_for_plan: bool = False  # what is under way may be objected to: hold still until somebody says how it goes on
    says: str = ""


class VlmTalk(Protocol):
    """Hears what people say while there is a subtask to work on."""

    def hear(self, utterance: Utterance, work: WorkUnderWay) -> HeardOfWork:
        """What follows at once; the planner hears it too."""
        ...


class HoldStill:
    """Holds still at words that may object."""

    def hear(self, utterance: Utterance, work: WorkUnderWay) -> HeardOfWork:
        names = (one.name for one in work.around.scene.things)
        return HeardOfWork(is_for_plan=may_object(utterance.text, names))
