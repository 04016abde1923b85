"""Arrays in messages: the document holds a place, a type and a shape, and buffers beside it hold the numbers."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any, cast, get_args

from runtime.errors import CodecError
from runtime.message import written_out

Frame = bytes | bytearray | memoryview

_DTYPE = re.compile(r"[<>|][biufc][0-9]{1,2}")
"""Numeric dtypes only; other names would make numpy parse, warn and evaluate."""


class Buffers(threading.local):
    """The buffers of the message that this thread decodes or encodes now: `read`, or `written` so far."""

    read: Sequence[Frame] = ()

    def __init__(self) -> None:
        self.written: list[Frame] = []


buffers = Buffers()


def write_array(value: object) -> object:
    """Encode an array: keep its buffer, and write its place, type and shape into the document."""
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.ndarray):
        raise CodecError(f"a message holds a {type(value).__name__}; expected plain values, messages or numpy arrays")
    array = cast(Any, value)
    dtype_name = array.dtype.str
    try:
        _dtype(dtype_name)
    except ValueError as problem:
        raise CodecError(f"a message holds an array of {array.dtype}; expected numbers") from problem
    written = buffers.written
    written.append(memoryview(numpy.ascontiguousarray(array)).cast("B") if array.size else b"")
    return (len(written) - 1, dtype_name, array.shape)


def is_numbers(name: str) -> bool:
    """Whether arrays with a dtype of this name can be sent."""
    try:
        _dtype(name)
    except (ValueError, TypeError):
        return False
    return True


@cache
def _dtype(name: str) -> Any:
    """The numbers of that name. Raises ValueError or TypeError where it names none."""
    import numpy as np

    if not _DTYPE.fullmatch(name):
        raise ValueError(f"{name!r} is no type of numbers")
    return np.dtype(name)


def read_array(declared: Any, value: object) -> object:
    """The array of a place in the document, checked against the type that the message declares. Raises CodecError."""
    import numpy as np

    found = buffers.read
    try:
        index, dtype_name, shape = cast(Any, value)
        if not 0 <= index < len(found):
            raise ValueError("no such buffer")
        buffer = found[index]
        array = np.ndarray(shape, _dtype(dtype_name), buffer)  # raises where the buffer is too short
        if array.nbytes != len(buffer) or array.shape != tuple(shape):
            raise ValueError(f"{len(buffer)} bytes for {shape}")
    except (TypeError, ValueError, IndexError, KeyError, OverflowError) as problem:
        raise CodecError(f"an array does not fit its buffer: {problem}") from problem
    wanted = declared_dtype(declared)
    if wanted is not None and array.dtype != wanted:
        raise CodecError(f"an array holds {array.dtype}; expected {wanted}")
    array.setflags(write=False)
    return array


@cache
def declared_dtype(declared: Any) -> Any:
    """The dtype that an array's annotation names; None where it takes any numbers."""
    import numpy as np

    for argument in get_args(written_out(declared)):
        for scalar in get_args(argument):
            if isinstance(scalar, type) and issubclass(scalar, np.generic):
                return np.dtype(scalar)
    return None
