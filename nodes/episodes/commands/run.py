"""`episodes run`, `resume` and `sample`: from arguments to a run's file."""

from __future__ import annotations

import argparse
import os
import re
import sqlite3
import sys
from collections.abc import Collection
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from nodes.episodes.agents.agent_spec import AgentSpec
from nodes.episodes.agents.registry import own_brain, read_script
from nodes.episodes.commands.asked import (
    failed_evaluations,
    jobs_of,
    judges_in,
    judges_of,
    playing_again,
    playing_of,
    print_run,
    servers_of,
    settings_of,
)
from nodes.episodes.dialogue.package_prompts import PackagePrompts, prompts_in, read_prompts
from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.dialogue.planning import (
    mode_of,
    order_of,
    plan_episode,
    starter_library,
    win_of,
    with_seed,
)
from nodes.episodes.dialogue.rules import EpisodeRules, check
from nodes.episodes.results.card import card_of
from nodes.episodes.results.export_profiles import played_profiles
from nodes.episodes.results.run_file import StoreError, database_error
from nodes.episodes.results.store import Store, whole_of
from nodes.episodes.runner.by_hand import TypedTerminal
from nodes.episodes.runner.lines import Lines
from nodes.episodes.runner.progress import RunProgress
from nodes.episodes.runner.runner import Settings, play_and_judge, replayed
from nodes.episodes.scenarios.library import Library, read_folder
from nodes.episodes.scenarios.loader import HARD, is_published, read_published
from nodes.episodes.scenarios.profiles import Task
from nodes.episodes.scenarios.sampling import allowed_casts, namesake, sample_constrained, sample_uniform, why_few
from nodes.models.servers import Servers
from runtime.clock import run_to_end, wall_time_text
from runtime.command_line.arguments import unique_path
from runtime.errors import UserError
from runtime.serialization.toml_errors import guess


def library_of(name: str) -> Library:
    """The starter set, the hard subset of the published one, or the library in a folder. Raises UserError."""
    if name == "starter":
        return starter_library()
    if name == "hard":
        if not (data := os.environ.get("SOTOPIA_DATA", "")):
            raise UserError("--tasks hard is of the published set: expected its folder in SOTOPIA_DATA")
        library = library_of(data)
        tasks = [task for task in library.tasks.values() if task.scenario in HARD]
        if not tasks:
            raise UserError(f"--tasks hard: {data} holds none of its {len(HARD)} scenarios")
        return Library(
            library.characters.values(),
            library.scenarios.values(),
            library.bonds,
            tasks,
            name=f"hard tasks of {data}",
            left_out=library.left_out,
        )
    folder = Path(name)
    if not folder.is_dir():
        raise UserError(f"--tasks {name}: is no folder; expected starter, or a folder with characters and scenarios")
    if is_published(folder):
        library = read_published(folder)
        for problem in library.left_out[:5]:
            print(f"left out: {problem}", file=sys.stderr)
        if len(library.left_out) > 5:
            more = f"{len(library.left_out) - 5} more rows; see polyrhythm episodes scenarios lint --tasks {name}"
            print(f"left out: {more}", file=sys.stderr)
        return library
    return read_folder(folder)


def run(asked: argparse.Namespace) -> int:
    """Plan all episodes, play them, print what came out."""
    library = library_of(asked.tasks)
    playing = playing_of(asked)
    servers = servers_of(playing)
    like = read_prompts(asked.like) if asked.like else None
    plans = _plans(asked, library, servers, like)
    judges = judges_of(asked, servers)
    settings = settings_of(playing, servers, judges, jobs_of(asked), like)
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
        settings = settings_of(playing, servers, judges, jobs_of(asked), prompts_in(spec))
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
        else:
            print(
                f"left out: {scenario.label}: {count} casts honour its constraints; {casts} asked for; "
                f"{why_few(library, scenario)}",
                file=sys.stderr,
            )
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
    if asked.attempts < 1:
        raise UserError(f"--attempts is {asked.attempts}; expected at least 1")
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
        if spec.kind == "script":
            read_script(spec.path)
        if spec.kind == "class":
            own_brain(text)


def _play(plans: Collection[EpisodePlan], store: Store, settings: Settings, asked: argparse.Namespace) -> int:
    """Play, judge what is not judged, and say what is missing in the end."""
    by_hand = store.has_people()
    if by_hand:
        settings.jobs = 1
    is_terminal = sys.stderr.isatty() and not asked.json and not by_hand
    progress = RunProgress(len(plans), settings.servers, is_shown=is_terminal)

    async def work() -> bool:
        if by_hand:
            settings.by_hand = TypedTerminal(Lines())
        try:
            return await play_and_judge(plans, store, settings, progress.played)
        finally:
            if settings.by_hand is not None:
                settings.by_hand.lines.close()
            await settings.servers.close()

    try:
        with progress:
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
    unjudged, why = failed_evaluations(store, settings.judges)
    if unjudged:
        print(
            f"{unjudged} evaluations are missing ({why}); go on with: polyrhythm episodes resume {store.path}",
            file=sys.stderr,
        )
    if not all_done:
        failed, why = store.not_done()
        print(
            f"{failed} episodes are not done ({why}); go on with: polyrhythm episodes resume {store.path}",
            file=sys.stderr,
        )
    return 0 if all_done and not unjudged else 1
