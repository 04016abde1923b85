"""`episodes dataset`: the prompts that were shown and the acts that followed, as training data with a card.

A folder: train.jsonl and held_out.jsonl (whole tasks), decisions.jsonl (why each seat of each episode is in or out),
README.md (the card, which the loaders of `datasets` read). The folder appears whole or not at all.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Literal

import msgspec

from nodes.episodes.agents.agent_spec import AgentSpec
from nodes.episodes.agents.seat_caller import sha_of
from nodes.episodes.dialogue.plan import EpisodePlan
from nodes.episodes.dialogue.prompt import prompt_text, small_prompt_text
from nodes.episodes.dialogue.turn_based import PromptRecord
from nodes.episodes.evaluation.encoders import token_counter
from nodes.episodes.learning.filters import FilterDecision, best_of_runs, decide
from nodes.episodes.results.store import Store
from nodes.models.budget import estimated_tokens
from runtime.command_line.arguments import check_new
from runtime.errors import UserError
from runtime.msgs.episode import Asks, Observation, Turn

TRAIN, HELD_OUT, DECISIONS, CARD = "train.jsonl", "held_out.jsonl", "decisions.jsonl", "README.md"
PROMPTS = {"full": prompt_text, "small": small_prompt_text}
Mix = Literal["all", "best"]
PromptKind = Literal["shown", "full", "small"]


class Pair(msgspec.Struct, frozen=True):
    """One prompt and the act that followed it."""

    episode: str
    task: str
    seat: int
    turn: int
    prompt: str
    act: str
    is_shown: bool  # the prompt is the text that a model was given; else it was made for a player by rules


def write_dataset(
    runs: Sequence[Path],
    folder: Path,
    filter_name: str,
    *,
    format_name: str = "alpaca",
    prompts: PromptKind = "shown",
    judge: str = "",
    agent: str = "",
    held_out: float = 0.0,
    most_tokens: int = 0,
    mix: Mix = "all",
    tokenizer: Path | None = None,
    by: str = "GOAL",
    key_turns: tuple[str, float] | None = None,
) -> dict[str, Any]:
    """Filter runs and write their data; the statistics that the card holds. Raises UserError where nothing is kept.

    `mix`: of several runs all that is kept, or task by task what is kept of the run that is rated highest.
    `by`: what the filter goes by. `key_turns`: of a kept seat only the turns that have such a score or more.
    `tokenizer`: a folder of a model, or its tokenizer.json, by which pairs are measured; None: estimates.
    """
    tokens = token_counter(tokenizer) if tokenizer else lambda text: estimated_tokens(len(text))
    named = " and ".join(str(path) for path in runs)
    check_new(folder)
    if len({path.resolve() for path in runs}) < len(runs):
        raise UserError(f"{', '.join(map(str, runs))}: a run is named twice")
    with contextlib.ExitStack() as stack:
        stores = [stack.enter_context(Store.read(run)) for run in runs]
        of_runs = [decide(store, filter_name, judge=judge, agent=agent, by=by) for store in stores]
        if mix == "best":
            of_runs = best_of_runs(list(zip(stores, of_runs, strict=True)))
        of_runs = [
            [msgspec.structs.replace(one, run=run.name) for one in of_run]
            for run, of_run in zip(runs, of_runs, strict=True)
        ]
        decisions = [one for of_run in of_runs for one in of_run]
        kept = [one for one in decisions if one.is_kept]
        if not kept:
            reasons = sorted({one.why for one in decisions})
            raise UserError(
                f"{named}: the filter {filter_name} keeps nothing: {reasons[0] if reasons else 'no episode'}"
            )
        pairs = [
            pair
            for store, of_run in zip(stores, of_runs, strict=True)
            for one in of_run
            if one.is_kept
            for pair in pairs_of(store, one, prompts, key_turns)
        ]
        judges = [judge] if judge else sorted({one for store in stores for one in store.judges()})
    lengths = {id(pair): tokens(pair.prompt) + tokens(pair.act) for pair in pairs}
    fitting = [pair for pair in pairs if not most_tokens or lengths[id(pair)] <= most_tokens]
    apart = held_out_tasks([pair.task for pair in fitting], held_out)
    train = [pair for pair in fitting if pair.task not in apart]
    held = [pair for pair in fitting if pair.task in apart]
    if not train:
        raise UserError(f"{named}: no pair is left to train on ({len(pairs)} kept, {len(fitting)} short enough)")
    sizes = sorted(lengths[id(pair)] for pair in fitting)
    statistics: dict[str, Any] = {
        "run": ", ".join(path.name for path in runs),
        "filter": filter_name,
        "format": format_name,
        "judges": judges,
        "agent": agent or "all",
        "by": by,
        **({"key_turns": f"{key_turns[0]} of {key_turns[1]:g} or more"} if key_turns else {}),
        "conversations": len({(one.run, one.episode) for one in decisions}),
        "conversations_kept": len({(one.run, one.episode) for one in kept}),
        "seats": len(decisions),
        "seats_kept": len(kept),
        "kept_by_seat": {str(s): sum(one.seat == s for one in kept) for s in sorted({one.seat for one in decisions})},
        "tasks": len({one.task for one in kept}),
        "train_pairs": len(train),
        "held_out_pairs": len(held),
        "held_out_tasks": sorted(apart),
        "pairs_too_long": len(pairs) - len(fitting),
        "prompts_as_shown": sum(pair.is_shown for pair in fitting),
        "tokens" if tokenizer else "tokens_estimated": {
            "median": median(sizes),
            "longest": sizes[-1],
            "sum": sum(sizes),
        },
        "goal_of_kept": round(sum(one.goal or 0.0 for one in kept) / len(kept), 3),
    }
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir(parents=True)
        _write(part / TRAIN, (row_of(pair, format_name) for pair in train))
        _write(part / HELD_OUT, (row_of(pair, format_name) for pair in held))
        _write(part / DECISIONS, decisions)
        (part / CARD).write_text(card_text(statistics), encoding="utf-8")
        (part / "statistics.json").write_bytes(msgspec.json.format(msgspec.json.encode(statistics), indent=1))
        part.rename(folder)
    except OSError as problem:
        raise UserError(f"--out {folder}: cannot be written: {problem.strerror}") from problem
    return statistics


def pairs_of(
    store: Store, kept: FilterDecision, prompts: PromptKind, key_turns: tuple[str, float] | None = None
) -> Iterator[Pair]:
    """The pairs of one seat of one episode: no failed turns, no silence that the rules forced."""
    plan, turns = store.plan(kept.episode), store.turns(kept.episode)
    if key_turns is not None:
        scored: dict[int, list[float]] = {}
        for one in store.turn_scores(kept.episode):
            if one.dimension == key_turns[0]:
                scored.setdefault(one.turn, []).append(one.score)
        turns_kept = {turn for turn, scores in scored.items() if sum(scores) / len(scores) >= key_turns[1]}
    name = plan.names[kept.seat]
    if plan.rules.order == "asynchronous":
        raise UserError(
            f"{store.path}: {plan.id} is asynchronous talk, where bids are no acts; expected turns in order"
        )
    by_sha = {sha_of(call[4]): call[4] for call in store.calls(kept.episode) if call[0] == kept.seat}
    is_small_player = AgentSpec.parse(plan.agents[kept.seat]).prompt == "small"
    records = {one.turn: one for one in store.prompts(kept.episode) if one.seat == kept.seat}  # the last ask of a turn
    for turn in turns:
        record = records.get(turn.number)
        if turn.speaker != name or turn.fault or turn.timing or record is None:
            continue
        if key_turns is not None and turn.index not in turns_kept:
            continue
        text = by_sha.get(record.sha, "")
        is_shown = bool(text) and prompts == "shown"
        if not is_shown:
            text = made_prompt(plan, turns, record, "small" if prompts == "small" else "full")
        is_small = prompts == "small" or (is_shown and is_small_player)
        act = act_line(turn) if is_small else act_json(turn)
        yield Pair(kept.episode, kept.task, kept.seat, turn.index, text, act, is_shown)


def made_prompt(plan: EpisodePlan, turns: Sequence[Turn], record: PromptRecord, kind: str) -> str:
    """What a model on that seat would have been shown: from the turns that the player held."""
    asks: Asks = "bid" if plan.rules.order == "asynchronous" else "act"
    is_last = record.turn >= plan.rules.max_turns - len(plan.names) + 1
    observation = Observation(episode=plan.id, ask=record.ask, turn=record.turn, asks=asks, is_last=is_last)
    held = [turns[index] for index in record.held if index < len(turns)]
    return PROMPTS[kind](plan.briefings[record.seat], held, observation)


def act_json(turn: Turn) -> str:
    """An act as the full prompt asks for it."""
    return msgspec.json.encode({"action_type": turn.kind, "argument": turn.argument, "to": turn.to}).decode()


def act_line(turn: Turn) -> str:
    """An act as the small prompt asks for it: a line in quotes, or an action between asterisks."""
    if turn.kind == "speak":
        return f'"{turn.argument}"'
    return {"none": '"..."', "leave": "*leaves*"}.get(turn.kind, f"*{turn.argument}*")


def row_of(pair: Pair, format_name: str) -> dict[str, Any]:
    """One line of the data: alpaca's three fields, or messages."""
    if format_name == "alpaca":
        return {"instruction": pair.prompt, "input": "", "output": pair.act}
    return {"messages": [{"role": "user", "content": pair.prompt}, {"role": "assistant", "content": pair.act}]}


def held_out_tasks(tasks: Sequence[str], share: float) -> set[str]:
    """So large a share of the tasks, at least one where there are two; the same for the same tasks."""
    ordered = sorted(set(tasks), key=lambda task: hashlib.sha256(task.encode()).digest())
    count = min(len(ordered) - 1, max(1, round(share * len(ordered)))) if share else 0
    return set(ordered[:count])


def card_text(statistics: dict[str, Any]) -> str:
    """The dataset card: what it is, where from, how much, and what it is not."""
    split = [f"  - split: train\n    path: {TRAIN}"]
    if statistics["held_out_pairs"]:
        split.append(f"  - split: test\n    path: {HELD_OUT}")
    lines = [
        *("---", "task_categories: [text-generation]", "tags: [social-interaction, polyrhythm]"),
        *("configs:", "- config_name: default", "  data_files:", *split, "---", ""),
        "# Acts in social episodes",
        "",
        f"Each line is one prompt of one seat and the act that followed, in the format `{statistics['format']}`, from",
        f"`{statistics['run']}`, filtered by `{statistics['filter']}`. `{DECISIONS}` says why each seat of each",
        "episode is in or out. Tokens are those of prompt and act, without what a chat template adds"
        + (", estimated from lengths of text." if "tokens_estimated" in statistics else "."),
        "",
        "| | |",
        "|---|---|",
        *(f"| {key.replace('_', ' ')} | {value} |" for key, value in statistics.items()),
        "",
        "Not for: predicting what particular people would do. Goals are as good as the judges named above.",
        "",
    ]
    return "\n".join(lines)


def _write(path: Path, rows: Iterator[Any] | Sequence[Any]) -> None:
    with open(path, "wb") as file:
        for row in rows:
            file.write(msgspec.json.encode(row) + b"\n")
