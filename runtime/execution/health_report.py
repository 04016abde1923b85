"""A bound node's counters as a `Health` message."""

from __future__ import annotations

from collections.abc import Mapping

from runtime.coordination.health import Health, PortHealth, TimerHealth
from runtime.execution.bound_node import BoundNode
from runtime.journal.answers import blotted

HEALTH_PERIOD_S = 1.0
_MS = 1e-6
_MOST_SAID = 500  # characters of an error, which goes out with each report


def health_of(
    bound: BoundNode,
    *,
    pid: int,
    cpu_s: float,
    rss_mb: float,
    unacknowledged: Mapping[str, Mapping[str, int]] | None = None,
) -> Health:
    """The health of this node: what its timers and ports have counted so far."""
    now_ns = bound.clock.now_ns()
    timers = tuple(
        TimerHealth(
            name=state.timer.name,
            hz_target=state.hz,
            hz_achieved=round(state.stats.hz, 3),
            ticks=state.stats.ticks,
            overruns=state.stats.overruns,
            lateness_p50_ms=round(state.stats.lateness.percentile_ns(50) * _MS, 4),
            lateness_p99_ms=round(state.stats.lateness.percentile_ns(99) * _MS, 4),
            lateness_max_ms=round(state.stats.lateness.highest_ns * _MS, 4),
        )
        for lane in bound.lanes
        for state in lane.timers
    )
    ports = tuple(
        PortHealth(
            topic=port.topic,
            received=port.received,
            delivered=port.delivered,
            waiting=port.unread,
            dropped=dict(port.dropped),
            age_ms=round((now_ns - port.newest_ns) * _MS, 3) if port.newest_ns else None,
            deadlines_missed=port.deadlines_missed,
        )
        for port in bound.subscriptions.values()
    )
    return Health(
        node=bound.name,
        pid=pid,
        timers=timers,
        ports=ports,
        sent={publisher.topic: publisher.sent for publisher in bound.publishers},
        errors=bound.failures.count,
        last_error=blotted(bound.failures.last)[:_MOST_SAID],  # it is recorded
        voided=bound.voided,
        unacknowledged={
            publisher.topic: dict(unacknowledged[publisher.topic])
            for publisher in bound.publishers
            if unacknowledged and publisher.topic in unacknowledged
        },
        refused={topic: dict(some) for topic, some in bound.refused.items()},
        paths=tuple(meter.health() for meter in bound.meters),
        spending=bound.spends.spending() if bound.spends is not None else None,
        losses=tuple(bound.loses.losses()) if bound.loses is not None else (),
        cpu_s=cpu_s,
        rss_mb=rss_mb,
    )
