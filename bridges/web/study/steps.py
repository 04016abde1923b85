"""The steps of one session, in order: consent, questionnaires, trials, thanks; made from a protocol and a number."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bridges.web.questionnaire.questionnaire import Questionnaire, Value
from bridges.web.study.condition import StudyCondition
from bridges.web.study.protocol import Protocol, StudyTask

Kind = Literal["consent", "questionnaire", "trial", "thanks"]


@dataclass(frozen=True, slots=True)
class SessionStep:
    """One page of a session; `ident` names it in all data."""

    kind: Kind
    ident: str
    title: str
    questionnaire: Questionnaire | None = None
    agent: str = ""  # whom the questionnaire is about
    trial: int = 0  # its number from 1; 0 outside trials
    task: StudyTask | None = None
    condition: StudyCondition | None = None
    is_practice: bool = False

    def is_due(self, answers: Mapping[str, Value]) -> bool:
        """Whether the answers given so far, by "questionnaire/item", ask for this step."""
        return all(answers.get(name, "") == value for name, value in self.asks_for.items())

    @property
    def asks_for(self) -> dict[str, str | int]:
        """The answers, by "questionnaire/item", without which the step is left out."""
        task = self.task.when if self.task is not None else {}
        return {**task, **(self.questionnaire.when if self.questionnaire is not None else {})}

    def document(self) -> dict[str, Any]:
        """For the participant's page: nothing of condition or notes."""
        found: dict[str, Any] = {"kind": self.kind, "ident": self.ident, "title": self.title}
        if self.questionnaire is not None:
            asked = self.questionnaire
            found |= {"intro": asked.intro, "source": asked.source, "items": [_item(one) for one in asked.item]}
        if self.task is not None:
            found |= {"text": self.task.text, "limit_s": self.task.limit_s, "trial": self.trial}
            found |= {"media": [media_url(name) for name in self.task.media], "practice": self.is_practice}
        return found


def _item(item: Any) -> dict[str, Any]:
    found = {name: getattr(item, name) for name in item.__struct_fields__}
    return found | {"media": media_url(item.media) if item.media else ""}


def media_url(name: str) -> str:
    """Where the participant's page finds a picture or video of the protocol."""
    return f"/static/{media_name(name)}"


def media_name(name: str) -> str:
    """Under what the server has it."""
    return f"media/{hashlib.sha256(name.encode()).hexdigest()[:16]}{Path(name).suffix.lower()}"


def steps_of(protocol: Protocol, number: int) -> tuple[SessionStep, ...]:
    """The session of a participant (numbered from 1)."""
    steps = [SessionStep("consent", "consent", "Before we begin")]
    when = protocol.questionnaires
    for name in when.before:
        steps += _asked(protocol, name, "before", 0)
    practice = protocol.practice_of(number)
    for place, (task, condition) in enumerate(practice, 1):
        about = {"trial": place, "task": task, "condition": condition, "is_practice": True}
        steps.append(SessionStep("trial", f"practice-{place}", task.title, **about))  # type: ignore[arg-type]  # by name
    for place, (task, condition) in enumerate(protocol.trials_of(number), 1 + len(practice)):
        steps.append(SessionStep("trial", f"trial-{place}", task.title, trial=place, task=task, condition=condition))
        for name in when.after_trial:
            steps += _asked(protocol, name, f"trial-{place}", place)
    for name in when.end:
        steps += _asked(protocol, name, "end", 0)
    return (*steps, SessionStep("thanks", "thanks", "The end"))


def _asked(protocol: Protocol, name: str, place: str, trial: int) -> list[SessionStep]:
    one = protocol.questionnaire_of(name)
    if not one.per_agent:
        return [SessionStep("questionnaire", f"{place}/{name}", one.title, questionnaire=one, trial=trial)]
    return [
        SessionStep(
            "questionnaire",
            f"{place}/{name}/{agent}",
            f"{one.title} {agent}?",
            questionnaire=one,
            agent=agent,
            trial=trial,
        )
        for agent in protocol.agents
    ]
