"""A recording resampled to one rate: at each frame what was known by then, and what was sent to the robot next."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nodes.mcap.record import BagMessage
from nodes.msgs import Action, Feedback, Interrupt, InterruptRecord, JointCommand, RobotState, Subtask, Utterance
from nodes.policy.onnx.inputs import target_of
from nodes.recording.bag.export.damage import Damaged
from nodes.recording.bag.recording import Recording
from nodes.recording.dataset.features import ACTION, STATE, ChosenValues, Columns
from nodes.recording.dataset.words import Roles, Word
from nodes.recording.images import SCHEMA_NAME as IMAGE_SCHEMA
from nodes.recording.images import pixels
from runtime.clock import NS_PER_S, to_ns, to_s
from runtime.coordination.lease import LEASE_TOPIC, Lease
from runtime.errors import RecordingError, UserError, choices
from runtime.message import Envelope, Message

LONGEST_STILL_S = 60.0
"""A longer jump of the stamps is no still scene, but damage or a gap."""
MOST_BEHIND_S = 10.0
"""Messages wait so long, at most, for those of their time that were recorded after them."""
STALE_S = 0.5
"""A robot's state that is older at a frame is a hole in the recording, of which a dataset is to tell."""
_USED: dict[str, type[Message]] = {
    "robot/state": RobotState, "robot/command": JointCommand, "command": JointCommand, "subtask": Subtask,
    "action": Action, "feedback": Feedback, LEASE_TOPIC: Lease,
}  # fmt: skip
"""What frames are made of; under another name where only one topic of that type is recorded."""
_WORDS: dict[str, type[Message]] = {
    "heard": Utterance, "said": Utterance, "interrupt": Interrupt, "interrupt/record": InterruptRecord,
}  # fmt: skip
Show = Callable[[str, int, NDArray[np.uint8]], None]
"""Called as show(topic, frame, rgb) for every camera at every frame."""


@dataclass
class Episode:
    """Frames as columns."""

    states: list[tuple[float, ...]] = field(default_factory=list)  # joints; the base's x, y, heading, v and w
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
    image_ages_s: dict[str, list[float]] = field(default_factory=dict)  # by topic: since the picture was captured
    words: list[Word] = field(default_factory=list)
    is_success: bool = False
    begins_s: float = 0.0  # after the recording does: when state, command and all cameras were there

    def __len__(self) -> int:
        return len(self.tasks)


class _Sampler:
    """What is known now, and the frames so far."""

    def __init__(
        self, cameras: set[str], fps: int, show: Show, start_ns: int, columns: Columns, ours: dict[str, str]
    ) -> None:
        self._ours = ours
        self._columns = columns
        self._start_ns = start_ns
        self.episode = Episode(chosen=ChosenValues(columns.chosen))
        self._needs_state, self._needs_command = (name not in columns.names for name in (STATE, ACTION))
        self.has_driven_sideways = False
        self._cameras = cameras
        self._fps = fps
        self._show = show
        self._images: dict[str, tuple[NDArray[np.uint8], int]] = {}  # with the moment of their capture
        self.people: dict[str, str] = {}  # by name: what they are called in the dataset
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
        self._task = self._task_before = columns.task
        self._is_person = False
        self._is_leased = False  # leases say who is in command
        self._first_ns = 0

    def uses(self, message: BagMessage) -> bool:
        """Whether the frames depend on messages of that topic."""
        is_used = message.topic in self._ours or message.topic in self._cameras
        return is_used or message.topic in self.episode.chosen.topics

    def take(self, message: BagMessage, envelope: Envelope) -> None:
        """Take in the next message of the recording. Raises RecordingError where it cannot be read."""
        if message.topic in self.episode.chosen.topics:
            self.episode.chosen.take(message.topic, message.document)
        name = self._ours.get(message.topic, "")
        if name == "robot/state":
            self._state = message.message(RobotState)
            self._state_ns = envelope.published_ns
        elif name == "robot/command":
            self._take_sent(message.message(JointCommand), envelope.published_ns)
        elif name == LEASE_TOPIC:
            lease = message.message(Lease)
            if lease.seat == "policy":
                self._is_leased, self._is_person, self._holder = True, lease.kind == "person", lease.holder
            elif lease.seat == "vlm":
                self._vlm = lease.holder
        elif name == "command" and envelope.source == (self._holder or envelope.source):  # no shadow's
            self._take_asked(message, envelope)
        elif name == "action" and envelope.source == (self._vlm or envelope.source):
            self._action, self._is_done = message.message(Action), False
        elif name == "feedback" and self._action is not None:
            told = message.message(Feedback)
            self._is_done |= told.action_id == self._action.id and told.status == "success"
        elif message.topic in self._cameras:
            document = message.document
            self._images[message.topic] = pixels(document), int(document.get("captured_ns", envelope.published_ns))
        else:
            self._take_words(name, message)

    def _take_words(self, name: str, message: BagMessage) -> None:
        """What was said or planned belongs to the next frame, the first at which it was known."""
        spoken: Message
        if name == "subtask":
            spoken = message.message(Subtask)
            if not self._columns.has_task_from_words:
                self._task = spoken.text or self._columns.task
        elif name == "heard":
            spoken = message.message(Utterance)
            self.people.setdefault(spoken.speaker, f"person {len(self.people) + 1}" if self.people else "person")
            if self._columns.has_task_from_words:
                self._task_before, self._task = self._task, spoken.text
        elif name == "interrupt":
            spoken = message.message(Interrupt)
            if spoken.depth != "replan" and self._columns.has_task_from_words and spoken.text == self._task:
                self._task = self._task_before  # "Stop!" is no task
        elif name in _WORDS:
            spoken = message.message(_WORDS[name])
        else:
            return
        if self._columns.has_words:
            self.episode.words.append(Word(len(self.episode), name, spoken))

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
                rgb, captured_ns = self._images[topic]
                self._show(topic, len(self.episode), rgb)
                ages_s = self.episode.image_ages_s.setdefault(topic, [])
                ages_s.append(max(0.0, to_s(frame_ns - captured_ns)))
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
        base = state.base_x_m, state.base_y_m, state.base_heading_rad, state.base_v_mps, state.base_w_radps
        self.episode.states.append((*state.position, *base))
        self.episode.targets.append(target_of(self._action, state))

    def _frame_ns(self, number: int) -> int:
        return self._first_ns + round(number * NS_PER_S / self._fps)


Span = tuple[int, int]
"""From and until when, by the stamps of a recording, ns."""


def corrections(recording: Recording) -> list[Span]:
    """When a person held the policy's seat, oldest first."""
    leases: list[tuple[int, Lease]] = []
    end_ns = 0
    for message in recording:
        at_ns = message.envelope.published_ns
        end_ns = max(end_ns, at_ns + 1)
        if message.topic == LEASE_TOPIC and (lease := message.message(Lease)).seat == "policy":
            leases.append((at_ns, lease))
    found: list[Span] = []
    begun_ns: int | None = None
    for at_ns, lease in sorted(leases, key=lambda one: one[0]):
        if lease.kind == "person":
            begun_ns = at_ns if begun_ns is None else begun_ns
        elif begun_ns is not None:
            found.append((begun_ns, at_ns))
            begun_ns = None
    return found if begun_ns is None else [*found, (begun_ns, end_ns)]


def read_episode(
    recording: Recording,
    *,
    fps: int,
    show: Show,
    columns: Columns | None = None,
    skip_damaged: bool = False,
    only: Collection[str] = (),
    within: Span | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Episode:
    """Resample a recording. Raises RecordingError where it lacks robot states or commands, or one cannot be read.

    `only`: the topics of the cameras that are wanted; empty: all that there are. Raises UserError for one that is not.
    `within`: frames of that span alone; None: all. With `skip_damaged` what cannot be read is left out, as if the
    camera, say, had not given that image, and told.
    """
    columns = columns or Columns()
    schemas = {message.topic: message.schema for message in recording}
    cameras = {topic for topic, schema in schemas.items() if schema == IMAGE_SCHEMA and not topic.endswith("/depth")}
    if absent := set(only) - cameras:
        names = choices(topic.removesuffix("/image") for topic in cameras)
        absences = choices(topic.removesuffix("/image") for topic in absent)
        raise UserError(f"{recording.path}: has no camera {absences}; it has {names}")
    cameras = set(only) or cameras
    ours = _ours(
        schemas, _USED | (_WORDS if columns.has_words or columns.has_task_from_words else {"heard": Utterance})
    )
    sampler = _Sampler(cameras, fps, show, recording.start_ns, columns, ours)
    damaged = Damaged(recording, is_skipped=skip_damaged, what_then="the one before it stands in its frames")
    from_ns, until_ns = within or (0, None)
    for at_ns, message in _by_stamp(recording, sampler, damaged):
        sampler.make_frames(at_ns if until_ns is None else min(at_ns, until_ns))
        if until_ns is not None and at_ns >= until_ns:
            break
        if message is None:
            continue
        try:
            sampler.take(message, message.envelope)
        except RecordingError as problem:
            damaged.met(message, problem)
        if at_ns >= from_ns:
            sampler.begin(at_ns)
    damaged.tell(tell)
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
    episode.words = [word for word in episode.words if word.frame < len(episode)]
    roles = Roles(sampler.people)
    episode.tasks = [roles.without_names(task) for task in episode.tasks]
    episode.words = [word.told(roles) for word in episode.words]
    episode.begins_s = sampler.begins_s - to_s(recording.begin_ns - recording.start_ns)
    episode.is_success = outcome_of(recording) is True
    return episode


def outcome_of(recording: Recording) -> bool | None:
    """Whether the run has reached what it was for; None where nobody says."""
    outcome = recording.noted("outcome")
    is_ok = outcome.get("ok") if isinstance(outcome, dict) else None
    return is_ok if isinstance(is_ok, bool) else None


def _ours(schemas: Mapping[str, str], used: Mapping[str, type[Message]]) -> dict[str, str]:
    """What each topic is to us: what its name says, or else its type, where no other topic has it."""
    found = {name: name for name in used if name in schemas}
    for name, kind in used.items():
        alike = [topic for topic, schema in schemas.items() if schema == kind.__name__ and topic not in found]
        if name not in schemas and len(alike) == 1:
            found[alike[0]] = name
    return found


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
