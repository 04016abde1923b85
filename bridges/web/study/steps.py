"""The steps of one session, in order: consent, questionnaires, trials, thanks; made from a protocol and a number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from bridges.web.questionnaire.questionnaire import Questionnaire
from bridges.web.study.condition import Condition
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
    condition: Condition | None = None

    def document(self) -> dict[str, Any]:
        """For the participant's page: nothing of condition or notes."""
        found: dict[str, Any] = {"kind": self.kind, "ident": self.ident, "title": self.title}
        if self.questionnaire is not None:
            asked = self.questionnaire
            found |= {"intro": asked.intro, "source": asked.source, "items": [_item(one) for one in asked.item]}
        if self.task is not None:
            found |= {"text": self.task.text, "limit_s": self.task.limit_s, "trial": self.trial}
        return found


def _item(item: Any) -> dict[str, Any]:
    return {name: getattr(item, name) for name in item.__struct_fields__}


def steps_of(protocol: Protocol, number: int) -> tuple[SessionStep, ...]:
    """The session of a participant (numbered from 1)."""
    steps = [SessionStep("consent", "consent", "Before we begin")]
    when = protocol.questionnaires
    for name in when.before:
        steps += _asked(protocol, name, "before", 0)
    for place, (task, condition) in enumerate(protocol.trials_of(number), 1):
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
