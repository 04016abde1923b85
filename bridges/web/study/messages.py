"""What a study publishes besides marks and trials: so that all of it is in the recording."""

from __future__ import annotations

from runtime.message import Message


class StudyAnswer(Message):
    """One answer to one item of a questionnaire; a later one to the same item takes its place."""

    participant: str
    step: str  # "trial-1/nasa-tlx"
    item: str
    value: str  # a number as its digits; "" takes the answer back


class StudyNote(Message):
    """What the experimenter noted."""

    participant: str
    step: str
    text: str
    by: str = ""


class StudyStep(Message):
    """A session went on: it began, consent was given, a questionnaire handed in, a step left out, or it ended early."""

    participant: str
    step: str
    what: str  # "begin", "consent", "submit", "skip", "withdraw", "condition"
    by: str = ""
    text: str = ""  # of a condition: what was set, lost or undone
