"""Tests touch no private names of the product, and do not sleep."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
PRODUCT = ("runtime", "nodes", "bridges", "polyrhythm")
NOT_OURS = ("os", "sys", "asyncio", "pytest")


def is_private(name: object) -> bool:
    return isinstance(name, str) and name.startswith("_") and not name.startswith("__")


def private_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The line and name of each private name of another module: read, set, patched or imported."""
    nodes = list(ast.walk(tree))
    own = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
            own |= {node.attr} if node.value.id in ("self", "cls") else set()
    for node in nodes:
        if isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in own:
            if not (isinstance(node.value, ast.Name) and node.value.id in NOT_OURS):
                yield node.lineno, node.attr
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in PRODUCT:
            yield from ((node.lineno, alias.name) for alias in node.names if is_private(alias.name))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("setattr", "delattr", "__setattr__"):
                texts = [one.value for one in node.args if isinstance(one, ast.Constant)]
                yield from (
                    (node.lineno, str(text))
                    for text in texts
                    if isinstance(text, str) and is_private(text.rpartition(".")[2]) and text.isprintable()
                )
            elif isinstance(node.func.value, ast.Call):  # vars(node).update(_clock=...)
                yield from ((node.lineno, str(word.arg)) for word in node.keywords if is_private(word.arg))
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Call):  # vars(node)["_clock"]
            key = getattr(node.slice, "value", None)
            yield from [(node.lineno, str(key))] if is_private(key) else []


def sleeps(tree: ast.AST) -> Iterator[int]:
    """The lines that wait for a time, and not in a loop that waits for a fact."""
    nodes = list(ast.walk(tree))
    loops = {id(one) for node in nodes if isinstance(node, ast.While | ast.For) for one in ast.walk(node)}
    in_class = {
        id(one) for node in nodes if isinstance(node, ast.ClassDef | ast.Lambda) for one in ast.walk(node)
    }  # a node or a server that is slow: that is what is tested
    for node in nodes:
        if not isinstance(node, ast.Call) or id(node) in in_class:
            continue
        if "sleep" not in (getattr(node.func, "attr", ""), getattr(node.func, "id", "")):
            continue
        text = ast.unparse(node.func)
        waits = text in ("time.sleep", "sleep") or (text == "asyncio.sleep" and ast.unparse(node.args[0]) != "0")
        if (waits and id(node) not in loops) or (text == "time.sleep" and id(node) in loops):
            yield node.lineno


@cache
def trees() -> tuple[tuple[str, ast.AST], ...]:
    paths = sorted(TESTS.rglob("test_*.py"))
    return tuple((path.relative_to(TESTS).as_posix(), ast.parse(path.read_text())) for path in paths)


def test_no_test_touches_a_private_name_of_the_product() -> None:
    assert {name: some for name, tree in trees() if (some := list(private_names(tree)))} == {}


def test_no_test_waits_for_a_time() -> None:
    assert {name: lines for name, tree in trees() if (lines := list(sleeps(tree)))} == {}


@pytest.mark.parametrize(
    "text",
    [
        "from runtime.cli import _OWN",
        "store._db.execute('')",
        "monkeypatch.setattr(module, '_LAST_S', 0)",
        "monkeypatch.setattr('runtime.cli._OWN', 0)",
        "vars(node)['_clock'] = 3",
        "vars(node).update(_clock=3)",
    ],
)
def test_each_way_to_touch_a_private_name_is_seen(text: str) -> None:
    assert len(list(private_names(ast.parse(text)))) == 1


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("time.sleep(0.5)", 1),
        ("while not fact():\n    time.sleep(0.5)", 1),
        ("async def wait():\n    await asyncio.sleep(0.5)", 1),
        ("async def wait():\n    while not fact():\n        await asyncio.sleep(0.01)", 0),
        ("async def wait():\n    await asyncio.sleep(0)", 0),
    ],
)
def test_a_wait_for_a_time_is_told_from_one_for_a_fact(text: str, number: int) -> None:
    assert len(list(sleeps(ast.parse(text)))) == number
