"""`ShapeNames`: what geometry alone calls the things that it finds, as a data file says."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from runtime.errors import ParameterError
from runtime.serialization.toml_errors import read_toml


class ThingShape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row: a name, how sure it is, and what must hold; m, and multiples of the width."""

    label: str
    confidence: float
    is_round: bool = False
    above_m: float = 0.0
    above_widths: float = 0.0
    longer_than_wide: float = 0.0
    longer_than_m: float = 0.0

    def fits(self, width_m: float, length_m: float, height_m: float, *, is_round: bool) -> bool:
        """Whether a thing of this size has that shape."""
        across = (width_m + length_m) / 2
        return (
            (is_round or not self.is_round)
            and (not self.above_m or height_m > self.above_m)
            and (not self.above_widths or height_m > self.above_widths * across)
            and (not self.longer_than_wide or length_m > self.longer_than_wide * width_m)
            and (not self.longer_than_m or length_m > self.longer_than_m)
        )


class BoxShape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A box that things are put into."""

    label: str
    sides_m: tuple[float, float]
    least_height_m: float


class ShapeNames(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The data file."""

    table: str
    box: BoxShape
    things: tuple[ThingShape, ...]
    widest_m: float = 0.20
    tallest_m: float = 0.30

    @property
    def kinds(self) -> tuple[str, ...]:
        """What these eyes can tell apart."""
        return tuple(dict.fromkeys(sorted(one.label for one in self.things)))

    @property
    def places(self) -> tuple[str, ...]:
        """What they take for a place."""
        return (self.box.label, self.table)

    def name(self, width_m: float, length_m: float, height_m: float, *, is_round: bool) -> tuple[str, float]:
        """The kind by proportions, and how sure that is."""
        for one in self.things:
            if one.fits(width_m, length_m, height_m, is_round=is_round):
                return one.label, one.confidence
        return "thing", 0.5


@cache
def shape_names(file: str = "") -> ShapeNames:
    """The names that a file gives ("": ours). Raises ParameterError where it cannot be read."""
    path = Path(file) if file else Path(__file__).with_name("shapes.toml")
    try:
        return msgspec.convert(read_toml(path), ShapeNames)
    except msgspec.ValidationError as problem:
        raise ParameterError(f"shapes {path}: {problem}") from problem
