"""`episodes embody`: a scenario with a robot, played by the robot graph, beside the same as text, under any judges."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

import msgspec
from msgspec import to_builtins

from nodes.episodes.commands.asked import (
    failed_evaluations,
    jobs_of,
    judges_of,
    playing_of,
    servers_of,
    settings_of,
    summary_of,
)
from nodes.episodes.commands.run import library_of
from nodes.episodes.dialogue.planning import plan_of_task
from nodes.episodes.evaluation.dimensions import mean_scores
from nodes.episodes.results.card import card_of
from nodes.episodes.results.run_file import check_is_new
from nodes.episodes.results.show import episode_text, find_episode
from nodes.episodes.results.store import Store
from nodes.episodes.runner.embodied import embodied_plan, play_body, turns_of
from nodes.episodes.runner.runner import judge_unjudged, play_and_keep
from runtime.clock import wall_time_text
from runtime.command_line.arguments import unique_path
from runtime.errors import UserError
from runtime.msgs.episode import Outcome


def embody(asked: argparse.Namespace) -> int:
    """Write the run's file for one embodied episode, recorded or played now, and judge it; beside it one as text."""
    library = library_of(asked.tasks)
    plan = embodied_plan(asked.task, library)
    playing = playing_of(asked)
    servers = servers_of(playing)
    judges = judges_of(asked, servers)
    settings = settings_of(playing, servers, judges, jobs_of(asked))
    path: Path | None = asked.out or (asked.recording.with_suffix(".sqlite") if asked.recording else None)
    if path is None:
        path = unique_path(Path("runs") / f"embodied-{wall_time_text()}.sqlite")
    check_is_new(path)  # before the body plays: that takes a while
    recording = asked.recording or play_body(
        plan, path.with_suffix(".mcap"), seed=asked.seed, overrides=asked.set, library=library
    )
    turns, seconds = turns_of(recording, plan)
    if not turns:
        raise UserError(f"{recording}: nobody says or does anything in it")
    outcome = Outcome(
        episode=plan.id, state="done", reason=f"recorded: {seconds:.1f} s", turns=len(turns), seconds=round(seconds, 3)
    )
    plans = [plan]
    if asked.beside_text:
        plans.append(plan_of_task(asked.task, order="asynchronous", mode="AGENTS", max_turns=20, library=library))
    spec = {
        "judges": list(judges.specs),
        "dimensions": to_builtins(judges.dimensions),
        "playing": to_builtins(playing),
    }

    async def play_text_and_judge() -> None:
        try:
            for text_plan in plans[1:]:
                await play_and_keep(text_plan, store, settings)
            await judge_unjudged(store, settings)
        finally:
            await servers.close()

    with Store.create(path, spec) as store:
        store.add(plans)
        store.set_card(
            {**card_of(plans, judges.specs, judges.dimensions), "modalities": ["text", "speech", "physical action"]}
        )
        store.save_played(plan.id, turns, [], outcome)
        store.link_recording(plan.id, str(recording))
        asyncio.run(play_text_and_judge())
        if asked.json:
            print(msgspec.json.format(msgspec.json.encode(summary_of(store)), indent=1).decode())
        for each in reversed([] if asked.json else plans):
            print(episode_text(store, find_episode(store, each.id)), end="\n\n")
        if asked.beside_text and not asked.json:
            print(_side_by_side(store, plans[1].id, plan.id, judges.names))
        missing, why = failed_evaluations(store, judges)
    print(f"\nrun: {path}", file=sys.stderr)
    if missing:
        print(
            f"{missing} evaluations are missing ({why}); go on with: polyrhythm episodes resume {path}", file=sys.stderr
        )
    return 1 if missing else 0


def _side_by_side(store: Store, text: str, body: str, dimensions: tuple[str, ...]) -> str:
    """The two episodes' scores and figures in one table."""
    lines = [f"{'':34}{'as text':>12}{'with a body':>14}"]
    means = [mean_scores(store.scores(episode)) for episode in (text, body)]
    for name in dict.fromkeys((*means[0], *means[1])):
        for dimension in dimensions:
            values = [mean.get(name, {}).get(dimension) for mean in means]
            cells = ["-" if value is None else f"{value:g}" for value in values]
            lines.append(f"{name:28.28}{dimension:6.6}{cells[0]:>12}{cells[1]:>14}")
    turns = [store.turns(episode) for episode in (text, body)]
    for what, kind in (("things said", "speak"), ("things done", "action")):
        counts = [sum(turn.kind == kind for turn in one) for one in turns]
        lines.append(f"{what:34}{counts[0]:>12}{counts[1]:>14}")
    seconds = [max((turn.at_s + turn.lasts_s for turn in one), default=0.0) for one in turns]
    lines.append(f"{'seconds':34}{seconds[0]:>12.0f}{seconds[1]:>14.0f}")
    return "\n".join(lines)
