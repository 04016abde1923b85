"""`Rows`: what was felt at each tick of 20 Hz and what was wanted there, from lessons or recordings."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nodes.policy.onnx.inputs import Felt, one_hot
from runtime.errors import UserError

RATE_HZ = 20
HISTORY = 10
"""Postures that the model is shown; it looks at the oldest one."""

INPUTS = {
    "joints": (8,),
    "velocity": (8,),
    "grasp": (1,),
    "target": (3,),
    "size": (2,),
    "skill": (7,),
    "history": (HISTORY, 8),
    "elapsed": (1,),
}
"""Of the model, without the first size. A row has them in this order, of the history its oldest posture."""

STALLS_S, STALL_COUNTS = 0.5, 5.0
INTERVENES = 5.0
"""A moment in which somebody took the seat from the pupil counts so many times."""

FELT, WANTED = 38, 11
"""Numbers of a row."""


def counts(still_s: float, *, is_done: bool) -> float:
    """Return how much a moment counts: more where the robot has stood for a while, and the action is not done."""
    return STALL_COUNTS if still_s > STALLS_S and not is_done else 1.0


def flat(felt: Felt) -> tuple[float, ...]:
    """Return what is felt as one row: joints, velocity, grasp, target, size, skill, the posture before, elapsed."""
    before = felt.history[0] if felt.history else felt.joints
    now = (*felt.joints, *felt.velocity, felt.grasp, *felt.target, *felt.size, *one_hot(felt.skill))
    return (*now, *before, felt.elapsed)


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """What to learn from: felt (n, 38), wanted (n, 11), which rows follow each other (n,), how much each counts (n,).

    Wanted are eight goals of the joints, the base's v and w, and whether the action is done. `outcomes` tells of the
    actions: skill, who did it, how it ended.
    """

    felt: NDArray[np.float32]
    wanted: NDArray[np.float32]
    runs: NDArray[np.int64]
    counts: NDArray[np.float32]
    outcomes: tuple[tuple[str, str, str], ...] = ()

    def write(self, file: Path) -> None:
        """Keep them in a file; how actions ended is not kept."""
        with file.open("wb") as out:
            np.savez_compressed(out, felt=self.felt, wanted=self.wanted, runs=self.runs, counts=self.counts)

    @classmethod
    def read(cls, file: Path) -> Rows:
        """Return those that a file keeps. Raises UserError where it keeps none, or rows of other sizes."""
        try:
            with np.load(file, allow_pickle=False) as kept:
                found = cls(kept["felt"], kept["wanted"], kept["runs"], kept["counts"])
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise UserError(
                f"{file} holds no rows ({error}); name a file that `polyrhythm learn --rows` wrote"
            ) from None
        sizes = (found.felt.shape[1:], found.wanted.shape[1:])
        if (
            sizes != ((FELT,), (WANTED,))
            or len({len(one) for one in (found.felt, found.wanted, found.runs, found.counts)}) > 1
        ):
            raise UserError(
                f"{file} holds rows of other sizes, {sizes}; expected {FELT} numbers felt and {WANTED} wanted"
            )
        if not all(np.isfinite(one).all() for one in (found.felt, found.wanted, found.counts)):
            raise UserError(f"{file} holds rows that are not finite; leave it out, and learn from the recordings again")
        return found

    def besides(self, known: Sequence[Rows]) -> Rows:
        """Return those that are not among the known ones, by what was felt: a recording may be named again."""
        met = {row.tobytes() for part in known for row in part.felt}
        new = np.array([row.tobytes() not in met for row in self.felt], bool)
        return Rows(self.felt[new], self.wanted[new], self.runs[new], self.counts[new], self.outcomes)

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """Return all of them as one; runs of different parts are different."""
        runs, first = [], 0
        for part in parts:
            _, numbers = np.unique(part.runs, return_inverse=True)
            runs.append(numbers.astype(np.int64) + first)
            first += int(numbers.max(initial=-1)) + 1
        return cls(
            np.concatenate([part.felt for part in parts]),
            np.concatenate([part.wanted for part in parts]),
            np.concatenate(runs),
            np.concatenate([part.counts for part in parts]),
            tuple(outcome for part in parts for outcome in part.outcomes),
        )
