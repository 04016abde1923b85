"""What experimenter and participant see of a session, as documents for their pages."""

from __future__ import annotations

from typing import Any

from bridges.web.study.protocol import Protocol
from bridges.web.study.session import Story

SPOKEN = ("said",)
ROLES = ("operator", "viewer", "experimenter")
SOMEBODY = ""
"""A person of the study who speaks beside the robot; the page says it in its language, and never tells of a wizard."""


def participant_view(protocol: Protocol, story: Story | None) -> dict[str, Any]:
    """The step as the participant may see it: never conditions, notes, or what comes next."""
    found: dict[str, Any] = {"title": protocol.title, "code": "", "step": None}
    if story is None:
        return found
    found |= {"code": story.code, "place": story.place, "count": len(story.steps), "withdrawn": story.has_withdrawn}
    found |= {"running": story.phase == "running", "stop": story.allowed.stop, "over": story.is_over}
    step = story.step.document()
    if step["kind"] == "consent":
        step |= {"text": protocol.consent.text.strip(), "statements": list(protocol.consent.statements)}
    elif step["kind"] == "thanks":
        step |= {"text": protocol.thanks.strip()}
    elif step["kind"] == "questionnaire":
        step |= {"answers": story.answers.get(story.step.ident, {})}
    elif story.phase == "running":
        step |= {"attempt": story.attempt, "speak": story.allowed.speak, "lines": _spoken(protocol, story)}
    return found | {"step": step}


def _spoken(protocol: Protocol, story: Story) -> list[dict[str, Any]] | None:
    """What was said since the trial began; None where the study does not show it."""
    if not story.allowed.dialogue:
        return None
    names = {**dict.fromkeys(ROLES, SOMEBODY), **protocol.names}
    since = story.started_at_s
    return [
        {**line, "who": names.get(line["who"], line["who"])}
        for line in story.lines
        if line["kind"] in SPOKEN and line["at_s"] >= since
    ]


def experimenter_view(protocol: Protocol, story: Story | None, finished: list[str]) -> dict[str, Any]:
    """Everything."""
    found: dict[str, Any] = {
        "title": protocol.title,
        "marks": [{"key": mark.key, "label": mark.label} for mark in protocol.mark],
        "sessions": finished,
        "code": "",
    }
    if story is None:
        return found
    step = story.step
    asked = step.questionnaire
    found |= {
        "code": story.code,
        "number": story.number,
        "place": story.place,
        "kind": step.kind,
        "running": story.phase == "running",
        "attempt": story.attempt,
        "withdrawn": story.has_withdrawn,
        "over": story.is_over,
        "steps": [
            {
                "title": one.title,
                "kind": one.kind,
                "about": one.condition.title if one.condition is not None else "",
            }
            for one in story.steps
        ],
        "lines": story.lines,
        "missing": len(asked.missing(story.answers.get(step.ident, {}))) if asked is not None else 0,
        "answers": [
            {"step": place.title, "trial": place.trial, "item": item, "value": value}
            for place in story.steps
            for item, value in story.answers.get(place.ident, {}).items()
            if value != ""
        ],
    }
    if step.task is not None and step.condition is not None:
        found |= {
            "trial": step.trial,
            "limit_s": step.task.limit_s,
            "task": {"title": step.task.title, "text": step.task.text, "notes": step.task.notes},
            "condition": {"title": step.condition.title, "notes": step.condition.notes},
        }
    return found
