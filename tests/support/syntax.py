"""Python files as syntax trees, for tests of how the project is written."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest


@cache
def parsed(file: Path) -> ast.Module:
    """A file's syntax, read once for all tests of a module."""
    return ast.parse(file.read_text())


@pytest.fixture(scope="module")
def without_garbage() -> Iterator[None]:
    """Trees are millions of objects, and none is garbage: to search them for some takes longer than to read them."""
    gc.disable()
    yield
    parsed.cache_clear()
    gc.enable()
