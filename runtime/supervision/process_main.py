"""One process of a run, started by the supervisor.

`python -m runtime.supervision.process_main RUN_FOLDER PROCESS READ_FD WRITE_FD`; one
with the node that issues fences has a mark besides.
"""

from __future__ import annotations

import asyncio
import atexit
import faulthandler
import gc
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from runtime.coordination.lease import SeatHolders
from runtime.errors import PolyrhythmError, fault_of_machine
from runtime.execution.executor import Deliver, Executor, Lost, Transport
from runtime.execution.log_filter import log_to
from runtime.execution.process_priorities import RealTimeStart
from runtime.execution.straight_loop import new_loop
from runtime.hosts.hosts_table import GatewayPlan
from runtime.hosts.joining import joining
from runtime.launch.process_plan import ProcessPlan, load_type
from runtime.launch.tables.nodes_table import node_spec
from runtime.message import Kind, Message
from runtime.operating_system import held_signal, telling
from runtime.operating_system.processes import end_families, forget_path, found_family
from runtime.operating_system.real_time import take_short_turns
from runtime.supervision.control_pipe import Control, ControlLog
from runtime.transport.direct import DirectReader
from runtime.transport.zeromq import (
    PublisherSockets,
    Reader,
    SubscriberThread,
    end_threads,
    endpoints,
    schedule_threads,
)

_FOR_TOOLS = ("processes", "nodes", "topics")  # parts of run.json that are nobody's business in a run
_ENDINGS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_MOST_REFUSED = 64  # pairs of source and topic
LAST_SENT_S = 0.6  # for what is queued when a process ends
WIRING_S = 5.0
"""How long a process waits for its subscribers, s; a longer wait means that one of them is down."""


class Refusals:
    """Counts messages of others that cannot be decoded, and reports the first of each kind at once.

    Any thread may note; one thread tells.
    """

    def __init__(self, control: Control) -> None:
        self._control = control
        self._lock = threading.Lock()
        self._numbers: dict[tuple[str, str], int] = {}  # by source and topic, since the last telling
        self._why: dict[tuple[str, str], str] = {}

    def note(self, source: str, topic: str, why: str) -> None:
        """Count one more; invented sources are not kept without a bound."""
        key = (source, topic)
        with self._lock:
            is_first = key not in self._why
            if is_first and len(self._why) >= _MOST_REFUSED:
                return
            self._why.setdefault(key, why)
            if not is_first:
                self._numbers[key] = self._numbers.get(key, 0) + 1
                return
        self._control.tell("refused", source=source, topic=topic, why=why[:500], number=1)

    def tell(self) -> None:
        """Report how many there were since the last report."""
        with self._lock:
            numbers, self._numbers = self._numbers, {}
        for (source, topic), number in numbers.items():
            why = self._why[source, topic][:500]
            self._control.tell("refused", source=source, topic=topic, why=why, number=number)


class Bus(PublisherSockets, Transport):
    """Connects the nodes of a process with those of others, and with the supervisor."""

    def __init__(
        self, folder: Path, name: str, plan: ProcessPlan, priority: int, control: Control, refusals: Refusals
    ) -> None:
        super().__init__(
            folder,
            name,
            priority,
            plan.reliable,
            direct=plan.direct_to,
            direct_events=plan.direct_events,
            has_own_threads=False,
        )
        self.direct = self._direct_from = plan.direct_from
        self._most_hz = plan.most_hz
        self.readers: list[Reader] = []
        self._receiver, self.acknowledged = name, plan.acknowledges
        self._control, self._refusals = control, refusals

    def open_source(self, types: Mapping[str, type[Message]], deliver: Deliver, lost: Lost) -> Reader:
        """The reader of a control loop for topics that nobody else in the process hears; None where there is none."""
        straight: dict[Kind, dict[str, type[Message]]] = {"state": {}, "event": {}}
        for topic in types.keys() & self._direct_from.keys():
            straight[types[topic].message_kind][topic] = types[topic]
        state, event = (
            DirectReader(self._receiver, own, self._direct_from, deliver, lost, self._refusals.note, self._most_hz)
            if own
            else None
            for own in straight.values()
        )
        reader = Reader(
            {topic: message for topic, message in types.items() if topic not in self._direct_from},
            deliver,
            lost,
            receiver=self._receiver,
            reliable=self.acknowledged,
            refused=self._refusals.note,
            direct=state,
            direct_events=event,
        )
        self.readers.append(reader)
        return reader

    def connect_direct(self) -> float | None:
        """Connect to publishers that have come up meanwhile; returns the seconds until the next try, or None."""
        ways = (way for reader in self.readers for way in (reader.direct, reader.direct_events) if way is not None)
        return min((wait_s for way in ways if (wait_s := way.retry()) is not None), default=None)

    def each_second(self) -> None:
        """Send the newest states to late readers, and report what could not be decoded."""
        self.send_late_join()
        self._refusals.tell()

    def finish(self, node: str, ok: bool, reason: str) -> None:
        """Tell the supervisor that a node asks for the end of the run."""
        self._control.tell("finish", node=node, ok=ok, reason=reason)


class Process:
    """The nodes of one process, its transport, and its supervisor's orders."""

    def __init__(self, folder: Path, name: str, read_fd: int, write_fd: int) -> None:
        self._folder = folder
        self._name = name
        self._loop = new_loop()
        self._go = asyncio.Event()
        self._stop = asyncio.Event()
        self._run_info: dict[str, Any] = {}
        self._control = Control(read_fd, write_fd, self._order)
        self._refusals = Refusals(self._control)
        self._held = threading.local()  # what a thread that forks blocked before
        self._executor: Executor | None = None

    def main(self) -> int:
        """Run to the end; 0 where the supervisor asked for it."""
        log_to(ControlLog(self._control))
        take_short_turns()  # before there are other threads, which then have it, too
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the supervisor's to answer
        self._control.start()
        os.register_at_fork(before=self._hold_signals, after_in_parent=self._let_signals, after_in_child=self._forked)
        work = self._loop.create_task(self._run())
        wish: BaseException | None = None
        try:
            while not work.done():
                try:
                    self._loop.run_until_complete(work)
                except (SystemExit, KeyboardInterrupt) as problem:  # of a handler, and again of who awaits it
                    wish = wish or problem
                    self._stop.set()  # the others end as at the end of the run
            if wish is not None:
                return self._leave(wish.code if isinstance(wish, SystemExit) else type(wish).__name__)
        except PolyrhythmError as problem:
            self._control.tell("failed", text=str(problem))
            return 2
        except Exception as problem:
            fault = fault_of_machine(problem)
            if fault is None:
                logging.getLogger(self._name).exception("cannot start")
            self._control.tell("failed", text=fault or f"{type(problem).__name__}: {problem}")
            return 1
        finally:
            self._control.close()
            if self._control.is_orphan:  # else its supervisor does it
                end_families({os.getpid()}, self._folder.name)
        return 0

    def _leave(self, wish: object) -> int:
        """The exit code that a handler asked for by `sys.exit`; a sentence is told, and its code is 1."""
        if wish is None or isinstance(wish, int):
            return int(wish or 0)
        self._control.tell("failed", text=f"ended itself: {wish}")
        return 1

    def _end_by(self, number: signal.Signals) -> None:
        """Somebody ends this process by a signal: where that is not the supervisor at the end, it is told which."""
        if not self._stop.is_set():
            self._control.tell("failed", text=f"was ended by {number.name}")
        self._stop.set()

    def _hold_signals(self) -> None:
        """A handler forks: a signal to the child must not come before it has handlers of its own."""
        self._held.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDINGS)

    def _let_signals(self) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._held.mask)

    def _forked(self) -> None:
        """In a child that a handler has forked: nothing of the run goes on in it, and no signal to it is the node's."""
        signal.set_wakeup_fd(-1)  # else what is sent to it is heard by the node
        for number in _ENDINGS:
            signal.signal(number, signal.SIG_DFL)
        self._let_signals()
        self._control.forget()
        if self._executor is not None:
            self._executor.forget()

    def _order(self, order: dict[str, Any]) -> None:
        if order["do"] == "ended":
            outcome = self._run_info["outcome"] = {"ok": order["ok"], "reason": order["reason"]}
            if self._executor is not None:
                self._executor.note(outcome=outcome)
        if order["do"] == "refused" and self._executor is not None:
            fields = {key: value for key, value in order.items() if key != "do"}
            self._executor.hear_refusal(**fields)
        if order["do"] == "stop" and self._executor is not None:
            self._executor.long_calls.end()
        event = {"go": self._go, "stop": self._stop}.get(order["do"])
        if event is not None:
            try:
                self._loop.call_soon_threadsafe(event.set)
            except RuntimeError:
                pass  # the loop is closed: the process has stopped already

    async def _run(self) -> None:
        for number in (signal.SIGTERM, signal.SIGHUP):
            self._loop.add_signal_handler(number, self._end_by, number)
        run: dict[str, Any] = json.loads((self._folder / "run.json").read_text())
        plan = msgspec.convert(run["processes"][self._name], ProcessPlan)
        path = Path(run["launch_file"])
        specs = [node_spec(path, name, table) for name, table in plan.nodes.items()]
        types = {topic: load_type(name) for topic, name in plan.hears.items()}
        names = frozenset(run["nodes"])
        self._run_info.update((key, value) for key, value in run.items() if key not in _FOR_TOOLS)
        if plan.gateway is not None:
            await self._run_gateway(plan, plan.gateway, types, names)
            return
        start = RealTimeStart(self._name, specs, plan.realtime, is_claimed=bool(run.get("claims")))
        schedule_threads(start.transport)
        outlet = Bus(self._folder, self._name, plan, start.transport, self._control, self._refusals)
        self._run_info["registry"] = str(self._folder)  # this user's alone: tools find the run here
        self._run_info["needed_files"] = [
            str(path) for path in (self._folder / "run.json", *endpoints(self._folder, self._name))
        ]
        if plan.hosts_authority and held_signal.SIGNAL is not None:
            self._run_info["has_signal"] = True
        self._executor = executor = Executor(
            specs,
            types,
            transport=outlet,
            seed=run["seed"],
            run_info=self._run_info,
            keeps_journal=plan.is_recorded,
            leases=SeatHolders(plan.holders, plan.seat_topics),
            authority=plan.authority,
            control_priority=start.control,
        )
        self._control.on_beat = executor.long_calls.look
        outlet.kept.update((topic, ()) for topic in executor.topics_kept)
        inlet = SubscriberThread(
            executor.shared_types,
            executor.deliver,
            executor.lost,
            is_deep=any(spec.cls.subscribes_all for spec in specs),
            receiver=self._name,
            reliable=plan.acknowledges,
            refused=self._refusals.note,
        )
        try:
            inlet.connect(self._folder, plan.peers, plan.owners, names, plan.vouched)
            for reader in outlet.readers:
                reader.connect(self._folder, plan.peers, plan.owners, vouched=plan.vouched)
            inlet.accept(self._folder, self._name, types)
            await executor.prepare()
            inlet.start(start.transport, outlet.resender)
            missing = await outlet.await_subscribers(plan.listeners, WIRING_S, self._stop, outlet.connect_direct)
            self._watch(outlet)
            if missing and not self._stop.is_set():
                logging.getLogger(self._name).warning("started before all subscribers of %s", ", ".join(missing))
            self._control.tell("ready")
            await self._wait_for_order(outlet.connect_direct)  # those who come up later wait for us, too
            if not self._stop.is_set():
                start.go()
                if "has_signal" in self._run_info:  # from now on it answers
                    held_signal.be_known(run["name"], run["supervisor_pid"])
                gc.enable()
                await executor.run(self._stop)
        finally:
            await executor.stop_nodes()
            self._refusals.tell()
            outlet.settle()
            inlet.close()
            self._unwatch(outlet)
            outlet.close()
            for reader in outlet.readers if not executor.stuck else ():
                reader.close()
            end_threads(LAST_SENT_S)
        if executor.stuck:
            logging.getLogger(self._name).warning("%s did not end in time", ", ".join(executor.stuck))
            self._control.tell("failed", text="had to be left behind: a handler of it does not return")
            self._control.close()
            telling.finish()
            os._exit(1)  # a handler that never returns must not keep the process

    async def _run_gateway(
        self, plan: ProcessPlan, part: GatewayPlan, types: Mapping[str, type[Message]], names: frozenset[str]
    ) -> None:
        def finish(ok: bool, reason: str) -> None:
            self._control.tell("finish", node=self._name, ok=ok, reason=reason)

        outlet = PublisherSockets(
            self._folder,
            self._name,
            reliable=plan.reliable,
            direct=plan.direct_to,
            direct_events=plan.direct_events,
            has_own_threads=False,
        )
        gateway, doors = joining("gateway")(part, types, load_type, publish=outlet.publish, finish=finish)
        inlet = SubscriberThread(
            types,
            gateway.from_here,
            lambda *_: None,
            receiver=self._name,
            reliable=plan.acknowledges,
            refused=self._refusals.note,
        )
        try:
            inlet.connect(self._folder, plan.peers, plan.owners, names, plan.vouched)
            inlet.accept(self._folder, self._name, types)
            inlet.start(resender=outlet.resender)
            await outlet.await_subscribers(plan.listeners, WIRING_S, self._stop)
            self._watch(outlet)
            self._control.tell("ready")
            await self._wait_for_order()
            gc.enable()
            await gateway.run(self._stop)
            outcome = self._run_info.get("outcome")
            gateway.leave((outcome["ok"], outcome["reason"]) if outcome else None)
        finally:
            self._refusals.tell()
            outlet.settle()
            inlet.close()
            doors.close()
            self._unwatch(outlet)
            outlet.close()
            end_threads(LAST_SENT_S)

    def _watch(self, outlet: PublisherSockets) -> None:
        """Let the loop look who comes to hear, who goes, and who has room again."""
        if outlet.sender is not None:
            self._loop.add_reader(outlet.sender.events, outlet.sender.look)
            for fd in outlet.notices_fds:
                self._loop.add_reader(fd, outlet.look)

    def _unwatch(self, outlet: PublisherSockets) -> None:
        if outlet.sender is not None:
            self._loop.remove_reader(outlet.sender.events)
            for fd in outlet.notices_fds:
                self._loop.remove_reader(fd)

    async def _wait_for_order(self, connect: Callable[[], float | None] = lambda: None) -> None:
        """Wait until the run goes on or is to stop; `connect` is called until it names no time for another try."""
        waits = [asyncio.create_task(event.wait()) for event in (self._go, self._stop)]
        while not (await asyncio.wait(waits, timeout=connect(), return_when=asyncio.FIRST_COMPLETED))[0]:
            pass
        for wait in waits:
            wait.cancel()


def main() -> int:
    """Run one process of a run."""
    forget_path()
    gc.disable()  # until the run begins: what is imported and loaded stays, and looking through it takes time
    telling.use_apart()  # a supervisor that is gone or halted makes no `print` of a node raise or wait
    atexit.register(telling.finish)
    faulthandler.enable(sys.stderr.fileno())
    folder, name, read_fd, write_fd = sys.argv[1:5]
    found_family(Path(folder).name)
    return Process(Path(folder), name, int(read_fd), int(write_fd)).main()


if __name__ == "__main__":
    sys.exit(main())
