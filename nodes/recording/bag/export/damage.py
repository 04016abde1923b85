"""`Damaged`: messages that an export needs and cannot read: the first ends it, or all are left out and counted."""

from __future__ import annotations

from collections.abc import Callable

from nodes.mcap.record import BagMessage
from nodes.recording.bag.recording import Recording, envelope_or_none
from runtime.errors import RecordingError

ADVICE = "--skip-damaged leaves such messages out and counts them; `polyrhythm bag cut` takes a span without them"


class Damaged:
    """Keeps account of what could not be read."""

    def __init__(self, recording: Recording, *, is_skipped: bool, what_then: str = "left out") -> None:
        self._recording = recording
        self._is_skipped = is_skipped
        self._what_then = what_then
        self._number: dict[str, int] = {}
        self._first: dict[str, str] = {}

    def met(self, message: BagMessage, problem: Exception) -> None:
        """One that cannot be read. Raises RecordingError, which names it, where nothing is to be left out."""
        which = f"{_name(message)}, at {self._recording.logged_s(message):.3f} s, cannot be read ({problem})"
        if not self._is_skipped:
            raise RecordingError(f"{self._recording.path}: {which}; {ADVICE}") from problem
        self._number[message.topic] = self._number.get(message.topic, 0) + 1
        self._first.setdefault(message.topic, which)

    def tell(self, tell: Callable[[str], None]) -> None:
        """A sentence for each topic of which something was left out."""
        for topic, first in sorted(self._first.items()):
            others = self._number[topic] - 1
            more = f", nor {others} more of that topic" if others else ""
            tell(f"{self._recording.path}: {first}{more}: {self._what_then}")


def _name(message: BagMessage) -> str:
    """As `polyrhythm echo` names it, where it still says whose it was."""
    envelope = envelope_or_none(message)
    if envelope is None or not envelope.source:
        return f"{message.topic} #{message.sequence}"
    return f"{envelope.topic} #{envelope.seq} from {envelope.source}"
