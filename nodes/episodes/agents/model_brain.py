"""`ModelBrain`: a language model plays a seat. One prompt, local repairs, one re-ask, then a failed turn."""

from __future__ import annotations

import random

from nodes.episodes.agents.agent_spec import AgentSpec
from nodes.episodes.agents.repair import UnreadableError, read_act, read_line
from nodes.episodes.agents.seat_caller import BudgetSpentError, NoStore, OutageError, SeatCaller, sha_of
from nodes.episodes.dialogue.observation import AgentChoice, AgentObservation
from nodes.episodes.dialogue.package_prompts import PackagePrompts
from nodes.episodes.dialogue.prompt import ACT_SCHEMA, BID_SCHEMA, prompt_text, small_prompt_text
from nodes.models.chat_format import ModelAnswer
from nodes.models.model import Patience
from nodes.models.servers import Servers
from runtime import Clock
from runtime.msgs.episode import Act

LIVE = Patience(60.0, 60.0, attempts=4)
"""In a launch file somebody may be waiting."""

SMALL_TALK_URGENCY = 0.55
"""A small model is not asked how much it wants to speak."""


class ModelBrain:
    """Asks its caller; `latency_s` is how long an answer takes in virtual time."""

    def __init__(self, caller: SeatCaller, *, latency_s: float = 0.0, prompts: PackagePrompts | None = None) -> None:
        """`prompts`: a published package's, in place of ours."""
        self._caller = caller
        self._prompts = prompts
        self._latency_s = latency_s
        self._is_small = caller.spec.prompt == "small"
        self.reasked = 0
        self.unreadable = 0

    async def choose(self, sight: AgentObservation, clock: Clock, chance: random.Random) -> AgentChoice:
        """Outages are told as such; they never look like silence."""
        make = small_prompt_text if self._is_small else prompt_text
        make = make if self._prompts is None else self._prompts.act_prompt
        prompt = make(sight.briefing, sight.turns, sight.observation)
        schema = BID_SCHEMA if sight.observation.asks == "bid" else ACT_SCHEMA
        schema = schema if self._prompts is None else self._prompts.act_schema
        schema = {} if self._is_small else schema
        sha = sha_of(prompt)
        try:
            answer = await clock.external(
                self._caller.ask(prompt, schema, sight.observation.asks, sha), self._latency_s
            )
            try:
                return self._choice(answer, sight, sha)
            except UnreadableError as problem:
                self.reasked += 1
                again = f"{prompt}\n\nYour last answer could not be read ({problem}). Answer again, as asked."
                again = prompt + "\n" if self._is_small else again  # it would answer the complaint
                answer = await clock.external(self._caller.ask(again, schema, "re-ask"), self._latency_s)
                return self._choice(answer, sight, sha)
        except OutageError as problem:
            kind = "budget" if isinstance(problem, BudgetSpentError) else "outage"
            return AgentChoice(failure=str(problem), failure_kind=kind, prompt_sha=sha)  # type: ignore[arg-type]
        except UnreadableError as problem:
            self.unreadable += 1
            note = f"unreadable answer: {problem}"[:300]
            return AgentChoice(act=Act(), urgency=0.0, fault="unreadable", note=note, prompt_sha=sha)

    def _choice(self, answer: ModelAnswer, sight: AgentObservation, sha: str) -> AgentChoice:
        if answer.ending == "declined":
            note = f"the model declines to answer: {answer.text}"[:300]
            return AgentChoice(act=Act(), urgency=0.0, fault="declined", note=note, prompt_sha=sha)
        if self._is_small:
            return AgentChoice(act=read_line(answer.text, sight.name), urgency=SMALL_TALK_URGENCY, prompt_sha=sha)
        try:
            act, urgency = read_act(answer.text)
        except UnreadableError as problem:
            cut = "the answer was cut off at the limit of its length: " if answer.ending == "cut" else ""
            raise UnreadableError(f"{cut}{problem}") from problem
        return AgentChoice(act=act, urgency=urgency, prompt_sha=sha)


def model_brain(spec: AgentSpec) -> ModelBrain:
    """The brain of a model with connections of its own, for a node of a launch file."""
    servers = Servers(patience=LIVE)
    spec.check_model(servers)
    return ModelBrain(SeatCaller(spec, servers, NoStore(), 0))
