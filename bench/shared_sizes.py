"""From which size on shared memory is cheaper than arrays inside the message: processor time of both ends together.

`python -m bench.shared_sizes` prints the table behind `SHARED_FROM_BYTES`. Both ends and ZeroMQ's threads are in one
process, whose processor time is counted, so that other load on the machine hardly shows.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from nodes.msgs import Image
from runtime.message import Envelope, Stamped
from runtime.transport.zeromq import PublisherSockets, Reader

SIZES_KIB = (8, 16, 32, 64, 128, 256, 512, 1024, 2048)
BATCH, ROUNDS, WARM_UP = 20, 12, 3
_PATIENCE_S = 20.0


def cost_us(size_bytes: int, *, is_shared: bool) -> float:
    """Processor time of one message: sent, received, decoded, its pixels summed up by the receiver."""
    pixels = np.zeros((size_bytes // 768, 256, 3), np.uint8)
    heard: list[int] = []

    def take(stamped: Stamped[Any]) -> None:
        heard.append(
            int(stamped.message.rgb.reshape(-1).view(np.uint64).sum())
        )  # whoever receives an image looks at it

    costs = []
    with tempfile.TemporaryDirectory(prefix="pr-", dir="/tmp") as name:
        sender = PublisherSockets(Path(name), "a", shared_from_bytes=0 if is_shared else 1 << 62)
        reader = Reader({"image": Image}, take, lambda *_: None)
        reader.connect(Path(name), ["a"])
        seq = 0
        try:
            for number in range(WARM_UP + ROUNDS):
                start_s = time.process_time()
                for _ in range(BATCH):
                    seq += 1
                    image = Image(camera="bench", captured_ns=seq, rgb=pixels)
                    sender.publish(Envelope("image", "a", seq, seq), image)
                    _await_one(reader, heard)
                if number >= WARM_UP:
                    costs.append((time.process_time() - start_s) * 1e6 / BATCH)
        finally:
            reader.close()
            sender.close()
    return statistics.median(costs)


def _await_one(reader: Reader, heard: list[int]) -> None:
    end = time.monotonic() + _PATIENCE_S
    heard.clear()
    while not heard and time.monotonic() < end:
        if not reader.poll(8) and not reader.wait(0.2):
            return  # the first one, before the connection


def main() -> None:
    """Print the table."""
    print("| KiB | inside the message [us] | shared memory [us] |\n|---:|---:|---:|")
    for size_kib in SIZES_KIB:
        inside, shared = (cost_us(size_kib << 10, is_shared=is_shared) for is_shared in (False, True))
        print(f"| {size_kib} | {inside:.0f} | {shared:.0f} |", flush=True)


if __name__ == "__main__":
    main()
