"""`Relay`: a TCP link that is long and loses segments, as TCP shows that to those at its ends: late, and in bursts.

A kernel's netem would do the same to the segments themselves, but needs a module and rights that test machines lack.
A lost segment comes after one retransmission timeout, and everything behind it waits for it.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any

SEGMENT_BYTES = 1460
WINDOW_BYTES = 128 * 1024
"""What may be on its way in one direction; more waits at the sender, as with a full socket buffer."""
LEAST_RTO_S = 0.2


class Relay:
    """Listens on `port` of this machine, from `with` to its end; leads to `target`. `delay_s` is of each direction."""

    def __init__(self, delay_s: float = 0.0, loss: float = 0.0, seed: int = 0) -> None:
        self.delay_s, self.loss = delay_s, loss
        self.target = 0
        self.port = 0
        self.lost = 0
        self.is_frozen = False
        self._random = random.Random(seed)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="relay")
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._met, "127.0.0.1", 0, limit=WINDOW_BYTES)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _met(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target, limit=WINDOW_BYTES)
            try:
                await asyncio.gather(self._carry(reader, far_writer), self._carry(far_reader, writer))
            finally:
                far_writer.close()
        except (OSError, asyncio.CancelledError):
            pass  # one of the two ends is gone
        finally:
            writer.close()
            self._open.discard(task)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(WINDOW_BYTES // SEGMENT_BYTES)
        deliver = asyncio.create_task(self._deliver(queue, writer))
        try:
            while data := await reader.read(SEGMENT_BYTES):
                at_s = self._loop.time() + self.delay_s
                if self._random.random() < self.loss:
                    self.lost += 1
                    at_s += max(LEAST_RTO_S, 2 * self.delay_s + LEAST_RTO_S)
                await queue.put((at_s, data))
            await queue.put((0.0, b""))
            await deliver
        finally:
            deliver.cancel()

    async def _deliver(self, queue: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter) -> None:
        while True:
            at_s, data = await queue.get()
            await asyncio.sleep(max(0.0, at_s - self._loop.time()))
            while self.is_frozen:
                await asyncio.sleep(0.01)
            if not data:
                writer.close()
                return
            writer.write(data)
            await writer.drain()

    async def _close(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10.0)

    def __enter__(self) -> Relay:
        self._thread.start()
        self._run(self._listen())
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10.0)
        self._loop.close()
