"""`episodes run`, `resume`, `score` and `sample`: from arguments to a run's file, or to more of one."""

from __future__ import annotations

import argparse
import asyncio
import re
import sqlite3
import sys
from collections.abc import Collection, Iterable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from nodes.episodes.agents.agent import brain_of_its_own
from nodes.episodes.agents.agent_spec import AgentSpec
from nodes.episodes.commands.asked import (
    judges_in,
    judges_of,
    playing_again,
    playing_of,
    print_run,
    servers_of,
    settings_of,
    tells_missing,
)
from nodes.episodes.dialogue.package_prompts import PackagePrompts, prompts_in, read_prompts
from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.dialogue.planning import mode_of, order_of, plan_episode, win_of, with_seed
from nodes.episodes.dialogue.rules import EpisodeRules, check
from nodes.episodes.evaluation.dimensions import RULES_JUDGE, SEVEN, Dimension, read_dimensions
from nodes.episodes.results.card import card_of, metrics_of
from nodes.episodes.results.export import played_profiles
from nodes.episodes.results.run_file import StoreError, database_error
from nodes.episodes.results.store import Store, whole_of
from nodes.episodes.runner.by_hand import Lines, TypedTerminal
from nodes.episodes.runner.progress import RunProgress
from nodes.episodes.runner.runner import Settings, judge_again, judge_unjudged, play_and_judge, replayed
from nodes.episodes.scenarios.library import Library, json_lines, library_of
from nodes.episodes.scenarios.profiles import Task
from nodes.episodes.scenarios.sampling import allowed_casts, namesake, sample_constrained, sample_uniform, why_few
from nodes.models.servers import Servers
from nodes.msgs.episode import Score
from runtime.clock import run_to_end, wall_time_text
from runtime.command_line.arguments import unique_path
from runtime.errors import UserError
from runtime.serialization.toml_errors import guess, read_text


def run(asked: argparse.Namespace) -> int:
    """Plan all episodes, play them, print what came out."""
    library = library_of(asked.tasks)
    playing = playing_of(asked)
    servers = servers_of(playing)
    like = read_prompts(asked.like) if asked.like else None
    plans = _plans(asked, library, servers, like)
    judges = judges_of(asked, servers)
    settings = settings_of(playing, servers, judges, asked.jobs, like)
    path = asked.out or unique_path(Path("runs") / f"episodes-{wall_time_text()}.sqlite")
    spec: dict[str, Any] = {
        "judges": list(judges.specs),
        "dimensions": msgspec.to_builtins(judges.dimensions),
        "playing": msgspec.to_builtins(playing),
    }
    spec["whole"] = whole_of([plan.id for plan in plans])
    spec["profiles"] = msgspec.to_builtins(played_profiles(library, plans))
    if like is not None:
        spec["like"] = msgspec.to_builtins(like)
    if asked.coach:
        spec["attempts"] = asked.attempts
    shard, shards = _shard_of(asked.shard)
    card = card_of(plans, judges.specs, judges.dimensions, playing.temperature, like)
    if asked.engine == "ray":
        from nodes.episodes.commands.on_ray import run_on_ray

        return run_on_ray(path, plans, spec, card, asked)
    if shards > 1:
        spec["shard"] = asked.shard
        plans = plans[shard - 1 :: shards]
        if not plans:
            raise UserError(f"--shard {asked.shard}: there are fewer episodes than shards")
    with Store.create(path, spec) as store:
        store.add(plans, first=shard - 1, step=shards)
        store.set_card(card)
        return _play(plans, store, settings, asked)


def _shard_of(text: str) -> tuple[int, int]:
    """Which part of how many, from "2/8"; 1 of 1 where nothing is said."""
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text or "1/1")
    shard, shards = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= shard <= shards:
        raise UserError(f"--shard {text}: expected I/N with I from 1 to N, like 2/8")
    return shard, shards


def resume(asked: argparse.Namespace) -> int:
    """Play what is waiting or has failed, and judge what is not judged yet."""
    if asked.engine == "ray":
        from nodes.episodes.commands.on_ray import resume_on_ray

        return resume_on_ray(asked)
    with Store.open(asked.run) as store:
        spec = store.spec
        if spec.get("is_live"):
            raise UserError(
                f"{asked.run}: is of a launch file; go on with: polyrhythm run FILE --set moderator.log={asked.run}"
            )
        judges = judges_in(spec)
        playing = playing_again(asked, spec.get("playing", {}), asked.run)
        servers = servers_of(playing, store.tokens_by_model())
        settings = settings_of(playing, servers, judges, asked.jobs, prompts_in(spec))
        return _play(store.unfinished(), store, settings, asked)


def sample(asked: argparse.Namespace) -> int:
    """Print drawn tasks as JSONL."""
    library = library_of(asked.tasks)
    if asked.uniform is not None:
        tasks = sample_uniform(library, asked.uniform, seed=asked.seed)
    else:
        tasks = _drawn(library, asked.per_scenario, asked.seed)
    for task in tasks:
        print(msgspec.json.encode(task).decode())
    return 0


def _drawn(library: Library, casts: int, seed: int = 0) -> list[Task]:
    """So many casts of each scenario; one that fewer fit is named and left out, unless that is all of them."""
    fitting = []
    for scenario in library.scenarios.values():
        if (count := len(allowed_casts(library, scenario, Random(0)))) >= casts:
            fitting.append(scenario.id)
            continue
        why = f"{count} casts honour its constraints; {casts} asked for; {why_few(library, scenario)}"
        print(f"left out: {scenario.label}: {why}", file=sys.stderr)
    return sample_constrained(library, casts, seed=seed, scenarios=fitting)


def _plans(
    asked: argparse.Namespace, library: Library, servers: Servers, like: PackagePrompts | None
) -> list[EpisodePlan]:
    wins = tuple(win_of(text) for text in asked.win)
    modes = list(dict.fromkeys(mode_of(text.strip()) for text in asked.mode.split(",")))
    rules = EpisodeRules(order=order_of(asked.order), max_turns=asked.turns)
    check(rules)
    texts = (*(asked.agents or ()), asked.models, asked.partner, asked.judges)
    is_ours = any(option in text for text in texts for option in ("#prompt=small", "#scale=fine"))
    if like is not None and (asked.coach or rules.order == "asynchronous" or is_ours):
        raise UserError(
            f"--like {like.name}: that package has no coach, no asynchronous talk, no small prompt and no scale=fine"
        )
    for name in ("seeds", "casts"):
        if getattr(asked, name) < 1:
            raise UserError(f"--{name} is {getattr(asked, name)}; expected at least 1")
    tasks = list(library.tasks.values()) or _drawn(library, asked.casts)
    if asked.task:
        names = {task.id: _names(library, task) for task in tasks}
        known = {name for each in names.values() for name in each}
        for name in asked.task:
            if name.lower() not in known:
                shown = {library.scenarios[task.scenario].codename or task.scenario for task in tasks}
                raise UserError(f"--task {name[:80]!r}: there is none; {guess(name, shown)}")
        wanted = {name.lower() for name in asked.task}
        tasks = [task for task in tasks if names[task.id] & wanted]
    tasks = _told_apart(library, tasks)
    pairings = [
        tuple(part.strip() for part in text.split(",")) for text in asked.agents or ([] if asked.models else ["rules"])
    ]
    pairings += _every_pair(asked)
    if asked.swap:
        pairings += [tuple(reversed(pair)) for pair in pairings if len(pair) > 1 and pair[::-1] not in pairings]
    _check_agents(pairings, servers)
    if asked.coach and asked.coach != "rules":
        AgentSpec.parse(asked.coach).check_model(servers)
    first_seeds = [
        plan_episode(
            library,
            task,
            _seated(pairing, task),
            rules=rules,
            mode=mode,
            name_only=asked.name_only,
            wins=wins,
            coach=asked.coach,
            variant=asked.variant,
            like=like,
        )
        for mode in modes
        for pairing in pairings
        for task in tasks
    ]
    plans = [with_seed(plan, seed) for plan in first_seeds for seed in range(asked.seeds)]
    for plan in plans:
        for seat, text in enumerate(plan.agents):
            if (spec := AgentSpec.parse(text)).kind == "replay":
                replayed(spec, plan, seat)
        if plan.rules.order == "asynchronous" and plan.agents.count("human") > 1:
            raise UserError(
                f"--order asynchronous with {plan.agents.count('human')} people (task {plan.task}): they would type "
                "over each other at one terminal; expected one human, or another order"
            )
    return plans


def _told_apart(library: Library, tasks: list[Task]) -> list[Task]:
    """The tasks whose people can be told apart by name; others are named and left out, unless that is all of them."""
    bad = {task.id: twice for task in tasks if (twice := namesake(library, task.characters))}
    for task, name in bad.items():
        print(f"left out: task {task}: two participants are called {name}; rename one", file=sys.stderr)
    if bad and len(bad) == len(tasks):
        task, name = next(iter(bad.items()))
        raise UserError(f"task {task}: two participants are called {name}; rename one")
    return [task for task in tasks if task.id not in bad]


def _every_pair(asked: argparse.Namespace) -> list[tuple[str, ...]]:
    """The pairings of `--models`: each with `--partner` in both seats, or each with each of them and itself."""
    models = list(dict.fromkeys(part.strip() for part in asked.models.split(",") if part.strip()))
    if asked.partner and not models:
        raise UserError("--partner without --models: expected the models that play with it, like --models gpt-4o,qwen")
    if not asked.partner:
        return [(first, second) for first in models for second in models]
    pairs = [pair for model in models for pair in ((model, asked.partner), (asked.partner, model))]
    return list(dict.fromkeys(pairs))


def _names(library: Library, task: Task) -> set[str]:
    """What `--task` may call it: its own identifier or its scenario's, as published or as here, or the codename."""
    scenario = library.scenarios[task.scenario]
    names = (task.id, task.source_id, scenario.id, scenario.source_id, scenario.codename)
    return {name.lower() for name in names if name}


def _seated(pairing: tuple[str, ...], task: Task) -> tuple[str, ...]:
    """A pairing on the seats of a task: with more seats than agents the last one plays the rest."""
    count = len(task.characters)
    if len(pairing) > count:
        raise UserError(f"--agents {','.join(pairing)}: {len(pairing)} agents; task {task.id} has {count} seats")
    return pairing + pairing[-1:] * (count - len(pairing))


def _check_agents(pairings: list[tuple[str, ...]], servers: Servers) -> None:
    """Refuse an agent that cannot play before anything is played."""
    for text in sorted({agent for pairing in pairings for agent in pairing}):
        spec = AgentSpec.parse(text)
        spec.check_model(servers)
        if spec.is_fine:
            raise UserError(f"--agents {text}: scale=fine is an option of --judges")
        brain_of_its_own(spec)


def _play(plans: Collection[EpisodePlan], store: Store, settings: Settings, asked: argparse.Namespace) -> int:
    """Play, judge what is not judged, and say what is missing in the end."""
    by_hand = store.has_people()
    if by_hand:
        settings.jobs = 1
    is_terminal = sys.stderr.isatty() and not asked.json and not by_hand
    progress = RunProgress(len(plans), settings.servers, is_shown=is_terminal)

    async def work() -> bool:
        async with settings.servers:
            if not by_hand:
                return await play_and_judge(plans, store, settings, progress.played)
            with closing(Lines()) as lines:
                settings.by_hand = TypedTerminal(lines)
                return await play_and_judge(plans, store, settings, progress.played)

    try:
        with progress.bar:
            all_done = run_to_end(work())
    except KeyboardInterrupt:
        print(f"stopped; go on with: polyrhythm episodes resume {store.path}", file=sys.stderr)
        return 130
    except (sqlite3.Error, BaseExceptionGroup) as problem:
        if not (said := database_error(problem)):
            raise
        again = f"go on with: polyrhythm episodes resume {store.path}"
        raise StoreError(f"{store.path}: cannot be written: {said}; mend that, then {again}") from problem
    print_run(store, asked, settings)
    is_missing = tells_missing(store, settings.judges)
    if not all_done:
        failed, why = store.not_done()
        again = f"go on with: polyrhythm episodes resume {store.path}"
        print(f"{failed} episodes are not done ({why}); {again}", file=sys.stderr)
    return 0 if all_done and not is_missing else 1


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
        settings = settings_of(playing, servers, judges_of(asked, servers), asked.jobs, prompts_in(store.spec))
        asked_again = settings.judges.specs if asked.again else ()
        has_models = any(judge != RULES_JUDGE for judge in settings.judges.specs)
        at_once = has_models and store.takes_new_scale(settings.judges.dimensions, asked_again)
        failed, reason = asyncio.run(_judge_all(store, settings, again=asked.again, at_once=at_once))
        if store.card:
            judges = dict.fromkeys([*store.card["metrics"]["judges"], *settings.judges.specs])
            metrics, before = metrics_of(list(judges), settings.judges.dimensions, settings.like), store.card["metrics"]
            if "prompts" in metrics:
                metrics["prompts"] = before.get("prompts", {}) | metrics["prompts"]
            store.set_card(store.card | {"metrics": metrics})
        print_run(store, asked, settings)
        is_missing = tells_missing(store, settings.judges, "the same command asks for those")
        if failed and not is_missing:
            kept = "the scores from before stay" + (
                ", all of them: another scale is for all or none" if at_once else ""
            )
            print(f"{failed} evaluations could not be made again ({reason}); {kept}", file=sys.stderr)
        return 1 if is_missing or failed else 0


async def _judge_all(store: Store, settings: Settings, *, again: bool, at_once: bool) -> tuple[int, str]:
    """Judge what these judges have not judged on these dimensions, or all again; what could not be asked again."""
    async with settings.servers:
        if again:
            return await judge_again(store, settings, at_once=at_once)
        await judge_unjudged(store, settings)
        return 0, ""


def _take_ratings(path: Path, store: Store, dimensions: Iterable[Dimension]) -> int:
    """Human ratings from JSONL. Raises UserError naming line and field."""
    names = {row.id: row.names for row in store.episodes()}
    scales = {dimension.name: dimension for dimension in dimensions}
    count = 0
    for where, line in json_lines(path, read_text(path)):
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
