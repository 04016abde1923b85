"""A process that hears reliable events, until its input ends.

`python -m tests.runtime.transport.reliable.reliable_process FOLDER NAME`

It prints a line for each: "heard NUMBER SUM", "lost REASON HOW_MANY".
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from runtime import Message
from runtime.message import Stamped
from runtime.transport.zeromq import SubscriberThread


class Note(Message):
    """An event with a number, and every now and then an array."""

    number: int
    points: np.ndarray[Any, np.dtype[np.float32]] | None = None


def _hear(stamped: Stamped[Any]) -> None:
    points = stamped.message.points
    print("heard", stamped.envelope.seq, 0 if points is None else int(points.sum()), flush=True)


def main() -> None:
    folder, name = sys.argv[1:]
    inlet = SubscriberThread(
        {"note": Note},
        _hear,
        lambda topic, reason, number, why: print("lost", reason, number, flush=True),
        receiver=name,
        reliable=["note"],
    )
    inlet.connect(Path(folder), ["mouth"])
    inlet.start()
    sys.stdin.read()
    inlet.close()


if __name__ == "__main__":
    main()
