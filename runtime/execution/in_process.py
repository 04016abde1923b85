"""`run`: nodes in real time in this process, from Python; the counterpart of `Simulation`.

It starts a thread that tells of handlers which do not return.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from runtime.clock import run_to_end, to_ns
from runtime.coordination.lease import SeatHolders
from runtime.errors import GraphError, PolyrhythmError
from runtime.execution.executor import Executor, Transport
from runtime.execution.log_filter import log_to
from runtime.launch.graph import Graph, NodeSpec, specs_of
from runtime.launch.one_file import check_seconds, check_seed, seats_of
from runtime.launch.tables.seats_table import SeatTable, as_data, holders_of, topics_of
from runtime.node import Node

Outcome = tuple[bool, str] | None
LOG_FORMAT = "%(levelname)s %(name)s: %(message)s"


def run(*nodes: Node | NodeSpec | Graph, seconds: float | None = None, seed: int = 0) -> Outcome:
    """Run nodes, given as instances, as specs or as a graph, until one finishes the run, the time is over, or Ctrl-C.

    Returns the outcome that a node gave as (ok, reason), or None. All nodes share this process; what they log goes to
    `logging`, and to the terminal where nobody has configured that. Raises GraphError where the nodes do not fit
    together, and PolyrhythmError at the end where handlers failed.
    """
    check_seconds(seconds)
    check_seed("run", seed)
    seats = seats_of(nodes)
    graph = Graph(specs_of(nodes), {seat: table.candidates for seat, table in seats.items()})
    graph.check()
    if not graph.nodes:
        raise GraphError("run(): no nodes; expected them one by one, such as run(Camera(), Policy())")
    if not logging.getLogger().handlers:
        lines = logging.StreamHandler()
        lines.setFormatter(logging.Formatter(LOG_FORMAT))
        log_to(lines)
    stops: list[Callable[[], object]] = []
    made = _run(graph, seats, seconds, seed, stops)
    return _beside_loop(made, stops) if _has_loop() else run_to_end(made)


def _has_loop() -> bool:
    """Whether this thread runs an asyncio loop already, as that of a notebook does."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _beside_loop(made: Coroutine[Any, Any, Outcome], stops: list[Callable[[], object]]) -> Outcome:
    """Run it in a thread of its own, and wait for it; Ctrl-C, or a notebook's button, ends it as it ends any run."""
    with ThreadPoolExecutor(1, thread_name_prefix="run") as pool:
        running = pool.submit(run_to_end, made)
        try:
            return running.result()
        except KeyboardInterrupt:
            for stop in stops:
                stop()
            return running.result()


async def _run(
    graph: Graph,
    seats: Mapping[str, SeatTable],
    seconds: float | None,
    seed: int,
    stops: list[Callable[[], object]],
) -> Outcome:
    """`stops` is given what ends the run, for any thread."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    stops.append(partial(loop.call_soon_threadsafe, stop.set))
    outcomes: list[tuple[bool, str]] = []

    class Alone(Transport):
        """Nobody listens outside of this process."""

        def finish(self, node: str, ok: bool, reason: str) -> None:
            outcomes.append((ok, reason))
            loop.call_soon_threadsafe(stop.set)

    run_info: dict[str, Any] = {"seed": seed, "clock": "real", "seats": as_data(seats), **graph.facts}
    executor = Executor(
        graph.nodes.values(),
        graph.types,
        transport=Alone(),
        seed=seed,
        run_info=run_info,
        keeps_journal=graph.is_recorded,
        leases=SeatHolders(holders_of(seats), topics_of(seats, graph.nodes)),
        authority=graph.authority,
    )
    with executor.long_calls.looking():
        await executor.prepare()
    was_asked = False

    def interrupted(*_: object) -> None:
        nonlocal was_asked
        if was_asked:
            raise KeyboardInterrupt  # asked twice: at once, also out of a handler that does not return
        was_asked = True
        loop.call_soon_threadsafe(stop.set)

    is_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, interrupted) if is_main else None
    end = None if seconds is None else loop.call_later(to_ns(seconds) * 1e-9, stop.set)
    try:
        with executor.long_calls.looking():
            await executor.run(stop)
    finally:
        if end is not None:
            end.cancel()
        if is_main:
            signal.signal(signal.SIGINT, before)
    if executor.stuck:
        raise PolyrhythmError(f"{', '.join(executor.stuck)} did not end: a blocking handler does not return")
    failed = [
        f"{bound.name} {bound.failures.count} times, the last time in {bound.failures.last}"
        for bound in executor.bound_nodes
        if bound.failures.count
    ]
    if failed:
        raise PolyrhythmError(f"handlers failed in this run: {'; '.join(failed)}")
    return outcomes[0] if outcomes else None
