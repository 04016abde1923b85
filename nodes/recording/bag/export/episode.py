"""A recording resampled to one rate: at each frame what was known by then, and what was sent to the robot next."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nodes.policy.onnx.inputs import target_of
from nodes.recording.bag.export.damage import Damaged
from nodes.recording.bag.export.features import ACTION, STATE, ChosenValues, Columns
from nodes.recording.bag.recording import Recording
from nodes.recording.images import SCHEMA_NAME as IMAGE_SCHEMA
from nodes.recording.images import pixels
from runtime.bag.record import BagMessage
from runtime.clock import NS_PER_S, to_ns, to_s
from runtime.coordination.lease import LEASE_TOPIC, Lease
from runtime.errors import RecordingError, UserError, choices
from runtime.message import Envelope
from runtime.msgs import Action, Feedback, JointCommand, RobotState, Subtask

LONGEST_STILL_S = 60.0
"""A longer jump of the stamps is no still scene, but damage or a gap."""
MOST_BEHIND_S = 10.0
"""Messages wait so long, at most, for those of their time that were recorded after them."""
STALE_S = 0.5
"""A robot's state that is older at a frame is a hole in the recording, of which a dataset is to tell."""
_USED = ("robot/state", "robot/command", "command", "subtask", "action", "feedback", LEASE_TOPIC)
Show = Callable[[str, int, NDArray[np.uint8]], None]
"""Called as show(topic, frame, rgb) for every camera at every frame."""


@dataclass
class Episode:
    """Frames as columns."""

    states: list[tuple[float, ...]] = field(default_factory=list)
    actions: list[tuple[float, ...]] = field(default_factory=list)  # what the guard sent
    asked: list[tuple[float, ...]] = field(
        default_factory=list
    )  # what the policy's seat wanted; sent where it is silent
    tasks: list[str] = field(default_factory=list)
    interventions: list[bool] = field(default_factory=list)
    targets: list[tuple[float, float, float]] = field(default_factory=list)  # of the action, in the base's frame
    skills: list[str] = field(default_factory=list)
    skills_done: list[bool] = field(default_factory=list)
    chosen: ChosenValues = field(default_factory=lambda: ChosenValues(()))
    is_success: bool = False
    begins_s: float = 0.0  # after the recording does: when state, command and all cameras were there

    def __len__(self) -> int:
        return len(self.tasks)


class _Sampler:
    """What is known now, and the frames so far."""

    def __init__(self, cameras: set[str], fps: int, show: Show, start_ns: int, columns: Columns) -> None:
        self._start_ns = start_ns
        self._no_task = columns.task
        self.episode = Episode(chosen=ChosenValues(columns.chosen))
        self._needs_state, self._needs_command = (name not in columns.names for name in (STATE, ACTION))
        self.has_driven_sideways = False
        self._cameras = cameras
        self._fps = fps
        self._show = show
        self._images: dict[str, NDArray[np.uint8]] = {}
        self._state: RobotState | None = None
        self._action: Action | None = None
        self._is_done = False
        self._vlm = ""  # who holds the seat that asks for actions, where leases say so
        self._sent: tuple[float, ...] | None = None
        self._sent_ns = 0
        self._asked: tuple[float, ...] | None = None  # in the last frame's period
        self._holder = ""  # of the policy's seat, where leases say so
        self._state_ns = 0
        self.stale: list[int] = []  # stamps of frames without a state of their time
        self._is_fresh = False  # whether a command was sent in the last frame's period
        self._task = columns.task
        self._is_person = False
        self._is_leased = False  # leases say who is in command
        self._first_ns = 0

    def uses(self, message: BagMessage) -> bool:
        """Whether the frames depend on messages of that topic."""
        is_used = message.topic in _USED or message.topic in self._cameras
        return is_used or message.topic in self.episode.chosen.topics

    def take(self, message: BagMessage, envelope: Envelope) -> None:
        """Take in the next message of the recording. Raises RecordingError where it cannot be read."""
        if message.topic in self.episode.chosen.topics:
            self.episode.chosen.take(message.topic, message.document)
        if message.topic == "robot/state":
            self._state = message.message(RobotState)
            self._state_ns = envelope.published_ns
        elif message.topic == "robot/command":
            self._take_sent(message.message(JointCommand), envelope.published_ns)
        elif message.topic == LEASE_TOPIC:
            lease = message.message(Lease)
            if lease.seat == "policy":
                self._is_leased, self._is_person, self._holder = True, lease.kind == "person", lease.holder
            elif lease.seat == "vlm":
                self._vlm = lease.holder
        elif message.topic == "command" and envelope.source == (self._holder or envelope.source):  # no shadow's
            self._take_asked(message, envelope)
        elif message.topic == "subtask":
            self._task = message.message(Subtask).text or self._no_task
        elif message.topic == "action" and envelope.source == (self._vlm or envelope.source):
            self._action, self._is_done = message.message(Action), False
        elif message.topic == "feedback" and self._action is not None:
            told = message.message(Feedback)
            self._is_done |= told.action_id == self._action.id and told.status == "success"
        elif message.topic in self._cameras:
            self._images[message.topic] = pixels(message.document)

    def _take_sent(self, command: JointCommand, sent_ns: int) -> None:
        """What the guard sent; the first one of a frame's period is the frame's action."""
        self._sent = (*command.position, command.base_v_mps, command.base_w_radps)
        self.has_driven_sideways |= command.base_vy_mps != 0.0
        self._sent_ns = sent_ns
        if self.episode.actions and not self._is_fresh and sent_ns < self._frame_ns(len(self.episode)):
            self.episode.actions[-1] = self._sent
            self._is_fresh = True
            if self._asked is None:
                self.episode.asked[-1] = self._sent

    def _take_asked(self, message: BagMessage, envelope: Envelope) -> None:
        """What the policy's seat asked for; the first one of a frame's period counts."""
        if not self._is_leased:
            self._is_person = envelope.provenance.startswith("person")
        if self.episode.asked and self._asked is None:
            wanted = message.message(JointCommand)
            self._asked = (*wanted.position, wanted.base_v_mps, wanted.base_w_radps)
            self.episode.asked[-1] = self._asked

    def begin(self, at_ns: int) -> None:
        """The first frame is there once all that it needs is."""
        if not self._first_ns and self._is_ready:
            self._first_ns = at_ns

    @property
    def begins_s(self) -> float:
        """Run time of the first frame."""
        return to_s(self._first_ns - self._start_ns)

    @property
    def lacking(self) -> str:
        """Why there is no frame, in words."""
        if (self._state is None and self._needs_state) or (self._sent is None and self._needs_command):
            return (
                "a dataset needs robot/state and robot/command; this has not both; "
                f"--feature {STATE}=TOPIC:FIELD and --feature {ACTION}=TOPIC:FIELD choose others"
            )
        if lacking := self.episode.chosen.lacking:
            return f"nothing is there for {', '.join(lacking)}"
        return "it ends before the first frame, which needs a state, a command and an image of each camera"

    @property
    def _is_ready(self) -> bool:
        has_own = (self._state is not None or not self._needs_state) and (
            self._sent is not None or not self._needs_command
        )
        return has_own and not self.episode.chosen.lacking and self._cameras <= self._images.keys()

    def make_frames(self, until_ns: int) -> None:
        """Make the frames that are due before that time."""
        if self._first_ns and to_s(until_ns - self._frame_ns(len(self.episode))) > LONGEST_STILL_S:
            at_s = to_s(self._frame_ns(len(self.episode)) - self._start_ns)
            raise RecordingError(
                f"its stamps jump by more than {LONGEST_STILL_S:g} s at {at_s:.3f} s; "
                "`polyrhythm bag cut` takes a span without the gap"
            )
        while self._first_ns and (frame_ns := self._frame_ns(len(self.episode))) < until_ns:
            for topic in sorted(self._cameras):
                self._show(topic, len(self.episode), self._images[topic])
            if self._state is not None:
                self._add_state(self._state, frame_ns)
            self.episode.chosen.add_frame()
            self.episode.skills.append(self._action.skill if self._action is not None else "")
            self.episode.skills_done.append(self._is_done)
            if self._sent is not None:
                self.episode.actions.append(self._sent)
                self.episode.asked.append(self._sent)
            self._asked = None
            self.episode.tasks.append(self._task)
            self.episode.interventions.append(self._is_person)
            self._is_fresh = self._sent_ns >= frame_ns

    def _add_state(self, state: RobotState, frame_ns: int) -> None:
        if self._needs_state and to_s(frame_ns - self._state_ns) > STALE_S:
            self.stale.append(frame_ns)
        self.episode.states.append((*state.position, state.base_x_m, state.base_y_m, state.base_heading_rad))
        self.episode.targets.append(target_of(self._action, state))

    def _frame_ns(self, number: int) -> int:
        return self._first_ns + round(number * NS_PER_S / self._fps)


def read_episode(
    recording: Recording,
    *,
    fps: int,
    show: Show,
    columns: Columns | None = None,
    skip_damaged: bool = False,
    only: Collection[str] = (),
    tell: Callable[[str], None] = lambda _: None,
) -> Episode:
    """Resample a recording. Raises RecordingError where it lacks robot states or commands, or one cannot be read.

    `only`: the topics of the cameras that are wanted; empty: all that there are. Raises UserError for one that is not.
    With `skip_damaged` what cannot be read is left out, as if the camera, say, had not given that image, and told.
    """
    cameras = {
        message.topic
        for message in recording
        if message.schema == IMAGE_SCHEMA and not message.topic.endswith("/depth")
    }
    if absent := set(only) - cameras:
        names = choices(topic.removesuffix("/image") for topic in cameras)
        absences = choices(topic.removesuffix("/image") for topic in absent)
        raise UserError(f"{recording.path}: has no camera {absences}; it has {names}")
    cameras = set(only) or cameras
    sampler = _Sampler(cameras, fps, show, recording.start_ns, columns or Columns())
    damaged = Damaged(recording, is_skipped=skip_damaged, what_then="the one before it stands in its frames")
    for at_ns, message in _by_stamp(recording, sampler, damaged):
        sampler.make_frames(at_ns)
        if message is None:
            continue
        try:
            sampler.take(message, message.envelope)
        except RecordingError as problem:
            damaged.met(message, problem)
        sampler.begin(at_ns)
    for sentence in damaged.told:
        tell(sentence)
    if sampler.has_driven_sideways:
        tell(f"{recording.path}: the base was driven sideways (base_vy_mps), and actions here have no place for that")
    if sampler.stale:
        first_s = to_s(sampler.stale[0] - recording.start_ns)
        tell(
            f"{recording.path}: {len(sampler.stale)} frames, the first at {first_s:.3f} s, repeat a robot/state "
            f"that is more than {STALE_S:g} s old: something is missing there; "
            "`polyrhythm bag cut` takes a span without it"
        )
    episode = sampler.episode
    if not len(episode):
        raise RecordingError(f"{recording.path}: {sampler.lacking}")
    outcome = recording.noted("outcome")
    episode.begins_s = sampler.begins_s - to_s(recording.begin_ns - recording.start_ns)
    episode.is_success = isinstance(outcome, dict) and outcome.get("ok") is True
    return episode


def _by_stamp(recording: Recording, sampler: _Sampler, damaged: Damaged) -> Iterator[tuple[int, BagMessage | None]]:
    """When each message was published, in that order, and those that frames depend on.

    A recorder that is behind writes an image, say, long after the states of its time.
    """
    fared = recording.noted("recorder")
    behind_s = fared.get("most_behind_s", MOST_BEHIND_S) if isinstance(fared, dict) else MOST_BEHIND_S
    window_ns = to_ns(min(MOST_BEHIND_S, behind_s))
    waiting: list[tuple[int, int, BagMessage | None]] = []
    for number, message in enumerate(recording.gone_through("exporting")):
        try:
            now_ns = message.envelope.published_ns
        except RecordingError as problem:
            if sampler.uses(message):
                damaged.met(message, problem)
            continue
        heapq.heappush(waiting, (now_ns, number, message if sampler.uses(message) else None))
        while waiting[0][0] < now_ns - window_ns:
            at_ns, _, known = heapq.heappop(waiting)
            yield at_ns, known
    while waiting:
        at_ns, _, known = heapq.heappop(waiting)
        yield at_ns, known
