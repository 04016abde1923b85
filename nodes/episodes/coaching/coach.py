"""`Coach`: hears the turns on the bus, rates the talk, and tells the agent whose turn it is how to go on.

It is one more node: the moderator asks it before it asks a seat, and goes on without it where it does not answer. It
thinks with a model (`ModelMind`) or, without a key, with the facts that the plan holds (`RulesMind`). All that is asked
is labelled in the log of calls: "step rating", "utility", "guess", "resources", "difference", "proposal", "update",
"style". Of these only a rating, of which numbers come and no words, sees what both sides know.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, Self, TypeVar

from nodes.episodes.agents.acts import clean
from nodes.episodes.agents.agent_spec import AgentSpec
from nodes.episodes.agents.deal_reading import agreed_number, limits, offers
from nodes.episodes.agents.offline.phrasing import is_farewell
from nodes.episodes.agents.seat_caller import NoStore, OutageError, SeatCaller
from nodes.episodes.coaching.regeneration import (
    FIRST_RATED,
    SAMPLES,
    StepRating,
    choose,
    mean_rating,
    read_step,
    utility,
)
from nodes.episodes.dialogue.messages import GuidanceRequest
from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.dialogue.planning import one_of, plan_of_task
from nodes.episodes.dialogue.prompt import history_text
from nodes.episodes.evaluation.by_rules import judge_by_rules
from nodes.episodes.results.store import COACH, TurnScore
from nodes.models.json_reading import UnreadableError, read_object
from nodes.models.servers import Servers
from nodes.msgs.episode import Act, Guidance, Turn
from runtime import RELIABLE, Node, Publisher, Subscription, on

Stage = Literal["resources", "difference", "proposal", "update"]
STAGES: tuple[Stage, ...] = ("resources", "difference", "proposal", "update")
ProposalKind = Literal["", "present_proposal", "revise_proposal", "confirm_proposal"]

_Read = TypeVar("_Read")


@dataclass
class SeatWork:
    """What a seat has worked out in its negotiation so far."""

    own: list[dict[str, Any]] = field(default_factory=list)  # matters, each with weight, ratio, utility
    other: list[dict[str, Any]] = field(default_factory=list)
    steps: int = 0

    @property
    def stage(self) -> Stage:
        """What comes next: resources, difference, a first proposal, then updates until one is confirmed."""
        return STAGES[min(self.steps, len(STAGES) - 1)]

    @property
    def own_utility(self) -> float:
        """U of the own matters."""
        return utility([(one["weight"], one["ratio"], one["utility"]) for one in self.own])


class CoachMind(Protocol):
    """Rates steps and works out what to say."""

    async def rate(self, turns: Sequence[Turn]) -> StepRating:
        """The talk so far. Raises UnreadableError, OutageError."""

    async def negotiate(self, seat: int, work: SeatWork, heard: Sequence[Turn]) -> tuple[ProposalKind, str]:
        """The next step's words, and what kind of proposal they are, from what the seat itself knows and has heard.

        Raises UnreadableError, OutageError.
        """


class RulesMind:
    """No model: goals as the offline judge sees them, proposals halfway between the last offers."""

    def __init__(self, plan: EpisodePlan) -> None:
        self._plan = plan

    async def rate(self, turns: Sequence[Turn]) -> StepRating:
        """The current goals are the judge's; the expected ones grow as the offers come together."""
        scores = judge_by_rules(self._plan, turns).scores
        goals = [one.score for one in scores if one.dimension == "GOAL" and one.score is not None]
        now = sum(goals) / len(goals) if goals else 5.0
        deal, last = self._plan.deal, self._last_offers(turns)
        if deal is not None and deal.unit and len(last) == 2 and agreed_number(turns, deal, self._plan.bound) is None:
            first = [numbers[0] for numbers in self._offers(turns).values()]
            gap, began = abs(last[0] - last[1]), abs(first[0] - first[1]) or 1.0
            return StepRating(now, max(now, 8.0 * max(0.0, 1.0 - gap / began)), not _is_over(turns), 1)
        return StepRating(now, now, not _is_over(turns), 1)

    async def negotiate(self, seat: int, work: SeatWork, heard: Sequence[Turn]) -> tuple[ProposalKind, str]:
        """Words from the seat's facts."""
        deal, facts = self._plan.deal, self._plan.truths[seat].facts
        if deal is None or not deal.unit or not (facts.wants or facts.target is not None):
            raise UnreadableError("the offline coach negotiates for a number, and this is no such deal")
        target, reserve = limits(facts, deal)
        weight = 1.0 / (1.0 + abs(target - reserve) / (abs(target) or 1.0))
        if work.stage == "resources":
            work.own = [{"text": deal.about, "weight": weight, "ratio": 1.0, "utility": 10.0}]
            return "", f"What matters to me is {deal.about}, and that both of us can live with the result."
        if work.stage == "difference":
            work.other = [{"text": deal.about, "weight": 1.0 - weight, "ratio": 1.0, "utility": 10.0}]
            return "", "I think you care about the number as much as I do. Let us look for the middle of it."
        by_seat = self._offers(heard)
        other = [numbers[-1] for name, numbers in by_seat.items() if name != self._plan.names[seat]]
        own = by_seat.get(self._plan.names[seat], [target])[-1]
        is_low = facts.wants != "high"
        if other and work.stage == "update" and (other[-1] <= reserve if is_low else other[-1] >= reserve):
            return "confirm_proposal", f"{other[-1]:g} {deal.unit} it is. Agreed, that is a deal."
        middle = round((own + (other[-1] if other else reserve)) / 2 / deal.step) * deal.step
        middle = min(middle, reserve) if is_low else max(middle, reserve)
        kind: ProposalKind = "revise_proposal" if work.stage == "update" else "present_proposal"
        return kind, f"How about {middle:g} {deal.unit}, so that each of us comes half of the way?"

    def _offers(self, turns: Sequence[Turn]) -> dict[str, list[float]]:
        found: dict[str, list[float]] = {}
        if self._plan.deal is not None:
            for name, number in offers(turns, self._plan.deal):
                found.setdefault(name, []).append(number)
        return found

    def _last_offers(self, turns: Sequence[Turn]) -> list[float]:
        return [numbers[-1] for numbers in self._offers(turns).values()]


def _is_over(turns: Sequence[Turn]) -> bool:
    return len(turns) > 1 and all(is_farewell(turn) for turn in turns[-2:])


_SCORED = '{"analysis": "", "score": 0}'
_RATE = """{names} are having a conversation.

{task}

The conversation so far:
{talk}

Write in this order. {current}. {predicted}. step{last}: 0 if the last few rounds have nothing more to do with the \
goals, or a topic that does not help them has been repeated for more than 4 turns, or all have said goodbye or thanks \
for more than two turns; else 1.

Answer with one JSON object and nothing else: {{{parts}}}"""
_CURRENT = "how far {name} has reached the own goal by now, with reasons, and a whole number from 0 to 10"
_PREDICTED = (
    "how far {name} will have reached it after several more turns, with what speaks for it and the conflicts that "
    "remain; it goes on from step{before}; a whole number from 0 to 10"
)
_MATTERS = '{{"matters": [{{"text": "...", "weight": 0.5, "ratio": 1.0, "utility": 8}}]}}'
_SPEAK = 'Answer with one JSON object: {{"thought": "...", "speak": "..."}}'
_KNOWN = "What matters to {who}: {own}. To the other, as far as {who} can tell: {other}. "
_ASKS: dict[str, str] = {
    "utility": "List all that matters to {who} here, each with its weight from 0 to 1, the ratio of it that {who} "
    f"would get by now, from 0 to 1, and its utility from 0 to 10. Answer with one JSON object: {_MATTERS}",
    "guess": "Guess what matters to {other} from what was said and done, each with its weight from 0 to 1, the "
    "ratio of it that {other} would get by now, from 0 to 1, and its utility from 0 to 10. Answer with one JSON "
    f"object: {_MATTERS}",
    "resources": "What matters to {who}: {own}. Draft what {who} says to make that clear, without giving away secrets. "
    + _SPEAK,
    "difference": f"{_KNOWN}Look for what is worth much to one and little to the other, then draft what {{who}} says "
    f"about it. {_SPEAK}",
    "proposal": f"{_KNOWN}Draft {{who}}'s first proposal, a win for both. Answer with one JSON object: "
    '{{"thought": "...", "proposal_type": "present_proposal", "speak": "..."}}',
    "update": f"{_KNOWN}Look at the other's last proposal. Present another one if it cannot win for both, revise it "
    "where details are wrong, confirm it if it is good. Answer with one JSON object: "
    '{{"thought": "...", "proposal_type": "present_proposal | revise_proposal | confirm_proposal", "speak": "..."}}',
    "style": 'Say the draft as {who} would, in natural words that answer "{last}", with the same content. '
    f"Draft: {{draft}} {_SPEAK}",
}
_OPEN: dict[str, object] = {"type": "object"}


class ModelMind:
    """A model coaches; every answer is asked for twice at most."""

    def __init__(self, plan: EpisodePlan, caller: SeatCaller) -> None:
        self._plan = plan
        self._caller = caller

    async def rate(self, turns: Sequence[Turn]) -> StepRating:
        """The mean of five samples; those that cannot be read do not count, unless all cannot."""
        names, count = self._plan.names, len(self._plan.names)
        current = [f"step{n}: " + _CURRENT.format(name=name) for n, name in enumerate(names, start=1)]
        predicted = [
            f"step{count + n}: " + _PREDICTED.format(name=name, before=n) for n, name in enumerate(names, start=1)
        ]
        prompt = _RATE.format(
            names=" and ".join(names),
            task=self._both(),
            talk=history_text(turns),
            current=". ".join(current),
            predicted=". ".join(predicted),
            last=2 * count + 1,
            parts=", ".join(f'"step{number}": {_SCORED}' for number in range(1, 2 * count + 2)),
        )
        prompts = [prompt + "\n" * number for number in range(SAMPLES)]  # the log tells the samples apart
        found = await self._rated(prompts, "step rating")
        bad = [number for number, one in enumerate(found) if isinstance(one, UnreadableError)]
        again = await self._rated([_again(prompts[number], found[number]) for number in bad], "step rating, again")
        for number, one in zip(bad, again, strict=True):
            found[number] = one
        samples = [one for one in found if not isinstance(one, UnreadableError)]
        if not samples:
            raise UnreadableError(f"none of {SAMPLES} step ratings can be read: {found[-1]}")
        return mean_rating(samples)

    async def _rated(self, prompts: Sequence[str], what: str) -> list[tuple[float, float, bool] | UnreadableError]:
        """Asked side by side, numbered in order, so that a run that was killed finds each answer again."""
        found: list[tuple[float, float, bool] | UnreadableError] = []
        for answer in await asyncio.gather(*(self._caller.ask(prompt, _OPEN, what) for prompt in prompts)):
            try:
                found.append(read_step(read_object(answer.text), len(self._plan.names)))
            except UnreadableError as problem:
                found.append(problem)
        return found

    async def negotiate(self, seat: int, work: SeatWork, heard: Sequence[Turn]) -> tuple[ProposalKind, str]:
        """One step of the workflow: what matters, a guess at the other's, a draft of the words, and their style."""
        stage = work.stage
        if stage in ("resources", "update"):
            work.own = await self._worked("utility", seat, work, heard, _matters)
        if stage in ("difference", "update"):
            work.other = await self._worked("guess", seat, work, heard, _matters)
        kind, draft = await self._worked(stage, seat, work, heard, lambda found: _proposal(found, stage))
        last = heard[-1].argument if heard else ""
        _, words = await self._worked("style", seat, work, heard, lambda f: _proposal(f, "style"), last, draft)
        return kind, words

    async def _worked(
        self,
        what: str,
        seat: int,
        work: SeatWork,
        heard: Sequence[Turn],
        read: Callable[[dict[str, object]], _Read],
        last: str = "",
        draft: str = "",
    ) -> _Read:
        others = [name for name in self._plan.names if name != self._plan.names[seat]]
        text = _ASKS[what].format(
            who=self._plan.names[seat],
            other=json.dumps(work.other) if what != "guess" else " and ".join(others),
            own=json.dumps(work.own),
            last=last,
            draft=draft,
        )
        briefing = self._plan.briefings[seat]
        task = f"{briefing.background}\n\n{briefing.name}'s private goal: {briefing.goal}"
        prompt = f"{task}\n\nThe conversation so far:\n{history_text(heard)}\n\n{text}"
        return await self._asked(what, prompt, read)

    async def _asked(self, what: str, prompt: str, read: Callable[[dict[str, object]], _Read]) -> _Read:
        answer = await self._caller.ask(prompt, _OPEN, what)
        try:
            return read(read_object(answer.text))
        except UnreadableError as problem:
            answer = await self._caller.ask(_again(prompt, problem), _OPEN, f"{what}, again")
            return read(read_object(answer.text))

    def _both(self) -> str:
        """What the one who rates knows, as a judge does: numbers come of it and no words."""
        goals = [f"{truth.name}'s goal: {truth.goal}\n{truth.profile}" for truth in self._plan.truths]
        return "\n".join((self._plan.context, *goals))


def _again(prompt: str, problem: object) -> str:
    return f"{prompt}\n\nYour last answer cannot be used ({problem}). Answer again, as asked."


def _matters(found: dict[str, object]) -> list[dict[str, Any]]:
    rows = found.get("matters")
    if not isinstance(rows, list) or not rows:
        raise UnreadableError("matters is no list")
    matters = []
    for row in rows:
        try:
            one: dict[str, Any] = {"text": clean(str(row["text"]))}
            one |= {key: float(row[key]) for key in ("weight", "ratio", "utility")}
        except (KeyError, TypeError, ValueError) as problem:
            raise UnreadableError(f"a matter lacks text, weight, ratio or utility: {problem!r}") from None
        for key, high in (("weight", 1.0), ("ratio", 1.0), ("utility", 10.0)):
            if not 0.0 <= one[key] <= high:
                raise UnreadableError(f"matter {one['text'][:40]!r}: {key} is {one[key]:g}; expected 0 to {high:g}")
        matters.append(one)
    return matters


def _proposal(found: dict[str, object], what: str) -> tuple[ProposalKind, str]:
    words, kind = found.get("speak"), found.get("proposal_type", "")
    if not isinstance(words, str) or not words.strip():
        raise UnreadableError("speak is no text")
    if what != "update":  # a first proposal confirms nothing, whatever it is called
        return ("present_proposal" if what == "proposal" else ""), clean(words)
    if kind not in ("present_proposal", "revise_proposal", "confirm_proposal"):
        raise UnreadableError(f"proposal_type is {kind!r}; expected present_, revise_ or confirm_proposal")
    return kind, clean(words)


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
    return one_of("variant", text, VARIANTS)
