"""`episodes score`: done episodes judged again, and human ratings taken in."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec

from nodes.episodes.commands.asked import (
    failed_evaluations,
    jobs_of,
    judges_of,
    playing_of,
    print_run,
    servers_of,
    settings_of,
)
from nodes.episodes.dialogue.package_prompts import prompts_in
from nodes.episodes.evaluation.dimensions import RULES_JUDGE, SEVEN, Dimension, read_dimensions
from nodes.episodes.results.card import metrics_of
from nodes.episodes.results.store import Store
from nodes.episodes.runner.runner import Settings, judge_again, judge_unjudged
from runtime.errors import UserError
from runtime.msgs.episode import Score
from runtime.serialization.toml_errors import read_text


def score(asked: argparse.Namespace) -> int:
    """Judge done episodes again, or take in human ratings."""
    with Store.open(asked.run) as store:
        if asked.ratings is not None:
            own = read_dimensions(asked.dimensions) if asked.dimensions else ()
            count = _take_ratings(asked.ratings, store, (*SEVEN, *own))
            print(f"{count} ratings taken in", file=sys.stderr)
            return 0
        playing = playing_of(asked)
        servers = servers_of(playing, store.tokens_by_model())  # budgets are the whole run's
        settings = settings_of(playing, servers, judges_of(asked, servers), jobs_of(asked), prompts_in(store.spec))
        if any(judge != RULES_JUDGE for judge in settings.judges.specs):
            store.take_dimensions(settings.judges.dimensions, may_change=asked.again)
        failed, reason = asyncio.run(_judge_all(store, settings, again=asked.again))
        if store.card:
            judges = dict.fromkeys([*store.card["metrics"]["judges"], *settings.judges.specs])
            metrics, before = metrics_of(list(judges), settings.judges.dimensions, settings.like), store.card["metrics"]
            if "prompts" in metrics:
                metrics["prompts"] = before.get("prompts", {}) | metrics["prompts"]
            store.set_card(store.card | {"metrics": metrics})
        print_run(store, asked, settings)
        missing, why = failed_evaluations(store, settings.judges)
        if missing:
            print(f"{missing} evaluations are missing ({why}); the same command asks for those", file=sys.stderr)
        elif failed:
            print(
                f"{failed} evaluations could not be made again ({reason}); the scores from before stay", file=sys.stderr
            )
        return 1 if missing or failed else 0


async def _judge_all(store: Store, settings: Settings, *, again: bool) -> tuple[int, str]:
    """Judge what these judges have not judged on these dimensions, or all again; what could not be asked again."""
    try:
        if again:
            return await judge_again(store, settings)
        await judge_unjudged(store, settings)
        return 0, ""
    finally:
        await settings.servers.close()


def _take_ratings(path: Path, store: Store, dimensions: Iterable[Dimension]) -> int:
    """Human ratings from JSONL. Raises UserError naming line and field."""
    names = {row.id: row.names for row in store.episodes()}
    scales = {dimension.name: dimension for dimension in dimensions}
    count = 0
    for number, line in enumerate(read_text(path).split("\n"), start=1):
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
        score = Score(name=row.name, dimension=row.dimension, score=float(row.score), reasoning=row.reasoning)
        store.save_ratings(row.episode, row.rater, [score])
        count += 1
    return count


class HumanRating(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of a file of human ratings."""

    episode: str
    rater: str
    name: str
    dimension: str
    score: float
    reasoning: str = ""
    rationale: str = ""
