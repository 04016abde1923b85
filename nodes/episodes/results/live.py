"""`LiveLog`: the results file of an episode of a launch file, in which every answer is committed before it is used.

A step is a seat's answer or the end of a pause, with its time; a moderator that takes the steps again stands where the
killed one stood.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from nodes.episodes.agents.agent_spec import agent_of
from nodes.episodes.dialogue.moderator import LoggedStep
from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.dialogue.turn_based import PromptRecord
from nodes.episodes.results.card import card_of
from nodes.episodes.results.run_file import to_json
from nodes.episodes.results.store import Store
from runtime.errors import UserError
from runtime.msgs.episode import Outcome, Scores, Turn

UNKNOWN = "nobody yet"
"""Who plays a seat that has not answered."""


class LiveLog:
    """An open results file with one episode. Raises UserError where the file holds something else, or is complete."""

    def __init__(self, path: Path, plan: EpisodePlan) -> None:
        self._store = _opened(path, msgspec.structs.replace(plan, agents=(UNKNOWN,) * len(plan.agents)))
        self._plan = self._store.plan(plan.id)
        found = self._store.db.execute("SELECT step FROM steps WHERE episode = ? ORDER BY idx", (plan.id,))
        self.steps = [msgspec.json.decode(row[0], type=LoggedStep) for row in found]
        self.turns = self._store.turns(plan.id)
        self._count = len(self.steps)

    def note(self, step: LoggedStep) -> None:
        """Commit a step, before anything follows from it."""
        with self._store.db:
            self._store.db.execute("INSERT INTO steps VALUES (?,?,?)", (self._plan.id, self._count, to_json(step)))
        self._count += 1

    def note_player(self, seat: int, provenance: str) -> None:
        """Keep who plays a seat, which no launch file tells; two that took turns at it are both named."""
        agent = agent_of(provenance)
        known = self._plan.agents[seat]
        if agent in known.split(" + "):
            return
        agents, truths = list(self._plan.agents), list(self._plan.truths)
        agents[seat] = agent if known == UNKNOWN else f"{known} + {agent}"
        truths[seat] = msgspec.structs.replace(truths[seat], is_human="human" in agents[seat].split(" + "))
        self._plan = msgspec.structs.replace(self._plan, agents=tuple(agents), truths=tuple(truths))
        self._store.set_plan(self._plan)
        self._store.set_card(card_of([self._plan], [scores.judge for scores in self._store.scores(self._plan.id)]))

    def save_turns(self, turns: Sequence[Turn]) -> None:
        """Keep turns as they happen, for whoever reads along."""
        self._store.save_turns(self._plan.id, turns)

    def save_played(self, turns: Sequence[Turn], prompts: Sequence[PromptRecord], outcome: Outcome) -> None:
        """Keep the whole episode and, where it is done, what rules can tell of it."""
        from nodes.episodes.evaluation.checks import check_episode

        self._store.save_played(self._plan.id, turns, prompts, outcome)
        if outcome.state == "done":
            self._store.save_checks(self._plan.id, check_episode(self._plan, turns))

    def save_scores(self, scores: Scores) -> None:
        """Keep the judge's scores, and name the judge on the simulation card."""
        self._store.save_scores(scores)
        self._store.set_card(card_of([self._plan], [scores.judge]))

    def close(self) -> None:
        """Let others write the file."""
        self._store.close()


def _opened(path: Path, plan: EpisodePlan) -> Store:
    if not path.exists():
        store = Store.create(path, {"judges": [], "dimensions": [], "is_live": True})
        store.add([plan])
        store.set_card(card_of([plan], []))
        return store
    store = Store.open(path)
    try:
        _check(store, plan)
    except UserError:
        store.close()
        raise
    return store


def _check(store: Store, plan: EpisodePlan) -> None:
    rows = store.episodes()
    another = f"read it with: polyrhythm episodes show {store.path}, or name another file"
    if not store.spec.get("is_live"):
        raise UserError(
            f"{store.path}: is of polyrhythm episodes run; go on with: polyrhythm episodes resume {store.path}, "
            "or name another file"
        )
    if rows and rows[0].id != plan.id:
        raise UserError(
            f"{store.path}: holds the episode {rows[0].id}, and this launch file plays {plan.id}; {another}"
        )
    if rows and rows[0].state == "done" and any(one.state == "done" for one in store.scores(plan.id)):
        raise UserError(f"{store.path}: its episode is over ({rows[0].reason}); {another}")
    if not rows:  # killed before there was anything to play
        store.add([plan])
