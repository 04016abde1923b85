"""`WakeUp`: one task waits, for a time or for something to be done, and is woken when anything has changed."""

from __future__ import annotations

import asyncio
import math
from typing import Any

SHORTEST_WAIT_S = 0.001


class WakeUp:
    """For one who waits, on one loop."""

    def __init__(self) -> None:
        self._rung: asyncio.Future[None] | None = None

    def ring(self) -> None:
        """Wake the one who waits."""
        if self._rung is not None and not self._rung.done():
            self._rung.set_result(None)

    async def wait(self, seconds: float, other: asyncio.Future[Any] | None = None) -> None:
        """Return after that time (inf: never), when the bell rings, or when the other is done."""
        rung = self._rung = asyncio.get_running_loop().create_future()
        timeout_s = None if seconds == math.inf else max(seconds, SHORTEST_WAIT_S)
        await asyncio.wait(
            [rung] if other is None else [rung, other], timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
        )
