"""`Health`: what every node reports of itself once a second, on `health/<node>`; `GatewayHealth`: of a link."""

from __future__ import annotations

import msgspec

from runtime.message import Message


class TimerHealth(Message, kind="state"):
    """How well one timer has kept its rate since the node started."""

    name: str
    hz_target: float
    hz_achieved: float
    ticks: int
    overruns: int  # ticks that never ran, because an earlier one ran long
    lateness_p50_ms: float
    lateness_p99_ms: float
    lateness_max_ms: float


class PortHealth(Message, kind="state"):
    """What became of the messages that reached one subscription: received = delivered + dropped + waiting."""

    topic: str
    received: int
    delivered: int
    waiting: int
    dropped: dict[str, int]  # by reason: "overwritten", "expired", "queue full", "link"
    age_ms: float | None = None  # of the newest message; None before the first one
    deadlines_missed: int = 0  # silences longer than the port's QoS allows


class PathHealth(Message, kind="state"):
    """A path budget as measured since the start by the node that publishes the path's last topic."""

    name: str
    topics: tuple[str, ...]
    p99_budget_ms: float
    count: int  # messages with a known age of what the path begins with
    over: int  # of these, how many were older than the budget
    unknown: int = 0  # messages more, whose age cannot be known
    p50_ms: float
    p99_ms: float
    max_ms: float


class Spending(Message, kind="state"):
    """What a node has spent on a model in this run, restarts included.

    Return one from `spending()` of a node that asks a model; budgets, `top` and the report read it. Money is in the
    currency of the prices that the launch file gives. A limit of 0 means none.
    """

    model: str
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated_tokens: int = 0  # of these: the server did not say how many, as when a request was cancelled
    money: float = 0.0
    max_calls: int = 0
    max_tokens: int = 0
    max_money: float = 0.0
    spent: str = ""  # why nothing more is asked; "" while something may be


class Health(Message, kind="state"):
    """What a node reports of itself once a second on `health/NODE`: timers, ports, errors, spending.

    `polyrhythm top` shows it. Subscribe to it to raise an alarm of your own, as when a node drops messages. Counts are
    since the node's start.
    """

    node: str
    pid: int
    timers: tuple[TimerHealth, ...]
    ports: tuple[PortHealth, ...]
    sent: dict[str, int]  # messages published, by topic
    errors: int  # handler calls that ended in an exception
    last_error: str = ""  # the last of them: handler, place, and what it said
    paths: tuple[PathHealth, ...] = ()
    spending: Spending | None = None
    voided: int = 0  # messages not sent, because an interrupt had fenced the node's seat since the handler started
    unacknowledged: dict[str, dict[str, int]] = msgspec.field(default_factory=dict)
    """Of the whole process: reliable events that were not acknowledged, by topic and "process: reason"."""
    refused: dict[str, dict[str, int]] = msgspec.field(default_factory=dict)
    """Messages of this node that a receiving process could not decode, by topic and process."""
    losses: tuple[str, ...] = ()  # what it works with and lost meanwhile, such as its robot, in words
    cpu_s: float  # of the whole process
    rss_mb: float  # of the whole process


class GatewayHealth(Message, kind="state"):
    """The state of the link to another host; once a second on `gateway/<host>`."""

    host: str
    is_up: bool
    round_trip_ms: float = 0.0  # of the newest question
    clock_error_ms: float = 0.0  # by which the ages of that host's messages may be wrong, either way
    sent_mbit: float = 0.0  # in the last second
    received_mbit: float = 0.0
    image_quality: int = 0  # JPEG
    dropped: dict[str, int]  # since the start, by reason


def gateway_topic(host: str) -> str:
    """The topic on which the gateway to a host reports."""
    return f"gateway/{host}"
