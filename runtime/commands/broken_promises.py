"""What a run promised and did not keep: told in its last lines, and in its exit code."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

import msgspec

from runtime.commands.message_counts import MessageCounts
from runtime.coordination.health import PathHealth, PortHealth
from runtime.coordination.path_budget import JUDGED_FROM, is_met

Kind = Literal["handlers", "budgets", "refused", "restarts", "lost", "processes"]

REFUSED = ("garbled", "forged")
"""For these reasons messages are refused that were sent and did arrive."""


class Promise(msgspec.Struct, frozen=True):
    """Something that every run promises; `option` counts it as a success where it is not kept."""

    kind: Kind
    broken: str  # what has happened where it is not kept, for the page of exit codes
    option: str = ""
    help: str = ""


PROMISES: tuple[Promise, ...] = (
    Promise(
        "handlers",
        "a handler or an `on_stop` raised an exception",
        "--allow-failures",
        "exit with 0 also where handlers raised exceptions meanwhile",
    ),
    Promise(
        "budgets",
        f"a path budget was not met, over {JUDGED_FROM} messages or more",
        "--allow-missed-budgets",
        "exit with 0 also where a path budget was not met",
    ),
    Promise(
        "restarts",
        "a process ended and was started again",
        "--allow-restarts",
        "exit with 0 also where processes ended and were started again",
    ),
    Promise(
        "lost", "a node lost what it works with, also where it has it again: its robot, or the room for a recording"
    ),
    Promise(
        "refused", "all messages of a topic that reached a node were refused: garbled, or not by who may send them"
    ),
    Promise("processes", "a process did not end as it should when the run was over"),
)


class NotKept(msgspec.Struct, frozen=True):
    """One promise that was not kept."""

    promise: Promise
    text: str


def not_kept(
    counts: MessageCounts, restarted: Mapping[str, Sequence[str]], unclean: Mapping[str, str]
) -> list[NotKept]:
    """All that the run did not keep, in the order of the promises.

    `counts` heard the run; `restarted` says why each process ended that was started again, `unclean` which did not
    end as they should, and why.
    """
    found: dict[Kind, list[str]] = defaultdict(list)
    found["handlers"] = [
        f"{node}: {number} handler call{'s' if number > 1 else ''} ended in an error, the last one in {last}"
        for node, (number, last) in counts.errors().items()
    ]
    found["budgets"] = [_missed(paths) for paths in _paths(counts).values() if _is_missed(paths)]
    found["restarts"] = [
        f"{name} {whys[-1]}, and was started again{'' if len(whys) == 1 else f' ({len(whys)} times)'}"
        for name, whys in sorted(restarted.items())
    ]
    found["lost"] = [
        f"{node}: {text}" for node, text in sorted({(life.node, text) for life in counts.lives for text in life.losses})
    ]
    found["refused"] = _refused(counts)
    found["processes"] = [f"{name} {why}" for name, why in unclean.items()]
    return [NotKept(promise, text) for promise in PROMISES for text in found[promise.kind]]


def lines(broken: Collection[NotKept], allowed: Collection[str]) -> list[str]:
    """The last lines of a run; `allowed` are the options that were given."""
    told = []
    for one in broken:
        option = one.promise.option
        if option in allowed:
            told.append(f"allowed: {one.text}")
        else:
            told.append(f"failed: {one.text}{f'; {option} counts that as a success' if option else ''}")
    return told


def _paths(counts: MessageCounts) -> dict[tuple[str, str], list[PathHealth]]:
    """By node and name, what was measured in each of the node's lives."""
    found: dict[tuple[str, str], list[PathHealth]] = {}
    for life in counts.lives:
        for path in life.paths:
            found.setdefault((life.node, path.name), []).append(path)
    return found


def _is_missed(paths: Collection[PathHealth]) -> bool:
    counted, over, unknown = (sum(getattr(path, name) for path in paths) for name in ("count", "over", "unknown"))
    return is_met(counted, over, unknown) is False


def _missed(paths: list[PathHealth]) -> str:
    longest = max(paths, key=lambda path: path.count + path.unknown)
    unknown = f", of {longest.unknown} more the age is not known" if longest.unknown else ""
    return (
        f"path budget {longest.name} not met: p99 {longest.p99_ms:.0f} ms of {longest.p99_budget_ms:g}; "
        f"{longest.over} of {longest.count} were older{unknown}"
    )


def _refused(counts: MessageCounts) -> list[str]:
    ports: dict[tuple[str, str], list[PortHealth]] = {}
    for life in counts.lives:
        for port in life.ports:
            ports.setdefault((life.node, port.topic), []).append(port)
    found = []
    for (node, topic), lives in ports.items():
        dropped = sum((Counter(port.dropped) for port in lives), Counter[str]())
        reasons = {reason: dropped[reason] for reason in REFUSED if dropped[reason]}
        received = sum(port.received for port in lives)
        if received and sum(reasons.values()) == received:
            told = ", ".join(f"{reason} {number}" for reason, number in reasons.items())
            found.append(f"{node} could take in none of {received} messages on {topic}: {told}")
    return found
