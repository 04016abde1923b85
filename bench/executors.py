"""Executors: how a robot plays chunks that come late. Five ways, and the question that is out meanwhile."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from nodes.msgs import ActionChunk
from nodes.policy.onnx.chunks import Playback
from runtime.clock import to_ns

STEP_S = 0.05
STEP_NS = to_ns(STEP_S)
EVERY_STEPS = 4
"""Between two questions, at least."""
DECAY = 0.01
"""Of an ensemble's weights, the oldest answer's being the largest: ACT (arXiv 2304.13705)."""
Rows = NDArray[np.float64]  # (steps, 10)
Row = NDArray[np.float64]  # (10,): eight positions, base v and w


class Executor(Protocol):
    """Plays answers, step by step."""

    def wants(self, step: int) -> bool:
        """Whether to ask now."""

    def take(self, rows: Rows, seen: int, step: int) -> None:
        """An answer to what was seen then has come."""

    def row(self, step: int) -> Row | None:
        """What to do now; None: hold still."""


class StopAndGo:
    """Plays an answer from its first step to its last, then stands and asks."""

    def __init__(self) -> None:
        self.left: list[Row] = []

    def wants(self, step: int) -> bool:
        return not self.left

    def take(self, rows: Rows, seen: int, step: int) -> None:
        self.left = list(rows)

    def row(self, step: int) -> Row | None:
        return self.left.pop(0) if self.left else None


class Newest:
    """Plays the newest answer: from its first step, or from the step of now (`is_aligned`)."""

    def __init__(self, *, is_aligned: bool) -> None:
        self.is_aligned = is_aligned
        self.rows: Rows | None = None
        self.since = 0

    def wants(self, step: int) -> bool:
        return True

    def take(self, rows: Rows, seen: int, step: int) -> None:
        self.rows, self.since = rows, seen if self.is_aligned else step

    def row(self, step: int) -> Row | None:
        place = step - self.since
        return self.rows[place] if self.rows is not None and place < len(self.rows) else None


class Ensemble:
    """The weighted mean of what all answers that reach to now say of now."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, Rows]] = []

    def wants(self, step: int) -> bool:
        return True

    def take(self, rows: Rows, seen: int, step: int) -> None:
        self.answers.append((seen, rows))

    def row(self, step: int) -> Row | None:
        self.answers = [(seen, rows) for seen, rows in self.answers if step - seen < len(rows)]
        if not self.answers:
            return None
        now = np.stack([rows[step - seen] for seen, rows in self.answers])
        return np.average(now, axis=0, weights=np.exp(-DECAY * np.arange(len(now))))


class Frozen:
    """The project's own player: the steps until an answer comes are frozen, then it is blended in."""

    def __init__(self) -> None:
        self.playback = Playback()

    def wants(self, step: int) -> bool:
        return True

    def take(self, rows: Rows, seen: int, step: int) -> None:
        chunk = ActionChunk(
            position=np.ascontiguousarray(rows[:, :8]), base_v_mps=np.ascontiguousarray(rows[:, 8]),
            base_w_radps=np.ascontiguousarray(rows[:, 9]), step_s=STEP_S,
        )  # fmt: skip
        self.playback = self.playback.with_chunk(chunk, seen_ns=seen * STEP_NS, came_ns=step * STEP_NS)

    def row(self, step: int) -> Row | None:
        command = self.playback.command(step * STEP_NS)
        return None if command is None else np.array((*command.position, command.base_v_mps, command.base_w_radps))


EXECUTORS: dict[str, Callable[[], Executor]] = {
    "stop-and-go": StopAndGo,
    "newest chunk": lambda: Newest(is_aligned=False),
    "age-aligned": lambda: Newest(is_aligned=True),
    "ensemble": Ensemble,
    "prefix freeze": Frozen,
}


@dataclass
class Late:
    """An executor whose answers come `delay` steps after what they were made from; one question is out at a time."""

    executor: Executor
    delay: int
    step: int = 0
    out: tuple[int, Rows] | None = None  # a question that is out: when it was asked, what will be said
    asked: int = -EVERY_STEPS

    def play(self, ask: Callable[[], Rows]) -> tuple[Row | None, bool]:
        """The row of this step (None: hold still), and whether an answer came in it."""
        is_seam = False
        for _ in range(2):  # without delay an answer comes at once
            if self.out is not None and self.step - self.out[0] >= self.delay:
                self.executor.take(self.out[1], self.out[0], self.step)
                self.out, is_seam = None, True
            if self.out is None and self.step - self.asked >= EVERY_STEPS and self.executor.wants(self.step):
                self.out, self.asked = (self.step, ask()), self.step
        row = self.executor.row(self.step)
        self.step += 1
        return row, is_seam


class Episode(msgspec.Struct, frozen=True):
    """How it went. Jumps are the largest step of lift or arm (LIBERO: of the hand) between two commands, mm."""

    answers: str
    executor: str
    delay: int
    seed: int
    is_success: bool
    seconds: float
    held_still: float  # share of the steps
    seam_mm: float | None  # p95 of the jumps where an answer comes
    elsewhere_mm: float | None  # p95 of the others
    jerk_mps3: float  # of the gripper, root mean square


@dataclass
class Watched:
    """What is measured of an episode while it is played."""

    held_still: int = 0
    jumps: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))  # elsewhere, at seams; mm
    hands: list[tuple[float, float, float]] = field(default_factory=list)

    def episode(self, answers: str, executor: str, delay: int, seed: int, *, is_success: bool) -> Episode:
        """The episode that it was."""
        steps = len(self.hands)
        elsewhere, seams = (float(np.percentile(jumps, 95)) if jumps else None for jumps in self.jumps)
        jerks = np.diff(np.array(self.hands), 3, axis=0) / STEP_S**3
        return Episode(
            answers, executor, delay, seed, is_success, steps * STEP_S, self.held_still / max(steps, 1),
            seams, elsewhere, float(np.sqrt((jerks**2).sum(axis=1).mean())) if len(jerks) else math.nan,
        )  # fmt: skip
