"""`episodes sessions`: several meetings of the same two, who remember nothing, a summary, or all."""

from __future__ import annotations

import argparse
import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Sequence
from statistics import mean
from typing import Any, Literal, cast, get_args

import msgspec

from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.dialogue.planning import plan_episode, tasks_of
from nodes.episodes.dialogue.prompt import history_text
from nodes.episodes.dialogue.rules import EpisodeRules
from nodes.episodes.results.figures import interval_text, values_of
from nodes.episodes.results.store import Store
from nodes.episodes.runner.runner import Judges, Settings, play_and_keep
from nodes.episodes.scenarios.library import Library, library_of
from nodes.episodes.scenarios.profiles import Task
from nodes.models.servers import Servers
from nodes.msgs.episode import Turn
from nodes.statistics.paired import paired_difference
from runtime.errors import UserError, choices

Memory = Literal["none", "summary", "full"]
MEMORIES: tuple[Memory, ...] = get_args(Memory)


def meetings_of(
    library: Library, task: Task, scenarios: Sequence[str], agents: Sequence[str], memory: Memory, seed: int, turns: int
) -> list[EpisodePlan]:
    """The plans of one session: the task's two people in one scenario after the other. Raises UserError."""
    plans = []
    for number, scenario in enumerate(scenarios):
        digest = hashlib.sha256(f"{task.id} {scenario} {memory}".encode()).hexdigest()[:8]
        met = Task(id=f"meeting-{number + 1}-{digest}", scenario=scenario, characters=task.characters)
        one = plan_episode(library, met, agents, rules=EpisodeRules(max_turns=turns), seed=seed)
        plans.append(msgspec.structs.replace(one, tags=(f"session {task.id} {seed}", memory, f"meeting {number + 1}")))
    return plans


def remembering(
    plan: EpisodePlan, earlier: Sequence[tuple[EpisodePlan, Sequence[Turn]]], memory: Memory
) -> EpisodePlan:
    """The plan with what each remembers of earlier meetings in its own background, and nobody else's."""
    if memory == "none" or not earlier:
        return plan
    briefings = []
    for briefing in plan.briefings:
        parts = []
        for number, (before, turns) in enumerate(earlier, start=1):
            heard = [turn for turn in turns if turn.is_for(briefing.name)]
            told = history_text(heard) if memory == "full" else _summary(before, heard)
            parts.append(f"Your meeting {number} with the same person: {before.context}\n{told}")
        text = "\n\n".join((briefing.background, *parts))
        briefings.append(msgspec.structs.replace(cast(Any, briefing), background=text))
    return msgspec.structs.replace(plan, briefings=tuple(briefings))


def _summary(plan: EpisodePlan, turns: Sequence[Turn]) -> str:
    """Without a model: how many turns it took, and the last words of each."""
    last = {turn.speaker: turn.argument for turn in turns if turn.kind == "speak"}
    said = " ".join(f'{name} said in the end: "{text}"' for name, text in last.items())
    return f"It took {len(turns)} turns. {said}"


async def play_session(plans: Sequence[EpisodePlan], memory: Memory, store: Store, settings: Settings) -> None:
    """One meeting after the other; those that are done are not played again."""
    earlier: list[tuple[EpisodePlan, Sequence[Turn]]] = []
    for plan in plans:
        if store.episode(plan.id).state != "done":
            whole = remembering(plan, earlier, memory)
            store.set_plan(whole)
            outcome = await play_and_keep(whole, store, settings)
            if outcome.state != "done":
                return
        earlier.append((plan, store.turns(plan.id)))


def gains(store: Store) -> dict[str, Any]:
    """By memory: the mean goal of each meeting, and the gain of the last over the first with its interval."""
    tags = {row.id: store.plan(row.id).tags for row in store.episodes()}
    goals: dict[str, dict[str, dict[int, list[float]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for value in values_of(store):
        session, memory, meeting = tags[value.episode]
        if "GOAL" in value.scores:
            goals[memory][session][int(meeting.split()[1])].append(value.scores["GOAL"])
    found: dict[str, Any] = {}
    for memory, sessions in goals.items():
        numbers = sorted({number for one in sessions.values() for number in one})
        means = {n: mean([goal for one in sessions.values() for goal in one.get(n, [])]) for n in numbers}
        whole = [one for one in sessions.values() if len(one) == len(numbers)]
        pairs = [[mean(one[numbers[-1]]) - mean(one[numbers[0]])] for one in whole]
        gain = paired_difference(pairs, estimate=lambda all_: float(all_.mean()), resamples=2000) if pairs else None
        found[memory] = {"goal": means, "gain": msgspec.to_builtins(gain), "sessions": len(sessions)}
    return found


def sessions(asked: argparse.Namespace) -> int:
    """Play sessions that are not played, and tell the gain over meetings."""
    library = library_of(asked.tasks)
    tasks = {task.scenario: task for task in tasks_of(library)}
    names = asked.scenario or [name for name, task in tasks.items() if library.scenarios[name].deal][:3]
    for name in names:
        if name not in tasks or len(tasks[name].characters) != 2:
            raise UserError(f"--scenario {name!r}: is none of two seats; known: {choices(tasks)}")
    settings = Settings(Servers(), Judges((asked.judges,)))
    task, agents, memories = tasks[names[0]], asked.agents.split(","), asked.memory or list(MEMORIES)
    sessions = [
        (memory, meetings_of(library, task, names, agents, memory, seed, asked.turns))
        for memory in memories
        for seed in range(asked.seeds)
    ]
    spec = {"judges": [asked.judges], "sessions": [names, agents, memories, asked.seeds, asked.turns]}
    with Store.open(asked.out) if asked.out.exists() else Store.create(asked.out, spec) as store:
        if store.spec != spec:
            raise UserError(f"{asked.out}: was begun with other arguments; name another file")
        store.add([plan for _, plans in sessions for plan in plans])

        async def play() -> None:
            async with settings.servers:
                for memory, plans in sessions:
                    await play_session(plans, memory, store, settings)

        asyncio.run(play())
        found, missing = gains(store), sum(row.state != "done" for row in store.episodes())
    if asked.json:
        print(msgspec.json.encode(found).decode())
    else:
        for memory, one in found.items():
            means = "  ".join(f"meeting {number}: {goal:.2f}" for number, goal in one["goal"].items())
            print(f"{memory:8} {means}  gain {interval_text(one['gain'], 'estimate')} over {one['sessions']} sessions")
    if missing:
        print(f"{missing} meetings were not played; the same command goes on")
    return 1 if missing else 0
