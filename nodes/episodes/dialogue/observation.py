"""What a seat knows when it is asked (`AgentObservation`), what it answers (`AgentChoice`), and who decides
(`Brain`)."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Protocol

from nodes.msgs.episode import Act, Briefing, FailureKind, Fault, Observation, Turn
from runtime import Clock


@dataclass(frozen=True, slots=True)
class AgentObservation:
    """All that one seat knows when it is asked: its briefing, the turns it perceived, and the question."""

    briefing: Briefing
    turns: tuple[Turn, ...]
    observation: Observation

    @property
    def name(self) -> str:
        """Who this seat is."""
        return self.briefing.name

    @property
    def others(self) -> tuple[str, ...]:
        """The other participants."""
        return tuple(name for name in self.briefing.participants if name != self.briefing.name)


@dataclass(frozen=True, slots=True)
class AgentChoice:
    """What a brain answers, by the names of a `Reply`; `failure` where it could not be asked at all."""

    act: Act = field(default_factory=Act)
    urgency: float = 0.5
    note: str = ""
    fault: Fault = ""
    because: int = -1  # index of the turn that it follows from, where a rule knows
    failure: str = ""
    failure_kind: FailureKind = ""
    prompt_sha: str = ""


class Brain(Protocol):
    """Decides what a seat does."""

    async def choose(self, sight: AgentObservation, clock: Clock, chance: random.Random) -> AgentChoice:
        """One act, or a bid for the floor."""
