"""What agents are scored on: seven dimensions with their ranges and instructions, or a user's own from a file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from nodes.msgs.episode import Scores
from runtime.errors import UserError
from runtime.serialization.toml_errors import read_toml


class Dimension(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One scale, whole numbers from `low` to `high`."""

    name: str
    low: int
    high: int
    instruction: str
    title: str = ""
    steps: tuple[str, ...] = ()  # what each whole number means, from `low` to `high`; (): only the instruction says it

    @property
    def meanings(self) -> tuple[str, ...]:
        """A line for each number that has a sentence, from low to high."""
        return tuple(f"{number}: {text}" for number, text in enumerate(self.steps, start=self.low))

    def problem_of(self, score: object) -> str:
        """Why a score is none of this dimension; "" where it is one."""
        if isinstance(score, bool) or not isinstance(score, int | float) or not abs(score) < 1e9:
            return f"{self.name} is {score!r}; expected a whole number"
        if score != int(score):
            return f"{self.name} is {score}; expected a whole number"
        if not self.low <= score <= self.high:
            return f"{self.name} is {score:g}; expected {self.low} to {self.high}"
        return ""

    @property
    def label(self) -> str:
        """As tables head it: "GOAL [0, 10]"."""
        return f"{self.name} [{self.low}, {self.high}]"


_KNOWN = read_toml(Path(__file__).with_name("dimensions.toml"))
SEVEN = msgspec.convert(_KNOWN["dimension"], tuple[Dimension, ...])
NAMES = tuple(dimension.name for dimension in SEVEN)

RULES_JUDGE = "rules"
"""The offline judge's name."""
NOT_JUDGED = "not judged: "
"""How the reasoning begins where there is no score."""


def fine() -> tuple[Dimension, ...]:
    """The seven with a sentence for each number: the fine-grained scale that comes with the package."""
    both = zip(_KNOWN["dimension"], _KNOWN["fine"], strict=True)
    return tuple(msgspec.convert({**plain, **more}, Dimension) for plain, more in both)


def with_steps(dimensions: Iterable[Dimension]) -> tuple[Dimension, ...]:
    """These dimensions, those of the seven on the fine-grained scale."""
    known = {(one.name, one.low, one.high): one for one in fine()}
    return tuple(known.get((one.name, one.low, one.high), one) for one in dimensions)


def read_dimensions(path: Path) -> tuple[Dimension, ...]:
    """The dimensions of a TOML file, tables [[dimension]] with name, low, high, instruction. Raises UserError."""
    tables = read_toml(path)
    rows = tables.get("dimension")
    if set(tables) != {"dimension"} or not isinstance(rows, list) or not rows:
        raise UserError(f"{path}: expected tables [[dimension]] and nothing else")
    found: list[Dimension] = []
    for number, row in enumerate(rows, start=1):
        where = f"{path}: dimension {number}"
        try:
            dimension = msgspec.convert(row, Dimension)
        except msgspec.ValidationError as problem:
            raise UserError(f"{where}: {problem}") from problem
        if not dimension.name.strip() or any(dimension.name == other.name for other in found):
            raise UserError(f"{where}: name is {dimension.name!r}; expected one that no other dimension has")
        if dimension.low >= dimension.high:
            raise UserError(f"{where}: low is {dimension.low} and high {dimension.high}; expected low < high")
        count = dimension.high - dimension.low + 1
        if dimension.steps and len(dimension.steps) != count:
            raise UserError(f"{where}: steps has {len(dimension.steps)} sentences; expected {count}, one a number")
        found.append(dimension)
    return tuple(found)


def mean_scores(scores: Iterable[Scores], judge: str = "") -> dict[str, dict[str, float]]:
    """name -> dimension -> mean; a failed evaluation adds nothing, and nobody gets a zero for it.

    What rules can tell is no second opinion: it counts where no other judge was asked, or where it alone is wanted.
    """
    values: dict[str, dict[str, list[float]]] = {}
    asked = sorted(scores, key=lambda one: one.judge == RULES_JUDGE)
    is_settled = any(one.state == "failed" and one.judge != RULES_JUDGE for one in asked)
    for one in asked:
        if one.state != "done" or (judge and one.judge != judge):
            continue
        is_last = one.judge == RULES_JUDGE and not judge
        for score in one.scores:
            found = values.get(score.name, {})
            if score.score is None or (is_last and (is_settled or score.dimension in found)):
                continue
            values.setdefault(score.name, {}).setdefault(score.dimension, []).append(score.score)
    return {
        name: {dimension: sum(found) / len(found) for dimension, found in sorted(dimensions.items())}
        for name, dimensions in sorted(values.items())
    }


def overall(dimensions: dict[str, float]) -> float | None:
    """The unweighted mean of the seven dimensions; None where one of them has no score."""
    return sum(dimensions[name] for name in NAMES) / len(NAMES) if set(NAMES) <= set(dimensions) else None


PUBLISHED: dict[str, str] = _KNOWN["published"]
"""Our names of the seven as the sotopia package writes them."""
