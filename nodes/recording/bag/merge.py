"""`polyrhythm bag merge`: the parts of one run as one file, in order of time."""

from __future__ import annotations

import argparse
import heapq
from pathlib import Path

from nodes.recording.bag.progress import with_progress
from nodes.recording.bag.recording import Recording, copy_head


def merge(paths: list[Path], out: Path) -> tuple[int, list[str]]:
    """Join recordings of one run, the same message twice kept once: how many there are, and what could not be read.

    Raises RecordingError where they are of two runs.
    """
    named = [Recording(path) for path in paths]
    parts = list(dict.fromkeys(reader.path for one in named for reader in one.readers))
    source = Recording(paths[0], parts)
    writer = copy_head(source, out, {"merged": ", ".join(part.name for part in parts)})
    seen: set[int] = set()
    stamp_ns = -1
    # Parts follow each other in time but for a few messages at the seams, which meet here.
    for message in with_progress(heapq.merge(*source.readers, key=lambda one: one.log_time_ns), "merging"):
        if message.log_time_ns != stamp_ns:
            stamp_ns = message.log_time_ns
            seen.clear()
        fingerprint = hash((message.topic, message.data))
        if fingerprint in seen:
            continue
        seen.add(fingerprint)
        writer.copy(message)
    writer.close(source.end)
    return writer.messages, list(dict.fromkeys([text for one in (source, *named) for text in one.damage]))


def main(argv: list[str]) -> int:
    """`polyrhythm bag merge`: 0; 1 where the files are of different runs."""
    parser = argparse.ArgumentParser(
        prog="polyrhythm bag merge",
        description="Join the parts of one run (run.mcap, run-2.mcap...) into one file; two runs are refused.",
        epilog="example: polyrhythm bag merge runs/20261121-113639-laptop/run.mcap --out whole.mcap",
    )
    parser.add_argument("recordings", type=Path, nargs="+", metavar="RUN.mcap", help="the first part finds the others")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    asked = parser.parse_args(argv)
    messages, damage = merge(asked.recordings, asked.out)
    print(f"{messages} messages in {asked.out}")
    for text in damage:
        print(f"! {text}")
    return 0
