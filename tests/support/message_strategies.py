"""Any value of any message type, for Hypothesis."""

from __future__ import annotations

import types
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from nodes.msgs import episode, robot, voice
from nodes.sim import messages as simulated
from runtime.coordination import health
from runtime.message import Envelope, Message, fields_of

MESSAGES: list[type[Message]] = [
    value
    for module in (robot, voice, episode, health, simulated)
    for value in vars(module).values()
    if isinstance(value, type) and issubclass(value, Message) and value.__module__ == module.__name__
]

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_INT = st.integers(-(2**63), 2**64 - 1)
_FLOAT = st.floats(allow_nan=False)


def _of(declared: Any) -> st.SearchStrategy[Any]:
    origin, arguments = get_origin(declared), get_args(declared)
    if declared in (int, float, str, bool, type(None)):
        return {int: _INT, float: _FLOAT, str: _TEXT, bool: st.booleans(), type(None): st.none()}[declared]
    if isinstance(declared, type) and issubclass(declared, Message):
        return messages(declared)
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in (Union, types.UnionType):
        return st.one_of([_of(argument) for argument in arguments])
    if origin is tuple and arguments[1:] == (...,):
        return st.lists(_of(arguments[0]), max_size=4).map(tuple)
    if origin is tuple:
        return st.tuples(*(_of(argument) for argument in arguments))
    if origin is dict:
        return st.dictionaries(_of(arguments[0]), _of(arguments[1]), max_size=4)
    if origin is np.ndarray:
        dtype = np.dtype(get_args(arguments[1])[0])
        return st_numpy.arrays(dtype, st_numpy.array_shapes(min_dims=0, min_side=0, max_dims=3, max_side=4))
    raise NotImplementedError(f"no strategy for {declared!r}")


@cache
def messages(message: type[Message]) -> st.SearchStrategy[Message]:
    """Any value of this message type."""
    return st.builds(message, **{field.name: _of(field.type) for field in fields_of(message)})


any_message = st.sampled_from(MESSAGES).flatmap(messages)

_STAMP = st.integers(0, 2**62)

envelopes = st.builds(
    Envelope,
    topic=_TEXT,
    source=_TEXT,
    seq=_STAMP,
    published_ns=_STAMP,
    origins=st.dictionaries(st.sampled_from(("image", "utterance", "plan", "lidar")), _STAMP),
    epochs=st.dictionaries(st.sampled_from(("planner", "vlm", "policy", "navigation")), _STAMP),
    cause=_TEXT,
    provenance=_TEXT,
)


def plain(value: Any) -> Any:
    """A message as values that compare with ==, arrays as (type, shape, bytes), so that NaN equals itself."""
    if isinstance(value, np.ndarray):
        return (value.dtype.str, value.shape, value.tobytes())
    if isinstance(value, msgspec.Struct):
        return (type(value), *(plain(getattr(value, name)) for name in value.__struct_fields__))
    if isinstance(value, tuple):
        return tuple(plain(part) for part in value)
    return value
