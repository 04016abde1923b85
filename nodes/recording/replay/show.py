"""A recorded run shown in the terminal again: what was said and done, and what the nodes logged, at its times."""

from __future__ import annotations

import heapq
import logging
import sys
import tomllib
from collections.abc import Iterator
from typing import Any

from nodes.mcap.record import BagMessage
from nodes.recording.bag.recording import Recording, envelope_or_none
from nodes.recording.replay.gaps import ReplayPace, TimeLine
from nodes.recording.replay.recorded_launch import launch_source
from nodes.terminal.view import SHOWN, TerminalView
from runtime.clock import to_ns, to_s
from runtime.errors import RecordingError
from runtime.journal.calls import Calls, LogLine
from runtime.message import Stamped

_BEHIND_S = 2.5
"""So long a log line may stand behind what was said at its time: nodes send theirs once a second."""
_REFRESH_S = 0.25

Shown = Stamped[Any] | tuple[str, LogLine]
"""A message, or a log line of that node."""


def show(recording: Recording, speed: float, line: TimeLine) -> None:
    """Show the run as it went, so many times as fast."""
    start_ns = recording.start_ns
    view = TerminalView(
        f"replay of {recording.path.name}, {speed:g}x", live=sys.stdout.isatty(),
        start_ns=start_ns, shows_info=not _has_view(recording),
    )  # fmt: skip
    pace = ReplayPace(speed, line)
    begin_ns, refreshed_ns = recording.begin_ns, 0
    due_ns = 0
    try:
        for due_ns, what in _in_order(recording, line):
            pace.wait_until(due_ns)
            if isinstance(what, Stamped):
                view.message(what)
            else:
                source, said = what
                level = logging.getLevelName(said.level).lower()
                view.log(level, source, said.text, to_s(said.at_ns - start_ns))
            if to_s(due_ns - refreshed_ns) > _REFRESH_S * speed:
                refreshed_ns = due_ns
                view.refresh(what.envelope.published_ns if isinstance(what, Stamped) else what[1].at_ns)
    finally:
        view.close()
    print(f"the recording ends after {to_s(begin_ns + line.latest_ns - start_ns):.1f} s")


def _has_view(recording: Recording) -> bool:
    """Whether the launch file names what shows the run, and so what it leaves out; else all lines are shown."""
    try:
        return bool(tomllib.loads(launch_source(recording, []).text).get("run", {}).get("view"))
    except (RecordingError, tomllib.TOMLDecodeError, AttributeError):
        return False


def _in_order(recording: Recording, line: TimeLine) -> Iterator[tuple[int, Shown]]:
    """What is shown and when, from the start; log lines, which are recorded later, among what was said then."""
    wall_offset_ns = recording.readers[0].wall_offset_ns
    waiting: list[tuple[int, int, Shown]] = []
    number = 0
    for message in recording:
        due_ns = line.due_ns(message.log_time_ns - wall_offset_ns)
        for at_ns, what in _shown(message, due_ns):
            number += 1
            heapq.heappush(waiting, (at_ns, number, what))
        while waiting and waiting[0][0] <= due_ns - to_ns(_BEHIND_S):
            at_ns, _, what = heapq.heappop(waiting)
            yield at_ns, what
    while waiting:
        at_ns, _, what = heapq.heappop(waiting)
        yield at_ns, what


def _shown(message: BagMessage, due_ns: int) -> Iterator[tuple[int, Shown]]:
    """What is shown of a message, and when. What cannot be read is not."""
    kind = SHOWN.get(message.type_name) if message.schema == message.type_name.rpartition(":")[2] else None
    if kind is None and message.schema != "Calls":
        return
    envelope = envelope_or_none(message)
    try:
        if envelope is None:
            return
        if kind is not None:
            yield due_ns, Stamped(message.message(kind), envelope)
            return
        for said in message.message(Calls).logs:
            late_ns = envelope.published_ns - said.at_ns
            yield due_ns - min(max(0, late_ns), to_ns(_BEHIND_S)), (envelope.source, said)
    except RecordingError:
        return
