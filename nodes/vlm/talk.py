"""What a VLM makes at once of words about its work, before the planner has made a plan of them: the contract of *talk*.

`GrammarTalk` (nodes/vlm/grammar_talk.py) reads by the scripted planner's grammar what is to be left alone. `HoldStill`
reads nothing: where somebody may object, the robot holds still until the planner has understood them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from nodes.interrupts.intent import understand
from nodes.msgs import Reference, SeenObject, Subtask, Utterance
from nodes.planner.orders import Surroundings

BARS = ("no", "not", "wait", "stop", "dont", "don't", "sorry", "oh")
"""First words after which the robot holds still until the planner has understood the rest."""


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
    is_for_plan: bool = False  # hold still until there is a plan
    says: str = ""


class VlmTalk(Protocol):
    """Hears what people say while there is a subtask to work on."""

    def hear(self, utterance: Utterance, work: WorkUnderWay) -> HeardOfWork:
        """What follows at once; the planner hears it too."""
        ...


class HoldStill:
    """Holds still at words that may object."""

    def hear(self, utterance: Utterance, work: WorkUnderWay) -> HeardOfWork:
        first = utterance.text.lower().replace(",", " ").split()[:1]
        return HeardOfWork(is_for_plan=bool(first and first[0] in BARS) or understand(utterance.text).wants == "amend")
