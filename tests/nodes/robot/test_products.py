"""Products are what numpy's own are, and what a tick computes asks no BLAS, which rounds as the processor does."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from nodes.robot.products import least_squares, product

ROOT = Path(__file__).resolve().parents[3]
ASK_BLAS = {
    "dot", "vdot", "inner", "matmul", "tensordot", "vecdot", "matvec", "vecmat", "convolve", "correlate", "corrcoef",
    "cov", "polyfit", "multivariate_normal",
}  # fmt: skip
IN_NO_TICK = (
    "nodes/episodes/commands/follow.py",  # measures of what was said, after it
    "nodes/episodes/evaluation/",  # scores of an episode that has ended
    "nodes/episodes/results/",  # tables of many episodes
    "nodes/recording/dataset/doctor.py",  # looks into a data set that lies there
    "nodes/policy/learn/",  # learns after a run
    "nodes/statistics/paired.py",  # compares episodes that have ended
    "nodes/vlm/onnx/model.py",  # compares two readings once, where a model is loaded
)

Shape = tuple[int, ...]


@pytest.mark.parametrize(
    ("one", "other"),
    [((3,), (3,)), ((3,), (3, 4)), ((3,), (5, 3, 4)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((2, 3), (5, 3, 4)),
     ((5, 2, 3), (5, 3, 4)), ((0, 3), (3, 3))],
)  # fmt: skip
def test_a_product_is_that_of_the_operator(one: Shape, other: Shape) -> None:
    random = np.random.default_rng(3)
    left, right = random.normal(size=one), random.normal(size=other)
    np.testing.assert_allclose(product(left, right), left @ right, rtol=1e-12, atol=1e-15)
    assert product(left.astype(np.float32), right.astype(np.float32)).dtype == np.float32


def test_least_squares_are_those_of_lapack_also_where_several_are_as_close() -> None:
    random = np.random.default_rng(3)
    matrix, right = random.normal(size=(50, 4)), random.normal(size=50)
    np.testing.assert_allclose(least_squares(matrix, right), np.linalg.lstsq(matrix, right)[0], atol=1e-9)
    matrix[:, 3] = matrix[:, 2]
    np.testing.assert_allclose(least_squares(matrix, right), np.linalg.lstsq(matrix, right)[0], atol=1e-4)


def asks_blas(tree: ast.AST) -> Iterator[int]:
    """The lines that do; np.linalg.norm along an axis is a sum of numpy's own."""
    along_an_axis = {
        id(node.func)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and any(word.arg == "axis" for word in node.keywords)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
            yield node.lineno
        elif isinstance(node, ast.Attribute):
            is_linalg = isinstance(node.value, ast.Attribute) and node.value.attr == "linalg"
            if node.attr in ASK_BLAS or (is_linalg and not (node.attr == "norm" and id(node) in along_an_axis)):
                yield node.lineno


@pytest.mark.long
def test_what_a_tick_computes_asks_no_blas() -> None:
    found = [
        f"{name}:{line}"
        for package in ("runtime", "nodes", "bridges")
        for path in sorted((ROOT / package).rglob("*.py"))
        if not (name := path.relative_to(ROOT).as_posix()).startswith(IN_NO_TICK)
        for line in asks_blas(ast.parse(path.read_text()))
    ]
    assert found == [], "take nodes.robot.products, or math.hypot"


@pytest.mark.parametrize(
    ("text", "number"),
    [("a @ b", 1), ("a @= b", 1), ("a.dot(b)", 1), ("np.linalg.norm(a)", 1), ("np.linalg.norm(a, axis=1)", 0),
     ("np.linalg.solve(a, b)", 1), ("np.convolve(a, b)", 1), ("np.cross(a, b)", 0), ("@on(a)\ndef f(): ...", 0)],
)  # fmt: skip
def test_what_asks_blas_is_found(text: str, number: int) -> None:
    assert len(list(asks_blas(ast.parse(text)))) == number
