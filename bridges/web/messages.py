"""What the console publishes besides the robot graph's own topics."""

from __future__ import annotations

from runtime.message import Message


class Mark(Message):
    """Something worth finding again in the recording, noted by a person."""

    label: str
    note: str = ""
    by: str = ""


class Occupation(Message, kind="state"):
    """Which seats people hold through the console; repeated, so that its silence means that the console is gone."""

    planner: str = ""  # the person's name; "" the model
    vlm: str = ""
    policy: str = ""
