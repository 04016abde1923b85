"""Plays episodes and keeps them: each in its own virtual time, many at once on one loop, models asked concurrently."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from nodes.episodes.agents.agent import Agent, ScriptedBrain, brain_of_its_own
from nodes.episodes.agents.agent_spec import AgentSpec
from nodes.episodes.agents.model_brain import NO_LATENCY, AnswerLatency, ModelBrain, write_script
from nodes.episodes.agents.seat_caller import AnswerStore, Ask, BudgetSpentError, NoStore, OutageError, SeatCaller
from nodes.episodes.coaching.coach import Coach, Coaching, mind_of, regenerations, variant_of
from nodes.episodes.dialogue.messages import BeginEpisode
from nodes.episodes.dialogue.moderator import Moderator
from nodes.episodes.dialogue.observation import Brain
from nodes.episodes.dialogue.package_prompts import PackagePrompts
from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.dialogue.turn_based import TurnBasedDialogue
from nodes.episodes.evaluation.by_model import judge_by_model
from nodes.episodes.evaluation.by_rules import check_episode, judge_by_rules
from nodes.episodes.evaluation.dimensions import RULES_JUDGE, SEVEN, Dimension, with_steps
from nodes.episodes.results.show import find_episode
from nodes.episodes.results.store import EpisodeAnswers, EpisodeRow, Store, judge_seat
from nodes.episodes.runner.by_hand import PATIENCE_S, ByHand, PersonAtTerminal, TypedTerminal
from nodes.models.json_reading import UnreadableError
from nodes.models.servers import Servers
from nodes.msgs.episode import Act, Outcome, Scores, Turn
from runtime import NodeSpec, Simulation, Stamped, UserError
from runtime.virtual.simulation import few_collections

One = TypeVar("One")


async def side_by_side(jobs: int, each: Iterable[One], do: Callable[[One], Awaitable[None]]) -> None:
    """Do it for each, `jobs` at a time, begun in order. The first error ends all, and is raised as it is."""
    waiting = iter(each)

    async def work() -> None:
        for one in waiting:
            await do(one)
            await asyncio.sleep(0)

    tasks = [asyncio.create_task(work(), name=f"side-by-side-{number}") for number in range(max(1, jobs))]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


LONG_ANSWER = 6000
"""Tokens of a judge's answer, or of a script of 20 turns."""

WRITER = 100
"""Seat number under which the calls of a script's writer are logged."""


@dataclass(frozen=True, slots=True)
class Judges:
    """Who evaluates: names like agents' ("rules", "MODEL[@URL]"), and on which dimensions."""

    specs: tuple[str, ...] = (RULES_JUDGE,)
    dimensions: tuple[Dimension, ...] = SEVEN

    @property
    def names(self) -> tuple[str, ...]:
        """Of the dimensions."""
        return tuple(dimension.name for dimension in self.dimensions)


@dataclass(slots=True)
class Settings:
    """How a run is played; `ask` stands in for all servers where it is given."""

    servers: Servers
    judges: Judges
    jobs: int = 8
    temperature: float = 0.7
    stream: bool = False
    latency: AnswerLatency = NO_LATENCY
    ask: Ask | None = None
    by_hand: TypedTerminal | None = None  # where people play
    like: PackagePrompts | None = None  # the published package that models are asked as; None: our own prompts

    def agent(self, text: str) -> AgentSpec:
        """Who plays, with this run's temperature where the text has none."""
        return AgentSpec.parse(text, temperature=self.temperature, stream=self.stream)


COACH_S = 600.0
"""Longer than any model may take: in virtual time a coach is asked as models are."""

Progress = Callable[[EpisodePlan, Outcome], None]


def brain_of(plan: EpisodePlan, seat: int, settings: Settings, answers: EpisodeAnswers) -> Brain:
    """What plays a seat that no person plays. Raises UserError where its text names nothing."""
    spec = settings.agent(plan.agents[seat])
    if (brain := brain_of_its_own(spec)) is not None:
        return brain
    if spec.kind == "replay":
        return ScriptedBrain(replayed(spec, plan, seat))
    caller = SeatCaller(spec, settings.servers, answers, seat, settings.ask)
    return ModelBrain(caller, latency=settings.latency, prompts=settings.like)


def replayed(spec: AgentSpec, plan: EpisodePlan, seat: int) -> list[Act]:
    """The acts of that seat in RUN#EPISODE, or in the episode of the same task and seed."""
    path, episode = spec.path, spec.episode
    with Store.read(path) as store:
        if not episode:
            same = [row for row in store.episodes() if row.task == plan.task and row.seed == plan.seed]
            if not same:
                raise UserError(f"{path}: holds no episode of task {plan.task} with seed {plan.seed} to replay")
            episode = same[0].id
        row = find_episode(store, episode)
        if plan.names[seat] not in row.names:
            raise UserError(f"{path}: {plan.names[seat]} is not in episode {row.id}, but {' and '.join(row.names)}")
        turns = store.turns(row.id)
    return [
        Act(kind=turn.kind, argument=turn.argument, to=turn.to) for turn in turns if turn.speaker == plan.names[seat]
    ]


async def play(plan: EpisodePlan, settings: Settings, answers: EpisodeAnswers) -> TurnBasedDialogue:
    """Play one episode to its outcome; nothing is written but answers of models and people, and turns with them."""
    brains: Sequence[Brain | None]
    writer = settings.agent(plan.agents[0])
    if plan.mode == "SCRIPT" and writer.kind == "model":
        caller = SeatCaller(writer, settings.servers, answers, WRITER, settings.ask, tokens=LONG_ANSWER)
        try:
            script = await write_script(plan, caller)
        except (OutageError, UnreadableError) as problem:
            conduct, is_spent = Moderator(plan).conduct, isinstance(problem, BudgetSpentError)
            conduct.fail(f"the script's writer: {problem}", 0.0, kind="budget" if is_spent else "outage")
            return conduct
        rules = msgspec.structs.replace(plan.rules, order="script", script=tuple(seat for seat, _ in script))
        plan = msgspec.structs.replace(plan, rules=rules)
        seats = range(len(plan.briefings))
        brains = [ScriptedBrain([act for writing, act in script if writing == seat]) for seat in seats]
    else:
        if plan.mode == "SCRIPT":  # one writer for all
            plan = msgspec.structs.replace(plan, agents=plan.agents[:1] * len(plan.agents))
        players = enumerate(plan.agents)
        brains = [None if one == "human" else brain_of(plan, seat, settings, answers) for seat, one in players]
    coaching = None
    if plan.coach:  # who asks as the run does
        mind = mind_of(plan, plan.coach, settings.servers, answers, settings.ask)
        coaching = Coaching(plan, mind, variant_of(plan.variant))
    conduct = await conduct_episode(plan, brains, answers.pending_turns, settings.by_hand, answers, coaching)
    if coaching is not None and conduct.outcome is not None and conduct.outcome.state == "done":
        await coaching.finish(conduct.turns)
        answers.turn_scores = coaching.scores
    return conduct


async def conduct_episode(
    plan: EpisodePlan,
    brains: Sequence[Brain | None],
    happened: list[Turn],
    terminal: TypedTerminal | None = None,
    store: AnswerStore | None = None,
    coaching: Coaching | None = None,
) -> TurnBasedDialogue:
    """Moderator and agents on a bus of their own, in virtual time, to the outcome; None is a person at the terminal."""
    coach = None if coaching is None else Coach.of(coaching)
    has_people = None in brains and plan.rules.order == "asynchronous"
    moderator = Moderator(plan, PATIENCE_S if has_people else 0.0, coach_s=COACH_S if coach else 0.0)
    nodes = [PersonAtTerminal() if brain is None else Agent.with_brain(brain) for brain in brains]
    seats = [
        NodeSpec(f"seat{seat}", type(node), instance=node, remap={"episode/seat": f"episode/seat{seat}"})
        for seat, node in enumerate(nodes)
    ]
    seats += [] if coach is None else [NodeSpec("coach", Coach, instance=coach)]
    simulation = Simulation(NodeSpec("moderator", Moderator, instance=moderator), *seats, seed=plan.seed)

    def observe(stamped: Stamped[Any]) -> None:
        if isinstance(stamped.message, Turn):
            happened.append(stamped.message)

    simulation.observe(observe)
    simulation.publish("episode/begin", BeginEpisode())
    people = [node for node in nodes if isinstance(node, PersonAtTerminal)]
    if people and terminal is None:
        raise UserError("human plays at a terminal: polyrhythm episodes run --agents human,...")
    pace = ByHand(simulation, people, terminal, store or NoStore()) if people and terminal is not None else None
    try:
        await simulation.run_async(pace)
    finally:
        simulation.close()
    conduct = moderator.conduct
    if conduct.outcome is None:
        conduct.fail("nobody had anything more to do", moderator.seconds)
    if pace is not None and terminal is not None and conduct.outcome is not None:
        terminal.show(f"\nThe episode is over: {conduct.outcome.reason}\n")
    return conduct


async def evaluate(
    plan: EpisodePlan,
    turns: Sequence[Turn],
    settings: Settings,
    answers: EpisodeAnswers,
    judge: str,
    *,
    again: bool = False,
) -> Scores:
    """One judge's scores of one episode; with `again` no answer is taken from the log, and none is lost from it."""
    if judge == RULES_JUDGE:
        return judge_by_rules(plan, turns)
    spec = AgentSpec.parse(judge, temperature=0.0)
    dimensions = settings.judges.dimensions
    seat = judge_seat(judge, dimensions)
    after = answers.last_call(seat) if again else 0
    caller = SeatCaller(spec, settings.servers, answers, seat, settings.ask, tokens=LONG_ANSWER, after=after)
    dimensions = with_steps(dimensions) if spec.is_fine else dimensions
    while True:
        scores = await judge_by_model(judge, caller, plan, turns, dimensions, settings.like)
        if scores.state == "done" or not caller.is_replay:  # what an earlier command could not use is asked anew
            return scores


async def play_and_keep(plan: EpisodePlan, store: Store, settings: Settings) -> Outcome:
    """Play an episode, keep it, and have it judged."""
    store.set_aside_failed(plan)
    answers = store.answers(plan.id)
    conduct = await play(plan, settings, answers)
    assert conduct.outcome is not None
    store.save_turn_scores(plan.id, answers.turn_scores)
    store.save_played(plan.id, conduct.turns, conduct.prompts, conduct.outcome)
    if conduct.outcome.state == "done":
        await judge_and_keep(plan, conduct.turns, store, settings)
    return conduct.outcome


async def judge_and_keep(plan: EpisodePlan, turns: Sequence[Turn], store: Store, settings: Settings) -> None:
    """All judges that have not judged this episode yet, and the checks."""
    store.save_checks(plan.id, check_episode(plan, turns))
    answers = store.answers(plan.id)
    for judge in settings.judges.specs:
        if not store.is_judged(plan.id, judge, settings.judges.names):
            store.save_scores(await evaluate(plan, turns, settings, answers, judge))


async def judge_unjudged(store: Store, settings: Settings, but: Collection[str] = ()) -> None:
    """Judge the done episodes that miss a judge, `jobs` at a time, `but` these; no more once the budget is spent."""
    names = settings.judges.names
    unjudged = dict.fromkeys(one for judge in settings.judges.specs for one in store.unjudged(judge, names))

    async def judge_one(episode: str) -> None:
        if not settings.servers.budget.spent:
            await judge_and_keep(store.plan(episode), store.turns(episode), store, settings)

    await side_by_side(settings.jobs, (one for one in unjudged if one not in but), judge_one)


async def judge_again(store: Store, settings: Settings, *, at_once: bool = False) -> tuple[int, str]:
    """Judge all done episodes anew; how many could not be, and why one could not. Their scores from before stay.

    `at_once`: the scale is another one, so that what is judged anew is kept when all is, or not at all.
    """
    found: list[Scores] = []

    async def judge_one(row: EpisodeRow) -> None:
        plan, turns, answers = store.plan(row.id), store.turns(row.id), store.answers(row.id)
        store.save_checks(row.id, check_episode(plan, turns))
        for judge in settings.judges.specs:
            found.append(await evaluate(plan, turns, settings, answers, judge, again=True))
            if not at_once:
                store.save_scores(found[-1])

    await side_by_side(settings.jobs, (row for row in store.episodes() if row.state == "done"), judge_one)
    failed = [scores.why for scores in found if scores.state == "failed"]
    if at_once and not failed:
        store.save_rescaled(found, settings.judges.dimensions)
    return len(failed), "".join(failed[:1])


async def play_and_judge(
    plans: Collection[EpisodePlan], store: Store, settings: Settings, progress: Progress | None = None
) -> bool:
    """Play them, play again what a coach found too low, and judge what is not judged; whether all were played."""
    all_done = await play_all(plans, store, settings, progress)
    attempts = store.spec.get("attempts", 1)
    asked = {plan.id for plan in plans}  # their judges have answered; a bad answer is no reason to ask twice
    while all_done and attempts > 1 and (more := regenerations(store, attempts)):
        asked |= {plan.id for plan in more}
        all_done = await play_all(more, store, settings, progress)
    if not settings.servers.budget.spent:
        await judge_unjudged(store, settings, but=asked)
    return all_done


async def play_all(
    plans: Collection[EpisodePlan], store: Store, settings: Settings, progress: Progress | None = None
) -> bool:
    """Play all of them, `jobs` at a time; whether all are done. When the budget is spent, the rest stays waiting."""
    all_done, is_spent = True, False

    async def play_one(plan: EpisodePlan) -> None:
        nonlocal all_done, is_spent
        if is_spent:
            all_done = False
            return
        outcome = await play_and_keep(plan, store, settings)
        all_done = all_done and outcome.state == "done"
        is_spent = is_spent or outcome.failure_kind == "budget"
        if progress is not None:
            progress(plan, outcome)

    with few_collections():
        await side_by_side(min(settings.jobs, len(plans)), plans, play_one)
    return all_done
