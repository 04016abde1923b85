"""`MessageIds`: names for what one node says, which come only once, also where the node is started again in mid-run."""

from __future__ import annotations


class MessageIds:
    """`start_ns` is the node's clock at its start; in virtual time, where nothing is started again, it is 0."""

    def __init__(self, node: str, start_ns: int) -> None:
        self._prefix = f"{node}-{start_ns // 1_000_000:x}" if start_ns else node
        self._count = 0

    def next(self, kind: str = "") -> str:
        """The next one, of that kind."""
        self._count += 1
        return f"{self._prefix}-{kind}-{self._count}" if kind else f"{self._prefix}-{self._count}"
