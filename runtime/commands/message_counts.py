"""`MessageCounts`: what became of the messages of a run, from what each node told last of itself."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

from runtime.coordination.health import Health
from runtime.message import Stamped
from runtime.supervision.view import View, shown_by


class MessageCounts:
    """A view that hands all on to another one and keeps the accounts that go by.

    A process that was killed takes what it counted since its last account, at most a second, with it.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        shows = shown_by(view)
        self.shows = None if shows is None else (*shows, Health)
        self._last: dict[tuple[str, int], Health] = {}  # by node and life
        self._fails = 0

    def message(self, stamped: Stamped[Any]) -> None:
        """A message that was published."""
        health = stamped.message
        if isinstance(health, Health) and health.node == stamped.envelope.source:
            self._last[health.node, health.pid] = health
        self._show(lambda: self._view.message(stamped))

    def process(self, name: str, pid: int, state: str) -> None:
        """A process changed its state."""
        self._show(lambda: self._view.process(name, pid, state))

    def log(self, level: str, source: str, text: str, at_s: float | None = None) -> None:
        """A log line."""
        self._show(lambda: self._view.log(level, source, text, at_s))

    def refresh(self, now_ns: int) -> None:
        """Time to draw again."""
        self._show(lambda: self._view.refresh(now_ns))

    def close(self) -> None:
        """The run is over."""
        self._show(self._view.close)

    def _show(self, show: Callable[[], None]) -> None:
        """What is shown is of no consequence to the run: a view that fails is told once, and counted."""
        try:
            show()
        except Exception as problem:  # noqa: BLE001  # a view may be of a user
            self._fails += 1
            if self._fails == 1:
                what = f"{type(self._view).__name__}, which shows the run, failed: {type(problem).__name__}: {problem}"
                print(f"{what}; the run goes on", file=sys.stderr)

    @property
    def lives(self) -> list[Health]:
        """The last account of each life of each node."""
        return [health for _, health in sorted(self._last.items())]

    def as_data(self) -> dict[str, dict[str, dict[str, Any]]]:
        """By node and topic: received, delivered, waiting, and dropped by reason."""
        found: dict[str, dict[str, dict[str, Any]]] = {}
        for (node, _), health in sorted(self._last.items()):
            for port in health.ports:
                new = {"received": 0, "delivered": 0, "waiting": 0, "dropped": {}}
                counted = found.setdefault(node, {}).setdefault(port.topic, new)
                counted["received"] += port.received
                counted["delivered"] += port.delivered
                counted["waiting"] += port.waiting
                counted["dropped"] = dict(Counter(counted["dropped"]) + Counter(port.dropped))
        return found

    def lines(self) -> list[str]:
        """The same in words: the sum, and each subscription that lost something."""
        failed = [f"the view failed {self._fails} times"] if self._fails else []
        return [*self._messages(), *failed]

    def errors(self) -> dict[str, tuple[int, str]]:
        """The nodes whose handlers raised something: how often, and the last time."""
        found: dict[str, tuple[int, str]] = {}
        for health in self.lives:
            if health.errors:
                found[health.node] = (found.get(health.node, (0, ""))[0] + health.errors, health.last_error)
        return found

    def _messages(self) -> list[str]:
        counts = [(node, topic, one) for node, topics in self.as_data().items() for topic, one in topics.items()]
        if not counts:
            return []
        received, delivered, waiting = (
            sum(one[key] for _, _, one in counts) for key in ("received", "delivered", "waiting")
        )
        dropped = sum(sum(one["dropped"].values()) for _, _, one in counts)
        lines = [f"messages: {received} received; {delivered} delivered, {dropped} dropped, {waiting} waiting"]
        for node, topic, one in counts:
            if one["dropped"]:
                reasons = ", ".join(f"{reason} {number}" for reason, number in sorted(one["dropped"].items()))
                lines.append(f"  {node}, of {one['received']} on {topic}: {reasons}")
        return lines
