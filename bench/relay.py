"""A relay that makes a local TCP connection as slow and lossy as a long one: delay, bandwidth, and the waits of loss.

TCP hides a lost segment behind a wait: what follows stands until it was sent again, one round trip later. So the
relay makes the stream wait where a segment was lost. (A kernel's netem would do it to the segments themselves, but
needs a module and rights that test machines lack.) In a test: `with relayed(Relay(...)) as relay`. By itself:
python -m bench.relay 127.0.0.1:7810 127.0.0.1:7710 --delay-s 0.05 --loss 0.02 --mbit 20
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass

SEGMENT_BYTES = 1448
CLOSING_S = 10.0


@dataclass(frozen=True, slots=True)
class Shape:
    """How bad the link is, each way."""

    delay_s: float = 0.0
    loss: float = 0.0  # of segments, 0 to 1
    mbit: float = 0.0  # megabits per second; 0: no limit
    retransmit_s: float = 0.02  # a lost segment comes that much later, at least a round trip
    queue_bytes: int = 64_000  # of the narrow place; a full one makes the sender wait
    seed: int = 0


PERFECT = Shape()


class Cable:
    """The narrow place that all connections share: when it is free again, each way."""

    def __init__(self) -> None:
        self.free_at = [0.0, 0.0]


class Relay:
    """One listening address and where it leads to; `target`, `shape`, `is_frozen` and `held` may change on the way.

    With port 0 the system chooses one; `port` is the one chosen.
    """

    def __init__(
        self,
        listen: tuple[str, int] = ("127.0.0.1", 0),
        target: tuple[str, int] = ("127.0.0.1", 0),
        shape: Shape = PERFECT,
        cable: Cable | None = None,
    ) -> None:
        self.target, self.shape = target, shape
        self.is_frozen = False  # nothing comes out, until it is False again
        self.held: frozenset[int] = frozenset()  # these connections alone are frozen
        self.last = 0  # the connection, counted from 1, that a full segment came by last, towards `target`
        self.lost = 0
        self._connections = 0
        self.port = listen[1]
        self._host = listen[0]
        self._cable = cable or Cable()
        self._random = random.Random(shape.seed)
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def start(self) -> None:
        """Begin to listen."""
        self._loop = asyncio.get_running_loop()
        self._server = await asyncio.start_server(self._accept, self._host, self.port, limit=SEGMENT_BYTES)
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """End all connections, and lose what is on its way in them (any thread)."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._abort)

    def _abort(self) -> None:
        for task in self._tasks:
            task.cancel()
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def close(self) -> None:
        """Close the address and what goes through it."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection(*self.target, limit=SEGMENT_BYTES)
        except OSError:
            writer.close()
            return
        self._writers |= {writer, back}
        self._connections += 1
        for way, (source, sink) in enumerate(((reader, back), (there, writer))):
            task = asyncio.create_task(self._pass(way, source, sink, self._connections))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass(self, way: int, source: asyncio.StreamReader, sink: asyncio.StreamWriter, connection: int) -> None:
        loop, free_at = asyncio.get_running_loop(), self._cable.free_at
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(max(4, self.shape.queue_bytes // SEGMENT_BYTES))
        sending = asyncio.create_task(self._deliver(queue, sink, connection))
        arrival = loop.time()
        try:
            while segment := await source.read(SEGMENT_BYTES):
                shape = self.shape
                if way == 0 and len(segment) == SEGMENT_BYTES:
                    self.last = connection
                takes_s = len(segment) * 8 / (shape.mbit * 1e6) if shape.mbit else 0.0
                through_at = free_at[way] = max(free_at[way], loop.time()) + takes_s
                await asyncio.sleep(max(0.0, through_at - loop.time() - 0.002))
                is_lost = shape.loss > 0 and self._random.random() < shape.loss
                self.lost += is_lost
                again_s = max(shape.retransmit_s, 2 * shape.delay_s) if is_lost else 0.0
                arrival = max(arrival, through_at + shape.delay_s + again_s)
                await queue.put((arrival, segment))
            await queue.put((arrival, b""))
            await sending
        except OSError:
            pass  # one of the two ends is gone
        finally:
            sending.cancel()
            sink.close()

    async def _deliver(
        self, queue: asyncio.Queue[tuple[float, bytes]], sink: asyncio.StreamWriter, connection: int
    ) -> None:
        loop = asyncio.get_running_loop()
        while True:
            arrival, segment = await queue.get()
            await asyncio.sleep(max(0.0, arrival - loop.time()))
            while self.is_frozen or connection in self.held:
                await asyncio.sleep(0.01)
            if not segment:
                return
            with contextlib.suppress(OSError):
                sink.write(segment)
                await sink.drain()


@contextlib.contextmanager
def relayed(relay: Relay) -> Iterator[Relay]:
    """The relay at work in a thread of its own, until the end of the block."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="relay")
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(relay.start(), loop).result(CLOSING_S)
        yield relay
        asyncio.run_coroutine_threadsafe(relay.close(), loop).result(CLOSING_S)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(CLOSING_S)
        loop.close()


def _place(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


async def _serve(relays: list[Relay]) -> None:
    for relay in relays:
        await relay.start()
    print("relaying", flush=True)
    await asyncio.to_thread(sys.stdin.read)  # until whoever started it goes
    for relay in relays:
        await relay.close()


def main() -> int:
    """Relay until standard input ends."""
    parser = argparse.ArgumentParser(description="relay TCP connections through a worse link")
    parser.add_argument("listen", help="address:port")
    parser.add_argument("target", help="address:port")
    parser.add_argument("--ports", type=int, default=1, help="this many ports from there on, both here and there")
    parser.add_argument("--delay-s", type=float, default=0.0, help="each way")
    parser.add_argument("--loss", type=float, default=0.0, help="of segments, 0 to 1")
    parser.add_argument("--mbit", type=float, default=0.0, help="each way, for all connections together")
    arguments = parser.parse_args()
    shape, cable = Shape(arguments.delay_s, arguments.loss, arguments.mbit), Cable()
    (listen, here), (target, there) = _place(arguments.listen), _place(arguments.target)
    relays = [Relay((listen, here + n), (target, there + n), shape, cable) for n in range(arguments.ports)]
    asyncio.run(_serve(relays))
    return 0


if __name__ == "__main__":
    sys.exit(main())
