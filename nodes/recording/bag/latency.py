"""`polyrhythm bag latency`: how long each handler took in a recorded run, as a trace that virtual time can replay.

The file is JSON, `{"handlers": {"node.handler": [seconds, ...]}}`, in the order in which they were measured; a launch
file names it with `latency = { trace = "measured.json" }`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from nodes.recording.bag.recording import Recording, Thinned, add_recording, check_out, tell_damage
from runtime.clock import to_s
from runtime.errors import RecordingError
from runtime.histogram import nearest_rank
from runtime.journal.calls import Calls

KEPT = 2000
"""Durations of one handler; of a longer run every second, third... one is kept."""


class Durations(Thinned[float]):
    """The durations of one handler in s."""

    def __init__(self) -> None:
        super().__init__(KEPT)

    def percentile(self, percent: float) -> float:
        """Nearest rank, over those that are kept."""
        return nearest_rank(self.kept, percent)


def measure(recording: Recording) -> dict[str, dict[str, Durations]]:
    """Durations by node and handler. Raises RecordingError where the recording has none to tell."""
    if recording.is_virtual:
        raise RecordingError(
            f"{recording.path}: was made in virtual time, where handlers take what the launch file says; "
            "record a run in real time"
        )
    found: dict[str, dict[str, Durations]] = {}
    for message in recording.gone_through("reading"):
        if message.schema != "Calls":
            continue
        batch = message.message(Calls)
        for call in batch.calls:
            if call.handler == "on_start":
                continue
            found.setdefault(batch.node, {}).setdefault(call.handler, Durations()).add(to_s(call.took_ns))
    if not found:
        raise RecordingError(f"{recording.path}: holds no journal of handler calls, so no durations")
    return found


def as_trace(found: dict[str, dict[str, Durations]], source: str) -> str:
    """The trace as the text of a file."""
    handlers = {
        f"{node}.{handler}": [round(seconds, 9) for seconds in durations.kept]
        for node, by_handler in sorted(found.items())
        for handler, durations in sorted(by_handler.items())
    }
    return json.dumps({"measured_in": source, "handlers": handlers})


def main(argv: list[str]) -> int:
    """`polyrhythm bag latency`: 0, or 1 where the recording has no durations or a chunk was left out."""
    parser = argparse.ArgumentParser(
        prog="polyrhythm bag latency",
        description="How long each handler took in a run in real time; --out writes the trace that a launch file's "
        "`latency` can name.",
        epilog="example: polyrhythm bag latency run.mcap --out measured.json",
    )
    add_recording(parser)
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the trace")
    parser.add_argument("--json", action="store_true", help="print p50 and p99 as JSON")
    asked = parser.parse_args(argv)
    recording = Recording(asked.recording)
    if asked.out is not None:
        check_out(asked.out, recording)
    found = measure(recording)
    rows = [
        {
            "node": node, "handler": handler, "calls": one.seen,
            "p50_s": one.percentile(50), "p99_s": one.percentile(99), "max_s": max(one.kept),
        }
        for node, handlers in sorted(found.items())
        for handler, one in sorted(handlers.items())
    ]  # fmt: skip
    if asked.out is not None:
        asked.out.write_text(as_trace(found, asked.recording.name))
    if asked.json:
        print(json.dumps(rows))
    else:
        print(f"{'node.handler':28}{'calls':>8}{'p50 ms':>10}{'p99 ms':>10}{'max ms':>10}")
        for row in rows:
            times = "".join(f"{row[key] * 1e3:10.3f}" for key in ("p50_s", "p99_s", "max_s"))  # type: ignore[operator]  # numbers
            print(f"{row['node']}.{row['handler']}".ljust(28) + f"{row['calls']:8}" + times)
    return tell_damage(recording)
