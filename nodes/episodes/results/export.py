"""`episodes export`: JSONL in the shape of the sotopia package's EpisodeLog, or plain; or tidy tables as CSV.

An EpisodeLog has one message group per turn, each message (sender, receiver, text), and per agent a reward: (overall,
{dimension: value}). Where no evaluation succeeded the reward is the number 0.0, which that package reads as "failed".
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import msgspec

from nodes.episodes.evaluation.dimensions import PUBLISHED, mean_scores, overall
from nodes.episodes.results.export_profiles import write_profiles
from nodes.episodes.results.show import episode_data
from nodes.episodes.results.store import EpisodeRow, Store
from runtime.command_line.arguments import check_new
from runtime.errors import UserError
from runtime.msgs.episode import Turn

ENVIRONMENT = "Environment"


def export(asked: argparse.Namespace) -> int:
    """Write one line per episode that is done."""
    if asked.out is not None:
        check_new(asked.out)
    with Store.read(asked.run) as store:
        if asked.format == "csv":
            return _tables(store, asked.out)
        rows = [row for row in store.episodes() if row.state == "done"]
        lines = (episode_log(store, row) if asked.format == "sotopia" else episode_data(store, row) for row in rows)
        if asked.out is None:
            _write(lines, sys.stdout)
        else:
            try:
                with open(asked.out, "w", encoding="utf-8") as file:
                    _write(lines, file)
            except OSError as problem:
                raise UserError(f"--out {asked.out}: cannot be written: {problem.strerror}") from problem
        if asked.profiles is not None:
            write_profiles(store.spec, asked.profiles)
    return 0


def _tables(store: Store, folder: Path | None) -> int:
    """turns.csv, scores.csv, turn_scores.csv and ratings.csv, one observation a row; failed episodes say so."""
    if folder is None:
        raise UserError("--to csv writes several tables: expected a folder for them, like --out tables")
    rows = store.episodes()
    told = {
        row.id: (row.id, row.task, row.scenario, row.seed, row.transparency, row.turn_order, row.state) for row in rows
    }
    head = ("episode", "task", "scenario", "seed", "mode", "order", "state")
    agents = {row.id: dict(zip(row.names, row.agents, strict=True)) for row in rows}
    reasons = store.rationales()
    tables: dict[str, tuple[tuple[str, ...], Iterable[Sequence[object]]]] = {
        "turns": (
            (*head, "index", "turn", "speaker", "agent", "kind", "argument", "to", "at_s", "fault", "note"),
            (
                (*told[row.id], t.index, t.number, t.speaker, agents[row.id].get(t.speaker, ""), t.kind, t.argument,
                 "; ".join(t.to), t.at_s, t.fault, t.note)
                for row in rows
                for t in store.turns(row.id)
            ),
        ),
        "scores": (
            (*head, "judge", "judged", "name", "agent", "dimension", "score", "reasoning"),
            (
                (*told[row.id], one.judge, one.state, s.name, agents[row.id].get(s.name, ""), s.dimension, s.score,
                 s.reasoning)
                for row in rows
                for one in store.scores(row.id)
                for s in one.scores
            ),
        ),
        "turn_scores": (
            (*head, "index", "judge", "dimension", "score"),
            (
                (*told[row.id], one.turn, one.judge, one.dimension, one.score)
                for row in rows
                for one in store.turn_scores(row.id)
            ),
        ),
        "ratings": (
            (*head, "rater", "name", "agent", "dimension", "score", "reasoning"),
            (
                (*told[episode], rater, name, agents[episode].get(name, ""), dimension, score,
                 reasons.get((episode, rater, name, dimension), ""))
                for episode, rater, name, dimension, score in store.ratings()
            ),
        ),
    }  # fmt: skip
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, (columns, lines) in tables.items():
            with open(folder / f"{name}.csv", "w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(columns)
                writer.writerows(lines)
    except OSError as problem:
        raise UserError(f"--out {folder}: cannot be written: {problem.strerror}") from problem
    return 0


def _write(lines: Iterator[dict[str, Any]], file: TextIO) -> None:
    for line in lines:
        file.write(msgspec.json.encode(line).decode() + "\n")


def episode_log(store: Store, row: EpisodeRow) -> dict[str, Any]:
    """One episode as an EpisodeLog."""
    plan, turns = store.plan(row.id), store.turns(row.id)
    evaluations = store.scores(row.id)
    means = mean_scores(evaluations)
    comments = [
        f"{one.judge}, {score.name}, {score.dimension}: {score.reasoning}"
        for one in evaluations
        for score in one.scores
    ]
    judges = sorted({one.judge for one in evaluations if one.state == "done"})
    named = sorted({dimension for scores in means.values() for dimension in scores})
    mean_of = [f"rewards are means of the scores by {', '.join(judges)} on {', '.join(named)}"] if named else []
    is_partly = any(scores and overall(scores) is None for scores in means.values())
    partly = ["overall_score is no mean of the seven: not all of them were judged"] if is_partly else []
    return {
        "pk": row.id,
        "environment": plan.scenario,
        "agents": [truth.character for truth in plan.truths],
        "tag": f"polyrhythm {plan.transparency}",
        "models": [",".join(one.judge for one in evaluations) or "none", *row.agents],
        "agent_classes": [_class_of(agent) for agent in row.agents],
        "messages": message_groups(plan.names, [b.background for b in plan.briefings], turns),
        "reasoning": "\n".join([*mean_of, *partly, *comments]),
        "rewards": [_reward(means.get(name, {})) for name in plan.names],
        "rewards_prompt": "",
    }


def message_groups(names: tuple[str, ...], backgrounds: list[str], turns: list[Turn]) -> list[list[list[str]]]:
    """Group 0: what each was told; then one group per turn."""
    groups = [[[ENVIRONMENT, name, background] for name, background in zip(names, backgrounds, strict=True)]]
    numbers = sorted({turn.number for turn in turns})
    for number in numbers:
        groups.append([[turn.speaker, ENVIRONMENT, _text(turn)] for turn in turns if turn.number == number])
    return groups


def _text(turn: Turn) -> str:
    private = f"[private to {', '.join(turn.to)}] " if turn.to else ""
    words = {
        "none": "did nothing",
        "speak": f'said: "{turn.argument}"',
        "non-verbal communication": f"[non-verbal communication] {turn.argument}",
        "action": f"[action] {turn.argument}",
        "leave": "left the conversation",
    }[turn.kind]
    return private + words


def _class_of(agent: str) -> str:
    return {"rules": "RulesBrain", "scripted": "RulesBrain", "human": "PersonAtTerminal"}.get(agent, "ModelBrain")


def _reward(scores: dict[str, float]) -> Any:
    if not scores:
        return 0.0
    whole = overall(scores)
    if whole is None:  # the shape wants a number; `reasoning` says what it is
        whole = sum(scores.values()) / len(scores)
    named = {PUBLISHED.get(dimension, dimension): value for dimension, value in scores.items()}
    return [whole, {**named, "overall_score": whole}]
