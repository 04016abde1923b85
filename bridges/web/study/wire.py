"""What the pages of a study say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

import msgspec

from bridges.web.http.wire import (
    FrameSeen,
    FromBrowser,
    NoteMark,
    PageHello,
    Resume,
    Short,
    SoundPiece,
    StopPressed,
    Talk,
    Talked,
    Text,
    WatchCameras,
)

StepName = Annotated[str, msgspec.Meta(max_length=200)]
Given = Annotated[str, msgspec.Meta(max_length=16_000)] | int


class BeginSession(FromBrowser, frozen=True, tag="begin"):
    """The experimenter begins, or goes on with, the session of a participant."""

    number: Annotated[int, msgspec.Meta(ge=1, le=9999)]


class Agree(FromBrowser, frozen=True, tag="agree"):
    """The participant consents; so many statements are ticked."""

    ticked: Annotated[int, msgspec.Meta(ge=0, le=100)]


class AnswerItem(FromBrowser, frozen=True, tag="answer"):
    """One answer, as soon as it is given."""

    step: StepName
    item: Short
    value: Given


class Submit(FromBrowser, frozen=True, tag="submit"):
    """A questionnaire is filled in, on a page of that width."""

    step: StepName
    width_px: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 0


class StartTrial(FromBrowser, frozen=True, tag="start"):
    """The experimenter starts the trial."""


class EndTrial(FromBrowser, frozen=True, tag="end"):
    """The experimenter ends it."""

    how: Literal["completed", "aborted"] = "completed"


class PauseTrial(FromBrowser, frozen=True, tag="pause"):
    """The experimenter lets the trial's time stand still, and the robot with it; or go on."""

    is_on: bool


class Skip(FromBrowser, frozen=True, tag="skip"):
    """The experimenter goes on to the next step."""


class Withdraw(FromBrowser, frozen=True, tag="withdraw"):
    """The participant stops taking part."""


class ExperimenterNote(FromBrowser, frozen=True, tag="note"):
    """The experimenter's words."""

    text: Text


class Speak(FromBrowser, frozen=True, tag="say"):
    """The participant says something."""

    text: Text


Incoming = (
    PageHello | FrameSeen | WatchCameras | BeginSession | Agree | AnswerItem | Submit | StartTrial | EndTrial
    | PauseTrial | Skip | Withdraw | ExperimenterNote | NoteMark
    | Speak | Talk | SoundPiece | Talked | StopPressed | Resume
)  # fmt: skip

decode: Callable[[str | bytes], Incoming] = msgspec.json.Decoder(Incoming).decode
"""The message in this text. Raises ValueError (msgspec's) in words where it is none."""
