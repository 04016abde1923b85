"""`Lines`: what is typed, line by line, while everything else on the loop goes on."""

from __future__ import annotations

import asyncio
import os
from collections import deque

END = None
"""Stands for the end of what is typed."""


class Lines:
    """Reads a terminal, a pipe or a file by its descriptor; starts no thread. Closed by whoever opened it."""

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._waiting: deque[str | None] = deque()
        self._came = asyncio.Event()
        self._rest = b""
        self._is_over = False
        self._loop = asyncio.get_running_loop()
        try:
            self._loop.add_reader(descriptor, self._read)
            self._is_watched = True
        except OSError:  # files and /dev/null are always readable, and no loop watches them
            self._is_watched = False
            while not self._is_over:
                self._read()

    async def wait(self, seconds: float | None) -> bool:
        """Whether a line is there; waits at most that long for one (None: for ever)."""
        if not self._waiting:
            self._came.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._came.wait()
            except TimeoutError:
                return False
        return True

    def take(self) -> str | None:
        """The next line; `END` after the last one, again and again."""
        return self._waiting[0] if self._waiting[0] is END else self._waiting.popleft()

    def close(self) -> None:
        """Stop reading."""
        if self._is_watched:
            self._loop.remove_reader(self._descriptor)
            self._is_watched = False

    def _read(self) -> None:
        try:
            data = os.read(self._descriptor, 65_536)
        except OSError:  # the terminal is gone
            data = b""
        *whole, self._rest = (self._rest + data).split(b"\n")
        if not data:
            whole, self._rest = ([self._rest] if self._rest else []), b""
            self._is_over = True
            self.close()
        self._waiting.extend(line.decode(errors="replace") for line in whole)
        if self._is_over:
            self._waiting.append(END)
        if self._waiting:
            self._came.set()
