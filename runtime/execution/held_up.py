"""`HeldUp`: names the worker's handler that kept the interpreter to itself, where others of its process came late.

A blocking handler has a thread of its own. Yet one step of it that does not let go of the interpreter, such as a sum
over a large list, stops all other threads until it is done. What comes late by that is innocent. It was the worker
where its thread had the processor for much of that time, and the late one's hardly at all.
"""

from __future__ import annotations

import inspect
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.clock import NS_PER_S, OWN_CPU, cpu_clock, cpu_ns
from runtime.launch.checks.ownership import attributes_at

if TYPE_CHECKING:
    from runtime.execution.bound_node import BoundNode

_MUCH = 0.2  # of the time that was lost: other programs may have had their share of it
_HARDLY = 0.25  # of what the worker used


class WorkerThread:
    """A thread of blocking handlers; `handler` is the one that it called last."""

    def __init__(self, bound: BoundNode) -> None:
        self.bound = bound
        self.ident = threading.get_ident()
        self.clock = cpu_clock()
        self.handler = ""
        self.used_ns = 0  # of the processor, when the loop looked last


class HeldUp:
    """The workers of one process, as the thread of its loop or of a control loop looks at them."""

    def __init__(self) -> None:
        self._workers: list[WorkerThread] = []
        self._own_ns: dict[int, int] = {}  # by thread, what it had used of the processor when it looked last
        self._told: set[tuple[str, str]] = set()

    def join(self, bound: BoundNode) -> WorkerThread:
        """Look after the calling thread, which runs the blocking handlers of that node."""
        worker = WorkerThread(bound)
        self._workers.append(worker)
        return worker

    def look(self, late: str, lost_ns: int, least_ns: int) -> bool:
        """Note how far the threads are; returns whether a worker held up the caller for `lost_ns`, and tells it then.

        `late` is who lost that time. Less than `least_ns` is nobody's fault.
        """
        own, culprit = threading.get_ident(), None
        used_ns = cpu_ns(OWN_CPU)
        own_ns = used_ns - self._own_ns.get(own, used_ns)
        self._own_ns[own] = used_ns
        for worker in self._workers:
            before_ns, worker.used_ns = worker.used_ns, cpu_ns(worker.clock)
            worked_ns = worker.used_ns - before_ns
            if lost_ns > least_ns and worker.handler and worked_ns > _MUCH * lost_ns and own_ns < _HARDLY * worked_ns:
                culprit = worker
        if culprit is not None:
            self._tell(culprit, late, lost_ns)
        return culprit is not None

    def _tell(self, worker: WorkerThread, late: str, lost_ns: int) -> None:
        """Log once for each handler what it does, where, and to whom."""
        node, handler = worker.bound.node, worker.handler
        code = inspect.unwrap(getattr(type(node), handler)).__code__
        frame = sys._current_frames().get(worker.ident)
        while frame is not None and frame.f_code is not code:
            frame = frame.f_back
        if frame is None or (node.name, handler) in self._told:
            return  # it has just returned: it will be seen another time
        self._told.add((node.name, handler))
        line = frame.f_lineno
        names = ", ".join(f"self.{name}" for name in attributes_at(type(node), handler, line))
        node.log.warning(
            "%s kept the interpreter to itself for %.2f s, at %s:%d%s, and %s was late by it; do it in smaller steps, "
            "by a library that lets go of the interpreter, or in a node of its own",
            *(handler, lost_ns / NS_PER_S, Path(code.co_filename).name, line, f" with {names}" if names else "", late),
        )
