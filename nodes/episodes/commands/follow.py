"""`episodes follow`: how well seats follow their social instructions, and side effects, as scores beside the others."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterator, Sequence

import msgspec

from nodes.episodes.agents.agent_spec import AgentSpec
from nodes.episodes.agents.seat_caller import OutageError, SeatCaller
from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.evaluation.encoders import encoder_of
from nodes.episodes.evaluation.instruction_following import (
    RELEVANCE,
    acts_of,
    alternatives,
    rate_relevance,
    scores_of,
    side_effects,
)
from nodes.episodes.results.evaluations import FOLLOWS, TurnScore, judge_seat
from nodes.episodes.results.store import Store
from nodes.episodes.runner.many import side_by_side
from nodes.models.json_reading import UnreadableError
from nodes.models.servers import Servers
from runtime.errors import UserError
from runtime.msgs.episode import Score, Scores, Turn
from runtime.serialization.toml_errors import read_text


def follow(asked: argparse.Namespace) -> int:
    """Measure every finished episode and keep it in the run's file; what is there of relevance is not asked again."""
    name, encode = encoder_of(asked.encoder)
    words = tuple(read_text(asked.words).split()) if asked.words else ()
    if asked.judge:
        AgentSpec.parse(asked.judge).check_model(Servers())
    unreadable = 0
    with Store.open(asked.run) as store:
        done = [row for row in store.episodes() if row.state == "done"]
        if asked.judge:
            unreadable = asyncio.run(_rate(store, [row.id for row in done], asked.judge, asked.jobs))
        totals: dict[str, list[float]] = {}
        for row in done:
            turns, found = store.turns(row.id), []
            rated = {
                one.turn: one.score
                for one in store.turn_scores(row.id)
                if one.dimension == RELEVANCE and asked.judge in ("", one.judge)
            }
            checks = store.checks(row.id)
            for person in row.names:
                acts = acts_of(turns, person)
                relevances = [rated[turn.index] for turn in turns if turn.speaker == person and turn.index in rated]
                found += scores_of(
                    person, encode(acts), relevances, power_on_mean=asked.power_on_mean, why=f"encoder {name}"
                )
                effects = side_effects(turns, person, words=words, injury=asked.injury, prevention=asked.prevention)
                if asked.solution:
                    effects["solutions"] = float(alternatives(acts, asked.solution, encode))
                if checks is not None:
                    seat = next(one for one in checks["seats"] if one["name"] == person)
                    effects["secret_kept"] = float(not seat["leak"])
                found += [
                    Score(name=person, dimension=key, score=value, reasoning="") for key, value in effects.items()
                ]
            for one in found:
                if one.score is not None:
                    totals.setdefault(one.dimension, []).append(one.score)
            store.save_scores(Scores(episode=row.id, judge=FOLLOWS + name, state="done", scores=tuple(found)))
    means = {key: sum(values) / len(values) for key, values in totals.items()}
    if asked.json:
        print(msgspec.json.encode({"encoder": name, "episodes": len(done), "means": means}).decode())
    else:
        print(f"{len(done)} episodes, encoder {name}" + (": words, not meanings" if name == "hashing" else ""))
        print("\n".join(f"  {key:14} {value:.3f}" for key, value in means.items()))
        if "S_rel" not in means:
            print("  S_rel, S_sif   not judged: no model has rated the turns; --judge MODEL[@URL] does")
    if unreadable:
        print(f"{unreadable} turns could not be rated; the same command asks for those", file=sys.stderr)
    return 1 if unreadable else 0


async def _rate(store: Store, episodes: list[str], judge: str, jobs: int) -> int:
    """Rate the turns that this judge has not rated, `jobs` at a time; how many could not be."""
    servers, failed = Servers(), 0

    async def rate(one: tuple[EpisodePlan, list[Turn], int]) -> None:
        nonlocal failed
        plan, turns, place = one
        index = turns[place].index
        seat = judge_seat(f"{judge} {RELEVANCE} {index}")  # each turn's calls are numbered by themselves
        caller = SeatCaller(AgentSpec.parse(judge, temperature=0.0), servers, store.answers(plan.id), seat)
        try:
            score = await _rated(caller, plan, turns, place)
            store.save_turn_scores(plan.id, [TurnScore(index, judge, RELEVANCE, score)])
        except UnreadableError:
            failed += 1

    try:
        await side_by_side(jobs, _unrated(store, episodes, judge), rate)
    except OutageError as problem:
        raise UserError(f"{judge}: {problem}; the same command goes on") from problem
    finally:
        await servers.close()
    return failed


def _unrated(store: Store, episodes: list[str], judge: str) -> Iterator[tuple[EpisodePlan, list[Turn], int]]:
    for episode in episodes:
        plan, turns = store.plan(episode), store.turns(episode)
        rated = {s.turn for s in store.turn_scores(episode) if (s.judge, s.dimension) == (judge, RELEVANCE)}
        yield from ((plan, turns, place) for place, turn in enumerate(turns) if turn.index not in rated)


async def _rated(caller: SeatCaller, plan: EpisodePlan, turns: Sequence[Turn], place: int) -> float:
    """One turn's score; what an earlier command found unreadable is asked for anew. Raises like `rate_relevance`."""
    while True:
        try:
            return await rate_relevance(caller, plan, turns, place)
        except UnreadableError:
            if not caller.is_replay:
                raise
