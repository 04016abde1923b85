"""`Shadows`: what each candidate for a seat says, in words, beside what its holder says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bridges.web.http.wire import Seat
from nodes.msgs import Action, JointCommand, JointVector, Subtask
from nodes.robot.protocol import JointLimit

FRESH_S: dict[Seat, float] = {"planner": 30.0, "vlm": 30.0, "policy": 1.0}
"""Older words of a candidate are not shown."""
MOST_SOURCES = 8
MOST_JOINTS = 2
STILL_MPS = 0.005
STILL_SHARE = 0.01
"""Of a joint's range: goals nearer than this are no motion."""


class Shadows:
    """The newest words of each source on each seat (written in the node's thread, read in the server's)."""

    def __init__(self, joints: Sequence[JointLimit]) -> None:
        self._joints = joints
        self._said: dict[tuple[Seat, str], tuple[int, Subtask | Action | JointCommand]] = {}

    def note(self, seat: Seat, source: str, message: Subtask | Action | JointCommand, at_ns: int) -> None:
        """A candidate says something; whether it acts is the lease's affair."""
        if (seat, source) not in self._said and len(self._said) >= 3 * MOST_SOURCES:
            del self._said[min(self._said, key=lambda one: self._said[one][0])]  # who was silent for longest
        self._said[seat, source] = at_ns, message

    def documents(self, seat: Seat, holder: str, here: JointVector | None, now_ns: int) -> dict[str, Any]:
        """The holder's words and those of the others, where they are fresh."""
        live, others = "", []
        for (of, source), (at_ns, message) in sorted(self._said.items()):
            if of != seat or now_ns - at_ns > FRESH_S[seat] * 1e9:
                continue
            words = self._words(message, here)
            if source == holder:
                live = words
            else:
                others.append({"source": source, "text": words, "age_ms": round((now_ns - at_ns) * 1e-6)})
        return {"live": live, "shadows": others}

    def _words(self, message: Subtask | Action | JointCommand, here: JointVector | None) -> str:
        if isinstance(message, Subtask):
            return message.text
        if isinstance(message, Action):
            return message.text or message.skill
        parts = []
        if abs(message.base_v_mps) > STILL_MPS:
            parts.append(f"base {message.base_v_mps:+.2f} m/s")
        if abs(message.base_vy_mps) > STILL_MPS:
            parts.append(f"{message.base_vy_mps:+.2f} m/s to the left")
        if abs(message.base_w_radps) > STILL_MPS:
            parts.append(f"turn {message.base_w_radps:+.2f} rad/s")
        if here is not None:
            moving = [
                (abs(goal - at) / (joint.highest - joint.lowest), joint.name, goal)
                for goal, at, joint in zip(message.position, here, self._joints, strict=True)
            ]
            for share, name, goal in sorted(moving, reverse=True)[:MOST_JOINTS]:
                if share > STILL_SHARE:
                    parts.append(f"{name.replace('_', ' ')} to {goal:.2f}")
        return ", ".join(parts) or "stands still"
