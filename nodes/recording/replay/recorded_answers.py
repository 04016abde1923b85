"""What the world outside answered in a recorded run, for `polyrhythm run --virtual --answers`."""

from __future__ import annotations

from pathlib import Path

from nodes.mcap.file import BagReader
from runtime.journal.answers import SLEPT, WOKEN
from runtime.journal.calls import Calls


def recorded_answers(path: Path) -> dict[str, list[str]]:
    """By node, what the world outside answered in a recorded run, in order. Raises RecordingError."""
    found: dict[str, list[tuple[int, int, str]]] = {}
    lives: dict[str, int] = {}
    for message in BagReader(path):
        if message.schema == "Calls":
            batch = message.message(Calls)
            lives[batch.node] = lives.get(batch.node, 0) + (message.envelope.seq == 1)
            waits = (wait for call in batch.calls for wait in call.waits)
            kept = [(lives[batch.node], order, text) for order, text in waits if text not in (SLEPT, WOKEN)]
            found.setdefault(batch.node, []).extend(kept)
    return {node: [text for _, _, text in sorted(answers)] for node, answers in found.items()}
