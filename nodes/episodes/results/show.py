"""`episodes show`: the list of a run's episodes, or one of them to read, with who saw what."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Callable, Sequence

import msgspec

from nodes.episodes.agents.seat_caller import sha_of
from nodes.episodes.dialogue.package_prompts import PackagePrompts, prompts_in
from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.dialogue.prompt import history_text, prompt_text, turn_text
from nodes.episodes.dialogue.turn_based import PromptRecord
from nodes.episodes.evaluation.dimensions import mean_scores, overall
from nodes.episodes.results.store import EpisodeRow, Store
from nodes.msgs.episode import Asks, Briefing, Observation, Turn
from runtime.command_line.columns import columns
from runtime.errors import UserError
from runtime.supervision.view import terminal_width

WIDE = 110
"""Fewer columns than these have no room for the episodes' whole names."""


def show(asked: argparse.Namespace) -> int:
    """Print the list, or one episode."""
    with Store.read(asked.run) as store:
        if asked.episode is None:
            if asked.json:
                rows = [msgspec.to_builtins(row) for row in store.episodes()]
                print_json({"card": store.card, "episodes": rows})
            else:
                print_list(store)
            return 0
        row = find_episode(store, asked.episode)
        if asked.json:
            print_json(episode_data(store, row))
        else:
            print(folded(episode_text(store, row, prompts=asked.prompts), terminal_width()))
    return 0


def print_json(value: object) -> None:
    """To standard output, for people and scripts."""
    print(msgspec.json.format(msgspec.json.encode(value), indent=1).decode())


def find_episode(store: Store, name: str) -> EpisodeRow:
    """By name, its beginning, or number. Raises UserError where there is none, or more than one."""
    rows = store.episodes()
    for row in rows:
        if row.id == name or (name.isdecimal() and row.number == int(name)):
            return row
    begun = [row for row in rows if name and (row.id.startswith(name) or row.codename == name)]
    if len(begun) == 1:
        return begun[0]
    several = f"{len(begun)} episodes begin with {name[:80]!r}" if begun else f"there is no episode {name[:80]!r}"
    numbers = ", ".join(str(row.number) for row in begun[:9]) or f"0 to {len(rows) - 1}"
    raise UserError(f"{store.path}: {several}; expected a name or a number: {numbers}")


def print_list(store: Store) -> None:
    """A line for each episode, as wide as the terminal at most; who plays, once where it is the same everywhere."""
    rows, width = store.episodes(), terminal_width()
    players = [", ".join(dict.fromkeys(row.agents)) for row in rows]
    is_one = len(set(players)) == 1
    is_narrow = width is not None and width < WIDE
    table = [("no", "episode", *(() if is_one else ("agents",)), "turns", "GOAL", "overall", "end")]
    for row, agents in zip(rows, players, strict=True):
        scores = mean_scores(store.scores(row.id))
        goals = " ".join(f"{scores[name]['GOAL']:.3g}" for name in row.names if "GOAL" in scores.get(name, {}))
        alls = " ".join(
            ("-" if (mean := overall(scores[name])) is None else f"{mean:.2f}") for name in row.names if name in scores
        )
        name = f"{row.codename or row.scenario} s{row.seed}" if is_narrow else row.label
        who = () if is_one else (agents if len(agents) <= 24 else agents[:23] + "…",)
        table.append((str(row.number), name, *who, str(len(store.turns(row.id))), goals, alls, _end(row)))
    if is_one:
        print(f"played by {players[0]}")
    for line in columns(table, ("episode", "agents", "end")):
        print(line if width is None or len(line) <= width else line[: width - 1] + "…")
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
            f"  {plan.names[record.seat]}, ask {record.ask} at turn {record.turn}: {turn_ranges(record.held)}"
            + (f"  (prompt {record.sha})" if record.sha else "")
            for record in records
        ]
    if prompts:
        sent = {(seat, sha_of(prompt)): prompt for seat, _, _, _, prompt, _ in store.calls(row.id)}
        for record in records:
            lines += ["", f"--- prompt of {plan.names[record.seat]}, ask {record.ask}"]
            lines.append(sent.get((record.seat, record.sha)) or held_text(plan, turns, record, prompts_in(store.spec)))
    for scores in store.scores(row.id):
        lines += ["", f"Scores by {scores.judge}:" + (f" failed: {scores.why}" if scores.state == "failed" else "")]
        lines += [
            f"  {one.name:20} {one.dimension:5} {'-' if one.score is None else f'{one.score:g}':>4}  {one.reasoning}"
            for one in scores.scores
        ]
    return "\n".join(lines)


def folded(text: str, width: int | None) -> str:
    """Every line broken between words at that width; below it, but for plain paragraphs, four deeper."""
    if width is None:
        return text
    lines = []
    for line in text.split("\n"):
        depth = len(line) - len(line.lstrip())
        indent = " " * (depth + 4) if depth or line.startswith("Turn ") else ""
        lines += textwrap.wrap(line, width, subsequent_indent=indent, break_on_hyphens=False) or [""]
    return "\n".join(lines)


def plan_text(plan: EpisodePlan) -> str:
    """Scenario and participants, with goals and secrets: for readers, not for agents."""
    scenario = plan.codename or plan.scenario
    lines = [f"{plan.id}: {scenario} ({plan.kind or 'no kind'}, {plan.relationship}), {plan.transparency}"]
    lines += ["", plan.context]
    for truth, agent in zip(plan.truths, plan.agents, strict=True):
        lines += ["", f"{truth.name}, played by {agent}", f"  goal: {truth.goal}"]
        lines += [f"  secret: {truth.secret}"] if truth.secret else []
    return "\n".join(lines)


def transcript(plan: EpisodePlan, turns: Sequence[Turn]) -> list[str]:
    """The turns to read; in asynchronous talk by the time when each began."""
    is_timed = plan.rules.order == "asynchronous"
    numbers = {turn.index: turn.number for turn in turns}
    ordered = sorted(turns, key=lambda turn: (turn.at_s, turn.index)) if is_timed else turns
    return [
        (f"{turn.at_s:6.1f} s  " if is_timed else "")
        + turn_text(turn)
        + (f"  (because of turn {numbers[turn.because]})" if turn.because in numbers else "")
        + (f"  [{turn.note}]" if turn.fault else "")
        for turn in ordered
    ]


MakePrompt = Callable[[Briefing, Sequence[Turn], Observation], str]


def held_text(
    plan: EpisodePlan, turns: Sequence[Turn], record: PromptRecord, like: PackagePrompts | None = None
) -> str:
    """What a prompt held, from the log alone: briefing and turns."""
    if record.sha:
        return made_prompt(plan, turns, record, like.act_prompt if like else prompt_text)
    held = [turns[index] for index in record.held if index < len(turns)]
    briefing = plan.briefings[record.seat]
    told = msgspec.json.encode({name: value for name, value in msgspec.to_builtins(briefing.facts).items() if value})
    return (
        f"{briefing.background}\n\nYou are {briefing.name}. Your private goal: {briefing.goal}\n"
        f"What the scenario tells a player by rules: {told.decode()}\n\n{history_text(held)}"
    )


def made_prompt(plan: EpisodePlan, turns: Sequence[Turn], record: PromptRecord, make: MakePrompt) -> str:
    """What a model on that seat would have been shown: from the turns that the player held."""
    is_free = plan.rules.order == "asynchronous"
    is_last = record.turn >= plan.rules.max_turns - (0 if is_free else len(plan.names) - 1)
    asks: Asks = "bid" if is_free else "act"
    observation = Observation(episode=plan.id, ask=record.ask, turn=record.turn, asks=asks, is_last=is_last)
    held = [turns[index] for index in record.held if index < len(turns)]
    return make(plan.briefings[record.seat], held, observation)


def episode_data(store: Store, row: EpisodeRow) -> dict[str, object]:
    """One episode as plain data, with its whole plan."""
    return {
        "episode": msgspec.to_builtins(row),
        "plan": msgspec.to_builtins(store.plan(row.id)),
        "turns": msgspec.to_builtins(store.turns(row.id)),
        "prompts": msgspec.to_builtins(store.prompts(row.id)),
        "scores": msgspec.to_builtins(store.scores(row.id)),
        "checks": store.checks(row.id),
    }


def turn_ranges(numbers: Sequence[int]) -> str:
    """Turns by their indices from 0, as people count them: "1-3, 5"."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(f"{a + 1}" if a == b else f"{a + 1}-{b + 1}" for a, b in parts) or "nothing yet"
