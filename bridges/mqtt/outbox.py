"""`Outbox`: what there is to tell a broker, while there is one and while there is none."""

from __future__ import annotations

from collections import deque

import msgspec

from bridges.mqtt.topics import Document, state_document
from runtime import Message
from runtime.clock import wall_time_ns
from runtime.msgs import JOINTS, GuardState, RobotState, RobotStatus

MOST_EVENTS = 200
"""Events that wait for a broker; the oldest make room."""


class Outbox:
    """The newest of all that stays true until it changes, and what happened, in order."""

    def __init__(self, joints: tuple[str, ...] = JOINTS) -> None:
        self.joints = joints
        self.state: RobotState | None = None
        self.status: RobotStatus | None = None
        self.guard: GuardState | None = None
        self.subtask = self.said = ""
        self.events: deque[bytes] = deque(maxlen=MOST_EVENTS)
        self.lost_events = 0
        self._header_id = 0

    def happened(self, topic: str, message: Message) -> None:
        """One more event; the oldest that waits is lost where there are too many."""
        self.lost_events += len(self.events) == MOST_EVENTS
        self.events.append(self.encoded({"topic": topic, "data": message}))

    def not_told(self, event: bytes) -> None:
        """The broker did not take it: it is the next one again, unless its place was needed meanwhile."""
        if len(self.events) < MOST_EVENTS:
            self.events.appendleft(event)
        else:
            self.lost_events += 1

    def document(self) -> Document:
        """What is retained as the robot's state."""
        return state_document(self.guard, self.status, self.subtask, self.said)

    def encoded(self, document: Document) -> bytes:
        """The document with its number and time, as it goes out."""
        self._header_id += 1
        header = {"header_id": self._header_id, "timestamp_ms": wall_time_ns() // 1_000_000}
        return msgspec.json.encode(header | document)
