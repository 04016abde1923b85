"""`episodes run`, `resume`, `score` and `sample`: from arguments to a run's file."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Any

import msgspec

from nodes.episodes.caller import Budget, Servers
from nodes.episodes.card import card_of
from nodes.episodes.dimensions import SEVEN, read_dimensions
from nodes.episodes.library import Library, read_folder
from nodes.episodes.loader import is_published, read_published
from nodes.episodes.plan import EpisodePlan
from nodes.episodes.planning import mode_of, order_of, plan_episode, starter_library, tasks_of
from nodes.episodes.profiles import Task
from nodes.episodes.progress import Live, Progress, Quiet
from nodes.episodes.rules import Rules, check
from nodes.episodes.runner import Judges, Settings, judge_unjudged, play_all
from nodes.episodes.sampling import sample_uniform
from nodes.episodes.store import Store
from runtime.clock import wall_time_text
from runtime.episode_msgs import Score
from runtime.errors import UserError, choices


def library_of(name: str) -> Library:
    """The starter set, or the library in a folder. Raises UserError."""
    if name == "starter":
        return starter_library()
    folder = Path(name)
    if not folder.is_dir():
        raise UserError(f"--tasks {name}: is no folder; expected starter, or a folder with characters and scenarios")
    if is_published(folder):
        return read_published(folder)
    return read_folder(folder)


def run(asked: argparse.Namespace) -> int:
    """Plan all episodes, play them, print what came out."""
    library = library_of(asked.tasks)
    plans = _plans(asked, library)
    judges = _judges(asked)
    settings = _settings(asked, judges)
    path = asked.out or Path("runs") / f"episodes-{wall_time_text()}.sqlite"
    spec = {"judges": list(judges.specs), "dimensions": msgspec.to_builtins(judges.dimensions)}
    with Store.create(path, spec) as store:
        store.add(plans)
        store.set_card(card_of(plans, judges.specs))
        return _play(plans, store, settings, asked)


def resume(asked: argparse.Namespace) -> int:
    """Play what is waiting or has failed, and judge what is not judged yet."""
    with Store.open(asked.run) as store:
        spec = store.spec
        judges = Judges(tuple(spec["judges"]), _dimensions_from(spec))
        settings = _settings(asked, judges)
        code = _play(store.unfinished(), store, settings, asked, quiet_end=True)
        asyncio.run(_finish_judging(store, settings))
        _print_run(store, asked, settings)
        return code


def score(asked: argparse.Namespace) -> int:
    """Judge done episodes again, or take in human ratings."""
    with Store.open(asked.run) as store:
        if asked.ratings is not None:
            count = _take_ratings(asked.ratings, store)
            print(f"{count} ratings taken in", file=sys.stderr)
            return 0
        judges = _judges(asked)
        settings = _settings(asked, judges)
        failed = asyncio.run(_judge_all(store, settings))
        _print_run(store, asked, settings)
        return 1 if failed else 0


def sample(asked: argparse.Namespace) -> int:
    """Print drawn tasks as JSONL."""
    library = library_of(asked.tasks)
    if asked.uniform is not None:
        tasks = sample_uniform(library, asked.uniform, seed=asked.seed)
    else:
        bare = Library(library.characters.values(), library.scenarios.values(), library.bonds, name=library.name)
        tasks = tasks_of(bare, per_scenario=asked.per_scenario, seed=asked.seed)
    for task in tasks:
        print(msgspec.json.encode(task).decode())
    return 0


def _plans(asked: argparse.Namespace, library: Library) -> list[EpisodePlan]:
    rules = Rules(order=order_of(asked.order), max_turns=asked.turns)
    check(rules)
    for name in ("seeds", "casts", "jobs"):
        if getattr(asked, name) < 1:
            raise UserError(f"--{name} is {getattr(asked, name)}; expected at least 1")
    tasks = tasks_of(library, per_scenario=asked.casts)
    if asked.task:
        known = {task.id for task in tasks} | {task.scenario for task in tasks}
        for name in asked.task:
            if name not in known:
                raise UserError(f"--task {name[:80]!r}: there is none; known: {choices({t.scenario for t in tasks})}")
        tasks = [task for task in tasks if task.id in asked.task or task.scenario in asked.task]
    pairings = [tuple(part.strip() for part in text.split(",")) for text in asked.agents or ["rules"]]
    if asked.swap:
        pairings += [tuple(reversed(pair)) for pair in pairings if len(pair) > 1 and pair[::-1] not in pairings]
    _check_agents(pairings)
    return [
        plan_episode(
            library,
            task,
            _seated(pairing, task),
            rules=rules,
            mode=mode_of(asked.mode),
            name_only=asked.name_only,
            seed=seed,
        )
        for pairing in pairings
        for task in tasks
        for seed in range(asked.seeds)
    ]


def _seated(pairing: tuple[str, ...], task: Task) -> tuple[str, ...]:
    """A pairing on the seats of a task: with more seats than agents the last one plays the rest."""
    count = len(task.characters)
    if len(pairing) > count:
        raise UserError(f"--agents {','.join(pairing)}: {len(pairing)} agents; task {task.id} has {count} seats")
    return pairing + pairing[-1:] * (count - len(pairing))


def _check_agents(pairings: list[tuple[str, ...]]) -> None:
    """Refuse an agent that cannot play before anything is played."""
    from nodes.episodes.brains import RULES, check_agent, read_script
    from nodes.episodes.caller import ModelSpec

    for spec in {agent for pairing in pairings for agent in pairing}:
        check_agent(spec)
        if spec.startswith("script:"):
            read_script(Path(spec.removeprefix("script:")))
        elif spec.startswith("replay:"):
            Store.read(Path(spec.removeprefix("replay:").partition("#")[0])).close()
        elif spec not in RULES and spec != "human":
            ModelSpec.parse(spec)


def _judges(asked: argparse.Namespace) -> Judges:
    specs = tuple(dict.fromkeys(part.strip() for part in asked.judges.split(",") if part.strip()))
    if not specs:
        raise UserError("--judges is empty; expected rules, MODEL or MODEL@URL")
    from nodes.episodes.caller import ModelSpec

    for spec in specs:
        if spec != "rules":
            ModelSpec.parse(spec, temperature=0.0)
    return Judges(specs, read_dimensions(asked.dimensions) if asked.dimensions else SEVEN)


def _dimensions_from(spec: dict[str, Any]) -> Any:
    from nodes.episodes.dimensions import Dimension

    return msgspec.convert(spec["dimensions"], tuple[Dimension, ...])


def _settings(asked: argparse.Namespace, judges: Judges) -> Settings:
    try:
        prompt_price, completion_price = (float(part) for part in asked.prices.split(","))
    except ValueError as problem:
        raise UserError(f"--prices {asked.prices}: expected two numbers like 2.5,10") from problem
    budget = Budget(
        max_calls=asked.max_calls,
        max_tokens=asked.max_tokens,
        max_money=asked.max_money,
        prompt_price=prompt_price,
        completion_price=completion_price,
    )
    servers = Servers(budget=budget, calls_per_minute=asked.rate, deadline_s=asked.deadline)
    return Settings(servers, judges, jobs=asked.jobs, temperature=asked.temperature, stream=asked.stream)


def _play(
    plans: list[EpisodePlan], store: Store, settings: Settings, asked: argparse.Namespace, *, quiet_end: bool = False
) -> int:
    by_hand = any("human" in plan.agents for plan in plans)
    if by_hand:
        settings.jobs = 1
    is_terminal = sys.stderr.isatty() and not asked.json and not by_hand
    progress: Progress = Live(len(plans), settings.servers) if is_terminal else Quiet()

    async def work() -> bool:
        try:
            return await play_all(plans, store, settings, progress.played)
        finally:
            await settings.servers.close()

    try:
        with progress:
            all_done = asyncio.run(work())
    except KeyboardInterrupt:
        print(f"stopped; go on with: polyrhythm episodes resume {store.path}", file=sys.stderr)
        return 130
    if not quiet_end:
        _print_run(store, asked, settings)
    if not all_done:
        failed = [row for row in store.episodes() if row.state != "done"]
        why = next((row.reason for row in failed if row.reason), "not played")
        print(
            f"{len(failed)} episodes are not done ({why}); go on with: polyrhythm episodes resume {store.path}",
            file=sys.stderr,
        )
    return 0 if all_done else 1


async def _finish_judging(store: Store, settings: Settings) -> None:
    try:
        await judge_unjudged(store, settings)
    finally:
        await settings.servers.close()


async def _judge_all(store: Store, settings: Settings) -> int:
    """Judge every done episode anew with these judges; how many evaluations failed."""
    from nodes.episodes.checks import check_episode
    from nodes.episodes.runner import evaluate

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
        raise UserError(f"{path}: cannot be read: {problem}") from problem
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            row = msgspec.json.decode(line, type=Rating)
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


class Rating(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of a file of human ratings."""

    episode: str
    rater: str
    name: str
    dimension: str
    score: float


def summary_of(store: Store) -> dict[str, Any]:
    """What a run has come to; the same for the same run, so no times of day, no paths, no durations."""
    from nodes.episodes.averages import mean_scores

    episodes = []
    for row in store.episodes():
        scores = store.scores(row.id)
        episodes.append(
            {
                "id": row.id,
                "task": row.task,
                "seed": row.seed,
                "agents": list(row.agents),
                "names": list(row.names),
                "transparency": row.transparency,
                "order": row.turn_order,
                "state": row.state,
                "reason": row.reason,
                "turns": [
                    {"speaker": t.speaker, "kind": t.kind, "argument": t.argument, "to": list(t.to), "note": t.note}
                    for t in store.turns(row.id)
                ],
                "scores": mean_scores(scores),
                "evaluations": {one.judge: one.state for one in scores},
                "checks": store.checks(row.id),
            }
        )
    calls, prompt_tokens, completion_tokens = store.tokens()
    return {
        "card": store.card,
        "episodes": episodes,
        "calls": calls,
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
    }


def _print_run(store: Store, asked: argparse.Namespace, settings: Settings) -> None:
    if asked.json:
        print(msgspec.json.format(msgspec.json.encode(summary_of(store)), indent=1).decode())
        return
    from nodes.episodes.show import print_list

    print_list(store)
    budget = settings.servers.budget
    if budget.calls:
        cost = f", {budget.money:.4f} in money" if budget.money else ""
        tokens = f"{budget.prompt_tokens} + {budget.completion_tokens} tokens"
        print(f"{budget.calls} calls, {tokens}{cost}, {settings.servers.retries} retries")
    print(f"\nrun: {store.path}")
