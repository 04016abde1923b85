"""`polyrhythm bag plot`: rates, image ages, joints and events of a recording over run time, as one picture."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nodes.recording.bag.recording import (
    Recording,
    Thinned,
    add_recording,
    check_out,
    check_picture,
    envelope_or_none,
    is_journal,
    is_view,
    tell_damage,
)
from runtime.clock import to_s
from runtime.command_line.arguments import unique_path
from runtime.errors import RecordingError

if TYPE_CHECKING:
    from nodes.plotting.figure import Axes

KEPT = 20_000
"""Points of one curve; a longer run is thinned out evenly."""
BINS = 2000
"""Of the rates, at most; in a longer run, or one whose stamps are damaged, a bin is longer than a second."""
AGED = ("robot/command", "command", "guard/state", "description", "head/image")
"""Whose image ages are drawn: from the camera to the motors."""
MOST_EVENTS = 24
"""Rows of slow topics, where nothing of EVENTS is there."""
EVENTS = ("heard", "said", "interrupt", "subtask", "action", "feedback")


class Curve(Thinned[tuple[float, Any]]):
    """Points over time."""

    def __init__(self) -> None:
        super().__init__(KEPT)


class Curves:
    """What is drawn of a recording."""

    def __init__(self, recording: Recording) -> None:
        self.counts: dict[str, dict[int, int]] = {}  # topic -> second -> messages
        self.ages_ms: dict[str, Curve] = {}
        self.joints = Curve()
        self.joint_names = recording.joints
        self._times: dict[str, Curve] = {}
        start_ns = recording.start_ns
        self.begin_s = self.end_s = to_s(recording.begin_ns - start_ns)
        for message in recording.gone_through("reading"):
            envelope = envelope_or_none(message)
            if envelope is None:
                continue
            at_s = to_s(envelope.published_ns - start_ns)
            if is_journal(message):
                continue
            self.end_s = max(self.end_s, at_s)
            if is_view(message, envelope):
                continue
            if not message.topic.startswith(("health/", "calls/")):
                seconds = self.counts.setdefault(message.topic, {})
                seconds[int(at_s)] = seconds.get(int(at_s), 0) + 1
                self._times.setdefault(message.topic, Curve()).add((at_s, None))
            image_ns = envelope.born_ns("image")
            if image_ns is not None and message.topic in AGED:
                age_ms = (envelope.published_ns - image_ns) * 1e-6
                self.ages_ms.setdefault(message.topic, Curve()).add((at_s, age_ms))
            if message.schema == "RobotState":
                try:
                    self.joints.add((at_s, tuple(message.document["position"])))
                except (RecordingError, KeyError, TypeError):
                    continue

    @property
    def streams(self) -> list[str]:
        """Topics with more than a message a second, the quickest first; in less than a second there are no rates."""
        totals = {topic: sum(seconds.values()) for topic, seconds in self.counts.items()}
        length_s = self.end_s - self.begin_s
        found = [topic for topic, total in totals.items() if total > length_s >= 1.0]
        return sorted(found, key=lambda topic: -totals[topic])

    @property
    def aged(self) -> list[str]:
        """Topics whose image ages are drawn."""
        return [topic for topic in AGED if topic in self.ages_ms and len(self.ages_ms[topic].kept) > 20]

    @property
    def events(self) -> dict[str, list[float]]:
        """When something was said or decided; in a graph without words and plans, each message of slow topics."""
        slow = sorted(set(self.counts) - set(self.streams))[:MOST_EVENTS]
        names = [name for name in EVENTS if name in self.counts] or slow
        return {name: [at_s for at_s, _ in self._times[name].kept] for name in names}

    @property
    def panels(self) -> list[Callable[[Axes, Curves], None]]:
        """What there is to draw, from top to bottom."""
        there = {_rates: self.streams, _ages: self.aged, _joints: self.joints.kept, _events: self.events}
        return [panel for panel, found in there.items() if found]


def draw(curves: Curves, path: Path, title: str) -> None:
    """Write the picture as a PNG; a part of which the recording holds nothing is left out."""
    from nodes.plotting.figure import Figure

    panels = curves.panels
    figure = Figure(figsize=(14, 1 + 3 * max(len(panels), 2)), layout="constrained")
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for one, panel in zip(axes, panels, strict=True):
        panel(one, curves)
        if one.get_legend_handles_labels()[0]:
            one.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8, frameon=False, markerscale=4)
        one.grid(color="#e5e7eb")
        one.set_axisbelow(True)
    axes[-1].set_xlabel("run time, s")
    figure.suptitle(title)
    figure.savefig(path, dpi=100)


def _rates(axes: Axes, curves: Curves) -> None:
    for topic in curves.streams:
        starts_s, per_s = rate(curves.counts[topic], curves.begin_s, curves.end_s)
        mean_hz = sum(curves.counts[topic].values()) / max(curves.end_s - curves.begin_s, 1e-9)
        label = f"{topic}  {mean_hz:.1f} Hz"
        axes.step(starts_s, per_s, where="post", color=_colour(curves, topic), label=label)
    axes.set_ylabel("messages in a second")
    axes.set_yscale("symlog", linthresh=1)
    axes.set_yticks([0, 1, 2, 5, 10, 20, 50, 100], ["0", "1", "2", "5", "10", "20", "50", "100"])
    axes.set_ylim(bottom=0)


def _ages(axes: Axes, curves: Curves) -> None:
    for topic in curves.aged:
        points = _columns(curves.ages_ms[topic].kept)
        axes.plot(*points, ".", markersize=3, color=_colour(curves, topic), label=topic)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("age of the oldest image behind it, ms")


def _joints(axes: Axes, curves: Curves) -> None:
    for index, name in enumerate(curves.joint_names):
        rows = [(at_s, values[index]) for at_s, values in curves.joints.kept if index < len(values)]
        if rows:
            axes.plot(*_columns(rows), linewidth=1, label=name)
    axes.set_ylabel("joints, m or rad")


def _events(axes: Axes, curves: Curves) -> None:
    events = curves.events
    names = [*reversed(events)]  # from a person's words at the top to the robot's at the bottom
    axes.eventplot([events[name] for name in names], lineoffsets=list(range(len(names))), linelengths=0.7)
    axes.set_yticks(range(len(names)), names)


def _colour(curves: Curves, topic: str) -> tuple[float, float, float, float] | None:
    """One colour for a topic in all parts; None: the next one."""
    from nodes.plotting.figure import colour_map

    streams = curves.streams
    return colour_map("tab20")(streams.index(topic) % 20) if topic in streams else None


def rate(seconds: Mapping[int, int], begin_s: float, end_s: float) -> tuple[list[float], list[float]]:
    """Messages a second by the second, or by so many that there are BINS at most; without the last, partial one."""
    width = max(1, math.ceil((end_s - begin_s) / BINS))
    bins: dict[int, int] = {}
    for second, number in seconds.items():
        bins[second // width] = bins.get(second // width, 0) + number
    first = int(begin_s) // width
    whole = range(first, max(first + 1, int(end_s) // width))
    return [float(place * width) for place in whole], [bins.get(place, 0) / width for place in whole]


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [point[0] for point in points], [point[1] for point in points]


def main(argv: list[str]) -> int:
    """`polyrhythm bag plot`: 0, or 1 where there is nothing to draw or a chunk was left out."""
    parser = argparse.ArgumentParser(
        prog="polyrhythm bag plot",
        description="Rates, ages, joints and events over run time as a PNG; polyrhythm report draws the timeline.",
        epilog="example: polyrhythm bag plot run.mcap --out plot.png",
    )
    add_recording(parser)
    parser.add_argument("--out", type=Path, metavar="FILE", help="default: RUN-plot.png beside it")
    asked = parser.parse_args(argv)
    check_picture(asked.out)
    recording = Recording(asked.recording, takes_any=True)
    curves = Curves(recording)
    if not curves.counts:
        raise RecordingError(f"{asked.recording}: holds no messages, so there is nothing to draw")
    out = asked.out or unique_path(asked.recording.with_name(f"{asked.recording.stem}-plot.png"))
    check_out(out, recording)
    draw(curves, out, str(asked.recording))
    print(out)
    return tell_damage(recording)
