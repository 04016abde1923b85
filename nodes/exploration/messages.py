"""What examiner and explorer say to each other, besides questions on `heard` and answers on `said`."""

from __future__ import annotations

from runtime.message import Message


class ThingInSight(Message):
    """A thing that the camera has seen, and the cell that it stands in; its state is not seen."""

    name: str
    x: int
    y: int


class Deed(Message):
    """The next step of the robot: "north", "open red box", or "done" (topic `room/deed`)."""

    number: int  # of the step, from 1
    action: str
    is_unreadable: bool = False  # a model answered something else, and this is a step at random


class StepDone(Message):
    """A step has ended: where the robot stands, what it has seen, can do and has found there (topic `room/step`)."""

    number: int  # steps done; 0: the beginning
    x: int
    y: int
    actions: tuple[str, ...]
    things: tuple[ThingInSight, ...]
    floor: tuple[tuple[int, int], ...]  # cells that were seen to be free since the last step
    left: int  # steps of this exploration; 0: it is over, and the robot is asked
    found: tuple[str, str] | None = None  # thing, state
    is_late: bool = False  # the robot did not get there in time


class ExplorationResult(Message):
    """What the examiner found in the end (topic `room/result`)."""

    acc_exp: float
    acc_ref: float
    tried_exp: float  # accuracy on the questions that need trying
    tried_ref: float
    t3: int
    score: float
    unreadable: int
    late_steps: int
