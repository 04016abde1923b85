"""`Health`: what every node tells about itself once a second, on `health/<node>`."""

from __future__ import annotations

from runtime.message import Message


class TimerHealth(Message, kind="state"):
    """How one timer keeps its rate, since the node started."""

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


class Health(Message, kind="state"):
    """A node's own account of itself."""

    node: str
    pid: int
    timers: tuple[TimerHealth, ...]
    ports: tuple[PortHealth, ...]
    sent: dict[str, int]  # messages published, by topic
    errors: int  # handler calls that ended in an exception
    voided: int = 0  # messages not sent, because an interrupt had fenced the node's seat since the handler started
    cpu_s: float  # of the whole process
    rss_mb: float  # of the whole process
