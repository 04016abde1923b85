"""`Calls`: what a node's journal tells of handler calls and log lines, so that a recording can be replayed exactly."""

from __future__ import annotations

from runtime.message import Epochs, Message


class CallRecord(Message):
    """One call of a handler; messages are named "topic:source:seq".

    `order` numbers the moments at which calls of this node read or changed its attributes. A worker's call reads them
    at `begun` and changes them at `order`; any other call does both at `order`.
    An async call begins at `begun` and goes on after each of its `waits`.
    """

    message_durations = frozenset({"took_ns"})

    handler: str
    started_ns: int
    took_ns: int
    epochs: Epochs
    trigger: str = ""
    reads: tuple[str, ...] = ()  # "port=topic:source:seq" in order; "port=" where nothing was known
    nows_ns: tuple[int, ...] = ()  # what the clock said, after `started_ns`; empty where it stood still
    sent: tuple[str, ...] = ()  # "" where a fence voided the message
    is_cut: bool = False  # it read more than is kept
    order: int = 0
    begun: int = 0
    waits: tuple[tuple[int, str], ...] = ()
    """Of an async call: when it went on after each sleep and each answer from outside, and that answer."""


class LogLine(Message):
    """One log line of a node; `level` is that of Python's logging."""

    at_ns: int
    level: int
    text: str


class Calls(Message):
    """The calls of one node since the last batch, and its log lines."""

    node: str
    calls: tuple[CallRecord, ...]
    lost: int = 0  # calls that did not fit into this batch
    logs: tuple[LogLine, ...] = ()
    running: tuple[int, ...] = ()  # where the worker's calls began that have not ended yet


def calls_topic(node: str) -> str:
    """The topic of a node's journal."""
    return f"calls/{node}"
