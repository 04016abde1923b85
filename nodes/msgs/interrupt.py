"""Interrupts and what became of them: messages of every graph, with a robot or without, so without arrays."""

from __future__ import annotations

from typing import ClassVar, Literal

from runtime.message import Message

PREEMPTS: dict[str, tuple[str, ...]] = {
    "amend": ("vlm",),
    "replan": ("planner", "policy"),
    "stop": ("planner", "vlm", "policy"),
    "resume": (),
    "hold": (),
}
"""Which of the robot's three seats an interrupt of each depth fences, where the launch file does not say otherwise."""


Cause = Literal[
    "", "person", "contact", "effort", "unknown", "following", "motion", "driver", "runstop", "link", "ladder", "guard",
    "reflex",
]  # fmt: skip
"""What raised an interrupt, where it is no tool, page or other node. The guard believes each of those who can know it:
itself and the reflex all, a ladder its own, anybody that a person said it. A name is never a cause."""


class Interrupt(Message):
    """A demand to change what is going on, at one of three depths; `resume` lifts a stop.

    `hold` lets a robot that moves hold for `hold_s`, unlatched; one that takes an earlier hold back ends it early.
    """

    message_wants_fences: ClassVar = True

    id: str
    depth: Literal["amend", "replan", "stop", "resume", "hold"]
    text: str  # what was said or felt
    by: str  # who, for people: a speaker, "contact", "console"
    cause: Cause = ""  # what, for programs
    person: str = ""  # which person said it, as the ears tell people apart; `by` is only their name
    is_sure: bool = True  # stop: not a bare "ah" or "hey", which may have been meant for anybody
    is_pain: bool = False  # stop: the words tell that somebody is hurt, caught or touched; what was felt needs no word
    is_caught: bool = False  # stop: a person asks the gripper to let go of somebody
    takes_back: str = ""  # resume, hold: the one that was a false alarm; what was being done goes on as it was
    hold_s: float = 0.0  # hold: for how long, at most 1.5 s

    @property
    def message_is_urgent(self) -> bool:
        """A stop is better late than never."""
        return self.depth == "stop"


class Effect(Message):
    """What one node did about an interrupt, told when it was done."""

    interrupt_id: str
    effect: Literal["planner cancelled", "vlm voided", "chunk flushed"]
    was_busy: bool = False  # something was in flight and is void now


class InterruptRecord(Message):
    """One interrupt and when each of its effects came, in ms after what was heard or felt; None: it did not come."""

    id: str
    depth: Literal["amend", "replan", "stop", "resume", "hold"]
    by: str
    text: str
    cause: str  # the event behind it, as "topic:source:seq"
    heard_ns: int
    fenced_ms: float | None = None
    held_ms: float | None = None  # the guard's output had entered its braking profile
    at_rest_ms: float | None = None  # zero velocity, asked and measured
    planner_ms: float | None = None  # its request was cancelled, or it had none
    vlm_ms: float | None = None  # its pending answer was voided
    policy_ms: float | None = None  # its chunk was flushed
    resumed_ms: float | None = None  # resume: the guard left its stop
    missing: tuple[str, ...] = ()  # effects that are due at this depth and had not come by the bound
    takes_back: str = ""  # resume: the stop that was a false alarm
    note: str = ""  # for people: "false alarm, resumed after 2.3 s"
