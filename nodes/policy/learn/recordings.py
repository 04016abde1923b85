"""Rows from recordings: what the pupil felt while it held the policy's seat, and what somebody else wanted there.

Somebody else is the scripted policy in shadow, or a person who took the seat. What they commanded is the label of that
moment; what a person did instead of the pupil counts more. No row is made while the guard holds the robot.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from nodes.mcap.file import BagReader
from nodes.mcap.parts import parts_of
from nodes.mcap.record import BagMessage
from nodes.msgs import Action, Feedback, GuardState, JointCommand, JointVector, RobotState
from nodes.policy.learn.rows import FELT, HISTORY, INTERVENES, RATE_HZ, WANTED, Rows, counts, flat
from nodes.policy.onnx.inputs import feel
from nodes.policy.onnx.policy import UnderWay
from runtime.clock import to_ns
from runtime.coordination.lease import LEASE_TOPIC, Lease, SeatHolders
from runtime.message import Envelope

SKILLS = ("pick", "place", "look")
COMMAND_LASTS_NS = to_ns(0.15)
DONE_S = 0.25
"""So long before its success was told an action was done."""
PERIOD_NS = to_ns(1 / RATE_HZ)


@dataclass
class TaughtRows:
    """Follows one recording, and notes a row each 50 ms in which an action is under way and somebody teaches."""

    pupil: str
    line: SeatHolders = field(default_factory=lambda: SeatHolders(topics={"command": "policy", "feedback": "policy"}))
    state: RobotState | None = None
    recent: tuple[JointVector, ...] = ()
    under_way: UnderWay | None = None
    is_stopped: bool = False
    holder: str = ""
    given_up: set[str] = field(default_factory=set)  # who has told that this action failed
    said: dict[str, tuple[int, JointCommand]] = field(default_factory=dict)  # by whom: when, and what
    next_ns: int = 0
    run: int = 0
    teacher: str = ""
    felt: list[tuple[float, ...]] = field(default_factory=list)
    wanted: list[tuple[float, ...]] = field(default_factory=list)
    runs: list[int] = field(default_factory=list)
    counts: list[float] = field(default_factory=list)
    taken: int = 0  # rows in which somebody had taken the seat

    def hear(self, record: BagMessage) -> None:
        """Take in one message, after the moments before it."""
        envelope = record.envelope
        while self.next_ns and self.next_ns <= envelope.published_ns:
            self._note(self.next_ns)
            self.next_ns += PERIOD_NS
        match record.topic:
            case "robot/state":
                self.state = record.message(RobotState)
                self.next_ns = self.next_ns or envelope.published_ns + PERIOD_NS
            case "guard/state":
                guard = record.message(GuardState)
                self.is_stopped = guard.is_stopped or guard.mode == "retreating"
            case "action" if not self.line.is_shadow(envelope):
                self._begin(record.message(Action))
            case "command":
                self.said[envelope.source] = (envelope.published_ns, record.message(JointCommand))
            case "feedback":
                self._end(record.message(Feedback), envelope)
            case topic if topic == LEASE_TOPIC:
                lease = record.message(Lease)
                self.line.take(lease)
                if lease.seat == "policy":
                    self.holder = lease.holder
                    self.pupil = self.pupil or lease.holder

    def rows(self) -> Rows:
        """Return all of it, as arrays."""
        felt = np.array(self.felt, np.float32).reshape(len(self.felt), FELT)
        wanted = np.array(self.wanted, np.float32).reshape(len(self.wanted), WANTED)
        return Rows(felt, wanted, np.array(self.runs, np.int64), np.array(self.counts, np.float32))

    def _begin(self, action: Action) -> None:
        self.given_up.clear()
        self.run += 1
        self.under_way = None
        if action.skill in SKILLS and action.target is not None:
            self.under_way = UnderWay.begun(action, None, self.state, is_judged=True)

    def _end(self, told: Feedback, envelope: Envelope) -> None:
        if self.under_way is None or told.action_id != self.under_way.action.id:
            return
        if told.status == "success" and not self.line.is_shadow(envelope):
            since = max(0, len(self.runs) - round(DONE_S * RATE_HZ))
            for row in range(since, len(self.runs)):
                if self.runs[row] == self.run:
                    self.wanted[row] = (*self.wanted[row][:-1], 1.0)
            self.under_way = None
        elif told.status == "failure":
            self.given_up.add(envelope.source)
            if not self.line.is_shadow(envelope):
                self.under_way = None

    def _note(self, now_ns: int) -> None:
        if self.state is None:
            return
        self.recent = (*self.recent[1 - HISTORY :], self.state.position)
        if self.under_way is None or self.is_stopped:
            return
        before, self.under_way = self.under_way, self.under_way.later(1 / RATE_HZ, self.state)
        teacher = self._teacher(now_ns)
        if teacher != self.teacher:
            self.teacher, self.run = teacher, self.run + 1
        if not teacher:
            return
        _, command = self.said[teacher]
        felt = flat(feel(self.state, before.action, before.began, self.recent, HISTORY, before.elapsed_s))
        wanted = (*command.position, command.base_v_mps, 0.0, 0.0)
        if not all(map(math.isfinite, (*felt, *wanted))):  # the guard has refused it, too
            return
        self.felt.append(felt)
        self.wanted.append(wanted)
        self.runs.append(self.run)
        is_taken = teacher == self.holder
        self.taken += is_taken
        self.counts.append(INTERVENES if is_taken else counts(self.under_way.still_s, is_done=False))

    def _teacher(self, now_ns: int) -> str:
        """Who says now what should be done: who took the seat, else a shadow; "" for nobody."""
        if not self.pupil:
            return ""
        live = [
            name
            for name, (ns, _) in self.said.items()
            if name not in (self.pupil, *self.given_up) and now_ns - ns <= COMMAND_LASTS_NS
        ]
        if self.holder not in ("", self.pupil):
            return self.holder if self.holder in live else ""
        return min(live, default="")


def rows_of(recording: Path, pupil: str = "") -> tuple[Rows, int]:
    """Return what a recording teaches the node of that name, and how many rows are of who took its seat.

    "" is who held the policy's seat first. Raises RecordingError where it is no recording.
    """
    taught = TaughtRows(pupil)
    for part in parts_of(recording):
        for record in BagReader(part):
            taught.hear(record)
    return taught.rows(), taught.taken
