"""Which question a server answers next: one of each client waits, the newest; the one that is due first goes first."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClientQuestion:
    """What one client asks."""

    client: str
    number: int
    due_ns: int  # no answer after that is of use
    frames: tuple[bytes, ...]
    route: bytes = b""  # where the answer goes


class Questions:
    """The questions that wait. Pure: the caller brings the time."""

    def __init__(self) -> None:
        self._waiting: dict[str, ClientQuestion] = {}
        self.counts: Counter[str] = Counter()
        """By what became of them: "replaced" by a newer one of the same client, "late" before their turn, "taken"."""

    def ask(self, question: ClientQuestion) -> ClientQuestion | None:
        """A question comes in; returns the older one of the same client that it replaces."""
        replaced = self._waiting.pop(question.client, None)
        if replaced is not None:
            self.counts["replaced"] += 1
        self._waiting[question.client] = question
        return replaced

    def next(self, now_ns: int, took_ns: int = 0) -> tuple[ClientQuestion | None, list[ClientQuestion]]:
        """The question to answer now, and those that are too late; an answer takes about `took_ns`."""
        late = [question for question in self._waiting.values() if question.due_ns < now_ns + took_ns]
        for question in late:
            del self._waiting[question.client]
        self.counts["late"] += len(late)
        if not self._waiting:
            return None, late
        # Of those due at the same time, the one that has waited longest: nobody waits for two turns of another.
        chosen = min(self._waiting.values(), key=lambda question: question.due_ns)
        del self._waiting[chosen.client]
        self.counts["taken"] += 1
        return chosen, late
