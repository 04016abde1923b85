"""`Agent`: one seat's node. No timers, no threads: it answers when it is asked, and stops thinking when interrupted.

What it does is its brain's affair (`registry.py`, `model_brain.py`); it sees an `AgentObservation` and no more.
"""

from __future__ import annotations

from nodes.episodes.agents.agent_spec import provenance_of
from nodes.episodes.agents.registry import make_brain
from nodes.episodes.dialogue.observation import AgentChoice, AgentObservation, Brain
from runtime import RELIABLE, Node, Publisher, Subscription, UserError, on
from runtime.msgs.episode import Briefing, Guidance, Observation, Reply, Turn


class Agent(Node):
    """Plays a seat; remap `episode/seat` to the seat's own topic. A fence voids what it is about to say."""

    seat = "planner"

    observation = Subscription(Observation, "episode/seat")
    reply = Publisher(Reply, "episode/reply", qos=RELIABLE)

    def __init__(self, brain: str = "rules", temperature: float = 0.7) -> None:
        self.briefing: Briefing | None = None
        self.turns: list[Turn] = []
        self.answered = 0
        self._spec = brain
        self._temperature = temperature
        self._brain: Brain | None = None

    @classmethod
    def with_brain(cls, brain: Brain) -> Agent:
        """An agent whose brain was made by the caller."""
        agent = cls()
        agent._brain = brain
        return agent

    def problems(self) -> list[str]:
        """What is wrong with its temperature or its brain."""
        if not 0.0 <= self._temperature <= 2.0:
            return [f"temperature is {self._temperature:g}; expected 0 to 2"]
        try:
            make_brain(self._spec, temperature=self._temperature)
        except UserError as problem:
            said: str = problem.args[0]  # maybe a MissingVariable
            return [said]
        return []

    def on_start(self) -> None:
        if self._brain is None:
            self._brain = make_brain(self._spec, temperature=self._temperature)
            self.reply.provenance = provenance_of(self._spec)

    @on(observation)
    async def observe(self, observation: Observation) -> None:
        """Take in what happened, and answer where an answer is asked for."""
        if observation.briefing is not None:
            self.briefing = observation.briefing
        if self.briefing is None:
            self.log.error("%s was asked before it was briefed; is its seat remapped?", self.name)
            return
        newest = self.turns[-1].index if self.turns else -1  # what an interruption kept us from answering comes again
        self.turns.extend(turn for turn in observation.heard if turn.index > newest)
        if observation.asks == "nothing" or self._brain is None:
            return
        sight = AgentObservation(self.briefing, tuple(self.turns), observation)
        guidance = observation.guidance
        if guidance is not None and guidance.act is not None and observation.asks == "act":
            choice = AgentChoice(act=guidance.act)
        else:
            choice = await self._brain.choose(sight, self.clock, self.random)
        self.answered += 1
        self.reply.publish(
            Reply(
                episode=observation.episode,
                seat=self.briefing.seat,
                ask=observation.ask,
                act=choice.act,
                urgency=choice.urgency,
                failure=choice.failure,
                failure_kind=choice.failure_kind,
                fault=choice.fault,
                because=choice.because,
                note=choice.note or _guided(guidance),
                held=tuple(turn.index for turn in sight.turns),
                prompt_sha=choice.prompt_sha,
            )
        )


def _guided(guidance: Guidance | None) -> str:
    """For readers of the log: by what strategy, or why by none."""
    if guidance is None:
        return ""
    if guidance.failure:
        return f"unguided: {guidance.failure}"
    return "" if guidance.strategy == "native" else f"guided: {guidance.strategy}"
