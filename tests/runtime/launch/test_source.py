"""A function's source is read to its end, by the lines that its code knows, as Python's own reader does."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from nodes.guard import node as guard
from nodes.planner import model_planner
from runtime import Node
from runtime.launch.checks import class_check
from runtime.launch.checks.function_source import source_of


def functions_of(*modules: Any) -> Iterator[Callable[..., Any]]:
    for module in modules:
        for cls in vars(module).values():
            if isinstance(cls, type) and cls.__module__ == module.__name__:
                yield from filter(inspect.isfunction, vars(cls).values())
            elif inspect.isfunction(cls) and cls.__module__ == module.__name__:
                yield cls


class Endings(Node):
    """Methods whose last lines compile to nothing, or lie in something that lies in them."""

    def only_says(self) -> None:
        """Nothing else."""

    def ends_in_brackets(self) -> tuple[int, ...]:
        return (
            1,
            2,
        )

    def ends_with_an_inner_one(self) -> Callable[[], int]:
        def inner() -> int:
            return 3

        return inner

    def ends_in_a_text(self) -> str:
        return """
  less far in than the code
"""

    def passes(self, given: int) -> None:
        if given:
            print(given)
        else:
            pass


def told(tree: ast.AST) -> list[tuple[str, int]]:
    """Each part with its line; of texts no more, since what `dedent` leaves of one with several lines is not it."""
    return [(type(step).__name__, getattr(step, "lineno", 0)) for step in ast.walk(tree)]


def as_python_reads(function: Callable[..., Any]) -> list[tuple[str, int]]:
    return told(ast.parse(textwrap.dedent(inspect.getsource(function))))


def test_what_is_read_of_functions_is_what_pythons_own_reader_finds() -> None:
    functions = list(functions_of(guard, model_planner, class_check))
    sources = {function.__qualname__: source_of(function) for function in functions}
    read = {name: told(one.tree) for name, one in sources.items() if one is not None}
    assert len(read) > 50
    assert read == {function.__qualname__: as_python_reads(function) for function in functions}


@pytest.mark.parametrize("name", [name for name, one in vars(Endings).items() if inspect.isfunction(one)])
def test_the_last_lines_are_read_also_where_they_compile_to_nothing(name: str) -> None:
    lines, _ = inspect.getsourcelines(getattr(Endings, name))
    source = source_of(getattr(Endings, name))
    assert source is not None
    (read,) = source.tree.body
    assert read.end_lineno == len(lines)
    assert read.lineno == 1


def test_each_part_but_the_first_has_the_one_that_it_is_in() -> None:
    source = source_of(Endings.passes)
    assert source is not None
    assert source.steps == [step for step in ast.walk(source.tree) if not isinstance(step, ast.expr_context)]
    assert set(source.parents) == {*source.steps} - {source.tree}


def test_what_has_no_file_is_none() -> None:
    made: dict[str, Any] = {}
    exec("def made(self): return 1", made)
    assert source_of(made["made"]) is None
