"""`ModelBrain`: a language model plays a seat. One prompt, local repairs, one re-ask, then a counted failure."""

from __future__ import annotations

import random

from nodes.episodes.agents.caller import ModelSpec, NoStore, OutageError, SeatCaller, Servers, sha_of
from nodes.episodes.agents.repair import UnreadableError, read_act
from nodes.episodes.dialogue.observation import AgentChoice, AgentObservation
from nodes.episodes.dialogue.prompt import ACT_SCHEMA, BID_SCHEMA, prompt_text
from runtime import Clock
from runtime.msgs.episode import Act


class ModelBrain:
    """Asks its caller; `latency_s` is how long an answer takes in virtual time."""

    def __init__(self, caller: SeatCaller, *, latency_s: float = 0.0) -> None:
        self._caller = caller
        self._latency_s = latency_s
        self.reasked = 0
        self.unreadable = 0

    async def choose(self, sight: AgentObservation, clock: Clock, chance: random.Random) -> AgentChoice:
        """Outages are told as such; they never look like silence."""
        prompt = prompt_text(sight.briefing, sight.turns, sight.observation)
        schema = BID_SCHEMA if sight.observation.asks == "bid" else ACT_SCHEMA
        sha = sha_of(prompt)
        try:
            text = await clock.external(self._caller.ask(prompt, schema, sight.observation.asks, sha), self._latency_s)
            try:
                act, urgency = read_act(text)
            except UnreadableError as problem:
                self.reasked += 1
                again = f"{prompt}\n\nYour last answer could not be read ({problem}). Answer again, as asked."
                text = await clock.external(self._caller.ask(again, schema, "re-ask"), self._latency_s)
                act, urgency = read_act(text)
        except OutageError as problem:
            return AgentChoice(failure=str(problem), prompt_sha=sha)
        except UnreadableError as problem:
            self.unreadable += 1
            return AgentChoice(act=Act(), urgency=0.0, note=f"unreadable answer: {problem}"[:300], prompt_sha=sha)
        return AgentChoice(act=act, urgency=urgency, prompt_sha=sha)


def model_brain(spec: str, *, temperature: float) -> ModelBrain:
    """The brain of "MODEL[@URL]" with connections of its own, for a node of a launch file."""
    return ModelBrain(SeatCaller(ModelSpec.parse(spec, temperature=temperature), Servers(), NoStore(), 0))
