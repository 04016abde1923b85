"""What the robot did: each action with how long it took and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nodes.report.run import Run

End = Literal["success", "failure", "replaced", "asked", "unfinished"]
"""How it ended; asked: a person had to say yes first."""


@dataclass(frozen=True, slots=True)
class ActionSpan:
    """One action from its order to its end, or to the order that replaced it."""

    start_ns: int
    end_ns: int
    skill: str
    text: str
    end: End
    why: str = ""


def action_spans(run: Run) -> list[ActionSpan]:
    """All actions of a run in order; one that gave way to the next is replaced, whatever the policy says."""
    ends = {
        one.message.action_id: (one.envelope.published_ns, one.message)
        for one in run.feedback.messages
        if one.message.status != "running"
    }
    found: list[ActionSpan] = []
    for index, one in enumerate(run.actions.messages):
        is_last = index + 1 == len(run.actions.messages)
        start_ns = one.envelope.published_ns
        next_ns = run.end_ns if is_last else run.actions.messages[index + 1].envelope.published_ns
        ended_ns, told = ends.get(one.message.id, (next_ns, None))
        end: End = "unfinished" if is_last else "replaced"
        if told is not None and (how := told.ending) != "running" and how != "replaced":
            end = how
        text = one.message.text or one.message.skill
        end_ns = max(start_ns, min(ended_ns, next_ns))
        found.append(ActionSpan(start_ns, end_ns, one.message.skill, text, end, told.why if told is not None else ""))
    return found
