"""Kills a publisher or a receiver of images at random moments: `python -m tests.support.direct_trials N` times.

Each image is of one value, that of its number. Exit code 1 where one was torn, came twice or out of order, where a
killed process was not replaced within a second, or where shared memory is left over at the end.
"""

from __future__ import annotations

import os
import random
import select
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from nodes.msgs import Image
from runtime.message import Envelope, Stamped
from runtime.transport.direct import DirectReader
from runtime.transport.shared_memory import FOLDER, sweep
from runtime.transport.zeromq import PublisherSockets

LATE_S = 10.0  # of a machine that is busy with other tests


def publish(folder: Path, name: str) -> None:
    """Send images until killed."""
    outlet = PublisherSockets(folder, "source", direct={"image": ("sink",)})
    write = outlet.writer("image", Image)
    sequence = 0
    while True:
        sequence += 1
        rgb = np.full((120, 320, 3), sequence % 251, np.uint8)
        now_ns = time.monotonic_ns()
        write(Envelope("image", name, sequence, now_ns), Image(camera="a", captured_ns=now_ns, rgb=rgb))
        time.sleep(0.0005)


def receive(folder: Path, told: int) -> None:
    """Check images until killed; a byte for each good one, and the reason where one is bad."""
    last: dict[str, int] = {}
    kept: list[Stamped[Any]] = []

    def check(stamped: Stamped[Any]) -> None:
        envelope = stamped.envelope
        if envelope.seq <= last.get(envelope.source, 0):
            os.write(told, f"{envelope.ident} came after {last[envelope.source]}\n".encode())
        last[envelope.source] = envelope.seq
        kept.append(stamped)
        for one in kept:
            if not (one.message.rgb == one.envelope.seq % 251).all():
                os.write(told, f"{one.envelope.ident} is torn\n".encode())
        del kept[:-8]
        os.write(told, b".")

    reader = DirectReader("sink", {"image": Image}, {"image": ("source",)}, check, lambda *_: None)
    reader.connect(folder)
    while True:
        reader.retry()
        select.select(list(reader.by_fd), (), (), 0.01)
        reader.drain(64)


def start(work: Any, *arguments: Any) -> int:
    pid = os.fork()
    if not pid:
        try:
            work(*arguments)
        finally:
            os._exit(1)
    return pid


def wait_for_images(pipe: int, number: int) -> str:
    """What is wrong; "" once so many more images have come."""
    end, seen = time.monotonic() + LATE_S, 0
    while seen < number:
        left = end - time.monotonic()
        if left < 0 or not select.select((pipe,), (), (), left)[0]:
            return f"{seen} of {number} images came within {LATE_S} s"
        data = os.read(pipe, 65536)
        if data.strip(b"."):
            return data.decode()
        seen += len(data)
    return ""


def main(trials: int) -> int:
    chance = random.Random(trials)
    before = {one.name for one in FOLDER.glob(f"polyrhythm-{os.getuid()}-*")}
    pipe, told = os.pipe()
    problem = ""
    with tempfile.TemporaryDirectory(prefix="pr-", dir="/tmp") as name:
        folder = Path(name)
        lives = 1
        pids = {"source": start(publish, folder, "source1"), "sink": start(receive, folder, told)}
        try:
            for trial in range(trials):
                problem = wait_for_images(pipe, 3)
                if problem:
                    problem = f"trial {trial}: {problem}"
                    break
                time.sleep(chance.random() * 0.004)
                victim = chance.choice(("source", "sink"))
                os.kill(pids[victim], signal.SIGKILL)
                os.waitpid(pids[victim], 0)
                if victim == "source":
                    lives += 1
                    pids[victim] = start(publish, folder, f"source{lives}")
                else:
                    while select.select((pipe,), (), (), 0)[0]:
                        data = os.read(pipe, 65536)
                        problem = problem or data.strip(b".").decode()
                    pids[victim] = start(receive, folder, told)
        finally:
            for pid in pids.values():
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
    sweep()
    left = {one.name for one in FOLDER.glob(f"polyrhythm-{os.getuid()}-*")} - before
    mine = {one for one in left if _is_dead(one)}
    if mine:
        problem = problem or f"left over: {sorted(mine)}"
    print(problem or f"{trials} kills, nothing torn, reordered or left over")
    return int(bool(problem))


def _is_dead(segment: str) -> bool:
    try:
        os.kill(int(segment.split("-")[2]), 0)
    except ProcessLookupError:
        return True
    return False


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
