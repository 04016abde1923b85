"""What is to be tried, and what became of it: plain data, in the order in which it is run and kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from nodes.mcap.file import BagReader
from runtime.message import Message

Told = TypeVar("Told", bound=Message)

NO_TASK = ""
WRONG_DEED = "wrong_deed"
"""The measure of a result that names the condition which must never hold and did; "" for none."""


class TrialVariant(msgspec.Struct, frozen=True):
    """One way to run the graph: a name, and what `--set`, `--add` and `--without` make of the launch file."""

    name: str
    changes: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


class EvaluationRun(msgspec.Struct, frozen=True):
    """One run."""

    variant: str
    task: str  # an embodied scenario; "" is the launch file as it is
    seed: int

    @property
    def name(self) -> str:
        """For people, and for its folder."""
        return "-".join((self.variant, *([self.task] if self.task else []), f"seed{self.seed}"))


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """How it went. Times in virtual time where the run was virtual."""

    trial: EvaluationRun
    is_success: bool | None  # None: no node said how it went, or the run broke
    reason: str
    has_broken: bool = False  # it ended without a summary
    duration_s: float = 0.0
    stops_to_held_ms: tuple[float, ...] = ()  # of each stop: from what was heard or felt to the output braking
    image_age_p99_ms: float | None = None  # of the oldest image behind the robot's commands
    measures: dict[str, float | str | bool | None] = {}  # of an experiment, from its own report
    words: tuple[tuple[float, str, str], ...] = ()  # s of the run, speaker, text
    took_s: float = 0.0  # on the wall clock
    recording: str = ""  # where it was kept


class Card(msgspec.Struct, frozen=True):
    """What all results of a file have in common; another evaluation has another card."""

    launch: str  # the launch file's text
    variants: tuple[TrialVariant, ...]
    tasks: tuple[str, ...]
    is_virtual: bool
    for_s: float | None
    versions: dict[str, str]
    git: str
    measures: tuple[str, ...] = ()  # of the user's own, as --measure names them
    reads: dict[str, str] = {}  # files that runs read besides, and digests of their contents


def trials_of(variants: Sequence[TrialVariant], tasks: Sequence[str], seeds: Iterable[int]) -> list[EvaluationRun]:
    """All of them, seed by seed: what is stopped early has tried every variant about as often."""
    return [
        EvaluationRun(variant.name, task, seed)
        for seed in seeds
        for task in (tasks or (NO_TASK,))
        for variant in variants
    ]


def result_of(trial: EvaluationRun, summary: dict[str, Any], *, took_s: float, recording: str = "") -> Result:
    """From what `polyrhythm run --json` printed."""
    stops = summary.get("interrupts", ())
    age = summary.get("image_age_ms")
    return Result(
        trial=trial,
        is_success=summary.get("is_success"),
        reason=str(summary.get("reason", "")),
        duration_s=float(summary.get("duration_s", 0.0)),
        stops_to_held_ms=tuple(
            float(one["held_ms"]) for one in stops if one.get("is_cause") and one.get("held_ms") is not None
        ),
        image_age_p99_ms=float(age["p99"]) if age else None,
        measures=summary.get("measures") or {},
        words=tuple(
            (float(one["at_s"]), str(one["speaker"]), str(one["text"])) for one in summary.get("conversation") or ()
        ),
        took_s=round(took_s, 2),
        recording=recording,
    )


def print_outcome(
    outcome: tuple[bool | None, str] | None,
    recording: Path,
    topic: str,
    kind: type[Told],
    more: Callable[[Told], dict[str, Any]],
) -> bool | None:
    """Whether a run succeeded, as JSON, with what the newest message of a topic says besides; nothing else of it."""
    ok, reason = outcome if outcome is not None else (None, "nobody judged it")
    told: dict[str, Any] = {"is_success": ok, "reason": reason}
    found = next((one for one in BagReader(recording).newest_first(lambda: True) if one.topic == topic), None)
    print(json.dumps(told | (more(found.message(kind)) if found is not None else {})))
    return ok
