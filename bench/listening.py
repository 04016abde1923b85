"""Do the offline agents listen? `python -m bench.listening`: twenty seeds of every scenario of the starter set.

Two questions, answered by a table: does GOAL vary over the seeds, and does the first seat's GOAL change when the same
lines of the others come in another order? The second is asked with the others' lines as a script, once as they were
said and once shuffled.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Sequence
from pathlib import Path

from bench import marked
from nodes.episodes.agents.agent import RulesBrain, ScriptedBrain
from nodes.episodes.dialogue.observation import Brain
from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.dialogue.planning import plan_episode, tasks_of
from nodes.episodes.evaluation.by_rules import judge_by_rules
from nodes.episodes.runner.runner import conduct_episode
from nodes.episodes.scenarios.library import starter
from nodes.msgs.episode import Act, Turn

SEEDS = 20
PAGE = Path(__file__).resolve().parents[1] / "docs" / "episodes-listening.md"
BEGIN, END = "<!-- listening: begin, written by python -m bench.listening --write -->", "<!-- listening: end -->"


def played(plan: EpisodePlan, brains: Sequence[Brain]) -> list[Turn]:
    """The turns of an episode with these brains."""
    return asyncio.run(conduct_episode(plan, brains, [])).turns


def goals(plan: EpisodePlan, turns: Sequence[Turn]) -> tuple[float | None, ...]:
    """GOAL of each seat by rules; None: not judged."""
    found = {one.name: one.score for one in judge_by_rules(plan, turns).scores if one.dimension == "GOAL"}
    return tuple(found[name] for name in plan.names)


def listens(scenario: str, seeds: int = SEEDS) -> tuple[int, int]:
    """How many different GOALs the seeds have, and for how many seeds the order of the others' lines matters."""
    library = starter()
    task = next(task for task in tasks_of(library) if task.scenario == scenario)
    seen: set[tuple[float | None, ...]] = set()
    changed = 0
    for seed in range(seeds):
        plan = plan_episode(library, task, ["rules"], seed=seed)
        turns = played(plan, [RulesBrain() for _ in plan.names])
        seen.add(goals(plan, turns))
        chance = random.Random(seed)
        as_said, shuffled = list[Brain](), list[Brain]()
        for name in plan.names[1:]:
            acts = [Act(kind=turn.kind, argument=turn.argument) for turn in turns if turn.speaker == name]
            as_said.append(ScriptedBrain(acts))
            shuffled.append(ScriptedBrain(chance.sample(acts, len(acts))))
        first, second = played(plan, [RulesBrain(), *as_said]), played(plan, [RulesBrain(), *shuffled])
        changed += goals(plan, first)[0] != goals(plan, second)[0]
    return len(seen), changed


def main() -> int:
    """Print the table as Markdown, with --write into the page, too.

    Returns 1 where fewer than 30 scenarios of the first 45 vary, or listen.
    """
    scenarios = list(starter().scenarios)
    found = {scenario: listens(scenario) for scenario in scenarios}
    varying = sum(found[one][0] > 1 for one in scenarios)
    listening = sum(found[one][1] > 0 for one in scenarios)
    text = [
        f"GOAL varies over {SEEDS} seeds in {varying} of {len(scenarios)} scenarios. In {listening} of {len(scenarios)}"
        " the order of the others' lines\nchanges the first seat's GOAL for one seed or more.",
        "",
        "| scenario | different GOALs | seeds of 20 for which the order matters |",
        "|---|---|---|",
        *(f"| {scenario} | {values} | {changed} |" for scenario, (values, changed) in found.items()),
    ]
    print(*text, sep="\n")
    if "--write" in sys.argv[1:]:
        marked.write(PAGE, BEGIN, END, "\n".join(text))
    is_good = all(sum(found[one][row] > least for one in scenarios[:45]) >= 30 for row, least in ((0, 1), (1, 0)))
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
