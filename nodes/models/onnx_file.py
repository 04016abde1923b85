"""What is in a model file, as far as it decides whether the file may be loaded; reads bytes, runs nothing.

ONNX lets a tensor live in another file, named by a path in the model, and such paths have led outside the model's
folder more than once. Here the weights of the main graph may live in files beside the model, where a hash over all of
them is given; they are read here, and the runtime is handed their bytes. Any other mention of external data is refused.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LONGEST_FILE = 2**31 - 1  # a protocol buffer cannot be longer
LARGEST_DATA = 2**33
"""Bytes of all files beside a model."""

DEEPEST = 32

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

# Message fields that can lead to a tensor, as in onnx.proto: kind of message -> field number -> kind of its value.
_CHILDREN: dict[str, dict[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node", 11: "attribute"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {},
}
_EXTERNAL_DATA, _DATA_LOCATION = 13, 14  # of a tensor
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")
_KINDS = {1: "float", 6: "int32", 7: "int64", 8: "string", 9: "bool", 10: "float16", 11: "double"}


@dataclass(frozen=True, slots=True)
class Tensor:
    """One input or output; a size that is not fixed is None."""

    name: str
    kind: str  # as ONNX calls it: "float", "int64"
    shape: tuple[int | None, ...]
    is_of_any_shape: bool = False  # as far as a file says

    def __str__(self) -> str:
        sizes = ", ".join("any" if size is None else str(size) for size in self.shape)
        return f"tensor({self.kind}) of shape [{sizes}]"

    def fits(self, found: Tensor) -> bool:
        """Whether a found one is of this type, or of half or double its width, and has every size that both fix."""
        is_same_kind = self.kind == found.kind or (self.kind == "float" and found.kind in ("float16", "double"))
        if not is_same_kind or found.is_of_any_shape:
            return is_same_kind
        if self.is_of_any_shape:
            return True
        pairs = zip(self.shape, found.shape, strict=False)
        is_same = all(one is None or other is None or one == other for one, other in pairs)
        return is_same and len(self.shape) == len(found.shape)


def read_model(path: str, sha256: str = "") -> tuple[bytes, list[str]]:
    """The file's bytes and what speaks against loading them, in sentences; what is loaded must be these very bytes.

    A model with tensors in other files is refused.
    """
    data, problems = _read(path)
    if problems:
        return data, problems
    if wrong := _unlike_hash(path, (data,), sha256):
        return data, [wrong]
    names, problems = _beside(path, data)
    if problems or names:
        return data, problems or [f"model {path!r} keeps tensors in other files; save it as one file"]
    return data, []


def read_model_with_data(path: str, sha256: str = "") -> tuple[bytes, dict[str, bytes], list[str]]:
    """The same for a model that may keep tensors in files beside it; these by name.

    `sha256` is that of the model and then of those files, in the order of their names, one after the other.
    """
    data, problems = _read(path)
    if problems:
        return data, {}, problems
    names, problems = _beside(path, data)
    if problems:
        return data, {}, problems
    files = [Path(path).parent / name for name in names]
    lacking = [file.name for file in files if not file.is_file()]
    if lacking:
        return data, {}, [f"model {path!r} keeps tensors in {', '.join(lacking)}, which is not beside it"]
    if sum(file.stat().st_size for file in files) > LARGEST_DATA:
        return data, {}, [f"model {path!r} keeps more than {LARGEST_DATA >> 30} GiB in other files"]
    beside = {file.name: file.read_bytes() for file in files}
    if beside and not sha256:
        whole = _sha256((data, *beside.values()))
        listed = " ".join((Path(path).name, *beside))
        return (
            data,
            {},
            [
                f"model {path!r} keeps tensors in {', '.join(beside)}; such a model needs its sha256, "
                f"which is now {whole} (cat {listed} | sha256sum)"
            ],
        )
    if wrong := _unlike_hash(path, (data, *beside.values()), sha256):
        return data, {}, [wrong]
    return data, beside, []


def _sha256(parts: tuple[bytes, ...]) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(part)
    return whole.hexdigest()


def _unlike_hash(path: str, parts: tuple[bytes, ...], sha256: str) -> str:
    if sha256 and (found := _sha256(parts)) != sha256.lower():
        return f"model {path!r} has sha256 {found}, expected {sha256.lower()}"
    return ""


def _read(path: str) -> tuple[bytes, list[str]]:
    file = Path(path)
    if not path:
        return b"", ["no model is named; set the parameter model to the path of an ONNX file"]
    if not file.is_file():
        return b"", [f"model {path!r} does not exist" if not file.exists() else f"model {path!r} is not a file"]
    if file.suffix != ".onnx":
        return b"", [f"model {path!r} is not an ONNX file by its name; expected something.onnx"]
    if file.stat().st_size > LONGEST_FILE:
        return b"", [f"model {path!r} is longer than an ONNX file can be"]
    return file.read_bytes(), []


def _beside(path: str, data: bytes) -> tuple[list[str], list[str]]:
    """The names of the files in which a model's main graph keeps weights, and what speaks against the model."""
    try:
        is_hidden = _mentions_external_data(data, "model", 0)
        named = {
            name for graph in _parts(memoryview(data), 7) for part in _parts(graph, 5) for name in _locations(part)
        }
    except ValueError as problem:
        return [], [f"model {path!r} is no ONNX model: {problem}"]
    if is_hidden:
        return [], [f"model {path!r} keeps tensors in other files; save it as one file"]
    wrong = sorted(name for name in named if not _PLAIN_NAME.fullmatch(name))
    if wrong:
        return [], [f"model {path!r} keeps tensors in {', '.join(map(repr, wrong))}; expected a file beside it"]
    return sorted(named), []


def _locations(tensor: memoryview) -> list[str]:
    """The file that a tensor names. Raises ValueError where it is external and names none."""
    entries = {_text(entry, 1): _text(entry, 2) for entry in _parts(tensor, _EXTERNAL_DATA)}
    is_external = any(number == _DATA_LOCATION and value != 0 for number, value in _fields(tensor))
    if not entries and not is_external:
        return []
    if "location" not in entries:
        raise ValueError("a tensor is in another file that it does not name")
    return [entries["location"]]


def declared(data: bytes) -> tuple[list[Tensor], list[Tensor]]:
    """The inputs and outputs that a model names, as far as its file says their types and sizes.

    Raises ValueError where the bytes are no model.
    """
    found: tuple[list[Tensor], list[Tensor]] = [], []
    for graph in _parts(memoryview(data), 7):
        constants = {_text(part, 8) for part in _parts(graph, 5)}  # old files list these among the inputs, too
        for number, tensors in ((11, found[0]), (12, found[1])):
            tensors += [_tensor(part) for part in _parts(graph, number) if _text(part, 1) not in constants]
    return found


def metadata_of(data: bytes) -> dict[str, str]:
    """What a model's file says of itself by name, such as its training's rate. Raises ValueError as `declared` does."""
    return {_text(part, 1): _text(part, 2) for part in _parts(memoryview(data), 14)}


def _tensor(data: memoryview) -> Tensor:
    kind = "?"
    shape: list[int | None] = []
    has_shape = False
    for kind_of in (part for whole in _parts(data, 2) for part in _parts(whole, 1)):
        for number, value in _fields(kind_of):
            if number == 1 and isinstance(value, int):
                kind = _KINDS.get(value, f"type {value}")
        for whole in _parts(kind_of, 2):
            has_shape = True
            for size in _parts(whole, 1):
                fixed = [value for number, value in _fields(size) if number == 1 and isinstance(value, int)]
                shape.append(fixed[-1] if fixed else None)
    return Tensor(_text(data, 1), kind, tuple(shape), is_of_any_shape=not has_shape)


def _parts(data: memoryview, field: int) -> Iterator[memoryview]:
    return (value for number, value in _fields(data) if number == field and not isinstance(value, int))


def _text(data: memoryview, field: int) -> str:
    return next((bytes(value).decode("utf-8", "replace") for value in _parts(data, field)), "")


def _mentions_external_data(data: bytes | memoryview, kind: str, depth: int) -> bool:
    """Anywhere but in the weights of the main graph."""
    if depth > DEEPEST:
        raise ValueError("its graphs are nested too deeply")
    children = _CHILDREN[kind]
    for number, value in _fields(memoryview(data)):
        if kind == "tensor" and (number == _EXTERNAL_DATA or (number == _DATA_LOCATION and value != 0)):
            return True
        child = children.get(number)
        if depth == 1 and kind == "graph" and child == "tensor":
            continue
        if child is None:
            continue
        if isinstance(value, int):
            raise ValueError(f"field {number} of its {kind} is a number")
        if _mentions_external_data(value, child, depth + 1):
            return True
    if depth == 0 and not any(number == 7 for number, _ in _fields(memoryview(data))):
        raise ValueError("it has no graph")
    return False


def _fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """The fields of one protocol-buffer message. Raises ValueError where the bytes are none."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if number == 0:
            raise ValueError("a field has the number 0")
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield number, value
            continue
        if wire == _BYTES:
            size, at = _varint(data, at)
        elif wire in (_FIXED32, _FIXED64):
            size = 4 if wire == _FIXED32 else 8
        else:
            raise ValueError(f"a field has the wire type {wire}")
        if at + size > len(data):
            raise ValueError("it is cut off")
        if wire == _BYTES:
            yield number, data[at : at + size]
        else:
            yield number, int.from_bytes(data[at : at + size], "little")
        at += size


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise ValueError("it is cut off")
