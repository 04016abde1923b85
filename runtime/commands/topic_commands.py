"""`polyrhythm echo`, `hz`, `delay` and `bw`: listen to a topic of a running graph."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import deque
from typing import Any, Protocol

import msgspec

from runtime.clock import SystemClock, to_ns
from runtime.command_line.arguments import count, seconds
from runtime.command_line.attach import Arrival, StopSignal, add_run_argument, attach, hear, topic_of
from runtime.command_line.plain_messages import find_type, in_many_lines, in_one_line, to_plain
from runtime.errors import CodecError
from runtime.histogram import nearest_rank
from runtime.message import Envelope

_KEPT = 10_000


class Distribution:
    """Lowest, highest, mean, standard deviation and percentiles of values."""

    def __init__(self) -> None:
        self._values: deque[float] = deque(maxlen=_KEPT)
        self.count = 0

    def add(self, value: float) -> None:
        """One more."""
        self._values.append(value)
        self.count += 1

    @property
    def lowest(self) -> float:
        """The lowest value."""
        return min(self._values, default=0.0)

    @property
    def highest(self) -> float:
        """The highest value."""
        return max(self._values, default=0.0)

    @property
    def mean(self) -> float:
        """The mean of the values."""
        return statistics.fmean(self._values) if self._values else 0.0

    @property
    def deviation(self) -> float:
        """Of the values around their mean; 0 where there are fewer than two."""
        return statistics.pstdev(self._values) if len(self._values) > 1 else 0.0

    def percentile(self, percent: float) -> float:
        """The value that this share of them does not exceed."""
        return nearest_rank(self._values, percent) if self._values else 0.0


_JSON_FOR_S = 5.0
_MS = 1e-6


class Measure(Protocol):
    """What `hz`, `delay` and `bw` measure."""

    def add(self, arrival: Arrival) -> None:
        """Take in one message. Raises CodecError."""
        ...

    def line(self) -> str:
        """What is known so far, for people."""
        ...

    def data(self) -> dict[str, Any]:
        """The same for scripts."""
        ...


class PublishRate:
    """How often messages are published, by the publisher's own stamps, and how many are missing by their numbers."""

    def __init__(self) -> None:
        self.gaps_s = Distribution()  # from message to message of one source
        self.count = self.lost = 0
        self._first_ns = self._last_ns = 0
        self._newest: dict[str, Envelope] = {}

    def add(self, arrival: Arrival) -> None:
        """Take in one message. Raises CodecError."""
        self.note(arrival.envelope)

    def note(self, envelope: Envelope) -> None:
        """The same by its envelope."""
        self.count += 1
        stamp_ns, before = envelope.published_ns, self._newest.get(envelope.source)
        if before is not None:
            self.gaps_s.add((stamp_ns - before.published_ns) * 1e-9)
            self.lost += max(0, envelope.seq - before.seq - 1)
        self._newest[envelope.source] = envelope
        self._first_ns = self._first_ns or stamp_ns
        self._last_ns = max(self._last_ns, stamp_ns)

    @property
    def hz(self) -> float:
        """Messages per second between the first and the last one; 0 before the second."""
        span_ns = self._last_ns - self._first_ns
        return (self.count - 1) * 1e9 / span_ns if span_ns > 0 else 0.0

    def line(self) -> str:
        """Rates and missing messages so far, as a line of text."""
        data = self.data()
        if data["messages"] < 2:
            return "1 message so far"
        return (
            f"{data['hz']:.3f} Hz   gap min {data['gap_min_ms']:.2f}  max {data['gap_max_ms']:.2f}  "
            f"std {data['gap_std_ms']:.2f} ms   {data['messages']} messages, {data['lost']} lost on the way here"
        )

    def data(self) -> dict[str, Any]:
        """Rates and missing messages so far, as plain data."""
        return {
            "messages": self.count,
            "lost": self.lost,
            "hz": round(self.hz, 4),
            "gap_min_ms": round(self.gaps_s.lowest * 1e3, 4),
            "gap_max_ms": round(self.gaps_s.highest * 1e3, 4),
            "gap_std_ms": round(self.gaps_s.deviation * 1e3, 4),
        }


class Delay:
    """How old messages are when they arrive, and how old the image that they were made from."""

    def __init__(self) -> None:
        self._parts = {"delay": Distribution(), "image_age": Distribution()}

    def add(self, arrival: Arrival) -> None:
        """Take in one message. Raises CodecError."""
        envelope = arrival.envelope
        self._parts["delay"].add((arrival.received_ns - envelope.published_ns) * _MS)
        if (born_ns := envelope.born_ns("image")) is not None:
            self._parts["image_age"].add((arrival.received_ns - born_ns) * _MS)

    def line(self) -> str:
        """Delays and ages so far, in ms, as a line of text."""
        words = {"delay": "published to received", "image_age": "age of the image behind it"}
        return "   ".join(
            f"{words[name]}: min {part.lowest:.2f}  p50 {part.percentile(50):.2f}  p99 {part.percentile(99):.2f}  "
            f"max {part.highest:.2f} ms"
            for name, part in self._parts.items()
            if part.count
        )

    def data(self) -> dict[str, Any]:
        """Delays and ages so far, as plain data."""
        data: dict[str, Any] = {"messages": self._parts["delay"].count}
        for name, part in self._parts.items():
            if part.count:
                data[f"{name}_min_ms"] = round(part.lowest, 4)
                data[f"{name}_p50_ms"] = round(part.percentile(50), 4)
                data[f"{name}_p99_ms"] = round(part.percentile(99), 4)
                data[f"{name}_max_ms"] = round(part.highest, 4)
        return data


class Bandwidth:
    """How many bytes a topic takes at one receiver."""

    def __init__(self) -> None:
        self._sizes = Distribution()
        self._total_bytes = 0
        self._first_bytes = 0
        self._first_ns = 0
        self._last_ns = 0

    def add(self, arrival: Arrival) -> None:
        """Take in one message."""
        self._sizes.add(arrival.size_bytes)
        self._total_bytes += arrival.size_bytes
        if not self._first_ns:
            self._first_ns, self._first_bytes = arrival.received_ns, arrival.size_bytes
        self._last_ns = arrival.received_ns

    def line(self) -> str:
        """Bytes a second so far, as a line of text."""
        data = self.data()
        if data["messages"] < 2:
            return f"1 message so far, of {in_units(self._total_bytes)}"
        return (
            f"{in_units(data['bytes_per_s'])}/s   message mean {in_units(data['mean_bytes'])}  "
            f"min {in_units(data['min_bytes'])}  max {in_units(data['max_bytes'])}   {data['messages']} messages"
        )

    def data(self) -> dict[str, Any]:
        """Bytes a second so far, as plain data."""
        span_s = (self._last_ns - self._first_ns) * 1e-9
        return {
            "messages": self._sizes.count,
            "bytes_per_s": round((self._total_bytes - self._first_bytes) / span_s, 1) if span_s > 0 else 0.0,
            "mean_bytes": round(self._sizes.mean, 1),
            "min_bytes": int(self._sizes.lowest),
            "max_bytes": int(self._sizes.highest),
        }


def in_units(size_bytes: float) -> str:
    """Bytes for people: "1.2 MB"."""
    for unit in ("B", "kB", "MB"):
        if size_bytes < 1000:
            return f"{size_bytes:.4g} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:.4g} GB"


def hz_main(argv: list[str]) -> int:
    """`polyrhythm hz`."""
    return measure("hz", "Measure how often a topic is published, by the publisher's stamps.", PublishRate(), argv)


def delay_main(argv: list[str]) -> int:
    """`polyrhythm delay`."""
    does = "Measure how old messages are when they arrive, and how old the images are that they were made from."
    return measure("delay", does, Delay(), argv)


def bw_main(argv: list[str]) -> int:
    """`polyrhythm bw`."""
    does = (
        "Measure the bandwidth that a topic takes: what goes to one receiver. Of a bundle, each message counts its "
        "share; arrays in shared memory count in full."
    )
    return measure("bw", does, Bandwidth(), argv)


def echo_main(argv: list[str]) -> int:
    """`polyrhythm echo`."""
    parser = _parser("echo", "Print the messages of a topic.", "polyrhythm echo heard --count 1 --json")
    parser.add_argument("--pretty", action="store_true", help="a line for each field")
    asked = parser.parse_args(argv)
    run = attach(asked.run)
    info = topic_of(run, asked.topic)
    message = find_type(info.type)
    if message is None:
        print(f"polyrhythm: {info.type} cannot be imported here; shown without its type", file=sys.stderr)
    number = 0
    with StopSignal() as stop_signal:
        for arrival in hear(run, [asked.topic], stop_signal, asked.for_s):
            if arrival is None:
                continue
            number += 1
            try:
                envelope, content = to_plain(arrival.frames, message)
            except CodecError as problem:
                print(f"polyrhythm: {asked.topic}: {problem}", file=sys.stderr)
            else:
                age_ms = (arrival.received_ns - envelope.published_ns) * _MS
                if asked.json:
                    fields = {name: getattr(envelope, name) for name in envelope.__struct_fields__}
                    data = {**fields, "age_ms": round(age_ms, 3), "message": content}
                    print(msgspec.json.encode(data).decode(), flush=True)  # NaN as null, which json would not
                else:
                    head = f"{envelope.topic} #{envelope.seq} from {envelope.source}, {age_ms:.1f} ms ago"
                    if asked.pretty:
                        print(f"{head}\n{in_many_lines(content)}", flush=True)
                    else:
                        print(f"{head}: {in_one_line(content)}", flush=True)
            if number == asked.count:
                return 0
    return _end(asked, number)


def _parser(name: str, does: str, example: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"polyrhythm {name}",
        description=f"{does} Goes on until Ctrl-C or the end of the run.",
        epilog=f"example: {example}",
    )
    parser.add_argument("topic", help="like head/image; polyrhythm topics lists them")
    add_run_argument(parser)
    parser.add_argument("--for", dest="for_s", type=seconds, metavar="S", help="end after that many seconds")
    parser.add_argument("--count", type=count, metavar="N", help="end after that many messages")
    parser.add_argument("--json", action="store_true", help="print JSON, one object a line")
    return parser


def measure(name: str, does: str, measure: Measure, argv: list[str]) -> int:
    """Listen to a topic and print what a measure says of it; 0 where messages came, 1 where none did."""
    asked = _parser(name, does, f"polyrhythm {name} head/image --for 10").parse_args(argv)
    run = attach(asked.run)
    for_s = asked.for_s
    if asked.json and for_s is None and asked.count is None:
        for_s = _JSON_FOR_S
    clock = SystemClock()
    next_line_ns = clock.now_ns() + to_ns(1)
    number = told = 0
    with StopSignal() as stop_signal:
        for arrival in hear(run, [asked.topic], stop_signal, for_s):
            if arrival is not None:
                try:
                    measure.add(arrival)
                except CodecError as problem:
                    print(f"polyrhythm: {asked.topic}: {problem}", file=sys.stderr)
                    continue
                number += 1
                if number == asked.count:
                    break
            if clock.now_ns() >= next_line_ns and not asked.json:
                next_line_ns += to_ns(1)
                told = number
                print(measure.line() if number else f"nothing on {asked.topic} yet", flush=True)
    if asked.json:
        print(json.dumps({"topic": asked.topic, **measure.data()}, sort_keys=True))
    elif number > told:
        print(measure.line())
    return _end(asked, number)


def _end(asked: argparse.Namespace, number: int) -> int:
    if number:
        return 0
    print(f"polyrhythm: nothing was published on {asked.topic} in that time", file=sys.stderr)
    return 1
