"""What experimenter and participant see of a session, as documents for their pages."""

from __future__ import annotations

from typing import Any

from bridges.web.study.protocol import Protocol
from bridges.web.study.session import SessionProgress
from bridges.web.study.steps import SessionStep

SPOKEN = ("said",)
ROLES = ("operator", "viewer", "experimenter")
SOMEBODY = ""
"""A person of the study who speaks beside the robot; the page says it in its language, and never tells of a wizard."""


def participant_view(protocol: Protocol, progress: SessionProgress | None) -> dict[str, Any]:
    """The step as the participant may see it: never conditions, notes, or what comes next."""
    found: dict[str, Any] = {"title": protocol.title, "code": "", "step": None}
    if progress is None:
        return found
    found |= {
        "code": progress.code,
        "place": progress.place,
        "count": len(progress.steps),
        "withdrawn": progress.has_withdrawn,
    }
    found |= {"paused": progress.phase == "running" and progress.is_paused}
    found |= {"running": progress.phase == "running", "stop": progress.allowed.stop, "over": progress.is_over}
    step = progress.step.document()
    if step["kind"] == "consent":
        step |= {"text": protocol.consent.text.strip(), "statements": list(protocol.consent.statements)}
    elif step["kind"] == "thanks":
        step |= {"text": protocol.thanks.strip()}
    elif step["kind"] == "questionnaire":
        step |= {"answers": progress.answers.get(progress.step.ident, {})}
    elif progress.phase == "running":
        step |= {"attempt": progress.attempt, "speak": progress.allowed.speak, "lines": _spoken(protocol, progress)}
        step |= {"camera": progress.allowed.camera}
    return found | {"step": step}


def _spoken(protocol: Protocol, progress: SessionProgress) -> list[dict[str, Any]] | None:
    """What was said since the trial began; None where the study does not show it."""
    if not progress.allowed.dialogue:
        return None
    names = {**dict.fromkeys(ROLES, SOMEBODY), **protocol.names}
    return [
        {**line, "who": names.get(line["who"], line["who"])}
        for line in progress.lines
        if line["kind"] in SPOKEN and line["i"] > progress.started_count
    ]


def _about(protocol: Protocol, step: SessionStep) -> str:
    condition = step.condition.title if step.condition is not None and protocol.experimenter.sees_condition else ""
    return ", ".join(part for part in ("practice" if step.is_practice else "", condition) if part)


def experimenter_view(protocol: Protocol, progress: SessionProgress | None, finished: list[str]) -> dict[str, Any]:
    """Everything."""
    found: dict[str, Any] = {
        "title": protocol.title,
        "marks": [{"key": mark.key, "label": mark.label} for mark in protocol.mark],
        "sessions": finished,
        "code": "",
    }
    if progress is None:
        return found
    step = progress.step
    asked = step.questionnaire
    found |= {
        "code": progress.code,
        "number": progress.number,
        "place": progress.place,
        "kind": step.kind,
        "running": progress.phase == "running",
        "paused": progress.is_paused,
        "attempt": progress.attempt,
        "withdrawn": progress.has_withdrawn,
        "over": progress.is_over,
        "steps": [
            {
                "title": one.title,
                "kind": one.kind,
                "about": _about(protocol, one),
            }
            for one in progress.steps
        ],
        "lines": [
            line for line in progress.lines if line["kind"] != "condition" or protocol.experimenter.sees_condition
        ],
        "missing": len(asked.missing(progress.answers.get(step.ident, {}))) if asked is not None else 0,
        "answers": [
            {"step": place.title, "trial": place.trial, "item": item, "value": value}
            for place in progress.steps
            for item, value in progress.answers.get(place.ident, {}).items()
            if value != "" and protocol.experimenter.sees_answers
        ],
    }
    if step.task is not None and step.condition is not None:
        found |= {
            "trial": step.trial,
            "limit_s": step.task.limit_s,
            "task": {"title": step.task.title, "text": step.task.text, "notes": step.task.notes},
            "condition": {"title": step.condition.title, "notes": step.condition.notes}
            if protocol.experimenter.sees_condition
            else {"title": "hidden by the protocol", "notes": ""},
        }
    return found
