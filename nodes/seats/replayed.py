"""A recording on a seat: publishes again what the seat's holder published, once a person has given it the seat.

    [nodes.replayed]
    use    = "nodes.seats.replayed:ReplayedPolicy"
    params = { recording = "runs/monday/run.mcap" }

    [seats.policy]
    holder  = "policy"
    shadows = ["replayed"]

It begins at the hand-over (`polyrhythm seat take policy --as replayed`) and at nothing else. Neither starting it, nor
naming it as the holder, nor a restart of the guard moves the robot. Its messages have no image behind them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nodes.msgs import Action, JointCommand, SceneDescription, Subtask
from nodes.seats.recorded_track import RecordedTrack, read_score
from nodes.seats.seat_node import Seated
from runtime import RELIABLE, ParameterError, Publisher, every
from runtime.node import ports_of

RATE_HZ = 50


class Replayed(Seated):
    """Plays a recording from `from_s` seconds on; the subclasses name the seat.

    Raises ParameterError where `from_s` is negative or not finite.
    """

    provenance = "replay"

    def __init__(self, recording: str, from_s: float = 0.0) -> None:
        if not 0.0 <= from_s < float("inf"):
            raise ParameterError(f"replayed: from_s is {from_s}; expected 0 or more seconds of the recording")
        self.path = Path(recording)
        self.from_s = from_s
        self.score: RecordedTrack | None = None
        self.began_ns = 0  # 0: it does not play

    def problems(self) -> list[str]:
        """A sentence where the recording is missing."""
        return [] if self.path.is_file() else [f"recording is {str(self.path)!r}; there is no such file"]

    def on_start(self) -> None:
        """Read the recording. Raises RecordingError, and UserError where the seat's holder published nothing in it."""
        seat = type(self).seat
        assert seat != ""
        ports = self._ports()
        self.score = read_score(
            self.path, seat, {topic: port.message for topic, port in ports.items()}, from_s=self.from_s
        )
        for port in ports.values():
            port.provenance = f"replay:{self.score.name}"
        self.log.info("%.1f s of %s, to be played when the seat is taken", self.score.length_s, self.path)

    def on_seat(self) -> None:
        """Start to play."""
        if self.score is not None:
            self.score.begin()
            self.began_ns = self.clock.now_ns()

    def off_seat(self) -> None:
        """Stop playing."""
        self.began_ns = 0

    @every(hz=RATE_HZ)
    def play(self) -> None:
        """Publish the messages that are due."""
        if not self.began_ns or self.score is None:
            return
        ports = self._ports()
        notes = self.score.due(self.clock.now_ns() - self.began_ns)
        for note in notes:
            ports[note.topic].publish(note.message)
        if notes and self.score.is_over:
            self.log.info("%s is over; the seat is silent now", self.score.name)

    def _ports(self) -> dict[str, Publisher[Any]]:
        """The node's publishers by topic, as remapped."""
        return {port.topic: port for name in ports_of(type(self), Publisher) if (port := getattr(self, name))}


class ReplayedPolicy(Replayed):
    """Replays the commands of the policy's seat."""

    seat = "policy"
    command = Publisher(JointCommand, "command")


class ReplayedVLM(Replayed):
    """Replays the actions and descriptions of the VLM's seat."""

    seat = "vlm"
    action = Publisher(Action, "action", qos=RELIABLE)
    description = Publisher(SceneDescription, "description")


class ReplayedPlanner(Replayed):
    """Replays the subtasks of the planner's seat."""

    seat = "planner"
    subtask = Publisher(Subtask, "subtask", qos=RELIABLE)
