"""A small recording in which a person takes a seat, and the model that sat there goes on in shadow."""

from __future__ import annotations

from pathlib import Path

from nodes.mcap.file import BagWriter
from nodes.msgs import Subtask, Utterance
from runtime.coordination.lease import LEASE_TOPIC, Lease
from runtime.message import Envelope, Stamped


def a_run_with_a_planner_in_shadow(path: Path) -> Path:
    """A person takes the planner's seat at 2 s; the lines lie in the file as they arrived, not as they were said."""

    def at(topic: str, source: str, at_s: float, seat: str = "") -> Envelope:
        return Envelope(topic=topic, source=source, seq=1, published_ns=round(at_s * 1e9), seat=seat)

    bag = BagWriter(path, {})
    for message, envelope in (
        (Utterance(speaker="Sam", text="Hello"), at("heard", "console", 1.0)),
        (Utterance(speaker="robot", text="said in shadow"), at("said", "planner", 3.5, "planner")),
        (Subtask(id="1", text="planned in shadow"), at("subtask", "planner", 3.5, "planner")),
        (Lease(seat="planner", holder="planner", number=1), at(LEASE_TOPIC, "guard", 0.0)),
        (Utterance(speaker="robot", text="by the model"), at("said", "planner", 1.5, "planner")),
        (Utterance(speaker="robot", text="by the person"), at("said", "human_planner", 3.0, "planner")),
        (
            Lease(seat="planner", holder="human_planner", number=2, kind="person", by="Ann"),
            at(LEASE_TOPIC, "guard", 2.0),
        ),
        (Utterance(speaker="robot", text="in the robot's voice"), at("said", "console", 4.0)),
    ):
        bag.write(Stamped(message, envelope))
    bag.close()
    return path
