"""Readers and a writer of shared memory, as `python -m tests.runtime.transport.shared_memory_process WHAT FOLDER`."""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

import msgspec
import numpy as np

from runtime.transport.shared_memory import Pool, SlotAddress, Views

SIZE = 200_000


def hold(folder: Path) -> None:
    """Take the places that come by stdin, keep all of them, and tell of each."""
    views = Views(folder)
    kept = []
    for line in sys.stdin.buffer:
        kept.append(views.take(msgspec.json.decode(line, type=SlotAddress)))
        print("none" if kept[-1] is None else "held", flush=True)


def look(folder: Path) -> None:
    """Keep a few of the places that come by stdin for a while, and check again and again that each is of one value.

    At the end, tells how many were taken, how many had gone, and how many were torn.
    """
    views = Views(folder)
    generator = random.Random(sys.argv[3])
    kept: list[np.ndarray] = []
    taken = gone = torn = 0
    for line in sys.stdin.buffer:
        frames = views.take(msgspec.json.decode(line, type=SlotAddress))
        if frames is None:
            gone += 1
            continue
        taken += 1
        kept.append(np.frombuffer(frames[0], np.uint8))
        if len(kept) > generator.randrange(6):
            kept.pop(generator.randrange(len(kept)))
        if generator.random() < 0.05:
            time.sleep(0.01)
        torn += sum(bool((array != array[0]).any()) for array in kept)
    print(taken, gone, torn, flush=True)


def write(folder: Path) -> None:
    """Store something, tell where, and wait to be killed."""
    pool = Pool(folder)
    print(msgspec.json.encode(pool.store([bytes(SIZE)])).decode(), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    {"hold": hold, "look": look, "write": write}[sys.argv[1]](Path(sys.argv[2]))
