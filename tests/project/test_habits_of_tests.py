"""Tests touch no private names of the product, do not sleep, and keep its sentences in one file for each area."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

import pytest

from tests.support.sentences import FILES, TESTS, golden
from tests.support.syntax import parsed, without_garbage  # noqa: F401  # a fixture

pytestmark = pytest.mark.usefixtures("without_garbage")

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


def trees() -> Iterator[tuple[str, ast.Module]]:
    return ((path.relative_to(TESTS).as_posix(), parsed(path)) for path in sorted(TESTS.rglob("test_*.py")))


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


SHORTEST_SENTENCE = 20
HANDED_ON = (
    "all",
    "any",
    "count",
    "endswith",
    "escape",
    "fullmatch",
    "list",
    "match",
    "search",
    "sorted",
    "startswith",
)
"""Calls that are given what a test expects; others are given what it puts in."""
LITERAL = ast.Constant | ast.JoinedStr | ast.BinOp | ast.List | ast.Tuple | ast.Dict
Named = dict[str, list[ast.expr]]
"""What each name may stand for."""


def is_long(text: str) -> bool:
    """Whether a text is a sentence: not a word, and no command."""
    is_command = text.startswith(("polyrhythm ", "apt install ", "pip install "))
    return len(text) >= SHORTEST_SENTENCE and text.count(" ") >= 2 and not is_command


def texts_in(tree: ast.AST) -> Iterator[str]:
    """Strings and the fixed parts of f-strings; no docstrings."""
    nodes = list(ast.walk(tree))
    docs = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value.strip()


def sentences_of_the_product() -> frozenset[str]:
    sources = [path for room in PRODUCT for path in (TESTS.parent / room).rglob("*.py")]
    return frozenset(text for path in sources for text in texts_in(parsed(path)) if is_long(text))


def called(node: ast.AST) -> str:
    return str(getattr(node.func, "attr", getattr(node.func, "id", ""))) if isinstance(node, ast.Call) else ""


def expectations(nodes: Iterable[ast.AST]) -> Iterator[ast.expr]:
    """What a test asserts, and what it matches an error with."""
    for node in nodes:
        if isinstance(node, ast.Assert):
            yield node.test  # without its own message
        elif isinstance(node, ast.Call) and called(node) == "raises":
            yield from (word.value for word in node.keywords if word.arg == "match")


def names_in(node: ast.AST) -> Iterator[str]:
    """The names in an expectation, without those of what a test puts in."""
    if isinstance(node, ast.Name):
        yield node.id
    is_put_in = isinstance(node, ast.Call) and called(node) not in HANDED_ON
    for child in [node.func] if isinstance(node, ast.Call) and is_put_in else ast.iter_child_nodes(node):
        yield from names_in(child)


def bind(named: Named, target: ast.expr, value: ast.expr) -> None:
    """Note what the names of a target stand for: of an assignment, a loop, or the head of a table above its row."""
    names = [one.id for one in ast.walk(target) if isinstance(one, ast.Name)]
    names = names or re.findall(r"\w+", " ".join(texts_in(target)))
    is_row = isinstance(value, ast.Call) and called(value) == "param"
    cells = value.args if isinstance(value, ast.Call) and is_row else getattr(value, "elts", [value])
    for number, name in enumerate(names):
        named.setdefault(name, []).append(cells[number] if len(cells) == len(names) else value)


def bind_all(named: Named, nodes: Iterable[ast.AST]) -> Named:
    for node in nodes:
        tables: list[tuple[ast.expr, ast.expr]] = []
        if isinstance(node, ast.Assign):
            bind(named, node.targets[0], node.value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            bind(named, node.target, node.value)
        elif isinstance(node, ast.For):
            tables = [(node.target, node.iter)]
        elif isinstance(node, ast.Call) and called(node) == "parametrize":
            tables = [(node.args[0], node.args[1])]
        for head, table in tables:
            for rows in list(named.get(table.id, [])) if isinstance(table, ast.Name) else [table]:
                for row in getattr(rows, "elts", [rows]):
                    bind(named, head, row)
    return named


def texts_named(node: ast.expr, named: Named, seen: set[str]) -> Iterator[ast.expr]:
    """The texts that the names in an expectation stand for."""
    for name in set(names_in(node)) - seen:
        seen.add(name)
        for value in named.get(name, []):
            yield from [value] if isinstance(value, LITERAL) else []
            yield from texts_named(value, named, seen)


def expected_sentences(tree: ast.Module, product: Iterable[str]) -> Iterator[str]:
    """What a test expects literally and the product says: in an assert, in `match=`, in a table of cases, by name."""
    nodes = list(ast.walk(tree))
    roots, of_module = list(expectations(nodes)), bind_all({}, tree.body)
    for function in nodes:
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        inside = list(ast.walk(function))
        if expected := list(expectations(inside)):
            named = bind_all({name: list(values) for name, values in of_module.items()}, inside)
            roots += [text for root in expected for text in texts_named(root, named, set())]
    for text in sorted({re.sub(r"\\(.)", r"\1", text) for root in roots for text in texts_in(root)}):
        if is_long(text) and any(said in text or text in said for said in product):
            yield text


def keys_used(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("sentence", "pattern"):
            yield str(getattr(node.args[0], "value", ast.unparse(node.args[0])))


def test_every_sentence_that_is_kept_is_expected_and_every_one_expected_is_kept() -> None:
    assert {key for _, tree in trees() for key in keys_used(tree)} == set(golden())


def test_no_test_holds_a_sentence_of_the_product() -> None:
    product = sentences_of_the_product()
    assert {name: some for name, tree in trees() if (some := list(expected_sentences(tree, product)))} == {}


def test_an_area_has_one_file_and_a_name_of_its_own() -> None:
    areas = [path.parent for path in FILES]
    assert [area for area in areas if set(area.parents) & set(areas)] == []
    assert len({area.name for area in areas}) == len(areas)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ('assert said == "the kettle was restarted now"', 1),
        ('assert said == f"{name}: the kettle was restarted now; {why}"', 1),
        ('assert "kettle was restarted now" in said', 1),
        ('assert said, "the kettle was restarted now"', 0),
        ('@mark.parametrize("said", ["the kettle was restarted now"])\ndef test(said): assert told() == said', 1),
        ('@mark.parametrize("said", ["the kettle was restarted now"])\ndef test(said): assert told(said) == "once"', 0),
        (
            'ROWS = [("guard", "the kettle was restarted now")]\n'
            '@mark.parametrize(("name", "said"), ROWS)\ndef test(name, said): assert told(name).startswith(said)',
            1,
        ),
        (
            '@mark.parametrize("name, said", [param("the kettle was restarted now", "yes")])\n'
            "def test(name, said): assert told(name) == said",
            0,
        ),
        (
            'SAID = {"guard": "the kettle was restarted now"}\n'
            '@mark.parametrize("name", SAID)\ndef test(name): assert told(name) == SAID[name]',
            1,
        ),
        (
            'def test():\n    for said in ("no", "the kettle was restarted now"):\n        assert said in told()',
            1,
        ),
        ('with pytest.raises(UserError, match=r"the kettle was restarted now\\."): pass', 1),
        ('assert said == sentence("guard.guard_was_restarted")', 0),
    ],
)
def test_a_sentence_that_a_test_holds_is_seen(text: str, number: int) -> None:
    assert len(list(expected_sentences(ast.parse(text), ["the kettle was restarted now"]))) == number
