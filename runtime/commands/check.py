"""`polyrhythm check` and `polyrhythm graph`: all that can be known of a launch file before anything starts."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from msgspec.structs import asdict

from runtime.abilities import SpendsMoney
from runtime.command_line.arguments import add_launch_options
from runtime.commands.companions import check_companions
from runtime.commands.graph_page import write_page
from runtime.errors import UserError
from runtime.hosts.hosts_table import HostPair, check_pair, meetings
from runtime.launch.checks.path_check import kept_silently
from runtime.launch.file import Launch, check, find, load, path_accounts
from runtime.launch.tables.budgets_table import ModelBudget
from runtime.refusals import refusing


def _parser(name: str, does: str, example: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"polyrhythm {name}", description=does, epilog=f"example: {example}")
    parser.add_argument("file", help="a launch file, or the name of a shipped one")
    add_launch_options(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def check_main(argv: list[str]) -> int:
    """Check a launch file; 0 where it can start."""
    parser = _parser(
        "check",
        "Check types, QoS, names, rates and parameters of a launch file; starts nothing.",
        "polyrhythm check launch/laptop.toml --set planner.model=gpt-4o",
    )
    arguments = parser.parse_args(argv)
    try:
        launch = load(find(arguments.file), arguments.set, added=arguments.add, without=arguments.without)
        missing = check(launch, needs_variables=False)
        check_companions(launch)
        with refusing("P041"):
            for meeting in meetings(launch.hosts):
                check_pair(meeting, moves=launch.moves)
    except UserError as problem:
        if arguments.json:
            print(json.dumps({"file": arguments.file, "refused": str(problem), "code": problem.code}, sort_keys=True))
        raise
    if arguments.json:
        print(json.dumps({**_as_data(launch), "missing_variables": missing}, sort_keys=True))
    else:
        nodes, topics, processes = len(launch.graph.nodes), len(launch.graph.topics), len(launch.processes)
        counts = f"{_several(nodes, 'node')} in {_several(processes, 'process', 'es')} on {_several(topics, 'topic')}"
        silent, paths = kept_silently(launch.graph), path_accounts(launch)
        is_known = not silent and not any(account.unknown for account in paths)
        fits = "all of it fits" if is_known else "it fits as far as can be known before it runs"
        print(f"{launch.path}: {counts}; {fits}")
        for name, alignment in launch.graph.alignments.items():
            print(f"aligned: {name}: {alignment.words()}")
        for sentence in silent:
            print(f"not known: {sentence}")
        for sentence in missing:
            print(f"to run it here: {sentence}")
        for table, note in launch.notes():
            print(f"note: [{table}] {note}")
        for meeting in meetings(launch.hosts):
            _tell_meeting(launch, meeting)
        for account in paths:
            print(*account.lines(), sep="\n")
        for name, budget in launch.budgets.models.items():
            print(_model_line(launch, name, budget))
    return 0


def _several(count: int, word: str, ending: str = "s") -> str:
    return f"{count} {word}{'' if count == 1 else ending}"


def _tell_meeting(launch: Launch, meeting: HostPair) -> None:
    server, client = meeting.server, meeting.client
    way = "encrypted" if meeting.is_encrypted else "not encrypted, this machine only"
    here, there = (f"{one.name} ({_several(len(launch.on(one.name)), 'node')})" for one in (server, client))
    ports = f"{meeting.port} and {meeting.port + 1}"
    print(f"host {here} waits at {server.address}, ports {ports}, for host {there}; {way}")


def graph_main(argv: list[str]) -> int:
    """Draw the graph of a launch file."""
    parser = _parser("graph", "Draw the graph of a launch file.", "polyrhythm graph laptop --html graph.html")
    parser.add_argument("--mermaid", action="store_true", help="as a Mermaid flowchart, which Markdown viewers draw")
    parser.add_argument(
        "--html",
        type=Path,
        metavar="FILE",
        help="write a page to this new file, which a browser shows without a network: nodes by process, topics, seats, "
        "budgets",
    )
    arguments = parser.parse_args(argv)
    launch = load(find(arguments.file), arguments.set, added=arguments.add, without=arguments.without)
    if arguments.html is not None:
        write_page(launch, arguments.html)
        print(f"written: {arguments.html}", file=sys.stderr if arguments.json or arguments.mermaid else sys.stdout)
    if arguments.json:
        print(json.dumps(_as_data(launch), sort_keys=True))
    elif arguments.mermaid:
        print(launch.graph.draw_mermaid())
    elif arguments.html is None:
        for name, specs in launch.processes.items():
            print(f"process {name}: {', '.join(f'{spec.name} ({spec.cls.__name__})' for spec in specs)}")
        print(launch.graph.draw())
    return 0


def _model_line(launch: Launch, name: str, budget: ModelBudget) -> str:
    limits = [f"{budget.calls:,} calls" if budget.calls else "", f"{budget.tokens:,} tokens" if budget.tokens else ""]
    limits.append(f"{budget.money:g} of money" if budget.money else "")
    cls = launch.graph.nodes[name].cls
    idle = "" if issubclass(cls, SpendsMoney) else f"; {cls.__name__} asks no model"
    return f"model {name}: at most {', '.join(limit for limit in limits if limit)} in a run{idle}"


def _as_data(launch: Launch) -> dict[str, object]:
    return {
        "file": str(launch.path),
        "processes": {name: [spec.name for spec in specs] for name, specs in launch.processes.items()},
        "topics": {
            topic.name: {
                "type": (topic.publishers + topic.subscribers)[0].port.message.__name__,
                "publishers": [end.node for end in topic.publishers],
                "subscribers": [end.node for end in topic.subscribers],
            }
            for topic in launch.graph.topics.values()
        },
        "notes": [{"node": table.removeprefix("nodes."), "note": note} for table, note in launch.notes()],
        "aligned": {name: one.as_data() for name, one in launch.graph.alignments.items()},
        "budgets": {
            "paths": {
                account.name: {
                    "topics": account.budget.topics,
                    "p99_s": account.budget.p99_s,
                    "total_s": account.total_s,
                    "parts": [asdict(part) for part in account.parts],
                    "unknown": account.unknown,
                    "limits": [asdict(part) for part in account.limits],
                }
                for account in path_accounts(launch)
            },
            "models": launch.budgets.as_data()["models"],
        },
    }
