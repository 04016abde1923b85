"""The source of one function as a tree, read once for all that look into it.

`inspect.getsource` finds the end of a function by a tokenizer in Python: for the nodes of one graph that took longer
than to import some of their modules. The compiled code knows its last line.
"""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Callable
from functools import cache
from types import CodeType
from typing import Any

import msgspec


class Source(msgspec.Struct, frozen=True, eq=False):
    """A function's tree; its first line, the one of the first mark above `def`, has the number 1."""

    tree: ast.Module
    steps: list[ast.AST]  # all parts of it, those further out first; not whether a name is read or set
    parents: dict[ast.AST, ast.AST]


@cache
def source_of(function: Callable[..., Any]) -> Source | None:
    """What is written there; None where it has no file, or the file is another by now."""
    try:
        tree, above = _tree(function)
    except (OSError, SyntaxError, TypeError):
        return None
    steps: list[ast.AST] = [tree]
    parents: dict[ast.AST, ast.AST] = {}
    for step in steps:  # which grow on the way; `ast.walk` took longer than to parse
        own = vars(step)
        if above and "lineno" in own:
            own["lineno"], own["end_lineno"] = own["lineno"] - above, own["end_lineno"] - above
        for name in step._fields:
            value = own.get(name)
            for child in value if type(value) is list else (value,):
                if isinstance(child, ast.AST) and not isinstance(child, ast.expr_context):
                    parents[child] = step
                    steps.append(child)
    return Source(tree, steps, parents)


def _tree(function: Callable[..., Any]) -> tuple[ast.Module, int]:
    """The tree, and how many lines stand above the function's own in it."""
    code: CodeType = function.__code__
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, function.__globals__)[code.co_firstlineno - 1 : _last_line(code)]
    try:
        tree, above = _parsed("".join(lines))
        if len(tree.body) == 1 and getattr(tree.body[0], "name", "") == code.co_name:
            return tree, above
    except SyntaxError:
        pass  # its last lines compile to nothing, as a docstring or a bracket does
    tree, above = _parsed(inspect.getsource(function))
    if code.co_name != "<lambda>" and [getattr(step, "name", "") for step in tree.body] != [code.co_name]:
        raise OSError("another text stands there, such as that of `python -c`")
    return tree, above


def _parsed(text: str) -> tuple[ast.Module, int]:
    """Of lines that stand as far in as they do in their class: a text in them may stand further out."""
    if not text[:1].isspace():
        return ast.parse(text), 0
    block, *others = ast.parse(f"if True:\n{text}").body
    assert isinstance(block, ast.If)
    return ast.Module([*block.body, *others], []), 1


def _last_line(code: CodeType) -> int:
    inner = (_last_line(const) for const in code.co_consts if isinstance(const, CodeType))
    ends = (end for _, end, _, _ in code.co_positions() if end is not None)
    return max((*inner, *ends), default=code.co_firstlineno)
