"""`polyrhythm bag plot`: rates, image ages, joints and events of a recording over run time, as one picture."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nodes.bag_commands.recording import Recording, add_recording, envelope_or_none, with_progress
from runtime.errors import RecordingError
from runtime.msgs import JOINTS

KEPT = 20_000
"""Points of one curve; a longer run is thinned out evenly."""
EVENTS = ("heard", "said", "interrupt", "subtask", "action", "feedback")


class Curve:
    """Points over time, thinned out evenly where there are too many."""

    def __init__(self) -> None:
        self.points: list[tuple[float, Any]] = []
        self._stride = 1
        self._seen = 0

    def add(self, at_s: float, value: Any) -> None:
        """Take in the next point."""
        if self._seen % self._stride == 0:
            self.points.append((at_s, value))
            if len(self.points) > KEPT:
                self.points = self.points[::2]
                self._stride *= 2
        self._seen += 1


class Curves:
    """What is drawn of a recording."""

    def __init__(self, recording: Recording) -> None:
        self.counts: dict[str, dict[int, int]] = {}  # topic -> second -> messages
        self.ages_ms: dict[str, Curve] = {}
        self.joints = Curve()
        self.events: dict[str, list[float]] = {}
        start_ns = recording.start_ns
        self.end_s = 0.0
        for message in with_progress(iter(recording), "reading"):
            envelope = envelope_or_none(message)
            if envelope is None:
                continue
            at_s = (envelope.published_ns - start_ns) * 1e-9
            self.end_s = max(self.end_s, at_s)
            if not message.topic.startswith(("health/", "calls/", "log")):
                seconds = self.counts.setdefault(message.topic, {})
                seconds[int(at_s)] = seconds.get(int(at_s), 0) + 1
            if envelope.image_ns:
                age_ms = (envelope.published_ns - envelope.image_ns) * 1e-6
                self.ages_ms.setdefault(message.topic, Curve()).add(at_s, age_ms)
            if message.topic in EVENTS:
                self.events.setdefault(message.topic, []).append(at_s)
            if message.schema == "RobotState":
                try:
                    self.joints.add(at_s, tuple(message.document["position"]))
                except (RecordingError, KeyError, TypeError):
                    continue


def draw(curves: Curves, path: Path, title: str) -> None:
    """Write the picture as a PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(4, 1, figsize=(14, 13), sharex=True, layout="constrained")
    rates, ages, joints, events = axes
    for topic, seconds in sorted(curves.counts.items()):
        if sum(seconds.values()) > curves.end_s:  # streams; what is rarer is below
            last = int(curves.end_s)
            rates.step(range(last), [seconds.get(second, 0) for second in range(last)], where="post", label=topic)
    rates.set_ylabel("messages in 1 s")
    rates.set_yscale("symlog", linthresh=10)
    for topic, curve in sorted(curves.ages_ms.items()):
        if len(curve.points) > 20:
            ages.plot(*_columns(curve.points), ".", markersize=2, label=topic)
    ages.set_ylabel("age of the oldest image behind it, ms")
    for index, name in enumerate(JOINTS):
        rows = [(at_s, values[index]) for at_s, values in curves.joints.points if index < len(values)]
        if rows:
            joints.plot(*_columns(rows), linewidth=1, label=name)
    joints.set_ylabel("joints, m or rad")
    names = [name for name in EVENTS if name in curves.events]
    events.eventplot(
        [curves.events[name] for name in names] or [[]], lineoffsets=list(range(len(names) or 1)), linelengths=0.7
    )
    events.set_yticks(range(len(names)), names)
    events.set_xlabel("run time, s")
    for one in (rates, ages, joints):
        if one.get_legend_handles_labels()[0]:
            one.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8, frameon=False, markerscale=4)
    for one in axes:
        one.grid(color="#e5e7eb")
        one.set_axisbelow(True)
    figure.suptitle(title)
    figure.savefig(path, dpi=100)
    pyplot.close(figure)


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [point[0] for point in points], [point[1] for point in points]


def main(argv: list[str]) -> int:
    """`polyrhythm bag plot`: 0, or 1 where there is nothing to draw."""
    parser = argparse.ArgumentParser(
        prog="polyrhythm bag plot",
        description="Rates, ages, joints and events over run time as a PNG; polyrhythm report draws the timeline.",
        epilog="example: polyrhythm bag plot run.mcap --out plot.png",
    )
    add_recording(parser)
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: RUN-plot.png beside it")
    asked = parser.parse_args(argv)
    curves = Curves(Recording(asked.recording))
    if not curves.counts:
        raise RecordingError(f"{asked.recording}: holds no messages, so there is nothing to draw")
    out = asked.out or asked.recording.with_name(f"{asked.recording.stem}-plot.png")
    draw(curves, out, str(asked.recording))
    print(out)
    return 0
