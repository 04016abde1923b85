"""A recorder's writer at robot rates, to be killed: `python -m bench.kill_writer FILE` writes stamps until it dies."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from nodes.mcap.file import BagWriter
from nodes.msgs import Utterance
from runtime.message import Envelope, Stamped

HZ = 100


def main() -> None:
    """Record a line 100 times a second, flushing as the recorder does; print each stamp once it was handed over."""
    bag = BagWriter(Path(sys.argv[1]), {"clock": "real"})
    number = 0
    start_ns = time.monotonic_ns()
    while True:
        number += 1
        now_ns = time.monotonic_ns()
        bag.write(Stamped(Utterance(speaker="x", text=f"line {number}"), Envelope("said", "x", number, now_ns)))
        sys.stdout.write(f"{now_ns}\n")
        sys.stdout.flush()
        time.sleep(max(0.0, (start_ns + number * 1_000_000_000 // HZ - time.monotonic_ns()) * 1e-9))


if __name__ == "__main__":
    main()
