"""Silences of a recording that a replay into a graph passes over: all that is played behind one comes earlier."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from nodes.mcap.record import BagMessage
from nodes.recording.bag.recording import Recording, envelope_or_none, is_journal
from runtime.clock import SystemClock, to_s
from runtime.message import Envelope, Message

Types = Mapping[str, type[Message]]
"""By topic."""


class TimeLine:
    """Turns recorded stamps, in recorded order, into ns from the start.

    A gap longer than `longest_s`, or a jump back by as much, takes no time and is told once each: one damaged stamp
    must not hold up the rest.
    """

    def __init__(
        self, begin_ns: int, longest_s: float, tell: Callable[[str], None], *, zero_ns: int | None = None
    ) -> None:
        self._stamp_ns = begin_ns
        self._zero_ns = begin_ns if zero_ns is None else zero_ns
        self._longest_s = longest_s
        self._tell = tell
        self._due_ns = 0
        self.latest_ns = 0
        """The latest of these times so far."""

    def due_ns(self, stamp_ns: int, what: str = "the next message is stamped") -> int:
        """When that is to be, from the start; never before its time, nor long after what came before it."""
        gap_ns, before_ns, self._stamp_ns = stamp_ns - self._stamp_ns, self._stamp_ns, stamp_ns
        if to_s(abs(gap_ns)) <= self._longest_s:
            self._due_ns += gap_ns
        else:
            self._tell(
                f"at {to_s(before_ns - self._zero_ns):.3f} s of the run {what} {to_s(abs(gap_ns)):.3f} s "
                f"{'later' if gap_ns > 0 else 'earlier'}; going on at once (--longest-gap {self._longest_s:g})"
            )
        self.latest_ns = max(self.latest_ns, self._due_ns)
        return self._due_ns


class ReplayPace:
    """Waits from one recorded time to the next; not without a speed."""

    def __init__(self, speed: float | None, line: TimeLine) -> None:
        self._speed = speed
        self._line = line
        self._clock = SystemClock()
        self._start_ns = self._clock.now_ns()
        self._never = threading.Event()

    def wait(self, stamp_ns: int) -> None:
        """Wait until it is time for what has that stamp."""
        if self._speed is not None:
            self.wait_until(self._line.due_ns(stamp_ns))

    def wait_until(self, due_ns: int) -> None:
        """The same for a time from the start."""
        if self._speed is not None:
            self._never.wait(max(0.0, to_s(self._start_ns + due_ns / self._speed - self._clock.now_ns())))


@dataclass
class SkippedGaps:
    """What is passed over: by node, from its how manieth message on how many ns are added to its recorded times."""

    steps: dict[str, list[int]] = field(default_factory=dict)  # [number, ns, number, ns, ...]
    end_ns: int = 0  # of the recording, from the start


class Shift:
    """Reads one node's steps, message by message."""

    def __init__(self, steps: Sequence[int] = ()) -> None:
        self._steps = deque(zip(steps[::2], steps[1::2], strict=True))
        self._number = 0
        self._ns = 0

    def of_next_ns(self) -> int:
        """What is added to the recorded time of the node's next message."""
        while self._steps and self._steps[0][0] <= self._number:
            self._ns = self._steps.popleft()[1]
        self._number += 1
        return self._ns


def find_gaps(
    recording: Recording, sources: Mapping[str, Types], longest_s: float, tell: Callable[[str], None]
) -> SkippedGaps:
    """Look for times at which nobody, played or not, said anything for longer than `longest_s`."""
    line = TimeLine(recording.begin_ns, longest_s, tell, zero_ns=recording.start_ns)
    wall_offset_ns = recording.readers[0].wall_offset_ns
    found = SkippedGaps({name: [] for name in sources})
    shifts = dict.fromkeys(sources, 0)
    numbers = dict.fromkeys(sources, 0)
    for message in recording.gone_through("looking for gaps"):
        due_ns = line.due_ns(message.log_time_ns - wall_offset_ns)
        if not is_journal(message):
            found.end_ns = max(found.end_ns, due_ns)
        envelope = spoken(message, sources)
        if envelope is None:
            continue
        name = envelope.source
        shift_ns = due_ns - (envelope.published_ns - recording.begin_ns)
        if shift_ns != shifts[name]:
            shifts[name] = shift_ns
            found.steps[name] += [numbers[name], shift_ns]
        numbers[name] += 1
    ended_ns = recording.noted("ended_ns")
    if isinstance(ended_ns, int):
        found.end_ns = max(found.end_ns, line.due_ns(ended_ns, "the run ends"))
    return found


def spoken(message: BagMessage, sources: Mapping[str, Types]) -> Envelope | None:
    """The envelope of what one of these nodes said itself; None for all else."""
    if not any(message.topic in types for types in sources.values()):
        return None
    envelope = envelope_or_none(message)
    is_said = envelope is not None and envelope.topic == message.topic in sources.get(envelope.source, {})
    return envelope if is_said else None
