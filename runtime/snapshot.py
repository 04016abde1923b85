"""`NodeSnapshot`: a node as one call of its worker thread sees it, so that two threads of a node never race.

The call works on a copy of the node's attributes, taken between two calls of its other handlers; what it set becomes
theirs between two such calls, once it has ended. So what every call sees follows from the order of these moments alone,
which the journal keeps, and a replay can keep it, too. Values that change in place (a list, a deque) are shared all the
same: hand over whole values, such as tuples.
"""

from __future__ import annotations

import random
from typing import Any


class NodeSnapshot:
    """`node` is the copy to call; `generator` stands in for the node's own random numbers, which the others draw."""

    def __init__(self, original: object, generator: random.Random) -> None:
        self._before = {**vars(original), "_random": generator}
        self.node: Any = object.__new__(type(original))
        vars(self.node).update(self._before)

    def commit(self, original: object) -> None:
        """Give the original what the call set, and take from it what the call deleted."""
        after = vars(self.node)
        for name, value in after.items():
            if name not in self._before or self._before[name] is not value:
                vars(original)[name] = value
        for name in self._before.keys() - after.keys():
            vars(original).pop(name, None)
