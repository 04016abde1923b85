"""`episodes dataset`: the prompts that were shown and the acts that followed, as training data with a card.

A folder: train.jsonl and held_out.jsonl (whole tasks), decisions.jsonl (why each seat of each episode is in or out),
README.md (the card, which the loaders of `datasets` read). The folder appears whole or not at all. What is learned from
is chosen by SOTOPIA-pi's filters BC and SR (arXiv 2403.08715, appendix B.2), or SOTOPIA-Omega's best attempts. The unit
is one seat's part of one conversation. A task is a scenario: its conversations differ in characters and seed.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import math
import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean as mean
from statistics import median
from typing import Any, Literal

import msgspec

from nodes.episodes.agents.agent_spec import AgentSpec
from nodes.episodes.agents.seat_caller import sha_of
from nodes.episodes.coaching.coach import attempts_of, best_of
from nodes.episodes.dialogue.prompt import prompt_text, small_prompt_text
from nodes.episodes.evaluation.dimensions import mean_scores, overall
from nodes.episodes.evaluation.encoders import token_counter
from nodes.episodes.results.show import made_prompt, print_json
from nodes.episodes.results.store import Store
from nodes.models.budget import estimated_tokens
from nodes.msgs.episode import Turn
from runtime.command_line.arguments import check_new
from runtime.errors import UserError, choices, writing

ALWAYS_KEPT = 2
"""BC takes so many per task and seat, however good they are."""

LAST_RANK = 10
SR_SHARE = 0.2


class SeatGoal(msgspec.Struct, frozen=True):
    """What one seat reached in one conversation."""

    episode: str
    task: str
    seat: int
    goal: float


class FilterDecision(msgspec.Struct, frozen=True):
    """Whether one seat's part of a conversation is learned from, and why."""

    episode: str
    task: str
    seat: int
    goal: float | None
    rank: int  # within task and seat, from 1; 0: not ranked
    is_kept: bool
    why: str
    run: str = ""  # the file's name, where decisions are written


def decide(
    store: Store, filter_name: str, *, judge: str = "", agent: str = "", by: str = "GOAL"
) -> list[FilterDecision]:
    """A decision for every seat of every finished episode; `agent` limits it to seats that this agent played.

    `by`: the dimension that is the measure of quality, or "overall", the mean of all seven.
    Raises UserError for an unknown filter, or an agent that played nowhere.
    """
    if filter_name not in (*FILTERS, "omega"):
        raise UserError(f"filter {filter_name!r}: there is none; known: {', '.join(FILTERS)}, omega")
    goals, unjudged = [], []
    players = set()
    for row in store.episodes():
        players |= set(row.agents)
        if row.state != "done":
            continue
        means = mean_scores(store.scores(row.id), judge)
        seats = [seat for seat, player in enumerate(row.agents) if agent in ("", player)]
        for seat in seats:
            scores = means.get(row.names[seat], {})
            goal = overall(scores) if by == "overall" else scores.get(by)
            if goal is None:
                unjudged.append(FilterDecision(row.id, row.scenario, seat, None, 0, False, f"nobody judged its {by}"))
            else:
                goals.append(SeatGoal(row.id, row.scenario, seat, goal))
    if filter_name == "omega":
        return coached(store)
    if agent and agent not in players:
        raise UserError(f"{store.path}: agent {agent!r} played nowhere; there are {choices(players)}")
    return FILTERS[filter_name](goals) + unjudged


def behavior_cloning(goals: Sequence[SeatGoal]) -> list[FilterDecision]:
    """The top 2 per task and seat; at ranks 3 to 10 both seats' data, where both lie above their seat's threshold.

    A seat's threshold is the smaller of its mean in the task and its mean in all tasks.
    """
    ranked = _ranked(goals)
    everywhere = {seat: mean(one.goal for one in goals if one.seat == seat) for seat in {g.seat for g in goals}}
    found = []
    for task in sorted({task for task, _ in ranked}):
        seats = {seat: ranks for (of, seat), ranks in ranked.items() if of == task}
        bars = {seat: min(mean(one.goal for one in ranks), everywhere[seat]) for seat, ranks in seats.items()}
        for rank in range(1, max(len(ranks) for ranks in seats.values()) + 1):
            here = {seat: ranks[rank - 1] for seat, ranks in seats.items() if rank <= len(ranks)}
            is_whole = len(here) == len(seats)
            below = [seat for seat, one in here.items() if not one.goal > bars[seat]]
            for seat, one in sorted(here.items()):
                if rank <= ALWAYS_KEPT:
                    is_kept, why = True, f"among the top {ALWAYS_KEPT} of its task and seat"
                elif rank > LAST_RANK:
                    is_kept, why = False, f"ranks after {LAST_RANK} are not looked at"
                elif not is_whole:
                    is_kept, why = False, f"the other seat has no rank {rank}"
                elif below:
                    shown = ", ".join(f"{here[s].goal:g} of seat {s} is not above {bars[s]:.2f}" for s in below)
                    is_kept, why = False, f"at this rank {shown}"
                else:
                    shown = ", ".join(f"{here[s].goal:g} > {bars[s]:.2f}" for s in sorted(here))
                    is_kept, why = True, f"all seats at this rank are above min(local, global mean): {shown}"
                found.append(FilterDecision(one.episode, task, seat, one.goal, rank, is_kept, why))
    return found


def self_reinforcement(goals: Sequence[SeatGoal]) -> list[FilterDecision]:
    """The top 20 % per task and seat, rounded up: of ten conversations two."""
    found = []
    for (task, seat), ranks in sorted(_ranked(goals).items()):
        most = math.ceil(SR_SHARE * len(ranks) - 1e-9)
        for rank, one in enumerate(ranks, start=1):
            is_kept = rank <= most
            why = f"rank {rank} of {len(ranks)}; the top {SR_SHARE:.0%} are {most}"
            found.append(FilterDecision(one.episode, task, seat, one.goal, rank, is_kept, why))
    return found


def coached(store: Store) -> list[FilterDecision]:
    """SOTOPIA-Omega: of each coached episode's attempts the first that was rated high enough, else the best."""
    found = []
    for attempts in attempts_of(store).values():
        best, why = best_of(attempts)
        plan = store.plan(best.episode)
        for rank, one in enumerate(attempts, start=1):
            is_kept = one is best
            for seat in range(len(plan.names)):
                said = why if is_kept else f"attempt {best.episode} is kept"
                found.append(FilterDecision(one.episode, plan.scenario, seat, one.goal_c, rank, is_kept, said))
    return found


def best_of_runs(runs: Sequence[tuple[Store, list[FilterDecision]]]) -> list[list[FilterDecision]]:
    """Of several runs of the same tasks the one whose kept dialogues are rated highest, task by task; else the first.

    SOTOPIA-Omega's "Raw mix NSI".
    """
    ratings: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    tasks = [{row.id: row.task for row in store.episodes()} for store, _ in runs]
    for number, (_, decisions) in enumerate(runs):
        for one in decisions:
            if one.is_kept and one.goal is not None:
                ratings[tasks[number][one.episode]][number].append(one.goal)
    best = {task: max(sorted(of), key=lambda number: mean(of[number])) for task, of in ratings.items()}
    found = []
    for number, (_, decisions) in enumerate(runs):
        kept = []
        for one in decisions:
            winner = best.get(tasks[number][one.episode], number)
            if one.is_kept and winner != number:
                why = f"run {winner + 1} of {len(runs)} is rated higher on this task"
                one = msgspec.structs.replace(one, is_kept=False, why=why)
            kept.append(one)
        found.append(kept)
    return found


FILTERS = {"bc": behavior_cloning, "sr": self_reinforcement}


def _ranked(goals: Sequence[SeatGoal]) -> dict[tuple[str, int], list[SeatGoal]]:
    """Per task and seat, the best first; equal ones in the order in which they were played."""
    ranked: dict[tuple[str, int], list[SeatGoal]] = defaultdict(list)
    for one in goals:
        ranked[one.task, one.seat].append(one)
    return {key: sorted(ones, key=lambda one: -one.goal) for key, ones in ranked.items()}


TRAIN, HELD_OUT, DECISIONS, CARD = "train.jsonl", "held_out.jsonl", "decisions.jsonl", "README.md"
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
    form: str = "alpaca",
    prompts: PromptKind = "shown",
    judge: str = "",
    agent: str = "",
    held_out: float = 0.0,
    longest: int = 0,
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
        for run, of_run in zip(runs, of_runs, strict=True):
            of_run[:] = [msgspec.structs.replace(one, run=run.name) for one in of_run]
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
    fitting = [pair for pair in pairs if not longest or lengths[id(pair)] <= longest]
    apart = held_out_tasks([pair.task for pair in fitting], held_out)
    train = [pair for pair in fitting if pair.task not in apart]
    held = [pair for pair in fitting if pair.task in apart]
    if not train:
        raise UserError(f"{named}: no pair is left to train on ({len(pairs)} kept, {len(fitting)} short enough)")
    sizes = sorted(lengths[id(pair)] for pair in fitting)
    statistics: dict[str, Any] = {
        "run": ", ".join(path.name for path in runs),
        "filter": filter_name,
        "format": form,
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
    with writing(f"--out {folder}"):
        part.mkdir(parents=True)
        _write(part / TRAIN, (row_of(pair, form) for pair in train))
        _write(part / HELD_OUT, (row_of(pair, form) for pair in held))
        _write(part / DECISIONS, decisions)
        (part / CARD).write_text(card_text(statistics), encoding="utf-8")
        (part / "statistics.json").write_bytes(msgspec.json.format(msgspec.json.encode(statistics), indent=1))
        part.rename(folder)
    return statistics


def pairs_of(
    store: Store, kept: FilterDecision, prompts: PromptKind, key_turns: tuple[str, float] | None = None
) -> Iterator[Pair]:
    """The pairs of one seat of one episode: no failed turns, no silence that the rules forced."""
    plan, turns = store.plan(kept.episode), store.turns(kept.episode)
    scored: dict[int, list[float]] = defaultdict(list)
    for one in store.turn_scores(kept.episode):
        if key_turns is not None and one.dimension == key_turns[0]:
            scored[one.turn].append(one.score)
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
        if key_turns is not None and mean(scored[turn.index] or [-math.inf]) < key_turns[1]:
            continue
        text = by_sha.get(record.sha, "")
        is_shown = bool(text) and prompts == "shown"
        if not is_shown:
            text = made_prompt(plan, turns, record, small_prompt_text if prompts == "small" else prompt_text)
        is_small = prompts == "small" or (is_shown and is_small_player)
        act = act_line(turn) if is_small else act_json(turn)
        yield Pair(kept.episode, kept.task, kept.seat, turn.index, text, act, is_shown)


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


def dataset(asked: argparse.Namespace) -> int:
    """Write the data of runs, and tell what there is."""
    options = ("mix", "form", "prompts", "judge", "agent", "held_out", "longest", "tokenizer", "by", "key_turns")
    how = {name: getattr(asked, name) for name in options}
    statistics = write_dataset(asked.runs, asked.out, asked.filter, **how)
    if asked.json:
        print_json(statistics)
    else:
        print("\n".join(f"{key.replace('_', ' '):24} {value}" for key, value in statistics.items()))
        print(f"\ndata: {asked.out} ({CARD} is its card)")
    return 0
