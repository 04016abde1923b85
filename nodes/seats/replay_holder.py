"""`ReplayHolder`: a recording that holds a seat of a running graph under a lease, as a person would."""

from __future__ import annotations

from pathlib import Path

from nodes.seats.recorded_track import SPOKEN, read_score
from nodes.seats.terminal_holder import TerminalHolder
from runtime.errors import UserError
from runtime.launch.process_plan import load_type
from runtime.message import Message
from runtime.supervision.registry import FoundRun


class ReplayHolder(TerminalHolder):
    """Publishes what is due once the guard has given it the seat; gives the seat back at the end."""

    kind = "replay"
    turn_s = 0.005

    def __init__(
        self, run: FoundRun, seat: str, by: str, *, recording: Path, from_s: float, for_s: float | None
    ) -> None:
        """Read the recording first. Raises RecordingError, and UserError where the seat's holder said nothing in it."""
        types = topics_of_seat(run, seat)
        self.score = read_score(recording, seat, types, from_s=from_s)
        super().__init__(run, seat, by, keys=False, for_s=for_s)
        self.provenance = f"replay:{self.score.name}"
        for topic in {note.topic for note in self.score.notes}:
            self._sender(topic)  # connecting takes a moment, which is not to be between two commands
        self.began_ns = 0
        print(f"{seat}: {self.score.length_s:.1f} s of {recording}", flush=True)

    def _speak(self) -> bool:
        now_ns = self.clock.now_ns()
        self.began_ns = self.began_ns or now_ns
        for note in self.score.due(now_ns - self.began_ns):
            self._sender(note.topic).publish(note.message)
        return not self.score.is_over


def topics_of_seat(run: FoundRun, seat: str) -> dict[str, type[Message]]:
    """The topics that a recording may publish on, with their types: those that belong to the seat alone.

    A tool's messages count there only under a lease. Raises UserError where the seat has no such topic.
    """
    found = {
        topic: load_type(run.info.topics[topic].type)
        for plan in run.info.processes.values()
        for topic, owner in plan.seat_topics.items()
        if owner == seat and topic in SPOKEN[seat] and topic in run.info.topics
    }
    if not found:
        raise UserError(
            f"nothing in this graph belongs to the seat {seat} alone; the launch file has no [seats.{seat}]"
        )
    return found
