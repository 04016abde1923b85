"""`Agent`: one seat's node. No timers, no threads: it answers when it is asked, and stops thinking when interrupted.

What it does is its brain's affair (`brains.py`); a brain sees a `Sight` and nothing else.
"""

from __future__ import annotations

import asyncio

from nodes.episodes.minds.brains import make_brain
from nodes.episodes.talk.messages import Interruption
from nodes.episodes.talk.sight import Brain, Choice, Sight
from runtime import Node, Publisher, QoS, Subscription, on
from runtime.episode_msgs import Briefing, Observation, Reply, Turn


class Agent(Node):
    """Plays a seat; remap `episode/seat` to the seat's own topic."""

    observation = Subscription(Observation, "episode/seat")
    interruption = Subscription(Interruption, "episode/interruption", qos=QoS(required=False))
    reply = Publisher(Reply, "episode/reply")

    def __init__(self, brain: str = "rules", temperature: float = 0.7) -> None:
        self.briefing: Briefing | None = None
        self.turns: list[Turn] = []
        self.answered = 0
        self.interrupted = 0
        self._spec = brain
        self._temperature = temperature
        self._brain: Brain | None = None
        self._thinking: asyncio.Task[Choice] | None = None

    @classmethod
    def with_brain(cls, brain: Brain) -> Agent:
        """An agent whose brain was made by the caller."""
        agent = cls()
        agent._brain = brain
        return agent

    def on_start(self) -> None:
        if self._brain is None:
            self._brain = make_brain(self._spec, temperature=self._temperature)

    @on(observation)
    async def observe(self, observation: Observation) -> None:
        """Take in what happened, and answer where an answer is asked for."""
        if observation.briefing is not None:
            self.briefing = observation.briefing
            self.turns = []
        if self.briefing is None:
            self.log.error("%s was asked before it was briefed; is its seat remapped?", self.name)
            return
        self.turns.extend(observation.heard)
        if observation.asks == "nothing" or self._brain is None:
            return
        sight = Sight(self.briefing, tuple(self.turns), observation)
        thinking = self._brain.choose(sight, self.clock, self.random)
        if observation.asks == "bid":  # only asynchronous talk can be interrupted
            self._thinking = asyncio.ensure_future(thinking)
            try:
                choice = await self._thinking
            except asyncio.CancelledError:
                if self._thinking is not None and self._thinking.cancelled():
                    self.interrupted += 1
                    return
                raise
            finally:
                self._thinking = None
        else:
            choice = await thinking
        self.answered += 1
        self.reply.publish(
            Reply(
                episode=observation.episode,
                seat=self.briefing.seat,
                ask=observation.ask,
                act=choice.act,
                urgency=choice.urgency,
                failure=choice.failure,
                note=choice.note,
                held=tuple(turn.index for turn in sight.turns),
                prompt_sha=choice.prompt_sha,
            )
        )

    @on(interruption)
    def stop_thinking(self, interruption: Interruption) -> None:
        """Somebody took the floor: what this agent was about to say no longer fits."""
        if self._thinking is not None and self.briefing is not None and self.briefing.name != interruption.by:
            self._thinking.cancel()
