"""What an annotator sees of a recording: who took part, what was said and done and when, and what the cameras saw."""

from __future__ import annotations

import base64
import binascii
import contextlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from bridges.web.recordings.ratings import name_of
from nodes.mcap.file import BagReader
from nodes.mcap.parts import begin_ns_of, parts_of, zero_ns_of
from nodes.mcap.record import BagMessage
from runtime.clock import to_s
from runtime.coordination.lease import LEASE_TOPIC, Lease, SeatHolders
from runtime.errors import RecordingError

IMAGE_SCHEMA = "foxglove.CompressedImage"
IMAGE_ENDING = "/image"
FIRST_SHOWN = ("room", "head", "wrist")
"""Who rates a person and a robot sees most of both in the room's picture; other cameras come after these."""
MOST_CAMERAS = 8
MOST_FRAMES = 4800  # of all cameras together
MOST_EVENTS = 5000
SHORTEST_GAP_S = 0.2
ROBOT = "robot"
"""Whom people rate where the robot says nothing, and so gives itself no name."""
SEAT_TOPICS = "episode/seat"  # of an episode's participants: how their names begin
SPOKEN_FROM_SEATS = ("said", "subtask", "action", "feedback")
LINE_S = 2.0
"""From line to line, where the recording has no times of its own."""


@dataclass(slots=True)
class RecordedCamera:
    """What one camera saw."""

    name: str  # "room": its topic without "/image"
    times_s: list[float] = field(default_factory=list)
    frames: list[bytes] = field(default_factory=list)  # PNG or JPEG

    def frame_at(self, at_s: float) -> int | None:
        """The frame that was on screen then; the first before it, and None where there is none."""
        place = bisect_right(self.times_s, at_s) - 1
        return place if place >= 0 else 0 if self.frames else None


@dataclass(slots=True)
class Recorded:
    """One recording, in seconds of its run; a piece that was cut out of one begins at `begins_s`."""

    episode: str
    duration_s: float = 0.0
    events: list[dict[str, Any]] = field(default_factory=list)
    agents: list[str] = field(default_factory=list)
    parts: dict[str, dict[str, str]] = field(default_factory=dict)  # agent -> goal and background, where known
    scores: dict[tuple[str, str], float] = field(default_factory=dict)  # (agent, dimension) -> of the judge
    cameras: list[RecordedCamera] = field(default_factory=list)  # the one that is shown first at the beginning
    begins_s: float = 0.0


def read_recording(path: Path) -> Recorded:
    """Read all that is shown. Raises RecordingError where there is nothing to rate."""
    readers = [BagReader(path), *_following(path)]
    images: set[str] = set()
    has_robot = False
    first_ns: int | None = None
    last_ns = 0
    for message in chain.from_iterable(readers):  # times only: images are decoded in the second pass, and few of them
        first_ns = message.log_time_ns if first_ns is None else min(first_ns, message.log_time_ns)
        last_ns = max(last_ns, message.log_time_ns)
        if message.schema == IMAGE_SCHEMA:
            images.add(message.topic)
        has_robot = has_robot or message.topic == "robot/state"
    first_ns = first_ns or 0
    start_ns, begins_s = _zero(readers[0], first_ns)
    duration_s = max(0.0, to_s(last_ns - start_ns) - begins_s)
    found = Recorded(name_of(path), round(duration_s, 2), begins_s=round(begins_s, 2))
    cameras = {topic: RecordedCamera(topic.removesuffix(IMAGE_ENDING)) for topic in shown_of(images)}
    gap_s = max(SHORTEST_GAP_S, duration_s * len(cameras) / MOST_FRAMES)
    told: list[BagMessage] = []
    for message in chain.from_iterable(readers):
        if (camera := cameras.get(message.topic)) is not None:
            at_s = _seconds(message, start_ns)
            if not camera.frames or at_s - camera.times_s[-1] >= gap_s:
                _add_frame(camera, message, at_s)
        elif message.topic in _TOLD or message.topic.startswith(SEAT_TOPICS):
            told.append(message)
    found.cameras = [camera for camera in cameras.values() if camera.frames]
    teller = _Teller(found)
    for message in sorted(told, key=_when):  # a recording has them as they arrived
        teller.take(message, _seconds(message, start_ns))
    _spread(found, to_s(last_ns - first_ns))
    if has_robot and not teller.has_robot_spoken:
        found.agents.append(ROBOT)  # it may nod, or only stand there: that can be rated, too
    if not found.agents:
        raise RecordingError(
            f"{path}: nobody says anything in this recording and there is no robot, so there is nobody to rate"
        )
    return found


def shown_of(topics: Iterable[str]) -> list[str]:
    """The image topics that are shown, the one that shows most first."""

    def rank(topic: str) -> tuple[int, str]:
        word = topic.removesuffix(IMAGE_ENDING).rpartition("/")[2]
        return FIRST_SHOWN.index(word) if word in FIRST_SHOWN else len(FIRST_SHOWN), topic

    return sorted(topics, key=rank)[:MOST_CAMERAS]


def _zero(reader: BagReader, first_ns: int) -> tuple[int, float]:
    """Run time zero as MCAP's log time, and the run time at which the recording begins."""
    zero_ns, begin_ns = zero_ns_of(reader.metadata), begin_ns_of(reader.metadata)
    if zero_ns is None:
        return first_ns, 0.0
    return zero_ns + reader.wall_offset_ns, max(0.0, to_s((begin_ns or zero_ns) - zero_ns))


def _seconds(message: BagMessage, start_ns: int) -> float:
    return max(0.0, round(to_s(message.log_time_ns - start_ns), 2))


def _when(message: BagMessage) -> tuple[int, bool]:
    """A lease counts before all that is said at the same moment."""
    return message.log_time_ns, message.topic != LEASE_TOPIC


def _following(path: Path) -> Iterator[BagReader]:
    """The files in which the recording goes on; one that cannot be read is left out."""
    for part in parts_of(path)[1:]:
        with contextlib.suppress(RecordingError):
            yield BagReader(part)


def _spread(found: Recorded, lasts_s: float) -> None:
    """In virtual time a whole episode may take no time at all: then its lines stand one after the other."""
    if found.cameras or lasts_s > LINE_S * len(found.events) / 10:
        return
    found.begins_s = 0.0
    for place, event in enumerate(found.events):
        event["at_s"] = place * LINE_S
    found.duration_s = len(found.events) * LINE_S


def _add_frame(camera: RecordedCamera, message: BagMessage, at_s: float) -> None:
    try:
        data = base64.b64decode(str(message.document.get("data", "")), validate=True)
    except (RecordingError, binascii.Error, ValueError):
        return  # one damaged frame is no reason to show none
    camera.frames.append(data)
    camera.times_s.append(at_s)


class _Teller:
    """Turns messages, in the order of their times, into lines; what is only repeated is left out.

    So is what was recorded of candidates in shadow: nobody heard it, and the robot did not do it.
    """

    def __init__(self, found: Recorded) -> None:
        self._found = found
        self._last: dict[str, str] = {}
        self._leases = SeatHolders()
        self.has_robot_spoken = False

    def take(self, message: BagMessage, at_s: float) -> None:
        """Add what the message tells, if anything."""
        topic = message.topic
        try:
            document = message.document
            if topic == LEASE_TOPIC:
                self._leases.take(message.message(Lease))
            elif topic in SPOKEN_FROM_SEATS and self._leases.is_shadow(message.envelope):
                return
        except RecordingError:
            return  # a damaged message has nothing to tell
        if topic.startswith(SEAT_TOPICS):
            self._brief(document)
        elif topic == "episode/scores":
            self._score(document)
        else:
            self._tell(topic, document, at_s)

    def _tell(self, topic: str, document: dict[str, Any], at_s: float) -> None:
        found = self._found
        kind, who, text = _line(topic, document)
        self.has_robot_spoken = self.has_robot_spoken or (topic == "said" and bool(who))
        if topic in ("heard", "said", "episode/turn") and who and who not in found.agents:
            found.agents.append(who)
        about = f"{topic} {document.get('seat', '')}"
        is_repeated = topic in _STATES and self._last.get(about) == text
        if not text or is_repeated or len(found.events) >= MOST_EVENTS:
            return
        self._last[about] = text
        event = {"at_s": at_s, "kind": kind, "who": who, "text": text, "note": str(document.get("note", ""))}
        if topic == "episode/turn":
            event |= {"to": list(document.get("to", ()))}
        found.events.append(event)

    def _brief(self, document: dict[str, Any]) -> None:
        self._found.episode = str(document.get("episode") or self._found.episode)
        briefing = document.get("briefing")
        if isinstance(briefing, dict):
            name = str(briefing.get("name", ""))
            self._found.parts[name] = {
                "goal": str(briefing.get("goal", "")),
                "secret": str(briefing.get("secret", "")),
                "scenario": str(briefing.get("scenario", "")),
            }
            if name and name not in self._found.agents:
                self._found.agents.append(name)

    def _score(self, document: dict[str, Any]) -> None:
        for one in document.get("scores", ()):
            if isinstance(one, dict) and isinstance(one.get("score"), int | float):
                self._found.scores[str(one.get("name")), str(one.get("dimension"))] = float(one["score"])


_TOLD = {
    "heard", "said", "episode/turn", "episode/outcome", "episode/scores", "subtask", "action", "feedback", "interrupt",
    "mark", "guard/state", "lease", "study/trial", "study/note",
}  # fmt: skip
_STATES = {"subtask", "action", "feedback", "guard/state", "lease"}


def _line(topic: str, document: dict[str, Any]) -> tuple[str, str, str]:
    """Kind, who, and text of a message."""

    def get(name: str) -> str:
        return str(document.get(name, "") or "")

    match topic:
        case "heard" | "said":
            return topic, get("speaker"), get("text")
        case "episode/turn":
            words = {"none": "does nothing", "leave": "leaves"}.get(get("kind"), get("argument"))
            return get("kind") or "speak", get("speaker"), words
        case "episode/outcome":
            return "end", "", get("reason")
        case "subtask":
            return "plan", "planner", get("text")
        case "action":
            return "action", "vlm", get("text") or get("skill")
        case "feedback":
            status = get("status")
            return "feedback", "policy", "" if status == "running" else f"{status}: {get('why')}".rstrip(": ")
        case "interrupt":
            return "interrupt", get("by"), f"{get('depth')}: {get('text')}"
        case "mark":
            return "mark", get("by"), f"{get('label')}: {get('note')}".rstrip(": ")
        case "guard/state":
            return "guard", "guard", get("mode")
        case "lease":
            return "seat", get("by") or "guard", f"{get('holder')} holds {get('seat')}"
        case "study/trial":
            return "mark", "study", f"trial {get('number')} {get('phase')}"
        case _:
            return "note", get("by"), get("text")
