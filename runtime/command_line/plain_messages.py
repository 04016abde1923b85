"""Messages as plain data for people and scripts: by their type where it can be imported, else by their bytes alone.

Arrays are summarised as {"shape": ..., "dtype": ...}; nobody reads a million pixels.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgpack
import msgspec

from runtime.errors import CodecError
from runtime.launch.process_plan import load_type
from runtime.message import Envelope, Message
from runtime.serialization.codec import MAX_DOCUMENT_BYTES, Frame, decode

Plain = Any  # None, bool, int, float, str, list or dict, as JSON has them

_DTYPE = re.compile(r"([<>|])([biufc])([0-9]{1,2})")
_WORDS = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex"}


def find_type(name: str) -> type[Message] | None:
    """The message type "module:Class", or None where it cannot be imported here."""
    try:
        return load_type(name)
    except Exception:  # noqa: BLE001  # importing a user's module may raise anything
        return None


def to_plain(frames: Sequence[Frame], message: type[Message] | None) -> tuple[Envelope, Plain]:
    """A message's envelope and content. Raises CodecError where the frames are no message at all."""
    if message is not None:
        try:
            stamped = decode(frames, message)
            return stamped.envelope, _plain(stamped.message)
        except CodecError:
            pass  # of another release: its bytes may still tell
    return _without_type(frames)


def _plain(value: object) -> Plain:
    if isinstance(value, msgspec.Struct):
        return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return _summary(value.shape, str(value.dtype))
    return value


def _summary(shape: Sequence[int], dtype: str) -> Plain:
    return {"shape": list(shape), "dtype": dtype}


def _without_type(frames: Sequence[Frame]) -> tuple[Envelope, Plain]:
    if len(frames) < 2 or len(frames[1]) > MAX_DOCUMENT_BYTES:
        raise CodecError("not a message: no document of a sensible size")
    try:
        _, envelope, payload = msgpack.unpackb(frames[1], strict_map_key=False)
        return msgspec.convert(envelope, Envelope), _shortened(payload, [len(frame) for frame in frames[2:]])
    except (ValueError, TypeError, RecursionError, msgspec.MsgspecError, msgpack.UnpackException) as problem:
        raise CodecError(f"not a message: {problem}") from problem


def _shortened(value: object, buffers_bytes: Sequence[int]) -> Plain:
    """The same with each [buffer, dtype, shape] that fits a buffer summarised as the array that it stands for."""
    if isinstance(value, dict):
        return {str(key): _shortened(part, buffers_bytes) for key, part in value.items()}
    if isinstance(value, bytes):
        return f"({len(value)} bytes)"
    if not isinstance(value, list):
        return value
    if len(value) == 3 and isinstance(value[0], int) and isinstance(value[1], str) and isinstance(value[2], list):
        index, dtype, shape = value
        match = _DTYPE.fullmatch(dtype)
        if match and 0 <= index < len(buffers_bytes) and all(isinstance(size, int) for size in shape):
            item_bytes = int(match[3])
            size_bytes = item_bytes
            for size in shape:
                size_bytes *= size
            if size_bytes == buffers_bytes[index]:
                word = _WORDS[match[2]]
                return _summary(shape, word if word == "bool" else f"{word}{item_bytes * 8}")
    return [_shortened(part, buffers_bytes) for part in value]


def in_one_line(value: Plain) -> str:
    """Plain data as `name=value name=value`."""
    if isinstance(value, dict) and set(value) == {"shape", "dtype"}:
        return f"{value['dtype']}[{'x'.join(str(size) for size in value['shape'])}]"
    if isinstance(value, dict):
        return " ".join(f"{name}={_part(part)}" for name, part in value.items())
    return _part(value)


def _part(value: Plain) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return "[" + ", ".join(_part(part) for part in value) + "]"
    if isinstance(value, dict):
        text = in_one_line(value)
        return text if set(value) == {"shape", "dtype"} else "{" + text + "}"
    return repr(value) if isinstance(value, str) else str(value)


def in_many_lines(value: Plain, indent: str = "  ") -> str:
    """Plain data with a line for each field."""
    if not isinstance(value, dict):
        return indent + _part(value)
    lines = []
    for name, part in value.items():
        if isinstance(part, dict) and set(part) != {"shape", "dtype"}:
            lines.append(f"{indent}{name}:")
            lines.append(in_many_lines(part, indent + "  "))
        elif isinstance(part, list) and any(isinstance(one, dict) for one in part):
            lines.append(f"{indent}{name}:")
            lines.extend(f"{indent}  - {in_one_line(one)}" for one in part)
        else:
            lines.append(f"{indent}{name}: {_part(part)}")
    return "\n".join(lines)
