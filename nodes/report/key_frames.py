"""Which moments of a run tell its story, and the camera's pictures of them."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nodes.mcap.file import BagReader
from nodes.mcap.parts import parts_of
from nodes.msgs import Interrupt
from nodes.report.actions import action_spans
from nodes.report.run import Run
from runtime.errors import RecordingError
from runtime.message import Stamped

Kind = Literal["order", "amend", "stop", "resume", "action", "success", "failure", "between", "end"]

FEWEST = 8
MOST = 12
APART_NS = 400_000_000
"""Of two moments closer than that, only the more telling one is shown."""
AFTER_PLACING_NS = 500_000_000
SAME_STOP_NS = 1_000_000_000
LOOK_NS = 3_000_000_000

_IMPORTANCE: dict[Kind, int] = {
    "order": 0, "stop": 0, "end": 0, "resume": 1, "amend": 1, "success": 2, "failure": 3, "action": 4, "between": 5,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class KeyMoment:
    """A point of a run worth a picture."""

    ns: int
    kind: Kind
    text: str
    is_rare: bool = False  # the only success of its skill


def moments(run: Run, most: int = MOST, *, in_rows_of: int = 1) -> list[KeyMoment]:
    """The most telling moments in order of time: orders, interrupts, what succeeded, what went on, and the end."""
    chosen: list[KeyMoment] = []
    for moment in sorted(_candidates(run), key=lambda one: (_IMPORTANCE[one.kind], not one.is_rare, one.ns)):
        if len(chosen) < most and _is_apart(moment.ns, chosen):
            chosen.append(moment)
    while len(chosen) < most and (len(chosen) < FEWEST or len(chosen) % in_rows_of):
        ns = _middle_of_longest_gap([run.begin_ns, *sorted(one.ns for one in chosen), run.end_ns])
        if not _is_apart(ns, chosen):
            break
        chosen.append(KeyMoment(ns, "between", _under_way(run, ns)))
    return sorted(chosen, key=lambda one: one.ns)


def _is_apart(ns: int, chosen: Iterable[KeyMoment]) -> bool:
    return all(abs(ns - other.ns) >= APART_NS for other in chosen)


def _middle_of_longest_gap(stamps: list[int]) -> int:
    start, end = max(pairwise(stamps), key=lambda gap: gap[1] - gap[0])
    return (start + end) // 2


def _under_way(run: Run, ns: int) -> str:
    """What the robot was about at that time."""
    return next((one.text for one in action_spans(run) if one.start_ns <= ns < one.end_ns), "")


def _candidates(run: Run) -> Iterable[KeyMoment]:
    if run.heard.messages:
        first = run.heard.messages[0]
        yield KeyMoment(_first_look(run, first.envelope.published_ns), "order", _quoted(first.message.text))
    depths: dict[str, Kind] = {"replan": "order", "amend": "amend", "stop": "stop", "resume": "resume"}
    first_ns = run.heard.messages[0].envelope.published_ns if run.heard.messages else 0
    for interrupt in run.interrupts.messages:
        if interrupt.message.depth == "hold":
            continue  # a moment of doubt tells nothing
        if interrupt.message.depth == "replan" and interrupt.envelope.born_ns("utterance") == first_ns:
            continue  # the first order, which is there already
        if interrupt.message.cause == "contact" and any(
            _is_spoken_near(interrupt, one) for one in run.interrupts.messages
        ):
            continue  # what was felt and cried out is one moment, and the words tell more
        text = interrupt.message.text
        shown = text if interrupt.message.cause == "contact" else _quoted(text)
        yield KeyMoment(interrupt.envelope.published_ns, depths[interrupt.message.depth], shown)
    succeeded = Counter(action.skill for action in action_spans(run) if action.end == "success")
    for action in action_spans(run):
        is_telling = action.skill in ("pick", "place", "hand_over")
        if action.end == "success" and is_telling:
            # A moment later, when the thing has left the gripper.
            ns = action.end_ns + (AFTER_PLACING_NS if action.skill != "pick" else 0)
            yield KeyMoment(min(ns, run.end_ns), "success", action.text, is_rare=succeeded[action.skill] == 1)
        elif action.end == "failure":
            yield KeyMoment(action.end_ns, "failure", f"{action.text}: {action.why}")
        elif is_telling:
            yield KeyMoment((action.start_ns + action.end_ns) // 2, "action", action.text)
    yield KeyMoment(run.end_ns, "end", run.outcome[1])


def _first_look(run: Run, ns: int) -> int:
    """The end of the look around that follows soon; before it, a camera may face a wall."""
    soon = (one for one in action_spans(run) if one.skill == "look" and 0 <= one.start_ns - ns <= LOOK_NS)
    return next((one.end_ns for one in soon), ns)


def _is_spoken_near(contact: Stamped[Interrupt], other: Stamped[Interrupt]) -> bool:
    apart_ns = abs(other.envelope.published_ns - contact.envelope.published_ns)
    return other.message.depth == "stop" and other.message.cause != "contact" and apart_ns < SAME_STOP_NS


def _quoted(text: str) -> str:
    return f"“{text}”"


def frames(run: Run, topic: str, wanted_ns: Iterable[int]) -> list[NDArray[np.uint8]]:
    """The picture on that topic nearest to each stamp, RGB; a grey one where it is damaged."""
    from nodes.recording.images import pixels  # OpenCV, for reports with pictures only

    stamps = run.stamps[topic]
    nearest = [_nearest(stamps, ns) for ns in wanted_ns]
    found: dict[int, NDArray[np.uint8]] = {}
    missing = set(nearest)
    for record in chain.from_iterable(BagReader(part) for part in parts_of(run.path)):
        if not missing:
            break
        if record.topic != topic or record.envelope.published_ns not in missing:
            continue
        missing.discard(record.envelope.published_ns)
        try:
            found[record.envelope.published_ns] = pixels(record.document)
        except RecordingError:
            continue  # shown as a grey picture; the report's own list of damage names the file
    grey = np.full((120, 160, 3), 128, np.uint8)
    return [found.get(ns, grey) for ns in nearest]


def _nearest(stamps: list[int], ns: int) -> int:
    at = bisect_left(stamps, ns)
    return min(stamps[max(0, at - 1) : at + 1], key=lambda stamp: abs(stamp - ns))
