"""`Coach`: hears the turns on the bus, rates the talk, and tells the agent whose turn it is how to go on.

It is one more node: the moderator asks it before it asks a seat, and goes on without it where it does not answer.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Literal, Self

from nodes.episodes.agents.agent_spec import AgentSpec
from nodes.episodes.agents.seat_caller import NoStore, OutageError, SeatCaller
from nodes.episodes.coaching.minds import CoachMind, ModelMind, RulesMind, SeatWork
from nodes.episodes.coaching.step_rating import FIRST_RATED, StepRating, choose
from nodes.episodes.dialogue.messages import GuidanceRequest
from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.dialogue.planning import plan_of_task
from nodes.episodes.results.evaluations import TurnScore
from nodes.episodes.results.store import COACH
from nodes.models.json_reading import UnreadableError
from nodes.models.servers import Servers
from runtime import RELIABLE, Node, Publisher, Subscription, UserError, on
from runtime.msgs.episode import Act, Guidance, Turn

Variant = Literal["dsi", "raw", "nsi", "half-nsi"]
VARIANTS: tuple[Variant, ...] = ("dsi", "raw", "nsi", "half-nsi")
LONG_RATING = 4000
SIMPLE = (
    "In your response, pay additional attention to the potential conflicts between you and the other party and work "
    "towards improving them, so that both sides can achieve their goals. Imply the conflict rather than naming it, "
    "propose ways of improvement in well-chosen words, and connect smoothly with what was said before."
)
"""The paper's one added sentence on perspective-taking."""


class Coaching:
    """One episode's coaching, without any bus: turns in, guidance out."""

    def __init__(self, plan: EpisodePlan, mind: CoachMind, variant: Variant) -> None:
        self.plan = plan
        self.mind = mind
        self.variant = variant
        self.scores: list[TurnScore] = []
        self.negotiated = False
        self._works: dict[int, SeatWork] = {}
        self._confirmed: set[int] = set()
        self._native_left = 0
        self._half_seat = random.Random(f"half {plan.task}").randrange(
            len(plan.names)
        )  # another for another task, as in the paper
        self._failure = ""

    async def guide(self, seat: int, ask: int, turns: Sequence[Turn]) -> Guidance:
        """How that seat is to go on. What cannot be had is told as `failure`; the talk goes on natively."""
        guidance = Guidance(episode=self.plan.id, seat=seat, ask=ask)
        if self.variant == "raw" or self._failure or len(turns) < FIRST_RATED:
            return _with(guidance, failure=self._failure)
        try:
            if self._works or self.variant in ("nsi", "half-nsi"):
                return await self._negotiated(guidance, turns)
            rating = await self.mind.rate(turns)
            self.note(turns[-1].index, rating)
            if not rating.goes_on:
                return _with(guidance, strategy="leave", act=Act(kind="leave"))
            strategy = choose(rating.goal_c, rating.goal_p)
            if strategy == "negotiation":
                return await self._negotiated(guidance, turns)
            return _with(guidance, strategy=strategy, text=SIMPLE if strategy == "simple" else "")
        except OutageError as problem:
            self._failure = f"the coach cannot be asked: {problem}"
        except UnreadableError as problem:
            self._works.clear()  # the workflow is over; the next act is rated anew
            return _with(guidance, failure=f"the coach's answer cannot be used: {problem}"[:300])
        return _with(guidance, failure=self._failure)

    async def _negotiated(self, guidance: Guidance, turns: Sequence[Turn]) -> Guidance:
        seat = guidance.seat
        if self.variant == "half-nsi" and seat != self._half_seat:
            return guidance
        if self._native_left > 0:  # both have confirmed: one native turn, then both leave
            self._native_left -= 1
            return guidance
        if len(self._confirmed) >= (1 if self.variant == "half-nsi" else len(self.plan.names)):
            return _with(guidance, strategy="leave", act=Act(kind="leave"))
        work = self._works.setdefault(seat, SeatWork())
        self.negotiated = True
        heard = [turn for turn in turns if turn.is_for(self.plan.names[seat])]
        kind, words = await self.mind.negotiate(seat, work, heard)
        work.steps += 1
        self.scores.append(TurnScore(len(turns), "coach", "utility", work.own_utility))
        if kind == "confirm_proposal" or (self._confirmed - {seat}):
            self._confirmed.add(seat)
            if len(self._confirmed) == len(self.plan.names):
                self._native_left = 1
        return _with(guidance, strategy="negotiation", act=Act(kind="speak", argument=words))

    async def finish(self, turns: Sequence[Turn]) -> StepRating | None:
        """The rating of the whole dialogue, by which it is kept; None where it cannot be had."""
        try:
            rating = await self.mind.rate(turns)
        except (OutageError, UnreadableError):
            return None
        self.note(len(turns) - 1, rating, "final_")
        is_negotiation = self.negotiated or self.variant in ("nsi", "half-nsi")  # whose bound is theirs in any case
        used = TurnScore(len(turns) - 1, "coach", "final_negotiated", float(is_negotiation))
        self.scores.append(used)
        return rating

    def note(self, turn: int, rating: StepRating, lead: str = "") -> None:
        """Keep a rating as scores of that turn."""
        for name in ("goal_c", "goal_p", "goes_on", "samples"):
            self.scores.append(TurnScore(turn, "coach", lead + name, float(getattr(rating, name))))


def _with(guidance: Guidance, **changes: object) -> Guidance:
    return Guidance(**{**{name: getattr(guidance, name) for name in ("episode", "seat", "ask")}, **changes})


class Coach(Node):
    """`coach` is "rules" or MODEL[@URL]; in a launch file the task is named as for the moderator."""

    turn = Subscription(Turn, "episode/turn")
    request = Subscription(GuidanceRequest, "episode/guidance_request")
    guidance = Publisher(Guidance, "episode/guidance", qos=RELIABLE)

    def __init__(
        self, task: str, coach: str = "rules", variant: str = "dsi", order: str = "round-robin", max_turns: int = 20
    ) -> None:
        self._turns: dict[int, Turn] = {}
        self.latency_s = 0.0
        self.coaching: Coaching | None = None
        if task:
            plan = plan_of_task(task, order=order, mode="AGENTS", max_turns=max_turns)
            self.coaching = Coaching(plan, mind_of(plan, coach), variant_of(variant))

    @classmethod
    def of(cls, coaching: Coaching, latency_s: float = 0.0) -> Self:
        """A coach whose mind was made by the caller."""
        coach = cls("")
        coach.coaching, coach.latency_s = coaching, latency_s
        return coach

    @on(turn)
    def hear(self, turn: Turn) -> None:
        self._turns[turn.index] = turn  # a moderator that comes back tells all of them again

    @on(request)
    async def advise(self, request: GuidanceRequest) -> None:
        """Events of two topics come in no order of their own: the request says how many turns there were."""
        assert self.coaching is not None
        while len(self._turns) < request.turns:
            await self.clock.sleep(0.02)
        turns = [self._turns[index] for index in sorted(self._turns)][: request.turns]
        answer = self.coaching.guide(request.seat, request.ask, turns)
        self.guidance.publish(await self.clock.external(answer, self.latency_s))


def mind_of(plan: EpisodePlan, coach: str) -> CoachMind:
    """The mind of that name with connections of its own, for a launch file. Raises UserError."""
    if coach == "rules":
        return RulesMind(plan)
    spec = AgentSpec.parse(coach, temperature=1.0)
    servers = Servers()
    spec.check_model(servers)
    return ModelMind(plan, SeatCaller(spec, servers, NoStore(), COACH, tokens=LONG_RATING))


def variant_of(text: str) -> Variant:
    """The variant of that name. Raises UserError with the known ones."""
    for variant in VARIANTS:
        if variant == text:
            return variant
    raise UserError(f"variant is {text!r}; known: {', '.join(VARIANTS)}")
