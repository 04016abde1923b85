"""What the console publishes besides the robot graph's own topics."""

from __future__ import annotations

from runtime.message import Message


class Mark(Message):
    """Something worth finding again in the recording, noted by a person."""

    label: str
    note: str = ""
    by: str = ""
