"""`Coach`: hears the turns on the bus, rates the talk, and tells the agent whose turn it is how to go on.

It is one more node: the moderator asks it before it asks a seat, and goes on without it where it does not answer. It
thinks with a model (`ModelMind`) or, without a key, with the facts that the plan holds (`RulesMind`). All that is asked
is labelled in the log of calls: "step rating", "utility", "guess", "resources", "difference", "proposal", "update",
"style". Of these only a rating, of which numbers come and no words, sees what both sides know. From it follows which
strategy comes next, and which dialogues are kept or played again (SOTOPIA-Omega, equations 1, 3 and 4, appendix C.2).
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, Self, TypeVar, get_args

import msgspec

from nodes.episodes.agents.acts import clean
from nodes.episodes.agents.agent_spec import AgentSpec
from nodes.episodes.agents.deal_reading import agreed_number, limits, offers
from nodes.episodes.agents.offline_agent import is_farewell
from nodes.episodes.agents.seat_caller import AnswerStore, Ask, NoStore, OutageError, SeatCaller, asked_again
from nodes.episodes.dialogue.messages import GuidanceRequest
from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.dialogue.planning import one_of, plan_of_task
from nodes.episodes.dialogue.prompt import history_text
from nodes.episodes.evaluation.by_rules import judge_by_rules
from nodes.episodes.results.store import COACH, EpisodeRow, Store, TurnScore
from nodes.models.json_reading import UnreadableError, read_object
from nodes.models.servers import Servers
from nodes.msgs.episode import Act, Guidance, Strategy, Turn
from runtime import RELIABLE, Node, Publisher, Subscription, on

FIRST_RATED = 6
"""The sixth action is the first that is rated, and the seventh the first that is guided."""

SAMPLES = 5
LOW, HIGH = 7.5, 8.5
KEEP_WITH_NEGOTIATION, KEEP_WITHOUT = 8.0, 8.5


class StepRating(msgspec.Struct, frozen=True):
    """What the coach thinks of the talk so far: means over both seats and all samples."""

    goal_c: float  # how far the goals are reached, 0 to 10
    goal_p: float  # how far they will be
    goes_on: bool  # False: it drifts, repeats itself, or is over
    samples: int


def read_step(found: dict[str, object], seats: int = 2) -> tuple[float, float, bool]:
    """(current, predicted, goes on): of one answer in two parts a seat and one more, means over the seats.

    Raises UnreadableError naming part and range.
    """
    scores, last = [], 2 * seats + 1
    for number in range(1, last + 1):
        part = found.get(f"step{number}")
        value = part.get("score") if isinstance(part, dict) else part
        high = 1 if number == last else 10
        try:
            score = float(value)  # type: ignore[arg-type]  # texts are usual: "7"
        except (TypeError, ValueError):
            raise UnreadableError(f"step{number}: score is {value!r}; expected a whole number") from None
        if not 0 <= score <= high or score != int(score):
            raise UnreadableError(f"step{number}: score is {score:g}; expected a whole number, 0 to {high}")
        scores.append(score)
    return sum(scores[:seats]) / seats, sum(scores[seats:-1]) / seats, scores[-1] == 1


def mean_rating(samples: Sequence[tuple[float, float, bool]]) -> StepRating:
    """The mean of the samples, at least one; one that says stop is enough."""
    count = len(samples)
    return StepRating(
        goal_c=sum(one[0] for one in samples) / count,
        goal_p=sum(one[1] for one in samples) / count,
        goes_on=all(one[2] for one in samples),
        samples=count,
    )


def choose(goal_c: float, goal_p: float) -> Strategy:
    """The strategy for the next act."""
    if goal_c <= LOW:
        return "simple" if goal_p >= HIGH else "negotiation"
    return "simple" if goal_c < HIGH and goal_p < HIGH else "native"


def is_kept(goal_c: float, *, negotiated: bool) -> bool:
    """Whether a finished dialogue is good enough."""
    return goal_c >= (KEEP_WITH_NEGOTIATION if negotiated else KEEP_WITHOUT)


def utility(items: Sequence[tuple[float, float, float]]) -> float:
    """U = (1/n) sum of weight x ratio x utility; 0 of nothing."""
    return sum(weight * ratio * value for weight, ratio, value in items) / len(items) if items else 0.0


_ATTEMPT = re.compile(r"-try(\d+)$")


class Attempt(msgspec.Struct, frozen=True):
    """One finished dialogue of a task: what its coach thought of it in the end."""

    episode: str
    goal_c: float | None  # None: it could not be rated
    is_good: bool


def attempts_of(store: Store) -> dict[str, list[Attempt]]:
    """The finished attempts of every coached episode, in order, by the first one's name."""
    found: dict[str, list[Attempt]] = {}
    for row in store.episodes():
        scores = {one.dimension: one.score for one in store.turn_scores(row.id) if one.dimension.startswith("final_")}
        if row.state != "done" or not store.plan(row.id).coach:
            continue
        goal = scores.get("final_goal_c")
        good = goal is not None and is_kept(goal, negotiated=bool(scores.get("final_negotiated")))
        found.setdefault(_ATTEMPT.sub("", row.id), []).append(Attempt(row.id, goal, good))
    return found


def best_of(attempts: list[Attempt]) -> tuple[Attempt, str]:
    """The attempt that is learned from, and why: the first good one, else the highest rated."""
    for number, one in enumerate(attempts, start=1):
        if one.is_good:
            return one, f"attempt {number} of {len(attempts)}: final rating {one.goal_c:g} is high enough"
    best = max(attempts, key=lambda one: -1.0 if one.goal_c is None else one.goal_c)
    return best, f"the best of {len(attempts)} attempts, none of which was rated high enough"


def regenerations(store: Store, most: int) -> list[EpisodePlan]:
    """Plans of what is to be played again; they are in the file when this returns."""
    rows: dict[str, list[EpisodeRow]] = {}
    for row in store.episodes():
        rows.setdefault(_ATTEMPT.sub("", row.id), []).append(row)
    plans = []
    for first, attempts in attempts_of(store).items():
        if len(attempts) == len(rows[first]) < most and not any(one.is_good for one in attempts):
            plan, number = store.plan(first), len(attempts) + 1
            plans.append(msgspec.structs.replace(plan, id=f"{first}-try{number}", seed=plan.seed + 100_000 * number))
    store.add(plans, first=len(store.episodes()))
    return plans


Stage = Literal["resources", "difference", "proposal", "update"]
STAGES: tuple[Stage, ...] = get_args(Stage)
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
        deal, made, then = self._plan.deal, list(self._offers(turns).values()), now
        if deal is not None and deal.unit and len(made) == 2 and agreed_number(turns, deal, self._plan.bound) is None:
            began, gap = (abs(made[0][place] - made[1][place]) for place in (0, -1))
            then = max(now, 8.0 * max(0.0, 1.0 - gap / (began or 1.0)))
        is_over = len(turns) > 1 and all(is_farewell(turn) for turn in turns[-2:])
        return StepRating(now, then, not is_over, 1)

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
        goals = [f"{truth.name}'s goal: {truth.goal}\n{truth.profile}" for truth in self._plan.truths]  # as a judge's
        seats = list(enumerate(names, start=1))
        current = [f"step{n}: " + _CURRENT.format(name=name) for n, name in seats]
        predicted = [f"step{count + n}: " + _PREDICTED.format(name=name, before=n) for n, name in seats]
        prompt = _RATE.format(
            names=" and ".join(names),
            task="\n".join((self._plan.context, *goals)),
            talk=history_text(turns),
            current=". ".join(current),
            predicted=". ".join(predicted),
            last=2 * count + 1,
            parts=", ".join(f'"step{number}": {_SCORED}' for number in range(1, 2 * count + 2)),
        )
        prompts = [prompt + "\n" * number for number in range(SAMPLES)]  # the log tells the samples apart
        found = await self._rated(prompts, "step rating")
        bad = [number for number, one in enumerate(found) if isinstance(one, UnreadableError)]
        again = await self._rated([asked_again(prompts[number], found[number]) for number in bad], "step rating, again")
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
        return await self._caller.ask_for(
            prompt, _OPEN, what, lambda answer: read(read_object(answer.text)), f"{what}, again"
        )


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
VARIANTS: tuple[Variant, ...] = get_args(Variant)
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
        chance = random.Random(f"half {plan.task}")  # another seat for another task, as in the paper
        self._half_seat = chance.randrange(len(plan.names))
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
        self.scores.append(TurnScore(len(turns) - 1, "coach", "final_negotiated", float(is_negotiation)))
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
        self.coaching: Coaching | None = None
        if task:
            plan = plan_of_task(task, order=order, mode="AGENTS", max_turns=max_turns)
            self.coaching = Coaching(plan, mind_of(plan, coach, Servers(), NoStore()), variant_of(variant))

    @classmethod
    def of(cls, coaching: Coaching) -> Self:
        """A coach whose mind was made by the caller."""
        coach = cls("")
        coach.coaching = coaching
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
        self.guidance.publish(await self.clock.external(answer, 0.0))


def mind_of(plan: EpisodePlan, coach: str, servers: Servers, store: AnswerStore, ask: Ask | None = None) -> CoachMind:
    """The mind of that name, which asks those servers. Raises UserError."""
    if coach == "rules":
        return RulesMind(plan)
    spec = AgentSpec.parse(coach, temperature=1.0)
    spec.check_model(servers)
    return ModelMind(plan, SeatCaller(spec, servers, store, COACH, ask, tokens=LONG_RATING))


def variant_of(text: str) -> Variant:
    """The variant of that name. Raises UserError with the known ones."""
    return one_of("variant", text, VARIANTS)
