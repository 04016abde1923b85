"""Tests touch no private names of the product, do not sleep, and keep its sentences in one file for each area."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache

import pytest

from tests.support.sentences import FILES, TESTS, golden

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


SENTENCES_ARE_KEPT = (
    "bench",
    "bridges",
    "nodes/camera",
    "nodes/episodes",
    "nodes/exploration",
    "nodes/guard",
    "nodes/kitchen",
    "nodes/planner",
    "nodes/policy",
    "nodes/recording",
    "nodes/report",
    "nodes/robot_file",
    "nodes/scaffold",
    "nodes/statistics",
    "nodes/terminal",
    "nodes/voice",
    "runtime",
)
"""The folders whose tests hold no sentence of the product: `tests.support.sentences` has them, a line for each."""
SHORTEST_SENTENCE = 20


def is_long(text: str) -> bool:
    """Whether a text is a sentence: not a word, and no command."""
    is_command = text.startswith(("polyrhythm ", "apt install ", "pip install "))
    return len(text) >= SHORTEST_SENTENCE and text.count(" ") >= 2 and not is_command


def texts_in(tree: ast.AST) -> Iterator[str]:
    """Strings and the fixed parts of f-strings; no docstrings."""
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value.strip()


@cache
def sentences_of_the_product() -> frozenset[str]:
    sources = [path for room in PRODUCT for path in (TESTS.parent / room).rglob("*.py")]
    return frozenset(text for path in sources for text in texts_in(ast.parse(path.read_text())) if is_long(text))


def expected_sentences(tree: ast.AST, product: Iterable[str]) -> Iterator[str]:
    """What a test expects literally, in an assert, in `match=` or in its table of cases, and the product says."""
    roots: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            roots.append(node.test)  # without its own message
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "raises":
            roots += [word.value for word in node.keywords if word.arg == "match"]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            roots += node.decorator_list
    for text in sorted({re.sub(r"\\(.)", r"\1", text) for root in roots for text in texts_in(root)}):
        if is_long(text) and any(said in text or text in said for said in product):
            yield text


def keys_used(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("sentence", "pattern"):
            yield str(getattr(node.args[0], "value", ast.unparse(node.args[0])))


def test_every_sentence_that_is_kept_is_expected_and_every_one_expected_is_kept() -> None:
    assert {key for _, tree in trees() for key in keys_used(tree)} == set(golden())


def test_the_sentences_of_an_area_stand_in_its_file_alone() -> None:
    found = {
        name: some
        for name, tree in trees()
        if name.startswith(SENTENCES_ARE_KEPT)
        if (some := list(expected_sentences(tree, sentences_of_the_product())))
    }
    assert found == {}
    areas = [path.parent.relative_to(TESTS).as_posix() for path in FILES]
    assert sorted(areas) == sorted(SENTENCES_ARE_KEPT), "an area has a file, and a file an area"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ('assert said == "the guard was restarted now"', 1),
        ('assert said == f"{name}: the guard was restarted now; {why}"', 1),
        ('assert "guard was restarted now" in said', 1),
        ('assert said, "the guard was restarted now"', 0),
        ('@mark.parametrize("said", ["the guard was restarted now"])\ndef test(): pass', 1),
        ('with pytest.raises(UserError, match=r"the guard was restarted now\\."): pass', 1),
        ('assert said == sentence("guard.guard_was_restarted")', 0),
    ],
)
def test_a_sentence_that_a_test_holds_is_seen(text: str, number: int) -> None:
    assert len(list(expected_sentences(ast.parse(text), ["the guard was restarted now"]))) == number
