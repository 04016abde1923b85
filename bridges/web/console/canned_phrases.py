"""Canned sentences: a file of what is said at the press of a digit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from runtime.errors import ParameterError, naming
from runtime.serialization.toml_errors import Table, convert, read_toml

VOICES = ("robot", "collaborator")
CHORD = r"^(|[0-9]|F([1-9]|1[0-2])|(ctrl\+|alt\+|shift\+|meta\+)+([a-z0-9]|F([1-9]|1[0-2])))\Z"
CANNED = Path(__file__).with_name("canned_phrases.toml")


class Canned:
    """What operators may say: the console's own sentences in both voices, or what a trial sets while it runs."""

    def __init__(self, own: list[dict[str, str]]) -> None:
        self._own = own
        self.now = own
        self.voices: tuple[str, ...] = VOICES
        self.locked: tuple[str, ...] = ()
        self.version = 1

    def set(self, others: list[dict[str, str]], voices: tuple[str, ...] = (), locked: tuple[str, ...] = ()) -> None:
        """Use these sentences, the console's own where there are none, as far as they are in one of these voices.

        `locked`: the parts of the page that operators do without meanwhile.
        """
        voices = voices or VOICES
        now = [one for one in others or self._own if one["as"] in voices]
        if (self.now, self.voices, self.locked) != (now, voices, locked):
            self.now, self.voices, self.locked, self.version = now, voices, locked, self.version + 1

    def has(self, text: str) -> bool:
        """Whether it is one of these sentences, with something in the place of each {parameter}."""
        return any(_fits(one["text"], text) for one in self.now)

    def document(self) -> dict[str, object]:
        """For an operator's page."""
        return {"canned": self.now, "voices": self.voices, "locked": self.locked}


def _ordered(chord: str) -> str:
    """With what is held beside the key in the order in which the page names it."""
    *beside, key = chord.split("+")
    return "+".join((*sorted(set(beside), key=("ctrl", "alt", "shift", "meta").index), key))


def _fits(pattern: str, text: str) -> bool:
    parts = (re.escape(part) for part in re.split(r"\{\w+\}", " ".join(pattern.split())))
    return re.fullmatch(".{0,80}".join(parts), " ".join(text.split())) is not None


class _Phrase(Table, frozen=True, rename={"voice": "as"}):
    text: Annotated[str, Meta(min_length=1)]
    voice: Literal["robot", "collaborator"] = "robot"
    key: Annotated[
        Annotated[str, Meta(pattern=CHORD)] | Annotated[int, Meta(ge=0, le=9)],
        Meta(description='a digit, or a chord like "alt+y", "ctrl+shift+k" or "F4"'),
    ] = ""
    group: Annotated[str, Meta(max_length=40)] = ""
    # what the robot does while it says so, one after the other: "nod", "look+nod"
    gesture: Annotated[str, Meta(pattern=r"^(|(nod|shake|look|point)(\+(nod|shake|look|point)){0,2})\Z")] = ""


class _File(Table, frozen=True):
    utterance: tuple[_Phrase, ...] = ()


def read_canned(path: Path) -> list[dict[str, str]]:
    """The sentences of a file, with voice and key. Raises ParameterError for what is not understood in it."""
    with naming("console: utterances", ParameterError):
        phrases = convert(read_toml(path), _File, str(path)).utterance
    keys = [_ordered(str(phrase.key)) for phrase in phrases if phrase.key != ""]
    if twice := [key for key in keys if keys.count(key) > 1]:
        raise ParameterError(f"console: utterances {path}: two have the key {twice[0]!r}; expected one of its own")
    return [
        {
            "text": phrase.text,
            "as": phrase.voice,
            "key": _ordered(str(phrase.key)),
            "group": phrase.group,
            "gesture": phrase.gesture,
        }
        for phrase in phrases
    ]
