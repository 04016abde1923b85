"""Counterbalancing: which condition comes when for which participant. Seeded, and the same for ever."""

from __future__ import annotations

import random
from typing import Literal

Order = Literal["latin-square", "fixed", "random"]


def balanced_square(size: int) -> list[list[int]]:
    """Rows in which each condition is in each place equally often, and follows each other one equally often.

    Williams' design: `size` rows for an even size, twice as many for an odd one.
    """
    first = [0]
    for step in range(1, size):
        first.append((step + 1) // 2 if step % 2 else size - step // 2)
    rows = [[(place + shift) % size for place in first] for shift in range(size)]
    if size % 2 and size > 1:
        rows += [row[::-1] for row in rows]
    return rows


def rows_of(size: int) -> int:
    """After how many participants the square begins anew."""
    return 2 * size if size % 2 and size > 1 else size


def order_of(count: int, participant: int, order: Order, seed: int) -> list[int]:
    """The order of `count` things for a participant (numbered from 1)."""
    if order == "fixed" or count < 2:
        return list(range(count))
    if order == "random":
        return random.Random(f"{seed}/{participant}").sample(range(count), count)
    names = random.Random(f"{seed}/names").sample(range(count), count)  # which condition is which letter of the square
    rows = balanced_square(count)
    return [names[place] for place in rows[(participant - 1) % len(rows)]]
