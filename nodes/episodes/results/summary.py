"""`summary_of`: a whole run as plain data, for `--json`."""

from __future__ import annotations

from typing import Any

from nodes.episodes.evaluation.averages import mean_scores
from nodes.episodes.results.store import Store


def summary_of(store: Store) -> dict[str, Any]:
    """What a run has come to; the same for the same run, so no times of day, no paths, no durations."""
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
