"""Makes the running processes match a launch: start, ready, go, restart with backoff and a window, clean stop."""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import socket
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from runtime.clock import SystemClock, to_ns
from runtime.errors import PolyrhythmError
from runtime.journal.calls import Calls
from runtime.launch.file import Launch
from runtime.launch.process_plan import ProcessPlan, describe, plan
from runtime.launch.tables.more_tables import HasPrograms
from runtime.message import Stamped, array_fields
from runtime.operating_system import held_signal
from runtime.operating_system.held_signal import MARK
from runtime.operating_system.machine import can
from runtime.operating_system.processes import end_families, reap_orphans
from runtime.operating_system.terminal import Terminal, ends_with_terminal
from runtime.supervision.child_process import ChildProcess, SideProgram, lines_of, start_command
from runtime.supervision.fork_server import ForkServer, modules_of
from runtime.supervision.registry import Claims, Registration
from runtime.supervision.view import View, shown_by
from runtime.transport.zeromq import SubscriberThread

READY_S = 60.0  # loading a large model takes that long
RESTARTS, WINDOW_S = 3, 10.0  # more restarts than this while it runs for so long end the run
LOOK_S = 0.25
BACKOFF_S, LONGEST_BACKOFF_S = 0.2, 3.0
_OBSERVER = "supervisor-view"  # no process has a name with a dash
LAST_WORDS_S = 2.0  # the processes have ended, and what they said last is still to be read
PATIENCE_S, RECORDER_PATIENCE_S = 3.0, 10.0
LOADING_PATIENCE_S = 1.0  # who loads a model cannot listen, and has nothing to finish
AGAIN_NS = to_ns(0.5)
"""Who asks for the end a second time wants it at once; what comes sooner is the same request on another way."""


class RestartWindow:
    """How long to wait before the next restart, and when to give up.

    It counts restarts within a window of the time that the process ran. Loading does not count, so a process that loads
    for long and then always crashes is given up too.
    """

    def __init__(self) -> None:
        self._ran_ns = 0
        self._since_ns: int | None = None  # when it began to run, where it does
        self._restarts_ns: deque[int] = deque()  # at which times of its running

    def runs(self, now_ns: int) -> None:
        """Note that the process has begun its work."""
        self._since_ns = now_ns

    def next_backoff_s(self, now_ns: int) -> float | None:
        """Seconds to wait before the restart that is wanted now; None where there were too many in the window."""
        if self._since_ns is not None:
            self._ran_ns, self._since_ns = self._ran_ns + now_ns - self._since_ns, None
        while self._restarts_ns and self._ran_ns - self._restarts_ns[0] > to_ns(WINDOW_S):
            self._restarts_ns.popleft()
        if len(self._restarts_ns) >= RESTARTS:
            return None
        self._restarts_ns.append(self._ran_ns)
        backoff_s: float = BACKOFF_S * 2 ** (len(self._restarts_ns) - 1)
        return min(LONGEST_BACKOFF_S, backoff_s)


class FreezeDetector:
    """Which processes are frozen: none of their threads ran for that long, as seen by regular looks.

    It counts looks and not time, so that a supervisor that was frozen itself, or a laptop that slept, finds nobody. A
    handler that keeps a core or a disk busy is not frozen: its process uses processor time, or waits for the disk.
    """

    def __init__(self, frozen_s: float) -> None:
        self.frozen_s = frozen_s
        self._silent: dict[str, int] = {}  # looks since it said anything
        self._used: dict[str, str] = {}

    def heard(self, name: str) -> None:
        """Note that the process said something."""
        self._silent[name] = -1  # the next look may come at once

    def look(self, name: str, used: str) -> bool:
        """Look once more, and return whether the process is frozen; `used` is its processor time, "" if it is busy."""
        is_idle = used != "" and used == self._used.get(name)
        self._used[name] = used
        self._silent[name] = self._silent.get(name, 0) + 1 if is_idle else 0
        return self._silent[name] * LOOK_S >= self.frozen_s


def processor_time(pid: int) -> str:
    """The processor time of a process as the kernel words it; "" where it waits for a disk, or nobody knows."""
    if not can("process table"):
        return ""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "D" else " ".join(fields[11:13])


class Supervisor:
    """One run of a launch; `run_info` is what every node may know of it, and `folder` is where its files go."""

    def __init__(
        self,
        launch: Launch,
        *,
        folder: Path,
        seed: int,
        run_info: dict[str, Any],
        view: View,
        beside: Sequence[str] = (),
        server: ForkServer | None = None,
    ) -> None:
        """`beside` is a subcommand that watches the run, with its options. `server` forks its processes, and is closed
        at the end; None starts each process afresh.
        """
        self._launch = launch
        self._server = server
        self._folder = folder
        self._seed = seed
        self._run_info = run_info
        self._view = view
        self._clock = SystemClock()
        shows = shown_by(view)
        self._watched = {
            topic: message
            for topic, message in launch.graph.types.items()
            if message is not Calls and not array_fields(message) and (shows is None or issubclass(message, shows))
        }
        self._plans: dict[str, ProcessPlan] = plan(launch, self._watched)
        self._children: dict[str, ChildProcess] = {}
        self._windows = {name: RestartWindow() for name in self._plans}
        self._freezes = FreezeDetector(launch.frozen_s)
        self._ready: set[str] = set()
        self._all_ready = asyncio.Event()
        self._is_going = False
        self._ending: asyncio.Future[tuple[bool, str] | None] | None = None
        self._asked_ns: int | None = None  # when somebody asked for the end
        self._is_hurried = False
        self._families: set[int] = set()  # the processes whose children may be left
        self._restarts: set[asyncio.Task[None]] = set()
        self._beside = tuple(beside)
        self._systemd = Systemd()
        self._registration: Registration | None = None
        self._claims: Claims | None = None
        self._programs: dict[str, SideProgram] = {}
        self.restarted: dict[str, list[str]] = {}
        """By process why it ended, each time that it was started again."""
        self.unclean: dict[str, str] = {}
        """Processes that did not end as they should when the run was over, and why."""

    async def run(self, for_s: float | None) -> tuple[bool, str] | None:
        """Run to the end; returns the outcome that a node gave, or None where the time or the user ended the run.

        Raises PolyrhythmError where a process cannot start, UserError where another run holds what this one claims.
        """
        held_signal.block()  # here and in all that is started; the guard's process waits for it
        if any(plan.hosts_authority for plan in self._plans.values()):
            held_signal.be_known(self._name, os.getpid())
        self._claims = Claims(self._run_info.get("claims", ()), self._name, self._run_info.get("devices", ()))
        try:
            return await self._run(for_s)
        finally:
            self._claims.close()
            if self._server is not None:
                self._server.close()

    async def _run(self, for_s: float | None) -> tuple[bool, str] | None:
        loop = asyncio.get_running_loop()
        self._ending = loop.create_future()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._interrupted)
        terminal = Terminal.own()
        if ends_with_terminal():
            loop.add_signal_handler(signal.SIGHUP, self._lost_terminal)
        if terminal is not None and terminal.watched >= 0:
            loop.add_reader(terminal.watched, self._lost_terminal, terminal)
        if os.getpid() == 1:
            loop.add_signal_handler(signal.SIGCHLD, self._reap)
        self._registration = Registration(self._name, self._run_document(), [*self._plans, _OBSERVER])
        sockets = self._registration.folder
        observer: SubscriberThread | None = None
        drawing = asyncio.create_task(self._draw(terminal), name="view")
        beside: asyncio.Task[None] | None = None
        watching = self._watched_over(sockets)
        try:
            observer = self._observe(sockets, loop)
            await self._start_all(sockets)
            if not self._ending.done():
                self._is_going = True
                for child in self._children.values():
                    self._go(child)
                self._systemd.tell("READY=1")
                beside = asyncio.create_task(self._look_on(), name="beside") if self._beside else None
            try:
                return await asyncio.wait_for(asyncio.shield(self._ending), for_s)
            except TimeoutError:
                return None
        finally:
            if not self._ending.done():
                self._ending.set_result(None)
            self._systemd.tell("STOPPING=1")
            await self._stop_all()
            drawing.cancel()
            for task in watching:
                task.cancel()
            if watching:  # last: they have seen how the nodes ended
                await asyncio.wait(watching)
            if terminal is not None:
                loop.remove_reader(terminal.watched)
                terminal.close()
            if beside is not None:
                beside.cancel()
                await asyncio.wait({beside})
            try:
                if observer is not None:
                    await asyncio.to_thread(observer.finish, LAST_WORDS_S)
                    await asyncio.sleep(0)  # the view's callbacks are on the loop
            finally:
                if observer is not None:
                    observer.close()
                self._registration.close()

    def _watched_over(self, folder: Path) -> list[asyncio.Task[None]]:
        """Start the programs of the launch file's tables, before there are nodes, and keep them."""
        here = {spec.name for spec in self._launch.here}
        for name, table in self._launch.more.items():
            for program in table.programs(os.getpid(), folder) if isinstance(table, HasPrograms) else ():
                if program.node in here:
                    self._programs[name] = SideProgram(
                        (str(program.file), *program.arguments),
                        functools.partial(self._freezes.heard, name),
                        functools.partial(self._view.log, "warning", name),
                    )
        return [asyncio.create_task(program.keep(), name=name) for name, program in self._programs.items()]

    @property
    def _name(self) -> str:
        stem = self._launch.path.stem
        return f"{stem}-{self._launch.host}" if self._launch.host else stem

    def _run_document(self) -> dict[str, Any]:
        """What `run.json` says: what the nodes may know of the run, each process's plan, and the graph for tools."""
        nodes, topics = describe(self._launch)
        return {
            **self._run_info,
            "launch_file": str(self._launch.path),
            "launch_text": self._launch.text,
            "seed": self._seed,
            "folder": str(self._folder),
            "processes": {name: msgspec.to_builtins(part) for name, part in self._plans.items()},
            "nodes": msgspec.to_builtins(nodes),
            "topics": msgspec.to_builtins(topics),
        }

    def _go(self, child: ChildProcess) -> None:
        child.order("go")
        self._windows[child.name].runs(self._clock.now_ns())
        self._show(child, "running")

    def _show(self, child: ChildProcess, state: str) -> None:
        """Tell the view and the registry how a process fares."""
        self._view.process(child.name, child.pid, state)
        if self._registration is not None:
            self._registration.note(child.name, child.pid, state, len(self.restarted.get(child.name, ())))

    async def _start_all(self, sockets: Path) -> None:
        assert self._ending is not None
        for name in self._plans:
            held = self._claims.numbers if self._claims else ()
            mark = MARK + self._name if self._plans[name].hosts_authority else ""
            child = ChildProcess(name, sockets, self._on_event, held, mark, self._server_of(name))
            self._children[name] = child
            await child.start()
            self._families.add(child.pid)
            self._show(child, "started")
            if self._ending.done():
                return
        waiting: asyncio.Future[Any] = asyncio.ensure_future(self._all_ready.wait())
        ending: asyncio.Future[Any] = self._ending
        await asyncio.wait({waiting, ending}, timeout=READY_S, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._asked_ns is not None:
            return
        failed = [f"{child.name}: {child.failure}" for child in self._children.values() if child.failure]
        if failed:
            raise PolyrhythmError("; ".join(failed))
        if not self._all_ready.is_set() and not self._ending.done():
            late = sorted(set(self._children) - self._ready)
            raise PolyrhythmError(f"{', '.join(late)} did not become ready within {READY_S:g} s")

    def _server_of(self, name: str) -> ForkServer | None:
        """What forks that process; None where a module of its nodes starts a thread when it is imported."""
        if self._server is None:
            return None
        apart = sorted(self._server.apart & modules_of(self._plans[name].nodes))
        if apart:
            text = (
                f"{name} is started afresh and not forked, which takes longer: {apart[0]} starts a thread at its import"
            )
            self._view.log("notice", "supervisor", text)
            return None
        return self._server

    def _observe(self, sockets: Path, loop: asyncio.AbstractEventLoop) -> SubscriberThread:
        """Hear what the view shows, from the first message to the last: of all topics but journals and arrays."""

        def show(stamped: Stamped[Any]) -> None:
            try:
                loop.call_soon_threadsafe(self._view.message, stamped)
            except RuntimeError:
                pass  # the loop was closed: the run is over

        inlet = SubscriberThread(self._watched, show, lambda *_: None, watches_ends=True)
        owners = {topic: owner for plan in self._plans.values() for topic, owner in plan.owners.items()}
        inlet.connect(sockets, self._plans, owners, self._launch.graph.nodes)
        inlet.accept(sockets, _OBSERVER)
        inlet.start()
        return inlet

    async def _draw(self, terminal: Terminal | None) -> None:
        while True:
            self._systemd.tell("WATCHDOG=1")
            if self._is_going:
                self._end_frozen()
            if terminal is not None and terminal.is_lost:
                self._lost_terminal()
            self._view.refresh(self._clock.now_ns())
            await asyncio.sleep(LOOK_S)

    def _end_frozen(self) -> None:
        """Kill what has not run for a while; then it is restarted as any process that died."""
        for name in sorted(self._ready):
            child = self._children[name]
            if self._freezes.look(name, processor_time(child.pid)):
                self._freezes.heard(name)
                child.killed_for = f"no thread of it ran for {self._freezes.frozen_s:g} s"
                child.signal(signal.SIGKILL)
                self._view.log("warning", "supervisor", f"{name} (pid {child.pid}) is killed: {child.killed_for}")
        for name, program in self._programs.items():
            if program.pid and self._freezes.look(name, processor_time(program.pid)):
                self._freezes.heard(name)
                program.kill()

    async def _look_on(self) -> None:
        """A command that looks on and tells people where, like the page of `polyrhythm view`."""
        command, *options = self._beside
        output_read, output_write = os.pipe()
        try:
            process = await start_command((command, "--run", str(os.getpid()), *options), output_write, self._server)
        finally:
            os.close(output_write)
        try:
            async for line in await lines_of(output_read):
                self._view.log("notice", command, line.decode(errors="replace").rstrip())
        finally:
            if process.returncode is None:
                try:
                    os.kill(process.pid, signal.SIGTERM)
                    await asyncio.wait_for(process.wait(), PATIENCE_S)
                except TimeoutError:
                    os.kill(process.pid, signal.SIGKILL)
                    await process.wait()
                except ProcessLookupError:
                    pass  # it has just ended

    def _interrupted(self) -> None:
        """Somebody asks for the end: first it ends, then that is told."""
        now_ns = self._clock.now_ns()
        if self._asked_ns is None:
            self._asked_ns = now_ns
            self._end(None)
            self._view.log("info", "supervisor", "stopping")
        elif now_ns - self._asked_ns > AGAIN_NS:  # asked twice: at once
            self._is_hurried = True
            for child in self._children.values():
                child.signal(signal.SIGKILL)

    def _lost_terminal(self, terminal: Terminal | None = None) -> None:
        """The terminal was closed, or the way to it is gone; however often that is told, it is asked for once."""
        if terminal is not None:
            asyncio.get_running_loop().remove_reader(terminal.watched)
        if self._asked_ns is None:
            self._interrupted()

    def _reap(self) -> None:
        reap_orphans({child.pid for child in self._children.values()})

    def _on_event(self, child: ChildProcess, event: dict[str, Any]) -> None:
        kind = event["event"]
        self._freezes.heard(child.name)
        if kind == "ready":
            self._ready.add(child.name)
            if self._is_going:
                self._go(child)
            elif self._ready == set(self._plans):
                self._all_ready.set()
        elif kind == "log":
            self._view.log(event["level"], event["source"], event["text"])
        elif kind == "refused":  # what the sender alone can mend
            for name, plan in self._plans.items():
                if event["source"] in plan.nodes:
                    fields = {key: event[key] for key in ("source", "topic", "why", "number")}
                    self._children[name].order("refused", receiver=child.name, **fields)
        elif kind == "finish":
            self._end((bool(event["ok"]), str(event["reason"])))
        elif kind == "exited":
            self._on_exit(child, event["code"])

    def _end(self, outcome: tuple[bool, str] | None) -> None:
        if self._ending is not None and not self._ending.done():
            self._ending.set_result(outcome)

    def _on_exit(self, child: ChildProcess, code: int) -> None:
        was_ready = child.name in self._ready  # who is ended while it loads has done nothing yet
        self._ready.discard(child.name)
        why = _why(code, child.failure, child.crashed_at, child.aborted or child.killed_for)
        if self._ending is None or self._ending.done():
            if code != 0 and was_ready and not self._is_hurried:
                self.unclean[child.name] = why
            self._show(child, "stopped" if code == 0 else f"stopped: {why}")
            return
        self._replace(child, code, why)
        self._show(child, f"failed: {why}")

    def _replace(self, child: ChildProcess, code: int, why: str) -> None:
        """Restart what has ended in mid-run, or end the run."""
        policy = self._plans[child.name].restart
        if not self._is_going or policy == "never" or (policy == "on-failure" and code == 0):
            self._end((False, f"{child.name} {why}"))
            return
        backoff_s = self._windows[child.name].next_backoff_s(self._clock.now_ns())
        if backoff_s is None:
            self._end((False, f"{child.name} {why}, for the {RESTARTS + 1}th time within {WINDOW_S:g} s"))
            return
        task = asyncio.create_task(self._restart(child, backoff_s, why), name=f"restart-{child.name}")
        self._restarts.add(task)
        task.add_done_callback(self._restarts.discard)

    async def _restart(self, child: ChildProcess, backoff_s: float, why: str) -> None:
        self._end_families({child.pid})
        assert self._ending is not None
        await asyncio.wait({self._ending}, timeout=backoff_s)
        if self._ending.done():
            return
        await child.start()
        self._families.add(child.pid)
        self.restarted.setdefault(child.name, []).append(why)
        self._show(child, "restarted")

    async def _stop_all(self) -> None:
        loading = [child for child in self._children.values() if child.name not in self._ready]
        stopping = asyncio.gather(*(child.stop(LOADING_PATIENCE_S) for child in loading))
        if self._restarts:  # they end by themselves now; a process half started could not be stopped
            await asyncio.wait(self._restarts)
        first, late, last = (
            [child for child in self._children.values() if self._plans[child.name].stops == turn] for turn in range(3)
        )
        for children in (first, late):
            await asyncio.gather(*(child.stop(PATIENCE_S) for child in children))
        outcome = self._ending.result() if self._ending is not None and self._ending.done() else None
        if outcome is not None:
            for child in last:
                child.order("ended", ok=outcome[0], reason=outcome[1])
        await asyncio.gather(*(child.stop(RECORDER_PATIENCE_S) for child in last), stopping)
        self._end_families(self._families)

    def _end_families(self, pids: set[int]) -> None:
        """End what these processes started and left behind."""
        if self._registration is not None:
            end_families(pids, self._registration.folder.name)


def _why(code: int, failure: str, crashed_at: str, aborted: str) -> str:
    if failure:
        return failure
    if code >= 0:
        return f"exited with code {code}"
    at = f" at {crashed_at}" if crashed_at else ""
    at += f": {aborted}" if aborted else ""
    try:
        return f"was killed by {signal.Signals(-code).name}{at}"
    except ValueError:  # one of the real-time signals
        return f"was killed by signal {-code}{at}"


NOTIFY_SOCKET = "NOTIFY_SOCKET"


class Systemd:
    """Notifies systemd where it named a socket, and does nothing elsewhere; child processes do not inherit the name."""

    def __init__(self) -> None:
        self._address = os.environ.pop(NOTIFY_SOCKET, "")

    def tell(self, word: str) -> None:
        """Send READY=1, WATCHDOG=1 or STOPPING=1 without waiting; a service manager that is gone is ignored."""
        if not self._address:
            return
        place = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
            told.setblocking(False)
            try:
                told.sendto(word.encode(), place)
            except OSError:
                pass  # it is restarted, or has no room: the next word comes in a moment
