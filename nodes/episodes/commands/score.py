"""`episodes score`: done episodes judged again, and human ratings taken in."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

import msgspec

from nodes.episodes.commands.asked import judges_of, print_run, settings_of
from nodes.episodes.evaluation.checks import check_episode
from nodes.episodes.evaluation.dimensions import SEVEN
from nodes.episodes.results.store import Store
from nodes.episodes.runner.runner import Settings, evaluate
from runtime.errors import UserError
from runtime.msgs.episode import Score


def score(asked: argparse.Namespace) -> int:
    """Judge done episodes again, or take in human ratings."""
    with Store.open(asked.run) as store:
        if asked.ratings is not None:
            count = _take_ratings(asked.ratings, store)
            print(f"{count} ratings taken in", file=sys.stderr)
            return 0
        judges = judges_of(asked)
        settings = settings_of(asked, judges)
        failed = asyncio.run(_judge_all(store, settings))
        print_run(store, asked, settings)
        return 1 if failed else 0


async def _judge_all(store: Store, settings: Settings) -> int:
    """Judge every done episode anew with these judges; how many evaluations failed."""
    failed = 0
    try:
        for row in store.episodes():
            if row.state != "done":
                continue
            plan, turns = store.plan(row.id), store.turns(row.id)
            store.save_checks(row.id, check_episode(plan, turns))
            for judge in settings.judges.specs:
                store.forget_judgement(row.id, judge)
                scores = await evaluate(plan, turns, settings, store.answers(row.id), judge)
                failed += scores.state == "failed"
                store.save_scores(scores)
    finally:
        await settings.servers.close()
    return failed


def _take_ratings(path: Path, store: Store) -> int:
    """Human ratings from JSONL. Raises UserError naming line and field."""
    names = {row.id: row.names for row in store.episodes()}
    scales = {dimension.name: dimension for dimension in SEVEN}
    count = 0
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as problem:
        raise UserError(
            f"{path}: cannot be read: {problem.strerror if isinstance(problem, OSError) else problem}"
        ) from problem
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            row = msgspec.json.decode(line, type=HumanRating)
        except msgspec.MsgspecError as problem:
            raise UserError(f"{where}: {problem}") from problem
        if row.name not in names.get(row.episode, ()):
            raise UserError(f"{where}: this run has no {row.name!r} in an episode {row.episode!r}")
        if row.dimension not in scales:
            raise UserError(f"{where}: dimension is {row.dimension!r}; known: {', '.join(scales)}")
        if problem_text := scales[row.dimension].problem_of(row.score):
            raise UserError(f"{where}: {problem_text}")
        store.save_rating(
            row.episode,
            row.rater,
            Score(name=row.name, dimension=row.dimension, score=float(row.score), reasoning=""),
        )
        count += 1
    return count


class HumanRating(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of a file of human ratings."""

    episode: str
    rater: str
    name: str
    dimension: str
    score: float
    rationale: str = ""
