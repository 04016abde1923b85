"""Labelled utterances, a JSON object a line: a shipped set by its name, or a file of one's own in the same form."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from runtime.errors import UserError, choices
from runtime.serialization.toml_errors import read_text

L = TypeVar("L", bound=msgspec.Struct)


def read_set(asked: str, shipped: Mapping[str, Path], kind: type[L]) -> tuple[list[L], str]:
    """The lines of a set, and its SHA-256. Raises UserError with file and line where one cannot be read."""
    path = shipped.get(asked, Path(asked))
    if not path.exists():
        raise UserError(f"--set {asked}: there is no such file; shipped sets: {choices(shipped)}")
    fields = (field.encode_name for field in msgspec.structs.fields(kind) if field.required)
    form = f"expected a JSON object a line, with at least {', '.join(fields)}"
    lines = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        try:
            lines += [msgspec.json.decode(line, type=kind)] if line.strip() else []
        except (msgspec.MsgspecError, RecursionError) as problem:
            raise UserError(f"{path}: line {number}: {problem}; {form}") from problem
    if not lines:
        raise UserError(f"{path}: holds no line; {form}")
    return lines, hashlib.sha256(path.read_bytes()).hexdigest()
