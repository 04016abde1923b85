"""`polyrhythm explore`: explore, be asked, explore again, refine; a table, a record."""

from __future__ import annotations

import argparse
import asyncio
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from nodes.episodes.agents.seat_caller import OutageError
from nodes.exploration.policies import DONE, Explorer, FrontierExplorer, Memory, ModelExplorer, RandomExplorer
from nodes.exploration.questions import Question, answer, majority, questions_of
from nodes.exploration.room import Room
from nodes.models.servers import Servers
from nodes.statistics.paired import paired_difference
from runtime.command_line.arguments import answered
from runtime.errors import UserError
from runtime.toml_errors import convert, read_toml

OTHER_ROOMS = range(1_000_000, 1_000_050)
"""Seeds of the rooms from which the usual answers are taken; no room that is played."""

BASELINES = ("random answers", "always the majority")


class Phases(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A task file's [explore]."""

    steps: int = 25  # of the first exploration
    questions: int = 20
    energy: float = 0.01  # k: what a step of the second exploration costs
    most_steps: int = 300  # of the second one


class TaskFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A task file."""

    explore: Phases = Phases()


class Trial(msgspec.Struct, frozen=True):
    """One room, explored and asked about."""

    policy: str
    seed: int
    acc_exp: float
    acc_ref: float
    tried_exp: float  # accuracy on the questions that need trying
    tried_ref: float
    t3: int
    score: float
    unreadable: int = 0


def score_of(acc_exp: float, acc_ref: float, t3: int, energy: float) -> float:
    """Acc_exp + (Acc_ref - Acc_exp) exp(-k T3)."""
    return acc_exp + (acc_ref - acc_exp) * math.exp(-energy * t3)


async def play(
    policy: str, seed: int, task: Phases, usual: dict[str, str], servers: Servers, record: list[Any]
) -> Trial:
    """All four phases in one room; each step and answer goes to `record`. Raises OutageError, UserError."""
    room, memory = Room(seed), Memory()
    questions = questions_of(room, seed, task.questions)
    if policy in BASELINES:
        chance = random.Random(f"answers {seed}")
        said = [chance.choice(q.choices) if policy == BASELINES[0] else usual["|".join(q.choices)] for q in questions]
        right = [one == q.answer for one, q in zip(said, questions, strict=True)]
        record.append({"phase": "answer", "answers": said})
        acc, tried = _share(right), _share([r for r, q in zip(right, questions, strict=True) if q.needs_trying])
        return Trial(policy, seed, acc, acc, tried, tried, 0, acc)
    explorer = explorer_of(policy, seed, servers)
    memory.look(room)
    await _explore(explorer, room, memory, (), task.steps, record)
    first = _answers(questions, memory, usual, record)
    open_ones = [q for q in questions if q.about not in (memory.states if q.needs_trying else memory.places)]
    before = room.steps
    if open_ones:
        await _explore(explorer, room, memory, open_ones, task.most_steps, record)
    second = _answers(questions, memory, usual, record)
    t3 = room.steps - before
    trying = [q.needs_trying for q in questions]
    exp, ref = _share(first), _share(second)
    return Trial(
        policy, seed, exp, ref, _share([r for r, t in zip(first, trying, strict=True) if t]),
        _share([r for r, t in zip(second, trying, strict=True) if t]), t3, score_of(exp, ref, t3, task.energy),
        getattr(explorer, "unreadable", 0),
    )  # fmt: skip


async def _explore(
    explorer: Explorer, room: Room, memory: Memory, asked: Sequence[Question], most: int, record: list[Any]
) -> None:
    for _ in range(most):
        action = await explorer.act(room, memory, asked)
        if action == DONE:
            return
        found = room.do(action)
        memory.look(room)
        if found is not None:
            memory.states[found[0]] = found[1]
        record.append({"phase": "refine" if asked else "explore", "action": action, "at": room.at, "found": found})


def _answers(questions: Sequence[Question], memory: Memory, usual: dict[str, str], record: list[Any]) -> list[bool]:
    said = [answer(question, memory.states, memory.places, usual) for question in questions]
    record.append({"phase": "answer", "answers": said, "questions": questions})
    return [one == question.answer for one, question in zip(said, questions, strict=True)]


def explorer_of(policy: str, seed: int, servers: Servers) -> Explorer:
    """The explorer of that name. Raises UserError."""
    if policy == "random":
        return RandomExplorer(seed)
    if policy == "frontier":
        return FrontierExplorer()
    return ModelExplorer(policy, seed, servers)


def _share(right: Sequence[bool]) -> float:
    return sum(right) / len(right) if right else 0.0


def main(argv: list[str]) -> int:
    """0; 2 where it was asked wrongly."""
    parser = argparse.ArgumentParser(
        prog="polyrhythm explore",
        description="Explore rooms, answer questions about them, explore again, answer again: a score for each policy.",
        epilog="example: polyrhythm explore --seeds 20 --policy random --policy frontier --out runs/explore",
    )
    parser.add_argument(
        "--policy", action="append", help="random, frontier, MODEL[@URL]; several; default: both by rules"
    )
    parser.add_argument("--seeds", type=int, default=20, help="so many rooms, from 0 (default: %(default)s)")
    parser.add_argument("--task", type=Path, help="TOML with [explore]: steps, questions, energy, most_steps")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="a recording of each trial, and the results")
    parser.add_argument("--json", action="store_true", help="JSON and nothing else on standard output")
    asked = parser.parse_args(argv)
    return answered("polyrhythm explore", lambda: asyncio.run(_run(asked)))


async def _run(asked: argparse.Namespace) -> int:
    task = convert(read_toml(asked.task), TaskFile, str(asked.task)).explore if asked.task else Phases()
    if asked.seeds < 1 or min(task.steps, task.questions) < 1 or task.energy < 0:
        raise UserError("--seeds, steps and questions are at least 1, and energy is not negative")
    if asked.out is not None and asked.out.exists():
        raise UserError(f"--out {asked.out}: exists already; name another folder")
    usual, servers, trials = majority(OTHER_ROOMS), Servers(), []
    policies = [*BASELINES, *dict.fromkeys(asked.policy or ("random", "frontier"))]
    try:
        for policy in policies:
            for seed in range(asked.seeds):
                record: list[Any] = []
                trials.append(await play(policy, seed, task, usual, servers, record))
                if asked.out is not None:
                    name = "".join(mark if mark.isalnum() else "-" for mark in policy)[:40]
                    asked.out.mkdir(parents=True, exist_ok=True)
                    lines = b"\n".join(msgspec.json.encode(one) for one in [trials[-1], *record])
                    (asked.out / f"{name}-{seed}.jsonl").write_bytes(lines + b"\n")
    except OutageError as problem:
        raise UserError(str(problem)) from problem
    finally:
        await servers.close()
    rows = {policy: _row([one for one in trials if one.policy == policy]) for policy in policies}
    if asked.json:
        print(msgspec.json.encode({"task": task, "policies": rows, "trials": trials}).decode())
        return 0
    head = ("policy", "acc_exp", "acc_ref", "of tried", "refined", "T3", "score [95 %]")
    print(f"{head[0]:24}" + "".join(f"{one:>10}" for one in head[1:6]) + f"  {head[6]}")
    for policy, row in rows.items():
        cells = "".join(f"{row[key]:>10.3f}" for key in ("acc_exp", "acc_ref", "tried_exp", "tried_ref"))
        bounds = f" [{row['low']:.3f}, {row['high']:.3f}]" if row["low"] is not None else ""
        print(f"{policy[:24]:24}{cells}{row['t3']:>10.1f}  {row['score']:.3f}{bounds}")
    return 0


def _row(trials: Sequence[Trial]) -> dict[str, Any]:
    names = ("acc_exp", "acc_ref", "tried_exp", "tried_ref", "t3", "unreadable")
    row: dict[str, Any] = {name: sum(getattr(one, name) for one in trials) / len(trials) for name in names}
    interval = paired_difference(
        [[one.score] for one in trials], estimate=lambda all_: float(all_.mean()), resamples=2000
    )
    return {**row, "score": interval.estimate, "low": interval.low, "high": interval.high}
