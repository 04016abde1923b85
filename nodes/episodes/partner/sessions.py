"""`episodes sessions`: several meetings of the same two, who remember nothing, a summary, or all."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Literal, cast

import msgspec

from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.dialogue.planning import plan_episode
from nodes.episodes.dialogue.prompt import history_text
from nodes.episodes.dialogue.rules import EpisodeRules
from nodes.episodes.results.figures import values_of
from nodes.episodes.results.store import Store
from nodes.episodes.runner.runner import Settings, play_and_keep
from nodes.episodes.scenarios.library import Library
from nodes.episodes.scenarios.profiles import Task
from nodes.statistics.paired import paired_difference
from runtime.msgs.episode import Turn

Memory = Literal["none", "summary", "full"]
MEMORIES: tuple[Memory, ...] = ("none", "summary", "full")


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
    goals: dict[str, dict[str, dict[int, list[float]]]] = {}
    for value in values_of(store):
        session, memory, meeting = tags[value.episode]
        if "GOAL" in value.scores:
            of = goals.setdefault(memory, {}).setdefault(session, {})
            of.setdefault(int(meeting.split()[1]), []).append(value.scores["GOAL"])
    found: dict[str, Any] = {}
    for memory, sessions in goals.items():
        numbers = sorted({number for one in sessions.values() for number in one})
        means = {n: _mean([goal for one in sessions.values() for goal in one.get(n, [])]) for n in numbers}
        whole = [one for one in sessions.values() if len(one) == len(numbers)]
        pairs = [[_mean(one[numbers[-1]]) - _mean(one[numbers[0]])] for one in whole]
        gain = paired_difference(pairs, estimate=lambda all_: float(all_.mean()), resamples=2000) if pairs else None
        found[memory] = {"goal": means, "gain": msgspec.to_builtins(gain), "sessions": len(sessions)}
    return found


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
