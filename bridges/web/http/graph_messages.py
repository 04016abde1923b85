"""What the console publishes besides the robot graph's own topics."""

from __future__ import annotations

from typing import Literal

from runtime.message import Message

STUDY = "study"
"""How the name begins under which a study asks for seats: a seat of the console is then given to who is at its page."""


class SeatWord(Message):
    """What people at the console said to each other about a seat."""

    seat: Literal["planner", "vlm", "policy"]
    do: Literal["take", "ask", "grant", "refuse", "force", "give"]
    by: str
    of: str = ""  # who sat there, or who had asked


class StudySetting(Message):
    """What the condition of a trial sets while it runs (`is_on`), and at its end that it sets nothing any more."""

    participant: str
    condition: str
    is_on: bool
    seats: dict[str, str]  # seat -> who is to hold it
    utterances: tuple[tuple[str, str, str], ...] = ()  # text, voice and key of the console's sentences; none: its own
    groups: tuple[str, ...] = ()  # of each of these sentences
    gestures: tuple[str, ...] = ()  # with each of these sentences
    locked: tuple[str, ...] = ()  # parts of the operators' page that they do without
    voices: tuple[str, ...] = ()  # the only ones in which operators of the console speak; none: both


class DraftDecision(Message):
    """What a person on the planner's seat made of what its model would have said."""

    do: Literal["approve", "edit", "reject", "expire", "replace"]
    by: str
    draft_text: str = ""
    draft_sentence: str = ""
    sent_text: str = ""
    sent_sentence: str = ""
    after_s: float = 0.0
