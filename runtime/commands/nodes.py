"""`polyrhythm nodes` and `polyrhythm topics`: what runs, and what it says to whom."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from runtime.command_line.arguments import seconds
from runtime.command_line.attach import StopSignal, add_run_argument, attach, hear
from runtime.command_line.columns import columns as aligned
from runtime.coordination.health import Health
from runtime.errors import CodecError
from runtime.launch.graph import health_topic
from runtime.serialization.codec import decode
from runtime.supervision.registry import FoundRun, ProcessState
from runtime.supervision.view import terminal_width

CLASSES = {"type", "use"}
"""The columns that hold module:Class."""
_LONGEST_LIST = 60
_PATIENCE_S = 4.0  # nodes tell of themselves once a second


def nodes_main(argv: list[str]) -> int:
    """`polyrhythm nodes`."""
    asked = _parser("nodes", "List the nodes of a running graph.", "polyrhythm nodes --run laptop").parse_args(argv)
    run = attach(asked.run)
    rows = node_rows(run)
    if asked.json:
        print(json.dumps(rows))
        return 0
    print(f"{run.title}, {run.info.launch_file}")
    columns = ("node", "use", "process", "pid", "state", "restarts", "publishes", "subscribes")
    shown = [{**row, **{key: listed(row[key]) for key in columns[-2:]}} for row in rows]
    print(table(shown, columns, terminal_width()))
    return 0


def topics_main(argv: list[str]) -> int:
    """`polyrhythm topics`."""
    parser = _parser("topics", "List the topics of a running graph.", "polyrhythm topics --window 5")
    parser.add_argument(
        "--window", type=seconds, default=1.0, metavar="S", help="count messages for so long; default: %(default)s s"
    )
    parser.add_argument("--no-rate", action="store_true", help="answer at once, without rates")
    parser.add_argument("--health", action="store_true", help="the topics health/... too")
    asked = parser.parse_args(argv)
    run = attach(asked.run)
    rates = {} if asked.no_rate else measure_rates(run, asked.window)
    rows = topic_rows(run, rates, with_health=asked.health)
    if asked.json:
        print(json.dumps(rows))
        return 0
    print(f"{run.title}, {run.info.launch_file}")
    shown = [
        {
            **row,
            "hz": "-" if row["hz"] is None else f"{row['hz']:.4g}",
            "publishers": " ".join(row["publishers"]) or "-",
            "subscribers": " ".join(row["subscribers"]) or "-",
        }
        for row in rows
    ]
    columns = ("topic", "type", "kind", "hz", "publishers", "subscribers")
    print(table(shown, columns[:3] + columns[4:] if asked.no_rate else columns, terminal_width()))
    return 0


def node_rows(run: FoundRun) -> list[dict[str, Any]]:
    """What is known of each node without asking it; a process that somebody halted is "halted"."""
    states = run.states()
    rows = []
    for name, node in run.info.nodes.items():
        state = states.get(node.process, ProcessState(0, "not started"))
        rows.append(
            {
                "node": name,
                "use": node.use,
                "process": node.process,
                "pid": state.pid,
                "state": "halted" if state.state == "running" and _is_halted(state.pid) else state.state,
                "restarts": state.restarts,
                "publishes": _topics_of(run, name, "publishers"),
                "subscribes": _topics_of(run, name, "subscribers"),
            }
        )
    return rows


def _is_halted(pid: int) -> bool:
    """Whether somebody has halted that process, as Ctrl-Z and SIGSTOP do: it is there and does nothing."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[:1] in (["T"], ["t"])


def topic_rows(run: FoundRun, rates_hz: dict[str, float], *, with_health: bool) -> list[dict[str, Any]]:
    """What is known of each topic; `hz` is None where it was not measured."""
    health = {health_topic(node) for node in run.info.nodes}
    return [
        {
            "topic": name,
            "type": topic.type,
            "kind": topic.kind,
            "hz": rates_hz.get(name),
            "publishers": list(topic.publishers),
            "subscribers": list(topic.subscribers),
        }
        for name, topic in run.info.topics.items()
        if with_health or name not in health
    ]


def measure_rates(run: FoundRun, window_s: float) -> dict[str, float]:
    """Messages per second on each topic, from what the nodes count themselves: nothing large is listened to."""
    topics = [health_topic(node) for node in run.info.nodes]
    first: dict[str, tuple[int, dict[str, int]]] = {}
    rates_hz: dict[str, dict[str, float]] = {}
    with StopSignal() as stop_signal:
        for arrival in hear(run, topics, stop_signal, window_s + _PATIENCE_S):
            if arrival is None:
                continue
            try:
                stamped = decode(arrival.frames, Health)
            except CodecError:
                continue
            node, sent, now_ns = stamped.message.node, stamped.message.sent, stamped.envelope.published_ns
            sent = {**sent, stamped.envelope.topic: stamped.envelope.seq}
            start_ns, start = first.setdefault(node, (now_ns, sent))
            span_s = (now_ns - start_ns) * 1e-9
            if any(sent.get(topic, 0) < count for topic, count in start.items()):
                first[node] = (now_ns, sent)  # it was restarted and counts anew
            elif span_s >= window_s * 0.9:
                rates_hz[node] = {topic: (count - start.get(topic, 0)) / span_s for topic, count in sent.items()}
                if len(rates_hz) == len(topics):
                    break
    total: dict[str, float] = {}
    for rates in rates_hz.values():
        for topic, hz in rates.items():
            total[topic] = round(total.get(topic, 0.0) + hz, 3)
    return total


def listed(names: Sequence[str]) -> str:
    """Names for a column: as many as fit, and how many more there are; a recorder hears everything."""
    shown = len(names)
    while shown > 1 and len(" ".join(names[:shown])) > _LONGEST_LIST:
        shown -= 1
    more = [f"and {len(names) - shown} more"] if shown < len(names) else []
    return " ".join([*names[:shown], *more]) or "-"


def table(rows: Sequence[dict[str, Any]], columns: Sequence[str], width: int | None = None) -> str:
    """Rows as text in columns; where they are wider than that, classes stand without modules, and lines are cut."""
    lines = _aligned(rows, columns)
    if width is not None and max(map(len, lines)) > width:
        named = [{**row, **{key: str(row[key]).rpartition(":")[2] for key in CLASSES & row.keys()}} for row in rows]
        lines = [line if len(line) <= width else f"{line[: width - 1]}…" for line in _aligned(named, columns)]
    return "\n".join(lines)


def _aligned(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> list[str]:
    return aligned([columns, *([str(row[column]) for column in columns] for row in rows)], columns)


def _topics_of(run: FoundRun, node: str, side: str) -> list[str]:
    health = health_topic(node)
    return [name for name, topic in run.info.topics.items() if node in getattr(topic, side) and name != health]


def _parser(name: str, does: str, example: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"polyrhythm {name}", description=does, epilog=f"example: {example}")
    add_run_argument(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser
