"""Words that mean "stop" are never refused, however much was said before them."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from runtime.errors import ParameterError
from runtime.launch.nodes_table import load_name

STOP_WORDS = "nodes.interrupts.intent:is_stop"


def load_stop_words(name: str) -> Callable[[str], bool]:
    """What tells whether a sentence means "stop", named as "module:function". Raises UserError where it is none."""
    found = load_name(name)
    if not callable(found):
        raise ParameterError(f"stop_words {name!r} is no function; expected one like {STOP_WORDS}")
    return cast(Callable[[str], bool], found)
