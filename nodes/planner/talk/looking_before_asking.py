"""Before the robot asks which thing is meant, it looks round: more of them may come into sight."""

from __future__ import annotations

from nodes.planner.orders import is_vague
from nodes.planner.talk.dialogue import Dialogue

LOOKS_FOR_S = 3.0
"""So long it looks before it asks."""


def looks_first(before: Dialogue, heard: Dialogue) -> bool:
    """Whether what was just heard leaves open which thing is meant, and the robot has not looked round yet."""
    asked = heard.open("order")
    asks_which = asked is not None and asked not in before.questions and asked.awaits == "thing"
    new = heard.order if heard.number != before.number else None
    is_open = new is not None and any(is_vague(one) and not one.is_any for one in new.things)
    return (asks_which or is_open) and not before.around.scene.is_looked
