"""`episodes show`: the list of a run's episodes, or one of them to read, with who saw what."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import msgspec

from nodes.episodes.judging.averages import mean_scores, overall
from nodes.episodes.results.store import EpisodeRow, Store
from nodes.episodes.talk.conduct import PromptRecord
from nodes.episodes.talk.plan import EpisodePlan
from nodes.episodes.talk.prompt import history_text, prompt_text, turn_text
from runtime.episode_msgs import Asks, Observation, Turn
from runtime.errors import UserError


def show(asked: argparse.Namespace) -> int:
    """Print the list, or one episode."""
    with Store.read(asked.run) as store:
        if asked.episode is None:
            if asked.json:
                rows = [msgspec.to_builtins(row) for row in store.episodes()]
                print(
                    msgspec.json.format(msgspec.json.encode({"card": store.card, "episodes": rows}), indent=1).decode()
                )
            else:
                print_list(store)
            return 0
        row = find_episode(store, asked.episode)
        if asked.json:
            print(msgspec.json.format(msgspec.json.encode(episode_data(store, row)), indent=1).decode())
        else:
            print(episode_text(store, row, prompts=asked.prompts))
    return 0


def find_episode(store: Store, name: str) -> EpisodeRow:
    """By name or by number. Raises UserError where there is none."""
    rows = store.episodes()
    for row in rows:
        if row.id == name or (name.isdecimal() and row.number == int(name)):
            return row
    raise UserError(f"{store.path}: there is no episode {name[:80]!r}; it has 0 to {len(rows) - 1}")


def print_list(store: Store) -> None:
    """A line for each episode, and the means."""
    rows = store.episodes()
    print(f"{'no':>4}  {'episode':44} {'agents':24} {'turns':>5}  {'GOAL':>9}  {'overall':>11}  end")
    for row in rows:
        scores = mean_scores(store.scores(row.id))
        goals = " ".join(f"{scores[name]['GOAL']:.1f}" for name in row.names if "GOAL" in scores.get(name, {}))
        alls = " ".join(f"{overall(scores[name]) or 0:.2f}" for name in row.names if name in scores)
        agents = ", ".join(dict.fromkeys(row.agents))
        count = len(store.turns(row.id))
        print(f"{row.number:>4}  {row.id:44.44} {agents:24.24} {count:>5}  {goals:>9}  {alls:>11}  {_end(row)}")
    done = sum(row.state == "done" for row in rows)
    print(f"{done} of {len(rows)} episodes done")


def _end(row: EpisodeRow) -> str:
    return row.reason or row.state


def episode_text(store: Store, row: EpisodeRow, *, prompts: bool = False) -> str:
    """One episode to read."""
    plan, turns = store.plan(row.id), store.turns(row.id)
    lines = [plan_text(plan), "", *transcript(plan, turns), "", f"End: {_end(row)}", ""]
    records = store.prompts(row.id)
    if records:
        lines += ["Who was shown what (turns in each prompt, besides the own briefing):"]
        lines += [
            f"  {plan.names[record.seat]}, ask {record.ask} at turn {record.turn}: {_ranges(record.held)}"
            + (f"  (prompt {record.sha})" if record.sha else "")
            for record in records
        ]
    if prompts:
        for record in records:
            lines += ["", f"--- prompt of {plan.names[record.seat]}, ask {record.ask}", held_text(plan, turns, record)]
    for scores in store.scores(row.id):
        lines += ["", f"Scores by {scores.judge}:" + (f" failed: {scores.why}" if scores.state == "failed" else "")]
        lines += [
            f"  {one.name:20} {one.dimension:5} {'-' if one.score is None else f'{one.score:g}':>4}  {one.reasoning}"
            for one in scores.scores
        ]
    return "\n".join(lines)


def plan_text(plan: EpisodePlan) -> str:
    """Scenario and participants, with goals and secrets: for readers, not for agents."""
    lines = [f"{plan.id}: {plan.scenario} ({plan.kind or 'no kind'}, {plan.relationship}), {plan.transparency}"]
    lines += ["", plan.context]
    for truth, agent in zip(plan.truths, plan.agents, strict=True):
        lines += ["", f"{truth.name}, played by {agent}", f"  goal: {truth.goal}"]
        lines += [f"  secret: {truth.secret}"] if truth.secret else []
    return "\n".join(lines)


def transcript(plan: EpisodePlan, turns: Sequence[Turn]) -> list[str]:
    """The turns to read; in asynchronous talk by the time when each began."""
    is_timed = plan.rules.order == "asynchronous"
    ordered = sorted(turns, key=lambda turn: (turn.at_s, turn.index)) if is_timed else turns
    return [
        (f"{turn.at_s:6.1f} s  " if is_timed else "")
        + turn_text(turn)
        + (f"  [{turn.note}]" if turn.note.startswith(("unreadable", "refused")) else "")
        for turn in ordered
    ]


def held_text(plan: EpisodePlan, turns: Sequence[Turn], record: PromptRecord) -> str:
    """What a prompt held, from the log alone: briefing and turns."""
    held = [turns[index] for index in record.held if index < len(turns)]
    briefing = plan.briefings[record.seat]
    if record.sha:
        asks: Asks = "bid" if plan.rules.order == "asynchronous" else "act"
        observation = Observation(episode=plan.id, ask=record.ask, turn=record.turn, asks=asks)
        return prompt_text(briefing, held, observation)
    return (
        f"{briefing.background}\n\nYou are {briefing.name}. Your private goal: {briefing.goal}\n\n{history_text(held)}"
    )


def episode_data(store: Store, row: EpisodeRow) -> dict[str, object]:
    """One episode as plain data, with its whole plan."""
    return {
        "episode": msgspec.to_builtins(row),
        "plan": msgspec.to_builtins(store.plan(row.id)),
        "turns": msgspec.to_builtins(store.turns(row.id)),
        "prompts": [
            {"seat": p.seat, "ask": p.ask, "turn": p.turn, "held": list(p.held), "sha": p.sha}
            for p in store.prompts(row.id)
        ],
        "scores": msgspec.to_builtins(store.scores(row.id)),
        "checks": store.checks(row.id),
    }


def _ranges(numbers: Sequence[int]) -> str:
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(f"{a + 1}" if a == b else f"{a + 1}-{b + 1}" for a, b in parts) or "nothing yet"
