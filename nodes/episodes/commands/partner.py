"""`episodes predict`, `sessions` and `game`: a partner in mind; each one's modules are imported when it is called."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from nodes.episodes.commands.subcommand import DEFAULT, Commands, add_command
from runtime.command_line.arguments import count

PREDICTED = "probability of the choice"


def add_partner(commands: Commands) -> None:
    """Add them to the parser."""
    parser = add_command(
        commands,
        "predict",
        "commands.partner:predict",
        "after each turn: what does the other want, believe, and do next? accuracy against the truth",
        "polyrhythm episodes predict runs/episodes-1.sqlite --by MODEL@URL",
    )
    parser.add_argument("run", type=Path, help="the run's file (.sqlite)")
    parser.add_argument("--by", default="", help="MODEL[@URL] that is asked; default: the baselines alone")
    parser.add_argument("--jobs", type=count, default=16, help="questions at a time" + DEFAULT)
    parser = add_command(
        commands,
        "sessions",
        "commands.partner:sessions",
        "several meetings of the same two, remembered or not, and the gain over meetings",
        "polyrhythm episodes sessions --memory none --memory full --out runs/sessions.sqlite",
    )
    parser.add_argument("--tasks", default="starter", help="starter, hard or a folder" + DEFAULT)
    parser.add_argument("--scenario", action="append", default=[], metavar="NAME", help="one meeting each; several")
    parser.add_argument("--agents", default="rules", metavar="A[,B]", help="who plays the seats" + DEFAULT)
    parser.add_argument("--memory", action="append", choices=("none", "summary", "full"), help="several; default: all")
    parser.add_argument("--seeds", type=count, default=1, help="sessions of each memory" + DEFAULT)
    parser.add_argument("--turns", type=count, default=20, help="turn limit of a meeting" + DEFAULT)
    parser.add_argument("--judges", default="rules", help="rules, MODEL, MODEL@URL" + DEFAULT)
    parser.add_argument("--out", type=Path, required=True, metavar="RUN.sqlite", help="gone on with where it is there")
    parser = add_command(
        commands,
        "game",
        "commands.partner:game",
        "a referential game: a speaker without a mind of the listener, with one, and one who knows them",
        "polyrhythm episodes game --listeners 60",
    )
    parser.add_argument("--listeners", type=count, default=60, help="so many, from seed 0" + DEFAULT)
    parser.add_argument("--rounds", type=count, default=10, help="with each listener" + DEFAULT)
    parser.add_argument(
        "--minds", type=Path, metavar="FILE", help="what was learned of each listener; gone on with and written"
    )


def predict(asked: argparse.Namespace) -> int:
    from nodes.episodes.agents.seat_caller import OutageError
    from nodes.episodes.partner.predictions import BASELINES, accuracy, all_moments, baseline, keep, predict
    from nodes.episodes.results.store import Store
    from runtime.errors import UserError

    with Store.open(asked.run) as store:
        moments = all_moments(store)
        if not moments:
            raise UserError(f"{asked.run}: holds no finished round-robin episodes of two with different goals")
        for name in BASELINES:
            keep(store, moments, name, baseline(name, moments))
        unreadable: dict[str, int] = {}
        if asked.by:
            try:
                said, unreadable = asyncio.run(predict(store, moments, asked.by, asked.jobs))
            except OutageError as problem:
                raise UserError(f"{asked.by}: {problem}; the same command goes on") from problem
            keep(store, moments, asked.by, said)
        found = {who: accuracy(store, who) for who in (*BASELINES, *([asked.by] if asked.by else []))}
    if asked.json:
        print(msgspec.json.encode({"accuracy": found, "unreadable": unreadable}).decode())
        return 0
    for who, questions in found.items():
        for question, parts in questions.items():
            bounds = {part: f"[{low:.2f}, {high:.2f}]" for part, (low, high) in parts["intervals"].items()}
            print(f"{who[:24]:24} {question:20} {parts['all']:.3f} {bounds['all']} of {parts['n']}")
            for part in [part for part in bounds if part != "all"]:
                print(f"{'':46}{part:26} {parts[part]:.2f} {bounds[part]}")
    for question, number in unreadable.items():
        print(f"{question}: {number} answers could not be read, also when asked again; they count as wrong")
    return 0


def sessions(asked: argparse.Namespace) -> int:
    from nodes.episodes.commands.asked import Playing, servers_of
    from nodes.episodes.commands.run import library_of
    from nodes.episodes.dialogue.planning import tasks_of
    from nodes.episodes.partner.sessions import MEMORIES, gains, meetings_of, play_session
    from nodes.episodes.results.store import Store
    from nodes.episodes.runner.runner import Judges, Settings
    from runtime.errors import UserError, choices

    library = library_of(asked.tasks)
    tasks = {task.scenario: task for task in tasks_of(library)}
    names = asked.scenario or [name for name, task in tasks.items() if library.scenarios[name].deal][:3]
    for name in names:
        if name not in tasks or len(tasks[name].characters) != 2:
            raise UserError(f"--scenario {name!r}: is none of two seats; known: {choices(tasks)}")
    settings = Settings(servers_of(Playing()), Judges((asked.judges,)))
    task, agents, memories = tasks[names[0]], asked.agents.split(","), asked.memory or list(MEMORIES)
    sessions = [
        (memory, meetings_of(library, task, names, agents, memory, seed, asked.turns))
        for memory in memories
        for seed in range(asked.seeds)
    ]
    spec = {"judges": [asked.judges], "sessions": [names, agents, memories, asked.seeds, asked.turns]}
    with Store.open(asked.out) if asked.out.exists() else Store.create(asked.out, spec) as store:
        if store.spec != spec:
            raise UserError(f"{asked.out}: was begun with other arguments; name another file")
        store.add([plan for _, plans in sessions for plan in plans])

        async def play() -> None:
            for memory, plans in sessions:
                await play_session(plans, memory, store, settings)
            await settings.servers.close()

        asyncio.run(play())
        found, missing = gains(store), sum(row.state != "done" for row in store.episodes())
    if asked.json:
        print(msgspec.json.encode(found).decode())
    else:
        for memory, one in found.items():
            means = "  ".join(f"meeting {number}: {goal:.2f}" for number, goal in one["goal"].items())
            print(f"{memory:8} {means}  gain {_interval(one['gain'])} over {one['sessions']} sessions")
    if missing:
        print(f"{missing} meetings were not played; the same command goes on")
    return 1 if missing else 0


def _interval(found: dict[str, Any] | None) -> str:
    if found is None:
        return "-"
    bounds = "" if found["low"] is None else f" [{found['low']:+.2f}, {found['high']:+.2f}]"
    return f"{found['estimate']:+.2f}{bounds}"


def game(asked: argparse.Namespace) -> int:
    from nodes.episodes.partner.reference_game import SPEAKERS, ListenerBelief, play, read_minds, write_minds
    from nodes.episodes.results.estimates import mean_of

    found: dict[str, list[float]] = {}
    intervals: dict[str, list[tuple[float, float]]] = {}
    minds = read_minds(asked.minds) if asked.minds else {}
    learning = [minds.setdefault(seed, ListenerBelief()) for seed in range(asked.listeners)]
    for speaker in SPEAKERS:
        guesses: list[list[float]] = [[] for _ in range(asked.listeners)]
        games = [
            play(speaker, seed, asked.rounds, learning[seed] if speaker == "partner in mind" else None, guesses[seed])
            for seed in range(asked.listeners)
        ]
        tables: list[tuple[str, Sequence[Sequence[float]]]] = [(speaker, games), (f"{speaker}: {PREDICTED}", guesses)]
        for name, each in tables:
            means = [mean_of({str(seed): [game[n]] for seed, game in enumerate(each)}) for n in range(asked.rounds)]
            found[name] = [one.mean for one in means if one is not None]
            intervals[name] = [(one.low or one.mean, one.high or one.mean) for one in means if one is not None]
    if asked.minds:
        write_minds(asked.minds, minds)
    if asked.json:
        print(msgspec.json.encode({**found, "intervals": intervals}).decode())
    else:
        print(f"{'understood, round':48}" + "".join(f"{number + 1:>6}" for number in range(asked.rounds)))
        for speaker, shares in found.items():
            print(f"{speaker:48}" + "".join(f"{share:>6.2f}" for share in shares))
            if speaker.endswith(PREDICTED):
                for name, bounds in zip(("from", "to"), zip(*intervals[speaker], strict=True), strict=True):
                    print(f"{f'  95 %, {name}':48}" + "".join(f"{bound:>6.2f}" for bound in bounds))
    return 0
