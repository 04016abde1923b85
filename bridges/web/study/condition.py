"""`StudyCondition`: under what a trial runs, and what that changes in the graph while it runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from bridges.web.console.canned_phrases import read_canned
from bridges.web.http.wire import Seat
from runtime.errors import UserError, choices

_NODE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}")


class Allowed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the participant's page shows while a trial runs."""

    dialogue: bool = True
    speak: bool = True
    stop: bool = True
    camera: Literal["", "head", "room"] = ""  # whose pictures: for who does not stand beside the robot


class StudyCondition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Participants never see its name. While a trial runs, each seat named here has this node as its holder, the
    console has these sentences, and the participant's page shows this instead of `[participant]`."""

    id: str
    title: str
    notes: str = ""
    seats: dict[Seat, str] = {}
    utterances: str = ""  # a file of sentences, found from the protocol's folder
    participant: Allowed | None = None

    def problem(self, folder: Path) -> str:
        """What is wrong with it, as the rest of a sentence; "" for nothing."""
        for seat, holder in self.seats.items():
            if not _NODE.fullmatch(holder):
                return f"[[condition]] {self.id}: seats.{seat} is {holder!r}; expected the name of a node"
        try:
            self.canned(folder)
        except UserError as problem:
            return f"[[condition]] {self.id}: {str(problem).removeprefix('console: ')}"
        return ""

    def canned(self, folder: Path) -> tuple[dict[str, str], ...]:
        """The sentences of its file, none where it has no file. Raises UserError for what is not understood in it."""
        return tuple(read_canned(folder / self.utterances)) if self.utterances else ()


def seat_problems(
    conditions: Sequence[StudyCondition], candidates: Mapping[str, Sequence[str]], path: str
) -> list[str]:
    """Where a condition names a seat or holder that this graph does not have; `candidates`: of each seat."""
    found = []
    for condition in conditions:
        for seat, holder in condition.seats.items():
            where = f"{path}: [[condition]] {condition.id}: seats.{seat} is {holder!r}"
            if seat not in candidates:
                found.append(f"{where}, and the launch file has no [seats.{seat}]")
            elif holder not in candidates[seat]:
                found.append(f"{where}; candidates of that seat: {choices(candidates[seat])}")
    return found
