"""`RealTimeStart`: gives a process the priorities, cores and memory that its launch asks for, or says why not."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from runtime.launch.graph import NodeSpec
from runtime.launch.tables.processes_table import RealTime
from runtime.operating_system.real_time import (
    CONTROL_PRIORITY,
    ask_for_fifo,
    be_ordinary,
    lock_memory,
    may_have_fifo,
    may_lock_memory,
    may_use_cores,
    transport_priority,
    use_cores,
)


def refusals(asked: RealTime) -> list[str]:
    """What this machine would not grant a process that asks for this, as sentences."""
    found = [may_have_fifo(asked.fifo)] if asked.fifo else []
    found += [may_use_cores(asked.cpus)] if asked.cpus else []
    found += [may_lock_memory()] if asked.lock_memory else []
    return [refusal for refusal in found if refusal]


class RealTimeStart:
    """Sets up the real-time scheduling of a process; for its main thread, before it starts others.

    `control` and `transport` are the priorities of its control loops and of what brings them messages; 0 is ordinary. A
    refusal is logged in one line. It is a warning where the launch file asks for this, or where the run moves a real
    robot (`is_claimed`).
    """

    def __init__(
        self, process: str, specs: Iterable[NodeSpec], asked: RealTime | None, *, is_claimed: bool = False
    ) -> None:
        self._log = logging.getLogger(process)
        self._asked = asked or RealTime()
        if self._asked.cpus:
            self._tell(use_cores(self._asked.cpus))
        wanted = self._asked.fifo
        if wanted is None:
            wanted = CONTROL_PRIORITY if any(spec.cls.realtime for spec in specs) else 0
        self.control = self.transport = 0
        if not wanted:
            return
        refusal = ask_for_fifo(wanted)
        if refusal:
            self._tell(
                f"{refusal}; without it, stops are late by as much as the machine is busy",
                is_asked=self._asked.fifo is not None or is_claimed,
            )
            return
        self.control, self.transport = wanted, transport_priority(wanted)
        be_ordinary()  # loading models is nothing urgent

    def go(self) -> None:
        """Apply it when everything is loaded and the nodes are about to run."""
        if self._asked.lock_memory:
            self._tell(lock_memory())
        if self.transport:
            ask_for_fifo(self.transport)

    def _tell(self, refusal: str, *, is_asked: bool = True) -> None:
        if refusal:
            # Not asked for, it is no fault of this run, but whoever watches should know: a notice stays in view.
            level = logging.WARNING if is_asked else logging.INFO
            self._log.log(level, "%s", refusal, extra={"is_notice": not is_asked})
