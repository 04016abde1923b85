"""What a call in Python was given, against what it takes: the first wrong argument is a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from runtime.errors import UserError
from runtime.serialization.toml_errors import MOST_SHOWN

Fits = type[Any] | tuple[type[Any], ...] | Callable[[Any], bool]


def shown(value: Any) -> str:
    """What was given, in a sentence."""
    return (value.__name__ if isinstance(value, type) else repr(value))[:MOST_SHOWN]


def expect(argument: str, value: object, fits: Fits, expected: str) -> None:
    """`argument` ends with an open bracket or is a name: "Simulation(trace". Raises UserError where it does not fit.

    `fits` is the class, or the classes, that it is of, or a function that says whether it fits.
    """
    if not (isinstance(value, fits) if isinstance(fits, type | tuple) else fits(value)):
        raise UserError(f"{argument}={shown(value)}): expected {expected}")


def is_by_name(value: object, each: Callable[[Any], bool] = lambda one: True) -> bool:
    """Whether it is a mapping by names, of values that fit."""
    return isinstance(value, Mapping) and all(isinstance(name, str) and each(one) for name, one in value.items())


def is_of(value: object, kind: type[Any] | tuple[type[Any], ...]) -> bool:
    """Whether it holds only things of that class; a text, which holds letters, is one thing."""
    return isinstance(value, Iterable) and not isinstance(value, str | type) and all(isinstance(x, kind) for x in value)


def is_names(value: object) -> bool:
    """Whether it is a list or tuple of names."""
    return isinstance(value, list | tuple) and is_of(value, str)
