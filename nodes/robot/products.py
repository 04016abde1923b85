"""Small matrices and their products, which round alike on every processor: numpy's own loops, and never its BLAS.

numpy hands `@`, `np.dot` and `np.linalg` to OpenBLAS, which has other code for each kind of processor: the last digits
differ, and a run of one seed is another run on the next machine. What a tick computes goes through here.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]  # of floats: a vector, a matrix, or a stack of matrices (n, rows, columns)

_SUMS = {
    (1, 1): "i,i->",
    (1, 2): "i,ij->j",
    (1, 3): "i,nij->nj",
    (2, 1): "ij,j->i",
    (2, 2): "hi,ij->hj",
    (2, 3): "hi,nij->nhj",
    (3, 3): "nhi,nij->nhj",
}


def product(one: Array, other: Array) -> Array:
    """What `one @ other` is, for the pairs above; of two vectors a number. Raises KeyError for other dimensions."""
    found: Array = np.einsum(_SUMS[one.ndim, other.ndim], one, other)
    return found


def turn_z(angle_rad: float) -> Array:
    """The rotation (3, 3) around z, to the left."""
    c, s = math.cos(angle_rad), math.sin(angle_rad)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def angle_between(one: Array, other: Array) -> float:
    """Between two rotations (3, 3), rad."""
    cosine = (float((one * other).sum()) - 1.0) / 2.0
    return math.acos(min(max(cosine, -1.0), 1.0))


def least_squares(matrix: Array, right: Array) -> Array:
    """The x (k,) for which matrix (n, k) @ x is closest to right (n,), the shortest of several; not of zeros alone."""
    square = product(matrix.T, matrix).astype(np.float64)
    square += 1e-12 * square.trace() * np.eye(len(square))
    rows = np.column_stack([square, product(matrix.T, right)])
    for place, pivot in enumerate(rows):  # Gauss and Jordan; what is positive definite needs no other pivot
        pivot /= pivot[place]
        share = rows[:, place].copy()
        share[place] = 0.0
        rows -= share[:, None] * pivot
    return rows[:, -1]
