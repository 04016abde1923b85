"""`VirtualLanes`: runs the lanes of all nodes on one scheduler; a handler runs inline and takes its declared time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Collection
from contextvars import copy_context
from typing import Any

from runtime.clock import to_ns
from runtime.context import HandlerContext, current_call
from runtime.coordination.fence import PreemptionEpochs
from runtime.errors import EscapeError, MissedTickError, PolyrhythmError
from runtime.execution.bound_node import BoundNode
from runtime.execution.failures import OF_A_HANDLER, failure_of, remedy_of
from runtime.execution.lane import Lane, Work
from runtime.launch.graph import NodeSpec
from runtime.launch.tables.handler_latency import Turns
from runtime.virtual.sandbox import DeterminismGuard
from runtime.virtual.scheduler import TIMER, Scheduler, VirtualLoop


class VirtualLanes:
    """Runs lanes in virtual time: what a handler publishes leaves it after its latency, and its lane is busy until
    then.

    Once `is_over`, nothing new is run; while `is_closing`, only nodes that hear everything still run.
    """

    def __init__(self, scheduler: Scheduler, loop: VirtualLoop, specs: Collection[NodeSpec], seed: int) -> None:
        self.is_over = self.is_closing = self.goes_on = False
        self.failure: BaseException | None = None
        """What an async handler has raised, or a tick that was missed; whoever steps the scheduler raises it."""
        self.watch: DeterminismGuard | None = None
        self._scheduler = scheduler
        self._loop = loop
        self._armed: dict[Lane, int] = {}
        self._tasks: dict[asyncio.Task[None], tuple[BoundNode, HandlerContext]] = {}
        self._latency = {spec.name: spec.latency for spec in specs}
        self._turns = {spec.name: Turns(seed, spec.name) for spec in specs}
        self._random = {spec.name: random.Random(f"{seed}/{spec.name}/latency") for spec in specs}

    def watch_ticks(self, bound: BoundNode) -> None:
        """Let a missed tick of a timer with `overrun="error"` count as an exception in its handler does."""

        def fail(handler: str, problem: MissedTickError) -> None:
            if self.goes_on:
                bound.failures.tell(handler, problem)
                return
            self._note(problem, bound, handler)
            self.failure = problem

        for lane in bound.lanes:
            for state in lane.timers:
                state.fail = fail

    def arm(self, bound: BoundNode, lane: Lane) -> None:
        """Schedule the lane for its next tick."""
        due_ns = lane.due_after_ns(self._scheduler.now_ns)
        if due_ns is None or self._armed.get(lane) == due_ns:
            return
        self._armed[lane] = due_ns
        self._scheduler.at(due_ns, lambda: self.drive(bound, lane), priority=TIMER)

    def drive(self, bound: BoundNode, lane: Lane) -> None:
        """Run what is due in the lane now."""
        if self.is_closing and not type(bound.node).subscribes_all:
            return
        while not lane.is_busy and (self.is_closing or not self.is_over):
            work = lane.take(self._scheduler.now_ns)
            if work is None:
                break
            self._run(bound, lane, work)
        if not lane.is_busy:
            self.arm(bound, lane)

    def void(self, fence: PreemptionEpochs) -> None:
        """Cancel the async handlers whose seat has been fenced since they started."""
        for task, (bound, call) in tuple(self._tasks.items()):
            if fence.voids(bound.seat, call.epochs, call.cause):
                task.cancel()

    def cancel(self) -> None:
        """Cancel all async handlers."""
        for task in tuple(self._tasks):
            task.cancel()

    def _run(self, bound: BoundNode, lane: Lane, work: Work) -> None:
        latency = self._latency[bound.name].get(work.handler)
        latency_ns = 0
        if latency is not None:
            turn = self._turns[bound.name].take(work.handler)
            latency_ns = to_ns(latency.draw_s(self._random[bound.name], turn))
        call = bound.call(work)
        call.not_before_ns = self._scheduler.now_ns + latency_ns
        watch = self.watch
        if watch is not None:
            watch.begin(f"{bound.name}.{work.handler}", is_blocking=work.style == "blocking")
        result = None
        try:
            result = bound.run(work, call)
        except EscapeError:
            if watch is not None:
                watch.found = None
            raise
        except OF_A_HANDLER as problem:
            if not self.goes_on:
                self._note(problem, bound, work.handler)
                raise
            bound.failures.tell(work.handler, problem)
        finally:
            if watch is not None:
                watch.end()
        lane.is_busy = True
        if lane.style == "async" and result is not None:
            self._run_task(bound, lane, work, call, result)
        elif latency_ns:
            self._scheduler.at(call.not_before_ns, lambda: self._end(bound, lane, work, call))
        else:
            self._commit(bound, work, call)
            lane.is_busy = False

    def _run_task(self, bound: BoundNode, lane: Lane, work: Work, call: HandlerContext, coroutine: Any) -> None:
        context = copy_context()
        context.run(current_call.set, call)
        task = self._loop.create_task(coroutine, name=f"{bound.name}.{work.handler}", context=context)
        self._tasks[task] = (bound, call)

        def done(task: asyncio.Task[None]) -> None:
            del self._tasks[task]
            if (problem := failure_of(task)) is not None:
                if self.goes_on and isinstance(problem, OF_A_HANDLER) and not isinstance(problem, EscapeError):
                    bound.failures.tell(work.handler, problem)
                else:
                    self._note(problem, bound, work.handler)
                    self.failure = problem  # asyncio would only log it here
                    return
            if not task.cancelled() and call.not_before_ns > self._scheduler.now_ns:
                self._scheduler.at(call.not_before_ns, lambda: self._free(bound, lane))
            else:
                self._free(bound, lane)

        task.add_done_callback(done)

    def _note(self, problem: BaseException, bound: BoundNode, handler: str) -> None:
        """Say with an exception what to do about it, where that is known, and where in virtual time it was raised."""
        if known := remedy_of(problem):
            problem.add_note(known)
        problem.add_note(f"in {bound.name}.{handler} at {self._scheduler.now_ns * 1e-9:.3f} s of virtual time")

    def _end(self, bound: BoundNode, lane: Lane, work: Work, call: HandlerContext) -> None:
        self._commit(bound, work, call)
        self._free(bound, lane)

    def _commit(self, bound: BoundNode, work: Work, call: HandlerContext) -> None:
        try:
            bound.commit(work, call)
        except PolyrhythmError as problem:
            if not self.goes_on:
                raise
            bound.failures.tell(work.handler, problem)

    def _free(self, bound: BoundNode, lane: Lane) -> None:
        lane.is_busy = False
        self.drive(bound, lane)
