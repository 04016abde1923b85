"""Canned sentences: a file of what is said at the press of a digit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from runtime.errors import ParameterError, UserError
from runtime.toml_errors import Table, convert, read_toml

VOICES = ("robot", "collaborator")
CANNED = Path(__file__).with_name("canned_phrases.toml")


class Canned:
    """What operators may say: the console's own sentences in both voices, or what a trial sets while it runs."""

    def __init__(self, own: list[dict[str, str]]) -> None:
        self._own = own
        self.now = own
        self.voices: tuple[str, ...] = VOICES
        self.version = 1

    def set(self, others: list[dict[str, str]], voices: tuple[str, ...] = ()) -> None:
        """Use these sentences, the console's own where there are none, as far as they are in one of these voices."""
        voices = voices or VOICES
        now = [one for one in others or self._own if one["as"] in voices]
        if (self.now, self.voices) != (now, voices):
            self.now, self.voices, self.version = now, voices, self.version + 1

    def document(self) -> dict[str, object]:
        """For an operator's page."""
        return {"canned": self.now, "voices": self.voices}


class _Phrase(Table, frozen=True, rename={"voice": "as"}):
    text: Annotated[str, Meta(min_length=1)]
    voice: Literal["robot", "collaborator"] = "robot"
    key: Annotated[
        Annotated[str, Meta(pattern=r"^[0-9]?\Z")] | Annotated[int, Meta(ge=0, le=9)], Meta(description="a digit")
    ] = ""
    group: Annotated[str, Meta(max_length=40)] = ""
    gesture: Literal["", "nod", "shake", "look", "point"] = ""  # what the robot does while it says so


class _File(Table, frozen=True):
    utterance: tuple[_Phrase, ...] = ()


def read_canned(path: Path) -> list[dict[str, str]]:
    """The sentences of a file, with voice and key. Raises ParameterError for what is not understood in it."""
    try:
        phrases = convert(read_toml(path), _File, str(path)).utterance
    except UserError as problem:
        raise ParameterError(f"console: utterances {problem}") from problem
    keys = [str(phrase.key) for phrase in phrases if phrase.key != ""]
    if twice := [key for key in keys if keys.count(key) > 1]:
        raise ParameterError(f"console: utterances {path}: two have the key {twice[0]!r}; expected a digit of its own")
    return [
        {
            "text": phrase.text,
            "as": phrase.voice,
            "key": str(phrase.key),
            "group": phrase.group,
            "gesture": phrase.gesture,
        }
        for phrase in phrases
    ]
